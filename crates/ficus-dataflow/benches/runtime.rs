//! What the runtime itself costs: plans whose operators do next to nothing.
//!
//! A good number: one row through three operators, from task to answer on the calling thread, in well under 1 µs (seen:
//! 0.3 to 0.6); a row through one operator of a chain in 2 ns; a scope instance, made and ended, in 130 ns; an iteration of a
//! loop in 45 ns. Seen on one core of a busy virtual machine, as time on the processor.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ficus_dataflow::Waker;
use ficus_dataflow::branch::BranchScope;
use ficus_dataflow::loop_scope::LoopScope;
use ficus_dataflow::{
    BranchLogic, BranchOptions, Control, Cx, Delivery, Demand, Domain, ExecutorOptions, Executors, Flow, InterPolicy,
    Interrupt, LoopLogic, LoopOptions, LoopPolicy, Node, NodeId, Operator, Outcome, Plan, Queue, Region, Sink, Task,
    Tenant, Turn, Verdict,
};

struct Integers;

/// Why a bench failed.
#[derive(Debug)]
struct Failure(#[allow(dead_code, reason = "shown when a bench fails")] String);

type Result<T> = std::result::Result<T, Failure>;

impl From<Interrupt> for Failure {
    fn from(interrupt: Interrupt) -> Failure {
        Failure(format!("{interrupt:?}"))
    }
}

impl Domain for Integers {
    type Message = i64;
    type Context = ();
    type Error = Failure;

    fn panicked(message: String) -> Failure {
        Failure(message)
    }
}

type Rows = Queue<i64>;
type Context<'a> = Cx<'a, Integers>;

/// Emits as many numbers as its input says.
#[derive(Default)]
struct Source {
    next: i64,
}

impl Operator<Integers> for Source {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result<Flow> {
        while let Some(end) = input.front() {
            while self.next < *end {
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
                out.push_back(self.next);
                self.next += 1;
            }
            input.pop_front();
            self.next = 0;
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.next = 0;
    }
}

/// Passes what is at least `least`.
struct Filter {
    least: i64,
}

impl Operator<Integers> for Filter {
    fn process(&mut self, input: &mut Rows, out: &mut Rows, cx: &mut Context<'_>) -> Result<Flow> {
        while let Some(row) = input.pop_front() {
            if row >= self.least {
                out.push_back(row);
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Passes the input at the first row of the arm.
struct Where;

impl BranchLogic<Integers> for Where {
    type State = i64;

    fn open(&mut self, input: i64, state: &mut i64, _: &mut Rows, _: &mut Context<'_>) -> Result<Turn<i64>> {
        *state = input;
        Ok(Turn::Enter { arm: 0, message: 1000 })
    }

    fn receive(&mut self, _: i64, state: &mut i64, out: &mut Rows, _: &mut Context<'_>) -> Result<Turn<i64>> {
        out.push_back(*state);
        Ok(Turn::Close)
    }

    fn arm_ended(&mut self, _: &mut i64, _: &mut Rows, _: &mut Context<'_>) -> Result<Turn<i64>> {
        Ok(Turn::Close)
    }
}

/// Goes round as often as the row says.
struct Rounds;

impl LoopLogic<Integers> for Rounds {
    fn enter(&mut self, message: i64, _: &mut Context<'_>) -> Result<Verdict<i64>> {
        Ok(Verdict { exit: None, again: Some(message) })
    }

    fn turn(&mut self, message: i64, _: &mut Context<'_>) -> Result<Verdict<i64>> {
        let left = message - 1;
        Ok(if left > 0 { Verdict { exit: None, again: Some(left) } } else { Verdict { exit: Some(0), again: None } })
    }
}

fn node(make: impl Fn() -> Box<dyn Operator<Integers>> + Send + Sync + 'static) -> Node<Integers> {
    Node {
        id: NodeId(0),
        name: "bench".into(),
        emits_on_empty: false,
        demand: Demand::AsWanted,
        factory: Arc::new(make),
    }
}

fn filters(count: usize) -> Vec<Node<Integers>> {
    (0..count).map(|_| node(|| Box::new(Filter { least: 0 }))).collect()
}

fn region(nodes: Vec<Node<Integers>>) -> Arc<Region<Integers>> {
    Arc::new(Region::new(nodes))
}

fn plan(nodes: Vec<Node<Integers>>) -> Arc<Plan<Integers>> {
    Arc::new(Plan { root: region(nodes), node_count: 1, batch_rows_limit: 1024 })
}

/// Counts rows and calls back at the end.
struct Count<F> {
    rows: u64,
    end: F,
}

impl<F: FnOnce(u64) + Send> Sink<Integers> for Count<F> {
    fn deliver(&mut self, rows: &mut Rows, _: &mut (), _: &Waker<Integers>) -> Result<Delivery> {
        self.rows += rows.len() as u64;
        rows.clear();
        Ok(Delivery::Accepted)
    }

    fn complete(self: Box<Self>, _: (), outcome: Outcome<Integers>) {
        outcome.result.expect("benches do not fail");
        (self.end)(self.rows);
    }
}

fn assert_some(rows: u64) {
    assert!(black_box(rows) > 0);
}

fn run(plan: &Arc<Plan<Integers>>, control: &Control, seed: i64) {
    let sink = Box::new(Count { rows: 0, end: assert_some });
    Task::new(plan.clone(), [seed], (), sink, control.clone(), false).run_to_end();
}

fn small(c: &mut Criterion) {
    let control = Control::unlimited();
    let chain = plan(filters(3));
    c.bench_function("one row, three operators, inline", |b| b.iter(|| run(&chain, &control, 1)));
    let executors = Executors::start(&ExecutorOptions { executors: 1, ..ExecutorOptions::default() }).expect("threads");
    c.bench_function("one row, three operators, 100 queries on an executor", |b| {
        b.iter(|| {
            let (sender, ends) = std::sync::mpsc::channel();
            for _ in 0..100 {
                let sender = sender.clone();
                let sink = Box::new(Count { rows: 0, end: move |rows| sender.send(rows).expect("is received") });
                executors.submit(Tenant::default(), Task::new(chain.clone(), [1], (), sink, control.clone(), false));
            }
            drop(sender);
            assert_eq!(ends.iter().sum::<u64>(), 100);
        });
    });
}

fn large(c: &mut Criterion) {
    const ROWS: i64 = 1_000_000;
    let control = Control::unlimited();
    let mut group = c.benchmark_group("a million rows");
    group.sample_size(10).throughput(Throughput::Elements(ROWS as u64));
    for count in [0, 1, 4] {
        let mut nodes = vec![node(|| Box::<Source>::default())];
        nodes.extend(filters(count));
        let chain = plan(nodes);
        group.bench_function(BenchmarkId::new("filters", count), |b| b.iter(|| run(&chain, &control, ROWS)));
    }
    group.finish();
}

fn scopes(c: &mut Criterion) {
    const ROWS: i64 = 100_000;
    let control = Control::unlimited();
    let mut group = c.benchmark_group("a scope per row");
    group.sample_size(10).throughput(Throughput::Elements(ROWS as u64));
    let policies =
        [("fifo", InterPolicy::Fifo, 1), ("bfs of 16", InterPolicy::Bfs, 16), ("dfs of 16", InterPolicy::Dfs, 16)];
    for (name, policy, max_instances) in policies {
        let mut arm = vec![node(|| Box::<Source>::default())];
        arm.extend(filters(2));
        let arms: Arc<[_]> = [region(arm)].into();
        let options = BranchOptions {
            max_instances,
            policy,
            instance_quota: 1024,
            arm_rows_limit: 1,
            ..BranchOptions::default()
        };
        let scope = node(move || Box::new(BranchScope::new(NodeId(0), Where, arms.clone(), options)));
        let chain = plan(vec![node(|| Box::<Source>::default()), scope]);
        group.bench_function(BenchmarkId::new("ended by the first row", name), |b| {
            b.iter(|| run(&chain, &control, ROWS));
        });
    }
    group.finish();
    let mut group = c.benchmark_group("loops");
    group.sample_size(10).throughput(Throughput::Elements(ROWS as u64));
    for (name, has_barrier) in [("without barrier", false), ("with barrier", true)] {
        let body = region(filters(1));
        let (policy, frontier_max) = (LoopPolicy::Bfs, usize::MAX);
        let options = LoopOptions { policy, has_barrier, tests_every_entry: false, inputs_at_once: 1, frontier_max };
        let scope = node(move || Box::new(LoopScope::new(Rounds, region(Vec::new()), body.clone(), options)));
        let chain = plan(vec![scope]);
        group.bench_function(BenchmarkId::new("iterations of one row", name), |b| {
            b.iter(|| run(&chain, &control, ROWS));
        });
    }
    group.finish();
}

mod group {
    #![allow(missing_docs, reason = "the macro's own function")]
    use super::*;
    criterion_group!(benches, small, large, scopes);
}
criterion_main!(group::benches);
