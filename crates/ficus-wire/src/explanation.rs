//! What `explain()` yields, as the map that every format sends.

use std::sync::Arc;

use ficus_model::{Explanation, Shared, Value, ValueMap};

/// The steps of a traversal's text, as TinkerPop lists them; any other text is one.
fn steps(text: &str) -> Value {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let (mut depth, mut begin, mut steps) = (0usize, 0, Vec::new());
    for (place, letter) in inner.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                steps.push(&inner[begin..place]);
                begin = place + 1;
            }
            _ => {}
        }
    }
    steps.push(&inner[begin..]);
    let texts = steps.into_iter().map(str::trim).filter(|step| !step.is_empty());
    Value::List(Shared::new(texts.map(|step| Value::String(step.into())).collect()))
}

/// `original`, `intermediate` and `final`.
pub(crate) fn explanation_map(explanation: &Explanation) -> ValueMap {
    let string = |text: &Arc<str>| Value::String(text.clone());
    let entry = |key: &str, value: Value| (Value::String(key.into()), value);
    let intermediate = explanation.intermediate.iter().map(|(strategy, category, traversal)| {
        let entries = [
            entry("strategy", string(strategy)),
            entry("category", string(category)),
            entry("traversal", steps(traversal)),
        ];
        Value::Map(Shared::new(entries.into_iter().collect()))
    });
    let entries = [
        entry("original", steps(&explanation.original)),
        entry("intermediate", Value::List(Shared::new(intermediate.collect()))),
        entry("final", steps(&explanation.final_plan)),
    ];
    entries.into_iter().collect()
}
