//! From a decoded request to what is to be done: every rule on operations, processors and arguments.
//!
//! | processor | operations |
//! |---|---|
//! | `` | `eval` |
//! | `traversal` | `bytecode` |
//! | `session` | `eval`, `bytecode`, `close` |
//! | any | `authentication` |
//!
//! An operation elsewhere is answered 498, an argument that breaks a rule 499. Arguments nobody knows are not an error,
//! since drivers add some of their own; the answer then carries a status attribute `warnings` that names them.

use std::sync::Arc;

use ficus_model::{Bytecode, Column, Operator, Order, Pop, Scope, T, Value, ValueMap};
use ficus_wire::Request;

use crate::authentication::Credentials;
use crate::backend::{Backend, Failure, Materialize, Program};
use crate::catalogue;
use crate::config::ServerConfig;
use crate::metrics::OperationKind;
use crate::rows::Shape;

/// Arguments with a meaning, and those of drivers that have none here (`accept` and `force`).
const KNOWN_ARGUMENTS: [&str; 16] = [
    "gremlin",
    "bindings",
    "language",
    "aliases",
    "evaluationTimeout",
    "batchSize",
    "materializeProperties",
    "userAgent",
    "session",
    "manageTransaction",
    "maintainStateAfterException",
    "sasl",
    "saslMechanism",
    "accept",
    "force",
    "requestId",
];

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Run a traversal.
    Run(Box<Run>),
    /// End the transaction of a session.
    FinishTransaction {
        /// The session; `None` for text outside one, where there is nothing to end.
        session: Option<Arc<str>>,
        /// The traversal source, whose graph the transaction is on.
        source: Arc<str>,
        /// Commit, or roll back.
        commit: bool,
        /// Text is answered with a null, bytecode with nothing.
        answer_null: bool,
    },
    /// End a session.
    CloseSession(Arc<str>),
    /// Answer the authentication challenge; `None` when the credentials were unreadable.
    Authenticate(Option<Credentials>),
}

/// A traversal to run.
#[derive(Debug)]
pub(crate) struct Run {
    pub program: Program,
    pub bindings: ValueMap,
    pub source: Arc<str>,
    pub session: Option<Arc<str>>,
    /// The request is a transaction of its own within the session.
    pub manage_transaction: bool,
    pub evaluation_timeout_ms: Option<u64>,
    pub batch_size: usize,
    pub materialize_properties: Materialize,
    pub user_agent: Option<Arc<str>>,
    pub shape: Shape,
    pub warnings: Vec<String>,
}

impl Operation {
    /// The word of metrics and logs for this.
    pub fn kind(&self) -> OperationKind {
        match self {
            Operation::Run(run) => match run.program {
                Program::Text { .. } => OperationKind::Eval,
                Program::Bytecode(_) => OperationKind::Bytecode,
            },
            Operation::FinishTransaction { .. } => OperationKind::Transaction,
            Operation::CloseSession(_) => OperationKind::Close,
            Operation::Authenticate(_) => OperationKind::Authentication,
        }
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&Arc<str>> {
        match self {
            Operation::Run(run) => run.session.as_ref(),
            Operation::FinishTransaction { session, .. } => session.as_ref(),
            Operation::CloseSession(session) => Some(session),
            Operation::Authenticate(_) => None,
        }
    }
}

/// Checks a request and says what it asks for.
pub(crate) fn interpret(request: Request, config: &ServerConfig, backend: &dyn Backend) -> Result<Operation, Failure> {
    let reader = Reader { request: &request, config, backend };
    let (processor, op) = (&*request.processor, &*request.op);
    if matches!(processor, "" | "traversal") && request.arg("session").is_some() {
        let message = format!("The [session] argument needs the processor [session], not [{processor}]");
        return Err(Failure::new(&catalogue::INVALID_ARGUMENT, message));
    }
    match (processor, op) {
        ("" | "traversal" | "session", "authentication") => Ok(Operation::Authenticate(reader.credentials())),
        ("" | "session", "eval") => reader.eval(processor == "session"),
        ("traversal" | "session", "bytecode") => reader.bytecode(processor == "session"),
        ("session", "close") => Ok(Operation::CloseSession(reader.session()?)),
        ("" | "traversal" | "session", _) => {
            let message = format!("Message with op code [{op}] is not recognized by the processor [{processor}]");
            Err(Failure::new(&catalogue::UNKNOWN_OPERATION, message))
        }
        _ => Err(Failure::new(&catalogue::UNKNOWN_PROCESSOR, format!("Invalid OpProcessor requested [{processor}]"))),
    }
}

struct Reader<'a> {
    request: &'a Request,
    config: &'a ServerConfig,
    backend: &'a dyn Backend,
}

impl Reader<'_> {
    fn eval(&self, in_session: bool) -> Result<Operation, Failure> {
        let gremlin = match self.required("gremlin")? {
            Value::String(text) => text.clone(),
            other => return Err(self.wrong_type("gremlin", "String", other)),
        };
        let session = in_session.then(|| self.session()).transpose()?;
        let source = self.source(false)?;
        let bindings = self.bindings()?;
        let language = self.text("language")?;
        if let Some(language) = &language
            && !matches!(&**language, "gremlin-lang" | "gremlin-groovy" | "gremlin")
        {
            let message = format!("[{language}] is not an available language; leave it out or use [gremlin-lang]");
            return Err(Failure::new(&catalogue::UNKNOWN_LANGUAGE, message));
        }
        if let Some(commit) = transaction_end(&gremlin) {
            return Ok(Operation::FinishTransaction { session, source, commit, answer_null: true });
        }
        self.run(Program::Text { gremlin, language }, session, source, bindings, Shape::Values)
    }

    fn bytecode(&self, in_session: bool) -> Result<Operation, Failure> {
        let bytecode = match self.required("gremlin")? {
            Value::Bytecode(bytecode) => bytecode.clone(),
            other => return Err(self.wrong_type("gremlin", "Bytecode", other)),
        };
        let session = in_session.then(|| self.session()).transpose()?;
        let source = self.source(true)?;
        if let Some(commit) = bytecode_transaction_end(&bytecode)? {
            if session.is_none() {
                let word = if commit { "commit" } else { "rollback" };
                let message = format!("tx().{word}() needs a session: send it on the processor [session]");
                return Err(Failure::new(&catalogue::TRANSACTION_OUTSIDE_SESSION, message));
            }
            return Ok(Operation::FinishTransaction { session, source, commit, answer_null: false });
        }
        let bindings = self.bindings()?;
        self.run(Program::Bytecode(bytecode), session, source, bindings, Shape::Traversers)
    }

    fn run(
        &self,
        program: Program,
        session: Option<Arc<str>>,
        source: Arc<str>,
        bindings: ValueMap,
        shape: Shape,
    ) -> Result<Operation, Failure> {
        let manage_transaction = self.session_flag("manageTransaction", session.is_some())?;
        // Accepted for the sake of drivers; sessions hold no state that an exception could make unsound.
        self.session_flag("maintainStateAfterException", session.is_some())?;
        Ok(Operation::Run(Box::new(Run {
            program,
            bindings,
            source,
            session,
            manage_transaction,
            evaluation_timeout_ms: self.evaluation_timeout()?,
            batch_size: self.batch_size()?,
            materialize_properties: self.materialize_properties()?,
            user_agent: self.text("userAgent")?,
            shape,
            warnings: self.warnings(),
        })))
    }

    fn required(&self, name: &str) -> Result<&Value, Failure> {
        self.request.arg(name).ok_or_else(|| {
            let op = &self.request.op;
            let message = format!("A message with [{op}] op code requires a [{name}] argument");
            Failure::new(&catalogue::MISSING_ARGUMENT, message)
        })
    }

    fn wrong_type(&self, name: &str, expected: &str, found: &Value) -> Failure {
        let (op, found) = (&self.request.op, kind_of(found));
        let message = format!(
            "A message with [{op}] op code requires a [{name}] argument that is of type {expected}, but it is {found}"
        );
        Failure::new(&catalogue::INVALID_ARGUMENT, message)
    }

    fn text(&self, name: &str) -> Result<Option<Arc<str>>, Failure> {
        match self.request.arg(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong_type(name, "String", other)),
        }
    }

    fn session(&self) -> Result<Arc<str>, Failure> {
        match self.required("session")? {
            Value::String(session) if session.is_empty() || session.len() > 256 => {
                let message = format!("The [session] argument has {} bytes; it may have 1 to 256", session.len());
                Err(Failure::new(&catalogue::INVALID_ARGUMENT, message))
            }
            Value::String(session) => Ok(session.clone()),
            Value::Uuid(session) => Ok(session.to_string().into()),
            other => Err(self.wrong_type("session", "String", other)),
        }
    }

    /// The traversal source that `g` stands for. Bytecode has to say, text falls back to the source `g`.
    fn source(&self, required: bool) -> Result<Arc<str>, Failure> {
        let aliases = match self.request.arg("aliases") {
            Some(Value::Map(aliases)) => aliases,
            Some(other) => return Err(self.wrong_type("aliases", "Map", other)),
            None if required => return Err(self.required("aliases").expect_err("it was found missing")),
            None => return self.known_source(&"g".into(), None),
        };
        let op = &self.request.op;
        let mut entries = aliases.iter();
        match (entries.next(), entries.next()) {
            (Some((Value::String(alias), Value::String(name))), None) if &**alias == "g" => {
                self.known_source(name, Some(alias))
            }
            (None, None) if !required => self.known_source(&"g".into(), None),
            _ => Err(Failure::new(
                &catalogue::INVALID_ARGUMENT,
                format!(
                    "A message with [{op}] op code requires the [aliases] argument to be a Map containing one alias \
                     assignment named 'g'"
                ),
            )),
        }
    }

    fn known_source(&self, name: &Arc<str>, alias: Option<&str>) -> Result<Arc<str>, Failure> {
        if self.backend.has_source(name) {
            return Ok(name.clone());
        }
        let sources = self.backend.sources().join(", ");
        let message = match alias {
            None => format!("There is no traversal source [{name}]; name one of these in [aliases]: {sources}"),
            Some(alias) => format!(
                "The traversal source [{name}] for alias [{alias}] is not configured on the server. Could not alias \
                 [{alias}] to [{name}] as [{name}] is none of: {sources}"
            ),
        };
        Err(Failure::new(&catalogue::UNKNOWN_SOURCE, message))
    }

    fn bindings(&self) -> Result<ValueMap, Failure> {
        let op = &self.request.op;
        let bindings = match self.request.arg("bindings") {
            None => return Ok(ValueMap::default()),
            Some(Value::Map(bindings)) => bindings,
            Some(other) => return Err(self.wrong_type("bindings", "Map", other)),
        };
        let invalid = |message| Err(Failure::new(&catalogue::INVALID_BINDING, message));
        let mut counted = 0;
        for key in bindings.keys() {
            let Value::String(name) = key else {
                return invalid(format!(
                    "The [{op}] message is using one or more invalid binding keys - they must be of type String and \
                     cannot be null"
                ));
            };
            if is_reserved(name) {
                return invalid(format!(
                    "The [{op}] message supplies one or more invalid parameters key of [{name}] - these are reserved \
                     names"
                ));
            }
            // Control bindings of script engines are no parameters.
            counted += usize::from(!name.starts_with("#jsr223"));
        }
        let limit = self.config.limits.bindings;
        if counted > limit {
            let message = format!(
                "The [{op}] message contains {counted} bindings which is more than is allowed by the server ({limit})"
            );
            return Err(Failure::new(&catalogue::TOO_MANY_BINDINGS, message));
        }
        Ok(ValueMap::clone(bindings))
    }

    fn session_flag(&self, name: &str, in_session: bool) -> Result<bool, Failure> {
        match self.request.arg(name) {
            None => Ok(false),
            Some(_) if !in_session => Err(Failure::new(
                &catalogue::INVALID_ARGUMENT,
                format!("{name} argument only applies to requests made for sessions"),
            )),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => {
                Err(Failure::new(&catalogue::INVALID_ARGUMENT, format!("{name} argument must be of type boolean")))
            }
        }
    }

    fn evaluation_timeout(&self) -> Result<Option<u64>, Failure> {
        let Some(value) = self.request.arg("evaluationTimeout") else { return Ok(None) };
        match whole_number(value) {
            Some(number) if number >= 0 => Ok(Some(number.unsigned_abs())),
            _ => Err(Failure::new(
                &catalogue::INVALID_ARGUMENT,
                "The [evaluationTimeout] argument must be a number of milliseconds, 0 or more",
            )),
        }
    }

    fn batch_size(&self) -> Result<usize, Failure> {
        let Some(value) = self.request.arg("batchSize") else { return Ok(self.config.batch_size) };
        let limit = self.config.limits.batch_size;
        match whole_number(value).and_then(|number| usize::try_from(number).ok()) {
            Some(rows) if (1..=limit).contains(&rows) => Ok(rows),
            _ => Err(Failure::new(
                &catalogue::INVALID_ARGUMENT,
                format!("The [batchSize] argument must be a whole number from 1 to {limit}"),
            )),
        }
    }

    fn materialize_properties(&self) -> Result<Materialize, Failure> {
        match self.text("materializeProperties")?.as_deref() {
            None | Some("all") => Ok(Materialize::All),
            Some("tokens") => Ok(Materialize::Tokens),
            Some(other) => Err(Failure::new(
                &catalogue::INVALID_ARGUMENT,
                format!("The [materializeProperties] argument is [{other}]; it can be [all] or [tokens]"),
            )),
        }
    }

    fn credentials(&self) -> Option<Credentials> {
        match self.request.arg("sasl") {
            Some(Value::String(text)) => Credentials::from_sasl(text),
            _ => None,
        }
    }

    fn warnings(&self) -> Vec<String> {
        let unknown = self.request.args.keys().filter(|name| !KNOWN_ARGUMENTS.contains(&&***name));
        // A few are enough to understand; the names come from the client and go back to it.
        unknown.take(8).map(|name| format!("the argument [{name}] is not known and had no effect")).collect()
    }
}

/// `Some(true)` for a commit, `Some(false)` for a rollback, when the whole text is one.
///
/// Scripts that end a transaction among other statements are the engine's, which then says so in its completion.
fn transaction_end(gremlin: &str) -> Option<bool> {
    // Longer than any spelling of it with sensible spacing; most texts are of something else.
    if gremlin.len() > 64 || !gremlin.contains("tx") {
        return None;
    }
    let dense: String = gremlin.chars().filter(|character| !character.is_whitespace()).collect();
    match dense.trim_end_matches(';') {
        "g.tx().commit()" => Some(true),
        "g.tx().rollback()" => Some(false),
        _ => None,
    }
}

/// The same for bytecode: the one source instruction `tx` with `commit` or `rollback`.
fn bytecode_transaction_end(bytecode: &Bytecode) -> Result<Option<bool>, Failure> {
    let Some(instruction) = bytecode.source.iter().find(|instruction| &*instruction.name == "tx") else {
        return Ok(None);
    };
    let alone = bytecode.source.len() == 1 && bytecode.steps.is_empty();
    let word = match &*instruction.args {
        [ficus_model::Argument::Value(Value::String(word))] => &**word,
        _ => "",
    };
    match word {
        "commit" if alone => Ok(Some(true)),
        "rollback" if alone => Ok(Some(false)),
        _ => Err(Failure::new(
            &catalogue::INVALID_ARGUMENT,
            "Bytecode in request is not a recognized graph operation: [tx] stands alone, with [commit] or [rollback]",
        )),
    }
}

/// Names that scripts know as tokens, so that no binding can have them.
fn is_reserved(name: &str) -> bool {
    let upper = ["ID", "KEY", "LABEL", "VALUE"];
    T::from_name(name).is_some()
        || upper.contains(&name)
        || Column::ALL.iter().any(|token| token.name() == name)
        || Order::ALL.iter().any(|token| token.name() == name)
        || Operator::ALL.iter().any(|token| token.name() == name)
        || Scope::ALL.iter().any(|token| token.name() == name)
        || Pop::ALL.iter().any(|token| token.name() == name)
}

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Byte(number) => Some(i64::from(*number)),
        Value::Short(number) => Some(i64::from(*number)),
        Value::Int(number) => Some(i64::from(*number)),
        Value::Long(number) => Some(*number),
        // JavaScript has no other numbers.
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(*number as i64),
        _ => None,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "Boolean",
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) | Value::BigInteger(_) => "a whole number",
        Value::Float(_) | Value::Double(_) | Value::BigDecimal(_) => "a decimal number",
        Value::String(_) => "String",
        Value::List(_) | Value::Set(_) => "a collection",
        Value::Map(_) => "Map",
        Value::Bytecode(_) => "Bytecode",
        _ => "of another type",
    }
}
