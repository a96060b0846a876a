//! WebSockets whose clients have not said who they are, where they have to.
//!
//! Drivers open connections for later, so one that says nothing for long is no reason to end it. But ten thousand of them would keep everybody out:
//! when no place is left, the one that has been here longest gives its place to whoever comes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit};

/// A place among the connections that may be open. A connection that is asked to go shares it with the one that comes, for a moment.
pub(crate) type Permit = Arc<OwnedSemaphorePermit>;

/// All of them, those that came first in front.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    open: Mutex<BTreeMap<u64, Place>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Place {
    permit: Permit,
    leave: Arc<Notify>,
}

impl Strangers {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Place>> {
        // Entries are put in and taken out whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection whose client is not known yet.
    pub fn enter(self: &Arc<Self>, permit: Permit) -> Stranger {
        let (number, leave) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(Notify::new()));
        self.open().insert(number, Place { permit, leave: leave.clone() });
        Stranger { strangers: self.clone(), number, leave }
    }

    /// Asks the one that has been here longest to go; its place.
    pub fn send_away_oldest(&self) -> Option<Permit> {
        let (_, place) = self.open().pop_first()?;
        place.leave.notify_one();
        Some(place.permit)
    }
}

/// One of them. Its place is free when it is dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    strangers: Arc<Strangers>,
    number: u64,
    leave: Arc<Notify>,
}

impl Stranger {
    /// Told once the connection has to go.
    pub fn leave(&self) -> Arc<Notify> {
        self.leave.clone()
    }

    /// The client has said who it is: the place is its own. `None` if it was given away already.
    pub fn is_known(&self) -> Option<Permit> {
        Some(self.strangers.open().remove(&self.number)?.permit)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.strangers.open().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_its_place_away_unless_it_is_known() {
        let places = Arc::new(tokio::sync::Semaphore::new(3));
        let strangers = Arc::new(Strangers::default());
        let enter = || strangers.enter(Arc::new(places.clone().try_acquire_owned().expect("a place is free")));
        let [known, gone, old] = std::array::from_fn(|_| enter());
        let permit = known.is_known();
        assert!(permit.is_some());
        drop(gone);
        assert_eq!(places.available_permits(), 1);
        let given = strangers.send_away_oldest().expect("one is left");
        assert!(old.is_known().is_none() && strangers.send_away_oldest().is_none());
        drop((old, known));
        assert_eq!(places.available_permits(), 1, "those who have a place keep it");
        drop((given, permit));
        assert_eq!(places.available_permits(), 3);
    }
}
