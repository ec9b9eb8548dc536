//! PostgreSQL versions, minor included, and every difference in storage behaviour between them.
//!
//! The rest of the core never compares version numbers: it asks [`Behaviour`]. A difference is
//! one field, with the source that shows it. 13 to 18 are known, 19 as its first release candidate
//! was seen, which [`Behaviour::verified`] says. Differences that only a crash reveals are left
//! out.

use std::fmt;
use std::str::FromStr;

use crate::compression::Method;
use crate::error::LayoutError;
use crate::page::InsertTarget;

/// Oldest major version whose behaviour is known.
pub const OLDEST_MAJOR: u16 = 13;
/// Newest major version whose behaviour was compared with a final release.
pub const NEWEST_VERIFIED_MAJOR: u16 = 18;
/// Newest major version that is accepted: its release candidate was compared.
pub const NEWEST_MAJOR: u16 = 19;

const _: () =
    assert!(OLDEST_MAJOR < NEWEST_VERIFIED_MAJOR && NEWEST_VERIFIED_MAJOR <= NEWEST_MAJOR);

/// A version with its minor: 18.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PgVersion {
    major: u16,
    minor: u16,
}

impl PgVersion {
    /// Takes a version that is known here.
    ///
    /// # Errors
    /// [`LayoutError::UnsupportedVersion`] outside 13 to 19.
    pub fn new(major: u16, minor: u16) -> Result<Self, LayoutError> {
        let version = Self { major, minor };
        if (OLDEST_MAJOR..=NEWEST_MAJOR).contains(&major) {
            Ok(version)
        } else {
            Err(LayoutError::UnsupportedVersion {
                version: version.to_string(),
            })
        }
    }

    /// The major version.
    #[must_use]
    pub const fn major(self) -> u16 {
        self.major
    }

    /// The minor version.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }

    /// Whether this is `major.minor` or later in the order of numbers.
    #[must_use]
    pub const fn at_least(self, major: u16, minor: u16) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }

    /// How this version behaves.
    #[must_use]
    pub const fn behaviour(self) -> Behaviour {
        Behaviour::of(self)
    }
}

impl fmt::Display for PgVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for PgVersion {
    type Err = LayoutError;

    /// Reads `18.4`, and `19rc1` as the release that it comes before; a minor must be given,
    /// because minors differ.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let numbers = text
            .split_once('.')
            .or_else(|| Some((before_release(text)?, "0")))
            .and_then(|(major, minor)| {
                let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                (all_digits(major) && all_digits(minor))
                    .then(|| Some((major.parse().ok()?, minor.parse().ok()?)))
                    .flatten()
            });
        let (major, minor) = numbers.ok_or_else(|| LayoutError::UnsupportedVersion {
            version: text.to_owned(),
        })?;
        Self::new(major, minor)
    }
}

/// The major version of a pre-release: `19` of `19rc1`.
fn before_release(text: &str) -> Option<&str> {
    text.strip_suffix("devel").or_else(|| {
        let name = text.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let numbered = name.len() < text.len();
        ["alpha", "beta", "rc"]
            .iter()
            .find_map(|kind| name.strip_suffix(kind))
            .filter(|_| numbered)
    })
}

/// How a session that extends a table adds pages beyond the one it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BulkExtension {
    /// To 15: 20 pages for each session waiting for the extension lock, at most 512.
    PerWaiter,
    /// From 16: by what the load asks and the waiters, at most 64 pages at once.
    ByRequest {
        /// Whether upper levels of the map are told of the last of the new pages too.
        ///
        /// Changed in minor releases of 2026: by their code 16.14, 17.10 and 18.4 do not, 17.12,
        /// 18.6 and 19rc1 do; that 16.15 and 17.11 do, of the same day, is taken for granted.
        /// Source: `RelationAddBlocks`, src/backend/access/heap/hio.c (`REL_18_STABLE`).
        last_page_searchable: bool,
    },
}

/// When trailing unused line pointers are removed from a heap page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinePointerTruncation {
    /// 13.
    Never,
    /// 14: by VACUUM's second heap pass, which keeps at least one.
    Vacuum,
    /// 15 and later: by pruning too, down to none.
    VacuumAndPrune,
}

/// Format of the records that prune, freeze and clean heap pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeapCleaningRecords {
    /// 13: CLEAN for both passes of VACUUM, `FREEZE_PAGE` with every tuple.
    Clean,
    /// 14 and 15: PRUNE and VACUUM, `FREEZE_PAGE` with every tuple.
    Prune,
    /// 16: PRUNE with a catalogue flag, freeze plans shared by tuples.
    PrunePlans,
    /// 17 and later: one record for all three, its name says the reason.
    Combined,
}

/// What an index learns about an UPDATE that inserts an unchanged key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexUnchangedHint {
    /// 13: nothing.
    None,
    /// 14: every update counts as not changing the key.
    AlwaysTrue,
    /// 15 and later: whether the index's columns changed.
    Real,
}

/// Whether VACUUM freezes pages before it must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpportunisticFreeze {
    /// To 15.
    No,
    /// 16 and later: a page that would become all-frozen, if its image is written anyway.
    WithImage,
    /// 18 and later: as before, and all-visible pages are scanned early for it.
    EagerScan,
}

/// How one version behaves where versions differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behaviour {
    /// The version described.
    pub version: PgVersion,
    /// Whether the behaviour of this major was compared with a server; false for 19.
    pub verified: bool,
    /// Which pages an insertion may use.
    ///
    /// Source: `RelationGetBufferForTuple`, src/backend/access/heap/hio.c (`REL_13_STABLE` against
    /// `REL_14_STABLE`).
    pub insert_target: InsertTarget,
    /// How tables grow under contention and in COPY.
    ///
    /// Source: `RelationAddExtraBlocks` (`REL_15_STABLE`), `RelationAddBlocks` (`REL_16_STABLE`,
    /// `REL_17_STABLE`), src/backend/access/heap/hio.c.
    pub bulk_extension: BulkExtension,
    /// When trailing line pointers disappear.
    ///
    /// Source: `PageTruncateLinePointerArray` (`REL_14_STABLE`) and `PageRepairFragmentation`
    /// (`REL_15_STABLE`), src/backend/storage/page/bufpage.c.
    pub line_pointer_truncation: LinePointerTruncation,
    /// Whether a changed column that only BRIN indexes use prevents a HOT update.
    ///
    /// Source: `INDEX_ATTR_BITMAP_SUMMARIZED` in `heap_update`, src/backend/access/heap/heapam.c
    /// (`REL_16_STABLE`).
    pub summarizing_indexes_block_hot: bool,
    /// A page to which no entry of a hash index goes is named when the one behind it is freed.
    ///
    /// Source: `_hash_freeovflpage`, src/backend/access/hash/hashovfl.c (REL_16_STABLE,
    /// REL_17_STABLE).
    pub hash_squeeze_names_write_page: bool,
    /// Bytes before each piece of memory, which count where memory is limited.
    ///
    /// Source: `ALLOC_CHUNKHDRSZ`, src/backend/utils/mmgr/aset.c (REL_15_STABLE, REL_16_STABLE).
    pub memory_chunk_header_bytes: u64,
    /// CREATE INDEX leaves the table's number of rows unknown while autovacuum is off.
    ///
    /// Source: `index_update_stats`, src/backend/catalog/index.c (REL_17_STABLE, REL_18_STABLE).
    pub index_build_keeps_statistics: bool,
    /// A table's size is estimated by its fillfactor too.
    ///
    /// Source: `table_block_relation_estimate_size`, src/backend/access/table/tableam.c
    /// (REL_16_STABLE, REL_17_STABLE).
    pub estimate_considers_fillfactor: bool,
    /// Whether `n_tup_newpage_upd` is counted.
    ///
    /// Source: `pgstat_count_heap_update`, src/backend/utils/activity/pgstat_relation.c
    /// (`REL_16_STABLE`).
    pub counts_newpage_updates: bool,
    /// Whether insertions trigger autovacuum by the unfrozen share of the table only.
    ///
    /// Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (`REL_18_STABLE`).
    pub insert_threshold_by_unfrozen_share: bool,
    /// `autovacuum_vacuum_max_threshold`, where it exists.
    ///
    /// Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (`REL_18_STABLE`).
    pub autovacuum_max_threshold: Option<u64>,
    /// Autovacuum takes tables by how far each is over its thresholds, else as they lie in
    /// `pg_class`.
    ///
    /// Source: `do_autovacuum`, src/backend/postmaster/autovacuum.c (REL_19_STABLE).
    pub autovacuum_by_score: bool,
    /// Format of prune, freeze and cleanup records.
    ///
    /// Source: src/include/access/heapam_xlog.h (`REL_13_STABLE` to `REL_17_STABLE`).
    pub heap_cleaning_records: HeapCleaningRecords,
    /// Main data of a B-tree DELETE record.
    ///
    /// Source: `xl_btree_delete`, src/include/access/nbtxlog.h (`REL_15_STABLE`, `REL_16_STABLE`).
    pub btree_delete_main_bytes: u32,
    /// Metapage data in NEWROOT records.
    ///
    /// Source: `xl_btree_metadata`, src/include/access/nbtxlog.h (`REL_13_STABLE`,
    /// `REL_14_STABLE`).
    pub btree_metadata_bytes: u32,
    /// Whether a B-tree deletes old versions from the bottom up, and entries beside LP_DEAD ones.
    ///
    /// Source: `_bt_bottomupdel_pass`, src/backend/access/nbtree/nbtdedup.c, and
    /// `_bt_simpledel_pass`, nbtinsert.c (`REL_14_STABLE`).
    pub btree_bottom_up_deletion: bool,
    /// What an index learns about updates.
    ///
    /// Source: `index_unchanged_by_update`, src/backend/executor/execIndexing.c (`REL_14_STABLE`,
    /// `REL_15_STABLE`).
    pub index_unchanged_hint: IndexUnchangedHint,
    /// Whether VACUUM skips the indexes when under 2 % of the pages have dead line pointers, and
    /// has the wraparound failsafe.
    ///
    /// Source: `lazy_vacuum`, src/backend/access/heap/vacuumlazy.c (`REL_14_STABLE`).
    pub vacuum_bypasses_indexes: bool,
    /// Whether VACUUM remembers dead line pointers in a radix tree instead of an array.
    ///
    /// Source: `dead_items_alloc`, src/backend/access/heap/vacuumlazy.c (`REL_16_STABLE`,
    /// `REL_17_STABLE`).
    pub vacuum_has_tid_store: bool,
    /// Whether VACUUM asks if the memory for them is full before it knows the next page, so behind
    /// the last one too.
    ///
    /// Source: `lazy_scan_heap`, src/backend/access/heap/vacuumlazy.c (`REL_17_STABLE`,
    /// `REL_18_STABLE`).
    pub vacuum_asks_memory_before_next_page: bool,
    /// Whether CREATE INDEX summarises the ranges of a BRIN behind the last row in it too.
    ///
    /// Source: `brinbuild`, src/backend/access/brin/brin.c (`REL_16_STABLE`, `REL_17_STABLE`).
    pub brin_build_fills_empty_ranges: bool,
    /// Whether VACUUM of a table without indexes frees dead line pointers inside the prune record.
    ///
    /// Source: `HEAP_PAGE_PRUNE_MARK_UNUSED_NOW`, src/backend/access/heap/pruneheap.c
    /// (`REL_17_STABLE`).
    pub vacuum_one_pass_in_prune_record: bool,
    /// Early freezing.
    ///
    /// Source: `lazy_scan_prune`, src/backend/access/heap/vacuumlazy.c (`REL_16_STABLE`),
    /// `heap_vacuum_eager_scan_setup` (`REL_18_STABLE`).
    pub opportunistic_freeze: OpportunisticFreeze,
    /// Pages that one record of an index build carries.
    ///
    /// Source: `smgr_bulk_flush`, src/backend/storage/smgr/bulk_write.c (`REL_17_STABLE`).
    pub index_build_pages_per_record: u32,
    /// Whether heap records that clear visibility bits register the visibility map's page.
    ///
    /// Changed in minor releases of 2026: 17.11 and 18.6 (18.5 was never released).
    /// Source: `heap_insert`, `log_heap_update`, `heap_delete`, `heap_lock_tuple`,
    /// src/backend/access/heap/heapam.c (`REL_17_STABLE`, `REL_18_STABLE`).
    pub vm_block_in_heap_records: bool,
    /// Whether a new B-tree takes equal `bpchar` for equal in their bytes, and deduplicates them.
    ///
    /// Changed in a minor release of November 2026. Seen on servers: it does on 15.18, 15.19,
    /// 16.15, 17.11 and 18.6, and does not on 15.20, 17.12 and 19rc1; that the other branches'
    /// releases of that day changed as well is assumed. Source: `_bt_allequalimage`,
    /// src/backend/access/nbtree/nbtutils.c (REL_18_4).
    pub bpchar_has_equal_image: bool,
    /// Whether a page's `pd_prune_xid` is set by rows that come to it, not only by those that go.
    ///
    /// Source: `heap_insert`, `heap_multi_insert`, `heap_update`,
    /// src/backend/access/heap/heapam.c (commit 378a216187a of 2026-03-30, before 19beta1); seen on
    /// 19rc1.
    pub insert_sets_prune_xid: bool,
    /// Whether the records that prune, freeze and clean a page set its visibility bits too, and
    /// there is no VISIBLE record.
    ///
    /// Source: `log_heap_prune_and_freeze`, src/backend/access/heap/pruneheap.c (commits
    /// add323da40a, 1252a4ee286 and a759ced2f1e, before 19beta1); seen on 19rc1.
    pub visibility_in_cleaning_records: bool,
    /// Whether an index scan that has come to its end keeps the heap page of its last entry pinned
    /// until its portal is dropped: by the session's next statement, or with the transaction.
    ///
    /// Source: `xs_blk` beside `xs_cbuf` in `IndexFetchHeapData`, src/include/access/heapam.h
    /// (19rc1); seen on 19rc1 by pg_buffercache, and not on 18.6.
    pub index_scans_keep_pin: bool,
    /// Whether a sequential scan reads by a read stream, which has the page pinned that comes next.
    ///
    /// Source: `heap_scan_stream_read_next_serial`, src/backend/access/heap/heapam.c
    /// (`REL_17_STABLE`); seen on 17.10 to 19rc1, and not on 16.14.
    pub seq_scans_stream: bool,
    /// Whether a bitmap scan reads by a read stream, which has the page pinned that comes next and
    /// at its end none. Without one it has none ahead, and keeps the last one at its end, until its
    /// portal is dropped.
    ///
    /// Source: `BitmapHeapScanNextBlock` (`REL_18_STABLE`) beside `heapam_scan_bitmap_next_block`
    /// (`REL_15_STABLE`), src/backend/access/heap/heapam_handler.c; seen on 15.18 to 19rc1.
    pub bitmap_scans_stream: bool,
    /// `default_toast_compression` where no setting says otherwise: pglz up to 18, from 19 on lz4,
    /// where the server was built with it.
    ///
    /// Source: `DEFAULT_TOAST_COMPRESSION`, src/include/access/toast_compression.h; seen on 19rc1.
    pub toast_compression: Method,
    /// Whether an index scan for several keys (`= ANY`) reads all that a leaf has of them at once,
    /// instead of a scan for each key.
    ///
    /// Source: `_bt_advance_array_keys`, src/backend/access/nbtree/nbtutils.c (`REL_16_STABLE`,
    /// `REL_17_STABLE`).
    pub btree_array_scan_by_page: bool,
    /// Bytes of a page's number in the records of multixacts that begin one.
    ///
    /// Source: `WriteMZeroPageXlogRec`, src/backend/access/transam/multixact.c (`REL_16_STABLE`,
    /// `REL_17_STABLE`).
    pub multixact_page_number_bytes: u32,
    /// Bytes of a member's place: in 8 they do not wrap around, and initdb makes the first page of
    /// members.
    ///
    /// Source: `MultiXactOffset`, src/include/c.h (`REL_18_STABLE`); seen on 19rc1.
    pub multixact_offset_bytes: u32,
    /// Whether initdb turns data checksums on by default.
    ///
    /// Source: `data_checksums`, src/bin/initdb/initdb.c (`REL_18_STABLE`).
    pub checksums_by_default: bool,
    /// Buffers that VACUUM recycles, in bytes.
    ///
    /// Source: `GetAccessStrategy`, src/backend/storage/buffer/freelist.c (`REL_16_STABLE`,
    /// `REL_17_STABLE`).
    pub vacuum_ring_bytes: u32,
    /// Default of `vacuum_cost_page_miss`.
    ///
    /// Source: `VacuumCostPageMiss`, src/backend/utils/init/globals.c (`REL_13_STABLE`,
    /// `REL_14_STABLE`).
    pub vacuum_cost_page_miss: u32,
    /// Default of `checkpoint_completion_target`.
    ///
    /// Source: `CheckPointCompletionTarget`, src/backend/postmaster/checkpointer.c
    /// (`REL_13_STABLE`, `REL_14_STABLE`).
    pub checkpoint_completion_target: f64,
}

impl Behaviour {
    const fn of(version: PgVersion) -> Self {
        let major = version.major;
        Self {
            version,
            verified: major <= NEWEST_VERIFIED_MAJOR,
            insert_target: if major >= 14 {
                InsertTarget::NearlyEmptyPage
            } else {
                InsertTarget::ReserveOrExtend
            },
            bulk_extension: if major >= 16 {
                BulkExtension::ByRequest {
                    last_page_searchable: match major {
                        16 => version.at_least(16, 15),
                        17 => version.at_least(17, 11),
                        _ => version.at_least(18, 5),
                    },
                }
            } else {
                BulkExtension::PerWaiter
            },
            line_pointer_truncation: match major {
                ..=13 => LinePointerTruncation::Never,
                14 => LinePointerTruncation::Vacuum,
                15.. => LinePointerTruncation::VacuumAndPrune,
            },
            summarizing_indexes_block_hot: major < 16,
            hash_squeeze_names_write_page: major < 17,
            memory_chunk_header_bytes: if major < 16 { 16 } else { 8 },
            index_build_keeps_statistics: major >= 18,
            estimate_considers_fillfactor: major >= 17,
            counts_newpage_updates: major >= 16,
            insert_threshold_by_unfrozen_share: major >= 18,
            autovacuum_by_score: major >= 19,
            autovacuum_max_threshold: if major >= 18 { Some(100_000_000) } else { None },
            heap_cleaning_records: match major {
                ..=13 => HeapCleaningRecords::Clean,
                14 | 15 => HeapCleaningRecords::Prune,
                16 => HeapCleaningRecords::PrunePlans,
                17.. => HeapCleaningRecords::Combined,
            },
            btree_delete_main_bytes: if major >= 16 { 9 } else { 8 },
            btree_metadata_bytes: if major >= 14 { 28 } else { 40 },
            btree_bottom_up_deletion: major >= 14,
            index_unchanged_hint: match major {
                ..=13 => IndexUnchangedHint::None,
                14 => IndexUnchangedHint::AlwaysTrue,
                15.. => IndexUnchangedHint::Real,
            },
            vacuum_bypasses_indexes: major >= 14,
            vacuum_has_tid_store: major >= 17,
            vacuum_asks_memory_before_next_page: major >= 18,
            brin_build_fills_empty_ranges: major >= 17,
            vacuum_one_pass_in_prune_record: major >= 17,
            opportunistic_freeze: match major {
                ..=15 => OpportunisticFreeze::No,
                16 | 17 => OpportunisticFreeze::WithImage,
                18.. => OpportunisticFreeze::EagerScan,
            },
            index_build_pages_per_record: if major >= 17 { 32 } else { 1 },
            vm_block_in_heap_records: version.at_least(18, 5)
                || (major == 17 && version.at_least(17, 11)),
            bpchar_has_equal_image: match major {
                ..=14 => !version.at_least(14, 25),
                15 => !version.at_least(15, 20),
                16 => !version.at_least(16, 16),
                17 => !version.at_least(17, 12),
                18 => !version.at_least(18, 7),
                19.. => false,
            },
            btree_array_scan_by_page: major >= 17,
            multixact_page_number_bytes: if major >= 17 { 8 } else { 4 },
            multixact_offset_bytes: if major >= 19 { 8 } else { 4 },
            insert_sets_prune_xid: major >= 19,
            visibility_in_cleaning_records: major >= 19,
            index_scans_keep_pin: major >= 19,
            seq_scans_stream: major >= 17,
            bitmap_scans_stream: major >= 18,
            toast_compression: if major >= 19 {
                Method::Lz4
            } else {
                Method::Pglz
            },
            checksums_by_default: major >= 18,
            vacuum_ring_bytes: if major >= 17 { 2 << 20 } else { 256 << 10 },
            vacuum_cost_page_miss: if major >= 14 { 2 } else { 10 },
            checkpoint_completion_target: if major >= 14 { 0.9 } else { 0.5 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn behaviour(text: &str) -> Behaviour {
        text.parse::<PgVersion>().unwrap().behaviour()
    }

    /// The change of 2026 distinguishes minors of one major.
    #[test]
    fn vm_block_came_in_minor_releases() {
        for (version, registers) in [
            ("15.18", false),
            ("16.14", false),
            ("16.99", false),
            ("17.10", false),
            ("17.11", true),
            ("18.4", false),
            ("18.6", true),
            ("19.0", true),
        ] {
            assert_eq!(
                behaviour(version).vm_block_in_heap_records,
                registers,
                "{version}"
            );
        }
    }

    /// A minor release of each branch stopped deduplicating `bpchar`.
    #[test]
    fn bpchar_is_not_deduplicated_since_minor_releases() {
        for (version, is_equal) in [
            ("13.22", true),
            ("15.19", true),
            ("15.20", false),
            ("15.21", false),
            ("16.14", true),
            ("17.11", true),
            ("17.12", false),
            ("18.6", true),
            ("18.7", false),
        ] {
            let found = behaviour(version).bpchar_has_equal_image;
            assert_eq!(found, is_equal, "{version}");
        }
    }

    /// 19 differs from 18 in these alone, and is marked as not compared with a final release.
    #[test]
    fn nineteen_differs_in_seven_rules() {
        let newest = behaviour("19.0");
        let expected = Behaviour {
            version: newest.version,
            verified: false,
            insert_sets_prune_xid: true,
            visibility_in_cleaning_records: true,
            multixact_offset_bytes: 8,
            toast_compression: Method::Lz4,
            index_scans_keep_pin: true,
            bpchar_has_equal_image: false,
            autovacuum_by_score: true,
            ..behaviour("18.6")
        };
        assert_eq!(newest, expected);
    }

    /// What is not a known version with its minor is refused.
    #[test]
    fn other_versions_are_refused() {
        for text in [
            "", "18", "12.1", "20.0", "18.4.1", "18.x", "+18.4", "18.-1", "99999.1", "rc1", "19rc",
            "devel", "20rc1", "19rc1.0",
        ] {
            assert!(text.parse::<PgVersion>().is_err(), "{text}");
        }
    }

    /// A candidate behaves as the release that it comes before.
    #[test]
    fn a_pre_release_is_its_release() {
        for text in ["19rc1", "19beta2", "19alpha1", "19devel"] {
            assert_eq!(text.parse(), PgVersion::new(19, 0), "{text}");
        }
    }

    proptest! {
        /// Text and number agree.
        #[test]
        fn versions_round_trip(major in OLDEST_MAJOR..=NEWEST_MAJOR, minor in 0_u16..100) {
            let version = PgVersion::new(major, minor).unwrap();
            prop_assert_eq!(version.to_string().parse::<PgVersion>(), Ok(version));
        }
    }
}
