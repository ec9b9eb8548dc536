//! Rows by their keys, and the TIDs of their newest versions as they were seen last.
//!
//! ```text
//! key  first .. first + loaded - 1   row = key - first
//!      from there on                 the row that was inserted with it last, from a list
//! ```
//!
//! It is the index without its pages: a statement by key whose row has a cached TID would find one
//! entry, which leads to the root of the chain that is there.

use crate::checkpoint::ForkId;
use crate::executor::rows::Rows;
use crate::page::Tid;

/// No row was inserted with this key.
const NO_ROW: u32 = u32::MAX;
/// How far beyond the highest known key one may lie that is remembered: keys of several clients,
/// each of which counts by itself. Others are found by the index.
const GAP: usize = 1 << 14;

/// TIDs of the newest versions of rows as they were seen last, by a unique index over one integer
/// column whose keys ascend with the loaded rows' numbers. A TID is cached only while the index has
/// one entry at most for the row's key.
#[derive(Debug, Default)]
pub(super) struct CachedTids {
    index: Option<Known>,
    /// By key, from the first on that no loaded row has: the row inserted with it last.
    inserted: Vec<u32>,
}

/// The index by whose keys TIDs are cached.
#[derive(Debug, Clone, Copy)]
struct Known {
    position: usize,
    fork: ForkId,
    /// The key of row 0.
    first: i64,
    /// Rows that were there when it was built.
    loaded: u32,
}

impl CachedTids {
    /// This index has these keys; it is the one to cache TIDs by, if there is none yet.
    pub fn offer(&mut self, position: usize, fork: ForkId, first: i64, loaded: u32) {
        self.index.get_or_insert(Known {
            position,
            fork,
            first,
            loaded,
        });
    }

    /// Whether TIDs are cached by this index.
    pub fn are_by(&self, position: usize) -> bool {
        self.index.is_some_and(|known| known.position == position)
    }

    /// The row that a key of this index belongs to, if it belongs to any.
    #[inline]
    pub fn row_of(&self, position: usize, key: i64) -> Option<u32> {
        let known = self.index.filter(|known| known.position == position)?;
        let number = u32::try_from(key.checked_sub(known.first)?).ok()?;
        if number < known.loaded {
            return Some(number);
        }
        let row = self.inserted.get((number - known.loaded) as usize);
        row.copied().filter(|&row| row != NO_ROW)
    }

    /// A scan of this index for one key found this row alone, in one entry, and its newest version
    /// is here.
    pub fn note(&self, rows: &mut Rows, (index, key): (usize, i64), row: u32, tid: Tid) {
        if self.row_of(index, key) == Some(row) {
            rows.set_tid(row, tid);
        }
    }

    /// A new row has got its entry with this key in the index with this fork; its TID, if that
    /// entry is the key's only one.
    pub fn learn(
        &mut self,
        rows: &mut Rows,
        (fork, key): (ForkId, i64),
        row: u32,
        tid: Option<Tid>,
    ) {
        let Some(known) = self.index.filter(|known| known.fork == fork) else {
            return;
        };
        let number = key.checked_sub(known.first);
        let number = number.and_then(|number| usize::try_from(number).ok());
        let Some(at) = number.and_then(|number| number.checked_sub(known.loaded as usize)) else {
            return;
        };
        if at >= self.inserted.len() {
            if at - self.inserted.len() > GAP {
                return;
            }
            self.inserted.resize(at + 1, NO_ROW);
        }
        self.inserted[at] = row;
        if let Some(tid) = tid {
            rows.set_tid(row, tid);
        }
    }

    /// Other indexes replace the old ones.
    pub fn start_over(&mut self) {
        self.index = None;
        self.inserted.clear();
    }

    /// The index with this fork has another one; it leads to the same rows.
    pub fn is_built_anew(&mut self, old: ForkId, new: ForkId) {
        if let Some(known) = self.index.as_mut().filter(|known| known.fork == old) {
            known.fork = new;
        }
    }

    /// An entry with this key is added to the index with this fork, for this row.
    pub fn forget(&self, rows: &mut Rows, (fork, key): (ForkId, i64), row: u32) {
        rows.forget_tid(row);
        if let Some(known) = self.index.filter(|known| known.fork == fork)
            && let Some(row) = self.row_of(known.position, key)
        {
            rows.forget_tid(row);
        }
    }
}
