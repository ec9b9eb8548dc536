//! How a whole number of type `numeric` is stored.
//!
//! ```text
//! 2-byte header (sign, display scale, weight) | 2 bytes for each group of four digits, without
//!                                             | zero groups at either end
//! ```

/// Groups of the largest number.
const MOST_GROUPS: usize = 5;

/// Digits of base 10,000, least significant first: how many there are, and how many of them are
/// zeros at the beginning of the list, which are not stored.
fn groups(number: i64) -> ([u16; MOST_GROUPS], usize, usize) {
    let mut left = number.unsigned_abs();
    let mut digits = [0; MOST_GROUPS];
    let mut len = 0;
    while left > 0 {
        digits[len] = u16::try_from(left % 10_000).expect("four digits");
        left /= 10_000;
        len += 1;
    }
    let zeros = digits[..len].iter().take_while(|&&digit| digit == 0);
    (digits, len, zeros.count())
}

/// Payload: the header and the digits.
pub(crate) fn payload_bytes(number: i64, scale: u16) -> u32 {
    let (_, len, zeros) = groups(number);
    let header = if scale <= SHORT_SCALE_MAX { 2 } else { 4 };
    header + 2 * u32::try_from(len - zeros).expect("five groups")
}

/// Largest scale of the short header. Source: `NUMERIC_SHORT_DSCALE_MAX`,
/// src/backend/utils/adt/numeric.c.
const SHORT_SCALE_MAX: u16 = 0x3F;

/// Writes the payload. Source: `make_result_opt_error`, numeric.c (REL_18_STABLE).
pub(crate) fn write_to(number: i64, scale: u16, out: &mut Vec<u8>) {
    let (digits, len, zeros) = groups(number);
    let weight = u16::try_from(len.saturating_sub(1)).expect("five groups");
    if scale <= SHORT_SCALE_MAX {
        let sign = if number < 0 { 0x2000 } else { 0 };
        out.extend_from_slice(&(0x8000 | sign | (scale << 7) | weight).to_le_bytes());
    } else {
        let sign = if number < 0 { 0x4000 } else { 0 };
        out.extend_from_slice(&(sign | scale).to_le_bytes());
        out.extend_from_slice(&weight.to_le_bytes());
    }
    for digit in digits[zeros..len].iter().rev() {
        out.extend_from_slice(&digit.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zero has no digits; zero groups at the end are not stored.
    #[test]
    fn sizes() {
        for (number, bytes) in [(0, 2), (1, 4), (9999, 4), (10_000, 4), (10_001, 6)] {
            assert_eq!(payload_bytes(number, 2), bytes, "{number}");
            let mut written = Vec::new();
            write_to(number, 2, &mut written);
            assert_eq!(written.len(), bytes as usize);
        }
    }
}
