//! The life of a server: bind, accept, drain.
//!
//! ```text
//! bind ─► serving ──shutdown──► draining ──all done, or too late──► stopping ─► gone
//! ```
//!
//! While draining nothing new is accepted, `/health/ready` says no on connections that are still open, running requests
//! finish, sessions may bring open transactions to their end, and every connection is closed as soon as it has nothing
//! left. What is still there after the drain time is answered 596 and ended.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::Instrument;

use crate::authentication::Users;
use crate::backend::Backend;
use crate::catalogue;
use crate::config::ServerConfig;
use crate::http::{HttpConnection, respond};
use crate::inflow::Inflow;
use crate::metrics::{Channel, Metrics};
use crate::session::{Identifiers, SessionRegistry};
use crate::shared::{Phase, Shared};
use crate::strangers::Permit;
use crate::tenants::Tenants;
use crate::tls;
use crate::transport::Transport;

/// Connections the system keeps ready for us to accept.
const BACKLOG: u32 = 1024;

/// Time for connections to say goodbye once they are told to stop.
const STOP_TIME: Duration = Duration::from_secs(5);

/// Time in which a request that was sent before its client could know that the server stops is still answered, where none is running.
const LAST_CALL: Duration = Duration::from_millis(250);

/// Time for the rest of a first request when the server stops: that of a client who is there, and not of one that has sent half of it and waits.
const FIRST_HEAD: Duration = Duration::from_secs(1);

/// Pause after a failed accept, which mostly means that there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of the head of an HTTP request, its query included.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Why a server does not come up.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration cannot work; the text says which setting and why.
    Config(String),
    /// The address is none, or its name is not known.
    Address {
        /// The address as configured.
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// The address cannot be listened on.
    Listen {
        /// The address as configured.
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// Others than this machine could connect, and nobody would have to authenticate.
    Open {
        /// The address as configured.
        address: String,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Config(message) => write!(f, "the server's configuration cannot work: {message}"),
            ServeError::Address { address, error } => {
                write!(f, "cannot listen on {address}: {error}; an address to listen on looks like 127.0.0.1:8182")
            }
            ServeError::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            ServeError::Open { address } => write!(
                f,
                "refusing to listen on {address} without authentication: anyone who reaches it could read and change \
                 all data; configure users, listen on 127.0.0.1, or set allow_unauthenticated"
            ),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ServeError::Address { error, .. } | ServeError::Listen { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl ServeError {
    /// Whether only other settings help: to try again is of no use.
    pub fn is_of_settings(&self) -> bool {
        match self {
            ServeError::Config(_) | ServeError::Open { .. } | ServeError::Address { .. } => true,
            // An address of another machine.
            ServeError::Listen { error, .. } => error.kind() == io::ErrorKind::AddrNotAvailable,
        }
    }
}

/// A server that listens and does not answer yet.
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    phase: watch::Sender<Phase>,
}

impl fmt::Debug for BoundServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An address that is ours, at which nobody is answered yet: clients are refused as long as there is no server.
///
/// A server that takes long to have its data ready takes its address first, so that it is told at once if another has it.
pub struct TakenAddress {
    config: ServerConfig,
    users: Option<Arc<Users>>,
    tls: Option<TlsAcceptor>,
    socket: TcpSocket,
}

impl fmt::Debug for TakenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakenAddress").field("listen", &self.config.listen).finish_non_exhaustive()
    }
}

/// Checks the configuration and listens. Has to be called within a tokio runtime with I/O and time.
pub async fn bind(config: ServerConfig, backend: Arc<dyn Backend>) -> Result<BoundServer, ServeError> {
    take_address(config).await?.listen(backend)
}

/// Checks the configuration and takes the address. Has to be called within a tokio runtime with I/O and time.
pub async fn take_address(config: ServerConfig) -> Result<TakenAddress, ServeError> {
    config.check().map_err(ServeError::Config)?;
    let users = Users::from_config(&config).map_err(ServeError::Config)?;
    let tls = config.tls.as_ref().map(tls::acceptor).transpose().map_err(ServeError::Config)?;
    let address_error = |error| ServeError::Address { address: config.listen.clone(), error };
    let addresses: Vec<_> = tokio::net::lookup_host(&config.listen).await.map_err(address_error)?.collect();
    if addresses.is_empty() {
        return Err(address_error(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    let mut failure = None;
    let mut bound = None;
    for address in addresses {
        if users.is_none() && !config.allow_unauthenticated && !is_loopback(address.ip()) {
            return Err(ServeError::Open { address: config.listen });
        }
        match take(address) {
            Ok(socket) => {
                bound = Some(socket);
                break;
            }
            Err(error) => failure = Some(error),
        }
    }
    let Some(socket) = bound else {
        let error = failure.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into());
        return Err(ServeError::Listen { address: config.listen, error });
    };
    Ok(TakenAddress { config, users, tls, socket })
}

impl TakenAddress {
    /// Listens there. Has to be called within a tokio runtime with I/O and time.
    pub fn listen(self, backend: Arc<dyn Backend>) -> Result<BoundServer, ServeError> {
        let TakenAddress { config, users, tls, socket } = self;
        let listen_error = |error| ServeError::Listen { address: config.listen.clone(), error };
        let listener = socket.listen(BACKLOG).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(bound_server(config, users, tls, listener, address, backend))
    }
}

fn bound_server(
    config: ServerConfig,
    users: Option<Arc<Users>>,
    tls: Option<TlsAcceptor>,
    listener: TcpListener,
    address: SocketAddr,
    backend: Arc<dyn Backend>,
) -> BoundServer {
    let metrics = Arc::new(Metrics::default());
    let (phase, receiver) = watch::channel(Phase::Serving);
    let limits = &config.limits;
    let wire_limits = ficus_wire::Limits {
        nesting: limits.nesting,
        items: limits.values,
        bytes: limits.message_bytes,
        ..ficus_wire::Limits::default()
    };
    let without_users = Arc::new(Tenants::without_users());
    backend.set_tenants(users.as_ref().map_or(&without_users, |users| &users.tenants));
    let shared = Arc::new(Shared {
        wire_limits,
        inflow: Inflow::new(config.limits.requests_bytes(), users.is_some()),
        sessions: Arc::new(SessionRegistry::new(limits.sessions, metrics.clone())),
        strangers: Arc::default(),
        config,
        backend,
        metrics,
        users,
        anonymous: without_users.anonymous(),
        identifiers: Identifiers::new(),
        phase: receiver,
    });
    BoundServer { listener, address, shared, tls, phase }
}

/// Binds and serves until `shutdown` completes and the server has drained.
pub async fn serve(
    config: ServerConfig,
    backend: Arc<dyn Backend>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    bind(config, backend).await?.serve(shutdown).await;
    Ok(())
}

fn take(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart must not wait for the connections of the last run to fade.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl BoundServer {
    /// The address that is listened on, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes, then drains.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let BoundServer { listener, address, shared, tls, phase } = self;
        let authentication = shared.users.is_some();
        tracing::info!(%address, tls = tls.is_some(), authentication, "listening");
        let limit = shared.config.limits.connections.min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        let connections = Arc::new(Semaphore::new(limit));
        {
            let mut shutdown = pin!(shutdown);
            loop {
                tokio::select! {
                    biased;
                    () = &mut shutdown => break,
                    accepted = listener.accept() => match accepted {
                        Ok((stream, peer)) => admit(&shared, &tls, &connections, stream, peer),
                        Err(error) => {
                            tracing::warn!(%error, "a connection could not be accepted");
                            tokio::time::sleep(ACCEPT_PAUSE).await;
                        }
                    },
                }
            }
        }
        // Those that the system has taken for us would be reset with the listener; they are told that we are going.
        phase.send_replace(Phase::Draining);
        for (stream, peer) in last_ones(listener) {
            admit(&shared, &tls, &connections, stream, peer);
        }
        let open = limit - connections.available_permits();
        let drain_ms = shared.config.timeouts.drain_ms;
        tracing::info!(open, drain_ms, "draining");
        let all = u32::try_from(limit).expect("the limit was cut to 32 bits above");
        let drained = timeout(Duration::from_millis(drain_ms), connections.acquire_many(all)).await.is_ok();
        phase.send_replace(Phase::Stopping);
        if !drained {
            let open = limit - connections.available_permits();
            tracing::warn!(open, "the drain time is over; ending what is left");
            let _ = timeout(STOP_TIME, connections.acquire_many(all)).await;
        }
        tracing::info!(drained, "stopped");
    }
}

/// Those who wait for a listener at its end. It is asked itself, since what the runtime knows of it may be older than they are.
fn last_ones(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    let accept = || {
        let (stream, peer) = listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(stream).ok()?, peer))
    };
    std::iter::from_fn(accept).take(BACKLOG as usize).collect()
}

/// Gives a new connection a task, or the shortest answer there is.
fn admit(
    shared: &Arc<Shared>,
    tls: &Option<TlsAcceptor>,
    connections: &Arc<Semaphore>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let free = connections.clone().try_acquire_owned().ok().map(Arc::new);
    let Some(permit) = free.or_else(|| shared.strangers.send_away_oldest()) else {
        shared.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(%peer, limit = shared.config.limits.connections, "connection refused: too many are open");
        if tls.is_none() {
            let entry = catalogue::TOO_MANY_CONNECTIONS;
            let body = serde_json::json!({
                "message": entry.meaning, "code": entry.code, "status": entry.status, "retryable": entry.retryable,
            })
            .to_string();
            let answer = format!(
                "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            // Whether it fits into the socket's buffer or not: there is no more time for this client.
            let _ = stream.try_write(answer.as_bytes());
        }
        return;
    };
    shared.metrics.connections_accepted.fetch_add(1, Ordering::Relaxed);
    let (shared, tls) = (shared.clone(), tls.clone());
    tokio::spawn(async move {
        let metrics = shared.metrics.clone();
        let span = tracing::debug_span!("connection", %peer);
        let work = serve_connection(shared, tls, stream, peer, permit).instrument(span);
        let work = std::panic::AssertUnwindSafe(work);
        if work.catch_unwind().await.is_err() {
            metrics.panics.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%peer, "panic in a connection");
        }
    });
}

async fn serve_connection(
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    stream: TcpStream,
    peer: SocketAddr,
    permit: Permit,
) {
    let timeouts = &shared.config.timeouts;
    let header_time = Duration::from_millis(timeouts.header_ms);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "answers may be slow on this connection");
    }
    let metrics = shared.metrics.clone();
    let mut phase = shared.phase.clone();
    let mut stopping = phase.clone();
    let mut leaving = phase.clone();
    let drains = async {
        passed(&mut phase, Phase::Draining).await;
        tokio::time::sleep(LAST_CALL).await;
    };
    let leaves = async {
        passed(&mut leaving, Phase::Draining).await;
        tokio::time::sleep(FIRST_HEAD).await;
    };
    let stops = passed(&mut stopping, Phase::Stopping);
    let (mut drains, mut leaves, mut stops) = (pin!(drains.fuse()), pin!(leaves.fuse()), pin!(stops));
    let transport = match tls {
        None => Transport::plain(stream, metrics.clone()),
        Some(acceptor) => match tokio::select! {
            biased;
            met = timeout(header_time, acceptor.accept(stream)) => met,
            () = leaves.as_mut() => return,
        } {
            Ok(Ok(stream)) => Transport::encrypted(stream, metrics.clone()),
            failed => {
                let reason = failed.map_or("it took too long".into(), |result| match result {
                    Ok(_) => String::new(),
                    Err(error) => error.to_string(),
                });
                metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%peer, %reason, "TLS handshake failed");
                return;
            }
        },
    };
    let has_asked = Arc::new(AtomicBool::new(false));
    let host = format!("/{peer}").into();
    let connection = HttpConnection { shared: shared.clone(), host, permit, has_asked: has_asked.clone() };
    let service = service_fn(move |request| respond(connection.clone(), request));
    metrics.connection(Channel::Http, 1);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_headers(shared.config.limits.headers)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(transport.with_patience(Duration::from_millis(timeouts.write_ms))), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    let result = loop {
        tokio::select! {
            biased;
            result = serving.as_mut() => break result,
            // Answers that fail because of the stop are written in a moment, if the client takes them.
            () = stops.as_mut() => break timeout(STOP_TIME / 2, serving.as_mut()).await.unwrap_or(Ok(())),
            () = drains.as_mut() => serving.as_mut().graceful_shutdown(),
            () = leaves.as_mut() => if !has_asked.load(Ordering::Relaxed) {
                break Ok(());
            },
        }
    };
    metrics.connection(Channel::Http, -1);
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

/// Waits until the server has come to `awaited`.
async fn passed(phase: &mut watch::Receiver<Phase>, awaited: Phase) {
    // The sender only goes away with the server, which then has stopped.
    let _ = phase.wait_for(|phase| *phase >= awaited).await;
}
