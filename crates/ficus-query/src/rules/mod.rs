//! Optimiser rules: what is done to a plan that keeps its meaning. Each has a name, by which `explain()` shows it and a query can leave it out.
//!
//! Those of the logical plan rewrite it here, one after another; the others are choices that [`crate::physical`] makes while it builds the
//! physical plan, each after it has asked whether the query leaves the rule on ([`RuleSet`]).

mod all_edges;
mod already_distinct;
mod caps;
mod catalogue;
mod closed_rings;
mod distinct;
mod early_limit;
mod edge_tests;
mod group_counts;
mod incident;
mod k_hop;
mod keys_ahead;
mod labels_of_all;
mod labels_of_hops;
mod match_line;
mod match_start;
mod merge_equal;
mod scans_apart;
mod simple_as_tests;
mod start;
mod tests_in_line;
mod unread;
mod unrolled;
mod ways_as_tests;
mod where_here;

use crate::context::Result;
use crate::logical::{LogicalPlan, Node, visit};
use crate::planning::Planning;

pub use catalogue::{RULES, Rule, RuleInfo, RuleSet, Stage};
pub(crate) use merge_equal::may_merge;

/// Changes the plan in place and says whether it did.
type Rewrite = fn(&mut LogicalPlan) -> bool;

/// The rules of the logical plan, in the order in which they are applied.
const REWRITES: &[(Rule, Rewrite)] = &[
    (Rule::TestsInLine, tests_in_line::inlined),
    (Rule::AlreadyDistinct, already_distinct::left_out),
    (Rule::PathsNotCounted, unread::counted_paths),
    (Rule::ValuesNotCounted, unread::counted_values),
    (Rule::UnreadLabels, unread::unread_labels),
    (Rule::EarlyLimit, early_limit::cut_early),
    (Rule::ScansApart, scans_apart::of_unions),
    (Rule::CapsAsRows, caps::as_rows),
    (Rule::GroupsAsCounts, group_counts::groups_as_counts),
    (Rule::KeysAhead, keys_ahead::before_counts),
    (Rule::EdgeLabelsInHop, labels_of_hops::of_edges),
    (Rule::EdgesAsHops, incident::to_adjacent),
    (Rule::EndsOfAll, incident::ends_of_all),
    (Rule::EdgesOfAll, all_edges::of_all_vertices),
    (Rule::LabelsOfAll, labels_of_all::counted),
    (Rule::LabelsOfHops, labels_of_hops::grouped),
    (Rule::EndsAsTests, unread::ends_as_tests),
    (Rule::WaysAsTests, ways_as_tests::ways_as_tests),
    (Rule::StartById, start::labels_as_ids),
    (Rule::SimplePathsAsSets, start::simple_paths_as_sets),
    (Rule::RepeatToKHop, k_hop::of_repeats),
    (Rule::DistinctInLoops, distinct::in_loops),
    (Rule::RepeatWrittenOut, unrolled::written_out),
    (Rule::SimplePathsAsTests, simple_as_tests::as_tests),
    (Rule::MergeEqualInLoops, merge_equal::in_loops),
    (Rule::MergeEqualBetweenHops, merge_equal::between_hops),
    // Rows with labels of their own are never equal, so behind those that merge.
    (Rule::MatchFromTest, match_start::from_test),
    (Rule::MatchToLine, match_line::in_line),
    (Rule::WhereHere, where_here::compared_here),
    (Rule::ClosedRings, closed_rings::from_both_ends),
    (Rule::EdgeTests, edge_tests::of_neighbours),
];

/// A rule that was applied, and what came of it: the plan's text if that was asked for, or the steps that it concerns.
pub type Applied = (Rule, String);

/// Applies the rules of the logical plan that the query leaves on; returns those that changed something, with the plan's text after each if asked for.
///
/// Errors: those of `planning`.
pub fn apply(plan: &mut LogicalPlan, keep_texts: bool, planning: &Planning) -> Result<Vec<Applied>> {
    let rules = RuleSet::of_plan(plan);
    let mut applied = Vec::new();
    for (rule, rewrite) in REWRITES {
        planning.check()?;
        if rules.has(*rule) && rewrite(plan) {
            applied.push((*rule, if keep_texts { plan.to_string() } else { String::new() }));
        }
    }
    Ok(applied)
}

/// Whether errors show steps as they are written: those of `match()` do.
fn shows_steps(plan: &LogicalPlan) -> bool {
    visit::any(&plan.root, &mut |node| matches!(node, Node::Match { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_are_the_rules_of_the_logical_plan_in_order() {
        let listed: Vec<Rule> = REWRITES.iter().map(|(rule, _)| *rule).collect();
        let logical: Vec<Rule> =
            RULES.iter().filter(|info| info.stage == Stage::Logical).map(|info| info.rule).collect();
        assert_eq!(listed, logical);
        assert!(RULES.iter().enumerate().all(|(place, info)| info.rule as usize == place));
    }
}
