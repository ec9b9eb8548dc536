//! What a table's statistics show, under PostgreSQL's names.
//!
//! Source: `pgstat_count_heap_update`, `AtEOXact_PgStat_Relations` and
//! `pgstat_update_heap_dead_tuples`, src/backend/utils/activity/pgstat_relation.c (REL_18_STABLE).

/// Counters of `pg_stat_all_tables`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct TableCounters {
    /// Rows inserted, aborted ones too.
    pub n_tup_ins: u64,
    /// Rows updated.
    pub n_tup_upd: u64,
    /// Rows deleted.
    pub n_tup_del: u64,
    /// Updates that left the indexes alone.
    pub n_tup_hot_upd: u64,
    /// Updates whose new version went to another page; shown from 16 on.
    pub n_tup_newpage_upd: u64,
    /// Updates of versions on pages that were there when the fillfactor was set; PostgreSQL counts
    /// none by page.
    pub old_page_upd: u64,
    /// Those of them that were HOT.
    pub old_page_hot_upd: u64,
    /// Live rows, by changes committed.
    pub n_live_tup: i64,
    /// Dead row versions, less those that pruning removed without leaving a line pointer.
    pub n_dead_tup: i64,
    /// Rows changed since ANALYZE.
    pub n_mod_since_analyze: u64,
    /// Rows inserted since VACUUM.
    pub n_ins_since_vacuum: u64,
}

/// What the running transaction has done to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct TableXactStatus {
    /// Rows inserted.
    pub inserted: u32,
    /// Rows updated.
    pub updated: u32,
    /// Rows deleted.
    pub deleted: u32,
}

impl TableCounters {
    /// Adds what a transaction has done, when it ends.
    #[inline]
    pub fn end_transaction(&mut self, done: TableXactStatus, is_commit: bool) {
        let (inserted, updated) = (i64::from(done.inserted), i64::from(done.updated));
        let deleted = i64::from(done.deleted);
        if is_commit {
            self.n_live_tup += inserted - deleted;
            self.n_dead_tup += updated + deleted;
            self.n_mod_since_analyze +=
                u64::from(done.inserted) + u64::from(done.updated) + u64::from(done.deleted);
        } else {
            self.n_dead_tup += inserted + updated;
        }
        self.n_ins_since_vacuum += u64::from(done.inserted);
    }

    /// An update was of a version on a page that was there when the fillfactor was set.
    #[inline]
    pub(crate) fn on_old_page(&mut self, is_hot: bool) {
        self.old_page_upd += 1;
        self.old_page_hot_upd += u64::from(is_hot);
    }

    /// Pruning removed dead versions of which nothing is left.
    #[inline]
    pub fn pruned(&mut self, reclaimed: u32) {
        self.n_dead_tup -= i64::from(reclaimed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rolled back transaction leaves what it inserted, and its new versions, dead.
    #[test]
    fn aborted_changes_are_dead() {
        let done = TableXactStatus {
            inserted: 3,
            updated: 2,
            deleted: 1,
        };
        let mut counters = TableCounters::default();
        counters.end_transaction(done, false);
        assert_eq!((counters.n_live_tup, counters.n_dead_tup), (0, 5));
        counters.end_transaction(done, true);
        assert_eq!((counters.n_live_tup, counters.n_dead_tup), (2, 8));
        counters.pruned(2);
        assert_eq!(counters.n_dead_tup, 6);
        assert_eq!(counters.n_mod_since_analyze, 6);
    }
}
