//! What always holds of an index, whatever came to it and went.

use std::collections::BTreeSet;

use pgheadroom_layout::gin::GIN_LIST_PAGE_SIZE;
use pgheadroom_layout::{BlockNumber, OffsetNumber, PgVersion};
use proptest::prelude::*;

use super::page::{Content, NO_BOUND, Rows};
use super::*;
use crate::page::Tid;
use crate::wal::WalSettings;

#[derive(Debug, Clone)]
enum Step {
    /// So many rows, each with these keys; they take the places of those that went.
    Insert(u32, Vec<u8>),
    /// Rows whose number leaves this rest, of five, are dead.
    Vacuum(u32),
    /// A worker of autovacuum analyzes the table.
    Analyze,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // One that all rows have, so that it has a tree of several leaves.
    let keys = prop::collection::btree_set(1_u8..40, 0..8);
    let keys = keys.prop_map(|keys| std::iter::once(0).chain(keys).collect());
    let insert = (1_u32..2500, keys).prop_map(|(rows, keys)| Step::Insert(rows, keys));
    let step = prop_oneof![
        6 => insert,
        2 => (0_u32..5).prop_map(Step::Vacuum),
        1 => Just(Step::Analyze),
    ];
    prop::collection::vec(step, 1..24)
}

/// Strings of several lengths, so that pages of entries split as well.
fn key(number: u8) -> Key {
    let text = format!("{number:03}").repeat(usize::from(number) * 7 + 1);
    let bytes = u32::try_from(text.len()).unwrap() + 4;
    Key::of_text(None, text.as_bytes(), (bytes, 4))
}

fn tid(row: u32) -> Tid {
    Tid {
        block: BlockNumber(row / 60),
        offset: OffsetNumber(u16::try_from(row % 60).unwrap() + 1),
    }
}

fn row(tid: Tid) -> u32 {
    tid.block.0 * 60 + u32::from(tid.offset.0) - 1
}

type Found = BTreeSet<(Key, Tid)>;

impl GinIndex {
    /// All that it has, each once; pages are looked at on the way.
    fn found(&self) -> Found {
        let mut found = Found::new();
        let mut add = |key: &Key, tid: Tid| assert!(found.insert((key.clone(), tid)), "twice");
        let mut rows = 0;
        let mut next = self.meta.head;
        while let Some(block) = next {
            let Content::PendingList(pending) = &self.page(block).content else {
                panic!("a page of the pending list");
            };
            pending.tuples.iter().for_each(|(key, tid)| add(key, *tid));
            rows += u64::from(pending.rows);
            next = self.page(block).next;
            assert!(next.is_some() || self.meta.tail == Some(block));
        }
        assert_eq!(rows, self.meta.pending_heap_tuples);
        let mut leaves = Vec::new();
        self.leaves_below(ROOT, None, &mut leaves);
        let mut last: Option<&Key> = None;
        for (at, &block) in leaves.iter().enumerate() {
            assert_eq!(self.page(block).next, leaves.get(at + 1).copied());
            for entry in &self.leaf(block).items {
                assert!(last.is_none_or(|last| *last < entry.key), "in order");
                last = Some(&entry.key);
                match &entry.rows {
                    Rows::List(tids) => tids.iter().for_each(|tid| add(&entry.key, *tid)),
                    Rows::Tree(root) => {
                        let tids = self.tids_below(*root);
                        assert!(tids.is_sorted_by(|one, other| one < other), "in order");
                        tids.iter().for_each(|tid| add(&entry.key, *tid));
                    }
                }
            }
        }
        // Sums of bytes are within a page, else this overflows.
        self.holes();
        found
    }

    /// The leaves of the entry tree, whose keys are not above this one.
    fn leaves_below(&self, block: u32, most: Option<&Key>, leaves: &mut Vec<u32>) {
        match &self.page(block).content {
            Content::Leaf(entries) => {
                let last = entries.items.last().map(|entry| &entry.key);
                assert!(most.is_none_or(|most| last.is_none_or(|last| last <= most)));
                leaves.push(block);
            }
            Content::Inner(entries) => {
                for (at, item) in entries.items.iter().enumerate() {
                    let is_last = at + 1 == entries.items.len();
                    // The last one leads to all that is greater.
                    let most = if is_last { most } else { Some(&item.key) };
                    self.leaves_below(item.child, most, leaves);
                }
            }
            other => panic!("no page of entries: {other:?}"),
        }
    }

    /// The rows of a posting tree, in the order of its leaves.
    fn tids_below(&self, block: u32) -> Vec<Tid> {
        match &self.page(block).content {
            Content::DataLeaf { lists, bound } => {
                let tids: Vec<Tid> = lists.iter().flat_map(|list| list.tids.clone()).collect();
                assert!(*bound == NO_BOUND || tids.iter().all(|tid| tid <= bound));
                tids
            }
            Content::DataInner { items, .. } => {
                let mut tids: Vec<Tid> = Vec::new();
                let mut above: Option<Tid> = None;
                for (at, (child, bound)) in items.iter().enumerate() {
                    let below = self.tids_below(*child);
                    let is_last = at + 1 == items.len();
                    let is_within = |tid: &Tid| {
                        above.is_none_or(|above| above < *tid) && (is_last || tid <= bound)
                    };
                    assert!(below.iter().all(is_within), "where a search looks for them");
                    above = Some(*bound);
                    tids.extend(below);
                }
                tids
            }
            other => panic!("no page of a posting tree: {other:?}"),
        }
    }
}

fn index(fast_update: bool, wal: &mut Wal) -> GinIndex {
    let version: PgVersion = "18.4".parse().unwrap();
    let options = GinOptions {
        fast_update,
        pending_list_limit: Some(64),
        server: GinSettings {
            memory: MemorySettings {
                work_mem: 64,
                ..MemorySettings::default()
            },
            ..GinSettings::default()
        },
    };
    wal.open_table(0);
    let mut index = GinIndex::new(version.behaviour(), options, wal);
    index.begin_logging();
    index
}

/// Sixteen by `make test-long`.
fn cases() -> u32 {
    if std::env::var_os("LONG").is_some() {
        16
    } else {
        6
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Every row that came and did not go is there once, and nothing else, on pages that are not
    /// overfull, in trees that lead to it.
    #[test]
    fn what_came_is_there_once(
        steps in steps(),
        fast_update in any::<bool>(),
        beside in proptest::option::of(0..1000_u32),
    ) {
        let settings = WalSettings {
            full_page_writes: true,
            hints_are_logged: true,
            is_logical: false,
        };
        let mut wal = Wal::new(settings);
        let mut index = index(fast_update, &mut wal);
        if let Some(misses_page) = beside {
            index.share_list(misses_page);
        }
        let mut expected = Found::new();
        let mut free: BTreeSet<u32> = (0..100_000).collect();
        for step in steps.into_iter().chain([Step::Analyze]) {
            let around = &mut Surroundings {
                wal: &mut wal,
                is_removable: &|xid| xid.0 % 2 == 0,
                session: SessionId(0),
            };
            let is_insert = matches!(step, Step::Insert(..));
            match step {
                Step::Insert(count, numbers) => {
                    let keys: Vec<Key> = numbers.into_iter().map(key).collect();
                    for _ in 0..count {
                        let row = free.pop_first().expect("room for all");
                        around.session = SessionId(row as usize % 3);
                        index.insert(keys.clone(), tid(row), around);
                        if row.is_multiple_of(5) {
                            index.end_statement(SessionId(row as usize % 2));
                        }
                        if row.is_multiple_of(97) {
                            index.go_on_cleaning(around);
                        }
                        expected.extend(keys.iter().map(|key| (key.clone(), tid(row))));
                    }
                }
                Step::Vacuum(rest) => {
                    // Here and there, and whole stretches, so that leaves become empty.
                    let goes = |row: u32| row % 5 == rest || row / 9000 == rest;
                    let is_dead = |tid: Tid| goes(row(tid));
                    let vacuuming = Vacuuming {
                        is_autovacuum: false,
                        is_first_pass: true,
                        next_xid: Xid(rest + 10),
                        is_dead: &is_dead,
                    };
                    index.bulk_delete(&vacuuming, around);
                    index.vacuum_cleanup(true, false, around);
                    expected.retain(|(_, tid)| {
                        let is_gone = is_dead(*tid);
                        free.extend(is_gone.then(|| row(*tid)));
                        !is_gone
                    });
                    prop_assert_eq!(index.meta.head, None);
                }
                Step::Analyze => index.clean_for_analyze(around),
            }
            prop_assert!(is_insert || index.found() == expected);
            prop_assert!(is_insert || index.cleaning.is_none());
        }
    }
}

/// An index with so many rows from two sessions by turns, of three keys each; whose statement ends
/// before the other's begins, or after.
fn by_turns(rows: u32, misses_page: u32, ends_before: bool) -> (GinIndex, u64) {
    let settings = WalSettings {
        full_page_writes: false,
        hints_are_logged: false,
        is_logical: false,
    };
    let mut wal = Wal::new(settings);
    let mut index = index(true, &mut wal);
    index.share_list(misses_page);
    let mut begun = 0;
    for row in 0..rows {
        let session = SessionId(row as usize % 2);
        let around = &mut Surroundings {
            wal: &mut wal,
            is_removable: &|_| true,
            session,
        };
        let other = SessionId(1 - session.0);
        index.end_statement(if ends_before { other } else { session });
        index.insert((0..3).map(key).collect(), tid(row), around);
        begun += u64::from(index.begun_cleaning(session) > 0);
    }
    (index, begun)
}

/// Two that find no room have a page each, of which one row stays alone.
#[test]
fn who_comes_while_a_page_is_begun_begins_one_too() {
    let pages = |misses, ends_before| by_turns(900, misses, ends_before).0.meta.pending_pages;
    let alone = pages(1000, true);
    assert_eq!(pages(0, false), alone);
    assert!(pages(500, false) > alone + alone / 3, "half of the pages");
    assert!(pages(500, false) < pages(1000, false));
}

/// Who comes to the limit begins to clean, and others add meanwhile: the list grows beyond it, and
/// nobody else cleans.
#[test]
fn a_list_grows_while_it_is_cleaned() {
    let (mut index, begun) = by_turns(6000, 0, true);
    assert_eq!(begun, 1);
    let limit = 64 * 1024 / GIN_LIST_PAGE_SIZE;
    assert!(index.meta.pending_pages > 2 * limit);
    let mut wal = Wal::new(WalSettings {
        full_page_writes: false,
        hints_are_logged: false,
        is_logical: false,
    });
    wal.open_table(0);
    let [_, _] = [wal.add_fork(), wal.add_fork()];
    let whose = index.cleaning.as_ref().expect("not over").session;
    let around = &mut Surroundings {
        wal: &mut wal,
        is_removable: &|_| true,
        session: SessionId(1 - whose.0),
    };
    assert_eq!(index.go_on_cleaning(around), 0, "another's");
    around.session = whose;
    let mut parts = 1;
    while index.go_on_cleaning(around) > 0 {
        parts += 1;
    }
    assert!(parts > 1, "memory holds no more at once");
    assert!(
        index.meta.pending_pages > limit,
        "what came behind its end stays"
    );
    assert_eq!(index.found().len(), 3 * 6000);
}
