//! The byte stream under a connection: TCP, with or without TLS.
//!
//! It counts what goes through it, and remembers since when it has been receiving something that nobody has taken for a
//! whole message yet: the protocol above does not tell of messages that are still arriving.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use crate::metrics::Metrics;

/// A connection's byte stream; counts what goes through it.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: Stream,
    metrics: Arc<Metrics>,
    /// When the first byte after the last whole message came.
    arriving_since: Option<Instant>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    // Boxed: its state is a kilobyte, and most connections have none.
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Transport {
    pub fn plain(stream: TcpStream, metrics: Arc<Metrics>) -> Transport {
        Transport { stream: Stream::Plain(stream), metrics, arriving_since: None }
    }

    pub fn encrypted(stream: TlsStream<TcpStream>, metrics: Arc<Metrics>) -> Transport {
        Transport { stream: Stream::Encrypted(Box::new(stream)), metrics, arriving_since: None }
    }

    /// A message is whole.
    pub fn message_arrived(&mut self) {
        self.arriving_since = None;
    }

    /// Since when a message has been arriving.
    pub fn arriving_since(&self) -> Option<Instant> {
        self.arriving_since
    }
}

fn count(counter: &AtomicU64, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
    if let Poll::Ready(Ok(bytes)) = result {
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    result
}

impl AsyncRead for Transport {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            self.metrics.bytes_received.fetch_add(bytes as u64, Ordering::Relaxed);
            self.arriving_since.get_or_insert_with(Instant::now);
        }
        result
    }
}

impl AsyncWrite for Transport {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        count(&self.metrics.bytes_sent, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        };
        count(&self.metrics.bytes_sent, result)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
