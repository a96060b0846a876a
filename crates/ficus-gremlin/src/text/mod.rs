//! gremlin-lang: text to traversal trees, and back.
//!
//! [`parse`] reads the language of TinkerPop 3.8 in one pass over the text and builds [`Bytecode`], the same tree that
//! drivers send as bytecode. [`print()`] writes a tree as canonical text; parsing that text gives the tree again.
//!
//! How it works: the lexer (`lexer`) cuts signs out of the text without copying; the parser (`parser`,
//! `argument`, `predicate`) descends through it, guided by one table of every step and every overload (`steps`,
//! `signature`). At each place in an argument list the parser knows which classes of argument the remaining overloads
//! accept, so `local` is a scope in `count(local)` and a step in `map(local(out()))`, and no text is read twice.
//! The same table writes the "takes one of" part of error messages and feeds the random generator ([`generate`]).
//!
//! What it promises: time and memory linear in the text; nesting, statements and expanded ranges bounded by
//! [`Limits`]; an error for everything the grammar does not have, never a guess. It knows nothing about what steps
//! mean: that a label exists or a modulator fits is for the lowering to say.

mod argument;
pub mod datetime;
mod diagnose;
mod error;
pub mod generate;
mod lexer;
mod literal;
mod parser;
mod predicate;
mod print;
mod signature;
mod steps;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use ficus_model::{Bytecode, OffsetDateTime, Value, ValueMap};
use ficus_query::planning::{self, Planning};

pub use error::{SyntaxError, SyntaxErrorKind};
pub use print::{print, print_predicate, print_value};

/// The values of the parameters a text may use.
pub trait Bindings: Debug {
    /// The value bound to `name`.
    fn get(&self, name: &str) -> Option<Value>;
    /// The names that are bound, for error messages.
    fn names(&self) -> Vec<String>;
}

/// No parameters.
impl Bindings for () {
    fn get(&self, _name: &str) -> Option<Value> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The entries with string keys.
impl Bindings for ValueMap {
    fn get(&self, name: &str) -> Option<Value> {
        ValueMap::get(self, &Value::String(name.into())).cloned()
    }

    fn names(&self) -> Vec<String> {
        let name = |key: &Value| match key {
            Value::String(name) => Some(name.to_string()),
            _ => None,
        };
        self.keys().filter_map(name).collect()
    }
}

impl Bindings for HashMap<String, Value> {
    fn get(&self, name: &str) -> Option<Value> {
        HashMap::get(self, name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// What a text may not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest text in bytes; drivers send at most 10 MiB.
    pub text_bytes: usize,
    /// Most statements in a script; a statement of two bytes costs a hundred bytes of memory.
    pub statements: usize,
    /// Deepest nesting of traversals, collections and predicates; whatever walks the tree later recurses as deep.
    pub depth: usize,
    /// Most values that the ranges (`1..5`) of a script expand to; the reference allows one range as many.
    pub range_values: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { text_bytes: 16 << 20, statements: 10_000, depth: 256, range_values: 1_000_001 }
    }
}

/// How to read a text.
#[derive(Clone, Debug)]
pub struct ParseOptions<'a> {
    /// The parameters.
    pub bindings: &'a dyn Bindings,
    /// What the text may not exceed.
    pub limits: Limits,
    /// Names of traversal sources that may stand where `g` may; `g` always may.
    pub sources: &'a [&'a str],
    /// What `datetime()` without argument means; the system's clock, at UTC, if absent.
    pub now: Option<OffsetDateTime>,
    /// Whether instructions carry their place in the text.
    pub offsets: bool,
    /// What may end it before all is read.
    pub planning: &'a Planning,
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        let planning = &planning::UNLIMITED;
        ParseOptions { bindings: &(), limits: Limits::default(), sources: &[], now: None, offsets: true, planning }
    }
}

/// A text, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its statements in order, at least one; the last one answers.
    pub statements: Vec<Statement>,
}

/// One statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A traversal: `g.V().out()`, perhaps with a terminal step.
    Traversal {
        /// The name it begins with, `g` or one of [`ParseOptions::sources`].
        source: Arc<str>,
        /// The traversal, without the terminal step.
        bytecode: Bytecode,
        /// What the server is to do with the results; to list them, if absent.
        terminal: Option<Terminal>,
    },
    /// A step of a transaction: `g.tx().commit()`.
    Transaction {
        /// The name it begins with.
        source: Arc<str>,
        /// What to do.
        operation: TransactionOperation,
    },
    /// A traversal source without a traversal: `g`, or `g.withPath()`.
    SourceOnly {
        /// The name it begins with.
        source: Arc<str>,
        /// Its configuration; without steps.
        bytecode: Bytecode,
    },
    /// The empty string as a statement, by which drivers ask whether the server is there; its answer is `""`.
    Empty,
    /// `.toString()` of a statement: its answer as text.
    ToString(Box<Statement>),
}

/// What ends a traversal and says how it is run; an instruction for the server, not a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// `next()`: the first result.
    Next,
    /// `next(n)`: the first `n` results as a list.
    NextMany(i64),
    /// `toList()`.
    ToList,
    /// `toSet()`.
    ToSet,
    /// `toBulkSet()`.
    ToBulkSet,
    /// `iterate()`: run, and answer nothing.
    Iterate,
    /// `hasNext()`.
    HasNext,
    /// `tryNext()`: the first result or nothing.
    TryNext,
    /// `explain()`: the plan instead of the results.
    Explain,
}

impl Terminal {
    /// The word in the text; the same word ends the steps of a query inside another query, `V(g.V().next())`.
    pub const fn name(self) -> &'static str {
        match self {
            Terminal::Next | Terminal::NextMany(_) => "next",
            Terminal::ToList => "toList",
            Terminal::ToSet => "toSet",
            Terminal::ToBulkSet => "toBulkSet",
            Terminal::Iterate => "iterate",
            Terminal::HasNext => "hasNext",
            Terminal::TryNext => "tryNext",
            Terminal::Explain => "explain",
        }
    }

    /// Finds a terminal by its name; `next` is the one without a count.
    pub fn from_name(name: &str) -> Option<Terminal> {
        Some(match name {
            "next" => Terminal::Next,
            "toList" => Terminal::ToList,
            "toSet" => Terminal::ToSet,
            "toBulkSet" => Terminal::ToBulkSet,
            "iterate" => Terminal::Iterate,
            "hasNext" => Terminal::HasNext,
            "tryNext" => Terminal::TryNext,
            "explain" => Terminal::Explain,
            _ => return None,
        })
    }
}

/// What `tx()` is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionOperation {
    /// `g.tx().begin()`.
    Begin,
    /// `g.tx().commit()`.
    Commit,
    /// `g.tx().rollback()`.
    Rollback,
}

/// Reads a script.
///
/// A query whose result is an argument of another, as in `g.V(g.V().has('name', 'x').next())`, becomes an
/// [`Argument::Traversal`](ficus_model::Argument::Traversal) whose last step is the terminal's name.
/// A barrier token (`barrier(normSack)`) becomes a string. Counts take the types of the step's definition: `limit(1)`
/// holds a long, `times(1)` an int, `coin(1)` a double.
///
/// Cost: linear in the text; one allocation per string, argument list and nested traversal.
/// Errors: the first mistake in the text.
///
/// ```
/// use ficus_gremlin::text::{ParseOptions, Statement, parse, print};
///
/// let script = parse("g.V(1).out('knows').count()", &ParseOptions::default()).unwrap();
/// let Statement::Traversal { bytecode, .. } = &script.statements[0] else { panic!("a traversal") };
/// assert_eq!(print(bytecode), "g.V(1).out('knows').count()");
///
/// let error = parse("g.V().outt()", &ParseOptions::default()).unwrap_err();
/// assert_eq!((error.line, error.column, error.nearest.as_deref()), (1, 7, Some("out()")));
/// ```
pub fn parse(text: &str, options: &ParseOptions<'_>) -> Result<Script, SyntaxError> {
    parser::Parser::script(text, options).map_err(|error| *error)
}

/// The traversal of a script that is one traversal without a terminal step.
///
/// Errors: those of [`parse`], and [`SyntaxErrorKind::Unexpected`] if the text is another kind of script.
pub fn parse_traversal(text: &str, options: &ParseOptions<'_>) -> Result<Bytecode, SyntaxError> {
    let mut script = parse(text, options)?;
    match (script.statements.pop(), script.statements.is_empty()) {
        (Some(Statement::Traversal { bytecode, terminal: None, .. }), true) => Ok(bytecode),
        _ => Err(*SyntaxError::at(
            text,
            (0, text.len()),
            SyntaxErrorKind::Unexpected,
            "this is not a single traversal without a terminal step",
        )),
    }
}
