//! Connections that break off, and connections that only sit there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ficus_conformance::client::{Options, eval_request};
use ficus_model::Value;
use ficus_wire::Format;

use crate::{ANSWER_TIME_MAX, Tested};

const IDLE_CONNECTIONS: usize = 2_000;

#[test]
fn a_query_whose_client_is_gone_is_cancelled() {
    let mut tested = Tested::start();
    for format in crate::FORMATS {
        let mut client = tested.client(format);
        // Ten minutes to run, so that it is not the time-out that ends it.
        let args = vec![("evaluationTimeout", Value::Long(600_000))];
        let options = Options { args, ..Options::alias("ggrateful") };
        let endless = eval_request("g.V().repeat(__.both().simplePath()).times(30).count()", &options);
        client.send(&endless).expect("the server reads");
        let waited_from = Instant::now();
        while tested.metric("ficus_requests_running") == Some(0.0) {
            assert!(waited_from.elapsed() < ANSWER_TIME_MAX, "the query never started");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(client);
        tested.assert_healthy();
    }
}

#[test]
fn two_thousand_idle_connections_do_not_hinder_anyone() {
    let mut tested = Tested::start();
    let mut idle: Vec<TcpStream> = (0..IDLE_CONNECTIONS).map(|_| upgraded(tested.server.port())).collect();
    tested.assert_healthy();
    for (index, stream) in idle.iter_mut().enumerate() {
        // A masked ping with an empty body; the answer is a pong with an empty body.
        stream.write_all(&[0x89, 0x80, 1, 2, 3, 4]).unwrap_or_else(|error| panic!("connection {index}: {error}"));
        let mut header = [0; 2];
        stream.read_exact(&mut header).unwrap_or_else(|error| panic!("connection {index}: {error}"));
        assert_eq!(header, [0x8A, 0], "connection {index} got no pong");
    }
    drop(idle);
    tested.assert_healthy();
    let mut client = tested.client(Format::GraphSon3);
    assert_eq!(client.submit("g.V().count()", &Options::alias("gmodern")), Ok(vec![Value::Long(6)]));
}

/// A WebSocket by hand, without the buffers of a library.
fn upgraded(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts connections");
    stream.set_read_timeout(Some(ANSWER_TIME_MAX)).expect("a time-out that is not zero");
    let request = "GET /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("the server answers the handshake");
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    stream
}
