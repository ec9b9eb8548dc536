//! What can be wrong with the write-ahead log that was given.

use pgheadroom_layout::Lsn;

use crate::format::is_known_elsewhere;

/// Why WAL cannot be read, with where that was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// A file cannot be opened or read, or what is compressed does not unpack.
    #[error("{path} cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        problem: String,
    },
    /// What is compressed does not unpack, or not as far as the first page's header.
    #[error("{path} does not unpack: {problem}; expected a segment packed as its name says")]
    Unpacks {
        /// The file.
        path: String,
        /// What the unpacker says.
        problem: String,
    },
    /// The first page is not that of a WAL segment.
    #[error(
        "{path} is no segment of WAL: {found}; expected a file of pg_wal or of an archive, plain \
         or as .gz, .lz4 or .zst"
    )]
    NotWal {
        /// The file.
        path: String,
        /// What is at its beginning.
        found: String,
    },
    /// A page magic that is none of the versions that are read.
    #[error(
        "{path} has the page magic {magic:04X}, which is {of}: expected D110 (PostgreSQL 15), D113 \
         (16), D116 (17), D118 (18), D11F or D122 (19)"
    )]
    UnknownMagic {
        /// The file.
        path: String,
        /// The magic.
        magic: u16,
        /// Whose magic it is, in words.
        of: &'static str,
    },
    /// WAL of a server that was built otherwise.
    #[error("{path} was written with WAL pages of {page_bytes} bytes: expected 8192")]
    PageSize {
        /// The file.
        path: String,
        /// The size in the header.
        page_bytes: u32,
    },
    /// Files of two systems, or of two versions.
    #[error("{path} is of {what} {found}, {other} of {expected}: give those of one server")]
    Mixed {
        /// The file.
        path: String,
        /// Which property differs.
        what: &'static str,
        /// What this file has.
        found: String,
        /// Another file.
        other: String,
        /// What that has.
        expected: String,
    },
    /// A segment comes again in a stream, where no name tells which of two it is.
    #[error(
        "{path} has the segment at {lsn} a second time, as segments of two timelines do: expected \
         each once, in order; give the files or their folder, whose names tell them apart"
    )]
    Twice {
        /// The stream.
        path: String,
        /// Where the segment begins.
        lsn: Lsn,
    },
    /// A history file that is not one.
    #[error("{path}, line {line}: {problem}; expected the lines that PostgreSQL writes there")]
    BadHistory {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Nothing to read.
    #[error("no record of WAL in {what}: {problem}")]
    Nothing {
        /// What was given.
        what: String,
        /// Why there is none.
        problem: String,
    },
}

impl WalError {
    /// Whether it may be damage of one file that is WAL like those beside it, and not something
    /// that was given by mistake, or that the system does not let be read.
    #[must_use]
    pub fn is_of_one_file(&self) -> bool {
        match self {
            Self::Unpacks { .. } | Self::NotWal { .. } | Self::PageSize { .. } => true,
            Self::UnknownMagic { magic, .. } => !is_known_elsewhere(*magic),
            _ => false,
        }
    }
}

/// What is wrong with one record or page: the end of the log, or damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Where the record begins, or the page.
    pub lsn: Lsn,
    /// What was found.
    pub why: &'static str,
}
