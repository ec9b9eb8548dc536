//! B-trees against what servers did: every page count, and records and bytes of each kind.
//!
//! Origin: golden G3, recorded on 13.16, 15.18 and 18.4 with autovacuum and `full_page_writes` off,
//! one session (`INSERT INTO r SELECT k FROM kk ORDER BY i`). Newly recorded cases are in
//! `golden/expected/*/btree-*.json`.

use pgheadroom_layout::{BlockNumber, OffsetNumber, PgVersion};
use pgheadroom_twin::btree::{
    Btree, Definition, Entry, RecordCounts, RecordKind, Table, TupleSizes, UniqueCheck,
    UniqueFetch, check,
};
use pgheadroom_twin::{Tid, Xid};

/// Rows are only inserted: nothing is ever dead.
struct OnlyInserts;

impl Table for OnlyInserts {
    fn fetch_for_uniqueness(&mut self, _: Tid) -> UniqueFetch {
        UniqueFetch::Conflict
    }
    fn is_deletable(&mut self, _: Tid) -> bool {
        false
    }
    fn is_removable(&self, _: Xid) -> bool {
        true
    }
}

/// Where the nth row (from 0) of a table is whose rows all have `lp_len` bytes.
fn tid(row: usize, lp_len: u32) -> Tid {
    let per_page = (8168 / (lp_len.next_multiple_of(8) + 4)) as usize;
    Tid {
        block: BlockNumber(u32::try_from(row / per_page).unwrap()),
        offset: OffsetNumber(u16::try_from(row % per_page + 1).unwrap()),
    }
}

struct Case {
    keys: Vec<Vec<i64>>,
    widths: &'static [u32],
    lp_len: u32,
    is_unique: bool,
}

impl Case {
    fn ints(keys: impl IntoIterator<Item = i64>, is_unique: bool) -> Self {
        Self {
            keys: keys.into_iter().map(|key| vec![key]).collect(),
            widths: &[4],
            lp_len: 28,
            is_unique,
        }
    }

    fn pairs(keys: impl IntoIterator<Item = (i64, i64)>, widths: &'static [u32]) -> Self {
        Self {
            keys: keys.into_iter().map(|(a, b)| vec![a, b]).collect(),
            widths,
            lp_len: 24 + widths.iter().sum::<u32>(),
            is_unique: false,
        }
    }

    fn tree(&self, version: &str) -> (Btree, pgheadroom_twin::btree::ShapeId) {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let columns = u8::try_from(self.widths.len()).unwrap();
        let mut tree = Btree::new(behaviour, Definition::new(columns, self.is_unique));
        let shape = tree.shape(TupleSizes::of_integers(self.widths)).unwrap();
        (tree, shape)
    }

    fn inserted(&self, version: &str) -> (Btree, RecordCounts) {
        let (mut tree, shape) = self.tree(version);
        let mut counts = RecordCounts::default();
        for (row, key) in self.keys.iter().enumerate() {
            let entry = Entry {
                key,
                shape,
                tid: tid(row, self.lp_len),
            };
            tree.insert(
                entry,
                UniqueCheck::Yes,
                false,
                &mut OnlyInserts,
                &mut counts,
            )
            .unwrap();
        }
        check::tree(&tree).unwrap();
        assert_eq!(check::entries(&tree).len(), self.keys.len());
        (tree, counts)
    }

    fn built_pages(&self) -> u32 {
        let (mut tree, shape) = self.tree("18.4");
        let entries = self.keys.iter().enumerate().map(|(row, key)| Entry {
            key,
            shape,
            tid: tid(row, self.lp_len),
        });
        tree.build(entries);
        check::tree(&tree).unwrap();
        assert_eq!(check::entries(&tree).len(), self.keys.len());
        tree.page_count()
    }

    /// Pages after insertion and after CREATE INDEX, and records and bytes of some kinds.
    fn expect(&self, pages: u32, built: u32, records: &[(RecordKind, u64, u64)]) {
        let (tree, counts) = self.inserted("18.4");
        assert_eq!(tree.page_count(), pages);
        for &(kind, number, bytes) in records {
            assert_eq!(counts.of(kind), (number, bytes), "{}", kind.name());
        }
        assert_eq!(self.built_pages(), built, "CREATE INDEX");
    }
}

/// s <- (s * 1664525 + 1013904223) mod 2^32, from seed 42.
fn lcg() -> impl Iterator<Item = i64> {
    std::iter::successors(Some(42_i64), |s| {
        Some((s * 1_664_525 + 1_013_904_223) % (1 << 32))
    })
    .skip(1)
}

use RecordKind::{Dedup, InsertLeaf, InsertUpper, NewRoot, SplitL, SplitR};

/// G3: random distinct keys; fails unless ties of split candidates are sorted as servers do.
#[test]
fn random_keys() {
    let keys = |n| lcg().map(|s| s - (1 << 31)).take(n);
    Case::ints(keys(100_000), true).expect(
        311,
        276,
        &[
            (InsertLeaf, 99_692, 6_380_288),
            (InsertUpper, 307, 22_104),
            (SplitL, 144, 479_448),
            (SplitR, 164, 552_352),
            (NewRoot, 2, 212),
        ],
    );
    let (tree, counts) = Case::ints(keys(400_000), true).inserted("15.18");
    assert_eq!(tree.page_count(), 1303);
    let expected = [
        (InsertLeaf, 398_706, 25_517_184),
        (InsertUpper, 1292, 93_024),
        (SplitL, 618, 2_082_160),
        (SplitR, 681, 2_292_304),
        (NewRoot, 3, 334),
    ];
    assert_eq!(
        counts
            .iter()
            .map(|(kind, number, bytes)| (kind, (number, bytes)))
            .collect::<std::collections::BTreeMap<_, _>>(),
        expected
            .iter()
            .map(|&(kind, number, bytes)| (kind, (number, bytes)))
            .collect()
    );
}

/// G3: ascending keys fill leaves to 90 %, descending ones split in the middle.
#[test]
fn ordered_keys() {
    Case::ints(1..=60_000, true).expect(
        166,
        166,
        &[
            (InsertLeaf, 59_837, 3_829_568),
            (InsertUpper, 162, 11_664),
            (SplitR, 163, 122_576),
            (NewRoot, 2, 212),
        ],
    );
    Case::ints((1..=60_000).rev(), true).expect(
        296,
        166,
        &[
            (InsertLeaf, 59_707, 3_821_248),
            (InsertUpper, 292, 21_024),
            (SplitL, 293, 988_896),
        ],
    );
}

/// 13 logs a longer metapage.
#[test]
fn metapage_of_13() {
    let (_, counts) = Case::ints(1..=60_000, true).inserted("13.16");
    assert_eq!(counts.of(NewRoot), (2, 236));
}

/// G3: duplicates become posting lists, and splits keep them together.
#[test]
fn duplicates() {
    Case::ints((1..=60_000).map(|i| i % 100), false).expect(
        66,
        52,
        &[
            (Dedup, 1165, 80_888),
            (InsertLeaf, 59_937, 3_835_968),
            (InsertUpper, 62, 4464),
            (SplitL, 14, 58_912),
            (SplitR, 49, 239_064),
        ],
    );
    let random = |modulus: i64| lcg().map(move |s| (s / 65_536) % modulus).take(60_000);
    Case::ints(random(1000), false).expect(
        75,
        53,
        &[
            (Dedup, 1190, 133_688),
            (InsertLeaf, 59_928, 3_835_392),
            (InsertUpper, 71, 5112),
            (SplitL, 36, 138_760),
            (SplitR, 36, 145_888),
        ],
    );
    Case::ints(random(50), false).expect(
        52,
        54,
        &[
            (Dedup, 983, 60_608),
            (InsertLeaf, 59_951, 3_836_864),
            (InsertUpper, 48, 3456),
            (SplitL, 20, 73_608),
            (SplitR, 29, 127_256),
        ],
    );
}

/// G3: one value only; pages are filled to 96 %, and pivots need a TID.
#[test]
fn constant_key() {
    Case::ints(std::iter::repeat_n(7, 60_000), false).expect(
        49,
        53,
        &[
            (Dedup, 420, 22_780),
            (InsertLeaf, 59_954, 3_837_056),
            (InsertUpper, 45, 3600),
            (SplitR, 46, 17_296),
            (NewRoot, 2, 220),
        ],
    );
}

/// G3: two columns; pivots lose the second where the first tells pages apart, and ascending
/// insertion within a leading value is recognised.
#[test]
fn two_columns() {
    type Pair = fn(i64, i64) -> (i64, i64);
    let keys = |pair: Pair| {
        lcg()
            .map(|s| s / 65_536)
            .take(60_000)
            .zip(1..)
            .map(move |(r, i)| pair(r, i))
            .collect::<Vec<_>>()
    };
    let cases: [(Pair, [u32; 4]); 4] = [
        (|_, i| (i % 50, i), [208, 166, 278, 234]),
        (|r, i| (r % 100, i), [232, 166, 316, 234]),
        (|r, _| (r % 2000, 7 * r % 13), [147, 118, 176, 144]),
        (|r, i| (r % 20, i / 20), [249, 147, 324, 190]),
    ];
    for (pair, [int, int_built, bigint, bigint_built]) in cases {
        Case::pairs(keys(pair), &[4, 4]).expect(int, int_built, &[]);
        Case::pairs(keys(pair), &[8, 8]).expect(bigint, bigint_built, &[]);
    }
}

/// G3: CREATE UNIQUE INDEX on 60000 ascending ints.
#[test]
fn index_build_wal() {
    let keys: Vec<[i64; 1]> = (1..=60_000).map(|key| [key]).collect();
    for (version, records, bytes) in [("16.14", 166, 1_221_354), ("18.4", 6, 1_215_594)] {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let mut tree = Btree::new(behaviour, Definition::new(1, true));
        let shape = tree.shape(TupleSizes::of_integers(&[4])).unwrap();
        let entries = keys.iter().enumerate().map(|(row, key)| Entry {
            key,
            shape,
            tid: tid(row, 28),
        });
        let built = tree.build(entries);
        assert_eq!(built.images.len(), 166);
        assert_eq!(built.wal(&behaviour), (records, bytes), "{version}");
    }
}
