//! `hashint8extended`, from which profiles draw values, widths and NULLs.

/// Hash of a 4-byte integer with a seed.
///
/// Source: `hash_bytes_uint32_extended`, src/common/hashfn.c (REL_18_STABLE).
fn hash_uint32_extended(key: u32, seed: u64) -> u64 {
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (start, start, start);
    if seed != 0 {
        let bytes = seed.to_be_bytes();
        let half =
            |from: usize| u32::from_be_bytes(bytes[from..from + 4].try_into().expect("4 bytes"));
        a = a.wrapping_add(half(0));
        b = b.wrapping_add(half(4));
        // mix
        for (rotation, turn) in [(4, 0), (6, 1), (8, 2), (16, 0), (19, 1), (4, 2)] {
            match turn {
                0 => {
                    a = a.wrapping_sub(c) ^ c.rotate_left(rotation);
                    c = c.wrapping_add(b);
                }
                1 => {
                    b = b.wrapping_sub(a) ^ a.rotate_left(rotation);
                    a = a.wrapping_add(c);
                }
                _ => {
                    c = c.wrapping_sub(b) ^ b.rotate_left(rotation);
                    b = b.wrapping_add(a);
                }
            }
        }
    }
    a = a.wrapping_add(key);
    // final
    for (rotation, turn) in [(14, 0), (11, 1), (25, 2), (16, 0), (4, 1), (14, 2), (24, 0)] {
        match turn {
            0 => c = (c ^ b).wrapping_sub(b.rotate_left(rotation)),
            1 => a = (a ^ c).wrapping_sub(c.rotate_left(rotation)),
            _ => b = (b ^ a).wrapping_sub(a.rotate_left(rotation)),
        }
    }
    (u64::from(b) << 32) | u64::from(c)
}

/// SQL's `hashint8extended(value, seed)`.
///
/// Source: `hashint8extended`, src/backend/access/hash/hashfunc.c (REL_18_STABLE).
#[must_use]
pub fn hashint8extended(value: i64, seed: i64) -> i64 {
    let bytes = value.to_be_bytes();
    let half = |from: usize| u32::from_be_bytes(bytes[from..from + 4].try_into().expect("4 bytes"));
    let (high, low) = (half(0), half(4));
    let folded = low ^ if value >= 0 { high } else { !high };
    hash_uint32_extended(folded, seed.cast_unsigned()).cast_signed()
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
