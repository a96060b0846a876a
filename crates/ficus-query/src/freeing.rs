//! Frees values of very many members: whoever happens to be the last to have one goes on at once, which is mostly an executor in the middle of a query
//! that may have to end meanwhile.
//!
//! One thread for all engines of the process, begun with the first. It has one value at a time; what is dropped meanwhile is freed where it is, so that
//! nothing can pile up. What it has is still counted where it was made, since there it is looked whether it is gone ([`crate::large_values`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

/// The thread, if it could be started.
static FREES: OnceLock<Option<Sender<Box<dyn Send>>>> = OnceLock::new();

/// Whether it has a value.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// Leaves the freeing of such values to the thread from now on. Without one, as before, it is done by who drops them.
pub fn begin() {
    let frees = FREES.get_or_init(|| {
        let (sender, receiver) = channel::<Box<dyn Send>>();
        let free = move || {
            for value in receiver {
                // A value whose drop panics is our bug; the hook has reported it, and others still have to be freed.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(value)));
                IS_BUSY.store(false, Ordering::Release);
            }
        };
        std::thread::Builder::new().name("freeing".into()).spawn(free).ok().map(|_| sender)
    });
    if frees.is_some() {
        ficus_model::free_elsewhere(leave);
    }
}

fn leave(value: Box<dyn Send>) -> Option<Box<dyn Send>> {
    let Some(Some(sender)) = FREES.get() else { return Some(value) };
    if IS_BUSY.swap(true, Ordering::AcqRel) {
        return Some(value);
    }
    sender.send(value).err().map(|refused| refused.0)
}

/// Waits until the thread has nothing, a few milliseconds at most: for who needs the room that it is about to give back.
pub fn settle() {
    /// As long as nobody notices.
    const WAITS: usize = 50;
    for _ in 0..WAITS {
        if !IS_BUSY.load(Ordering::Acquire) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::{Shared, Value};

    #[test]
    fn what_is_dropped_is_gone_soon() {
        super::begin();
        for _ in 0..100 {
            let value: Value = (0..20_000).map(|number| Value::from(format!("text {number}"))).collect();
            let Value::List(members) = &value else { unreachable!() };
            let weak = Shared::downgrade(members);
            drop(value);
            // Others may keep it busy: then it was freed here.
            while weak.strong_count() > 0 {
                super::settle();
            }
        }
    }
}
