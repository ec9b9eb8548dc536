//! Entries of a stderr log: lines, of which those that begin with a tab belong to the one before.
//!
//! Source: `send_message_to_server_log`, `append_with_tabs`, src/backend/utils/error/elog.c.

use std::borrow::Cow;

/// The entry at the start of a buffer, its lines together; `None`: the next has not begun.
#[must_use]
pub fn entry_length(buffer: &[u8]) -> Option<usize> {
    let mut place = 0;
    loop {
        place += memchr::memchr(b'\n', &buffer[place..])? + 1;
        match buffer.get(place) {
            Some(b'\t') => {}
            Some(_) => return Some(place),
            None => return None,
        }
    }
}

/// Whether a severity stands here whose text is read.
#[must_use]
pub fn is_log(text: &[u8]) -> bool {
    text.starts_with(b"LOG:  ")
}

/// Whether the detail of a prepared statement stands here.
#[must_use]
pub fn is_prepared(text: &[u8]) -> bool {
    text.starts_with(b"DETAIL:  prepare: ")
}

/// A text of several lines without the tabs that the server put before each.
#[must_use]
pub fn untabbed(text: &[u8]) -> Cow<'_, [u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if memchr::memchr(b'\n', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut made = Vec::with_capacity(text.len());
    for (number, line) in text.split(|b| *b == b'\n').enumerate() {
        if number > 0 {
            made.push(b'\n');
        }
        made.extend_from_slice(if number > 0 {
            line.strip_prefix(b"\t").unwrap_or(line)
        } else {
            line
        });
    }
    Cow::Owned(made)
}
