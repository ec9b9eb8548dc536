//! Parallel workers of a VACUUM: how many there are, and how many indexes they work on at once.
//!
//! An index is one process's, and no two write to one, so that records and pages are those of a
//! VACUUM without workers. What differs is where dead line pointers are remembered
//! (`crate::vacuum`), and how long the indexes take.

use crate::executor::Database;
use crate::executor::table::Table;
use crate::vacuum::VacuumOptions;

/// Settings that decide about parallel workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelSettings {
    /// `min_parallel_index_scan_size`, in pages: smaller indexes are the leader's.
    pub least_index_pages: u32,
    /// `autovacuum_max_parallel_workers`.
    pub autovacuum_workers: u32,
}

impl Default for ParallelSettings {
    /// PostgreSQL's. Source: src/backend/utils/misc/guc_parameters.dat (REL_19_STABLE).
    fn default() -> Self {
        Self {
            least_index_pages: 64,
            autovacuum_workers: 0,
        }
    }
}

/// The indexes that a worker may work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Shared {
    /// How many may lose their entries in one, or be cleaned up in one; the larger of both.
    count: u32,
    /// Pages of all, and of the largest.
    pages: u64,
    largest: u64,
}

impl Database {
    /// How many parallel workers a VACUUM of the table asks for when it begins.
    ///
    /// Source: `dead_items_alloc`, src/backend/access/heap/vacuumlazy.c;
    /// `table_recheck_autovac`, src/backend/postmaster/autovacuum.c (REL_19_STABLE). Differs: what
    /// is asked for is had.
    pub(super) fn parallel_workers(&self, options: &VacuumOptions, table: &Table) -> u32 {
        let settings = &self.parallel_settings;
        let most = if options.by_itself {
            let own = table.class.parameters.autovacuum_workers;
            own.unwrap_or(u32::MAX).min(settings.autovacuum_workers)
        } else {
            options.max_workers
        };
        // The leader takes one index.
        let shared = table.shared_indexes(settings.least_index_pages);
        shared.count.saturating_sub(1).min(most)
    }

    /// How many times as fast as one process several go over the table's indexes, when the largest
    /// takes as long as it does.
    #[allow(clippy::cast_precision_loss)] // pages
    pub(super) fn index_speedup(&self, workers: u32, table: &Table) -> f64 {
        if workers == 0 {
            return 1.0;
        }
        let shared = table.shared_indexes(self.parallel_settings.least_index_pages);
        let by_size = shared.pages as f64 / (shared.largest as f64).max(1.0);
        by_size.min(f64::from(workers + 1)).max(1.0)
    }
}

impl Table {
    /// Source: `parallel_vacuum_compute_workers`, src/backend/commands/vacuumparallel.c
    /// (REL_18_STABLE); `amparallelvacuumoptions` of btree, hash, gin and brin.
    fn shared_indexes(&self, least_pages: u32) -> Shared {
        let indexes = &self.indexes;
        let btrees = indexes.btrees.iter().map(|one| one.tree.page_count());
        let gins = indexes.gins.iter().map(|one| one.index.page_count());
        let hashes = indexes.hashes.iter().map(|one| one.index.page_count());
        let brins = indexes.brins.iter().map(|one| one.page_count());
        let (mut deleting, mut cleaning) = (0, 0);
        let mut shared = Shared::default();
        let mut add = |pages: u32, deletes: u32, cleans: u32| {
            if pages >= least_pages {
                deleting += deletes;
                cleaning += cleans;
                shared.pages += u64::from(pages);
                shared.largest = shared.largest.max(u64::from(pages));
            }
        };
        btrees.chain(gins).for_each(|pages| add(pages, 1, 1));
        hashes.for_each(|pages| add(pages, 1, 0));
        brins.for_each(|pages| add(pages, 0, 1));
        shared.count = deleting.max(cleaning);
        shared
    }
}
