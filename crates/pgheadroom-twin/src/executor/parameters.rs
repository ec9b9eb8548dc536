//! Storage parameters of a table, and the settings that stand behind them.

use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;

/// Storage parameters that are played, but for the fillfactor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageParameters {
    /// `vacuum_truncate`: whether VACUUM gives empty pages at the end back.
    pub truncates: bool,
    /// `toast_tuple_target`: down to how many bytes a row is shortened that is too long.
    pub toast_target: u32,
    /// Autovacuum's ages of freezing, if not the settings'.
    pub freeze: FreezeAges<Option<u32>>,
}

impl Default for StorageParameters {
    fn default() -> Self {
        Self {
            truncates: true,
            toast_target: TOAST_TUPLE_THRESHOLD,
            freeze: FreezeAges::default(),
        }
    }
}

/// How old transactions are that VACUUM freezes, and that make it look at all pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FreezeAges<T> {
    /// `vacuum_freeze_min_age`.
    pub min: T,
    /// `vacuum_freeze_table_age`.
    pub table: T,
}

impl FreezeAges<u32> {
    /// Source: `vacuum_freeze_min_age` and `vacuum_freeze_table_age`,
    /// src/backend/utils/misc/guc_tables.c (REL_15_STABLE, REL_18_STABLE).
    pub const DEFAULT: Self = Self {
        min: 50_000_000,
        table: 150_000_000,
    };
}
