//! When the allocator gives freed memory back to the system.
//!
//! By itself it keeps it for a second, and then whichever thread asks it for memory next gives all of it back, within that call. A large query that
//! has ended so costs a small one that comes after it up to 30 ms: the time in which the system takes 256 MiB apart. And as each executor has places
//! of its own in the allocator, two large queries, one after the other on different executors, take the memory of both for this second.
//!
//! Here a thread of its own gives it back, of low priority: at once when a query that held much is gone, and otherwise every second, so that smaller
//! ones find what the one before them has freed. The allocator is told to wait for much longer, and so no other thread ever finds that it is its turn.
//!
//! The second module with unsafe code: what the allocator is to do now can be said in its own language only. And it reads its options from the
//! environment before `main` begins, so a verb that runs queries sets the option, unless its user has, and begins once more: the same process, the
//! same arguments. A user who sets it has the allocator as it is by itself.
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::thread::Thread;
use std::time::Duration;

/// After how many milliseconds a thread that asks for memory gives back what is free.
const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// So late that the thread here was there before.
const NEVER: &str = "60000";

/// What a query has held that is given back at once.
const MUCH_BYTES: usize = 32 << 20;

/// How long freed memory is kept otherwise.
const KEPT: Duration = Duration::from_secs(1);

/// What the thread adds to its niceness: beside one busy thread of ordinary priority it gets a tenth of a core.
const NICENESS: i32 = 10;

/// The thread, if there is one.
static GIVES_BACK: OnceLock<Thread> = OnceLock::new();

/// Begins the process once more with the option, unless it is set; then begins the thread, unless it was set by the user. If any of that fails,
/// everything goes on with more memory.
#[cfg(target_os = "linux")]
pub fn set_up() {
    use std::os::unix::process::CommandExt;

    match std::env::var_os(PURGE_DELAY) {
        Some(delay) if delay == NEVER => begin(),
        Some(_) => {}
        None => {
            let mut arguments = std::env::args_os();
            let own_name = arguments.next();
            let error = match std::env::current_exe() {
                Ok(own) => {
                    let mut again = std::process::Command::new(&own);
                    again.arg0(own_name.unwrap_or(own.into())).args(arguments).env(PURGE_DELAY, NEVER).exec()
                }
                Err(error) => error,
            };
            let effect = "freed memory goes back to the system later";
            crate::output::talk(&format!("ficus: {PURGE_DELAY}={NEVER} could not be set ({error}); {effect}"));
        }
    }
}

/// Elsewhere a process cannot begin once more; what was freed in between is given back all the same.
#[cfg(not(target_os = "linux"))]
pub fn set_up() {
    if std::env::var_os(PURGE_DELAY).is_none() {
        begin();
    }
}

/// To be called when all is freed that a query held, with the most bytes that it was.
pub fn query_freed(bytes: usize) {
    if bytes >= MUCH_BYTES
        && let Some(thread) = GIVES_BACK.get()
    {
        thread.unpark();
    }
}

/// Begins the thread.
fn begin() {
    match std::thread::Builder::new().name("give-back".into()).spawn(give_back) {
        Ok(thread) => _ = GIVES_BACK.set(thread.thread().clone()),
        Err(error) => {
            let effect = "freed memory goes back to the system late";
            crate::output::talk(&format!("ficus: {effect}: there is no thread for it ({error})"));
        }
    }
}

/// Gives back what is free, as long as the process runs.
fn give_back() {
    if cfg!(target_os = "linux") {
        // Where this is refused queries are slower beside it, and right.
        let _ = rustix::process::nice(NICENESS);
    }
    loop {
        std::thread::park_timeout(KEPT);
        // SAFETY: any thread may call this at any time. It looks through what this thread has allocated, which is nothing, and gives back to the
        // system what no allocation of any thread uses.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}
