//! Kinds of records, by the names that servers give them.

use pgheadroom_layout::version::HeapCleaningRecords;

use crate::btree::RecordKind;

/// Kind of a record, as `pg_waldump` and `pg_get_wal_stats(per_record)` tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the names below say it
pub enum RecordType {
    HeapInsert,
    HeapInsertInit,
    HeapMultiInsert,
    HeapMultiInsertInit,
    HeapUpdate,
    HeapUpdateInit,
    HeapHotUpdate,
    HeapDelete,
    HeapLock,
    HeapConfirm,
    HeapPrune,
    HeapPruneVacuum,
    HeapVacuum,
    HeapVisible,
    HeapFreeze,
    HeapLockUpdated,
    Btree(RecordKind),
    FpiForHint,
    Fpi,
    Commit,
    Abort,
    MultixactCreate,
    MultixactZeroMembers,
    MultixactZeroOffsets,
    /// A summary of a BRIN index, on the page where it was.
    BrinSamepageUpdate,
    /// One of a range that had none.
    BrinInsert,
    /// The same on a new page.
    BrinInsertInit,
    /// One that comes to another page.
    BrinUpdate,
    /// The same on a new page.
    BrinUpdateInit,
    /// Of a hash index.
    Hash(HashRecord),
    /// Of a GIN index.
    Gin(GinRecord),
    /// What no server writes.
    OfModel(ModelRecord),
}

/// Kind of a hash index's record.
///
/// Source: `hash_identify`, src/backend/access/rmgrdesc/hashdesc.c (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // PostgreSQL's names
pub enum HashRecord {
    InitMetaPage,
    InitBitmapPage,
    Insert,
    AddOvflPage,
    SplitAllocatePage,
    SplitPage,
    SplitComplete,
    MovePageContents,
    SqueezePage,
    Delete,
    SplitCleanup,
    UpdateMetaPage,
}

impl HashRecord {
    const ALL: [Self; 12] = [
        Self::InitMetaPage,
        Self::InitBitmapPage,
        Self::Insert,
        Self::AddOvflPage,
        Self::SplitAllocatePage,
        Self::SplitPage,
        Self::SplitComplete,
        Self::MovePageContents,
        Self::SqueezePage,
        Self::Delete,
        Self::SplitCleanup,
        Self::UpdateMetaPage,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::InitMetaPage => "Hash/INIT_META_PAGE",
            Self::InitBitmapPage => "Hash/INIT_BITMAP_PAGE",
            Self::Insert => "Hash/INSERT",
            Self::AddOvflPage => "Hash/ADD_OVFL_PAGE",
            Self::SplitAllocatePage => "Hash/SPLIT_ALLOCATE_PAGE",
            Self::SplitPage => "Hash/SPLIT_PAGE",
            Self::SplitComplete => "Hash/SPLIT_COMPLETE",
            Self::MovePageContents => "Hash/MOVE_PAGE_CONTENTS",
            Self::SqueezePage => "Hash/SQUEEZE_PAGE",
            Self::Delete => "Hash/DELETE",
            Self::SplitCleanup => "Hash/SPLIT_CLEANUP",
            Self::UpdateMetaPage => "Hash/UPDATE_META_PAGE",
        }
    }
}

/// Kind of a GIN index's record.
///
/// Source: `gin_identify`, src/backend/access/rmgrdesc/gindesc.c (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // PostgreSQL's names
pub enum GinRecord {
    CreatePtree,
    Insert,
    Split,
    VacuumPage,
    VacuumDataLeafPage,
    DeletePage,
    UpdateMetaPage,
    InsertListpage,
    DeleteListpage,
}

impl GinRecord {
    const ALL: [Self; 9] = [
        Self::CreatePtree,
        Self::Insert,
        Self::Split,
        Self::VacuumPage,
        Self::VacuumDataLeafPage,
        Self::DeletePage,
        Self::UpdateMetaPage,
        Self::InsertListpage,
        Self::DeleteListpage,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::CreatePtree => "Gin/CREATE_PTREE",
            Self::Insert => "Gin/INSERT",
            Self::Split => "Gin/SPLIT",
            Self::VacuumPage => "Gin/VACUUM_PAGE",
            Self::VacuumDataLeafPage => "Gin/VACUUM_DATA_LEAF_PAGE",
            Self::DeletePage => "Gin/DELETE_PAGE",
            Self::UpdateMetaPage => "Gin/UPDATE_META_PAGE",
            Self::InsertListpage => "Gin/INSERT_LISTPAGE",
            Self::DeleteListpage => "Gin/DELETE_LISTPAGE",
        }
    }
}

/// Kind of a record that only a model writes; [`record_name`](crate::executor::Model) has its
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelRecord {
    /// A change in the model's own way.
    Change,
    /// A page of its own is taken.
    Page,
}

impl RecordType {
    /// All types, in order.
    const ALL: [Self; 30] = [
        Self::HeapInsert,
        Self::HeapInsertInit,
        Self::HeapMultiInsert,
        Self::HeapMultiInsertInit,
        Self::HeapUpdate,
        Self::HeapUpdateInit,
        Self::HeapHotUpdate,
        Self::HeapDelete,
        Self::HeapLock,
        Self::HeapConfirm,
        Self::HeapPrune,
        Self::HeapPruneVacuum,
        Self::HeapVacuum,
        Self::HeapVisible,
        Self::HeapFreeze,
        Self::FpiForHint,
        Self::Fpi,
        Self::Commit,
        Self::Abort,
        Self::BrinSamepageUpdate,
        Self::OfModel(ModelRecord::Change),
        Self::OfModel(ModelRecord::Page),
        Self::HeapLockUpdated,
        Self::MultixactCreate,
        Self::MultixactZeroMembers,
        Self::MultixactZeroOffsets,
        Self::BrinInsert,
        Self::BrinInsertInit,
        Self::BrinUpdate,
        Self::BrinUpdateInit,
    ];
    pub(super) const COUNT: usize =
        Self::ALL.len() + RecordKind::ALL.len() + HashRecord::ALL.len() + GinRecord::ALL.len();

    /// Its place among sums by type.
    #[inline]
    pub(super) const fn index(self) -> usize {
        match self {
            Self::HeapInsert => 0,
            Self::HeapInsertInit => 1,
            Self::HeapMultiInsert => 2,
            Self::HeapMultiInsertInit => 3,
            Self::HeapUpdate => 4,
            Self::HeapUpdateInit => 5,
            Self::HeapHotUpdate => 6,
            Self::HeapDelete => 7,
            Self::HeapLock => 8,
            Self::HeapConfirm => 9,
            Self::HeapPrune => 10,
            Self::HeapPruneVacuum => 11,
            Self::HeapVacuum => 12,
            Self::HeapVisible => 13,
            Self::HeapFreeze => 14,
            Self::FpiForHint => 15,
            Self::Fpi => 16,
            Self::Commit => 17,
            Self::Abort => 18,
            Self::BrinSamepageUpdate => 19,
            Self::OfModel(ModelRecord::Change) => 20,
            Self::OfModel(ModelRecord::Page) => 21,
            Self::HeapLockUpdated => 22,
            Self::MultixactCreate => 23,
            Self::MultixactZeroMembers => 24,
            Self::MultixactZeroOffsets => 25,
            Self::BrinInsert => 26,
            Self::BrinInsertInit => 27,
            Self::BrinUpdate => 28,
            Self::BrinUpdateInit => 29,
            Self::Btree(kind) => Self::ALL.len() + kind as usize,
            Self::Hash(kind) => Self::ALL.len() + RecordKind::ALL.len() + kind as usize,
            Self::Gin(kind) => Self::COUNT - GinRecord::ALL.len() + kind as usize,
        }
    }

    /// The type at a place.
    pub(super) fn at(place: usize) -> Self {
        if let Some(heap) = Self::ALL.get(place) {
            return *heap;
        }
        let place = place - Self::ALL.len();
        if let Some(kind) = RecordKind::ALL.get(place) {
            return Self::Btree(*kind);
        }
        let place = place - RecordKind::ALL.len();
        match HashRecord::ALL.get(place) {
            Some(kind) => Self::Hash(*kind),
            None => Self::Gin(GinRecord::ALL[place - HashRecord::ALL.len()]),
        }
    }

    /// Resource manager and record type, as this version's `pg_waldump` spells them.
    ///
    /// Source: `heap_identify` and `heap2_identify`, src/backend/access/rmgrdesc/heapdesc.c
    /// (REL_15_STABLE, REL_18_STABLE).
    #[must_use]
    pub fn name(self, cleaning: HeapCleaningRecords) -> String {
        let heap = match self {
            Self::HeapInsert => "Heap/INSERT",
            Self::HeapInsertInit => "Heap/INSERT+INIT",
            Self::HeapMultiInsert => "Heap2/MULTI_INSERT",
            Self::HeapMultiInsertInit => "Heap2/MULTI_INSERT+INIT",
            Self::HeapUpdate => "Heap/UPDATE",
            Self::HeapUpdateInit => "Heap/UPDATE+INIT",
            Self::HeapHotUpdate => "Heap/HOT_UPDATE",
            Self::HeapDelete => "Heap/DELETE",
            Self::HeapLock => "Heap/LOCK",
            Self::HeapConfirm => "Heap/HEAP_CONFIRM",
            Self::HeapPrune => match cleaning {
                HeapCleaningRecords::Clean => "Heap2/CLEAN",
                HeapCleaningRecords::Prune | HeapCleaningRecords::PrunePlans => "Heap2/PRUNE",
                HeapCleaningRecords::Combined => "Heap2/PRUNE_ON_ACCESS",
            },
            Self::HeapPruneVacuum => match cleaning {
                HeapCleaningRecords::Clean => "Heap2/CLEAN",
                HeapCleaningRecords::Prune | HeapCleaningRecords::PrunePlans => "Heap2/PRUNE",
                HeapCleaningRecords::Combined => "Heap2/PRUNE_VACUUM_SCAN",
            },
            Self::HeapVacuum => match cleaning {
                HeapCleaningRecords::Clean => "Heap2/CLEAN",
                HeapCleaningRecords::Prune | HeapCleaningRecords::PrunePlans => "Heap2/VACUUM",
                HeapCleaningRecords::Combined => "Heap2/PRUNE_VACUUM_CLEANUP",
            },
            Self::HeapVisible => "Heap2/VISIBLE",
            Self::Btree(kind) => return format!("Btree/{}", kind.name()),
            Self::HeapFreeze => "Heap2/FREEZE_PAGE",
            Self::BrinSamepageUpdate => "BRIN/SAMEPAGE_UPDATE",
            Self::BrinInsert => "BRIN/INSERT",
            Self::BrinInsertInit => "BRIN/INSERT+INIT",
            Self::BrinUpdate => "BRIN/UPDATE",
            Self::BrinUpdateInit => "BRIN/UPDATE+INIT",
            Self::Hash(kind) => kind.name(),
            Self::Gin(kind) => kind.name(),
            Self::OfModel(ModelRecord::Change) => "Model/CHANGE",
            Self::OfModel(ModelRecord::Page) => "Model/PAGE",
            Self::FpiForHint => "XLOG/FPI_FOR_HINT",
            Self::Fpi => "XLOG/FPI",
            Self::Commit => "Transaction/COMMIT",
            Self::Abort => "Transaction/ABORT",
            Self::HeapLockUpdated => "Heap2/LOCK_UPDATED",
            Self::MultixactCreate => "MultiXact/CREATE_ID",
            Self::MultixactZeroMembers => "MultiXact/ZERO_MEM_PAGE",
            Self::MultixactZeroOffsets => "MultiXact/ZERO_OFF_PAGE",
        };
        heap.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type has a place of its own.
    #[test]
    fn places_are_those_of_the_types() {
        for place in 0..RecordType::COUNT {
            assert_eq!(RecordType::at(place).index(), place);
        }
    }
}
