//! How far a profile's run is, for whoever waits for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::profile::ProfileError;
use crate::reserve;

/// How far a run has come, and whether it shall stop; shared with other threads.
#[derive(Debug, Default)]
pub struct Monitor {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Monitor {
    /// Rows loaded and transactions ended.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Rows to load and transactions to run; 0 before that is known.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Asks the run to stop soon.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Begins to count, of so many.
    pub fn start(&self, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Notes what was done.
    ///
    /// # Errors
    /// [`ProfileError::Cancelled`] when somebody asked to stop, [`ProfileError::OutOfMemory`] when
    /// an allocation has failed.
    pub fn advance(&self, done: u64) -> Result<(), ProfileError> {
        self.done.fetch_add(done, Ordering::Relaxed);
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(ProfileError::Cancelled);
        }
        if reserve::is_short() {
            return Err(ProfileError::OutOfMemory { needed_bytes: None });
        }
        Ok(())
    }
}
