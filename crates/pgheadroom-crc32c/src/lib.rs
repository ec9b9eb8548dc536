//! Checksums of the records that lie on one WAL page, by the processor's own instruction.
//!
//! A WAL record has some eighty bytes. The crate `crc32c` looks at each call what the processor
//! can, and takes the bytes beyond a multiple of eight one by one, each waiting for the one before;
//! of records that short this is most of the time. Here the processor is asked once a page, the
//! rest of a record is one step, and records do not wait for each other. A long record is three
//! streams, which do not wait for each other either.
//!
//! The only `unsafe` is the call of functions that are compiled for SSE 4.2 and PCLMULQDQ, behind
//! the question whether the processor has them; the reader has none. Elsewhere the crate `crc32c`
//! does the work.

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
    if has_instructions() {
        // SAFETY: the processor has SSE 4.2 and PCLMULQDQ, as was just asked.
        return unsafe { sse42::count_holding(page, places) };
    }
    count_holding_anywhere(page, places)
}

/// Whether a record, of any length, has the checksum that its header names.
#[must_use]
pub fn holds(record: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if has_instructions() {
        // SAFETY: the processor has SSE 4.2 and PCLMULQDQ, as was just asked.
        return unsafe { sse42::holds_alone(record) };
    }
    holds_anywhere(record)
}

#[cfg(target_arch = "x86_64")]
fn has_instructions() -> bool {
    std::arch::is_x86_feature_detected!("sse4.2")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
}

/// Source: `ValidXLogRecord`, src/backend/access/transam/xlogreader.c: first what follows the
/// header, then the header up to the checksum.
fn holds_anywhere(record: &[u8]) -> bool {
    let Some((header, payload)) = record.split_first_chunk::<HEADER_BYTES>() else {
        return false;
    };
    let crc = crc32c::crc32c_append(crc32c::crc32c(payload), &header[..CRC_AT]);
    header[CRC_AT..] == crc.to_le_bytes()
}

fn count_holding_anywhere(page: &[u8], places: &[Place]) -> usize {
    let holds = |place: &&Place| place.of(page).is_some_and(holds_anywhere);
    places.iter().take_while(holds).count()
}

#[cfg(target_arch = "x86_64")]
mod sse42 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
    };

    use super::{HEADER_BYTES, Place};

    /// Words that a stretch of three streams has at least and at most. A step waits three cycles
    /// for the one before, so three streams take three times as many; joining them takes some
    /// fifteen cycles, so fewer words are one stream, beside which the next record's is at work.
    const STREAMS_LEAST: usize = 48;
    const STREAM_MOST: usize = 341;

    /// What moves a checksum behind so many words: x^(64 n + 31) modulo the polynomial, reflected.
    /// Multiplied by it without carries, a checksum becomes a word that the instruction takes in
    /// with the next one.
    ///
    /// Source: Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction",
    /// Intel, 2011.
    static BEHIND: [u32; 2 * STREAM_MOST + 1] = {
        const POLYNOMIAL: u32 = 0x82F6_3B78;
        let mut table = [1; 2 * STREAM_MOST + 1];
        let mut n = 1;
        while n < table.len() {
            let mut power: u32 = table[n - 1];
            let mut bits = 0;
            while bits < 64 {
                power = (power >> 1) ^ (POLYNOMIAL & (power & 1).wrapping_neg());
                bits += 1;
            }
            table[n] = power;
            n += 1;
        }
        table
    };

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn count_holding(page: &[u8], places: &[Place]) -> usize {
        for (n, place) in places.iter().enumerate() {
            let Some(record) = place.of(page) else {
                return n;
            };
            // Records begin at multiples of 8 and pages end there, so what is behind a record up
            // to the next one can be read; it is shifted out.
            let behind = usize::from(place.at) + (record.len() & !7);
            let word = page.get(behind..).and_then(|rest| rest.first_chunk());
            let word = word.map_or_else(|| last_word(record), |word| u64::from_le_bytes(*word));
            if !holds(record, word) {
                return n;
            }
        }
        places.len()
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn holds_alone(record: &[u8]) -> bool {
        holds(record, last_word(record))
    }

    /// What a record has behind its last whole word, and zeros.
    fn last_word(record: &[u8]) -> u64 {
        let rest = &record[record.len() & !7..];
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }

    /// `last`: a word that begins with what the record has behind its last whole one.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn holds(record: &[u8], last: u64) -> bool {
        let Some((header, payload)) = record.split_first_chunk::<HEADER_BYTES>() else {
            return false;
        };
        let (words, rest) = payload.as_chunks::<8>();
        let mut crc = u64::from(u32::MAX);
        let words = if words.len() < STREAMS_LEAST {
            words
        } else {
            let (after, behind) = by_streams(crc, words);
            crc = after;
            behind
        };
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        crc = rest_of(crc, last, rest.len());
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

    /// Goes on over words in three streams at a time; the few that are left are given back.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    fn by_streams(mut crc: u64, mut words: &[[u8; 8]]) -> (u64, &[[u8; 8]]) {
        while words.len() >= STREAMS_LEAST {
            let each = ((words.len() - 1) / 3).min(STREAM_MOST);
            let (first, behind) = words.split_at(each);
            let (second, behind) = behind.split_at(each);
            let (third, behind) = behind.split_at(each);
            let (mut two, mut three) = (0, 0);
            for ((a, b), c) in first.iter().zip(second).zip(third) {
                crc = _mm_crc32_u64(crc, u64::from_le_bytes(*a));
                two = _mm_crc32_u64(two, u64::from_le_bytes(*b));
                three = _mm_crc32_u64(three, u64::from_le_bytes(*c));
            }
            let Some((next, behind)) = behind.split_first() else {
                break;
            };
            let joined = moved(crc, 2 * each) ^ moved(two, each) ^ u64::from_le_bytes(*next);
            crc = _mm_crc32_u64(three, joined);
            words = behind;
        }
        (crc, words)
    }

    /// A checksum as the word that stands for it so many words further.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn moved(crc: u64, words: usize) -> u64 {
        let power = i64::from(BEHIND[words]);
        let product = _mm_clmulepi64_si128::<0>(
            _mm_cvtsi64_si128(crc.cast_signed()),
            _mm_cvtsi64_si128(power),
        );
        _mm_cvtsi128_si64(product).cast_unsigned()
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

    /// A long record alone: the streams say what the other crate says, at any length.
    #[test]
    fn long_records_hold() {
        let bytes: Vec<u8> = (0..40_000_u32).map(|n| (n * n / 7 + n) as u8).collect();
        for length in (0..1000)
            .chain((1000..40_000).step_by(997))
            .chain([8192, 8203, 24_600])
        {
            let (mut page, places) = page_of(&[bytes[..length].to_vec()]);
            let total = usize::from(places[0].bytes);
            assert!(holds(&page[..total]), "{length}");
            assert!(holds_anywhere(&page[..total]), "{length}");
            assert_eq!(count_holding(&page[..total], &places), 1, "{length}");
            for at in (0..total).step_by(1 + total / 7) {
                page[at] ^= 1 << (at % 8);
                assert!(!holds(&page[..total]), "{length} {at}");
                assert_eq!(count_holding(&page, &places), 0, "{length} {at}");
                page[at] ^= 1 << (at % 8);
            }
        }
        assert!(!holds(&bytes[..23]));
        assert!(!holds(&[]));
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
