//! `ficus admin`: looking after a data directory, and after the queries of a server. Of what takes a data directory, only `backup` may be run
//! while a server uses it.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use ficus_storage::{FileReport, Finding, GraphReport, Store};
use hyper::Method;
use serde_json::{Value as Json, json};

use crate::Outcome;
use crate::connection::Trust;
use crate::failure::Failure;
use crate::http_client::{HttpServer, path_part};
use crate::output::{OutputFormat, result};

/// Flags of `ficus admin`.
#[derive(Debug, clap::Args)]
pub struct AdminArguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Read every stored file, check every graph and say what was found. Changes nothing.
    Check {
        /// The data directory.
        #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR")]
        data_dir: PathBuf,
    },
    /// Bring all that is committed into an archive, also while a server uses the data directory.
    Backup(crate::archive::BackupArguments),
    /// Make a data directory out of an archive, with the newest state or that of a moment or commit.
    Restore(crate::archive::RestoreArguments),
    /// Look at and change declared types, indexes and tasks of a graph.
    Schema(crate::schema::SchemaArguments),
    /// List the queries that run on a server or wait in line there.
    Queries(crate::shell::ServerArguments),
    /// List those for whom queries run on a server, with their weights and what was done for them. For administrators.
    Tenants(crate::shell::ServerArguments),
    /// End a query on a server: an own one, or as an administrator any.
    Kill {
        /// The query's id, as `ficus admin queries` tells it.
        #[arg(value_parser = query_id)]
        id: uuid::Uuid,
        #[command(flatten)]
        server: crate::shell::ServerArguments,
    },
    /// List the graphs of a server, or make or remove one. For administrators.
    Graphs {
        /// Make an empty graph of this name, which is also that of its traversal source.
        #[arg(long, value_name = "NAME", conflicts_with = "remove")]
        create: Option<String>,
        /// Remove the graph of this name with all it holds.
        #[arg(long, value_name = "NAME")]
        remove: Option<String>,
        /// The server, as HOST:PORT; with https:// before it for TLS.
        #[arg(long, default_value = "127.0.0.1:8182", value_name = "SERVER")]
        server: String,
        /// The user's name; the password comes from FICUS_PASSWORD.
        #[arg(long, value_name = "NAME", env = "FICUS_USER")]
        user: Option<String>,
        #[command(flatten)]
        trust: Trust,
    },
    /// Make the hash of a password for server.users; the password is read from FICUS_PASSWORD.
    HashPassword,
}

/// The id of a query. Who gives something else has the number of a process or a row.
fn query_id(text: &str) -> Result<uuid::Uuid, String> {
    text.parse().map_err(|_| {
        "this is no id of a query; one looks like 1f6e52ac-02cb-4a5c-a343-5a1ba2e4a3c5, and `ficus admin queries` lists them"
            .to_string()
    })
}

/// Runs the verb.
pub fn run(arguments: AdminArguments, format: OutputFormat) -> Outcome {
    match arguments.task {
        Task::Check { data_dir } => check(&data_dir, format),
        Task::Backup(arguments) => crate::archive::backup(&arguments, format),
        Task::Restore(arguments) => crate::archive::restore(&arguments, format),
        Task::Schema(arguments) => crate::schema::run(arguments, format),
        Task::Queries(server) => crate::shell::ask(server, "g.call('ficus.queries')".into(), format),
        Task::Tenants(server) => crate::shell::ask(server, "g.call('ficus.tenants')".into(), format),
        Task::Kill { id, server } => {
            crate::shell::ask(server, format!("g.call('ficus.kill').with('id','{id}')"), format)
        }
        Task::Graphs { create, remove, server, user, trust } => {
            let server = HttpServer::new(&server, crate::shell::credentials(user)?, trust)?;
            graphs(&server, create.as_deref(), remove.as_deref(), format)
        }
        Task::HashPassword => {
            let password = std::env::var("FICUS_PASSWORD")
                .map_err(|_| Failure::usage("put the password into the environment, as FICUS_PASSWORD"))?;
            let hash = ficus_server::hash_password(&password).map_err(Failure::failed)?;
            result(&if format == OutputFormat::Json { json!({"password_hash": hash}).to_string() } else { hash })?;
            Ok(())
        }
    }
}

/// Makes or removes a graph of a server, or lists them.
fn graphs(server: &HttpServer, create: Option<&str>, remove: Option<&str>, format: OutputFormat) -> Outcome {
    let (method, path) = match (create, remove) {
        (Some(name), _) => (Method::PUT, format!("/v1/graphs/{}", path_part(name)?)),
        (None, Some(name)) => (Method::DELETE, format!("/v1/graphs/{}", path_part(name)?)),
        (None, None) => (Method::GET, "/v1/graphs".to_owned()),
    };
    let answer: Json = server.ask(method, &path, None, |answer| {
        let text = answer.text()?;
        serde_json::from_str(&text).map_err(|error| Failure::failed(format!("the answer cannot be read: {error}")))
    })?;
    if format == OutputFormat::Json {
        return Ok(result(&answer.to_string())?);
    }
    match (create, remove) {
        (Some(name), _) => result(&format!("made graph {name}"))?,
        (None, Some(name)) => result(&format!("removed graph {name}"))?,
        (None, None) => {
            for graph in answer["graphs"].as_array().into_iter().flatten() {
                let name = graph["name"].as_str().unwrap_or_default();
                let load = match graph.get("load") {
                    None => String::new(),
                    Some(load) => format!(", being loaded: {} of {} bytes read", load["bytes"], load["bytes_total"]),
                };
                let text = match graph["damage"].as_str() {
                    Some(damage) => format!("{name}: not to be read, {damage}"),
                    None => format!("{name}: {} vertices, {} edges{load}", graph["vertices"], graph["edges"]),
                };
                result(&text)?;
            }
        }
    }
    Ok(())
}

/// Reads and verifies every stored file, restores the state in memory and checks its rules; changes nothing.
fn check(directory: &Path, format: OutputFormat) -> Outcome {
    if !directory.is_dir() {
        return Err(Failure::failed(format!("{}: there is no data directory", directory.display())));
    }
    let report =
        Store::check(directory).map_err(|error| Failure::failed(format!("{}: {error}", directory.display())))?;
    for FileReport { file, finding, text } in &report.files {
        let verdict = match finding {
            Finding::Good => "good",
            Finding::Harmless => "harmless",
            Finding::Bad => "damaged",
        };
        if format == OutputFormat::Json {
            result(&json!({"what": file, "finding": verdict, "text": text}).to_string())?;
        } else {
            result(&format!("{verdict:8}  {file}: {text}"))?;
        }
    }
    for GraphReport { graph, vertices, edges } in &report.graphs {
        if format == OutputFormat::Json {
            result(&json!({"graph": graph, "vertices": vertices, "edges": edges}).to_string())?;
        } else {
            result(&format!("{graph}: {vertices} vertices, {edges} edges"))?;
        }
    }
    if report.worst() == Finding::Bad {
        let what = "the store is damaged, see above; restore it from an archive, a copy or an export";
        return Err(Failure::failed(format!("{}: {what}", directory.display())));
    }
    Ok(())
}
