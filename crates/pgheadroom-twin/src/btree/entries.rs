//! The entries of an index that is to be built, column by column, and their order.
//!
//! Rows are read in the order of their TIDs, and a load makes most keys ascend with them: then
//! nothing is to be sorted. A million entries of one column take 18 bytes each until they are
//! written.

use crate::btree::{Entry, ShapeId};
use crate::page::Tid;

/// Entries in the order of their TIDs.
#[derive(Debug)]
pub(crate) struct Entries {
    key_columns: usize,
    keys: Vec<i64>,
    shapes: Vec<ShapeId>,
    tids: Vec<Tid>,
    /// Whether no key is smaller than the one before.
    ascend: bool,
}

impl Entries {
    /// Room for so many entries of so many key columns.
    pub fn with_capacity(entries: usize, key_columns: usize) -> Self {
        Self {
            key_columns,
            keys: Vec::with_capacity(entries * key_columns),
            shapes: Vec::with_capacity(entries),
            tids: Vec::with_capacity(entries),
            ascend: true,
        }
    }

    /// One more, of a later TID.
    ///
    /// # Panics
    /// When the TID is not behind all others, or the key has another number of columns.
    pub fn push(&mut self, key: &[i64], shape: ShapeId, tid: Tid) {
        assert_eq!(key.len(), self.key_columns, "columns of the key");
        if let Some(&last) = self.tids.last() {
            assert!(last < tid, "TIDs ascend");
            self.ascend &= &self.keys[self.keys.len() - self.key_columns..] <= key;
        }
        self.keys.extend_from_slice(key);
        self.shapes.push(shape);
        self.tids.push(tid);
    }

    /// In the order of keys and TIDs.
    pub fn in_order(&self) -> impl Iterator<Item = Entry<'_>> {
        let order = (!self.ascend).then(|| self.order());
        (0..self.tids.len()).map(move |place| {
            let number = order.as_ref().map(|order| order[place] as usize);
            self.get(number.unwrap_or(place))
        })
    }

    /// Numbers of the entries in the order of keys and TIDs.
    fn order(&self) -> Vec<u32> {
        let count = u32::try_from(self.tids.len()).expect("fewer than 2^32 rows");
        if self.key_columns == 1 {
            let mut order: Vec<(i64, u32)> = self.keys.iter().copied().zip(0..count).collect();
            order.sort_unstable();
            return order.into_iter().map(|(_, number)| number).collect();
        }
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by_key(|&number| (self.key(number as usize), number));
        order
    }

    fn key(&self, number: usize) -> &[i64] {
        &self.keys[number * self.key_columns..(number + 1) * self.key_columns]
    }

    fn get(&self, number: usize) -> Entry<'_> {
        Entry {
            key: self.key(number),
            shape: self.shapes[number],
            tid: self.tids[number],
        }
    }
}
