//! Transactions of the engine behind a real server: conflicts, retries, merges of many clients, the past.

use std::sync::Arc;

use ficus_model::Value;
use ficus_query::engine::{Engine, EngineOptions};
use ficus_server::ServerConfig;
use ficus_server::engine::{EngineBackend, Queries};
use ficus_storage::{Environment, Graph, Store, StoreOptions};
use ficus_wire::{Request, Response};

use crate::client::*;
use crate::mock::Mock;

/// A server over one graph `g` in memory with an index over `key`.
async fn serve(store: StoreOptions, change: impl FnOnce(&mut ServerConfig)) -> (Server, Arc<Graph>) {
    let store = Store::open(store, Environment::in_memory()).unwrap();
    let graph = store.create_graph("g").unwrap();
    graph.create_index(None, "key").unwrap();
    let options = EngineOptions::with_executors(2);
    let sources = [("g".to_string(), graph.clone())].into();
    let backend =
        EngineBackend::new(Engine::start(options).unwrap(), store, sources, 1 << 30, Arc::new(Queries::new(64)));
    (Server::over(Arc::new(backend), Arc::new(Mock::default()), change).await, graph)
}

fn in_session(session: &str, gremlin: &str) -> Request {
    request("eval", "session", &[("gremlin", text(gremlin)), ("session", text(session))])
}

fn code(response: &Response) -> (u16, Option<&Value>) {
    (response.status, attribute(response, "code"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_that_merge_the_same_make_no_duplicates() {
    const CLIENTS: usize = 64;
    const KEYS: usize = 8;
    let (server, graph) = serve(StoreOptions::default(), |_| ()).await;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut client = server.connect().await;
        clients.push(tokio::spawn(async move {
            for step in 0..KEYS {
                // All begin at different keys and meet each other on the way.
                let (from, to) = ((number + step) % KEYS, (number + step + 1) % KEYS);
                let merges = [
                    format!("g.mergeV([(T.label):'p','key':{from}]).option(Merge.onMatch,['seen':{number}])"),
                    format!("g.mergeV([(T.label):'p','key':{to}])"),
                    format!(
                        "g.mergeE([(T.label):'next',(Direction.OUT):Merge.outV,(Direction.IN):Merge.inV])\
                         .option(Merge.outV,__.V().has('p','key',{from}))\
                         .option(Merge.inV,__.V().has('p','key',{to}))"
                    ),
                ];
                for merge in merges {
                    loop {
                        let answer = client.ask(&eval(&merge)).await.pop().unwrap();
                        if answer.status != 596 {
                            assert_eq!(answer.status, 200, "{merge}: {}", answer.message);
                            break;
                        }
                    }
                }
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!((graph.vertex_count(), graph.edge_count()), (KEYS as u64, KEYS as u64));
    graph.snapshot().check_invariants().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_meet_are_run_again_by_the_server() {
    const CLIENTS: usize = 16;
    const EACH: usize = 8;
    let (server, graph) = serve(StoreOptions::default(), |_| ()).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = server.connect().await;
        clients.push(tokio::spawn(async move {
            let mut numbers = Vec::new();
            while numbers.len() < EACH {
                // Every commit makes the count of all others wrong.
                let answers = client.ask(&eval("g.addV('n').property('number',__.V().count()).values('number')")).await;
                match answers.last().unwrap().status {
                    200 => numbers.extend(answers.iter().flat_map(values)),
                    status => assert_eq!(status, 596),
                }
            }
            numbers
        }));
    }
    let mut numbers = Vec::new();
    for client in clients {
        numbers.extend(client.await.unwrap().into_iter().map(|number| match number {
            Value::Long(number) => number,
            other => panic!("{other:?}"),
        }));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..(CLIENTS * EACH) as i64).collect::<Vec<_>>());
    assert_eq!(graph.vertex_count(), (CLIENTS * EACH) as u64);
    let (conflicts, retries) = (
        server.metric("ficus_transaction_conflicts_total").await,
        server.metric("ficus_transaction_retries_total").await,
    );
    assert!(retries <= conflicts, "{retries} retries, {conflicts} conflicts");
}

#[tokio::test]
async fn a_session_that_conflicts_is_not_run_again() {
    let (server, graph) = serve(StoreOptions::default(), |_| ()).await;
    let mut client = server.connect().await;
    let mut other = server.connect().await;
    client.ask_once(&eval("g.addV('p').property('key',1)")).await;
    client.ask_once(&in_session("s", "g.V().has('key',1).count()")).await;
    other.ask_once(&eval("g.addV('p').property('key',1)")).await;
    client.ask_once(&in_session("s", "g.addV('q')")).await;
    let answer = client.ask_once(&in_session("s", "g.tx().commit()")).await;
    assert_eq!(code(&answer), (596, Some(&text("FICUS-2007"))));
    assert_eq!(attribute(&answer, "retryable"), Some(&Value::Bool(true)));
    assert_eq!(graph.vertex_count(), 2);
    // A session that only read ends without a conflict.
    client.ask_once(&in_session("s", "g.V().count()")).await;
    other.ask_once(&eval("g.addV('p')")).await;
    assert_eq!(client.ask_once(&in_session("s", "g.tx().commit()")).await.status, 200);
    assert_eq!(server.metric("ficus_transaction_retries_total").await, 0.0);
    assert_eq!(server.metric("ficus_transaction_conflicts_total").await, 1.0);
}

/// A client that goes on behind an error, or does not look, commits what succeeded and no half of what did not.
#[tokio::test]
async fn what_a_failed_request_of_a_session_has_written_is_undone() {
    let mut store = StoreOptions::default();
    store.transaction_changes_limit = 100;
    let (server, graph) = serve(store, |_| ()).await;
    let mut client = server.connect().await;
    let fails = [
        ("g.addV('half').property('key', 7).fail()", 595),
        ("g.addV('half')\ng.V().hasLabel('half').addV('half').fail()", 595),
        ("g.inject(1).repeat(__.addV('half')).emit().times(200).count()", 500),
        ("g.addV('half').repeat(__.identity()).until(__.is(2)).count()", 598),
    ];
    assert_eq!(client.ask_once(&in_session("s", "g.addV('whole')")).await.status, 200);
    for (gremlin, status) in fails {
        let mut request = in_session("s", gremlin);
        request.args.insert("evaluationTimeout".into(), Value::Long(if status == 598 { 50 } else { 30_000 }));
        let answer = client.ask_once(&request).await;
        assert_eq!(answer.status, status, "{gremlin}: {}", answer.message);
        let left = client.ask_once(&in_session("s", "g.V().hasLabel('half').count()")).await;
        assert_eq!(values(&left), [Value::Long(0)], "{gremlin}");
    }
    assert_eq!(client.ask_once(&in_session("s", "g.addV('whole')")).await.status, 200);
    assert_eq!(client.ask_once(&in_session("s", "g.tx().commit()")).await.status, 200);
    let left = client.ask_once(&eval("g.V().groupCount().by(label).select('whole', 'half').fold()")).await;
    assert_eq!(graph.vertex_count(), 2, "{left:?}");
    // A commit in the middle of a request is a commit.
    let answer = client.ask_once(&in_session("s", "g.addV('whole')\ng.tx().commit()\ng.addV('half').fail()")).await;
    assert_eq!(answer.status, 595);
    assert_eq!(client.ask_once(&in_session("s", "g.tx().commit()")).await.status, 200);
    assert_eq!(graph.vertex_count(), 3);
}

#[tokio::test]
async fn a_session_may_write_behind_a_request_that_commits_and_then_reads() {
    let (server, graph) = serve(StoreOptions::default(), |_| ()).await;
    let mut client = server.connect().await;
    for gremlin in ["g.addV('p')", "g.tx().commit()\ng.V().count()", "g.addV('p')", "g.tx().commit()"] {
        let answer = client.ask_once(&in_session("s", gremlin)).await;
        assert_eq!(answer.status, 200, "{gremlin}: {}", answer.message);
    }
    assert_eq!(graph.vertex_count(), 2);
}

#[tokio::test]
async fn a_transaction_that_is_open_too_long_is_rolled_back() {
    let (server, graph) = serve(StoreOptions::default(), |config| config.timeouts.transaction_ms = 50).await;
    let mut client = server.connect().await;
    client.ask_once(&in_session("s", "g.addV('p')")).await;
    // Requests in between do not help.
    let refused = loop {
        let answer = client.ask_once(&in_session("s", "g.addV('p')")).await;
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(code(&refused), (500, Some(&text("FICUS-1304"))), "{}", refused.message);
    assert_eq!(client.ask_once(&in_session("s", "g.tx().commit()")).await.status, 500);
    assert_eq!(graph.vertex_count(), 0);
    server.metric_becomes("ficus_oldest_snapshot_age_seconds", 0.0).await;
    client.ask_once(&request("close", "session", &[("session", text("s"))])).await;
    assert_eq!(client.ask_once(&in_session("s", "g.V().count()")).await.status, 200);
}

#[tokio::test]
async fn a_transaction_that_is_too_large_says_so() {
    let mut options = StoreOptions::default();
    options.transaction_changes_limit = 10;
    let (server, graph) = serve(options, |_| ()).await;
    let mut client = server.connect().await;
    let answer = client.ask_once(&eval("g.inject(1,2,3,4,5,6,7,8,9,10,11).addV('p').iterate()")).await;
    assert_eq!(code(&answer), (500, Some(&text("FICUS-2012"))), "{}", answer.message);
    assert_eq!(graph.vertex_count(), 0);
}

#[tokio::test]
async fn the_past_can_be_read_within_the_retention() {
    let mut options = StoreOptions::default();
    options.retention_ms = 3_600_000;
    let (server, graph) = serve(options, |_| ()).await;
    let mut client = server.connect().await;
    let mut commits = Vec::new();
    for _ in 0..3 {
        client.ask_once(&eval("g.addV('p')")).await;
        commits.push(graph.snapshot().commit_ts().0);
    }
    for (count, ts) in (1..).zip(&commits) {
        let answer = client.ask_once(&eval(&format!("g.with('ficus.asOf',{ts}L).V().count()"))).await;
        assert_eq!(values(&answer), [Value::Long(count)], "{}", answer.message);
    }
    let refused = [
        ("g.with('ficus.asOf',1000000000000L).V()", "FICUS-2011"),
        ("g.with('ficus.asOf',datetime('2020-01-01T00:00:00Z')).V()", "FICUS-2011"),
        ("g.with('ficus.asOf',datetime('2920-01-01T00:00:00Z')).V()", "FICUS-2011"),
        ("g.with('ficus.asOf','yesterday').V()", "FICUS-2015"),
        ("g.with('ficus.asof',1L).V()", "FICUS-2015"),
        ("g.with('ficus.scope.w.policy','dfs').V()", "FICUS-2015"),
        ("g.with('ficus.asOf',1L).addV()", "FICUS-2003"),
        ("g.with('ficus.asOf',1L).V();g.V()", "FICUS-2003"),
    ];
    for (gremlin, expected) in refused {
        let answer = client.ask_once(&eval(gremlin)).await;
        assert_eq!(code(&answer).1, Some(&text(expected)), "{gremlin}: {}", answer.message);
    }
    let answer = client.ask_once(&in_session("s", "g.with('ficus.asOf',1L).V()")).await;
    assert_eq!(code(&answer).1, Some(&text("FICUS-2003")), "{}", answer.message);
}
