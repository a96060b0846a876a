//! The graphs of a data directory, to be read by a process that changes nothing there: an export, also from a mounted backup.

use std::path::Path;
use std::sync::Arc;

use crate::committer::State;
use crate::environment::{DirectoryLock, Disk};
use crate::recovery::restore_to_read;
use crate::{DirectoryDisk, Snapshot, Store, StoreError};

/// The graphs of a data directory as a start would find them. The directory is held until this is dropped, unless nothing can be written there.
pub struct StoredGraphs {
    state: State,
    _lock: Option<Box<dyn DirectoryLock>>,
}

impl Store {
    /// Restores the graphs of a data directory in memory, to be read. Nothing in the directory is changed, so it may be read-only; no store may be
    /// open there.
    ///
    /// Errors: those of [`Store::open`].
    pub fn read(directory: impl AsRef<Path>) -> Result<StoredGraphs, StoreError> {
        let disk = DirectoryDisk::existing(directory.as_ref())?;
        let lock = disk.lock_to_read("a process that reads the store")?;
        Ok(StoredGraphs { state: restore_to_read(&(Arc::new(disk) as Arc<dyn Disk>))?, _lock: lock })
    }
}

impl StoredGraphs {
    /// Names of all graphs in alphabetic order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.state.graphs.values().map(|graph| graph.name.to_string()).collect();
        names.sort_unstable();
        names
    }

    /// The graph of this name, if there is one.
    ///
    /// Errors: `Corrupt` if a file of it is damaged.
    pub fn snapshot(&self, name: &str) -> Result<Option<Snapshot>, StoreError> {
        let Some(graph) = self.state.graphs.values().find(|graph| &*graph.name == name) else { return Ok(None) };
        graph.unrestored.clone().map_or(Ok(()), Err)?;
        Ok(Some(Snapshot::new(graph.root.clone())))
    }
}

impl std::fmt::Debug for StoredGraphs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredGraphs").field("names", &self.names()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::{Environment, StoreOptions};

    /// A directory with one graph that was left as by a crash; and its files with their content.
    fn filled(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("ficus-stored-graphs-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let store = Store::open(StoreOptions::default(), Environment::on_directory(&directory).unwrap()).unwrap();
        let mut writing = store.create_graph("g").unwrap().begin();
        writing.add_vertex("person", None).unwrap();
        writing.commit().unwrap();
        let copy = directory.with_extension("copy");
        let _ = fs::remove_dir_all(&copy);
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
        drop(store);
        fs::remove_dir_all(&directory).unwrap();
        copy
    }

    fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let is_lock = |path: &PathBuf| path.ends_with("LOCK");
        let mut files: Vec<_> =
            files.filter(|path| !is_lock(path)).map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        files.sort();
        files
    }

    #[test]
    fn reading_changes_nothing_and_keeps_others_away() {
        let directory = filled("read");
        let before = contents(&directory);
        let graphs = Store::read(&directory).unwrap();
        assert_eq!(graphs.names(), ["g"]);
        assert_eq!(graphs.snapshot("g").unwrap().unwrap().vertex_count(), 1);
        assert!(graphs.snapshot("h").unwrap().is_none());
        let open = || Store::open(StoreOptions::default(), Environment::on_directory(&directory).unwrap());
        assert!(matches!(open(), Err(StoreError::Locked { .. })));
        drop(graphs);
        assert!(before == contents(&directory), "something was written");
        let store = open().unwrap();
        assert!(matches!(Store::read(&directory), Err(StoreError::Locked { .. })));
        drop(store);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// The lock is a name in a file system where nobody may make a file, as all names of a read-only one are, also for the administrator.
    #[cfg(target_os = "linux")]
    #[test]
    fn where_nothing_can_be_written_no_lock_is_needed() {
        let directory = filled("read-only");
        fs::remove_file(directory.join("LOCK")).unwrap();
        std::os::unix::fs::symlink("/sys/ficus-lock", directory.join("LOCK")).unwrap();
        assert_eq!(Store::read(&directory).unwrap().names(), ["g"]);
        assert_eq!(Store::check(&directory).unwrap().worst(), crate::Finding::Good);
        assert!(Store::open(StoreOptions::default(), Environment::on_directory(&directory).unwrap()).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
