//! Graphs as wholes in a running server: making and removing them, loads and exports beside queries.
//!
//! ```text
//! body ─► spool (files of the archive, in a folder of their own) ─► load::job ─► store
//!                                    lines: how far, remarks, rejected records, report ─► client
//! ```
//! Files are kept until the load ends, since all vertices are read before the first edge. Loads and exports run on threads
//! of low priority; one load at a time.

mod loads;
mod reject_lines;
mod spool;

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use ficus_server::engine::Sources;
use ficus_server::transfer::{GraphService, PieceReader, PieceWriter, Reply, TransferRequest};
use ficus_server::{Failure as Refusal, catalogue, no_such_graph};
use ficus_storage::{ErrorKind, Store, StoreError};
use serde_json::{Value as Json, json};

use self::loads::{Far, Loads, Place};
use self::reject_lines::RejectLines;
use self::spool::Spool;
use crate::export::{Export, TargetForm};
use crate::load::job::{Choices, Job};
use crate::load::progress::{Listener, Progress};
use crate::load::report::{Counts, Rejects};

/// What a thread of a load or an export adds to its niceness: queries go first.
const NICENESS: i32 = 10;

/// The graphs of a store.
pub struct StoreGraphs {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<Store>,
    sources: Arc<Sources>,
    /// Where files are kept while they are loaded, and reports of rejected records until the next load.
    incoming: PathBuf,
    /// Whether that folder is ours alone, to be removed with us.
    is_temporary: bool,
    upload_bytes: u64,
    loads: Loads,
    /// Graphs of which the log says that they are damaged.
    told_damage: Mutex<BTreeSet<String>>,
    /// Why no checkpoint could be taken, as the log says it.
    told_checkpoint: Mutex<Option<String>>,
}

fn refused(reason: impl Into<String>) -> Refusal {
    Refusal::new(&catalogue::TRANSFER_REFUSED, reason)
}

fn store_failure(error: &StoreError) -> Refusal {
    match error.kind() {
        ErrorKind::Caller => refused(error.to_string()),
        ErrorKind::Corrupt => Refusal::new(&catalogue::DAMAGED, error.to_string()),
        _ => Refusal::new(&catalogue::STORE, error.to_string()),
    }
}

impl StoreGraphs {
    /// For the graphs of `store`; those that are made become `sources`. Files of loads wait in a folder of the data directory,
    /// or in one for temporary files where there is none; what an earlier server left of them is removed.
    pub fn new(store: Arc<Store>, sources: Arc<Sources>, data_dir: Option<&Path>, upload_bytes: u64) -> StoreGraphs {
        let (incoming, is_temporary) = match data_dir {
            Some(directory) => (directory.join("incoming"), false),
            None => (std::env::temp_dir().join(format!("ficus-incoming-{}", std::process::id())), true),
        };
        let loads = Loads::default();
        let (told_damage, told_checkpoint) = Default::default();
        let shared =
            Shared { store, sources, incoming, is_temporary, upload_bytes, loads, told_damage, told_checkpoint };
        // What cannot be removed takes up room and nothing else.
        let _ = std::fs::remove_dir_all(shared.files());
        StoreGraphs { shared: Arc::new(shared) }
    }

    /// Says in the log which graphs are damaged, those each once. In between, `GET /v1/graphs` and the metrics tell.
    pub fn log_damage(&self) {
        let mut told = self.shared.told_damage.lock().unwrap_or_else(PoisonError::into_inner);
        for (graph, error) in self.shared.store.damaged_graphs() {
            if told.insert(graph.clone()) {
                tracing::error!(graph, %error, "a file of the graph is damaged: it is neither read nor written any more");
            }
        }
    }

    /// Says in the log if no checkpoint could be taken, once for every reason. In between, the metrics tell.
    pub fn log_checkpoints(&self) {
        let failure = self.shared.store.checkpoint_failure().map(|error| error.to_string());
        let mut told = self.shared.told_checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = failure.as_ref().filter(|_| *told != failure) {
            tracing::warn!(%error, "a checkpoint failed");
        }
        *told = failure;
    }

    /// Ends loads and exports that run, and waits for them.
    pub fn stop(&self) {
        self.shared.loads.stop();
    }

    /// Does something on a thread of its own, of low priority.
    fn aside(&self, name: &str, work: impl FnOnce(&Shared) + Send + 'static) {
        let shared = self.shared.clone();
        let work = move || {
            if cfg!(target_os = "linux") {
                // Where this is refused queries are slower beside it, and right.
                let _ = rustix::process::nice(NICENESS);
            }
            work(&shared);
        };
        if let Err(error) = std::thread::Builder::new().name(name.to_owned()).spawn(work) {
            tracing::error!(%error, name, "a thread could not be started");
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = std::fs::remove_dir_all(&self.incoming);
        }
    }
}

impl GraphService for StoreGraphs {
    fn write_metrics(&self, out: &mut String) {
        self.shared.loads.write_metrics(out);
    }

    fn list(&self) -> Vec<Json> {
        let load = self.shared.loads.now();
        let described = |(name, graph): (&String, &Arc<ficus_storage::Graph>)| {
            let mut entry = json!({"name": name, "vertices": graph.vertex_count(), "edges": graph.edge_count()});
            if let Some(damage) = graph.damage() {
                entry["damage"] = json!(damage.to_string());
            }
            if let Some((_, far)) = load.as_ref().filter(|(graph, _)| graph == name) {
                entry["load"] = told(far);
            }
            entry
        };
        self.shared.sources.all().iter().map(described).collect()
    }

    fn create(&self, name: &str) -> Result<(), Refusal> {
        if self.shared.sources.has(name) {
            return Err(refused(format!("there is a graph [{name}] already")));
        }
        let graph = self.shared.store.create_graph(name).map_err(|error| store_failure(&error))?;
        self.shared.sources.add(&graph);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), Refusal> {
        if !self.shared.sources.has(name) {
            return Err(no_such_graph(name));
        }
        if self.shared.loads.now().is_some_and(|(graph, _)| graph == name) {
            let message = format!("a load into graph [{name}] runs; end it before the graph is removed");
            return Err(Refusal::new(&catalogue::LOAD_RUNS, message));
        }
        self.shared.sources.remove(name);
        // Where it stays it is overwritten by the next graph of this name.
        let _ = std::fs::remove_file(self.shared.rejected(name));
        self.shared.store.drop_graph(name).map_err(|error| {
            // It is still there, for whatever reason.
            if let Some(graph) = self.shared.store.graph(name) {
                self.shared.sources.add(&graph);
            }
            store_failure(&error)
        })
    }

    fn load(&self, request: TransferRequest, upload: PieceReader, reply: Reply) {
        let Some(place) = self.shared.loads.begin(&request.graph) else {
            let running =
                self.shared.loads.now().map_or_else(String::new, |(graph, _)| format!(" into graph [{graph}]"));
            reply.refuse(Refusal::new(&catalogue::LOAD_RUNS, format!("another load{running} runs on this server")));
            return;
        };
        self.aside("ficus-load", move |shared| shared.load(&request, upload, reply, place));
    }

    fn export(&self, request: TransferRequest, reply: Reply) {
        self.aside("ficus-export", move |shared| shared.export(&request, reply));
    }
}

fn told(far: &Far) -> Json {
    json!({"bytes": far.bytes, "bytes_total": far.bytes_total, "counts": far.counts})
}

/// A load that was prepared: nothing keeps it from beginning.
struct Prepared {
    job: Job,
    remarks: Vec<String>,
    /// Kept until the load ends.
    _spool: Spool,
    /// What a load that keeps nothing loads into.
    _of_nothing: Option<Arc<Store>>,
}

impl Shared {
    /// Where files are kept while they are loaded.
    fn files(&self) -> PathBuf {
        self.incoming.join("files")
    }

    /// Where the report of the records that the last load into a graph rejected is.
    fn rejected(&self, graph: &str) -> PathBuf {
        self.incoming.join("rejected").join(format!("{graph}.jsonl"))
    }

    fn load(&self, request: &TransferRequest, upload: PieceReader, reply: Reply, place: Place) {
        let prepared = match self.prepare(request, upload) {
            Ok(prepared) => prepared,
            Err(failure) => {
                // Who is told may begin another one at once.
                drop(place);
                return reply.refuse(failure);
            }
        };
        let Prepared { job, remarks, _spool, _of_nothing } = prepared;
        let user = request.user.as_deref().unwrap_or_default();
        tracing::info!(graph = request.graph, user, bytes = job.bytes(), "load begins");
        let kept = match RejectLines::keep(&self.rejected(&request.graph), job.reject_bytes()) {
            Ok(kept) => kept,
            Err(error) => {
                let message =
                    format!("the report of the records that the interrupted load rejected: {error}; --forget it");
                drop(place);
                return reply.refuse(refused(message));
            }
        };
        let out = Lines(Arc::new(Mutex::new(reply.begin("application/x-ndjson", Vec::new()))));
        out.say(&json!({"begins": {"bytes": job.bytes()}}));
        remarks.iter().for_each(|remark| out.say(&json!({"remark": remark})));
        let reject_bytes = job.reject_bytes();
        let mut rejects = match kept.told_to(out.clone()) {
            Ok(lines) => Rejects::to_lines(Box::new(lines), reject_bytes),
            Err(error) => return out.break_off(error.to_string()),
        };
        let listener = ClientListener { out: out.clone(), far: place.far(), is_stopped: place.is_stopped() };
        let mut progress = Progress::to_listener(job.bytes(), Box::new(listener));
        match job.run(&mut rejects, &mut progress) {
            Ok(report) => {
                let Counts { vertices, edges, rejected, .. } = report.counts;
                let (complete, seconds) = (report.complete, report.seconds);
                let error = report.error.as_deref().unwrap_or_default();
                tracing::info!(
                    graph = request.graph,
                    complete,
                    vertices,
                    edges,
                    rejected,
                    seconds,
                    error,
                    "load ended"
                );
                drop((progress, rejects));
                match complete {
                    true => place.complete(report.counts),
                    false => drop(place),
                }
                out.say(&json!({"report": report}));
                out.end();
            }
            Err(failure) => {
                let message = failure.message().unwrap_or("the client went away").to_owned();
                tracing::warn!(graph = request.graph, message, "load failed");
                drop((progress, rejects, place));
                out.break_off(message);
            }
        }
    }

    /// Takes the files and looks whether they can be loaded.
    fn prepare(&self, request: &TransferRequest, upload: PieceReader) -> Result<Prepared, Refusal> {
        let mut choices = Choices::from_parameters(&request.parameters).map_err(refused)?;
        let how = choices.clone();
        let spool = Spool::take(&self.files(), upload, self.upload_bytes)?;
        let mut paths: Vec<PathBuf> = spool.files().to_vec();
        let named = choices.vertices.iter_mut().chain(&mut choices.edges).flat_map(|group| &mut group.files);
        for file in named.chain(&mut choices.mapping) {
            *file =
                spool.find(file).ok_or_else(|| refused(format!("{}: the archive has no such file", file.display())))?;
            paths.retain(|path| path != file);
        }
        let relative = |text: &str| text.replace(&spool.prefix(), "");
        let mapping = choices.mapping_text().map_err(|reason| refused(relative(&reason)))?;
        let mut found = crate::load::find(&choices.sources(paths)).map_err(|reason| refused(relative(&reason)))?;
        for source in &mut found.sources {
            source.name = relative(&source.name).into();
        }
        let mut remarks = Vec::new();
        let of_nothing = choices.dry_run.then(Store::in_memory);
        let store = of_nothing.as_ref().unwrap_or(&self.store);
        let how = how.how_read(&mapping);
        let mut talk = |remark: &str| remarks.push(relative(remark));
        let job = Job::new(store, &request.graph, found, choices, &how, &mut talk)
            .map_err(|failure| refused(relative(failure.message().unwrap_or_default())))?;
        if of_nothing.is_none() && !self.sources.has(&request.graph) {
            self.sources.add(job.graph());
        }
        Ok(Prepared { job, remarks, _spool: spool, _of_nothing: of_nothing })
    }

    fn export(&self, request: &TransferRequest, reply: Reply) {
        let (export, form) = match self.exported(request) {
            Ok(export) => export,
            Err(failure) => return reply.refuse(failure),
        };
        let (vertices, edges) = export.counts();
        let mut headers = vec![("ficus-vertices", vertices.to_string()), ("ficus-edges", edges.to_string())];
        headers.extend(export.remarks().iter().map(|remark| ("ficus-remark", remark.clone())));
        let content_type = match form {
            _ if form.is_folder() => "application/x-tar",
            TargetForm::Graphson => "application/json",
            TargetForm::Graphml => "application/xml",
            TargetForm::Compact => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        };
        let mut out = reply.begin(content_type, headers);
        let written = match form.is_folder() {
            false => {
                let mut buffer = BufWriter::new(&mut out);
                export.write_document(&mut buffer).and_then(|()| buffer.flush())
            }
            true => Spool::new(&self.files()).and_then(|spool| {
                export.write_folder(spool.folder()).map_err(std::io::Error::other)?;
                let mut archive = tar::Builder::new(&mut out);
                archive.append_dir_all("", spool.folder())?;
                archive.finish()
            }),
        };
        match written {
            // Who asked may have gone at the last moment.
            Ok(()) => drop(out.end()),
            Err(error) => {
                tracing::warn!(graph = request.graph, %error, "export ended early");
                out.break_off(error.to_string());
            }
        }
    }

    fn exported(&self, request: &TransferRequest) -> Result<(Export, TargetForm), Refusal> {
        let graph = self.sources.get(&request.graph).ok_or_else(|| no_such_graph(&request.graph))?;
        let (mut form, mut lossy) = (None, false);
        for (name, value) in &request.parameters {
            match (name.as_str(), value.as_str()) {
                ("to", name) => {
                    let known = || TargetForm::value_variants().iter().filter_map(|form| form.to_possible_value());
                    let named = TargetForm::from_str(name, true).map_err(|_| {
                        let known: Vec<_> = known().map(|form| form.get_name().to_owned()).collect();
                        refused(format!("`to` is {name:?}; it can be {}", known.join(", ")))
                    });
                    form = Some(named?);
                }
                ("lossy", "true" | "") => lossy = true,
                ("lossy", "false") => lossy = false,
                ("lossy", _) => return Err(refused(format!("`lossy` is {value:?}; it can be true or false"))),
                _ => return Err(refused(format!("an export has no parameter `{name}`; it has `to` and `lossy`"))),
            }
        }
        let form = form.ok_or_else(|| refused("the parameter `to` is missing: the form, such as graphson"))?;
        graph.damage().map_or(Ok(()), Err).map_err(|error| store_failure(&error))?;
        let export = Export::new(graph.snapshot(), form, lossy);
        Ok((export.map_err(|failure| refused(failure.message().unwrap_or_default()))?, form))
    }
}

/// The lines of an answer, shared by those who have something to say; all of them on one thread.
#[derive(Clone)]
pub struct Lines(Arc<Mutex<PieceWriter>>);

impl Lines {
    fn write(&self, write: impl FnOnce(&mut PieceWriter) -> std::io::Result<()>) -> std::io::Result<()> {
        match self.0.lock() {
            Ok(mut out) => write(&mut out),
            Err(_) => Err(std::io::Error::other("whoever wrote it panicked")),
        }
    }

    /// A line of its own, sent at once. If nobody reads it the load is called off soon.
    fn say(&self, what: &Json) {
        let _ = self.write(|out| {
            out.write_all(format!("{what}\n").as_bytes())?;
            out.flush()
        });
    }

    fn is_wanted(&self) -> bool {
        self.0.lock().is_ok_and(|out| out.is_wanted())
    }

    /// The writer, if nobody else has it.
    fn only(self) -> Option<PieceWriter> {
        Arc::into_inner(self.0)?.into_inner().ok()
    }

    fn end(self) {
        if let Some(out) = self.only() {
            // Who asked may have gone at the last moment.
            let _ = out.end();
        }
    }

    fn break_off(self, reason: String) {
        if let Some(out) = self.only() {
            out.break_off(reason);
        }
    }
}

/// Tells the client, and whoever looks, how far a load is; a client that goes away calls it off.
struct ClientListener {
    out: Lines,
    far: Arc<Mutex<Far>>,
    is_stopped: Arc<AtomicBool>,
}

impl Listener for ClientListener {
    fn update(&mut self, bytes: u64, bytes_total: u64, counts: &Counts) {
        let far = Far { bytes, bytes_total, counts: *counts };
        self.out.say(&json!({"progress": told(&far)}));
        if let Ok(mut known) = self.far.lock() {
            *known = far;
        }
    }

    fn remark(&mut self, text: &str) {
        self.out.say(&json!({"remark": text}));
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(std::sync::atomic::Ordering::Relaxed) || !self.out.is_wanted()
    }
}
