//! The byte stream under a connection: TCP, with or without TLS.
//!
//! It counts what goes through it, and remembers since when it has been receiving something that nobody has taken for a
//! whole message yet, and how much: the protocol above does not tell of messages that are still arriving. Nor does HTTP tell
//! of a client that does not take its answer, so the stream under it ends with an error then.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use crate::frames::Frames;
use crate::inflow::Reception;
use crate::metrics::Metrics;
use crate::patience::Patience;

/// A connection's byte stream; counts what goes through it.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: Stream,
    metrics: Arc<Metrics>,
    /// When the first byte after the last whole message came.
    arriving_since: Option<Instant>,
    /// Of a WebSocket: where frames end, and memory for the message that is arriving.
    messages: Option<(Frames, Reception)>,
    /// Of HTTP: with a client that does not take what is written. A WebSocket looks after that itself.
    patience: Option<Patience>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    // Boxed: its state is a kilobyte, and most connections have none.
    Encrypted(Box<TlsStream<TcpStream>>),
    /// It was taken out.
    Gone,
}

impl Transport {
    pub fn plain(stream: TcpStream, metrics: Arc<Metrics>) -> Transport {
        Transport { stream: Stream::Plain(stream), metrics, arriving_since: None, messages: None, patience: None }
    }

    pub fn encrypted(stream: TlsStream<TcpStream>, metrics: Arc<Metrics>) -> Transport {
        let stream = Stream::Encrypted(Box::new(stream));
        Transport { stream, metrics, arriving_since: None, messages: None, patience: None }
    }

    /// The same, of which writing fails when the client has not taken what was written in this time.
    pub fn with_patience(mut self, limit: Duration) -> Transport {
        self.patience = Some(Patience::new(limit));
        self
    }

    /// The stream, for somebody else; what stays behind is closed.
    pub fn take(&mut self) -> Transport {
        let metrics = self.metrics.clone();
        let gone = Transport { stream: Stream::Gone, metrics, arriving_since: None, messages: None, patience: None };
        std::mem::replace(self, gone)
    }

    /// Follows the messages of a WebSocket from now on, of which these bytes have been read. A message for which there is no room ends
    /// in an error, of which [`crate::inflow::NoRoom`] is the cause.
    pub fn follow_messages(&mut self, reception: Reception, read: &[u8]) {
        let mut frames = Frames::default();
        frames.advance(read);
        self.messages = Some((frames, reception));
        self.patience = None;
    }

    /// Nobody cares about messages any more.
    pub fn forget_messages(&mut self) {
        self.messages = None;
    }

    /// Whether there was a large frame and what was read ends with a frame; the reader is to be replaced then.
    pub fn take_large(&mut self) -> bool {
        self.messages.as_mut().is_some_and(|(frames, _)| frames.take_large())
    }

    /// A message is whole. `is_known`: the client need not say any more who it is.
    pub fn message_arrived(&mut self, is_known: bool) {
        self.arriving_since = None;
        if let Some((_, reception)) = &mut self.messages {
            reception.end();
            if is_known {
                reception.is_known();
            }
        }
    }

    /// Since when a message has been arriving.
    pub fn arriving_since(&self) -> Option<Instant> {
        self.arriving_since
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Gone => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let readable = match &self.messages {
            None => u64::MAX,
            Some((frames, reception)) => {
                reception.check(cx.waker()).map_err(io::Error::other)?;
                frames.readable()
            }
        };
        let before = buffer.filled().len();
        let mut stream = (&mut self.stream).take(readable);
        let result = Pin::new(&mut stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.received(&buffer.filled()[before..], cx)?;
        }
        result
    }
}

impl Transport {
    fn received(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> io::Result<()> {
        self.metrics.bytes_received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.arriving_since.get_or_insert_with(Instant::now);
        if let Some((frames, reception)) = &mut self.messages {
            frames.advance(bytes);
            reception.more(bytes.len(), cx.waker()).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Counts what was written, or waits no longer than it may.
    fn written(&mut self, result: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match (&result, &mut self.patience) {
            (Poll::Ready(Ok(bytes)), patience) => {
                self.metrics.bytes_sent.fetch_add(*bytes as u64, Ordering::Relaxed);
                if let Some(patience) = patience {
                    patience.taken(*bytes);
                }
            }
            (Poll::Pending, Some(patience)) => return patience.poll_wait(cx).map(Err),
            _ => {}
        }
        result
    }

    /// The same of what has been written before and may wait on its way.
    fn flushed(&mut self, result: Poll<io::Result<()>>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match (&result, &mut self.patience) {
            (Poll::Ready(Ok(())), Some(patience)) => patience.all_taken(),
            (Poll::Pending, Some(patience)) => return patience.poll_wait(cx).map(Err),
            _ => {}
        }
        result
    }
}

impl AsyncWrite for Transport {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        };
        self.written(result, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        };
        self.written(result, cx)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Encrypted(stream) => stream.is_write_vectored(),
            Stream::Gone => false,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Gone => Poll::Ready(Ok(())),
        };
        self.flushed(result, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Gone => Poll::Ready(Ok(())),
        };
        self.flushed(result, cx)
    }
}
