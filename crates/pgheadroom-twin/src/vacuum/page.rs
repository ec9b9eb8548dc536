//! What VACUUM's first pass does to one page: prune, then freeze if it must or if that pays.

use pgheadroom_layout::version::{Behaviour, HeapCleaningRecords, OpportunisticFreeze};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::hint::{self, Check};
use crate::page::{HeapPage, LinePointer, Plain, Tuple, XminHint};
use crate::prune::{self, DeadRoots, PrunePlan, TupleState};
use crate::transaction::{Outcome, Transactions, Xid};
use crate::vacuum::{Change, Cutoffs, VacuumLog, Vacuumed};
use crate::vm::Visibility;

mod freeze;

pub use freeze::FreezeKind;
use freeze::{Xmax, multixact_of, note_oldest, unfrozen};

/// How one page is cleaned.
pub(super) struct Cleaner<'a> {
    pub behaviour: &'a Behaviour,
    pub block: BlockNumber,
    pub dead_roots: DeadRoots,
    /// VACUUM FREEZE.
    pub freeze: bool,
    /// What is older has to be frozen.
    pub cutoffs: Cutoffs,
    /// The page's bits in the visibility map.
    pub visibility: Visibility,
}

/// What is left on a page.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whether it has tuples or redirects, so that it cannot be cut off.
    pub has_tuples: bool,
    /// Dead line pointers.
    pub dead: Vec<OffsetNumber>,
    /// Whether everyone sees every tuple, and there is no dead line pointer.
    pub all_visible: bool,
    /// Whether besides every tuple is frozen.
    pub all_frozen: bool,
    /// What pruning did.
    pub plan: PrunePlan,
    /// Tuples that were frozen.
    pub frozen_tuples: u32,
}

/// What the tuples of a page that stay are like.
struct Survey {
    all_visible: bool,
    /// Whether freezing what may be frozen leaves nothing to freeze.
    would_be_frozen: bool,
    freezable: Vec<OffsetNumber>,
    /// Whether all may be frozen, which are not listed before it is known that they will be.
    are_freezable: bool,
    /// Whether something is so old that the page has to be frozen.
    must_freeze: bool,
    /// The oldest transaction of tuples that are not frozen, and of those that stay so if the page
    /// is frozen.
    oldest: [Option<Xid>; 2],
    /// The same of multixacts.
    oldest_multixact: [Option<Xid>; 2],
    /// Whether a live tuple's inserter is not frozen yet.
    has_visible_xid: bool,
}

impl Cleaner<'_> {
    /// Prunes and freezes the page.
    ///
    /// Source: `heap_page_prune_and_freeze`, src/backend/access/heap/pruneheap.c (REL_17_STABLE,
    /// REL_18_STABLE); `lazy_scan_prune`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE,
    /// REL_16_STABLE).
    pub fn prune_and_freeze(
        &self,
        page: &mut HeapPage,
        transactions: &impl Transactions,
        done: &mut Vacuumed,
        log: &mut impl VacuumLog,
    ) -> Found {
        let alike = note_alike(page, transactions);
        let is_noted = alike.map_or_else(
            || hint::note_unsettled(page, transactions),
            |(_, is_new)| is_new,
        );
        let mut has_image = is_noted && log.hinted(self.block, page.exact_free_space());
        let plan = match alike {
            Some(_) => PrunePlan::default(),
            None => prune::plan(page, self.behaviour, self.dead_roots, transactions),
        };
        let prunes = plan.changes_items();
        let hints_changed = plan.apply(page, self.behaviour);
        let mut survey = match alike {
            Some((tuple, _)) => self.survey_alike(page, &tuple, transactions, done),
            None => self.survey(page, transactions, done),
        };
        let combined = self.behaviour.heap_cleaning_records == HeapCleaningRecords::Combined;
        if combined {
            let logs_page = prunes || (hints_changed && log.logs_hints());
            has_image |= logs_page && log.owes_image(self.block);
        } else if prunes {
            let cleaning = plan.cleaning();
            done.pruned.push((self.block, cleaning));
            has_image |= log.changed(
                self.block,
                Change::Pruned(cleaning),
                page.exact_free_space(),
            );
        } else if hints_changed {
            has_image |= log.hinted(self.block, page.exact_free_space());
        }
        let pays = has_image
            && self.behaviour.opportunistic_freeze >= OpportunisticFreeze::WithImage
            && survey.all_visible
            && survey.would_be_frozen;
        let freezes = survey.has_freezable() && (survey.must_freeze || pays);
        if freezes && survey.are_freezable {
            survey.freezable.extend(page.offsets());
        }
        let (frozen, plans) = if freezes {
            self.freeze_tuples(page, &survey, transactions, log)
        } else {
            (0, 0)
        };
        let which = usize::from(freezes);
        note_oldest(&mut done.oldest_left, survey.oldest[which]);
        note_oldest(
            &mut done.oldest_multixact_left,
            survey.oldest_multixact[which],
        );
        let found = found(page, plan, (&survey, alike.is_some()), frozen);
        let sets_bits = self.sets_bits(&found);
        if combined && (prunes || freezes || sets_bits) {
            let mut cleaning = found.plan.cleaning();
            cleaning.frozen = frozen;
            cleaning.freeze_plans = plans;
            cleaning.has_conflict_horizon |= freezes && survey.freezing_conflicts();
            cleaning.has_conflict_horizon |=
                sets_bits && !found.all_frozen && survey.has_visible_xid;
            if prunes || freezes {
                done.pruned.push((self.block, cleaning));
            }
            let change = if sets_bits {
                Change::PrunedVisible(cleaning)
            } else {
                Change::Pruned(cleaning)
            };
            log.changed(self.block, change, page.exact_free_space());
        } else if combined && hints_changed {
            log.hinted(self.block, page.exact_free_space());
        } else if freezes {
            done.frozen.push((self.block, frozen));
            log.changed(
                self.block,
                Change::Frozen(frozen, plans),
                page.exact_free_space(),
            );
        }
        found
    }

    /// Scans a page that somebody else has pinned: ends of transactions are noted, dead line
    /// pointers collected, and tuples counted.
    ///
    /// Source: `lazy_scan_noprune`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE,
    /// REL_18_STABLE).
    pub fn scan_noprune(
        &self,
        page: &mut HeapPage,
        transactions: &impl Transactions,
        done: &mut Vacuumed,
        log: &mut impl VacuumLog,
    ) -> Found {
        if hint::note_unsettled(page, transactions) {
            log.hinted(self.block, page.exact_free_space());
        }
        for offset in page.offsets() {
            let Some(tuple) = &page.tuple(offset) else {
                continue;
            };
            let count = match TupleState::of(tuple, transactions) {
                TupleState::Live | TupleState::DeleteInProgress => &mut done.live_tuples,
                TupleState::RecentlyDead => &mut done.recently_dead_tuples,
                TupleState::Dead => &mut done.missed_dead_tuples,
                TupleState::InsertInProgress => continue,
            };
            *count += 1;
            for left in unfrozen(tuple, transactions) {
                note_oldest(&mut done.oldest_left, left);
            }
            note_oldest(&mut done.oldest_multixact_left, multixact_of(tuple));
        }
        Found {
            has_tuples: page.leads_to_rows(),
            dead: page.offsets().filter(|&at| page.is_dead(at)).collect(),
            ..Found::default()
        }
    }

    /// Whether the record of what was done to the page sets its visibility bits.
    ///
    /// Source: `heap_page_will_set_vm`, src/backend/access/heap/pruneheap.c (before 19beta1).
    fn sets_bits(&self, found: &Found) -> bool {
        let had = self.visibility;
        let is_new = !had.all_visible || (found.all_frozen && !had.all_frozen);
        self.behaviour.visibility_in_cleaning_records && found.all_visible && is_new
    }

    /// As [`Cleaner::survey`], of tuples that are all like this one, which is live.
    fn survey_alike(
        &self,
        page: &HeapPage,
        tuple: &Tuple,
        transactions: &impl Transactions,
        done: &mut Vacuumed,
    ) -> Survey {
        done.live_tuples += u64::from(page.item_count());
        let is_frozen = tuple.xmin_hint == XminHint::Frozen;
        let old_xmin = !is_frozen && self.may_go(tuple.xmin, transactions);
        Survey {
            all_visible: is_visible_to_all(tuple, transactions),
            would_be_frozen: is_frozen || old_xmin,
            freezable: Vec::new(),
            are_freezable: old_xmin,
            must_freeze: old_xmin && self.is_old(tuple.xmin, transactions),
            oldest: [!is_frozen, !is_frozen && !old_xmin].map(|is| is.then_some(tuple.xmin)),
            oldest_multixact: [None; 2],
            has_visible_xid: !is_frozen,
        }
    }

    /// Looks at the tuples that pruning left.
    fn survey(
        &self,
        page: &HeapPage,
        transactions: &impl Transactions,
        done: &mut Vacuumed,
    ) -> Survey {
        let mut survey = Survey {
            all_visible: true,
            would_be_frozen: true,
            freezable: Vec::with_capacity(page.item_count() as usize),
            are_freezable: false,
            must_freeze: false,
            oldest: [None; 2],
            oldest_multixact: [None; 2],
            has_visible_xid: false,
        };
        let committed_before = transactions.committed_before();
        let has_committed =
            |xmin: Xid| xmin < committed_before || transactions.outcome(xmin) == Outcome::Committed;
        for offset in page.offsets() {
            if let Some(plain) = page.plain(offset)
                && has_committed(plain.xmin)
            {
                self.survey_plain((offset, plain), transactions, &mut survey);
                done.live_tuples += 1;
                continue;
            }
            let Some(tuple) = &page.tuple(offset) else {
                continue;
            };
            match TupleState::of(tuple, transactions) {
                TupleState::Live => {
                    done.live_tuples += 1;
                    survey.all_visible &= is_visible_to_all(tuple, transactions);
                    survey.has_visible_xid |= tuple.xmin_hint != XminHint::Frozen;
                }
                TupleState::RecentlyDead => {
                    done.recently_dead_tuples += 1;
                    survey.all_visible = false;
                }
                TupleState::DeleteInProgress => {
                    done.live_tuples += 1;
                    survey.all_visible = false;
                }
                TupleState::InsertInProgress => survey.all_visible = false,
                TupleState::Dead => unreachable!("pruning removes dead tuples"),
            }
            let (old_xmin, new_xmax) = self.freezable_parts(tuple, transactions);
            let is_frozen = tuple.xmin_hint == XminHint::Frozen;
            let xmax_done = !tuple.xmax.is_valid() || new_xmax == Xmax::Goes;
            survey.would_be_frozen &= (is_frozen || old_xmin) && xmax_done;
            let changes_xmax = new_xmax != Xmax::Stays;
            survey.must_freeze |= (old_xmin && self.is_old(tuple.xmin, transactions))
                || (changes_xmax
                    && (tuple.xmax.is_multixact() || self.is_old(tuple.xmax, transactions)));
            survey.note_ages(tuple, (old_xmin, new_xmax), transactions);
            if old_xmin || changes_xmax {
                survey.freezable.push(offset);
            }
        }
        survey
    }

    /// As for any tuple, of one whose committed inserter is all that is to be said.
    #[inline]
    fn survey_plain(
        &self,
        (offset, plain): (OffsetNumber, Plain),
        transactions: &impl Transactions,
        survey: &mut Survey,
    ) {
        let (xmin, is_frozen) = (plain.xmin, plain.is_frozen);
        survey.all_visible &= is_seen_by_all(xmin, transactions);
        if is_frozen {
            return;
        }
        survey.has_visible_xid = true;
        let goes = self.may_go(xmin, transactions);
        note_oldest(&mut survey.oldest[0], Some(xmin));
        if goes {
            survey.must_freeze |= self.is_old(xmin, transactions);
            survey.freezable.push(offset);
        } else {
            survey.would_be_frozen = false;
            note_oldest(&mut survey.oldest[1], Some(xmin));
        }
    }
}

impl Survey {
    /// Whether a tuple may be frozen.
    fn has_freezable(&self) -> bool {
        self.are_freezable || !self.freezable.is_empty()
    }

    /// Whether freezing may conflict with queries on standbys.
    fn freezing_conflicts(&self) -> bool {
        let becomes_frozen = self.all_visible && self.would_be_frozen;
        !becomes_frozen || self.has_visible_xid
    }
}

/// `are_live` says that every line pointer has a live tuple.
fn found(
    page: &HeapPage,
    plan: PrunePlan,
    (survey, are_live): (&Survey, bool),
    frozen_tuples: u32,
) -> Found {
    let mut found = Found {
        has_tuples: are_live,
        plan,
        frozen_tuples,
        ..Found::default()
    };
    if !are_live {
        found.dead = page.offsets().filter(|&at| page.is_dead(at)).collect();
        found.has_tuples = page.leads_to_rows();
    }
    found.all_visible = survey.all_visible && found.dead.is_empty();
    found.all_frozen = survey.would_be_frozen && (frozen_tuples > 0 || !survey.has_freezable());
    found
}

/// A page of live rows that are alike, as a load leaves it, has the end of their inserter noted:
/// one of them, and whether the note is new. None of another page, of which nothing is noted.
fn note_alike(page: &mut HeapPage, transactions: &impl Transactions) -> Option<(Tuple, bool)> {
    let mut tuple = page.alike()?;
    if TupleState::of(&tuple, transactions) != TupleState::Live {
        return None;
    }
    let is_new = hint::note(&mut tuple, Check::Thorough, transactions);
    if is_new {
        page.put_hints_of_all(&tuple);
    }
    Some((tuple, is_new))
}

/// A page of which everyone sees every tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllVisible {
    /// Whether all are frozen.
    pub all_frozen: bool,
    /// Whether the inserter of any is not: then there is a newest one, and queries on standbys may
    /// be older (`visibility_cutoff_xid`).
    pub has_visible_xid: bool,
}

/// Whether everyone sees every tuple, and if so what is left to freeze.
///
/// Source: `heap_page_is_all_visible`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
pub(crate) fn all_visible(page: &HeapPage, transactions: &impl Transactions) -> Option<AllVisible> {
    let mut all_frozen = true;
    let mut has_visible_xid = false;
    for offset in page.offsets() {
        if let Some(plain) = page.plain(offset) {
            if !is_seen_by_all(plain.xmin, transactions) {
                return None;
            }
            all_frozen &= plain.is_frozen;
            has_visible_xid |= !plain.is_frozen;
            continue;
        }
        match &page.item(offset) {
            LinePointer::Normal(tuple) => {
                let is_live = TupleState::of(tuple, transactions) == TupleState::Live;
                if !is_live || !is_visible_to_all(tuple, transactions) {
                    return None;
                }
                all_frozen &= tuple.is_frozen();
                has_visible_xid |= tuple.xmin_hint != XminHint::Frozen;
            }
            LinePointer::Dead => return None,
            LinePointer::Unused | LinePointer::Redirect(_) => {}
        }
    }
    Some(AllVisible {
        all_frozen,
        has_visible_xid,
    })
}

/// Whether everyone sees a live tuple.
fn is_visible_to_all(tuple: &Tuple, transactions: &impl Transactions) -> bool {
    is_seen_by_all(tuple.xmin, transactions)
}

/// Whether everyone sees what this transaction did.
fn is_seen_by_all(xid: Xid, transactions: &impl Transactions) -> bool {
    transactions.outcome(xid) == Outcome::Committed && transactions.is_removable(xid)
}

#[cfg(test)]
mod tests;
