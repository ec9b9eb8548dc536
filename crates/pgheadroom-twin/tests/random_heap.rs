//! Random histories of a heap: whatever happens, no page breaks an invariant and no row is lost.
//!
//! The reference is a plain list of rows and where each one's live version is.

use pgheadroom_layout::{BlockNumber, HeapFillfactor, PgVersion};
use pgheadroom_twin::heap::{InsertTargetBlock, Mode};
use pgheadroom_twin::transaction::SingleSession;
use pgheadroom_twin::{Heap, Tid, Xid, check};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Insert {
        tuple_bytes: u16,
    },
    Update {
        pick: usize,
        tuple_bytes: u16,
        hot: bool,
    },
    Delete {
        pick: usize,
    },
    Lock {
        pick: usize,
    },
    Visit {
        pick: usize,
    },
    Vacuum,
    NewSession,
}

fn step() -> impl Strategy<Value = Step> {
    let width = prop_oneof![8 => 28_u16..300, 1 => 300_u16..8160];
    prop_oneof![
        4 => width.clone().prop_map(|tuple_bytes| Step::Insert { tuple_bytes }),
        8 => (any::<usize>(), width, any::<bool>())
            .prop_map(|(pick, tuple_bytes, hot)| Step::Update { pick, tuple_bytes, hot }),
        2 => any::<usize>().prop_map(|pick| Step::Delete { pick }),
        1 => any::<usize>().prop_map(|pick| Step::Lock { pick }),
        4 => any::<usize>().prop_map(|pick| Step::Visit { pick }),
        1 => Just(Step::Vacuum),
        1 => Just(Step::NewSession),
    ]
}

fn ignore(_: BlockNumber) {}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// After each step every page is sound, and every row's live version is where it was put.
    #[test]
    fn pages_stay_sound(
        steps in proptest::collection::vec(step(), 1..150),
        fillfactor in 10_i64..=100,
        major in 13_u16..=18,
        held in proptest::option::of(5_u32..100),
    ) {
        let behaviour = PgVersion::new(major, 4).unwrap().behaviour();
        let mut heap = Heap::new(behaviour, HeapFillfactor::new(fillfactor).unwrap());
        let mut target = InsertTargetBlock::default();
        let mut rows: Vec<(u32, Tid, u16)> = Vec::new();
        for (xid, step) in (5..).zip(steps) {
            let session = SingleSession { current: Xid(xid), held_xmin: held.map(Xid) };
            match step {
                Step::Insert { tuple_bytes } => {
                    let placed = heap
                        .insert(&mut target, Mode::Row, xid, tuple_bytes, Xid(xid), &mut ignore)
                        .unwrap();
                    rows.push((xid, placed.tid, tuple_bytes));
                }
                Step::Vacuum => {
                    heap.vacuum(&session, &mut ignore);
                    target = InsertTargetBlock::default();
                }
                Step::NewSession => target = InsertTargetBlock::default(),
                _ if rows.is_empty() => {}
                Step::Update { pick, tuple_bytes, hot } => {
                    let index = pick % rows.len();
                    let tid = rows[index].1;
                    let done = heap
                        .update(&mut target, tid, tuple_bytes, hot, false, Xid(xid), &mut ignore)
                        .unwrap();
                    prop_assert_eq!(done.is_newpage, done.new.tid.block != rows[index].1.block);
                    prop_assert!(!done.is_hot || !done.is_newpage);
                    rows[index] = (rows[index].0, done.new.tid, tuple_bytes);
                }
                Step::Delete { pick } => {
                    let (_, tid, _) = rows.swap_remove(pick % rows.len());
                    heap.delete(tid, Xid(xid));
                }
                Step::Lock { pick } => {
                    heap.lock(rows[pick % rows.len()].1, Xid(xid));
                }
                Step::Visit { pick } => {
                    heap.visit(rows[pick % rows.len()].1.block, &session);
                }
            }
            for (block, page) in (0..).zip(heap.pages()) {
                prop_assert_eq!(check::page(BlockNumber(block), page), Ok(()));
            }
            for &(row, tid, tuple_bytes) in &rows {
                let tuple = heap.pages()[tid.block.0 as usize].tuple(tid.offset).copied();
                let tuple = tuple.expect("a live row has a tuple");
                prop_assert_eq!((tuple.row, tuple.lp_len), (row, tuple_bytes));
                prop_assert!(!tuple.xmax.is_valid() || tuple.is_locked_only);
            }
        }
    }

    /// The same history gives the same heap: nothing depends on time or on the order of a map.
    #[test]
    fn histories_are_deterministic(widths in proptest::collection::vec(28_u16..2000, 1..200)) {
        let run = || {
            let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
            let mut heap = Heap::new(behaviour, HeapFillfactor::new(90).unwrap());
            let mut target = InsertTargetBlock::default();
            for (row, &tuple_bytes) in (0..).zip(&widths) {
                heap.insert(&mut target, Mode::Row, row, tuple_bytes, Xid(5), &mut ignore).unwrap();
            }
            heap.pages().to_vec()
        };
        prop_assert_eq!(run(), run());
    }
}
