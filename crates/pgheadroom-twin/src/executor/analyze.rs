//! ANALYZE of a table: the pages it reads, the hints it leaves, the rows it counts; what it reads
//! out of line is in `analyze_reads.rs`.

use pgheadroom_layout::BlockNumber;

use crate::executor::brin::Brin;
use crate::executor::{Database, SessionId, TableId};
use crate::gin::Surroundings;
use crate::page::LinePointer;
use crate::prune::TupleState;
use crate::transaction::{Outcome, Transactions};

/// What ANALYZE found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Analyzed {
    /// Pages that were read.
    pub pages_read: u32,
    /// Live rows, extrapolated.
    pub live_rows: f64,
    /// Dead row versions and dead line pointers, extrapolated.
    pub dead_rows: f64,
}

impl Database {
    /// The end of an ANALYZE of autovacuum: what waits to come to GINs does.
    ///
    /// Source: `do_analyze_rel`, src/backend/commands/analyze.c (REL_18_STABLE).
    pub fn clean_pending_lists(&mut self, table: TableId) {
        let procs = &self.procs;
        let around = &mut Surroundings {
            wal: &mut self.wal,
            is_removable: &|xid| procs.is_removable(xid),
            session: SessionId(procs.active()),
        };
        for gin in &mut self.tables[table.0].indexes.gins {
            gin.index.clean_for_analyze(around);
        }
    }

    /// The catalogue's entries of indexes have what an ANALYZE has found.
    pub(crate) fn end_analyze(&mut self, table: TableId) {
        let table = &mut self.tables[table.0];
        self.procs.object_ids.analyze(table.class.long_statistics);
        let brins = &mut table.indexes.brins;
        brins.iter_mut().for_each(Brin::end_analyze);
    }

    /// Reads a table as ANALYZE does, at most so many pages and rows of it. Sessions have to
    /// forget where they inserted last when it ends.
    ///
    /// Source: `acquire_sample_rows`, src/backend/commands/analyze.c;
    /// `heapam_scan_analyze_next_tuple`, src/backend/access/heap/heapam_handler.c
    /// (REL_18_STABLE). Differs: of a larger table it takes every so many pages, not random ones.
    pub fn analyze(&mut self, table: TableId, max_pages: u32) -> Analyzed {
        self.end_analyze(table);
        let procs = &self.procs;
        let of = &mut self.tables[table.0];
        let pages = of.heap.page_count();
        let sampled = pages.min(max_pages);
        let (mut live, mut dead) = (0_u64, 0_u64);
        let committed_before = procs.committed_before();
        for block in sampled_blocks(pages, max_pages) {
            if of.heap.note_hints(block, procs) {
                let hole = of.heap.pages()[block.0 as usize].exact_free_space();
                self.wal.hint(of.forks.main, block, hole);
            }
            let page = &of.heap.pages()[block.0 as usize];
            for offset in page.offsets() {
                if let Some(plain) = page.plain(offset) {
                    if plain.xmin < committed_before {
                        live += 1;
                        continue;
                    }
                    match procs.outcome(plain.xmin) {
                        Outcome::Committed => live += 1,
                        Outcome::Aborted => dead += 1,
                        Outcome::InProgress => {}
                    }
                    continue;
                }
                match page.item(offset) {
                    LinePointer::Dead => dead += 1,
                    LinePointer::Normal(tuple) => match TupleState::of(&tuple, procs) {
                        TupleState::Dead | TupleState::RecentlyDead => dead += 1,
                        TupleState::Live | TupleState::DeleteInProgress => live += 1,
                        TupleState::InsertInProgress => {}
                    },
                    LinePointer::Unused | LinePointer::Redirect(_) => {}
                }
            }
        }
        #[allow(clippy::cast_precision_loss)] // rows of a table
        let whole = |rows: u64| {
            if sampled == 0 {
                return 0.0;
            }
            (rows as f64 / f64::from(sampled) * f64::from(pages) + 0.5).floor()
        };
        let found = Analyzed {
            pages_read: sampled,
            live_rows: whole(live),
            dead_rows: whole(dead),
        };
        self.read_sample(table, max_pages);
        found
    }
}

/// Pages of a sample of at most so many.
pub(super) fn sampled_blocks(pages: u32, max_pages: u32) -> impl Iterator<Item = BlockNumber> {
    let sampled = pages.min(max_pages);
    (0..sampled).map(move |number| {
        let block = u64::from(number) * u64::from(pages) / u64::from(sampled);
        BlockNumber(u32::try_from(block).unwrap_or(u32::MAX))
    })
}
