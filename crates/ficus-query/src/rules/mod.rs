//! Optimiser rules: what is done to a plan that keeps its meaning. Each has a name, by which `explain()` shows it and a query can leave it out.
//!
//! Those of the logical plan rewrite it here, one after another; the others are choices that [`crate::physical`] makes while it builds the
//! physical plan, each after it has asked whether the query leaves the rule on ([`RuleSet`]).

mod all_edges;
mod already_distinct;
mod caps;
mod catalogue;
mod closed_rings;
mod content;
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
use content::Content;
pub(crate) use distinct::tells_of_one_object;
pub(crate) use merge_equal::may_merge;

/// Changes the plan in place and says whether it did.
type Rewrite = fn(&mut LogicalPlan) -> bool;

/// The rules of the logical plan, in the order in which they are applied, each with what a plan has to hold for it to change anything: something
/// of each entry. Most queries ask for few of them, and to look at all 31 took longer than everything else that is done for a look-up.
const REWRITES: &[(Rule, &[Content], Rewrite)] = &[
    (Rule::TestsInLine, &[Content::TEST.or(Content::WHERE_PREDICATE)], tests_in_line::inlined),
    (Rule::AlreadyDistinct, &[Content::DEDUP], already_distinct::left_out),
    (Rule::PathsNotCounted, &[Content::PATH, Content::COUNT], unread::counted_paths),
    (Rule::ValuesNotCounted, &[Content::COUNT], unread::counted_values),
    (Rule::UnreadLabels, &[Content::NAMED], unread::unread_labels),
    (Rule::EarlyLimit, &[Content::CUT], early_limit::cut_early),
    (Rule::ScansApart, &[Content::UNION], scans_apart::of_unions),
    (Rule::CapsAsRows, &[Content::CAP], caps::as_rows),
    (Rule::GroupsAsCounts, &[Content::GROUP, Content::COUNT], group_counts::groups_as_counts),
    (Rule::KeysAhead, &[Content::GROUP_COUNT, Content::NESTED], keys_ahead::before_counts),
    (Rule::EdgeLabelsInHop, &[Content::HOP, Content::HAS], labels_of_hops::of_edges),
    (Rule::EdgesAsHops, &[Content::HOP, Content::EDGE_END], incident::to_adjacent),
    (Rule::EndsOfAll, &[Content::EDGE_END], incident::ends_of_all),
    (Rule::EdgesOfAll, &[Content::HOP, Content::COUNT.or(Content::GROUP_COUNT)], all_edges::of_all_vertices),
    (Rule::LabelsOfAll, &[Content::LABEL, Content::GROUP_COUNT.or(Content::DEDUP)], labels_of_all::counted),
    (Rule::LabelsOfHops, &[Content::HOP, Content::GROUP_COUNT], labels_of_hops::grouped),
    (Rule::EndsAsTests, &[Content::WHERE_TRAVERSAL], unread::ends_as_tests),
    (Rule::WaysAsTests, &[Content::DEDUP], ways_as_tests::ways_as_tests),
    (Rule::StartById, &[Content::WHERE_PREDICATE, Content::NAMED], start::labels_as_ids),
    (Rule::SimplePathsAsSets, &[Content::REPEAT, Content::PATH_FILTER], start::simple_paths_as_sets),
    (Rule::RepeatToKHop, &[Content::HOP, Content::REPEAT.or(Content::HOPS)], k_hop::of_repeats),
    (Rule::DistinctInLoops, &[Content::REPEAT], distinct::in_loops),
    (Rule::RepeatWrittenOut, &[Content::REPEAT], unrolled::written_out),
    (Rule::SimplePathsAsTests, &[Content::PATH_FILTER], simple_as_tests::as_tests),
    (Rule::MergeEqualInLoops, &[Content::REPEAT], merge_equal::in_loops),
    (Rule::MergeEqualBetweenHops, &[Content::HOPS], merge_equal::between_hops),
    // Rows with labels of their own are never equal, so behind those that merge.
    (Rule::MatchFromTest, &[Content::MATCH], match_start::from_test),
    (Rule::MatchToLine, &[Content::MATCH], match_line::in_line),
    (Rule::WhereHere, &[Content::WHERE_PREDICATE], where_here::compared_here),
    (Rule::ClosedRings, &[Content::WHERE_PREDICATE, Content::NAMED], closed_rings::from_both_ends),
    (Rule::EdgeTests, &[Content::TEST.or(Content::WHERE_TRAVERSAL)], edge_tests::of_neighbours),
];

/// A rule that was applied, and what came of it: the plan's text if that was asked for, or the steps that it concerns.
pub type Applied = (Rule, String);

/// Applies the rules of the logical plan that the query leaves on; returns those that changed something, with the plan's text after each if asked for.
///
/// Errors: those of `planning`.
pub fn apply(plan: &mut LogicalPlan, keep_texts: bool, planning: &Planning) -> Result<Vec<Applied>> {
    let rules = RuleSet::of_plan(plan);
    let mut content = Content::of(&plan.root);
    let mut applied = Vec::new();
    for (rule, needs, rewrite) in REWRITES {
        if !needs.iter().all(|wanted| content.has_any(*wanted)) {
            debug_assert!(
                plan.root.nodes.len() > 1_000 || !rewrite(&mut plan.clone()),
                "{rule:?} needs less than the table says: {plan}"
            );
            continue;
        }
        planning.check()?;
        if rules.has(*rule) && rewrite(plan) {
            content = Content::of(&plan.root);
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
        let listed: Vec<Rule> = REWRITES.iter().map(|(rule, ..)| *rule).collect();
        let logical: Vec<Rule> =
            RULES.iter().filter(|info| info.stage == Stage::Logical).map(|info| info.rule).collect();
        assert_eq!(listed, logical);
        assert!(RULES.iter().enumerate().all(|(place, info)| info.rule as usize == place));
    }
}
