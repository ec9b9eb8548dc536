//! Random histories of a heap: whatever happens, no page breaks an invariant and no row is lost.
//!
//! The reference is a plain list of rows and where each one's live version is; a transaction that
//! is rolled back brings the list back as it was.

use pgheadroom_layout::version::Behaviour;
use pgheadroom_layout::{BlockNumber, HeapFillfactor, OffsetNumber, PgVersion};
use pgheadroom_twin::heap::{InsertTargetBlock, Mode};
use pgheadroom_twin::lock_options::LockTupleMode;
use pgheadroom_twin::procarray::{HeldSnapshot, ProcArray};
use pgheadroom_twin::prune::{self, DeadRoots, PruneResult, TupleState};
use pgheadroom_twin::transaction::{Outcome, Transactions};
use pgheadroom_twin::vacuum::VacuumOptions;
use pgheadroom_twin::{Heap, HeapPage, LinePointer, Tid, check};
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
    Commit,
    Rollback,
    Hold,
    Release,
    Vacuum {
        freeze: bool,
        truncate: bool,
    },
    NewSession,
}

fn step() -> impl Strategy<Value = Step> {
    let width = prop_oneof![8 => 28_u16..300, 1 => 300_u16..8160];
    prop_oneof![
        4 => width.clone().prop_map(|tuple_bytes| Step::Insert { tuple_bytes }),
        8 => (any::<usize>(), width, any::<bool>())
            .prop_map(|(pick, tuple_bytes, hot)| Step::Update { pick, tuple_bytes, hot }),
        3 => any::<usize>().prop_map(|pick| Step::Delete { pick }),
        2 => any::<usize>().prop_map(|pick| Step::Lock { pick }),
        4 => any::<usize>().prop_map(|pick| Step::Visit { pick }),
        8 => Just(Step::Commit),
        2 => Just(Step::Rollback),
        1 => Just(Step::Hold),
        1 => Just(Step::Release),
        1 => (any::<bool>(), any::<bool>())
            .prop_map(|(freeze, truncate)| Step::Vacuum { freeze, truncate }),
        1 => Just(Step::NewSession),
    ]
}

fn ignore(_: BlockNumber) {}

/// Row, place of its live version, length.
type Row = (u32, Tid, u16);

struct World {
    heap: Heap,
    procs: ProcArray,
    target: InsertTargetBlock,
    has_indexes: bool,
    rows: Vec<Row>,
    committed: Vec<Row>,
    held: Option<HeldSnapshot>,
    next_row: u32,
}

impl World {
    fn new(major: u16, fillfactor: i64, has_indexes: bool) -> Self {
        let behaviour = PgVersion::new(major, 4).unwrap().behaviour();
        Self {
            heap: Heap::new(behaviour, HeapFillfactor::new(fillfactor).unwrap()),
            procs: ProcArray::default(),
            target: InsertTargetBlock::default(),
            has_indexes,
            rows: Vec::new(),
            committed: Vec::new(),
            held: None,
            next_row: 0,
        }
    }

    fn commit(&mut self) {
        self.procs.commit();
        self.committed.clone_from(&self.rows);
    }

    fn play(&mut self, step: Step) {
        self.procs.begin_statement();
        match step {
            Step::Insert { tuple_bytes } => {
                let (row, xid) = (self.next_row, self.procs.assign());
                self.next_row += 1;
                let target = &mut self.target;
                let placed = self
                    .heap
                    .insert(target, Mode::Row, row, tuple_bytes, xid, &mut ignore)
                    .unwrap();
                self.rows.push((row, placed.tid, tuple_bytes));
            }
            Step::Commit => self.commit(),
            Step::Rollback => {
                self.procs.abort();
                self.rows.clone_from(&self.committed);
            }
            Step::Hold if self.held.is_none() => self.held = Some(self.procs.hold()),
            Step::Release => {
                if let Some(held) = self.held.take() {
                    self.procs.release(held);
                }
            }
            Step::Vacuum { freeze, truncate } => self.vacuum(freeze, truncate),
            Step::NewSession => self.target = InsertTargetBlock::default(),
            _ if self.rows.is_empty() => {}
            Step::Update {
                pick,
                tuple_bytes,
                hot,
            } => self.update(pick, tuple_bytes, hot),
            Step::Delete { pick } => {
                let (_, tid, _) = self.rows.swap_remove(pick % self.rows.len());
                let xid = self.procs.assign();
                self.heap.note_hints_of(tid, &self.procs);
                self.heap.delete(tid, xid);
            }
            Step::Lock { pick } => {
                let tid = self.rows[pick % self.rows.len()].1;
                let xid = self.procs.assign();
                self.heap.note_hints_of(tid, &self.procs);
                self.heap.lock(tid, LockTupleMode::Update, xid);
            }
            Step::Visit { pick } => self.visit(self.rows[pick % self.rows.len()].1.block),
            Step::Hold => {}
        }
    }

    fn update(&mut self, pick: usize, tuple_bytes: u16, hot: bool) {
        let index = pick % self.rows.len();
        let (row, tid, _) = self.rows[index];
        let xid = self.procs.assign();
        self.heap.note_hints_of(tid, &self.procs);
        let target = &mut self.target;
        let done = self
            .heap
            .update(target, tid, tuple_bytes, hot, false, xid, &mut ignore)
            .unwrap();
        assert_eq!(done.is_newpage, !done.new.tid.shares_page(tid));
        assert!(!done.is_hot || !done.is_newpage);
        self.rows[index] = (row, done.new.tid, tuple_bytes);
    }

    fn vacuum(&mut self, freeze: bool, truncate: bool) {
        self.commit();
        let options = VacuumOptions {
            has_indexes: self.has_indexes,
            freeze,
            truncate,
            ..VacuumOptions::default()
        };
        self.procs.begin_statement();
        self.procs.compute_horizons();
        let scan = self.heap.vacuum_scan(options, &self.procs, &mut ignore);
        self.heap.vacuum_reclaim(scan, &self.procs, &mut ignore);
        self.target = InsertTargetBlock::default();
    }

    fn visit(&mut self, block: BlockNumber) {
        let before = self.heap.pages()[block.0 as usize].clone();
        let planned = in_order(prune::plan(
            &before,
            self.heap.behaviour(),
            DeadRoots::Stay,
            &self.procs,
        ));
        assert_eq!(
            planned,
            in_order(prune::plan_of_all(
                &before,
                self.heap.behaviour(),
                &self.procs
            ))
        );
        let visit = self.heap.prune_opt(block, &self.procs);
        let after = &self.heap.pages()[block.0 as usize];
        if visit == PruneResult::Pruned {
            check_pruned(&before, after, self.heap.behaviour(), &self.procs);
        }
    }

    fn check(&self) {
        for (block, page) in (0..).map(BlockNumber).zip(self.heap.pages()) {
            let sound = check::page_after(block, page, &self.procs);
            assert_eq!(sound, Ok(()));
            let bits = self.heap.vm().get(block);
            assert_eq!(check::visibility(block, page, bits), Ok(()));
        }
        for &(row, tid, tuple_bytes) in &self.rows {
            let page = &self.heap.pages()[tid.block.0 as usize];
            let tuple = page.tuple(tid.offset).expect("a live row has a tuple");
            assert_eq!((tuple.row, tuple.lp_len), (row, tuple_bytes));
            assert_ne!(self.procs.outcome(tuple.xmin), Outcome::Aborted);
            let is_kept = !tuple.xmax.is_valid()
                || tuple.is_locked_only
                || self.procs.outcome(tuple.xmax) == Outcome::Aborted;
            assert!(is_kept, "row {row} was removed");
        }
    }
}

/// What pruning may and must do, said without its algorithm: nothing dead stays, nothing that
/// somebody may see goes or moves, every version left is found from exactly one root, and a second
/// look finds nothing to do.
fn check_pruned(
    before: &HeapPage,
    after: &HeapPage,
    behaviour: &Behaviour,
    transactions: &impl Transactions,
) {
    for (position, item) in before.items().iter().enumerate() {
        let LinePointer::Normal(tuple) = item else {
            continue;
        };
        let items = after.items();
        let left = items.get(position);
        match TupleState::of(tuple, transactions) {
            TupleState::Dead => assert!(!matches!(left, Some(LinePointer::Normal(_)))),
            TupleState::RecentlyDead => {}
            _ => assert_eq!(left, Some(item), "a version that somebody sees"),
        }
    }
    let mut found_from = vec![0; after.items().len()];
    for item in after.items() {
        let mut next = match item {
            LinePointer::Redirect(target) => Some(target),
            LinePointer::Normal(tuple) if !tuple.is_heap_only => following(&tuple, transactions),
            _ => None,
        };
        while let Some(offset) = next {
            found_from[usize::from(offset.0) - 1] += 1;
            next = after
                .tuple(offset)
                .and_then(|tuple| following(&tuple, transactions));
        }
    }
    for (position, item) in after.items().iter().enumerate() {
        if let LinePointer::Normal(tuple) = item {
            let is_mine = transactions.outcome(tuple.xmin) == Outcome::InProgress;
            if tuple.is_heap_only && !is_mine {
                assert_eq!(found_from[position], 1, "item {}", position + 1);
            }
        }
    }
    assert!(!prune::plan(after, behaviour, DeadRoots::Stay, transactions).changes_items());
}

/// A plan does not say in which order its changes are found.
fn in_order(mut plan: prune::PrunePlan) -> prune::PrunePlan {
    plan.redirected.sort_unstable();
    plan.now_dead.sort_unstable();
    plan.now_unused.sort_unstable();
    plan
}

fn following(
    tuple: &pgheadroom_twin::Tuple,
    transactions: &impl Transactions,
) -> Option<OffsetNumber> {
    let goes_on = tuple.is_hot_updated && transactions.outcome(tuple.xmax) != Outcome::Aborted;
    goes_on.then_some(tuple.next.offset)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// After each step every page is sound, and every row's live version is where it was put.
    #[test]
    fn pages_stay_sound(
        steps in proptest::collection::vec(step(), 1..400),
        fillfactor in 10_i64..=100,
        major in 13_u16..=18,
        has_indexes: bool,
    ) {
        let mut world = World::new(major, fillfactor, has_indexes);
        for step in steps {
            world.play(step);
            world.check();
        }
    }

    /// The same history gives the same heap: nothing depends on time or on the order of a map.
    #[test]
    fn histories_are_deterministic(steps in proptest::collection::vec(step(), 1..100)) {
        let run = || {
            let mut world = World::new(18, 90, true);
            steps.iter().for_each(|&step| world.play(step));
            world.heap.pages().to_vec()
        };
        prop_assert_eq!(run(), run());
    }
}
