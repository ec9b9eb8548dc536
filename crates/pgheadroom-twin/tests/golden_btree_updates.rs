//! Updates that change an indexed column, against servers (golden G5): heap and two indexes
//! together, since the indexes clean themselves by what the heap says.
//!
//! Origin: 15.18, 16.14 and 18.4, initdb defaults, autovacuum and `full_page_writes` off, one
//! session, `enable_seqscan` and `enable_bitmapscan` off. Only the order in which one statement
//! touches pages is written here; it is the executor's, from src/backend/executor/nodeIndexscan.c
//! and nodeModifyTable.c.

use pgheadroom_layout::version::IndexUnchangedHint;
use pgheadroom_layout::{BlockNumber, HeapFillfactor, PgVersion};
use pgheadroom_twin::btree::{
    Btree, Definition, Entry, RecordCounts, RecordKind, ShapeId, Table, TupleSizes, UniqueCheck,
    UniqueFetch, check,
};
use pgheadroom_twin::heap::{InsertTargetBlock, Mode};
use pgheadroom_twin::transaction::{SingleSession, Transactions};
use pgheadroom_twin::{Heap, LinePointer, Tid, Xid};

const TUPLE_BYTES: u16 = 104;

fn ignore(_: BlockNumber) {}

struct World {
    heap: Heap,
    session: SingleSession,
    /// The page of the row being updated, which nobody can prune meanwhile.
    pinned: Option<BlockNumber>,
}

impl World {
    fn visit(&mut self, block: BlockNumber) {
        if self.pinned != Some(block) {
            self.heap.prune_opt(block, &self.session);
        }
    }

    fn state(&self, tid: Tid) -> UniqueFetch {
        let page = &self.heap.pages()[tid.block.0 as usize];
        match page.item(tid.offset) {
            LinePointer::Normal(tuple) if !tuple.xmax.is_valid() => UniqueFetch::Conflict,
            LinePointer::Normal(tuple) if !self.session.is_removable(tuple.xmax) => {
                UniqueFetch::Invisible
            }
            _ => UniqueFetch::AllDead,
        }
    }
}

impl Table for World {
    fn fetch_for_uniqueness(&mut self, tid: Tid) -> UniqueFetch {
        self.visit(tid.block);
        self.state(tid)
    }
    fn is_deletable(&mut self, tid: Tid) -> bool {
        self.state(tid) == UniqueFetch::AllDead
    }
    fn is_removable(&self, xid: Xid) -> bool {
        self.session.is_removable(xid)
    }
}

struct Index {
    tree: Btree,
    shape: ShapeId,
    counts: RecordCounts,
}

impl Index {
    fn new(version: &str, is_unique: bool) -> Self {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let mut tree = Btree::new(behaviour, Definition::new(1, is_unique));
        let shape = tree.shape(TupleSizes::of_integers(&[4])).unwrap();
        Self {
            tree,
            shape,
            counts: RecordCounts::default(),
        }
    }

    fn insert(&mut self, key: i64, tid: Tid, unchanged: bool, world: &mut World) {
        let entry = Entry {
            key: &[key],
            shape: self.shape,
            tid,
        };
        self.tree
            .insert(entry, UniqueCheck::Yes, unchanged, world, &mut self.counts)
            .unwrap();
    }
}

struct Churn {
    world: World,
    pkey: Index,
    t_ab: Index,
    balances: Vec<i64>,
    target: InsertTargetBlock,
    newpage_updates: u32,
}

impl Churn {
    fn loaded(version: &str, rows: i64, fillfactor: i64) -> Self {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let fillfactor = HeapFillfactor::new(fillfactor).unwrap();
        let mut this = Self {
            world: World {
                heap: Heap::new(behaviour, fillfactor),
                session: SingleSession {
                    current: Xid(3),
                    held_xmin: None,
                },
                pinned: None,
            },
            pkey: Index::new(version, true),
            t_ab: Index::new(version, false),
            balances: vec![0; usize::try_from(rows).unwrap() + 1],
            target: InsertTargetBlock::default(),
            newpage_updates: 0,
        };
        for aid in 1..=rows {
            let row = u32::try_from(aid).unwrap();
            let heap = &mut this.world.heap;
            let placed = heap
                .insert(
                    &mut this.target,
                    Mode::Row,
                    row,
                    TUPLE_BYTES,
                    Xid(3),
                    &mut ignore,
                )
                .unwrap();
            this.pkey.insert(aid, placed.tid, false, &mut this.world);
            this.t_ab.insert(0, placed.tid, false, &mut this.world);
        }
        this.world.session.current = Xid(4);
        let session = this.world.session;
        this.world.heap.vacuum(&session, &mut ignore);
        this.target = InsertTargetBlock::default();
        this.pkey.counts = RecordCounts::default();
        this.t_ab.counts = RecordCounts::default();
        this
    }

    /// `UPDATE t SET abalance = ... WHERE aid = $1`, by the primary key.
    fn update(&mut self, aid: i64) {
        let mut next = self.pkey.tree.scan_start(&[aid]);
        while let Some(block) = next {
            let scanned = self.pkey.tree.scan_page(block, &[aid], &[aid]);
            let mut dead = Vec::new();
            let mut last_block = None;
            for &(offset, tid) in &scanned.entries {
                if last_block != Some(tid.block) {
                    self.world.visit(tid.block);
                    last_block = Some(tid.block);
                }
                match self.world.state(tid) {
                    UniqueFetch::Conflict if self.world.pinned.is_none() => self.replace(aid, tid),
                    UniqueFetch::AllDead => dead.push((offset, tid)),
                    _ => {}
                }
            }
            self.pkey
                .tree
                .kill(&scanned, &dead, false, &mut self.pkey.counts);
            next = scanned.next;
        }
        assert!(self.world.pinned.is_some(), "row {aid} was found");
        self.world.pinned = None;
        self.world.session.current.0 += 1;
    }

    fn replace(&mut self, aid: i64, old: Tid) {
        self.world.pinned = Some(old.block);
        let xid = self.world.session.current;
        let updated = self
            .world
            .heap
            .update(
                &mut self.target,
                old,
                TUPLE_BYTES,
                false,
                false,
                xid,
                &mut ignore,
            )
            .unwrap();
        self.newpage_updates += u32::from(updated.is_newpage);
        let balance = &mut self.balances[usize::try_from(aid).unwrap()];
        *balance = (*balance * 31 + 17 + aid) % 30_011;
        let balance = *balance;
        self.pkey
            .insert(aid, updated.new.tid, true, &mut self.world);
        // 14 takes every update for one that leaves the key alone.
        let unchanged =
            self.world.heap.behaviour().index_unchanged_hint == IndexUnchangedHint::AlwaysTrue;
        self.t_ab
            .insert(balance, updated.new.tid, unchanged, &mut self.world);
    }

    fn run(&mut self, updates: u32, rows: i64) {
        let mut s: i64 = 42;
        for _ in 0..updates {
            s = (s * 1_103_515_245 + 12_345) % (1 << 31);
            self.update(1 + s / 65_536 % rows);
        }
        check::tree(&self.pkey.tree).unwrap();
        check::tree(&self.t_ab.tree).unwrap();
    }

    fn records(&self, kind: RecordKind) -> (u64, u64) {
        let (pkey, t_ab) = (self.pkey.counts.of(kind), self.t_ab.counts.of(kind));
        (pkey.0 + t_ab.0, pkey.1 + t_ab.1)
    }

    fn pages(&self) -> (u32, u32, u32) {
        (
            self.world.heap.page_count(),
            self.pkey.tree.page_count(),
            self.t_ab.tree.page_count(),
        )
    }
}

use RecordKind::{Dedup, Delete, InsertLeaf, InsertPost, InsertUpper, SplitL, SplitR};

/// G5: 20000 updates of 3000 rows.
#[test]
fn changed_keys() {
    for (version, delete_bytes) in [("18.4", 77_484), ("15.18", 76_766), ("16.14", 77_484)] {
        let mut churn = Churn::loaded(version, 3000, 80);
        churn.run(20_000, 3000);
        assert_eq!(churn.pages(), (99, 19, 64), "{version}");
        assert_eq!(churn.newpage_updates, 2817);
        for (kind, number, bytes) in [
            (Dedup, 177, 18_696),
            (Delete, 718, delete_bytes),
            (InsertLeaf, 39_897, 2_553_408),
            (InsertPost, 36, 2376),
            (InsertUpper, 67, 4824),
            (SplitL, 31, 101_112),
            (SplitR, 36, 120_720),
        ] {
            assert_eq!(
                churn.records(kind),
                (number, bytes),
                "{} {version}",
                kind.name()
            );
        }
    }
}

/// G5 on 13, which neither deletes from the bottom up nor near dead entries, and on 14, whose
/// insertions after updates always try to.
#[test]
fn changed_keys_in_older_versions() {
    let of_13 = [
        (Dedup, 131, 14_852),
        (Delete, 353, 51_340),
        (InsertLeaf, 39_897, 2_553_408),
        (SplitL, 32, 104_472),
        (SplitR, 35, 117_320),
    ];
    let of_14 = [
        (Dedup, 228, 21_128),
        (Delete, 1065, 114_098),
        (InsertLeaf, 39_932, 2_555_648),
        (InsertPost, 30, 1980),
        (InsertUpper, 38, 2736),
        (SplitL, 20, 60_520),
        (SplitR, 18, 61_256),
    ];
    for (version, pages, expected) in [("13.16", 64, &of_13[..]), ("14.2", 35, &of_14[..])] {
        let mut churn = Churn::loaded(version, 3000, 80);
        churn.run(20_000, 3000);
        assert_eq!(churn.pages(), (99, 19, pages), "{version}");
        for &(kind, number, bytes) in expected {
            assert_eq!(
                churn.records(kind),
                (number, bytes),
                "{} {version}",
                kind.name()
            );
        }
    }
}

/// G5, shorter and longer.
#[test]
fn changed_keys_short_and_long() {
    let mut churn = Churn::loaded("18.4", 3000, 80);
    churn.run(2000, 3000);
    assert_eq!((churn.pages(), churn.newpage_updates), ((50, 11, 13), 0));
    for (kind, number, bytes) in [
        (Dedup, 6, 384),
        (Delete, 88, 8172),
        (InsertLeaf, 3992, 255_488),
        (InsertUpper, 8, 576),
        (SplitL, 4, 8352),
        (SplitR, 4, 13_488),
    ] {
        assert_eq!(churn.records(kind), (number, bytes), "{}", kind.name());
    }
    let mut churn = Churn::loaded("16.14", 3000, 100);
    churn.run(60_000, 3000);
    assert_eq!(
        (churn.pages(), churn.newpage_updates),
        ((229, 19, 181), 13_741)
    );
}
