//! The list of queries, the line before it, ending one as an administrator, and answers that the deadline cuts short.

use std::sync::Arc;

use ficus_model::Value;
use ficus_query::engine::{Engine, EngineOptions};
use ficus_query::services::ServiceRegistry;
use ficus_server::ServerConfig;
use ficus_server::engine::{EngineBackend, Queries, SERVER_SOURCE, register_query_services};
use ficus_storage::{Environment, Store, StoreOptions};
use ficus_wire::Response;

use crate::client::*;
use crate::mock::Mock;

/// Runs until somebody ends it.
pub const ENDLESS: &str = "g.inject(1).repeat(__.identity()).until(__.is(2)).count()";
/// Ends, but not within what a query may do while it is in line.
const LARGE: &str = "g.inject(1).repeat(__.identity()).times(50000).count()";
/// Has found something, and looks for more until somebody ends it.
const FINDS_ONE: &str = "inject(1).union(__.identity(), __.repeat(__.identity()).until(__.is(2)))";

async fn serve(queries_limit: usize) -> Server {
    serve_with(queries_limit, false).await
}

async fn serve_with(queries_limit: usize, streams_walks: bool) -> Server {
    serve_configured(queries_limit, streams_walks, |_| ()).await
}

/// A server over an engine of one executor.
pub async fn serve_configured(
    queries_limit: usize,
    streams_walks: bool,
    configure: impl FnOnce(&mut ServerConfig),
) -> Server {
    serve_within(usize::MAX, queries_limit, streams_walks, configure).await
}

/// The same, with so much memory for all queries.
pub async fn serve_within(
    queries_memory_bytes: usize,
    queries_limit: usize,
    streams_walks: bool,
    configure: impl FnOnce(&mut ServerConfig),
) -> Server {
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let queries = Arc::new(Queries::new(queries_limit));
    let mut services = ServiceRegistry::standard();
    register_query_services(&mut services, &queries);
    let options = EngineOptions { services, queries_memory_bytes, ..EngineOptions::with_executors(1) };
    let backend =
        EngineBackend::new(Engine::start(options).unwrap(), store, [("g".into(), graph)].into(), 1 << 30, queries);
    let backend = if streams_walks { backend.streaming_walks() } else { backend };
    Server::over(Arc::new(backend), Arc::new(Mock::default()), configure).await
}

pub fn code(response: &Response) -> (u16, Option<&Value>) {
    (response.status, attribute(response, "code"))
}

pub fn field(map: &Value, key: &str) -> Value {
    match map {
        Value::Map(map) => map.get(&text(key)).cloned().unwrap_or(Value::Null),
        other => panic!("{other:?}"),
    }
}

/// The endless queries that are listed with this state, once there are so many and `client` may see their texts.
pub async fn listed(client: &mut Client, state: &str, count: usize) -> Vec<Value> {
    loop {
        let answers = client.ask(&eval("g.call('ficus.queries')")).await;
        let all: Vec<Value> = answers.iter().flat_map(values).collect();
        let own: Vec<Value> = all
            .into_iter()
            .filter(|query| field(query, "state") == text(state) && field(query, "text") == text(ENDLESS))
            .collect();
        if own.len() == count {
            return own;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_are_listed_and_ended_running_or_in_line() {
    let server = serve(1).await;
    let (mut admin, mut first, mut second) = (server.connect().await, server.connect().await, server.connect().await);
    first.send(&eval(ENDLESS)).await;
    // Who looks after the server is not held up by the line.
    let running = loop {
        let running = listed(&mut admin, "running", 1).await;
        // It is at none before its first turn.
        if field(&running[0], "operator") != Value::Null {
            break running;
        }
    };
    second.send(&eval(ENDLESS)).await;
    let waiting = listed(&mut admin, "queued", 1).await;
    assert_eq!(server.metric("ficus_queries_waiting").await, 1.0);
    assert_eq!(field(&running[0], "source"), text("g"));
    assert!(matches!(field(&running[0], "operator"), Value::String(_)), "{:?}", running[0]);
    for (client, query) in [(&mut second, &waiting[0]), (&mut first, &running[0])] {
        let Value::String(id) = field(query, "id") else { panic!("{query:?}") };
        let kill = eval(&format!("g.call('ficus.kill').with('id','{id}')"));
        assert_eq!(admin.ask_once(&kill).await.status, 200);
        let ended = client.next().await;
        assert_eq!(code(&ended), (500, Some(&text("FICUS-2014"))), "{}", ended.message);
        // It may be listed for a moment after its answer; then it is unknown.
        loop {
            let again = admin.ask_once(&kill).await;
            if code(&again) == (597, Some(&text("FICUS-2005"))) {
                break;
            }
        }
    }
    server.metric_becomes("ficus_queries_running", 0.0).await;
    assert!(server.metric("ficus_queries_killed_total").await >= 2.0);
    let bad = admin.ask_once(&eval("g.call('ficus.kill').with('id','nobody')")).await;
    assert_eq!(code(&bad), (597, Some(&text("FICUS-2005"))));
    let sum = admin.ask_once(&eval("g.inject('x').sum()")).await;
    assert!(sum.message.contains("got String (in ") && sum.message.contains("SumGlobalStep"), "{}", sum.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planning_is_the_query_s_own_time() {
    let server = serve(1).await;
    let mut client = server.connect().await;
    // A value takes longer to read than this by far.
    let long = format!("g.inject({}1).count()", "1,".repeat(1 << 20));
    let answer = client.ask_once(&eval_with(&long, &[("evaluationTimeout", Value::Long(1))])).await;
    assert_eq!(code(&answer), (598, Some(&text("FICUS-1401"))), "{}", answer.message);
    server.metric_becomes("ficus_queries_running", 0.0).await;
    let answer = client.ask_once(&eval("g.call('ficus.queries').count()")).await;
    assert_eq!(values(&answer), [Value::Long(1)], "only this one is listed");
    let many = format!("g.V(){}.count()", ".identity()".repeat(100_000));
    let answer = client.ask_once(&eval(&many)).await;
    assert_eq!(answer.status, 597);
    assert!(answer.message.contains("100002 steps") && answer.message.contains("100000 that"), "{}", answer.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_in_line_is_the_query_s_own_and_is_told() {
    let server = serve(1).await;
    let (mut admin, mut first, mut second) = (server.connect().await, server.connect().await, server.connect().await);
    first.send(&eval_with(ENDLESS, &[("evaluationTimeout", Value::Long(1000))])).await;
    listed(&mut admin, "running", 1).await;
    // Its time is up before it is let in.
    let late = second.ask_once(&eval_with(LARGE, &[("evaluationTimeout", Value::Long(100))])).await;
    assert_eq!(code(&late), (598, Some(&text("FICUS-1401"))), "{}", late.message);
    // This one is let in when the first one has ended.
    let answer = second.ask_once(&eval(LARGE)).await;
    assert_eq!((answer.status, values(&answer)), (200, vec![Value::Long(1)]));
    assert!(matches!(attribute(&answer, "queuedMs"), Some(Value::Long(ms)) if *ms > 0), "{:?}", answer.attributes);
    assert_eq!(code(&first.next().await), (598, Some(&text("FICUS-1401"))));
    // A client that leaves the line leaves nothing.
    first.send(&eval(ENDLESS)).await;
    listed(&mut admin, "running", 1).await;
    second.send(&eval(ENDLESS)).await;
    listed(&mut admin, "queued", 1).await;
    drop(second);
    server.metric_becomes("ficus_queries_waiting", 0.0).await;
    drop(first);
    server.metric_becomes("ficus_queries_running", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_queries_end_while_large_ones_stand_in_line() {
    let server = serve(1).await;
    let (mut admin, mut small) = (server.connect().await, server.connect().await);
    let mut large = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        client.send(&eval(ENDLESS)).await;
        large.push(client);
    }
    // All have done a little, and those beyond the limit hold still.
    listed(&mut admin, "queued", 19).await;
    listed(&mut admin, "running", 1).await;
    for text in ["g.inject(7)", "g.addV('person').property('name','ann').values('name').count()", "g.V().count()"] {
        let answer = small.ask_once(&eval(text)).await;
        assert_eq!(answer.status, 200, "{text}: {}", answer.message);
        assert_eq!(attribute(&answer, "queuedMs"), None, "{text}");
    }
    let answer = small.ask_once(&eval_with(LARGE, &[("evaluationTimeout", Value::Long(100))])).await;
    assert_eq!(code(&answer), (598, Some(&text("FICUS-1401"))), "{}", answer.message);
    // It leaves the line a moment after its answer.
    server.metric_becomes("ficus_queries_waiting", 19.0).await;
    // They go on where they were, one after another.
    for left in (0..20).rev() {
        let running = listed(&mut admin, "running", 1).await;
        let Value::String(id) = field(&running[0], "id") else { panic!("{running:?}") };
        assert_eq!(admin.ask_once(&eval(&format!("g.call('ficus.kill').with('id','{id}')"))).await.status, 200);
        listed(&mut admin, "queued", usize::max(left, 1) - 1).await;
    }
    for client in &mut large {
        assert_eq!(code(&client.next().await), (500, Some(&text("FICUS-2014"))));
    }
    server.metric_becomes("ficus_queries_running", 0.0).await;
    server.metric_becomes("ficus_queries_waiting", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_found_by_the_deadline_is_marked_as_incomplete() {
    let server = serve(8).await;
    let mut client = server.connect().await;
    let time = [("evaluationTimeout", Value::Long(200))];
    let partial = format!("g.with('ficus.partial', true).{FINDS_ONE}");
    let answer = client.ask_once(&eval_with(&partial, &time)).await;
    assert_eq!((answer.status, values(&answer)), (200, vec![Value::Int(1)]), "{}", answer.message);
    assert_eq!(attribute(&answer, "incomplete"), Some(&Value::Bool(true)));
    // Without the option it fails, with it and enough time it is complete.
    let answers = client.ask(&eval_with(&format!("g.{FINDS_ONE}"), &time)).await;
    assert_eq!(code(answers.last().unwrap()), (598, Some(&text("FICUS-1401"))));
    let whole = client.ask_once(&eval("g.with('ficus.partial', true).inject(1)")).await;
    assert_eq!((whole.status, attribute(&whole, "incomplete")), (200, None));
    // Over HTTP it is in the body and in a header.
    let body = format!("{{\"gremlin\":\"{partial}\",\"evaluationTimeout\":200}}");
    let answer = server.post("", &body).await;
    assert_eq!((answer.status, answer.header("ficus-incomplete")), (200, Some("true")));
    let response = answer.response();
    assert_eq!(values(&response), [Value::Int(1)]);
    assert_eq!(attribute(&response, "incomplete"), Some(&Value::Bool(true)));
    // A part of a write is nothing anybody can want.
    let refused = client.ask_once(&eval("g.with('ficus.partial', true).addV('x')")).await;
    assert_eq!(code(&refused), (500, Some(&text("FICUS-2003"))), "{}", refused.message);
    let refused = client.ask_once(&eval("g.with('ficus.partial', 1).inject(1)")).await;
    assert_eq!(code(&refused), (597, Some(&text("FICUS-2015"))), "{}", refused.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_stream_walks_unless_a_query_asks_for_searches() {
    let (searching, streaming) = (serve(1).await, serve_with(1, true).await);
    for (server, source, searches) in [
        (&searching, "g", true),
        (&searching, "g.with('ficus.khop', false)", false),
        (&streaming, "g", false),
        (&streaming, "g.with('ficus.khop', true)", true),
    ] {
        let mut client = server.connect().await;
        let text = format!("{source}.V().repeat(__.out()).times(2).dedup().count().explain()");
        let answers = client.ask(&eval(&text)).await;
        assert_eq!(answers.last().expect("an answer").status, 200, "{answers:?}");
        assert_eq!(format!("{answers:?}").contains("KHopStep"), searches, "{text}");
    }
}

/// A graph of so many vertices, each with a text of so many bytes.
async fn filled(client: &mut Client, vertices: u32, bytes: usize) {
    let text = "x".repeat(bytes);
    let numbers = (0..vertices).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let query = format!("g.inject({numbers}).as('n').addV('v').property('text', '{text}').count()");
    assert_eq!(client.ask_once(&eval(&query)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_collection_holds_often_is_taken_out_once_and_written_within_the_limit() {
    let server = serve_configured(8, false, |config| config.limits.response_bytes = 1 << 20).await;
    let mut client = server.connect().await;
    filled(&mut client, 100, 1000).await;
    // 100 different vertices are 100 KB, and 10,000 references to them 10 MB as soon as they are written.
    let answer = client.ask_once(&eval("g.V().V().fold()")).await;
    assert_eq!(code(&answer), (500, Some(&text("FICUS-1502"))), "{}", answer.message);
    assert!(answer.message.contains("1048576 bytes"), "{}", answer.message);
    // Rows come in batches, each a response.
    let rows: usize = client.ask(&eval("g.V().V()")).await.iter().map(|response| values(response).len()).sum();
    assert_eq!(rows, 10_000);
    let once = client.ask_once(&eval("g.V().fold()")).await;
    assert_eq!(once.status, 200, "{}", once.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_an_http_response_are_gathered_within_the_limit() {
    let server = serve_configured(8, false, |config| config.limits.http_response_bytes = 1 << 20).await;
    let mut client = server.connect().await;
    filled(&mut client, 100, 1000).await;
    for query in ["g.V().V()", "g.V().V().fold()"] {
        let answer = server.post("", &format!("{{\"gremlin\":\"{query}\"}}")).await;
        assert_eq!(answer.status, 500, "{query}");
        assert!(answer.text().contains("FICUS-1502"), "{query}: {}", answer.text());
    }
    assert_eq!(server.post("", "{\"gremlin\":\"g.V().fold()\"}").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_are_looked_after_where_there_is_no_graph() {
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let queries = Arc::new(Queries::new(1));
    let mut services = ServiceRegistry::standard();
    register_query_services(&mut services, &queries);
    let options = EngineOptions { services, ..EngineOptions::with_executors(1) };
    let backend = EngineBackend::new(Engine::start(options).unwrap(), store, [].into(), 1 << 30, queries);
    let server = Server::over(Arc::new(backend), Arc::new(Mock::default()), |_| ()).await;
    let mut client = server.connect().await;
    let of_server = |gremlin: &str| eval_with(gremlin, &[("aliases", map(&[("g", text(SERVER_SOURCE))]))]);
    let listed = client.ask_once(&of_server("g.call('ficus.queries')")).await;
    assert_eq!((listed.status, values(&listed).len()), (200, 1), "{}", listed.message);
    assert_eq!(client.ask_once(&of_server("g.call('ficus.tenants')")).await.status, 200);
    let nobody = "g.call('ficus.kill').with('id','1f6e52ac-02cb-4a5c-a343-5a1ba2e4a3c5')";
    assert_eq!(code(&client.ask_once(&of_server(nobody)).await), (597, Some(&text("FICUS-2005"))));
    for other in ["g.V()", "g.addV('x')", "g.inject(1)", "g.call('ficus.queries').count()", "g.V().explain()"] {
        let refused = client.ask_once(&of_server(other)).await;
        assert_eq!(code(&refused), (499, Some(&text("FICUS-1009"))), "{other}: {}", refused.message);
    }
    let unknown = client.ask_once(&eval("g.call('ficus.queries')")).await;
    assert_eq!(code(&unknown), (499, Some(&text("FICUS-1009"))));
    assert!(!unknown.message.contains(SERVER_SOURCE), "{}", unknown.message);
}
