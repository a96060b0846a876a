//! `ficus serve`: store, engine and server in one process.
//!
//! ```text
//! settings ─► address ─► store (recovery) ─► demo ─► engine ─► server ─► banner … SIGTERM ─► drain ─► close the store
//! ```

mod banner;
mod engine;
mod files;
mod graphs;
mod open_files;
mod settings;
mod signals;
mod threads;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ficus_storage::{Environment, Store};

use self::graphs::StoreGraphs;
use self::settings::{LogForm, Settings, Sources};
use crate::Outcome;
use crate::allocator;
use crate::code_pages;
use crate::demo::Demo;
use crate::failure::Failure;
use crate::output::{OutputFormat, talk};

pub use self::engine::start_executors;
pub use self::settings::{EngineSettings, KHop};

/// How long a damage that was found may go without a line in the log.
const DAMAGE_PAUSE: Duration = Duration::from_secs(1);

/// Flags of `ficus serve`. Each stands for a key of the settings; --set reaches all of them.
#[derive(Debug, clap::Args)]
pub struct ServeArguments {
    /// The data directory, created if there is none (store.data_dir). Without one nothing survives the process.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A directory that is kept close behind the data directory, to restore from (store.archive_dir); created if there is none.
    #[arg(long, value_name = "DIR")]
    archive_dir: Option<PathBuf>,
    /// Address and port to listen on (server.listen); 127.0.0.1:8182 by default.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Sample graphs to install first (store.demo).
    #[arg(long, value_enum, value_name = "NAME")]
    demo: Option<Demo>,
    /// A settings file in TOML.
    #[arg(long, value_name = "FILE", env = "FICUS_CONFIG")]
    config: Option<PathBuf>,
    /// Any setting, as KEY=VALUE such as server.limits.connections=500. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Runs the verb until the process is told to end.
pub fn run(arguments: ServeArguments, format: OutputFormat) -> Outcome {
    let mut flags = Vec::new();
    if let Some(listen) = arguments.listen {
        flags.push(("server.listen".to_owned(), toml::Value::String(listen)));
    }
    if let Some(demo) = arguments.demo {
        flags.push(("store.demo".to_owned(), toml::Value::String(demo.name())));
    }
    let environment = std::env::vars_os().collect();
    let sources = Sources { file: arguments.config, environment, assignments: arguments.set, flags };
    let mut settings = Settings::read(&sources).map_err(Failure::usage)?;
    // Paths need not be text, as settings are.
    settings.store.data_dir = arguments.data_dir.or(settings.store.data_dir);
    settings.store.archive_dir = arguments.archive_dir.or(settings.store.archive_dir);
    start_log(&settings)?;
    use_large_pages(settings.engine.large_pages);
    let connections = &mut settings.server.limits.connections;
    let (wanted, possible) = (*connections, open_files::connections(*connections));
    if possible < wanted {
        let what = "fewer connections than configured: the limit of open files (ulimit -n) leaves no more";
        tracing::warn!(wanted, possible, "{what}");
        *connections = possible;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    survive_large_files(&runtime);
    // Before the store, which may take its time: who has the port already is told at once, and nobody is answered before all is there.
    let taken = runtime
        .block_on(ficus_server::take_address(settings.server.clone()))
        .map_err(|error| if error.is_of_settings() { Failure::usage(error) } else { Failure::failed(error) })?;
    let store = open_store(&settings)?;
    log_recovery(&store);
    tell_archive(&store, "the next attempt comes by itself");
    if let Some(demo) = settings.store.demo {
        for line in demo.install(&store)? {
            talk(&line);
        }
    }
    if store.graph_names().is_empty() {
        store.create_graph("g")?;
    }
    let backend = engine::start_engine(&store, &settings.engine)?;
    let data_dir = settings.store.data_dir.as_deref();
    let graphs = Arc::new(StoreGraphs::new(store.clone(), backend.sources(), data_dir, settings.store.upload_bytes));
    let backend = Arc::new(backend.with_graphs(graphs.clone()));
    let outcome = runtime.block_on(async {
        let bound = taken.listen(backend).map_err(Failure::failed)?;
        let told_to_stop = signals::told_to_stop()?;
        banner::print(&settings, bound.address(), &store, format)?;
        let watching = tokio::spawn(log_damage(graphs.clone()));
        bound.serve(told_to_stop).await;
        watching.abort();
        // What was found since the last look.
        graphs.log_damage();
        Ok(())
    });
    // What the runtime still holds is of no use any more; connections have been drained.
    runtime.shutdown_background();
    graphs.stop();
    store.close()?;
    tell_archive(&store, "bring them there with `ficus admin backup` or with the next start");
    talk("stopped; the store is closed");
    outcome
}

/// Puts code and memory into large pages if they are wanted; before much is allocated. Another verb that runs queries does so too.
pub fn use_large_pages(wanted: bool) {
    allocator::begin_places(wanted);
    if wanted {
        match code_pages::enlarge() {
            Ok(bytes) => tracing::debug!(bytes, "the code is in large pages"),
            Err(reason) => tracing::debug!(reason, "the code stays in small pages"),
        }
    }
}

/// Looks now and then whether damage was found, or a checkpoint failed, that nobody was told of.
async fn log_damage(graphs: Arc<StoreGraphs>) {
    loop {
        graphs.log_damage();
        graphs.log_checkpoints();
        tokio::time::sleep(DAMAGE_PAUSE).await;
    }
}

fn open_store(settings: &Settings) -> Result<Arc<Store>, Failure> {
    let options = settings.store.options();
    match (&settings.store.data_dir, &settings.store.archive_dir) {
        (Some(directory), Some(archive)) => {
            let delay = Duration::from_millis(settings.store.archive_delay_ms.max(1));
            crate::store::open_archived(directory, archive, delay, options)
        }
        (Some(directory), None) => crate::store::open_with(directory, true, options),
        (None, Some(_)) => {
            Err(Failure::usage("store.archive_dir is given without store.data_dir; there is nothing to archive"))
        }
        (None, None) => {
            talk("no data directory is given: the graphs live in memory and end with this process");
            Ok(Store::open(options, Environment::in_memory())?)
        }
    }
}

/// Says so if the archive could not be written to; in between, the metrics do.
fn tell_archive(store: &Store, what_next: &str) {
    if let Some(failure) = store.archive_status().and_then(|status| status.failure) {
        talk(&format!("the archive lacks the newest commits: {failure}; {what_next}"));
    }
}

fn start_log(settings: &Settings) -> Result<(), Failure> {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(settings.log.level.filter())
        // Said on stderr as well, and a panic where nobody reads that any more: the log is lost then, not the server.
        .log_internal_errors(false)
        .with_target(true);
    let started = match settings.log.form {
        LogForm::Text => builder.with_ansi(false).try_init(),
        LogForm::Json => builder.json().try_init(),
    };
    started.map_err(|error| Failure::failed(format!("the log cannot be started: {error}")))
}

/// Says in the log what the start could not use.
fn log_recovery(store: &Store) {
    let recovery = store.recovery();
    let used = recovery.checkpoint.as_deref().unwrap_or("none, but the log from its beginning");
    for damage in &recovery.passed_over {
        tracing::warn!(%damage, used, "a damaged checkpoint was passed over; nothing is lost, since the log reaches from the one that was used");
    }
}

/// Has a write fail that would make a file larger than the process may make one (`ulimit -f`), as on a full disk, where the signal would end the process.
fn survive_large_files(runtime: &tokio::runtime::Runtime) {
    use tokio::signal::unix::{SignalKind, signal};
    let _inside = runtime.enter();
    // Nobody waits for the signal; that it is taken lasts as long as the process.
    if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
        tracing::debug!(%error, "a file that becomes too large (ulimit -f) ends the process");
    }
}
