//! The language of test plans, and what turns it into plans of the runtime.

use std::cmp::Ordering as Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ficus_dataflow::branch::BranchScope;
use ficus_dataflow::fork::Fork;
use ficus_dataflow::loop_scope::LoopScope;
use ficus_dataflow::{
    BranchOptions, Demand, InterPolicy, IntraPolicy, LoopOptions, LoopPolicy, Node, NodeId, Operator, Plan, Region,
    Spread, SpreadHistory,
};

use super::Integers;
use super::operators::{Add, Dedup, EnterLoop, Expand, FailAt, Keep, Limit, MarkIf, Note, PanicAt, Sort, Sum};
use super::scopes::{BranchTest, Gate, ToAll};

/// What the egress of a branch scope makes of its arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// Passes the input if arm 0 yields something.
    Where,
    /// Passes the input if arm 0 yields nothing.
    Not,
    /// Yields what the first arm that yields something does.
    Coalesce,
    /// Yields what arm 0 does.
    FlatMap,
    /// Yields what arm 0 does, or the input.
    Optional,
    /// Yields nothing until EOS, then each instance's sum in order of size.
    GatherSum,
    /// Yields the first row of arm 0.
    First,
    /// Sends the first row of each arm into the next and yields that of the last.
    Relay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fifo,
    Bfs,
    Dfs,
    /// A comparator: even instance numbers before odd ones, then the newest.
    EvenFirst,
}

impl Policy {
    pub fn inter(self) -> InterPolicy {
        match self {
            Policy::Fifo => InterPolicy::Fifo,
            Policy::Bfs => InterPolicy::Bfs,
            Policy::Dfs => InterPolicy::Dfs,
            Policy::EvenFirst => InterPolicy::Comparator(even_first),
        }
    }

    pub fn intra(self) -> IntraPolicy {
        match self {
            Policy::Fifo => IntraPolicy::Fifo,
            Policy::Bfs => IntraPolicy::Bfs,
            Policy::Dfs => IntraPolicy::Dfs,
            Policy::EvenFirst => IntraPolicy::Comparator(|a, b| even_first(a.0.into(), b.0.into())),
        }
    }
}

fn even_first(a: u64, b: u64) -> Order {
    (a % 2).cmp(&(b % 2)).then(b.cmp(&a))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    Never,
    /// Every row that enters (again).
    First,
    /// Every row that went through the body.
    After,
}

/// A loop: at most `times` iterations, or until the number divided by `until.0` leaves `until.1`.
#[derive(Clone, Debug)]
pub struct Loop {
    pub id: u32,
    pub body: Vec<Step>,
    pub times: u32,
    pub until: Option<(i64, i64)>,
    /// Whether the end is tested before the body rather than after.
    pub tests_first: bool,
    pub emit: Emit,
    pub dfs: bool,
    pub inputs_at_once: usize,
    pub frontier_max: usize,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// x becomes x, x + 1, …
    Expand(i64),
    Add(i64),
    Keep {
        modulus: i64,
        rest: i64,
    },
    Dedup {
        by_value: bool,
    },
    Limit(usize),
    /// Barrier: yields a sum, 0 for nothing.
    Sum,
    /// Barrier: yields its input, sorted, and nothing for nothing.
    Sort,
    /// Notes numbers and tags in the ledger.
    Note,
    PanicAt(i64),
    FailAt(i64),
    Branch {
        kind: Branch,
        arms: Vec<Vec<Step>>,
        policy: Policy,
        max_instances: usize,
        arm_rows_limit: usize,
    },
    Fork {
        arms: Vec<Vec<Step>>,
        inputs_at_once: usize,
    },
    Loop(Loop),
    /// What it holds, on as many executors as have nothing else to do.
    Spread(Vec<Step>),
    /// Inside loops only: gives a row its counter.
    EnterLoop(u32),
    /// Inside loops only: marks rows for which the number divided by the first leaves the second.
    MarkIf(i64, i64),
}

/// Whether something in this region waits for EOS before it emits.
pub fn has_barrier(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Sum | Step::Sort => true,
        Step::Branch { kind, .. } => *kind == Branch::GatherSum,
        Step::Fork { arms, .. } => arms.iter().any(|arm| has_barrier(arm)),
        Step::Spread(steps) => has_barrier(steps),
        Step::Loop(inner) => has_barrier(&inner.body),
        _ => false,
    })
}

impl Loop {
    /// The tests before the first (or every) iteration.
    pub fn entry(&self) -> Vec<Step> {
        let mut steps = vec![Step::EnterLoop(self.id)];
        if self.tests_first {
            steps.extend(self.until.map(|(modulus, rest)| Step::MarkIf(modulus, rest)));
        }
        steps
    }

    /// The body with the tests after it.
    pub fn whole_body(&self) -> Vec<Step> {
        let mut steps = self.body.clone();
        if !self.tests_first {
            steps.extend(self.until.map(|(modulus, rest)| Step::MarkIf(modulus, rest)));
        }
        steps
    }

    pub fn gate(&self) -> Gate {
        Gate { id: self.id, times: self.times, tests_first: self.tests_first, emit: self.emit }
    }
}

/// A plan of the runtime, and how often each node's factory was called.
pub struct Built {
    pub plan: Arc<Plan<Integers>>,
    pub created: Arc<AtomicUsize>,
    pub names: Vec<String>,
}

impl Built {
    pub fn created(&self) -> usize {
        self.created.load(Ordering::SeqCst)
    }
}

/// Overrides what a plan says about its scopes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    pub policy: Option<Policy>,
    /// Of all regions.
    pub intra: Option<Policy>,
    pub max_instances: Option<usize>,
    pub runs_to_end: bool,
}

pub fn build(steps: &[Step], batch_rows_limit: usize) -> Built {
    build_with(steps, batch_rows_limit, Overrides::default())
}

pub fn build_with(steps: &[Step], batch_rows_limit: usize, overrides: Overrides) -> Built {
    let mut builder = Builder { names: Vec::new(), created: Arc::default(), overrides };
    let root = builder.region(steps);
    let node_count = builder.names.len() as u32;
    let plan = Arc::new(Plan { root, node_count, batch_rows_limit });
    Built { plan, created: builder.created, names: builder.names }
}

struct Builder {
    names: Vec<String>,
    created: Arc<AtomicUsize>,
    overrides: Overrides,
}

type Make = Arc<dyn Fn() -> Box<dyn Operator<Integers>> + Send + Sync>;

fn make<O: Operator<Integers> + 'static>(new: impl Fn() -> O + Send + Sync + 'static) -> Make {
    Arc::new(move || Box::new(new()))
}

impl Builder {
    fn region(&mut self, steps: &[Step]) -> Arc<Region<Integers>> {
        let policy = self.overrides.intra.unwrap_or(Policy::Dfs).intra();
        Arc::new(Region::with_policy(steps.iter().map(|step| self.node(step)).collect(), policy))
    }

    fn regions(&mut self, arms: &[Vec<Step>]) -> Arc<[Arc<Region<Integers>>]> {
        arms.iter().map(|arm| self.region(arm)).collect()
    }

    fn node(&mut self, step: &Step) -> Node<Integers> {
        let id = NodeId(self.names.len() as u32);
        let name = format!("{step:?}");
        self.names.push(name.clone());
        let factory = self.factory(id, step);
        let created = self.created.clone();
        Node {
            id,
            name: name.into(),
            emits_on_empty: matches!(step, Step::Sum),
            demand: match step {
                Step::Sum | Step::Sort => Demand::All,
                Step::Limit(_) => Demand::Few,
                _ => Demand::AsWanted,
            },
            factory: Arc::new(move || {
                created.fetch_add(1, Ordering::SeqCst);
                factory()
            }),
        }
    }

    fn factory(&mut self, id: NodeId, step: &Step) -> Make {
        match step {
            &Step::Expand(count) => make(move || Expand::new(count)),
            &Step::Add(amount) => make(move || Add { amount }),
            &Step::Keep { modulus, rest } => make(move || Keep { modulus, rest }),
            &Step::Dedup { by_value } => make(move || Dedup::new(by_value)),
            &Step::Limit(count) => make(move || Limit { count, seen: 0 }),
            Step::Sum => make(Sum::default),
            Step::Sort => make(Sort::default),
            Step::Note => make(|| Note),
            &Step::PanicAt(value) => make(move || PanicAt { value }),
            &Step::FailAt(value) => make(move || FailAt { value }),
            &Step::EnterLoop(id) => make(move || EnterLoop { id }),
            &Step::MarkIf(modulus, rest) => make(move || MarkIf { modulus, rest }),
            Step::Branch { kind, arms, policy, max_instances, arm_rows_limit } => {
                let (kind, arms) = (*kind, self.regions(arms));
                let options = BranchOptions {
                    max_instances: self.overrides.max_instances.unwrap_or(*max_instances),
                    policy: self.overrides.policy.unwrap_or(*policy).inter(),
                    instance_quota: 3,
                    arm_rows_limit: *arm_rows_limit,
                    cancels_early: !self.overrides.runs_to_end,
                };
                make(move || BranchScope::new(id, BranchTest::new(kind, arms.len()), arms.clone(), options))
            }
            Step::Fork { arms, inputs_at_once } => {
                let has_barrier = arms.iter().any(|arm| has_barrier(arm));
                let (arms, inputs_at_once) = (self.regions(arms), *inputs_at_once);
                make(move || Fork::new(ToAll, arms.clone(), has_barrier, inputs_at_once))
            }
            Step::Spread(steps) => {
                let (region, history) = (self.region(steps), Arc::new(SpreadHistory::default()));
                make(move || Spread::new(id, region.clone(), history.clone()))
            }
            Step::Loop(inner) => {
                let options = LoopOptions {
                    policy: if inner.dfs { LoopPolicy::Dfs } else { LoopPolicy::Bfs },
                    has_barrier: has_barrier(&inner.body),
                    tests_every_entry: inner.tests_first,
                    inputs_at_once: inner.inputs_at_once,
                    frontier_max: inner.frontier_max,
                };
                let (entry, body) = (self.region(&inner.entry()), self.region(&inner.whole_body()));
                let gate = inner.gate();
                make(move || LoopScope::new(gate.clone(), entry.clone(), body.clone(), options))
            }
        }
    }
}
