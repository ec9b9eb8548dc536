//! Random operations on a B-tree against a sorted list, with invariants after each step.
//!
//! The list knows nothing of pages: it holds keys and TIDs. Row versions die at random; insertions
//! may remove entries of dead versions at any time, but never those of live ones.

use std::collections::{BTreeSet, HashSet};

use pgheadroom_layout::btree::BtreeFillfactor;
use pgheadroom_layout::{BlockNumber, OffsetNumber, PgVersion};
use pgheadroom_twin::btree::{
    Btree, Definition, Entry, NULL_LAST, RecordCounts, ShapeId, Table, TupleSizes, UniqueCheck,
    UniqueFetch, UniqueViolation, check, has_null,
};
use pgheadroom_twin::{Tid, Xid};
use proptest::prelude::*;

type Key = Vec<i64>;

/// Which row versions are dead, and the next transaction.
#[derive(Default)]
struct Versions {
    dead: HashSet<Tid>,
    next_xid: u32,
}

impl Table for Versions {
    fn fetch_for_uniqueness(&mut self, tid: Tid) -> UniqueFetch {
        if self.dead.contains(&tid) {
            UniqueFetch::AllDead
        } else {
            UniqueFetch::Conflict
        }
    }
    fn is_deletable(&mut self, tid: Tid) -> bool {
        self.dead.contains(&tid)
    }
    fn is_removable(&self, xid: Xid) -> bool {
        xid.0 < self.next_xid
    }
}

#[derive(Debug, Clone)]
enum Operation {
    /// Insert so many rows with keys from a generator, somewhere in the heap.
    Insert {
        count: u16,
        seed: u32,
        unchanged: bool,
    },
    /// So many percent of the live rows die.
    Die {
        percent: u8,
        seed: u32,
    },
    /// A scan of everything marks what it found dead.
    Kill,
    Vacuum,
}

#[derive(Debug, Clone)]
struct Plan {
    version: &'static str,
    is_unique: bool,
    deduplicates: bool,
    fillfactor: i64,
    key_range: i64,
    columns: u8,
    widest: u64,
    operations: Vec<Operation>,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (1_u16..1500, any::<u32>(), any::<bool>())
            .prop_map(|(count, seed, unchanged)| Operation::Insert { count, seed, unchanged }),
        2 => (1_u8..=100, any::<u32>())
            .prop_map(|(percent, seed)| Operation::Die { percent, seed }),
        1 => Just(Operation::Kill),
        2 => Just(Operation::Vacuum),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let kinds = (
        prop::sample::select(vec!["13.16", "15.18", "18.4"]),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![10_i64, 50, 90, 100]),
        prop::sample::select(vec![1_i64, 5, 300, 100_000]),
        1_u8..=3,
        prop::sample::select(vec![0_u64, 20, 800]),
    );
    (kinds, prop::collection::vec(operation(), 1..12)).prop_map(|(kinds, operations)| Plan {
        version: kinds.0,
        is_unique: kinds.1,
        deduplicates: kinds.2,
        fillfactor: kinds.3,
        key_range: kinds.4,
        columns: kinds.5,
        widest: kinds.6,
        operations,
    })
}

fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// The tree and the list.
struct Pair {
    tree: Btree,
    list: BTreeSet<(Key, Tid)>,
    used: HashSet<Tid>,
    versions: Versions,
    counts: RecordCounts,
    plan: Plan,
}

impl Pair {
    fn new(plan: &Plan) -> Self {
        let behaviour = plan.version.parse::<PgVersion>().unwrap().behaviour();
        let mut definition = Definition::new(plan.columns, plan.is_unique);
        definition.fillfactor = BtreeFillfactor::new(plan.fillfactor).unwrap();
        definition.deduplicate_items = plan.deduplicates;
        Self {
            tree: Btree::new(behaviour, definition),
            list: BTreeSet::new(),
            used: HashSet::new(),
            versions: Versions {
                next_xid: 10,
                ..Versions::default()
            },
            counts: RecordCounts::default(),
            plan: plan.clone(),
        }
    }

    /// Sizes that depend on the key alone, as those of equal values do.
    fn shape(&mut self, key: &[i64]) -> ShapeId {
        let hash = key.iter().fold(0_u64, |sum, &value| {
            sum.wrapping_mul(31) ^ value.unsigned_abs()
        });
        let text = pgheadroom_layout::ColumnType::parse("text").unwrap();
        let columns: Vec<_> = key
            .iter()
            .map(|&value| {
                if value == NULL_LAST {
                    return pgheadroom_layout::Column::null("k", text.clone());
                }
                let payload = 4 + hash % (self.plan.widest + 1);
                pgheadroom_layout::Column::new("k", text.clone(), Some(payload)).unwrap()
            })
            .collect();
        self.tree
            .shape(TupleSizes::of_columns(&columns, &[]).unwrap())
            .unwrap()
    }

    fn insert(&mut self, count: u16, seed: u32, unchanged: bool) {
        let mut state = u64::from(seed);
        for _ in 0..count {
            let range = u64::try_from(self.plan.key_range).unwrap();
            let mut key: Key = (0..self.plan.columns)
                .map(|_| i64::try_from(random(&mut state) % range).unwrap())
                .collect();
            if random(&mut state).is_multiple_of(20) {
                key[0] = NULL_LAST;
            }
            let tid = Tid {
                block: BlockNumber(u32::try_from(random(&mut state) % 300).unwrap()),
                offset: OffsetNumber(u16::try_from(1 + random(&mut state) % 200).unwrap()),
            };
            if !self.used.insert(tid) {
                continue;
            }
            self.versions.dead.remove(&tid);
            let shape = self.shape(&key);
            let entry = Entry {
                key: &key,
                shape,
                tid,
            };
            let taken = self.plan.is_unique && !has_null(&key) && self.is_taken(&key);
            let done = self.tree.insert(
                entry,
                UniqueCheck::Yes,
                unchanged,
                &mut self.versions,
                &mut self.counts,
            );
            match done {
                Ok(_) => {
                    assert!(!taken, "a duplicate went in");
                    self.list.insert((key, tid));
                }
                Err(UniqueViolation { tid: other, .. }) => {
                    assert!(taken, "refused without a live duplicate");
                    assert!(
                        self.list.contains(&(key, other)),
                        "the row named has the key"
                    );
                    self.used.remove(&tid);
                }
            }
        }
        self.versions.next_xid += 1;
    }

    fn is_taken(&self, key: &Key) -> bool {
        let from = (
            key.clone(),
            Tid {
                block: BlockNumber(0),
                offset: OffsetNumber(0),
            },
        );
        self.list
            .range(from..)
            .take_while(|(other, _)| other == key)
            .any(|(_, tid)| !self.versions.dead.contains(tid))
    }

    fn die(&mut self, percent: u8, seed: u32) {
        let mut state = u64::from(seed);
        for (_, tid) in &self.list {
            if random(&mut state) % 100 < u64::from(percent) {
                self.versions.dead.insert(*tid);
            }
        }
    }

    fn kill(&mut self) {
        let mut next = self.tree.scan_start(&[]);
        let mut seen = Vec::new();
        while let Some(block) = next {
            let scanned = self.tree.scan_page(block, &[], &[]);
            let dead: Vec<_> = scanned
                .entries
                .iter()
                .copied()
                .filter(|(_, tid)| self.versions.dead.contains(tid))
                .collect();
            seen.extend(scanned.entries.iter().map(|&(_, tid)| tid));
            self.tree.kill(&scanned, &dead, false, &mut self.counts);
            next = scanned.next;
        }
        let seen: HashSet<Tid> = seen.into_iter().collect();
        let live = self
            .list
            .iter()
            .filter(|(_, tid)| !self.versions.dead.contains(tid));
        for (_, tid) in live {
            assert!(seen.contains(tid), "a scan misses a live row");
        }
    }

    fn vacuum(&mut self) {
        let dead = &self.versions.dead;
        let xid = Xid(self.versions.next_xid);
        let bulk = self.tree.bulk_delete(
            None,
            |tid| dead.contains(&tid),
            xid,
            &self.versions,
            &mut self.counts,
        );
        self.tree
            .vacuum_cleanup(Some(bulk), xid, &self.versions, &mut self.counts);
        self.list.retain(|(_, tid)| !dead.contains(tid));
        let left: HashSet<Tid> = self.list.iter().map(|&(_, tid)| tid).collect();
        self.used.retain(|tid| left.contains(tid));
        assert_eq!(bulk.index_tuples, self.list.len() as u64);
    }

    /// The tree keeps its invariants, holds every live row, and nothing that is not in the list.
    fn compare(&mut self) {
        check::tree(&self.tree).unwrap();
        let held: BTreeSet<_> = check::entries(&self.tree).into_iter().collect();
        for entry in &held {
            assert!(
                self.list.contains(entry),
                "an entry from nowhere: {entry:?}"
            );
        }
        for entry in &self.list {
            let lives = !self.versions.dead.contains(&entry.1);
            assert!(!lives || held.contains(entry), "a live row lost: {entry:?}");
        }
        // Entries that an insertion deleted: their TIDs are free again.
        let gone: Vec<Tid> = self.list.difference(&held).map(|&(_, tid)| tid).collect();
        for tid in gone {
            self.used.remove(&tid);
        }
        self.list = held;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The tree holds what the list holds, whatever happens.
    #[test]
    fn agrees_with_a_sorted_list(plan in plan()) {
        let mut pair = Pair::new(&plan);
        for operation in &plan.operations {
            match *operation {
                Operation::Insert { count, seed, unchanged } => pair.insert(count, seed, unchanged),
                Operation::Die { percent, seed } => pair.die(percent, seed),
                Operation::Kill => pair.kill(),
                Operation::Vacuum => pair.vacuum(),
            }
            pair.compare();
        }
    }

    /// A build holds what insertion one by one holds, and is in order.
    #[test]
    fn builds_hold_everything(plan in plan(), count in 0_usize..4000, seed in any::<u32>()) {
        let mut pair = Pair::new(&Plan { is_unique: false, ..plan });
        let mut state = u64::from(seed);
        let range = u64::try_from(pair.plan.key_range).unwrap();
        let mut rows = Vec::new();
        for number in 0..count {
            let key: Key = (0..pair.plan.columns)
                .map(|_| i64::try_from(random(&mut state) % range).unwrap())
                .collect();
            let shape = pair.shape(&key);
            let tid = Tid {
                block: BlockNumber(u32::try_from(number / 100).unwrap()),
                offset: OffsetNumber(u16::try_from(number % 100 + 1).unwrap()),
            };
            rows.push((key, shape, tid));
        }
        let entries = rows.iter().map(|(key, shape, tid)| Entry {
            key,
            shape: *shape,
            tid: *tid,
        });
        let built = pair.tree.build(entries);
        prop_assert_eq!(built.images.len(), pair.tree.page_count() as usize);
        check::tree(&pair.tree).unwrap();
        let expected: BTreeSet<_> = rows.into_iter().map(|(key, _, tid)| (key, tid)).collect();
        let held: BTreeSet<_> = check::entries(&pair.tree).into_iter().collect();
        prop_assert_eq!(held, expected);
    }
}
