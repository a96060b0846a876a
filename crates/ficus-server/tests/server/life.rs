//! The life of a server: draining, stopping, TLS.

use std::sync::Arc;
use std::time::Duration;

use ficus_model::Value;
use ficus_server::TlsConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::client::*;

async fn ended(server: &mut Server) {
    tokio::time::timeout(PATIENCE, &mut server.task).await.expect("it ends").expect("without a panic");
}

#[tokio::test]
async fn running_requests_finish_and_new_ones_are_sent_away() {
    let mut server = Server::start().await;
    let mut idle = server.connect().await;
    let mut busy = server.connect().await;
    let last = eval("wait 500");
    busy.send(&last).await;
    // Answered in order, so when this one is refused the first is under way.
    let mut http = TcpStream::connect(server.address).await.unwrap();
    http.write_all(b"GET /gremlin?gremlin=wait+400 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.metric_becomes("ficus_requests_running", 2.0).await;
    server.shutdown.take().unwrap().send(()).unwrap();
    assert_eq!(idle.next_close().await, (1001, "the server is shutting down".into()));
    let late = eval("rows 1");
    busy.send(&late).await;
    assert_eq!(busy.collect(&last.id).await.remove(0).status, 200);
    let answer = busy.collect(&late.id).await.remove(0);
    assert_eq!((answer.status, attribute(&answer, "retryable")), (596, Some(&Value::Bool(true))));
    assert_eq!(busy.next_close().await.0, 1001);
    assert_eq!(read_http(&mut http).await.status, 200);
    ended(&mut server).await;
    assert!(TcpStream::connect(server.address).await.is_err(), "nothing listens any more");
}

#[tokio::test]
async fn open_transactions_may_be_brought_to_their_end() {
    let mut server = Server::start().await;
    let mut client = server.connect().await;
    let in_session = |gremlin: Value| {
        let args = [("gremlin", gremlin), ("session", text("s")), ("aliases", map(&[("g", text("g"))]))];
        request("bytecode", "session", &args)
    };
    client.ask_once(&in_session(steps("rows", 1))).await;
    let mut idle = server.connect().await;
    server.shutdown.take().unwrap().send(()).unwrap();
    assert_eq!(idle.next_close().await.0, 1001);
    assert_eq!(client.ask_once(&in_session(steps("rows", 1))).await.status, 200);
    assert_eq!(client.ask_once(&in_session(tx("commit"))).await.status, 204);
    assert_eq!(client.next_close().await.0, 1001);
    ended(&mut server).await;
    assert_eq!(server.mock.log(), ["open 1 g", "commit 1"]);
}

/// Connections that the system has taken for the server, which has not looked at them yet: on this thread it cannot before the test waits.
#[tokio::test]
async fn who_waits_to_be_accepted_when_the_server_stops_is_answered() {
    use std::io::Write;
    let mut server = Server::start().await;
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    kept.write_all(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(read_http(&mut kept).await.status, 200);
    // A request on a connection that has nothing to do is on its way as well.
    assert_eq!(kept.try_write(b"GET /gremlin?gremlin=rows+1 HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap(), 57);
    let mut waiting = Vec::new();
    for path in ["/gremlin?gremlin=rows+1", "/health/live"] {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        stream.set_nonblocking(true).unwrap();
        waiting.push(TcpStream::from_std(stream).unwrap());
    }
    server.shutdown.take().unwrap().send(()).unwrap();
    let refused = read_http(&mut waiting[0]).await;
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("FICUS-1402"), "{}", refused.text());
    assert_eq!(read_http(&mut waiting[1]).await.status, 200);
    assert_eq!(read_http(&mut kept).await.status, 503);
    ended(&mut server).await;
}

#[tokio::test]
async fn what_does_not_end_in_time_is_ended() {
    let mut server = Server::with(|config| config.timeouts.drain_ms = 50).await;
    let mut client = server.connect().await;
    let requests = [eval("hang"), eval("hang")];
    for request in &requests {
        client.send(request).await;
    }
    let mut http = TcpStream::connect(server.address).await.unwrap();
    http.write_all(b"GET /gremlin?gremlin=hang HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.metric_becomes("ficus_requests_running", 3.0).await;
    server.shutdown.take().unwrap().send(()).unwrap();
    for request in &requests {
        assert_eq!(client.collect(&request.id).await.remove(0).status, 596);
    }
    assert_eq!(client.next_close().await.0, 1001);
    assert_eq!(read_http(&mut http).await.status, 503);
    ended(&mut server).await;
    assert_eq!(server.mock.count("cancelled"), 3);
}

#[tokio::test]
async fn half_a_first_request_does_not_hold_up_the_stop() {
    let mut server = Server::with(|config| {
        (config.timeouts.drain_ms, config.timeouts.header_ms) = (600_000, 600_000);
    })
    .await;
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(b"GET /gremlin HTTP/1.1\r\nhost: loc").await.unwrap();
    // Somebody else who is at work still gets the answer.
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    busy.write_all(b"GET /gremlin?gremlin=wait+2000 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.metric_becomes("ficus_requests_running", 1.0).await;
    server.shutdown.take().unwrap().send(()).unwrap();
    assert_eq!(half.read(&mut [0; 16]).await.unwrap(), 0, "the connection is closed");
    assert_eq!(read_http(&mut busy).await.status, 200);
    ended(&mut server).await;
}

#[tokio::test]
async fn an_answer_that_streams_is_finished_too() {
    let mut server = Server::start().await;
    let mut client = server.connect().await;
    let request = eval("rows 100000");
    client.send(&request).await;
    assert_eq!(client.next().await.status, 206);
    server.shutdown.take().unwrap().send(()).unwrap();
    let parts = client.collect(&request.id).await;
    assert_eq!(parts.iter().map(|part| values(part).len()).sum::<usize>(), 100_000 - 64);
    assert_eq!(client.next_close().await.0, 1001);
    ended(&mut server).await;
}

#[tokio::test]
async fn tls_carries_both_http_and_web_sockets() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let folder = std::env::temp_dir().join(format!("ficus-tls-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&folder).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::with(|config| config.tls = Some(TlsConfig { certificate, key })).await;
    std::fs::remove_dir_all(&folder).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(client));
    let connect = async || {
        let stream = TcpStream::connect(server.address).await.unwrap();
        connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    };
    let mut http = connect().await;
    http.write_all(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    http.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let (mut socket, _) = tokio_tungstenite::client_async("ws://localhost/gremlin", connect().await).await.unwrap();
    let mut bytes = Vec::new();
    ficus_wire::encode_frame(ficus_wire::Format::GraphBinary1, &eval("rows 2"), &mut bytes).unwrap();
    use futures_util::{SinkExt, StreamExt};
    socket.send(tokio_tungstenite::tungstenite::Message::binary(bytes)).await.unwrap();
    let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    let response =
        ficus_wire::decode_response(ficus_wire::Format::GraphBinary1, &message.into_data(), &Default::default());
    assert_eq!(values(&response.unwrap()).len(), 2);

    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET /health/live HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(10), plain.read_to_end(&mut rest)).await;
    assert!(closed.is_ok() && !rest.starts_with(b"HTTP"), "plain HTTP gets nowhere: {rest:?}");
}
