//! What was logged, summed by table and type.

use std::collections::BTreeMap;

use crate::btree::RecordKind;
use crate::checkpoint::ForkId;
use crate::wal::{Doubt, Owner, RecordType, Totals, Wal};

impl Wal {
    /// Begins to count anew.
    pub fn reset_totals(&mut self) {
        self.sums.fill(Self::NO_SUMS);
        self.update_bytes.fill(0);
        self.doubts.fill(Doubt::default());
        if let Some(images) = &mut self.uncompressed {
            images.clear();
        }
        self.pages.start_window();
    }

    /// Records of one type.
    #[must_use]
    pub fn of(&self, record: RecordType) -> Totals {
        self.sum(|_, of| of == record)
    }

    /// All types that occurred, in order.
    pub fn by_type(&self) -> impl Iterator<Item = (RecordType, Totals)> + use<> {
        let mut by_type: BTreeMap<RecordType, Totals> = BTreeMap::new();
        for (_, record, totals) in self.counted() {
            by_type.entry(record).or_default().add(totals);
        }
        by_type.into_iter()
    }

    /// All records.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for totals in self.sums.iter().flatten() {
            sum.add(*totals);
        }
        sum
    }

    /// All records that name a page of this table, its indexes or maps.
    #[must_use]
    pub fn of_table(&self, table: usize) -> Totals {
        self.sum(|owner, _| owner == Some(table))
    }

    /// A statement that updates rows begins, or has ended: what it logs is counted by itself.
    #[inline]
    pub(crate) fn count_updates(&mut self, updates: bool) {
        self.updates = updates;
    }

    /// What statements that update rows have logged of this table and its indexes: as
    /// `pg_stat_statements.wal_bytes` has it, without images, and so without the end of the
    /// transaction.
    #[must_use]
    pub fn update_bytes(&self, table: usize) -> u64 {
        self.update_bytes[table + 1]
    }

    /// All records that end transactions.
    #[must_use]
    pub fn of_transactions(&self) -> Totals {
        self.sum(|_, record| matches!(record, RecordType::Commit | RecordType::Abort))
    }

    /// What a proof counts, by type: records that name a page, and those that end transactions;
    /// not the few that name a relation in their main data only.
    pub fn counted_by_type(&self) -> impl Iterator<Item = (RecordType, Totals)> + use<> {
        let reuse = RecordType::Btree(RecordKind::ReusePage);
        self.by_type().filter(move |&(record, _)| record != reuse)
    }

    /// All records that belong to tables and indexes: all but the ends of transactions.
    #[must_use]
    pub fn relation_totals(&self) -> Totals {
        self.sum(|owner, _| owner.is_some())
    }

    /// Pages of this table's forks, and those of its indexes, that a record of the window names.
    #[must_use]
    pub fn named_pages(&self, table: usize) -> usize {
        if self.unlogged[table + 1] {
            return 0;
        }
        let owners = self.owners.iter().enumerate();
        let own = owners.filter(|&(_, &owner)| owner == Some(table));
        own.map(|(fork, _)| self.pages.named_pages(ForkId(fork)))
            .sum()
    }

    /// Types that occurred, by table.
    fn counted(&self) -> impl Iterator<Item = (Owner, RecordType, Totals)> {
        let owners = self.sums.iter().enumerate();
        owners.flat_map(|(number, sums)| {
            let counted = sums.iter().enumerate();
            let counted = counted.filter(|(_, totals)| totals.wal_records > 0);
            counted
                .map(move |(place, totals)| (number.checked_sub(1), RecordType::at(place), *totals))
        })
    }

    fn sum(&self, is_wanted: impl Fn(Owner, RecordType) -> bool) -> Totals {
        let mut sum = Totals::default();
        for (owner, record, totals) in self.counted() {
            if is_wanted(owner, record) {
                sum.add(totals);
            }
        }
        sum
    }
}
