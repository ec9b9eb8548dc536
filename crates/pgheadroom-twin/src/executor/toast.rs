//! TOAST: values of long rows are compressed, or stored in chunks in a table of their own.
//!
//! ```text
//! row above 2032 bytes, or with a value out of line
//!   1. largest first: compress (but what is external); out of line at once if it alone exceeds
//!      the target
//!   2. largest first: out of line
//!   3. of columns whose storage is main, which came in neither: compress
//!   4. the row above 8160 bytes: out of line
//! out of line: chunk rows of 1996 bytes, each with an entry in the index (chunk_id, chunk_seq)
//! ```
//!
//! A version that keeps a value keeps its stored form. Chunks of a value that a version no longer
//! has are deleted before the new version is written; a DELETE does so afterwards. Only strings
//! can be long enough: whole numerics stay below 24 bytes.

use std::cell::RefCell;
use std::collections::HashMap;

use pgheadroom_layout::Behaviour;
use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::MAX_HEAP_TUPLE_SIZE;
use pgheadroom_layout::toast::{TOAST_MAX_CHUNK_SIZE, TOAST_TUPLE_THRESHOLD};
use pgheadroom_layout::tuple::{TOAST_POINTER_SIZE, VARATT_SHORT_MAX, VARHDRSZ, VARHDRSZ_SHORT};
use pgheadroom_layout::{HeapFillfactor, Storage};

use crate::executor::StatementError;
use crate::executor::fetch::HeapAccess;
use crate::executor::index_definition::IndexDefinition;
use crate::executor::table::{Table, TableDefinition, Toast};
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::row::counted::Counted;
use crate::row::kind::Kind;
use crate::row::{ColumnDefinition, Form, Measured, NULL_SLOT, OutOfLine, RowType, Texts};
use crate::text::Text;
use crate::value::Value;
use crate::wal::Wal;

/// Most bytes of a character in UTF-8. Source: `pg_wchar_table`, src/common/wchar.c.
const MAX_CHARACTER_BYTES: u32 = 4;
/// Source: `NUMERIC_HDRSZ`, src/backend/utils/adt/numeric.c.
const NUMERIC_HEADER: u32 = 8;

/// What one statement needs to write.
pub(super) struct Writer<'a> {
    pub procs: &'a mut ProcArray,
    pub wal: &'a mut Wal,
    pub statement: u32,
}

impl Toast {
    /// Source: `create_toast_table`, src/backend/catalog/toasting.c (REL_18_STABLE).
    pub fn new(behaviour: Behaviour, wal: &mut Wal) -> Result<Self, StatementError> {
        let columns = [
            ("chunk_id", "int4"),
            ("chunk_seq", "int4"),
            ("chunk_data", "text"),
        ];
        let columns = columns.iter();
        let definition = TableDefinition {
            columns: columns
                .map(|(name, type_name)| ColumnDefinition::new(name, type_name))
                .collect::<Result<_, _>>()?,
            indexes: vec![IndexDefinition::on_columns(vec![0, 1], true)],
            fillfactor: HeapFillfactor::new(100).expect("the default fillfactor"),
        };
        Ok(Self {
            table: Table::new_toast(behaviour, definition, wal)?,
            kept_ids: Vec::new(),
            values: None,
        })
    }

    /// An empty TOAST table in the place of this one, for a rewritten table.
    pub fn renewed(&self, behaviour: Behaviour, wal: &mut Wal) -> Result<Self, StatementError> {
        let mut new = Self::new(behaviour, wal)?;
        new.table.counters = self.table.counters;
        new.table.class.skips_fsm = true;
        new.values = self.values.as_ref().map(|_| HashMap::new());
        Ok(new)
    }

    /// What chunks hold is kept from now on: `texts` are the strings of the table.
    pub(super) fn keep_values(&mut self, texts: &Texts) {
        self.values = Some(texts.out_of_line().collect());
    }

    /// A value by its OID, where it is kept.
    pub(super) fn value(&self, value_id: u32) -> Option<&OutOfLine> {
        self.values.as_ref()?.get(&value_id)
    }

    /// Stores a value in chunks; its OID. The lock on the TOAST table stays to the end of the
    /// transaction.
    ///
    /// Source: `toast_save_datum`, src/backend/access/common/toast_internals.c (REL_15_STABLE,
    /// REL_18_STABLE), which closes the table with `NoLock`.
    fn save(
        &mut self,
        column: usize,
        stored_bytes: u32,
        to: &mut Writer<'_>,
    ) -> Result<u32, StatementError> {
        self.table.session.locked_by = to.procs.lxid();
        let mut kept = self.kept_ids.iter();
        let value_id = match kept.find(|&&(of, _)| of == column) {
            Some(&(_, value_id)) => value_id,
            None => to.procs.object_ids.make(),
        };
        let mut left = stored_bytes;
        let mut sequence = 0_i64;
        while left > 0 {
            let chunk = left.min(TOAST_MAX_CHUNK_SIZE);
            let values = [
                Value::Integer(i64::from(value_id)),
                Value::Integer(sequence),
                Value::Text(Text::padded(b'x', chunk)),
            ];
            let row = self.table.values.add(&values)?;
            self.table.insert(row, to.procs, to.wal, to.statement)?;
            left -= chunk;
            sequence += 1;
        }
        Ok(value_id)
    }

    /// Reads a value's chunks, and deletes them if asked: then the lock stays, as above.
    ///
    /// Source: `heap_fetch_toast_slice`, src/backend/access/heap/heaptoast.c; `toast_fetch_datum`,
    /// src/backend/access/common/detoast.c, which unlocks the table; `toast_delete_datum`,
    /// src/backend/access/common/toast_internals.c, which does not (REL_15_STABLE, REL_18_STABLE).
    fn read(&mut self, value_id: u32, deletes: bool, to: &mut Writer<'_>) {
        let table = &mut self.table;
        if deletes {
            table.session.locked_by = to.procs.lxid();
        }
        let key = [i64::from(value_id)];
        let mut next = table.indexes.btrees[0].tree.scan_start(&key);
        let mut last_block = None;
        while let Some(leaf) = next {
            let scanned = table.indexes.btrees[0].tree.scan_page(leaf, &key, &key);
            for &(_, tid) in &scanned.entries {
                if last_block.replace(tid.block) != Some(tid.block) {
                    let wal = RefCell::new(&mut *to.wal);
                    let procs = &*to.procs;
                    HeapAccess::new(table.heap_parts(), procs, &wal, None).prune_opt(tid.block);
                }
                if deletes {
                    table.delete(tid, to.procs, to.wal, to.statement);
                }
            }
            next = scanned.next;
        }
    }
}

impl Table {
    /// Reads the values of a row that are out of line, as a client gets them.
    pub(super) fn read_out_of_line(&mut self, tid: Tid, to: &mut Writer<'_>) {
        let row = self.row_at(tid);
        let columns = 0..self.values.row_type.columns.len();
        let slots = columns.map(|column| self.values.slot(row, column));
        let ids: Vec<u32> = external_ids(&self.values.row_type, slots, &self.values.texts);
        self.read_values(&ids, false, to);
    }

    /// Deletes the values of a row that are out of line.
    ///
    /// Source: `heap_toast_delete`, src/backend/access/heap/heaptoast.c (REL_18_STABLE).
    pub(super) fn delete_out_of_line(&mut self, row: u32, to: &mut Writer<'_>) {
        let slots = self.values.slots(row);
        let slots = slots.iter().copied();
        let ids = external_ids(&self.values.row_type, slots, &self.values.texts);
        self.read_values(&ids, true, to);
    }

    pub(super) fn read_values(&mut self, ids: &[u32], deletes: bool, to: &mut Writer<'_>) {
        for &id in ids {
            let toast = self.toast.as_mut().expect("a TOAST table");
            toast.read(id, deletes, to);
        }
    }

    /// Stores the values of a row that are out of line in a new TOAST table: read whole, and moved
    /// out again as far as the row is too long without that.
    ///
    /// Source: `raw_heap_insert`, src/backend/access/heap/rewriteheap.c, and `toast_save_datum`
    /// with `rd_toastoid`, src/backend/access/common/toast_internals.c (REL_18_STABLE).
    pub(super) fn store_anew(
        &mut self,
        row: u32,
        old_toast: &mut Toast,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        let old = self.values.slots(row).to_vec();
        let mut new = old.clone();
        let mut kept_ids = Vec::new();
        for (column, slot) in new.iter_mut().enumerate() {
            let form = match self.external_id(column, *slot) {
                Some(_) => self.values.texts.form(*slot),
                None => None,
            };
            if let Some(Form::External {
                value_id,
                stored_bytes,
            }) = form
            {
                old_toast.read(value_id, false, to);
                kept_ids.push((column, value_id));
                let text = self.values.texts.get(*slot).clone();
                *slot = if stored_bytes == text.len() {
                    self.values.texts.add(text)
                } else {
                    let payload_bytes = stored_bytes;
                    let method = self.values.texts.method_of(*slot);
                    self.values.texts.add_form(
                        text,
                        Form::Compressed { payload_bytes },
                        to.statement,
                        method,
                    )
                };
            }
        }
        if kept_ids.is_empty() {
            return Ok(());
        }
        let toast = self.toast.as_mut().expect("a TOAST table");
        toast.kept_ids = kept_ids;
        let inlined = new.clone();
        let mut work = Work {
            hoff: self.values.row_type.measure(&new, &self.values.texts).hoff,
            incompressible: vec![false; new.len()],
            old: &[],
        };
        let is_plain: Vec<bool> = (0..new.len())
            .map(|column| self.is_plain_text(column, new[column]))
            .collect();
        work.shorten(self, &mut new, to)?;
        for column in 0..new.len() {
            if old[column] != inlined[column] {
                self.values.texts.remove(old[column]);
            }
            if inlined[column] != new[column] && is_plain[column] {
                self.values.texts.remove(inlined[column]);
            }
        }
        self.toast.as_mut().expect("a TOAST table").kept_ids.clear();
        self.values.store(row, &new);
        Ok(())
    }

    fn is_plain_text(&self, column: usize, slot: i64) -> bool {
        let is_text = slot != NULL_SLOT && self.values.row_type.columns[column].kind.is_kept();
        is_text && self.values.texts.form(slot).is_none()
    }

    /// Whether the server gives a table with these columns a TOAST table.
    ///
    /// Source: `heapam_relation_needs_toast_table`, src/backend/access/heap/heapam_handler.c, and
    /// `type_maximum_size`, src/backend/utils/adt/format_type.c (REL_18_STABLE), in UTF-8.
    pub(super) fn needs_toast_table(&self) -> bool {
        let columns = &self.values.row_type.columns;
        let has_long = |kind: Kind| match kind {
            Kind::Text { length } | Kind::Padded { length } => length.is_none(),
            Kind::Numeric { whole_digits, .. } => whole_digits.is_none(),
            Kind::Counted(Counted::Bits { .. }) => false,
            Kind::Counted(_) | Kind::Wrapped(_) | Kind::Integers(_) | Kind::Elements(_) => {
                kind.layout().1.is_none()
            }
            _ => false,
        };
        if columns.iter().any(|column| has_long(column.kind)) {
            return true;
        }
        let mut data_bytes = 0_u32;
        let mut has_toastable = false;
        for column in columns {
            let (align, width) = column.kind.layout();
            let most = match column.kind {
                Kind::Text { length } | Kind::Padded { length } => {
                    length.unwrap_or(0) * MAX_CHARACTER_BYTES + VARHDRSZ
                }
                Kind::Numeric {
                    whole_digits,
                    scale,
                } => {
                    let digits = whole_digits.unwrap_or(0) + u32::from(scale);
                    NUMERIC_HEADER + 2 * ((digits + 6) / 4)
                }
                // Source: `type_maximum_size` of BITOID.
                Kind::Counted(counted) => width
                    .or(counted.varlena_bytes().map(|b| b + 4))
                    .unwrap_or(0),
                _ => width.unwrap_or(0),
            };
            has_toastable |= width.is_none();
            data_bytes = data_bytes.next_multiple_of(align) + most;
        }
        let bitmap = u32::try_from(columns.len().div_ceil(8)).expect("at most 1600 columns");
        let tuple_bytes = maxalign(23 + bitmap) + maxalign(data_bytes);
        has_toastable && tuple_bytes > TOAST_TUPLE_THRESHOLD
    }

    /// The OID of a value, if it is out of line.
    pub(super) fn external_id(&self, column: usize, slot: i64) -> Option<u32> {
        if slot == NULL_SLOT || !self.values.row_type.columns[column].kind.is_kept() {
            return None;
        }
        match self.values.texts.form(slot) {
            Some(Form::External { value_id, .. }) => Some(value_id),
            _ => None,
        }
    }

    /// Whether a new version goes through the toaster.
    ///
    /// Source: `heap_prepare_insert` and `heap_update`, src/backend/access/heap/heapam.c
    /// (REL_18_STABLE).
    pub(super) fn needs_toast(&self, old: &[i64], new: &[i64], measured: Measured) -> bool {
        let has_external = |slots: &[i64]| {
            let mut slots = slots.iter().enumerate();
            slots.any(|(column, &slot)| self.external_id(column, slot).is_some())
        };
        measured.tuple_bytes > TOAST_TUPLE_THRESHOLD
            || (self.values.texts.has_forms() && (has_external(old) || has_external(new)))
    }

    /// Makes a new version shorter, and drops what only the old one had; `old` is empty for a new
    /// row. Columns that get another form are added to `changed`.
    ///
    /// Source: `heap_toast_insert_or_update`, src/backend/access/heap/heaptoast.c, with
    /// src/backend/access/table/toast_helper.c (REL_18_STABLE).
    pub(super) fn toast_version(
        &mut self,
        old: &[i64],
        new: &mut [i64],
        changed: &mut Vec<usize>,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        let given = new.to_vec();
        let mut work = Work {
            hoff: self.values.row_type.measure(new, &self.values.texts).hoff,
            incompressible: vec![false; new.len()],
            old,
        };
        work.shorten(self, new, to)?;
        for (column, (&before, &after)) in given.iter().zip(&*new).enumerate() {
            if before == after {
                continue;
            }
            let was_kept = old.get(column) == Some(&before);
            if !was_kept {
                self.values.texts.remove(before);
            }
            if !changed.contains(&column) {
                changed.push(column);
            }
        }
        let dropped = old
            .iter()
            .enumerate()
            .filter(|&(column, &slot)| slot != new[column]);
        let ids: Vec<u32> = dropped
            .filter_map(|(column, &slot)| self.external_id(column, slot))
            .collect();
        to.procs.object_ids.replace(ids.len() as u64);
        self.read_values(&ids, true, to);
        Ok(())
    }
}

fn external_ids(row_type: &RowType, slots: impl Iterator<Item = i64>, texts: &Texts) -> Vec<u32> {
    if !texts.has_forms() {
        return Vec::new();
    }
    let columns = row_type.columns.iter().zip(slots);
    columns
        .filter(|(column, slot)| column.kind.is_kept() && *slot != NULL_SLOT)
        .filter_map(|(_, slot)| match texts.form(slot) {
            Some(Form::External { value_id, .. }) => Some(value_id),
            _ => None,
        })
        .collect()
}

/// What may still be done to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Still {
    Compress,
    MoveOut,
}

/// A version while it is being shortened.
struct Work<'a> {
    hoff: u32,
    incompressible: Vec<bool>,
    /// Slots of the version before it, which keeps its values until the transaction ends.
    old: &'a [i64],
}

impl Work<'_> {
    fn shorten(
        &mut self,
        table: &mut Table,
        new: &mut [i64],
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        // Of unsigned numbers, as there.
        let target = table.class.parameters.toast_target;
        let most = target.checked_sub(self.hoff).unwrap_or(u32::MAX);
        let data_bytes = |table: &Table, new: &[i64]| {
            let measured = table.values.row_type.measure(new, &table.values.texts);
            measured.tuple_bytes - measured.hoff
        };
        while data_bytes(table, new) > most {
            let Some(column) = self.biggest(table, new, Still::Compress, false) else {
                break;
            };
            if table.values.row_type.columns[column].storage == Storage::External {
                self.incompressible[column] = true;
            } else {
                self.compress(table, new, column, to.statement);
            }
            if stored_bytes(table, column, new[column]) > most {
                self.move_out(table, new, column, to)?;
            }
        }
        while data_bytes(table, new) > most {
            let Some(column) = self.biggest(table, new, Still::MoveOut, false) else {
                break;
            };
            self.move_out(table, new, column, to)?;
        }
        while data_bytes(table, new) > most {
            let Some(column) = self.biggest(table, new, Still::Compress, true) else {
                break;
            };
            self.compress(table, new, column, to.statement);
        }
        // Source: `TOAST_TUPLE_TARGET_MAIN`, src/include/access/heaptoast.h: a row to a page.
        while data_bytes(table, new) > MAX_HEAP_TUPLE_SIZE - self.hoff {
            let Some(column) = self.biggest(table, new, Still::MoveOut, true) else {
                break;
            };
            self.move_out(table, new, column, to)?;
        }
        Ok(())
    }

    /// The column with the largest value in the row to which that may still be done; of those
    /// whose storage is main, or of the others.
    ///
    /// Source: `toast_tuple_find_biggest_attribute`, toast_helper.c.
    fn biggest(&self, table: &Table, new: &[i64], still: Still, of_main: bool) -> Option<usize> {
        let to_compress = still == Still::Compress;
        let mut best = None;
        let mut best_bytes = TOAST_POINTER_SIZE.next_multiple_of(8);
        for (column, &slot) in new.iter().enumerate() {
            let layout = &table.values.row_type.columns[column];
            if slot == NULL_SLOT || !layout.kind.is_kept() || layout.width.is_some() {
                continue;
            }
            if (layout.storage == Storage::Main) != of_main {
                continue;
            }
            let is_candidate = match table.values.texts.form(slot) {
                Some(Form::External { .. }) => false,
                Some(Form::Compressed { .. }) => !to_compress,
                None => !(to_compress && self.incompressible[column]),
            };
            let bytes = stored_bytes(table, column, slot);
            if is_candidate && bytes > best_bytes {
                best = Some(column);
                best_bytes = bytes;
            }
        }
        best
    }

    /// Source: `toast_tuple_try_compression`, toast_helper.c.
    fn compress(&mut self, table: &mut Table, new: &mut [i64], column: usize, statement: u32) {
        let text = table.values.texts.get(new[column]).clone();
        let method = table.values.row_type.columns[column].compression;
        let Some(bytes) = table.values.texts.compress(&text, method) else {
            self.incompressible[column] = true;
            return;
        };
        let payload_bytes = u32::try_from(bytes.len()).expect("a value below 1 GB") + VARHDRSZ;
        let form = Form::Compressed { payload_bytes };
        new[column] = table.values.texts.add_form(text, form, statement, method);
    }

    /// Source: `toast_tuple_externalize`, toast_helper.c.
    fn move_out(
        &self,
        table: &mut Table,
        new: &mut [i64],
        column: usize,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        let slot = new[column];
        let text = table.values.texts.get(slot).clone();
        let (stored_bytes, is_compressed) = match table.values.texts.form(slot) {
            Some(Form::Compressed { payload_bytes }) => (payload_bytes, true),
            _ => (text.len(), false),
        };
        let method = table.values.texts.method_of(slot);
        let toast = table.toast.as_mut().expect("a table with strings has one");
        let value_id = toast.save(column, stored_bytes, to)?;
        if let Some(values) = &mut toast.values {
            let text = text.clone();
            values.insert(
                value_id,
                OutOfLine {
                    text,
                    is_compressed,
                    method,
                },
            );
        }
        let form = Form::External {
            value_id,
            stored_bytes,
        };
        let moved = table
            .values
            .texts
            .add_form(text, form, to.statement, method);
        if is_compressed && self.old.get(column) != Some(&slot) {
            table.values.texts.remove(slot);
        }
        new[column] = moved;
        Ok(())
    }
}

/// Size of a value in the row with its header.
fn stored_bytes(table: &Table, column: usize, slot: i64) -> u32 {
    match table.values.texts.form(slot) {
        Some(Form::External { .. }) => TOAST_POINTER_SIZE,
        Some(Form::Compressed { payload_bytes }) => payload_bytes + VARHDRSZ,
        None => {
            let payload =
                table.values.row_type.columns[column].payload_bytes(slot, &table.values.texts);
            if payload + VARHDRSZ_SHORT <= VARATT_SHORT_MAX {
                payload + VARHDRSZ_SHORT
            } else {
                payload + VARHDRSZ
            }
        }
    }
}
