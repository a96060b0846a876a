//! Loads a graph that has never held anything: pieces of the files are read by all threads and taken in their order.
//!
//! ```text
//! files ─▶ RowChunks ─▶ threads: TableReader ─▶ pieces, in order ─▶ VertexLoad / EdgeLoad ─▶ segments
//!       └▶ readers of other forms, one thread per file ──▲
//! ```
//! Whoever takes a piece of a file also queues the place where its result will appear, both under one lock; the taker goes
//! through that queue. So the order does not depend on which thread is faster, and what is read ahead is bounded.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use ficus_storage::{EdgeLoad, IdPrefixes, StoreError, VertexDirectory, VertexLoad};

use super::fast_table::TableReader;
use super::loader::{LoadError, LoadOptions};
use super::piece::{Piece, PieceBuilder, Rejected};
use super::progress::Progress;
use super::record::{Batch, Consumer, Pass, ReadError, Sink, Stopped};
use super::references::FileReferences;
use super::report::{Counts, Rejects};
use super::row_chunks::{CHUNK_BYTES, Chunk, RowChunks};
use super::sources::Source;

/// Pieces read ahead per thread.
const PIECES_AHEAD: usize = 4;

/// Batches read ahead of a file that one thread reads.
const BATCHES_AHEAD: usize = 8;

/// Reads all sources into a load. `counts` is true even if the load ends early; nothing is in any graph yet.
pub fn read_all(
    mut vertices: VertexLoad,
    sources: &[Source],
    options: &LoadOptions,
    rejects: &mut Rejects,
    progress: &mut Progress,
    counts: &mut Counts,
) -> Result<EdgeLoad, LoadError> {
    let spaces = sources.iter().filter_map(Source::plan).flat_map(|plan| plan.id_spaces());
    let prefixes: Vec<String> = spaces.map(|space| format!("{space}:")).collect();
    vertices.expect_prefixes(IdPrefixes::new(prefixes.iter().map(String::as_str)));
    let prefixes = vertices.prefixes();
    let mut taker = Taker { counts, rejects, errors_max: options.errors_max };
    let mut references: Vec<FileReferences> = sources.iter().map(|_| FileReferences::default()).collect();
    let all: Vec<usize> = (0..sources.len()).collect();
    let reading = Reading { sources, pass: Pass::Vertices, directory: None, prefixes: &prefixes };
    reading.run(&all, options.threads, progress, &mut |mut piece, source, line, progress| {
        let (first, kept) = (vertices.next_vertex(), piece.references.take());
        let rejected = taker.counts.rejected;
        let counts = taker.vertices(&mut vertices, piece, &sources[source].name, line)?;
        references[source].add(first, kept.filter(|_| counts.rejected == rejected));
        progress.update(&counts)
    })?;
    for warning in sources.iter().filter_map(Source::warning) {
        progress.remark(&format!("warning: {warning}"));
    }
    let mut edges = vertices.into_edges();
    let directory = edges.directory();
    let mut unread = Vec::new();
    for (number, references) in references.into_iter().enumerate() {
        let keys = sources[number].table().map_or(&[][..], |(plan, _)| plan.foreign_keys());
        match references.edges(keys, &directory, options.threads)? {
            None => unread.push(number),
            Some(chunks) => {
                for chunk in chunks {
                    taker.counts.edges += chunk.len() as u64;
                    taker.counts.read += chunk.len() as u64;
                    edges.add(chunk)?;
                }
                progress.passed_over(sources[number].bytes);
                progress.update(taker.counts)?;
            }
        }
    }
    let reading = Reading { sources, pass: Pass::Edges, directory: Some(&directory), prefixes: &prefixes };
    reading.run(&unread, options.threads, progress, &mut |piece, source, line, progress| {
        let counts = taker.edges(&mut edges, piece, &sources[source].name, line)?;
        progress.update(&counts)
    })?;
    Ok(edges)
}

/// What comes through the queue.
enum Message {
    /// What was read.
    Piece(Box<Piece>),
    /// The file cannot be read on. The line counts from the start of the piece; 0 means the whole file.
    Failed { line: u64, reason: String },
}

/// A place in the queue: what appears here comes from one source.
struct Place {
    source: usize,
    /// Lines in front of the first piece of the source.
    header_lines: Option<u64>,
    messages: Receiver<Message>,
}

/// A part of the work, for one thread.
enum Task {
    Rows { source: usize, chunk: Chunk, result: SyncSender<Message> },
    Group { source: usize, group: usize, result: SyncSender<Message> },
    Whole { source: usize, result: SyncSender<Message> },
}

/// Hands out work in the order of the sources.
struct Feed<'a> {
    sources: &'a [Source],
    pass: Pass,
    /// Sources that have not been begun.
    rest: std::slice::Iter<'a, usize>,
    current: Option<(usize, RowChunks, Option<u64>)>,
    /// The source whose groups of rows are handed out, and those that were not yet.
    groups: Option<(usize, std::ops::Range<usize>)>,
    queue: SyncSender<Place>,
    bytes_read: Arc<AtomicU64>,
}

impl Feed<'_> {
    /// The next part of the work; `None` if there is none, or nobody waits for it.
    fn next_task(&mut self) -> Option<Task> {
        loop {
            if let Some((source, chunks, header_lines)) = &mut self.current {
                let (source, header_lines) = (*source, header_lines.take());
                match chunks.next_chunk() {
                    Ok(Some(chunk)) => {
                        let result = self.queue(source, header_lines, 1)?;
                        return Some(Task::Rows { source, chunk, result });
                    }
                    Ok(None) => self.current = None,
                    Err(error) => {
                        self.fail(source, error);
                        return None;
                    }
                }
                continue;
            }
            if let Some((source, groups)) = &mut self.groups {
                let (source, next) = (*source, groups.next());
                let Some(group) = next else {
                    self.groups = None;
                    continue;
                };
                // Rows have their numbers in the file.
                let result = self.queue(source, Some(0), BATCHES_AHEAD)?;
                return Some(Task::Group { source, group, result });
            }
            let source = *self.rest.next()?;
            let file = &self.sources[source];
            if !file.speaks_in(self.pass) {
                continue;
            }
            if file.groups() > 0 {
                self.groups = Some((source, 0..file.groups()));
                continue;
            }
            let Some((_, dialect)) = file.table() else {
                let result = self.queue(source, Some(0), BATCHES_AHEAD)?;
                return Some(Task::Whole { source, result });
            };
            match file.open_rows(self.bytes_read.clone()) {
                Ok((input, lines)) => {
                    self.current = Some((source, RowChunks::new(input, dialect, CHUNK_BYTES), Some(lines)));
                }
                Err(error) => {
                    self.fail(source, error);
                    return None;
                }
            }
        }
    }

    fn queue(&mut self, source: usize, header_lines: Option<u64>, bound: usize) -> Option<SyncSender<Message>> {
        let (result, messages) = sync_channel(bound);
        self.queue.send(Place { source, header_lines, messages }).ok()?;
        Some(result)
    }

    /// Tells of a file that cannot be read; no more work is handed out.
    fn fail(&mut self, source: usize, error: std::io::Error) {
        self.rest = [].iter();
        self.current = None;
        if let (Some(result), ReadError::File { line, reason }) = (self.queue(source, None, 1), error.into()) {
            // If nobody listens the load is over anyway.
            let _ = result.send(Message::Failed { line, reason });
        }
    }
}

type Take<'a> = dyn FnMut(Piece, usize, u64, &mut Progress) -> Result<(), LoadError> + 'a;

/// One pass over sources.
#[derive(Clone, Copy)]
struct Reading<'a> {
    sources: &'a [Source],
    pass: Pass,
    directory: Option<&'a VertexDirectory>,
    prefixes: &'a Arc<IdPrefixes>,
}

impl Reading<'_> {
    /// Reads the sources with the numbers `chosen`.
    fn run(
        self,
        chosen: &[usize],
        threads: usize,
        progress: &mut Progress,
        take: &mut Take<'_>,
    ) -> Result<(), LoadError> {
        let (queue, places) = sync_channel(threads * PIECES_AHEAD);
        let (sources, pass, rest) = (self.sources, self.pass, chosen.iter());
        // Locked while a piece is cut from a file and its place is queued, in that order.
        let bytes_read = progress.bytes_read();
        let own_bytes_read = bytes_read.clone();
        let feed = Mutex::new(Feed { sources, pass, rest, current: None, groups: None, queue, bytes_read });
        std::thread::scope(|scope| {
            let feed = Arc::new(feed);
            for _ in 0..threads.max(1) {
                let (feed, bytes_read) = (feed.clone(), own_bytes_read.clone());
                scope.spawn(move || {
                    // A poisoned lock means that another thread panicked, which ends the scope with that panic.
                    while let Some(task) = feed.lock().ok().and_then(|mut feed| feed.next_task()) {
                        // Without the feed: who holds it may wait for room in the queue, which comes when this task is done.
                        self.work(task, &bytes_read);
                    }
                });
            }
            drop(feed);
            // The queue ends with this closure, whatever its outcome: threads then see that nobody listens.
            take_in_order(sources, places, progress, take)
        })
    }

    fn work(self, task: Task, bytes_read: &Arc<AtomicU64>) {
        let Reading { sources, pass, directory, prefixes } = self;
        match task {
            Task::Rows { source, chunk, result } => {
                let file = &sources[source];
                let Some((plan, dialect)) = file.table() else { return };
                let reader = TableReader { plan, dialect, pass, name: file.name.clone(), directory, prefixes };
                match reader.read(chunk) {
                    Ok(piece) => {
                        let _ = result.send(Message::Piece(Box::new(piece)));
                    }
                    Err(error) => send_failure(&result, error),
                }
            }
            Task::Group { source, group, result } => {
                let file = &sources[source];
                self.read_batches(file, &result, |sink| file.read_group(group, pass, sink, bytes_read));
            }
            Task::Whole { source, result } => {
                let file = &sources[source];
                self.read_batches(file, &result, |sink| file.read(pass, sink, bytes_read.clone()));
            }
        }
    }

    /// Sends what `read` gives, and why it could not go on.
    fn read_batches(
        self,
        file: &Source,
        result: &SyncSender<Message>,
        read: impl FnOnce(&mut Sink<'_>) -> Result<(), ReadError>,
    ) {
        let mut batches = Batches { result, directory: self.directory, prefixes: self.prefixes };
        let mut sink = Sink::new(file.name.clone(), &mut batches);
        if let Err(error) = read(&mut sink) {
            // What was read before the failure counts.
            let _ = sink.flush();
            send_failure(result, error);
        }
    }
}

fn send_failure(result: &SyncSender<Message>, error: ReadError) {
    if let ReadError::File { line, reason } = error {
        // A closed channel means that the load is over.
        let _ = result.send(Message::Failed { line, reason });
    }
}

/// Makes pieces of batches.
struct Batches<'a> {
    result: &'a SyncSender<Message>,
    directory: Option<&'a VertexDirectory>,
    prefixes: &'a Arc<IdPrefixes>,
}

impl Consumer for Batches<'_> {
    fn take(&mut self, batch: Batch) -> Result<(), Stopped> {
        let piece = PieceBuilder::new(self.directory, self.prefixes).of_batch(batch);
        self.result.send(Message::Piece(Box::new(piece))).map_err(|_| Stopped)
    }
}

fn take_in_order(
    sources: &[Source],
    places: Receiver<Place>,
    progress: &mut Progress,
    take: &mut Take<'_>,
) -> Result<(), LoadError> {
    let mut lines = 0;
    for place in places {
        let file = &sources[place.source].name;
        if let Some(header_lines) = place.header_lines {
            lines = header_lines;
        }
        for message in place.messages {
            match message {
                Message::Piece(piece) => {
                    let own = piece.origin.lines();
                    take(*piece, place.source, lines, progress)?;
                    lines += own;
                }
                Message::Failed { line, reason } => {
                    // Line 0 means the whole file.
                    let line = if line > 0 { line + lines } else { 0 };
                    return Err(LoadError::File { name: file.to_string(), line, reason });
                }
            }
        }
    }
    Ok(())
}

/// Gives pieces to the load, counts, and reports what is left out.
struct Taker<'a> {
    counts: &'a mut Counts,
    rejects: &'a mut Rejects,
    errors_max: u64,
}

impl Taker<'_> {
    fn vertices(
        &mut self,
        load: &mut VertexLoad,
        piece: Piece,
        file: &str,
        first_line: u64,
    ) -> Result<Counts, LoadError> {
        let Piece { vertices, vertex_places, implied, mut rejected, origin, .. } = piece;
        if !vertices.is_empty() {
            let read = vertices.len() as u64;
            let refused = load.add(vertices)?;
            self.counts.vertices += read - refused.len() as u64;
            self.counts.read += read - refused.len() as u64;
            for refused in refused {
                let (line, row) = origin.at(vertex_places[refused.row as usize]);
                let reason = StoreError::DuplicateVertex { id: refused.id }.to_string();
                rejected.push(Rejected { line, column: 0, reason, row });
            }
        }
        if !implied.is_empty() {
            self.counts.implied_vertices += load.add_missing(&implied)?;
        }
        self.report(rejected, file, first_line)
    }

    fn edges(&mut self, load: &mut EdgeLoad, piece: Piece, file: &str, first_line: u64) -> Result<Counts, LoadError> {
        let Piece { edges, edge_places, mut rejected, origin, .. } = piece;
        if !edges.is_empty() {
            let read = edges.len() as u64;
            let refused = load.add(edges)?;
            self.counts.edges += read - refused.len() as u64;
            self.counts.read += read - refused.len() as u64;
            for refused in refused {
                let (line, row) = origin.at(edge_places[refused.row as usize]);
                let reason = StoreError::DuplicateEdge { id: refused.id }.to_string();
                rejected.push(Rejected { line, column: 0, reason, row });
            }
        }
        self.report(rejected, file, first_line)
    }

    /// Counts and reports what was left out, which was read as well.
    fn report(&mut self, mut rejected: Vec<Rejected>, file: &str, first_line: u64) -> Result<Counts, LoadError> {
        rejected.sort_by_key(|rejected| rejected.line);
        for Rejected { line, column, reason, row } in rejected {
            self.counts.read += 1;
            self.counts.rejected += 1;
            self.rejects.add(file, first_line + line, column, &reason, &row).map_err(LoadError::Report)?;
            if self.counts.rejected > self.errors_max {
                return Err(LoadError::TooManyErrors { limit: self.errors_max, last: reason });
            }
        }
        Ok(*self.counts)
    }
}
