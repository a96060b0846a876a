//! From logical plan to dataflow plan: chooses operators, compiles modulators, places scopes.
//!
//! Every logical node becomes one or a few dataflow nodes. Children of `where`, `by`, `local`, `map` and the like become
//! arms of branch scopes (an instance per traverser); options of `union` and `choose` become arms of forks, because Gremlin
//! lets their operators see all traversers; `repeat` becomes a loop scope.

mod fused;
mod modulators;
pub mod requirements;
mod scans;
mod scopes;
mod spread;
mod ways;

use std::collections::{HashMap, VecDeque};
use std::fmt::{Display, Write};
use std::sync::Arc;

use ficus_dataflow::{
    BranchLogic, BranchOptions, Demand, ForkLogic, IntraPolicy, LoopLogic, LoopOptions, Node as FlowNode, NodeId,
    NodeName, Operator, Plan, Region, branch::BranchScope, fork::Fork, loop_scope::LoopScope,
};

use crate::access::Access;
use crate::bound::BoundRef;
use crate::context::{Graphs, Result};
use crate::experience::Experience;
use crate::logical::visit::PathNeed;
use crate::logical::{By, LabelledNode, LogicalPlan, Name, Node, Traversal, VertexProgram, VertexProgramKind};
use crate::many_walks::ManyWalks;
use crate::modulate::{Modulated, ModulatedLogic, Modulator, Plain};
use crate::operators;
use crate::operators::folds::Fold;
use crate::operators::hop_parts::{Distinct, LastHop};
use crate::operators::known_end;
use crate::operators::leaving_counts::FirstCounts;
use crate::operators::packed_ends::PackedEnds;
use crate::operators::scan::ScanFilter;
use crate::planning::Planning;
use crate::probe::Probe;
use crate::random::StepRandom;
use crate::rules::{self, Applied, Rule, RuleSet};
use crate::traverser::{Labels, StepInfo};

pub use modulators::Modulators;
pub use requirements::{Requirements, draws, has_barrier};
pub(crate) use scans::{conditions_of, fold_behind, labels_of};
pub use spread::rows_stand_alone;

/// Rows a queue holds before its producer pauses: large enough to amortise a turn, small enough to stay in cache.
pub const BATCH_ROWS: usize = 256;

/// Rows that all queues of a plan together hold, whatever the length of the plan: queues of tens of thousands of steps would hold a gibibyte.
const QUEUES_ROWS_MAX: usize = 1 << 18;

/// Rows of a batch at least.
const BATCH_ROWS_MIN: usize = 16;

/// The rows of a queue in a plan of so many nodes.
fn batch_rows(nodes: usize) -> usize {
    (QUEUES_ROWS_MAX / nodes.max(1)).clamp(BATCH_ROWS_MIN, BATCH_ROWS)
}

/// A runnable query.
pub struct PhysicalPlan {
    /// For the runtime.
    pub plan: Arc<Plan<Graphs>>,
    /// What each dataflow node is, by number.
    pub nodes: Vec<NodeInfo>,
    /// What the plan as a whole needs.
    pub requirements: Requirements,
    /// The rules by which steps were built otherwise than they are written, each with the steps if texts were to be kept.
    pub applied: Vec<Applied>,
    /// The parts of it that several executors may work on, as lines of steps, if texts were to be kept.
    pub spreads: Vec<String>,
    /// Its scopes, each with what it is of and how its instances run, if texts were to be kept.
    pub scopes: Vec<String>,
    /// How many bounds of orders it has.
    pub bounds: usize,
    /// Of each filter that may come to know all that passes, whether runs turned the hop in front of it round.
    pub passing: Vec<Arc<Experience>>,
    /// How many steps work in parts.
    pub parts: usize,
    /// What its places have found in earlier runs, in an order that is that of all plans of its kind.
    pub experiences: Vec<Arc<Experience>>,
}

/// What a dataflow node is, for `profile()`.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// As `explain()` shows the step.
    pub name: NodeName,
    /// The node whose arm it is in.
    pub parent: Option<NodeId>,
    /// Whether it is a step of the query (and not an auxiliary node such as a label).
    pub is_step: bool,
    /// Whether it does a part of the work of the step behind it, which its time is counted for.
    pub is_part: bool,
}

impl PhysicalPlan {
    /// Its steps as they run, one after another, with those of sub-queries in braces.
    pub fn operators(&self) -> String {
        let mut children: HashMap<Option<NodeId>, Vec<usize>> = HashMap::new();
        for (number, node) in self.nodes.iter().enumerate() {
            children.entry(node.parent).or_default().push(number);
        }
        let mut text = String::new();
        self.write_operators(None, &children, &mut text);
        text
    }

    fn write_operators(
        &self,
        parent: Option<NodeId>,
        children: &HashMap<Option<NodeId>, Vec<usize>>,
        text: &mut String,
    ) {
        let own = children.get(&parent).into_iter().flatten().filter(|number| self.nodes[**number].is_step);
        for (position, number) in own.enumerate() {
            text.push_str(if position > 0 { ", " } else { "" });
            let _ = write!(text, "{}", self.nodes[*number].name);
            let id = Some(NodeId(u32::try_from(*number).expect("plans are bounded by the front end")));
            if children.contains_key(&id) {
                text.push_str(" { ");
                self.write_operators(id, children, text);
                text.push_str(" }");
            }
        }
    }
}

/// Builds the physical plan. With `keep_texts` it says of each rule which steps it was applied to, what is spread, and how
/// scopes run.
///
/// Errors: `Invalid` for uses no operator can carry out; those of `planning`.
pub fn build(logical: &LogicalPlan, keep_texts: bool, planning: &Planning) -> Result<PhysicalPlan> {
    let requirements = Requirements::of(logical);
    let mut builder = Builder {
        nodes: Vec::new(),
        parents: Vec::new(),
        requirements: requirements.clone(),
        next_loop: 0,
        loop_depth: 0,
        at_start: true,
        depth: 0,
        access: Access::default(),
        first: None,
        last: None,
        last_hop: None,
        first_counts: None,
        filter: None,
        pending_bound: None,
        maps_bound: None,
        order_bound: None,
        bounds: 0,
        pending_passing: VecDeque::new(),
        passing: 0,
        parts: 0,
        randoms: 0,
        packed_label: None,
        packed_fold: None,
        packed_ends: None,
        rules: RuleSet::of_plan(logical),
        applied: Vec::new(),
        keep_texts,
        planning: planning.clone(),
        scopes: scopes::Scopes::of(logical),
        intra: scopes::of_query(logical, requirements.row_by_row)?,
        pieces: spread::Pieces::default(),
        spreads: Vec::new(),
        experiences: Vec::new(),
        may_spread: logical.source.is_on(crate::options::SPREAD)
            && !requirements.row_by_row
            && !spread::has_open_effects(&logical.root),
        may_merge: rules::may_merge(logical, &requirements),
        spreads_next_arm: false,
        behind_next_arms: Distinct::No,
    };
    let root = builder.spread_region(&logical.root)?;
    builder.scopes.check(logical)?;
    let plan = Plan {
        root,
        node_count: u32::try_from(builder.nodes.len()).expect("plans are bounded by the front end"),
        batch_rows_limit: if requirements.row_by_row { 1 } else { batch_rows(builder.nodes.len()) },
    };
    let passing: Vec<Arc<Experience>> = (0..builder.passing).map(|_| Arc::default()).collect();
    builder.experiences.extend_from_slice(&passing);
    Ok(PhysicalPlan {
        plan: Arc::new(plan),
        nodes: builder.nodes,
        requirements,
        applied: builder.applied,
        spreads: builder.spreads,
        scopes: builder.scopes.shown,
        bounds: builder.bounds,
        passing,
        parts: builder.parts,
        experiences: builder.experiences,
    })
}

/// Collects the dataflow nodes of one plan.
pub struct Builder {
    nodes: Vec<NodeInfo>,
    parents: Vec<NodeId>,
    requirements: Requirements,
    next_loop: u32,
    /// `repeat` bodies around the current place.
    pub loop_depth: usize,
    /// Whether a region built now begins the query, so that its first node replaces the seed.
    pub at_start: bool,
    depth: usize,
    /// What the next scan may leave out.
    access: Access,
    /// Rows of the next order that are enough, in front or at its end.
    first: Option<usize>,
    last: Option<usize>,
    /// Where the last hop of the loop being built has to lead to in its last iteration, and where that is.
    last_hop: Option<(LoopPlace, LastHop)>,
    /// Counts of the next `groupCount()` that are enough.
    first_counts: Option<FirstCounts>,
    /// The conditions of the next scan.
    filter: Option<ScanFilter>,
    /// The bound that the next order at the top tells, once it is reached.
    pending_bound: Option<usize>,
    /// The bound that the `project()` being built heeds.
    maps_bound: Option<BoundRef>,
    /// The bound that the order being built tells.
    order_bound: Option<usize>,
    /// Bounds so far.
    bounds: usize,
    /// Where the next filters by sub-queries at the top say what passes.
    pending_passing: VecDeque<Option<usize>>,
    /// Filters so far that may come to know all that passes.
    passing: usize,
    /// Steps so far that work in parts.
    parts: usize,
    /// Steps so far that draw random numbers.
    randoms: usize,
    /// What the next `group()` gathers, if the hop before it packs what it finds.
    packed_label: Option<Name>,
    /// What is made of the values of the ends that the hop before packs, and how many nodes say so.
    packed_fold: Option<(Fold, usize)>,
    /// What the next step that counts keys, or keeps those that differ, knows of the hop before it, if that packs what it finds.
    packed_ends: Option<PackedEnds>,
    /// The rules that the query leaves on.
    rules: RuleSet,
    /// Those that were applied so far, each with the steps it was applied to if they are to be kept.
    applied: Vec<Applied>,
    keep_texts: bool,
    /// What may end it before it is built.
    planning: Planning,
    /// How scopes run.
    scopes: scopes::Scopes,
    /// Who goes first in the regions that are built now.
    intra: IntraPolicy,
    /// What became of the nodes of the region that is to be spread.
    pieces: spread::Pieces,
    /// What spreads hold, as `explain()` shows it.
    spreads: Vec<String>,
    /// What places have found in earlier runs.
    experiences: Vec<Arc<Experience>>,
    may_spread: bool,
    /// Whether of equal rows one may go on that counts as often.
    may_merge: bool,
    /// The arm that is built next is entered by one row of the query, and may be spread.
    spreads_next_arm: bool,
    /// What the step behind the union that is built next makes of equal rows.
    behind_next_arms: Distinct,
}

/// The dataflow nodes of a region under construction.
pub type Chain = Vec<FlowNode<Graphs>>;

/// How deep a region lies in others, and in loops.
type LoopPlace = (usize, usize);

/// Nested traversals a plan may have; scopes nest on the executor's stack.
const DEPTH_MAX: usize = 200;

impl Builder {
    /// Builds the region of a traversal.
    pub fn region(&mut self, traversal: &Traversal) -> Result<Arc<Region<Graphs>>> {
        self.region_before(traversal, Distinct::No)
    }

    /// As [`Builder::region`], of one behind which something drops rows that are equal in this way.
    fn region_before(&mut self, traversal: &Traversal, behind: Distinct) -> Result<Arc<Region<Graphs>>> {
        if self.depth >= DEPTH_MAX {
            return Err(crate::error::QueryError::invalid(format!(
                "traversals are nested more than {DEPTH_MAX} deep; flatten the query"
            )));
        }
        let may_forget = self.depth == 0 && self.may(Rule::ForgottenWays) && self.requirements.paths != PathNeed::None;
        let forgotten_behind = if may_forget { ways::forgotten_behind(traversal, self.order_matters()) } else { None };
        self.depth += 1;
        let mut chain = Chain::new();
        self.line(traversal, behind, forgotten_behind, &mut chain)?;
        self.depth -= 1;
        Ok(Arc::new(Region::with_policy(chain, self.intra)))
    }

    /// Whether services must not write.
    pub fn read_only(&self) -> bool {
        self.requirements.read_only
    }

    /// Whether the answer, or what the query does, may depend on the order in which rows of loops go.
    pub fn order_matters(&self) -> bool {
        self.requirements.row_by_row || self.requirements.in_hash_order
    }

    fn node(&mut self, labelled: &LabelledNode, chain: &mut Chain) -> Result<()> {
        let step = self.step(&labelled.labels);
        let outer = self.scopes.enter(&labelled.labels);
        // What is injected carries the labels already; what passes by is labelled behind.
        let is_passed =
            keeps_object(&labelled.node) || matches!(labelled.node, Node::Inject { .. }) && !self.starts_query(chain);
        operators::build(self, &labelled.node, &step, chain)?;
        self.scopes.leave(outer);
        if step.tracking && !labelled.labels.is_empty() && is_passed {
            operators::label::build(self, step.labels.clone(), chain);
        }
        Ok(())
    }

    /// Labels and tracking of a step.
    pub fn step(&self, labels: &[Name]) -> StepInfo {
        let tracking = match self.requirements.paths {
            PathNeed::None => false,
            PathNeed::Labels => !labels.is_empty(),
            PathNeed::Full => true,
        };
        StepInfo { labels: Labels::from(labels), tracking }
    }

    /// What the plan needs.
    pub fn requirements(&self) -> &Requirements {
        &self.requirements
    }

    /// Whether the next node of `chain` is the first of the query.
    pub fn starts_query(&self, chain: &Chain) -> bool {
        self.at_start && chain.is_empty()
    }

    /// Whether the current place is outside all children and loops.
    pub fn at_top(&self) -> bool {
        self.depth <= 1 && self.loop_depth == 0
    }

    /// Says that the arm of the side effect being built is spread where that is possible: outside all others it has effects of one row only,
    /// or none.
    pub fn spread_next_arm(&mut self) {
        self.spreads_next_arm = self.at_top();
    }

    /// A number for a `repeat`.
    pub fn loop_scope(&mut self) -> u32 {
        self.next_loop += 1;
        self.next_loop
    }

    fn register(&mut self, name: &NodeName) -> NodeId {
        let id = self.next_id();
        self.nodes.push(NodeInfo {
            name: name.clone(),
            parent: self.parents.last().copied(),
            is_step: true,
            is_part: false,
        });
        id
    }

    /// The nodes so far.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        self.nodes.clone()
    }

    /// The number the next node gets.
    pub fn next_id(&self) -> NodeId {
        NodeId(u32::try_from(self.nodes.len()).expect("plans are bounded by the front end"))
    }

    /// Marks the node as auxiliary: not shown as a step.
    pub fn auxiliary(&mut self, id: NodeId) {
        self.nodes[id.0 as usize].is_step = false;
    }

    /// Marks the node as one that does a part of the work of the step behind it.
    pub fn part_of_next(&mut self, id: NodeId) {
        self.auxiliary(id);
        self.nodes[id.0 as usize].is_part = true;
    }

    /// Adds an operator; `make` makes one per instance.
    pub fn operator<O: Operator<Graphs> + 'static>(
        &mut self,
        chain: &mut Chain,
        name: impl Into<NodeName>,
        emits_on_empty: bool,
        make: impl Fn() -> O + Send + Sync + 'static,
    ) -> NodeId {
        let name = name.into();
        let id = self.register(&name);
        chain.push(FlowNode {
            id,
            name,
            emits_on_empty,
            demand: Demand::AsWanted,
            factory: Arc::new(move || Box::new(make())),
        });
        id
    }

    /// Builds the regions of arms as children of the node `name`, which `add` then adds with them. In them goes first who `intra` says: of arms
    /// that are no instances of their own, as in the region around them.
    fn with_arms<T>(
        &mut self,
        name: NodeName,
        arms: &[&Traversal],
        starts: bool,
        intra: IntraPolicy,
        add: impl FnOnce(&mut Builder, NodeId, NodeName, Arc<[Arc<Region<Graphs>>]>) -> T,
    ) -> Result<T> {
        let id = self.register(&name);
        self.parents.push(id);
        let at_start = std::mem::replace(&mut self.at_start, starts);
        let around = std::mem::replace(&mut self.intra, intra);
        let mut regions = Vec::with_capacity(arms.len());
        let (spreads, behind) =
            (std::mem::take(&mut self.spreads_next_arm), std::mem::take(&mut self.behind_next_arms));
        for arm in arms {
            regions.push(if spreads { self.spread_region(arm)? } else { self.region_before(arm, behind)? });
        }
        (self.at_start, self.intra) = (at_start, around);
        self.parents.pop();
        Ok(add(self, id, name, regions.into()))
    }

    /// Adds a branch scope with these arms.
    pub fn branch<L: BranchLogic<Graphs> + 'static>(
        &mut self,
        chain: &mut Chain,
        name: impl Into<NodeName>,
        emits_on_empty: bool,
        arms: &[&Traversal],
        options: BranchOptions,
        make: impl Fn() -> L + Send + Sync + 'static,
    ) -> Result<()> {
        let name = name.into();
        let (options, intra) = self.branch_options(&name, arms, options)?;
        let shared = std::mem::take(&mut self.scopes.shared);
        self.with_arms(name, arms, false, intra, |_, id, name, regions| {
            chain.push(FlowNode {
                id,
                name,
                emits_on_empty,
                demand: Demand::AsWanted,
                factory: Arc::new(move || Box::new(BranchScope::new(id, make(), regions.clone(), options))),
            });
        })?;
        self.scopes.shared = shared;
        Ok(())
    }

    /// Adds an operator that sends its inputs through these arms together.
    pub fn shared<O: Operator<Graphs> + 'static>(
        &mut self,
        chain: &mut Chain,
        name: impl Into<NodeName>,
        arms: &[&Traversal],
        make: impl Fn(Arc<[Arc<Region<Graphs>>]>) -> O + Send + Sync + 'static,
    ) -> Result<()> {
        let outer = std::mem::replace(&mut self.scopes.shared, true);
        self.with_arms(name.into(), arms, false, self.intra, |_, id, name, regions| {
            let factory = Arc::new(move || Box::new(make(regions.clone())) as Box<_>);
            chain.push(FlowNode { id, name, emits_on_empty: false, demand: Demand::AsWanted, factory });
        })?;
        self.scopes.shared = outer;
        Ok(())
    }

    /// Adds a fork with these arms; `starts`: they begin the query.
    pub fn fork<L: ForkLogic<Graphs> + 'static>(
        &mut self,
        chain: &mut Chain,
        name: impl Into<NodeName>,
        arms: &[&Traversal],
        starts: bool,
        make: impl Fn() -> L + Send + Sync + 'static,
    ) -> Result<()> {
        let has_barrier = arms.iter().any(|arm| has_barrier(arm));
        self.with_arms(name.into(), arms, starts, self.intra, |_, id, name, regions| {
            chain.push(FlowNode {
                id,
                name,
                emits_on_empty: false,
                demand: Demand::AsWanted,
                factory: Arc::new(move || Box::new(Fork::new(make(), regions.clone(), has_barrier, 1))),
            });
        })
    }

    /// Adds a loop scope. `entry` and `body` add their nodes to a chain.
    pub fn loop_scope_node<L: LoopLogic<Graphs> + 'static>(
        &mut self,
        chain: &mut Chain,
        name: impl Into<NodeName>,
        options: LoopOptions,
        regions: impl FnOnce(&mut Builder, &mut Chain, &mut Chain) -> Result<()>,
        make: impl Fn() -> L + Send + Sync + 'static,
    ) -> Result<()> {
        let name = name.into();
        let (options, intra) = self.loop_options(&name, options)?;
        let id = self.register(&name);
        self.parents.push(id);
        self.depth += 1;
        let at_start = std::mem::replace(&mut self.at_start, false);
        let around = std::mem::replace(&mut self.intra, intra);
        let (mut entry, mut body) = (Chain::new(), Chain::new());
        regions(self, &mut entry, &mut body)?;
        (self.at_start, self.intra) = (at_start, around);
        self.depth -= 1;
        self.parents.pop();
        let region = |nodes| Arc::new(Region::with_policy(nodes, intra));
        let (entry, body) = (region(entry), region(body));
        chain.push(FlowNode {
            id,
            name,
            emits_on_empty: false,
            demand: Demand::AsWanted,
            factory: Arc::new(move || Box::new(LoopScope::new(make(), entry.clone(), body.clone(), options))),
        });
        Ok(())
    }

    /// Builds a region that an operator runs by itself, shown below a node of its own.
    pub fn child_region(&mut self, name: impl Into<NodeName>, traversal: &Traversal) -> Result<Arc<Region<Graphs>>> {
        self.with_arms(name.into(), &[traversal], false, IntraPolicy::Dfs, |_, _, _, regions| regions[0].clone())
    }

    /// Adds the nodes of `traversal` to a chain, in place.
    pub fn inline(&mut self, traversal: &Traversal, chain: &mut Chain) -> Result<()> {
        self.inline_before(traversal, Distinct::No, chain)
    }

    /// As [`Builder::inline`], of nodes behind which something drops rows that are equal in this way.
    pub fn inline_before(&mut self, traversal: &Traversal, behind: Distinct, chain: &mut Chain) -> Result<()> {
        self.line(traversal, behind, None, chain)
    }

    /// Adds the nodes of a line; behind so many of them rows forget their way.
    fn line(
        &mut self,
        traversal: &Traversal,
        behind: Distinct,
        mut forgotten_behind: Option<usize>,
        chain: &mut Chain,
    ) -> Result<()> {
        let mut position = 0;
        while let Some(labelled) = traversal.nodes.get(position) {
            self.planning.check()?;
            let (start, first) = (chain.len(), position);
            position += 1 + self.fused(labelled, &traversal.nodes[position + 1..], behind, chain)?;
            set_demand(&traversal.nodes[first..position], &mut chain[start..]);
            if forgotten_behind.take_if(|place| position >= *place).is_some() {
                self.forget_ways(&traversal.nodes[position - 1].node, chain);
            }
            if self.pieces.are_of(self.depth, self.loop_depth) {
                self.pieces.note(&traversal.nodes[first..position], start, chain.len(), self.keep_texts);
            }
        }
        Ok(())
    }

    /// The probes of arms that can be evaluated in place, unless the query wants scopes.
    pub fn probes(&mut self, arms: &[&Traversal]) -> Vec<Option<Probe>> {
        self.compiled(arms, Probe::compile)
    }

    /// As [`Builder::probes`], of sub-queries of which only matters whether they yield anything.
    pub fn tests(&mut self, arms: &[&Traversal]) -> Vec<Option<Probe>> {
        self.compiled(arms, Probe::compile_test)
    }

    /// As [`Builder::tests`], of sub-queries the first of which makes a choice: of that the first value matters, unless the choice is whether there is one.
    pub fn choice_probes(&mut self, arms: &[&Traversal], boolean: bool) -> Vec<Option<Probe>> {
        let mut probes = self.tests(arms);
        if let ([choice, ..], [probe @ Some(_), ..], false) = (arms, probes.as_mut_slice(), boolean) {
            *probe = Probe::compile(choice);
            self.settle(choice, probe.as_mut());
        }
        probes
    }

    fn compiled(&mut self, arms: &[&Traversal], compile: fn(&Traversal) -> Option<Probe>) -> Vec<Option<Probe>> {
        let in_place = self.evaluates_in_place() && !self.is_addressed(arms);
        let mut probes: Vec<_> = arms.iter().map(|arm| if in_place { compile(arm) } else { None }).collect();
        arms.iter().zip(&mut probes).for_each(|(arm, probe)| self.settle(arm, probe.as_mut()));
        self.scopes.tried_in_place = probes.iter().any(Option::is_some);
        probes
    }

    /// Has the hops of a probe look for known ends if the query leaves that on, and what it finds be known to later ones.
    fn settle(&mut self, arm: &Traversal, mut probe: Option<&mut Probe>) {
        if let Some(probe) = &mut probe {
            self.experiences.append(&mut probe.experiences());
        }
        match probe {
            Some(probe) if !self.may(Rule::EdgesBetween) => probe.forget_known_ends(),
            Some(_) if known_end::is_named_in(arm) => self.note(Rule::EdgesBetween, arm),
            _ => {}
        }
    }

    /// What the scan being built may leave out. No index knows of properties that a program computes.
    pub fn take_access(&mut self) -> Access {
        let access = std::mem::take(&mut self.access);
        if self.requirements.computes { access.without_tests() } else { access }
    }

    /// What is known of the hop before the step being built, if that packs what it finds.
    pub fn take_packed_ends(&mut self) -> Option<PackedEnds> {
        self.packed_ends.take()
    }

    /// How many rows of the order being built are enough; none: all are wanted.
    pub fn take_first(&mut self) -> Option<usize> {
        self.first.take()
    }

    /// How many rows at the end of the order being built are enough; none: all are wanted.
    pub fn take_last(&mut self) -> Option<usize> {
        self.last.take()
    }

    /// Which counts of the `groupCount()` being built are enough; none: all are wanted.
    pub fn take_first_counts(&mut self) -> Option<FirstCounts> {
        self.first_counts.take()
    }

    /// The conditions of the scan being built that have no step of their own, as the plan shows them.
    pub fn conditions_of_scan(&self) -> String {
        self.filter.as_ref().map(|filter| filter.shown.clone()).unwrap_or_default()
    }

    /// The conditions of the scan being built.
    pub fn take_filter(&mut self) -> Option<ScanFilter> {
        self.filter.take()
    }

    /// A place of the query where it can be told which vertices pass a filter.
    pub fn new_passing(&mut self) -> usize {
        self.passing += 1;
        self.passing - 1
    }

    /// Where the filter by sub-queries being built says what passes.
    pub fn take_passing(&mut self) -> Option<usize> {
        if self.at_top() { self.pending_passing.pop_front().flatten() } else { None }
    }

    /// The bound that the `project()` being built heeds.
    pub fn take_maps_bound(&mut self) -> Option<BoundRef> {
        self.maps_bound.take()
    }

    /// The bound that the order being built tells.
    pub fn take_order_bound(&mut self) -> Option<usize> {
        self.order_bound.take()
    }

    /// The random numbers of a step that is built next.
    pub fn new_random(&mut self) -> StepRandom {
        self.randoms += 1;
        StepRandom::of_step(self.randoms - 1)
    }

    /// Whether the query leaves a rule on.
    pub fn may(&self, rule: Rule) -> bool {
        self.rules.has(rule)
    }

    /// Takes note that a rule was applied to `steps`.
    pub fn note(&mut self, rule: Rule, steps: &dyn Display) {
        let known = self.applied.iter_mut().find(|(own, _)| *own == rule);
        match known {
            Some((_, text)) if self.keep_texts => {
                let _ = write!(text, "; {steps}");
            }
            Some(_) => {}
            None => self.applied.push((rule, if self.keep_texts { steps.to_string() } else { String::new() })),
        }
    }

    /// The walks of a `by()`, if rows may make them in front of the step, before the steps behind it have seen those before.
    pub fn walks_ahead(&mut self, by: &By) -> Option<ManyWalks> {
        let Requirements { writes, row_by_row, .. } = self.requirements;
        let By::Traversal(traversal) = by else { return None };
        let may_walk = self.may(Rule::WalksOfMany) && !writes && !row_by_row && self.evaluates_in_place();
        if !may_walk || self.is_addressed(&[traversal]) {
            return None;
        }
        let walks = ManyWalks::of(traversal)?;
        self.note(Rule::WalksOfMany, traversal);
        Some(walks)
    }

    /// Adds a step with modulators. Modulator `i` of the logic is `modulators[i]`.
    pub fn modulated<L: ModulatedLogic + 'static>(
        &mut self,
        chain: &mut Chain,
        name: impl Into<NodeName>,
        emits_on_empty: bool,
        modulators: Modulators<'_>,
        make: impl Fn() -> L + Send + Sync + 'static,
    ) -> Result<()> {
        let mut modulators = modulators;
        let in_place = self.evaluates_in_place() && !self.is_addressed(&modulators.arms);
        if in_place && self.may(Rule::CountDegrees) {
            for counted in modulators.replace_arms(modulators::degree) {
                self.note(Rule::CountDegrees, &counted);
            }
        }
        if in_place {
            for found in modulators.replace_arms(modulators::look_up) {
                self.note(Rule::InPlace, &found);
            }
        }
        let Modulators { mut compiled, arms } = modulators;
        if arms.is_empty() {
            self.operator(chain, name, emits_on_empty, move || Plain::new(make(), compiled.clone()));
            return Ok(());
        }
        for modulator in &mut compiled {
            if let Modulator::Arm { arm, probe } = modulator {
                *probe = probe.take().filter(|_| in_place);
                self.settle(arms[*arm], probe.as_deref_mut());
                self.scopes.tried_in_place |= probe.is_some();
            }
        }
        // The first result decides; more would be wasted.
        let options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
        let keeps_ways = self.requirements.paths == PathNeed::Full;
        self.branch(chain, name, emits_on_empty, &arms, options, move || {
            Modulated::new(make(), compiled.clone(), keeps_ways)
        })
    }
}

/// Says how much of what comes to these steps the nodes take that were made of them.
fn set_demand(steps: &[LabelledNode], nodes: &mut [FlowNode<Graphs>]) {
    let gathers =
        |own: &LabelledNode| crate::logical::visit::is_barrier(&own.node) && !matches!(own.node, Node::Barrier { .. });
    let ends_early = |own: &LabelledNode| matches!(own.node, Node::Range { .. } | Node::TimeLimit { .. });
    // Of what is in order already no more may be read than is wanted.
    if !steps.first().is_some_and(gathers) && steps.iter().any(ends_early) {
        nodes.iter_mut().for_each(|node| node.demand = Demand::Few);
    } else if let (true, Some(last)) = (steps.iter().any(gathers), nodes.last_mut()) {
        last.demand = Demand::All;
    }
}

/// Nodes whose traversers keep their object, so that `as()` after them labels the object that is there.
pub(crate) fn keeps_object(node: &Node) -> bool {
    matches!(
        node,
        Node::Has { .. }
            | Node::AdjacentFrom { .. }
            | Node::KeepLabels { .. }
            | Node::HasProperty { .. }
            | Node::Is { .. }
            | Node::WherePredicate { .. }
            | Node::WhereTraversal { .. }
            | Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::Collection { .. }
            | Node::Coin { .. }
            | Node::Sample { .. }
            | Node::Dedup { .. }
            | Node::Range { .. }
            | Node::Tail { .. }
            | Node::PathFilter { .. }
            | Node::TimeLimit { .. }
            | Node::LoopsAtLeast { .. }
            | Node::Identity
            | Node::Local { .. }
            | Node::SideEffect { .. }
            | Node::SackWith { .. }
            | Node::Order { scope: ficus_model::Scope::Global, .. }
            | Node::Group { side_effect: Some(_), .. }
            | Node::GroupCount { side_effect: Some(_), .. }
            | Node::Tree { side_effect: Some(_), .. }
            | Node::Barrier { .. }
            | Node::VertexProgram(VertexProgram {
                kind: VertexProgramKind::PageRank { .. }
                    | VertexProgramKind::ConnectedComponent
                    | VertexProgramKind::PeerPressure { .. },
                ..
            })
            | Node::Profile { side_effect: Some(_) }
            | Node::Aggregate { .. }
            | Node::Subgraph { .. }
            | Node::Union { .. }
            | Node::Choose { .. }
            | Node::Optional { .. }
            | Node::Repeat(_)
            | Node::AddProperty { .. }
    )
}

#[cfg(test)]
mod tests {
    use ficus_model::Direction;

    use super::*;
    use crate::logical::{Reach, WherePredicate};

    #[test]
    fn long_plans_are_built_and_shown_step_by_step() {
        // With a look at all steps for each of them this takes minutes.
        const STEPS: usize = 300_000;
        let mut plan = LogicalPlan::default();
        plan.root.nodes = vec![Node::Constant { value: ficus_model::Value::Int(1) }.into(); STEPS];
        let physical = build(&plan, true, &crate::planning::UNLIMITED).expect("it can be carried out");
        assert_eq!(physical.operators().matches("ConstantStep").count(), STEPS);
    }

    #[test]
    fn hops_with_many_tests_are_built_shown_and_freed() {
        const TESTS: usize = 100_000;
        let label: Name = "a".into();
        let test = Node::WherePredicate {
            start: None,
            predicate: WherePredicate::Compare(ficus_model::Comparison::Neq, label.clone()),
            bys: Vec::new(),
        };
        let hop = Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex };
        let mut plan = LogicalPlan::default();
        plan.root.nodes = vec![Node::Vertices { ids: Vec::new(), all: true }.into(), hop.into()];
        plan.root.nodes[0].labels.push(label);
        plan.root.nodes.extend(vec![test.into(); TESTS]);
        let physical = build(&plan, true, &crate::planning::UNLIMITED).expect("it can be carried out");
        assert_eq!(physical.operators().matches("neq(a)").count(), TESTS);
    }
}
