//! What a step may be given: classes of arguments, parameters that accept some of them, and signatures.
//!
//! One table of signatures drives the parser, its error messages and the random generator, so they cannot drift apart.

/// A set of argument classes, one bit each.
pub(crate) type ClassSet = u32;

/// The classes an argument can fall into; each is one bit of a [`ClassSet`].
pub(crate) mod class {
    use super::ClassSet;

    pub(crate) const STRING: ClassSet = 1;
    pub(crate) const NULL: ClassSet = 1 << 1;
    pub(crate) const INTEGER: ClassSet = 1 << 2;
    pub(crate) const FLOAT: ClassSet = 1 << 3;
    pub(crate) const BOOLEAN: ClassSet = 1 << 4;
    pub(crate) const DATE: ClassSet = 1 << 5;
    pub(crate) const UUID: ClassSet = 1 << 6;
    pub(crate) const LIST: ClassSet = 1 << 7;
    pub(crate) const SET: ClassSet = 1 << 8;
    pub(crate) const MAP: ClassSet = 1 << 9;
    pub(crate) const T: ClassSet = 1 << 10;
    pub(crate) const CARDINALITY: ClassSet = 1 << 11;
    pub(crate) const CARDINALITY_VALUE: ClassSet = 1 << 12;
    pub(crate) const DIRECTION: ClassSet = 1 << 13;
    pub(crate) const MERGE: ClassSet = 1 << 14;
    pub(crate) const PICK: ClassSet = 1 << 15;
    pub(crate) const DATE_UNIT: ClassSet = 1 << 16;
    pub(crate) const GTYPE: ClassSet = 1 << 17;
    pub(crate) const TRAVERSAL: ClassSet = 1 << 18;
    pub(crate) const TERMINATED: ClassSet = 1 << 19;
    pub(crate) const PREDICATE: ClassSet = 1 << 20;
    pub(crate) const VARIABLE: ClassSet = 1 << 21;
    pub(crate) const SCOPE: ClassSet = 1 << 22;
    pub(crate) const ORDER: ClassSet = 1 << 23;
    pub(crate) const COLUMN: ClassSet = 1 << 24;
    pub(crate) const POP: ClassSet = 1 << 25;
    pub(crate) const OPERATOR: ClassSet = 1 << 26;
    pub(crate) const BARRIER: ClassSet = 1 << 27;
    pub(crate) const OPTION_KEY: ClassSet = 1 << 28;
    pub(crate) const OPTION_VALUE: ClassSet = 1 << 29;
    pub(crate) const STRATEGY: ClassSet = 1 << 30;
    pub(crate) const STRATEGY_NAME: ClassSet = 1 << 31;

    /// Everything the grammar calls a generic literal.
    pub(crate) const LITERAL: ClassSet = STRING
        | NULL
        | INTEGER
        | FLOAT
        | BOOLEAN
        | DATE
        | UUID
        | LIST
        | SET
        | MAP
        | T
        | CARDINALITY
        | CARDINALITY_VALUE
        | DIRECTION
        | MERGE
        | PICK
        | DATE_UNIT
        | GTYPE
        | TRAVERSAL
        | TERMINATED;

    /// What a user would call an argument of `class`, for messages.
    pub(crate) fn describe(class: ClassSet) -> &'static str {
        match class {
            STRING => "a string",
            NULL => "null",
            INTEGER => "an integer",
            FLOAT => "a decimal number",
            BOOLEAN => "a boolean",
            DATE => "a date",
            UUID => "a UUID",
            LIST => "a list",
            SET => "a set",
            MAP => "a map",
            T => "a T token",
            CARDINALITY => "a Cardinality",
            CARDINALITY_VALUE => "a Cardinality with a value",
            DIRECTION => "a Direction",
            MERGE => "a Merge option",
            PICK => "a Pick option",
            DATE_UNIT => "a DT unit",
            GTYPE => "a GType",
            TRAVERSAL => "a traversal",
            TERMINATED => "the result of a query",
            PREDICATE => "a predicate",
            VARIABLE => "a parameter",
            SCOPE => "a Scope",
            ORDER => "an Order",
            COLUMN => "a Column",
            POP => "a Pop",
            OPERATOR => "an Operator",
            BARRIER => "a Barrier",
            OPTION_KEY | OPTION_VALUE => "an option constant",
            STRATEGY => "a strategy",
            STRATEGY_NAME => "a strategy's name",
            _ => "an argument",
        }
    }
}

/// How an accepted argument is brought to the type the step is defined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// As written.
    None,
    /// Any integer to a signed 32 bit one.
    Int,
    /// Any integer to a signed 64 bit one.
    Long,
    /// Any number to a double.
    Double,
}

/// One place in a signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    /// As messages show it.
    pub(crate) name: &'static str,
    /// What may stand here.
    pub(crate) accepts: ClassSet,
    /// What becomes of it.
    pub(crate) conversion: Conversion,
    /// Whether it may stand any number of times, zero included; only the last parameter does.
    pub(crate) repeats: bool,
}

impl Parameter {
    pub(crate) const fn new(name: &'static str, accepts: ClassSet) -> Parameter {
        Parameter { name, accepts, conversion: Conversion::None, repeats: false }
    }

    const fn converted(self, conversion: Conversion) -> Parameter {
        Parameter { conversion, ..self }
    }
}

/// `parameter`, any number of times.
pub(crate) const fn many(parameter: Parameter) -> Parameter {
    Parameter { repeats: true, ..parameter }
}

/// The parameters of one overload.
pub(crate) type Signature = &'static [Parameter];

/// A word that takes arguments: a step, a source method or a predicate.
#[derive(Debug)]
pub(crate) struct Callable {
    /// Its name as written.
    pub(crate) name: &'static str,
    /// Every way to call it; at most 16.
    pub(crate) signatures: &'static [Signature],
}

impl Callable {
    /// The signatures as a reader would write them, `limit(Scope, integer)`.
    pub(crate) fn usages(&self) -> Vec<String> {
        self.signatures
            .iter()
            .map(|signature| {
                let parameters: Vec<String> =
                    signature
                        .iter()
                        .map(|parameter| {
                            if parameter.repeats {
                                format!("{}…", parameter.name)
                            } else {
                                parameter.name.to_string()
                            }
                        })
                        .collect();
                format!("{}({})", self.name, parameters.join(", "))
            })
            .collect()
    }
}

/// The parameter that stands at `index` of `signature`, repeats unrolled.
pub(crate) fn parameter_at(signature: Signature, index: usize) -> Option<&'static Parameter> {
    match signature.get(index) {
        Some(parameter) => Some(parameter),
        None => signature.last().filter(|parameter| parameter.repeats),
    }
}

/// Whether `signature` is satisfied by `count` arguments.
pub(crate) fn accepts_count(signature: Signature, count: usize) -> bool {
    match signature.last() {
        Some(last) if last.repeats => count + 1 >= signature.len(),
        _ => count == signature.len(),
    }
}

/// The parameters that signatures are made of.
pub(crate) mod parameter {
    use super::{ClassSet, Conversion, Parameter, class::*};

    const NULLABLE: ClassSet = NULL;

    pub(crate) const ARGUMENT: Parameter = Parameter::new("value", LITERAL | VARIABLE);
    pub(crate) const VALUE: Parameter = Parameter::new("literal", LITERAL);
    pub(crate) const TEXT: Parameter = Parameter::new("string", STRING);
    pub(crate) const TEXT_OR_NULL: Parameter = Parameter::new("string", STRING | NULLABLE);
    pub(crate) const TEXT_ARGUMENT: Parameter = Parameter::new("string", STRING | VARIABLE);
    pub(crate) const TEXT_ARGUMENT_OR_NULL: Parameter = Parameter::new("string", STRING | NULLABLE | VARIABLE);
    pub(crate) const FLAG: Parameter = Parameter::new("boolean", BOOLEAN);
    pub(crate) const INT: Parameter = Parameter::new("integer", INTEGER).converted(Conversion::Int);
    pub(crate) const LONG: Parameter = Parameter::new("integer", INTEGER).converted(Conversion::Long);
    pub(crate) const LONG_ARGUMENT: Parameter =
        Parameter::new("integer", INTEGER | VARIABLE).converted(Conversion::Long);
    pub(crate) const DOUBLE: Parameter = Parameter::new("number", INTEGER | FLOAT).converted(Conversion::Double);
    pub(crate) const DATE_LITERAL: Parameter = Parameter::new("date", DATE);
    pub(crate) const MAP_ARGUMENT: Parameter = Parameter::new("map", MAP | VARIABLE);
    pub(crate) const MAP_ARGUMENT_OR_NULL: Parameter = Parameter::new("map", MAP | NULLABLE | VARIABLE);
    pub(crate) const INNER: Parameter = Parameter::new("traversal", TRAVERSAL);
    pub(crate) const PREDICATED: Parameter = Parameter::new("predicate", PREDICATE);
    pub(crate) const SCOPED: Parameter = Parameter::new("Scope", SCOPE);
    pub(crate) const ORDERED: Parameter = Parameter::new("Order", ORDER);
    pub(crate) const T_TOKEN: Parameter = Parameter::new("T", T);
    pub(crate) const FUNCTION: Parameter = Parameter::new("T or Column", T | COLUMN);
    pub(crate) const COLUMN_TOKEN: Parameter = Parameter::new("Column", COLUMN);
    pub(crate) const POP_TOKEN: Parameter = Parameter::new("Pop", POP);
    pub(crate) const OPERATOR_TOKEN: Parameter = Parameter::new("Operator", OPERATOR);
    pub(crate) const BARRIER_TOKEN: Parameter = Parameter::new("Barrier", BARRIER);
    pub(crate) const DIRECTED: Parameter = Parameter::new("Direction", DIRECTION);
    pub(crate) const CARDINALITY_TOKEN: Parameter = Parameter::new("Cardinality", CARDINALITY);
    pub(crate) const MERGE_TOKEN: Parameter = Parameter::new("Merge", MERGE);
    pub(crate) const UNIT: Parameter = Parameter::new("DT", DATE_UNIT);
    pub(crate) const TYPE: Parameter = Parameter::new("GType", GTYPE);
    pub(crate) const OPTION_NAME: Parameter = Parameter::new("key", OPTION_KEY | STRING);
    pub(crate) const OPTION_SETTING: Parameter = Parameter::new("literal", OPTION_VALUE | LITERAL);
    pub(crate) const STRATEGY_INSTANCE: Parameter = Parameter::new("strategy", STRATEGY);
    pub(crate) const STRATEGY_CLASS: Parameter = Parameter::new("strategy name", STRATEGY_NAME);
}
