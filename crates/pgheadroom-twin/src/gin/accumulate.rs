//! Rows by key, gathered before they go into the trees, and the memory that they take.
//!
//! How much fits decides in which batches rows of a key come, and so how its lists are packed.
//!
//! Source: src/backend/access/gin/ginbulk.c (REL_15_STABLE, REL_18_STABLE).

use std::collections::BTreeMap;

use pgheadroom_layout::align::MAXIMUM_ALIGNOF;

use crate::gin::key::Key;
use crate::page::Tid;

/// Entries that are allocated at once, and the bytes of one.
///
/// Source: `DEF_NENTRY`; `GinEntryAccumulator`, src/include/access/gin_private.h.
const ENTRIES_AT_ONCE: u32 = 2048;
const ENTRY_BYTES: u64 = 64;
/// Rows that a new entry has room for. Source: `DEF_NPTR`.
const ROWS_AT_FIRST: u64 = 5;
const ROW_BYTES: u64 = 6;
/// Larger pieces of memory are blocks of their own, which are not rounded to a power of 2.
///
/// Source: `ALLOC_CHUNK_LIMIT`, src/backend/utils/mmgr/aset.c (REL_15_STABLE, REL_18_STABLE).
const CHUNK_MAX: u64 = 8192;
const CHUNK_MIN: u64 = 8;

/// Rows by key.
#[derive(Debug)]
pub(super) struct Accumulator {
    rows: BTreeMap<Key, Gathered>,
    /// Bytes allocated, as the server counts them.
    pub memory: u64,
    /// Entries left of those that were allocated last.
    entries_left: u32,
    chunk_header: u64,
    /// Whether keys come out of index tuples.
    are_packed: bool,
}

#[derive(Debug)]
struct Gathered {
    tids: Vec<Tid>,
    room: u64,
}

impl Accumulator {
    /// `chunk_header` is what each piece of memory has before it, in bytes.
    pub const fn new(chunk_header: u64, are_packed: bool) -> Self {
        Self {
            rows: BTreeMap::new(),
            memory: 0,
            entries_left: 0,
            chunk_header,
            are_packed,
        }
    }

    /// Source: `ginInsertBAEntry` and `ginCombineData`.
    pub fn add(&mut self, key: Key, tid: Tid) {
        let header = self.chunk_header;
        if let Some(gathered) = self.rows.get_mut(&key) {
            if gathered.tids.len() as u64 >= gathered.room {
                self.memory -= space(gathered.room * ROW_BYTES, header);
                gathered.room *= 2;
                self.memory += space(gathered.room * ROW_BYTES, header);
            }
            gathered.tids.push(tid);
            return;
        }
        if self.entries_left == 0 {
            self.memory += space(ENTRY_BYTES * u64::from(ENTRIES_AT_ONCE), header);
            self.entries_left = ENTRIES_AT_ONCE;
        }
        self.entries_left -= 1;
        if let Some(bytes) = key.datum_bytes(self.are_packed) {
            self.memory += space(bytes, header);
        }
        self.memory += space(ROWS_AT_FIRST * ROW_BYTES, header);
        let gathered = Gathered {
            tids: vec![tid],
            room: ROWS_AT_FIRST,
        };
        self.rows.insert(key, gathered);
    }

    /// Everything, in the order of keys, each with its rows in order; nothing is left.
    pub fn take(&mut self) -> impl Iterator<Item = (Key, Vec<Tid>)> + use<> {
        self.memory = 0;
        self.entries_left = 0;
        let rows = std::mem::take(&mut self.rows).into_iter();
        rows.map(|(key, mut gathered)| {
            gathered.tids.sort_unstable();
            (key, gathered.tids)
        })
    }
}

/// What a piece of memory takes.
///
/// Source: `AllocSetAlloc` and `AllocSetGetChunkSpace`, src/backend/utils/mmgr/aset.c
/// (REL_15_STABLE, REL_18_STABLE).
fn space(bytes: u64, header: u64) -> u64 {
    let bytes = if bytes > CHUNK_MAX {
        bytes.next_multiple_of(MAXIMUM_ALIGNOF.into())
    } else {
        bytes.next_power_of_two().max(CHUNK_MIN)
    };
    bytes + header
}
