//! Optimiser rules: rewrites of the logical plan that keep its meaning. Each has a name that `explain()` shows.

mod distinct;
mod k_hop;
mod match_line;
mod merge_equal;

use crate::logical::LogicalPlan;

/// A rule: changes the plan in place and says whether it did.
type Rule = fn(&mut LogicalPlan) -> bool;

/// All rules, in the order they are applied.
const RULES: &[(&str, Rule)] = &[
    ("RepeatToKHop", k_hop::of_repeats),
    ("DistinctInLoops", distinct::in_loops),
    ("MergeEqualInLoops", merge_equal::in_loops),
    ("MergeEqualBetweenHops", merge_equal::between_hops),
    // Rows with labels of their own are never equal, so behind those that merge.
    ("MatchToLine", match_line::in_line),
];

/// Applies all rules; returns the names of those that changed something, with the plan's text after each if asked for.
pub fn apply(plan: &mut LogicalPlan, keep_texts: bool) -> Vec<(&'static str, String)> {
    let mut applied = Vec::new();
    for (name, rule) in RULES {
        if rule(plan) {
            applied.push((*name, if keep_texts { plan.to_string() } else { String::new() }));
        }
    }
    applied
}
