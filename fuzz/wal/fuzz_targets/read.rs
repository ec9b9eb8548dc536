//! Pages of WAL that anybody may have made: no panic, no endless loop, no more memory than the
//! input, and sums that add up, whichever way records are summed.
//!
//! The first byte says what is put right before reading, for chance seldom does: 1 the headers of
//! pages, 2 the checksums of records that lie whole on their page. The pages follow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pgheadroom_layout::Lsn;
use pgheadroom_walread::facts::Facts;
use pgheadroom_walread::format::Major;
use pgheadroom_walread::image::Pages;
use pgheadroom_walread::packing::Packed;
use pgheadroom_walread::reader::{Reader, Sink, Step, crossing_after, record_after};
use pgheadroom_walread::replay::{Replay, Trigger};
use pgheadroom_walread::{Range, Tally, Wanted};

const PAGE: usize = 8192;
const SEGMENT: u64 = 1 << 20;
const START: u64 = 3 * SEGMENT;
const PAGES_MOST: usize = 8;
const VERSIONS: [(Major, u16); 5] = [
    (Major::V15, 0xD110),
    (Major::V16, 0xD113),
    (Major::V17, 0xD116),
    (Major::V18, 0xD118),
    (Major::V19, 0xD122),
];

fuzz_target!(|data: &[u8]| {
    let Some((how, pages)) = data.split_first() else {
        return;
    };
    let (major, magic) = VERSIONS[usize::from(how >> 2) % VERSIONS.len()];
    let whole = pages.len().min(PAGES_MOST * PAGE).next_multiple_of(PAGE);
    let mut bytes = pages[..pages.len().min(whole)].to_vec();
    bytes.resize(whole, 0);
    if how & 1 != 0 {
        headers(&mut bytes, magic);
    }
    if how & 2 != 0 {
        checksums(&mut bytes);
    }
    sums(&bytes, major, magic);
    otherwise(&bytes, major, magic);
});

/// Both ways of summing say the same.
fn sums(bytes: &[u8], major: Major, magic: u16) {
    let [each, simple] = [true, false].map(|transactions| {
        let wanted = Wanted {
            transactions,
            ..Wanted::default()
        };
        let mut tally = Tally::new(major, SEGMENT, Range::default(), &wanted, Lsn(u64::MAX));
        drive(bytes, magic, &mut tally);
        tally
    });
    assert_eq!(each.total, simple.total);
    assert_eq!(each.memo, simple.memo);
    assert_eq!(each.spans, simple.spans);
    assert!(each.types().eq(simple.types()));
    let sum = |tally: &Tally| -> u64 {
        let relations = tally.relations();
        relations.iter().map(|(_, sums)| sums.total.bytes).sum()
    };
    assert_eq!(sum(&each), each.total.bytes);
    assert_eq!(sum(&simple), simple.total.bytes);
}

/// Replays and images.
fn otherwise(bytes: &[u8], major: Major, magic: u16) {
    let (from, to) = (Lsn(0), Lsn(u64::MAX));
    let mut facts = Facts::new(major, from, to);
    drive(bytes, magic, &mut facts);
    let triggers = [(1, 1), (i64::MAX, 9_000), (1_000_000, u64::MAX)];
    let triggers = triggers.map(|(timeout_us, distance_bytes)| Trigger {
        timeout_us,
        distance_bytes,
    });
    let mut replay = Replay::new(&facts, SEGMENT, (from, to), &triggers, 3);
    drive(bytes, magic, &mut replay);
    let mut packed = Packed::new(from, to, 1);
    drive(bytes, magic, &mut packed);
    packed.flush();
    let mut pages = Pages::new(from, to, 10);
    drive(bytes, magic, &mut pages);
}

/// Hands records on as the driver does, over what is broken.
fn drive(bytes: &[u8], magic: u16, sink: &mut impl Sink) {
    let mut reader = Reader::new(magic, SEGMENT);
    let mut broken: Option<Lsn> = None;
    for (n, page) in bytes.chunks_exact(PAGE).enumerate() {
        let page: &[u8; PAGE] = page.try_into().expect("a page");
        let lsn = Lsn(START + (n * PAGE) as u64);
        let mut from = None;
        let mut turns = 0;
        loop {
            turns += 1;
            assert!(turns < 2_000, "a page on which reading goes round");
            if let Some(at) = broken {
                from = record_after(at, lsn, page, magic, SEGMENT)
                    .or_else(|| crossing_after(at, lsn, page, magic, SEGMENT));
                if from.is_none() {
                    break;
                }
                reader.seek();
                sink.gap();
            }
            broken = None;
            match reader.take(lsn, page, from, sink) {
                Step::Broken(found) if from.is_some() && reader.last().is_none() => {
                    broken = Some(found.lsn);
                    break;
                }
                Step::Broken(found) => broken = Some(found.lsn),
                Step::Next | Step::Stopped => break,
            }
        }
    }
    sink.settle();
}

fn headers(bytes: &mut [u8], magic: u16) {
    for (n, page) in bytes.chunks_exact_mut(PAGE).enumerate() {
        let lsn = START + (n * PAGE) as u64;
        page[..2].copy_from_slice(&magic.to_le_bytes());
        page[3] = 0;
        page[2] = page[2] & 0x0D | if n == 0 { 2 } else { 0 };
        page[8..16].copy_from_slice(&lsn.to_le_bytes());
    }
}

fn checksums(bytes: &mut [u8]) {
    for (n, page) in bytes.chunks_exact_mut(PAGE).enumerate() {
        let mut at = if n == 0 { 40 } else { 24 };
        let left = u32::from_le_bytes(page[16..20].try_into().expect("four")) as usize;
        if page[2] & 1 != 0 {
            at += left.min(PAGE).next_multiple_of(8);
        }
        while at + 24 <= PAGE {
            let total = u32::from_le_bytes(page[at..at + 4].try_into().expect("four")) as usize;
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
