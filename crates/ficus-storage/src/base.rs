//! The base of a graph: one segment per tablet, and the tables that find elements by user id.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ficus_model::{EdgeId, LabelId, Value};

use crate::StoreError;
use crate::environment::Disk;
use crate::hop_tables::HopTables;
use crate::label_blocks::LabelBlocks;
use crate::mapping::SegmentBytes;
use crate::property_row::Wanted;
use crate::root::GraphRoot;
use crate::segment::{
    IdTable, IdTableBuilder, IndexRun, IndexRunBuilder, KeyForm, Segment, SegmentBuilder, SegmentImage, SegmentOrigin,
    Side, stable_id_hash,
};
use crate::sort_order::SortOrder;
use crate::tablet::{IdLayout, Tablet};

/// The files of a base, in the order: one segment per tablet, vertex ids, edge ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BaseFiles {
    /// Names in the data directory; empty for a base in memory.
    pub(crate) names: Vec<Arc<str>>,
}

/// What all versions of a graph share since the last consolidation. Immutable.
#[derive(Debug)]
pub(crate) struct Base {
    /// By tablet.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The files, to be named in checkpoints.
    pub(crate) files: BaseFiles,
    vertex_ids: IdTable,
    edge_ids: IdTable,
    /// Made when it is first asked for, as opening is to touch little.
    label_blocks: OnceLock<LabelBlocks>,
    /// Made when it is first asked for as well.
    hop_tables: OnceLock<HopTables>,
}

impl Base {
    /// Which label the vertices of a stretch of ids have.
    pub(crate) fn label_blocks(&self, layout: IdLayout) -> &LabelBlocks {
        self.label_blocks.get_or_init(|| LabelBlocks::of(layout, &self.segments))
    }

    /// The half-edges of all tablets.
    #[inline]
    pub(crate) fn hop_tables(&self) -> &HopTables {
        self.hop_tables.get_or_init(|| HopTables::of(&self.segments))
    }

    /// The vertex with this user id; `has_id` confirms a candidate, and that it still exists.
    pub(crate) fn find_vertex(&self, layout: IdLayout, id: &Value, has_id: impl Fn(u64) -> bool) -> Option<u64> {
        let by_arithmetic = self.segments.iter().enumerate().find_map(|(tablet, segment)| {
            let vertex = layout.vertex_id(segment.find_vertex_by_affine_id(id)?, tablet).0;
            has_id(vertex).then_some(vertex)
        });
        by_arithmetic.or_else(|| self.vertex_ids.find(stable_id_hash(id), &has_id))
    }

    /// The edge with this user id; `has_id` confirms a candidate, and that it still exists.
    pub(crate) fn find_edge(&self, layout: IdLayout, id: &Value, has_id: impl Fn(u64) -> bool) -> Option<u64> {
        let by_arithmetic = self.segments.iter().enumerate().find_map(|(tablet, segment)| {
            let sequence = segment.edge_sequence(segment.find_edge_by_affine_id(id)?);
            let edge = layout.edge_in_tablet(sequence, tablet).0;
            has_id(edge).then_some(edge)
        });
        by_arithmetic.or_else(|| self.edge_ids.find(stable_id_hash(id), &has_id))
    }

    /// Opens the files of a base.
    pub(crate) fn open(disk: &dyn Disk, layout: IdLayout, files: BaseFiles) -> Result<Base, StoreError> {
        let map = |name: &str| map_file(disk, name);
        let (segments, tables) = match files.names.split_last_chunk::<2>() {
            Some((segments, tables)) if segments.len() == layout.tablets() => (segments, tables),
            _ => return Err(StoreError::corrupt("a base", 0, "it has not one file for every tablet and two for ids")),
        };
        let segments = segments.iter().map(|name| Ok(Arc::new(Segment::open(map(name)?, name)?)));
        let base = Base {
            segments: segments.collect::<Result<_, StoreError>>()?,
            vertex_ids: IdTable::open(map(&tables[0])?, &tables[0])?,
            edge_ids: IdTable::open(map(&tables[1])?, &tables[1])?,
            files,
            label_blocks: OnceLock::new(),
            hop_tables: OnceLock::new(),
        };
        base.check_places(layout)?;
        Ok(base)
    }

    /// Refuses files that are whole, but belong to another tablet, graph or store: someone mixed them up.
    fn check_places(&self, layout: IdLayout) -> Result<(), StoreError> {
        let origin = self.vertex_ids.origin();
        for (tablet, segment) in self.segments.iter().enumerate() {
            if (segment.origin(), segment.layout(), segment.tablet()) != (origin, layout, tablet) {
                return Err(StoreError::corrupt(segment.name(), 0, "it belongs to another tablet, graph or store"));
            }
        }
        if self.edge_ids.origin() != origin {
            return Err(StoreError::corrupt(self.edge_ids.name(), 0, "it belongs to another graph or store"));
        }
        Ok(())
    }

    /// Whose it is.
    pub(crate) fn origin(&self) -> SegmentOrigin {
        self.vertex_ids.origin()
    }

    /// Checks every byte, unless told to stop.
    pub(crate) fn verify(&self, stop: &AtomicBool) -> Result<(), StoreError> {
        for segment in &self.segments {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            segment.verify()?;
        }
        self.vertex_ids.verify()?;
        self.edge_ids.verify()
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let segments: usize = self.segments.iter().map(|segment| segment.file_bytes()).sum();
        (segments + self.vertex_ids.file_bytes() + self.edge_ids.file_bytes()) as u64
    }

    /// Elements in it.
    pub(crate) fn elements(&self) -> u64 {
        self.segments.iter().map(|segment| segment.vertex_count() + segment.edge_count()).sum()
    }
}

/// Maps a file of a base. One that is missing is damage to the graph that lies on it, and not an accident of the system.
pub(crate) fn map_file(disk: &dyn Disk, name: &str) -> Result<Arc<SegmentBytes>, StoreError> {
    disk.map(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::corrupt(name, 0, "the file is missing"),
        _ => StoreError::io(format!("mapping {name}"), error),
    })
}

/// The names of the files of a base with so many tablets. `generation` is never used twice for a graph.
pub(crate) fn base_file_names(graph: u32, generation: u64, layout: IdLayout) -> BaseFiles {
    let segments =
        (0..layout.tablets()).map(|tablet| format!("segment-{graph:08x}-{generation:016x}-{tablet:04x}.ficus"));
    let tables = ["vertices", "edges"].map(|what| format!("ids-{graph:08x}-{generation:016x}-{what}.ficus"));
    BaseFiles { names: segments.chain(tables).map(Arc::from).collect() }
}

/// The name of the file with the entries of an index. `generation` is never used twice for a graph.
fn index_file_name(graph: u32, generation: u64, index: u32) -> String {
    format!("index-{graph:08x}-{generation:016x}-{index:08x}.ficus")
}

/// True for the name of a file that belongs to some base.
pub(crate) fn is_base_file(name: &str) -> bool {
    ["segment-", "ids-", "index-"].iter().any(|beginning| name.starts_with(beginning)) && name.ends_with(".ficus")
}

/// Makes a base out of segments, which may be handed in from several threads. What it has written is removed with it, unless that was finished: on a full
/// disk nothing else would make room before the next start.
pub(crate) struct BaseBuilder {
    disk: Option<Arc<dyn Disk>>,
    origin: SegmentOrigin,
    layout: IdLayout,
    generation: u64,
    files: BaseFiles,
    /// The files that were begun and that nobody has taken over. Locked for a moment, with nothing else locked inside.
    begun: Mutex<Vec<Arc<str>>>,
}

impl Drop for BaseBuilder {
    fn drop(&mut self) {
        let Some(disk) = &self.disk else { return };
        for name in self.take_begun() {
            // What cannot be removed is left to the next start.
            let _ = disk.remove(&name);
        }
    }
}

impl BaseBuilder {
    /// The base of a graph. Its files go to `disk`, or stay in memory; `generation` is never used twice for a graph.
    pub(crate) fn new(
        disk: Option<Arc<dyn Disk>>,
        origin: SegmentOrigin,
        layout: IdLayout,
        generation: u64,
    ) -> BaseBuilder {
        let files = match disk {
            Some(_) => base_file_names(origin.graph, generation, layout),
            None => BaseFiles::default(),
        };
        BaseBuilder { disk, origin, layout, generation, files, begun: Mutex::default() }
    }

    /// A builder for the segment of a tablet.
    pub(crate) fn segment_builder(&self, tablet: usize) -> SegmentBuilder {
        SegmentBuilder::new(self.origin, self.layout, tablet)
    }

    /// Makes the content of a segment durable. It is opened later, because what is mapped counts as memory of the process.
    pub(crate) fn write_segment(&self, tablet: usize, image: SegmentImage) -> Result<WrittenSegment, StoreError> {
        match &self.disk {
            None => Ok(WrittenSegment(Some(image.into_bytes()))),
            Some(disk) => self.write(disk, image, &self.name(tablet)).map(|()| WrittenSegment(None)),
        }
    }

    fn write(&self, disk: &Arc<dyn Disk>, image: SegmentImage, name: &Arc<str>) -> Result<(), StoreError> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        image.write(disk.as_ref(), name)
    }

    /// From now on somebody else looks after the files.
    pub(crate) fn take_begun(&self) -> Vec<Arc<str>> {
        std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the segments, makes the id tables, and all names durable. `written` are the segments of all tablets in order.
    pub(crate) fn finish(mut self, written: Vec<WrittenSegment>) -> Result<Base, StoreError> {
        let opened = written.into_iter().enumerate().map(|(tablet, WrittenSegment(bytes))| {
            let name = self.name(tablet);
            let bytes = bytes.map_or_else(|| self.map(&name), Ok)?;
            Ok(Arc::new(Segment::open(bytes, &name)?))
        });
        let segments = opened.collect::<Result<Vec<Arc<Segment>>, StoreError>>()?;
        let mut vertex_ids = IdTableBuilder::new();
        let mut edge_ids = IdTableBuilder::new();
        for (number, segment) in segments.iter().enumerate() {
            add_ids(self.layout, number, segment, &mut vertex_ids, &mut edge_ids);
        }
        let [vertex_ids, edge_ids] = [(vertex_ids, 0), (edge_ids, 1)].map(|(table, position)| {
            let name = self.name(self.layout.tablets() + position);
            IdTable::open(self.keep(table.finish(self.origin), &name)?, &name)
        });
        let (vertex_ids, edge_ids) = (vertex_ids?, edge_ids?);
        self.sync_names()?;
        self.take_begun();
        let files = std::mem::take(&mut self.files);
        let (label_blocks, hop_tables) = (OnceLock::new(), OnceLock::new());
        Ok(Base { segments, files, vertex_ids, edge_ids, label_blocks, hop_tables })
    }

    /// Makes the entries of an index durable, but for the name, and opens them.
    pub(crate) fn keep_run(
        &self,
        entries: IndexRunBuilder,
        index: u32,
        form: KeyForm,
    ) -> Result<Arc<IndexRun>, StoreError> {
        let name = Arc::from(index_file_name(self.origin.graph, self.generation, index));
        let bytes = self.keep(entries.finish(self.origin, index, form), &name)?;
        let run = IndexRun::open(bytes, &name, self.disk.is_some(), form)?;
        Ok(Arc::new(run.expect("it was made in this form")))
    }

    /// Makes the names of all files durable.
    pub(crate) fn sync_names(&self) -> Result<(), StoreError> {
        let Some(disk) = &self.disk else { return Ok(()) };
        disk.sync_directory().map_err(|error| StoreError::io("syncing the data directory", error))
    }

    fn name(&self, position: usize) -> Arc<str> {
        self.files.names.get(position).cloned().unwrap_or_else(|| Arc::from("a segment in memory"))
    }

    fn keep(&self, image: SegmentImage, name: &Arc<str>) -> Result<Arc<SegmentBytes>, StoreError> {
        let Some(disk) = &self.disk else { return Ok(image.into_bytes()) };
        self.write(disk, image, name)?;
        self.map(name)
    }

    fn map(&self, name: &str) -> Result<Arc<SegmentBytes>, StoreError> {
        match &self.disk {
            Some(disk) => disk.map(name).map_err(|error| StoreError::io(format!("mapping {name}"), error)),
            None => Err(StoreError::corrupt(name, 0, "a file without a disk")),
        }
    }
}

/// A segment that is durable, or in memory for a store without a disk.
pub(crate) struct WrittenSegment(Option<Arc<SegmentBytes>>);

/// The same graph with all that it holds in a new base, tablet by tablet, and in files of its indexes; they survive a power cut.
pub(crate) fn build_base(root: &GraphRoot, builder: BaseBuilder) -> Result<GraphRoot, StoreError> {
    let segments = (0..root.layout.tablets())
        .map(|number| builder.write_segment(number, build_segment(root, number, builder.segment_builder(number))));
    let segments = segments.collect::<Result<_, StoreError>>()?;
    let indexes = root.store_indexes(&builder)?;
    let mut next = root.on_base(Arc::new(builder.finish(segments)?));
    next.indexes = Arc::new(indexes);
    Ok(next)
}

fn build_segment(root: &GraphRoot, number: usize, mut builder: SegmentBuilder) -> SegmentImage {
    let (layout, tablet) = (root.layout, &root.tablets()[number]);
    let orders = root.declared_orders();
    builder.sort_by(orders.clone());
    let sort_key = |label: LabelId, edge: EdgeId| {
        let order = orders.iter().find(|order| order.label == label)?;
        Some(order.key(|key| root.edge_value(edge, key)).unwrap_or_else(SortOrder::last_key))
    };
    let mut slot = 0;
    while let Some(first) = tablet.next_vertex_group(slot) {
        let mut there = tablet.vertex_group(first);
        while there != 0 {
            let slot = first + u64::from(there.trailing_zeros());
            there &= there - 1;
            let vertex = layout.vertex_id(slot, number);
            let row = tablet.vertex(layout, vertex).expect("the group has this vertex");
            builder.begin_vertex(slot, row.label(), &row.id());
            row.visit_properties(Wanted::EVERYTHING, &mut |entry, metas| builder.property(&entry, metas));
            let _ = root.side(vertex, Side::Out).visit_from(LabelId(0), EdgeId(0), false, &mut |label, half_edge| {
                let id = tablet.edge_user_id(layout, half_edge.edge).expect("an edge has an id");
                let properties = tablet.edge_properties(layout, half_edge.edge);
                builder.out_half_edge(label, half_edge.edge, half_edge.neighbour, &id, &properties);
                if let Some(key) = sort_key(label, half_edge.edge) {
                    builder.sort_key(Side::Out, label, key);
                }
                ControlFlow::Continue(())
            });
            let _ = root.side(vertex, Side::In).visit_from(LabelId(0), EdgeId(0), false, &mut |label, half_edge| {
                builder.in_half_edge(label, half_edge.edge, half_edge.neighbour);
                if let Some(key) = sort_key(label, half_edge.edge) {
                    builder.sort_key(Side::In, label, key);
                }
                ControlFlow::Continue(())
            });
        }
        slot = first + Tablet::GROUP;
    }
    builder.finish()
}

/// Enters the ids of one tablet into the tables, as far as its segment does not find them by arithmetic.
fn add_ids(
    layout: IdLayout,
    number: usize,
    segment: &Segment,
    vertex_ids: &mut IdTableBuilder,
    edge_ids: &mut IdTableBuilder,
) {
    if segment.needs_id_table_for_vertices() {
        segment.visit_vertices(0, &mut |slot| {
            vertex_ids.add(stable_id_hash(&segment.vertex_id(slot)), layout.vertex_id(slot, number).0);
            ControlFlow::Continue(())
        });
    }
    if segment.needs_id_table_for_edges() {
        segment.visit_sequences(0, &mut |sequence| {
            let position = segment.find_edge(sequence).expect("the segment has this sequence");
            edge_ids.add(stable_id_hash(&segment.edge_user_id(position)), layout.edge_in_tablet(sequence, number).0);
            ControlFlow::Continue(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_disk::SimulatedDisk;

    #[test]
    fn files_of_another_place_are_refused() {
        let layout = IdLayout { tablet_bits: 1 };
        let disk = SimulatedDisk::new();
        let base = |graph: u32| {
            let builder = BaseBuilder::new(Some(Arc::new(disk.clone())), SegmentOrigin { store: 9, graph }, layout, 1);
            let segment = |tablet| builder.write_segment(tablet, builder.segment_builder(tablet).finish()).unwrap();
            let segments = vec![segment(0), segment(1)];
            builder.finish(segments).unwrap().files.names
        };
        let (mine, other) = (base(1), base(2));
        let opens = |names: &[&Arc<str>]| {
            let names = names.iter().map(|name| Arc::clone(name)).collect();
            Base::open(&disk, layout, BaseFiles { names }).is_ok()
        };
        assert!(opens(&[&mine[0], &mine[1], &mine[2], &mine[3]]));
        assert!(!opens(&[&mine[1], &mine[0], &mine[2], &mine[3]]), "tablets in another order");
        for foreign in 0..4 {
            let mut names: Vec<&Arc<str>> = mine.iter().collect();
            names[foreign] = &other[foreign];
            assert!(!opens(&names), "file {foreign} of another graph");
        }
    }
}
