//! Names of resource managers and of their record types, as `pg_waldump --stats=record` prints
//! them.
//!
//! Source: src/include/access/rmgrlist.h and the `*_identify` functions of
//! src/backend/access/rmgrdesc/*.c (REL_15_STABLE to REL_18_STABLE, 19 candidate).

use crate::format::Major;

/// Resource managers by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Rmgr {
    Xlog,
    Transaction,
    Storage,
    Clog,
    Database,
    Tablespace,
    MultiXact,
    RelMap,
    Standby,
    Heap2,
    Heap,
    Btree,
    Hash,
    Gin,
    Gist,
    Sequence,
    SpGist,
    Brin,
    CommitTs,
    ReplicationOrigin,
    Generic,
    LogicalMessage,
    Xlog2,
    /// One of an extension, or none that is known.
    Other,
}

const BY_ID: [(Rmgr, &str); 23] = [
    (Rmgr::Xlog, "XLOG"),
    (Rmgr::Transaction, "Transaction"),
    (Rmgr::Storage, "Storage"),
    (Rmgr::Clog, "CLOG"),
    (Rmgr::Database, "Database"),
    (Rmgr::Tablespace, "Tablespace"),
    (Rmgr::MultiXact, "MultiXact"),
    (Rmgr::RelMap, "RelMap"),
    (Rmgr::Standby, "Standby"),
    (Rmgr::Heap2, "Heap2"),
    (Rmgr::Heap, "Heap"),
    (Rmgr::Btree, "Btree"),
    (Rmgr::Hash, "Hash"),
    (Rmgr::Gin, "Gin"),
    (Rmgr::Gist, "Gist"),
    (Rmgr::Sequence, "Sequence"),
    (Rmgr::SpGist, "SPGist"),
    (Rmgr::Brin, "BRIN"),
    (Rmgr::CommitTs, "CommitTs"),
    (Rmgr::ReplicationOrigin, "ReplicationOrigin"),
    (Rmgr::Generic, "Generic"),
    (Rmgr::LogicalMessage, "LogicalMessage"),
    (Rmgr::Xlog2, "XLOG2"),
];

/// One byte an id: this is asked several times of each record.
static KINDS: [Rmgr; 256] = {
    let mut kinds = [Rmgr::Other; 256];
    let mut id = 0;
    while id < BY_ID.len() {
        kinds[id] = BY_ID[id].0;
        id += 1;
    }
    kinds
};

/// First id that extensions may have. Source: `RM_MIN_CUSTOM_ID`, src/include/access/rmgr.h.
const CUSTOM_MIN: u8 = 128;

impl Rmgr {
    /// The resource manager of an id.
    #[must_use]
    #[inline]
    pub fn of(id: u8) -> Self {
        KINDS[usize::from(id)]
    }
}

/// Its name; of one of an extension what pg_waldump makes of its id.
#[must_use]
pub fn name(id: u8) -> String {
    match BY_ID.get(usize::from(id)) {
        Some(known) => known.1.to_owned(),
        None if id >= CUSTOM_MIN => format!("custom{id:03}"),
        None => format!("unknown{id:03}"),
    }
}

/// Which of the 16 types of its resource manager a record counts under in pg_waldump's statistics.
///
/// Source: `XLogRecStoreStats`, src/backend/access/transam/xlogstats.c: of the upper half of a
/// transaction record's `xl_info` the highest bit is no part of its type.
#[must_use]
pub fn type_index(rmgr: u8, info: u8) -> u8 {
    let index = info >> 4;
    if Rmgr::of(rmgr) == Rmgr::Transaction {
        index & 0x07
    } else {
        index
    }
}

/// The name of a record type.
#[must_use]
pub fn type_name(major: Major, rmgr: u8, index: u8) -> String {
    let known = match Rmgr::of(rmgr) {
        Rmgr::Xlog => xlog(major, index),
        Rmgr::Gist if index == 0x7 && major >= Major::V19 => "",
        Rmgr::Heap2 => heap2(major, index),
        Rmgr::Heap => heap(index),
        other => TYPES
            .iter()
            .find(|(of, _)| *of == other)
            .and_then(|(_, names)| names.get(usize::from(index)).copied())
            .unwrap_or_default(),
    };
    if known.is_empty() {
        format!("UNKNOWN ({:x})", u32::from(index) << 4)
    } else {
        known.to_owned()
    }
}

fn xlog(major: Major, index: u8) -> &'static str {
    const NAMES: [&str; 16] = [
        "CHECKPOINT_SHUTDOWN",
        "CHECKPOINT_ONLINE",
        "NOOP",
        "NEXTOID",
        "SWITCH",
        "BACKUP_END",
        "PARAMETER_CHANGE",
        "RESTORE_POINT",
        "FPW_CHANGE",
        "END_OF_RECOVERY",
        "FPI_FOR_HINT",
        "FPI",
        "ASSIGN_LSN",
        "OVERWRITE_CONTRECORD",
        "CHECKPOINT_REDO",
        "LOGICAL_DECODING_STATUS_CHANGE",
    ];
    let since = match index {
        0xE => Major::V17,
        0xC | 0xF => Major::V19,
        _ => Major::V15,
    };
    let name = NAMES.get(usize::from(index)).filter(|_| major >= since);
    name.copied().unwrap_or_default()
}

fn heap(index: u8) -> &'static str {
    match index {
        0x0 => "INSERT",
        0x1 => "DELETE",
        0x2 => "UPDATE",
        0x3 => "TRUNCATE",
        0x4 => "HOT_UPDATE",
        0x5 => "HEAP_CONFIRM",
        0x6 => "LOCK",
        0x7 => "INPLACE",
        0x8 => "INSERT+INIT",
        0xA => "UPDATE+INIT",
        0xC => "HOT_UPDATE+INIT",
        _ => "",
    }
}

fn heap2(major: Major, index: u8) -> &'static str {
    match (index, major >= Major::V17) {
        (0x0, _) => "REWRITE",
        (0x1, false) => "PRUNE",
        (0x1, true) => "PRUNE_ON_ACCESS",
        (0x2, false) => "VACUUM",
        (0x2, true) => "PRUNE_VACUUM_SCAN",
        (0x3, false) => "FREEZE_PAGE",
        (0x3, true) => "PRUNE_VACUUM_CLEANUP",
        (0x4, _) if major < Major::V19 => "VISIBLE",
        (0x5, _) => "MULTI_INSERT",
        (0x6, _) => "LOCK_UPDATED",
        (0x7, _) => "NEW_CID",
        (0xD, _) => "MULTI_INSERT+INIT",
        _ => "",
    }
}

/// Names of the types of each resource manager that has the same ones in all versions.
const TYPES: [(Rmgr, &[&str]); 20] = [
    (
        Rmgr::Transaction,
        &[
            "COMMIT",
            "PREPARE",
            "ABORT",
            "COMMIT_PREPARED",
            "ABORT_PREPARED",
            "ASSIGNMENT",
            "INVALIDATION",
        ],
    ),
    (Rmgr::Storage, &["", "CREATE", "TRUNCATE"]),
    (Rmgr::Clog, &["ZEROPAGE", "TRUNCATE"]),
    (
        Rmgr::Database,
        &["CREATE_FILE_COPY", "CREATE_WAL_LOG", "DROP"],
    ),
    (Rmgr::Tablespace, &["CREATE", "DROP"]),
    (
        Rmgr::MultiXact,
        &["ZERO_OFF_PAGE", "ZERO_MEM_PAGE", "CREATE_ID", "TRUNCATE_ID"],
    ),
    (Rmgr::RelMap, &["UPDATE"]),
    (Rmgr::Standby, &["LOCK", "RUNNING_XACTS", "INVALIDATIONS"]),
    (
        Rmgr::Btree,
        &[
            "INSERT_LEAF",
            "INSERT_UPPER",
            "INSERT_META",
            "SPLIT_L",
            "SPLIT_R",
            "INSERT_POST",
            "DEDUP",
            "DELETE",
            "UNLINK_PAGE",
            "UNLINK_PAGE_META",
            "NEWROOT",
            "MARK_PAGE_HALFDEAD",
            "VACUUM",
            "REUSE_PAGE",
            "META_CLEANUP",
        ],
    ),
    (
        Rmgr::Hash,
        &[
            "INIT_META_PAGE",
            "INIT_BITMAP_PAGE",
            "INSERT",
            "ADD_OVFL_PAGE",
            "SPLIT_ALLOCATE_PAGE",
            "SPLIT_PAGE",
            "SPLIT_COMPLETE",
            "MOVE_PAGE_CONTENTS",
            "SQUEEZE_PAGE",
            "DELETE",
            "SPLIT_CLEANUP",
            "UPDATE_META_PAGE",
            "VACUUM_ONE_PAGE",
        ],
    ),
    (
        Rmgr::Gin,
        &[
            "",
            "CREATE_PTREE",
            "INSERT",
            "SPLIT",
            "VACUUM_PAGE",
            "DELETE_PAGE",
            "UPDATE_META_PAGE",
            "INSERT_LISTPAGE",
            "DELETE_LISTPAGE",
            "VACUUM_DATA_LEAF_PAGE",
        ],
    ),
    (
        Rmgr::Gist,
        &[
            "PAGE_UPDATE",
            "DELETE",
            "PAGE_REUSE",
            "PAGE_SPLIT",
            "",
            "",
            "PAGE_DELETE",
            "ASSIGN_LSN",
        ],
    ),
    (Rmgr::Sequence, &["LOG"]),
    (
        Rmgr::SpGist,
        &[
            "",
            "ADD_LEAF",
            "MOVE_LEAFS",
            "ADD_NODE",
            "SPLIT_TUPLE",
            "PICKSPLIT",
            "VACUUM_LEAF",
            "VACUUM_ROOT",
            "VACUUM_REDIRECT",
        ],
    ),
    (
        Rmgr::Brin,
        &[
            "CREATE_INDEX",
            "INSERT",
            "UPDATE",
            "SAMEPAGE_UPDATE",
            "REVMAP_EXTEND",
            "DESUMMARIZE",
            "",
            "",
            "",
            "INSERT+INIT",
            "UPDATE+INIT",
        ],
    ),
    (Rmgr::CommitTs, &["ZEROPAGE", "TRUNCATE"]),
    (Rmgr::ReplicationOrigin, &["SET", "DROP"]),
    (Rmgr::Generic, &["Generic"; 16]),
    (Rmgr::LogicalMessage, &["MESSAGE"]),
    (Rmgr::Xlog2, &["CHECKSUMS"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What changed its name between versions, and what none knows.
    #[test]
    fn names_of_versions() {
        let of = |major, rmgr, index| type_name(major, rmgr, index);
        assert_eq!(of(Major::V16, 9, 1), "PRUNE");
        assert_eq!(of(Major::V17, 9, 1), "PRUNE_ON_ACCESS");
        assert_eq!(of(Major::V18, 9, 4), "VISIBLE");
        assert_eq!(of(Major::V19, 9, 4), "UNKNOWN (40)");
        assert_eq!(of(Major::V18, 14, 4), "UNKNOWN (40)");
        assert_eq!(of(Major::V18, 0, 0xC), "UNKNOWN (c0)");
        assert_eq!(of(Major::V19, 0, 0xC), "ASSIGN_LSN");
        assert_eq!(of(Major::V16, 0, 0xE), "UNKNOWN (e0)");
        assert_eq!(of(Major::V19, 14, 7), "UNKNOWN (70)");
        assert_eq!(of(Major::V18, 200, 15), "UNKNOWN (f0)");
        assert_eq!(name(128), "custom128");
        assert_eq!(type_index(1, 0x80), 0);
    }
}
