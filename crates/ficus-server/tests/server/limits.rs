//! Bounds on size, number and time.

use std::time::Duration;

use ficus_model::{Shared, Value};
use ficus_server::{ServeError, ServerConfig, bind};
use ficus_wire::{Data, Format};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::client::*;
use crate::mock::Mock;

#[tokio::test]
async fn a_message_that_is_too_large_is_answered_and_ends_the_connection() {
    let server = Server::start().await;
    let mut client = server.connect().await.speaking(Format::GraphSon3);
    let before = eval("wait 50");
    client.send(&before).await;
    // The server may stop reading before it is all sent.
    let _ = client.socket.send(Message::binary(vec![b' '; (10 << 20) + 1])).await;
    assert_eq!(client.collect(&before.id).await.remove(0).status, 200, "what was asked before is still answered");
    let answer = client.next().await;
    assert_eq!((answer.status, attribute(&answer, "code")), (499, Some(&text("FICUS-1003"))));
    assert_eq!(client.next_close().await, (1009, "message too large".into()));
}

#[tokio::test]
async fn a_message_of_the_limit_passes() {
    let server = Server::with(|config| config.limits.message_bytes = 100_000).await;
    let mut client = server.connect().await.speaking(Format::GraphSon3);
    let long = format!("rows 1{}", " ".repeat(90_000));
    let answer = client.ask_once(&eval(&long)).await;
    assert_eq!(answer.status, 204, "the mock cannot read the number, but it got the text");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413() {
    let server = Server::with(|config| config.limits.message_bytes = 1000).await;
    let body = format!("{{\"gremlin\":\"{}\"}}", " ".repeat(2000));
    let answer = server.post("", &body).await;
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    let chunked = format!(
        "POST /gremlin HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n{}\r\n0\r\n\r\n",
        " ".repeat(2000)
    );
    assert_eq!(server.http(&chunked).await.status, 413);
}

#[tokio::test]
async fn nesting_and_numbers_of_values_are_bounded() {
    let server = Server::with(|config| config.limits.values = 1000).await;
    for format in [Format::GraphSon3, Format::GraphBinary1] {
        let mut client = server.connect().await.speaking(format);
        let mut deep = Value::Int(1);
        for _ in 0..200 {
            deep = Value::List(Shared::new(vec![deep]));
        }
        let wide = Value::List(Shared::new(vec![Value::Int(1); 2000]));
        for value in [deep, wide] {
            let answer = client.ask_once(&eval_with("rows 1", &[("bindings", map(&[("x", value)]))])).await;
            assert_eq!((answer.status, attribute(&answer, "code")), (499, Some(&text("FICUS-1004"))), "{format:?}");
        }
    }
}

#[tokio::test]
async fn too_many_pipelined_requests_are_429_in_their_turn() {
    let server = Server::with(|config| {
        config.limits.pipelined_requests = 4;
        config.limits.running_per_connection = 2;
    })
    .await;
    let mut client = server.connect().await;
    let first = eval("wait 300");
    client.send(&first).await;
    let requests: Vec<_> = (0..5).map(|_| eval("rows 1")).collect();
    for request in &requests {
        client.send(request).await;
    }
    assert_eq!(client.collect(&first.id).await.remove(0).status, 200);
    let mut statuses = Vec::new();
    for request in &requests {
        statuses.push(client.collect(&request.id).await.remove(0).status);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
}

#[tokio::test]
async fn too_many_running_requests_are_429() {
    let server = Server::with(|config| config.limits.running = 1).await;
    let mut busy = server.connect().await;
    busy.send(&eval("hang")).await;
    server.mock.logged("hangs").await;
    let answer = server.connect().await.ask_once(&eval("rows 1")).await;
    assert_eq!((answer.status, attribute(&answer, "retryable")), (429, Some(&Value::Bool(true))));
    assert_eq!(server.post("", "{\"gremlin\":\"rows 1\"}").await.status, 429);
    drop(busy);
    server.mock.logged("cancelled").await;
    server.metric_becomes("ficus_requests_running", 0.0).await;
    assert_eq!(server.connect().await.ask_once(&eval("rows 1")).await.status, 200);
}

#[tokio::test]
async fn too_many_connections_are_refused() {
    let server = Server::with(|config| config.limits.connections = 1).await;
    let client = server.connect().await;
    let answer = server.get("/health/live").await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("FICUS-1203"), "{}", answer.text());
    drop(client);
    for _ in 0..1000 {
        if server.get("/health/live").await.status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the place was never free again");
}

#[tokio::test]
async fn large_results_over_http_are_refused() {
    let server = Server::with(|config| config.limits.http_rows = 1000).await;
    let answer = server.post("", "{\"gremlin\":\"rows 100000\"}").await;
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("FICUS-1502"));
    server.mock.logged("closed").await;
}

#[tokio::test]
async fn a_query_the_engine_does_not_end_is_given_up() {
    let server = Server::with(|config| {
        config.timeouts.evaluation_ms = 10;
        config.timeouts.evaluation_cap_ms = 10;
    })
    .await;
    let answer = server.connect().await.ask_once(&eval("hang")).await;
    assert_eq!((answer.status, attribute(&answer, "code")), (598, Some(&text("FICUS-1401"))));
    assert!(server.post("", "{\"gremlin\":\"hang\"}").await.text().contains("\"status\":598"));
    assert_eq!(server.mock.count("cancelled"), 2);
}

#[tokio::test]
async fn headers_and_bodies_may_not_trickle() {
    let server = Server::with(|config| {
        config.timeouts.header_ms = 50;
        config.timeouts.body_ms = 50;
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /gremlin HTTP/1.1\r\nhost:").await.unwrap();
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is closed").ok();
    let answer = server.http("POST /gremlin HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").await;
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    tokio::time::timeout(PATIENCE, silent.read_to_end(&mut rest)).await.expect("it is closed").ok();
}

#[tokio::test]
async fn messages_may_not_trickle() {
    let server = Server::with(|config| {
        config.timeouts.body_ms = 50;
        config.timeouts.ping_ms = 20;
    })
    .await;
    let mut client = server.connect().await;
    assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200);
    // Silence alone is no slow message, neither after the handshake nor after a request.
    let mut asked = server.connect().await;
    asked.ask_once(&eval("rows 1")).await;
    for mut silent in [server.connect().await, asked] {
        for _ in 0..10 {
            let ping = tokio::time::timeout(PATIENCE, silent.socket.next()).await.unwrap();
            assert!(matches!(ping, Some(Ok(Message::Ping(_)))), "{ping:?}");
        }
        assert_eq!(silent.ask_once(&eval("rows 1")).await.status, 200);
    }
    // The head of a message of 100 bytes, and one of them.
    client.socket.get_mut().write_all(&[0x82, 0x80 | 100, 0, 0, 0, 0, 1]).await.unwrap();
    assert_eq!(client.next_close().await, (1008, "the message took too long to arrive".into()));
}

const MESSAGE: usize = 1 << 20;

/// Room for the requests of all connections: 16 messages of the largest size.
fn roomy(config: &mut ServerConfig) {
    config.limits.message_bytes = MESSAGE;
    config.limits.requests_bytes = 16 * MESSAGE;
}

/// Begins a message of the largest size, and keeps its last byte back.
async fn hold_back(client: &mut Client) {
    let mut message = vec![0x82, 0x80 | 127];
    message.extend((MESSAGE as u64).to_be_bytes());
    message.resize(message.len() + 4 + MESSAGE - 1, 0);
    client.socket.get_mut().write_all(&message).await.unwrap();
}

/// A request of almost the largest size.
fn large(word: &str) -> ficus_wire::Request {
    eval_with(word, &[("bindings", map(&[("x", text(&"x".repeat(MESSAGE - 1000)))]))])
}

#[tokio::test]
async fn messages_that_never_end_are_broken_off_for_others() {
    let server = Server::with(roomy).await;
    let mut holding = Vec::new();
    for _ in 0..40 {
        let mut client = server.connect().await;
        hold_back(&mut client).await;
        holding.push(client);
    }
    assert_eq!(server.connect().await.ask_once(&large("rows 1")).await.status, 200);
    assert_eq!(server.connect().await.ask_once(&eval("rows 1")).await.status, 200);
    assert!(server.metric("ficus_requests_memory_bytes").await <= 16.0 * MESSAGE as f64);
    // The first was the first to go, and hears why.
    holding[0].format = Format::GraphSon3;
    let answer = holding[0].next().await;
    assert_eq!((answer.status, attribute(&answer, "code")), (429, Some(&text("FICUS-1206"))));
    assert_eq!(attribute(&answer, "retryable"), Some(&Value::Bool(true)));
    assert_eq!(holding[0].next_close().await, (1013, "no room for the message; try again later".into()));
    let refused = server.metric("ficus_requests_memory_refused_total").await;
    assert!((24.0..=40.0).contains(&refused), "{refused}");
    drop(holding);
    server.metric_becomes("ficus_requests_memory_bytes", 0.0).await;
}

#[tokio::test]
async fn bodies_that_never_end_are_broken_off_for_others() {
    let server = Server::with(roomy).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    let head = format!("POST /gremlin HTTP/1.1\r\nhost: x\r\ncontent-length: {MESSAGE}\r\n\r\n");
    first.write_all(head.as_bytes()).await.unwrap();
    first.write_all(&vec![b' '; MESSAGE - 1]).await.unwrap();
    server.metric_becomes("ficus_requests_memory_bytes", (MESSAGE - (64 << 10)) as f64).await;
    let mut holding = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        hold_back(&mut client).await;
        holding.push(client);
    }
    let answer = read_http(&mut first).await;
    assert_eq!(answer.status, 429);
    assert!(answer.text().contains("FICUS-1206"), "{}", answer.text());
}

#[tokio::test]
async fn requests_that_run_have_a_bound_together_and_small_ones_go_on() {
    let server = Server::with(roomy).await;
    let mut running = Vec::new();
    // Four of them fit: a request counts four times of what it takes on the wire.
    for count in 1..=4 {
        let mut client = server.connect().await;
        client.send(&large("hang")).await;
        server.metric_becomes("ficus_requests_running", f64::from(count)).await;
        running.push(client);
    }
    let mut refused = server.connect().await;
    assert_eq!(refused.ask_once(&eval("rows 1")).await.status, 200, "small requests go on");
    let mut message = Vec::new();
    ficus_wire::encode_frame(refused.format, &large("hang"), &mut message).unwrap();
    // The server may break it off before it is all sent.
    let _ = refused.socket.send(Message::binary(message)).await;
    let answer = refused.next().await;
    assert_eq!((answer.status, attribute(&answer, "code")), (429, Some(&text("FICUS-1206"))));
    assert_eq!(server.post("", "{\"gremlin\":\"rows 1\"}").await.status, 200);
    drop(running);
    server.metric_becomes("ficus_requests_memory_bytes", 0.0).await;
    assert_eq!(server.connect().await.ask_once(&large("rows 1")).await.status, 200);
}

/// A frame of a client, masked with zeros; `op` 0 goes on with a message, 2 begins one, 9 is a ping.
fn frame(is_last: bool, op: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![u8::from(is_last) << 7 | op];
    match payload.len() {
        short @ 0..126 => bytes.push(0x80 | short as u8),
        length => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

#[tokio::test]
async fn what_comes_with_a_large_message_is_read_too() {
    let server = Server::with(roomy).await;
    let mut client = server.connect().await;
    let encoded = |request: &ficus_wire::Request| {
        let mut bytes = Vec::new();
        ficus_wire::encode_frame(Format::GraphBinary1, request, &mut bytes).unwrap();
        bytes
    };
    let requests = [
        eval("rows 1"),
        large("rows 2"),
        eval("rows 3"),
        large("rows 4"),
        eval("rows 5"),
        large("rows 6"),
        eval("rows 7"),
    ];
    let messages: Vec<_> = requests.iter().map(encoded).collect();
    let (front, back) = messages[3].split_at(700_000);
    let (begin, rest) = messages[5].split_at(100);
    let all = [
        frame(true, 2, &messages[0]),
        frame(true, 2, &messages[1]),
        frame(true, 2, &messages[2]),
        // Two large pieces with a ping between them.
        frame(false, 2, front),
        frame(true, 9, b"here?"),
        frame(true, 0, back),
        frame(true, 2, &messages[4]),
        // A large piece between two small ones.
        frame(false, 2, begin),
        frame(false, 0, rest),
        frame(true, 0, &[]),
        frame(true, 2, &messages[6]),
    ]
    .concat();
    for sent in [1 << 20, 8192, 100_003] {
        for piece in all.chunks(sent) {
            client.socket.get_mut().write_all(piece).await.unwrap();
        }
        for (index, request) in requests.iter().enumerate() {
            let parts = client.collect(&request.id).await;
            assert_eq!(parts.iter().map(|part| values(part).len()).sum::<usize>(), index + 1);
        }
    }
}

#[tokio::test]
async fn clients_that_have_not_said_who_they_are_have_a_part_of_the_room() {
    let guarded = |config: &mut ServerConfig| {
        roomy(config);
        let hash = crate::authentication::hash("pipe");
        config.users = vec![ficus_server::UserConfig { name: "anna".into(), password_hash: hash }];
    };
    let server = Server::with(guarded).await;
    let mut strangers = Vec::new();
    for _ in 0..10 {
        let mut stranger = server.connect().await.speaking(Format::GraphSon3);
        // Each is held until its client says who it is; the first is the only one that finds room, others may be broken off half way.
        let mut message = Vec::new();
        ficus_wire::encode_frame(stranger.format, &large("rows 1"), &mut message).unwrap();
        let _ = stranger.socket.send(Message::binary(message)).await;
        strangers.push(stranger);
    }
    let basic = format!("Basic {}", data_encoding::BASE64.encode(b"anna:pipe"));
    let mut known = server.connect_with(&[("authorization", &basic)]).await.unwrap();
    assert_eq!(known.ask_once(&large("rows 1")).await.status, 200);
    let mut statuses = Vec::new();
    for stranger in &mut strangers {
        statuses.push(stranger.next().await.status);
    }
    assert!(statuses.contains(&407) && statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn silent_web_sockets_are_pinged_and_closed() {
    let server = Server::with(|config| {
        config.timeouts.ping_ms = 50;
        config.timeouts.idle_ms = 400;
    })
    .await;
    let mut client = server.connect().await;
    let ping = tokio::time::timeout(PATIENCE, client.socket.next()).await.unwrap();
    assert!(matches!(ping, Some(Ok(Message::Ping(_)))), "{ping:?}");
    // A client that does not read does not answer pings.
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(client.next_close().await, (1000, "idle for too long".into()));
}

#[tokio::test]
async fn pings_are_answered_even_in_the_middle_of_a_long_answer() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    // More than anybody waits for: only an answer to the ping ends the loop.
    client.send(&eval("rows 100000000")).await;
    client.send_message(Message::Ping(vec![1, 2, 3].into())).await;
    let pong = loop {
        match tokio::time::timeout(PATIENCE, client.socket.next()).await.unwrap().unwrap().unwrap() {
            Message::Pong(bytes) => break bytes,
            Message::Binary(bytes) => {
                let response = ficus_wire::decode_response(client.format, &bytes, &Default::default()).unwrap();
                assert_eq!(response.status, 206, "the answer came to its end before the ping was answered");
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(&pong[..], [1, 2, 3]);
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_its_query_and_is_dropped() {
    let server = Server::with(|config| config.timeouts.write_ms = 200).await;
    let mut client = server.connect().await;
    client.send(&eval("rows 100000000")).await;
    // Its buffers fill up, the query waits, and the server loses its patience.
    server.mock.logged("closed").await;
    drop(client);
}

#[tokio::test]
async fn a_bulk_of_billions_is_sent_bit_by_bit() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(&eval("bulk 4000000000")).await;
    for _ in 0..10 {
        let part = client.next().await;
        assert_eq!((part.status, part.data), (206, Data::Values(vec![Value::Int(7); 64])));
    }
}

#[tokio::test]
async fn the_world_is_not_listened_to_without_authentication() {
    let open = |allow| {
        let listen = "0.0.0.0:0".into();
        bind(
            ServerConfig { listen, allow_unauthenticated: allow, ..ServerConfig::default() },
            std::sync::Arc::new(Mock::default()),
        )
    };
    assert!(matches!(open(false).await, Err(ServeError::Open { .. })));
    assert!(open(true).await.is_ok());
    let nowhere = ServerConfig { listen: "nowhere.invalid:1".into(), ..ServerConfig::default() };
    let result = bind(nowhere, std::sync::Arc::new(Mock::default())).await;
    assert!(matches!(result, Err(ServeError::Address { .. })));
    let senseless = ServerConfig { batch_size: 0, ..ServerConfig::default() };
    assert!(matches!(bind(senseless, std::sync::Arc::new(Mock::default())).await, Err(ServeError::Config(_))));
}

#[tokio::test]
async fn violations_of_the_protocol_end_the_connection() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    // An unmasked frame, which clients must not send.
    client.socket.get_mut().write_all(&[0x82, 0x01, 0x00]).await.unwrap();
    assert_eq!(client.next_close().await.0, 1002);
    let mut client = server.connect().await.in_text();
    // A masked text frame (mask 0) whose one byte is not UTF-8.
    client.socket.get_mut().write_all(&[0x81, 0x81, 0, 0, 0, 0, 0xff]).await.unwrap();
    assert_eq!(client.next().await.status, 499);
    assert_eq!(client.next_close().await.0, 1007);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_idle_connections_are_no_burden() {
    let server = Server::start().await;
    let mut clients = Vec::new();
    for _ in 0..2000 {
        clients.push(server.connect().await);
    }
    assert_eq!(server.metric("ficus_connections{channel=\"websocket\"}").await, 2000.0);
    for client in clients.iter_mut().step_by(100) {
        assert_eq!(client.ask_once(&eval("rows 1")).await.status, 200);
    }
    drop(clients);
    server.metric_becomes("ficus_connections{channel=\"websocket\"}", 0.0).await;
}
