//! `ficus analyze`: k-hop questions and graph programs, over a server or over a data directory that no server uses. Rows come as CSV, or as JSON.

mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ficus_dataflow::CancelToken;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Element, Shared, Value};
use ficus_query::detach::Materialize;
use ficus_query::engine::{Prepared, RunOptions};

use crate::Outcome;
use crate::connection::Trust;
use crate::failure::Failure;
use crate::output::{OutputFormat, is_talk_on_terminal, result, talk, talk_over};
use crate::render;
use crate::schema::from_json;
use crate::serve::start_executors;
use crate::shell::client::{Client, ClientOptions, Question};
use crate::shell::{credentials, server_url};
use watch::{Watch, Watched};

/// Between two lines that say that the work goes on, where they are not on a terminal.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// What the work, and who watches it, tell who prints.
enum Told {
    Rows(Vec<Value>),
    /// How far it has come.
    Progress(String),
}

/// Flags of `ficus analyze`.
#[derive(Debug, clap::Args)]
pub struct AnalyzeArguments {
    /// What is computed.
    #[arg(value_enum)]
    program: Program,
    /// Parameters as key=value, as call() takes them; a value that is JSON counts as such, all others are strings.
    #[arg(value_name = "KEY=VALUE")]
    parameters: Vec<String>,
    /// The parameter sources: a file with an id on each line.
    #[arg(long, value_name = "FILE")]
    sources_file: Option<PathBuf>,
    /// The server, as ws://HOST:PORT/gremlin or HOST:PORT.
    #[arg(long, value_name = "SERVER", default_value = "ws://127.0.0.1:8182/gremlin", conflicts_with = "data_dir")]
    server: String,
    /// A data directory that no server uses, instead of a server.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The graph; of a server, the traversal source that g stands for.
    #[arg(long, default_value = "g", value_name = "NAME")]
    graph: String,
    /// Milliseconds it may take; of a server, its own limit if not given.
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,
    /// The user's name; the password comes from FICUS_PASSWORD.
    #[arg(long, value_name = "NAME", env = "FICUS_USER")]
    user: Option<String>,
    #[command(flatten)]
    trust: Trust,
}

/// What can be computed; the services `ficus.…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Program {
    /// What lies within some hops of many sources: sources, targets, hops, walk.
    Khop,
    /// Ranks: damping, tolerance, iterations, sources.
    Pagerank,
    /// Weak or strong components: kind.
    Components,
    /// Distances: sources, weight, defaultWeight, maxDistance.
    Sssp,
    /// Communities: iterations.
    LabelPropagation,
    /// Clusters by votes: iterations, distribute.
    PeerPressure,
    /// Triangles at each vertex.
    Triangles,
    /// Core numbers.
    Kcore,
    /// Numbers of edges.
    Degree,
    /// Shares of shortest paths: samples, seed, normalised.
    Betweenness,
}

impl Program {
    fn service(self) -> &'static str {
        match self {
            Program::Khop => "ficus.khop",
            Program::Pagerank => "ficus.pagerank",
            Program::Components => "ficus.components",
            Program::Sssp => "ficus.sssp",
            Program::LabelPropagation => "ficus.labelPropagation",
            Program::PeerPressure => "ficus.peerPressure",
            Program::Triangles => "ficus.triangles",
            Program::Kcore => "ficus.kcore",
            Program::Degree => "ficus.degree",
            Program::Betweenness => "ficus.betweenness",
        }
    }
}

/// Runs the verb.
pub fn run(arguments: AnalyzeArguments, format: OutputFormat) -> Outcome {
    // Tells the query from all others in the server's list.
    let tag = uuid::Uuid::new_v4().to_string();
    let gremlin = gremlin(&arguments, &tag)?;
    let mut rows = Rows { format, columns: None, count: 0 };
    let started = Instant::now();
    let (sender, receiver) = channel();
    let worker = std::thread::spawn(move || match &arguments.data_dir {
        Some(directory) => in_directory(directory, &arguments, &gremlin, &sender),
        None => on_server(&arguments, &gremlin, tag, &sender),
    });
    let printed = print(&mut rows, &receiver, started);
    // What it still has to say nobody hears; that it failed is told.
    drop(receiver);
    let outcome = worker.join().unwrap_or_else(|_| Err(Failure::failed("the work ended unexpectedly")));
    printed?;
    outcome?;
    talk(&format!("{} rows in {:.1} s", rows.count, started.elapsed().as_secs_f64()));
    Ok(())
}

/// The query; vertices are answered without their properties.
fn gremlin(arguments: &AnalyzeArguments, tag: &str) -> Result<String, Failure> {
    let mut parameters = Vec::new();
    for parameter in &arguments.parameters {
        let (key, value) = parameter
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("{parameter}: write parameters as key=value")))?;
        let value = serde_json::from_str(value).map_or_else(|_| Value::String(Arc::from(value)), from_json);
        parameters.push((key.to_owned(), value));
    }
    if let Some(file) = &arguments.sources_file {
        let text =
            std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        let ids = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(id).collect();
        parameters.push(("sources".to_owned(), Value::List(Shared::new(ids))));
    }
    let literal = |(key, value): &(String, Value)| {
        format!("{}: {}", render::literal(&Value::String(Arc::from(key.as_str()))), render::literal(value))
    };
    let given: Vec<String> = parameters.iter().map(literal).collect();
    let map = if given.is_empty() { ":".to_owned() } else { given.join(", ") };
    let source = format!("g.with('ficus.analysis', '{tag}').with('materializeProperties', 'tokens')");
    Ok(format!("{source}.call('{}', [{map}])", arguments.program.service()))
}

/// An id as a file names it.
fn id(line: &str) -> Value {
    line.parse().map(Value::Long).unwrap_or_else(|_| Value::String(Arc::from(line)))
}

fn on_server(arguments: &AnalyzeArguments, gremlin: &str, tag: String, sender: &Sender<Told>) -> Outcome {
    let options = ClientOptions {
        url: server_url(&arguments.server).map_err(Failure::usage)?,
        credentials: credentials(arguments.user.clone())?,
        trust: arguments.trust.clone(),
    };
    let question = Question {
        gremlin: gremlin.to_owned(),
        source: arguments.graph.clone(),
        timeout_ms: arguments.timeout,
        batch_size: Some(1024),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut client = Client::connect(&options).await.map_err(Failure::failed)?;
        let _watch = Watch::begin(Watched::OnServer { options, source: arguments.graph.clone(), tag }, sender.clone())?;
        let hand_over = |rows| {
            // Whoever printed them has said why they are not wanted any more.
            let _ = sender.send(Told::Rows(rows));
            Ok(())
        };
        tokio::select! {
            asked = client.ask(&question, hand_over) => asked.map_err(Failure::failed),
            // Dropping the client closes the connection, and with it the query on the server.
            _ = tokio::signal::ctrl_c() => Err(cancelled(arguments)),
        }
    })
}

fn cancelled(arguments: &AnalyzeArguments) -> Failure {
    let writes = arguments.parameters.iter().any(|parameter| parameter.starts_with("write="));
    // All is written in one transaction, or nothing.
    Failure::failed(if writes { "cancelled; nothing was written" } else { "cancelled" })
}

fn in_directory(directory: &Path, arguments: &AnalyzeArguments, gremlin: &str, sender: &Sender<Told>) -> Outcome {
    let bytecode = parse_traversal(gremlin, &ParseOptions::default()).map_err(Failure::failed)?;
    let prepared = Prepared::new(lower(&bytecode).map_err(Failure::failed)?).map_err(Failure::failed)?;
    let store = crate::store::open(directory, false)?;
    let graph = crate::store::graph(&store, &arguments.graph)?;
    let engine = start_executors(&Default::default())?;
    let options = RunOptions {
        materialize: Materialize::Tokens,
        timeout_ns: arguments.timeout.map(|timeout| timeout.saturating_mul(1_000_000)),
        cancel: CancelToken::default(),
        ..RunOptions::default()
    };
    let watch = Watch::begin(Watched::Here(options.cancel.clone()), sender.clone())?;
    let (outcome, transaction) = engine.collect(&prepared, graph.begin(), &options);
    if options.cancel.is_cancelled() {
        return Err(cancelled(arguments));
    }
    let rows = outcome.map_err(Failure::failed)?;
    if let Some(transaction) = transaction {
        transaction.commit()?;
    }
    drop(watch);
    let _ = sender.send(Told::Rows(rows.into_iter().map(|(value, _)| value).collect()));
    drop(engine);
    store.close()?;
    Ok(())
}

/// Prints what is told until nobody is left to tell anything. On a terminal the progress is one line that changes; elsewhere a line now and then.
fn print(rows: &mut Rows, receiver: &Receiver<Told>, started: Instant) -> Outcome {
    let is_terminal = is_talk_on_terminal();
    let (mut progress, mut said) = (String::new(), Instant::now());
    let outcome = loop {
        match receiver.recv_timeout(PROGRESS_INTERVAL.saturating_sub(said.elapsed())) {
            Ok(Told::Rows(values)) => {
                if is_terminal && rows.count == 0 {
                    talk_over("");
                }
                if let Err(failure) = values.iter().try_for_each(|value| rows.print(value)) {
                    break Err(failure);
                }
                continue;
            }
            Ok(Told::Progress(text)) => progress = text,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
        let seconds = started.elapsed().as_secs();
        let text = match (progress.as_str(), rows.count) {
            ("", count) => format!("{seconds} s, {count} rows so far"),
            (progress, 0) => format!("{seconds} s, {progress}"),
            (progress, count) => format!("{seconds} s, {progress}, {count} rows so far"),
        };
        if is_terminal && rows.count == 0 {
            talk_over(&text);
        } else if said.elapsed() >= PROGRESS_INTERVAL {
            talk(&text);
        } else {
            continue;
        }
        if said.elapsed() >= PROGRESS_INTERVAL {
            said = Instant::now();
        }
    };
    if is_terminal {
        talk_over("");
    }
    outcome
}

/// Rows on their way to stdout.
struct Rows {
    format: OutputFormat,
    /// The columns of CSV, once its first line is written.
    columns: Option<Vec<Value>>,
    count: u64,
}

impl Rows {
    fn print(&mut self, row: &Value) -> Outcome {
        self.count += 1;
        let Value::Map(map) = row else { return Ok(result(&render::text(row))?) };
        if self.format == OutputFormat::Json {
            let entries = map.iter().map(|(key, value)| (key.clone(), plain(value))).collect();
            return Ok(result(&render::json(&Value::Map(Shared::new(entries))))?);
        }
        if self.columns.is_none() {
            let columns: Vec<Value> = map.keys().cloned().collect();
            result(&line(columns.iter()))?;
            self.columns = Some(columns);
        }
        let values: Vec<Value> =
            self.columns.iter().flatten().map(|column| map.get(column).map_or(Value::Null, plain)).collect();
        Ok(result(&line(values.iter()))?)
    }
}

/// A vertex as its id.
fn plain(value: &Value) -> Value {
    match value {
        Value::Element(element) => match &**element {
            Element::Vertex(vertex) => vertex.id.clone(),
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

/// A line of CSV.
fn line<'v>(values: impl Iterator<Item = &'v Value>) -> String {
    values.map(field).collect::<Vec<_>>().join(",")
}

/// Numbers as they are; what has commas, quotes or ends of lines in quotes.
fn field(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.to_string(),
        Value::List(_) | Value::Map(_) => render::json(value),
        other => other.to_string(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let check = |value: Value, expected: &str| assert_eq!(field(&value), expected);
        check(Value::Long(7), "7");
        check(Value::Double(0.25), "0.25");
        check(Value::String("a,b".into()), "\"a,b\"");
        check(Value::String("say \"so\"".into()), "\"say \"\"so\"\"\"");
        check(Value::List(Shared::new(vec![Value::Long(0), Value::Long(2)])), "\"[0,2]\"");
        check(Value::Null, "");
    }
}
