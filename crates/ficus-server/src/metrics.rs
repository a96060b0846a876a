//! Counters of the server, written in the Prometheus text format.
//!
//! Names are stable. Everything is a relaxed atomic: a scrape sees each counter, not a moment.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    WebSocket,
    Http,
}

/// Operations as metrics name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Eval,
    Bytecode,
    Transaction,
    Close,
    Authentication,
    /// Refused before it was known what it is.
    Unknown,
}

const CHANNELS: [(Channel, &str); 2] = [(Channel::WebSocket, "websocket"), (Channel::Http, "http")];

const OPERATIONS: [(OperationKind, &str); 6] = [
    (OperationKind::Eval, "eval"),
    (OperationKind::Bytecode, "bytecode"),
    (OperationKind::Transaction, "transaction"),
    (OperationKind::Close, "close"),
    (OperationKind::Authentication, "authentication"),
    (OperationKind::Unknown, "unknown"),
];

/// Statuses that are counted apart; anything else counts as the last.
const STATUSES: [u16; 15] = [200, 204, 401, 403, 407, 429, 498, 499, 500, 595, 596, 597, 598, 599, 0];

/// Upper bounds of the latency buckets in microseconds; one more bucket takes the rest.
const BUCKETS_US: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000,
    30_000_000,
];

#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// Counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Open connections by channel.
    connections: [AtomicI64; CHANNELS.len()],
    /// Connections ever accepted.
    pub connections_accepted: AtomicU64,
    /// Connections refused, over a limit or without TLS.
    pub connections_refused: AtomicU64,
    /// Answers by operation and status.
    requests: [[AtomicU64; STATUSES.len()]; OPERATIONS.len()],
    /// Latencies by operation.
    latencies: [Histogram; OPERATIONS.len()],
    /// Bytes read from clients, TLS removed.
    pub bytes_received: AtomicU64,
    /// Bytes written to clients, before TLS.
    pub bytes_sent: AtomicU64,
    /// Rows sent.
    pub rows_sent: AtomicU64,
    /// Requests that run.
    pub running: AtomicI64,
    /// Requests that wait on their connection for their turn.
    pub waiting: AtomicI64,
    /// Open sessions.
    pub sessions: AtomicI64,
    /// Queries cancelled because their client went away.
    pub abandoned: AtomicU64,
    /// Panics that were caught.
    pub panics: AtomicU64,
}

impl Metrics {
    /// A connection of this channel opened (1) or closed (-1).
    pub fn connection(&self, channel: Channel, change: i64) {
        self.connections[channel as usize].fetch_add(change, Ordering::Relaxed);
    }

    /// A request was answered for good.
    pub fn answered(&self, operation: OperationKind, status: u16, elapsed: Duration) {
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        self.requests[operation as usize][status].fetch_add(1, Ordering::Relaxed);
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let histogram = &self.latencies[operation as usize];
        let bucket = BUCKETS_US.partition_point(|bound| *bound < elapsed_us);
        histogram.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        histogram.sum_us.fetch_add(elapsed_us, Ordering::Relaxed);
    }

    /// All counters in the Prometheus text format.
    pub fn write(&self, out: &mut String) {
        family(out, "ficus_connections", "gauge", "Open connections.");
        for (channel, name) in CHANNELS {
            let value = self.connections[channel as usize].load(Ordering::Relaxed);
            line(out, "ficus_connections", &format!("channel=\"{name}\""), value);
        }
        let counters = [
            ("ficus_connections_accepted_total", "Connections accepted.", &self.connections_accepted),
            ("ficus_connections_refused_total", "Connections refused.", &self.connections_refused),
            ("ficus_received_bytes_total", "Bytes received, TLS removed.", &self.bytes_received),
            ("ficus_sent_bytes_total", "Bytes sent, before TLS.", &self.bytes_sent),
            ("ficus_rows_sent_total", "Result rows sent.", &self.rows_sent),
            ("ficus_requests_abandoned_total", "Requests cancelled because the client went away.", &self.abandoned),
            ("ficus_panics_total", "Panics caught; each is a bug.", &self.panics),
        ];
        for (name, help, counter) in counters {
            family(out, name, "counter", help);
            line(out, name, "", counter.load(Ordering::Relaxed));
        }
        let gauges = [
            ("ficus_requests_running", "Requests that run.", &self.running),
            ("ficus_requests_waiting", "Requests that wait for their turn.", &self.waiting),
            ("ficus_sessions", "Open sessions.", &self.sessions),
        ];
        for (name, help, gauge) in gauges {
            family(out, name, "gauge", help);
            line(out, name, "", gauge.load(Ordering::Relaxed));
        }
        self.write_requests(out);
        self.write_latencies(out);
    }

    fn write_requests(&self, out: &mut String) {
        family(out, "ficus_requests_total", "counter", "Requests answered, by operation and status.");
        for (operation, name) in OPERATIONS {
            for (status, counter) in STATUSES.iter().zip(&self.requests[operation as usize]) {
                let count = counter.load(Ordering::Relaxed);
                if count > 0 {
                    let status = if *status == 0 { "other".to_owned() } else { status.to_string() };
                    line(out, "ficus_requests_total", &format!("op=\"{name}\",status=\"{status}\""), count);
                }
            }
        }
    }

    fn write_latencies(&self, out: &mut String) {
        const NAME: &str = "ficus_request_seconds";
        family(out, NAME, "histogram", "Time from a request's last byte to its last answer.");
        for (operation, name) in OPERATIONS {
            let histogram = &self.latencies[operation as usize];
            let mut total = 0;
            for (index, bucket) in histogram.buckets.iter().enumerate() {
                total += bucket.load(Ordering::Relaxed);
                let bound = BUCKETS_US.get(index).map_or("+Inf".to_owned(), |us| (*us as f64 / 1e6).to_string());
                line(out, "ficus_request_seconds_bucket", &format!("op=\"{name}\",le=\"{bound}\""), total);
            }
            let sum = histogram.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
            line(out, "ficus_request_seconds_sum", &format!("op=\"{name}\""), sum);
            line(out, "ficus_request_seconds_count", &format!("op=\"{name}\""), total);
        }
    }
}

/// Counts something up for as long as it lives.
#[derive(Debug)]
pub(crate) struct Gauge<F: Fn(&Metrics) -> &AtomicI64> {
    metrics: std::sync::Arc<Metrics>,
    select: F,
}

impl<F: Fn(&Metrics) -> &AtomicI64> Gauge<F> {
    pub fn new(metrics: std::sync::Arc<Metrics>, select: F) -> Gauge<F> {
        select(&metrics).fetch_add(1, Ordering::Relaxed);
        Gauge { metrics, select }
    }
}

impl<F: Fn(&Metrics) -> &AtomicI64> Drop for Gauge<F> {
    fn drop(&mut self) {
        (self.select)(&self.metrics).fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

pub(crate) fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = match labels {
        "" => writeln!(out, "{name} {value}"),
        labels => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_match_declarations() {
        assert!(CHANNELS.iter().enumerate().all(|(index, (channel, _))| *channel as usize == index));
        assert!(OPERATIONS.iter().enumerate().all(|(index, (operation, _))| *operation as usize == index));
    }

    #[test]
    fn buckets_are_cumulative_and_statuses_labelled() {
        let metrics = Metrics::default();
        for (status, us) in [(200, 50), (200, 51), (598, 40_000_000), (777, 10)] {
            metrics.answered(OperationKind::Eval, status, Duration::from_micros(us));
        }
        let mut text = String::new();
        metrics.write(&mut text);
        for expected in [
            "ficus_requests_total{op=\"eval\",status=\"200\"} 2\n",
            "ficus_requests_total{op=\"eval\",status=\"598\"} 1\n",
            "ficus_requests_total{op=\"eval\",status=\"other\"} 1\n",
            "ficus_request_seconds_bucket{op=\"eval\",le=\"0.00005\"} 2\n",
            "ficus_request_seconds_bucket{op=\"eval\",le=\"0.0001\"} 3\n",
            "ficus_request_seconds_bucket{op=\"eval\",le=\"+Inf\"} 4\n",
            "ficus_request_seconds_count{op=\"eval\"} 4\n",
        ] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
    }
}
