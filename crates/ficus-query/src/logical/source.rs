//! What a query is told before its traversal: sack, side effects, strategies and options of its source.

use std::sync::Arc;

use ficus_model::{Operator, Value};

use super::{Name, Traversal};

/// What `withSack`, `withSideEffect`, `withStrategies` and `with` configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceOptions {
    /// Initial sack, with split and merge operators.
    pub sack: Option<SackOptions>,
    /// Initial side effects: key, value, reducer.
    pub side_effects: Vec<(Name, Value, Option<Operator>)>,
    /// `withPath()`: keep paths whether or not a step needs them.
    pub with_path: bool,
    /// `withBulk(false)` switches merging of equal traversers off (bulk counts as 1).
    pub without_bulk: bool,
    /// Strategies that change results.
    pub strategies: Vec<Strategy>,
    /// `with(key, value)` options that are not strategies, such as `evaluationTimeout` (kept for the caller to read).
    pub options: Vec<(Name, Value)>,
}

impl SourceOptions {
    /// Whether `with(key, false)` did not turn something off.
    pub fn is_on(&self, key: &str) -> bool {
        let given = self.options.iter().rev().find(|(own, _)| &**own == key);
        !matches!(given, Some((_, Value::Bool(false))))
    }
}

/// `withSack(initial, split, merge)`.
#[derive(Clone, Debug, PartialEq)]
pub struct SackOptions {
    /// The first value.
    pub initial: Value,
    /// Applied when a traverser is copied (none: the value is shared).
    pub split: Option<Operator>,
    /// Applied when traversers are merged; without it traversers with sacks are never merged.
    pub merge: Option<Operator>,
}

/// A strategy that changes what a traversal may do or see.
///
/// Front ends work `Subgraph`, `Partition`, `ElementId` and `ProductiveBy` into the nodes of the plan and check what the
/// verifying ones forbid; they are kept here for `explain()`, and `ReadOnly` and `Seed` for those who run the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// Refuses mutations.
    ReadOnly,
    /// Shows only elements that pass these filters.
    Subgraph {
        /// For vertices.
        vertices: Option<Arc<Traversal>>,
        /// For edges.
        edges: Option<Arc<Traversal>>,
        /// For vertex properties.
        vertex_properties: Option<Arc<Traversal>>,
        /// Whether an edge is visible only if both its vertices are.
        check_adjacent_vertices: bool,
    },
    /// Writes go to a partition, reads see some.
    Partition {
        /// The property that names an element's partition.
        partition_key: Name,
        /// What new elements get.
        write_partition: Option<Value>,
        /// What is visible.
        read_partitions: Vec<Value>,
        /// Whether vertex properties are partitioned too.
        include_meta_properties: bool,
    },
    /// Fixes the seed of `coin`, `sample` and `order(shuffle)`.
    Seed(i64),
    /// Refuses these property keys in writes.
    ReservedKeys {
        /// The keys.
        keys: Vec<Name>,
        /// Log instead of refusing: `false` refuses.
        log_only: bool,
    },
    /// Refuses `V`/`E` navigation without edge labels.
    EdgeLabelVerification {
        /// Log instead of refusing.
        log_only: bool,
    },
    /// Gives new elements an id under this key instead of the graph's own ids.
    ElementId {
        /// The property key.
        id_key: Name,
    },
    /// Refuses queries that cannot be standard (OLTP): nothing to do, kept for `explain()`.
    StandardVerification,
    /// A `by()` that yields nothing yields null instead of filtering.
    ProductiveBy {
        /// Keys that are known to be there and stay as they are.
        keys: Vec<Name>,
    },
    /// A pure optimisation strategy by name: accepted, has no effect on results.
    Optimisation(Name),
    /// `withoutStrategies(X)`.
    Without(Name),
}
