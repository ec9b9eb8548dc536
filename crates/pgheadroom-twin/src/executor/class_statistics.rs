//! What VACUUM, ANALYZE and index builds write to a table's entry in the catalogue.
//!
//! Only where something of it differs is the entry written, and only then are sessions told, which
//! forget where they inserted last. An index build tells them in any case.
//!
//! Source: `vac_update_relstats`, src/backend/commands/vacuum.c; `index_update_stats`,
//! src/backend/catalog/index.c (REL_15_STABLE, REL_18_STABLE).

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::version::OpportunisticFreeze;

use crate::autovacuum::{Class, estimated_rows};
use crate::executor::table::{ClassStatistics, Table};
use crate::executor::{Database, TableId};
use crate::page::{HeapPage, LinePointer};
use crate::prune::TupleState;
use crate::transaction::{Transactions, Xid};
use crate::vacuum::Vacuumed;

impl Database {
    /// The catalogue has what the VACUUM ANALYZE of a load has written there.
    pub(crate) fn know_statistics(&mut self) {
        let oldest_xmin = self.procs.oldest_xmin();
        for table in &mut self.tables {
            table.know_statistics(oldest_xmin);
            if let Some(toast) = &mut table.toast {
                toast.table.know_statistics(oldest_xmin);
            }
        }
    }

    /// ANALYZE has found so many rows; whether sessions are told.
    pub(super) fn note_analyzed(&mut self, table: TableId, live_rows: f64) -> bool {
        let table = &mut self.tables[table.0];
        let found = table.statistics(live_rows);
        table.class.statistics.replace(found) != Some(found)
    }
}

impl Table {
    fn know_statistics(&mut self, oldest_xmin: Xid) {
        let mut tuples = self.heap.pages().iter().flat_map(|page| page.each_item());
        let first = tuples.find_map(|(_, item)| match item {
            LinePointer::Normal(tuple) => Some(tuple),
            _ => None,
        });
        let first = first.filter(|tuple| !tuple.is_frozen());
        self.class.relfrozenxid = first.map_or(oldest_xmin, |tuple| tuple.xmin);
        let pages = self.heap.pages().iter();
        let rows: u32 = pages.map(HeapPage::loaded_row_count).sum();
        self.class.statistics = Some(self.statistics(f64::from(rows)));
    }

    /// VACUUM has ended, which removed what is older than this; whether sessions are told.
    ///
    /// Source: `heap_vacuum_rel`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub(super) fn note_vacuumed(
        &mut self,
        done: &Vacuumed,
        oldest_xmin: Xid,
        oldest_multixact: Xid,
    ) -> bool {
        let class = &self.class;
        let before = (class.relfrozenxid, class.relminmxid);
        if !done.skipped_unfrozen {
            let left = done.oldest_left.unwrap_or(oldest_xmin).min(oldest_xmin);
            self.class.relfrozenxid = left.max(before.0);
            let left = done.oldest_multixact_left.unwrap_or(oldest_multixact);
            self.class.relminmxid = left.min(oldest_multixact).max(before.1);
        }
        let pages = done
            .truncated
            .map_or(self.heap.page_count(), |(before, _)| before);
        let known = self.class.statistics.map_or(
            Class {
                reltuples: -1.0,
                ..Class::default()
            },
            |known| Class {
                reltuples: f64::from(known.reltuples),
                relpages: known.relpages,
                relallfrozen: known.relallfrozen,
            },
        );
        #[allow(clippy::cast_precision_loss)] // rows of a table
        let live = done.live_tuples as f64;
        let found = self.statistics(estimated_rows(known, pages, done.scanned_pages, live));
        let differs = self.class.statistics.replace(found) != Some(found);
        // Who cuts the file off tells everybody, whatever the entry says (`CacheInvalidateSmgr`).
        let is_cut = done.truncated.is_some_and(|(from, to)| from != to);
        differs || is_cut || (self.class.relfrozenxid, self.class.relminmxid) != before
    }

    /// An index was built by a scan of it.
    pub(super) fn note_indexed(&mut self, transactions: &impl Transactions) {
        let items = self.heap.pages().iter().flat_map(|page| page.each_item());
        let live = items.filter(|(_, item)| match item {
            LinePointer::Normal(tuple) => TupleState::of(tuple, transactions) == TupleState::Live,
            _ => false,
        });
        let live = live.count() as u64;
        self.note_built(live);
    }

    /// An index was built, whose scan has found so many live rows. Differs: autovacuum is taken to
    /// be off, which from 18 on leaves the entry as it is.
    ///
    /// Source: `index_update_stats`, src/backend/catalog/index.c (REL_17_STABLE, REL_18_STABLE).
    pub(super) fn note_built(&mut self, live: u64) {
        if self.heap.behaviour().index_build_keeps_statistics {
            return;
        }
        let is_known = |known: ClassStatistics| known.reltuples >= 0.0;
        if live > 0 || self.class.statistics.is_some_and(is_known) {
            #[allow(clippy::cast_precision_loss)] // rows of a table
            let rows = live as f64;
            self.class.statistics = Some(self.statistics(rows));
        }
    }

    /// A rewrite has copied so many versions.
    ///
    /// Source: `copy_table_data`, src/backend/commands/cluster.c (REL_18_STABLE).
    pub(super) fn note_copied(&mut self, versions: u64) {
        #[allow(clippy::cast_precision_loss)] // rows of a table
        let rows = versions as f64;
        self.class.statistics = Some(self.statistics(rows));
    }

    /// It is empty, and nothing is known of what it will hold.
    pub(super) fn note_truncated(&mut self) {
        self.class.statistics = Some(self.statistics(-1.0));
    }

    #[allow(clippy::cast_possible_truncation)] // the server's float4
    fn statistics(&self, rows: f64) -> ClassStatistics {
        let pages = self.heap.page_count();
        let bits = (0..pages).map(|block| self.heap.vm().get(BlockNumber(block)));
        let (mut visible, mut frozen) = (0, 0);
        for bit in bits {
            visible += u32::from(bit.all_visible);
            frozen += u32::from(bit.all_frozen);
        }
        let counts_frozen =
            self.heap.behaviour().opportunistic_freeze >= OpportunisticFreeze::EagerScan;
        ClassStatistics {
            relpages: pages,
            reltuples: rows as f32,
            relallvisible: visible,
            relallfrozen: if counts_frozen { frozen } else { 0 },
        }
    }
}
