//! What the operating system is told of the threads of executors.

#[cfg(target_os = "linux")]
mod system {
    use rustix::process::{Pid, setpriority_process};
    use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

    /// Of a turn that lasts although others wait: beside an executor it gets about a tenth of a core.
    const STEPPED_BACK: i32 = 10;

    /// The calling thread is an executor; says by what the system knows it.
    pub fn begin(_executor: usize) -> u64 {
        u64::from(gettid().as_raw_nonzero().get().unsigned_abs())
    }

    /// As [`begin`]; keeps the thread on a core of its own if the process may use so many. Otherwise the operating system wakes an executor that is to
    /// help on the core of the one that asks, where it cannot.
    pub fn begin_pinned(executor: usize) -> u64 {
        if let Ok(allowed) = sched_getaffinity(None)
            && let Some(core) = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).nth(executor)
        {
            let mut own = CpuSet::new();
            own.set(core);
            // Where that is not allowed, executors go where they are put.
            let _ = sched_setaffinity(None, &own);
        }
        begin(executor)
    }

    /// The thread is no executor any more and ends with its turn: it makes room for the one that took its place, and may go where there is some.
    pub fn step_back(thread: u64) {
        let Some(thread) = i32::try_from(thread).ok().and_then(Pid::from_raw) else { return };
        // Where that is not allowed, both share the core.
        let _ = setpriority_process(Some(thread), STEPPED_BACK);
        // The caller looks after executors, and is none that is kept on a core.
        if let Ok(allowed) = sched_getaffinity(None) {
            let _ = sched_setaffinity(Some(thread), &allowed);
        }
    }
}

/// Other systems place threads themselves.
#[cfg(not(target_os = "linux"))]
mod system {
    pub fn begin(_executor: usize) -> u64 {
        0
    }

    pub fn begin_pinned(executor: usize) -> u64 {
        begin(executor)
    }

    pub fn step_back(_thread: u64) {}
}

pub use system::{begin, begin_pinned, step_back};
