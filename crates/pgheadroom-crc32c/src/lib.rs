//! Checksums of the records that lie on one WAL page, by the processor's own instruction.
//!
//! A WAL record has some eighty bytes. The crate `crc32c` looks at each call what the processor
//! can, and takes the bytes beyond a multiple of eight one by one, each waiting for the one before;
//! of records that short this is most of the time. Here the processor is asked once a page, the
//! rest of a record is one step, and records do not wait for each other.
//!
//! The one `unsafe` is the call of a function that is compiled for SSE 4.2, behind the question
//! whether the processor has it; the reader has none. Elsewhere the crate `crc32c` does the work.

/// Bytes of a record's header; its last four hold the checksum.
///
/// Source: `SizeOfXLogRecord`, src/include/access/xlogrecord.h.
const HEADER_BYTES: usize = 24;
const CRC_AT: usize = 20;

/// Where a record lies on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Its first byte: a multiple of 8.
    pub at: u16,
    /// Its length, header included.
    pub bytes: u16,
}

impl Place {
    /// The record on its page; nothing where it would not lie there whole.
    fn of<'a>(&self, page: &'a [u8]) -> Option<&'a [u8]> {
        let at = usize::from(self.at);
        let record = page.get(at..at + usize::from(self.bytes))?;
        (record.len() >= HEADER_BYTES).then_some(record)
    }
}

/// How many records, from the first on, have the checksum that their headers name.
///
/// A place that is no record on the page ends the count.
#[must_use]
pub fn count_holding(page: &[u8], places: &[Place]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has SSE 4.2, as was just asked.
        return unsafe { sse42::count_holding(page, places) };
    }
    count_holding_anywhere(page, places)
}

/// Source: `ValidXLogRecord`, src/backend/access/transam/xlogreader.c: first what follows the
/// header, then the header up to the checksum.
fn count_holding_anywhere(page: &[u8], places: &[Place]) -> usize {
    let holds = |place: &Place| {
        place.of(page).is_some_and(|record| {
            let payload = crc32c::crc32c(&record[HEADER_BYTES..]);
            let crc = crc32c::crc32c_append(payload, &record[..CRC_AT]);
            record[CRC_AT..HEADER_BYTES] == crc.to_le_bytes()
        })
    };
    places.iter().take_while(|place| holds(place)).count()
}

#[cfg(target_arch = "x86_64")]
mod sse42 {
    use std::arch::x86_64::{_mm_crc32_u32, _mm_crc32_u64};

    use super::{HEADER_BYTES, Place};

    #[target_feature(enable = "sse4.2")]
    pub(super) fn count_holding(page: &[u8], places: &[Place]) -> usize {
        for (n, place) in places.iter().enumerate() {
            if !holds(page, place) {
                return n;
            }
        }
        places.len()
    }

    #[target_feature(enable = "sse4.2")]
    #[inline]
    fn holds(page: &[u8], place: &Place) -> bool {
        let Some(record) = place.of(page) else {
            return false;
        };
        let Some((header, payload)) = record.split_first_chunk::<HEADER_BYTES>() else {
            return false;
        };
        let (words, rest) = payload.as_chunks::<8>();
        let mut crc = u64::from(u32::MAX);
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        // Records begin at multiples of 8 and pages end there, so what is behind a record up to
        // the next one can be read; it is shifted out.
        let behind = usize::from(place.at) + HEADER_BYTES + words.len() * 8;
        let word = page.get(behind..).and_then(|rest| rest.first_chunk());
        let word = word.map_or(0, |word| u64::from_le_bytes(*word));
        crc = rest_of(crc, word, rest.len());
        let four = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let eight = |at: usize| {
            u64::from(u32::from_le_bytes(four(at)))
                | u64::from(u32::from_le_bytes(four(at + 4))) << 32
        };
        crc = _mm_crc32_u64(crc, eight(0));
        crc = _mm_crc32_u64(crc, eight(8));
        #[allow(clippy::cast_possible_truncation)] // a checksum has 32 bits
        let crc = _mm_crc32_u32(crc as u32, u32::from_le_bytes(four(16)));
        !crc == u32::from_le_bytes(four(20))
    }

    /// Goes on over the first `bytes` (0 to 7) of a word in one step.
    ///
    /// Zeros do not change a checksum of zero. So the bytes, with what of the checksum meets them,
    /// are put behind zeros; what of the checksum does not meet them moves down by as much.
    #[target_feature(enable = "sse4.2")]
    #[inline]
    fn rest_of(crc: u64, word: u64, bytes: usize) -> u64 {
        let bits = 8 * (bytes & 7);
        let met = ((crc ^ word) << 1) << (63 - bits);
        _mm_crc32_u64(0, met) ^ (crc >> bits)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // lengths of a page
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A page of records with these payloads, their checksums by the other crate.
    fn page_of(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<Place>) {
        let (mut page, mut places) = (Vec::new(), Vec::new());
        for payload in payloads {
            let at = page.len();
            let total = HEADER_BYTES + payload.len();
            page.extend((0..CRC_AT).map(|n| (n * 37 + payload.len()) as u8));
            let crc = crc32c::crc32c_append(crc32c::crc32c(payload), &page[at..]);
            page.extend(crc.to_le_bytes());
            page.extend(payload);
            // What is behind a record is no part of it, whatever it is.
            page.resize(page.len().next_multiple_of(8), 0xA5);
            places.push(Place {
                at: at as u16,
                bytes: total as u16,
            });
        }
        (page, places)
    }

    proptest! {
        /// Both ways say what the other crate says, for any lengths, and find the first record of
        /// which a bit is wrong.
        #[test]
        fn the_first_broken_record_is_found(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
            broken in any::<prop::sample::Index>(),
            bit in any::<prop::sample::Index>(),
        ) {
            let (mut page, places) = page_of(&payloads);
            prop_assert_eq!(count_holding(&page, &places), places.len());
            prop_assert_eq!(count_holding_anywhere(&page, &places), places.len());
            let broken = broken.index(places.len());
            let bit = bit.index(usize::from(places[broken].bytes) * 8);
            page[usize::from(places[broken].at) + bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(count_holding(&page, &places), broken);
            prop_assert_eq!(count_holding_anywhere(&page, &places), broken);
        }
    }

    /// A place beyond the page, or too short for a header, is no record.
    #[test]
    fn a_place_that_is_no_record_ends_the_count() {
        let (page, mut places) = page_of(&[vec![1; 9], vec![2; 30]]);
        for bytes in [23, 0, u16::MAX] {
            places[1].bytes = bytes;
            assert_eq!(count_holding(&page, &places), 1);
            assert_eq!(count_holding_anywhere(&page, &places), 1);
        }
    }
}
