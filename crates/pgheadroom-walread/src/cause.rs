//! Why a record was written, and why it has images.
//!
//! An image's bytes count under the image's reason, everything else of a record under the record's
//! cause. The list is the contract of `wal stats`; docs/wal.md explains it to users.

use crate::format::Major;
use crate::record::Record;
use crate::rmgr::Rmgr;

/// Why WAL was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Cause {
    HotUpdate,
    ColdUpdate,
    NewpageUpdate,
    Insert,
    MultiInsert,
    Delete,
    Lock,
    Prune,
    PruneOnAccess,
    PruneVacuum,
    Vacuum,
    Freeze,
    Visible,
    HeapOther,
    IndexInsert,
    IndexSplit,
    IndexDedup,
    IndexDelete,
    IndexVacuum,
    IndexOther,
    FpiFirstChange,
    FpiHint,
    FpiForced,
    Sequence,
    Commit,
    Abort,
    Prepare,
    /// Of a resource manager that has no cause of its own, by its id.
    Other(u8),
}

/// Causes that have names of their own, in the order of [`Cause::index`].
pub const NAMED: [(Cause, &str); 27] = [
    (Cause::HotUpdate, "hot_update"),
    (Cause::ColdUpdate, "cold_update"),
    (Cause::NewpageUpdate, "newpage_update"),
    (Cause::Insert, "insert"),
    (Cause::MultiInsert, "multi_insert"),
    (Cause::Delete, "delete"),
    (Cause::Lock, "lock"),
    (Cause::Prune, "prune"),
    (Cause::PruneOnAccess, "prune_on_access"),
    (Cause::PruneVacuum, "prune_vacuum"),
    (Cause::Vacuum, "vacuum"),
    (Cause::Freeze, "freeze"),
    (Cause::Visible, "visible"),
    (Cause::HeapOther, "heap_other"),
    (Cause::IndexInsert, "index_insert"),
    (Cause::IndexSplit, "index_split"),
    (Cause::IndexDedup, "index_dedup"),
    (Cause::IndexDelete, "index_delete"),
    (Cause::IndexVacuum, "index_vacuum"),
    (Cause::IndexOther, "index_other"),
    (Cause::FpiFirstChange, "fpi_first_change"),
    (Cause::FpiHint, "fpi_hint"),
    (Cause::FpiForced, "fpi_forced"),
    (Cause::Sequence, "sequence"),
    (Cause::Commit, "commit"),
    (Cause::Abort, "abort"),
    (Cause::Prepare, "prepare"),
];

/// How many indexes causes have.
pub const INDEXES: usize = NAMED.len() + 256;

impl Cause {
    /// A number for each cause, below [`INDEXES`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::HotUpdate => 0,
            Self::ColdUpdate => 1,
            Self::NewpageUpdate => 2,
            Self::Insert => 3,
            Self::MultiInsert => 4,
            Self::Delete => 5,
            Self::Lock => 6,
            Self::Prune => 7,
            Self::PruneOnAccess => 8,
            Self::PruneVacuum => 9,
            Self::Vacuum => 10,
            Self::Freeze => 11,
            Self::Visible => 12,
            Self::HeapOther => 13,
            Self::IndexInsert => 14,
            Self::IndexSplit => 15,
            Self::IndexDedup => 16,
            Self::IndexDelete => 17,
            Self::IndexVacuum => 18,
            Self::IndexOther => 19,
            Self::FpiFirstChange => 20,
            Self::FpiHint => 21,
            Self::FpiForced => 22,
            Self::Sequence => 23,
            Self::Commit => 24,
            Self::Abort => 25,
            Self::Prepare => 26,
            Self::Other(rmgr) => NAMED.len() + rmgr as usize,
        }
    }

    /// The cause's name in the contract.
    #[must_use]
    pub fn name(index: usize) -> String {
        match NAMED.get(index) {
            Some(named) => named.1.to_owned(),
            None => {
                let rmgr = u8::try_from(index - NAMED.len()).unwrap_or(u8::MAX);
                format!("other:{}", crate::rmgr::name(rmgr))
            }
        }
    }

    /// Why a record was written.
    #[must_use]
    pub fn of_record(major: Major, record: &Record<'_>) -> Self {
        let cause = Self::of_kind(major, record.header.rmgr, record.info() >> 4);
        // The old page is a block of its own if it is another one; later minors of 17 and 18 add
        // blocks of the visibility map.
        let has_old_page = || record.blocks.iter().skip(1).any(|block| block.fork == 0);
        if cause == Self::ColdUpdate && has_old_page() {
            Self::NewpageUpdate
        } else {
            cause
        }
    }

    /// Why a record of a kind was written, if it has one block or none.
    #[must_use]
    pub fn of_kind(major: Major, rmgr: u8, index: u8) -> Self {
        match Rmgr::of(rmgr) {
            Rmgr::Heap => heap(index & 0x7),
            Rmgr::Heap2 => heap2(major, index & 0x7),
            Rmgr::Btree => btree(index),
            Rmgr::Hash => hash(index),
            Rmgr::Gin => gin(index),
            Rmgr::Gist => gist(index),
            Rmgr::SpGist => spgist(index),
            Rmgr::Brin => brin(index & 0x7),
            Rmgr::Sequence => Self::Sequence,
            Rmgr::Xlog if index == 0xA => Self::FpiHint,
            Rmgr::Xlog if index == 0xB => Self::FpiForced,
            Rmgr::Transaction => match index & 0x7 {
                0 | 3 => Self::Commit,
                2 | 4 => Self::Abort,
                1 => Self::Prepare,
                _ => Self::Other(rmgr),
            },
            _ => Self::Other(rmgr),
        }
    }

    /// Why the block at this place of a record has an image.
    ///
    /// Forced are those that the record always has, whatever was changed since the checkpoint:
    /// pages that are logged whole (index builds, VACUUM FULL, CREATE DATABASE), both sides of a
    /// split in hash and GIN indexes, and a GIN page after VACUUM. Images that are only there to
    /// be compared (wal_consistency_checking) are forced too.
    ///
    /// Source: callers of `XLogRegisterBuffer` with `REGBUF_FORCE_IMAGE` (REL_15_STABLE to
    /// REL_18_STABLE): src/backend/access/transam/xloginsert.c (log_newpage*), hash/hashpage.c
    /// (log_split_page), gin/ginbtree.c (ginPlaceToPage), gin/ginvacuum.c (xlogVacuumPage).
    #[must_use]
    pub fn of_image(record: &Record<'_>, place: usize) -> Self {
        let block = &record.blocks[place];
        let cause = Self::of_image_of_kind(record.header.rmgr, record.info() >> 4, block.id);
        let is_for_comparison = block.image.is_some_and(|image| !image.is_applied);
        if is_for_comparison && cause == Self::FpiFirstChange {
            Self::FpiForced
        } else {
            cause
        }
    }

    /// The same, by the kind of record and the block's id, of an image that is put in place.
    #[must_use]
    pub fn of_image_of_kind(rmgr: u8, index: u8, block_id: u8) -> Self {
        let forced = match Rmgr::of(rmgr) {
            Rmgr::Xlog if index == 0xA => return Self::FpiHint,
            Rmgr::Xlog => index == 0xB,
            Rmgr::Hash => index == 0x5,
            // The block with id 3 is the child whose split is now complete.
            Rmgr::Gin => index == 0x4 || (index == 0x3 && block_id < 3),
            _ => false,
        };
        if forced {
            Self::FpiForced
        } else {
            Self::FpiFirstChange
        }
    }

    /// Whether it is a reason of images.
    #[must_use]
    pub const fn is_of_images(self) -> bool {
        matches!(self, Self::FpiFirstChange | Self::FpiHint | Self::FpiForced)
    }
}

/// Source: src/include/access/heapam_xlog.h.
const fn heap(operation: u8) -> Cause {
    match operation {
        0x0 => Cause::Insert,
        0x1 => Cause::Delete,
        0x2 => Cause::ColdUpdate,
        0x4 => Cause::HotUpdate,
        0x6 => Cause::Lock,
        _ => Cause::HeapOther,
    }
}

fn heap2(major: Major, operation: u8) -> Cause {
    match (operation, major >= Major::V17) {
        (0x1, false) => Cause::Prune,
        (0x1, true) => Cause::PruneOnAccess,
        (0x2 | 0x3, true) => Cause::PruneVacuum,
        (0x2, false) => Cause::Vacuum,
        (0x3, false) => Cause::Freeze,
        (0x4, _) => Cause::Visible,
        (0x5, _) => Cause::MultiInsert,
        (0x6, _) => Cause::Lock,
        _ => Cause::HeapOther,
    }
}

/// Source: src/include/access/nbtxlog.h.
const fn btree(index: u8) -> Cause {
    match index {
        0x0 | 0x1 | 0x2 | 0x5 => Cause::IndexInsert,
        0x3 | 0x4 | 0xA => Cause::IndexSplit,
        0x6 => Cause::IndexDedup,
        0x7 => Cause::IndexDelete,
        0x8 | 0x9 | 0xB | 0xC => Cause::IndexVacuum,
        _ => Cause::IndexOther,
    }
}

/// Source: src/include/access/hash_xlog.h. An overflow page is what a bucket gets where it is
/// full: a split in effect.
const fn hash(index: u8) -> Cause {
    match index {
        0x2 => Cause::IndexInsert,
        0x3..=0x6 | 0xA => Cause::IndexSplit,
        0x7..=0x9 => Cause::IndexVacuum,
        0xC => Cause::IndexDelete,
        _ => Cause::IndexOther,
    }
}

/// Source: src/include/access/ginxlog.h. Entries go to the pending list, and from there into the
/// tree.
const fn gin(index: u8) -> Cause {
    match index {
        0x1 | 0x2 | 0x6 | 0x7 => Cause::IndexInsert,
        0x3 => Cause::IndexSplit,
        0x4 | 0x5 | 0x9 => Cause::IndexVacuum,
        _ => Cause::IndexOther,
    }
}

/// Source: src/include/access/gistxlog.h.
const fn gist(index: u8) -> Cause {
    match index {
        0x0 => Cause::IndexInsert,
        0x1 => Cause::IndexDelete,
        0x3 => Cause::IndexSplit,
        0x6 => Cause::IndexVacuum,
        _ => Cause::IndexOther,
    }
}

/// Source: src/include/access/spgxlog.h.
const fn spgist(index: u8) -> Cause {
    match index {
        0x1 | 0x3 => Cause::IndexInsert,
        0x2 | 0x4 | 0x5 => Cause::IndexSplit,
        0x6..=0x8 => Cause::IndexVacuum,
        _ => Cause::IndexOther,
    }
}

/// Source: src/include/access/brin_xlog.h.
const fn brin(operation: u8) -> Cause {
    match operation {
        0x1..=0x4 => Cause::IndexInsert,
        0x5 => Cause::IndexVacuum,
        _ => Cause::IndexOther,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Index and name belong together; no two causes share one.
    #[test]
    fn indexes_are_distinct() {
        for (at, (cause, name)) in NAMED.iter().enumerate() {
            assert_eq!(cause.index(), at);
            assert_eq!(Cause::name(at), *name);
        }
        assert_eq!(Cause::name(Cause::Other(20).index()), "other:Generic");
        assert_eq!(Cause::Other(255).index(), INDEXES - 1);
    }
}
