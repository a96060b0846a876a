//! Who may ask: SASL over WebSockets, basic authentication over HTTP.

use argon2::password_hash::{PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use data_encoding::BASE64;
use ficus_model::Value;
use ficus_server::{ServerConfig, UserConfig};
use ficus_wire::{Format, Request, RequestId};

use crate::client::*;

/// Cheap, unlike what a server should be given.
pub fn hash(password: &str) -> String {
    hash_that_costs(password, 1)
}

fn hash_that_costs(password: &str, times: u32) -> String {
    let params = Params::new(8, times, 1, None).unwrap();
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let salt = SaltString::from_b64("c2FsdHNhbHQ").unwrap();
    argon.hash_password(password.as_bytes(), &salt).unwrap().to_string()
}

fn guarded(config: &mut ServerConfig) {
    config.users = vec![UserConfig { name: "anna".into(), password_hash: hash("pipe") }];
}

fn sasl(user: &str, password: &str) -> Value {
    text(&BASE64.encode(format!("\0{user}\0{password}").as_bytes()))
}

fn response_to_challenge(id: &RequestId, sasl: Value) -> Request {
    let mut request = request("authentication", "traversal", &[("sasl", sasl), ("saslMechanism", text("PLAIN"))]);
    request.id = id.clone();
    request
}

#[tokio::test]
async fn a_challenge_lets_the_request_through_when_answered() {
    let server = Server::with(guarded).await;
    for format in [Format::GraphBinary1, Format::GraphSon3] {
        let mut client = server.connect().await.speaking(format);
        let first = eval("echo");
        assert_eq!(client.ask_once(&first).await.status, 407);
        client.send(&response_to_challenge(&first.id, sasl("anna", "pipe"))).await;
        let answer = client.collect(&first.id).await.remove(0);
        assert_eq!(entry(&answer, "user"), text("anna"));
        assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200);
    }
}

#[tokio::test]
async fn requests_sent_meanwhile_wait_and_keep_their_order() {
    let server = Server::with(guarded).await;
    let mut client = server.connect().await;
    let requests = [eval("rows 1"), eval("rows 2"), eval("rows 3")];
    for request in &requests {
        client.send(request).await;
    }
    let challenge = client.next().await;
    assert_eq!((challenge.status, challenge.request_id), (407, Some(requests[0].id.clone())));
    client.send(&response_to_challenge(&requests[0].id, sasl("anna", "pipe"))).await;
    for (index, request) in requests.iter().enumerate() {
        let answer = client.collect(&request.id).await.remove(0);
        assert_eq!(values(&answer).len(), index + 1);
    }
}

/// The client has a time to answer in; how long the server takes to check the answer, and others before it, is not the client's fault.
#[tokio::test]
async fn the_time_to_answer_ends_with_the_answer() {
    let server = Server::with(|config| {
        config.users = vec![UserConfig { name: "anna".into(), password_hash: hash_that_costs("pipe", 100_000) }];
        config.timeouts.authentication_ms = 250;
    })
    .await;
    let mut client = server.connect().await;
    let first = eval("rows 1");
    // Both at once, so that the answer is there when the challenge is.
    client.send(&first).await;
    client.send(&response_to_challenge(&first.id, sasl("anna", "pipe"))).await;
    assert_eq!(client.next().await.status, 407);
    assert_eq!(client.collect(&first.id).await.remove(0).status, 200);
}

#[tokio::test]
async fn wrong_answers_are_401_and_the_third_ends_the_connection() {
    let server = Server::with(guarded).await;
    let mut client = server.connect().await;
    for wrong in [sasl("anna", "flute"), sasl("bert", "pipe"), text("?")] {
        let request = eval("rows 1");
        assert_eq!(client.ask_once(&request).await.status, 407);
        client.send(&response_to_challenge(&request.id, wrong)).await;
        let answer = client.collect(&request.id).await.remove(0);
        assert_eq!((answer.status, attribute(&answer, "code")), (401, Some(&text("FICUS-1102"))));
    }
    assert_eq!(client.next_close().await.0, 1008);
    assert_eq!(server.mock.log(), Vec::<String>::new());
}

#[tokio::test]
async fn a_challenge_nobody_answers_ends_in_401() {
    let server = Server::with(|config| {
        guarded(config);
        config.timeouts.authentication_ms = 50;
    })
    .await;
    let mut client = server.connect().await;
    let request = eval("rows 1");
    assert_eq!(client.ask_once(&request).await.status, 407);
    assert_eq!(client.collect(&request.id).await.remove(0).status, 401);
}

#[tokio::test]
async fn credentials_may_come_unasked_or_with_the_handshake() {
    let server = Server::with(guarded).await;
    let mut client = server.connect().await;
    let unasked = response_to_challenge(&RequestId::from_text("early"), sasl("anna", "pipe"));
    client = client.speaking(Format::GraphSon3);
    assert_eq!(client.ask_once(&unasked).await.status, 204);
    assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200);

    let header = |pair: &str| format!("Basic {}", BASE64.encode(pair.as_bytes()));
    let mut client = server.connect_with(&[("authorization", &header("anna:pipe"))]).await.expect("let in");
    assert_eq!(entry(&client.ask_once(&eval("echo")).await, "user"), text("anna"));
    assert_eq!(server.connect_with(&[("authorization", &header("anna:flute"))]).await.err(), Some(401));
}

#[tokio::test]
async fn nothing_is_told_before_authentication() {
    let server = Server::with(guarded).await;
    let mut client = server.connect().await;
    let answer = client.ask_once(&eval_with("rows 1", &[("aliases", map(&[("g", text("gx"))]))])).await;
    assert_eq!((answer.status, answer.message.as_str()), (407, ""));
}

#[tokio::test]
async fn http_takes_basic_authentication() {
    let server = Server::with(guarded).await;
    let post = async |pair: Option<&str>| {
        let header = pair.map(|pair| format!("authorization: Basic {}\r\n", BASE64.encode(pair.as_bytes())));
        server.post(&header.unwrap_or_default(), "{\"gremlin\":\"echo\"}").await
    };
    let answer = post(None).await;
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").is_some_and(|scheme| scheme.starts_with("Basic")));
    assert_eq!(post(Some("anna:flute")).await.status, 401);
    assert_eq!(post(Some("anna")).await.status, 401);
    for _ in 0..2 {
        let answer = post(Some("anna:pipe")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(entry(&answer.response(), "user"), text("anna"));
    }
    assert_eq!(server.get("/metrics").await.status, 401);
    assert_eq!(server.get("/health/live").await.status, 200);
}

#[tokio::test]
async fn users_may_be_in_a_file() {
    let path = std::env::temp_dir().join(format!("ficus-users-{}", uuid::Uuid::new_v4()));
    std::fs::write(&path, format!("# who may\n\nanna:{}\n", hash("pipe"))).unwrap();
    let server = Server::with(|config| config.users_file = Some(path.clone())).await;
    std::fs::remove_file(&path).unwrap();
    let header = format!("Basic {}", BASE64.encode(b"anna:pipe"));
    assert!(server.connect_with(&[("authorization", &header)]).await.is_ok());
    assert_eq!(server.connect().await.ask_once(&eval("rows 1")).await.status, 407);
}

/// Connections that say nothing are opened by drivers too, for later; but they do not keep out who comes.
#[tokio::test]
async fn where_no_place_is_left_the_oldest_stranger_goes() {
    let server = Server::with(|config| {
        guarded(config);
        config.limits.connections = 2;
    })
    .await;
    let mut stranger = server.connect().await;
    let mut known = [server.connect().await, server.connect().await];
    assert_eq!(stranger.next_close().await.0, 1013);
    for client in &mut known {
        let first = eval("rows 1");
        assert_eq!(client.ask_once(&first).await.status, 407);
        client.send(&response_to_challenge(&first.id, sasl("anna", "pipe"))).await;
        assert_eq!(client.collect(&first.id).await.remove(0).status, 200);
    }
    drop(stranger);
    // Whom we know stays.
    assert_eq!(server.connect_with(&[]).await.err(), Some(503));
    for client in &mut known {
        assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200);
    }
}
