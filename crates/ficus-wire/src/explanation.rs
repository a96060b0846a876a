//! What `explain()` yields, as the map that every format sends.

use std::sync::Arc;

use ficus_model::{Explanation, Shared, Value, ValueMap};

/// `original`, `intermediate` and `final`.
pub(crate) fn explanation_map(explanation: &Explanation) -> ValueMap {
    let string = |text: &Arc<str>| Value::String(text.clone());
    let entry = |key: &str, value: Value| (Value::String(key.into()), value);
    let intermediate = explanation.intermediate.iter().map(|(strategy, category, traversal)| {
        let entries = [
            entry("strategy", string(strategy)),
            entry("category", string(category)),
            entry("traversal", string(traversal)),
        ];
        Value::Map(Shared::new(entries.into_iter().collect()))
    });
    let entries = [
        entry("original", string(&explanation.original)),
        entry("intermediate", Value::List(Shared::new(intermediate.collect()))),
        entry("final", string(&explanation.final_plan)),
    ];
    entries.into_iter().collect()
}
