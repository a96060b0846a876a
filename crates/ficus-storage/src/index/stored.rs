//! The files of indexes: made with a base or for one that is there, named in checkpoints, opened at a start.
//!
//! A file has what follows from the elements of the base and nothing else, so it is as immutable as the base. A consolidation writes the entries
//! there are; an index that was built since gets a file of its own ([`build_index_files`]), with the elements of the base read once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ElementKind, Entries, Entry, EntrySet, Index, IndexKind, IndexState, KeyEntry};
use crate::StoreError;
use crate::base::{Base, BaseBuilder, map_file};
use crate::environment::Disk;
use crate::property_index::IndexEntry;
use crate::root::GraphRoot;
use crate::segment::{IndexRun, IndexRunBuilder, KeyForm};

impl Entries {
    /// What a file has.
    fn of_run(kind: IndexKind, run: Arc<IndexRun>) -> Entries {
        match kind {
            IndexKind::Hash => Entries::Hashed(EntrySet::of_run(run)),
            IndexKind::Ordered => Entries::Ordered(EntrySet::of_run(run)),
        }
    }

    /// The same entries above another file.
    fn on_run(&self, run: Arc<IndexRun>) -> Entries {
        match self {
            Entries::Hashed(entries) => Entries::Hashed(entries.on_run(run)),
            Entries::Ordered(entries) => Entries::Ordered(entries.on_run(run)),
        }
    }

    fn to_run(&self) -> IndexRunBuilder {
        match self {
            Entries::Hashed(entries) => entries.to_run(),
            Entries::Ordered(entries) => entries.to_run(),
        }
    }
}

fn form_of(kind: IndexKind) -> KeyForm {
    match kind {
        IndexKind::Hash => IndexEntry::FORM,
        IndexKind::Ordered => KeyEntry::FORM,
    }
}

impl Index {
    /// The file under its pages.
    pub(crate) fn run(&self) -> Option<&Arc<IndexRun>> {
        match &self.entries {
            Entries::Hashed(entries) => entries.run(),
            Entries::Ordered(entries) => entries.run(),
        }
    }

    /// Entries in pages above its file, or all if it has none.
    pub(crate) fn pages_len(&self) -> u64 {
        match &self.entries {
            Entries::Hashed(entries) => entries.pages_len(),
            Entries::Ordered(entries) => entries.pages_len(),
        }
    }

    /// Opens the file of the index over a base; `None` if its keys are of another form than today's.
    ///
    /// Errors: `Corrupt` if it is damaged, or of another index, graph or store.
    pub(crate) fn open_run(
        &self,
        disk: &dyn Disk,
        base: &Base,
        name: &str,
    ) -> Result<Option<Arc<IndexRun>>, StoreError> {
        let bytes = map_file(disk, name)?;
        let Some(run) = IndexRun::open(bytes, name, true, form_of(self.shape.kind))? else { return Ok(None) };
        if (run.origin(), run.number()) != (base.origin(), self.shape.number) {
            return Err(StoreError::corrupt(name, 0, "it belongs to another index, graph or store"));
        }
        Ok(Some(Arc::new(run)))
    }
}

impl GraphRoot {
    /// The names of all files that this state lies on.
    pub(crate) fn files(&self) -> Vec<Arc<str>> {
        let base = self.base().map_or(&[][..], |base| &base.files.names).iter();
        let runs = self.indexes().iter().filter_map(|index| index.run()?.stored_name());
        base.chain(runs).cloned().collect()
    }

    /// Length of those files.
    pub(crate) fn files_bytes(&self) -> u64 {
        let runs = self.indexes().iter().filter_map(|index| index.run()).map(|run| run.file_bytes() as u64);
        self.base().map_or(0, |base| base.bytes()) + runs.sum::<u64>()
    }

    /// Checks every byte of those files, unless told to stop.
    pub(crate) fn verify_files(&self, stop: &AtomicBool) -> Result<(), StoreError> {
        let Some(base) = self.base() else { return Ok(()) };
        base.verify(stop)?;
        let runs = self.indexes().iter().filter_map(|index| index.run());
        runs.take_while(|_| !stop.load(Ordering::Relaxed)).try_for_each(|run| run.verify())
    }

    /// Entries of indexes that are in pages, and not in files.
    pub(crate) fn index_pages(&self) -> u64 {
        self.indexes().iter().map(Index::pages_len).sum()
    }

    /// True if a start would have to read the elements of the base for the entries of an index.
    pub(crate) fn has_unstored_index(&self) -> bool {
        let has_elements = self.base().is_some_and(|base| base.elements() > 0);
        has_elements && self.indexes().iter().any(|index| index.is_ready() && index.run().is_none())
    }

    /// The indexes, with all entries in new files; those being built stay as they are.
    pub(crate) fn store_indexes(&self, builder: &BaseBuilder) -> Result<Vec<Index>, StoreError> {
        let store = |index: &Index| {
            if index.state == IndexState::Building {
                return Ok(index.clone());
            }
            let (number, kind) = (index.shape.number, index.shape.kind);
            let run = builder.keep_run(index.entries.to_run(), number, form_of(kind))?;
            Ok(Index { entries: Entries::of_run(kind, run), ..index.clone() })
        };
        self.indexes().iter().map(store).collect()
    }

    /// Puts the index at `position` on the file that it has over the base; reads the elements of the overlay.
    pub(crate) fn put_index_on(&mut self, position: usize, run: Arc<IndexRun>) {
        let Some(base) = self.base() else { return };
        let (base, shape) = (self.on_base(base.clone()), self.indexes[position].shape.clone());
        let entries = match shape.kind {
            IndexKind::Hash => Entries::Hashed(EntrySet::of_overlay(run, self, &base, &shape)),
            IndexKind::Ordered => Entries::Ordered(EntrySet::of_overlay(run, self, &base, &shape)),
        };
        Arc::make_mut(&mut self.indexes)[position].entries = entries;
    }

    /// The elements that the overlay speaks of, and that may be others than in the base: new, changed, or gone.
    pub(super) fn visit_overlay_elements(&self, elements: ElementKind, visit: &mut dyn FnMut(u64)) {
        for (number, tablet) in self.tablets().iter().enumerate() {
            match elements {
                ElementKind::Vertex => {
                    tablet.visit_overlay(&mut |slot, _| visit(self.layout.vertex_id(slot, number).0));
                }
                ElementKind::Edge => tablet.visit_edge_overlay(self.layout, &mut |sequence, _| {
                    visit(self.layout.edge_in_tablet(sequence, number).0);
                }),
            }
        }
    }

    /// The entries that an index has over the base alone, whatever the overlay says.
    fn base_content(&self, base: &Arc<Base>, index: &Index) -> Entries {
        self.on_base(base.clone()).index_content(&index.shape)
    }

    /// The file of an index must have what follows from the base; for `check_invariants`.
    pub(crate) fn check_run(&self, index: &Index) -> Result<(), String> {
        let (Some(run), Some(base)) = (index.run(), self.base()) else {
            return if index.run().is_none() { Ok(()) } else { Err("there is no base under it".to_string()) };
        };
        let moved = Index { entries: self.base_content(base, index).on_run(run.clone()), ..index.clone() };
        match moved.pages_len() {
            0 => Ok(()),
            wrong => Err(format!("{wrong} entries are missing or do not follow from the base")),
        }
    }
}

/// The same graph on the same base, with files for the complete indexes that have none.
pub(crate) fn build_index_files(root: &GraphRoot, builder: &BaseBuilder) -> Result<GraphRoot, StoreError> {
    let mut next = root.clone();
    let Some(base) = root.base() else { return Ok(next) };
    for index in Arc::make_mut(&mut next.indexes) {
        if index.is_ready() && index.run().is_none() {
            let content = root.base_content(base, index);
            let run = builder.keep_run(content.to_run(), index.shape.number, form_of(index.shape.kind))?;
            index.entries = index.entries.on_run(run);
        }
    }
    builder.sync_names()?;
    builder.take_begun();
    Ok(next)
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use ficus_model::{Cardinality, Value, VertexId};

    use super::*;
    use crate::checkpoint::{list_checkpoints, load_checkpoint};
    use crate::index::{IndexDefinition, IndexQuery, IndexTest};
    use crate::simulated_disk::SimulatedDisk;
    use crate::{ElementKind, Graph, IndexCursor, Store, StoreOptions};

    thread_local! {
        /// Elements of which the keys were read to make the entries of a whole index.
        pub(in crate::index) static ELEMENTS_READ: Cell<u64> = const { Cell::new(0) };
    }

    /// What `work` gives, and how many elements it read for whole indexes, in this thread.
    fn count_reads<T>(work: impl FnOnce() -> T) -> (T, u64) {
        let before = ELEMENTS_READ.get();
        let outcome = work();
        (outcome, ELEMENTS_READ.get() - before)
    }

    fn open(disk: &SimulatedDisk) -> Arc<Store> {
        Store::open(StoreOptions { tablet_bits: 1, ..StoreOptions::default() }, disk.environment()).unwrap()
    }

    fn index_files(disk: &SimulatedDisk) -> Vec<String> {
        let mut names = disk.list().unwrap();
        names.retain(|name| name.starts_with("index-"));
        names.sort();
        names
    }

    fn define(graph: &Arc<Graph>, elements: ElementKind, keys: &[&str], kind: IndexKind) {
        graph.define_index(&IndexDefinition::new(elements, None, keys, kind)).unwrap();
        graph.finish_tasks().unwrap();
    }

    fn define_all(graph: &Arc<Graph>) {
        define(graph, ElementKind::Vertex, &["name"], IndexKind::Hash);
        define(graph, ElementKind::Vertex, &["number"], IndexKind::Ordered);
        define(graph, ElementKind::Vertex, &["name", "number"], IndexKind::Ordered);
        define(graph, ElementKind::Edge, &["since"], IndexKind::Ordered);
    }

    fn add_elements(graph: &Arc<Graph>, numbers: std::ops::Range<i64>) {
        let mut writing = graph.begin();
        let mut last: Option<VertexId> = None;
        for number in numbers {
            let vertex = writing.add_vertex("v", None).unwrap();
            let name = Value::String(format!("a name longer than a key may be inside {}", number % 7).into());
            writing.set_vertex_property(vertex, "name", name, Cardinality::Single, None).unwrap();
            writing.set_vertex_property(vertex, "number", Value::Long(number), Cardinality::List, None).unwrap();
            if let Some(last) = last {
                let edge = writing.add_edge("e", last, vertex, None).unwrap();
                writing.set_edge_property(edge, "since", Value::Int(number as i32 % 5)).unwrap();
            }
            last = Some(vertex);
        }
        writing.commit().unwrap();
    }

    fn change_elements(graph: &Arc<Graph>) {
        let mut writing = graph.begin();
        for number in [3i64, 4, 11] {
            let vertex = find(graph, Value::Long(number))[0];
            let mut set = |key: &str, value| {
                writing.set_vertex_property(VertexId(vertex), key, value, Cardinality::List, None).unwrap();
            };
            set("number", Value::Long(1000 + number));
            set("name", Value::String("changed".into()));
        }
        writing.remove_vertex(VertexId(find(graph, Value::Long(5))[0])).unwrap();
        writing.remove_vertex(VertexId(find(graph, Value::Long(4))[0])).unwrap();
        let edge = find_in(graph, 3, Value::Int(2))[0];
        writing.set_edge_property(ficus_model::EdgeId(edge), "since", Value::Int(99)).unwrap();
        writing.commit().unwrap();
    }

    fn find(graph: &Arc<Graph>, number: Value) -> Vec<u64> {
        find_in(graph, 1, number)
    }

    fn find_in(graph: &Arc<Graph>, index: usize, value: Value) -> Vec<u64> {
        let snapshot = graph.snapshot();
        let index = snapshot.indexes()[index].number;
        let query = IndexQuery { index, equal: Vec::new(), test: IndexTest::Equal(value), descending: false };
        let mut found = Vec::new();
        snapshot.scan_index(&query, &mut IndexCursor::default(), usize::MAX, &mut found);
        found
    }

    fn load_newest(disk: &SimulatedDisk) -> Result<(), StoreError> {
        load_checkpoint(disk, list_checkpoints(disk).unwrap()[0]).map(drop)
    }

    fn check(store: &Store) {
        store.graph("g").unwrap().snapshot().check_invariants().unwrap();
    }

    fn stored() -> SimulatedDisk {
        let disk = SimulatedDisk::new();
        let store = open(&disk);
        let graph = store.create_graph("g").unwrap();
        define_all(&graph);
        add_elements(&graph, 0..50);
        store.consolidate().unwrap();
        store.close().unwrap();
        disk
    }

    #[test]
    fn a_start_reads_no_elements_and_answers_as_before() {
        let disk = stored();
        assert_eq!(index_files(&disk).len(), 4);
        let (store, read) = count_reads(|| open(&disk));
        assert_eq!(read, 0);
        let graph = store.graph("g").unwrap();
        check(&store);
        assert_eq!(graph.snapshot().root.index_pages(), 0);
        // What changed since lies above the files, and a checkpoint brings it into none of them.
        change_elements(&graph);
        add_elements(&graph, 50..60);
        check(&store);
        let files = index_files(&disk);
        store.checkpoint().unwrap();
        assert_eq!(index_files(&disk), files);
        store.close().unwrap();
        let (store, read) = count_reads(|| open(&disk));
        assert_eq!(read, 0);
        check(&store);
        let graph = store.graph("g").unwrap();
        assert_eq!((find(&graph, Value::Long(5)), find(&graph, Value::Long(1003)).len()), (vec![], 1));
        assert_eq!((find(&graph, Value::Long(57)).len(), find_in(&graph, 3, Value::Int(99)).len()), (1, 1));
        store.consolidate().unwrap();
        check(&store);
        assert!(index_files(&disk).len() == 4 && index_files(&disk).iter().all(|name| !files.contains(name)));
        assert_eq!(graph.snapshot().root.index_pages(), 0);
    }

    /// The same with the log alone above the checkpoint.
    #[test]
    fn a_crash_behind_a_checkpoint_reads_no_elements_either() {
        let disk = stored();
        let store = open(&disk);
        change_elements(&store.graph("g").unwrap());
        for seed in 0..20 {
            let crashed = disk.crash(seed);
            let (store, read) = count_reads(|| open(&crashed));
            assert_eq!(read, 0);
            check(&store);
        }
    }

    #[test]
    fn an_index_of_a_graph_with_a_base_gets_a_file_of_its_own() {
        let disk = SimulatedDisk::new();
        let store = open(&disk);
        let graph = store.create_graph("g").unwrap();
        add_elements(&graph, 0..50);
        store.consolidate().unwrap();
        let mut writing = graph.begin();
        writing.remove_vertex(VertexId(0)).unwrap();
        writing.commit().unwrap();
        define_all(&graph);
        change_elements(&graph);
        let base = graph.snapshot().root.base().cloned().unwrap();
        assert!(graph.snapshot().root.has_unstored_index() && index_files(&disk).is_empty());
        store.checkpoint().unwrap();
        let root = graph.snapshot().root.clone();
        assert!(Arc::ptr_eq(root.base().unwrap(), &base), "the base stays");
        assert_eq!(index_files(&disk).len(), 4);
        assert!(root.index_pages() < 60, "what follows from the base is in the files: {}", root.index_pages());
        check(&store);
        let crashed = disk.crash(1);
        let (store, read) = count_reads(|| open(&crashed));
        assert_eq!(read, 0);
        check(&store);
        // A dropped index takes its file with it; so does a graph.
        let graph = store.graph("g").unwrap();
        graph.drop_index(&graph.indexes()[1].definition.name).unwrap();
        store.checkpoint().unwrap();
        assert_eq!(index_files(&crashed).len(), 3);
        graph.clear().unwrap();
        store.checkpoint().unwrap();
        assert_eq!(index_files(&crashed), Vec::<String>::new());
        check(&store);
    }

    #[test]
    fn a_damaged_file_is_named() {
        let sound = stored();
        let names = index_files(&sound);
        for seed in 0..80u64 {
            let disk = sound.crash(seed);
            let name = &names[seed as usize % names.len()];
            let file = disk.open(name).unwrap();
            let offset = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) % file.length().unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset).unwrap();
            file.write_all_at(&[byte[0] ^ (1 << (seed % 8))], offset).unwrap();
            file.sync().unwrap();
            let loaded = load_newest(&disk);
            let report = crate::check::check_disk(&(Arc::new(disk.clone()) as Arc<dyn Disk>)).unwrap();
            assert!(report.files.iter().any(|file| file.text.contains(name.as_str())), "{report:?}");
            let opened = Store::open(StoreOptions { tablet_bits: 1, ..StoreOptions::default() }, disk.environment());
            let found = match opened {
                Ok(store) => store.graph("g").unwrap().snapshot().examine(),
                Err(error) => Err(error),
            };
            match found {
                Err(StoreError::Corrupt { file, .. }) if file == *name => {}
                // Opening read this byte: the start went back to the log, which has all of it.
                Ok(()) if loaded.is_err_and(|error| error.to_string().contains(name.as_str())) => {}
                other => panic!("{other:?} for byte {offset} of {name}, seed {seed}"),
            }
        }
    }

    #[test]
    fn a_missing_file_and_one_of_another_index_are_refused() {
        let sound = stored();
        let names = index_files(&sound);
        let bytes = |name: &str| {
            let file = sound.open(name).unwrap();
            let mut bytes = vec![0; file.length().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let open_with = |change: &dyn Fn(&SimulatedDisk)| {
            let disk = sound.crash(1);
            disk.remove(&names[1]).unwrap();
            change(&disk);
            disk.sync_directory().unwrap();
            load_newest(&disk)
        };
        let missing = open_with(&|_| ()).unwrap_err().to_string();
        assert!(missing.contains(&names[1]), "{missing}");
        let other = open_with(&|disk| disk.put(&names[1], bytes(&names[2]))).unwrap_err().to_string();
        assert!(other.contains(&names[1]) && other.contains("another index"), "{other}");
        open_with(&|disk| disk.put(&names[1], bytes(&names[1]))).unwrap();
    }
}
