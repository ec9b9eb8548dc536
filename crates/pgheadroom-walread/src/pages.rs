//! The pages of one piece, one after another.
//!
//! A segment's file has them where its name says. In a stream segments come one after another, and
//! no name tells them apart: there each page says where it lies, and where the one behind it does
//! not join, the next segment's first page is looked for. So a segment that is missing, or was cut
//! off at any byte, takes nothing with it of what is there.

use std::io::{self, Read};
use std::path::PathBuf;

use pgheadroom_layout::Lsn;

use crate::chunk::{AHEAD_BYTES, CHUNK_BYTES, Chunk};
use crate::error::WalError;
use crate::format::{LONG_HEADER_BYTES, PAGE_BYTES, PageHeader, u64_at};
use crate::piece::{Piece, is_unpackers, unreadable};

/// A page's position, the page, and how many bytes of it the file has.
pub type PageRead<'a> = (Lsn, &'a [u8; PAGE_BYTES], usize);

/// Place of `xlp_pageaddr`.
const ADDRESS_AT: usize = 8;
const ADDRESS_BYTES: usize = 8;
const _: () = assert!(AHEAD_BYTES >= LONG_HEADER_BYTES);

/// Where a file ends within its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The position.
    pub at: Lsn,
    /// What is compressed does not unpack any further.
    pub is_torn: bool,
    /// There is no page at all.
    pub is_empty: bool,
    /// The file was there, and is not any more.
    pub is_gone: bool,
}

/// The pages of one piece, in order.
pub struct Pages {
    path: PathBuf,
    bytes: Box<dyn Read + Send>,
    chunk: Chunk,
    /// Of the chunk, where the bytes end that were read.
    read: usize,
    at: usize,
    next: Lsn,
    segment_bytes: u64,
    /// Where the piece ends that is one segment.
    end: Option<Lsn>,
    /// Where whoever wants less than the file has ends.
    left: Option<Lsn>,
    /// The last segment of which a page was where it was expected.
    segment: Lsn,
    /// Of the log, as far as its records have said.
    timeline: u32,
    /// Where the bytes end that were handed on, from where on.
    from: Lsn,
    read_to: Lsn,
    is_over: bool,
    /// Of segments one after another, which no name tells apart: their magic and system.
    joined: Option<(u16, u64)>,
    is_packed: bool,
    is_torn: bool,
    is_gone: bool,
}

impl Pages {
    /// The pages of a piece from the one on which a position lies.
    ///
    /// # Errors
    /// [`WalError::Unreadable`].
    pub fn of(piece: &Piece, from: Lsn, chunk: Chunk) -> Result<Self, WalError> {
        // Where segments are missing from a stream, a position tells no place in it.
        let skip = if piece.is_stream() {
            0
        } else {
            from.0.saturating_sub(piece.start.0) / PAGE_BYTES as u64 * PAGE_BYTES as u64
        };
        let start = Lsn(piece.start.0 + skip);
        match piece.open(skip) {
            Ok(bytes) => Ok(Self::of_bytes(piece, start, bytes, chunk)),
            Err(error) if !piece.is_plain() && is_unpackers(&error) => Ok(Self {
                is_torn: true,
                ..Self::of_bytes(piece, start, Box::new(io::empty()), chunk)
            }),
            // A server removes and recycles segments while it runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self {
                is_gone: true,
                ..Self::of_bytes(piece, start, Box::new(io::empty()), chunk)
            }),
            Err(error) => Err(unreadable(&piece.path, &error)),
        }
    }

    /// The pages of a stream that begins at a position.
    #[must_use]
    pub fn of_bytes(piece: &Piece, start: Lsn, bytes: Box<dyn Read + Send>, chunk: Chunk) -> Self {
        let is_joined = piece.is_stream();
        Self {
            path: piece.path.clone(),
            bytes,
            chunk,
            read: 0,
            at: 0,
            next: start,
            segment_bytes: piece.segment_bytes,
            end: (!is_joined).then(|| piece.end()),
            left: piece.left,
            segment: piece.start,
            timeline: 0,
            from: start,
            read_to: start,
            is_over: false,
            joined: is_joined.then_some((piece.magic, piece.system)),
            is_packed: !piece.is_plain(),
            is_torn: false,
            is_gone: false,
        }
    }

    /// The next page, its position and how many bytes of it the file has; None at the end. A page
    /// that the file cuts off ends with zeros.
    ///
    /// # Arguments
    /// * `timeline` - that the log is on: in a stream no segment of an earlier one follows.
    ///
    /// # Errors
    /// [`WalError::Unreadable`]; [`WalError::Twice`] in a stream.
    pub fn next_page(&mut self, timeline: u32) -> Result<Option<PageRead<'_>>, WalError> {
        self.timeline = timeline;
        // In a stream the header of the page behind is looked at too.
        let wanted = match self.joined {
            Some(_) => PAGE_BYTES + AHEAD_BYTES,
            None => 1,
        };
        if self.read - self.at < wanted && !self.is_over {
            self.fill()?;
        }
        if self.read == self.at {
            return Ok(None);
        }
        let mut there = (self.read - self.at).min(PAGE_BYTES);
        if let Some(log) = self.joined {
            there = self.locate(log, there)?;
        }
        let (lsn, at) = (self.next, self.at);
        let Some(next) = lsn.0.checked_add(PAGE_BYTES as u64) else {
            return Ok(None);
        };
        self.next = Lsn(next);
        self.read_to = Lsn(lsn.0.saturating_add(there as u64));
        self.at += there;
        let bytes = if there < PAGE_BYTES {
            self.chunk.filled_up(at, there)
        } else {
            &self.chunk.bytes()[at..]
        };
        Ok(bytes.first_chunk().map(|page| (lsn, page, there)))
    }

    /// Refuses a segment that was read and comes once more, as the newer timeline's begins with a
    /// copy of what the older one's has. One that is kept for later is from before the first.
    fn refuse_again(&self, begins: Option<Lsn>) -> Result<(), WalError> {
        match begins {
            Some(lsn) if lsn < self.next && (self.from..=self.segment).contains(&lsn) => {
                Err(WalError::Twice {
                    path: self.path.display().to_string(),
                    lsn,
                })
            }
            _ => Ok(()),
        }
    }

    /// Finds where the page at hand lies, and how much of it is there before another one begins.
    fn locate(&mut self, log: (u16, u64), there: usize) -> Result<usize, WalError> {
        if self.is_joining() {
            self.segment = self.segment.max(self.segment_of(self.next));
            return Ok(there);
        }
        let begins = self.segment_at(self.at, log);
        self.refuse_again(begins)?;
        if let Some(lsn) = begins.filter(|lsn| *lsn > self.next)
            && !self.is_contradicted()
        {
            self.next = lsn;
            if self.is_joining() {
                self.segment = lsn;
                return Ok(there);
            }
        }
        let magic = log.0.to_le_bytes();
        let bytes = &self.chunk.bytes()[self.at..self.read];
        let pairs = bytes.windows(2).take(there).enumerate().skip(1);
        for (at, _) in pairs.filter(|(_, pair)| *pair == magic) {
            let begins = self.segment_at(self.at + at, log);
            self.refuse_again(begins)?;
            if begins.is_some_and(|lsn| lsn > self.next) {
                return Ok(at);
            }
        }
        Ok(there)
    }

    fn segment_of(&self, lsn: Lsn) -> Lsn {
        Lsn(lsn.0 / self.segment_bytes * self.segment_bytes)
    }

    /// Whether the page at hand is the expected one, and joins the one behind it.
    fn is_joining(&self) -> bool {
        [0, 1]
            .into_iter()
            .all(|page| self.is_expected(page) != Some(false))
    }

    /// Whether a later page says that all of them are where they are expected: then the page at
    /// hand says something else because it is damaged.
    fn is_contradicted(&self) -> bool {
        (1..CHUNK_BYTES / PAGE_BYTES).any(|page| self.is_expected(page) == Some(true))
    }

    /// Whether the page so many pages on says that it is the expected one; None where that is not
    /// known yet, or there is none.
    fn is_expected(&self, page: usize) -> Option<bool> {
        let at = self.at + page * PAGE_BYTES + ADDRESS_AT;
        let is_there = at + ADDRESS_BYTES <= self.read;
        is_there.then(|| {
            let expected = self.next.0.saturating_add((page * PAGE_BYTES) as u64);
            u64_at(self.chunk.bytes(), at) == expected
        })
    }

    /// A segment of this log that begins at a place in the chunk.
    fn segment_at(&self, at: usize, (magic, system): (u16, u64)) -> Option<Lsn> {
        let bytes = self.chunk.bytes()[..self.read].get(at..at + LONG_HEADER_BYTES)?;
        let header = PageHeader::read(bytes);
        let is_first = header.magic == magic
            && header.address.0.is_multiple_of(self.segment_bytes)
            && header.fits(magic, header.address, self.segment_bytes)
            && header.timeline >= self.timeline;
        let long = header.long(bytes).filter(|_| is_first)?;
        let is_of_this_log = long.system == system
            && u64::from(long.segment_bytes) == self.segment_bytes
            && long.page_bytes as usize == PAGE_BYTES;
        is_of_this_log.then_some(header.address)
    }

    /// Where the input ended within a segment, once it has: a server's segments are whole files.
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        let is_short = match self.end {
            Some(end) => self.read_to < end,
            None => !self.read_to.0.is_multiple_of(self.segment_bytes),
        };
        let is_cut = self.is_over && is_short && self.left != Some(self.read_to);
        is_cut.then(|| Cut {
            at: self.read_to,
            is_torn: self.is_torn,
            is_empty: self.read_to == self.from,
            is_gone: self.is_gone,
        })
    }

    /// Moves what is left of the chunk to its begin and fills it up.
    fn fill(&mut self) -> Result<(), WalError> {
        self.chunk.bytes_mut().copy_within(self.at..self.read, 0);
        (self.read, self.at) = (self.read - self.at, 0);
        let most = match self.joined {
            Some(_) => CHUNK_BYTES + AHEAD_BYTES,
            None => CHUNK_BYTES,
        };
        while self.read < most {
            match self
                .bytes
                .read(&mut self.chunk.bytes_mut()[self.read..most])
            {
                Ok(0) => {
                    self.is_over = true;
                    break;
                }
                Ok(read) => self.read += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.is_packed && is_unpackers(&error) => {
                    (self.is_over, self.is_torn) = (true, true);
                    break;
                }
                Err(error) => return Err(unreadable(&self.path, &error)),
            }
        }
        Ok(())
    }

    /// The memory that it has read into, to be used again.
    #[must_use]
    pub fn into_chunk(self) -> Chunk {
        self.chunk
    }
}
