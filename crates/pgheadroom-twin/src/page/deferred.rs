//! A page's last HOT update, deferred: noted in the header until somebody changes the page
//! otherwise.
//!
//! ```text
//!              root        old       new            items touched
//! update       redirect    normal    (taken)        none: it is noted in the header
//! visit        -> new      unused    normal         root, new, and old if nobody takes it at once
//! ```
//!
//! A steady page is updated once, pruned by the next visitor, updated again, and so on. Written out
//! at once, an update would touch two items, and pruning it the same two and the root: all of them
//! cache misses in a large table. So every HOT update is only noted in the page's header, and what
//! the items become is written when it is pruned. Whoever asks for an item meanwhile is told what
//! it is; whoever changes one, or updates another row, has the update written out before
//! ([`HeapPage::write_out_deferred`]).

use pgheadroom_layout::OffsetNumber;
use pgheadroom_layout::page::MAX_HEAP_TUPLES_PER_PAGE;
use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;
use pgheadroom_layout::version::Behaviour;

use crate::page::packed::Packed;
use crate::page::state::Flag;
use crate::page::{HeapPage, LinePointer, Tid, Tuple, XmaxHint, aligned, index_of};
use crate::transaction::{Outcome, Transactions, Xid};

/// A HOT update that is noted in the header, and not in the items yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(Rust, packed(2))]
pub(super) struct DeferredUpdate {
    pub row: u32,
    pub xid: Xid,
    pub old: OffsetNumber,
    /// 0 when there is no update.
    pub new: OffsetNumber,
    pub root: OffsetNumber,
    /// Length of the new version.
    pub lp_len: u16,
    /// Length of the old one.
    pub old_len: u16,
}

impl DeferredUpdate {
    pub const NONE: Self = Self {
        row: 0,
        xid: Xid::INVALID,
        old: OffsetNumber(0),
        new: OffsetNumber(0),
        root: OffsetNumber(0),
        lp_len: 0,
        old_len: 0,
    };
}

/// What pruning a deferred update did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Whether the root was a redirect before, so that the old version's line pointer is unused.
    pub frees_item: bool,
    /// That line pointer, if it is the only unused one and not written as such yet; else 0.
    freed: OffsetNumber,
}

impl Settled {
    /// Nothing was pruned.
    pub const NOTHING: Self = Self {
        frees_item: false,
        freed: OffsetNumber(0),
    };
}

impl HeapPage {
    /// The deferred update, if there is one.
    #[inline]
    pub(super) fn deferred(&self) -> Option<DeferredUpdate> {
        (self.deferred.new.0 != 0).then_some(self.deferred)
    }

    /// What a line pointer is, the deferred update included.
    #[inline]
    pub(super) fn item_at(&self, offset: OffsetNumber) -> LinePointer {
        let Some(deferred) = self.deferred() else {
            return self.packed_item(offset);
        };
        if offset == deferred.new {
            return LinePointer::Normal(self.deferred_version(deferred));
        }
        let item = self.packed_item(offset);
        if offset != deferred.old {
            return item;
        }
        let LinePointer::Normal(mut tuple) = item else {
            unreachable!("the old version is a tuple");
        };
        tuple.xmax = deferred.xid;
        tuple.xmax_hint = XmaxHint::Unset;
        tuple.is_locked_only = false;
        tuple.is_hot_updated = true;
        tuple.next = Tid {
            block: self.block,
            offset: deferred.new,
        };
        LinePointer::Normal(tuple)
    }

    fn deferred_version(&self, deferred: DeferredUpdate) -> Tuple {
        let mut tuple = Tuple::new(deferred.row, deferred.lp_len, deferred.xid);
        tuple.is_heap_only = true;
        tuple.is_updated = true;
        tuple.root = deferred.root;
        tuple.next = Tid {
            block: self.block,
            offset: deferred.new,
        };
        tuple
    }

    /// Writes the deferred update out.
    #[inline]
    pub(super) fn write_out_deferred(&mut self) {
        if let Some(deferred) = self.deferred() {
            self.write_deferred(deferred);
        }
    }

    #[inline(never)]
    fn write_deferred(&mut self, deferred: DeferredUpdate) {
        let DeferredUpdate { row, xid, root, .. } = deferred;
        self.deferred = DeferredUpdate::NONE;
        self.items[index_of(deferred.new)] = Packed::heap_only(row, xid, deferred.lp_len, root);
        self.unsettle(deferred.new);
        let next = Tid {
            block: self.block,
            offset: deferred.new,
        };
        self.set_replaced(deferred.old, xid, true, next);
    }

    /// The row whose newest version this is, if that is known without looking further: nobody has
    /// changed or locked it, and its inserter has committed.
    #[inline(always)]
    pub(crate) fn live_row(
        &self,
        offset: OffsetNumber,
        transactions: &impl Transactions,
    ) -> Option<u32> {
        let (row, xmin) = if offset == self.deferred.new {
            (self.deferred.row, self.deferred.xid)
        } else if offset == self.deferred.old {
            return None;
        } else {
            let packed = self.items.get(index_of(offset))?;
            (packed.settled_row()?, packed.xmin)
        };
        (transactions.outcome(xmin) == Outcome::Committed).then_some(row)
    }

    /// Who has made this version, if whoever comes to it from its root finds nothing to note on the
    /// way while that transaction runs, and no other version that is visible to it.
    #[inline]
    pub(crate) fn made_simply_by(&self, offset: OffsetNumber) -> Option<Xid> {
        let is_asked = self.state.has(Flag::IsSimple) && self.deferred.new == offset;
        is_asked.then_some(self.deferred.xid)
    }

    /// Prunes the deferred update away, where that is all that a visitor finds to do: nothing else
    /// on the page is unsettled, and every snapshot sees it as ended, as it sees its transaction as
    /// committed. `None` when that is not so, and nothing was done then.
    /// [`HeapPage::simple_hot_update`] or [`HeapPage::leave_freed`] has to follow.
    ///
    /// Source: as `prune::plan` and `PrunePlan::apply`, for one root, one dead version and one
    /// live.
    #[inline(always)]
    pub(crate) fn prune_deferred(&mut self, behaviour: &Behaviour) -> Option<Settled> {
        let deferred = self.deferred()?;
        let updater = deferred.xid;
        if self.state.has(Flag::HasUnsettled) || self.prune_xid != updater || deferred.root.0 == 0 {
            return None;
        }
        let DeferredUpdate { root, old, new, .. } = deferred;
        self.deferred = DeferredUpdate::NONE;
        self.items[index_of(root)] = Packed::redirect(new);
        self.items[index_of(new)] =
            Packed::settled_heap_only(deferred.row, deferred.xid, deferred.lp_len, root);
        self.pd_upper += aligned(deferred.old_len);
        let mut settled = Settled::NOTHING;
        if root != old {
            settled.frees_item = true;
            self.count_unused(old);
            if usize::from(old.0) < self.items.len() && self.state.unused() == 1 {
                // The only unused one, and not the last: there is nothing to cut off.
                settled.freed = old;
                self.state.set(Flag::HasFreeLines, true);
            } else {
                self.items[index_of(old)] = Packed::UNUSED;
                self.after_prune(behaviour);
            }
        } else {
            self.after_prune(behaviour);
        }
        self.prune_xid = Xid::INVALID;
        self.state.set(Flag::IsFull, false);
        Some(settled)
    }

    /// Writes what [`HeapPage::prune_deferred`] has left open, for whoever does not update now.
    #[inline]
    pub(crate) fn leave_freed(&mut self, settled: Settled) {
        if settled.freed.0 != 0 {
            self.items[index_of(settled.freed)] = Packed::UNUSED;
        }
    }

    /// As [`HeapPage::hot_update`], of a settled tuple by a version of the same length, if that
    /// fits beside it and whoever comes to it by the index finds nothing to note on the way; `None`
    /// when it is not that simple, and nothing was done then. `settled` is what pruning has left
    /// open just before. The new version's line pointer and length.
    #[inline(always)]
    pub(crate) fn simple_hot_update(
        &mut self,
        old: OffsetNumber,
        xid: Xid,
        settled: Settled,
    ) -> Option<(OffsetNumber, u16)> {
        let packed = self.items[index_of(old)];
        let is_simple = packed.settled_row().is_some()
            && u32::from(packed.lp_len) <= TOAST_TUPLE_THRESHOLD
            && u32::from(aligned(packed.lp_len)) <= self.heap_free_space();
        if !is_simple {
            return None;
        }
        if self.deferred.new.0 != 0 || self.state.has(Flag::HasUnsettled) {
            if !self.is_first(old, &packed) {
                return None;
            }
            self.write_out_deferred();
        }
        let lp_len = packed.lp_len;
        let new = self.put_hot(old, &packed, (xid, lp_len), settled);
        self.state.set(Flag::IsSimple, true);
        Some((new, lp_len))
    }

    /// Whether no version comes before this settled one in its chain, nor behind it.
    #[inline(never)]
    fn is_first(&self, offset: OffsetNumber, packed: &Packed) -> bool {
        if offset == self.deferred.old || offset == self.deferred.new {
            return false;
        }
        let root = packed.root;
        !packed.is_heap_only()
            || (root.0 != 0 && self.item_at(root) == LinePointer::Redirect(offset))
    }

    /// A HOT update: a new version of this length, for which the page has room, takes the place of
    /// a tuple; the new version's line pointer.
    ///
    /// # Panics
    /// When it does not fit.
    ///
    /// Source: `PageAddItemExtended`, src/backend/storage/page/bufpage.c, in `heap_update`
    /// (REL_18_STABLE).
    pub(crate) fn hot_update(&mut self, old: OffsetNumber, xid: Xid, lp_len: u16) -> OffsetNumber {
        self.write_out_deferred();
        let packed = self.items[index_of(old)];
        let new = self.put_hot(old, &packed, (xid, lp_len), Settled::NOTHING);
        assert!(self.pd_lower() <= self.pd_upper(), "tuple does not fit");
        new
    }

    /// Notes a HOT update of what is at `old`; no other one is deferred.
    #[inline(always)]
    fn put_hot(
        &mut self,
        old: OffsetNumber,
        packed: &Packed,
        (xid, lp_len): (Xid, u16),
        settled: Settled,
    ) -> OffsetNumber {
        let row = packed.row().expect("a tuple");
        let root = if packed.is_heap_only() {
            packed.root
        } else {
            old
        };
        let new = if settled.freed.0 != 0 {
            self.state.set_unused(0);
            self.unused_from = settled.freed.0;
            settled.freed
        } else {
            self.new_item()
        };
        assert!(self.items.len() <= MAX_HEAP_TUPLES_PER_PAGE as usize);
        self.pd_upper -= aligned(lp_len);
        self.set_prunable(xid);
        self.state.set(Flag::IsSimple, false);
        self.deferred = DeferredUpdate {
            row,
            xid,
            old,
            new,
            root,
            lp_len,
            old_len: packed.lp_len,
        };
        new
    }
}
