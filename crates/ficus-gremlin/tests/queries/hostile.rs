//! Queries that try to run away: each ends with the code of its budget or deadline, takes no more memory than it may, holds up nobody, and
//! leaves nothing behind, also when it is cancelled at any moment.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ficus_dataflow::{CancelToken, Delivery, Tenant};
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::Value;
use ficus_query::QueryErrorKind;
use ficus_query::budget::Held;
use ficus_query::engine::{Engine, EngineOptions, Prepared, QueryEnd, Row, RowSink, RowWaker, RunOptions};
use ficus_storage::{Graph, Store};

const QUERIES: &str = include_str!("../../../../tests/fixtures/hostile.txt");

/// Eight million different numbers.
const MANY: &str = "g.V().as('a').V().as('b').V().as('c').math('a * 40000 + b * 200 + c').by(T.id)";

/// A query may hold this much, all together twice as much.
const MEMORY_LIMIT_BYTES: usize = 4 << 20;

/// The slowest that anything may be on a busy machine in a debug build before a test fails rather than waits.
const PATIENCE: Duration = Duration::from_secs(120);

struct Hostile {
    name: &'static str,
    text: String,
    /// It may have an answer.
    answers: bool,
    /// It may be refused once it is seen where it leads.
    refused: bool,
}

impl Hostile {
    /// Whether it may end so, apart from `expected`.
    fn may_end(&self, ended: &Result<(), QueryErrorKind>) -> bool {
        self.answers && ended.is_ok() || self.refused && *ended == Err(QueryErrorKind::Invalid)
    }
}

fn queries() -> Vec<Hostile> {
    let lines = QUERIES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.split(" | ");
            let (name, text) = (parts.next().expect("a name"), parts.next().expect("a query"));
            let end = parts.next();
            assert!(matches!(end, None | Some("answered" | "refused")), "{line}");
            let text = text.replace("{many}", MANY);
            Hostile { name, text, answers: end == Some("answered"), refused: end == Some("refused") }
        })
        .collect()
}

fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let vertices: Vec<_> =
        (0..200).map(|id| writing.add_vertex("person", Some(Value::Long(id))).expect("a new id")).collect();
    for (number, vertex) in vertices.iter().enumerate() {
        let name = Value::from(format!("person {number}"));
        writing.set_vertex_property(*vertex, "name", name, ficus_model::Cardinality::Single, None).unwrap();
        for step in 1..=50 {
            writing.add_edge("knows", *vertex, vertices[(number + step) % 200], None).unwrap();
        }
    }
    writing.commit().unwrap();
    graph
}

fn engine(executors: usize) -> Engine {
    let options =
        EngineOptions { queries_memory_bytes: 2 * MEMORY_LIMIT_BYTES, ..EngineOptions::with_executors(executors) };
    Engine::start(options).unwrap()
}

fn prepare(text: &str) -> Prepared {
    let bytecode = parse_traversal(text, &ParseOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let plan = lower(&bytecode).unwrap_or_else(|error| panic!("{text}: {error}"));
    Prepared::new(plan).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// How a query ended.
type Ended = Result<(), QueryErrorKind>;

/// What somebody wants to know of the end of a query.
trait OfEnd: Send {
    fn of(end: &QueryEnd) -> Self;
}

impl OfEnd for Ended {
    fn of(end: &QueryEnd) -> Ended {
        end.result.as_ref().map_err(|error| error.kind).copied()
    }
}

/// And the most bytes that it held.
impl OfEnd for (Ended, usize) {
    fn of(end: &QueryEnd) -> (Ended, usize) {
        (Ended::of(end), end.memory_peak_bytes)
    }
}

/// Forgets rows and tells of the end.
struct Forget<T>(Sender<T>);

impl<T: OfEnd> RowSink for Forget<T> {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        rows.clear();
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        let told = T::of(&end);
        end.transaction.rollback();
        let _ = self.0.send(told);
    }
}

/// Waits until queries hold nothing any more.
#[track_caller]
fn assert_released(engine: &Engine, name: &str) {
    let began = Instant::now();
    while engine.memory().used_bytes() > 0 || engine.load() > 0 {
        assert!(began.elapsed() < PATIENCE, "{name}: {} bytes are never handed back", engine.memory().used_bytes());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_ends_with_its_code_and_others_go_on() {
    let (graph, engine) = (graph(), engine(1));
    let small = prepare("g.V(7).out().count()");
    for hostile in queries() {
        let name = hostile.name;
        let prepared = prepare(&hostile.text);
        let (sender, end) = channel();
        let options = RunOptions {
            memory_limit_bytes: MEMORY_LIMIT_BYTES,
            timeout_ns: Some(1_000_000_000),
            ..RunOptions::default()
        };
        engine.submit(&prepared, graph.begin(), &options, Box::new(Forget(sender)));
        // A small query of somebody else on the same executor meanwhile.
        let (sender, small_end) = channel();
        let others = RunOptions { tenant: ficus_dataflow::Tenant::numbered(1), ..RunOptions::default() };
        engine.submit(&small, graph.begin(), &others, Box::new(Forget(sender)));
        assert_eq!(small_end.recv_timeout(PATIENCE), Ok(Ok(())), "beside {name}");
        let ended = end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{name} never ends"));
        let expected = [Err(QueryErrorKind::Budget), Err(QueryErrorKind::Timeout)];
        assert!(expected.contains(&ended) || hostile.may_end(&ended), "{name} ended with {ended:?}");
        drop(prepared);
        assert_released(&engine, name);
    }
}

/// Members of a large bulk are made one by one until there is no room for more: where each query may hold more than there is, that takes long.
#[test]
fn who_expands_a_large_bulk_looks_at_the_deadline_and_lets_others_go_on() {
    const DEADLINE: Duration = Duration::from_millis(400);
    // A turn takes milliseconds; on a machine that does something else as well, some of them take longer.
    const LATE: Duration = Duration::from_secs(2);
    const HELD_UP: Duration = Duration::from_millis(250);
    let options = EngineOptions { queries_memory_bytes: 2 << 30, ..EngineOptions::with_executors(1) };
    let (graph, engine) = (graph(), Engine::start(options).unwrap());
    let small = prepare("g.V(7).out().count()");
    let mut wrong = Vec::new();
    for hostile in queries().into_iter().filter(|hostile| hostile.name.contains("a large bulk")) {
        let name = hostile.name;
        let (sender, end) = channel();
        let options = RunOptions {
            memory_limit_bytes: usize::MAX / 2,
            timeout_ns: Some(DEADLINE.as_nanos() as u64),
            ..RunOptions::default()
        };
        let began = Instant::now();
        engine.submit(&prepare(&hostile.text), graph.begin(), &options, Box::new(Forget(sender)));
        let others = RunOptions { tenant: ficus_dataflow::Tenant::numbered(1), ..RunOptions::default() };
        let mut longest = Duration::ZERO;
        let ended = loop {
            let (sender, small_end) = channel();
            let asked = Instant::now();
            engine.submit(&small, graph.begin(), &others, Box::new(Forget(sender)));
            assert_eq!(small_end.recv_timeout(PATIENCE), Ok(Ok(())), "beside {name}");
            longest = longest.max(asked.elapsed());
            match end.try_recv() {
                Ok(ended) => break ended,
                Err(_) => assert!(began.elapsed() < PATIENCE, "{name} never ends"),
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let took = began.elapsed();
        let expected = [QueryErrorKind::Budget, QueryErrorKind::ServerMemory, QueryErrorKind::Timeout].map(Err);
        let is_expected = expected.contains(&ended) || hostile.may_end(&ended);
        let seen = format!("{name}: {ended:?} after {took:?}, beside it a small query took {longest:?}");
        if !is_expected || took >= DEADLINE + LATE || longest >= HELD_UP {
            wrong.push(seen);
        }
        assert_released(&engine, name);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What one row stands for and cannot fit is refused before any of it is made, though there would be room for a part.
#[test]
fn what_a_large_bulk_stands_for_is_not_made_if_it_cannot_fit() {
    let (graph, engine) = (graph(), engine(1));
    let bulk = "g.V().repeat(__.both()).times(8).barrier()";
    for (behind, fits) in [
        (".fold()", false),
        (".limit(1000000).fold()", false),
        (".limit(10000).fold()", true),
        (".group().by(T.id)", false),
        (".limit(10000).group().by(T.label).by(__.id().fold())", true),
        (".sample(1000000)", false),
        (".sample(1000)", true),
    ] {
        let text = format!("{bulk}{behind}");
        let (sender, end) = channel();
        let options = RunOptions { memory_limit_bytes: MEMORY_LIMIT_BYTES, ..RunOptions::default() };
        engine.submit(&prepare(&text), graph.begin(), &options, Box::new(Forget(sender)));
        let (ended, most): (Ended, usize) = end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{text} never ends"));
        match fits {
            true => assert_eq!(ended, Ok(()), "{text}"),
            false => {
                assert_eq!(ended, Err(QueryErrorKind::Budget), "{text}");
                assert!(most < MEMORY_LIMIT_BYTES / 4, "{text} held {most} bytes");
            }
        }
        assert_released(&engine, &text);
    }
}

#[test]
fn each_can_be_cancelled_at_any_moment() {
    let (graph, engine) = (graph(), engine(2));
    for hostile in queries() {
        let prepared = prepare(&hostile.text);
        for pause_us in [0, 100, 3_000, 20_000] {
            let cancel = CancelToken::default();
            let (sender, end) = channel();
            let options =
                RunOptions { memory_limit_bytes: MEMORY_LIMIT_BYTES, cancel: cancel.clone(), ..RunOptions::default() };
            let handle = engine.submit(&prepared, graph.begin(), &options, Box::new(Forget(sender)));
            std::thread::sleep(Duration::from_micros(pause_us));
            handle.cancel();
            let ended = end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{} never ends", hostile.name));
            // What the one before held is given back behind its end.
            let expected =
                [Err(QueryErrorKind::Cancelled), Err(QueryErrorKind::Budget), Err(QueryErrorKind::ServerMemory)];
            assert!(expected.contains(&ended) || hostile.may_end(&ended), "{} ended with {ended:?}", hostile.name);
        }
        assert_released(&engine, hostile.name);
    }
}

/// Tells how many changes a query has made when it ends, and how it does.
struct Changes(Sender<(Result<(), QueryErrorKind>, usize)>);

impl RowSink for Changes {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        rows.clear();
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        let _ = self.0.send((end.result.map_err(|error| error.kind), end.transaction.change_count()));
    }
}

#[test]
fn many_properties_of_one_element_stop_where_the_account_ends() {
    let (graph, engine) = (graph(), engine(1));
    let entries: Vec<String> = (0..40_000).map(|number| format!("'k{number}':{number}")).collect();
    let entries = entries.join(",");
    for text in [
        format!("g.mergeV([(T.label):'many',{entries}])"),
        format!("g.mergeV([(T.id):7]).option(onMatch, [{entries}])"),
        format!("g.mergeE([(T.label):'many',(OUT):7,(IN):8,{entries}])"),
        format!("g.V(7).property([{entries}])"),
    ] {
        let (sender, end) = channel();
        let options = RunOptions { memory_limit_bytes: MEMORY_LIMIT_BYTES, ..RunOptions::default() };
        engine.submit(&prepare(&text), graph.begin(), &options, Box::new(Changes(sender)));
        let (ended, changes) = end.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!(ended, Err(QueryErrorKind::Budget), "{}", &text[..40]);
        assert!(changes < 20_000, "{changes} changes of {}", &text[..40]);
    }
}

#[test]
fn elements_that_a_row_holds_are_on_the_account_when_they_are_taken_out() {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    for id in 0..200 {
        let vertex = writing.add_vertex("document", Some(Value::Long(id))).unwrap();
        let text = Value::from(format!("{id} {}", "x".repeat(64 << 10)));
        writing.set_vertex_property(vertex, "text", text, ficus_model::Cardinality::Single, None).unwrap();
    }
    writing.commit().unwrap();
    let engine = engine(1);
    let (sender, ends) = channel::<Ended>();
    let ended = |query: &str, cancel: CancelToken| {
        let options = RunOptions { memory_limit_bytes: MEMORY_LIMIT_BYTES, cancel, ..RunOptions::default() };
        engine.submit(&prepare(query), graph.begin_reading(), &options, Box::new(Forget(sender.clone())));
        let ended = ends.recv_timeout(PATIENCE).expect("it ends");
        assert_released(&engine, query);
        ended
    };
    for query in ["g.V().fold()", "g.V().aggregate('x').cap('x')", "g.V().groupCount()", "g.V().tree()"] {
        // Of what is in the graph none is held; 13 MB are as soon as it is taken out.
        assert_eq!(ended(query, CancelToken::default()), Err(QueryErrorKind::Budget), "{query}");
        assert_eq!(ended(&format!("{query}.count(Scope.local)"), CancelToken::default()), Ok(()), "{query}");
    }
    for query in
        ["g.V()", "g.V().path()", "g.V().limit(5).fold()", "g.V().limit(3).repeat(__.V().limit(3)).times(5).fold()"]
    {
        assert_eq!(ended(query, CancelToken::default()), Ok(()), "{query}");
    }
}

#[test]
fn thousands_of_cancelled_queries_leave_nothing() {
    let (graph, engine) = (graph(), engine(2));
    let prepared = prepare("g.V().repeat(__.both()).emit().path()");
    let (sender, ends) = channel();
    for round in 0..5_000u32 {
        let options = RunOptions { memory_limit_bytes: MEMORY_LIMIT_BYTES, ..RunOptions::default() };
        let handle = engine.submit(&prepared, graph.begin_reading(), &options, Box::new(Forget(sender.clone())));
        if round % 3 == 0 {
            std::thread::yield_now();
        }
        handle.cancel();
    }
    for _ in 0..5_000 {
        // One that is cancelled late, since this thread had to wait, may have taken all that it may hold.
        let ended = ends.recv_timeout(PATIENCE);
        assert!(matches!(ended, Ok(Err(QueryErrorKind::Cancelled | QueryErrorKind::Budget))), "{ended:?}");
    }
    assert_released(&engine, "all");
}

#[test]
fn queries_that_hold_all_there_is_are_told_so_and_later_ones_run() {
    let (graph, engine) = (graph(), engine(2));
    // Each may take all that there is, so both cannot. Who has all of it to itself is told that this is its limit, and not to come again.
    let prepared = prepare(&format!("{MANY}.fold()"));
    let (sender, ends) = channel();
    for _ in 0..4 {
        let options = RunOptions { memory_limit_bytes: 100 * MEMORY_LIMIT_BYTES, ..RunOptions::default() };
        engine.submit(&prepared, graph.begin_reading(), &options, Box::new(Forget(sender.clone())));
    }
    for _ in 0..4 {
        let end = ends.recv_timeout(PATIENCE).expect("it ends");
        assert!(matches!(end, Err(QueryErrorKind::ServerMemory | QueryErrorKind::Budget)), "{end:?}");
    }
    assert_released(&engine, "all");
    // Of two that grow beside each other, one finds that there is no more.
    let (one, other) = (engine.account(usize::MAX, Tenant::default()), engine.account(usize::MAX, Tenant::default()));
    let (mut held, mut more) = (Held::default(), Held::default());
    held.add(&one, MEMORY_LIMIT_BYTES).expect("there is room");
    let refused = more.add(&other, MEMORY_LIMIT_BYTES * 3 / 2).expect_err("there is less");
    assert_eq!(refused.kind, QueryErrorKind::ServerMemory);
    assert!(engine.memory().refusals() >= 1);
    drop((held, more, one, other));
    let small = prepare("g.V().fold().unfold().count()");
    engine.submit(&small, graph.begin_reading(), &RunOptions::default(), Box::new(Forget(sender.clone())));
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(Ok(())));
}

/// Tells the work units of a query and the most turns that one of its nodes had.
struct Work(Sender<(Result<(), QueryErrorKind>, u64, u64)>);

impl RowSink for Work {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        rows.clear();
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        let turns = end.profile.into_iter().flatten().map(|node| node.turns).max().unwrap_or(0);
        let _ = self.0.send((end.result.map_err(|error| error.kind), end.work_units, turns));
    }
}

fn work(engine: &Engine, graph: &Arc<Graph>, text: &str) -> (u64, u64) {
    let (sender, end) = channel();
    let options = RunOptions { profiled: true, ..RunOptions::default() };
    engine.submit(&prepare(text), graph.begin_reading(), &options, Box::new(Work(sender)));
    let (ended, units, turns) = end.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(ended, Ok(()), "{}", &text[..40]);
    (units, turns)
}

/// One row that is held against tens of thousands of conditions takes as long as thousands of rows, and counts for as many.
#[test]
fn tests_of_many_parts_end_their_turn() {
    const PARTS: usize = 20_000;
    let (graph, engine) = (graph(), Engine::start(EngineOptions::with_executors(1)).unwrap());
    let all = |part: &dyn Fn(usize) -> String, between: &str| (0..PARTS).map(part).collect::<Vec<_>>().join(between);
    let conditions = all(&|number| format!("hasNot('p{number}')"), ".");
    let (units, _) = work(&engine, &graph, &format!("g.V().{conditions}.count()"));
    assert!(units > 200 * 16, "{units} units for the conditions of 200 vertices");
    let (units, _) = work(&engine, &graph, &format!("g.V(1).out().{conditions}.count()"));
    assert!(units > 50 * 16, "{units} units for the conditions of 50 neighbours");
    // Turns are of 4,096 units.
    for (step, part) in [("or", "__.out('none')"), ("coalesce", "__.out('none')"), ("and", "__.out()")] {
        let text = format!("g.V(1).{step}({}).count()", all(&|_| part.to_owned(), ","));
        let (_, turns) = work(&engine, &graph, &text);
        assert!(turns >= 4, "{turns} turns for {PARTS} arms of {step}()");
    }
}

/// Queues that are empty keep their room, so a plan of tens of thousands of steps has small ones.
#[test]
fn queues_of_many_steps_hold_few_rows_each() {
    for steps in [1, 1000, 30_000] {
        let prepared = prepare(&format!("g.V(){}", ".out().has('name')".repeat(steps)));
        let plan = &prepared.physical.plan;
        let rows = plan.batch_rows_limit * plan.node_count as usize;
        assert!(rows <= 1 << 19 || plan.batch_rows_limit == 16, "{rows} rows in the queues of {steps} steps");
        assert!(steps > 1 || plan.batch_rows_limit == 256);
    }
}

/// A sample with a seed is TinkerPop's as long as that draws one in a lifetime.
#[test]
fn a_seeded_sample_of_a_bulk_beyond_counting_takes_as_long_as_it_is_large() {
    let (graph, engine) = (graph(), engine(1));
    for (bulk, wanted) in [("times(8)", 5), ("times(8)", 3000), ("times(12)", 1)] {
        let text = format!("g.withStrategies(SeedStrategy(seed: 7)).V().repeat(__.both()).{bulk}.sample({wanted})");
        let mut drawn: Vec<Vec<(Value, u64)>> = Vec::new();
        for _ in 0..2 {
            let (sender, end) = channel();
            let rows = Arc::default();
            let sink = Rows { rows: Arc::clone(&rows), end: sender };
            engine.submit(&prepare(&text), graph.begin_reading(), &RunOptions::default(), Box::new(sink));
            assert_eq!(end.recv_timeout(PATIENCE).expect("it ends"), Ok(()), "{text}");
            drawn.push(std::mem::take(&mut *rows.lock().unwrap()));
        }
        assert_eq!(drawn[0].iter().map(|(_, bulk)| bulk).sum::<u64>(), wanted, "{text}");
        assert_eq!(drawn[0], drawn[1], "the same seed draws the same");
    }
}

/// Keeps rows, and tells of the end.
struct Rows {
    rows: Arc<Mutex<Vec<Row>>>,
    end: Sender<Result<(), QueryErrorKind>>,
}

impl RowSink for Rows {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        self.rows.lock().unwrap().extend(rows.drain(..));
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        let _ = self.end.send(end.result.map_err(|error| error.kind));
    }
}

#[test]
fn patterns_that_cannot_be_put_in_line_are_bounded() {
    let patterns = |count: usize| {
        let hops = (0..count - 1).map(|number| format!("__.as('a{number}').out().as('a{}')", number + 1));
        hops.chain(["__.as('a0').out().count().as('n')".to_owned()]).collect::<Vec<_>>().join(",")
    };
    let plan = |count| {
        let text = format!("g.V().match({}).count()", patterns(count));
        Prepared::new(lower(&parse_traversal(&text, &ParseOptions::default()).unwrap()).unwrap())
    };
    assert!(plan(1000).is_ok());
    let error = plan(1001).err().expect("too many");
    assert_eq!(error.kind, QueryErrorKind::Invalid);
    assert!(error.to_string().contains("match() has 1001 patterns"), "{error}");
}
