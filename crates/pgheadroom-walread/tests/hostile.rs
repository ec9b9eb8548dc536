//! Whatever the bytes are: no panic, no endless loop, no more memory than the input, and sums that
//! still add up.
//!
//! 200,000 mutated pages in every run, a million by `make test-long`; `MUTATIONS=100000000 cargo
//! test --release -p pgheadroom-walread --test hostile` tries more.

mod foreign_pages;
mod summing;
mod wal_writer;

use foreign_pages::{Foreign, PAGE, put_checksums_right, put_records_right};
use pgheadroom_layout::Lsn;
use pgheadroom_walread::format::Major;
use summing::{assert_sums, read};
use wal_writer::{Block, SEGMENT, Writer, block, folder, imaged, random};

const START: u64 = 3 * SEGMENT;
const SEED: u64 = 0x5EED_0001;

/// Pages with records of many kinds, some of which cross pages.
fn pages(magic: u16) -> Vec<u8> {
    let mut wal = Writer::new(START);
    wal.magic = magic;
    let mut state = SEED;
    while wal.bytes.len() < 24 * PAGE {
        let number = random(&mut state);
        let relation = u32::try_from(number % 5).unwrap() + 1;
        let data = usize::try_from(number >> 8 & 0x3FF).unwrap();
        let mut blocks = match number >> 20 & 7 {
            0 => vec![imaged(relation, 5_000), block(relation, data)],
            1 => vec![block(relation, data), imaged(relation + 1, 900)],
            2 => vec![],
            3 => vec![Block {
                fork: 2,
                ..block(relation, 4)
            }],
            _ => vec![block(relation, data)],
        };
        let rmgr = [0, 1, 9, 10, 10, 11, 12, 13][usize::try_from(number >> 30 & 7).unwrap()];
        let info = if rmgr == 0 {
            0xB0
        } else {
            u8::try_from(number >> 40 & 0xF0).unwrap()
        };
        // In a prune record: one freeze plan.
        if let Some(count) = blocks.first_mut().and_then(|first| first.data.get_mut(..2)) {
            count.copy_from_slice(&[1, 0]);
        }
        // A map has no freeze plans.
        let is_map = blocks.first().is_some_and(|first| first.fork == 2);
        let flags = if is_map { 0 } else { 0xFF };
        wal.record(rmgr, info, &blocks, &vec![flags; data / 4]);
    }
    wal.bytes.truncate(24 * PAGE);
    wal.bytes
}

/// Pages of a log of 18, from the given one on.
fn foreign(bytes: &[u8], first: usize) -> Foreign<'_> {
    Foreign {
        bytes,
        start: Lsn(START + (first * PAGE) as u64),
        major: Major::V18,
        magic: 0xD118,
    }
}

fn mutate(bytes: &mut [u8], state: &mut u64) {
    let at = usize::try_from(random(state)).unwrap() % bytes.len();
    let byte = u8::try_from(random(state) & 0xFF).unwrap();
    match random(state) % 6 {
        0 => bytes[at] ^= 1 << (byte & 7),
        1 => bytes[at] = byte,
        // A header's bytes are hit too seldom by chance.
        2 => bytes[at / PAGE * PAGE + usize::from(byte % 40)] ^= byte | 1,
        3 => bytes[at..].fill(0),
        4 => {
            let end = (at + usize::from(byte) * 16).min(bytes.len());
            bytes[at..end].fill(byte);
        }
        _ => {
            let from = usize::try_from(random(state)).unwrap() % bytes.len();
            let count = usize::from(byte).min(bytes.len() - from.max(at));
            bytes.copy_within(from..from + count, at);
        }
    }
}

/// Records of simple forms are summed as those that are taken apart, memos too, whichever version
/// says what is in them: from 19 on a map that is pruned is one.
#[test]
fn both_ways_in_each_version() {
    for (major, magic) in [
        (Major::V15, 0xD110),
        (Major::V16, 0xD113),
        (Major::V17, 0xD116),
        (Major::V18, 0xD118),
        (Major::V19, 0xD122),
    ] {
        let bytes = pages(magic);
        let foreign = Foreign {
            bytes: &bytes,
            start: Lsn(START),
            major,
            magic,
        };
        assert!(foreign.summed() > 150_000);
    }
}

/// Each mutation is of a few of the pages, and of what a checksum covers: the checksum is put
/// right again where a record still is one, or all are made to follow each other, so that what
/// lies behind it is reached.
#[test]
fn mutated_pages() {
    let count: u64 = std::env::var("MUTATIONS").map_or(200_000, |text| text.parse().unwrap());
    let whole = pages(0xD118);
    assert!(foreign(&whole, 0).summed() > 150_000);
    let four = |first: usize| first * PAGE..(first + 4) * PAGE;
    let undamaged: Vec<u64> = (0..20)
        .map(|first| foreign(&whole[four(first)], first).summed())
        .collect();
    // Where nothing is wrong, putting right changes no record.
    for (first, &counted) in undamaged.iter().enumerate() {
        let mut part = whole[four(first)].to_vec();
        put_records_right(&mut part, START + (first * PAGE) as u64);
        assert_eq!(foreign(&part, first).summed(), counted, "from page {first}");
    }
    let mut state = SEED;
    let (mut tried, mut damaged) = (0, 0);
    while tried < count {
        let first = usize::try_from(random(&mut state)).unwrap() % 20;
        let mut part = whole[four(first)].to_vec();
        for _ in 0..=random(&mut state) % 4 {
            mutate(&mut part, &mut state);
        }
        match random(&mut state) % 4 {
            0 => put_checksums_right(&mut part, |_, _| 24),
            1 => put_records_right(&mut part, START + (first * PAGE) as u64),
            _ => {}
        }
        let counted = foreign(&part, first).summed();
        assert!(counted <= 4 * PAGE as u64);
        if tried % 4096 == 0 {
            foreign(&part, first).asked_otherwise();
        }
        damaged += u64::from(counted != undamaged[first]);
        tried += 4;
    }
    assert!(
        damaged > count / 16,
        "mutations that change nothing: {damaged} of {count}"
    );
}

/// Where positions come to their end: the last segment that a number can name is none of a log, for
/// what lies behind its records has no number.
#[test]
fn last_segment_of_all() {
    let last = u64::MAX / SEGMENT * SEGMENT;
    for cut in [0, 3_000] {
        let folder = folder("last-of-all");
        let mut wal = Writer::new(last - SEGMENT);
        while wal.bytes.len() < usize::try_from(SEGMENT).unwrap() + 100_000 {
            wal.record(10, 0x40, &[block(1, 260)], &[0; 14]);
        }
        wal.record(0, 0x40, &[], &[]);
        let paths = wal.save(&folder);
        let bytes = std::fs::read(&paths[1]).unwrap();
        std::fs::write(&paths[1], &bytes[..bytes.len() - cut]).unwrap();
        let outcome = read(&folder);
        assert_sums(&outcome);
        assert!(outcome.tally.total.records > 3_000);
        assert!(outcome.tally.spans.iter().all(|(_, to)| to.0 <= last));
    }
}
