//! Opening the store a verb works on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ficus_storage::{DirectoryDisk, Environment, Graph, Store, StoreError, StoreOptions, StoredGraphs};

use crate::failure::Failure;
use crate::output::talk;

/// Opens the store in `directory`; it is created if `create` says so. Says what the start could not use.
pub fn open(directory: &Path, create: bool) -> Result<Arc<Store>, Failure> {
    let store = open_with(directory, create, StoreOptions::default())?;
    for damage in &store.recovery().passed_over {
        talk(&format!("a damaged checkpoint was passed over, nothing is lost: {damage}"));
    }
    Ok(store)
}

/// As [`open`], with options, for who says so.
pub fn open_with(directory: &Path, create: bool, options: StoreOptions) -> Result<Arc<Store>, Failure> {
    let complain = |error: StoreError| Failure::failed(format!("{}: {error}", directory.display()));
    if !create {
        must_be_there(directory)?;
    }
    let environment = Environment::on_directory(directory).map_err(complain)?;
    Store::open(options, environment).map_err(complain)
}

/// The graphs in `directory`, to be read; nothing is changed there.
pub fn read(directory: &Path) -> Result<StoredGraphs, Failure> {
    must_be_there(directory)?;
    Store::read(directory).map_err(|error| Failure::failed(format!("{}: {error}", directory.display())))
}

fn must_be_there(directory: &Path) -> Result<(), Failure> {
    match directory.is_dir() {
        true => Ok(()),
        false => Err(Failure::failed(format!("{}: there is no data directory", directory.display()))),
    }
}

/// Opens the store in `directory`, and an archive that is kept close behind it. Both are created if they are missing.
pub fn open_archived(
    directory: &Path,
    archive: &Path,
    delay: Duration,
    options: StoreOptions,
) -> Result<Arc<Store>, Failure> {
    let complain = |error: StoreError| Failure::failed(format!("{}: {error}", directory.display()));
    let environment = Environment::on_directory(directory).map_err(complain)?;
    let archive = Arc::new(DirectoryDisk::create(archive)?);
    Store::open_archived(options, environment, archive, delay).map_err(complain)
}

/// The graph of this name; created if there is none.
pub fn graph_or_new(store: &Store, name: &str) -> Result<Arc<Graph>, StoreError> {
    match store.graph(name) {
        Some(graph) => Ok(graph),
        None => store.create_graph(name),
    }
}

/// The graph of this name, or a failure that names those that exist.
pub fn graph(store: &Store, name: &str) -> Result<Arc<Graph>, Failure> {
    store.graph(name).ok_or_else(|| no_graph(name, &store.graph_names()))
}

/// There is no graph of this name, but these.
pub fn no_graph(name: &str, names: &[String]) -> Failure {
    let known = if names.is_empty() { "the store is empty".into() } else { format!("there are {}", names.join(", ")) };
    Failure::failed(format!("there is no graph '{name}'; {known}"))
}
