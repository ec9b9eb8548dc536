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

/// The compressed bytes, if that saves a quarter.
pub(crate) fn compress(source: &[u8]) -> Option<Vec<u8>> {
    if source.len() < MIN_INPUT_SIZE {
        return None;
    }
    let most = source.len() * MAX_RESULT_PERCENT / 100;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;

    fn compressed(text: &str) -> Option<usize> {
        compress(text.as_bytes()).map(|bytes| bytes.len())
    }

    /// `left(repeat(md5(n::text), 300), n)` on a server: `pg_column_size` without its 8 bytes of
    /// header.
    #[test]
    fn repeated_hashes() {
        for (length, stored) in [
            (2700, 76),
            (3400, 85),
            (4100, 91),
            (4800, 101),
            (5500, 109),
            (6200, 116),
            (6900, 126),
            (7600, 132),
            (8300, 141),
            (9000, 148),
        ] {
            let text = Text::new(&length.to_string()).hashed_again(length, false);
            let bytes = compress(&text.to_bytes()).unwrap();
            assert_eq!(bytes.len() + 8, stored, "{length}");
        }
    }

    /// Hashes alone save too little.
    #[test]
    fn hashes_are_incompressible() {
        for length in (2000..3300).step_by(100) {
            assert_eq!(
                compress(&Text::hashes(i64::from(length), length).to_bytes()),
                None
            );
        }
        assert_eq!(compressed("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), None);
        assert_eq!(compressed("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), Some(5));
    }

    /// `left(string_agg((k * k * n % 1000)::text || ':', ''), n)` over k: matches of many lengths.
    #[test]
    fn numbers() {
        for (n, stored) in [
            (3040, 107),
            (4410, 188),
            (7150, 122),
            (12_630, 277),
            (2637, 1176),
            (3511, 1174),
            (4385, 289),
            (5259, 1210),
            (7881, 1214),
        ] {
            let mut text: String = (1..=6000_u64)
                .map(|k| format!("{}:", k * k * n % 1000))
                .collect();
            text.truncate(usize::try_from(n).unwrap());
            assert_eq!(compressed(&text).unwrap() + 8, stored, "{n}");
        }
    }

    /// `left(string_agg(md5((k % 40 + n)::text) || k, ''), n)`: matches far back, and more
    /// positions than the history holds.
    #[test]
    fn hashes_again_after_a_while() {
        for (n, stored) in [(2200, 1594), (7948, 2390), (12_259, 2962), (19_444, 3955)] {
            let mut text = Vec::new();
            for k in 1..=900_i64 {
                let number = (k % 40 + i64::from(n)).to_string();
                text.extend(Text::new(&number).hashed_again(32, false).to_bytes());
                text.extend(k.to_string().bytes());
            }
            text.truncate(usize::try_from(n).unwrap());
            assert_eq!(compress(&text).unwrap().len() + 8, stored, "{n}");
        }
    }
}
