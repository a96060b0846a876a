//! A thread that frees what ended queries held, so that executors do not: a million values are freed one by one.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Takes what is to be freed. Clones feed the same thread, which ends when the last of them is gone.
#[derive(Clone)]
pub(crate) struct Undertaker(Sender<Box<dyn Send>>);

impl Undertaker {
    /// Starts the thread.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start() -> std::io::Result<(Undertaker, JoinHandle<()>)> {
        let (sender, receiver) = channel::<Box<dyn Send>>();
        let thread = std::thread::Builder::new().name("undertaker".into()).spawn(move || {
            for remains in receiver {
                // A value whose drop panics is our bug; the hook has reported it, and others still have to be freed.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(remains)));
            }
        })?;
        Ok((Undertaker(sender), thread))
    }

    /// Frees `remains` some time later.
    pub fn bury(&self, remains: impl Send + 'static) {
        // Without the thread they are freed here.
        let _ = self.0.send(Box::new(remains));
    }
}
