//! `ficus shell` and `ficus query`: asks a server, interactively or from -e, files and stdin.
//!
//! The shell is an ordinary client: whatever it can do, every driver can. A running query is cancelled by closing the
//! connection, which the server takes as "nobody waits any more"; the shell then connects again.

pub mod client;
mod editor;
mod statement;
mod words;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Instant;

use ficus_model::Value;
use ficus_server::engine::SERVER_SOURCE;

use self::client::{Client, ClientError, ClientOptions, Question};
use self::editor::{Input, LineEditor};
use crate::Outcome;
use crate::connection::Trust;
use crate::failure::Failure;
use crate::output::{OutputFormat, result, talk};
use crate::render;

/// Rows that a table is laid out for at a time; more make further tables.
const TABLE_ROWS: usize = 1000;

/// Flags of `ficus shell`.
#[derive(Debug, clap::Args)]
pub struct ShellArguments {
    /// The server, as ws://HOST:PORT/gremlin or HOST:PORT; wss:// is TLS.
    #[arg(default_value = "ws://127.0.0.1:8182/gremlin", value_name = "SERVER")]
    server: String,
    /// Run this query and leave. Repeatable.
    #[arg(short = 'e', long = "execute", value_name = "QUERY")]
    execute: Vec<String>,
    /// Run the queries of this file and leave. Repeatable; - is stdin.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Vec<PathBuf>,
    /// The traversal source that g stands for.
    #[arg(long, default_value = "g", value_name = "NAME")]
    source: String,
    /// Milliseconds a query may run.
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,
    /// The user's name; the password comes from FICUS_PASSWORD.
    #[arg(long, value_name = "NAME", env = "FICUS_USER")]
    user: Option<String>,
    #[command(flatten)]
    trust: Trust,
    /// Go on with the next query after one has failed.
    #[arg(long)]
    keep_going: bool,
}

/// A server to ask something of itself, as other verbs name it.
#[derive(Debug, clap::Args)]
pub struct ServerArguments {
    /// The server, as ws://HOST:PORT/gremlin or HOST:PORT; wss:// is TLS.
    #[arg(long, default_value = "ws://127.0.0.1:8182/gremlin", value_name = "SERVER")]
    server: String,
    /// The traversal source to ask; the default is the server's own, which is there whatever graphs there are.
    #[arg(long, default_value = SERVER_SOURCE, value_name = "NAME")]
    source: String,
    /// The user's name; the password comes from FICUS_PASSWORD.
    #[arg(long, value_name = "NAME", env = "FICUS_USER")]
    user: Option<String>,
    #[command(flatten)]
    trust: Trust,
}

/// Asks a server one thing and prints the answer.
pub fn ask(server: ServerArguments, query: String, format: OutputFormat) -> Outcome {
    let ServerArguments { server, source, user, trust } = server;
    let (execute, file) = (vec![query], Vec::new());
    run(ShellArguments { server, execute, file, source, timeout: None, user, trust, keep_going: false }, format)
}

/// Runs the verb.
pub fn run(arguments: ShellArguments, format: OutputFormat) -> Outcome {
    let credentials = credentials(arguments.user)?;
    let url = server_url(&arguments.server).map_err(Failure::usage)?;
    let options = ClientOptions { url, credentials, trust: arguments.trust };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut session = Session {
        runtime,
        options,
        client: None,
        source: arguments.source,
        timeout_ms: arguments.timeout,
        format,
        interactive: false,
    };
    let mut statements: Vec<(String, String)> = Vec::new();
    for query in arguments.execute {
        statements.push(("-e".into(), query));
    }
    for path in &arguments.file {
        let name = path.display().to_string();
        let text = if name == "-" { read_stdin()? } else { read_file(path)? };
        statements.extend(located(&name, &text));
    }
    let has_statements = !statements.is_empty() || !arguments.file.is_empty();
    if !has_statements && std::io::stdin().is_terminal() {
        session.interactive = true;
        return session.converse();
    }
    if !has_statements {
        statements = located("stdin", &read_stdin()?);
    }
    session.run_all(&statements, arguments.keep_going)
}

/// The name, and the password out of the environment.
pub fn credentials(user: Option<String>) -> Result<Option<(String, String)>, Failure> {
    let with_password = |user| {
        let password = std::env::var("FICUS_PASSWORD")
            .map_err(|_| Failure::usage("--user needs the password in the environment, as FICUS_PASSWORD"))?;
        Ok((user, password))
    };
    user.map(with_password).transpose()
}

/// A full URL for what the user wrote.
pub fn server_url(server: &str) -> Result<String, String> {
    let (scheme, rest) = match server.split_once("://") {
        None => ("ws", server),
        // As the paths for whole graphs are named.
        Some(("ws" | "http", rest)) => ("ws", rest),
        Some(("wss" | "https", rest)) => ("wss", rest),
        Some(_) => {
            return Err(format!("'{server}' is no WebSocket address; one looks like ws://127.0.0.1:8182/gremlin"));
        }
    };
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let path = if path.is_empty() { "gremlin" } else { path };
    let host = crate::address::with_port(host)?;
    Ok(format!("{scheme}://{host}/{path}"))
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

fn read_file(path: &std::path::Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

fn located(name: &str, text: &str) -> Vec<(String, String)> {
    statement::split_script(text).into_iter().map(|(line, text)| (format!("{name}, line {line}"), text)).collect()
}

/// What a line was.
enum Done {
    /// The shell goes on.
    Continue,
    /// The user wants to leave.
    Quit,
}

struct Session {
    runtime: tokio::runtime::Runtime,
    options: ClientOptions,
    client: Option<Client>,
    source: String,
    timeout_ms: Option<u64>,
    format: OutputFormat,
    interactive: bool,
}

impl Session {
    fn run_all(&mut self, statements: &[(String, String)], keep_going: bool) -> Outcome {
        let mut failed = 0;
        for (place, text) in statements {
            match self.execute(text) {
                Ok(Done::Continue) => {}
                Ok(Done::Quit) => break,
                Err(Failure::Failed(reason)) if keep_going => {
                    failed += 1;
                    talk(&format!("{place}: {reason}"));
                }
                Err(Failure::Failed(reason)) => return Err(Failure::Failed(format!("{place}: {reason}"))),
                Err(other) => return Err(other),
            }
        }
        match failed {
            0 => Ok(()),
            count => Err(Failure::Failed(format!("{count} of {} queries failed", statements.len()))),
        }
    }

    fn converse(&mut self) -> Outcome {
        let mut editor = LineEditor::new().map_err(Failure::failed)?;
        let mut sources: Vec<String> =
            ["g", "ggraph", "gmodern", "gclassic", "gcrew", "ggrateful", "gsink"].map(str::to_owned).into();
        talk(&format!("FicusDB shell {}; :help lists the commands, Ctrl-C cancels a query", crate::VERSION));
        if let Err(error) = self.connect() {
            talk(&format!("{error}; the next query tries again"));
        }
        loop {
            if !sources.contains(&self.source) {
                sources.push(self.source.clone());
            }
            editor.set_sources(sources.clone());
            match editor.read(&format!("{}> ", self.source)).map_err(Failure::failed)? {
                Input::End => break,
                Input::Interrupted => {}
                Input::Line(line) if line.trim().is_empty() => {}
                Input::Line(line) => match self.execute(&line) {
                    Ok(Done::Continue) => {}
                    Ok(Done::Quit) => break,
                    Err(Failure::PipeClosed) => return Err(Failure::PipeClosed),
                    Err(failure) => talk(failure.message().unwrap_or_default()),
                },
            }
        }
        if let Some(problem) = editor.save() {
            talk(&problem);
        }
        Ok(())
    }

    fn execute(&mut self, text: &str) -> Result<Done, Failure> {
        match text.trim().strip_prefix(':') {
            Some(command) => self.command(command),
            None => self.query(text).map(|()| Done::Continue),
        }
    }

    fn command(&mut self, command: &str) -> Result<Done, Failure> {
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let argument = argument.trim();
        match (name, argument) {
            ("quit" | "exit" | "q", "") => return Ok(Done::Quit),
            ("help" | "h", "") => {
                for (name, meaning) in words::COMMANDS {
                    talk(&format!("{name:14} {meaning}"));
                }
            }
            ("source", "") => talk(&self.source),
            ("source", name) => self.source = name.to_owned(),
            ("timeout", "") => match self.timeout_ms {
                Some(timeout) => talk(&format!("{timeout} ms")),
                None => talk("the server's default"),
            },
            ("timeout", text) => {
                let timeout: u64 =
                    text.parse().map_err(|_| Failure::failed(format!("'{text}' is no number of milliseconds")))?;
                self.timeout_ms = (timeout > 0).then_some(timeout);
            }
            ("format", text) => {
                self.format = <OutputFormat as clap::ValueEnum>::from_str(text, true)
                    .map_err(|_| Failure::failed(format!("'{text}' is no format; there are table, json and text")))?;
            }
            (name, _) => {
                let known = words::COMMANDS.iter().map(|(known, _)| known.split(' ').next().unwrap_or_default());
                let near = crate::nearest::nearest(&format!(":{name}"), known);
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                return Err(Failure::failed(format!("there is no command :{name}{hint}")));
            }
        }
        Ok(Done::Continue)
    }

    fn connect(&mut self) -> Result<&mut Client, ClientError> {
        if self.client.is_none() {
            self.client = Some(self.runtime.block_on(Client::connect(&self.options))?);
        }
        self.client.as_mut().ok_or_else(|| ClientError::Connection("not connected".into()))
    }

    fn query(&mut self, gremlin: &str) -> Result<(), Failure> {
        let question = Question {
            gremlin: gremlin.to_owned(),
            source: self.source.clone(),
            timeout_ms: self.timeout_ms,
            batch_size: None,
        };
        let started = Instant::now();
        let mut printer = Printer { format: self.format, waiting: Vec::new(), rows: 0, failure: None };
        self.connect().map_err(Failure::failed)?;
        let Some(mut client) = self.client.take() else { return Err(Failure::failed("not connected")) };
        let asked = self.runtime.block_on(async {
            tokio::select! {
                outcome = client.ask(&question, |rows| printer.take(rows)) => Some(outcome),
                _ = tokio::signal::ctrl_c() => None,
            }
        });
        match asked {
            // Dropping the client closes the connection, and with it the query on the server.
            None => {
                drop(client);
                return Err(Failure::failed(format!("cancelled after {:.3} s", started.elapsed().as_secs_f64())));
            }
            Some(Err(error)) => {
                if let Some(failure) = printer.failure.take() {
                    return Err(failure.into());
                }
                if let ClientError::Refused { .. } = &error {
                    self.client = Some(client);
                }
                printer.flush()?;
                return Err(Failure::failed(error));
            }
            Some(Ok(())) => {}
        }
        printer.flush()?;
        if client.is_incomplete {
            talk("the deadline came before the end: there may be more than this");
        }
        self.client = Some(client);
        if self.interactive {
            let plural = if printer.rows == 1 { "row" } else { "rows" };
            talk(&format!("{} {plural}, {:.3} ms", printer.rows, started.elapsed().as_secs_f64() * 1000.0));
        }
        Ok(())
    }
}

/// Prints rows as they come.
struct Printer {
    format: OutputFormat,
    waiting: Vec<Value>,
    rows: u64,
    failure: Option<std::io::Error>,
}

impl Printer {
    fn take(&mut self, rows: Vec<Value>) -> Result<(), ClientError> {
        self.rows += rows.len() as u64;
        self.waiting.extend(rows);
        // A table wants to know its widths, so its rows wait for each other.
        if self.format == OutputFormat::Table && self.waiting.len() < TABLE_ROWS {
            return Ok(());
        }
        self.flush().map_err(|error| {
            let reason = error.to_string();
            self.failure = Some(error);
            ClientError::Connection(reason)
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        if rows.is_empty() {
            return Ok(());
        }
        let table = if self.format == OutputFormat::Table { render::table(&rows) } else { None };
        let lines: Vec<String> = match (table, self.format) {
            (Some(table), _) => vec![table],
            (None, OutputFormat::Json) => rows.iter().map(render::json).collect(),
            (None, _) => rows.iter().map(render::text).collect(),
        };
        result(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_may_be_named_briefly() {
        let cases = [
            ("localhost", "ws://localhost:8182/gremlin"),
            ("localhost:1", "ws://localhost:1/gremlin"),
            ("ws://h:1/other", "ws://h:1/other"),
            ("ws://h:1", "ws://h:1/gremlin"),
            ("[::1]:5", "ws://[::1]:5/gremlin"),
            ("wss://h", "wss://h:8182/gremlin"),
            ("https://h:1/", "wss://h:1/gremlin"),
            ("http://h", "ws://h:8182/gremlin"),
        ];
        for (given, expected) in cases {
            assert_eq!(server_url(given).as_deref(), Ok(expected));
        }
        assert!(server_url("ftp://h").is_err());
        assert!(server_url("wss://").is_err());
    }
}
