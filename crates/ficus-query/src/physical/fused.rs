//! Nodes that one operator carries out: a hop with the tests behind it, a count with the degrees it counts.

use std::fmt;

use ficus_dataflow::NodeName;
use ficus_model::{Direction, Pop, Scope};

use super::scans::fold_behind;
use super::{Builder, Chain, LoopPlace, Requirements};
use crate::bound::{BoundRef, OrderBehind, PassingRef, filters_behind, order_behind};
use crate::context::Result;
use crate::elements::LabelSet;
use crate::logical::visit::PathNeed;
use crate::logical::{By, LabelledNode, Name, Node, PropertyForm, Reach, Reduction, ScalarFunction, WherePredicate};
use crate::operators;
use crate::operators::adjacent::HopOver;
use crate::operators::closing::Closing;
use crate::operators::folds::Fold;
use crate::operators::hop_parts::{Distinct, HopFilters, LastHop, SortedPart};
use crate::operators::known_end::KnownEnd;
use crate::operators::labels_in_hop::LabelledHop;
use crate::operators::leaving_counts::FirstCounts;
use crate::operators::packed_ends::PackedEnds;
use crate::operators::property_map::ElementMaps;
use crate::operators::sorted_runs::RUN_ROWS;
use crate::operators::test_ahead::TestAhead;
use crate::operators::tuples::Tuple;
use crate::probe::{self, Probe};
use crate::rules::{Rule, tells_of_one_object};
use crate::traverser::StepInfo;

impl Builder {
    /// The bound of the order that rows of a hop or scan go to, if there is one; the order is told when it is built.
    pub(super) fn bound_behind(&mut self, behind: &[LabelledNode]) -> Option<BoundRef> {
        // Who keeps only the first rows knows the last of them, which is what the bound says.
        let may_tell = self.may(Rule::BoundOfOrder) && self.may(Rule::FirstOfOrder);
        if !may_tell || !self.at_top() || self.requirements.row_by_row {
            return None;
        }
        let OrderBehind { key, descending, equal_ones, .. } = order_behind(behind)?;
        self.note(Rule::BoundOfOrder, &format_args!("order by {}", key.name));
        let number = self.bounds;
        self.bounds += 1;
        self.pending_bound = Some(number);
        Some(BoundRef { number, key, descending, equal_ones })
    }

    /// The filters behind a hop or scan that may come to know all that passes; they are told when they are built.
    pub(super) fn passing_behind(&mut self, behind: &[LabelledNode]) -> Vec<PassingRef> {
        let mut passing = Vec::new();
        // Another hop is never between a hop and the filters it heeds.
        self.pending_passing.clear();
        if !self.may(Rule::KnownToPass) || !self.at_top() || self.requirements.row_by_row {
            return passing;
        }
        let filters = filters_behind(behind);
        let is_filter = |own: &&LabelledNode| {
            matches!(own.node, Node::Filter { .. } | Node::Not { .. } | Node::And { .. } | Node::Or { .. })
        };
        for (filter, own) in filters.into_iter().zip(behind.iter().filter(is_filter)) {
            let number = filter.map(|negated| {
                self.note(Rule::KnownToPass, &own.node);
                let number = self.new_passing();
                passing.push(PassingRef { number, negated });
                number
            });
            self.pending_passing.push_back(number);
        }
        passing
    }

    /// What is behind a hop to vertices and can be tested, or looked up, before there is a row. `over`: the labels of the edges that it goes over,
    /// which are not on the way of the row that it begins at either.
    fn filters_of_vertices(
        &mut self,
        labels: &[Name],
        over: &[Name],
        behind: &[LabelledNode],
        at_end: Distinct,
    ) -> HopFilters {
        let mut filters = self.filters_of_hop(&[labels, over].concat(), behind);
        filters.distinct = match behind.get(filters.nodes).map(|own| &own.node) {
            _ if !self.may(Rule::DistinctInHop) => Distinct::No,
            Some(Node::Dedup { labels, by })
                if labels.is_empty()
                    && by.as_ref().is_none_or(|by| !self.requirements.row_by_row && tells_of_object(by)) =>
            {
                Distinct::All
            }
            // An end that comes again has no other values than before.
            Some(Node::Properties { form: PropertyForm::Value, .. } | Node::Id)
                if !self.requirements.row_by_row
                    && !self.requirements.writes
                    && behind.get(filters.nodes + 1).is_some_and(is_plain_dedup) =>
            {
                Distinct::All
            }
            Some(Node::Reduce { reduction: Reduction::Count }) if !self.requirements.row_by_row => Distinct::Counted,
            None => at_end,
            _ => Distinct::No,
        };
        if filters.distinct != Distinct::No {
            match behind.get(filters.nodes) {
                Some(own) => self.note(Rule::DistinctInHop, &own.node),
                None => self.note(Rule::DistinctInHop, &"the end of a loop or branch"),
            }
        }
        filters.distinct_by = self.distinct_by(labels, over, &filters, &behind[filters.nodes..]);
        filters.bound = self.bound_behind(behind);
        // Filters that the hop makes itself tell nothing.
        filters.passing = self.passing_behind(&behind[filters.nodes..]);
        filters.ahead = behind.get(filters.nodes).and_then(|own| self.test_ahead(&own.node));
        self.packed_label = self.label_of_groups(labels, &filters, behind.get(filters.nodes)).cloned();
        let ends = [labels, &filters.labels].concat();
        if self.packed_label.is_none() {
            self.packed_ends = self.ends_of_tuples(ends, &filters, &behind[filters.nodes..]);
        }
        if self.packed_label.is_none() && self.packed_ends.is_none() {
            self.packed_fold = self.fold_of_ends(&filters, &behind[filters.nodes..]);
        }
        filters.packed_of_many =
            self.packed_fold.is_some() || self.packed_ends.as_ref().is_some_and(|ends| ends.of_many);
        filters.packed = filters.packed_of_many || self.packed_label.is_some() || self.packed_ends.is_some();
        filters
    }

    /// What is behind a hop to edges and can be tested before there is a row.
    fn filters_of_edges(&mut self, labels: &[Name], behind: &[LabelledNode]) -> HopFilters {
        let filters = self.filters_of_hop(labels, behind);
        HopFilters { bound: self.bound_behind(behind), ..filters }
    }

    /// The filter right behind a hop to vertices, for the hop to make it before there are rows.
    fn test_ahead(&mut self, filter: &Node) -> Option<TestAhead> {
        let (rule, test) = match filter {
            Node::Filter { traversal } => (probe::Rule::All, traversal),
            Node::Not { traversal } => (probe::Rule::None, traversal),
            _ => return None,
        };
        let may_ask = self.may(Rule::TestInHop) && !self.requirements.row_by_row && self.evaluates_in_place();
        // A condition would not look whether the hop has made its test.
        if !may_ask || self.is_condition(filter) || self.is_addressed(&[test]) {
            return None;
        }
        let mut probe = Probe::compile_test(test)?;
        if !self.may(Rule::EdgesBetween) {
            probe.forget_known_ends();
        }
        self.experiences.append(&mut probe.experiences());
        let passing = if self.at_top() { self.pending_passing.front().copied().flatten() } else { None };
        let ahead = TestAhead::of(rule, probe, passing)?;
        self.note(Rule::TestInHop, filter);
        Some(ahead)
    }

    /// The label under which rows have equal objects if the steps right behind a hop drop one of two that have equal ends.
    fn distinct_by(
        &mut self,
        labels: &[Name],
        over: &[Name],
        filters: &HopFilters,
        behind: &[LabelledNode],
    ) -> Option<Name> {
        if !self.may(Rule::DistinctInHop) || self.requirements.row_by_row || !filters.closing.is_empty() {
            return None;
        }
        let (dropping, compared, bys) = match behind {
            [LabelledNode { node: node @ Node::Dedup { labels, by }, .. }, ..] => (node, labels, by.as_slice()),
            [own, LabelledNode { node: node @ Node::Dedup { labels, by: None }, .. }, ..] if labels.is_empty() => {
                match &own.node {
                    Node::Select { pop: None | Some(Pop::Last), labels, bys } => (node, labels, bys.as_slice()),
                    _ => return None,
                }
            }
            _ => return None,
        };
        // What a traversal makes of equal objects may be different.
        if bys.iter().any(|by| matches!(by, By::Traversal(_))) {
            return None;
        }
        let is_end = |label: &&Name| labels.contains(label) || filters.labels.contains(label);
        let mut others = compared.iter().filter(|label| !is_end(label));
        let label = others.next().filter(|_| compared.iter().any(|label| is_end(&label)))?;
        if others.next().is_some() || over.contains(label) {
            return None;
        }
        self.note(Rule::DistinctInHop, dropping);
        Some(label.clone())
    }

    /// The label whose objects a `group()` right behind a hop gathers by the vertex that the hop leads to.
    fn label_of_groups<'n>(
        &self,
        labels: &[Name],
        filters: &HopFilters,
        behind: Option<&'n LabelledNode>,
    ) -> Option<&'n Name> {
        let may_pack = self.may(Rule::PackedGroups) && self.at_top() && !self.requirements.row_by_row;
        let is_plain = labels.is_empty() && filters.labels.is_empty() && filters.closing.is_empty();
        match behind.map(|own| &own.node) {
            Some(Node::Group { side_effect: None, key: By::Identity, value: By::Traversal(value) })
                if may_pack && is_plain && self.requirements.paths != PathNeed::Full =>
            {
                operators::group::folded_label(value)
            }
            _ => None,
        }
    }

    /// What a step right behind a hop is told of it that counts keys of several values, or keeps those that differ, if the hop is to pack its ends.
    fn ends_of_tuples(
        &mut self,
        labels: Vec<Name>,
        filters: &HopFilters,
        behind: &[LabelledNode],
    ) -> Option<PackedEnds> {
        let may_pack = self.may(Rule::PackedEnds) && self.may(Rule::PackedTuples) && self.at_top();
        let Requirements { row_by_row, writes, computes, paths, .. } = self.requirements;
        let passes_once = filters.closing.iter().all(Closing::passes_once);
        let is_plain = !row_by_row && !writes && !computes && paths != PathNeed::Full && passes_once;
        let (first, rest) = behind.split_first()?;
        let counts_next = |rest: &[LabelledNode]| {
            matches!(rest.first(), Some(LabelledNode { node: Node::Reduce { reduction: Reduction::Count }, .. }))
        };
        if let Node::Dedup { labels: compared, by: None } = &first.node
            && compared.is_empty()
        {
            if !self.may(Rule::PackedEnds) || !self.at_top() || !is_plain {
                return None;
            }
            self.note(Rule::PackedEnds, &first.node);
            let counted = first.labels.is_empty() && counts_next(rest);
            return Some(PackedEnds { step: self.step(&labels), labels, counted, of_many: false });
        }
        if let Node::GroupCount { side_effect: None, key } = &first.node
            && is_plain
            && self.may(Rule::PackedEnds)
            && self.may(Rule::CountByVertex)
            && self.at_top()
            && operators::group::counts_vertices(key)
        {
            self.note(Rule::PackedEnds, &first.node);
            return Some(PackedEnds { step: self.step(&labels), labels, counted: false, of_many: true });
        }
        let (tuple, rest) = match (&first.node, rest.first()) {
            (Node::GroupCount { side_effect: None, key }, _) => (Tuple::of_by(key)?, rest),
            (Node::Dedup { labels, by }, _) => (Tuple::of_labels(labels, by.as_ref())?, rest),
            (_, Some(next)) if first.labels.is_empty() => match &next.node {
                Node::GroupCount { side_effect: None, key: By::Identity } => (Tuple::of_map(&first.node)?, &rest[1..]),
                Node::Dedup { labels, by: None } if labels.is_empty() && next.labels.is_empty() => {
                    (Tuple::of_map(&first.node)?, &rest[1..])
                }
                _ => return None,
            },
            _ => return None,
        };
        if !may_pack || !is_plain || !tuple.is_simple() {
            return None;
        }
        let counted = counts_next(rest) && first.labels.is_empty();
        self.note(Rule::PackedEnds, &first.node);
        Some(PackedEnds { step: self.step(&labels), labels, counted, of_many: false })
    }

    /// What is made of the values of all ends of a hop, and how many nodes behind it say so, if the hop is to pack them.
    fn fold_of_ends(&mut self, filters: &HopFilters, behind: &[LabelledNode]) -> Option<(Fold, usize)> {
        let Requirements { row_by_row, writes, computes, .. } = self.requirements;
        let may_fold = self.may(Rule::FoldOfEnds) && self.at_top() && !row_by_row && !writes && !computes;
        if !may_fold || !filters.closing.iter().all(Closing::passes_once) {
            return None;
        }
        let (fold, nodes) = fold_behind(behind, self.requirements.paths)?;
        let is_of_values =
            matches!(fold, Fold::CountValues(_) | Fold::Reduce(..) | Fold::ValueCounts(_) | Fold::GroupReduce(..));
        if !is_of_values {
            return None;
        }
        self.note(Rule::FoldOfEnds, &Shown(&behind[..nodes]));
        Some((fold, nodes))
    }

    /// Adds a hop to edges, with the conditions on them and the step to their other ends, as one hop to vertices. Says how many nodes behind it
    /// are part of it; `None`, and nothing added, if it is no such way.
    fn hop_over_edges(
        &mut self,
        hop: &LabelledNode,
        behind: &[LabelledNode],
        part: Option<&SortedPart>,
        at_end: Distinct,
        chain: &mut Chain,
    ) -> Result<Option<usize>> {
        let Node::Adjacent { direction, labels, .. } = &hop.node else { return Ok(None) };
        let conditions = conditions_of_edges(behind);
        let Some(LabelledNode { node: end, labels: own }) = behind.get(conditions.nodes) else { return Ok(None) };
        let is_other_end = match end {
            Node::OtherVertex => !self.requirements.goes_back,
            Node::EdgeVertex { direction: end } => {
                matches!((direction, end), (Direction::Out, Direction::In) | (Direction::In, Direction::Out))
            }
            _ => false,
        };
        if !self.may(Rule::EdgesInHop) || !is_other_end {
            return Ok(None);
        }
        let known = self.known_end(hop, behind);
        let edge_step = Some(self.hop_step(&hop.labels, &conditions)).filter(|step| step.tracking);
        let nodes = conditions.nodes + 1;
        let over = [hop.labels.as_slice(), &conditions.labels].concat();
        let mut filters = self.filters_of_vertices(own, &over, &behind[nodes..], at_end);
        if edge_step.is_some() {
            // Each row has an edge of its own.
            (filters.packed, filters.packed_of_many) = (false, false);
            (self.packed_label, self.packed_ends, self.packed_fold) = (None, None, None);
        }
        let over = HopOver {
            name: NodeName::from(&hop.node).and(end),
            containers: conditions.containers,
            step: edge_step,
            part: part.cloned(),
        };
        self.note(Rule::EdgesInHop, &format_args!("{}, {}", hop.node, Shown(&behind[..nodes])));
        let nodes = nodes + filters.nodes;
        let hop = Node::Adjacent { direction: *direction, labels: labels.clone(), reach: Reach::Vertex };
        let step = self.hop_step(own, &filters);
        filters.known = known;
        operators::adjacent::build_over_edges(self, &hop, &step, over, filters, chain)?;
        Ok(Some(nodes))
    }

    /// Adds a hop with the conditions and `label()` behind it, which tells labels without a row for each end. Says how many nodes behind the hop these
    /// are; `None`, and nothing added, if it is no such way.
    fn labels_in_hop(
        &mut self,
        hop: &LabelledNode,
        behind: &[LabelledNode],
        chain: &mut Chain,
    ) -> Result<Option<usize>> {
        let Node::Adjacent { direction, labels, reach } = &hop.node else { return Ok(None) };
        let is_condition = |own: &&LabelledNode| own.labels.is_empty() && matches!(own.node, Node::Has { .. });
        let conditions = behind.iter().take_while(is_condition).count();
        let is_label = behind.get(conditions).is_some_and(|own| own.node == Node::Label);
        // An end that is on the way of a row belongs to no other.
        let is_plain = hop.labels.is_empty() && self.requirements.paths != PathNeed::Full;
        if !is_label || !is_plain || !self.may_merge || !self.may(Rule::LabelsInHop) {
            return Ok(None);
        }
        let nodes = conditions + 1;
        let containers = behind[..conditions].iter().flat_map(|own| match &own.node {
            Node::Has { containers } => containers.as_slice(),
            _ => &[],
        });
        let gathered = match behind.get(nodes).map(|own| &own.node) {
            Some(Node::GroupCount { side_effect: None, key: By::Identity }) => true,
            Some(Node::Dedup { labels, by: None }) => labels.is_empty(),
            Some(Node::Reduce { reduction: Reduction::Count }) => true,
            _ => false,
        };
        let shown = Shown(&behind[..nodes]);
        self.note(Rule::LabelsInHop, &format_args!("{}, {shown}", hop.node));
        let over = LabelledHop {
            name: NodeName::from(&hop.node).and(shown.to_string()),
            direction: *direction,
            labels: labels.clone(),
            reach: *reach,
            containers: containers.cloned().collect(),
            gathered,
        };
        let step = self.step(&behind[conditions].labels);
        operators::labels_in_hop::build(self, over, step, chain)?;
        Ok(Some(nodes))
    }

    /// Which counts of a `groupCount()` the steps behind it want, if nobody sees the others before.
    fn first_counts_of(&self, counting: &LabelledNode, behind: &[LabelledNode]) -> Option<FirstCounts> {
        let is_seen = !counting.labels.is_empty() || self.requirements.paths == PathNeed::Full;
        FirstCounts::behind(behind).filter(|_| !is_seen && self.may(Rule::FirstOfOrder))
    }

    /// Adds a step that makes maps with the step behind it that only counts them, or keeps those that differ; `None`, and nothing added, if it
    /// is no such step.
    fn tuples(&mut self, labelled: &LabelledNode, behind: &[LabelledNode], chain: &mut Chain) -> Result<Option<usize>> {
        let Some(next) = behind.first() else { return Ok(None) };
        if !labelled.labels.is_empty() || !self.may(Rule::PackedTuples) {
            return Ok(None);
        }
        let Some(tuple) = Tuple::of_map(&labelled.node) else { return Ok(None) };
        let name = NodeName::from(&labelled.node).and(&next.node);
        match &next.node {
            Node::GroupCount { side_effect: None, key: By::Identity } => {
                let step = self.step(&next.labels);
                self.first_counts = self.first_counts_of(next, &behind[1..]);
                operators::tuples::build_count(self, &name, &tuple, &step, chain)?;
            }
            Node::Dedup { labels, by: None } if labels.is_empty() && next.labels.is_empty() => {
                let step = self.step(&[]);
                let counted = matches!(
                    behind.get(1),
                    Some(LabelledNode { node: Node::Reduce { reduction: Reduction::Count }, .. })
                );
                operators::tuples::build_distinct(self, &name, &tuple, &step, counted, chain)?;
            }
            _ => return Ok(None),
        }
        self.note(Rule::PackedTuples, &name);
        Ok(Some(1))
    }

    /// Adds all properties of elements of which only the keys are wanted, or their number. Says how many nodes behind them are part of it; `None`, and
    /// nothing added, if it is something else.
    fn keys_of_properties(
        &mut self,
        labelled: &LabelledNode,
        behind: &[LabelledNode],
        chain: &mut Chain,
    ) -> Option<usize> {
        let Node::Properties { keys, form } = &labelled.node else { return None };
        let Requirements { computes, writes, paths, row_by_row, .. } = self.requirements;
        let is_plain = keys.is_empty() && labelled.labels.is_empty() && !computes && !writes && !row_by_row;
        if !is_plain || paths == PathNeed::Full || !self.may(Rule::KeysOfProperties) {
            return None;
        }
        let next = behind.first()?;
        let (nodes, gathered) = match (&next.node, behind.get(1).map(|own| &own.node)) {
            (Node::Key, gathers) if *form == PropertyForm::Property => {
                let gathered = match gathers {
                    Some(Node::GroupCount { side_effect: None, key: By::Identity }) => true,
                    Some(Node::Dedup { labels, by: None }) => labels.is_empty(),
                    Some(Node::Reduce { reduction: Reduction::Count }) => true,
                    _ => false,
                };
                (1, gathered && next.labels.is_empty())
            }
            (Node::Reduce { reduction: Reduction::Count }, _) => (0, true),
            _ => return None,
        };
        let name = format!("{}{}", labelled.node, if nodes > 0 { ", PropertyKeyStep" } else { "" }).into();
        self.note(Rule::KeysOfProperties, &name);
        let step = if nodes > 0 { self.step(&next.labels) } else { self.step(&[]) };
        operators::keys_of_properties::build(self, &name, gathered && self.may_merge, step, chain);
        Some(nodes)
    }

    /// Adds a node, together with the next where one operator does the work of both; says whether it did.
    pub(super) fn fused(
        &mut self,
        labelled: &LabelledNode,
        behind: &[LabelledNode],
        at_end: Distinct,
        chain: &mut Chain,
    ) -> Result<usize> {
        if let Some((fold, nodes)) = self.packed_fold.take() {
            let behind = &behind[..nodes - 1];
            let last = behind.last().unwrap_or(labelled);
            let name = [labelled].into_iter().chain(behind).map(|own| NodeName::from(&own.node)).collect();
            let step = self.step(&last.labels);
            operators::ends_fold::build(self, &NodeName::of_all(name), fold, step, chain);
            return Ok(nodes - 1);
        }
        if let Some(nodes) = self.tuples(labelled, behind, chain)? {
            return Ok(nodes);
        }
        if let Some(nodes) = self.labels_in_hop(labelled, behind, chain)? {
            return Ok(nodes);
        }
        if let Some(nodes) = self.keys_of_properties(labelled, behind, chain) {
            return Ok(nodes);
        }
        match (&labelled.node, behind.first()) {
            (Node::Repeat(repeat), Some(_)) if self.may(Rule::EdgesBetween) && !self.requirements.row_by_row => {
                let body = (self.depth + 1, self.loop_depth + 1);
                let own = LastHop::of(repeat, &labelled.labels, behind).map(|last| (body, last));
                let around = std::mem::replace(&mut self.last_hop, own);
                self.node(labelled, chain)?;
                self.last_hop = around;
                return Ok(0);
            }
            (Node::GroupCount { side_effect: None, .. }, _) => {
                self.first_counts = self.first_counts_of(labelled, behind);
            }
            (Node::Group { .. }, _) if self.packed_label.is_some() => {
                let step = self.step(&labelled.labels);
                self.note(Rule::PackedGroups, &labelled.node);
                if let Some(label) = self.packed_label.take() {
                    operators::labelled_groups::build(self, &(&labelled.node).into(), &label, &step, chain);
                }
                return Ok(0);
            }
            // A row whose entry is behind the last one that the order wants needs no other entries.
            (Node::Project { keys, bys }, Some(_)) => {
                let is_entry = |order: &OrderBehind| {
                    !order.of_values && keys.iter().filter(|own| **own == order.key.name).count() == 1
                };
                // Sub-queries that are walked in place leave nothing behind that would be missed.
                let is_pure = |by: &By| match by {
                    By::Traversal(traversal) => Probe::compile(traversal).is_some(),
                    _ => true,
                };
                if order_behind(behind).is_some_and(|order| is_entry(&order)) && bys.iter().all(is_pure) {
                    self.maps_bound = self.bound_behind(behind);
                }
            }
            // What a list holds is made once all of it is there. What the query changes meanwhile would be another.
            (
                Node::PropertyMap { .. } | Node::ElementMap { .. },
                Some(LabelledNode { node: fold @ Node::Fold { seed: None }, labels: own }),
            ) if labelled.labels.is_empty() && self.may(Rule::MapsInFold) && !self.requirements.writes => {
                if let Some(maps) = ElementMaps::of(&labelled.node) {
                    self.note(Rule::MapsInFold, &labelled.node);
                    let (name, step) = (NodeName::from(&labelled.node).and(fold), self.step(own));
                    operators::folded_maps::build(self, &name, maps, &step, chain);
                    return Ok(1);
                }
            }
            // What an arm has handed on `dedup()` drops when it comes again.
            (Node::Union { start: false, .. }, Some(LabelledNode { node: Node::Dedup { labels, by: None }, .. }))
                if labels.is_empty() && self.may(Rule::DistinctInHop) && !self.requirements.row_by_row =>
            {
                self.behind_next_arms = Distinct::All;
            }
            (Node::Aggregate { .. }, Some(LabelledNode { node: Node::Discard, .. }))
                if self.may(Rule::AggregateOnly) =>
            {
                self.note(Rule::AggregateOnly, &labelled.node);
                operators::effects::build_aggregate(self, &labelled.node, false, chain)?;
                return Ok(1);
            }
            // A profile tells how many they are.
            (Node::Aggregate { .. }, Some(LabelledNode { node: Node::Cap { .. }, .. }))
                if self.may(Rule::AggregateOnly) && !self.requirements.profiled =>
            {
                self.note(Rule::AggregateOnly, &labelled.node);
                operators::effects::build_aggregate(self, &labelled.node, false, chain)?;
                return Ok(0);
            }
            // Counting neighbours needs degrees only.
            (
                Node::Adjacent { direction, labels, .. },
                Some(LabelledNode { node: Node::Reduce { reduction: Reduction::Count }, labels: own }),
            ) if labelled.labels.is_empty() && self.may(Rule::CountDegrees) => {
                self.note(Rule::CountDegrees, &labelled.node);
                let step = self.step(own);
                operators::reduce::build_degree_count(self, *direction, labels, &step, chain);
                return Ok(1);
            }
            (Node::Adjacent { direction, labels, reach: Reach::Edge }, Some(_)) => {
                // Of edges in the order of a sort key, a part can be enough.
                let may_read_part = self.may(Rule::SortedEdges) && !self.requirements.row_by_row;
                let part = match labels.as_slice() {
                    [_] if may_read_part && *direction != Direction::Both => SortedPart::of(behind),
                    _ => None,
                };
                if let Some(part) = &part {
                    self.note(Rule::SortedEdges, &format_args!("{} [{part}]", labelled.node));
                }
                if let Some(nodes) = self.hop_over_edges(labelled, behind, part.as_ref(), at_end, chain)? {
                    return Ok(nodes);
                }
                if let Some(part) = part {
                    let mut filters = self.filters_of_edges(&labelled.labels, behind);
                    filters.known = self.known_end(labelled, behind);
                    let (step, nodes) = (self.hop_step(&labelled.labels, &filters), filters.nodes);
                    let name = NodeName::from(&labelled.node).and(format!("[{part}]"));
                    let over = HopOver { part: Some(part), ..HopOver::named(name) };
                    operators::adjacent::build_over_edges(self, &labelled.node, &step, over, filters, chain)?;
                    return Ok(nodes);
                }
            }
            (Node::Vertices { all: true, .. } | Node::Edges { all: true, .. }, Some(_)) => {
                return self.scan(labelled, behind, chain);
            }
            // Of a sorted collection that is cut off, the members in front are enough, if nobody sees it before that.
            (
                Node::Order { scope: Scope::Local, .. },
                Some(LabelledNode { node: Node::Scalar { function: ScalarFunction::RangeLocal { high, .. } }, .. }),
            ) if self.may(Rule::FirstOfOrder)
                && labelled.labels.is_empty()
                && self.requirements.paths != PathNeed::Full =>
            {
                self.first = usize::try_from(*high).ok().filter(|first| (1..=RUN_ROWS).contains(first));
                if let Some(first) = self.first {
                    self.note(Rule::FirstOfOrder, &format_args!("{} [first {first}]", labelled.node));
                }
            }
            // Of a sorted stream that is cut off, the rows in front are enough, or those at the end.
            (
                Node::Order { scope: Scope::Global, .. },
                Some(LabelledNode { node: cut @ (Node::Range { .. } | Node::Tail { .. }), .. }),
            ) if self.loop_depth == 0 && self.may(Rule::FirstOfOrder) => {
                let count = |count: &i64| usize::try_from(*count).ok().filter(|count| *count > 0);
                match cut {
                    Node::Range { high, .. } => self.first = count(high),
                    Node::Tail { count: last } => self.last = count(last),
                    _ => {}
                }
                if let Some(first) = self.first {
                    self.note(Rule::FirstOfOrder, &format_args!("{} [first {first}]", labelled.node));
                }
                if let Some(last) = self.last {
                    self.note(Rule::FirstOfOrder, &format_args!("{} [last {last}]", labelled.node));
                }
                if self.at_top() {
                    self.order_bound = self.pending_bound.take();
                }
            }
            _ => {}
        }
        // Ends that do not fulfil the conditions behind a hop never become traversers.
        if matches!(labelled.node, Node::Adjacent { .. }) {
            let mut filters = match &labelled.node {
                Node::Adjacent { reach: Reach::Vertex, .. } => {
                    self.filters_of_vertices(&labelled.labels, &[], behind, at_end)
                }
                _ => self.filters_of_edges(&labelled.labels, behind),
            };
            filters.known = self.known_end(labelled, behind);
            filters.last = self.last_hop(&labelled.node, behind);
            if !filters.is_empty() {
                let step = self.hop_step(&labelled.labels, &filters);
                let nodes = filters.nodes;
                operators::adjacent::build_filtered(self, &labelled.node, &step, filters, chain)?;
                return Ok(nodes);
            }
        }
        self.node(labelled, chain)?;
        Ok(0)
    }

    /// The vertex that a hop has to lead to in the last iteration of the loop that it ends, if it does.
    fn last_hop(&mut self, hop: &Node, behind: &[LabelledNode]) -> Option<LastHop> {
        let is_here = |(place, _): &(LoopPlace, LastHop)| *place == (self.depth, self.loop_depth);
        let is_last = matches!(hop, Node::Adjacent { reach: Reach::Vertex, .. }) && LastHop::is_behind(behind);
        let (_, last) = self.last_hop.as_ref().filter(|last| is_last && is_here(last)).cloned()?;
        self.note(Rule::EdgesBetween, &format_args!("{hop} [the last of {}]", last.before + 1));
        Some(last)
    }

    /// The vertex that a hop has to lead to, if the steps behind it name one.
    fn known_end(&mut self, hop: &LabelledNode, behind: &[LabelledNode]) -> Option<KnownEnd> {
        if !self.may(Rule::EdgesBetween) {
            return None;
        }
        let known = KnownEnd::of(hop, behind, self.requirements.goes_back)?;
        self.note(Rule::EdgesBetween, &hop.node);
        Some(known)
    }

    /// The tests behind a hop that it makes itself.
    fn filters_of_hop(&mut self, labels: &[Name], behind: &[LabelledNode]) -> HopFilters {
        if !self.may(Rule::FilterInHop) {
            return HopFilters::default();
        }
        let is_condition = |node: &Node| self.is_condition(node);
        let filters = filters_of_hop(labels, behind, self.requirements.row_by_row, is_condition);
        if filters.nodes > 0 {
            self.note(Rule::FilterInHop, &Shown(&behind[..filters.nodes]));
        }
        filters
    }

    /// As [`Builder::step`], of a hop with the nodes that it takes over.
    fn hop_step(&self, labels: &[Name], filters: &HopFilters) -> StepInfo {
        self.step(&[labels, &filters.labels].concat())
    }
}

/// Whether what a modulator gives for a row depends on the object of that row alone.
fn tells_of_object(by: &By) -> bool {
    match by {
        By::Identity | By::Key(_) | By::Token(_) | By::Column(_) => true,
        By::Traversal(traversal) => tells_of_one_object(traversal),
    }
}

/// Whether a node drops all rows that are equal to one before.
fn is_plain_dedup(own: &LabelledNode) -> bool {
    matches!(&own.node, Node::Dedup { labels, by: None } if labels.is_empty())
}

/// Steps as `explain()` shows them.
pub(super) struct Shown<'n>(pub(super) &'n [LabelledNode]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(position, own)| {
            f.write_str(if position > 0 { ", " } else { "" })?;
            write!(f, "{}", own.node)
        })
    }
}

/// The filters in a row behind a hop that it can make itself. With effects between rows, what has been gathered is looked at in the
/// filter's own place, and so is what the hop itself labels.
fn filters_of_hop(
    own_labels: &[Name],
    behind: &[LabelledNode],
    row_by_row: bool,
    is_condition: impl Fn(&Node) -> bool,
) -> HopFilters {
    let mut filters = HopFilters::default();
    let speaks_of_hop = |predicate: &WherePredicate| {
        let mut labels = Vec::new();
        operators::scoped_where::right_labels(predicate, &mut labels);
        labels.iter().any(|label| own_labels.contains(label))
    };
    for own in behind {
        match &own.node {
            Node::Has { containers } => filters.containers.extend(containers.iter().cloned()),
            Node::WherePredicate { start: None, predicate, bys }
                if bys.is_empty() && !row_by_row && !speaks_of_hop(predicate) =>
            {
                filters.compare.push(predicate.clone());
            }
            Node::AdjacentFrom { label, direction, labels, passes }
                if own.labels.is_empty() && !own_labels.contains(label) && !row_by_row =>
            {
                let labels = LabelSet::new(labels.clone().into());
                filters.closing.push(Closing::new(label.clone(), *direction, labels, *passes));
            }
            // Of a scope under a label the query may say how it is to run.
            node if own.labels.is_empty() && is_condition(node) => filters.junctions.push(node.clone()),
            _ => break,
        }
        filters.nodes += 1;
        if !own.labels.is_empty() {
            filters.labels.clone_from(&own.labels);
            break;
        }
    }
    filters
}

/// The conditions in a row behind a hop to edges, up to the first that has a label.
fn conditions_of_edges(behind: &[LabelledNode]) -> HopFilters {
    let mut filters = HopFilters::default();
    for own in behind {
        let Node::Has { containers } = &own.node else { break };
        filters.containers.extend(containers.iter().cloned());
        filters.nodes += 1;
        if !own.labels.is_empty() {
            filters.labels.clone_from(&own.labels);
            break;
        }
    }
    filters
}
