//! Scans with what is behind them: ids and labels that leave elements out, conditions, and what is made of all elements.

use ficus_dataflow::NodeName;
use ficus_model::{Comparison, Direction, P, T, Value};
use ficus_storage::ElementKind;

use super::fused::Shown;
use super::{Builder, Chain};
use crate::access::Access;
use crate::context::Result;
use crate::elements::{KeyRef, LabelSet};
use crate::logical::visit::PathNeed;
use crate::logical::{By, HasContainer, HasKey, LabelledNode, Name, Node, PropertyForm, Reduction};
use crate::operators::folds::Fold;
use crate::operators::group;
use crate::operators::has::Conditions;
use crate::operators::kept_counts::{self, KeptCounts};
use crate::operators::scan::ScanFilter;
use crate::operators::scan_fold;
use crate::operators::source;
use crate::rules::Rule;

impl Builder {
    /// Adds a scan of all vertices or edges; says how many nodes behind it are part of it.
    pub(super) fn scan(&mut self, scan: &LabelledNode, behind: &[LabelledNode], chain: &mut Chain) -> Result<usize> {
        if let Some(nodes) = self.kept_counts(scan, behind, chain) {
            return Ok(nodes);
        }
        if let Some(ids) = self.looked_up(scan, behind) {
            let node = match &scan.node {
                Node::Edges { .. } => Node::Edges { ids, all: false },
                _ => Node::Vertices { ids, all: false },
            };
            self.node(&LabelledNode { node, labels: scan.labels.clone() }, chain)?;
            return Ok(0);
        }
        let access = conditions_of(behind);
        if self.may(Rule::AccessPaths) && !access.is_all() {
            self.note(Rule::AccessPaths, &scan.node);
            self.access = access;
        }
        let nodes = self.keep_filter(scan, behind)?;
        let all_tested = nodes == self.conditions_behind(behind).len();
        if all_tested
            && scan.labels.is_empty()
            && self.may(Rule::FoldInScan)
            && !self.requirements.row_by_row
            && !self.requirements.computes
            && let Some((fold, of_fold)) = fold_behind(&behind[nodes..], self.requirements.paths)
            && (!matches!(fold, Fold::CountDegrees(..)) || self.may_fold_degrees(&scan.node))
        {
            let nodes = nodes + of_fold;
            let last = &behind[nodes - 1];
            self.note(Rule::FoldInScan, &Shown(&behind[nodes - of_fold..nodes]));
            let name = NodeName::from(&scan.node).and(Shown(&behind[..nodes]).to_string());
            let step = self.step(&last.labels);
            if let Fold::CountDegrees(..) = fold {
                self.note(Rule::CountDegrees, &behind[nodes - of_fold].node);
            }
            let edges = matches!(scan.node, Node::Edges { .. });
            scan_fold::build(self, edges, &name, fold, step, chain);
            return Ok(nodes);
        }
        self.node(scan, chain)?;
        Ok(nodes)
    }

    /// Whether a scan may add up what its elements have of half-edges: edges have none, which is an error.
    fn may_fold_degrees(&self, scan: &Node) -> bool {
        self.may(Rule::CountDegrees) && matches!(scan, Node::Vertices { .. })
    }

    /// The ids that the conditions behind a scan name, if it is to look them up.
    fn looked_up(&mut self, scan: &LabelledNode, behind: &[LabelledNode]) -> Option<Vec<Value>> {
        let Node::Has { containers } = &behind.first()?.node else { return None };
        let ids = source::ids_of(containers).filter(|_| self.may(Rule::IdLookup))?;
        self.note(Rule::IdLookup, &scan.node);
        Some(ids)
    }

    /// The conditions in a row behind a scan that label nothing.
    fn conditions_behind<'n>(&self, behind: &'n [LabelledNode]) -> &'n [LabelledNode] {
        let is_condition = |own: &&LabelledNode| own.labels.is_empty() && self.is_condition(&own.node);
        &behind[..behind.iter().take_while(is_condition).count()]
    }

    /// Keeps what is behind a scan for its operator; says how many nodes behind it the operator carries out.
    fn keep_filter(&mut self, scan: &LabelledNode, behind: &[LabelledNode]) -> Result<usize> {
        let bound = self.bound_behind(behind);
        // What the query writes for one row the tests of the next have to find.
        let may_test = self.may(Rule::FilterInScan) && !self.requirements.writes;
        let own = if may_test { self.conditions_behind(behind) } else { &[] };
        if !own.is_empty() {
            self.note(Rule::FilterInScan, &Shown(own));
        }
        let passing = match &scan.node {
            Node::Edges { .. } => Vec::new(),
            // Filters that the scan makes itself tell nothing.
            _ => self.passing_behind(&behind[own.len()..]),
        };
        let conditions = Conditions::of_tests(own.iter().map(|own| &own.node))?;
        let mut of_label: Vec<Node> = own.iter().map(|own| own.node.clone()).collect();
        for node in &mut of_label {
            if let Node::Has { containers } = node {
                containers.retain(|container| !names_label(container, self.access.label.as_ref()));
            }
        }
        let of_label = Conditions::of_tests(&of_label)?;
        let within = |conditions: Conditions| conditions.within(bound.clone(), passing.clone());
        let (conditions, of_label) = (within(conditions), within(of_label));
        if !conditions.hold_always() || conditions.can_prefilter() {
            let shown = if own.is_empty() { String::new() } else { format!(" {}", Shown(own)) };
            self.filter = Some(ScanFilter { conditions, of_label, shown });
        }
        Ok(own.len())
    }

    /// Adds the operator that asks the counters of the store in place of a scan and a count; says how many nodes behind the scan these are.
    /// `None`, and nothing added, if it is no such count.
    fn kept_counts(&mut self, scan: &LabelledNode, behind: &[LabelledNode], chain: &mut Chain) -> Option<usize> {
        if !self.may(Rule::KeptCounts) || !scan.labels.is_empty() {
            return None;
        }
        let mut labels: Option<Vec<Name>> = None;
        let conditions = self.conditions_behind(behind).len();
        for own in &behind[..conditions] {
            let Node::Has { containers } = &own.node else { return None };
            for container in containers {
                let mut named = labels_of(container)?;
                if let Some(before) = &labels {
                    named.retain(|label| before.contains(label));
                }
                labels = Some(named);
            }
        }
        let last = behind.get(conditions)?;
        let by_label = match &last.node {
            Node::Reduce { reduction: Reduction::Count } => false,
            Node::GroupCount { side_effect: None, key: By::Token(T::Label) } => true,
            _ => return None,
        };
        let elements = match &scan.node {
            Node::Edges { .. } => ElementKind::Edge,
            _ => ElementKind::Vertex,
        };
        let nodes = conditions + 1;
        let name = NodeName::from(&scan.node).and(Shown(&behind[..nodes]).to_string());
        self.note(Rule::KeptCounts, &name);
        let which = KeptCounts { elements, labels: labels.map(|labels| LabelSet::new(labels.into())), by_label };
        let step = self.step(&last.labels);
        kept_counts::build(self, &name, which, step, chain);
        Some(nodes)
    }
}

/// The different labels of which an element must have one, if that is all that a condition says.
pub(crate) fn labels_of(container: &HasContainer) -> Option<Vec<Name>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    let mut labels: Vec<Name> = match (&container.key, &container.predicate) {
        (HasKey::Label, P::Compare(Comparison::Eq, label)) => vec![text(label)?],
        (HasKey::Label, P::Within(labels)) => labels.iter().map(text).collect::<Option<_>>()?,
        _ => return None,
    };
    labels.sort_unstable();
    labels.dedup();
    Some(labels)
}

/// Whether a condition says that elements have this label, and nothing else.
fn names_label(container: &HasContainer, label: Option<&Name>) -> bool {
    label.is_some_and(|label| labels_of(container).is_some_and(|labels| labels == std::slice::from_ref(label)))
}

/// What is made of all elements that come to these nodes, and how many nodes say so.
pub(crate) fn fold_behind(behind: &[LabelledNode], paths: PathNeed) -> Option<(Fold, usize)> {
    let (first, rest) = behind.split_first()?;
    match &first.node {
        Node::Reduce { reduction: Reduction::Count } => Some((Fold::Count, 1)),
        Node::GroupCount { side_effect: None, key: By::Key(key) } => {
            Some((Fold::GroupCount(KeyRef::new(key.clone())), 1))
        }
        Node::Group { side_effect: None, key: By::Key(key), value: By::Traversal(value) } => {
            let ([values, _], Some(reduction)) = (value.nodes.as_slice(), group::reduced_only(value)) else {
                return None;
            };
            let Node::Properties { keys, form: PropertyForm::Value } = &values.node else { return None };
            let [of] = keys.as_slice() else { return None };
            Some((Fold::GroupReduce(KeyRef::new(key.clone()), KeyRef::new(of.clone()), reduction), 1))
        }
        Node::Adjacent { direction, labels, .. } if first.labels.is_empty() => match &rest.first()?.node {
            Node::Reduce { reduction: Reduction::Count } => {
                Some((Fold::CountDegrees(*direction, LabelSet::new(labels.as_slice().into())), 2))
            }
            _ => None,
        },
        Node::Properties { keys, form: PropertyForm::Value } if first.labels.is_empty() => {
            let [key] = keys.as_slice() else { return None };
            let key = KeyRef::new(key.clone());
            let fold = match &rest.first()?.node {
                Node::Reduce { reduction: Reduction::Count } => Fold::CountValues(key),
                Node::Reduce { reduction } => Fold::Reduce(key, *reduction),
                Node::GroupCount { side_effect: None, key: By::Identity } => Fold::ValueCounts(key),
                // A way of its own has what came first.
                Node::Dedup { labels, by: None } if labels.is_empty() && paths != PathNeed::Full => Fold::Distinct(key),
                _ => return None,
            };
            Some((fold, 2))
        }
        _ => None,
    }
}

/// What all the conditions in a row behind a scan, and a hop behind them, allow to leave out.
pub(crate) fn conditions_of(behind: &[LabelledNode]) -> Access {
    let access = Access::of(
        behind
            .iter()
            .map_while(|own| match &own.node {
                Node::Has { containers } => Some(containers),
                _ => None,
            })
            .flatten(),
    );
    Access { edges: edges_behind(behind), ..access }
}

/// The edges without which a vertex comes to nothing in the first step that is no condition, if that says so.
fn edges_behind(behind: &[LabelledNode]) -> Option<(Direction, Vec<Name>)> {
    let lets_through =
        |own: &&LabelledNode| matches!(own.node, Node::Has { .. } | Node::HasProperty { .. } | Node::Identity);
    let next = behind.iter().find(|own| !lets_through(own))?;
    let hop = match &next.node {
        // Of nothing these make nothing, as a count would not.
        Node::Filter { traversal } if traversal.nodes.iter().all(|own| hops_or_tests(&own.node)) => {
            &traversal.nodes.first()?.node
        }
        node => node,
    };
    match hop {
        Node::Adjacent { direction, labels, .. } if !labels.is_empty() => Some((*direction, labels.clone())),
        _ => None,
    }
}

fn hops_or_tests(node: &Node) -> bool {
    matches!(
        node,
        Node::Adjacent { .. }
            | Node::EdgeVertex { .. }
            | Node::OtherVertex
            | Node::Has { .. }
            | Node::HasProperty { .. }
            | Node::Is { .. }
            | Node::WherePredicate { .. }
            | Node::Properties { .. }
    )
}
