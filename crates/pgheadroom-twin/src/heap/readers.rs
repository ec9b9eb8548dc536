//! What readers do to pages on their way: hint bits, pruning, visibility bits.

use pgheadroom_layout::BlockNumber;

use crate::heap::Heap;
use crate::hint::{self, Check};
use crate::page::Tid;
use crate::prune::{self, PrunePlan, PruneResult};
use crate::transaction::{Outcome, Transactions, Xid};
use crate::vm::Visibility;
use crate::watch::{self, EventKind};

impl Heap {
    /// Whether a reader prunes this page.
    #[must_use]
    #[inline]
    pub fn is_worth_pruning(&self, block: BlockNumber, transactions: &impl Transactions) -> bool {
        let page = &self.pages[block.0 as usize];
        prune::is_worth_while(page, self.fillfactor, transactions)
    }

    /// Notes how the transactions of all tuples of a page ended, as pruning does first; says
    /// whether any note is new.
    pub fn note_hints(&mut self, block: BlockNumber, transactions: &impl Transactions) -> bool {
        hint::note_unsettled(&mut self.pages[block.0 as usize], transactions)
    }

    /// Notes what someone who is about to change or lock a tuple finds out about it; says whether
    /// that is new.
    ///
    /// # Panics
    /// When there is no tuple.
    ///
    /// Source: `HeapTupleSatisfiesUpdate`, src/backend/access/heap/heapam_visibility.c
    /// (REL_18_STABLE).
    pub fn note_hints_of(&mut self, tid: Tid, transactions: &impl Transactions) -> bool {
        let page = &mut self.pages[tid.block.0 as usize];
        if page.is_settled(tid.offset) {
            return false; // all is noted
        }
        let mut tuple = page.tuple(tid.offset).expect("a tuple");
        let is_new = hint::note(&mut tuple, Check::Thorough, transactions);
        if is_new {
            page.put_hints(tid.offset, &tuple);
        }
        is_new
    }

    /// A reader looks at a page and may prune it.
    pub fn prune_opt(
        &mut self,
        block: BlockNumber,
        transactions: &impl Transactions,
    ) -> PruneResult {
        let page = &mut self.pages[block.0 as usize];
        let before = page.pd_upper();
        let visit = prune::prune_opt(
            page,
            &self.behaviour,
            self.fillfactor,
            transactions,
            &mut self.last_prune,
        );
        if visit != PruneResult::Nothing && self.is_watched(block) {
            let freed = self.pages[block.0 as usize].pd_upper() - before;
            let event = match visit {
                PruneResult::Pruned => watch::pruned(&self.last_prune, freed, false),
                PruneResult::Hints | PruneResult::Nothing => EventKind::LookedAt,
            };
            self.note(block, || event);
        }
        visit
    }

    /// The root of the chain that a version of this row is in, if it is known and somebody may need
    /// the version: nobody has removed the entry that leads there then.
    #[inline]
    pub(crate) fn root_of(
        &self,
        tid: Tid,
        row: u32,
        transactions: &impl Transactions,
    ) -> Option<Tid> {
        let page = self.pages.get(tid.block.0 as usize)?;
        let root = page.root_of(tid.offset, row)?;
        let has_failed = |xid: Xid| transactions.outcome(xid) == Outcome::Aborted;
        let is_needed = if let Some(plain) = page.plain(tid.offset) {
            !has_failed(plain.xmin)
        } else {
            let tuple = page.tuple(tid.offset)?;
            let stays = !tuple.xmax.is_valid() || tuple.is_locked_only;
            let is_gone = || transactions.outcome(tuple.xmax) == Outcome::Committed;
            !has_failed(tuple.xmin) && (stays || !is_gone())
        };
        if !is_needed {
            return None;
        }
        Some(Tid {
            block: tid.block,
            offset: root,
        })
    }

    /// What the last visit that pruned a page did.
    #[must_use]
    pub const fn last_prune(&self) -> &PrunePlan {
        &self.last_prune
    }

    /// A reader has found that everyone sees all of a page: sets its flag and its bit.
    pub(crate) fn set_visible_by_reader(&mut self, block: BlockNumber) {
        self.pages[block.0 as usize].set_all_visible(true);
        let all_frozen = self.vm.get(block).all_frozen;
        let visibility = Visibility {
            all_visible: true,
            all_frozen,
        };
        self.vm.set(block, visibility);
        self.note(block, || EventKind::MadeVisible { all_frozen });
    }
}
