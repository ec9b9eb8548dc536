//! The dead line pointers that VACUUM remembers between its passes, and the memory for them.

use pgheadroom_layout::page::MAX_HEAP_TUPLES_PER_PAGE;
use pgheadroom_layout::{Behaviour, BlockNumber, OffsetNumber};

use crate::page::Tid;
use crate::vacuum::tid_store::TidStore;

/// The line pointers, by page in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeadItems {
    pages: Vec<(BlockNumber, Vec<OffsetNumber>)>,
    /// By block: behind which of `bits` its page's are, or 0 where it has none.
    places: Vec<u32>,
    bits: Vec<OffsetBits>,
    memory: Memory,
}

/// A bit for each line pointer of a page: every entry of every index is asked for.
type OffsetBits = [u64; MAX_HEAP_TUPLES_PER_PAGE as usize / 64 + 1];

/// What a VACUUM has to remember them in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Memory {
    /// To 16: an array of TIDs.
    Array { items: u64, max_items: u64 },
    /// From 17 on.
    TidStore {
        store: Box<TidStore>,
        max_bytes: u64,
        is_shared: bool,
    },
}

/// VACUUM skips the indexes only if what it remembers takes less.
///
/// Source: `lazy_vacuum`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE, REL_18_STABLE).
const BYPASS_BYTES: u64 = 32 << 20;

/// The TIDs that fit into so many bytes. Source: `MAXDEADITEMS`, src/include/commands/vacuum.h
/// (REL_15_STABLE).
const fn max_dead_items(bytes: u64) -> u64 {
    const ARRAY_HEADER: u64 = 8;
    const TID: u64 = 6;
    (bytes - ARRAY_HEADER) / TID
}

impl DeadItems {
    /// None yet, of a table of so many pages, in so many kB; shared where there are parallel
    /// workers, which to 16 makes no difference.
    ///
    /// Source: `dead_items_max_items`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE);
    /// `dead_items_alloc`, same file (REL_18_STABLE).
    pub fn new(behaviour: &Behaviour, memory_kb: u32, rel_pages: u32, is_shared: bool) -> Self {
        let max_bytes = u64::from(memory_kb.max(1)) << 10;
        let memory = if behaviour.vacuum_has_tid_store {
            Memory::TidStore {
                store: Box::new(TidStore::new(max_bytes, is_shared)),
                max_bytes,
                is_shared,
            }
        } else {
            const MAX_ALLOC_SIZE: u64 = 0x3fff_ffff;
            let page = u64::from(MAX_HEAP_TUPLES_PER_PAGE);
            let of_all_pages = u64::from(rel_pages) * page;
            let fitting = max_dead_items(max_bytes.min(MAX_ALLOC_SIZE));
            // By whole pages, as it is rounded there.
            let max_items = if fitting / page > u64::from(rel_pages) {
                of_all_pages
            } else {
                fitting
            };
            Memory::Array {
                items: 0,
                max_items: max_items.max(page),
            }
        };
        Self {
            pages: Vec::new(),
            places: Vec::new(),
            bits: Vec::new(),
            memory,
        }
    }

    /// Pages that have some.
    pub fn pages(&self) -> &[(BlockNumber, Vec<OffsetNumber>)] {
        &self.pages
    }

    /// Adds those of a page behind all others.
    pub fn add(&mut self, block: BlockNumber, offsets: Vec<OffsetNumber>) {
        match &mut self.memory {
            Memory::Array { items, .. } => *items += offsets.len() as u64,
            Memory::TidStore { store, .. } => {
                let last = offsets.last().map_or(0, |offset| offset.0);
                store.set(block.0, offsets.len(), last);
            }
        }
        let mut bits = OffsetBits::default();
        for offset in &offsets {
            bits[usize::from(offset.0 / 64)] |= 1 << (offset.0 % 64);
        }
        self.bits.push(bits);
        debug_assert!(self.places.len() <= block.0 as usize, "blocks ascend");
        self.places.resize(block.0 as usize, 0);
        self.places
            .push(u32::try_from(self.bits.len()).expect("no more pages than blocks"));
        self.pages.push((block, offsets));
    }

    /// Whether the indexes and these pages come first, before the next page of the first pass.
    ///
    /// Source: `lazy_scan_heap`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE,
    /// REL_18_STABLE).
    pub fn are_enough(&self) -> bool {
        match &self.memory {
            Memory::Array { items, max_items } => {
                max_items - items < u64::from(MAX_HEAP_TUPLES_PER_PAGE)
            }
            Memory::TidStore {
                store, max_bytes, ..
            } => !self.pages.is_empty() && store.allocated() > *max_bytes,
        }
    }

    /// Whether there are few enough for leaving the indexes alone.
    pub fn are_few(&self) -> bool {
        match &self.memory {
            Memory::Array { items, .. } => *items < max_dead_items(BYPASS_BYTES),
            Memory::TidStore { store, .. } => store.allocated() < BYPASS_BYTES,
        }
    }

    /// Forgets all of them. Source: `dead_items_reset`.
    pub fn reset(&mut self) {
        self.pages.clear();
        self.places.clear();
        self.bits.clear();
        match &mut self.memory {
            Memory::Array { items, .. } => *items = 0,
            Memory::TidStore {
                store,
                max_bytes,
                is_shared,
            } => **store = TidStore::new(*max_bytes, *is_shared),
        }
    }

    /// Whether the line pointer at this TID is one of them.
    pub fn has(&self, tid: Tid) -> bool {
        let place = self.places.get(tid.block.0 as usize).copied();
        place
            .and_then(|place| place.checked_sub(1))
            .is_some_and(|place| {
                let word = self.bits[place as usize][usize::from(tid.offset.0 / 64)];
                word >> (tid.offset.0 % 64) & 1 == 1
            })
    }
}

#[cfg(test)]
mod tests {
    use pgheadroom_layout::PgVersion;

    use super::*;

    fn rounds(version: &str, memory_kb: u32, pages: u32, items: u16) -> u32 {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let mut dead = DeadItems::new(&behaviour, memory_kb, pages, false);
        let mut rounds = 1;
        for block in 0..pages {
            if dead.are_enough() {
                dead.reset();
                rounds += 1;
            }
            dead.add(BlockNumber(block), (1..=items).map(OffsetNumber).collect());
        }
        rounds
    }

    /// To 16 an array is never full of a table's own line pointers if memory holds all of them.
    #[test]
    fn memory_is_counted_by_line_pointers_or_by_pages() {
        // 174,761 TIDs to 1 MB: 600 full pages, of which the last is not begun.
        assert_eq!(rounds("16.14", 1024, 599, 291), 1);
        assert_eq!(rounds("16.14", 1024, 601, 291), 2);
        assert_eq!(rounds("16.14", 1024, 100_000, 1), 1);
        assert_eq!(rounds("18.4", 1024, 10_000, 291), 1);
        // A node of 48 children does not fit into 64 kB any more.
        assert_eq!(rounds("18.4", 64, 33, 291), 1);
        assert_eq!(rounds("18.4", 64, 34, 1), 2);
    }
}
