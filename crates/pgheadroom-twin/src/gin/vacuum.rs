//! VACUUM: dead rows go, empty pages of posting trees too; keys stay.
//!
//! Source: src/backend/access/gin/ginvacuum.c (REL_15_STABLE, REL_18_STABLE).

use pgheadroom_layout::wal_record::{
    gin_delete_page, gin_update_meta_page, gin_vacuum_data_leaf_page, gin_vacuum_page,
};

use crate::gin::page::{Content, Leaf, Page, Rows};
use crate::gin::{GinIndex, META_BLOCK, ROOT, Surroundings};
use crate::page::Tid;
use crate::transaction::Xid;
use crate::wal::GinRecord;

/// A VACUUM of the index.
pub(crate) struct Vacuuming<'a> {
    /// Whether a worker of autovacuum does it.
    pub is_autovacuum: bool,
    /// Whether it is the first time that it passes over the index.
    pub is_first_pass: bool,
    /// The next transaction's number.
    pub next_xid: Xid,
    pub is_dead: &'a dyn Fn(Tid) -> bool,
}

impl GinIndex {
    /// Removes dead rows.
    ///
    /// Source: `ginbulkdelete`.
    pub fn bulk_delete(&mut self, vacuuming: &Vacuuming<'_>, around: &mut Surroundings<'_>) {
        if vacuuming.is_first_pass {
            self.clean_for_vacuum(vacuuming.is_autovacuum, around);
        }
        let mut next = Some(self.leftmost_leaf());
        while let Some(block) = next {
            let roots = self.vacuum_entries(block, vacuuming.is_dead, around);
            next = self.page(block).next;
            for root in roots {
                self.vacuum_posting_tree(root, vacuuming, around);
            }
        }
    }

    /// What VACUUM does in the end, whether or not it removed something before.
    ///
    /// Source: `ginvacuumcleanup`.
    pub fn vacuum_cleanup(
        &mut self,
        has_removed: bool,
        is_autovacuum: bool,
        around: &mut Surroundings<'_>,
    ) {
        if !has_removed {
            self.clean_for_vacuum(is_autovacuum, around);
        }
        for block in ROOT..self.page_count() {
            if self.page(block).is_recyclable(around.is_removable) {
                self.record_free_page(block, around.wal);
            }
        }
        self.count_pages(around.is_removable);
        let size = gin_update_meta_page(self.log.init(META_BLOCK, around.wal), None);
        self.record(GinRecord::UpdateMetaPage, size, around.wal);
        self.vacuum_fsm(around.wal);
    }

    /// An ANALYZE of autovacuum moves the pending list into the trees.
    ///
    /// Source: `ginvacuumcleanup` with `analyze_only`.
    pub fn clean_for_analyze(&mut self, around: &mut Surroundings<'_>) {
        self.clean_pending_list(true, self.options.server.memory.autovacuum_work_mem, around);
    }

    fn clean_for_vacuum(&mut self, is_autovacuum: bool, around: &mut Surroundings<'_>) {
        let memory = self.options.server.memory.of_vacuum(is_autovacuum);
        self.clean_pending_list(false, memory, around);
    }

    fn leftmost_leaf(&self) -> u32 {
        let mut block = ROOT;
        while let Content::Inner(entries) = &self.page(block).content {
            block = entries.items[0].child;
        }
        block
    }

    /// Removes dead rows from a leaf's lists; the roots of its posting trees.
    ///
    /// Source: `ginVacuumEntryPage`.
    fn vacuum_entries(
        &mut self,
        block: u32,
        is_dead: &dyn Fn(Tid) -> bool,
        around: &mut Surroundings<'_>,
    ) -> Vec<u32> {
        let Content::Leaf(entries) = &mut self.page_mut(block).content else {
            unreachable!("a leaf of entries");
        };
        let mut roots = Vec::new();
        let mut is_changed = false;
        for at in 0..entries.items.len() {
            let entry = &entries.items[at];
            let tids = match &entry.rows {
                Rows::Tree(root) => {
                    roots.push(*root);
                    continue;
                }
                Rows::List(tids) => tids,
            };
            let left: Vec<Tid> = tids.iter().copied().filter(|tid| !is_dead(*tid)).collect();
            if left.len() < tids.len() {
                is_changed = true;
                let shorter = Leaf::with_list(&entry.key, &left);
                entries.replace(at, shorter.expect("it was no shorter before"));
            }
        }
        if is_changed {
            let size = gin_vacuum_page(self.whole(block, around.wal));
            self.record(GinRecord::VacuumPage, size, around.wal);
        }
        roots
    }

    /// Source: `ginVacuumPostingTree` and `ginVacuumPostingTreeLeaves`.
    fn vacuum_posting_tree(
        &mut self,
        root: u32,
        vacuuming: &Vacuuming<'_>,
        around: &mut Surroundings<'_>,
    ) {
        let mut leaf = root;
        while let Content::DataInner { items, .. } = &self.page(leaf).content {
            leaf = items[0].0;
        }
        let mut has_empty = false;
        let mut next = Some(leaf);
        while let Some(block) = next {
            let page = self.page_mut(block);
            let changes = page.vacuum_leaf(vacuuming.is_dead);
            next = page.next;
            has_empty |= is_empty(page);
            if let Some(changes) = changes {
                let size = gin_vacuum_data_leaf_page(self.change(block, around.wal), changes);
                self.record(GinRecord::VacuumDataLeafPage, size, around.wal);
            }
        }
        if has_empty {
            let mut lefts = Vec::new();
            self.delete_empty(root, None, &mut lefts, vacuuming.next_xid, around);
        }
    }

    /// Deletes empty pages at and below this one; whether this one was deleted. `lefts` has, by
    /// level below the root, the page to the left that stays.
    ///
    /// Source: `ginScanToDelete`.
    fn delete_empty(
        &mut self,
        block: u32,
        parent: Option<(u32, usize, usize)>,
        lefts: &mut Vec<Option<u32>>,
        next_xid: Xid,
        around: &mut Surroundings<'_>,
    ) -> bool {
        let level = parent.map_or(0, |(_, _, level)| level + 1);
        if lefts.len() <= level {
            lefts.resize(level + 1, None);
        }
        let mut at = 0;
        while let Some(child) = self.child_of(block, at) {
            let of = Some((block, at, level));
            if !self.delete_empty(child, of, lefts, next_xid, around) {
                at += 1;
            }
        }
        let page = self.page(block);
        if at > 0 && page.next.is_none() && lefts.len() > level + 1 {
            lefts[level + 1] = None;
        }
        // Neither the leftmost nor the rightmost branch is deleted.
        if let (true, Some(left), Some(next), Some((parent, at, _))) =
            (is_empty(page), lefts[level], page.next, parent)
        {
            self.delete_page((block, next), left, (parent, at), next_xid, around);
            return true;
        }
        lefts[level] = Some(block);
        false
    }

    fn child_of(&self, block: u32, at: usize) -> Option<u32> {
        match &self.page(block).content {
            Content::DataInner { items, .. } => items.get(at).map(|(child, _)| *child),
            _ => None,
        }
    }

    /// Source: `ginDeletePage`.
    fn delete_page(
        &mut self,
        (block, next): (u32, u32),
        left: u32,
        (parent, at): (u32, usize),
        next_xid: Xid,
        around: &mut Surroundings<'_>,
    ) {
        self.page_mut(left).next = Some(next);
        if let Content::DataInner { items, .. } = &mut self.page_mut(parent).content {
            items.remove(at);
        }
        *self.page_mut(block) = Page {
            content: Content::Deleted {
                xid: Some(next_xid),
            },
            next: Some(next),
        };
        let wal = &mut *around.wal;
        // The deleted page and the one to its left are not registered as standard pages.
        let deleted = self.log.change(block, 0, wal);
        let parent = self.change(parent, wal);
        let left = self.log.change(left, 0, wal);
        self.record(
            GinRecord::DeletePage,
            gin_delete_page(deleted, parent, left),
            wal,
        );
    }
}

fn is_empty(page: &Page) -> bool {
    match &page.content {
        Content::DataLeaf { lists, .. } => lists.is_empty(),
        Content::DataInner { items, .. } => items.is_empty(),
        _ => false,
    }
}
