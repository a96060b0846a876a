//! How far the archive is, as metrics.

use std::fmt::Write;

use ficus_storage::ArchiveStatus;

/// Appends the figures of an archive in the Prometheus text format.
pub(super) fn write(status: &ArchiveStatus, out: &mut String) {
    // Nothing known is worse than any age that an alarm could be set to.
    let age = status.age.map_or("+Inf".to_owned(), |age| age.as_secs_f64().to_string());
    let figures = [
        ("ficus_archive_commit", "gauge", "The newest commit that the archive has.", status.commit.0.to_string()),
        ("ficus_archive_age_seconds", "gauge", "All that was committed longer ago is in the archive.", age),
        (
            "ficus_archive_failures_total",
            "counter",
            "Attempts to bring something into the archive that failed.",
            status.failures.to_string(),
        ),
    ];
    for (name, kind, help, value) in figures {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_archive_of_which_nothing_is_known_is_infinitely_old() {
        let mut status = ArchiveStatus::default();
        let mut text = String::new();
        write(&status, &mut text);
        assert!(
            text.ends_with("ficus_archive_failures_total 0\n") && text.contains("\nficus_archive_age_seconds +Inf\n")
        );
        status.age = Some(Duration::from_millis(1500));
        write(&status, &mut text);
        assert!(text.contains("\nficus_archive_age_seconds 1.5\n"), "{text}");
    }
}
