//! When checkpoints begin, and how far their writing is.
//!
//! ```text
//! begins: checkpoint_timeout after the last began, or when WAL fills so many segments
//! redo pointer moves at once; dirty pages are written bit by bit until the completion target
//! ```
//!
//! Source: `CheckpointerMain` and `IsCheckpointOnSchedule`,
//! src/backend/postmaster/checkpointer.c; `CalculateCheckpointSegments` and
//! `XLogCheckpointNeeded`, src/backend/access/transam/xlog.c (REL_18_STABLE). WAL that belongs to
//! no table (catalogues, running transactions) is left out.

use pgheadroom_layout::BlockNumber;

use crate::checkpoint::ForkId;
use crate::executor::Database;
use crate::wal::Totals;

/// Bytes of a WAL segment, as initdb sets them.
///
/// Source: `DEFAULT_XLOG_SEG_SIZE`, src/include/pg_config_manual.h (REL_18_STABLE).
const SEGMENT_BYTES: u64 = 16 << 20;
/// Records begin at multiples of 8; their lengths are any, so half of 7 bytes are lost on average.
const PADDING_BYTES: f64 = 3.5;
/// A page of WAL and its header. Source: `SizeOfXLogShortPHD`, src/include/access/xlog_internal.h.
const PAGE_BYTES: f64 = 8192.0;
const PAGE_HEADER_BYTES: f64 = 24.0;

/// A checkpoint that is ahead of its schedule sleeps so long after each page.
///
/// Source: `CheckpointWriteDelay`, src/backend/postmaster/checkpointer.c (REL_18_STABLE).
const WRITE_DELAY_S: f64 = 0.1;
/// What lies between a run's start and the end of the checkpoint before it; 0.03 to 0.1 s on 18.4.
const BEFORE_S: f64 = 0.05;

/// What decides when checkpoints begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckpointSettings {
    /// `checkpoint_timeout`; none inside the run when absent.
    pub timeout_s: Option<f64>,
    /// `max_wal_size`; out of reach when absent.
    pub max_wal_bytes: Option<u64>,
    /// `checkpoint_completion_target`.
    pub completion_target: f64,
}

impl CheckpointSettings {
    /// A checkpoint is wanted when WAL has filled so many segments, that of the redo pointer
    /// included.
    ///
    /// Source: `CalculateCheckpointSegments`, and `XLogCheckpointNeeded` of the segment that
    /// `XLogWrite` has finished, src/backend/access/transam/xlog.c (REL_18_STABLE).
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    pub fn segments(&self) -> Option<u64> {
        let most = self.max_wal_bytes? / SEGMENT_BYTES;
        let target = most as f64 / (1.0 + self.completion_target);
        Some((target as u64).max(1))
    }
}

/// A checkpoint that was begun.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckpointTime {
    /// When it began, in seconds of the run.
    pub began_s: f64,
    /// When its last page was written; absent when that was after the run.
    pub ended_s: Option<f64>,
    /// Pages that it had to write.
    pub pages: usize,
}

/// A checkpoint in progress.
#[derive(Debug)]
struct Writing {
    pages: Vec<(ForkId, BlockNumber)>,
    written: usize,
}

/// The checkpointer.
#[derive(Debug)]
pub struct Checkpointer {
    settings: CheckpointSettings,
    /// Bytes of WAL before the run in the segment where it begins.
    before_bytes: u64,
    began_s: f64,
    /// How much of a second had passed when the run began.
    second_frac: f64,
    due_s: f64,
    redo_bytes: u64,
    writing: Option<Writing>,
    times: Vec<CheckpointTime>,
}

impl Checkpointer {
    /// A checkpoint was made just before the run; `segment_frac` is how full the WAL segment was,
    /// and `second_frac` how much of a second had passed.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    pub fn new(settings: CheckpointSettings, segment_frac: f64, second_frac: f64) -> Self {
        let before_bytes = (segment_frac.clamp(0.0, 1.0) * SEGMENT_BYTES as f64) as u64;
        Self {
            settings,
            before_bytes,
            began_s: 0.0,
            second_frac,
            due_s: settings.timeout_s.unwrap_or(f64::INFINITY) + BEFORE_S,
            redo_bytes: before_bytes,
            writing: None,
            times: Vec::new(),
        }
    }

    /// When it looks next because of the time; infinity without a timeout.
    #[must_use]
    pub const fn due_s(&self) -> f64 {
        self.due_s
    }

    /// The checkpointer sleeps until its timeout has passed, counting whole seconds: the next
    /// checkpoint may begin up to a second early.
    ///
    /// Source: `elapsed_secs` in `CheckpointerMain`, src/backend/postmaster/checkpointer.c
    /// (REL_18_STABLE).
    fn sleep(&mut self, now_s: f64) {
        if let Some(timeout_s) = self.settings.timeout_s {
            let elapsed_s = self.second(now_s) - self.second(self.began_s);
            self.due_s = now_s + (timeout_s - elapsed_s).max(0.0);
        }
    }

    /// The whole second of a time, as `time()` gives it.
    fn second(&self, time_s: f64) -> f64 {
        (time_s + self.second_frac).floor()
    }

    /// The checkpoints so far.
    #[must_use]
    pub fn times(&self) -> &[CheckpointTime] {
        &self.times
    }

    /// Begins a checkpoint if one is due, and goes on writing: once round the loop of
    /// `CheckpointerMain`.
    pub fn checkpoint_if_due(&mut self, now_s: f64, db: &mut Database) {
        let at_bytes = self.before_bytes + position_bytes(db.wal().totals());
        self.write(now_s, at_bytes, db);
        if self.writing.is_some() {
            return; // one at a time
        }
        let by_wal = self.settings.segments().is_some_and(|segments| {
            at_bytes / SEGMENT_BYTES >= self.redo_bytes / SEGMENT_BYTES + segments
        });
        let by_time = now_s >= self.due_s;
        if !by_time && !by_wal {
            return;
        }
        self.began_s = now_s;
        self.due_s = now_s + self.settings.timeout_s.unwrap_or(f64::INFINITY);
        if at_bytes == self.redo_bytes {
            return; // nothing happened since the last one
        }
        self.redo_bytes = at_bytes;
        let pages = db.begin_checkpoint();
        self.times.push(CheckpointTime {
            began_s: now_s,
            ended_s: None,
            pages: pages.len(),
        });
        self.writing = Some(Writing { pages, written: 0 });
        self.write(now_s, at_bytes, db);
    }

    /// Writes as many pages as the schedule wants by now.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    fn write(&mut self, now_s: f64, at_bytes: u64, db: &mut Database) {
        // Its start is known in whole seconds, so that it writes up to a second ahead.
        let start_s = self.second(self.began_s) - self.second_frac;
        let Some(writing) = &mut self.writing else {
            return;
        };
        let by_time = self
            .settings
            .timeout_s
            .map_or(0.0, |timeout| (now_s - start_s) / timeout);
        let by_wal = self.settings.segments().map_or(0.0, |segments| {
            (at_bytes - self.redo_bytes) as f64 / (segments * SEGMENT_BYTES) as f64
        });
        let progress = by_time.max(by_wal) / self.settings.completion_target.max(1e-9);
        let total = writing.pages.len();
        let at_least = (now_s - self.began_s) / WRITE_DELAY_S;
        let wanted = (at_least.max(progress * total as f64) as usize).min(total);
        for &(fork, block) in &writing.pages[writing.written.min(wanted)..wanted] {
            db.wal_mut().write(fork, block);
        }
        writing.written = writing.written.max(wanted);
        if writing.written == total {
            self.writing = None;
            if let Some(time) = self.times.last_mut() {
                time.ended_s = Some(now_s);
            }
            self.sleep(now_s);
        }
    }
}

/// Bytes of WAL that these records take in their segments.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn position_bytes(totals: Totals) -> u64 {
    let bytes = totals.wal_bytes as f64 + PADDING_BYTES * totals.wal_records as f64;
    (bytes * PAGE_BYTES / (PAGE_BYTES - PAGE_HEADER_BYTES)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 GB is 33 segments at a target of 0.9, and 42 at 0.5.
    #[test]
    fn segments_between_checkpoints() {
        let settings = |max_wal_bytes, completion_target| CheckpointSettings {
            timeout_s: None,
            max_wal_bytes,
            completion_target,
        };
        assert_eq!(settings(Some(1 << 30), 0.9).segments(), Some(33));
        assert_eq!(settings(Some(1 << 30), 0.5).segments(), Some(42));
        assert_eq!(settings(Some(32 << 20), 0.9).segments(), Some(1));
        assert_eq!(settings(None, 0.9).segments(), None);
    }

    /// Records are padded, and every page has a header.
    #[test]
    fn wal_takes_more_than_its_records() {
        let totals = Totals {
            wal_records: 1000,
            wal_bytes: 72_000,
            wal_fpi: 0,
            wal_fpi_bytes: 0,
        };
        assert_eq!(position_bytes(totals), 75_721);
    }
}
