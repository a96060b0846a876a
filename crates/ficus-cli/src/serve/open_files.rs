//! How many files and connections the process may have open: raised as far as the system lets it, and shared so that connections never take the
//! files that the store needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Of the open files, those that are kept from connections: this part of all, at least so many and at most so many. The store has a handful open; a load
/// has its files beside them.
const KEPT_SHARE: u64 = 4;
const KEPT: std::ops::RangeInclusive<u64> = 32..=1024;

/// Asks the system for as many open files as it gives, and tells how many of `wanted` connections there may be.
pub fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    // Many systems begin with 1,024 for the sake of old programs, and let those who ask have more.
    let raised = Rlimit { current: limit.maximum, ..limit };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    files.map_or(wanted, |files| connections_within(files, wanted))
}

/// How many of `wanted` connections there may be where so many files may be open.
fn connections_within(files: u64, wanted: usize) -> usize {
    let kept = (files / KEPT_SHARE).clamp(*KEPT.start(), *KEPT.end());
    let left = files.saturating_sub(kept).max(1);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_store() {
        for (files, wanted, expected) in [
            (1_024, 10_000, 768),
            (100, 10_000, 68),
            (20, 10_000, 1),
            (11_024, 10_000, 10_000),
            (11_023, 10_000, 9_999),
            (1_024, 500, 500),
            (u64::MAX, 10_000, 10_000),
        ] {
            assert_eq!(connections_within(files, wanted), expected, "{files} files, {wanted} connections");
        }
    }
}
