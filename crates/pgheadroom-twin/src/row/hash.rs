//! PostgreSQL's hashes: `hashint8extended`, from which profiles draw values, widths and NULLs, and
//! those of hash indexes.

/// Begin of a hash of so many bytes.
const fn begin(length: u32) -> [u32; 3] {
    [0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095); 3]
}

fn mix([a, b, c]: &mut [u32; 3]) {
    for (rotation, turn) in [(4, 0), (6, 1), (8, 2), (16, 0), (19, 1), (4, 2)] {
        match turn {
            0 => {
                *a = a.wrapping_sub(*c) ^ c.rotate_left(rotation);
                *c = c.wrapping_add(*b);
            }
            1 => {
                *b = b.wrapping_sub(*a) ^ a.rotate_left(rotation);
                *a = a.wrapping_add(*c);
            }
            _ => {
                *c = c.wrapping_sub(*b) ^ b.rotate_left(rotation);
                *b = b.wrapping_add(*a);
            }
        }
    }
}

fn last([a, b, c]: &mut [u32; 3]) {
    for (rotation, turn) in [(14, 0), (11, 1), (25, 2), (16, 0), (4, 1), (14, 2), (24, 0)] {
        match turn {
            0 => *c = (*c ^ *b).wrapping_sub(b.rotate_left(rotation)),
            1 => *a = (*a ^ *c).wrapping_sub(c.rotate_left(rotation)),
            _ => *b = (*b ^ *a).wrapping_sub(a.rotate_left(rotation)),
        }
    }
}

/// Hash of bytes: SQL's `hashtext` of a string where equal strings are equal in their bytes.
///
/// Source: `hash_bytes`, src/common/hashfn.c (REL_18_STABLE).
pub(crate) fn hash_bytes(bytes: &[u8]) -> u32 {
    #[allow(clippy::cast_possible_truncation)] // as the server takes a length
    let mut state = begin(bytes.len() as u32);
    let mut twelves = bytes.chunks_exact(12);
    for twelve in &mut twelves {
        for (word, bytes) in state.iter_mut().zip(twelve.chunks_exact(4)) {
            *word = word.wrapping_add(u32::from_le_bytes(bytes.try_into().expect("4 bytes")));
        }
        mix(&mut state);
    }
    for (at, byte) in twelves.remainder().iter().enumerate() {
        // The lowest byte of the third word is reserved for the length.
        let shift = 8 * (at % 4 + at / 8);
        state[at / 4] = state[at / 4].wrapping_add(u32::from(*byte) << shift);
    }
    last(&mut state);
    state[2]
}

/// SQL's `hashint4`.
///
/// Source: `hash_bytes_uint32`, src/common/hashfn.c (REL_18_STABLE).
pub(crate) fn hash_uint32(key: u32) -> u32 {
    let mut state = begin(4);
    state[0] = state[0].wrapping_add(key);
    last(&mut state);
    state[2]
}

/// SQL's `hashint8`.
pub(crate) fn hash_int8(value: i64) -> u32 {
    hash_uint32(folded(value))
}

/// Hash of a 4-byte integer with a seed.
///
/// Source: `hash_bytes_uint32_extended`, src/common/hashfn.c (REL_18_STABLE).
fn hash_uint32_extended(key: u32, seed: u64) -> u64 {
    let mut state = begin(4);
    if seed != 0 {
        let bytes = seed.to_be_bytes();
        let half =
            |from: usize| u32::from_be_bytes(bytes[from..from + 4].try_into().expect("4 bytes"));
        state[0] = state[0].wrapping_add(half(0));
        state[1] = state[1].wrapping_add(half(4));
        mix(&mut state);
    }
    state[0] = state[0].wrapping_add(key);
    last(&mut state);
    (u64::from(state[1]) << 32) | u64::from(state[2])
}

/// The two halves of an int8 as one number that small numbers share with int4.
///
/// Source: `hashint8`, src/backend/access/hash/hashfunc.c (REL_18_STABLE).
fn folded(value: i64) -> u32 {
    let bytes = value.to_be_bytes();
    let half = |from: usize| u32::from_be_bytes(bytes[from..from + 4].try_into().expect("4 bytes"));
    let (high, low) = (half(0), half(4));
    low ^ if value >= 0 { high } else { !high }
}

/// SQL's `hashint8extended(value, seed)`.
///
/// Source: `hashint8extended`, src/backend/access/hash/hashfunc.c (REL_18_STABLE).
#[must_use]
pub fn hashint8extended(value: i64, seed: i64) -> i64 {
    hash_uint32_extended(folded(value), seed.cast_unsigned()).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What servers return (15.18; the function is older and the same in all).
    #[test]
    fn as_servers() {
        for (value, seed, expected) in [
            (1, 1, -7_620_678_293_940_249_823),
            (1, 2, 7_177_384_568_905_846_752),
            (1, 0, -3_670_598_878_359_251_130),
            (2, 1, 7_846_366_767_813_865_367),
            (20_000, 2, -8_245_984_389_418_795_605),
            (20_000, 0, -6_198_493_658_534_318_409),
            (5_000_000_000, 1, -2_336_036_002_411_778_313),
            (-1, 1, 3_987_656_643_895_367_148),
            (-5_000_000_000, 2, 5_032_580_246_266_615_151),
            (-5_000_000_000, 0, 6_327_884_766_802_921_082),
        ] {
            assert_eq!(hashint8extended(value, seed), expected, "{value} {seed}");
        }
    }
}
