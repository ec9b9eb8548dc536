//! Timeline history files: which timelines come before one, and where each was left.
//!
//! Three columns, with tabs between them:
//!
//! ```text
//! 1   0/3000148   no recovery target specified
//! ```
//!
//! Source: `readTimeLineHistory`, src/backend/access/transam/timeline.c.

use pgheadroom_layout::Lsn;

use crate::error::WalError;

/// Most bytes that are read of a history file: thousands of timelines.
pub const HISTORY_BYTES_MAX: u64 = 1 << 20;

/// Earlier timelines of one, each with the position at which it was left, oldest first.
pub type History = Vec<(u32, Lsn)>;

/// The timeline that a history file's name tells: `00000003.history`.
#[must_use]
pub fn timeline_of(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".history")?;
    (stem.len() == 8)
        .then(|| u32::from_str_radix(stem, 16).ok())
        .flatten()
}

/// Reads a history file.
///
/// # Errors
/// [`WalError::BadHistory`] for a line that PostgreSQL would refuse.
pub fn parse(path: &str, text: &str) -> Result<History, WalError> {
    let mut found = History::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |problem| WalError::BadHistory {
            path: path.to_owned(),
            line: at + 1,
            problem,
        };
        let mut words = line.split_ascii_whitespace();
        let timeline: u32 = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| bad("no number of a timeline"))?;
        let left: Lsn = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| bad("no position at which the timeline was left"))?;
        if found.last().is_some_and(|(last, _)| *last >= timeline) {
            return Err(bad("timelines that do not ascend"));
        }
        found.push((timeline, left));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two timelines, as PostgreSQL writes them; what it would refuse is refused.
    #[test]
    fn lines() {
        let text = "1\t0/3000148\tno recovery target specified\n\n2\t0/5000000\tbefore x\n";
        assert_eq!(
            parse("h", text).unwrap(),
            [(1, Lsn(0x300_0148)), (2, Lsn(0x500_0000))]
        );
        assert!(parse("h", "1\n").is_err());
        assert!(parse("h", "one 0/1\n").is_err());
        assert!(parse("h", "2 0/1\n2 0/2\n").is_err());
        assert_eq!(timeline_of("0000000A.history"), Some(10));
        assert_eq!(timeline_of("A.history"), None);
    }
}
