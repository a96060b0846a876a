//! Random traversals from a seed: every step, every overload, every literal that the grammar has.
//!
//! The trees are grammatical, in the form the parser builds, and otherwise meaningless: good for round trips, for
//! encoders and decoders, and for showing that a later stage answers nonsense with an error. Source: the table that the
//! parser itself reads, so a new overload is generated as soon as it exists.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::{
    Argument, Bytecode, Cardinality, Column, Comparison, DateUnit, Direction, GType, Instruction, Merge,
    OffsetDateTime, Operator, Order, P, Pick, Pop, Scope, Shared, T, TextComparison, Value, ValueMap, ValueSet,
};
use num_bigint::BigInt;
use uuid::Uuid;

use super::signature::{Callable, ClassSet, Conversion, Parameter, Signature, class};
use super::steps::Table;

/// Classes that nest.
const NESTING: ClassSet =
    class::TRAVERSAL | class::TERMINATED | class::LIST | class::SET | class::MAP | class::CARDINALITY_VALUE;
/// What may be a key of a map literal.
const KEYS: ClassSet = class::STRING | class::INTEGER | class::FLOAT | class::T | class::DIRECTION;
/// Most elements of a generated collection, argument tail or chain of steps.
const LENGTH_MAX: u64 = 4;

/// A deterministic source of random traversals.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u64,
}

impl Generator {
    /// The generator of `seed`; equal seeds give equal traversals.
    pub fn new(seed: u64) -> Generator {
        Generator { state: seed }
    }

    /// A random number; SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    fn pick<E: Copy>(&mut self, choices: &[E]) -> E {
        choices[self.index(choices.len())]
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    /// A traversal from `g`, whose arguments nest at most about `depth` levels.
    pub fn traversal(&mut self, depth: u32) -> Bytecode {
        let mut bytecode = Bytecode::default();
        for _ in 0..self.below(6).saturating_sub(3) {
            bytecode.source.push(self.instruction(Table::SourceMethods, depth));
        }
        bytecode.steps.push(self.instruction(Table::SpawnSteps, depth));
        self.steps(&mut bytecode.steps, depth);
        bytecode
    }

    /// An anonymous traversal.
    pub fn anonymous(&mut self, depth: u32) -> Bytecode {
        let mut bytecode = Bytecode::default();
        bytecode.steps.push(self.instruction(Table::Steps, depth));
        self.steps(&mut bytecode.steps, depth);
        bytecode
    }

    fn steps(&mut self, steps: &mut Vec<Instruction>, depth: u32) {
        for _ in 0..self.below(LENGTH_MAX) {
            steps.push(self.instruction(Table::Steps, depth));
        }
    }

    fn instruction(&mut self, table: Table, depth: u32) -> Instruction {
        let callables = table.callables();
        let callable = &callables[self.index(callables.len())];
        let overload = self.index(callable.signatures.len());
        self.call(callable, callable.signatures[overload], depth)
    }

    /// One call of every overload of every source method, spawn step and step, as traversals from `g`.
    pub fn every_overload(&mut self, depth: u32) -> Vec<Bytecode> {
        let mut traversals = Vec::new();
        for table in [Table::SourceMethods, Table::SpawnSteps, Table::Steps] {
            for callable in table.callables() {
                for signature in callable.signatures {
                    let instruction = self.call(callable, signature, depth);
                    let start = Instruction { name: "V".into(), args: Vec::new(), offset: None };
                    traversals.push(match table {
                        Table::SourceMethods => Bytecode { source: vec![instruction], steps: vec![start] },
                        Table::SpawnSteps => Bytecode { source: Vec::new(), steps: vec![instruction] },
                        Table::Steps => Bytecode { source: Vec::new(), steps: vec![start, instruction] },
                    });
                }
            }
        }
        traversals
    }

    fn call(&mut self, callable: &Callable, signature: Signature, depth: u32) -> Instruction {
        let mut args = Vec::new();
        for parameter in signature {
            let count = if parameter.repeats { self.below(LENGTH_MAX) } else { 1 };
            for _ in 0..count {
                args.push(self.argument(parameter, depth));
            }
        }
        Instruction { name: callable.name.into(), args, offset: None }
    }

    fn argument(&mut self, parameter: &Parameter, depth: u32) -> Argument {
        match parameter.conversion {
            Conversion::None => self.of_classes(parameter.accepts, depth),
            Conversion::Int => Argument::Value(Value::Int(self.number() as i32)),
            Conversion::Long => Argument::Value(Value::Long(self.number() as i64)),
            Conversion::Double => Argument::Value(Value::Double(self.double())),
        }
    }

    /// An argument of one of `accepted`.
    fn of_classes(&mut self, accepted: ClassSet, depth: u32) -> Argument {
        // Parameters need bindings; option values are plain literals.
        let mut accepted = accepted & !(class::VARIABLE | class::OPTION_KEY | class::OPTION_VALUE);
        if depth == 0 && accepted & !NESTING != 0 {
            accepted &= !NESTING;
        }
        let mut remaining = self.below(u64::from(accepted.count_ones()));
        let mut candidates = accepted;
        while remaining > 0 {
            candidates &= candidates - 1;
            remaining -= 1;
        }
        self.of_class(candidates & candidates.wrapping_neg(), depth)
    }

    fn of_class(&mut self, wanted: ClassSet, depth: u32) -> Argument {
        let inner = depth.saturating_sub(1);
        Argument::Value(match wanted {
            class::STRING => Value::String(self.string()),
            class::NULL => Value::Null,
            class::INTEGER => self.integer(),
            class::FLOAT => self.decimal(),
            class::BOOLEAN => Value::Bool(self.chance(2)),
            class::DATE => Value::DateTime(self.date()),
            class::UUID => Value::Uuid(Uuid::from_u128(u128::from(self.number()) << 64 | u128::from(self.number()))),
            class::T => Value::T(self.pick(T::ALL)),
            class::CARDINALITY => Value::Cardinality(self.pick(Cardinality::ALL)),
            class::DIRECTION => Value::Direction(self.pick(Direction::ALL)),
            class::MERGE => Value::Merge(self.pick(Merge::ALL)),
            class::PICK => Value::Pick(self.pick(Pick::ALL)),
            class::DATE_UNIT => Value::DateUnit(self.pick(DateUnit::ALL)),
            class::GTYPE => Value::GType(self.pick(GType::ALL)),
            class::SCOPE => Value::Scope(self.pick(Scope::ALL)),
            class::ORDER => Value::Order(self.pick(Order::ALL)),
            class::COLUMN => Value::Column(self.pick(Column::ALL)),
            class::POP => Value::Pop(self.pick(Pop::ALL)),
            class::OPERATOR => Value::Operator(self.pick(Operator::ALL)),
            class::BARRIER => Value::String("normSack".into()),
            class::LIST => return self.list(inner),
            class::SET => Value::Set(Shared::new(self.values(inner).into_iter().collect::<ValueSet>())),
            class::MAP => return self.map(inner),
            class::CARDINALITY_VALUE => {
                let cardinality = self.pick(Cardinality::ALL);
                let value = self.of_classes(class::LITERAL, inner);
                return Argument::CardinalityValue(cardinality, Box::new(value));
            }
            class::PREDICATE => return Argument::Predicate(self.predicate(inner)),
            class::TERMINATED => return Argument::Traversal(Arc::new(self.terminated(inner))),
            class::STRATEGY => return self.strategy(inner),
            class::STRATEGY_NAME => {
                return Argument::Strategy { name: self.name(), options: Vec::new() };
            }
            // A traversal, of one step that nests nothing where it is deep enough.
            _ if depth == 0 => {
                let step = Instruction { name: "identity".into(), args: Vec::new(), offset: None };
                return Argument::Traversal(Arc::new(Bytecode { source: Vec::new(), steps: vec![step] }));
            }
            _ => return Argument::Traversal(Arc::new(self.anonymous(inner))),
        })
    }

    /// A query that ends in a terminal step.
    fn terminated(&mut self, depth: u32) -> Bytecode {
        let mut bytecode = self.traversal(depth);
        let name =
            self.pick(&["next", "next", "toList", "toSet", "hasNext", "tryNext", "iterate", "explain", "toBulkSet"]);
        let args = if name == "next" && self.chance(2) {
            vec![Argument::Value(Value::Long(self.number() as i64))]
        } else {
            Vec::new()
        };
        bytecode.steps.push(Instruction { name: name.into(), args, offset: None });
        bytecode
    }

    fn strategy(&mut self, depth: u32) -> Argument {
        let mut options: Vec<(Arc<str>, Argument)> = Vec::new();
        for position in 0..self.below(3) {
            let name = format!("option{position}");
            options.push((name.into(), self.of_classes(class::LITERAL, depth)));
        }
        Argument::Strategy { name: self.name(), options }
    }

    fn name(&mut self) -> Arc<str> {
        self.pick(&["ReadOnlyStrategy", "SubgraphStrategy", "$x_1", "größe"]).into()
    }

    /// Some literals as values.
    fn values(&mut self, depth: u32) -> Vec<Value> {
        (0..self.below(LENGTH_MAX)).map(|_| self.value(depth)).collect()
    }

    /// A literal as a value, as a predicate or a set holds it.
    pub fn value(&mut self, depth: u32) -> Value {
        // Cardinalities with a value are no values.
        let argument = self.of_classes(class::LITERAL & !class::CARDINALITY_VALUE & !class::LIST & !class::MAP, depth);
        match super::argument::into_value(argument) {
            Some(value) => value,
            None => Value::Null,
        }
    }

    fn list(&mut self, depth: u32) -> Argument {
        let elements: Vec<Argument> =
            (0..self.below(LENGTH_MAX)).map(|_| self.of_classes(class::LITERAL, depth)).collect();
        let plain = |element: &Argument| match element {
            Argument::Value(value) => Some(value.clone()),
            _ => None,
        };
        match elements.iter().map(plain).collect::<Option<Vec<_>>>() {
            Some(values) => Argument::Value(Value::List(Shared::new(values))),
            None => Argument::List(elements),
        }
    }

    fn map(&mut self, depth: u32) -> Argument {
        let mut plain = ValueMap::default();
        let mut entries: Vec<(Argument, Argument)> = Vec::new();
        for _ in 0..self.below(LENGTH_MAX) {
            let (key, value) = (self.of_classes(KEYS, depth), self.of_classes(class::LITERAL, depth));
            if entries.iter().any(|(existing, _)| *existing == key) {
                continue;
            }
            if let (Argument::Value(key), Argument::Value(value)) = (&key, &value) {
                plain.insert(key.clone(), value.clone());
            }
            entries.push((key, value));
        }
        if plain.len() == entries.len() {
            Argument::Value(Value::Map(Shared::new(plain)))
        } else {
            Argument::Map(entries)
        }
    }

    /// A predicate.
    pub fn predicate(&mut self, depth: u32) -> P {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 | 1 => {
                use Comparison::*;
                P::Compare(self.pick(&[Eq, Neq, Lt, Lte, Gt, Gte]), self.value(depth))
            }
            2 => {
                use TextComparison::*;
                let comparison = self.pick(&[
                    StartingWith,
                    NotStartingWith,
                    EndingWith,
                    NotEndingWith,
                    Containing,
                    NotContaining,
                    Regex,
                    NotRegex,
                ]);
                P::Text(comparison, self.string())
            }
            3 => P::Within(Shared::new(self.values(depth))),
            4 => P::Without(Shared::new(self.values(depth))),
            5 => P::TypeOf(self.pick(GType::ALL)),
            6 => P::Not(Box::new(P::Compare(Comparison::Eq, self.value(depth)))),
            choice => {
                let conjunction = choice == 7;
                let mut members = Vec::new();
                while members.len() < 2 + self.index(2) {
                    match (self.predicate(depth - 1), conjunction) {
                        // The parser flattens these.
                        (P::And(inner), true) | (P::Or(inner), false) => members.extend(inner),
                        (member, _) => members.push(member),
                    }
                }
                if conjunction { P::And(members) } else { P::Or(members) }
            }
        }
    }

    fn string(&mut self) -> Arc<str> {
        const CHARACTERS: [char; 16] =
            ['a', 'b', 'Z', '0', ' ', '\'', '"', '\\', '\n', '\t', '\u{0}', '/', '$', 'é', '名', '🌳'];
        (0..self.below(6)).map(|_| self.pick(&CHARACTERS)).collect::<String>().into()
    }

    fn integer(&mut self) -> Value {
        let number = self.number();
        match self.below(6) {
            0 => Value::Byte(number as i8),
            1 => Value::Short(number as i16),
            2 => Value::Int((number % 100) as i32),
            3 => Value::Int(number as i32),
            4 => Value::Long(number as i64),
            _ => Value::BigInteger(Arc::new(BigInt::from(number as i64) * BigInt::from(self.number()))),
        }
    }

    fn decimal(&mut self) -> Value {
        match self.below(4) {
            0 => {
                let float = f32::from_bits(self.number() as u32);
                // Only doubles have literals for these.
                Value::Float(if float.is_finite() { float } else { 1.5 })
            }
            1 => {
                let scale = self.below(60) as i64 - 30;
                Value::BigDecimal(Arc::new(BigDecimal::new(BigInt::from(self.number() as i64), scale)))
            }
            2 => Value::Double(self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0])),
            _ => Value::Double(self.double()),
        }
    }

    fn double(&mut self) -> f64 {
        let number = self.number();
        if self.chance(2) { f64::from_bits(number) } else { (number % 1_000) as f64 / 8.0 }
    }

    fn date(&mut self) -> OffsetDateTime {
        let nanos = if self.chance(2) { 0 } else { self.below(1_000_000_000) as u32 };
        let offset_seconds = self.pick(&[0, 0, 3_600, -5_400, 64_800, -1]);
        // Years -9999 to 99999, about.
        OffsetDateTime { epoch_seconds: self.below(3_000_000_000_000) as i64 - 370_000_000_000, nanos, offset_seconds }
    }
}
