//! Which sub-queries can be evaluated in place, and as what.

use std::borrow::Cow;
use std::sync::Arc;

use ficus_model::{Direction, Pop, Scope, T};
use hashbrown::HashSet;

use super::backward::Backward;
use super::choosing::Choice;
use super::looping::Loop;
use super::projecting::Projection;
use super::verdicts::Verdicts;
use super::{Gather, PATIENCE_MAX, Probe, Rule, Segment, Step};
use crate::elements::{KeyRef, LabelSet};
use crate::logical::visit;
use crate::logical::{By, LabelledNode, Node, Reach, Reduction, Traversal};
use crate::modulate::Modulator;
use crate::operators::formula::Formula;
use crate::operators::has::Conditions;
use crate::operators::junction::is_junction;
use crate::operators::known_end::KnownEnd;
use crate::operators::property::PropertyReader;
use crate::operators::property_map::ElementMaps;
use crate::operators::scalar::is_of_value;
use crate::operators::scoped_where::LabelledTest;

/// Steps of a sub-query, those inside others included: each is a few frames of the stack while a walk goes through it.
const STEPS_MAX: usize = 64;

impl Probe {
    /// The probe of a sub-query; `None` if it has a step that only a scope can run, or more steps than the stack should hold.
    pub fn compile(traversal: &Traversal) -> Option<Probe> {
        let mut steps = 0;
        visit::walk(traversal, &mut |_| steps += 1);
        if steps > STEPS_MAX { None } else { Probe::compile_steps(traversal) }
    }

    /// The probe of a sub-query of which only matters whether it yields anything; see [`Probe::finds`].
    pub fn compile_test(traversal: &Traversal) -> Option<Probe> {
        let mut probe = Probe::compile(traversal)?;
        probe.backward = Backward::of(&probe).map(Box::new);
        probe.verdicts = probe.dependence().map(Verdicts::new);
        probe.remember();
        Some(probe)
    }

    /// Whether the test of a sub-query may come to know all vertices that pass it, whatever the query gathers meanwhile.
    pub fn may_know_all(traversal: &Traversal) -> bool {
        let probe = Probe::compile(traversal);
        probe.as_ref().and_then(Backward::of).is_some_and(|backward| backward.is_of_snapshot())
    }

    fn compile_steps(traversal: &Traversal) -> Option<Probe> {
        let mut segments = Vec::new();
        let mut steps: Vec<Step> = Vec::new();
        let nodes = &as_written(traversal);
        let mut position = 0;
        while let Some(LabelledNode { node, labels }) = nodes.get(position) {
            if !labels.is_empty() {
                return None;
            }
            let behind = nodes.get(position + 1).map(|own| &own.node);
            position += 1;
            let gather = match (node, behind) {
                (Node::Adjacent { direction, labels, .. }, Some(Node::Reduce { reduction: Reduction::Count })) => {
                    position += 1;
                    Some(Gather::degree(*direction, LabelSet::new(labels.clone().into())))
                }
                (Node::Reduce { reduction }, _) => Some(Gather::reduce(*reduction)),
                (Node::Fold { seed: None }, _) => Some(Gather::Fold(Vec::new())),
                (Node::Order { scope: Scope::Global, keys }, _) => Some(Gather::order(keys)?),
                _ => None,
            };
            match gather {
                Some(gather) => {
                    let steps = std::mem::take(&mut steps);
                    let wants_all = !steps.iter().any(|step| matches!(step, Step::Range { .. }));
                    segments.push(Segment { steps, end: Some(gather), wants_all });
                }
                None => {
                    let is_behind_edge = leads_to_edges(&steps);
                    let mut next = step(node, is_behind_edge)?;
                    if let Step::Hop { known, .. } = &mut next {
                        // A walk in place knows where it found an edge.
                        *known = KnownEnd::of(&nodes[position - 1], &nodes[position..], false).map(Box::new);
                    }
                    match (next, steps.last_mut()) {
                        (Step::Has(conditions), Some(Step::Hop { filter: filter @ None, .. })) => {
                            *filter = Some(conditions);
                        }
                        // Over an edge of which nothing else is wanted.
                        (
                            Step::Ends(end),
                            Some(Step::Hop { direction, reach: reach @ Reach::Edge, edges, filter, .. }),
                        ) if matches!(
                            (*direction, end),
                            (Direction::Out, Direction::In) | (Direction::In, Direction::Out)
                        ) =>
                        {
                            *reach = Reach::Vertex;
                            *edges = filter.take();
                        }
                        (step, _) => steps.push(step),
                    }
                }
            }
        }
        let wants_all = !steps.iter().any(|step| matches!(step, Step::Range { .. }));
        segments.push(Segment { steps, end: None, wants_all });
        Some(Probe { segments, buffers: Vec::new(), verdicts: None, backward: None, patience: PATIENCE_MAX })
    }

    fn compile_all<'a>(traversals: impl IntoIterator<Item = &'a std::sync::Arc<Traversal>>) -> Option<Vec<Probe>> {
        traversals.into_iter().map(|traversal| Probe::compile(traversal)).collect()
    }

    fn compile_tests<'a>(traversals: impl IntoIterator<Item = &'a std::sync::Arc<Traversal>>) -> Option<Vec<Probe>> {
        traversals.into_iter().map(|traversal| Probe::compile_test(traversal)).collect()
    }
}

/// The nodes of a sub-query with walks of several hops as they were written: in place a few steps are walked sooner than a search begins.
fn as_written(traversal: &Traversal) -> Cow<'_, [LabelledNode]> {
    if !traversal.nodes.iter().any(|own| matches!(own.node, Node::KHop(_))) {
        return Cow::Borrowed(&traversal.nodes);
    }
    let written = |own: &LabelledNode| match &own.node {
        Node::KHop(walk) => walk.written.nodes.clone(),
        _ => vec![own.clone()],
    };
    Cow::Owned(traversal.nodes.iter().flat_map(written).collect())
}

/// Whether what comes out of these steps is the edge of the last hop, so that the way there is known.
fn leads_to_edges(steps: &[Step]) -> bool {
    let mut back = steps.iter().rev().skip_while(|step| matches!(step, Step::Has(_) | Step::HasProperty { .. }));
    matches!(back.next(), Some(Step::Hop { reach: Reach::Edge, .. }))
}

fn step(node: &Node, is_behind_edge: bool) -> Option<Step> {
    Some(match node {
        Node::Adjacent { direction, labels, reach } => {
            let labels = LabelSet::new(labels.clone().into());
            Step::Hop { direction: *direction, labels, reach: *reach, edges: None, filter: None, known: None }
        }
        Node::EdgeVertex { direction } => Step::Ends(*direction),
        Node::OtherVertex if is_behind_edge => Step::OtherEnd,
        Node::Has { containers } => Step::Has(Conditions::compile(containers).ok()?),
        Node::HasProperty { key, negated } => Step::HasProperty { key: KeyRef::new(key.clone()), negated: *negated },
        Node::Is { predicate } => Step::Is(predicate.compile().ok()?),
        Node::Properties { keys, form } => Step::Values(PropertyReader::new(keys, *form)),
        Node::PropertyMap { .. } | Node::ElementMap { .. } => Step::Map(Box::new(ElementMaps::of(node)?)),
        Node::Math { expression, bys } => Step::Math(Box::new(Formula::compile(expression, bys)?)),
        Node::Unfold => Step::Unfold,
        Node::Sack => Step::Sack,
        Node::Id => Step::Token(T::Id),
        Node::Label => Step::Token(T::Label),
        Node::Key => Step::Token(T::Key),
        Node::ValueOf => Step::Token(T::Value),
        Node::Scalar { function } if is_of_value(function) => Step::Scalar(Arc::new(function.clone())),
        Node::Constant { value } => Step::Constant(value.clone()),
        Node::Identity => Step::Filter { rule: Rule::All, probes: Vec::new() },
        Node::SelectColumn { column } => Step::Column(*column),
        Node::Select { pop, labels, bys } => {
            let [label] = labels.as_slice() else { return None };
            let by = match bys.as_slice() {
                [] | [By::Identity] => Modulator::Identity,
                [By::Key(name)] => Modulator::Key(KeyRef::new(name.clone())),
                [By::Token(token)] => Modulator::Token(*token),
                [By::Column(column)] => Modulator::Column(*column),
                _ => return None,
            };
            Step::Select { pop: pop.unwrap_or(Pop::Last), label: label.clone(), by }
        }
        Node::WherePredicate { start: None, predicate, bys } if bys.is_empty() => Step::Compare(predicate.clone()),
        Node::WherePredicate { start, predicate, bys } => {
            Step::CompareBy(Box::new(LabelledTest::compile(start.as_ref(), predicate, bys)?))
        }
        Node::Not { .. } | Node::Or { .. } if is_junction(node) => Step::Has(Conditions::of_tests([node]).ok()?),
        Node::Filter { traversal } => Step::Filter { rule: Rule::All, probes: vec![Probe::compile_test(traversal)?] },
        Node::Not { traversal } => Step::Filter { rule: Rule::None, probes: vec![Probe::compile_test(traversal)?] },
        Node::And { traversals } => Step::Filter { rule: Rule::All, probes: Probe::compile_tests(traversals)? },
        Node::Or { traversals } => Step::Filter { rule: Rule::Any, probes: Probe::compile_tests(traversals)? },
        Node::Coalesce { branches } => Step::Coalesce(Probe::compile_all(branches)?),
        Node::Union { branches, start: false } => {
            // An arm that gathers sees all rows that come to the union.
            let arms = Probe::compile_all(branches)?;
            if arms.iter().any(Probe::is_gathering) {
                return None;
            }
            Step::Union(arms)
        }
        Node::Choose { choice, boolean, options, pass_unmatched: true } => {
            Step::Choose(Box::new(Choice::compile(choice, *boolean, options)?))
        }
        Node::Project { keys, bys } => Step::Project(Box::new(Projection::compile(keys, bys)?)),
        Node::Map { traversal } => Step::Each { probe: Probe::compile(traversal)?, first_only: true },
        Node::FlatMap { traversal } => Step::Each { probe: Probe::compile(traversal)?, first_only: false },
        Node::Optional { traversal } => {
            Step::Coalesce(vec![Probe::compile(traversal)?, Probe::compile(&Traversal::default())?])
        }
        Node::Repeat(repeat) => Step::Loop(Box::new(Loop::compile(repeat)?)),
        Node::Range { low, high } => {
            Step::Range { low: u64::try_from(*low).ok()?, high: u64::try_from(*high).unwrap_or(u64::MAX), seen: 0 }
        }
        Node::Dedup { labels, by: None } if labels.is_empty() => Step::Dedup(HashSet::new()),
        _ => return None,
    })
}

impl Probe {
    /// Whether a row depends on the rows before it.
    pub(super) fn is_gathering(&self) -> bool {
        let remembers = |step: &Step| matches!(step, Step::Range { .. } | Step::Dedup(_));
        self.segments.len() > 1 || self.segments.iter().flat_map(|segment| &segment.steps).any(remembers)
    }
}

/// The directions whose ends an edge has.
pub(super) fn ends_of(direction: Direction) -> (bool, bool) {
    (direction != Direction::In, direction != Direction::Out)
}
