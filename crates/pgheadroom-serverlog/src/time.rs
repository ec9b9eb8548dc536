//! Times of log lines, as milliseconds since 1970 in UTC.

/// Offsets of a log's zone: which abbreviation is how many seconds east of UTC.
///
/// A zone has two abbreviations or more (CET, CEST), and each line names its own: no hour is
/// ambiguous, even where clocks are put back.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    /// Abbreviations with their offset.
    pub known: Vec<(Vec<u8>, i64)>,
    /// The offset of any other abbreviation; `None`: its lines have no time.
    pub otherwise: Option<i64>,
}

impl Zones {
    /// Seconds east of UTC; numeric abbreviations (`+03`, `-0530`) say it themselves.
    fn offset_s(&self, name: &[u8]) -> Option<i64> {
        if name == b"UTC" || name == b"GMT" {
            return Some(0);
        }
        if let Some((_, offset)) = self.known.iter().find(|(known, _)| known == name) {
            return Some(*offset);
        }
        numeric_offset_s(name).or(self.otherwise)
    }
}

fn numeric_offset_s(name: &[u8]) -> Option<i64> {
    let (sign, digits) = match name.split_first()? {
        (b'+', rest) => (1, rest),
        (b'-', rest) => (-1, rest),
        _ => return None,
    };
    let hours = number(digits.get(0..2)?)?;
    let minutes = if digits.len() >= 4 {
        number(&digits[2..4])?
    } else {
        0
    };
    (digits.len() <= 4).then_some(sign * (hours * 3600 + minutes * 60))
}

/// A moment, and how long it may have lasted: 999 ms where the log writes whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970 in UTC.
    pub ms: i64,
    /// The time is that or up to so much later.
    pub vague_ms: i64,
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    digits.iter().try_fold(0_i64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + i64::from(byte - b'0'))
    })
}

/// The length of `2026-11-22 15:54:20[.123] ZONE` at the start of a text; `None`: no such text.
#[must_use]
pub fn stamp_length(text: &[u8]) -> Option<usize> {
    const SHAPE: &[u8] = b"0000-00-00 00:00:00";
    let head = text.get(..SHAPE.len())?;
    let fits = head.iter().zip(SHAPE).all(|(found, wanted)| match wanted {
        b'0' => found.is_ascii_digit(),
        _ => found == wanted,
    });
    if !fits {
        return None;
    }
    let mut place = SHAPE.len();
    if text.get(place) == Some(&b'.') {
        place += 1 + text[place + 1..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
    }
    if text.get(place) != Some(&b' ') {
        return None;
    }
    // No colon: one that follows belongs to log_line_prefix.
    let is_zone = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-');
    let length = text[place + 1..].iter().take_while(is_zone).count();
    (length > 0).then_some(place + 1 + length)
}

/// The time of such a text; `None` where it is none, or its zone is not known.
#[must_use]
pub fn moment(text: &[u8], zones: &Zones) -> Option<Moment> {
    let length = stamp_length(text)?;
    let text = &text[..length];
    let part = |from: usize, to: usize| number(&text[from..to]);
    let days = days_from_civil(part(0, 4)?, part(5, 7)?, part(8, 10)?)?;
    let seconds = part(11, 13)? * 3600 + part(14, 16)? * 60 + part(17, 19)?;
    let (ms, vague_ms, rest) = if text[19] == b'.' {
        let digits = text[20..].iter().take_while(|b| b.is_ascii_digit()).count();
        let taken = digits.min(3);
        let scale = [1000, 100, 10, 1][taken];
        let ms = if taken == 0 {
            0
        } else {
            number(&text[20..20 + taken])?
        };
        (ms * scale, 0, 20 + digits + 1)
    } else {
        (0, 999, 20)
    };
    let offset = zones.offset_s(&text[rest..])?;
    Some(Moment {
        ms: (days * 86_400 + seconds - offset) * 1000 + ms,
        vague_ms,
    })
}

/// The time of `%n`: seconds since 1970 with three decimals.
#[must_use]
pub fn epoch_moment(text: &[u8]) -> Option<Moment> {
    let dot = text.iter().position(|b| *b == b'.')?;
    let ms = number(text.get(dot + 1..dot + 4)?)?;
    Some(Moment {
        ms: number(&text[..dot])?.checked_mul(1000)? + ms,
        vague_ms: 0,
    })
}

/// Days since 1970-01-01 of a date of the Gregorian calendar.
///
/// Source: `date2j`, src/backend/utils/adt/datetime.c, with 1970 as its origin.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (month, year) = if month > 2 {
        (month + 1, year + 4800)
    } else {
        (month + 13, year + 4799)
    };
    let century = year / 100;
    let julian = year * 365 - 32_167 + year / 4 - century + century / 4;
    Some(julian + 7834 * month / 256 + day - 2_440_588)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Zones {
        Zones {
            known: vec![(b"CET".to_vec(), 3600), (b"CEST".to_vec(), 7200)],
            otherwise: None,
        }
    }

    /// `date -u -d ... +%s` says these seconds.
    #[test]
    fn times_are_those_of_date() {
        let ms = |text: &[u8]| moment(text, &berlin()).map(|found| found.ms);
        assert_eq!(ms(b"1970-01-01 00:00:00.000 UTC"), Some(0));
        assert_eq!(ms(b"2026-11-22 15:54:20.123 UTC,"), Some(1_795_362_860_123));
        assert_eq!(ms(b"2024-02-29 23:59:59.999 GMT"), Some(1_709_251_199_999));
        assert_eq!(ms(b"2026-11-22 16:54:20.123 CET"), Some(1_795_362_860_123));
        assert_eq!(ms(b"2026-11-22 18:54:20.123 +03"), Some(1_795_362_860_123));
        assert_eq!(ms(b"2026-11-22 10:24:20.1 -0530"), Some(1_795_362_860_100));
    }

    /// The hour that comes twice has two names.
    #[test]
    fn the_hour_that_comes_twice_is_told_apart() {
        let ms = |text: &[u8]| moment(text, &berlin()).map(|found| found.ms).unwrap();
        let (first, second) = (
            ms(b"2026-10-25 02:30:00.000 CEST"),
            ms(b"2026-10-25 02:30:00.000 CET"),
        );
        assert_eq!(second - first, 3_600_000);
    }

    /// Whole seconds (`%t`) are vague; a zone that nobody knows gives no time.
    #[test]
    fn what_is_not_known_is_said() {
        assert_eq!(
            moment(b"2026-11-22 15:54:20 UTC", &berlin()).map(|m| m.vague_ms),
            Some(999)
        );
        assert_eq!(moment(b"2026-11-22 15:54:20.000 PDT", &berlin()), None);
        assert_eq!(moment(b"2026-13-22 15:54:20.000 UTC", &berlin()), None);
        assert_eq!(moment(b"not a time at all, really", &berlin()), None);
        assert_eq!(
            epoch_moment(b"1795362860.123"),
            Some(Moment {
                ms: 1_795_362_860_123,
                vague_ms: 0
            })
        );
    }

    /// `'%t:%r...'` is a prefix that people use: the colon is not of the zone.
    #[test]
    fn a_colon_after_the_zone_is_the_prefixs() {
        assert_eq!(stamp_length(b"2026-11-22 15:54:20 UTC:10.0.0.1"), Some(23));
    }
}
