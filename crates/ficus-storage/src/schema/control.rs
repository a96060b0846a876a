//! Changing the schema of a graph, and the thread that works on its tasks.

use std::sync::Arc;
use std::sync::mpsc;

use super::{STEP_ELEMENTS, SchemaChange, Task, TaskState, TaskWork, TypeDefinition, TypeState};
use crate::commit_queue::CommitQueue;
use crate::index::ElementKind;
use crate::mutation::Body;
use crate::{Graph, IndexDefinition, IndexInfo, IndexKind, Snapshot, StoreError};

impl Graph {
    /// Makes a hash index of vertices by the values under `key`, and waits until it can be used. Does nothing if it
    /// exists. Commits go on meanwhile.
    pub fn create_index(&self, label: Option<&str>, key: &str) -> Result<(), StoreError> {
        self.define_index(&IndexDefinition::new(ElementKind::Vertex, label, &[key], IndexKind::Hash))?;
        self.finish_tasks()
    }

    /// Makes an index; does nothing if it exists. Over many elements it is built in the background: until then
    /// [`Graph::tasks`] shows how far it is, and no query uses it.
    ///
    /// Errors: `TaskFailed` if there are few elements and two of them have equal values that the index refuses.
    pub fn define_index(&self, definition: &IndexDefinition) -> Result<(), StoreError> {
        self.change_schema(SchemaChange::CreateIndex(definition.clone()))?;
        let snapshot = self.snapshot();
        if snapshot.root.indexes().iter().any(|own| own.shape.name == definition.name) {
            return Ok(());
        }
        let builds = |work: &TaskWork| matches!(work, TaskWork::BuildIndex { name, .. } if *name == definition.name);
        snapshot.failure_of(builds)
    }

    /// Removes an index; one that is being built is given up.
    pub fn drop_index(&self, name: &str) -> Result<(), StoreError> {
        self.change_schema(SchemaChange::DropIndex { name: Arc::from(name) })
    }

    /// Declares a type; does nothing if it is declared so already. Writes have to obey it at once. If there are many such
    /// elements already, they are looked at in the background; one that does not obey ends the declaration.
    ///
    /// Errors: `TaskFailed` if there are few and one of them does not obey.
    pub fn define_type(&self, definition: &TypeDefinition) -> Result<(), StoreError> {
        self.change_schema(SchemaChange::CreateType(definition.clone()))?;
        let snapshot = self.snapshot();
        if snapshot.root.type_named(definition.elements, &definition.label).is_some() {
            return Ok(());
        }
        let primary = definition.primary_index();
        let concerns = |work: &TaskWork| match work {
            TaskWork::VerifyType { elements, label } => *elements == definition.elements && *label == definition.label,
            TaskWork::BuildIndex { name, .. } => primary.as_ref().is_some_and(|own| own.name == *name),
            TaskWork::DropType { .. } => false,
        };
        snapshot.failure_of(concerns)
    }

    /// Removes the declaration of a type and, unless `keeps_elements`, its elements and indexes, in the background.
    pub fn drop_type(&self, elements: ElementKind, label: &str, keeps_elements: bool) -> Result<(), StoreError> {
        self.change_schema(SchemaChange::DropType { elements, label: Arc::from(label), keeps_elements })
    }

    /// Gives up a task; what it began is undone, except that removed elements stay removed.
    pub fn cancel_task(&self, task: u64) -> Result<(), StoreError> {
        self.change_schema(SchemaChange::CancelTask { task })
    }

    fn change_schema(&self, change: SchemaChange) -> Result<(), StoreError> {
        // What this is the last to hold of it, a dropped index perhaps, is given back here and not on the commit thread.
        let _before = self.snapshot();
        self.queue.commit(Body::Schema { graph: self.number, change, tells_words: true })?;
        self.queue.want_tasks();
        Ok(())
    }

    /// Running tasks and the last finished ones. What the finished ones did is visible.
    pub fn tasks(&self) -> Result<Vec<Task>, StoreError> {
        // A store that refuses writes still tells of its tasks.
        let _ = self.queue.barrier();
        let graph = self.number;
        let look = move |committer: &mut crate::committer::Committer| {
            committer.state.graphs.get(&graph).map(|graph| graph.root.schema.tasks.clone())
        };
        let tasks = self.queue.inspect(look)?;
        // What was applied but not published yet: a task that is told to be done is done for readers too.
        let _ = self.queue.barrier();
        tasks.ok_or_else(|| StoreError::NoSuchGraph { name: self.name.to_string() })
    }

    /// True if a thread of the store works on tasks.
    pub fn has_task_thread(&self) -> bool {
        self.queue.has_task_thread()
    }

    /// Works on tasks until none is left, and waits until what they did is durable and visible.
    ///
    /// Errors: `TaskFailed` if one of those that were running fails.
    pub fn finish_tasks(&self) -> Result<(), StoreError> {
        let running: Vec<u64> = self.tasks()?.into_iter().filter(Task::is_running).map(|task| task.number).collect();
        for task in &running {
            while step(&self.queue, self.number, *task)? {}
        }
        self.queue.barrier()?;
        for task in self.tasks()? {
            if let (true, TaskState::Failed { reason }) = (running.contains(&task.number), &task.state) {
                let (work, reason) = (task.work.describe(), reason.to_string());
                return Err(StoreError::TaskFailed { work, reason });
            }
        }
        Ok(())
    }

    /// Does one step of a task; true if more are left.
    pub fn step_task(&self, task: u64) -> Result<bool, StoreError> {
        step(&self.queue, self.number, task)
    }

    /// All indexes.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.snapshot().indexes()
    }
}

impl Snapshot {
    /// The declared types with their states, oldest first.
    pub fn types(&self) -> Vec<(TypeDefinition, TypeState)> {
        self.root.schema.types.iter().map(|own| (own.definition.clone(), own.state)).collect()
    }

    /// The error of the last task with such work, if it has failed.
    fn failure_of(&self, concerns: impl Fn(&TaskWork) -> bool) -> Result<(), StoreError> {
        match self.root.schema.tasks.iter().rfind(|task| concerns(&task.work)) {
            Some(Task { work, state: TaskState::Failed { reason }, .. }) => {
                Err(StoreError::TaskFailed { work: work.describe(), reason: reason.to_string() })
            }
            _ => Ok(()),
        }
    }
}

/// Asks for one step of a task and waits for it; true if more are left. The step is not flushed: if it is lost, it is
/// done again.
fn step(queue: &CommitQueue, graph: u32, task: u64) -> Result<bool, StoreError> {
    let (told, outcome) = mpsc::channel();
    let change = SchemaChange::StepTask { task, elements: STEP_ELEMENTS };
    let body = Body::Schema { graph, change, tells_words: true };
    queue.commit_later(body, Vec::new(), Box::new(move |outcome| drop(told.send(outcome))));
    outcome.recv().map_err(|_| StoreError::Closed)??;
    queue.inspect(move |committer| {
        let tasks = committer.state.graphs.get(&graph).map(|graph| &graph.root.schema.tasks);
        tasks.is_some_and(|tasks| tasks.iter().any(|own| own.number == task && own.is_running()))
    })
}

/// Works on the tasks of all graphs whenever `wanted` says that there may be some, until the store is closed.
pub(crate) fn run_tasks(queue: &CommitQueue, wanted: &mpsc::Receiver<()>) {
    while wanted.recv().is_ok() {
        loop {
            let running = queue.inspect(|committer| {
                let graphs = committer.state.graphs.iter();
                graphs
                    .flat_map(|(number, graph)| graph.root.schema.tasks.iter().map(|task| (*number, task)))
                    .filter(|(_, task)| task.is_running())
                    .map(|(graph, task)| (graph, task.number))
                    .collect::<Vec<_>>()
            });
            // One step of each in turn: a long task does not hold up a short one.
            let Ok(running) = running else { return };
            if running.is_empty() {
                break;
            }
            let mut ended = false;
            for (graph, task) in running {
                match step(queue, graph, task) {
                    Ok(goes_on) => ended |= !goes_on,
                    Err(StoreError::Closed | StoreError::Poisoned { .. }) => return,
                    // The graph is gone, or the disk is full: the next round finds out.
                    Err(_) => ended = true,
                }
            }
            if ended && queue.barrier().is_err() {
                return;
            }
        }
    }
}
