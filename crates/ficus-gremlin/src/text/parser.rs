//! Scripts, statements, traversals and argument lists.
//!
//! The parser holds one sign of look-ahead, and peeks one more byte where a word's meaning depends on what follows it.
//! Recursion is counted: every nested traversal, collection and predicate goes through [`Parser::deeper`].

use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Instruction, Value};
use num_traits::ToPrimitive;

use super::error::{Parsed, SyntaxError, SyntaxErrorKind};
use super::lexer::{Kind, Sign, broken, clip, sign_at, skip_blanks};
use super::signature::{Callable, ClassSet, Conversion, accepts_count, class, parameter_at};
use super::steps::{Table, shared_name, source_index, spawn_index, step_index};
use super::{Limits, ParseOptions, Script, Statement, Terminal, TransactionOperation};

/// Signs read between two looks at whether the query has to stop: some tens of microseconds.
pub(super) const SIGNS_BETWEEN_LOOKS: usize = 1024;

/// A reader of one text.
pub(crate) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) options: &'t ParseOptions<'t>,
    /// The sign to be read next.
    pub(super) current: Sign,
    /// Signs read so far.
    signs: usize,
    /// How deep the current place is nested.
    depth: usize,
    /// How many more values ranges may expand to.
    pub(super) range_values: usize,
    /// Whose arguments are being read, for messages.
    pub(super) callee: Option<&'static Callable>,
}

impl<'t> Parser<'t> {
    /// Reads all of `text`.
    pub(crate) fn script(text: &'t str, options: &'t ParseOptions<'t>) -> Parsed<Script> {
        let Limits { text_bytes, statements: statements_max, range_values, .. } = options.limits;
        // Offsets are 32 bit.
        if text.len() > text_bytes.min(u32::MAX as usize) {
            let message = format!("this script has {} bytes, more than the limit of {text_bytes}", text.len());
            return Err(SyntaxError::at(text, (0, 0), SyntaxErrorKind::TooLarge, message)
                .advising("send values as parameters, and bulk data in several requests"));
        }
        let current = sign_at(text, skip_blanks(text, 0));
        if current.kind == Kind::Broken {
            return Err(broken(text, current));
        }
        let mut parser = Parser { text, options, current, signs: 0, depth: 0, range_values, callee: None };
        let mut statements = Vec::with_capacity(1);
        loop {
            while parser.current.kind == Kind::Semicolon {
                parser.advance()?;
            }
            if parser.current.kind == Kind::End {
                break;
            }
            if statements.len() == statements_max {
                let message = format!("this script has more than {statements_max} statements");
                return Err(parser.error_here(SyntaxErrorKind::TooLarge, message));
            }
            statements.push(parser.statement()?);
        }
        if statements.is_empty() {
            return Err(SyntaxError::at(text, (0, 0), SyntaxErrorKind::EmptyScript, "there is nothing to run")
                .advising("a script is a traversal such as g.V(), or several separated by ;"));
        }
        Ok(Script { statements })
    }

    /// One statement, up to but without its semicolon.
    fn statement(&mut self) -> Parsed<Statement> {
        let mut statement = match self.current.kind {
            Kind::Text if self.current.end - self.current.start == 2 => {
                self.advance()?;
                Statement::Empty
            }
            Kind::Word if self.is_source(self.word()) => self.rooted()?,
            _ => return Err(self.not_a_statement()),
        };
        while self.current.kind == Kind::Dot {
            let dot = self.current;
            self.advance()?;
            if self.current.kind == Kind::Word && self.word() == "toString" {
                self.advance()?;
                self.no_arguments("toString")?;
                if !matches!(statement, Statement::ToString(_)) {
                    statement = Statement::ToString(Box::new(statement));
                }
            } else {
                return Err(self.after_the_end(dot));
            }
        }
        match self.current.kind {
            Kind::Semicolon | Kind::End | Kind::Word | Kind::Text | Kind::EscapedText => Ok(statement),
            _ => Err(self.not_after_a_statement()),
        }
    }

    /// A statement that begins with a traversal source.
    fn rooted(&mut self) -> Parsed<Statement> {
        let (source, mut bytecode) = self.source()?;
        if self.current.kind != Kind::Dot {
            return Ok(Statement::SourceOnly { source, bytecode });
        }
        let dot = self.current;
        self.advance()?;
        match self.word_or_empty() {
            "toString" => {
                // The dot belongs to the caller's loop.
                self.current = dot;
                Ok(Statement::SourceOnly { source, bytecode })
            }
            "tx" => {
                self.advance()?;
                self.no_arguments("tx")?;
                let operation = self.transaction_operation()?;
                Ok(Statement::Transaction { source, operation })
            }
            _ => {
                self.spawn(&mut bytecode)?;
                let terminal = self.steps(&mut bytecode.steps, true)?;
                Ok(Statement::Traversal { source, bytecode, terminal })
            }
        }
    }

    fn transaction_operation(&mut self) -> Parsed<TransactionOperation> {
        const EXPECTED: [&str; 3] = [".begin()", ".commit()", ".rollback()"];
        let expected = || EXPECTED.map(String::from).to_vec();
        if self.current.kind != Kind::Dot {
            let error = self.error_here(SyntaxErrorKind::Unexpected, "tx() alone does nothing");
            return Err(error.expecting(expected()));
        }
        self.advance()?;
        let (name, operation) = match self.word_or_empty() {
            "begin" => ("begin", TransactionOperation::Begin),
            "commit" => ("commit", TransactionOperation::Commit),
            "rollback" => ("rollback", TransactionOperation::Rollback),
            other => {
                let message = format!("a transaction has no {}()", clip(other));
                return Err(self.error_here(SyntaxErrorKind::Unexpected, message).expecting(expected()));
            }
        };
        self.advance()?;
        self.no_arguments(name)?;
        Ok(operation)
    }

    /// A traversal source with its configuration, up to the dot before what follows.
    pub(super) fn source(&mut self) -> Parsed<(Arc<str>, Bytecode)> {
        let source = Arc::from(self.word());
        self.advance()?;
        let mut bytecode = Bytecode::default();
        while self.current.kind == Kind::Dot {
            let dot = self.current;
            self.advance()?;
            let Some(index) = source_index(self.word_or_empty()) else {
                // Not configuration: the dot is the caller's.
                self.current = dot;
                break;
            };
            let instruction = self.call(Table::SourceMethods, index)?;
            bytecode.source.push(instruction);
        }
        Ok((source, bytecode))
    }

    /// The step that begins a traversal, after the source's dot.
    pub(super) fn spawn(&mut self, bytecode: &mut Bytecode) -> Parsed<()> {
        if self.current.kind != Kind::Word {
            return Err(self.unexpected("a step such as V()"));
        }
        let Some(index) = spawn_index(self.word()) else { return Err(self.not_a_spawn_step()) };
        bytecode.steps = Vec::with_capacity(6);
        let instruction = self.call(Table::SpawnSteps, index)?;
        bytecode.steps.push(instruction);
        Ok(())
    }

    /// The steps after a first one; with `terminated`, up to and including a terminal step.
    pub(super) fn steps(&mut self, steps: &mut Vec<Instruction>, terminated: bool) -> Parsed<Option<Terminal>> {
        while self.current.kind == Kind::Dot {
            let dot = self.current;
            self.advance()?;
            let word = self.word_or_empty();
            if let Some(index) = step_index(word) {
                steps.push(self.call(Table::Steps, index)?);
            } else if terminated && word == "toString" {
                self.current = dot;
                return Ok(None);
            } else if terminated && let Some(terminal) = Terminal::from_name(word) {
                return self.terminal(terminal).map(Some);
            } else {
                return Err(self.not_a_step());
            }
        }
        Ok(None)
    }

    /// The rest of a terminal step.
    fn terminal(&mut self, terminal: Terminal) -> Parsed<Terminal> {
        self.advance()?;
        if terminal != Terminal::Next {
            self.no_arguments(terminal.name())?;
            return Ok(terminal);
        }
        self.expect(Kind::Open, "( after next")?;
        if self.current.kind == Kind::Close {
            self.advance()?;
            return Ok(terminal);
        }
        let place = self.current;
        if place.kind != Kind::Integer {
            return Err(self.unexpected("the number of results, or )"));
        }
        let count = super::literal::integer(self.text, place)?;
        self.advance()?;
        let Value::Long(count) = self.convert_value(count, Conversion::Long, place)? else {
            return Err(self.error_at(place, SyntaxErrorKind::InvalidNumber, "next() takes an integer"));
        };
        self.expect(Kind::Close, ") after next's count")?;
        Ok(Terminal::NextMany(count))
    }

    /// A traversal without a source: `out().count()` or `__.out().count()`; the current sign is its first word.
    pub(super) fn anonymous(&mut self) -> Parsed<Arc<Bytecode>> {
        let mut parser = self.deeper()?;
        if parser.word() == "__" {
            parser.advance()?;
            if parser.current.kind != Kind::Dot {
                return Err(parser.unexpected(". and a step after __"));
            }
            parser.advance()?;
        }
        let Some(index) = step_index(parser.word_or_empty()) else { return Err(parser.not_a_step()) };
        let mut bytecode = Bytecode::default();
        let first = parser.call(Table::Steps, index)?;
        bytecode.steps.push(first);
        parser.steps(&mut bytecode.steps, false)?;
        Ok(Arc::new(bytecode))
    }

    /// A query inside a query: `g.V().count().next()`, ending in a terminal step.
    pub(super) fn terminated(&mut self) -> Parsed<Arc<Bytecode>> {
        let mut parser = self.deeper()?;
        let start = parser.current;
        let (_, mut bytecode) = parser.source()?;
        if parser.current.kind == Kind::Dot {
            parser.advance()?;
            parser.spawn(&mut bytecode)?;
            if let Some(terminal) = parser.steps(&mut bytecode.steps, true)? {
                let args = match terminal {
                    Terminal::NextMany(count) => vec![Argument::Value(Value::Long(count))],
                    _ => Vec::new(),
                };
                let offset = parser.options.offsets.then_some(start.start as u32);
                bytecode.steps.push(Instruction { name: terminal.name().into(), args, offset });
                return Ok(Arc::new(bytecode));
            }
        }
        let place = Sign { end: parser.current.start, ..start };
        Err(parser.unterminated(place))
    }

    /// The entry `index` of `table`, called; the current sign is its name.
    pub(super) fn call(&mut self, table: Table, index: usize) -> Parsed<Instruction> {
        let callable = &table.callables()[index];
        let offset = self.options.offsets.then_some(self.current.start as u32);
        let args = self.arguments(callable)?;
        Ok(Instruction { name: shared_name(table, index), args, offset })
    }

    /// The arguments of `callable`, parentheses included; the current sign is its name.
    pub(super) fn arguments(&mut self, callable: &'static Callable) -> Parsed<Vec<Argument>> {
        let name = self.current;
        self.advance()?;
        if self.current.kind != Kind::Open {
            return Err(self.without_parentheses(callable));
        }
        let open = self.current;
        self.advance()?;
        let caller = self.callee.replace(callable);
        let mut arguments = Vec::new();
        let mut viable: u16 = ((1u32 << callable.signatures.len()) - 1) as u16;
        let mut given: ClassSet = 0;
        if self.current.kind != Kind::Close {
            loop {
                let (accepted, index) = (accepted_at(callable, viable, arguments.len()), arguments.len());
                if accepted == 0 {
                    return Err(self.too_many_arguments(callable, index));
                }
                let place = self.current;
                let (argument, class) = self.argument(accepted)?;
                let (remaining, conversion) = narrow(callable, viable, index, class);
                debug_assert!(remaining != 0, "an argument of a class nobody accepts was read");
                viable = remaining;
                given |= class;
                let end = Sign { end: self.current.start, ..place };
                let argument = if class == class::VARIABLE {
                    let accepted = accepted_at(callable, viable, index);
                    self.check_parameter(argument, accepted, conversion, end)?
                } else {
                    self.convert(argument, conversion, end)?
                };
                if arguments.is_empty() {
                    // One argument is by far the most common number.
                    arguments.reserve_exact(1);
                }
                arguments.push(argument);
                match self.current.kind {
                    Kind::Comma => self.advance()?,
                    Kind::Close => break,
                    _ => return Err(self.not_in_arguments(open)),
                }
            }
        }
        let complete = callable
            .signatures
            .iter()
            .enumerate()
            .any(|(index, signature)| viable & (1 << index) != 0 && accepts_count(signature, arguments.len()));
        if !complete {
            let place = Sign { start: name.start, end: self.current.end, ..name };
            return Err(self.too_few_arguments(callable, place, arguments.len(), given));
        }
        self.advance()?;
        self.callee = caller;
        Ok(arguments)
    }

    /// Brings a literal to the type that the step is defined with.
    fn convert(&self, argument: Argument, conversion: Conversion, place: Sign) -> Parsed<Argument> {
        match (argument, conversion) {
            (argument, Conversion::None) => Ok(argument),
            (Argument::Value(value), conversion) => self.convert_value(value, conversion, place).map(Argument::Value),
            (argument, _) => Ok(argument),
        }
    }

    pub(super) fn convert_value(&self, value: Value, conversion: Conversion, place: Sign) -> Parsed<Value> {
        let whole = match (&value, conversion) {
            (_, Conversion::None) => return Ok(value),
            (_, Conversion::Double) => {
                let number = match &value {
                    Value::Float(number) => Some(f64::from(*number)),
                    Value::Double(number) => Some(*number),
                    Value::BigDecimal(number) => number.to_f64(),
                    Value::BigInteger(number) => number.to_f64(),
                    _ => small_integer(&value).map(|number| number as f64),
                };
                return number.map(Value::Double).ok_or_else(|| self.not_a_number(&value, place, "a number"));
            }
            (Value::BigInteger(number), _) => number.to_i64(),
            _ => small_integer(&value),
        };
        let converted = match conversion {
            Conversion::Int => whole.and_then(|whole| i32::try_from(whole).ok()).map(Value::Int),
            _ => whole.map(Value::Long),
        };
        converted.ok_or_else(|| {
            let wanted = if conversion == Conversion::Int { "a 32 bit integer" } else { "a 64 bit integer" };
            self.not_a_number(&value, place, wanted)
        })
    }

    // ---- signs ----

    /// Reads past the current sign.
    #[inline(never)]
    pub(super) fn advance(&mut self) -> Parsed<()> {
        self.signs += 1;
        if self.signs.is_multiple_of(SIGNS_BETWEEN_LOOKS) {
            self.options
                .planning
                .check()
                .map_err(|error| self.error_here(SyntaxErrorKind::Stopped, error.message.to_string()))?;
        }
        self.current = sign_at(self.text, skip_blanks(self.text, self.current.end));
        if self.current.kind == Kind::Broken { Err(broken(self.text, self.current)) } else { Ok(()) }
    }

    /// Reads past the current sign if it is of `kind`.
    pub(super) fn expect(&mut self, kind: Kind, what: &str) -> Parsed<()> {
        if self.current.kind != kind {
            return Err(self.unexpected(what));
        }
        self.advance()
    }

    /// The text of the current sign.
    #[inline]
    pub(super) fn word(&self) -> &'t str {
        &self.text[self.current.start..self.current.end]
    }

    /// The current sign's text if it is a word, else nothing.
    #[inline]
    pub(super) fn word_or_empty(&self) -> &'t str {
        if self.current.kind == Kind::Word { self.word() } else { "" }
    }

    /// The first byte after the current sign that is not blank; 0 at the end.
    #[inline]
    pub(super) fn following(&self) -> u8 {
        self.text.as_bytes().get(skip_blanks(self.text, self.current.end)).copied().unwrap_or(0)
    }

    /// Whether `word` names a traversal source.
    #[inline]
    pub(super) fn is_source(&self, word: &str) -> bool {
        word == "g" || self.options.sources.contains(&word)
    }

    /// `()` after `name`.
    fn no_arguments(&mut self, name: &str) -> Parsed<()> {
        self.expect(Kind::Open, &format!("( after {name}"))?;
        if self.current.kind != Kind::Close {
            let message = format!("{name}() takes no arguments");
            return Err(self.error_here(SyntaxErrorKind::WrongArguments, message));
        }
        self.advance()
    }

    /// A second reader at the same place, to look further ahead with.
    pub(super) fn ahead(&self) -> Parser<'t> {
        Parser { callee: None, ..*self }
    }

    /// This parser one level deeper, until the result goes out of scope.
    pub(super) fn deeper(&mut self) -> Parsed<Deeper<'_, 't>> {
        if self.depth >= self.options.limits.depth {
            let message = format!("this is nested more than {} levels deep", self.options.limits.depth);
            return Err(self
                .error_here(SyntaxErrorKind::TooDeep, message)
                .advising("split the query, or send nested data as a parameter"));
        }
        self.depth += 1;
        Ok(Deeper { parser: self })
    }

    pub(super) fn error_here(&self, kind: SyntaxErrorKind, message: impl Into<String>) -> Box<SyntaxError> {
        self.error_at(self.current, kind, message)
    }

    pub(super) fn error_at(&self, at: Sign, kind: SyntaxErrorKind, message: impl Into<String>) -> Box<SyntaxError> {
        SyntaxError::at(self.text, (at.start, at.end), kind, message)
    }
}

/// A parser one level deeper than the one it was made from.
pub(super) struct Deeper<'p, 't> {
    parser: &'p mut Parser<'t>,
}

impl<'t> std::ops::Deref for Deeper<'_, 't> {
    type Target = Parser<'t>;

    fn deref(&self) -> &Parser<'t> {
        self.parser
    }
}

impl<'t> std::ops::DerefMut for Deeper<'_, 't> {
    fn deref_mut(&mut self) -> &mut Parser<'t> {
        self.parser
    }
}

impl Drop for Deeper<'_, '_> {
    fn drop(&mut self) {
        self.parser.depth -= 1;
    }
}

/// What the viable signatures accept as argument `index`.
fn accepted_at(callable: &Callable, viable: u16, index: usize) -> ClassSet {
    callable
        .signatures
        .iter()
        .enumerate()
        .filter(|(signature, _)| viable & (1 << signature) != 0)
        .filter_map(|(_, signature)| parameter_at(signature, index))
        .fold(0, |accepted, parameter| accepted | parameter.accepts)
}

/// The signatures that stay viable when argument `index` is of `class`, and what the first of them makes of it.
fn narrow(callable: &Callable, viable: u16, index: usize, class: ClassSet) -> (u16, Conversion) {
    let mut remaining = 0;
    let mut conversion = Conversion::None;
    for (position, signature) in callable.signatures.iter().enumerate() {
        if viable & (1 << position) != 0
            && let Some(parameter) = parameter_at(signature, index)
            && parameter.accepts & class != 0
        {
            if remaining == 0 {
                conversion = parameter.conversion;
            }
            remaining |= 1 << position;
        }
    }
    (remaining, conversion)
}

/// An integer of at most 64 bits as such.
fn small_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Byte(number) => Some(i64::from(*number)),
        Value::Short(number) => Some(i64::from(*number)),
        Value::Int(number) => Some(i64::from(*number)),
        Value::Long(number) => Some(*number),
        _ => None,
    }
}
