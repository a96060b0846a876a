//! Signals that tell the process to stop: SIGTERM, and SIGINT as by Ctrl-C.
//!
//! The first asks for an end in order, the second ends the process at once, in whatever part of that end it is. A thread waits for them that needs
//! nobody else: connections may have ended already while the store is being closed.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::output::talk;

/// The code of a process that was told twice.
const TOLD_TWICE: i32 = 130;

/// From here on signals are taken; completes with the first.
pub fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let (ready, is_ready) = mpsc::channel();
    let (tell, told) = oneshot::channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let (runtime, mut signals) = match start() {
            Ok(started) => started,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        // Whoever starts this thread waits for it.
        let _ = ready.send(Ok(()));
        runtime.block_on(signals.next());
        talk("stopping: running requests may finish; press Ctrl-C again or send SIGTERM again to end at once");
        // The server may have ended for another reason.
        let _ = tell.send(());
        runtime.block_on(signals.next());
        std::process::exit(TOLD_TWICE);
    })?;
    is_ready.recv().map_err(io::Error::other)??;
    Ok(async {
        if told.await.is_err() {
            // The thread is gone: there is no other way to stop but to kill the process, which the store survives.
            std::future::pending::<()>().await;
        }
    })
}

fn start() -> io::Result<(tokio::runtime::Runtime, Signals)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _inside = runtime.enter();
        Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? }
    };
    Ok((runtime, signals))
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
