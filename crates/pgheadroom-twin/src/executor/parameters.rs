//! Storage parameters of a table, and the settings that stand behind them.

use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;

/// Storage parameters that are played, but for the fillfactor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageParameters {
    /// `vacuum_truncate`: whether VACUUM gives empty pages at the end back.
    pub truncates: bool,
    /// `toast_tuple_target`: down to how many bytes a row is shortened that is too long.
    pub toast_target: u32,
    /// How many pages of a region an eager scan may look at in vain, of
    /// `vacuum_max_eager_freeze_failure_rate`, if not the setting's.
    pub eager_fails: Option<u32>,
    /// `autovacuum_parallel_workers`: at most so many for the indexes; as many as they are worth
    /// where it is absent or -1.
    pub autovacuum_workers: Option<u32>,
    /// Autovacuum's ages of freezing, if not the settings'.
    pub freeze: FreezeAges<Option<u32>>,
}

impl Default for StorageParameters {
    fn default() -> Self {
        Self {
            truncates: true,
            toast_target: TOAST_TUPLE_THRESHOLD,
            eager_fails: None,
            autovacuum_workers: None,
            freeze: FreezeAges::default(),
        }
    }
}

/// Ages by which VACUUM freezes and autovacuum comes: of transactions and of multixacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FreezeAges<T> {
    /// Of transactions.
    pub xid: Ages<T>,
    /// Of multixacts.
    pub multixact: Ages<T>,
}

/// Ages of one kind of number, of which the next one is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ages<T> {
    /// `vacuum_freeze_min_age`: what is older is frozen.
    pub min: T,
    /// `vacuum_freeze_table_age`: a table that is older is looked at as a whole.
    pub table: T,
    /// `autovacuum_freeze_max_age`: a table that is older is vacuumed though autovacuum is off.
    pub max: T,
    /// `vacuum_failsafe_age`: of a table that is older VACUUM leaves out all but freezing.
    pub failsafe: T,
}

impl FreezeAges<u32> {
    /// Source: `vacuum_freeze_min_age`, `vacuum_freeze_table_age`, `autovacuum_freeze_max_age`,
    /// `vacuum_failsafe_age` and those of multixacts, src/backend/utils/misc/guc_tables.c
    /// (REL_15_STABLE, REL_18_STABLE).
    pub const DEFAULT: Self = Self {
        xid: Ages {
            min: 50_000_000,
            table: 150_000_000,
            max: 200_000_000,
            failsafe: 1_600_000_000,
        },
        multixact: Ages {
            min: 5_000_000,
            table: 150_000_000,
            max: 400_000_000,
            failsafe: 1_600_000_000,
        },
    };
}

impl Ages<u32> {
    /// These, as far as `max` lets them be; where a table has ages of its own, those before.
    ///
    /// Source: `vacuum_get_cutoffs`, src/backend/commands/vacuum.c (REL_18_STABLE): the server's
    /// own `autovacuum_freeze_max_age` counts.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as there
    pub(super) fn of_vacuum(self, own: Ages<Option<u32>>) -> Self {
        let table = own.table.unwrap_or(self.table);
        Self {
            min: own.min.unwrap_or(self.min).min(self.max / 2),
            table: table.min((f64::from(self.max) * 0.95) as u32),
            ..self
        }
    }

    /// How old a table is of which nothing but freezing is done.
    ///
    /// Source: `vacuum_xid_failsafe_check`, src/backend/commands/vacuum.c (REL_18_STABLE).
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as there
    pub(crate) fn of_failsafe(self) -> u32 {
        self.failsafe.max((f64::from(self.max) * 1.05) as u32)
    }
}
