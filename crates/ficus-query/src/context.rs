//! What all operators of one query share.

use std::cell::RefCell;
use std::sync::Arc;

use ficus_analytics::Analytics;
use ficus_dataflow::{Control, Domain, Heavy, NodeName};
use ficus_model::resolver::EdgeEnds;
use ficus_model::{EdgeId, ElementResolver, Value, VertexId};
use ficus_storage::Transaction;

use crate::bound::{Bound, Passing};
use crate::budget::{Held, MemoryAccount};
use crate::caller::Caller;
use crate::computed::Computed;
use crate::error::{QueryError, QueryErrorKind};
use crate::flat::Piece;
use crate::functions::members;
use crate::large_values::LargeValues;
use crate::logical::SackOptions;
use crate::memberships::Memberships;
use crate::operators::io::GraphFiles;
use crate::operators::packed_numbers;
use crate::parts::Parts;
use crate::probe::Ways;
use crate::random::Random;
use crate::services::ServiceRegistry;
use crate::side_effect::SideEffects;
use crate::traverser::{StepInfo, Traverser, marks};

/// The context of a running query: its transaction, side effects, random numbers and budget.
pub struct QueryContext {
    /// Snapshot and buffered writes.
    pub transaction: Transaction,
    /// Side effects by key.
    pub side_effects: SideEffects,
    /// Random numbers.
    pub random: Random,
    /// From `SeedStrategy`: each random step begins its own sequence with it.
    pub seed: Option<u64>,
    /// The sequences of random steps, if there is a seed, by the numbers that the plan gave them.
    pub step_randoms: Vec<Random>,
    /// Properties that programs computed for this query.
    pub computed: Computed,
    /// Memory the query may hold.
    pub memory: MemoryAccount,
    /// What the changes of the transaction take.
    pub changes: Held,
    /// Values that nobody wants any more, to be freed with the query.
    pub discarded: Vec<Value>,
    /// Large values that steps made and nobody in particular keeps.
    pub large_values: LargeValues,
    /// What is known of collections that values are looked up in.
    pub memberships: RefCell<Memberships>,
    /// What `call()` can call.
    pub services: Arc<ServiceRegistry>,
    /// Passes shared with other queries; none: every k-hop query searches by itself.
    pub analytics: Option<Arc<Analytics>>,
    /// Where `io()` may read and write; none: nowhere.
    pub io_root: Option<Arc<std::path::Path>>,
    /// Reads and writes graph files for `io()`.
    pub files: Option<Arc<dyn GraphFiles>>,
    /// The limits from outside, for work that goes on without an operator's turn.
    pub control: Control,
    /// `withSack(…)`.
    pub sack: Option<SackOptions>,
    /// How far orders that keep their first rows have come, by the numbers that the plan gave them.
    pub bounds: Arc<[Bound]>,
    /// Vertices that pass filters, by the numbers that the plan gave them.
    pub passing: Arc<[Passing]>,
    /// What steps work on in parts, by the numbers that the plan gave them.
    pub parts: Arc<[Parts]>,
    /// The ways back of tests, which all executors share.
    pub ways: Arc<Ways>,
    /// Whether merged traversers add their bulks (`withBulk(false)` says no).
    pub adds_bulk: bool,
    /// Who asks; none where nobody has to say so.
    pub caller: Option<Arc<Caller>>,
}

impl ElementResolver for QueryContext {
    /// Rows are not delivered and the query does not end well after that, see `RowAdapter`.
    fn is_stopped(&self) -> bool {
        self.control.check().is_err()
    }

    fn vertex_id(&self, vertex: VertexId) -> Value {
        self.transaction.vertex_id(vertex).unwrap_or(Value::Null)
    }

    fn edge_id(&self, edge: EdgeId) -> Value {
        self.transaction.edge_id(edge).unwrap_or(Value::Null)
    }

    fn edge_ends(&self, edge: EdgeId) -> Option<EdgeEnds> {
        let record = self.transaction.edge(edge)?;
        Some(EdgeEnds {
            label: self.transaction.label_name(record.label),
            out_id: self.vertex_id(record.out),
            in_id: self.vertex_id(record.in_),
        })
    }

    fn vertex_label(&self, vertex: VertexId) -> Option<Arc<str>> {
        self.transaction.vertex_label(vertex).map(|label| self.transaction.label_name(label))
    }
}

/// A change with its element, as a transaction buffers both; values beyond a few bytes come with their steps.
const CHANGE_BYTES: usize = 384;

/// What holds more than this is freed by a thread of its own: it may be a hundred thousand values.
const HEAVY_BYTES: usize = 4 << 20;

/// The dataflow domain of graph queries.
pub struct Graphs;

impl Domain for Graphs {
    type Message = Traverser;
    type Context = QueryContext;
    type Error = QueryError;

    fn weight(message: &Traverser) -> u64 {
        match &message.value {
            Value::List(list) if message.marks & marks::PACKED != 0 => message.bulk.saturating_mul(list.len() as u64),
            _ => match packed_numbers::numbers_in(message) {
                Some(numbers) => numbers as u64,
                None => message.bulk,
            },
        }
    }

    fn size(message: &Traverser) -> usize {
        message.kept_bytes()
    }

    fn is_flat(message: &Traverser) -> bool {
        Piece::is_flat(message)
    }

    fn retain(context: &mut QueryContext, size: isize) -> Result<()> {
        context.memory.adjust(size)
    }

    fn share(context: &QueryContext) -> Option<QueryContext> {
        if !context.computed.is_empty() {
            return None;
        }
        Some(QueryContext {
            transaction: context.transaction.reader()?,
            // Steps spread only where no side effect changes any more.
            side_effects: context.side_effects.settled(),
            random: context.random.clone(),
            seed: context.seed,
            step_randoms: context.step_randoms.clone(),
            computed: Computed::default(),
            memory: context.memory.clone(),
            changes: Held::default(),
            discarded: Vec::new(),
            large_values: context.large_values.clone(),
            memberships: RefCell::default(),
            services: context.services.clone(),
            analytics: context.analytics.clone(),
            io_root: context.io_root.clone(),
            files: context.files.clone(),
            control: context.control.clone(),
            sack: context.sack.clone(),
            bounds: context.bounds.clone(),
            passing: context.passing.clone(),
            parts: context.parts.clone(),
            ways: context.ways.clone(),
            adds_bulk: context.adds_bulk,
            caller: context.caller.clone(),
        })
    }

    fn take_heavy(context: &mut QueryContext, is_large: bool) -> Option<Heavy> {
        if !is_large && context.memory.used_bytes() < HEAVY_BYTES {
            return None;
        }
        let values = (std::mem::take(&mut context.discarded), std::mem::take(&mut context.large_values));
        let mut side_effects = std::mem::take(&mut context.side_effects);
        let mut parts = Vec::new();
        let held = side_effects.surrender(&mut parts);
        let values = Box::new((side_effects, held, values, std::mem::take(&mut context.parts)));
        Some(Heavy { parts, values, last: Arc::new(context.memory.clone()) })
    }

    fn at_node(error: QueryError, name: &NodeName) -> QueryError {
        error.in_step(name)
    }

    fn panicked(message: String) -> QueryError {
        QueryError::new(
            QueryErrorKind::Internal,
            format!("an operator failed unexpectedly ({message}); this is a bug in FicusDB, please report the query"),
        )
    }
}

/// The turn context of graph operators.
pub type Cx<'a> = ficus_dataflow::Cx<'a, Graphs>;
/// A queue of traversers.
pub type Traversers = ficus_dataflow::Queue<Traverser>;
/// Result of operators.
pub type Result<T> = std::result::Result<T, QueryError>;

impl QueryContext {
    /// Fails if the query must stop. Reads the clock: once per batch, not per row.
    pub fn check(&self) -> Result<()> {
        self.control.check().map_err(QueryError::from)
    }

    /// To be called with what a step has made of other values: a large one is counted from now on until nobody has it any more.
    ///
    /// Errors: `Budget` or `ServerMemory` if there is no room for it; as [`MemoryAccount::fits`].
    #[inline]
    pub fn made(&mut self, value: Value) -> Result<Value> {
        self.memory.fits(&value)?;
        self.large_values.enter(&value, &self.memory)?;
        Ok(value)
    }

    /// Counts what the transaction has buffered since the last call.
    ///
    /// Errors: `Budget` or `ServerMemory` if there is no room for it.
    #[inline]
    pub fn count_changes(&mut self) -> Result<()> {
        if !self.transaction.may_write() {
            return Ok(());
        }
        let bytes = self.transaction.change_count() * CHANGE_BYTES;
        if bytes > self.changes.bytes() {
            let grown = bytes - self.changes.bytes();
            self.changes.add(&self.memory, grown)?;
        }
        Ok(())
    }

    /// Leaves a value that nobody wants any more to the end of the query, so that freeing it holds up nobody.
    pub fn discard(&mut self, value: Value) {
        // It exists already; what is refused is refused to a query that ends.
        let _ = self.large_values.enter(&value, &self.memory);
        self.discarded.push(value);
    }

    /// As [`QueryContext::made`], of something that was counted while it grew, and whose members were seen to fit: its holder hands that over.
    pub fn made_of(&mut self, value: Value, held: &mut Held) -> Value {
        let held = std::mem::take(held);
        self.large_values.adopt(&value, held);
        value
    }

    /// A traverser without history, as sources, reductions and children of value modulators begin with.
    pub fn fresh(&self, value: Value) -> Traverser {
        let mut traverser = Traverser::new(value);
        if let Some(sack) = &self.sack {
            traverser.set_sack(sack.initial.clone());
        }
        traverser
    }

    /// As [`QueryContext::fresh`], as the result of a step.
    pub fn fresh_at(&self, value: Value, step: &StepInfo) -> Traverser {
        let mut traverser = self.fresh(value);
        if step.tracking {
            traverser.extend_path(&step.labels);
        }
        traverser
    }
}

impl QueryContext {
    /// The object a scope key stands for: an entry of the current map, a side effect, or the last object labelled so.
    pub fn scope_value(&self, traverser: &Traverser, key: &str) -> Option<Value> {
        if let Value::Map(_) | Value::Tree(_) = &traverser.value
            && let Some(value) = members::under(&traverser.value, &Value::String(Arc::from(key)))
        {
            return Some(value);
        }
        if let Some(value) = self.side_effects.get(key) {
            return Some(value);
        }
        traverser.labelled(key).cloned()
    }
}
