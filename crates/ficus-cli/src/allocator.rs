//! When the allocator gives freed memory back to the system, and in which pages the first of it lies.
//!
//! **Giving back.** By itself it keeps freed memory for a second, and then whichever thread asks it for memory next gives all of it back, within that
//! call. A large query that has ended so costs a small one that comes after it up to 30 ms: the time in which the system takes 256 MiB apart. And as
//! each executor has places of its own in the allocator, two large queries, one after the other on different executors, take the memory of both for this
//! second.
//!
//! Here a thread of its own gives it back, of low priority: at once when a query that held much is gone, and otherwise when a second has brought the
//! process much more memory than it had. What small queries have freed stays for those that come after them. The allocator is told to wait for much
//! longer, and so no other thread ever finds that it is its turn.
//!
//! **Large pages.** What a query touches after a rest lies in a thousand pages of 4 KiB that the processor and the machine under it have forgotten where
//! to find: 0.5 us each after 30 ms, more than 10 us after a second (`docs/benchmarks/store.md`). So the first 64 MiB are a place that is asked for in
//! pages of 2 MiB and never given back: the server's own structures and the rows of all small queries lie there. More memory than that comes in small
//! pages: to clear large ones all the time, for each of many threads, costs more than it gives.
//!
//! The second module with unsafe code: what the allocator is to do now, and with which memory, can be said in its own language only. And it reads its
//! options from the environment before `main` begins, so a verb that runs queries sets the options, unless its user has, and begins once more: the same
//! process, the same arguments. A user who sets the first has the allocator as it is by itself.
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// After how many milliseconds a thread that asks for memory gives back what is free.
const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// So late that the thread here was there before.
const NEVER: &str = "60000";

/// Set to 1, it takes memory from the system piece by piece, and reserves no place for many pieces; until [`begin_places`].
#[cfg(target_os = "linux")]
const NO_PLACES: &str = "MIMALLOC_DISALLOW_ARENA_ALLOC";

/// The number of this option in the allocator's table; `tests/large_pages.rs` notices when it is another one.
#[cfg(target_os = "linux")]
const NO_PLACES_OPTION: libmimalloc_sys::mi_option_t = 26;

/// Bytes of a large page.
#[cfg(target_os = "linux")]
pub const LARGE_PAGE: usize = 2 << 20;

/// What lies in large pages.
#[cfg(target_os = "linux")]
const LARGE_BYTES: usize = 64 << 20;

/// What a query has held that is given back at once.
const MUCH_BYTES: usize = 32 << 20;

/// How often the thread looks otherwise whether much has come.
const LOOK: Duration = Duration::from_secs(1);

/// How much more than before the process may have then without giving back.
const MORE_BYTES: usize = 16 << 20;

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
                    again.arg0(own_name.unwrap_or(own.into())).args(arguments);
                    again.env(PURGE_DELAY, NEVER).env(NO_PLACES, "1").exec()
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

/// From now on the allocator has places of many pieces, the first in large pages if they are wanted. Once, before much is allocated.
#[cfg(target_os = "linux")]
pub fn begin_places(large: bool) {
    static BEGUN: std::sync::Once = std::sync::Once::new();
    BEGUN.call_once(|| {
        // SAFETY: a number of its table is read; one that it does not have yields 0.
        let waits = unsafe { libmimalloc_sys::mi_option_get(NO_PLACES_OPTION) } == 1;
        if waits && std::env::var_os(PURGE_DELAY).is_some_and(|delay| delay == NEVER) {
            if large && let Err(error) = begin_large_place() {
                tracing::debug!(%error, "memory stays in small pages");
            }
            // SAFETY: a flag of its table is set, which other threads read at any time.
            unsafe { libmimalloc_sys::mi_option_set(NO_PLACES_OPTION, 0) };
        }
    });
}

/// Elsewhere it has had them all the time.
#[cfg(not(target_os = "linux"))]
pub fn begin_places(_large: bool) {}

/// Gives the allocator a place in large pages, which comes before all others.
#[cfg(target_os = "linux")]
fn begin_large_place() -> std::io::Result<()> {
    const ANYWHERE: i32 = -1;

    let memory = large_memory(LARGE_BYTES)?;
    let (is_committed, is_never_given_back, is_zero, is_exclusive) = (true, true, true, false);
    // SAFETY: the memory is new, all of it is zero, nobody but the allocator is told of it, and it is never unmapped.
    let is_taken = unsafe {
        libmimalloc_sys::mi_manage_os_memory_ex(
            memory,
            LARGE_BYTES,
            is_committed,
            is_never_given_back,
            is_zero,
            ANYWHERE,
            is_exclusive,
            std::ptr::null_mut(),
        )
    };
    if is_taken { Ok(()) } else { Err(std::io::Error::other("the allocator refuses the memory")) }
}

/// New memory of the system that begins with a large page and for which large pages are asked, some whole ones; nobody else knows of it.
#[cfg(target_os = "linux")]
pub fn large_memory(length: usize) -> std::io::Result<*mut std::ffi::c_void> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: memory at an address of the system's choice. What is unmapped, and what is advised, are parts of it: `before` is less than a large
    // page, and what lies behind `length` is the rest of one.
    unsafe {
        let memory = mmap_anonymous(std::ptr::null_mut(), length + LARGE_PAGE, rights, MapFlags::PRIVATE)?;
        let before = memory.addr().next_multiple_of(LARGE_PAGE) - memory.addr();
        let aligned = memory.wrapping_byte_add(before);
        if before > 0 {
            munmap(memory, before)?;
        }
        munmap(aligned.wrapping_byte_add(length), LARGE_PAGE - before)?;
        madvise(aligned, length, Advice::LinuxHugepage)?;
        Ok(aligned)
    }
}

/// Memory of this process that is there, without what it has mapped of files; where that is known.
fn resident_bytes() -> Option<usize> {
    const PAGE: usize = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = pages.split_ascii_whitespace().skip(1).map_while(|pages| pages.parse::<usize>().ok());
    let (all, of_files) = (pages.next()?, pages.next()?);
    Some(all.saturating_sub(of_files) * PAGE)
}

/// Gives back what is free, as long as the process runs.
fn give_back() {
    if cfg!(target_os = "linux") {
        // Where this is refused queries are slower beside it, and right.
        let _ = rustix::process::nice(NICENESS);
    }
    let mut resident_before = 0;
    loop {
        let began = Instant::now();
        std::thread::park_timeout(LOOK);
        let is_asked = began.elapsed() < LOOK;
        if !is_asked
            && let Some(resident) = resident_bytes()
            && resident < resident_before + MORE_BYTES
        {
            resident_before = resident_before.min(resident);
            continue;
        }
        // SAFETY: any thread may call this at any time. It looks through what this thread has allocated, which is nothing, and gives back to the
        // system what no allocation of any thread uses.
        unsafe { libmimalloc_sys::mi_collect(true) };
        resident_before = resident_bytes().unwrap_or(0);
    }
}
