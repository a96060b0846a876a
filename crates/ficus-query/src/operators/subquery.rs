//! `map`, `flatMap`, `local`, `sideEffect`, `optional`, `coalesce`: sub-queries whose rows go on, as branch scopes.

use std::sync::Arc;

use ficus_dataflow::{BranchLogic, BranchOptions, Turn};
use ficus_model::Value;

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::{LabelledNode, Node, Traversal};
use crate::physical::{Builder, Chain};
use crate::probe::{ARMS_AT_ONCE, ArmProbes};
use crate::traverser::{StepInfo, Traverser};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The first row replaces the object.
    Map,
    /// Every row replaces the object; only the value goes on, the path does not see the inside.
    FlatMap,
    /// Every row goes on as it is; one traverser at a time.
    Local,
    /// The input goes on when the sub-query is done.
    SideEffect,
    /// The rows, or the input if there are none.
    Optional,
    /// As `flatMap` with the first arm that has rows.
    Coalesce,
}

struct SubQueryScope {
    kind: Kind,
    arms: usize,
    step: StepInfo,
    /// Random numbers are drawn from a seed behind it: the results of a sub-query go on one by one, as in TinkerPop.
    splits: bool,
    /// By arm, where only the values of rows go on.
    probes: ArmProbes,
    rows: Vec<(Value, u64)>,
}

/// A result that stands for more rows goes on as one, with a seed too.
const SPLIT_MAX: u64 = 1024;

/// Rows of one traverser that are made at once; a batch is a quarter.
const ROWS_IN_PLACE: usize = 1024;

impl SubQueryScope {
    /// Runs arms from `state.arm` on in place; `false` when one has to be entered.
    fn in_place(
        &mut self,
        input: &Traverser,
        state: &mut Progress,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<bool> {
        let first = state.arm;
        while let Some(probe) = self.probes.get_mut(state.arm) {
            let Some(probe) = probe else { return Ok(false) };
            if state.arm - first >= ARMS_AT_ONCE {
                // Of thousands of arms, the next goes in an instance when the turn is over: that can be left.
                cx.charge(1);
                if cx.exhausted() {
                    return Ok(false);
                }
            }
            let tried = match self.kind {
                Kind::Map => {
                    let first = probe.first(&input.value, Some(input), cx)?;
                    self.rows.clear();
                    first.map(|first| self.rows.extend(first.map(|value| (value, 1))))
                }
                _ => probe.all(input, ROWS_IN_PLACE, cx, &mut self.rows)?,
            };
            if tried.paid(cx).is_none() {
                return Ok(false);
            }
            if !self.rows.is_empty() {
                for (value, bulk) in self.rows.drain(..) {
                    let mut row = input.advance(value, &self.step);
                    row.bulk = input.bulk.saturating_mul(bulk);
                    out.push_back(row);
                }
                return Ok(true);
            }
            state.arm += 1;
        }
        Ok(true)
    }
}

#[derive(Default)]
struct Progress {
    input: Option<Traverser>,
    /// What of a bulk is still to run, for `local`.
    left: u64,
    arm: usize,
    yielded: bool,
}

impl BranchLogic<Graphs> for SubQueryScope {
    type State = Progress;

    fn open(
        &mut self,
        mut input: Traverser,
        state: &mut Progress,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        if matches!(self.kind, Kind::FlatMap | Kind::Coalesce) {
            input.close_path();
        }
        if self.arms == 0 || !self.probes.is_empty() && self.in_place(&input, state, out, cx)? {
            return Ok(Turn::Close);
        }
        let mut message = input.single();
        if self.kind == Kind::Optional {
            // The others evaluate for one and multiply.
            message.bulk = input.bulk;
        }
        state.left = input.bulk;
        state.input = Some(input);
        Ok(Turn::Enter { arm: state.arm, message })
    }

    fn receive(
        &mut self,
        message: Traverser,
        state: &mut Progress,
        out: &mut Traversers,
        _cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        state.yielded = true;
        let input = state.input.as_ref().expect("set when the instance opened");
        match self.kind {
            Kind::Map => {
                out.push_back(input.advance(message.value, &self.step));
                return Ok(Turn::Close);
            }
            Kind::FlatMap | Kind::Coalesce => {
                let mut row = input.advance(message.value, &self.step);
                if self.splits && message.bulk <= SPLIT_MAX {
                    row.bulk = input.bulk;
                    out.extend((0..message.bulk).map(|_| row.clone()));
                } else {
                    row.bulk = input.bulk.saturating_mul(message.bulk);
                    out.push_back(row);
                }
            }
            Kind::Local | Kind::Optional => out.push_back(message),
            Kind::SideEffect => {}
        }
        Ok(Turn::Continue)
    }

    fn arm_ended(&mut self, state: &mut Progress, out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        let Some(input) = &state.input else { return Ok(Turn::Close) };
        match self.kind {
            Kind::Local if state.left > 1 => {
                state.left -= 1;
                return Ok(Turn::Enter { arm: 0, message: input.single() });
            }
            Kind::SideEffect => out.extend(state.input.take()),
            Kind::Optional if !state.yielded => out.extend(state.input.take()),
            Kind::Coalesce if !state.yielded && state.arm + 1 < self.arms => {
                state.arm += 1;
                return Ok(Turn::Enter { arm: state.arm, message: input.single() });
            }
            _ => {}
        }
        Ok(Turn::Close)
    }
}

fn ends_in_aggregate(traversal: &Traversal) -> bool {
    matches!(traversal.nodes.last(), Some(LabelledNode { node: Node::Aggregate { .. }, .. }))
}

/// Adds the scope of a sub-query node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (kind, arms): (Kind, Vec<&Traversal>) = match node {
        Node::Map { traversal } => (Kind::Map, vec![traversal]),
        Node::FlatMap { traversal } => (Kind::FlatMap, vec![traversal]),
        Node::Local { traversal } => (Kind::Local, vec![traversal]),
        Node::SideEffect { traversal } => (Kind::SideEffect, vec![traversal]),
        Node::Optional { traversal } => (Kind::Optional, vec![traversal]),
        Node::Coalesce { branches } => (Kind::Coalesce, branches.iter().map(AsRef::as_ref).collect()),
        _ => return Err(crate::error::QueryError::invalid(format!("{node} is not a sub-query"))),
    };
    // Its rows are wanted by nobody.
    let discarding = match node {
        Node::SideEffect { traversal } if ends_in_aggregate(traversal) => {
            let mut nodes = traversal.nodes.clone();
            nodes.push(Node::Discard.into());
            Some(Traversal { nodes })
        }
        _ => None,
    };
    let arms: Vec<&Traversal> = discarding.as_ref().map_or(arms, |traversal| vec![traversal]);
    let (count, step, splits) = (arms.len(), step.clone(), builder.requirements().in_hash_order);
    let probes = match kind {
        Kind::Map | Kind::FlatMap | Kind::Coalesce => builder.probes(&arms),
        Kind::Local | Kind::SideEffect | Kind::Optional => Vec::new(),
    };
    let probes: Arc<[_]> = probes.into();
    let mut options = BranchOptions::default();
    if kind == Kind::Map {
        options.arm_rows_limit = 1;
    }
    if kind == Kind::SideEffect {
        builder.spread_next_arm();
    }
    builder.branch(chain, node, false, &arms, options, move || SubQueryScope {
        kind,
        arms: count,
        step: step.clone(),
        splits,
        probes: ArmProbes::new(probes.clone()),
        rows: Vec::new(),
    })
}
