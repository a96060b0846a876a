//! Gremlin over HTTP, and the paths beside it.

use ficus_model::{Shared, Value};
use ficus_wire::{Data, Format, RequestId};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::*;

#[tokio::test]
async fn post_and_get_answer_with_all_rows_at_once() {
    let server = Server::start().await;
    let answer = server.post("content-type: application/json\r\n", "{\"gremlin\":\"rows 300\"}").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let response = answer.response();
    assert_eq!((response.status, values(&response).len()), (200, 300));
    for path in ["/gremlin?gremlin=rows+300", "/?gremlin=rows%20300"] {
        let response = server.get(path).await.response();
        assert_eq!((response.status, values(&response).len()), (200, 300), "{path}");
    }
    let empty = server.post("", "{\"gremlin\":\"rows 0\"}").await.response();
    assert_eq!((empty.status, values(&empty).len()), (200, 0));
}

#[tokio::test]
async fn fields_reach_the_engine() {
    let server = Server::start().await;
    let body = r#"{"gremlin":"echo","bindings":{"x":1,"y":[1.5]},"aliases":{"g":"gmodern"},"language":"gremlin-lang",
        "materializeProperties":"tokens","evaluationTimeout":1000,"requestId":"9b2a5bd0-4b4a-4b8a-8b0a-5b2a5bd04b4a"}"#;
    let response = server.post("", body).await.response();
    assert_eq!(response.request_id, Some(RequestId::from_text("9b2a5bd0-4b4a-4b8a-8b0a-5b2a5bd04b4a")));
    assert_eq!(entry(&response, "source"), text("gmodern"));
    assert_eq!(entry(&response, "timeout"), Value::Long(1000));
    assert_eq!(entry(&response, "materialize"), text("Tokens"));
    let list = Value::List(Shared::new(vec![Value::Double(1.5)]));
    assert_eq!(entry(&response, "bindings"), map(&[("x", Value::Long(1)), ("y", list)]));
    let response = server.get("/gremlin?gremlin=echo&bindings.x=1&aliases.g=gmodern&language=gremlin-lang").await;
    let response = response.response();
    assert_eq!(entry(&response, "source"), text("gmodern"));
    assert_eq!(entry(&response, "bindings"), map(&[("x", text("1"))]));
}

#[tokio::test]
async fn every_format_can_be_asked_for() {
    let server = Server::start().await;
    for &format in Format::ALL {
        let answer = server.post(&format!("accept: {}\r\n", format.mime()), "{\"gremlin\":\"rows 2\"}").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(format.mime())));
        assert_eq!(values(&answer.response()).len(), 2, "{format:?}");
    }
    let answer = server.post("accept: text/plain\r\n", "{\"gremlin\":\"rows 2\"}").await;
    assert_eq!(answer.text(), "==>0\n==>1");
    let answer = server.post("accept: text/html\r\n", "{\"gremlin\":\"rows 2\"}").await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("no serializer for requested Accept header: text/html"));
}

#[tokio::test]
async fn messages_of_the_wire_can_be_posted() {
    let server = Server::start().await;
    for format in [Format::GraphSon3, Format::GraphBinary1] {
        for prefixed in [true, false] {
            let mut body = Vec::new();
            let request = bytecode(steps("bulk", 3));
            match prefixed {
                true => ficus_wire::encode_frame(format, &request, &mut body).unwrap(),
                false => ficus_wire::encode_request(format, &request, &mut body).unwrap(),
            }
            let mime = format.mime();
            let head = format!(
                "POST /gremlin HTTP/1.1\r\nhost: x\r\ncontent-type: {mime}\r\naccept: {mime}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let answer = server.http_bytes(&[head.as_bytes(), &body].concat()).await;
            assert_eq!(answer.status, 200, "{format:?} {prefixed} {}", String::from_utf8_lossy(&answer.body));
            let response = answer.response();
            assert_eq!(response.request_id, Some(request.id));
            assert_eq!(response.data, Data::Traversers(vec![(Value::Int(7), 3)]));
        }
    }
}

#[tokio::test]
async fn refusals_have_their_status() {
    let server = Server::start().await;
    let check: &[(&str, &str, u16, &str)] = &[
        ("", "{\"gremlin\":\"fail 500\"}", 500, "failed with 500"),
        ("", "{\"gremlin\":\"fail 595\"}", 500, "fail() Step Triggered"),
        ("", "{\"gremlin\":\"fail 596\"}", 503, "\"retryable\":true"),
        ("", "{\"gremlin\":\"fail 597\"}", 500, "\"status\":597"),
        ("", "{\"gremlin\":\"fail 598\"}", 500, "\"status\":598"),
        ("", "{\"gremlin\":\"panic\"}", 500, "FICUS-1901"),
        ("", "{\"gremlin\":\"vanish\"}", 500, "FICUS-1901"),
        ("", "{\"gremlin\":\"undetached\"}", 500, "FICUS-1501"),
        ("", "{}", 400, "no gremlin script supplied"),
        ("", "{", 400, "body could not be parsed"),
        ("", "", 400, "body could not be parsed"),
        ("", "{\"gremlin\":\"rows 1\",\"bindings\":1}", 400, "FICUS-1008"),
        ("", "{\"gremlin\":\"rows 1\",\"aliases\":{\"g\":\"gx\"}}", 400, "FICUS-1009"),
        ("", "{\"gremlin\":\"rows 1\",\"session\":\"s\"}", 400, "FICUS-1606"),
        ("content-type: application/xml\r\n", "<a/>", 415, "FICUS-1002"),
        ("content-type: application/vnd.graphbinary-v1.0\r\n", "nonsense", 400, "FICUS-1001"),
        ("origin: http://evil.example\r\n", "{\"gremlin\":\"rows 1\"}", 403, "FICUS-1104"),
    ];
    for (headers, body, status, part) in check {
        let answer = server.post(headers, body).await;
        assert_eq!(answer.status, *status, "{headers}{body}: {}", answer.text());
        assert!(answer.text().contains(part), "{headers}{body}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let get = |path| server.get(path);
    assert_eq!(get("/nowhere").await.status, 404);
    assert_eq!(get("/gremlin").await.status, 400);
    let answer = server.http("DELETE /gremlin HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, POST, OPTIONS")));
    assert_eq!(server.http("POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await.status, 405);
    assert_eq!(server.http("nonsense\r\n\r\n").await.status, 400);
}

#[tokio::test]
async fn connections_are_kept_alive() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for rows in 1..4 {
        let request = format!("GET /gremlin?gremlin=rows+{rows} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(values(&read_http(&mut stream).await.response()).len(), rows);
    }
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_query() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /gremlin?gremlin=hang HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.mock.logged("hangs").await;
    drop(stream);
    server.mock.logged("cancelled").await;
}

#[tokio::test]
async fn health_and_metrics() {
    let server = Server::start().await;
    for path in ["/health/live", "/health/ready", "/health/writable"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    server.mock.unwell.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(server.get("/health/writable").await.status, 503);
    assert_eq!(server.get("/health/ready").await.status, 200);
    let mut client = server.connect().await;
    client.ask_once(&eval("rows 2")).await;
    client.ask_once(&eval("fail 597")).await;
    client.ask_once(&bytecode(steps("rows", 1))).await;
    server.post("", "{}").await;
    for (name, value) in [
        ("ficus_connections{channel=\"websocket\"}", 1.0),
        ("ficus_requests_total{op=\"eval\",status=\"200\"}", 1.0),
        ("ficus_requests_total{op=\"eval\",status=\"597\"}", 1.0),
        ("ficus_requests_total{op=\"bytecode\",status=\"200\"}", 1.0),
        ("ficus_requests_total{op=\"unknown\",status=\"499\"}", 1.0),
        ("ficus_request_seconds_count{op=\"eval\"}", 2.0),
        ("ficus_rows_sent_total", 3.0),
        ("ficus_requests_running", 0.0),
        ("ficus_requests_waiting", 0.0),
        ("mock_metric", 1.0),
    ] {
        assert_eq!(server.metric(name).await, value, "{name}");
    }
    assert!(server.metric("ficus_received_bytes_total").await > 100.0);
    drop(client);
    server.metric_becomes("ficus_connections{channel=\"websocket\"}", 0.0).await;
}

#[tokio::test]
async fn pages_of_allowed_origins_may_ask() {
    let server = Server::with(|config| config.allowed_origins = vec!["https://a.example".into()]).await;
    let answer = server.post("origin: https://a.example\r\n", "{\"gremlin\":\"rows 1\"}").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("https://a.example")));
    let preflight = "OPTIONS /gremlin HTTP/1.1\r\nhost: x\r\norigin: https://a.example\r\n\r\n";
    let answer = server.http(preflight).await;
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (204, Some("GET, POST")));
    assert_eq!(server.connect_with(&[("origin", "https://b.example")]).await.err(), Some(403));
    assert!(server.connect_with(&[("origin", "https://a.example")]).await.is_ok());
    let own = format!("http://{}", server.address);
    assert!(server.connect_with(&[("origin", &own)]).await.is_ok(), "as Java's driver sends");
}

#[tokio::test]
async fn handshakes_that_are_none_are_refused() {
    let server = Server::start().await;
    let upgrade = "host: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n";
    let check = [
        ("GET /gremlin", "sec-websocket-version: 13\r\n", 400),
        ("GET /gremlin", "sec-websocket-version: 8\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 400),
        ("POST /gremlin", "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 400),
        ("GET /", "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 404),
    ];
    for (start, headers, status) in check {
        let answer = server.http(&format!("{start} HTTP/1.1\r\n{upgrade}{headers}\r\n")).await;
        assert_eq!(answer.status, status, "{start} {headers}");
    }
}
