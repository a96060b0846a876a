//! Answers over HTTP that their clients do not read.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::client::*;
use crate::queries::{serve_configured, serve_within};

/// A request whose answer is 32 MiB of text: more than the buffers of two sockets hold.
fn large() -> String {
    let text = "x".repeat(8 << 10);
    let gremlin = format!("g.inject('{text}').repeat(__.union(__.identity(), __.identity())).times(12)");
    serde_json::json!({"gremlin": gremlin}).to_string()
}

const LARGE_BYTES: f64 = (32 << 20) as f64;

/// What is left of it at least when the sockets are full: pieces that have gone are no longer there.
const LEFT_BYTES: f64 = 0.75 * LARGE_BYTES;

const BEGINNING: &[u8; 12] = b"HTTP/1.1 200";

const MEMORY: &str = "ficus_queries_memory_bytes";

/// Asks for the large answer and reads the beginning of it: by then all of it is written.
async fn ask(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    // The system makes it larger otherwise.
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let body = large();
    let length = body.len();
    let request = format!("POST /gremlin HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; BEGINNING.len()];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut first)).await.expect("it answers").unwrap();
    assert_eq!(&first, BEGINNING);
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_has_not_read_yet_stays_on_the_account() {
    let server = serve_configured(8, false, |config| config.timeouts.write_ms = 600_000).await;
    let mut slow = ask(server.address).await;
    assert!(server.metric(MEMORY).await >= LEFT_BYTES);
    let gone = ask(server.address).await;
    assert!(server.metric(MEMORY).await >= 2.0 * LEFT_BYTES);
    drop(gone);
    for _ in 0..1000 {
        if server.metric(MEMORY).await < 2.0 * LEFT_BYTES {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!((LEFT_BYTES..2.0 * LEFT_BYTES).contains(&server.metric(MEMORY).await), "one of them is gone");
    let answer = read_rest(&mut slow).await;
    assert!(answer >= LARGE_BYTES as usize, "{answer} bytes");
    server.metric_becomes(MEMORY, 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_is_disconnected_and_the_memory_is_handed_back() {
    let server = serve_configured(8, false, |config| config.timeouts.write_ms = 300).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(ask(server.address).await);
    }
    server.metric_becomes(MEMORY, 0.0).await;
    // The one who asks is the only one.
    server.metric_becomes("ficus_connections{channel=\"http\"}", 1.0).await;
    for mut stream in streams {
        let mut rest = Vec::new();
        // An end, or an error: it is over, and not whole.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the connection has ended");
        assert!(rest.len() < LARGE_BYTES as usize);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_find_no_room_are_not_kept() {
    // Two that nobody reads, and a third one beside its rows as far as it is written.
    let total = 112 << 20;
    let server = serve_within(total, 8, false, |config| config.timeouts.write_ms = 600_000).await;
    let (first, second) = (ask(server.address).await, ask(server.address).await);
    let body = large();
    let refused = server.post("", &body).await;
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("FICUS-1204"), "{}", refused.text());
    assert!(server.metric(MEMORY).await <= total as f64);
    drop((first, second));
    server.metric_becomes(MEMORY, 0.0).await;
    assert_eq!(server.post("", &body).await.status, 200);
}

/// The bytes of an answer of which the beginning has been read.
async fn read_rest(stream: &mut TcpStream) -> usize {
    let mut rest = BEGINNING.to_vec();
    let reading = async {
        loop {
            let head = rest.windows(4).position(|window| window == b"\r\n\r\n").map(|end| end + 4);
            if let Some(head) = head {
                let text = String::from_utf8_lossy(&rest[..head]).to_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let length: usize = length.expect("it has a length");
                let mut body = vec![0; head + length - rest.len()];
                stream.read_exact(&mut body).await.expect("all of it comes");
                return length;
            }
            assert!(stream.read_buf(&mut rest).await.expect("it reads") > 0, "it ended early");
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it comes in time")
}
