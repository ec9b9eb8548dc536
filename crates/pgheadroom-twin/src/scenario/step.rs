//! Steps of a history as they are written down, and what became of them.

use serde::Deserialize;

/// A step of a history.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// The session whose step it is.
    #[serde(default)]
    pub session: usize,
    /// The SQLSTATE that it ends with.
    #[serde(default)]
    pub fails: Option<String>,
    /// What it does.
    #[serde(flatten)]
    pub command: Command,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// An operation of the profile, once for each key.
    Statement {
        /// Its position in the profile.
        operation: usize,
        /// First key of each statement.
        keys: Vec<i64>,
        /// Whether the client prepared it, so that a SELECT's portal stays open after its end.
        #[serde(default = "yes")]
        prepared: bool,
        /// Whether it opens a cursor.
        #[serde(default)]
        cursor: bool,
        /// Of a lock: how strong it is.
        #[serde(default)]
        strength: Option<String>,
        /// Of a lock: what it does about rows that others have locked.
        #[serde(default)]
        locked: Option<String>,
    },
    /// COPY FROM of rows with these keys.
    Copy {
        /// The table's name.
        table: String,
        /// The first key.
        from: i64,
        /// The last key.
        to: i64,
        /// Bytes of each line, as the server made them.
        line_bytes: Vec<u32>,
    },
    /// VACUUM.
    Vacuum {
        /// The table's name.
        table: String,
        /// With the option FREEZE.
        #[serde(default)]
        freeze: bool,
        /// With the option PARALLEL: so many workers at most.
        #[serde(default)]
        parallel: u32,
    },
    /// VACUUM FULL.
    Rewrite {
        /// The table's name.
        table: String,
    },
    /// ALTER TABLE ... SET (fillfactor = ...).
    Fillfactor {
        /// The table's name.
        table: String,
        /// Percent.
        percent: i64,
    },
    /// BEGIN.
    Begin {
        /// Its isolation level.
        #[serde(default)]
        isolation: Option<String>,
    },
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// SAVEPOINT.
    Savepoint {
        /// Its name.
        name: String,
    },
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo {
        /// Its name.
        name: String,
    },
    /// RELEASE SAVEPOINT.
    ReleaseSavepoint {
        /// Its name.
        name: String,
    },
    /// FETCH from the session's cursor.
    Fetch {
        /// How many rows.
        rows: u64,
    },
    /// CLOSE of the session's cursor.
    Close,
    /// CHECKPOINT.
    Checkpoint,
    /// Another session takes a snapshot.
    Hold,
    /// That session ends.
    Release,
    /// The session ends, and another one goes on.
    Reconnect,
}

const fn yes() -> bool {
    true
}

/// What became of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It found so many rows.
    Rows(u64),
    /// It failed, with this SQLSTATE.
    Failed(&'static str),
}

/// What became of a step with statements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// Its position.
    pub step: usize,
    /// Whose it is.
    pub session: usize,
    /// Of each statement.
    pub ends: Vec<End>,
    /// The sessions that it waited for first, and the step in which it ended.
    pub waited: Option<(Vec<usize>, usize)>,
}
