//! Foreign keys: what the checks at the end of a statement do to the tables referred to.
//!
//! ```text
//! INSERT, or UPDATE of a referring column -> queued
//! end of the statement -> for each: index of the parent's key -> visit its page -> LOCK record
//! ```
//!
//! A check is `SELECT 1 FROM ONLY parent WHERE key = $1 FOR KEY SHARE`, in a snapshot of its own,
//! which stops at the row that it finds: entries after it are not looked at. Left out: keys of
//! several columns, a table that refers to itself, deletion from a table referred to. 19 looks into
//! the index without a statement, with the same effect: its candidate 1 value by value, as before.
//!
//! Source: `RI_FKey_check`, `RI_FKey_fk_upd_check_required` and `ri_PerformCheck`,
//! src/backend/utils/adt/ri_triggers.c; `AfterTriggerEndQuery` and `ExecARUpdateTriggers`,
//! src/backend/commands/trigger.c (REL_15_STABLE, REL_18_STABLE); `ri_FastPathCheck`, ri_triggers.c
//! (seen on 19rc1).

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;

use crate::executor::fetch::{Fetched, HeapAccess};
use crate::executor::foreign_key::ForeignKey;
use crate::executor::table::Table;
use crate::executor::{Database, StatementError, TableId};
use crate::lock_options::LockTupleMode;
use crate::object_ids::OIDS_OF_FOREIGN_KEY;
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::row::NULL_SLOT;
use crate::value::Value;

impl Table {
    /// Whether the version at this TID was made by the running transaction.
    pub(super) fn is_own(&self, tid: Tid, procs: &ProcArray) -> bool {
        if self.foreign_keys.keys.is_empty() {
            return false;
        }
        let page = &self.heap.pages()[tid.block.0 as usize];
        let tuple = page.tuple(tid.offset).expect("a visible tuple");
        procs.current() == Some(tuple.xmin)
    }

    /// A row was inserted: what it refers to is to be looked for.
    pub(super) fn queue_checks(&mut self, row: u32) {
        for position in 0..self.foreign_keys.keys.len() {
            self.queue_check(position, row);
        }
    }

    /// A row was updated: a value that stayed is looked for only if the version before was made by
    /// the same transaction, whose own check may be void now.
    pub(super) fn queue_checks_of_update(&mut self, row: u32, is_own: bool) {
        for position in 0..self.foreign_keys.keys.len() {
            let column = self.foreign_keys.keys[position].column;
            if is_own || self.scratch.update.changed.contains(&column) {
                self.queue_check(position, row);
            }
        }
    }

    fn queue_check(&mut self, position: usize, row: u32) {
        let key = self.foreign_keys.keys[position];
        let value = self.values.slot(row, key.column);
        if value != NULL_SLOT {
            self.session.queued.push((key, value));
        }
    }

    /// An update is done: where a trigger may have to fire for it, its slot keeps the old version's
    /// page pinned.
    ///
    /// Source: `ExecARUpdateTriggers` and `GetTupleForTrigger`, src/backend/commands/trigger.c
    /// (REL_15_STABLE, REL_18_STABLE).
    pub(super) fn hold_trigger_slot(&mut self, old: BlockNumber) {
        let keys = &self.foreign_keys;
        if keys.is_referenced || !keys.keys.is_empty() {
            self.session.trigger_slot = Some(old);
        }
    }
}

impl Database {
    /// ALTER TABLE ... ADD FOREIGN KEY: this column refers to the key of another table, which this
    /// of its indexes is over.
    ///
    /// # Panics
    /// When a table refers to itself, or the index is no B-tree.
    pub fn add_foreign_key(&mut self, table: TableId, column: usize, parent: (TableId, usize)) {
        assert_ne!(table, parent.0, "a table that refers to itself");
        let index = self.tables[parent.0.0].btree_position(parent.1);
        self.tables[parent.0.0].foreign_keys.is_referenced = true;
        let of = &mut self.tables[table.0];
        of.foreign_keys.keys.push(ForeignKey {
            column,
            parent: parent.0,
            index,
        });
        of.learn_columns();
        self.procs.object_ids.skip(OIDS_OF_FOREIGN_KEY);
    }

    /// A statement that changed this table ends: its triggers fire.
    ///
    /// # Errors
    /// [`StatementError::ForeignKey`]; the transaction has to be rolled back.
    pub fn end_statement(&mut self, table: TableId) -> Result<(), StatementError> {
        let of = &mut self.tables[table.0].session;
        of.trigger_slot = None;
        if of.queued.is_empty() {
            return Ok(());
        }
        let mut queued = std::mem::take(&mut of.queued);
        let mut done = 0;
        let mut result = Ok(());
        while let (Ok(()), Some(&(key, value))) = (&result, queued.get(done)) {
            let value = self.value_of(table, key, value);
            result = self.lock_parent(key, &value);
            done += usize::from(result.is_ok());
        }
        if matches!(result, Err(StatementError::Waits(_))) {
            queued.drain(..done);
        } else {
            queued.clear();
        }
        self.tables[table.0].session.queued = queued;
        result
    }

    /// What a row's column refers to.
    fn value_of(&self, table: TableId, key: ForeignKey, slot: i64) -> Value {
        let of = &self.tables[table.0];
        of.values.row_type.value(key.column, slot, &of.values.texts)
    }

    /// Finds the row referred to, and locks it; the table stays locked with it.
    fn lock_parent(&mut self, key: ForeignKey, value: &Value) -> Result<(), StatementError> {
        self.statement += 1;
        self.procs.take_snapshot();
        let statement = self.statement;
        let table = &mut self.tables[key.parent.0];
        table.session.locked_by = self.procs.lxid();
        let value = table.indexes.btrees[key.index].code_of_value(0, value);
        let mut next = table.indexes.btrees[key.index].tree.scan_start(&[value]);
        let mut last_block = None;
        let mut is_found = false;
        let mut dead = std::mem::take(&mut table.scratch.dead_entries);
        while let (Some(leaf), false) = (next, is_found) {
            let scanned = table.indexes.btrees[key.index]
                .tree
                .scan_page(leaf, &[value], &[value]);
            dead.clear();
            for &(offset, tid) in &scanned.entries {
                let wal = RefCell::new(&mut self.wal);
                let mut heap = HeapAccess::new(table.heap_parts(), &self.procs, &wal, None);
                if last_block.replace(tid.block) != Some(tid.block) {
                    heap.prune_opt(tid.block);
                }
                match heap.fetch(tid, statement) {
                    Fetched::Found(found) => {
                        let (procs, wal) = (&mut self.procs, &mut self.wal);
                        if let Some(xid) = table.holder(found, LockTupleMode::KeyShare, procs) {
                            return Err(StatementError::Waits(xid));
                        }
                        table.lock(found, LockTupleMode::KeyShare, procs, wal);
                        is_found = true;
                        break;
                    }
                    Fetched::AllDead => dead.push((offset, tid)),
                    Fetched::Invisible => {}
                }
            }
            table.indexes.btrees[key.index].kill(&scanned, &dead, &mut self.wal);
            next = scanned.next;
        }
        table.scratch.dead_entries = dead;
        if is_found {
            return Ok(());
        }
        Err(StatementError::ForeignKey { key: value })
    }
}
