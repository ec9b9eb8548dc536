//! Records of the heap (`Heap` and `Heap2`).

use crate::page::SIZE_OF_HEAP_TUPLE_HEADER;
use crate::version::{Behaviour, HeapCleaningRecords};
use crate::wal_record::{Page, RecordSize};

/// Header of a tuple in a record. Source: `SizeOfHeapHeader`, src/include/access/heapam_xlog.h.
const SIZE_OF_HEAP_HEADER: u32 = 5;
/// The same in MULTI_INSERT. Source: `SizeOfMultiInsertTuple`, heapam_xlog.h.
const SIZE_OF_MULTI_INSERT_TUPLE: u32 = 7;

/// Heap INSERT of a tuple; `vm` when it clears a visibility bit and the version registers that
/// page ([`Behaviour::vm_block_in_heap_records`]).
///
/// Source: `heap_insert`, src/backend/access/heap/heapam.c.
#[must_use]
pub const fn heap_insert(tuple_bytes: u32, page: Page, vm: Option<Page>) -> u32 {
    RecordSize::with_main_data(3)
        .block(
            page,
            SIZE_OF_HEAP_HEADER + without_fixed_header(tuple_bytes),
        )
        .maybe_block(vm, 0)
        .bytes()
}

/// Heap2 MULTI_INSERT of the tuples that a batch puts on one page; `init` when the page is new.
///
/// Source: `heap_multi_insert`, src/backend/access/heap/heapam.c.
#[must_use]
pub fn heap_multi_insert(
    tuple_bytes: impl ExactSizeIterator<Item = u32>,
    init: bool,
    page: Page,
    vm: Option<Page>,
) -> u32 {
    let count = u32::try_from(tuple_bytes.len()).unwrap_or(u32::MAX);
    let offsets = if init { 0 } else { 2 * count };
    let data = tuple_bytes.fold(0_u32, |end, bytes| {
        end.next_multiple_of(2) + SIZE_OF_MULTI_INSERT_TUPLE + without_fixed_header(bytes)
    });
    RecordSize::with_main_data(4 + offsets)
        .block(page, data)
        .maybe_block(vm, 0)
        .bytes()
}

/// What a same-page UPDATE repeats of the old tuple instead of logging it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SharedBytes {
    /// Equal bytes at the start of the user data; 0 when fewer than 3.
    pub prefix: u32,
    /// Equal bytes at its end, behind the prefix; 0 when fewer than 3.
    pub suffix: u32,
}

impl SharedBytes {
    /// Compares the user data (from `t_hoff`) of the old and the new tuple.
    ///
    /// Source: `log_heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    #[must_use]
    pub fn between(old: &[u8], new: &[u8]) -> Self {
        let shorter = old.len().min(new.len());
        let equal = |pairs: usize| u32::try_from(pairs).unwrap_or(u32::MAX);
        let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let prefix = if prefix < 3 { 0 } else { prefix };
        let suffix = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take(shorter - prefix)
            .take_while(|(a, b)| a == b)
            .count();
        let suffix = if suffix < 3 { 0 } else { suffix };
        Self {
            prefix: equal(prefix),
            suffix: equal(suffix),
        }
    }

    /// The length fields that say how much is shared.
    const fn length_fields(self) -> u32 {
        let prefix = if self.prefix > 0 { 2 } else { 0 };
        let suffix = if self.suffix > 0 { 2 } else { 0 };
        prefix + suffix
    }
}

/// Heap UPDATE or HOT_UPDATE whose new version stays on the page.
///
/// `tuple_bytes` and `hoff` are the new version's. Pass no shared bytes when the page gets an
/// image or at `wal_level = logical`: nothing is compared then.
///
/// # Panics
/// When more bytes are shared than the user data has.
///
/// Source: `log_heap_update`, src/backend/access/heap/heapam.c.
#[must_use]
#[inline]
pub const fn heap_update_same_page(
    tuple_bytes: u32,
    hoff: u32,
    shared: SharedBytes,
    page: Page,
    vm: Option<Page>,
) -> u32 {
    let user_data = tuple_bytes - hoff;
    let repeated = shared.prefix + shared.suffix;
    assert!(repeated <= user_data, "shared bytes are part of the tuple");
    let data = shared.length_fields()
        + SIZE_OF_HEAP_HEADER
        + (hoff - SIZE_OF_HEAP_TUPLE_HEADER)
        + (user_data - repeated);
    RecordSize::with_main_data(14)
        .block(page, data)
        .maybe_block(vm, 0)
        .bytes()
}

/// Heap UPDATE whose new version goes to another page; a LOCK record comes before it.
///
/// `vm` are the visibility map's pages that it registers: none, one, or two when the old and the
/// new page have bits on different ones.
///
/// Source: `log_heap_update`, src/backend/access/heap/heapam.c.
#[must_use]
pub const fn heap_update_cross_page(
    tuple_bytes: u32,
    new_page: Page,
    old_page: Page,
    vm: [Option<Page>; 2],
) -> u32 {
    RecordSize::with_main_data(14)
        .block(
            new_page,
            SIZE_OF_HEAP_HEADER + without_fixed_header(tuple_bytes),
        )
        .block(old_page, 0)
        .maybe_block(vm[0], 0)
        .maybe_block(vm[1], 0)
        .bytes()
}

/// Heap DELETE, without the old key that `wal_level = logical` adds.
///
/// Source: `heap_delete`, src/backend/access/heap/heapam.c.
#[must_use]
pub const fn heap_delete(page: Page, vm: Option<Page>) -> u32 {
    RecordSize::with_main_data(8)
        .block(page, 0)
        .maybe_block(vm, 0)
        .bytes()
}

/// Heap LOCK: row locks, and the first step of an UPDATE that leaves its page.
///
/// Source: `heap_lock_tuple` and `heap_update`, src/backend/access/heap/heapam.c.
#[must_use]
pub const fn heap_lock(page: Page, vm: Option<Page>) -> u32 {
    heap_delete(page, vm) // the same shape
}

/// Heap CONFIRM, the second record of INSERT ... ON CONFLICT.
///
/// Source: `heap_finish_speculative`, src/backend/access/heap/heapam.c.
#[must_use]
pub const fn heap_confirm(page: Page) -> u32 {
    RecordSize::with_main_data(2).block(page, 0).bytes()
}

/// Heap2 VISIBLE: VACUUM sets visibility bits. The heap page gets an image only with checksums or
/// `wal_log_hints`.
///
/// Source: `log_heap_visible`, src/backend/access/heap/heapam.c (REL_18_STABLE).
#[must_use]
pub const fn heap_visible(vm_page: Page, heap_page: Page) -> u32 {
    RecordSize::with_main_data(5)
        .block(vm_page, 0)
        .block(heap_page, 0)
        .bytes()
}

/// Line pointers and tuples that one pass over a heap page changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PageCleaning {
    /// Line pointers that became redirects.
    pub redirected: u32,
    /// Line pointers that became dead.
    pub dead: u32,
    /// Line pointers that became unused.
    pub unused: u32,
    /// Tuples frozen.
    pub frozen: u32,
    /// Different ways of freezing among them (16 and later share them).
    pub freeze_plans: u32,
    /// Whether standbys may have queries that still need what is removed or frozen (17 and later
    /// leave the horizon out otherwise).
    pub has_conflict_horizon: bool,
}

impl PageCleaning {
    /// Whether any line pointer changes.
    #[must_use]
    pub const fn changes_items(&self) -> bool {
        self.redirected + self.dead + self.unused > 0
    }
}

/// The record that pruning writes, and from 17 on freezing with it.
///
/// Before 17, frozen tuples take a record of their own: [`heap_freeze`].
///
/// Source: `log_heap_prune_and_freeze` (REL_17_STABLE), `heap_page_prune` (before),
/// src/backend/access/heap/pruneheap.c.
#[must_use]
#[inline]
pub const fn heap_prune(behaviour: &Behaviour, cleaning: PageCleaning, page: Page) -> u32 {
    let pointers = 4 * cleaning.redirected + 2 * cleaning.dead + 2 * cleaning.unused;
    let main = match behaviour.heap_cleaning_records {
        HeapCleaningRecords::Clean | HeapCleaningRecords::Prune => 8,
        HeapCleaningRecords::PrunePlans => 9,
        HeapCleaningRecords::Combined => return combined_cleaning(cleaning, page).bytes(),
    };
    RecordSize::with_main_data(main)
        .block(page, pointers)
        .bytes()
}

/// The same from 19 on, where it sets visibility bits as well.
///
/// Source: `log_heap_prune_and_freeze`, src/backend/access/heap/pruneheap.c (before 19beta1).
#[must_use]
pub const fn heap_prune_and_visible(cleaning: PageCleaning, page: Page, vm_page: Page) -> u32 {
    combined_cleaning(cleaning, page).block(vm_page, 0).bytes()
}

/// The record of VACUUM's second pass over a page: dead line pointers become unused.
///
/// Source: `lazy_vacuum_heap_page`, src/backend/access/heap/vacuumlazy.c (REL_13_STABLE to
/// REL_18_STABLE).
#[must_use]
pub const fn heap_vacuum_cleanup(behaviour: &Behaviour, unused: u32, page: Page) -> u32 {
    let main = match behaviour.heap_cleaning_records {
        HeapCleaningRecords::Clean => 8,
        HeapCleaningRecords::Prune | HeapCleaningRecords::PrunePlans => 2,
        HeapCleaningRecords::Combined => {
            let cleaning = PageCleaning {
                redirected: 0,
                dead: 0,
                unused,
                frozen: 0,
                freeze_plans: 0,
                has_conflict_horizon: false,
            };
            return combined_cleaning(cleaning, page).bytes();
        }
    };
    RecordSize::with_main_data(main)
        .block(page, 2 * unused)
        .bytes()
}

/// Heap2 FREEZE_PAGE, 13 to 16; `None` from 17 on, where [`heap_prune`] contains it.
///
/// Source: `log_heap_freeze` (REL_13_STABLE), `heap_freeze_execute_prepared` (REL_16_STABLE),
/// src/backend/access/heap/heapam.c.
#[must_use]
pub const fn heap_freeze(
    behaviour: &Behaviour,
    frozen: u32,
    freeze_plans: u32,
    page: Page,
) -> Option<u32> {
    let (main, data) = match behaviour.heap_cleaning_records {
        HeapCleaningRecords::Clean | HeapCleaningRecords::Prune => (6, 12 * frozen),
        HeapCleaningRecords::PrunePlans => (7, 12 * freeze_plans + 2 * frozen),
        HeapCleaningRecords::Combined => return None,
    };
    Some(RecordSize::with_main_data(main).block(page, data).bytes())
}

/// The record of 17 and later: only the parts that are not empty, each with a count.
///
/// Source: `log_heap_prune_and_freeze`, src/backend/access/heap/pruneheap.c (REL_17_STABLE).
#[inline]
const fn combined_cleaning(cleaning: PageCleaning, page: Page) -> RecordSize {
    let mut data = 0;
    if cleaning.frozen > 0 {
        data += 4 + 12 * cleaning.freeze_plans + 2 * cleaning.frozen;
    }
    if cleaning.redirected > 0 {
        data += 2 + 4 * cleaning.redirected;
    }
    if cleaning.dead > 0 {
        data += 2 + 2 * cleaning.dead;
    }
    if cleaning.unused > 0 {
        data += 2 + 2 * cleaning.unused;
    }
    let horizon = if cleaning.has_conflict_horizon { 4 } else { 0 };
    RecordSize::with_main_data(2 + horizon).block(page, data)
}

/// Heap2 CLEANUP_INFO: 13 only, once for each index vacuum.
///
/// Source: `vacuum_log_cleanup_info`, src/backend/access/heap/vacuumlazy.c (REL_13_STABLE).
pub const HEAP_CLEANUP_INFO: u32 = RecordSize::with_main_data(16).bytes();

const _: () = assert!(HEAP_CLEANUP_INFO == 42);

/// The part of a tuple that a record contains: all but the fixed header.
const fn without_fixed_header(tuple_bytes: u32) -> u32 {
    tuple_bytes - SIZE_OF_HEAP_TUPLE_HEADER
}
