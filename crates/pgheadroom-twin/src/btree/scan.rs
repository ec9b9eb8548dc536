//! Reading entries as an index scan does, page by page, and marking those that it found dead.

use std::borrow::Cow;

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::Btree;
use crate::btree::key::SearchKey;
use crate::btree::page::offset_at;
use crate::btree::record::Sink;
use crate::btree::search::{Tie, lower_bound_near};
use crate::page::Tid;

/// What a scan read of one leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedPage {
    /// The leaf.
    pub block: BlockNumber,
    /// Stands for the page's LSN when it was read.
    pub lsn: u64,
    /// Matching TIDs that are not marked dead, in order, with the item each was read from.
    pub entries: Vec<(OffsetNumber, Tid)>,
    /// The next leaf, if the scan has to go on.
    pub next: Option<BlockNumber>,
}

impl Btree {
    /// The leaf where a scan for keys from `low` on begins; `low` may lack trailing columns.
    ///
    /// Source: `_bt_first`, src/backend/access/nbtree/nbtsearch.c (REL_18_STABLE).
    #[must_use]
    pub fn scan_start(&self, low: &[i64]) -> Option<BlockNumber> {
        let padded = self.padded(low);
        let search = SearchKey {
            values: &padded,
            tid: None,
        };
        self.find_leaf(search, Tie::PivotIsSmaller)
    }

    /// Reads the matching entries of a leaf, keys from `low` to `high` (either may lack trailing
    /// columns, which then match everything).
    ///
    /// Source: `_bt_readpage`, src/backend/access/nbtree/nbtsearch.c (REL_18_STABLE).
    #[must_use]
    pub fn scan_page(&self, block: BlockNumber, low: &[i64], high: &[i64]) -> ScannedPage {
        let page = self.page(block);
        let padded = self.padded(low);
        let search = SearchKey {
            values: &padded,
            tid: None,
        };
        let above = |position: usize| &page.key(position)[..high.len()] > high;
        let mut entries = Vec::new();
        let mut is_done = page.is_rightmost();
        if !page.is_ignored() {
            let near = self.expected_position(block);
            let first = lower_bound_near(search, page, Tie::PivotIsSmaller, near);
            for position in first..page.len() {
                if above(position) {
                    is_done = true;
                    break;
                }
                let item = page.item(position);
                if !item.is_dead() {
                    let offset = offset_at(position);
                    entries.extend(item.each_tid().map(|tid| (offset, tid)));
                }
            }
            is_done |= !page.is_rightmost() && above(0);
        }
        ScannedPage {
            block,
            lsn: page.lsn,
            entries,
            next: (!is_done).then_some(page.next),
        }
    }

    fn padded<'k>(&self, low: &'k [i64]) -> Cow<'k, [i64]> {
        let columns = usize::from(self.definition.key_columns);
        if low.len() == columns {
            return low.into();
        }
        let mut padded = low.to_vec();
        padded.resize(columns, super::key::MINUS_INFINITY);
        padded.into()
    }

    /// Marks entries dead that a scan found dead to all. A posting list is marked only if all of
    /// its TIDs were found. Nothing happens if the page was changed since it was read and the
    /// scan held no pin on it, as is usual (`keeps_pin` false; index-only scans keep it).
    ///
    /// `dead` is a part of the page's entries, in their order.
    ///
    /// Source: `_bt_killitems`, src/backend/access/nbtree/nbtutils.c (REL_18_STABLE).
    pub fn kill(
        &mut self,
        scanned: &ScannedPage,
        dead: &[(OffsetNumber, Tid)],
        keeps_pin: bool,
        sink: &mut impl Sink,
    ) {
        let block = scanned.block;
        let has_changed = |tree: &Self| tree.page(block).lsn != scanned.lsn;
        if dead.is_empty() || (!keeps_pin && has_changed(self)) {
            return;
        }
        let page = self.page_mut(block);
        let first = page.first_data();
        let mut killed = false;
        for (index, &(offset, _)) in dead.iter().enumerate() {
            let start = usize::from(offset.0) - 1;
            if start < first {
                continue;
            }
            let found = (start..page.len()).find(|&position| {
                let item = page.item(position);
                let mut found = dead[index..].iter().map(|&(_, tid)| tid);
                match item.posting() {
                    Some(tids) => tids.iter().all(|&tid| found.next() == Some(tid)),
                    None => found.next() == item.tid(),
                }
            });
            if let Some(position) = found.filter(|&position| !page.slots().is_dead(position)) {
                page.slots_mut().mark_dead(position);
                killed = true;
            }
        }
        if killed {
            sink.hint(block, page.exact_free_space());
        }
    }
}
