//! The expressions of `math()`: parsed once into reverse Polish notation, evaluated in doubles.
//!
//! Operators bind, from weakest to strongest: `+ -`, `* / %`, sign, `^` (which groups to the right). A function may
//! stand without parentheses; it then takes **all** that follows up to the next closing parenthesis: `sin _ + 1` is
//! `sin(_ + 1)`, `sin(_) + 1` is not. That is the shunting yard of the calculator TinkerPop uses, and users rely on it.
//! Evaluation walks a list with a stack, so no expression can exhaust the call stack.
//!
//! Source: Dijkstra, "Algol 60 translation", 1961, for the shunting yard.

use std::sync::Arc;

use ficus_model::Value;

use super::{FunctionError, FunctionResult};

/// Bytes an expression may have; each costs at most one step per evaluation.
pub const EXPRESSION_BYTES_MAX: usize = 16 << 10;

/// The variable that stands for the current value.
pub const CURRENT: &str = "_";

/// An operator, in reverse Polish notation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Number(f64),
    /// By position in the list of variables.
    Variable(usize),
    Function(Function),
    Binary(Binary),
    Negate,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

macro_rules! functions {
    ($($name:ident = $text:literal),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Function { $($name),+ }
        impl Function {
            fn from_name(name: &str) -> Option<Function> {
                match name { $($text => Some(Function::$name),)+ _ => None }
            }
            fn name(self) -> &'static str {
                match self { $(Function::$name => $text),+ }
            }
        }
    };
}

functions!(
    Abs = "abs",
    Acos = "acos",
    Asin = "asin",
    Atan = "atan",
    Cbrt = "cbrt",
    Ceil = "ceil",
    Cos = "cos",
    Cosh = "cosh",
    Exp = "exp",
    Floor = "floor",
    Log = "log",
    Log10 = "log10",
    Log2 = "log2",
    Signum = "signum",
    Sin = "sin",
    Sinh = "sinh",
    Sqrt = "sqrt",
    Tan = "tan",
    Tanh = "tanh",
);

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: Arc<str>,
    operations: Vec<Operation>,
    variables: Vec<Arc<str>>,
}

impl Expression {
    /// Parses an expression. Errors say what is wrong and where.
    pub fn parse(text: &str) -> FunctionResult<Expression> {
        if text.trim().is_empty() {
            return Err(FunctionError::new("Expression can not be empty"));
        }
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(FunctionError::new(format!("a math() expression has at most {EXPRESSION_BYTES_MAX} bytes")));
        }
        let mut parser = Parser { text, at: 0, variables: Vec::new(), output: Vec::new(), pending: Vec::new() };
        parser.run()?;
        check_operands(&parser.output)?;
        Ok(Expression { text: text.into(), operations: parser.output, variables: parser.variables })
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The variables in the order of their first mention, which is the order of `by()` modulators.
    pub fn variables(&self) -> &[Arc<str>] {
        &self.variables
    }

    /// The value, given those of [`Expression::variables`].
    ///
    /// Errors: division by zero, also of remainders.
    /// Panics if fewer values than variables are given.
    pub fn evaluate(&self, values: &[f64]) -> FunctionResult<f64> {
        assert!(values.len() >= self.variables.len(), "every variable needs a value");
        let mut stack: Vec<f64> = Vec::with_capacity(8);
        const COUNTED: &str = "operands were counted when parsing";
        for operation in &self.operations {
            let result = match operation {
                Operation::Number(number) => *number,
                Operation::Variable(index) => values[*index],
                Operation::Function(function) => function.apply(stack.pop().expect(COUNTED)),
                Operation::Negate => -stack.pop().expect(COUNTED),
                Operation::Plus => stack.pop().expect(COUNTED),
                Operation::Binary(binary) => {
                    let b = stack.pop().expect(COUNTED);
                    let a = stack.pop().expect(COUNTED);
                    binary.apply(a, b)?
                }
            };
            stack.push(result);
        }
        Ok(stack.pop().expect(COUNTED))
    }
}

/// The double a variable stands for. Errors if its value is no number.
pub fn variable_value(name: &str, value: &Value) -> FunctionResult<f64> {
    if ficus_model::number::is_number(value) {
        return Ok(ficus_model::number::to_double(value));
    }
    Err(FunctionError::new(format!(
        "The variable {name} for math() step must resolve to a Number - it is instead of type {} with value {value}",
        value.type_name()
    )))
}

impl Function {
    fn apply(self, x: f64) -> f64 {
        match self {
            Function::Abs => x.abs(),
            Function::Acos => x.acos(),
            Function::Asin => x.asin(),
            Function::Atan => x.atan(),
            Function::Cbrt => x.cbrt(),
            Function::Ceil => x.ceil(),
            Function::Cos => x.cos(),
            Function::Cosh => x.cosh(),
            Function::Exp => x.exp(),
            Function::Floor => x.floor(),
            Function::Log => x.ln(),
            Function::Log10 => x.log10(),
            Function::Log2 => x.ln() / 2f64.ln(),
            Function::Signum if x > 0.0 => 1.0,
            Function::Signum if x < 0.0 => -1.0,
            Function::Signum => 0.0,
            Function::Sin => x.sin(),
            Function::Sinh => x.sinh(),
            Function::Sqrt => x.sqrt(),
            Function::Tan => x.tan(),
            Function::Tanh => x.tanh(),
        }
    }
}

impl Binary {
    fn apply(self, a: f64, b: f64) -> FunctionResult<f64> {
        if matches!(self, Binary::Divide | Binary::Remainder) && b == 0.0 {
            return Err(FunctionError::new("Division by zero!"));
        }
        Ok(match self {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => a / b,
            Binary::Remainder => a % b,
            Binary::Power => a.powf(b),
        })
    }

    fn sign(self) -> char {
        match self {
            Binary::Add => '+',
            Binary::Subtract => '-',
            Binary::Multiply => '*',
            Binary::Divide => '/',
            Binary::Remainder => '%',
            Binary::Power => '^',
        }
    }
}

/// How strongly an operator binds.
fn precedence(operation: Operation) -> u32 {
    match operation {
        Operation::Binary(Binary::Add | Binary::Subtract) => 1,
        Operation::Binary(Binary::Multiply | Binary::Divide | Binary::Remainder) => 2,
        Operation::Negate | Operation::Plus => 3,
        Operation::Binary(Binary::Power) => 4,
        Operation::Number(_) | Operation::Variable(_) | Operation::Function(_) => 5,
    }
}

/// Proves that evaluation never lacks an operand and leaves exactly one.
fn check_operands(operations: &[Operation]) -> FunctionResult<()> {
    let mut depth = 0usize;
    for operation in operations {
        let (needed, what) = match operation {
            Operation::Number(_) | Operation::Variable(_) => (0, String::new()),
            Operation::Function(function) => {
                (1, format!("Invalid number of arguments available for '{}' function", function.name()))
            }
            Operation::Negate => (1, "Invalid number of operands available for '-' operator".to_string()),
            Operation::Plus => (1, "Invalid number of operands available for '+' operator".to_string()),
            Operation::Binary(binary) => {
                (2, format!("Invalid number of operands available for '{}' operator", binary.sign()))
            }
        };
        if depth < needed {
            return Err(FunctionError::new(what));
        }
        depth = depth - needed + 1;
    }
    if depth != 1 {
        return Err(FunctionError::new("Invalid number of items: an operator is missing between two operands"));
    }
    Ok(())
}

/// What waits for its operands, or for its closing parenthesis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pending {
    Open,
    Operation(Operation),
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    variables: Vec<Arc<str>>,
    output: Vec<Operation>,
    pending: Vec<Pending>,
}

impl Parser<'_> {
    fn run(&mut self) -> FunctionResult<()> {
        // Whether what follows is an operand, so that `-` is a sign.
        let mut operand_expected = true;
        while let Some(c) = self.text[self.at..].chars().next() {
            match c {
                c if c.is_whitespace() => self.at += c.len_utf8(),
                '0'..='9' | '.' => {
                    let number = self.number()?;
                    self.output.push(Operation::Number(number));
                    operand_expected = false;
                }
                '(' | '[' | '{' => {
                    self.pending.push(Pending::Open);
                    self.at += 1;
                    operand_expected = true;
                }
                ')' | ']' | '}' => {
                    self.close()?;
                    self.at += 1;
                    operand_expected = false;
                }
                '+' | '-' | '*' | '/' | '%' | '^' => {
                    self.operator(operator(c, operand_expected));
                    self.at += 1;
                    operand_expected = true;
                }
                ',' => return Err(FunctionError::new("Misplaced function separator ',' or mismatched parentheses")),
                'π' => self.constant(std::f64::consts::PI, &mut operand_expected),
                'φ' => self.constant(1.618_033_988_75, &mut operand_expected),
                c if c.is_ascii_alphabetic() || c == '_' => {
                    self.name();
                    operand_expected = false;
                }
                c => {
                    return Err(FunctionError::new(format!(
                        "Unknown function, variable or operator '{c}' at pos {} in expression '{}'",
                        self.at, self.text
                    )));
                }
            }
        }
        while let Some(pending) = self.pending.pop() {
            match pending {
                Pending::Open => {
                    return Err(FunctionError::new("Mismatched parentheses detected. Please check the expression"));
                }
                Pending::Operation(operation) => self.output.push(operation),
            }
        }
        Ok(())
    }

    fn constant(&mut self, value: f64, operand_expected: &mut bool) {
        self.output.push(Operation::Number(value));
        self.at += 2;
        *operand_expected = false;
    }

    /// Digits with a point and an exponent; an `e` that no digits follow is left for a variable.
    fn number(&mut self) -> FunctionResult<f64> {
        let bytes = self.text.as_bytes();
        let digits =
            |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        let mut end = self.at + digits(self.at);
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent_start = end + 1 + sign;
            if bytes.get(exponent_start).is_some_and(u8::is_ascii_digit) {
                end = exponent_start + digits(exponent_start);
            }
        }
        let number = &self.text[self.at..end];
        let parsed = number.parse().map_err(|_| {
            FunctionError::new(format!("'{number}' at pos {} in expression '{}' is not a number", self.at, self.text))
        });
        self.at = end;
        parsed
    }

    fn name(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let name = &rest[..length];
        self.at += length;
        match Function::from_name(name) {
            Some(function) => self.pending.push(Pending::Operation(Operation::Function(function))),
            None => {
                let known = self.variables.iter().position(|variable| **variable == *name);
                let index = known.unwrap_or_else(|| {
                    self.variables.push(name.into());
                    self.variables.len() - 1
                });
                self.output.push(Operation::Variable(index));
            }
        }
    }

    /// Moves operators that bind at least as strongly to the output, then waits.
    fn operator(&mut self, operation: Operation) {
        let is_sign = matches!(operation, Operation::Negate | Operation::Plus);
        let groups_left = !is_sign && operation != Operation::Binary(Binary::Power);
        while let Some(Pending::Operation(top)) = self.pending.last().copied() {
            let top_is_binary = matches!(top, Operation::Binary(_));
            let binds =
                precedence(operation) < precedence(top) || groups_left && precedence(operation) == precedence(top);
            if matches!(top, Operation::Function(_)) || is_sign && top_is_binary || !binds {
                break;
            }
            self.output.push(top);
            self.pending.pop();
        }
        self.pending.push(Pending::Operation(operation));
    }

    fn close(&mut self) -> FunctionResult<()> {
        loop {
            match self.pending.pop() {
                Some(Pending::Operation(operation)) => self.output.push(operation),
                Some(Pending::Open) => break,
                None => {
                    return Err(FunctionError::new(format!(
                        "Mismatched parentheses detected at pos {} in expression '{}'",
                        self.at, self.text
                    )));
                }
            }
        }
        if let Some(Pending::Operation(function @ Operation::Function(_))) = self.pending.last().copied() {
            self.output.push(function);
            self.pending.pop();
        }
        Ok(())
    }
}

/// The operator a character stands for where an operand or an operator is expected.
fn operator(c: char, operand_expected: bool) -> Operation {
    match c {
        '-' if operand_expected => Operation::Negate,
        '+' if operand_expected => Operation::Plus,
        '+' => Operation::Binary(Binary::Add),
        '-' => Operation::Binary(Binary::Subtract),
        '*' => Operation::Binary(Binary::Multiply),
        '/' => Operation::Binary(Binary::Divide),
        '%' => Operation::Binary(Binary::Remainder),
        _ => Operation::Binary(Binary::Power),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_five(text: &str) -> FunctionResult<f64> {
        let expression = Expression::parse(text)?;
        expression.evaluate(&vec![5.0; expression.variables().len()])
    }

    #[test]
    fn expressions_have_the_values_users_know() {
        for (text, expected) in [
            ("_", 5.0),
            ("_+_", 10.0),
            ("0-_", -5.0),
            ("sin _", -0.9589242746631385),
            ("sin _ + 1", -0.27941549819892586),
            ("sin(_) + 1", 0.041075725336861546),
            ("-_^2", -25.0),
            ("2^-1", 0.5),
            ("2^3^2", 512.0),
            ("-2^2", -4.0),
            ("(-2)^2", 4.0),
            ("2--1", 3.0),
            ("2-+1", 1.0),
            ("--2", 2.0),
            ("10%4", 2.0),
            ("5 % -3", 2.0),
            ("10/4", 2.5),
            ("log(_)", 1.6094379124341003),
            ("log10 100", 2.0),
            ("log2(8)", 3.0),
            ("abs(-3)", 3.0),
            ("sqrt 16", 4.0),
            ("cbrt(27)", 3.0),
            ("ceil 1.2", 2.0),
            ("floor(-1.2)", -2.0),
            ("signum(-3)", -1.0),
            ("exp 1", std::f64::consts::E),
            ("acos 1", 0.0),
            ("cos(0)", 1.0),
            ("tanh 1", 0.7615941559557649),
            ("+1", 1.0),
            ("1e3", 1000.0),
            ("1.5e-3", 0.0015),
            ("1e+3", 1000.0),
            (".5", 0.5),
            ("1.", 1.0),
            ("1 + (2 * 3) - 4 / 2 ^ 2", 6.0),
            ("sin cos 0", 0.8414709848078965),
            ("sin 1 * 2", 0.9092974268256817),
            ("sin 1 ^ 2", 0.8414709848078965),
            ("sin(1)^2", 0.7080734182735712),
            ("2^sin 1", 1.791876223827922),
            ("-sin 1", -0.8414709848078965),
            ("3^-2", 0.1111111111111111),
            ("2 * -3 ^ 2", -18.0),
            ("log 0", f64::NEG_INFINITY),
            ("0^0", 1.0),
            ("π", std::f64::consts::PI),
            ("1+[2*{3}]", 7.0),
            ("1\n+\t2", 3.0),
            ("1 abs", 1.0),
            ("expectedWeight + 1", 6.0),
        ] {
            let value = at_five(text).unwrap();
            assert!((value - expected).abs() < 1e-14 || value == expected, "{text}: {value}");
        }
    }

    #[test]
    fn malformed_expressions_are_refused() {
        for (text, expected) in [
            ("", "Expression can not be empty"),
            ("abs -3", "Invalid number of operands available for '-' operator"),
            ("1/0", "Division by zero!"),
            ("1%0", "Division by zero!"),
            ("1 2", "Invalid number of items"),
            ("2(3)", "Invalid number of items"),
            ("2 sin 1", "Invalid number of items"),
            ("2_", "Invalid number of items"),
            ("1e", "Invalid number of items"),
            ("1+", "Invalid number of operands available for '+' operator"),
            ("*1", "Invalid number of operands available for '*' operator"),
            ("()", "Invalid number of items"),
            ("sin", "Invalid number of arguments available for 'sin' function"),
            ("sin()", "Invalid number of arguments available for 'sin' function"),
            ("1..2", "is not a number"),
            ("1,2", "Misplaced function separator"),
            ("(1", "Mismatched parentheses detected"),
            ("1)", "Mismatched parentheses detected"),
            ("3!", "'!' at pos 1"),
            ("1+é", "'é' at pos 2"),
            ("1;2", "';' at pos 1"),
        ] {
            let error = at_five(text).unwrap_err();
            assert!(error.message().contains(expected), "{text}: {error}");
        }
        assert!(Expression::parse(&"(".repeat(EXPRESSION_BYTES_MAX + 1)).is_err());
        let deep = format!("{}1{}", "(".repeat(8000), ")".repeat(8000));
        assert_eq!(at_five(&deep), Ok(1.0));
        let signs = format!("{}1", "-".repeat(16_000));
        assert_eq!(at_five(&signs), Ok(1.0));
    }

    #[test]
    fn variables_come_in_order_of_first_mention() {
        let expression = Expression::parse("b + a * b - sin(_x1) + pi").unwrap();
        let names: Vec<&str> = expression.variables().iter().map(|name| &**name).collect();
        assert_eq!(names, ["b", "a", "_x1", "pi"]);
        assert_eq!(expression.evaluate(&[1.0, 2.0, 0.0, 3.0]), Ok(6.0));
        assert_eq!(variable_value("x", &Value::Int(3)), Ok(3.0));
        let error = variable_value("x", &Value::from("a")).unwrap_err();
        let expected =
            "The variable x for math() step must resolve to a Number - it is instead of type String with value a";
        assert_eq!(error.message(), expected);
    }
}
