//! The rules that scenarios show, each of which can be switched off to see whether they notice.
//!
//! A rule acts where the code asks [`on`]. Without the cargo feature `mutations` the answer is a
//! constant, and nothing is left of the question; with it one rule at a time can be switched off
//! for a thread, and `tests/mutations.rs` asks that its scenario fails then.

/// Declares the rules with the names that scenarios use.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $name:literal,)*) => {
        /// A rule of the twin.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$rule,)*];

            /// Its name in scenarios.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }
        }
    };
}

rules! {
    /// Insertions leave the fillfactor's reserve free (`RelationGetBufferForTuple`, hio.c).
    FillfactorReserve "fillfactor-reserve",
    /// A row wider than the fillfactor allows may use a nearly empty page (hio.c, 14 on).
    NearlyEmptyPage "nearly-empty-page",
    /// A session inserts where it inserted last (`RelationGetTargetBlock`, rel.h).
    TargetBlock "target-block",
    /// VACUUM makes sessions forget where they inserted last (relcache.c).
    TargetBlockForgotten "target-block-forgotten",
    /// When the free space map knows nothing, the last page is tried (hio.c).
    LastPageTried "last-page-tried",
    /// A page found too full is recorded with its room (`RecordAndGetPageWithFreeSpace`).
    FullPageRecorded "full-page-recorded",
    /// A tuple takes the lowest unused line pointer (`PageAddItemExtended`, bufpage.c).
    LowestLinePointer "lowest-line-pointer",
    /// A heap page has at most 291 line pointers (`PageGetHeapFreeSpace`, bufpage.c).
    LinePointerLimit "line-pointer-limit",
    /// INSERT extends a table by one page (`RelationAddBlocks`, hio.c).
    ExtensionByOne "extension-by-one",
    /// COPY extends a table by many pages (`RelationAddBlocks`, hio.c, 16 on).
    BulkExtension "bulk-extension",
    /// A batch of COPY has limits (`CopyMultiInsertInfoIsFull`, copyfrom.c).
    CopyBatchLimits "copy-batch-limits",
    /// Searches start behind the last slot found (`fsm_search_avail`, fsmpage.c).
    FsmNextSlot "fsm-next-slot",
    /// Vacuuming the map makes searches start at the left (`fsm_vacuum_page`, freespace.c).
    FsmVacuumResetsNext "fsm-vacuum-resets-next",
    /// Needed room is rounded up to a category (`fsm_space_needed_to_cat`, freespace.c).
    FsmNeededRoundsUp "fsm-needed-rounds-up",
    /// Free room is rounded down to a category (`fsm_space_avail_to_cat`, freespace.c).
    FsmAvailableRoundsDown "fsm-available-rounds-down",
    /// Recording changes the lowest level only (`RecordPageWithFreeSpace`, freespace.c).
    FsmUpperLevelsLag "fsm-upper-levels-lag",
    /// A search that fails below corrects its parent (`fsm_search`, freespace.c).
    FsmCorrectsUpwards "fsm-corrects-upwards",
    /// A new version stays on its page if it fits (`heap_update`, heapam.c).
    UpdateIgnoresFillfactor "update-ignores-fillfactor",
    /// It is the new version's length that has to fit (`heap_update`, heapam.c).
    GrownVersionNeedsMoreRoom "grown-version-needs-more-room",
    /// An update that leaves a page marks it full (`PageSetFull` in `heap_update`).
    PageFullHint "page-full-hint",
    /// An update leaves the prune hint (`PageSetPrunable` in `heap_update`).
    UpdateSetsPruneHint "update-sets-prune-hint",
    /// A delete leaves the prune hint (`PageSetPrunable` in `heap_delete`).
    DeleteSetsPruneHint "delete-sets-prune-hint",
    /// An update that leaves its page logs a row lock first (`heap_update`, heapam.c).
    LockBeforeMove "lock-before-move",
    /// A changed key column makes an update cold (`RelationGetIndexAttrBitmap`, relcache.c).
    IndexedColumnBlocksHot "indexed-column-blocks-hot",
    /// So does a changed INCLUDE column (relcache.c).
    IncludeColumnBlocksHot "include-column-blocks-hot",
    /// So does a changed column of an index expression (relcache.c).
    ExpressionColumnBlocksHot "expression-column-blocks-hot",
    /// So does a changed column of a partial index's predicate (relcache.c).
    PredicateColumnBlocksHot "predicate-column-blocks-hot",
    /// A BRIN index's columns do not block HOT (relcache.c, 16 on).
    SummarizingIndexKeepsHot "summarizing-index-keeps-hot",
    /// Values are compared, not assignments (`HeapDetermineColumnsInfo`, heapam.c).
    HotComparesValues "hot-compares-values",
    /// A same-page update logs what changed only (`log_heap_update`, heapam.c).
    UpdateWalSharedBytes "update-wal-shared-bytes",
    /// Fewer than three shared bytes are logged (`log_heap_update`, heapam.c).
    SharedBytesAtLeastThree "shared-bytes-at-least-three",
    /// What is shared at the end is left out too (`log_heap_update`, heapam.c).
    SharedSuffixIsLeftOut "shared-suffix-is-left-out",
    /// A version on another page is logged whole (`log_heap_update`, heapam.c).
    MovedUpdateIsLoggedWhole "moved-update-is-logged-whole",
    /// A running transaction's own dead versions stay (`HeapTupleSatisfiesVacuumHorizon`).
    OwnTransactionIsNotRemovable "own-transaction-is-not-removable",
    /// A snapshot held elsewhere holds the horizon (`ComputeXidHorizons`, procarray.c).
    HeldSnapshotStopsPruning "held-snapshot-stops-pruning",
    /// A bound is refreshed only by a snapshot with another xmin (procarray.c).
    HorizonLagsASnapshot "horizon-lags-a-snapshot",
    /// Pages with less than the reserve free are pruned (`heap_page_prune_opt`, pruneheap.c).
    PruneBelowReserve "prune-below-reserve",
    /// Pages with less than a tenth free are pruned (`heap_page_prune_opt`, pruneheap.c).
    PruneBelowTenth "prune-below-tenth",
    /// Pages marked full are pruned in any case (`heap_page_prune_opt`, pruneheap.c).
    PruneFullPage "prune-full-page",
    /// An index scan prunes the pages it visits (`heapam_index_fetch_tuple`).
    IndexScanPrunes "index-scan-prunes",
    /// A sequential scan prunes the pages it reads (`heap_prepare_pagescan`, heapam.c).
    SeqScanPrunes "seq-scan-prunes",
    /// A uniqueness check prunes the pages it visits (`_bt_check_unique`, nbtinsert.c).
    UniquenessCheckPrunes "uniqueness-check-prunes",
    /// But not the page of the row being updated (`ConditionalLockBufferForCleanup`).
    OwnPinPreventsPruning "own-pin-prevents-pruning",
    /// A scan does not prune the page of the row found last (nodeIndexscan.c).
    SlotPinPreventsPruning "slot-pin-prevents-pruning",
    /// A root whose chain lives becomes a redirect (`heap_prune_chain`, pruneheap.c).
    RootBecomesRedirect "root-becomes-redirect",
    /// A root whose chain is dead keeps its line pointer (`heap_prune_chain`, pruneheap.c).
    DeadRootKeepsLinePointer "dead-root-keeps-line-pointer",
    /// Pruning cuts unused line pointers off the end (`PageRepairFragmentation`, 15 on).
    PruneTruncatesLinePointers "prune-truncates-line-pointers",
    /// The map does not learn of room that pruning made (pruneheap.c).
    PruningDoesNotTellFsm "pruning-does-not-tell-fsm",
    /// Versions of rolled back transactions are dead (`HeapTupleSatisfiesVacuumHorizon`).
    AbortedVersionIsUnused "aborted-version-is-unused",
    /// What a snapshot may see stays (`HeapTupleSatisfiesVacuumHorizon`).
    RecentlyDeadStays "recently-dead-stays",
    /// A lookup goes on after the row was found (`btgettuple`, nodeIndexscan.c).
    ScanVisitsOlderEntries "scan-visits-older-entries",
    /// A scan marks entries whose rows nobody sees (`_bt_killitems`, nbtutils.c).
    ScanKillsEntries "scan-kills-entries",
    /// But not when the leaf changed meanwhile (`_bt_killitems`, nbtutils.c).
    ChangedLeafSuppressesKill "changed-leaf-suppresses-kill",
    /// So does a uniqueness check (`_bt_check_unique`, nbtinsert.c).
    UniquenessCheckKills "uniqueness-check-kills",
    /// A change clears the page's visibility bits (`visibilitymap_clear`).
    ChangeClearsVisibility "change-clears-visibility",
    /// A row lock clears the frozen bit alone (`heap_lock_tuple`, heapam.c).
    LockClearsFrozenOnly "lock-clears-frozen-only",
    /// The first change after a checkpoint carries an image (`XLogRecordAssemble`).
    ImageAfterCheckpoint "image-after-checkpoint",
    /// Every checkpoint makes pages owe an image (`CreateCheckPoint`, xlog.c).
    CheckpointMovesRedo "checkpoint-moves-redo",
    /// An image leaves out the page's hole (`XLogRecordAssemble`, xloginsert.c).
    ImageLeavesOutHole "image-leaves-out-hole",
    /// A page made anew needs no image (`REGBUF_WILL_INIT`, xloginsert.h).
    NewPageNeedsNoImage "new-page-needs-no-image",
    /// Hints are logged where checksums are on (`MarkBufferDirtyHint`, bufmgr.c).
    HintImageWithChecksums "hint-image-with-checksums",
    /// Without full-page writes they are logged without image (`XLogSaveBufferForHint`).
    HintRecordWithoutImage "hint-record-without-image",
    /// Without checksums they are not logged (`MarkBufferDirtyHint`, bufmgr.c).
    HintsAreSilent "hints-are-silent",
    /// `wal_log_hints` logs them as checksums do (`XLogHintBitIsNeeded`, xlog.h).
    WalLogHints "wal-log-hints",
    /// The first reader sets hint bits, which dirties pages (`SetHintBits`, heapam_visibility.c).
    HintBitsDirtyPages "hint-bits-dirty-pages",
    /// The rightmost leaf splits at its fillfactor (`_bt_findsplitloc`, nbtsplitloc.c).
    RightmostSplitByFillfactor "rightmost-split-by-fillfactor",
    /// That fillfactor is the index's option (`BTGetFillFactor`, nbtree.h).
    IndexFillfactor "index-fillfactor",
    /// Other leaves split in the middle (`_bt_findsplitloc`, nbtsplitloc.c).
    SplitInTheMiddle "split-in-the-middle",
    /// Ties are ordered as by PostgreSQL's sort (`_bt_deltasortsplits`, nbtsplitloc.c).
    SplitSortOfPostgres "split-sort-of-postgres",
    /// Equal keys are merged before a split (`_bt_dedup_pass`, nbtdedup.c).
    Deduplication "deduplication",
    /// Unless `deduplicate_items` is off (nbtinsert.c).
    DeduplicateItemsOption "deduplicate-items-option",
    /// A leaf of one value splits near its end (`_bt_strategy`, nbtsplitloc.c).
    SingleValueSplit "single-value-split",
    /// A leaf of few values splits between two (`_bt_strategy`, nbtsplitloc.c).
    ManyDuplicatesSplit "many-duplicates-split",
    /// Ascending insertion inside is recognised (`_bt_afternewitemoff`, nbtsplitloc.c).
    SplitAfterNewItem "split-after-new-item",
    /// Bounds keep only distinguishing columns (`_bt_truncate`, nbtutils.c).
    SuffixTruncation "suffix-truncation",
    /// A TID may go into the middle of a list (`_bt_swap_posting`, nbtdedup.c).
    PostingSplit "posting-split",
    /// Posting lists end at a sixth of a page (`_bt_dedup_pass`, nbtdedup.c).
    PostingListCap "posting-list-cap",
    /// A unique leaf without duplicates splits (`_bt_delete_or_dedup_one_page`).
    UniqueSplitsAtOnce "unique-splits-at-once",
    /// Old versions' entries go before a split (`_bt_bottomupdel_pass`, nbtdedup.c).
    BottomUpDeletion "bottom-up-deletion",
    /// That ends where a heap page gained nothing (`heap_index_delete_tuples`, heapam.c).
    BottomUpGivesUp "bottom-up-gives-up",
    /// Entries marked dead go before a split (`_bt_simpledel_pass`, nbtinsert.c).
    SimpleDeletion "simple-deletion",
    /// Others of their heap pages go too (`heap_index_delete_tuples`, heapam.c).
    SimpleDeletionTakesMore "simple-deletion-takes-more",
    /// The SET clause tells which keys stay (`index_unchanged_by_update`, execIndexing.c).
    UnchangedKeyHint "unchanged-key-hint",
    /// A build's posting lists are shorter (`_bt_load`, nbtsort.c).
    BuildPostingLimit "build-posting-limit",
    /// The second pass makes dead line pointers unused (`lazy_vacuum_heap_page`).
    VacuumFreesLinePointers "vacuum-frees-line-pointers",
    /// Few dead line pointers are left alone (`lazy_vacuum`, vacuumlazy.c).
    VacuumBypass "vacuum-bypass",
    /// Room of finished pages is recorded (`lazy_scan_heap`, vacuumlazy.c).
    VacuumTellsFsm "vacuum-tells-fsm",
    /// Pages that all see get their bit (`lazy_scan_prune`, vacuumlazy.c).
    VacuumMarksVisible "vacuum-marks-visible",
    /// What a snapshot may see is kept (`lazy_scan_prune`, vacuumlazy.c).
    VacuumKeepsRecentlyDead "vacuum-keeps-recently-dead",
    /// Empty pages at the end are cut off (`lazy_truncate_heap`, vacuumlazy.c).
    VacuumTruncatesTable "vacuum-truncates-table",
    /// Unless they are few (`should_attempt_truncation`, vacuumlazy.c).
    VacuumTruncatesASixteenth "vacuum-truncates-a-sixteenth",
    /// Runs of all-visible pages are skipped (`heap_vac_scan_next_block`, vacuumlazy.c).
    VacuumSkipsVisiblePages "vacuum-skips-visible-pages",
    /// Without index there is one pass (`lazy_scan_prune`, vacuumlazy.c).
    NoIndexFreesAtOnce "no-index-frees-at-once",
    /// FREEZE freezes every row (`heap_prepare_freeze_tuple`, heapam.c).
    VacuumFreezes "vacuum-freezes",
    /// A page imaged anyway is frozen (`heap_page_prune_and_freeze`, 16 on).
    OpportunisticFreeze "opportunistic-freeze",
    /// Dead rows' entries are removed (`btvacuumpage`, nbtree.c).
    VacuumRemovesEntries "vacuum-removes-entries",
    /// A leaf without entries is unlinked (`_bt_pagedel`, nbtpage.c).
    EmptyLeafIsDeleted "empty-leaf-is-deleted",
    /// And used again later (`_bt_allocbuf`, nbtpage.c).
    DeletedPageIsRecycled "deleted-page-is-recycled",
    /// A rewritten table's pages keep the fillfactor's reserve (`raw_heap_insert`, rewriteheap.c).
    RewriteLeavesReserve "rewrite-leaves-reserve",
    /// VACUUM FULL freezes what everybody sees (`rewrite_heap_tuple`, rewriteheap.c).
    RewriteFreezes "rewrite-freezes",
    /// It copies what an old snapshot may see (`heapam_relation_copy_for_cluster`).
    RewriteKeepsRecentlyDead "rewrite-keeps-recently-dead",
    /// Its pages are logged whole, and owe no image then (`log_newpage`, xloginsert.c).
    RewriteLogsPages "rewrite-logs-pages",
    /// Looking at the old versions notes how their transactions ended (heapam_handler.c).
    RewriteNotesHints "rewrite-notes-hints",
    /// Values out of line are stored anew, under their old OIDs (`toast_save_datum`).
    RewriteStoresValuesAnew "rewrite-stores-values-anew",
    /// ON CONFLICT DO UPDATE locks first (`ExecOnConflictUpdate`, nodeModifyTable.c).
    UpsertLocksRow "upsert-locks-row",
    /// ON CONFLICT confirms its insertion (`heap_finish_speculative`, heapam.c).
    UpsertConfirmsInsertion "upsert-confirms-insertion",
    /// A new version keeps its transaction's lock (`heap_update`, heapam.c).
    RowLockCarriedOver "row-lock-carried-over",
    /// A lock held already is not logged again (`heap_lock_tuple`, heapam.c).
    SecondLockIsSilent "second-lock-is-silent",
    /// Without a change there is no record (`RecordTransactionCommit`, xact.c).
    NoXidNoCommitRecord "no-xid-no-commit-record",
    /// A rollback of changes is logged (`RecordTransactionAbort`, xact.c).
    AbortWritesARecord "abort-writes-a-record",
    /// Counters count what is rolled back (`AtEOXact_PgStat_Relations`).
    AbortedUpdatesCount "aborted-updates-count",
    /// A row with NULLs has a bitmap (`heap_form_tuple`, heaptuple.c).
    NullBitmap "null-bitmap",
    /// `lp_len` is the tuple's own length (`PageAddItemExtended`, bufpage.c).
    LengthIsNotRounded "length-is-not-rounded",
    /// Strings are ordered byte by byte, collation C (`varstr_cmp`, varlena.c).
    TextIndexOrder "text-index-order",
    /// Rows outside the predicate have no entry (`ExecInsertIndexTuples`, execIndexing.c).
    PartialIndex "partial-index",
    /// NULLs take a bitmap in index tuples (`index_form_tuple`, indextuple.c).
    NullInIndex "null-in-index",
    /// Leaf tuples carry INCLUDE columns, pivots not (`_bt_truncate`, nbtutils.c).
    IncludeColumnInLeaf "include-column-in-leaf",
    /// Rows above 2032 bytes are toasted (`heap_prepare_insert`, heapam.c).
    ToastThreshold "toast-threshold",
    /// An update of a toasted row locks it first (`heap_update`, heapam.c).
    ToastedRowLocksFirst "toasted-row-locks-first",
    /// A new value replaces the old one's chunks (`heap_toast_insert_or_update`, heaptoast.c).
    ToastReplaced "toast-replaced",
    /// `oldest` picks what this client has not tried to delete.
    OldestIsNotDeletedYet "oldest-is-not-deleted-yet",
}

/// Whether a rule holds: always, in a build without the feature `mutations`.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
#[must_use]
pub const fn on(_: Rule) -> bool {
    true
}

#[cfg(feature = "mutations")]
mod switch {
    use super::Rule;
    use std::cell::Cell;

    thread_local! {
        static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    /// Whether a rule holds on this thread.
    #[must_use]
    pub fn on(rule: Rule) -> bool {
        OFF.with(|off| off.get() != Some(rule))
    }

    /// Whether all rules hold on this thread: shortcuts rely on it.
    #[must_use]
    pub fn all_hold() -> bool {
        OFF.with(|off| off.get().is_none())
    }

    /// Does something without a rule.
    pub fn without<R>(rule: Rule, work: impl FnOnce() -> R) -> R {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                OFF.with(|off| off.set(None));
            }
        }
        let _restore = Restore; // also when the work panics
        OFF.with(|off| off.set(Some(rule)));
        work()
    }
}

/// Whether all rules hold: shortcuts rely on it.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
#[must_use]
pub const fn all_hold() -> bool {
    true
}

#[cfg(feature = "mutations")]
pub use switch::{all_hold, on, without};
