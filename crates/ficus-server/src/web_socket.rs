//! One WebSocket: reads requests, runs several at a time, answers in the order of the requests.
//!
//! A connection is one task. It owns its socket, its requests and its sessions, so nothing here is locked; an executor
//! that pushes rows wakes this task, which encodes them and writes. Frames are written together and flushed when there
//! is nothing more to write at once.
//!
//! ```text
//! socket ─► decode ─► (authentication) ─► [waiting … running … running] ─► front's parts ─► encode ─► socket
//! ```
//!
//! The front entry alone is written from. Those behind it run up to what their channels hold.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ficus_query::budget::Held;
use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncReadExt;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, Sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::config::optional;
use crate::conversation::{Conversation, Outgoing};
use crate::inflow::{NoRoom, Reception};
use crate::metrics::Channel;
use crate::shared::{Phase, Shared};
use crate::strangers::{Permit, Stranger};
use crate::tenants::Asker;
use crate::transport::Transport;

/// Bytes read from a socket at a time, allocated for each connection.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// Bytes of frames that are collected before they are written without a flush.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Time between looks at a connection on which nothing is due.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// Parts written before the socket is looked at again for pings and the client's farewell.
const PARTS_BETWEEN_READS: u32 = 8;

/// What is still read from a client that was refused, so that it gets to see the answer, and for how long.
const LINGER_BYTES: usize = 64 << 20;
const LINGER_TIME: Duration = Duration::from_secs(3);
const LINGER_SILENCE: Duration = Duration::from_millis(500);

/// Settings of the protocol.
fn protocol(shared: &Shared) -> WebSocketConfig {
    let bytes = shared.config.limits.message_bytes;
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(bytes))
        .max_frame_size(Some(bytes))
}

/// Serves a connection until either side ends it; `read` are bytes that came behind the handshake.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    mut transport: Transport,
    read: Vec<u8>,
    host: Arc<str>,
    asker: Option<Asker>,
    permit: Permit,
) {
    // The handshake was one.
    transport.message_arrived(false);
    let is_strange = shared.users.is_some() && asker.is_none();
    transport.follow_messages(Reception::new(&shared.inflow, is_strange), &read);
    let socket = WebSocketStream::from_partially_read(transport, read, Role::Server, Some(protocol(&shared))).await;
    shared.metrics.connection(Channel::WebSocket, 1);
    // Also when the task is aborted or panics.
    let _count = scopeguard(|| shared.metrics.connection(Channel::WebSocket, -1));
    let (known, stranger) = match is_strange {
        true => (None, Some(shared.strangers.enter(permit))),
        false => (Some(permit), None),
    };
    let leave = stranger.as_ref().map(Stranger::leave);
    let conversation = Conversation::new(shared.clone(), host, asker, stranger);
    let now = Instant::now();
    let connection = Connection {
        shared: shared.clone(),
        socket,
        conversation,
        leave,
        unflushed: false,
        is_reader_large: false,
        in_flight: Held::default(),
        last_received: now,
        last_ping: now,
    };
    connection.run().await;
    drop(known);
}

fn scopeguard<F: FnMut()>(at_end: F) -> impl Drop {
    struct Guard<F: FnMut()>(F);
    impl<F: FnMut()> Drop for Guard<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    Guard(at_end)
}

struct Connection {
    shared: Arc<Shared>,
    socket: WebSocketStream<Transport>,
    conversation: Conversation,
    /// Told when the connection has to go, as long as nobody knows whose it is.
    leave: Option<Arc<Notify>>,
    unflushed: bool,
    /// The reader has the memory of a large message, and nothing in it.
    is_reader_large: bool,
    /// The memory of the message that is being written.
    in_flight: Held,
    last_received: Instant,
    last_ping: Instant,
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The client is gone, or does not take what it asked for.
    Gone,
    /// The client said goodbye; the protocol's answer is under way.
    ClosedByClient,
    /// We say goodbye.
    Closed(CloseCode, &'static str),
}

impl Connection {
    async fn run(mut self) {
        let end = match self.exchange().await {
            ControlFlow::Break(end) => end,
            ControlFlow::Continue(never) => match never {},
        };
        tracing::debug!(?end, "connection ends");
        // Queries stop and transactions roll back before the farewell takes its time.
        let Connection { mut conversation, mut socket, .. } = self;
        let _place = conversation.take_place();
        drop(conversation);
        match end {
            End::Gone => {}
            End::ClosedByClient => {
                let _ = timeout(LINGER_TIME, socket.flush()).await;
            }
            End::Closed(code, reason) => farewell(socket, code, reason).await,
        }
    }

    async fn exchange(&mut self) -> ControlFlow<End, std::convert::Infallible> {
        let mut phase = self.shared.phase.clone();
        let mut timer = Box::pin(tokio::time::sleep_until(self.next_due()));
        let mut parts: u32 = 0;
        loop {
            self.renew_reader().await?;
            self.conversation.start_waiting();
            let outgoing = poll_fn(|context| Poll::Ready(self.conversation.poll_outgoing(context))).await;
            if let Poll::Ready(outgoing) = outgoing {
                self.write(outgoing).await?;
                parts = parts.wrapping_add(1);
                if parts.is_multiple_of(PARTS_BETWEEN_READS) {
                    self.look_around(&mut phase, timer.as_mut()).await?;
                }
                continue;
            }
            self.flush().await?;
            if let Some((code, reason)) = self.conversation.wants_to_close() {
                self.flush().await?;
                return ControlFlow::Break(End::Closed(code, reason));
            }
            self.arm(timer.as_mut());
            let Connection { socket, conversation, leave, .. } = &mut *self;
            let readable = conversation.may_read();
            let must_leave = async {
                match leave {
                    Some(leave) => leave.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                message = socket.next(), if readable => self.read(message)?,
                outgoing = poll_fn(|context| conversation.poll_outgoing(context)) => self.write(outgoing).await?,
                () = timer.as_mut() => self.tick(timer.as_mut()).await?,
                () = must_leave => {
                    let reason = "its place was needed, and it had not said whose it is";
                    return ControlFlow::Break(End::Closed(CloseCode::Again, reason));
                }
                changed = phase.changed() => {
                    let phase = changed.map_or(Phase::Stopping, |()| *phase.borrow_and_update());
                    self.conversation.enter(phase);
                }
            }
        }
    }

    /// Frees what the reader has taken for a large message and would keep. Between two messages nothing else is in it.
    async fn renew_reader(&mut self) -> ControlFlow<End> {
        if !std::mem::take(&mut self.is_reader_large) {
            return ControlFlow::Continue(());
        }
        // What waits to be written lies there, too.
        self.unflushed = true;
        self.flush().await?;
        let transport = self.socket.get_mut().take();
        self.socket = WebSocketStream::from_raw_socket(transport, Role::Server, Some(protocol(&self.shared))).await;
        ControlFlow::Continue(())
    }

    /// Sees to everything else without waiting, in the middle of a long answer.
    async fn look_around(&mut self, phase: &mut watch::Receiver<Phase>, timer: Pin<&mut Sleep>) -> ControlFlow<End> {
        if self.conversation.may_read() {
            let socket = &mut self.socket;
            let message = poll_fn(|context| Poll::Ready(socket.poll_next_unpin(context))).await;
            if let Poll::Ready(message) = message {
                self.read(message)?;
            }
        }
        if phase.has_changed().unwrap_or(false) {
            let phase = *phase.borrow_and_update();
            self.conversation.enter(phase);
        }
        if self.next_due() <= Instant::now() {
            self.tick(timer).await?;
        }
        ControlFlow::Continue(())
    }

    fn read(&mut self, message: Option<Result<Message, Error>>) -> ControlFlow<End> {
        self.last_received = Instant::now();
        self.socket.get_mut().message_arrived(self.conversation.is_known());
        if let Some(Ok(Message::Binary(_) | Message::Text(_))) = &message {
            self.is_reader_large = self.socket.get_mut().take_large();
        }
        match message {
            None => return ControlFlow::Break(End::Gone),
            Some(Ok(Message::Binary(bytes))) => self.conversation.receive_binary(&bytes),
            Some(Ok(Message::Text(text))) => self.conversation.receive_text(text.as_str()),
            // The protocol has its answer ready; it has to be sent.
            Some(Ok(Message::Ping(_))) => self.unflushed = true,
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(_))) => return ControlFlow::Break(End::ClosedByClient),
            Some(Err(Error::Capacity(error))) => self.conversation.refuse_size(&error.to_string()),
            Some(Err(Error::Utf8(error))) => self.conversation.refuse_text(&error.to_string()),
            Some(Err(Error::Protocol(error))) => {
                tracing::debug!(%error, "protocol violation");
                return ControlFlow::Break(End::Closed(CloseCode::Protocol, "protocol violation"));
            }
            Some(Err(Error::Io(error))) if error.get_ref().is_some_and(|cause| cause.is::<NoRoom>()) => {
                return self.break_off(&error.to_string());
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "connection lost");
                return ControlFlow::Break(End::Gone);
            }
        }
        ControlFlow::Continue(())
    }

    /// There is no room for the message that is arriving: what has come of it is to be freed now, so the connection ends.
    fn break_off(&mut self, reason: &str) -> ControlFlow<End> {
        tracing::warn!(reason, "a message was broken off");
        // What follows is read and dropped, for a moment.
        self.socket.get_mut().forget_messages();
        if !self.conversation.is_idle() {
            return ControlFlow::Break(End::Closed(CloseCode::Again, "no room for the message; try again later"));
        }
        self.conversation.refuse_room(reason);
        ControlFlow::Continue(())
    }

    async fn write(&mut self, outgoing: Outgoing) -> ControlFlow<End> {
        let Some((message, held)) = self.conversation.render(outgoing) else { return ControlFlow::Continue(()) };
        self.unflushed = true;
        let patience = Duration::from_millis(self.shared.config.timeouts.write_ms);
        within(patience, self.socket.feed(message)).await?;
        // A message that is begun may lie in the buffer; those before it are written, or small.
        self.in_flight = held;
        ControlFlow::Continue(())
    }

    async fn flush(&mut self) -> ControlFlow<End> {
        if !std::mem::take(&mut self.unflushed) {
            return ControlFlow::Continue(());
        }
        let patience = Duration::from_millis(self.shared.config.timeouts.write_ms);
        within(patience, self.socket.flush()).await?;
        self.in_flight.give_back();
        ControlFlow::Continue(())
    }

    /// Sets the timer when something is due before it fires. A timer set too early costs one look at the clock.
    fn arm(&self, timer: Pin<&mut Sleep>) {
        let due = self.next_due();
        if due < timer.deadline() {
            timer.reset(due);
        }
    }

    fn next_due(&self) -> Instant {
        let timeouts = &self.shared.config.timeouts;
        let ping = optional(timeouts.ping_ms).map(|silence| self.last_received.max(self.last_ping) + silence);
        let idle = optional(timeouts.idle_ms).map(|silence| self.last_received + silence);
        let whole = self.message_due();
        let dues = [ping, idle, whole, self.conversation.next_due()];
        // A message that begins to arrive sets no timer, so there has to be a look at it now and then.
        dues.into_iter().flatten().min().unwrap_or_else(|| Instant::now() + LOOK_INTERVAL)
    }

    /// When the message that is arriving has to be whole.
    fn message_due(&self) -> Option<Instant> {
        let patience = Duration::from_millis(self.shared.config.timeouts.body_ms);
        // While the server does not read, it is not the client who is slow.
        let since = self.socket.get_ref().arriving_since().filter(|_| self.conversation.may_read());
        since.map(|since| since + patience)
    }

    async fn tick(&mut self, timer: Pin<&mut Sleep>) -> ControlFlow<End> {
        let now = Instant::now();
        let timeouts = &self.shared.config.timeouts;
        if optional(timeouts.idle_ms).is_some_and(|silence| self.last_received + silence <= now)
            && self.conversation.is_idle()
        {
            return ControlFlow::Break(End::Closed(CloseCode::Normal, "idle for too long"));
        }
        if self.message_due().is_some_and(|due| due <= now) {
            return ControlFlow::Break(End::Closed(CloseCode::Policy, "the message took too long to arrive"));
        }
        if optional(timeouts.ping_ms).is_some_and(|silence| self.last_received.max(self.last_ping) + silence <= now) {
            self.last_ping = now;
            self.unflushed = true;
            let patience = Duration::from_millis(timeouts.write_ms);
            within(patience, self.socket.feed(Message::Ping(Default::default()))).await?;
        }
        self.conversation.tick(now);
        // Never in the past: an idle time that is over while requests run is looked at again a little later.
        timer.reset(self.next_due().max(now + Duration::from_millis(10)));
        ControlFlow::Continue(())
    }
}

async fn within(patience: Duration, writing: impl Future<Output = Result<(), Error>>) -> ControlFlow<End> {
    match timeout(patience, writing).await {
        Ok(Ok(())) => ControlFlow::Continue(()),
        Ok(Err(error)) => {
            tracing::debug!(%error, "connection lost");
            ControlFlow::Break(End::Gone)
        }
        Err(_) => {
            tracing::warn!(patience_ms = patience.as_millis() as u64, "the client does not take its answers");
            ControlFlow::Break(End::Gone)
        }
    }
}

/// Says goodbye and waits a moment for the client's answer.
///
/// After a message that was refused for its size, or for want of room, its rest is read and dropped: a socket closed with unread input makes
/// the system discard what was sent last, which is the answer.
async fn farewell(mut socket: WebSocketStream<Transport>, code: CloseCode, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let goodbye = async {
        socket.send(Message::Close(Some(frame))).await?;
        if matches!(code, CloseCode::Size | CloseCode::Again) {
            let mut buffer = [0; 4096];
            let mut read = 0;
            while let Ok(Ok(bytes @ 1..)) = timeout(LINGER_SILENCE, socket.get_mut().read(&mut buffer)).await {
                read += bytes;
                if read > LINGER_BYTES {
                    break;
                }
            }
        } else {
            while let Some(Ok(message)) = socket.next().await {
                if message.is_close() {
                    break;
                }
            }
        }
        Ok::<(), Error>(())
    };
    let _ = timeout(LINGER_TIME, goodbye).await;
}
