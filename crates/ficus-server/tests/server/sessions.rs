//! Sessions and their transactions.

use ficus_model::Value;
use ficus_wire::{Data, Request};

use crate::client::*;

fn in_session(session: &str, gremlin: &str, source: &str, args: &[(&str, Value)]) -> Request {
    let mut all =
        vec![("gremlin", text(gremlin)), ("session", text(session)), ("aliases", map(&[("g", text(source))]))];
    all.extend_from_slice(args);
    request("eval", "session", &all)
}

fn bytecode_in_session(session: &str, gremlin: Value, source: &str) -> Request {
    let args = [("gremlin", gremlin), ("session", text(session)), ("aliases", map(&[("g", text(source))]))];
    request("bytecode", "session", &args)
}

#[tokio::test]
async fn a_session_is_a_transaction_that_begins_by_itself() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        let answer = client.ask_once(&in_session("s", "echo", "g", &[])).await;
        assert_eq!(entry(&answer, "transaction"), Value::Long(1));
    }
    let answer = client.ask_once(&bytecode_in_session("s", steps("echo", 0), "g")).await;
    assert_eq!(entry(&answer, "transaction"), Value::Long(1));
    let answer = client.ask_once(&bytecode_in_session("s", tx("commit"), "g")).await;
    assert_eq!((answer.status, answer.data), (204, Data::None));
    let answer = client.ask_once(&in_session("s", "echo", "g", &[])).await;
    assert_eq!(entry(&answer, "transaction"), Value::Long(2));
    let answer = client.ask_once(&in_session("s", " g.tx( ).rollback();", "g", &[])).await;
    assert_eq!((answer.status, answer.data), (200, Data::Values(vec![Value::Null])));
    assert_eq!(server.mock.log(), ["open 1 g", "commit 1", "open 2 g", "roll back 2"]);
}

#[tokio::test]
async fn ending_what_never_began_is_fine() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    assert_eq!(client.ask_once(&bytecode_in_session("s", tx("commit"), "g")).await.status, 204);
    let answer = client.ask_once(&eval("g.tx().commit()")).await;
    assert_eq!((answer.status, answer.data), (200, Data::Values(vec![Value::Null])));
    assert!(server.mock.log().is_empty());
}

#[tokio::test]
async fn sources_have_transactions_of_their_own() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let one = client.ask_once(&in_session("s", "echo", "g", &[])).await;
    let other = client.ask_once(&in_session("s", "echo", "gmodern", &[])).await;
    assert_eq!((entry(&one, "transaction"), entry(&other, "transaction")), (Value::Long(1), Value::Long(2)));
    client.ask_once(&bytecode_in_session("s", tx("commit"), "gmodern")).await;
    assert_eq!(server.mock.log(), ["open 1 g", "open 2 gmodern", "commit 2"]);
}

#[tokio::test]
async fn a_commit_that_conflicts_and_a_graph_without_transactions_are_errors() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.ask_once(&in_session("s", "echo", "gconflict", &[])).await;
    let answer = client.ask_once(&bytecode_in_session("s", tx("commit"), "gconflict")).await;
    assert_eq!((answer.status, attribute(&answer, "retryable")), (596, Some(&Value::Bool(true))));
    let answer = client.ask_once(&in_session("s", "echo", "gfixed", &[])).await;
    assert_eq!((answer.status, answer.message.as_str()), (500, "Graph does not support transactions"));
}

#[tokio::test]
async fn managed_requests_commit_or_roll_back_by_themselves() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let managed = [("manageTransaction", Value::Bool(true))];
    assert_eq!(client.ask(&in_session("s", "rows 65", "g", &managed)).await.len(), 2);
    assert_eq!(client.ask_once(&in_session("s", "fail 500", "g", &managed)).await.status, 500);
    assert_eq!(client.ask_once(&in_session("s", "echo", "gconflict", &managed)).await.status, 596);
    let plain = client.ask_once(&in_session("s", "echo", "g", &[])).await;
    assert_eq!(entry(&plain, "transaction"), Value::Long(4));
    let expected =
        ["open 1 g", "commit 1", "open 2 g", "roll back 2", "open 1003 gconflict", "commit 1003", "open 4 g"];
    assert_eq!(server.mock.log(), expected);
}

#[tokio::test]
async fn a_script_may_end_the_transaction_itself() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.ask_once(&in_session("s", "end", "g", &[])).await;
    client.ask_once(&in_session("s", "end", "g", &[("manageTransaction", Value::Bool(true))])).await;
    assert_eq!(server.mock.log(), ["open 1 g", "ended itself", "open 2 g", "ended itself"]);
}

#[tokio::test]
async fn closing_rolls_back_and_unknown_sessions_close_too() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.ask_once(&in_session("s", "echo", "g", &[])).await;
    for session in ["s", "s", "unknown"] {
        let answer = client.ask_once(&request("close", "session", &[("session", text(session))])).await;
        assert_eq!((answer.status, answer.data), (204, Data::None));
    }
    assert_eq!(server.mock.log(), ["open 1 g", "roll back 1"]);
}

#[tokio::test]
async fn a_lost_connection_cancels_and_then_rolls_back() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(&in_session("s", "hang", "g", &[])).await;
    server.mock.logged("hangs").await;
    drop(client);
    server.mock.logged("roll back 1").await;
    assert_eq!(server.mock.log(), ["open 1 g", "hangs", "cancelled", "roll back 1"]);
    server.metric_becomes("ficus_sessions", 0.0).await;
}

#[tokio::test]
async fn a_session_belongs_to_its_connection() {
    let server = Server::start().await;
    let (mut owner, mut other) = (server.connect().await, server.connect().await);
    owner.ask_once(&in_session("s", "echo", "g", &[])).await;
    let answer = other.ask_once(&in_session("s", "echo", "g", &[])).await;
    assert_eq!(answer.status, 500);
    assert!(answer.message.contains("not bound to the connecting client"), "{answer:?}");
    assert_eq!(other.ask_once(&request("close", "session", &[("session", text("s"))])).await.status, 204);
    assert_eq!(owner.ask_once(&bytecode_in_session("s", tx("commit"), "g")).await.status, 204);
    assert_eq!(server.mock.log(), ["open 1 g", "commit 1"]);
    owner.ask_once(&request("close", "session", &[("session", text("s"))])).await;
    assert_eq!(other.ask_once(&in_session("s", "rows 1", "g", &[])).await.status, 200);
}

#[tokio::test]
async fn requests_of_a_session_run_one_after_another() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let requests: Vec<Request> =
        ["wait 200", "wait 1", "wait 100"].iter().map(|query| in_session("s", query, "g", &[])).collect();
    for request in &requests {
        client.send(request).await;
    }
    for request in &requests {
        assert_eq!(client.collect(&request.id).await.len(), 1);
    }
    assert_eq!(server.mock.log()[1..], ["waited 200", "waited 1", "waited 100"]);
}

#[tokio::test]
async fn an_idle_session_expires_and_stays_so_until_it_is_closed() {
    let server = Server::with(|config| config.timeouts.session_idle_ms = 50).await;
    let mut client = server.connect().await;
    client.ask_once(&in_session("s", "echo", "g", &[])).await;
    server.mock.logged("roll back 1").await;
    for _ in 0..2 {
        let answer = client.ask_once(&bytecode_in_session("s", tx("commit"), "g")).await;
        assert_eq!((answer.status, attribute(&answer, "code")), (500, Some(&text("FICUS-1302"))));
    }
    client.ask_once(&request("close", "session", &[("session", text("s"))])).await;
    assert_eq!(client.ask_once(&in_session("s", "rows 1", "g", &[])).await.status, 200);
}

#[tokio::test]
async fn a_session_at_work_does_not_expire() {
    let server = Server::with(|config| config.timeouts.session_idle_ms = 30).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask_once(&in_session("s", "wait 300", "g", &[])).await.status, 200);
    server.mock.logged("roll back 1").await;
    assert_eq!(server.mock.log(), ["open 1 g", "waited 300", "roll back 1"]);
}

#[tokio::test]
async fn sessions_are_limited_in_number() {
    let server = Server::with(|config| config.limits.sessions = 1).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask_once(&in_session("a", "rows 1", "g", &[])).await.status, 200);
    assert_eq!(client.ask_once(&in_session("b", "rows 1", "g", &[])).await.status, 429);
    client.ask_once(&request("close", "session", &[("session", text("a"))])).await;
    assert_eq!(client.ask_once(&in_session("b", "rows 1", "g", &[])).await.status, 200);
}
