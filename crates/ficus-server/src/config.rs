//! How a server is set up: plain data with documented defaults, read by whoever parses files and flags.
//!
//! Unknown keys are refused when it is deserialised. Times end in `_ms`, sizes in `_bytes`; 0 switches a limit on time
//! off where the field says so.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ficus_storage::machine_memory_bytes;
use serde::Deserialize;

/// Everything a server can be told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port to listen on, `host:port`. Default `127.0.0.1:8182`; port 0 takes a free one.
    pub listen: String,
    /// Listen beyond loopback although nobody has to authenticate. Default no: such a server is open to all the world.
    pub allow_unauthenticated: bool,
    /// Certificate and key; without them connections are not encrypted.
    pub tls: Option<TlsConfig>,
    /// Users that may connect; with none here and no file, nobody has to authenticate.
    pub users: Vec<UserConfig>,
    /// A file of further users, one `name:hash` a line, `#` begins a comment. Hashes as in [`UserConfig`].
    pub users_file: Option<PathBuf>,
    /// Names of users who may see the queries of others and end them.
    pub administrators: Vec<String>,
    /// Settings of tenants by name: of a user alone, or of several together. Users without any are tenants alone, of the default weight.
    pub tenants: BTreeMap<String, TenantConfig>,
    /// Origins of web pages that may talk to the server besides its own, such as `https://graphs.example`; `*` for all.
    pub allowed_origins: Vec<String>,
    /// Bounds on size and number.
    pub limits: LimitsConfig,
    /// Bounds on time.
    pub timeouts: TimeoutsConfig,
    /// Rows per response when a request does not say. Default 64, as drivers expect.
    pub batch_size: usize,
}

/// Where certificate and key are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM file with the server's certificate, followed by those that lead to a root.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

/// A user who may connect.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// The name.
    pub name: String,
    /// The password's hash, an Argon2 PHC string such as [`crate::hash_password`] makes.
    pub password_hash: String,
}

/// A tenant: for whom queries run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantConfig {
    /// What it is due of executors beside others that have work, from 1 to 10,000. Default 100.
    pub weight: i64,
    /// The users who are this tenant together; with none the tenant is the user of its name.
    pub users: Vec<String>,
}

impl Default for TenantConfig {
    fn default() -> TenantConfig {
        TenantConfig { weight: ficus_dataflow::Weight::default().get().into(), users: Vec::new() }
    }
}

/// Bounds on size and number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Connections at a time. Default 10,000; one that is idle costs some 20 KiB.
    pub connections: usize,
    /// Bytes of a request, as a WebSocket message or an HTTP body. Default 10 MiB, the most that drivers send.
    pub message_bytes: usize,
    /// Values inside values in a request. Default 128, at most 256.
    pub nesting: usize,
    /// Values in a request, members of collections included. Default 4 million.
    pub values: usize,
    /// Bindings of a request. Default 64.
    pub bindings: usize,
    /// Most rows per response that a request may ask for. Default 100,000.
    pub batch_size: usize,
    /// Requests of a WebSocket that wait for their answers. Default 1,024; more are answered 429.
    pub pipelined_requests: usize,
    /// Bytes of waiting requests of a WebSocket; beyond, the server stops reading from it. Default 32 MiB.
    pub pipelined_bytes: usize,
    /// Memory for the requests of all connections that arrive, wait or run, beside 64 KiB that each connection has in any case.
    /// Default 0: one part in 16 of the memory of the machine or of the container, and at least 16 messages of the largest size.
    pub requests_bytes: usize,
    /// Requests of one WebSocket that run at a time; answers keep the order of the requests. Default 16.
    pub running_per_connection: usize,
    /// Requests of all connections that run at a time. Default 4,096; more are answered 429.
    pub running: usize,
    /// Open sessions of all connections. Default 4,096.
    pub sessions: usize,
    /// Rows of one HTTP response, which is held in memory whole. Default 1 million.
    pub http_rows: usize,
    /// Bytes of one HTTP response, and of the rows that are gathered for it. Default 256 MiB.
    pub http_response_bytes: usize,
    /// Bytes of one response over a WebSocket, of which a request may have many. Default 256 MiB.
    pub response_bytes: usize,
    /// Headers of an HTTP request. Default 64.
    pub headers: usize,
}

/// Bounds on time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutsConfig {
    /// Time a request may run when it does not say. Default 30 s; 0 for the cap.
    pub evaluation_ms: u64,
    /// The most a request can ask for. Default 10 min; 0 for no cap.
    pub evaluation_cap_ms: u64,
    /// Time for a TLS handshake or the headers of an HTTP request, and for which an idle HTTP connection is kept. Default
    /// 30 s.
    pub header_ms: u64,
    /// Time for the body of an HTTP request, or a WebSocket message, to arrive. Default 60 s; looked at once a minute for
    /// messages.
    pub body_ms: u64,
    /// Time in which a client must take what was written for it, or a mebibyte of an answer over HTTP that has more. Default 60 s.
    pub write_ms: u64,
    /// Time from the authentication challenge to its answer. Default 10 s.
    pub authentication_ms: u64,
    /// Silence after which the server pings a WebSocket. Default 60 s; 0 never.
    pub ping_ms: u64,
    /// Silence, pongs included, after which a WebSocket is closed. Default 0, never: some drivers answer pings only while
    /// they wait for a result, and the system notices dead peers when a ping cannot be delivered.
    pub idle_ms: u64,
    /// Time without a request after which a session's transaction is rolled back. Default 10 min; 0 never.
    pub session_idle_ms: u64,
    /// Time after its begin when a session's transaction is rolled back, however busy. Default 30 min; 0 never.
    pub transaction_ms: u64,
    /// Time that running requests and open transactions get when the server shuts down. Default 30 s.
    pub drain_ms: u64,
    /// Requests that take longer are logged as slow. Default 10 s; 0 never.
    pub slow_request_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            listen: "127.0.0.1:8182".into(),
            allow_unauthenticated: false,
            tls: None,
            users: Vec::new(),
            users_file: None,
            administrators: Vec::new(),
            tenants: BTreeMap::new(),
            allowed_origins: Vec::new(),
            limits: LimitsConfig::default(),
            timeouts: TimeoutsConfig::default(),
            batch_size: 64,
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> LimitsConfig {
        LimitsConfig {
            connections: 10_000,
            message_bytes: 10 << 20,
            nesting: 128,
            values: 4_000_000,
            bindings: 64,
            batch_size: 100_000,
            pipelined_requests: 1024,
            pipelined_bytes: 32 << 20,
            requests_bytes: 0,
            running_per_connection: 16,
            running: 4096,
            sessions: 4096,
            http_rows: 1_000_000,
            http_response_bytes: 256 << 20,
            response_bytes: 256 << 20,
            headers: 64,
        }
    }
}

impl Default for TimeoutsConfig {
    fn default() -> TimeoutsConfig {
        TimeoutsConfig {
            evaluation_ms: 30_000,
            evaluation_cap_ms: 600_000,
            header_ms: 30_000,
            body_ms: 60_000,
            write_ms: 60_000,
            authentication_ms: 10_000,
            ping_ms: 60_000,
            idle_ms: 0,
            session_idle_ms: 600_000,
            transaction_ms: 1_800_000,
            drain_ms: 30_000,
            slow_request_ms: 10_000,
        }
    }
}

impl TimeoutsConfig {
    /// The time a request may run that asks for `asked` milliseconds; `None` for no bound.
    pub fn evaluation(&self, asked: Option<u64>) -> Option<Duration> {
        let wanted = asked.unwrap_or(self.evaluation_ms);
        match (wanted, self.evaluation_cap_ms) {
            (0, 0) => None,
            (0, cap) => Some(Duration::from_millis(cap)),
            (wanted, 0) => Some(Duration::from_millis(wanted)),
            (wanted, cap) => Some(Duration::from_millis(wanted.min(cap))),
        }
    }

    /// The cap on the time of a request.
    pub fn evaluation_cap(&self) -> Option<Duration> {
        optional(self.evaluation_cap_ms)
    }
}

/// One part in so many of the machine's memory is for requests.
const REQUESTS_PART: usize = 16;

/// The largest messages for which there has to be room.
const LARGEST_MESSAGES: usize = 16;

impl LimitsConfig {
    /// Memory for the requests of all connections.
    pub(crate) fn requests_bytes(&self) -> usize {
        let least = self.message_bytes.saturating_mul(LARGEST_MESSAGES);
        match self.requests_bytes {
            0 => machine_memory_bytes().map_or(usize::MAX, |bytes| (bytes / REQUESTS_PART).max(least)),
            bytes => bytes,
        }
    }
}

/// `None` for 0, which switches a limit off.
pub(crate) fn optional(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

impl ServerConfig {
    /// Refuses settings that cannot work together; called by [`crate::bind`].
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("limits.connections", self.limits.connections),
            ("limits.message_bytes", self.limits.message_bytes),
            ("limits.nesting", self.limits.nesting),
            ("limits.values", self.limits.values),
            ("limits.batch_size", self.limits.batch_size),
            ("limits.pipelined_requests", self.limits.pipelined_requests),
            ("limits.pipelined_bytes", self.limits.pipelined_bytes),
            ("limits.running_per_connection", self.limits.running_per_connection),
            ("limits.running", self.limits.running),
            ("limits.headers", self.limits.headers),
            ("batch_size", self.batch_size),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("`{name}` is 0; it must be at least 1"));
        }
        if self.batch_size > self.limits.batch_size {
            let (size, limit) = (self.batch_size, self.limits.batch_size);
            return Err(format!("`batch_size` is {size}, more than `limits.batch_size` ({limit}) allows"));
        }
        let limits = &self.limits;
        if limits.requests_bytes > 0 && limits.requests_bytes < limits.message_bytes.saturating_mul(LARGEST_MESSAGES) {
            let (bytes, message) = (limits.requests_bytes, limits.message_bytes);
            return Err(format!(
                "`limits.requests_bytes` is {bytes}; there has to be room for {LARGEST_MESSAGES} messages of \
                 `limits.message_bytes` ({message})"
            ));
        }
        // Decoders follow this deep on the stack, and encoders do not follow deeper.
        if self.limits.nesting > 256 {
            return Err(format!("`limits.nesting` is {}; it can be 256 at most", self.limits.nesting));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_sound_and_empty_input_means_defaults() {
        assert_eq!(ServerConfig::default().check(), Ok(()));
        let read: ServerConfig = serde_json::from_str("{}").expect("all fields have defaults");
        assert_eq!(read, ServerConfig::default());
    }

    #[test]
    fn unknown_keys_are_refused() {
        for text in [r#"{"listem": "x"}"#, r#"{"limits": {"conections": 1}}"#, r#"{"timeouts": {"drain": 1}}"#] {
            let error = serde_json::from_str::<ServerConfig>(text).expect_err(text).to_string();
            assert!(error.contains("unknown field"), "{text}: {error}");
        }
    }

    #[test]
    fn evaluation_time_is_capped() {
        let check = |default, cap, asked, expected: Option<u64>| {
            let timeouts =
                TimeoutsConfig { evaluation_ms: default, evaluation_cap_ms: cap, ..TimeoutsConfig::default() };
            assert_eq!(timeouts.evaluation(asked), expected.map(Duration::from_millis), "{default} {cap} {asked:?}");
        };
        check(30, 100, None, Some(30));
        check(30, 100, Some(50), Some(50));
        check(30, 100, Some(500), Some(100));
        check(30, 100, Some(0), Some(100));
        check(0, 100, None, Some(100));
        check(30, 0, Some(0), None);
        check(30, 0, Some(5000), Some(5000));
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        let mut config = ServerConfig { batch_size: 0, ..ServerConfig::default() };
        assert!(config.check().is_err_and(|message| message.contains("`batch_size`")));
        config.batch_size = 200_000;
        assert!(config.check().is_err_and(|message| message.contains("limits.batch_size")));
    }
}
