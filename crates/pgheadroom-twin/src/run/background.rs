//! What a server does by itself on the simulated clock, and the windows of a series.
//!
//! ```text
//! before each transaction: everything that is due by then, in the order of its time
//! ```

use crate::autovacuum::{Autovacuum, Maintained};
use crate::checkpointer::{CheckpointSettings, CheckpointTime, Checkpointer};
use crate::clock::{Clock, Pace, Phase, phase};
use crate::executor::{Database, StatementError, TableId};
use crate::profile::settings::bytes_of;
use crate::profile::{ProfileError, ProfileSpec};
use crate::run::rewrites::RewriteDone;
use crate::series::{Point, Recorder};

/// Transactions between two checks of the WAL's length: 16 MiB hold many more.
const CHECKED_EVERY: u64 = 16;

/// What happened by the clock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Happened {
    /// How long the run was.
    pub duration_s: f64,
    /// What autovacuum did, in the order of its end.
    pub maintained: Vec<Maintained>,
    /// Checkpoints.
    pub checkpoints: Vec<CheckpointTime>,
    /// Windows, if they were asked for.
    pub points: Vec<Point>,
}

/// How time passes in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// How fast transactions follow each other.
    pub pace: Pace,
    /// Windows of the series; 0: none.
    pub windows: u32,
    /// Whether autovacuum and checkpoints happen by this clock, as the profile's settings say;
    /// else only the windows do.
    pub drives_server: bool,
}

/// The clock and what goes by it.
#[derive(Debug)]
pub(super) struct BackgroundProcesses {
    clock: Clock,
    autovacuum: Option<Autovacuum>,
    checkpointer: Option<Checkpointer>,
    recorder: Recorder,
    begun: u64,
}

/// What has to happen before a transaction begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    now_s: f64,
    /// Whether the checkpointer checks how long the WAL has become.
    checks_wal: bool,
}

impl BackgroundProcesses {
    /// A run that begins now, after its tables were loaded.
    pub fn new(
        spec: &ProfileSpec,
        timing: Timing,
        (transactions, seed): (u64, u64),
        db: &Database,
    ) -> Result<Self, ProfileError> {
        let clock = Clock::new(timing.pace, transactions, seed);
        let may_come = spec.may_autovacuum(Some(transactions));
        let autovacuum = if may_come && timing.drives_server {
            Some(Autovacuum::new(spec, db, phase(seed, Phase::Autovacuum))?)
        } else {
            None
        };
        let settings = checkpoint_settings(spec, db)?;
        let has_checkpoints = settings.timeout_s.is_some() || settings.max_wal_bytes.is_some();
        let checkpointer = (has_checkpoints && timing.drives_server).then(|| {
            let segment_frac = phase(seed, Phase::WalSegment);
            Checkpointer::new(settings, segment_frac, phase(seed, Phase::Second))
        });
        Ok(Self {
            recorder: Recorder::new(clock.end_s(), timing.windows),
            clock,
            autovacuum,
            checkpointer,
            begun: 0,
        })
    }

    /// The next transaction is about to begin; what has to happen before, if anything.
    pub fn begin_transaction(&mut self) -> Option<Due> {
        let now_s = self.clock.begin();
        let checks_wal = self.checkpointer.is_some() && self.begun.is_multiple_of(CHECKED_EVERY);
        let is_due = self.first_s() <= now_s;
        self.begun += u64::from(!is_due && !checks_wal);
        (is_due || checks_wal).then_some(Due { now_s, checks_wal })
    }

    /// Does what has to happen before the transaction that is about to begin.
    ///
    /// # Errors
    /// What autovacuum meets that the twin cannot play, and its table.
    pub fn happen(&mut self, due: Due, db: &mut Database) -> Result<(), (StatementError, TableId)> {
        self.happen_late(due, db)?;
        self.begun += 1;
        Ok(())
    }

    /// Whether a worker of autovacuum waits for the lock on a table's end.
    pub fn waits_for_lock(&self) -> bool {
        let autovacuum = self.autovacuum.as_ref();
        autovacuum.is_some_and(Autovacuum::waits_for_lock)
    }

    /// The transaction begins, and what should have happened before happens in the midst of it.
    pub const fn put_off(&mut self) {
        self.begun += 1;
    }

    /// Does that.
    ///
    /// # Errors
    /// As [`Self::happen`].
    pub fn happen_late(
        &mut self,
        due: Due,
        db: &mut Database,
    ) -> Result<(), (StatementError, TableId)> {
        self.until(due.now_s, db)?;
        if let Some(checkpointer) = self.checkpointer.as_mut().filter(|_| due.checks_wal) {
            checkpointer.checkpoint_if_due(due.now_s, db);
        }
        Ok(())
    }

    /// Tables have new files.
    pub fn rewritten(&mut self, rewrites: &[RewriteDone], db: &mut Database) {
        if let Some(autovacuum) = &mut self.autovacuum {
            for rewrite in rewrites {
                autovacuum.rewritten(rewrite.table, self.clock.now_s(), db);
            }
        }
    }

    /// That transaction has ended, in this session.
    pub fn end_transaction(&mut self, session: usize, db: &Database) {
        if let Some(autovacuum) = &mut self.autovacuum {
            autovacuum.end_transaction(session, self.clock.now_s(), db);
        }
    }

    /// The last client has ended.
    ///
    /// # Errors
    /// As [`Self::happen`].
    pub fn end(mut self, db: &mut Database) -> Result<Happened, (StatementError, TableId)> {
        let end_s = self.clock.end_s();
        self.until(end_s, db)?;
        Ok(Happened {
            duration_s: end_s,
            maintained: self.autovacuum.map_or_else(Vec::new, Autovacuum::into_done),
            checkpoints: self
                .checkpointer
                .map_or_else(Vec::new, |checkpointer| checkpointer.times().to_vec()),
            points: self.recorder.into_points(),
        })
    }

    /// When the next of all that is.
    fn first_s(&self) -> f64 {
        self.due_s().into_iter().fold(f64::INFINITY, f64::min)
    }

    /// When autovacuum, a checkpoint and the end of a window are due.
    fn due_s(&self) -> [f64; 3] {
        let autovacuum = self.autovacuum.as_ref().map(Autovacuum::due_s);
        let checkpoint = self.checkpointer.as_ref().map(Checkpointer::due_s);
        let window = Some(self.recorder.due_s());
        [autovacuum, checkpoint, window].map(|due| due.unwrap_or(f64::INFINITY))
    }

    /// Does what is due by now.
    fn until(&mut self, now_s: f64, db: &mut Database) -> Result<(), (StatementError, TableId)> {
        loop {
            let [_, checkpoint_s, window_s] = self.due_s();
            let first_s = self.first_s();
            if first_s > now_s {
                return Ok(());
            }
            if window_s <= first_s {
                self.recorder.end_window(self.begun, db);
            } else if checkpoint_s <= first_s {
                let checkpointer = self.checkpointer.as_mut().expect("it was due");
                checkpointer.checkpoint_if_due(checkpoint_s, db);
                if checkpointer.due_s() <= checkpoint_s {
                    return Ok(()); // the last one is still being written: looked at again soon
                }
            } else {
                let autovacuum = self.autovacuum.as_mut().expect("it was due");
                autovacuum.step(db)?;
            }
        }
    }
}

fn checkpoint_settings(
    spec: &ProfileSpec,
    db: &Database,
) -> Result<CheckpointSettings, ProfileError> {
    let server = &spec.server;
    let max_wal_bytes = match &server.max_wal_size {
        None => None,
        Some(text) => Some(bytes_of(text).ok_or_else(|| {
            ProfileError::unsupported("server.max_wal_size", text, "a size such as 1GB")
        })?),
    };
    let name = "checkpoint_completion_target";
    let completion_target = match server.settings.get(name) {
        None => db.behaviour().checkpoint_completion_target,
        Some(text) => text.trim().parse().map_err(|_| {
            ProfileError::unsupported(format!("server.settings.{name}"), text, "a number")
        })?,
    };
    Ok(CheckpointSettings {
        timeout_s: server.checkpoint_interval_s,
        max_wal_bytes,
        completion_target,
    })
}
