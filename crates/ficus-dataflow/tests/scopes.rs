//! Scope instances: every order in which they can be advanced, ended one by one, created late, reused.

mod kit;

use std::cell::RefCell;
use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ficus_dataflow::Waker;
use ficus_dataflow::branch::BranchScope;
use ficus_dataflow::region::{RegionFlow, RegionInstance};
use ficus_dataflow::{
    BranchLogic, BranchOptions, Control, Cx, Demand, Flow, InterPolicy, IntraPolicy, Node, NodeId, Operator, Plan,
    Queue, Region, RowsLimits, ScopeTag, Turn,
};
use kit::choices::Choices;
use kit::random::PlanMaker;
use kit::reference::evaluate;
use kit::scopes::BranchTest;
use kit::steps::{Branch, Built, Emit, Loop, Overrides, Policy, Step, build, build_with};
use kit::{Integers, Ledger, Row, TestError, rows, run};

fn branch(kind: Branch, arm: Vec<Step>) -> Step {
    Step::Branch { kind, arms: vec![arm], policy: Policy::Fifo, max_instances: 1, arm_rows_limit: 1 }
}

fn loop_of(id: u32, times: u32, body: Vec<Step>) -> Step {
    Step::Loop(Loop {
        id,
        body,
        times,
        until: None,
        tests_first: false,
        emit: Emit::Never,
        dfs: false,
        inputs_at_once: 1,
        frontier_max: usize::MAX,
    })
}

fn values(steps: &[Step], seeds: &[i64]) -> Vec<i64> {
    run(&build(steps, 4).plan, rows(seeds.iter().copied()), 1000).values()
}

fn node(id: u32, make: impl Fn() -> Box<dyn Operator<Integers>> + Send + Sync + 'static) -> Node<Integers> {
    Node {
        id: NodeId(id),
        name: "test".into(),
        emits_on_empty: false,
        demand: Demand::AsWanted,
        factory: Arc::new(make),
    }
}

thread_local! {
    /// Decides comparisons of instances.
    static CHOICES: RefCell<Choices> = RefCell::default();
}

fn chosen(_: u64, _: u64) -> Order {
    // The first of equals wins, so two ways are enough.
    CHOICES.with_borrow_mut(|choices| if choices.below(2) == 0 { Order::Less } else { Order::Greater })
}

/// Emits the numbers from 1 up to its input, one per turn.
#[derive(Default)]
struct Count {
    next: i64,
}

impl Operator<Integers> for Count {
    fn process(
        &mut self,
        input: &mut Queue<Row>,
        out: &mut Queue<Row>,
        cx: &mut Cx<'_, Integers>,
    ) -> Result<Flow, TestError> {
        let Some(row) = input.front() else { return Ok(Flow::Ready) };
        cx.context.trace.push((row.value, cx.tag.numbers().to_vec()));
        self.next += 1;
        if self.next > row.value % 10 {
            input.pop_front();
            self.next = 0;
            return Ok(Flow::Ready);
        }
        out.push_back(Row { value: row.value / 10 * 10 + self.next, ..row.clone() });
        Ok(Flow::More)
    }

    fn reset(&mut self) {
        self.next = 0;
    }
}

#[test]
fn every_order_of_advancing_instances_yields_the_same_rows() {
    // Inputs 10, 22, 31 count to 0, 2 and 1.
    for (kind, expected) in [
        (Branch::FlatMap, vec![21, 22, 31]),
        (Branch::Where, vec![22, 31]),
        (Branch::Not, vec![10]),
        (Branch::First, vec![21, 31]),
        (Branch::Optional, vec![10, 21, 22, 31]),
        (Branch::GatherSum, vec![0, 31, 43]),
    ] {
        // Orders of three at once are many; two kinds have to do.
        let most = if matches!(kind, Branch::FlatMap | Branch::GatherSum) { 3 } else { 2 };
        for max_instances in 2..=most {
            let mut runs = 0;
            let mut orders = std::collections::BTreeSet::new();
            CHOICES.set(Choices::default());
            loop {
                let arm = Arc::new(Region::new(vec![node(1, || Box::new(Count::default()))]));
                let options = BranchOptions {
                    max_instances,
                    policy: InterPolicy::Comparator(chosen),
                    instance_quota: 1,
                    arm_rows_limit: 1,
                    ..BranchOptions::default()
                };
                let scope = node(0, move || {
                    let arms: Arc<[_]> = [arm.clone()].into();
                    Box::new(BranchScope::new(NodeId(0), BranchTest::new(kind, 1), arms, options))
                });
                let root = Arc::new(Region::new(vec![scope]));
                let plan = Arc::new(Plan { root, node_count: 2, batch_rows_limit: 16 });
                let end = run(&plan, rows([10, 22, 31]), 5);
                let mut found = end.values();
                orders.insert(found.clone());
                found.sort_unstable();
                let decisions = CHOICES.with_borrow(Choices::text);
                assert_eq!(found, expected, "{kind:?}, {max_instances} instances, decisions {decisions}");
                assert_eq!(end.ledger.retained(), 0);
                // What an instance sees is its own input, whatever the others do.
                let seen: std::collections::BTreeSet<_> = end.ledger.trace.into_iter().collect();
                let inputs: std::collections::BTreeSet<i64> = seen.iter().map(|(value, _)| *value).collect();
                let tags: std::collections::BTreeSet<_> = seen.iter().map(|(_, tag)| tag.clone()).collect();
                assert_eq!((inputs.len(), tags.len()), (seen.len(), seen.len()), "one tag per input: {seen:?}");
                runs += 1;
                if !CHOICES.with_borrow_mut(Choices::next_run) {
                    break;
                }
            }
            // Two of the inputs of `Optional` need no instance.
            assert!(runs >= if kind == Branch::Optional { 1 } else { 4 }, "{kind:?}: {runs} orders");
            if kind == Branch::FlatMap {
                assert!(orders.len() > 1, "the decisions change nothing");
            }
        }
    }
}

/// Ends instances when told to, and notes who is alive.
struct Terminator {
    /// Instance to end (by the tens of its input) and after how many of its rows.
    victim: (i64, usize),
}

impl BranchLogic<Integers> for Terminator {
    type State = usize;

    fn open(
        &mut self,
        input: Row,
        _: &mut usize,
        _: &mut Queue<Row>,
        _: &mut Cx<'_, Integers>,
    ) -> Result<Turn<Row>, TestError> {
        Ok(Turn::Enter { arm: 0, message: input })
    }

    fn receive(
        &mut self,
        message: Row,
        rows: &mut usize,
        out: &mut Queue<Row>,
        _: &mut Cx<'_, Integers>,
    ) -> Result<Turn<Row>, TestError> {
        *rows += 1;
        let (victim, after) = self.victim;
        let ends = message.value / 10 == victim && *rows == after;
        out.push_back(message);
        Ok(if ends { Turn::Close } else { Turn::Continue })
    }

    fn arm_ended(
        &mut self,
        _: &mut usize,
        _: &mut Queue<Row>,
        _: &mut Cx<'_, Integers>,
    ) -> Result<Turn<Row>, TestError> {
        Ok(Turn::Close)
    }
}

#[test]
fn each_instance_can_be_ended_without_touching_its_siblings() {
    let policies = [InterPolicy::Fifo, InterPolicy::Bfs, InterPolicy::Dfs, Policy::EvenFirst.inter()];
    for policy in policies {
        for arm_rows_limit in [1, 2, 16] {
            for victim in 1..=4 {
                for after in 1..=4 {
                    let options = BranchOptions {
                        max_instances: 4,
                        policy,
                        instance_quota: 2,
                        arm_rows_limit,
                        ..BranchOptions::default()
                    };
                    let arm = Arc::new(Region::new(vec![node(1, || Box::new(Count::default()))]));
                    let scope = node(0, move || {
                        let arms: Arc<[_]> = [arm.clone()].into();
                        let logic = Terminator { victim: (victim, after) };
                        Box::new(BranchScope::new(NodeId(0), logic, arms, options))
                    });
                    let root = Arc::new(Region::new(vec![scope]));
                    let plan = Arc::new(Plan { root, node_count: 2, batch_rows_limit: 16 });
                    let end = run(&plan, rows([14, 24, 34, 44]), 3);
                    let mut found = end.values();
                    found.sort_unstable();
                    let expected: Vec<i64> = (1..=4)
                        .flat_map(|tens| {
                            let rows = if tens == victim { after as i64 } else { 4 };
                            (1..=rows).map(move |ones| tens * 10 + ones)
                        })
                        .collect();
                    assert_eq!(found, expected, "{policy:?}, {arm_rows_limit}, instance {victim} after {after}");
                    let profile = end.profile.unwrap();
                    assert_eq!(profile[0].instances, 4);
                    // One that ends with its last row may or may not have seen its end already.
                    assert!(profile[0].cancelled == 1 || after == 4, "{:?}", profile[0]);
                }
            }
        }
    }
}

#[test]
fn bfs_gives_every_instance_its_turn_while_newcomers_come_and_go() {
    // Many instances that end in their first turns beside one that is long; two alive at once.
    let seeds: Vec<i64> = std::iter::once(19).chain((2..40).map(|tens| tens * 10)).collect();
    let options = BranchOptions {
        max_instances: 2,
        policy: InterPolicy::Bfs,
        instance_quota: 1,
        arm_rows_limit: 1,
        ..BranchOptions::default()
    };
    let arm = Arc::new(Region::new(vec![node(1, || Box::new(Count::default()))]));
    let scope = node(0, move || {
        let arms: Arc<[_]> = [arm.clone()].into();
        Box::new(BranchScope::new(NodeId(0), BranchTest::new(Branch::FlatMap, 1), arms, options))
    });
    let plan = Arc::new(Plan { root: Arc::new(Region::new(vec![scope])), node_count: 2, batch_rows_limit: 64 });
    let end = run(&plan, rows(seeds), 1000);
    let turns: Vec<i64> = end.ledger.trace.iter().map(|(value, _)| *value).collect();
    let of_long: Vec<usize> = turns.iter().enumerate().filter(|(_, value)| **value == 19).map(|(at, _)| at).collect();
    assert_eq!(of_long.len(), 10);
    for pair in of_long.windows(2) {
        assert!(pair[1] - pair[0] <= 2, "the long instance waited: {turns:?}");
    }
}

#[test]
fn an_early_end_reaches_no_further_than_its_own_instance() {
    // Each input expands to five rows, of which its own instance passes two; the next input is not concerned.
    let inner = branch(Branch::FlatMap, vec![Step::Expand(5), Step::Limit(2), Step::Add(100)]);
    assert_eq!(values(std::slice::from_ref(&inner), &[0, 10, 20]), [100, 101, 110, 111, 120, 121]);
    // The same one scope further in, where the outer instance ends after three.
    let outer = branch(Branch::FlatMap, vec![Step::Expand(3), inner, Step::Limit(3)]);
    assert_eq!(values(std::slice::from_ref(&outer), &[0, 50]), [100, 101, 101, 150, 151, 151]);
    // And in the root, where it ends everything.
    assert_eq!(values(&[outer, Step::Limit(4)], &[0, 50]), [100, 101, 101, 150]);
}

#[test]
fn work_before_an_early_end_is_not_done() {
    let steps = [Step::Expand(1000), Step::Note, Step::Limit(3)];
    for batch in [1, 10] {
        let end = run(&build(&steps, batch).plan, rows([0]), 1_000_000);
        assert_eq!(end.values(), [0, 1, 2]);
        assert!(end.ledger.trace.len() <= 3.max(batch), "{} rows for 3", end.ledger.trace.len());
    }
    // Arms that end at their first row do no more than that row.
    let end = run(&build(&[branch(Branch::Where, vec![Step::Expand(1000), Step::Note])], 256).plan, rows([1, 2]), 1000);
    assert_eq!(end.values(), [1, 2]);
    assert_eq!(end.ledger.trace.len(), 2);
}

#[test]
fn an_early_end_in_an_iteration_leaves_later_iterations_alone() {
    // The limit counts over all iterations (7), while `First` ends each instance at once.
    let body = vec![Step::Expand(3), Step::Sort, Step::Limit(7)];
    let plan = [loop_of(0, 3, body)];
    let expected: Vec<i64> = evaluate(&plan, [0]).unwrap().iter().map(|row| row.value).collect();
    assert_eq!(values(&plan, &[0]), expected);
}

/// Says that it wants no more at every first row it sees in an iteration.
#[derive(Default)]
struct OnePerIteration;

impl Operator<Integers> for OnePerIteration {
    fn process(
        &mut self,
        input: &mut Queue<Row>,
        out: &mut Queue<Row>,
        _: &mut Cx<'_, Integers>,
    ) -> Result<Flow, TestError> {
        out.extend(input.pop_front());
        Ok(Flow::Complete)
    }

    fn reset(&mut self) {}
}

#[test]
fn each_iteration_of_a_body_with_a_barrier_is_an_instance_of_its_own() {
    let gate = Loop {
        id: 0,
        body: vec![],
        times: 3,
        until: None,
        tests_first: false,
        emit: Emit::After,
        dfs: false,
        inputs_at_once: 1,
        frontier_max: usize::MAX,
    };
    for batch in [1, 2, 16] {
        let entry = Arc::new(Region::new(vec![node(1, || Box::new(kit::operators::EnterLoop { id: 0 }))]));
        let body = Arc::new(Region::new(vec![
            node(2, || Box::new(kit::operators::Note)),
            node(3, || Box::new(kit::operators::Expand::new(4))),
            node(4, || Box::new(OnePerIteration)),
            node(5, || Box::new(kit::operators::Add { amount: 10 })),
        ]));
        let options = ficus_dataflow::LoopOptions {
            policy: ficus_dataflow::LoopPolicy::Bfs,
            has_barrier: true,
            tests_every_entry: false,
            inputs_at_once: 1,
            frontier_max: usize::MAX,
        };
        let gate = gate.gate();
        let root = Arc::new(Region::new(vec![node(0, move || {
            let scope = ficus_dataflow::loop_scope::LoopScope::new(gate.clone(), entry.clone(), body.clone(), options);
            Box::new(scope)
        })]));
        let plan = Arc::new(Plan { root, node_count: 6, batch_rows_limit: batch });
        let end = run(&plan, rows([1, 2, 3]), 100);
        // Emitted after each iteration, and once more when the loop ends.
        assert_eq!(end.values(), [11, 21, 31], "batch {batch}");
        let iterations: Vec<u64> = end.ledger.trace.iter().map(|(_, tag)| tag[0]).collect();
        assert_eq!(iterations.last(), Some(&3), "the tag tells the iteration");
        assert_eq!(end.ledger.retained(), 0);
    }
}

#[test]
fn what_leaves_an_ended_body_is_still_tested() {
    // The body ends itself at its first row; that row is then found to be the end of the loop.
    let repeat = Step::Loop(Loop {
        id: 0,
        body: vec![Step::Add(1), Step::Limit(1)],
        times: 9,
        until: Some((4, 0)),
        tests_first: true,
        emit: Emit::Never,
        dfs: false,
        inputs_at_once: 1,
        frontier_max: usize::MAX,
    });
    assert_eq!(values(&[repeat], &[3]), [4]);
}

#[test]
fn a_fork_whose_arms_have_all_ended_ends_what_is_before_it() {
    let endless = Step::Loop(Loop {
        id: 0,
        body: vec![Step::Add(1)],
        times: u32::MAX,
        until: None,
        tests_first: false,
        emit: Emit::After,
        dfs: false,
        inputs_at_once: 1,
        frontier_max: usize::MAX,
    });
    let fork = Step::Fork { arms: vec![vec![Step::Limit(2)], vec![Step::Add(100), Step::Limit(1)]], inputs_at_once: 1 };
    assert_eq!(values(&[endless, fork], &[0]), [1, 101, 2]);
}

#[test]
fn operators_that_would_only_see_eos_are_never_created() {
    let deep = Step::Fork {
        arms: vec![
            vec![Step::Add(1), Step::Sort],
            vec![branch(Branch::Where, vec![Step::Add(1)]), Step::Dedup { by_value: true }],
        ],
        inputs_at_once: 1,
    };
    let steps = [
        Step::Keep { modulus: 2, rest: 0 },
        Step::Add(1),
        deep,
        loop_of(0, 2, vec![Step::Add(1)]),
        Step::Sum,
        Step::Add(1),
    ];
    let built = build(&steps, 4);
    // Nothing passes the filter: it, the sum (which has something to say about nothing) and what reads the sum.
    assert_eq!(run(&built.plan, rows([1, 3, 5]), 100).values(), [1]);
    assert_eq!(built.created(), 3);
    // No input at all.
    let built = build(&steps, 4);
    assert_eq!(run(&built.plan, rows([]), 100).values(), [1]);
    assert_eq!(built.created(), 2);
    // A plan without anything that speaks of nothing.
    let built = build(&[Step::Sort, Step::Add(1)], 4);
    assert_eq!(run(&built.plan, rows([]), 100).values(), [0; 0]);
    assert_eq!(built.created(), 0);
}

#[test]
fn late_rows_are_dropped() {
    // The arm's batch holds more rows than the egress wants: those behind belong to an ended instance.
    for kind in [Branch::First, Branch::Where, Branch::Relay] {
        let arms = vec![vec![Step::Expand(8)], vec![Step::Expand(8), Step::Add(10)]];
        let step = Step::Branch { kind, arms, policy: Policy::Bfs, max_instances: 3, arm_rows_limit: 1024 };
        let mut found = run(&build(&[step], 16).plan, rows([100, 200, 300]), 1000).values();
        found.sort_unstable();
        let expected = if kind == Branch::Relay { [110, 210, 310] } else { [100, 200, 300] };
        assert_eq!(found, expected, "{kind:?}");
    }
    // Pushed into a region that has ended.
    with_cx(|cx| {
        let built = build(&[Step::Limit(1), Step::Add(1)], 4);
        let mut region = RegionInstance::new(built.plan.root.clone());
        let mut out = Queue::new();
        region.push(Row::new(1));
        assert_eq!(region.run(&mut out, cx), Ok(RegionFlow::Finished));
        assert!(region.is_completed());
        region.push(Row::new(2));
        assert!(!region.has_work());
        assert_eq!(region.run(&mut out, cx), Ok(RegionFlow::Finished));
        assert_eq!(out, [Row::new(2)]);
    });
}

#[test]
fn who_goes_first_inside_an_instance_is_the_policys_choice() {
    /// Passes one row on in each turn, and notes the turn.
    struct OneByOne(u32, Arc<Mutex<Vec<u32>>>);
    impl Operator<Integers> for OneByOne {
        fn process(
            &mut self,
            input: &mut Queue<Row>,
            out: &mut Queue<Row>,
            _cx: &mut Cx<'_, Integers>,
        ) -> Result<Flow, TestError> {
            self.1.lock().unwrap().push(self.0);
            out.extend(input.pop_front());
            Ok(Flow::Ready)
        }

        fn reset(&mut self) {}
    }
    let odd_first = |a: NodeId, b: NodeId| (b.0 % 2).cmp(&(a.0 % 2));
    for (policy, expected) in [
        (IntraPolicy::Dfs, [0, 1, 2, 0, 1, 2, 0, 1, 2]),
        (IntraPolicy::Bfs, [0, 0, 0, 1, 1, 1, 2, 2, 2]),
        (IntraPolicy::Fifo, [0, 0, 1, 0, 1, 2, 1, 2, 2]),
        (IntraPolicy::Comparator(odd_first), [0, 1, 0, 1, 0, 1, 2, 2, 2]),
    ] {
        let turns = Arc::new(Mutex::new(Vec::new()));
        let own = |id: u32| {
            let turns = turns.clone();
            node(id, move || Box::new(OneByOne(id, turns.clone())))
        };
        let mut region = RegionInstance::new(Arc::new(Region::with_policy(vec![own(0), own(1), own(2)], policy)));
        assert_eq!(finish(&mut region, &[1, 2, 3]), rows([1, 2, 3]), "{policy:?}");
        assert_eq!(*turns.lock().unwrap(), expected, "{policy:?}");
    }
}

#[test]
fn in_front_of_what_takes_all_rows_many_go_together_however_few_are_wanted() {
    // Of 60 rows 20 are a batch; turns and rows of the node that makes them, in an arm of which the first row decides.
    let few_rows = |turns: u64, rows: u64| turns >= rows && rows <= 4;
    let many_rows = |turns: u64, rows: u64| turns <= 60 / 20 + 2 && rows == 60;
    let both = |behind: Vec<Step>| [vec![Step::Expand(60), Step::Add(1)], behind].concat();
    for (arm, is_as_expected) in [
        (both(vec![]), &few_rows as &dyn Fn(u64, u64) -> bool),
        (both(vec![Step::Sum]), &many_rows),
        (both(vec![Step::Sort, Step::Add(1)]), &many_rows),
        (both(vec![Step::Limit(2), Step::Sum]), &few_rows),
        // The other scope is in front of the sum.
        (vec![branch(Branch::FlatMap, both(vec![])), Step::Sum], &|_, rows| rows == 60),
        (vec![branch(Branch::First, both(vec![])), Step::Sum], &few_rows),
        (vec![branch(Branch::First, both(vec![Step::Sum]))], &many_rows),
    ] {
        let built = build(&[branch(Branch::First, arm.clone())], 20);
        let profile = run(&built.plan, rows([1]), 1000).profile.unwrap();
        let maker = built.names.iter().position(|name| name.starts_with("Expand")).unwrap();
        let (turns, rows) = (profile[maker].turns, profile[maker].rows);
        assert!(is_as_expected(turns, rows), "{arm:?}: {rows} rows in {turns} turns");
    }
}

/// Works off so many units, and emits a row behind the hundredth.
struct Works {
    done: Arc<AtomicU64>,
}

impl Operator<Integers> for Works {
    fn process(
        &mut self,
        input: &mut Queue<Row>,
        out: &mut Queue<Row>,
        cx: &mut Cx<'_, Integers>,
    ) -> Result<Flow, TestError> {
        input.clear();
        while !cx.exhausted() {
            cx.charge(1);
            match self.done.fetch_add(1, Ordering::Relaxed) + 1 {
                100 => out.push_back(Row::new(7)),
                100_000 => return Ok(Flow::Ready),
                _ => {}
            }
        }
        Ok(Flow::More)
    }

    fn reset(&mut self) {}
}

#[test]
fn rows_of_which_few_may_be_enough_go_on_soon() {
    let of = |demand: Demand| {
        let done = Arc::new(AtomicU64::new(0));
        let works = done.clone();
        let first = node(0, move || Box::new(Works { done: works.clone() }));
        let limit = Node { demand, ..node(1, || Box::new(kit::operators::Limit { count: 1, seen: 0 })) };
        let mut region = RegionInstance::new(Arc::new(Region::new(vec![first, limit])));
        region.push(Row::new(1));
        region.close();
        let mut out = Queue::new();
        with_cx(|cx| assert_eq!(region.run(&mut out, cx).unwrap(), RegionFlow::Finished));
        assert_eq!(out, rows([7]));
        done.load(Ordering::Relaxed)
    };
    assert_eq!(of(Demand::AsWanted), 100_000);
    assert!((100..1_000).contains(&of(Demand::Few)), "{}", of(Demand::Few));
}

#[test]
fn a_node_without_room_waits_for_those_behind_it_whatever_the_policy() {
    // 4 rows are a batch, and the first node could make 1,000.
    for policy in [Policy::Bfs, Policy::Fifo, Policy::EvenFirst] {
        let overrides = Overrides { intra: Some(policy), ..Overrides::default() };
        let steps = [Step::Expand(1_000), Step::Add(1), Step::Note, Step::Limit(9)];
        let built = build_with(&steps, 4, overrides);
        let end = run(&built.plan, rows([0]), 1_000_000);
        assert_eq!(end.values(), (1..10).collect::<Vec<_>>(), "{policy:?}");
        // Behind a limit that is reached lie no more than the batches in the queues before it.
        let noted = end.ledger.trace.len();
        assert!((9..=9 + 4 * steps.len()).contains(&noted), "{policy:?}: {noted} rows");
    }
}

fn with_cx(work: impl FnOnce(&mut Cx<'_, Integers>)) -> Ledger {
    let (mut ledger, control, mut tag) = (Ledger::default(), Control::unlimited(), ScopeTag::root());
    let mut cx = Cx {
        context: &mut ledger,
        control: &control,
        tag: &mut tag,
        batch_rows_limit: 4,
        rows_limits: RowsLimits { few: 4, all: 4 },
        few_wanted: false,
        profile: None,
        quota: 1_000_000,
        waker: &Waker::detached(),
        parked: false,
        rows_left_outside: false,
        in_chunk: false,
        urgent: &std::sync::atomic::AtomicBool::new(false),
        notes: Vec::new(),
        own_pace: ficus_dataflow::operator::OwnPace::default(),
    };
    work(&mut cx);
    assert_eq!(tag, ScopeTag::root(), "every ingress has its egress");
    ledger
}

/// Runs `values` through an instance until it is finished.
fn finish(region: &mut RegionInstance<Integers>, values: &[i64]) -> Vec<Row> {
    let mut found = Vec::new();
    let ledger = with_cx(|cx| {
        for value in values {
            region.push(Row::new(*value));
        }
        region.close();
        let mut out = Queue::new();
        loop {
            cx.quota = 50;
            let flow = region.run(&mut out, cx).unwrap();
            found.extend(out.drain(..));
            if flow == RegionFlow::Finished {
                break;
            }
        }
    });
    assert_eq!(ledger.retained(), 0);
    found
}

#[test]
fn reset_leaves_no_trace() {
    for seed in 0..400 {
        let steps = PlanMaker::new(seed, true).plan();
        let (Ok(first), Ok(second)) = (evaluate(&steps, [0, 10]), evaluate(&steps, [5, 3])) else { continue };
        let mut region = RegionInstance::new(build(&steps, 3).plan.root.clone());
        for interrupted_after in 0..4 {
            // Stopped somewhere in the middle: whatever it was doing must not be seen afterwards.
            let ledger = with_cx(|cx| {
                region.push(Row::new(7));
                region.push(Row::new(8));
                region.close();
                for _ in 0..interrupted_after {
                    cx.quota = 3;
                    region.run(&mut Queue::new(), cx).unwrap();
                }
                region.release(cx);
            });
            assert_eq!(ledger.retained(), 0, "seed {seed}: {steps:?}");
            region.reset();
            assert_eq!(finish(&mut region, &[0, 10]), first, "seed {seed}: {steps:?}");
            region.reset();
            assert_eq!(finish(&mut region, &[5, 3]), second, "seed {seed}: {steps:?}");
            region.reset();
        }
    }
}

#[test]
fn a_steady_state_creates_nothing() {
    let arm = vec![
        Step::Expand(3),
        Step::Fork { arms: vec![vec![Step::Add(1)], vec![Step::Sort]], inputs_at_once: 1 },
        loop_of(0, 2, vec![branch(Branch::Not, vec![Step::Keep { modulus: 3, rest: 0 }]), Step::Add(1)]),
        Step::Sum,
    ];
    let created = |inputs: i64, policy: Policy, max_instances: usize| {
        let overrides = Overrides { policy: Some(policy), max_instances: Some(max_instances), ..Overrides::default() };
        let built: Built = build_with(&[branch(Branch::FlatMap, arm.clone())], 16, overrides);
        let end = run(&built.plan, rows(0..inputs), 17);
        assert_eq!(end.rows.len(), inputs as usize);
        built.created()
    };
    for policy in [Policy::Fifo, Policy::Bfs, Policy::Dfs, Policy::EvenFirst] {
        for max_instances in [1, 2, 5] {
            let (few, many) = (created(40, policy, max_instances), created(1000, policy, max_instances));
            assert_eq!(few, many, "{policy:?}, {max_instances} instances");
        }
    }
}

#[test]
fn rows_that_wait_are_seen_before_the_first_is_opened() {
    /// Lets rows through; what it saw of those that wait.
    struct Ahead {
        next: Option<i64>,
        opened: i64,
        waited_max: Arc<AtomicUsize>,
    }
    impl BranchLogic<Integers> for Ahead {
        type State = ();
        fn look_ahead(&mut self, waiting: &Queue<Row>, _: &mut Cx<'_, Integers>) {
            self.waited_max.fetch_max(waiting.len(), Ordering::SeqCst);
            let ahead = waiting.iter().zip(self.opened..).all(|(row, value)| row.value == value);
            self.next = waiting.front().filter(|_| ahead).map(|row| row.value);
        }
        fn open(
            &mut self,
            input: Row,
            _: &mut (),
            out: &mut Queue<Row>,
            _: &mut Cx<'_, Integers>,
        ) -> Result<Turn<Row>, TestError> {
            assert_eq!(self.next.take(), Some(input.value), "the first that waited, behind those before it");
            self.opened += 1;
            out.push_back(input);
            Ok(Turn::Close)
        }
        fn receive(
            &mut self,
            _: Row,
            _: &mut (),
            _: &mut Queue<Row>,
            _: &mut Cx<'_, Integers>,
        ) -> Result<Turn<Row>, TestError> {
            unreachable!("no arm is entered")
        }
        fn arm_ended(
            &mut self,
            _: &mut (),
            _: &mut Queue<Row>,
            _: &mut Cx<'_, Integers>,
        ) -> Result<Turn<Row>, TestError> {
            unreachable!("no arm is entered")
        }
    }
    for batch_rows_limit in [1, 8] {
        let waited_max = Arc::new(AtomicUsize::new(0));
        let shared = waited_max.clone();
        let arm = Arc::new(Region::new(Vec::new()));
        let scope = node(0, move || {
            let logic = Ahead { next: None, opened: 0, waited_max: shared.clone() };
            Box::new(BranchScope::new(NodeId(0), logic, [arm.clone()].into(), BranchOptions::default()))
        });
        let plan = Arc::new(Plan { root: Arc::new(Region::new(vec![scope])), node_count: 1, batch_rows_limit });
        assert_eq!(run(&plan, rows(0..50), 100).rows.len(), 50);
        assert!(waited_max.load(Ordering::SeqCst) >= batch_rows_limit);
    }
}

#[test]
fn at_most_max_instances_are_alive() {
    #[derive(Default)]
    struct Alive(Arc<(AtomicUsize, AtomicUsize)>);
    impl BranchLogic<Integers> for Alive {
        type State = ();
        fn open(
            &mut self,
            input: Row,
            _: &mut (),
            _: &mut Queue<Row>,
            _: &mut Cx<'_, Integers>,
        ) -> Result<Turn<Row>, TestError> {
            let alive = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
            self.0.1.fetch_max(alive, Ordering::SeqCst);
            Ok(Turn::Enter { arm: 0, message: input })
        }
        fn receive(
            &mut self,
            row: Row,
            _: &mut (),
            out: &mut Queue<Row>,
            _: &mut Cx<'_, Integers>,
        ) -> Result<Turn<Row>, TestError> {
            out.push_back(row);
            Ok(Turn::Continue)
        }
        fn arm_ended(
            &mut self,
            _: &mut (),
            _: &mut Queue<Row>,
            _: &mut Cx<'_, Integers>,
        ) -> Result<Turn<Row>, TestError> {
            self.0.0.fetch_sub(1, Ordering::SeqCst);
            Ok(Turn::Close)
        }
    }
    for (max_instances, policy, expected) in [
        (1, InterPolicy::Bfs, 1),
        (3, InterPolicy::Bfs, 3),
        (3, InterPolicy::Dfs, 3),
        // No more than a batch, and one is enough for first in, first out.
        (usize::MAX, InterPolicy::Bfs, 8),
        (usize::MAX, InterPolicy::Fifo, 1),
        // Nonsense is put right rather than obeyed.
        (0, InterPolicy::Bfs, 1),
    ] {
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let arm = Arc::new(Region::new(vec![node(1, || Box::new(kit::operators::Expand::new(20)))]));
        let options =
            BranchOptions { max_instances, policy, instance_quota: 0, arm_rows_limit: 0, ..BranchOptions::default() };
        let shared = counts.clone();
        let scope = node(0, move || {
            let arms: Arc<[_]> = [arm.clone()].into();
            Box::new(BranchScope::new(NodeId(0), Alive(shared.clone()), arms, options))
        });
        let plan = Arc::new(Plan { root: Arc::new(Region::new(vec![scope])), node_count: 2, batch_rows_limit: 8 });
        assert_eq!(run(&plan, rows(0..50), 100).rows.len(), 1000);
        assert_eq!(counts.1.load(Ordering::SeqCst), expected, "{max_instances}, {policy:?}");
    }
}

#[test]
fn instances_that_are_cancelled_inside_another_are_counted() {
    // The outer instance ends at the first row while the inner ones are alive.
    let inner = Step::Branch {
        kind: Branch::FlatMap,
        arms: vec![vec![Step::Expand(9)]],
        policy: Policy::Bfs,
        max_instances: 4,
        arm_rows_limit: 1,
    };
    let built = build(&[branch(Branch::First, vec![Step::Expand(4), inner])], 16);
    let end = run(&built.plan, rows([0, 10]), 1_000_000);
    assert_eq!(end.values(), [0, 10]);
    let by_name: Vec<(u64, u64)> = built
        .names
        .iter()
        .zip(end.profile.unwrap())
        .filter(|(name, _)| name.starts_with("Branch"))
        .map(|(_, profile)| (profile.instances, profile.cancelled))
        .collect();
    let [outer, inner] = by_name[..] else { panic!("{by_name:?}") };
    assert_eq!(outer, (2, 2));
    assert_eq!(inner.0, inner.1, "all inner instances that began were cancelled");
    assert!(inner.0 >= 2);
}

#[test]
fn no_turn_is_longer_than_a_batch_even_where_input_has_piled_up() {
    /// Notes how much it is given at once.
    struct Longest(Arc<Mutex<usize>>);
    impl Operator<Integers> for Longest {
        fn process(
            &mut self,
            input: &mut Queue<Row>,
            out: &mut Queue<Row>,
            _: &mut Cx<'_, Integers>,
        ) -> Result<Flow, TestError> {
            let mut longest = self.0.lock().unwrap();
            *longest = input.len().max(*longest);
            out.append(input);
            Ok(Flow::Ready)
        }
        fn reset(&mut self) {}
    }
    let longest = Arc::new(Mutex::new(0));
    let shared = longest.clone();
    let arm = Arc::new(Region::new(vec![node(1, move || Box::new(Longest(shared.clone())))]));
    let fork = node(0, move || {
        let arms: Arc<[_]> = [arm.clone()].into();
        Box::new(ficus_dataflow::fork::Fork::new(kit::scopes::ToAll, arms, true, 1))
    });
    let plan = Arc::new(Plan { root: Arc::new(Region::new(vec![fork])), node_count: 2, batch_rows_limit: 16 });
    let end = run(&plan, rows(0..1000), 100);
    assert_eq!(end.values(), (0..1000).collect::<Vec<_>>());
    assert!(*longest.lock().unwrap() <= 16, "{} rows in one turn", longest.lock().unwrap());
    assert_eq!(end.ledger.retained_max(), 1000);
}

#[test]
fn a_loop_holds_on_account_what_waits_in_it() {
    for tests_first in [false, true] {
        for barrier in [false, true] {
            let mut body = vec![Step::Expand(10)];
            if barrier {
                body.push(Step::Sort);
            }
            let inner = Loop {
                id: 0,
                body,
                times: 3,
                until: None,
                tests_first,
                emit: Emit::Never,
                dfs: false,
                inputs_at_once: 1,
                frontier_max: usize::MAX,
            };
            let end = run(&build(&[Step::Loop(inner)], 4).plan, rows([0]), 10);
            assert_eq!(end.rows.len(), 1000);
            assert!(end.ledger.retained_max() >= 80, "{}", end.ledger.retained_max());
            assert_eq!(end.ledger.retained(), 0);
        }
    }
}

#[test]
fn a_loop_that_has_become_wide_goes_deeper() {
    let run_with = |tests_first, frontier_max, quota| {
        let inner = Loop {
            id: 0,
            body: vec![Step::Expand(10)],
            times: 5,
            until: None,
            tests_first,
            emit: Emit::Never,
            dfs: false,
            inputs_at_once: usize::MAX,
            frontier_max,
        };
        let end = run(&build(&[Step::Loop(inner)], 16).plan, rows([0]), quota);
        assert_eq!(end.ledger.retained(), 0);
        (end.values(), end.ledger.retained_max())
    };
    for tests_first in [false, true] {
        let ((mut wide, all), (mut narrow, few)) =
            (run_with(tests_first, usize::MAX, 10), run_with(tests_first, 50, 10));
        assert!(all >= 9_000, "{all} were held");
        // What comes of a batch on top of what may wait, then of one message in each iteration that is left.
        assert!(few <= 50 + 10 * 16 + 10 * 5, "{few} were held");
        for quota in [1, 1000] {
            assert_eq!(run_with(tests_first, 50, quota).0, narrow, "wherever turns end, they go the same way");
        }
        assert_ne!(wide, narrow);
        wide.sort_unstable();
        narrow.sort_unstable();
        assert_eq!(wide, narrow);
    }
}

#[test]
fn a_refused_account_fails_the_query_and_is_settled() {
    let steps = [loop_of(0, 9, vec![Step::Expand(4)])];
    let slot = kit::Slot::default();
    let sink = kit::Collect { rows: Vec::new(), slot: slot.clone() };
    let ledger = Ledger { retained_limit: Some(100), ..Ledger::default() };
    let plan = build(&steps, 4).plan;
    let task = ficus_dataflow::Task::new(plan, rows([0]), ledger, Box::new(sink), Control::unlimited(), false);
    task.run_to_end();
    let end = slot.only();
    assert_eq!(end.result, Err(TestError::TooMuchRetained));
    assert_eq!(end.ledger.retained(), 0);
    assert!(end.ledger.retained_max() <= 101);
}

#[test]
fn a_plan_without_room_still_moves() {
    let built = build(&[Step::Expand(3), Step::Add(1)], 0);
    assert_eq!(run(&built.plan, rows([1]), 1).values(), [2, 3, 4]);
    // An empty plan passes its seeds on.
    let (mut task, slot) = kit::task(&build(&[], 1).plan, rows([1, 2]), Control::unlimited());
    while task.run(1, &Waker::detached()) != ficus_dataflow::task::TaskState::Done {}
    assert_eq!(slot.only().values(), [1, 2]);
}
