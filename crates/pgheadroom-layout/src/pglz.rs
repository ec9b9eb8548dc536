//! PostgreSQL's own compression of long values, byte for byte.
//!
//! ```text
//! control byte | 8 items: a literal byte, or a match: 2 bytes (length 3 to 17, offset below 4095),
//!                                                     3 bytes (length 18 to 273)
//! ```
//!
//! Matches are looked for among the last 4096 positions by the hash of four bytes, newest first;
//! the longer a search lasts, the shorter a match will do.
//!
//! Source: `pglz_compress` with `PGLZ_strategy_default`, src/common/pg_lzcompress.c (REL_15_STABLE,
//! REL_18_STABLE).

const HISTORY_SIZE: usize = 4096;
const MAX_MATCH: usize = 273;
/// Shortest input that is tried.
const MIN_INPUT_SIZE: usize = 32;
/// Most bytes of output in percent of the input.
const MAX_RESULT_PERCENT: usize = 75;
/// Output without any match after which it gives up.
const FIRST_SUCCESS_BY: usize = 1024;
/// A match of this length ends the search, at its beginning.
const MATCH_SIZE_GOOD: usize = 128;
/// Percent by which that length drops with every candidate.
const MATCH_SIZE_DROP: usize = 10;
/// Offsets from here on do not fit a match.
const MAX_OFFSET: usize = 0x0fff;
/// No entry, in lists.
const NONE: u16 = 0;

/// A position in the history. Source: `PGLZ_HistEntry`, pg_lzcompress.c.
#[derive(Clone, Copy, Default)]
struct Entry {
    next: u16,
    previous: u16,
    list: u16,
    position: u32,
}

/// Positions seen, in lists by hash; entry 0 stands for none.
struct History<'a> {
    source: &'a [u8],
    starts: Vec<u16>,
    entries: Vec<Entry>,
    next: usize,
    recycles: bool,
}

impl<'a> History<'a> {
    fn new(source: &'a [u8]) -> Self {
        let lists = match source.len() {
            ..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => 8192,
        };
        Self {
            source,
            starts: vec![NONE; lists],
            entries: vec![Entry::default(); HISTORY_SIZE + 1],
            next: 1,
            recycles: false,
        }
    }

    /// Source: `pglz_hist_idx`.
    fn list(&self, position: usize) -> usize {
        let hash = match self.source[position..] {
            [a, b, c, d, ..] => {
                (usize::from(a) << 6)
                    ^ (usize::from(b) << 4)
                    ^ (usize::from(c) << 2)
                    ^ usize::from(d)
            }
            [a, ..] => usize::from(a),
            [] => unreachable!("inside the source"),
        };
        hash & (self.starts.len() - 1)
    }

    /// Source: `pglz_hist_add`.
    #[allow(clippy::cast_possible_truncation)] // numbers of entries, lists and positions below 1 GB
    fn add(&mut self, position: usize) {
        let list = self.list(position);
        let number = self.next;
        if self.recycles {
            let old = self.entries[number];
            if old.previous == NONE {
                self.starts[usize::from(old.list)] = old.next;
            } else {
                self.entries[usize::from(old.previous)].next = old.next;
            }
            if old.next != NONE {
                self.entries[usize::from(old.next)].previous = old.previous;
            }
        }
        let first = self.starts[list];
        self.entries[number] = Entry {
            next: first,
            previous: NONE,
            list: list as u16,
            position: position as u32,
        };
        if first != NONE {
            self.entries[usize::from(first)].previous = number as u16;
        }
        self.starts[list] = number as u16;
        self.next += 1;
        if self.next > HISTORY_SIZE {
            self.next = 1;
            self.recycles = true;
        }
    }

    /// Length and offset of the best match. Source: `pglz_find_match`.
    fn find(&self, position: usize) -> Option<(usize, usize)> {
        let mut good = MATCH_SIZE_GOOD;
        let (mut best, mut best_offset) = (0, 0);
        let mut number = self.starts[self.list(position)];
        while number != NONE {
            let entry = self.entries[usize::from(number)];
            let before = entry.position as usize;
            let offset = position - before;
            if offset >= MAX_OFFSET {
                break;
            }
            let pairs = self.source[position..].iter().zip(&self.source[before..]);
            let length = pairs.take(MAX_MATCH).take_while(|(a, b)| a == b).count();
            if length > best {
                (best, best_offset) = (length, offset);
            }
            number = entry.next;
            if number != NONE {
                if best >= good {
                    break;
                }
                good -= good * MATCH_SIZE_DROP / 100;
            }
        }
        (best > 2).then_some((best, best_offset))
    }
}

/// Output with its control bytes.
struct Output {
    bytes: Vec<u8>,
    control_at: usize,
    control_bit: u8,
}

impl Output {
    fn begin_item(&mut self, is_match: bool) {
        if self.control_bit == 0 {
            self.control_at = self.bytes.len();
            self.bytes.push(0);
            self.control_bit = 1;
        }
        if is_match {
            self.bytes[self.control_at] |= self.control_bit;
        }
        self.control_bit <<= 1;
    }

    #[allow(clippy::cast_possible_truncation)] // lengths up to 273, offsets below 4096
    fn add_match(&mut self, length: usize, offset: usize) {
        self.begin_item(true);
        let high = ((offset & 0xf00) >> 4) as u8;
        let low = (offset & 0xff) as u8;
        if length > 17 {
            self.bytes.extend([high | 0x0f, low, (length - 18) as u8]);
        } else {
            self.bytes.extend([high | (length - 3) as u8, low]);
        }
    }
}

/// How many bytes of output are too many for so many of input.
#[must_use]
pub const fn most_bytes(source_bytes: usize) -> usize {
    source_bytes * MAX_RESULT_PERCENT / 100
}

/// The compressed bytes, if that saves a quarter.
#[must_use]
pub fn compress(source: &[u8]) -> Option<Vec<u8>> {
    compress_below(source, most_bytes(source.len()))
}

/// The same with another limit: fewer bytes than `most`.
#[must_use]
pub fn compress_below(source: &[u8], most: usize) -> Option<Vec<u8>> {
    if source.len() < MIN_INPUT_SIZE {
        return None;
    }
    let mut history = History::new(source);
    let mut output = Output {
        bytes: Vec::with_capacity(most),
        control_at: 0,
        control_bit: 0,
    };
    let mut found_match = false;
    let mut position = 0;
    while position < source.len() {
        let size = output.bytes.len();
        if size >= most || (!found_match && size >= FIRST_SUCCESS_BY) {
            return None;
        }
        if let Some((length, offset)) = history.find(position) {
            output.add_match(length, offset);
            for _ in 0..length {
                history.add(position);
                position += 1;
            }
            found_match = true;
        } else {
            output.begin_item(false);
            output.bytes.push(source[position]);
            history.add(position);
            position += 1;
        }
    }
    (output.bytes.len() < most).then_some(output.bytes)
}

/// Puts back what was compressed; None where that does not give exactly this many bytes.
///
/// Source: `pglz_decompress` with `check_complete`, pg_lzcompress.c.
#[must_use]
pub fn decompress(source: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut output: Vec<u8> = Vec::with_capacity(length);
    let mut rest = source.iter().copied();
    while output.len() < length {
        let Some(control) = rest.next() else { break };
        for bit in 0..8 {
            if output.len() >= length {
                break;
            }
            let Some(first) = rest.next() else { break };
            if control & (1 << bit) == 0 {
                output.push(first);
                continue;
            }
            let offset = usize::from(first & 0xf0) << 4 | usize::from(rest.next()?);
            let mut taken = usize::from(first & 0x0f) + 3;
            if taken == 18 {
                taken += usize::from(rest.next()?);
            }
            let from = output.len().checked_sub(offset)?;
            if offset == 0 {
                return None;
            }
            // A match may go on into what it writes itself.
            for at in from..from + taken.min(length - output.len()) {
                output.push(output[at]);
            }
        }
    }
    (output.len() == length && rest.next().is_none()).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was compressed comes back, matches of all lengths and into themselves too.
    #[test]
    fn comes_back() {
        let mut state = 0x9E37_79B9_u64;
        for round in 0..300_usize {
            let mut source = Vec::new();
            while source.len() < 40 + round * 25 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let letter = u8::try_from(state >> 8 & 7).unwrap();
                let times = 1 + usize::try_from(state >> 16 & 0xFFFF).unwrap() % (1 + round);
                source.extend(std::iter::repeat_n(letter, times));
            }
            let Some(bytes) = compress(&source) else {
                continue;
            };
            assert_eq!(decompress(&bytes, source.len()).as_ref(), Some(&source));
            assert_eq!(decompress(&bytes, source.len() + 1), None);
            assert_eq!(decompress(&bytes[..bytes.len() - 1], source.len()), None);
        }
    }

    /// Refused: a match before the beginning, one without distance, one cut off, bytes left over.
    #[test]
    fn what_is_none() {
        assert_eq!(decompress(&[2, b'a', 0x03, 2], 8), None);
        assert_eq!(decompress(&[2, b'a', 0x03, 0], 8), None);
        assert_eq!(decompress(&[2, b'a', 0x0f, 1], 30), None);
        assert_eq!(decompress(&[0, b'a', b'b'], 1), None);
        assert_eq!(decompress(&[2, b'a', 0x03, 1], 7), Some(vec![b'a'; 7]));
        assert_eq!(decompress(&[], 0), Some(vec![]));
    }
}
