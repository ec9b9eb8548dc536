//! Settings of a database and of its tables.

use pgheadroom_layout::HeapFillfactor;

use crate::executor::{Database, GinSettings, Relation, StorageParameters, TableId, vacuum};
use crate::memory_settings::MemorySettings;

impl Database {
    /// Objects are made that are no part of this, with so many OIDs.
    pub const fn skip_object_ids(&mut self, count: u32) {
        self.procs.object_ids.skip(count);
    }

    /// From now on it is drawn from this seed which rows of larger tables ANALYZE samples, and how
    /// many values of statistics are out of line; what depends on it is counted.
    pub const fn draw_statistics(&mut self, seed: u64) {
        self.samples.seed = seed;
        self.procs.object_ids.draw(seed);
    }

    /// Of the table's statistics so many values may be out of line.
    pub fn set_long_statistics(&mut self, table: TableId, at_most: u32) {
        self.tables[table.0].class.long_statistics = at_most;
    }

    /// The table, which is empty and has no index yet, is an unlogged one.
    pub fn set_unlogged(&mut self, table: TableId) {
        self.wal.open_table(table.0);
        self.wal.set_unlogged();
    }

    /// From now on commands have this memory.
    pub const fn set_memory_settings(&mut self, settings: MemorySettings) {
        self.memory_settings = settings;
    }

    /// From now on VACUUM has parallel workers by these settings.
    pub const fn set_parallel_settings(&mut self, settings: vacuum::ParallelSettings) {
        self.parallel_settings = settings;
    }

    /// From now on a new GIN is worked on with these settings.
    pub const fn set_gin_settings(&mut self, settings: GinSettings) {
        self.gin_settings = settings;
    }

    /// ALTER TABLE ... SET (fillfactor = ...): rows stay where they are, and updates of them are
    /// counted apart.
    pub fn set_fillfactor(&mut self, table: TableId, fillfactor: HeapFillfactor) {
        let altered = &mut self.tables[table.0];
        altered.heap.set_fillfactor(fillfactor);
        altered.class.old_pages = altered.heap.page_count();
        self.forget_target_blocks_of(Relation {
            table,
            is_toast: false,
        });
    }

    /// CREATE TABLE ... WITH, of the table and of its TOAST table.
    pub fn set_parameters(
        &mut self,
        table: TableId,
        own: StorageParameters,
        toast: StorageParameters,
    ) {
        let altered = &mut self.tables[table.0];
        altered.class.parameters = own;
        if let Some(its) = &mut altered.toast {
            its.table.class.parameters = toast;
        }
    }
}
