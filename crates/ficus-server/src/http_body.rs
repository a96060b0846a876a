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
    /// All of it is here, with its memory.
    Whole { body: Full<Bytes>, _held: Held },
    /// It comes in pieces; an error breaks the connection off.
    Pieces(PieceBody),
}

impl Default for AnswerBody {
    fn default() -> AnswerBody {
        AnswerBody::Whole { body: Full::default(), _held: Held::default() }
    }
}

impl<T: Into<Bytes>> From<T> for AnswerBody {
    fn from(body: T) -> AnswerBody {
        AnswerBody::Whole { body: Full::new(body.into()), _held: Held::default() }
    }
}

impl AnswerBody {
    /// The same, with what it takes of a query's memory, which is handed back when the body is sent.
    pub fn holding(self, held: Held) -> AnswerBody {
        match self {
            AnswerBody::Whole { body, .. } => AnswerBody::Whole { body, _held: held },
            pieces => pieces,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            AnswerBody::Whole { body, .. } => {
                let never = |never: Infallible| match never {};
                Pin::new(body).poll_frame(context).map_err(never)
            }
            AnswerBody::Pieces(pieces) => Pin::new(pieces).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnswerBody::Whole { body, .. } => body.is_end_stream(),
            AnswerBody::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole { body, .. } => body.size_hint(),
            AnswerBody::Pieces(_) => SizeHint::default(),
        }
    }
}
