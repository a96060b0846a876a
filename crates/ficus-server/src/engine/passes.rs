//! Metrics of passes that answer k-hop queries of many users.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use ficus_analytics::Analytics;

/// Appends them in Prometheus' text format.
pub fn write(analytics: &Analytics, out: &mut String) {
    let counters = analytics.counters();
    let mut metric = |name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(out, "# HELP {name} {help}");
        let _ = writeln!(out, "# TYPE {name} {kind}");
        let _ = writeln!(out, "{name} {value}");
    };
    let passes = counters.passes.load(Relaxed);
    metric("ficus_khop_passes_total", "counter", "Passes that answered k-hop queries.", &passes);
    let questions = counters.questions.load(Relaxed);
    let help = "K-hop queries that were answered in passes; by passes: their width.";
    metric("ficus_khop_questions_total", "counter", help, &questions);
    let waited = counters.waited_ns.load(Relaxed) as f64 / 1e9;
    metric("ficus_khop_wait_seconds_total", "counter", "Time such queries waited for their pass, in sum.", &waited);
    let made = counters.projections.load(Relaxed);
    metric("ficus_projections_total", "counter", "Projections of graphs that were made from nothing.", &made);
    let versions = counters.versions.load(Relaxed);
    let help = "Versions of projections that were made for later states.";
    metric("ficus_projection_versions_total", "counter", help, &versions);
    metric("ficus_projection_bytes", "gauge", "Memory that projections hold.", &analytics.projection_bytes());
}
