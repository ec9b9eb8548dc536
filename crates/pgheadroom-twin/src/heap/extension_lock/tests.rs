//! Tests of extension locks: sessions whose every row needs a page, at moments that are given.

use super::*;

use pgheadroom_layout::HeapFillfactor;
use pgheadroom_layout::version::PgVersion;
use proptest::prelude::*;

use crate::heap::{InsertTargetBlock, Mode};
use crate::transaction::Xid;

/// Two such rows fit no page.
const ROW_BYTES: u16 = 5000;
/// Nobody who sleeps comes back while a test goes on.
const LONG: f64 = 1e9;

struct At<'a>(&'a mut Extensions);

impl Modified for At<'_> {
    fn modified(&mut self, _: BlockNumber) {}
}

impl Placing for At<'_> {
    fn extensions(&mut self) -> Option<&mut Extensions> {
        Some(self.0)
    }
}

struct World {
    heap: Heap,
    extensions: Extensions,
    targets: Vec<InsertTargetBlock>,
    rows: u32,
}

const fn processors(runs_again: f64) -> Processors {
    Processors {
        runs_again,
        loses: 0.08,
    }
}

impl World {
    /// Sessions whose first statements are over.
    fn new(major: u16, sessions: usize, wake: f64) -> Self {
        Self::of((major, 4), sessions, wake)
    }

    fn of((major, minor): (u16, u16), sessions: usize, wake: f64) -> Self {
        let behaviour = PgVersion::new(major, minor).unwrap().behaviour();
        let mut extensions = Extensions::new(7, processors(wake), 1.0);
        for session in 0..sessions {
            extensions.of(session).end_turn();
        }
        Self {
            heap: Heap::new(behaviour, HeapFillfactor::new(100).unwrap()),
            extensions,
            targets: vec![InsertTargetBlock::default(); sessions],
            rows: 0,
        }
    }

    /// A session inserts a row; where it is, and how much longer that takes.
    fn insert(&mut self, session: usize, now: f64) -> (u32, f64) {
        self.rows += 1;
        self.extensions.begin_turn(now);
        let mut place = At(self.extensions.of(session));
        let placed = self.heap.insert(
            &mut self.targets[session],
            Mode::Row,
            self.rows,
            ROW_BYTES,
            Xid(3),
            &mut place,
        );
        let BlockNumber(block) = placed.unwrap().tid.block;
        (block, self.extensions.end_turn())
    }

    fn pages(&self) -> u32 {
        self.heap.page_count()
    }

    /// Pages that a search of the map finds for such a row, each once.
    fn found(&mut self, now: f64) -> Vec<u32> {
        self.extensions.begin_turn(now);
        self.heap.tell_map(&mut At(&mut self.extensions));
        let wanted = u32::from(ROW_BYTES);
        let found = std::iter::from_fn(|| {
            let block = self.heap.fsm.get(wanted, &mut |_| {})?;
            self.heap.fsm.record(block, 0, &mut |_| {});
            Some(block.0)
        });
        let mut found: Vec<u32> = found.collect();
        found.sort_unstable();
        found
    }
}

/// Whoever comes while k have asked adds a page for itself and one for each of them, up to 64.
#[test]
fn from_16_one_adds_a_page_for_each_request() {
    for major in [16, 17, 18] {
        let mut world = World::new(major, 80, LONG);
        for session in 0..80 {
            let before = world.pages();
            let (block, _) = world.insert(session, 1.0);
            assert_eq!(block, before, "its own is the first of its pages");
            let asked = u32::try_from(session).unwrap();
            assert_eq!(
                world.pages() - before,
                (1 + asked).min(64),
                "{major}: {asked}"
            );
        }
    }
}

/// To 15 the first one who waits adds 20 pages for each who does, at most 512; the others find
/// theirs among them.
#[test]
fn to_15_one_adds_20_pages_for_each_that_waits() {
    let mut world = World::new(15, 40, LONG);
    assert_eq!((world.insert(0, 1.0).0, world.pages()), (0, 1));
    assert_eq!((world.insert(1, 1.0).0, world.pages()), (1, 22));
    for session in 2..40 {
        let (block, _) = world.insert(session, 1.0);
        let waiting = u32::try_from(session).unwrap();
        assert_eq!(block, waiting, "{session}: one of those, each another");
        assert_eq!(world.pages(), 2 + (20 * waiting).min(512));
    }
    let taken: Vec<u32> = (2..40).collect();
    let found = world.found(1e18);
    assert_eq!(found.len(), 512, "they are told to the map, once");
    assert_eq!(&found[..38], taken, "these too, as far as the map knows");
}

/// Pages that were added for others are found by those who come later, and not before they are
/// there. To 18.4 upper levels of the map are told of all but the last, which is the only one.
#[test]
fn others_find_added_pages_when_they_are_there() {
    for (major, minor, found) in [
        (15, 18, (2..22).collect::<Vec<u32>>()),
        (18, 4, Vec::new()),
        (18, 6, vec![2]),
    ] {
        let mut world = World::of((major, minor), 2, 1.0);
        let (_, first) = world.insert(0, 1.0);
        let (_, second) = world.insert(1, 1.0 + first / 2.0);
        assert!(second > first / 2.0, "it waits");
        assert_eq!(world.found(1.0 + first / 2.0), [0; 0], "{major}.{minor}");
        let later = 1.0 + first / 2.0 + second;
        world.extensions.begin_turn(later);
        world.heap.tell_map(&mut At(&mut world.extensions)); // from 16 on it is made now
        let mut later = world.found(later + 1e6);
        later.retain(|&block| block > 1);
        assert_eq!(later, found, "{major}.{minor}");
    }
}

/// A new session tries the last page that is there, not one that somebody is about to add.
#[test]
fn the_last_page_is_one_that_is_there() {
    let mut world = World::new(18, 3, LONG);
    world.insert(0, 0.0);
    world.insert(1, 1e12);
    world.targets[2] = InsertTargetBlock::default();
    world.extensions.begin_turn(1e12);
    let mut place = At(&mut world.extensions);
    let placed = world
        .heap
        .insert(&mut world.targets[2], Mode::Row, 9, 100, Xid(3), &mut place);
    let BlockNumber(block) = placed.unwrap().tid.block;
    assert_eq!(block, 0);
}

/// Who finds no map to tell of its pages asks for the lock again, and stands behind those who have
/// asked before: they all see it, and nobody finds its pages yet.
#[test]
fn the_map_is_made_behind_others() {
    for major in [15, 18] {
        let mut world = World::new(major, 4, 0.0);
        let (_, first) = world.insert(0, 0.0);
        let (_, second) = world.insert(1, first / 2.0);
        let (_, third) = world.insert(2, first / 2.0);
        assert!(third > second);
        world.extensions.begin_turn(first / 2.0 + second);
        world.heap.tell_map(&mut At(&mut world.extensions));
        let lock = &world.heap.extension_lock;
        assert_eq!(lock.requests.len(), 2, "{major}");
        assert_eq!(lock.requests[1].is_of_map, major > 15);
        assert_eq!(world.heap.fsm.page_count() > 0, major == 15);
    }
}

/// The first statement of a session takes too long beside the lock to meet another.
#[test]
fn first_statements_do_not_meet() {
    let mut world = World::new(18, 0, LONG);
    world.targets = vec![InsertTargetBlock::default(); 9];
    for session in 0..9 {
        let (block, waited) = world.insert(session, 1.0);
        assert_eq!((block as usize, waited), (session, 0.0));
    }
    assert_eq!(world.pages(), 9);
    assert!(world.insert(0, 1.0).1 > 0.0, "the second one does");
}

/// Where there is no map all that find their page full want to make it, and ask for a page when
/// they have waited for that: each sees all that have come by then.
#[test]
fn who_waits_for_the_map_sees_all_others() {
    for major in [16, 18] {
        let mut world = World::new(major, 20, LONG);
        world.insert(0, 0.0);
        for target in &mut world.targets {
            *target = InsertTargetBlock(Some(BlockNumber(0)));
        }
        for session in 0..20 {
            world.insert(session, 1e12);
        }
        // Its own page, and one for each of the others.
        assert_eq!(world.pages(), 1 + 20 * 20, "{major}");
        assert!(world.heap.fsm.page_count() > 0);
    }
}

/// Where a statement is long because its COMMIT waits for a disk, the lock is held for as short a
/// part of it as it is work.
#[test]
fn a_disk_does_not_hold_the_lock() {
    let held = |of_work| {
        let mut world = World::new(18, 1, 0.0);
        world.extensions = Extensions::new(7, processors(0.0), of_work);
        world.extensions.of(0).end_turn();
        world.insert(0, 1.0).1
    };
    assert!(held(1.0) > 0.2);
    assert!((held(0.01) - 0.01 * held(1.0)).abs() < 1e-12);
}

/// Who extends again in the same statement does not wait for itself.
#[test]
fn nobody_waits_for_itself() {
    for major in [15, 18] {
        let mut world = World::new(major, 1, LONG);
        world.extensions.begin_turn(1.0);
        for row in 0..50 {
            let mut place = At(&mut world.extensions);
            let target = &mut world.targets[0];
            let heap = &mut world.heap;
            heap.insert(target, Mode::Row, row, ROW_BYTES, Xid(3), &mut place)
                .unwrap();
        }
        assert_eq!(world.pages(), 50, "{major}");
    }
}

proptest! {
    /// One client never waits, however long its pauses are: its table is as without a clock.
    #[test]
    fn one_client_never_waits(pauses in prop::collection::vec(0.0..3.0, 1..60), wake in 0.0..30.0) {
        for major in [15, 16, 18] {
            let mut world = World::new(major, 1, wake);
            let mut now = 1.0;
            for (number, pause) in (0..).zip(&pauses) {
                let (block, waited) = world.insert(0, now);
                prop_assert_eq!(block, number);
                now += waited + pause;
            }
            prop_assert_eq!(world.found(1e18), [0_u32; 0]);
        }
    }

    /// Whatever the order, nobody has a page that another one fills, each asks in its turn, and
    /// together they add what their requests say: a row's page and those for others.
    #[test]
    fn requests_are_granted_in_turn(
        steps in prop::collection::vec((0_usize..12, 0.0..0.6), 1..200),
        wake in 0.0..5.0,
        major in prop::sample::select(vec![15_u16, 16, 18]),
    ) {
        let mut world = World::new(major, 12, wake);
        let mut busy_until = [0.0_f64; 12];
        let (mut now, mut blocks) = (1.0, Vec::new());
        for (session, pause) in steps {
            now += pause;
            if busy_until[session] > now {
                continue;
            }
            let before = world.pages();
            let (block, waited) = world.insert(session, now);
            busy_until[session] = now + waited;
            blocks.push(block);
            let lock = &world.heap.extension_lock;
            let releases: Vec<f64> = lock.requests.iter().map(|one| one.release).collect();
            prop_assert!(releases.is_sorted(), "{releases:?}");
            for request in &lock.requests {
                prop_assert!(request.granted <= request.release);
            }
            let most = if major == 15 { 1 + 20 } else { 12 + 12 };
            prop_assert!(world.pages() - before <= most, "{before} to {}", world.pages());
        }
        let rows = blocks.len();
        blocks.sort_unstable();
        blocks.dedup();
        prop_assert_eq!(blocks.len(), rows, "each row has a page of its own");
        prop_assert!(*blocks.last().unwrap() < world.pages());
    }
}
