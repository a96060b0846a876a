//! Adds records to a graph that has elements, in batches through its log, and notes with each how far the load has come.
//!
//! ```text
//! committed ─► sent: one batch on its way ─► gathered: what the next batch is made of
//! ```
//!
//! A batch is sent when the one before has met the graph, so that no note is ever true of a batch behind a hole. What is sent
//! and gathered is kept as it was read. If the graph refuses a batch because of a record of it, all of that is added once more
//! in parts, which are halved until the record that does not fit stands alone and is rejected like others.
//!
//! Rejections are counted and reported with the batch that they stand in. The note of a batch holds them: the report itself
//! gets them when the batch is committed, and a load that goes on behind the note writes them again.

use std::ops::Range;
use std::sync::Arc;

use ficus_model::Value;
use ficus_storage::{BulkLoader, BulkProperty, Graph, StoreError};

use super::loader::LoadError;
use super::placement::{Refusal, missing_end};
use super::record::{Batch, EdgeRecord, Record, VertexRecord};
use super::report::{Counts, Rejects, entry};
use super::resume::{self, Position, RowHash};

/// Batches of a reader that become one of the store at most: bounds what is kept where nearly all records are rejected.
const PIECES_MAX: usize = 16;

/// How often a record is tried again that other writers of the graph came between.
const CONFLICTS_MAX: u32 = 20;

/// Some of the items of a batch as it was read.
#[derive(Clone)]
struct Piece {
    batch: Arc<Batch>,
    items: Range<usize>,
}

/// How far the load is at a moment.
#[derive(Clone, Default)]
struct Mark {
    /// Items taken, those that an earlier load took among them.
    items: u64,
    rows: RowHash,
    counts: Counts,
}

/// A batch that is on its way.
struct Sent {
    pieces: Vec<Piece>,
    /// How far the load is if it is committed.
    end: Mark,
    /// What it adds to the report of rejected records.
    rejections: Vec<String>,
}

/// A batch that the graph refused because of what is in it.
struct Refused {
    pieces: Vec<Piece>,
    error: StoreError,
}

/// Adds records to a graph that has elements.
pub struct Writer<'a> {
    bulk: BulkLoader,
    rejects: &'a mut Rejects,
    errors_max: u64,
    /// Where an earlier load ended.
    start: &'a Position,
    /// How far the load is with all that was taken.
    now: Mark,
    /// How far it is with all that is committed.
    committed: Mark,
    sent: Option<Sent>,
    gathered: Vec<Piece>,
    /// What the gathered records add to the report of rejected ones.
    rejections: Vec<String>,
    /// Why the last record was rejected.
    last_reason: String,
}

impl<'a> Writer<'a> {
    /// Goes on behind `start`, whose rejections become a part of the report.
    pub fn new(
        graph: &Arc<Graph>,
        start: &'a Position,
        rejects: &'a mut Rejects,
        errors_max: u64,
    ) -> Result<Writer<'a>, LoadError> {
        for rejection in &start.rejections {
            rejects.add_line(rejection).map_err(LoadError::Report)?;
        }
        let mut bulk = graph.bulk();
        bulk.end_batches_with_notes();
        let now = Mark { counts: start.counts, ..Mark::default() };
        Ok(Writer {
            bulk,
            rejects,
            errors_max,
            start,
            committed: now.clone(),
            now,
            sent: None,
            gathered: Vec::new(),
            rejections: Vec::new(),
            last_reason: String::new(),
        })
    }

    /// What became of the records that were taken, those on their way among them.
    pub fn counts(&self) -> &Counts {
        &self.now.counts
    }

    /// Takes the next records.
    pub fn take(&mut self, batch: Batch) -> Result<(), LoadError> {
        let mut from = 0;
        while from < batch.items.len() && self.now.items < self.start.items {
            self.count(&batch, from);
            from += 1;
            if self.now.items == self.start.items {
                self.check_start()?;
                self.committed = self.now.clone();
            }
        }
        let batch = Arc::new(batch);
        while from < batch.items.len() {
            let rest = Piece { batch: batch.clone(), items: from..batch.items.len() };
            from = self.add(&rest)?;
            self.gathered.push(Piece { items: rest.items.start..from, ..rest });
            if self.has_too_many_errors() {
                self.settle()?;
                self.check_errors()?;
            }
        }
        match self.bulk.is_full() || self.gathered.len() >= PIECES_MAX {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// Comes behind the last record: all is committed, and noted to be complete.
    pub fn finish(&mut self) -> Result<(), LoadError> {
        if self.now.items < self.start.items {
            return Err(LoadError::OtherRows { items: self.start.items });
        }
        self.settle()?;
        self.check_errors()?;
        self.note(true)?;
        if let Some(Refused { error, .. }) = self.outcome()? {
            return Err(error.into());
        }
        Ok(self.bulk.flush()?)
    }

    /// Ends the load; what is only gathered is dropped. Gives the counts of what is committed.
    pub fn end(mut self) -> Counts {
        // Whoever goes on with a load that ended early has to see all that is noted; why it ended is told already.
        let _ = self.outcome();
        let _ = self.bulk.abandon();
        self.committed.counts
    }

    /// Refuses to go on with other rows than those that were taken before.
    fn check_start(&self) -> Result<(), LoadError> {
        match self.now.rows.text() == self.start.rows {
            true => Ok(()),
            false => Err(LoadError::OtherRows { items: self.start.items }),
        }
    }

    /// Whether more records were rejected than may be; those of an earlier load alone do not end this one.
    fn has_too_many_errors(&self) -> bool {
        self.now.counts.rejected > self.errors_max.max(self.start.counts.rejected)
    }

    fn check_errors(&self) -> Result<(), LoadError> {
        match self.has_too_many_errors() {
            true => Err(LoadError::TooManyErrors { limit: self.errors_max, last: self.last_reason.clone() }),
            false => Ok(()),
        }
    }

    fn count(&mut self, batch: &Batch, index: usize) {
        self.now.items += 1;
        self.now.rows.add(batch, &batch.items[index]);
    }

    /// Sends what is gathered, when the batch before has met the graph.
    fn send(&mut self) -> Result<(), LoadError> {
        if let Some(refused) = self.outcome()? {
            return self.mend(refused);
        }
        self.note(false)?;
        if self.bulk.remembers_much() {
            self.settle()?;
            self.bulk.flush()?;
        }
        Ok(())
    }

    /// Waits until the graph has met all that was taken; what it refuses is rejected.
    fn settle(&mut self) -> Result<(), LoadError> {
        if !self.gathered.is_empty() {
            self.send()?;
        }
        match self.outcome()? {
            None => Ok(()),
            Some(refused) => self.mend(refused),
        }
    }

    /// Sends what is gathered with a note about how far the load has come.
    fn note(&mut self, done: bool) -> Result<(), LoadError> {
        let position = Position {
            inputs: self.start.inputs.clone(),
            items: self.now.items,
            rows: self.now.rows.text(),
            counts: self.now.counts,
            reject_bytes: self.rejects.flush().map_err(LoadError::Report)?,
            rejections: std::mem::take(&mut self.rejections),
            done,
        };
        self.bulk.send_noting(resume::NOTE, &position.write());
        let pieces = std::mem::take(&mut self.gathered);
        self.sent = Some(Sent { pieces, end: self.now.clone(), rejections: position.rejections });
        Ok(())
    }

    /// Waits until the batch on its way has met the graph; gives it back if it was refused because of what is in it.
    fn outcome(&mut self) -> Result<Option<Refused>, LoadError> {
        let outcome = self.bulk.outcome();
        let Some(Sent { pieces, end, rejections }) = self.sent.take() else { return Ok(None) };
        match outcome {
            Ok(()) => {
                self.committed = end;
                rejections.iter().try_for_each(|line| self.rejects.add_line(line)).map_err(LoadError::Report)?;
                Ok(None)
            }
            Err(error) if is_of_record(&error) => Ok(Some(Refused { pieces, error })),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes back to what is committed.
    fn go_back(&mut self) -> Result<(), LoadError> {
        self.bulk.start_over()?;
        self.now = self.committed.clone();
        self.rejections.clear();
        Ok(())
    }

    /// Adds once more, in parts, what is not committed because the graph refused a batch.
    fn mend(&mut self, refused: Refused) -> Result<(), LoadError> {
        let mut left = refused.pieces;
        left.append(&mut self.gathered);
        left.reverse();
        self.go_back()?;
        let mut conflicts = 0;
        while let Some(mut piece) = left.pop() {
            let until = self.add(&piece)?;
            if until < piece.items.end {
                left.push(Piece { batch: piece.batch.clone(), items: until..piece.items.end });
                piece.items.end = until;
            }
            self.note(false)?;
            let Some(Refused { error, .. }) = self.outcome()? else {
                conflicts = 0;
                self.check_errors()?;
                continue;
            };
            self.go_back()?;
            if piece.items.len() > 1 {
                let middle = piece.items.start + piece.items.len() / 2;
                left.push(Piece { batch: piece.batch.clone(), items: middle..until });
                piece.items.end = middle;
                left.push(piece);
            } else if error.is_retryable() && conflicts < CONFLICTS_MAX {
                conflicts += 1;
                left.push(piece);
            } else {
                conflicts = 0;
                self.refuse(&piece, &error)?;
            }
        }
        Ok(())
    }

    /// Rejects the one record of a piece, which the graph refused.
    fn refuse(&mut self, piece: &Piece, error: &StoreError) -> Result<(), LoadError> {
        let index = piece.items.start;
        self.count(&piece.batch, index);
        match &piece.batch.items[index].content {
            // It is no record of its own: the edge that names it has no end and is rejected.
            Ok(Record::Vertex(vertex)) if vertex.implied => {}
            _ => {
                self.now.counts.read += 1;
                self.reject(&piece.batch, index, error.to_string());
            }
        }
        self.note(false)?;
        if let Some(Refused { error, .. }) = self.outcome()? {
            return Err(error.into());
        }
        self.check_errors()
    }

    fn reject(&mut self, batch: &Batch, index: usize, reason: String) {
        let item = &batch.items[index];
        self.now.counts.rejected += 1;
        self.rejections.push(entry(&batch.file, item.line, item.column, &reason, &batch.row(item)));
        self.last_reason = reason;
    }

    /// Adds the items of a piece to the next batch, up to the one with which there are too many rejections; gives where it ended.
    fn add(&mut self, piece: &Piece) -> Result<usize, LoadError> {
        let batch = &piece.batch;
        for index in piece.items.clone() {
            self.count(batch, index);
            let outcome = match &batch.items[index].content {
                Ok(Record::Vertex(vertex)) if vertex.implied => {
                    match self.imply_vertex(vertex) {
                        // The edge that names it has no end and is rejected.
                        Ok(()) | Err(Refusal::Rejected(_)) => {}
                        Err(Refusal::Store(error)) => return Err(error.into()),
                    }
                    continue;
                }
                Ok(Record::Vertex(vertex)) => self.vertex(vertex).map(|()| self.now.counts.vertices += 1),
                Ok(Record::Edge(edge)) => self.edge(edge).map(|()| self.now.counts.edges += 1),
                Err(reason) => Err(Refusal::Rejected(reason.clone())),
            };
            self.now.counts.read += 1;
            match outcome {
                Ok(()) => {}
                Err(Refusal::Store(error)) => return Err(LoadError::Store(error)),
                Err(Refusal::Rejected(reason)) => {
                    self.reject(batch, index, reason);
                    if self.has_too_many_errors() {
                        return Ok(index + 1);
                    }
                }
            }
        }
        Ok(piece.items.end)
    }

    /// Property ids of the file may be taken in this graph, so properties get new ones.
    fn vertex(&mut self, record: &VertexRecord) -> Result<(), Refusal> {
        let properties = record.properties.iter().map(|property| BulkProperty {
            key: &property.key,
            value: property.value.clone(),
            cardinality: property.cardinality,
            meta: property.meta.iter().map(|(key, value)| (&**key, value.clone())).collect(),
        });
        let properties = properties.collect();
        self.bulk.add_vertex(&record.label, Some(record.id.clone()), properties)?;
        Ok(())
    }

    fn edge(&mut self, record: &EdgeRecord) -> Result<(), Refusal> {
        let find =
            |id: &Value, end: &str| self.bulk.find_vertex(id).ok_or_else(|| Refusal::Rejected(missing_end(end, id)));
        let (out, in_) = (find(&record.out_id, "source")?, find(&record.in_id, "target")?);
        let properties = record.properties.iter().map(|(key, value)| (&**key, value.clone())).collect();
        self.bulk.add_edge(&record.label, out, in_, record.id.clone(), properties)?;
        Ok(())
    }

    fn imply_vertex(&mut self, vertex: &VertexRecord) -> Result<(), Refusal> {
        if self.bulk.find_vertex(&vertex.id).is_none() {
            self.bulk.add_vertex(&vertex.label, Some(vertex.id.clone()), Vec::new())?;
            self.now.counts.implied_vertices += 1;
        }
        Ok(())
    }
}

/// Whether a batch was refused because of what is in it: some other batch may be accepted.
fn is_of_record(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::DuplicateVertex { .. }
            | StoreError::DuplicateEdge { .. }
            | StoreError::NoSuchVertex { .. }
            | StoreError::UnsupportedValue { .. }
            | StoreError::LimitReached { .. }
            | StoreError::TransactionTooLarge { .. }
            | StoreError::SchemaViolation { .. }
            | StoreError::UniqueViolation { .. }
            | StoreError::Conflict { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use ficus_storage::simulated_disk::{Faults, SimulatedDisk};
    use ficus_storage::{Store, StoreOptions};

    use crate::load::find;
    use crate::load::job::{Choices, Job, Report};
    use crate::load::progress::Progress;
    use crate::load::report::Rejects;

    const ROWS: u64 = 40_000;

    /// Loads a file, going on where the last load ended; the graph has elements.
    fn load(store: &Store, file: &std::path::Path) -> Report {
        let parameters = [("resume", "true"), ("max-errors", "100000")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let choices = Choices::from_parameters(&parameters).expect("they are known");
        let found = find(&choices.sources(vec![file.to_owned()])).expect("it is there");
        let job = Job::new(store, "g", found, choices, "", &mut |_| {}).expect("it may begin");
        let mut rejects = Rejects::to_lines(Box::new(std::io::sink()), job.reject_bytes());
        job.run(&mut rejects, &mut Progress::new(0, true)).expect("it begins")
    }

    #[test]
    fn a_load_that_finds_the_disk_full_goes_on_without_a_hole() {
        let folder = std::env::temp_dir().join(format!("ficus-full-disk-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let file = folder.join("persons.csv");
        let mut rows = String::from(":ID,age:int,:LABEL\n");
        for id in 0..ROWS {
            let age = if id % 100 == 3 { "old".to_owned() } else { (id % 90).to_string() };
            let _ = writeln!(rows, "{id},{age},person");
        }
        std::fs::write(&file, rows).expect("it can be written");
        let disk = SimulatedDisk::new();
        let mut options = StoreOptions::default();
        options.log_segment_bytes = 50_000;
        let store = Store::open(options, disk.environment()).expect("it is empty");
        let graph = store.create_graph("g").expect("there is none");
        let mut transaction = graph.begin();
        transaction.add_vertex("person", None).expect("it is the first");
        transaction.commit().expect("there is room");
        let mut ends = 0;
        let report = loop {
            let capacity_bytes = Some(disk.used_bytes() + 200_000);
            disk.set_faults(Faults { capacity_bytes, hides_room: true, ..Faults::default() });
            let report = load(&store, &file);
            // What is told is what is there.
            assert!(report.balanced);
            assert_eq!(graph.vertex_count(), 1 + report.counts.vertices);
            if report.complete {
                break report;
            }
            assert!(report.error.is_some_and(|error| error.contains("disk is full")));
            ends += 1;
            assert!(ends < 100, "it comes no further");
        };
        assert!(ends > 1, "the disk was never full");
        assert_eq!((report.counts.vertices, report.counts.rejected), (ROWS - ROWS / 100, ROWS / 100));
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
