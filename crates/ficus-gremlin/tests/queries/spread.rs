//! Queries on four executors that spread as soon as they can: the same rows in the same order as on one thread, and nothing held behind.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ficus_dataflow::{ExecutorOptions, SpreadOptions};
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::Value;
use ficus_query::engine::{Collector, Engine, EngineOptions, Prepared, QueryEnd, Row, RunOptions};
use ficus_query::error::QueryErrorKind;
use ficus_query::logical::LogicalPlan;
use ficus_storage::Graph;

use crate::phrases::phrase;
use crate::runner::{Show, shown};
use crate::{in_place, modern};

fn engine(spread: SpreadOptions) -> Engine {
    engine_with(ExecutorOptions { executors: 4, turn_quota: 256, spread, ..ExecutorOptions::default() })
}

fn engine_with(executors: ExecutorOptions) -> Engine {
    let options = EngineOptions { executors, ..EngineOptions::with_executors(1) };
    Engine::start(options).unwrap()
}

/// Spreads whatever has a second row.
fn eager() -> SpreadOptions {
    SpreadOptions {
        idle_ns: 0,
        after_ns: 0,
        again_after_ns: 0,
        chunk_ns_min: 0,
        chunk_ns_max: 100_000,
        pending_rows_max: 512,
        slot_rows_max: 16,
        ready_rows_max: 256,
        ..SpreadOptions::default()
    }
}

fn plan(text: &str) -> LogicalPlan {
    let bytecode = parse_traversal(text, &ParseOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    lower(&bytecode).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn prepare(text: &str) -> Prepared {
    Prepared::new(plan(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// As `explain()` has it.
fn explained(text: &str) -> Prepared {
    Prepared::explained(plan(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

type Outcome = Result<Vec<String>, QueryErrorKind>;

fn outcome(rows: &[Row], end: &QueryEnd) -> Outcome {
    match &end.result {
        Ok(()) => Ok(rows.iter().map(|(value, bulk)| format!("{bulk} × {}", shown(value, Show::AsIs))).collect()),
        Err(error) => Err(error.kind),
    }
}

/// Runs on an executor, or on the calling thread.
fn run(engine: &Engine, graph: &Arc<Graph>, prepared: &Prepared, options: &RunOptions, here: bool) -> Outcome {
    let (sender, receiver) = channel();
    let done = Box::new(move |rows: Vec<Row>, end: QueryEnd| {
        sender.send(outcome(&rows, &end)).unwrap();
    });
    let sink = Box::new(Collector { done, collected: Vec::new() });
    if here {
        engine.run_here(prepared, graph.begin_reading(), options, sink);
    } else {
        engine.submit(prepared, graph.begin_reading(), options, sink);
    }
    receiver.recv().unwrap()
}

/// Waits until helpers have noticed the end; only a test that fails waits long.
#[track_caller]
fn assert_released(engine: &Engine, text: &str) {
    let began = Instant::now();
    while engine.memory().used_bytes() > 0 || engine.load() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "{text}: {} bytes are held", engine.memory().used_bytes());
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Compares both ways of running each text; says how many have rows.
fn compare(engine: &Engine, graph: &Arc<Graph>, texts: impl IntoIterator<Item = String>) -> usize {
    let options = RunOptions { timeout_ns: Some(10_000_000_000), ..RunOptions::default() };
    let (mut answered, mut different) = (0, Vec::new());
    for text in texts {
        let prepared = prepare(&text);
        if prepared.writes() {
            continue;
        }
        let alone = run(engine, graph, &prepared, &options, true);
        answered += usize::from(alone.as_ref().is_ok_and(|rows| !rows.is_empty()));
        for _ in 0..3 {
            let spread = run(engine, graph, &prepared, &options, false);
            if spread != alone {
                different.push(format!("{text}\n   alone  {alone:?}\n   spread {spread:?}"));
                break;
            }
        }
        assert_released(engine, &text);
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    answered
}

/// Queries in which rows come from one vertex, from many, and from a vertex with very many neighbours.
const LARGE: [&str; 80] = [
    "g.V().hasLabel('person').out('likes').aggregate('x').repeat(__.in('likes', 'knows').where(without('x')).dedup().aggregate('x')).emit().times(2).id()",
    "g.withSack(1).V().hasLabel('person').aggregate('x').repeat(both().where(without('x')).dedup().aggregate('x').sack(mult).by(constant(2))).emit().project('v', 'far').by(out().count()).by(sack()).groupCount().by(select('far'))",
    "g.V('p0').sideEffect(__.in('likes').has('number', lt(9000)).aggregate('low')).in('likes').where(without('low')).out('likes').id()",
    "g.V('p0').sideEffect(__.in('likes').out('likes').out('knows').aggregate('x')).in('likes').where(out('likes').out('knows').where(within('x'))).count()",
    "g.V('p0').in('likes').aggregate('x').out('likes').in('likes').where(within('x')).limit(20000).count()",
    "g.withSideEffect('x', 1).V('p0').in('likes').project('x', 'n').by(select('x')).by(__.out('likes').count()).limit(3000)",
    "g.V('p0').in('likes').as('f').out('likes').out('knows').group().by().by(select('f').fold()).unfold()",
    "g.V('p0').in('likes').outE('likes').as('e').inV().as('p').select('e', 'p').by(label).by(id).limit(9000)",
    "g.V().out('wrote').out('has').id()",
    "g.V().hasLabel('person').both('knows').both('knows').both('knows').id()",
    "g.V('p0').in('likes').where(__.out('likes').has('number', 0)).values('number')",
    "g.V('p0').in('likes').project('n', 'l').by('number').by(__.out('likes').count())",
    "g.V('p0').in('likes').out('likes').both('knows').dedup().id()",
    "g.V('p0').in('likes').as('f').out('likes').select('f').values('number').limit(5000)",
    "g.V('p0').in('likes').values('number').sum()",
    "g.V('p0').in('likes').has('number', gt(1000)).groupCount().by('name')",
    "g.V('p0').in('likes').order().by('number', desc).limit(20).project('n').by(__.out('likes').out('knows').id().fold())",
    "g.V('p0').in('likes').union(out('likes'), identity()).path().by('number')",
    "g.V('p0').in('likes').coalesce(out('none'), out('likes')).outE('knows').inV().id()",
    "g.V('p0').in('likes').flatMap(out('likes').out('wrote')).limit(20000).count()",
    "g.withSack(1).V('p0').in('likes').sack(sum).by('number').sack()",
    "g.V('p0').in('likes').math('_ / 0').by('none')",
    // Scans in ranges.
    "g.V().hasLabel('fan').out('likes').out('knows').id()",
    "g.V().hasLabel('fan').has('number', lt(500)).values('number', 'name')",
    "g.V().has('number', gt(90)).as('v').both('likes', 'wrote').select('v').id().limit(7000)",
    "g.withSack(1).V().hasLabel('fan').has('number', gt(20)).sack(sum).by('number').out('likes').path().by('number').limit(4000)",
    "g.V().has('name', 'ann').out().groupCount().by('name').unfold()",
    "g.V().hasLabel('none').out().count()",
    "g.V().has('name', 'bob').limit(70).out().dedup().id()",
    // What hops have handed on stays known from chunk to chunk, and walks to keys are made where rows are.
    "g.V().both().dedup().id()",
    "g.V().both().dedup().count()",
    "g.V('p0').in('likes').both().both().dedup().id()",
    "g.V().as('a').both().dedup().select('a').id()",
    "g.V().groupCount().by(__.out('likes').out('knows').values('name')).unfold()",
    "g.V().dedup().by(__.out('likes').out('wrote').values('number')).id()",
    "g.V('p0').in('likes').out('likes').in('knows', 'likes').groupCount().by(__.both('knows').id()).unfold()",
    "g.V().properties().key().groupCount().unfold()",
    // What counts take is merged.
    "g.V().hasLabel('fan').out('likes').both('knows').groupCount().unfold()",
    "g.V('p0').in('likes').values('number').groupCount()",
    "g.V('p0').in('likes').union(values('name'), out('likes').both('wrote', 'knows'), constant(1), constant(1.0d)).groupCount()",
    "g.V('p0').in('likes').out('likes').both().groupCount().by('name').unfold()",
    "g.V('p0').in('likes').union(out('likes').both('knows'), values('number'), out('likes')).groupCount().unfold()",
    "g.V().hasLabel('fan').both().both('likes').groupCount().by('number').unfold()",
    "g.V('p0').in('likes').both('likes', 'knows').groupCount().by(label).unfold()",
    // What reductions take is packed.
    "g.V().hasLabel('fan').out('likes').values('number').mean()",
    "g.V().both('knows', 'wrote').both().values('number').sum()",
    "g.V('p0').in('likes').values('number').as('n').math('n / 7').mean()",
    "g.V('p0').in('likes').values('number', 'name').sum()",
    "g.V('p0').in('likes').project('n').by('number').select('n').max()",
    "g.V('p0').in('likes').union(values('number'), out('likes').constant(2.5d), constant(3)).sum()",
    "g.V('p0').in('likes').union(values('number'), out('likes').constant(2.5d), constant(3)).min()",
    "g.V('p0').in('likes').union(constant(2147483647), constant(9223372036854775800L)).sum()",
    "g.V('p0').in('likes').has('number', lt(0)).values('number').sum()",
    // Keys and members of groups are made before, and keys of counts.
    "g.V('p0').in('likes').group().by(__.out('likes').values('number')).by(__.out('likes').values('number').sum()).unfold()",
    "g.V('p0').in('likes').group().by('name').by(__.out('likes').out('knows').count()).unfold()",
    "g.V('p0').in('likes').group().by(__.values('number').math('_ % 7')).by(values('number').mean()).unfold()",
    "g.V('p0').in('likes').group().by(__.values('number').math('_ % 7')).by(values('none').max()).unfold()",
    "g.V('p0').in('likes').group().by(__.values('number').math('_ % 11')).by(values('number', 'name').count()).unfold()",
    "g.V('p0').in('likes').group().by(__.has('number', gt(3000)).values('number').math('_ % 5')).by(id).unfold()",
    "g.V('p0').in('likes').group().by(__.both().values('name')).by('number').unfold()",
    "g.V('p0').in('likes').group().by(__.both().id()).by('none').unfold()",
    "g.V().both('knows').barrier().out('wrote').group().by(__.in('wrote').id()).by(values('number').min()).unfold()",
    "g.V().both('knows').group().by(__.out('wrote').count()).by(__.union(out('wrote').values('number'), constant(0.1d)).sum()).unfold()",
    "g.V('p0').in('likes').group().by(__.values('number').math('_ % 7')).by(out('likes').id().fold()).unfold()",
    "g.V('p0').in('likes').group().by(__.values('number').math('_ % 7')).by(out('knows').id().fold()).unfold()",
    "g.V('p0').in('likes').group().by(__.values('number').math('_ % 7')).by(order().by('number', desc).limit(2).values('number').fold()).unfold()",
    "g.V('p0').in('likes').as('f').group().by(__.values('number').math('_ % 7')).by(select('f').dedup().count()).unfold()",
    "g.V('p0').in('likes').group().by(__.values('number').math('_ % 7')).by(fold().count(local)).unfold()",
    "g.V().both('knows').group().by(__.out('wrote').count()).by(groupCount().by('name')).unfold()",
    "g.V('p0').in('likes').group().by(__.out('likes').id()).by(union(values('number'), constant('a')).sum())",
    "g.V('p0').in('likes').project('a', 'b').by(__.values('number').math('_ % 3')).by(__.out('likes').count()).groupCount().unfold()",
    "g.V('p0').in('likes').project('a', 'b').by(__.has('number', lt(2000)).values('number').math('_ % 3')).by('name').groupCount().unfold()",
    "g.V('p0').in('likes').as('f').out('likes').as('p').select('f', 'p').by(__.out().count()).groupCount().unfold()",
    "g.V().as('a').both('knows').as('b').select('a', 'b').by(__.out('wrote').values('none').count()).groupCount().unfold()",
    "g.V().both('knows').groupCount().by(project('w', 'k').by(out('wrote').count()).by(both('knows').id())).unfold()",
    // Chunks leave behind what is not among their first or last rows; equal ones keep their order.
    "g.V('p0').in('likes').order().by(__.out('likes').count()).limit(7).id()",
    "g.V('p0').in('likes').order().by(__.values('number').math('_ % 9'), desc).by(__.out('likes').count()).range(3, 20).id()",
    "g.V('p0').in('likes').order().by(__.values('number').math('_ % 9')).tail(5).id()",
    "g.V('p0').in('likes').order().by(__.has('number', gt(4000)).values('name')).limit(100).values('number')",
    "g.V().both('knows').order().by(__.out('wrote').count(), desc).limit(3).id()",
];

#[test]
fn rows_and_their_order_are_those_of_one_thread() {
    let engine = engine(eager());
    let graph = in_place::graph();
    let texts = in_place::texts().into_iter().chain(LARGE.map(String::from));
    assert!(compare(&engine, &graph, texts) > 110);
    assert!(engine.times_spread() > 100, "spread {} times", engine.times_spread());
}

/// Random queries whose rows are a matter of the graph alone.
fn phrases(count: usize) -> Vec<String> {
    let seed = std::env::var("FICUS_TEST_SEED").map_or(std::process::id().into(), |seed| seed.parse().unwrap());
    #[allow(clippy::print_stdout)] // The seed repeats the run.
    {
        println!("FICUS_TEST_SEED={seed} repeats this");
    }
    let mut random = ficus_gremlin::text::generate::Generator::new(seed);
    let draws = |text: &String| ["coin(", "sample(", "shuffle", "timeLimit("].iter().any(|step| text.contains(step));
    (0..count).map(|_| phrase(&mut random)).filter(|text| !draws(text)).collect()
}

#[test]
fn phrases_give_the_same_rows() {
    compare(&engine(eager()), &modern::modern(), phrases(300));
}

/// Loops that test before every iteration: a turn may end between two tests. One that goes depth first: what comes in may come one by one.
const LOOPS: [&str; 5] = [
    "g.V().emit().repeat(__.both()).times(2).id()",
    "g.V().emit().repeat(__.both()).times(3).out().id()",
    "g.V().emit(__.out()).repeat(__.both()).times(2).id()",
    "g.V().until(__.not(__.out())).repeat(__.both().simplePath()).emit().id()",
    "g.V(1, 4, 6).repeat(__.both().where(__.out())).times(2).dedup().valueMap('name')",
];

#[test]
fn where_a_turn_ends_does_not_matter() {
    let spread = SpreadOptions { is_on: false, ..SpreadOptions::default() };
    let texts: Vec<String> = LOOPS.iter().map(ToString::to_string).chain(phrases(100)).collect();
    for turn_quota in [1, 2, 3, 7, 30] {
        let engine = engine_with(ExecutorOptions {
            executors: 1,
            turn_quota,
            spread: spread.clone(),
            ..ExecutorOptions::default()
        });
        compare(&engine, &modern::modern(), texts.iter().cloned());
    }
}

#[test]
fn what_is_spread_is_told_and_can_be_switched_off() {
    let spreads = |text: &str| explained(text).physical.spreads;
    let one = spreads("g.V('p0').in('likes').where(out('likes')).count()");
    assert_eq!(one, ["TraversalFilterStep([VertexStep(OUT,[likes],vertex)])"]);
    let dedup = spreads("g.V('p0').in('likes').dedup().out('likes').out('knows').order().by('number').limit(3)");
    assert_eq!(dedup.len(), 2, "{dedup:?}");
    // Side effects of the one row are complete before there are others.
    let gathered = spreads(
        "g.V('p0').sideEffect(__.in('likes').out('likes').aggregate('x')).in('likes').out('likes').where(without('x'))",
    );
    assert_eq!(gathered.len(), 2, "{gathered:?}");
    for text in [
        "g.with('ficus.spread', false).V().out().out()",
        "g.V().out().sideEffect(out().aggregate('x')).out()",
        "g.V().repeat(out()).times(2)",
        "g.V().values('name')",
        "g.V(1).where(out().coin(0.5d)).count()",
        "g.V().out().where(out().aggregate('x')).count()",
        // Others may see groups, and what a loop gathers, while they grow.
        "g.V().out().group('x').out().out().cap('x')",
        "g.V().repeat(both().aggregate('x')).times(2).out().out()",
        "g.addV('x').out().out()",
    ] {
        assert_eq!(spreads(text), [""; 0], "{text}");
    }
    let explained = format!("{:?}", explained("g.V().out().where(out())").explanation());
    assert!(explained.contains("\"Spread\""), "{explained}");
}

#[test]
fn a_budget_is_that_of_the_whole_query_and_is_given_back() {
    let (engine, graph) = (engine(eager()), in_place::graph());
    let text = "g.V('p0').in('likes').project('n').by(__.out('likes').out('wrote').id().fold()).fold()";
    let prepared = prepare(text);
    let small = RunOptions { memory_limit_bytes: 1 << 20, ..RunOptions::default() };
    for _ in 0..5 {
        assert_eq!(run(&engine, &graph, &prepared, &small, false), Err(QueryErrorKind::Budget));
        assert_released(&engine, text);
    }
    let short = RunOptions { timeout_ns: Some(3_000_000), ..RunOptions::default() };
    for _ in 0..5 {
        let _ = run(&engine, &graph, &prepared, &short, false);
        assert_released(&engine, text);
    }
}

#[test]
fn a_profile_counts_on_all_executors_and_tells_how_many_helped() {
    let (engine, graph) = (engine(eager()), in_place::graph());
    // Elements by step, and how often another executor helped.
    let profile = |text: &str| {
        let (sender, receiver) = channel();
        let done = Box::new(move |rows: Vec<Row>, end: QueryEnd| sender.send((rows, end.result)).unwrap());
        let options = RunOptions { profiled: true, ..RunOptions::default() };
        let sink = Box::new(Collector { done, collected: Vec::new() });
        engine.submit(&prepare(text), graph.begin_reading(), &options, sink);
        let (rows, result) = receiver.recv().unwrap();
        assert_eq!(result, Ok(()), "{text}");
        let [(Value::Metrics(metrics), _)] = rows.as_slice() else { panic!("{text}: {rows:?}") };
        let mut helpers = 0;
        let mut elements = Vec::new();
        for step in &metrics.metrics {
            let count = |name: &str| step.counts.iter().find(|(known, _)| &**known == name).map(|(_, count)| *count);
            match &*step.name {
                "Spread" => helpers = count("helpers").unwrap(),
                name => elements.push((name.to_owned(), count("elementCount").unwrap())),
            }
        }
        (elements, helpers)
    };
    let steps = "V('p0').in('likes').out('likes').both('knows').values('number').profile()";
    let (alone, helpers) = profile(&format!("g.with('ficus.spread', false).{steps}"));
    assert_eq!(helpers, 0);
    assert!(alone.iter().all(|(_, count)| *count > 0), "{alone:?}");
    for _ in 0..20 {
        let before = engine.times_spread();
        let (spread, helpers) = profile(&format!("g.{steps}"));
        assert_eq!(spread, alone);
        assert_eq!(helpers as u64, engine.times_spread() - before);
        assert_released(&engine, steps);
    }
}
