//! Whatever the bytes are: no panic, no endless loop, no more memory than the input, and sums that
//! still add up.
//!
//! A million mutated pages in every run (6 s); `MUTATIONS=100000000 cargo test --release -p
//! pgheadroom-walread --test hostile` tries more.

mod wal_writer;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::facts::Facts;
use pgheadroom_walread::format::Major;
use pgheadroom_walread::packing::Packed;
use pgheadroom_walread::reader::{Reader, Sink, Step, record_after};
use pgheadroom_walread::record::RelFile;
use pgheadroom_walread::replay::{Replay, Trigger};
use pgheadroom_walread::tally::RelationSums;
use pgheadroom_walread::{Range, Tally, Wanted};
use wal_writer::{Block, SEGMENT, Writer, block, imaged, random};

const PAGE: usize = 8192;
const START: u64 = 3 * SEGMENT;
const SEED: u64 = 0x5EED_0001;

/// Pages with records of many kinds, some of which cross pages.
fn pages() -> Vec<u8> {
    let mut wal = Writer::new(START);
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
        wal.record(rmgr, info, &blocks, &vec![0xFF; data / 4]);
    }
    wal.bytes.truncate(24 * PAGE);
    wal.bytes
}

/// Reads pages; returns the bytes that were counted.
///
/// Twice: where transactions are asked for each record is taken apart, else those of simple forms
/// are not, and the sums are the same.
fn read(bytes: &[u8], first: usize) -> u64 {
    let [each, simple] = [true, false].map(|transactions| {
        let wanted = Wanted {
            transactions,
            ..Wanted::default()
        };
        let range = Range::default();
        let mut tally = Tally::new(Major::V18, SEGMENT, range, &wanted, Lsn(u64::MAX));
        drive(bytes, first, &mut tally);
        tally
    });
    assert_eq!(in_order(&each), in_order(&simple));
    assert!(each.types().eq(simple.types()));
    assert_eq!(each.total, simple.total);
    assert_eq!(each.memo, simple.memo);
    assert_eq!(each.spans, simple.spans);
    assert_eq!(each.ended, simple.ended);
    let relations = simple.relations();
    let of_relations: u64 = relations.iter().map(|(_, sums)| sums.total.bytes).sum();
    assert_eq!(of_relations, simple.total.bytes);
    simple.total.bytes
}

/// Relations with their sums, causes in order.
fn in_order(tally: &Tally) -> Vec<(Option<RelFile>, RelationSums)> {
    let relations = tally.relations().into_iter();
    relations
        .map(|(relation, sums)| {
            let mut sums = sums.clone();
            sums.by_cause.sort_unstable_by_key(|(cause, _)| *cause);
            (relation, sums)
        })
        .collect()
}

/// Hands records on as the driver does, over what is broken.
fn drive(bytes: &[u8], first: usize, sink: &mut impl Sink) {
    let mut reader = Reader::new(0xD118, SEGMENT);
    let mut broken: Option<Lsn> = None;
    for (n, page) in bytes.chunks_exact(PAGE).enumerate() {
        let page: &[u8; PAGE] = page.try_into().unwrap();
        let lsn = Lsn(START + ((first + n) * PAGE) as u64);
        let mut from = None;
        let mut turns = 0;
        loop {
            turns += 1;
            assert!(turns < 2_000, "a page on which reading goes round");
            if let Some(at) = broken {
                from = record_after(at, lsn, page, 0xD118, SEGMENT);
                if from.is_none() {
                    break;
                }
                reader.seek();
                sink.gap();
            }
            broken = None;
            match reader.take(lsn, page, from, sink) {
                Step::Broken(found) => broken = Some(found.lsn),
                Step::Next | Step::Stopped => break,
            }
        }
    }
    sink.settle();
}

/// What would be otherwise, with few blocks followed, and every image taken apart.
fn ask_otherwise(bytes: &[u8], first: usize) {
    let (from, to) = (Lsn(0), Lsn(u64::MAX));
    let mut facts = Facts::new(Major::V18, from, to);
    drive(bytes, first, &mut facts);
    let triggers = [(1, 1), (i64::MAX, 9_000), (1_000_000, u64::MAX)];
    let triggers = triggers.map(|(timeout_us, distance_bytes)| Trigger {
        timeout_us,
        distance_bytes,
    });
    let mut replay = Replay::new(&facts, SEGMENT, (from, to), &triggers, 3);
    drive(bytes, first, &mut replay);
    assert!(replay.fit.differing <= replay.fit.images);
    let mut packed = Packed::new(from, to, 1);
    drive(bytes, first, &mut packed);
    packed.flush();
    assert_eq!(packed.sampled + packed.broken, packed.images);
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

/// Each mutation is of a few of the pages, and of what a checksum covers: the checksum is put
/// right again where a record still is one, so that what lies behind it is reached.
#[test]
fn mutated_pages() {
    let count: u64 = std::env::var("MUTATIONS").map_or(1_000_000, |text| text.parse().unwrap());
    let whole = pages();
    assert!(read(&whole, 0) > 150_000);
    let four = |first: usize| first * PAGE..(first + 4) * PAGE;
    let undamaged: Vec<u64> = (0..20)
        .map(|first| read(&whole[four(first)], first))
        .collect();
    let mut state = SEED;
    let (mut tried, mut damaged) = (0, 0);
    while tried < count {
        let first = usize::try_from(random(&mut state)).unwrap() % 20;
        let mut part = whole[four(first)].to_vec();
        for _ in 0..=random(&mut state) % 4 {
            mutate(&mut part, &mut state);
        }
        if random(&mut state) % 2 == 0 {
            repair(&mut part);
        }
        let counted = read(&part, first);
        assert!(counted <= 4 * PAGE as u64);
        if tried % 4096 == 0 {
            ask_otherwise(&part, first);
        }
        damaged += u64::from(counted != undamaged[first]);
        tried += 4;
    }
    assert!(
        damaged > count / 16,
        "mutations that change nothing: {damaged} of {count}"
    );
}

/// Makes the checksum of each record hold that lies whole on its page.
fn repair(pages: &mut [u8]) {
    for page in pages.chunks_exact_mut(PAGE) {
        let mut at = 24;
        while at + 24 <= PAGE {
            let total = u32::from_le_bytes(page[at..at + 4].try_into().unwrap()) as usize;
            if total < 24 || at + total > PAGE {
                break;
            }
            let payload = crc32c::crc32c(&page[at + 24..at + total]);
            let crc = crc32c::crc32c_append(payload, &page[at..at + 20]);
            page[at + 20..at + 24].copy_from_slice(&crc.to_le_bytes());
            at += total.next_multiple_of(8);
        }
    }
}
