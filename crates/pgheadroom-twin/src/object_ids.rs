//! OIDs: one counter numbers objects, files and values out of line.
//!
//! Which bytes of two values' pointers agree depends on it, and so the bytes of the record of an
//! update on one page.
//!
//! ANALYZE numbers values too: statistics of long values lie out of line in pg_statistic's TOAST
//! table. How many do depends on all values that it has sampled, and how well they are compressed.
//! Nobody computes that here; it is drawn. What a byte of a record is in doubt for is counted.

use crate::clock;

/// The first OID that a cluster gives to an object of users; its first database has it.
///
/// Source: `FirstNormalObjectId`, src/include/access/transam.h (REL_18_STABLE).
pub(crate) const FIRST_NORMAL_OBJECT_ID: u32 = 16_384;

/// One seed has draws so far apart; arbitrary.
const BETWEEN_DRAWS: u64 = 7_919;

/// OIDs that are given out, of the objects in the cluster's first database on.
#[derive(Debug, Clone)]
pub(crate) struct ObjectIds {
    /// `nextOid`.
    next: u32,
    /// From which values of statistics are drawn: none at 0.
    seed: u64,
    /// ANALYZEs that may have moved some out of line.
    drawn: u64,
    /// Values out of line that updates have replaced since then.
    replaced: u64,
}

impl Default for ObjectIds {
    fn default() -> Self {
        Self {
            next: FIRST_NORMAL_OBJECT_ID + 1,
            seed: 0,
            drawn: 0,
            replaced: 0,
        }
    }
}

impl ObjectIds {
    /// The OID of a new object, or of a value out of line.
    ///
    /// Source: `GetNewObjectId`, src/backend/access/transam/varsup.c (REL_18_STABLE).
    pub const fn make(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// So many objects are made whose OIDs nobody here asks for.
    pub const fn skip(&mut self, count: u32) {
        self.next += count;
    }

    /// From now on OIDs of statistics are drawn from this seed.
    pub const fn draw(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// An ANALYZE writes statistics, of which so many values may be out of line.
    ///
    /// Source: `update_attstats`, src/backend/commands/analyze.c (REL_18_STABLE).
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most `at_most`
    pub fn analyze(&mut self, at_most: u32) {
        if at_most == 0 {
            return;
        }
        self.drawn += 1;
        if self.seed > 0 {
            let seed = self
                .seed
                .wrapping_add(self.drawn.wrapping_mul(BETWEEN_DRAWS));
            let place = clock::phase(seed, clock::Phase::Statistics);
            self.skip((place * f64::from(at_most + 1)) as u32);
        }
    }

    /// An update replaces so many values out of line.
    pub const fn replace(&mut self, values: u64) {
        if self.drawn > 0 {
            self.replaced += values;
        }
    }

    /// Values whose pointers may share other bytes with those they replaced.
    pub const fn in_doubt(&self) -> u64 {
        self.replaced
    }
}

/// A table: itself, its row type and an array type of that.
///
/// Source: `heap_create_with_catalog`, src/backend/catalog/heap.c (REL_18_STABLE).
pub(crate) const OIDS_OF_TABLE: u32 = 3;
/// A TOAST table and its index.
///
/// Source: `create_toast_table`, src/backend/catalog/toasting.c (REL_18_STABLE).
pub(crate) const OIDS_OF_TOAST_TABLE: u32 = 2;
/// A constraint, and two triggers on either side.
///
/// Source: `ATAddForeignKeyConstraint` and what it calls, src/backend/commands/tablecmds.c
/// (REL_18_STABLE).
pub(crate) const OIDS_OF_FOREIGN_KEY: u32 = 5;
/// The first temporary table of a session: two schemas, and itself.
///
/// Source: `InitTempTableNamespace`, src/backend/catalog/namespace.c (REL_18_STABLE).
pub(crate) const OIDS_OF_FIRST_TEMPORARY_TABLE: u32 = 2 + OIDS_OF_TABLE;
/// Another one of it.
pub(crate) const OIDS_OF_TEMPORARY_TABLE: u32 = OIDS_OF_TABLE;
