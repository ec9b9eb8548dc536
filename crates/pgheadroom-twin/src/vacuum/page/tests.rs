//! A page of rows that are alike is cleaned as any other.

use super::*;
use crate::fsm::Modified;
use crate::transaction::SingleSession;
use pgheadroom_layout::PgVersion;

/// What a page's cleaning told the log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    owes: bool,
    hinted: Vec<u32>,
    changed: Vec<(Change, u32)>,
}

impl Modified for Told {
    fn modified(&mut self, _: BlockNumber) {}
}

impl VacuumLog for Told {
    fn hinted(&mut self, _: BlockNumber, hole_bytes: u32) -> bool {
        self.hinted.push(hole_bytes);
        std::mem::take(&mut self.owes)
    }

    fn changed(&mut self, _: BlockNumber, change: Change, hole_bytes: u32) -> bool {
        self.changed.push((change, hole_bytes));
        std::mem::take(&mut self.owes)
    }

    fn owes_image(&self, _: BlockNumber) -> bool {
        self.owes
    }

    fn logs_hints(&self) -> bool {
        true
    }
}

/// A page of new rows is cleaned as one with a row that an UPDATE made, which is not alike and
/// differs in nothing else.
#[test]
fn alike_rows_are_cleaned_as_others() {
    for (major, current, held, owes, (freeze, limit)) in (13..=18).flat_map(|major| {
        [(9, None), (5, None), (9, Some(4)), (9, Some(5))]
            .into_iter()
            .flat_map(move |(current, held)| {
                let freezes = [(false, 0), (true, 0), (false, 5), (false, 6)];
                [false, true].into_iter().flat_map(move |owes| {
                    freezes.map(|freeze| (major, current, held, owes, freeze))
                })
            })
    }) {
        let version = PgVersion::new(major, if major == 13 { 20 } else { 4 });
        let behaviour = version.expect("a version").behaviour();
        let session = SingleSession {
            current: Xid(current),
            held_xmin: held.map(Xid),
        };
        let cleaner = Cleaner {
            behaviour: &behaviour,
            block: BlockNumber(0),
            dead_roots: DeadRoots::Stay,
            freeze,
            cutoffs: Cutoffs {
                freeze_limit: Xid(limit),
                ..Cutoffs::default()
            },
            visibility: Visibility::default(),
        };
        let clean = |is_updated: bool, twice: bool| {
            let mut page = HeapPage::empty();
            for row in 0..20 {
                let mut tuple = Tuple::new(row, 100, Xid(5));
                tuple.is_updated = is_updated && row == 7;
                page.add(BlockNumber(0), tuple);
            }
            assert_eq!(page.alike().is_some(), !is_updated);
            let mut told = Told {
                owes,
                ..Told::default()
            };
            let mut done = Vacuumed::default();
            let mut found = cleaner.prune_and_freeze(&mut page, &session, &mut done, &mut told);
            if twice {
                found = cleaner.prune_and_freeze(&mut page, &session, &mut done, &mut told);
            }
            page.tuple_mut(OffsetNumber(8)).is_updated = false;
            page.set_prune_hints(Xid::INVALID); // which of them are settled is found out anew
            let changes = told.changed.into_iter().map(|(change, hole)| match change {
                Change::Frozen(tuples, _) => (Change::Frozen(tuples, 1), hole),
                Change::Pruned(mut cleaning) => {
                    cleaning.freeze_plans = cleaning.freeze_plans.min(1);
                    (Change::Pruned(cleaning), hole)
                }
                other => (other, hole),
            });
            for (_, cleaning) in &mut done.pruned {
                cleaning.freeze_plans = cleaning.freeze_plans.min(1);
            }
            let changes: Vec<_> = changes.collect();
            let found = (
                found.has_tuples,
                found.dead,
                found.all_visible,
                found.all_frozen,
            );
            (page, found, done, told.hinted, changes)
        };
        for twice in [false, true] {
            let context = (major, current, held, owes, freeze, limit, twice);
            assert_eq!(clean(false, twice), clean(true, twice), "{context:?}");
        }
    }
}
