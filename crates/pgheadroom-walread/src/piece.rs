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

use crate::error::WalError;
use crate::format::{
    LONG_HEADER_BYTES, Major, PAGE_BYTES, PageHeader, SHORT_HEADER_BYTES, magic_in_words, u32_at,
};

const PARTIAL: &str = ".partial";

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

/// How a file is packed, by its name's end: before `.partial`, as `pg_receivewal` has it.
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
        let (stem, is_partial) = match name.strip_suffix(PARTIAL) {
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
    /// The packing that a file's name tells, and the segment, where it is a segment's.
    #[must_use]
    pub fn of_name(name: &str) -> (Self, Option<SegmentName>) {
        let received = name.strip_suffix(PARTIAL);
        for (end, packing) in [
            (".gz", Self::Gzip),
            (".lz4", Self::Lz4),
            (".zst", Self::Zstd),
        ] {
            if let Some(stem) = received.unwrap_or(name).strip_suffix(end) {
                let segment = SegmentName::parse(stem).map(|segment| SegmentName {
                    is_partial: segment.is_partial || received.is_some(),
                    ..segment
                });
                return (packing, segment);
            }
        }
        (Self::Plain, SegmentName::parse(name))
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
    /// The timeline that its first page says: an earlier one's in the segment in which that was
    /// left, which begins with a copy, and in one that is kept for later.
    pub said_timeline: u32,
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
    /// Its first page does not say what it is, but its name does.
    pub is_damaged: bool,
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
    /// What a file is, by its name and its first page's header.
    ///
    /// # Errors
    /// [`WalError`] for a file that cannot be read or is no WAL that is read here.
    pub fn of_file(path: &Path) -> Result<Found, WalError> {
        let shown = path.display().to_string();
        let file_name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let (packing, name) = Packing::of_name(file_name);
        let mut head = Vec::with_capacity(LONG_HEADER_BYTES);
        open(path, packing)
            .and_then(|bytes| bytes.take(LONG_HEADER_BYTES as u64).read_to_end(&mut head))
            .map_err(|error| {
                if packing != Packing::Plain && is_unpackers(&error) {
                    let problem = error.to_string();
                    WalError::Unpacks {
                        path: shown.clone(),
                        problem,
                    }
                } else {
                    unreadable(path, &error)
                }
            })?;
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
            said_timeline: page.timeline,
            system: long.system,
            major,
            magic: page.magic,
            segment_bytes,
            left: None,
            is_damaged: false,
        }))
    }

    /// A segment whose first page does not say what it is, as its name says and another one's first
    /// page does; None where the name cannot be one of that log's.
    #[must_use]
    pub fn by_name(path: &Path, like: &Self) -> Option<Self> {
        let (packing, segment) = Packing::of_name(path.file_name()?.to_str()?);
        let name = segment?;
        Some(Self {
            path: path.to_owned(),
            name: Some(name),
            packing,
            start: name.start(like.segment_bytes)?,
            timeline: name.timeline,
            said_timeline: name.timeline,
            left: None,
            is_damaged: true,
            ..like.clone()
        })
    }

    /// Whether pages behind the first are of this segment: then it is damaged and not, as its first
    /// page has it, one that is kept for later. Pages are written in order, so few tell.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        self.has_pages_of(0)
    }

    /// As [`Self::has_pages`], of a timeline or a later one.
    #[must_use]
    pub fn has_pages_of(&self, timeline: u32) -> bool {
        let pages = self.segment_bytes / PAGE_BYTES as u64;
        (0..u64::BITS)
            .map(|shift| 1 << shift)
            .take_while(|page| *page < pages)
            .any(|page| {
                let skip = page * PAGE_BYTES as u64;
                let mut head = Vec::with_capacity(SHORT_HEADER_BYTES);
                let read = self
                    .open(skip)
                    .and_then(|bytes| bytes.take(SHORT_HEADER_BYTES as u64).read_to_end(&mut head));
                let lsn = Lsn(self.start.0.saturating_add(skip));
                read.is_ok() && head.len() == SHORT_HEADER_BYTES && {
                    let header = PageHeader::read(&head);
                    header.fits(self.magic, lsn, self.segment_bytes) && header.timeline >= timeline
                }
            })
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

    /// Whether its first page, or one behind it, says that it is what it is.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.is_damaged || self.has_pages()
    }

    /// Whether it was still being packed: its end is where the log's was then.
    #[must_use]
    pub fn is_being_packed(&self) -> bool {
        !self.is_plain() && self.name.is_some_and(|name| name.is_partial)
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

    /// Whether segments may come one after another in it, which no name tells apart.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.is_plain() && self.name.is_none()
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

    pub(crate) fn open(&self, skip: u64) -> io::Result<Box<dyn Read + Send>> {
        let limit = if self.is_stream() {
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

/// Not the system's word but the unpacker's: a file that was cut off, is damaged, or is none.
pub(crate) fn is_unpackers(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.kind() != io::ErrorKind::Interrupted
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> WalError {
    WalError::Unreadable {
        path: path.display().to_string(),
        problem: error.to_string(),
    }
}
