//! Loops of a known number of iterations, written out.
//!
//! `repeat(both().simplePath()).times(3)` is `both().simplePath()` three times. As a line its hops make their tests before they make rows, a row passes no
//! gate between them, and several executors may work on it. TinkerPop writes such loops out as well (`RepeatUnrollStrategy`).
//!
//! Only where rows keep their whole way: elsewhere loops bring equal rows together, iteration by iteration, or are searches. But for short ones that
//! have to come back to a labelled vertex, `as('a').repeat(both()).times(3).where(eq('a'))`: rows that began at different vertices are different, and of
//! the last hop of a line is only asked which edges lead to that vertex.

use super::distinct::looks_at_one_row;
use crate::logical::visit::{self, PathNeed};
use crate::logical::{LabelledNode, LogicalPlan, Node, OfEqual, Repeat};
use crate::operators::hop_parts::LastHop;
use crate::options::scope_settings;
use crate::physical::Requirements;

/// Steps that a loop may become.
const STEPS_MAX: usize = 32;

/// Iterations of a loop that comes back: after more, rows of one beginning meet too often.
const BACK_TIMES_MAX: usize = 3;

/// Writes them out, wherever they are.
pub fn written_out(plan: &mut LogicalPlan) -> bool {
    let requirements = Requirements::of(plan);
    let paths = requirements.paths;
    if paths == PathNeed::None
        || requirements.row_by_row
        || requirements.in_hash_order
        || !scope_settings(&plan.source).is_empty()
    {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let written_out = |place: usize| steps(&traversal.nodes[place], &traversal.nodes[place + 1..], paths);
        let is_written_out = |place: usize| written_out(place).is_some();
        if !(0..traversal.nodes.len()).any(is_written_out) {
            return;
        }
        let mut written = Vec::with_capacity(traversal.nodes.len());
        for place in 0..traversal.nodes.len() {
            match written_out(place) {
                Some(steps) => written.extend(steps),
                None => written.push(traversal.nodes[place].clone()),
            }
        }
        traversal.nodes = written;
        changed = true;
    });
    changed
}

/// What a node is written out, if it is such a loop of a query that keeps this of ways.
fn steps(own: &LabelledNode, behind: &[LabelledNode], paths: PathNeed) -> Option<Vec<LabelledNode>> {
    let Node::Repeat(repeat) = &own.node else { return None };
    let times = iterations(repeat)?;
    let count = times.checked_mul(repeat.body.nodes.len())?;
    let is_simple = (1..=STEPS_MAX).contains(&count)
        && repeat.distinct == OfEqual::All
        && repeat.body.nodes.iter().all(|own| is_step_of_one_row(&own.node));
    // The last hop of a loop looks for that vertex only, if one is named.
    let last = || LastHop::of(repeat, &own.labels, behind);
    let is_worth_it = || match paths {
        PathNeed::Full => last().is_none(),
        PathNeed::Labels => times <= BACK_TIMES_MAX && last().is_some_and(|last| last.known.label().is_some()),
        PathNeed::None => false,
    };
    if !is_simple || !is_worth_it() {
        return None;
    }
    let mut steps: Vec<LabelledNode> = (0..times).flat_map(|_| repeat.body.nodes.iter().cloned()).collect();
    let last = steps.last_mut()?;
    for label in &own.labels {
        if !last.labels.contains(label) {
            last.labels.push(label.clone());
        }
    }
    Some(steps)
}

/// After how many iterations all rows leave it, none before.
fn iterations(repeat: &Repeat) -> Option<usize> {
    let [LabelledNode { node: Node::LoopsAtLeast { times }, .. }] = repeat.until.as_deref()?.nodes.as_slice() else {
        return None;
    };
    let times = usize::try_from(*times).ok()?;
    // Tested behind the body it goes through it once in any case.
    let times = if repeat.until_first { times } else { times.max(1) };
    repeat.emit.is_none().then_some(times)
}

/// Whether what a step makes of a row depends on nothing but the row, and neither asks for loops nor has effects.
fn is_step_of_one_row(node: &Node) -> bool {
    match node {
        Node::PathFilter { bys, .. } => bys.is_empty(),
        Node::OtherVertex => true,
        node => looks_at_one_row(node),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ficus_model::{Comparison, Direction};

    use super::*;
    use crate::logical::{Reach, Traversal, WherePredicate};

    fn hop() -> LabelledNode {
        Node::Adjacent { direction: Direction::Out, labels: vec![], reach: Reach::Vertex }.into()
    }

    fn plan_of(times: i64, until_first: bool, body: Vec<LabelledNode>, behind: Node) -> LogicalPlan {
        let until = Arc::new(Traversal { nodes: vec![Node::LoopsAtLeast { times }.into()] });
        let repeat = Node::Repeat(Repeat {
            body: Arc::new(Traversal { nodes: body }),
            until: Some(until),
            until_first,
            emit: None,
            emit_first: false,
            name: None,
            distinct: OfEqual::All,
        });
        let mut plan = LogicalPlan::default();
        let all = Node::Vertices { ids: vec![], all: true };
        plan.root.nodes =
            vec![all.into(), LabelledNode { node: repeat, labels: vec!["a".into(), "b".into()] }, behind.into()];
        plan
    }

    fn path() -> Node {
        Node::Path { from: None, to: None, bys: vec![] }
    }

    #[test]
    fn a_loop_becomes_as_many_bodies_as_it_has_iterations() {
        for (times, until_first, count) in [(3, false, 3), (3, true, 3), (1, true, 1), (0, false, 1)] {
            let body = vec![hop(), LabelledNode { node: Node::Identity, labels: vec!["b".into()] }];
            let mut plan = plan_of(times, until_first, body, path());
            assert!(written_out(&mut plan));
            assert_eq!(plan.root.nodes.len(), 2 + 2 * count, "{plan}");
            let last = &plan.root.nodes[2 * count];
            assert_eq!(last.labels.iter().map(|label| &**label).collect::<Vec<_>>(), ["b", "a"]);
        }
    }

    fn back_to(label: &str) -> Node {
        Node::WherePredicate {
            start: None,
            predicate: WherePredicate::Compare(Comparison::Eq, label.into()),
            bys: vec![],
        }
    }

    #[test]
    fn short_loops_back_to_a_label_are_written_out() {
        let mut plan = plan_of(3, false, vec![hop()], back_to("s"));
        plan.root.nodes[0].labels = vec!["s".into()];
        assert!(written_out(&mut plan));
        assert_eq!(plan.root.nodes.len(), 5, "{plan}");
    }

    #[test]
    fn others_stay() {
        let mut left = vec![
            // Nothing, or too much, would be left of them.
            plan_of(0, true, vec![hop()], path()),
            plan_of(33, false, vec![hop()], path()),
            plan_of(1 << 40, false, vec![hop()], path()),
            // Nobody asks for paths.
            plan_of(2, false, vec![hop()], Node::Identity),
            // To another vertex than a labelled one, and too often.
            plan_of(2, false, vec![hop()], Node::Select { pop: None, labels: vec!["s".into()], bys: vec![] }),
            plan_of(4, false, vec![hop()], back_to("s")),
            // They look at more than one row, or at the loop.
            plan_of(2, false, vec![hop(), Node::Loops { name: None }.into()], path()),
            plan_of(2, false, vec![hop(), Node::Barrier { size: None, norm_sack: false }.into()], path()),
            plan_of(2, false, vec![hop(), Node::Range { low: 0, high: 1 }.into()], path()),
        ];
        let mut emits = plan_of(2, false, vec![hop()], path());
        if let Node::Repeat(repeat) = &mut emits.root.nodes[1].node {
            repeat.emit = Some(Arc::default());
        }
        left.push(emits);
        for mut plan in left {
            assert!(!written_out(&mut plan), "{plan}");
        }
    }

    #[test]
    fn lines_of_many_loops_are_looked_at_once() {
        let mut plan = plan_of(2, false, vec![hop()], path());
        let own = plan.root.nodes[1].clone();
        plan.root.nodes.splice(1..2, std::iter::repeat_n(own, 50_000));
        assert!(written_out(&mut plan));
        assert_eq!(plan.root.nodes.len(), 100_002);
    }
}
