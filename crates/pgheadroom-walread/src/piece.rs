//! A file of WAL: what its first page says, and its pages one after another.
//!
//! Files are read, never mapped: a mapped file that shrinks would kill the process. A compressed
//! one is unpacked while it is read, and never to more than a segment, so that one that unpacks to
//! terabytes costs no more than a segment does.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use pgheadroom_layout::Lsn;
use pgheadroom_layout::lsn::Segments;

use crate::chunk::{CHUNK_BYTES, Chunk};
use crate::error::WalError;
use crate::format::{LONG_HEADER_BYTES, Major, PAGE_BYTES, PageHeader, magic_in_words, u32_at};

/// What a segment's name says: `000000010000000A000000FE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentName {
    /// Its timeline.
    pub timeline: u32,
    log: u32,
    segment: u32,
    /// `.partial`: the last segment of a timeline that was left, or one being received.
    pub is_partial: bool,
}

/// How a file is packed, by its name's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// `.gz`
    Gzip,
    /// `.lz4`
    Lz4,
    /// `.zst`
    Zstd,
}

impl SegmentName {
    /// Takes a file's name apart, without the end that tells the packing.
    ///
    /// Source: `XLogFileName`, src/include/access/xlog_internal.h.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (stem, is_partial) = match name.strip_suffix(".partial") {
            Some(stem) => (stem, true),
            None => (name, false),
        };
        if stem.len() != 24 || !stem.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let part = |at: usize| u32::from_str_radix(&stem[at..at + 8], 16).ok();
        Some(Self {
            timeline: part(0)?,
            log: part(8)?,
            segment: part(16)?,
            is_partial,
        })
    }

    /// Where the segment begins.
    #[must_use]
    pub fn start(&self, segment_bytes: u64) -> Option<Lsn> {
        let per_log = (1_u64 << 32) / segment_bytes;
        (u64::from(self.segment) < per_log)
            .then(|| Lsn((u64::from(self.log) * per_log + u64::from(self.segment)) * segment_bytes))
    }
}

impl Packing {
    /// The packing that a name tells, and the name without it.
    #[must_use]
    pub fn of_name(name: &str) -> (Self, &str) {
        for (end, packing) in [
            (".gz", Self::Gzip),
            (".lz4", Self::Lz4),
            (".zst", Self::Zstd),
        ] {
            if let Some(stem) = name.strip_suffix(end) {
                return (packing, stem);
            }
        }
        (Self::Plain, name)
    }
}

/// A file of WAL whose first page has been looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// What its name says, where it is a segment's.
    pub name: Option<SegmentName>,
    packing: Packing,
    /// Where it begins.
    pub start: Lsn,
    /// Its timeline, by its name, else by its first page.
    pub timeline: u32,
    /// `xlp_sysid`.
    pub system: u64,
    /// Version that wrote it.
    pub major: Major,
    /// The page magic.
    pub magic: u16,
    /// `wal_segment_size`.
    pub segment_bytes: u64,
    /// Where its timeline was left, if that is within it: what lies behind is of no interest.
    pub left: Option<Lsn>,
}

/// What a file turned out to be.
#[derive(Debug)]
pub enum Found {
    /// WAL.
    Piece(Piece),
    /// A segment whose content is that of an older name, or nothing yet.
    NotYetWritten,
}

impl Piece {
    /// Looks at a file's first page.
    ///
    /// # Errors
    /// [`WalError`] for a file that cannot be read or is no WAL that is read here.
    pub fn look(path: &Path) -> Result<Found, WalError> {
        let shown = path.display().to_string();
        let file_name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let (packing, stem) = Packing::of_name(file_name);
        let name = SegmentName::parse(stem);
        let mut head = Vec::with_capacity(LONG_HEADER_BYTES);
        open(path, packing)
            .and_then(|bytes| bytes.take(LONG_HEADER_BYTES as u64).read_to_end(&mut head))
            .map_err(|error| unreadable(path, &error))?;
        if name.is_some() && head.iter().all(|byte| *byte == 0) {
            return Ok(Found::NotYetWritten);
        }
        Self::of_head(path, shown, packing, name, &head)
    }

    fn of_head(
        path: &Path,
        shown: String,
        packing: Packing,
        name: Option<SegmentName>,
        head: &[u8],
    ) -> Result<Found, WalError> {
        let not_wal = |found: &str| WalError::NotWal {
            path: shown.clone(),
            found: found.to_owned(),
        };
        if head.len() < LONG_HEADER_BYTES {
            return Err(not_wal("it ends within the first page's header"));
        }
        let page = PageHeader::read(head);
        let Some(major) = Major::of_magic(page.magic) else {
            return Err(WalError::UnknownMagic {
                path: shown,
                magic: page.magic,
                of: magic_in_words(page.magic),
            });
        };
        let long = page
            .long(head)
            .ok_or_else(|| not_wal("it does not begin with a segment's first page"))?;
        if long.page_bytes as usize != PAGE_BYTES {
            return Err(WalError::PageSize {
                path: shown,
                page_bytes: long.page_bytes,
            });
        }
        let segment_bytes = u64::from(long.segment_bytes);
        if Segments::new(segment_bytes).is_err() {
            return Err(not_wal("its segment size is impossible"));
        }
        if !page.address.0.is_multiple_of(segment_bytes) {
            return Err(not_wal("its first page's address is not a segment's"));
        }
        if name.is_some_and(|name| name.start(segment_bytes) != Some(page.address)) {
            return Ok(Found::NotYetWritten);
        }
        Ok(Found::Piece(Self {
            path: path.to_owned(),
            name,
            packing,
            start: page.address,
            timeline: name.map_or(page.timeline, |name| name.timeline),
            system: long.system,
            major,
            magic: page.magic,
            segment_bytes,
            left: None,
        }))
    }

    /// WAL from a stream that is not a file, whose first bytes have been read.
    ///
    /// # Errors
    /// [`WalError`] as for a file.
    pub fn of_stream(shown: &str, head: &[u8]) -> Result<Self, WalError> {
        match Self::of_head(
            Path::new(shown),
            shown.to_owned(),
            Packing::Plain,
            None,
            head,
        )? {
            Found::Piece(piece) => Ok(piece),
            Found::NotYetWritten => Err(WalError::NotWal {
                path: shown.to_owned(),
                found: "it is empty".to_owned(),
            }),
        }
    }

    /// Where the segment ends that it is; a file of another name may go on.
    #[must_use]
    pub fn end(&self) -> Lsn {
        Lsn(self.start.0.saturating_add(self.segment_bytes))
    }

    /// Whether its first bytes can be skipped without reading them.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.packing == Packing::Plain
    }

    /// Whether every position of its segment is where the name says it is, and can be gone to.
    #[must_use]
    pub fn is_whole_segment(&self) -> bool {
        self.is_plain() && self.name.is_some() && self.left.is_none()
    }

    /// Whether a record begins within so many bytes from the begin of a page, by the page's own
    /// words: not behind the end of what was written or a switched segment's, and not where most of
    /// them are the rest of a record that began before.
    pub(crate) fn goes_on_at(&self, page: Lsn, bytes: u64) -> bool {
        let mut head = Vec::with_capacity(LONG_HEADER_BYTES + 4);
        let read = self
            .open(page.0.saturating_sub(self.start.0))
            .and_then(|file| file.take(head.capacity() as u64).read_to_end(&mut head));
        if read.is_err() || head.len() < LONG_HEADER_BYTES + 4 {
            return false;
        }
        let header = PageHeader::read(&head);
        let left = u64::from(header.left_bytes);
        header.fits(self.magic, page, self.segment_bytes)
            && left <= bytes / 2
            && (left > 0 || u32_at(&head, header.bytes()) > 0)
    }

    fn open(&self, skip: u64) -> io::Result<Box<dyn Read + Send>> {
        let limit = if self.packing == Packing::Plain && self.name.is_none() {
            u64::MAX
        } else {
            self.segment_bytes
        };
        let left = self
            .left
            .map_or(u64::MAX, |left| left.0.saturating_sub(self.start.0));
        let limit = limit.min(left);
        if self.packing == Packing::Plain {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(skip))?;
            return Ok(Box::new(file.take(limit.saturating_sub(skip))));
        }
        let mut bytes = open(&self.path, self.packing)?;
        io::copy(&mut (&mut bytes).take(skip), &mut io::sink())?;
        Ok(Box::new(bytes.take(limit.saturating_sub(skip))))
    }
}

fn open(path: &Path, packing: Packing) -> io::Result<Box<dyn Read + Send>> {
    let file = File::open(path)?;
    Ok(match packing {
        Packing::Plain => Box::new(file),
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Packing::Lz4 => Box::new(lz4::Decoder::new(file)?),
        Packing::Zstd => Box::new(zstd::Decoder::new(file)?),
    })
}

fn unreadable(path: &Path, error: &io::Error) -> WalError {
    WalError::Unreadable {
        path: path.display().to_string(),
        problem: error.to_string(),
    }
}

/// A page's position, the page, and how many bytes of it the file has.
pub type PageRead<'a> = (Lsn, &'a [u8; PAGE_BYTES], usize);

/// The pages of one piece, in order.
pub struct Pages {
    path: PathBuf,
    bytes: Box<dyn Read + Send>,
    chunk: Chunk,
    /// Bytes of the chunk that are read, and that with the last page filled up.
    read: usize,
    filled: usize,
    at: usize,
    next: Lsn,
    segment_bytes: u64,
    /// Where whoever wants less than the file has ends.
    left: Option<Lsn>,
    /// Where the bytes end that were read.
    read_to: Lsn,
    is_over: bool,
    /// Of segments one after another, which no name tells apart: their magic and system.
    joined: Option<(u16, u64)>,
    is_packed: bool,
    /// What is compressed does not unpack any further.
    is_torn: bool,
}

impl Pages {
    /// The pages of a piece from the one on which a position lies.
    ///
    /// # Errors
    /// [`WalError::Unreadable`].
    pub fn of(piece: &Piece, from: Lsn, chunk: Chunk) -> Result<Self, WalError> {
        let skip = from.0.saturating_sub(piece.start.0) / PAGE_BYTES as u64 * PAGE_BYTES as u64;
        let bytes = piece
            .open(skip)
            .map_err(|error| unreadable(&piece.path, &error))?;
        Ok(Self::of_bytes(
            piece,
            Lsn(piece.start.0 + skip),
            bytes,
            chunk,
        ))
    }

    /// The pages of a stream that begins at a position.
    #[must_use]
    pub fn of_bytes(piece: &Piece, start: Lsn, bytes: Box<dyn Read + Send>, chunk: Chunk) -> Self {
        Self {
            path: piece.path.clone(),
            bytes,
            chunk,
            read: 0,
            filled: 0,
            at: 0,
            next: start,
            segment_bytes: piece.segment_bytes,
            left: piece.left,
            read_to: start,
            is_over: false,
            joined: (piece.is_plain() && piece.name.is_none())
                .then_some((piece.magic, piece.system)),
            is_packed: !piece.is_plain(),
            is_torn: false,
        }
    }

    /// The next page, its position and how many bytes of it the file has; None at the end. A page
    /// that the file cuts off ends with zeros.
    ///
    /// # Errors
    /// [`WalError::Unreadable`].
    pub fn next_page(&mut self) -> Result<Option<PageRead<'_>>, WalError> {
        if self.at >= self.filled {
            self.fill()?;
            if self.filled == 0 {
                return Ok(None);
            }
        }
        self.skip_lacking();
        let (lsn, at) = (self.next, self.at);
        let Some(next) = lsn.0.checked_add(PAGE_BYTES as u64) else {
            return Ok(None);
        };
        self.next = Lsn(next);
        self.at += PAGE_BYTES;
        let there = (self.read - at).min(PAGE_BYTES);
        Ok(self.chunk.bytes()[at..]
            .first_chunk()
            .map(|page| (lsn, page, there)))
    }

    /// Goes on where a segment says that it begins, if those before it are not in the input.
    fn skip_lacking(&mut self) {
        let Some((magic, system)) = self.joined else {
            return;
        };
        if !self.next.0.is_multiple_of(self.segment_bytes) {
            return;
        }
        let page = &self.chunk.bytes()[self.at..self.filled];
        if page.len() < LONG_HEADER_BYTES {
            return;
        }
        let header = PageHeader::read(page);
        let is_of_this_log = header.fits(magic, header.address, self.segment_bytes)
            && header.long(page).is_some_and(|long| long.system == system);
        if is_of_this_log && header.address > self.next {
            let lacking = header.address.0 - self.next.0;
            self.read_to = Lsn(self.read_to.0.saturating_add(lacking));
            self.next = header.address;
        }
    }

    /// Whether what is compressed ended before it was unpacked.
    #[must_use]
    pub const fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Where the input ended within a segment, once it has: a server's segments are whole files.
    #[must_use]
    pub fn cut_at(&self) -> Option<Lsn> {
        let is_within = !self.read_to.0.is_multiple_of(self.segment_bytes);
        let is_cut = self.is_over && is_within && self.left != Some(self.read_to);
        is_cut.then_some(self.read_to)
    }

    fn fill(&mut self) -> Result<(), WalError> {
        (self.filled, self.at) = (0, 0);
        while self.filled < CHUNK_BYTES {
            match self.bytes.read(&mut self.chunk.bytes_mut()[self.filled..]) {
                Ok(0) => {
                    self.is_over = true;
                    break;
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Not the system's word but the unpacker's: a file that was cut off, or is damaged.
                Err(error) if self.is_packed && error.raw_os_error().is_none() => {
                    (self.is_over, self.is_torn) = (true, true);
                    break;
                }
                Err(error) => return Err(unreadable(&self.path, &error)),
            }
        }
        self.read = self.filled;
        self.read_to = Lsn(self.read_to.0.saturating_add(self.read as u64));
        let whole = self.filled.next_multiple_of(PAGE_BYTES);
        self.chunk.bytes_mut()[self.filled..whole].fill(0);
        self.filled = whole;
        Ok(())
    }

    /// The memory that it has read into, to be used again.
    #[must_use]
    pub fn into_chunk(self) -> Chunk {
        self.chunk
    }
}
