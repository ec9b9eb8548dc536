//! Records come back as they were written, over pages, segments and damage.

#![allow(clippy::cast_possible_truncation)] // places in a segment, which memory holds

mod summing;
mod wal_writer;

use std::collections::BTreeMap;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::{Cause, Outcome, Range};
use proptest::prelude::*;
use summing::{START, assert_sums, long_history, put_in_order, read, read_range, run};
use wal_writer::{Block, Writer, block, folder, imaged};

const HEAP: u8 = 10;

/// Bytes by relation and cause.
fn by_cause(outcome: &Outcome) -> BTreeMap<(u32, String), (u64, u64)> {
    let mut found = BTreeMap::new();
    for (relation, sums) in outcome.tally.relations() {
        let number = relation.map_or(0, |relation| relation.relfilenode);
        for (cause, count) in &sums.by_cause {
            let key = (number, Cause::name(usize::from(*cause)));
            found.insert(key, (count.records, count.bytes));
        }
    }
    found
}

/// A block's bytes go to its relation, the record's own to the first one's, images to their
/// reason; a cold update is told by its second page.
#[test]
fn attribution() {
    let folder = folder("attribution");
    let mut wal = Writer::new(START);
    wal.record(HEAP, 0x40, &[block(1, 10)], &[0; 14]); // HOT
    wal.record(HEAP, 0x20, &[block(1, 10)], &[0; 14]); // same page
    wal.record(HEAP, 0x20, &[block(1, 10), block(1, 0)], &[0; 14]); // another page
    let map = Block {
        fork: 2,
        ..block(1, 0)
    };
    wal.record(HEAP, 0x20, &[block(1, 10), map], &[0; 14]); // with the visibility map
    wal.record(
        11,
        0x30,
        &[imaged(2, 400), block(2, 5), block(3, 6)],
        &[0; 10],
    ); // split
    wal.record(0, 0xA0, &[imaged(1, 8192)], &[]); // hint
    wal.record(0, 0xB0, &[imaged(4, 100), imaged(4, 200)], &[]);
    wal.record(1, 0x00, &[], &[0; 8]); // commit
    wal.record(1, 0x80, &[], &[0; 300]);
    wal.record(200, 0x00, &[block(5, 1)], &[]);
    wal.save(&folder);
    let outcome = read(&folder);
    assert_sums(&outcome);
    let found = by_cause(&outcome);
    let update = 24 + 20 + 10 + 2 + 14;
    let expected = [
        ((0, "commit"), (2, 24 + 10 + 24 + 305)),
        ((1, "hot_update"), (1, update)),
        ((1, "cold_update"), (2, update + update + 8)),
        ((1, "newpage_update"), (1, update + 8)),
        ((1, "fpi_hint"), (1, 24 + 25 + 8192)),
        ((2, "index_split"), (1, 24 + 25 + 12 + 8 + 5)),
        ((2, "fpi_first_change"), (0, 400)),
        ((3, "index_split"), (0, 20 + 6)),
        ((4, "fpi_forced"), (1, 24 + 25 + 13 + 300)),
        ((5, "other:custom200"), (1, 24 + 20 + 1)),
    ];
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|((number, name), sums)| ((number, name.to_owned()), sums))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(outcome.tally.fpi, 4);
    assert!(outcome.gaps.is_empty());
}

/// Records that cross pages and segments; several threads read what one does.
#[test]
fn several_segments() {
    let folder = folder("segments");
    let (mut wal, records, bytes) = long_history(START);
    wal.switch();
    wal.record(HEAP, 0x00, &[block(1, 50)], &[0; 3]);
    wal.save(&folder);
    let chosen = put_in_order(&folder, None);
    assert!(chosen.pieces.len() > 5);
    let one = run(&chosen.pieces, Range::default(), 1).unwrap();
    let two = run(&chosen.pieces, Range::default(), 2).unwrap();
    let many = run(&chosen.pieces, Range::default(), 50).unwrap();
    for outcome in [&one, &two, &many] {
        assert_sums(outcome);
        assert!(outcome.gaps.is_empty());
        assert_eq!(outcome.tally.total.records, records + 2);
        assert_eq!(outcome.tally.total.bytes, bytes + 24 + 24 + 20 + 50 + 5);
        assert_eq!(
            outcome.tally.spans,
            [(Lsn(START + 40), Lsn(wal.position()))]
        );
        let passed = wal.position() - START - 40;
        assert_eq!(
            outcome.tally.overhead_bytes() + outcome.tally.total.bytes,
            passed
        );
        assert_eq!(outcome.end.as_ref().unwrap().lsn, Lsn(wal.position()));
    }
    assert_eq!(by_cause(&one), by_cause(&two));
    assert_eq!(by_cause(&one), by_cause(&many));
}

/// A range counts the records that lie in it whole, as pg_waldump's -s and -e do.
#[test]
fn ranges() {
    let folder = folder("ranges");
    let mut wal = Writer::new(START);
    let places: Vec<_> = (0..400)
        .map(|_| wal.record(HEAP, 0x40, &[block(1, 100)], &[0; 14]))
        .collect();
    wal.save(&folder);
    let range = |from: u64, to: u64| {
        read_range(
            &folder,
            Range {
                from: Lsn(from),
                to: Lsn(to),
                times: None,
            },
        )
        .tally
        .total
        .records
    };
    let (begin, bytes) = places[200];
    let end = begin + u64::from(bytes);
    assert_eq!(range(begin, end), 1);
    assert_eq!(range(begin, end - 1), 0);
    assert_eq!(range(begin + 1, end + 8), 0);
    assert_eq!(range(places[10].0, places[20].0), 10);
}

fn damaged(test: &str, change: impl FnOnce(&mut Writer, &[(u64, u32)])) -> Outcome {
    let folder = folder(test);
    let mut wal = Writer::new(START);
    let places: Vec<_> = (0..2_000)
        .map(|_| wal.record(HEAP, 0x40, &[block(1, 300)], &[0; 14]))
        .collect();
    change(&mut wal, &places);
    wal.save(&folder);
    let outcome = read(&folder);
    assert_sums(&outcome);
    let pieces = put_in_order(&folder, None).pieces;
    let beside = run(&pieces, Range::default(), 3).unwrap();
    assert_eq!(beside.gaps, outcome.gaps);
    assert_eq!(beside.end, outcome.end);
    assert_eq!(by_cause(&beside), by_cause(&outcome));
    outcome
}

fn flip(wal: &mut Writer, at: u64) {
    wal.bytes[(at - START) as usize] ^= 0x10;
}

/// Lengths that contradict each other are damage although the checksum holds, in records that are
/// summed without being taken apart too.
#[test]
fn lengths_that_lie() {
    // Of a record with one block: the main data's length, the flag that there are block data.
    let lies = [
        (45, 0x02, "lengths that do not add up to the record's"),
        (
            25,
            0x20,
            "a block whose data and flags contradict each other",
        ),
    ];
    for (place, bit, why) in lies {
        let outcome = damaged("lying", |wal, records| {
            // Not on the first page, where each record is taken apart.
            let (begin, total) = records[records.len() / 2];
            let at = (begin - START) as usize;
            assert!(begin % 8192 + u64::from(total) < 8192 && begin > START + 16_384);
            wal.bytes[at + place] ^= bit;
            let payload = crc32c::crc32c(&wal.bytes[at + 24..at + total as usize]);
            let crc = crc32c::crc32c_append(payload, &wal.bytes[at..at + 20]);
            wal.bytes[at + 20..at + 24].copy_from_slice(&crc.to_le_bytes());
        });
        assert_eq!(outcome.gaps.len(), 1);
        assert_eq!(outcome.gaps[0].why, why);
        assert_sums(&outcome);
    }
}

/// Of a time are the records behind a commit of that time, with it, up to the next one's.
#[test]
fn times() {
    let folder = folder("times");
    let mut wal = Writer::new(START);
    for minute in 0..10_i64 {
        for _ in 0..minute {
            wal.record(HEAP, 0x40, &[block(1, 100)], &[0; 14]);
        }
        wal.record(1, 0x00, &[], &minute.to_le_bytes());
    }
    wal.save(&folder);
    let records = |first: i64, last: i64| {
        let times = Some((first, last));
        let outcome = read_range(
            &folder,
            Range {
                times,
                ..Range::default()
            },
        );
        assert_sums(&outcome);
        (outcome.tally.total.records, outcome.tally.ended)
    };
    assert_eq!(records(0, 9).0, 55);
    assert_eq!(records(3, 4), (4 + 1 + 5 + 1, Some((3, 4))));
    assert_eq!(records(20, 30), (0, None));
    // Before the first commit there is no time.
    let mut early = Writer::new(START);
    early.record(HEAP, 0x40, &[block(1, 100)], &[0; 14]);
    early.record(1, 0x20, &[], &5_i64.to_le_bytes());
    early.save(&folder);
    assert_eq!(records(0, 9), (1, Some((5, 5))));
}

/// A flipped bit inside costs that record and is named; so does one in a length, of which the
/// next record cannot be told. In the last record it is the end, with the reason.
#[test]
fn damage_and_end() {
    let inside = damaged("inside", |wal, places| flip(wal, places[500].0 + 60));
    assert_eq!(inside.gaps.len(), 1);

    assert_eq!(inside.tally.total.records, 1_999);
    assert_eq!(inside.gaps[0].why, "a record whose checksum does not hold");

    let length = damaged("length", |wal, places| flip(wal, places[500].0 + 1));
    assert_eq!(length.gaps.len(), 1);
    assert_eq!(length.tally.total.records, 1_999);

    let last = damaged("last", |wal, places| flip(wal, places[1_999].0 + 60));
    assert!(last.gaps.is_empty());
    assert_eq!(last.tally.total.records, 1_999);
    assert_eq!(
        last.end.unwrap().why,
        "a record whose checksum does not hold"
    );

    let header = damaged("header", |wal, _| flip(wal, START + 10 * 8192 + 9));
    assert_eq!(header.gaps.len(), 1, "{:?}", header.gaps);
    assert!(header.tally.total.records >= 1_999 - 25 && header.tally.total.records < 2_000);
}

/// Where no record lies whole on a page, as while a table is rewritten, damage is told from the end
/// too: by a record that crosses pages.
#[test]
fn damage_among_long_records() {
    let folder = folder("crossing");
    let mut wal = Writer::new(START);
    let places: Vec<_> = (0..60)
        .map(|_| wal.record(0, 0xB0, &[imaged(1, 8192), imaged(1, 8192)], &[]))
        .collect();
    flip(&mut wal, places[20].0 + 5_000);
    wal.save(&folder);
    let outcome = read(&folder);
    assert_sums(&outcome);
    assert_eq!(outcome.gaps.len(), 1);
    assert_eq!(outcome.gaps[0].from, Lsn(places[20].0));
    assert_eq!(outcome.gaps[0].to, Lsn(places[21].0));
    assert_eq!(outcome.tally.total.records, 59);
    assert_eq!(outcome.end.unwrap().lsn, Lsn(wal.position()));
}

/// A record longer than what is kept is checked and counted whole.
#[test]
fn very_long_record() {
    let folder = folder("long");
    let mut wal = Writer::new(START);
    wal.record(21, 0x00, &[], &vec![3; 3_000_000]);
    wal.record(HEAP, 0x00, &[block(1, 5)], &[0; 3]);
    wal.save(&folder);
    let outcome = read(&folder);
    assert_eq!(outcome.tally.total.records, 2);
    assert_eq!(
        outcome.tally.total.bytes,
        24 + 5 + 3_000_000 + 24 + 20 + 5 + 5
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever is written is counted, to the byte, wherever pages end.
    #[test]
    fn written_is_counted(
        records in prop::collection::vec(
            (
                0_u8..24,
                any::<u8>(),
                prop::collection::vec(
                    (1_u32..5, 0_usize..3000, prop::option::of(100_u16..=8192)),
                    0..4,
                ),
                0_usize..20_000,
            ),
            1..80,
        )
    ) {
        let folder = folder("written");
        let mut wal = Writer::new(START);
        let (mut bytes, mut fpi_bytes) = (0, 0);
        for (rmgr, info, blocks, main) in &records {
            let info = if *rmgr == 0 && info & 0xF0 == 0x40 { 0 } else { *info & 0xF0 };
            let blocks: Vec<_> = blocks.iter().map(|(relation, data, image)| {
                fpi_bytes += u64::from(image.unwrap_or_default());
                Block { image: *image, ..block(*relation, *data) }
            }).collect();
            bytes += u64::from(wal.record(*rmgr, info, &blocks, &vec![0; *main]).1);
        }
        wal.save(&folder);
        let outcome = read(&folder);
        assert_sums(&outcome);
        prop_assert_eq!(outcome.tally.total.records, records.len() as u64);
        prop_assert_eq!(outcome.tally.total.bytes, bytes);
        prop_assert_eq!(outcome.tally.total.fpi_bytes, fpi_bytes);
    }
}
