//! New pages: the first root, recycled pages, and pages at the end.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::BLCKSZ;

use crate::btree::page::{BtreePage, PageState};
use crate::btree::record::{Record, RecordKind, Sink};
use crate::btree::{Btree, Table};

impl Btree {
    /// Gives an empty index its root, a leaf.
    ///
    /// Source: `_bt_getroot`, src/backend/access/nbtree/nbtpage.c (REL_18_STABLE).
    pub(super) fn ensure_root(&mut self, table: &impl Table, sink: &mut impl Sink) {
        if self.meta.root.is_some() {
            return;
        }
        let root = self.allocate(0, table, sink);
        self.page_mut(root).is_root = true;
        self.meta.root = Some(root);
        self.meta.fast_root = Some(root);
        let record = Record::new(RecordKind::NewRoot, 8)
            .init(root, self.page(root), 0)
            .metapage(self.behaviour.btree_metadata_bytes);
        self.log(sink, &record);
    }

    /// A page for a new purpose: one that was deleted, else one more at the end.
    ///
    /// Source: `_bt_allocbuf`, src/backend/access/nbtree/nbtpage.c (REL_18_STABLE); `_bt_getbuf`
    /// with `P_NEW` before 16.
    pub(super) fn allocate(
        &mut self,
        level: u32,
        table: &impl Table,
        sink: &mut impl Sink,
    ) -> BlockNumber {
        let page = BtreePage::new(level, usize::from(self.definition.key_columns));
        while let Some(block) = self.free_index_page(sink) {
            let PageState::Deleted { safe_xid } = self.page(block).state else {
                continue;
            };
            if table.is_removable(safe_xid) {
                // Relation, block and transaction (24 bytes); from 16 on a flag too, as in DELETE.
                let main_bytes = self.behaviour.btree_delete_main_bytes + 16;
                self.log(sink, &Record::new(RecordKind::ReusePage, main_bytes));
                *self.page_mut(block) = page;
                return block;
            }
        }
        self.pages.push(page);
        BlockNumber(self.page_count() - 1)
    }

    /// Source: `GetFreeIndexPage`, src/backend/storage/freespace/indexfsm.c.
    fn free_index_page(&mut self, sink: &mut impl Sink) -> Option<BlockNumber> {
        if self.fsm.page_count() == 0 {
            return None;
        }
        let mut changed = |block: BlockNumber| sink.fsm_hint(block);
        let block = self.fsm.get(BLCKSZ / 2, &mut changed)?;
        self.fsm.record(block, 0, &mut changed);
        Some(block)
    }
}
