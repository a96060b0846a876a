//! Bodies of answers: whole, in several pieces, or written while they are sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use ficus_query::budget::Held;
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::transfer::PieceBody;

/// The body of an answer.
pub(crate) enum AnswerBody {
    /// All of it is here.
    Whole(Full<Bytes>),
    /// It is here in several pieces.
    Written(WrittenBody),
    /// It comes in pieces; an error breaks the connection off.
    Pieces(PieceBody),
}

/// Bytes, and what they take of a query's memory.
struct OnAccount {
    bytes: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for OnAccount {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for AnswerBody {
    fn default() -> AnswerBody {
        AnswerBody::Whole(Full::default())
    }
}

impl<T: Into<Bytes>> From<T> for AnswerBody {
    fn from(body: T) -> AnswerBody {
        AnswerBody::Whole(Full::new(body.into()))
    }
}

impl AnswerBody {
    /// Pieces that stay on a query's account as long as anybody has them: the connection takes them one by one, without copying, and keeps each until the
    /// client has taken the last of it, or is gone.
    pub fn on_account(pieces: Vec<Vec<u8>>, mut held: Held) -> AnswerBody {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        let bytes = |piece: Vec<u8>| {
            let _held = held.split(piece.capacity());
            Bytes::from_owner(OnAccount { bytes: piece, _held })
        };
        AnswerBody::Written(WrittenBody { pieces: pieces.into_iter().map(bytes).collect(), left })
    }
}

/// Pieces that are all there.
pub(crate) struct WrittenBody {
    pieces: VecDeque<Bytes>,
    /// Bytes of them.
    left: u64,
}

impl WrittenBody {
    fn next(&mut self) -> Option<Bytes> {
        let next = loop {
            let next = self.pieces.pop_front()?;
            if !next.is_empty() {
                break next;
            }
        };
        self.left -= next.len() as u64;
        Some(next)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            AnswerBody::Whole(body) => {
                let never = |never: Infallible| match never {};
                Pin::new(body).poll_frame(context).map_err(never)
            }
            AnswerBody::Written(body) => Poll::Ready(body.next().map(|piece| Ok(Frame::data(piece)))),
            AnswerBody::Pieces(pieces) => Pin::new(pieces).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnswerBody::Whole(body) => body.is_end_stream(),
            AnswerBody::Written(body) => body.left == 0,
            AnswerBody::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(body) => body.size_hint(),
            AnswerBody::Written(body) => SizeHint::with_exact(body.left),
            AnswerBody::Pieces(_) => SizeHint::default(),
        }
    }
}
