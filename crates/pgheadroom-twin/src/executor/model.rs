//! The seam for what is not PostgreSQL: other ways to keep rows and pages.
//!
//! ```text
//! profile -> [writes_pages] -> load -> [of_table] -> run: [page_for, beside, in_place]
//! ```
//!
//! In brackets is what a model may answer otherwise. Without one nothing is asked, and all is
//! PostgreSQL's to the unit; none is in this crate (`pgheadroom-models` has them), and no length of
//! theirs. What a model may ask of a table is in `executor/models.rs`.

use std::fmt::Debug;

use pgheadroom_layout::BlockNumber;

use crate::executor::{StatementError, Table};
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::wal::{ModelRecord, Wal};

/// A way to keep rows or pages that no server of ours has.
///
/// Every answer that a model does not give is PostgreSQL's. The first three are asked of a run's
/// model, the others of what [`Model::of_table`] made for one table.
pub trait Model: Debug + Send + Sync {
    /// What of it is a model, in a sentence for the result.
    fn sentence(&self) -> Option<&'static str> {
        None
    }

    /// Whether the server writes pages: if not, it has no checkpoints, and logs no images that
    /// would repair a page.
    fn writes_pages(&self) -> bool {
        true
    }

    /// What a table that is loaded keeps beside its heap from now on; none where it is a heap.
    fn of_table(&self, table: &Table, wal: &mut Wal) -> Option<Box<dyn Model>> {
        let _ = (table, wal);
        None
    }

    /// What `pg_waldump` would call its records.
    fn record_name(&self, record: ModelRecord) -> &'static str {
        match record {
            ModelRecord::Change => "Model/CHANGE",
            ModelRecord::Page => "Model/PAGE",
        }
    }

    /// The page that a new row of this length goes to, which has room for it, or a version that
    /// leaves the page of the one before; none where the heap chooses.
    ///
    /// # Errors
    /// [`StatementError`] when the row fits no page, or the table cannot grow.
    fn page_for(&mut self, new: NewRow<'_>) -> Result<Option<BlockNumber>, StatementError> {
        let _ = new;
        Ok(None)
    }

    /// Notes that a row is inserted, or the version of this length replaced or deleted; bytes that
    /// the heap's record, which is written next, has for that.
    fn beside(&mut self, replaced_bytes: Option<u16>, wal: &mut Wal) -> u32 {
        let _ = (replaced_bytes, wal);
        0
    }

    /// Whether a new version that is made as in a heap, on the page of the old one, can do without
    /// index entries.
    fn has_hot_updates(&self) -> bool {
        true
    }

    /// Changes a row where it is and logs that; whether it did. No index learns of it, and it
    /// leaves no version behind.
    fn in_place(&mut self, change: InPlace<'_>) -> bool {
        let _ = change;
        false
    }

    /// Pages that it keeps beside the heap.
    fn pages(&self) -> u32 {
        0
    }
}

/// A row that is about to be inserted, or another version of one.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// Its table.
    pub table: &'a mut Table,
    /// Its number there; its values are the new ones.
    pub row: u32,
    /// The version that it replaces, beside which the heap puts it where it fits.
    pub replaced: Option<Tid>,
    /// Length of its tuple.
    pub tuple_bytes: u16,
    /// Who sees what.
    pub procs: &'a ProcArray,
    /// Where changes are logged.
    pub wal: &'a mut Wal,
}

/// An update of columns that are in no index.
#[derive(Debug)]
pub struct InPlace<'a> {
    /// The row's table.
    pub table: &'a mut Table,
    /// Where the row is.
    pub tid: Tid,
    /// Length that its tuple is to have.
    pub tuple_bytes: u16,
    /// Of each column that changes the length of its old value and of its new one.
    pub values: &'a [(u32, u32)],
    /// Where changes are logged.
    pub wal: &'a mut Wal,
}
