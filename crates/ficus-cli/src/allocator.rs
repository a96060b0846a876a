//! When the allocator gives freed memory back to the system.
//!
//! By itself it keeps it for a second. Each executor has places of its own in it, so that for this second two large queries, one after the other on
//! different executors, take the memory of both. A tenth of a second bounds that, and is long enough for small queries to find what the one before
//! them has freed.
//!
//! The allocator reads its options from the environment before `main` begins, and has no other way that is not `unsafe`. So a verb that runs queries
//! sets the option, unless its user has, and begins once more: the same process, the same arguments.

/// The option, in milliseconds.
const PURGE_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "100");

/// Begins the process once more, unless the option is set. If that fails, everything goes on with more memory.
#[cfg(target_os = "linux")]
pub fn set_options() {
    use std::os::unix::process::CommandExt;

    let (name, value) = PURGE_DELAY;
    if std::env::var_os(name).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let own_name = arguments.next();
    let error = match std::env::current_exe() {
        Ok(own) => {
            let mut again = std::process::Command::new(&own);
            again.arg0(own_name.unwrap_or(own.into())).args(arguments).env(name, value).exec()
        }
        Err(error) => error,
    };
    let effect = "freed memory goes back to the system later";
    crate::output::talk(&format!("ficus: {name}={value} could not be set ({error}); {effect}"));
}

/// Elsewhere a process cannot begin once more: it is as its user has set it.
#[cfg(not(target_os = "linux"))]
pub fn set_options() {}
