//! Puts records into a graph: an empty one is built as a whole ([`super::direct`]), another gets batches from one
//! writer ([`super::writer`]).
//!
//! All vertices are written before the first edge. Files are read ahead by several threads, each into a bounded channel
//! of its own, and drained in order, so that the same input gives the same graph whatever the number of threads.
//! A record that does not fit is rejected and reported; the others are not disturbed.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use ficus_storage::{Graph, StoreError, Transaction};

use super::placement::{Refusal, add_edge, add_vertex};
use super::progress::Progress;
use super::record::{Batch, Consumer, Pass, ReadError, Record, Sink, Stopped};
use super::report::{Counts, Rejects};
use super::resume::{self, Position};
use super::sources::Source;
use super::writer::Writer;

/// Batches read ahead per file.
const BATCHES_AHEAD: usize = 8;

/// How a load is done.
pub struct LoadOptions {
    /// Threads that read and parse.
    pub threads: usize,
    /// Rejections after which the load is given up.
    pub errors_max: u64,
    /// Read and check everything, put nothing into a graph that has no elements.
    pub dry_run: bool,
    /// Where to begin: what was taken before is passed over.
    pub position: Position,
}

/// Why a load ended early.
#[derive(Debug)]
pub enum LoadError {
    /// More records were rejected than the user allows.
    TooManyErrors {
        /// The bound.
        limit: u64,
        /// The last reason.
        last: String,
    },
    /// A file is unusable.
    File {
        /// Which.
        name: String,
        /// Line, 0 if it concerns the whole file.
        line: u64,
        /// Why.
        reason: String,
    },
    /// What an interrupted load took is not what stands in the files now.
    OtherRows {
        /// Records that it took.
        items: u64,
    },
    /// The store refuses to go on.
    Store(StoreError),
    /// The report of rejected records cannot be written.
    Report(std::io::Error),
    /// It was called off.
    Stopped,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::TooManyErrors { limit, last } => write!(
                f,
                "more than {limit} records were rejected, the last because: {last}; mend the input or raise --max-errors"
            ),
            LoadError::File { name, line: 0, reason } => write!(f, "{name}: {reason}"),
            LoadError::File { name, line, reason } => write!(f, "{name}, line {line}: {reason}"),
            LoadError::OtherRows { items } => write!(
                f,
                "the first {items} records of the files are not those that the interrupted load took; give the same files, \
                 or --forget it"
            ),
            LoadError::Store(error) => write!(f, "the store: {error}"),
            LoadError::Report(error) => write!(f, "the report of rejected records cannot be written: {error}"),
            LoadError::Stopped => write!(f, "the load was called off"),
        }
    }
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> LoadError {
        LoadError::Store(error)
    }
}

/// Loads all sources; `counts` is true even if the load ends early. A graph that has never had elements gets all or nothing.
pub fn load(
    graph: &Arc<Graph>,
    sources: &[Source],
    options: &LoadOptions,
    rejects: &mut Rejects,
    progress: &mut Progress,
    counts: &mut Counts,
) -> Result<(), LoadError> {
    if let Some(whole) = graph.load() {
        let whole = super::direct::read_all(whole, sources, options, rejects, progress, counts)?;
        progress.update(counts)?;
        progress.finish();
        if !options.dry_run {
            let reject_bytes = rejects.flush().map_err(LoadError::Report)?;
            let position = Position { counts: *counts, reject_bytes, done: true, ..options.position.clone() };
            whole.finish_noting(options.threads, Some((resume::NOTE, &position.write())))?;
        }
        return Ok(());
    }
    let mut writer = Writer::new(graph, &options.position, rejects, options.errors_max)?;
    let outcome = run_passes(sources, options.threads, &mut writer, progress).and_then(|()| writer.finish());
    *counts = writer.end();
    outcome?;
    progress.finish();
    Ok(())
}

/// Loads the compact form from memory, as one transaction: the graph gets all of it or nothing.
pub fn load_compact(graph: &Arc<Graph>, text: &[u8]) -> Result<Counts, LoadError> {
    let mut consumer = OneTransaction { transaction: graph.begin(), counts: Counts::default(), failure: None };
    for pass in [Pass::Vertices, Pass::Edges] {
        let mut sink = Sink::new(Arc::from("demo"), &mut consumer);
        let mut input = text;
        let outcome = super::compact::read(&mut input, pass, &mut sink).and_then(|()| Ok(sink.flush()?));
        match (outcome, consumer.failure.take()) {
            (_, Some(failure)) => return Err(failure),
            (Err(ReadError::File { line, reason }), None) => {
                return Err(LoadError::File { name: "demo".into(), line, reason });
            }
            (Ok(()) | Err(ReadError::Stopped), None) => {}
        }
    }
    consumer.transaction.commit()?;
    Ok(consumer.counts)
}

/// Writes batches as they come, without another thread, until the first record that does not fit.
struct OneTransaction {
    transaction: Transaction,
    counts: Counts,
    failure: Option<LoadError>,
}

impl Consumer for OneTransaction {
    fn take(&mut self, batch: Batch) -> Result<(), Stopped> {
        for item in &batch.items {
            let outcome = match &item.content {
                Ok(Record::Vertex(vertex)) => {
                    add_vertex(&mut self.transaction, vertex).map(|()| self.counts.vertices += 1)
                }
                Ok(Record::Edge(edge)) => add_edge(&mut self.transaction, edge).map(|()| self.counts.edges += 1),
                Err(reason) => Err(Refusal::Rejected(reason.clone())),
            };
            self.counts.read += 1;
            if let Err(refusal) = outcome {
                self.failure = Some(refusal.into_error(&batch.file, item.line));
                return Err(Stopped);
            }
        }
        Ok(())
    }
}

enum Message {
    Batch(Batch),
    Failed { line: u64, reason: String },
}

struct ChannelConsumer<'a>(&'a SyncSender<Message>);

impl Consumer for ChannelConsumer<'_> {
    fn take(&mut self, batch: Batch) -> Result<(), Stopped> {
        self.0.send(Message::Batch(batch)).map_err(|_| Stopped)
    }
}

fn run_passes(
    sources: &[Source],
    threads: usize,
    writer: &mut Writer<'_>,
    progress: &mut Progress,
) -> Result<(), LoadError> {
    for pass in [Pass::Vertices, Pass::Edges] {
        let speaking: Vec<&Source> = sources.iter().filter(|source| source.speaks_in(pass)).collect();
        run_pass(&speaking, pass, threads, writer, progress)?;
        if pass == Pass::Vertices {
            for warning in sources.iter().filter_map(Source::warning) {
                progress.remark(&format!("warning: {warning}"));
            }
        }
    }
    Ok(())
}

fn run_pass(
    sources: &[&Source],
    pass: Pass,
    threads: usize,
    writer: &mut Writer<'_>,
    progress: &mut Progress,
) -> Result<(), LoadError> {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        sources.iter().map(|_| sync_channel(BATCHES_AHEAD)).map(|(sender, receiver)| (Some(sender), receiver)).unzip();
    // Each sender is taken once, by the thread that reads the file; the lock is held for that moment only.
    let senders = Mutex::new(senders);
    let next = AtomicUsize::new(0);
    let bytes_read = progress.bytes_read();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, sources.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(source) = sources.get(index) else { return };
                    let sender = match senders.lock() {
                        Ok(mut senders) => senders[index].take(),
                        Err(_) => return,
                    };
                    let Some(sender) = sender else { return };
                    let mut consumer = ChannelConsumer(&sender);
                    let mut sink = Sink::new(source.name.clone(), &mut consumer);
                    match source.read(pass, &mut sink, bytes_read.clone()) {
                        Ok(()) => {}
                        Err(ReadError::Stopped) => return,
                        Err(ReadError::File { line, reason }) => {
                            // What was read before the failure counts; a closed channel means the load is over anyway.
                            let _ = sink.flush();
                            let _ = sender.send(Message::Failed { line, reason });
                            return;
                        }
                    }
                }
            });
        }
        // Receivers end with this closure, whatever its outcome: blocked readers then see that nobody listens.
        drain(sources, receivers, writer, progress)
    })
}

fn drain(
    sources: &[&Source],
    receivers: Vec<Receiver<Message>>,
    writer: &mut Writer<'_>,
    progress: &mut Progress,
) -> Result<(), LoadError> {
    for (source, receiver) in sources.iter().zip(receivers) {
        for message in receiver {
            match message {
                Message::Batch(batch) => writer.take(batch)?,
                Message::Failed { line, reason } => {
                    return Err(LoadError::File { name: source.name.to_string(), line, reason });
                }
            }
            progress.update(writer.counts())?;
        }
    }
    Ok(())
}
