//! Pages that anybody may have made, read in each way: what must hold of them all.

use pgheadroom_layout::Lsn;
use pgheadroom_walread::facts::Facts;
use pgheadroom_walread::format::Major;
use pgheadroom_walread::image::Pages;
use pgheadroom_walread::packing::Packed;
use pgheadroom_walread::record::RelFile;
use pgheadroom_walread::replay::{Replay, Trigger};
use pgheadroom_walread::run::run_pages;
use pgheadroom_walread::sink::Sink;
use pgheadroom_walread::sums::RelationSums;
use pgheadroom_walread::{Range, Tally, Wanted};

pub const PAGE: usize = 8192;
pub const SEGMENT: u64 = 1 << 20;

/// Bytes of whole pages, and where in the log of which version they are.
#[derive(Clone, Copy)]
pub struct Foreign<'a> {
    pub bytes: &'a [u8],
    pub start: Lsn,
    pub major: Major,
    pub magic: u16,
}

impl Foreign<'_> {
    /// Sums the records; returns their bytes.
    ///
    /// Twice: where transactions are asked for each record is taken apart, else those of simple
    /// forms are not, and the sums are the same.
    pub fn summed(self) -> u64 {
        let [each, simple] = [true, false].map(|transactions| {
            let wanted = Wanted {
                transactions,
                ..Wanted::default()
            };
            let range = Range::default();
            self.drive(Tally::new(
                self.major,
                SEGMENT,
                range,
                &wanted,
                Lsn(u64::MAX),
            ))
        });
        let relations = in_order(&each);
        assert_eq!(relations, in_order(&simple));
        assert!(each.types().eq(simple.types()));
        assert_eq!(each.total, simple.total);
        assert_eq!(each.memo, simple.memo);
        assert_eq!(each.spans, simple.spans);
        assert_eq!(each.ended, simple.ended);
        let of_relations: u64 = relations.iter().map(|(_, sums)| sums.total.bytes).sum();
        assert_eq!(of_relations, each.total.bytes);
        each.total.bytes
    }

    /// What would be otherwise, with few blocks followed, and every image taken apart.
    pub fn asked_otherwise(self) {
        let (from, to) = (Lsn(0), Lsn(u64::MAX));
        let facts = self.drive(Facts::new(self.major, from, to));
        let triggers = [(1, 1), (i64::MAX, 9_000), (1_000_000, u64::MAX)];
        let triggers = triggers.map(|(timeout_us, distance_bytes)| Trigger {
            timeout_us,
            distance_bytes,
        });
        let replay = self.drive(Replay::new(&facts, SEGMENT, (from, to), &triggers, 3));
        assert!(replay.fit.differing <= replay.fit.images);
        let mut packed = self.drive(Packed::new(from, to, 1));
        packed.flush();
        assert_eq!(packed.sampled + packed.broken, packed.images);
        self.drive(Pages::new(from, to, 10));
    }

    /// Hands records on as `run.rs` does for files: what cannot be read is in order and disjoint.
    fn drive<S: Sink>(self, sink: S) -> S {
        let pages = self.bytes.chunks_exact(PAGE);
        let pages = pages.map(|page| page.try_into().expect("a page"));
        let (sink, gaps) = run_pages(self.start, pages, (self.magic, SEGMENT), sink);
        let end = Lsn(self.start.0 + self.bytes.len() as u64);
        let mut last = self.start;
        for gap in gaps {
            assert!(last <= gap.from && gap.from < gap.to && gap.to <= end);
            last = gap.to;
        }
        sink
    }
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

/// Makes the checksum of each record hold that lies whole on its page, from where one may begin.
pub fn put_checksums_right(bytes: &mut [u8], begins: impl Fn(usize, &[u8]) -> usize) {
    for (n, page) in bytes.chunks_exact_mut(PAGE).enumerate() {
        let mut at = begins(n, page);
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

/// Where the first record of a page may begin: behind its header, and what is left of a record of
/// the page before.
pub fn behind_header(page: &[u8]) -> usize {
    let header = if page[2] & 2 == 0 { 24 } else { 40 };
    let left = u32::from_le_bytes(page[16..20].try_into().expect("four")) as usize;
    if page[2] & 1 == 0 {
        header
    } else {
        header + left.min(PAGE).next_multiple_of(8)
    }
}

/// Makes records follow each other from the first that begins on the first page on, over the ends
/// of pages, as a reader wants them: what is left of a record is named in the next page's header,
/// each names the one before it, and their checksums hold. Ends at a length that no record has.
pub fn put_records_right(bytes: &mut [u8], start: u64) {
    let header = |at: usize| {
        if (start + at as u64).is_multiple_of(SEGMENT) {
            40
        } else {
            24
        }
    };
    if bytes.is_empty() {
        return;
    }
    let (mut at, mut previous) = (behind_header(bytes), 0_u64);
    while at + 4 <= bytes.len() {
        let total = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
        let Some(places) = places(at, total, bytes.len()) else {
            return;
        };
        let own = start + at as u64;
        let mut record: Vec<u8> = places.iter().map(|&place| bytes[place]).collect();
        record[8..16].copy_from_slice(&previous.to_le_bytes());
        let payload = crc32c::crc32c(&record[24..]);
        let crc = crc32c::crc32c_append(payload, &record[..20]);
        record[20..24].copy_from_slice(&crc.to_le_bytes());
        for (n, (&place, byte)) in places.iter().zip(record).enumerate() {
            bytes[place] = byte;
            if n > 0 && place % PAGE == 24 {
                let page = place - 24;
                bytes[page + 2] |= 1;
                let left = u32::try_from(total - n).expect("of a few pages");
                bytes[page + 16..page + 20].copy_from_slice(&left.to_le_bytes());
            }
        }
        previous = own;
        at = (places[total - 1] + 1).next_multiple_of(8);
        if at.is_multiple_of(PAGE) {
            if let Some(next) = bytes.get_mut(at + 2) {
                *next &= !1;
            }
            at += header(at);
        }
    }
}

/// Where the bytes of a record lie; `None` where it does not end in so many bytes.
fn places(at: usize, total: usize, all: usize) -> Option<Vec<usize>> {
    if !(24..=all).contains(&total) {
        return None;
    }
    let mut place = at;
    let mut found = Vec::with_capacity(total);
    while found.len() < total {
        if place >= all {
            return None;
        }
        found.push(place);
        place += 1;
        if place.is_multiple_of(PAGE) {
            place += 24;
        }
    }
    Some(found)
}
