//! Graphs as wholes: which there are, and files into and out of them while the server answers queries.
//!
//! ```text
//! client ── body ─▶ PieceReader ─▶ GraphService ─▶ PieceWriter ─▶ PieceBody ── body ─▶ client
//!   threads of the network ┘   a thread of the service  └ threads of the network
//! ```
//! This side moves bytes, at the speed of whoever is slower; what they mean is the business of the [`GraphService`].

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame};
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};

use crate::backend::Failure;

/// Pieces that wait for whoever takes them.
const PIECES_AHEAD: usize = 16;

/// Bytes that are collected before they are sent.
const PIECE_BYTES: usize = 64 << 10;

/// What stands behind `/v1/graphs`.
pub trait GraphService: Send + Sync + 'static {
    /// The graphs there are, each with what is known of it at once.
    fn list(&self) -> Vec<Json>;

    /// Makes an empty graph. Blocks.
    fn create(&self, name: &str) -> Result<(), Failure>;

    /// Removes a graph with all it holds. Blocks.
    fn remove(&self, name: &str) -> Result<(), Failure>;

    /// Starts to put files into a graph, on a thread of its own. An error of the upload may be a [`Failure`].
    fn load(&self, request: TransferRequest, upload: PieceReader, reply: Reply);

    /// Starts to write a graph, on a thread of its own.
    fn export(&self, request: TransferRequest, reply: Reply);

    /// Adds what it counts, in the Prometheus text format.
    fn write_metrics(&self, out: &mut String);
}

/// What a client wants of a graph.
#[derive(Clone, Debug)]
pub struct TransferRequest {
    /// The graph's name.
    pub graph: String,
    /// The parameters of the request, in their order.
    pub parameters: Vec<(String, String)>,
    /// Who asks, where somebody has to say so.
    pub user: Option<Arc<str>>,
}

/// Bytes that come in pieces: an error breaks them off, an empty piece ends them.
pub type Piece = io::Result<Bytes>;

/// Pieces between two sides of which one may wait.
pub fn pieces() -> (mpsc::Sender<Piece>, mpsc::Receiver<Piece>) {
    mpsc::channel(PIECES_AHEAD)
}

/// Reads pieces; waits for whoever sends them, so it is for threads that may wait.
pub struct PieceReader {
    pieces: mpsc::Receiver<Piece>,
    rest: Bytes,
    has_ended: bool,
}

impl PieceReader {
    /// Reads what comes.
    pub fn new(pieces: mpsc::Receiver<Piece>) -> PieceReader {
        PieceReader { pieces, rest: Bytes::new(), has_ended: false }
    }
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !self.has_ended {
            match self.pieces.blocking_recv() {
                Some(Ok(piece)) => {
                    self.has_ended = piece.is_empty();
                    self.rest = piece;
                }
                Some(Err(error)) => return Err(error),
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other side went away")),
            }
        }
        let count = self.rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}

/// Writes pieces; waits for whoever takes them. What is dropped before [`PieceWriter::end`] has broken off.
pub struct PieceWriter {
    pieces: mpsc::Sender<Piece>,
    collected: Vec<u8>,
}

impl PieceWriter {
    /// Writes to whoever takes them.
    pub fn new(pieces: mpsc::Sender<Piece>) -> PieceWriter {
        PieceWriter { pieces, collected: Vec::new() }
    }

    /// Whether there is still somebody who takes them.
    pub fn is_wanted(&self) -> bool {
        !self.pieces.is_closed()
    }

    /// Says that this was all.
    pub fn end(mut self) -> io::Result<()> {
        self.flush()?;
        self.send(Ok(Bytes::new()))
    }

    /// Says why there is no more.
    pub fn break_off(self, reason: impl Into<String>) {
        // If nobody takes it nobody misses it.
        let _ = self.send(Err(io::Error::other(reason.into())));
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the other side went away");
        self.pieces.blocking_send(piece).map_err(gone)
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.collected.extend_from_slice(bytes);
        if self.collected.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.collected.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.collected));
        self.send(Ok(piece))
    }
}

/// Pieces as the body of a message.
pub struct PieceBody {
    pieces: mpsc::Receiver<Piece>,
    has_ended: bool,
}

impl PieceBody {
    /// A body of what comes.
    pub fn new(pieces: mpsc::Receiver<Piece>) -> PieceBody {
        PieceBody { pieces, has_ended: false }
    }
}

impl Body for PieceBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let piece = match ready!(self.pieces.poll_recv(context)) {
            Some(piece) => piece,
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "whoever wrote it went away")),
        };
        self.has_ended = piece.as_ref().map_or(true, Bytes::is_empty);
        Poll::Ready(match piece {
            Ok(piece) if piece.is_empty() => None,
            piece => Some(piece.map(Frame::data)),
        })
    }
}

/// How an answer begins.
#[derive(Clone, Debug)]
pub struct ReplyHead {
    /// What the body is.
    pub content_type: &'static str,
    /// Further headers; what no header can hold is left out of their values.
    pub headers: Vec<(&'static str, String)>,
}

/// The answer to a request: refused, or begun and then written.
pub struct Reply {
    head: oneshot::Sender<Result<ReplyHead, Failure>>,
    body: PieceWriter,
}

/// The other end of a [`Reply`].
pub(crate) struct ReplyParts {
    /// How it begins, or why there is no answer.
    pub head: oneshot::Receiver<Result<ReplyHead, Failure>>,
    /// The body.
    pub body: PieceBody,
}

impl Reply {
    pub(crate) fn channel() -> (Reply, ReplyParts) {
        let (head, head_receiver) = oneshot::channel();
        let (sender, receiver) = pieces();
        let reply = Reply { head, body: PieceWriter::new(sender) };
        (reply, ReplyParts { head: head_receiver, body: PieceBody::new(receiver) })
    }

    /// Says that there is nothing to answer with but this.
    pub fn refuse(self, failure: Failure) {
        // Whoever asked may have gone.
        let _ = self.head.send(Err(failure));
    }

    /// Begins the answer.
    pub fn begin(self, content_type: &'static str, headers: Vec<(&'static str, String)>) -> PieceWriter {
        // Whoever asked may have gone, as the writer will see.
        let _ = self.head.send(Ok(ReplyHead { content_type, headers }));
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_and_what_breaks_off_are_told_apart() {
        let (sender, receiver) = pieces();
        let mut writer = PieceWriter::new(sender);
        writer.write_all(b"two ").unwrap();
        writer.flush().unwrap();
        writer.write_all(b"pieces").unwrap();
        writer.end().unwrap();
        let mut text = String::new();
        PieceReader::new(receiver).read_to_string(&mut text).unwrap();
        assert_eq!(text, "two pieces");
        let (sender, receiver) = pieces();
        let mut writer = PieceWriter::new(sender);
        writer.write_all(b"half").unwrap();
        writer.flush().unwrap();
        drop(writer);
        let error = PieceReader::new(receiver).read_to_string(&mut text).expect_err("it did not end");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn who_writes_learns_that_nobody_reads() {
        let (reply, parts) = Reply::channel();
        let mut writer = reply.begin("text/plain", Vec::new());
        assert!(writer.is_wanted());
        drop(parts);
        assert!(!writer.is_wanted());
        writer.write_all(b"text").unwrap();
        assert!(writer.flush().is_err());
    }
}
