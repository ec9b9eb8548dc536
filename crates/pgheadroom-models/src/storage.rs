//! Where pages are kept: files that checkpoints write, or a log that others turn into pages.
//!
//! ```text
//! local            WAL + checkpoints; the first change of a page after one carries its image
//! log-structured   WAL only: the storage makes pages out of it, the server writes none
//! ```
//!
//! A model, since no server of ours has such storage: it is the server with everything left out
//! that exists only because pages are written. That is more than `full_page_writes = off`:
//!
//! - checkpoints, hence dirty pages that become clean and owe an image again;
//! - full-page images, which repair a page that was torn while it was written;
//! - XLOG/FPI_FOR_HINT, image and record: it is there so that a torn write of a page that only a
//!   hint has changed cannot break its checksum (`MarkBufferDirtyHint`,
//!   src/backend/storage/buffer/bufmgr.c). No write, no tear; a hint that nobody logs is lost when
//!   the page leaves the cache, and the next reader looks the transaction up again;
//! - the image of a visibility or free space map's last page when it is truncated, and of a heap
//!   page that becomes all-visible, which are logged for the same reason.
//!
//! What stays are whole pages that say something new (a page of a new index). So a run is a local
//! one with `full_page_writes`, `wal_log_hints` and checksums off and no checkpoint in it, record
//! by record, which a server can play.

use std::sync::Arc;

use pgheadroom_twin::executor::Model;

/// A way to keep pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Storage {
    /// Files, as PostgreSQL has them.
    #[default]
    Local,
    /// A log that the storage itself applies to pages, as Amazon Aurora and Neon do.
    LogStructured,
}

impl Storage {
    /// All, in the order in which messages name them.
    pub const ALL: [Self; 2] = [Self::Local, Self::LogStructured];

    /// The storage of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// As options and results spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::LogStructured => "log-structured",
        }
    }

    /// Its model; none of files.
    #[must_use]
    pub fn model(self) -> Option<Arc<dyn Model>> {
        match self {
            Self::Local => None,
            Self::LogStructured => Some(Arc::new(LogStructured)),
        }
    }
}

/// The storage that makes pages out of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogStructured;

impl Model for LogStructured {
    fn writes_pages(&self) -> bool {
        false
    }
}
