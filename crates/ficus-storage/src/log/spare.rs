//! The next file of the log, made ahead: full of zeros, so that records replace bytes that are there.
//!
//! A flush of records behind the end of a file makes durable that the file has become longer, too. On a journaling file system it waits for the
//! journal, and so for what other files do: for the blocks of a segment that is being written, for names that are removed. A flush of records in
//! the place of zeros writes these records and nothing else. So a thread in the background keeps one file ready; it takes one that the log has no
//! more use for, if there is one, since its blocks are there already.
//!
//! ```text
//! Absent ──[want]──▶ Wanted ──[make]──▶ Making ──▶ Ready ──[take]──▶ Taken ──[let_go]──▶ Absent
//!    └──[recycle]─────▲                   └──[failed]──▶ Failed ──[forgive]──▶ Absent
//! ```
//! Where a record finds no room on the disk, the file gives way, made or not ([`Spare::give_up`]): then it is as if it could not be made. Without a
//! thread (in a simulation) whoever wants it makes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::environment::Disk;

/// Its name until it is part of the log. No start looks at what is in it.
pub(crate) const SPARE_NAME: &str = "log-spare.unfinished";

/// Bytes of a spare file at most: it should be ready before the log needs it, and a small store should stay small.
const BYTES_LIMIT: u64 = 16 << 20;

/// How long a record that finds no room waits for a file that is being made to be gone: for one write or flush of it. Whoever waits holds the log.
const GIVE_UP_PAUSE: Duration = Duration::from_millis(500);

/// Bytes written at once.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Absent,
    Wanted,
    Making,
    Ready,
    /// It is becoming part of the log, and may still have its old name.
    Taken,
    /// It could not be made, or was given up; nobody tries before the log has gone on in another file.
    Failed,
    /// Given up, and still on the disk.
    GivenUp,
    Closed,
}

/// The next file of the log, made ahead.
pub(crate) struct Spare {
    disk: Arc<dyn Disk>,
    bytes: u64,
    /// Rank: nothing else is locked inside.
    stage: Mutex<Stage>,
    /// It is wanted, or was given up and is gone, or the store is closing.
    changed: Condvar,
    /// True if a thread runs [`Spare::run`].
    has_thread: AtomicBool,
}

impl Spare {
    /// Makes files on `disk` for a log whose files have `segment_bytes`.
    pub(crate) fn new(disk: Arc<dyn Disk>, segment_bytes: u64) -> Spare {
        let stage = Mutex::new(Stage::Absent);
        let bytes = segment_bytes.min(BYTES_LIMIT);
        Spare { disk, bytes, stage, changed: Condvar::new(), has_thread: AtomicBool::new(false) }
    }

    /// Length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes from one stage to another, if it is in that.
    fn pass(&self, from: Stage, to: Stage) -> bool {
        let mut stage = self.stage();
        let is_there = *stage == from;
        if is_there {
            *stage = to;
        }
        is_there
    }

    /// From now on a thread makes it; it must call [`Spare::run`].
    pub(crate) fn expect_thread(&self) {
        self.has_thread.store(true, Ordering::Release);
    }

    /// Asks for a file, unless there is one or one is being made.
    pub(crate) fn want(&self) {
        if self.pass(Stage::Absent, Stage::Wanted) {
            self.begin();
        }
    }

    fn begin(&self) {
        if self.has_thread.load(Ordering::Acquire) {
            self.changed.notify_one();
        } else if self.pass(Stage::Wanted, Stage::Making) {
            self.make();
        }
    }

    /// Gives the file away, if it is ready: whoever gets true gives it another name, and then lets go.
    pub(crate) fn take(&self) -> bool {
        self.pass(Stage::Ready, Stage::Taken)
    }

    /// Whoever took the file has no more use for its old name, since it has another one; or could not use it, and it goes.
    pub(crate) fn let_go(&self, is_used: bool) {
        if is_used {
            self.pass(Stage::Taken, Stage::Absent);
        } else if self.pass(Stage::Taken, Stage::GivenUp) {
            self.drop_file();
        }
    }

    /// Gives the room of the file back, since it is wanted for something else; true if there may be more now.
    pub(crate) fn give_up(&self) -> bool {
        let mut stage = self.stage();
        match *stage {
            // One that is wanted may be there already, with old records in it.
            Stage::Wanted | Stage::Ready => {
                *stage = Stage::GivenUp;
                drop(stage);
                self.drop_file();
                true
            }
            Stage::Making => {
                *stage = Stage::GivenUp;
                let is_there = |stage: &mut Stage| *stage == Stage::GivenUp;
                let waited = self.changed.wait_timeout_while(stage, GIVE_UP_PAUSE, is_there);
                *waited.unwrap_or_else(PoisonError::into_inner).0 == Stage::Failed
            }
            // Its zeros may have been what took the room, a moment ago.
            Stage::Failed => true,
            Stage::Absent | Stage::Taken | Stage::GivenUp | Stage::Closed => false,
        }
    }

    /// Removes a file that could not be made, or was given up.
    fn drop_file(&self) {
        self.remove();
        let mut stage = self.stage();
        if matches!(*stage, Stage::Making | Stage::GivenUp) {
            *stage = Stage::Failed;
            self.changed.notify_all();
        }
    }

    /// After a failure another try may be made.
    pub(crate) fn forgive(&self) {
        self.pass(Stage::Failed, Stage::Absent);
    }

    /// Makes the spare file out of one that nobody needs any more; false if none is wanted.
    pub(crate) fn recycle(&self, name: &str) -> std::io::Result<bool> {
        if !self.pass(Stage::Absent, Stage::Making) {
            return Ok(false);
        }
        // Durable before the first zero is: else a start could find them under the old name.
        let renamed = self.disk.rename(name, SPARE_NAME).and_then(|()| self.disk.sync_directory());
        if self.pass(Stage::Making, if renamed.is_ok() { Stage::Wanted } else { Stage::Absent }) {
            renamed?;
            self.begin();
        } else {
            self.drop_file();
            renamed?;
        }
        Ok(true)
    }

    /// Makes files whenever they are wanted, until the store is closed.
    pub(crate) fn run(&self) {
        let mut stage = self.stage();
        loop {
            match *stage {
                Stage::Closed => return,
                Stage::Wanted => {
                    *stage = Stage::Making;
                    drop(stage);
                    self.make();
                    stage = self.stage();
                }
                _ => stage = self.changed.wait(stage).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Ends [`Spare::run`] and every use of the file.
    pub(crate) fn close(&self) {
        *self.stage() = Stage::Closed;
        self.changed.notify_all();
    }

    /// Removes the file of a store that was closed. What stays is removed by the next start.
    pub(crate) fn remove(&self) {
        let _ = self.disk.remove(SPARE_NAME);
    }

    /// A failure is none of the log, which goes on without.
    fn make(&self) {
        if self.write().is_err() || !self.pass(Stage::Making, Stage::Ready) {
            self.drop_file();
        }
    }

    fn write(&self) -> std::io::Result<()> {
        let is_there = self.disk.list()?.iter().any(|name| name == SPARE_NAME);
        let file = if is_there { self.disk.open(SPARE_NAME)? } else { self.disk.create(SPARE_NAME)? };
        for offset in (0..self.bytes).step_by(ZEROS.len()) {
            let piece = (self.bytes - offset).min(ZEROS.len() as u64) as usize;
            file.write_all_at(&ZEROS[..piece], offset)?;
            if *self.stage() != Stage::Making {
                // Nobody has any use for it.
                return Ok(());
            }
        }
        if file.length()? != self.bytes {
            file.set_length(self.bytes)?;
        }
        file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_disk::{Faults, SimulatedDisk};

    #[test]
    fn a_spare_file_is_made_once_and_taken_once() {
        let disk = SimulatedDisk::new();
        let spare = Spare::new(Arc::new(disk.clone()), 70_000);
        assert!(!spare.take());
        spare.want();
        spare.want();
        assert_eq!(disk.content(SPARE_NAME), Some(vec![0; 70_000]));
        assert!(spare.take() && !spare.take());
        disk.put("old", vec![7; 1_000]);
        spare.want();
        assert!(!spare.recycle("old").unwrap(), "the name is that of the file that was taken");
        assert_eq!(disk.content(SPARE_NAME), Some(vec![0; 70_000]));
        disk.rename(SPARE_NAME, "log").unwrap();
        spare.let_go(true);
        assert!(spare.recycle("old").unwrap() && spare.take());
        spare.close();
        spare.want();
        assert!(!spare.take(), "a store that closes wants none");
    }

    #[test]
    fn a_file_that_is_not_needed_any_more_becomes_the_spare_one() {
        let disk = SimulatedDisk::new();
        disk.put("old", vec![7; 1_000]);
        disk.put("older", vec![7; 1_000]);
        let spare = Spare::new(Arc::new(disk.clone()), 900);
        assert!(spare.recycle("old").unwrap());
        assert_eq!(disk.content(SPARE_NAME), Some(vec![0; 900]));
        assert!(!spare.recycle("older").unwrap(), "one is enough");
        assert!(disk.content("older").is_some() && disk.content("old").is_none());
    }

    #[test]
    fn it_gives_way_and_is_made_again_when_the_log_has_gone_on() {
        let disk = SimulatedDisk::new();
        let spare = Spare::new(Arc::new(disk.clone()), 900);
        assert!(!spare.give_up(), "there is nothing to give");
        spare.want();
        assert!(spare.give_up() && disk.content(SPARE_NAME).is_none() && !spare.take());
        spare.want();
        assert!(disk.content(SPARE_NAME).is_none());
        spare.forgive();
        spare.want();
        assert!(spare.take() && !spare.give_up(), "it is becoming part of the log");
        spare.let_go(false);
        assert!(disk.content(SPARE_NAME).is_none(), "it did not become part of the log");
        disk.put("old", vec![7; 1_000]);
        assert!(!spare.recycle("old").unwrap());
    }

    #[test]
    fn it_gives_way_while_a_thread_makes_it() {
        for round in 0..200 {
            let disk = SimulatedDisk::new();
            let spare = Arc::new(Spare::new(Arc::new(disk.clone()), 4 << 20));
            spare.expect_thread();
            let maker = spare.clone();
            let thread = std::thread::spawn(move || maker.run());
            spare.want();
            (0..round).for_each(|_| std::thread::yield_now());
            assert!(spare.give_up() && disk.content(SPARE_NAME).is_none());
            assert!(!spare.take());
            spare.forgive();
            spare.want();
            while !spare.take() {
                std::thread::yield_now();
            }
            spare.close();
            thread.join().unwrap();
            assert_eq!(disk.content(SPARE_NAME).unwrap().len(), 4 << 20);
        }
    }

    #[test]
    fn after_a_failure_it_is_not_tried_again_at_once() {
        let disk = SimulatedDisk::new();
        let spare = Spare::new(Arc::new(disk.clone()), 900);
        disk.set_faults(Faults { capacity_bytes: Some(500), ..Faults::default() });
        spare.want();
        assert!(!spare.take() && disk.content(SPARE_NAME).is_none());
        disk.set_faults(Faults::default());
        spare.want();
        assert!(!spare.take());
        spare.forgive();
        spare.want();
        assert!(spare.take());
    }
}
