//! A log's bytes in, counted statements out.

use std::collections::HashMap;

use crate::entry::{self, Entry, Next};
use crate::normal::{self, Unread};
use crate::prefix::Prefix;
use crate::stderr;
use crate::time::{self, Moment, Zones};

/// How a log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// `csvlog`.
    Csv,
    /// `jsonlog`.
    Json,
    /// `stderr`, with its `log_line_prefix`.
    Stderr(Prefix),
}

/// Which entries count.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only this database, where the format names it.
    pub database: Option<Vec<u8>>,
    /// From and to this time in milliseconds since 1970, where the format has times.
    pub interval_ms: Option<(i64, i64)>,
    /// How the log's times are read.
    pub zones: Zones,
}

/// What a scan has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Each statement without its literals, with its number, by text.
    pub counts: Vec<(Vec<u8>, u64)>,
    /// Entries of the log that hold an executed statement, selected or not.
    pub executed: u64,
    /// Those that were selected.
    pub selected: u64,
    /// Of the selected: the text does not end.
    pub cut: u64,
    /// Of the selected: too long, or one too many of different texts.
    pub not_kept: u64,
    /// Of other databases.
    pub elsewhere: u64,
    /// Before or after the interval.
    pub outside: u64,
    /// Selected although their time is not known.
    pub untimed: u64,
    /// Lines that seem to hold a statement and do not begin with the prefix.
    pub unprefixed: u64,
    /// Rows or lines that are not of the format.
    pub unreadable: u64,
}

/// An entry that has not ended after so many bytes is left out: a statement is seldom longer.
const ENTRY_BYTES_MAX: usize = 64 * 1024 * 1024;
const TEXTS_MAX: usize = 100_000;
const TEXTS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A scan of one log; files of it are fed one after the other.
#[derive(Debug)]
pub struct Scan {
    format: Format,
    selection: Selection,
    pending: Vec<u8>,
    /// Bytes are left out up to the end of an entry that was too long.
    skipping: bool,
    counts: HashMap<Vec<u8>, u64>,
    counts_bytes: usize,
    /// The last entry of a stderr log was `EXECUTE name`; the next line may have its text.
    waiting: Option<Vec<u8>>,
    found: Found,
}

impl Scan {
    /// A scan that has read nothing yet.
    #[must_use]
    pub fn new(format: Format, selection: Selection) -> Self {
        Self {
            format,
            selection,
            pending: Vec::new(),
            skipping: false,
            counts: HashMap::new(),
            counts_bytes: 0,
            waiting: None,
            found: Found::default(),
        }
    }

    /// Read on; entries may lie across pieces.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut buffer = std::mem::take(&mut self.pending);
        buffer.extend_from_slice(bytes);
        let mut place = 0;
        if self.skipping {
            place = memchr::memchr(b'\n', &buffer).map_or(buffer.len(), |at| at + 1);
            self.skipping = place == buffer.len();
        }
        while place < buffer.len() {
            match self.entry(&buffer[place..]) {
                Some(length) => place += length,
                None if buffer.len() - place > ENTRY_BYTES_MAX => {
                    self.found.unreadable += 1;
                    self.skipping = true;
                    place = buffer.len();
                }
                None => break,
            }
        }
        buffer.drain(..place);
        self.pending = buffer;
    }

    /// The file ends here: what is left is its last entry, whole if it ends with its line.
    pub fn end_file(&mut self) {
        let mut rest = std::mem::take(&mut self.pending);
        if !rest.is_empty() && !self.skipping {
            if matches!(self.format, Format::Stderr(_)) {
                self.stderr_entry(&rest);
            } else {
                rest.push(b'\n');
                if self.entry(&rest).is_none() {
                    self.found.unreadable += 1;
                }
            }
        }
        self.skipping = false;
        self.end_waiting();
    }

    /// What was found so far.
    #[must_use]
    pub fn found(&self) -> Found {
        let mut counts: Vec<_> = self.counts.iter().map(|(t, n)| (t.clone(), *n)).collect();
        counts.sort_unstable();
        Found {
            counts,
            ..self.found.clone()
        }
    }

    /// Take the entry at the start of a buffer; gives its length, `None` where it has no end yet.
    fn entry(&mut self, buffer: &[u8]) -> Option<usize> {
        let is_csv = match self.format {
            Format::Stderr(_) => {
                let length = stderr::entry_length(buffer)?;
                self.stderr_entry(&buffer[..length]);
                return Some(length);
            }
            Format::Csv => true,
            Format::Json => false,
        };
        let next = if is_csv {
            entry::csv_row(buffer)
        } else {
            entry::json_line(buffer)
        };
        let Next::Whole(found, length) = next else {
            return None;
        };
        match found {
            Some(found) => self.structured(&found, is_csv),
            None if buffer[..length].trim_ascii().is_empty() => {}
            None => self.found.unreadable += 1,
        }
        Some(length)
    }

    fn structured(&mut self, found: &Entry<'_>, is_csv: bool) {
        if found.severity != b"LOG" || !entry::may_hold_statement(found.message) {
            return;
        }
        let text = if is_csv {
            entry::csv_text
        } else {
            entry::json_text
        };
        let message = text(found.message);
        let Some(statement) = entry::statement(&message) else {
            return;
        };
        let moment = time::moment(found.time, &self.selection.zones);
        if !self.selects(moment, Some(&text(found.database))) {
            return;
        }
        if entry::begins_with(statement, b"EXECUTE") {
            let detail = text(found.detail);
            self.count(entry::prepared(&detail).unwrap_or(statement), true);
        } else {
            self.count(statement, false);
        }
    }

    fn stderr_entry(&mut self, text: &[u8]) {
        let Format::Stderr(prefix) = &self.format else {
            return;
        };
        let wanted = self.selection.database.as_deref();
        let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
        if self.waiting.is_some() {
            let detail = memchr::memmem::find(line, b"DETAIL:  prepare: ")
                .and_then(|_| prefix.matched(line, wanted, stderr::is_prepared));
            if let Some(matched) = detail {
                let begins = line.len() - matched.rest.len() + b"DETAIL:  prepare: ".len();
                self.waiting = None;
                self.count(&stderr::untabbed(&text[begins..]), true);
                return;
            }
            self.end_waiting();
        }
        let Format::Stderr(prefix) = &self.format else {
            return;
        };
        let wanted = self.selection.database.as_deref();
        let Some(severity) = memchr::memmem::find(line, b"LOG:  ") else {
            return;
        };
        let Some(matched) = prefix.matched(line, wanted, stderr::is_log) else {
            // Behind another severity it stands in somebody's text.
            let is_first = memchr::memmem::find(line, b":  ") == Some(severity + 3);
            if is_first && entry::statement(&line[severity + 6..]).is_some() {
                self.found.unprefixed += 1;
            }
            return;
        };
        if !entry::may_hold_statement(&matched.rest[6..]) {
            return;
        }
        let begins = line.len() - matched.rest.len() + b"LOG:  ".len();
        let message = stderr::untabbed(&text[begins..]);
        let Some(statement) = entry::statement(&message) else {
            return;
        };
        let moment = match matched.time {
            Some(time) => time::moment(time, &self.selection.zones),
            None => matched.epoch.and_then(time::epoch_moment),
        };
        if !self.selects(moment, matched.database) {
            return;
        }
        if entry::begins_with(statement, b"EXECUTE") {
            self.waiting = Some(statement.to_vec());
        } else {
            self.count(statement, false);
        }
    }

    fn end_waiting(&mut self) {
        if let Some(statement) = self.waiting.take() {
            self.count(&statement, true);
        }
    }

    /// Whether an executed statement counts; says why not.
    fn selects(&mut self, moment: Option<Moment>, database: Option<&[u8]>) -> bool {
        self.found.executed += 1;
        if let (Some(wanted), Some(database)) = (&self.selection.database, database)
            && wanted != database
        {
            self.found.elsewhere += 1;
            return false;
        }
        if let Some((from, to)) = self.selection.interval_ms {
            match moment {
                Some(Moment { ms, vague_ms }) if ms + vague_ms < from || ms > to => {
                    self.found.outside += 1;
                    return false;
                }
                Some(_) => {}
                None => self.found.untimed += 1,
            }
        }
        self.found.selected += 1;
        true
    }

    /// Count a statement. PREPARE executes nothing, but stands for what EXECUTE does.
    fn count(&mut self, statement: &[u8], is_execute: bool) {
        match normal::statements(statement) {
            Err(Unread::Cut) => self.found.cut += 1,
            Err(Unread::TooLong) => self.found.not_kept += 1,
            Ok(texts) => {
                for text in texts {
                    if is_execute || !entry::begins_with(&text, b"PREPARE") {
                        self.count_text(text);
                    }
                }
            }
        }
    }

    fn count_text(&mut self, text: Vec<u8>) {
        if let Some(count) = self.counts.get_mut(&text) {
            *count += 1;
        } else if self.counts.len() < TEXTS_MAX && self.counts_bytes + text.len() <= TEXTS_BYTES_MAX
        {
            self.counts_bytes += text.len();
            self.counts.insert(text, 1);
        } else {
            self.found.not_kept += 1;
        }
    }
}
