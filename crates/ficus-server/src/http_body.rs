//! Bodies of answers: whole, or written while they are sent.

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
    /// Bytes that stay on a query's account as long as anybody has them: the connection takes a body whole, without copying it, and keeps it until the
    /// client has taken the last of it, or is gone.
    pub fn on_account(bytes: Vec<u8>, held: Held) -> AnswerBody {
        Bytes::from_owner(OnAccount { bytes, _held: held }).into()
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
            AnswerBody::Pieces(pieces) => Pin::new(pieces).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnswerBody::Whole(body) => body.is_end_stream(),
            AnswerBody::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(body) => body.size_hint(),
            AnswerBody::Pieces(_) => SizeHint::default(),
        }
    }
}
