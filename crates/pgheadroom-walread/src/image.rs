//! Full-page images: the page back out of a record, and what another compression makes of it.
//!
//! ```text
//! page    before the hole | zeros | behind it
//! image   before the hole + behind it, as it is or compressed (pglz, lz4, zstd)
//! ```
//!
//! Source: `RestoreBlockImage`, src/backend/access/transam/xlogreader.c;
//! `XLogCompressBackupBlock`, xloginsert.c (REL_15_STABLE to REL_18_STABLE).

use pgheadroom_layout::compression::Method;
use pgheadroom_layout::pglz;

use pgheadroom_layout::Lsn;

use crate::format::PAGE_BYTES;
use crate::record::{Compression, Image, Record, RelFile};
use crate::sink::Sink;

/// Source: `SizeOfXLogRecordBlockCompressHeader`, src/include/access/xlogrecord.h.
const COMPRESS_HEADER_BYTES: usize = 2;

/// Why an image does not become a page.
const NOT_KEPT: &str = "an image of which the record has only a part";
const NOT_UNPACKED: &str = "an image that does not unpack to its page";

impl Image {
    /// Bytes of the page without its hole.
    #[must_use]
    pub fn unpacked_bytes(&self) -> usize {
        PAGE_BYTES - usize::from(self.hole_bytes).min(PAGE_BYTES)
    }
}

/// The page without its hole, out of the image of the block at this place of a record.
///
/// # Errors
/// What is wrong with the image, in words; also where the block has none.
pub fn unpack(record: &Record<'_>, place: usize) -> Result<Vec<u8>, &'static str> {
    let block = record.blocks.get(place).ok_or(NOT_KEPT)?;
    let image = block.image.ok_or("a block without an image")?;
    let bytes = record.image_bytes(place);
    if bytes.len() != usize::from(image.bytes) {
        return Err(NOT_KEPT);
    }
    let length = image.unpacked_bytes();
    let unpacked = match image.compression {
        Compression::None => Some(bytes.to_vec()),
        Compression::Pglz => pglz::decompress(bytes, length),
        Compression::Lz4 => {
            let mut page = vec![0; PAGE_BYTES];
            let size = i32::try_from(length).ok();
            lz4::block::decompress_to_buffer(bytes, size, &mut page)
                .ok()
                .map(|written| page[..written.min(PAGE_BYTES)].to_vec())
        }
        Compression::Zstd => zstd::bulk::decompress(bytes, length).ok(),
    };
    unpacked
        .filter(|page| page.len() == length)
        .ok_or(NOT_UNPACKED)
}

/// The page of the block at this place of a record, as replay would put it in place.
///
/// # Errors
/// As [`unpack`].
pub fn restore(record: &Record<'_>, place: usize) -> Result<Vec<u8>, &'static str> {
    let mut page = unpack(record, place)?;
    let image = record.blocks[place].image.ok_or(NOT_KEPT)?;
    let (at, hole) = (usize::from(image.hole_offset), PAGE_BYTES - page.len());
    if at > page.len() {
        return Err(NOT_UNPACKED);
    }
    page.splice(at..at, std::iter::repeat_n(0, hole));
    Ok(page)
}

/// Bytes that an image would have under a compression, the hole's length included.
///
/// # Arguments
/// * `unpacked` - the page without its hole.
#[must_use]
pub fn image_bytes_under(compression: Compression, unpacked: &[u8]) -> usize {
    let method = match compression {
        Compression::None => return unpacked.len(),
        Compression::Pglz => Method::Pglz,
        Compression::Lz4 => Method::Lz4,
        Compression::Zstd => Method::Zstd,
    };
    let extra = if unpacked.len() < PAGE_BYTES {
        COMPRESS_HEADER_BYTES
    } else {
        0
    };
    // The server keeps the page as it is where that saves nothing.
    let packed = method.compress(unpacked);
    packed
        .map(|bytes| bytes.len())
        .filter(|bytes| bytes + extra < unpacked.len())
        .unwrap_or(unpacked.len())
}

/// A page out of the log.
#[derive(Debug, Clone)]
pub struct Restored {
    /// Where the record begins.
    pub lsn: Lsn,
    /// The page's relation, fork and number.
    pub relation: RelFile,
    /// As in [`crate::record::Block`].
    pub fork: u8,
    /// Block number.
    pub blkno: u32,
    /// The page, or what is wrong with its image.
    pub page: Result<Vec<u8>, &'static str>,
}

/// Collects pages, up to a number of them.
#[derive(Debug)]
pub struct Pages {
    from: Lsn,
    to: Lsn,
    most: usize,
    /// What was found.
    pub found: Vec<Restored>,
}

impl Pages {
    /// None yet; those of records that begin at `from` or later and end at `to` or before.
    #[must_use]
    pub const fn new(from: Lsn, to: Lsn, most: usize) -> Self {
        Self {
            from,
            to,
            most,
            found: Vec::new(),
        }
    }
}

impl Sink for Pages {
    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool {
        if end > self.to || self.found.len() >= self.most {
            return false;
        }
        if record.lsn < self.from {
            return true;
        }
        for (place, block) in record.blocks.iter().enumerate() {
            if block.image.is_some() && self.found.len() < self.most {
                self.found.push(Restored {
                    lsn: record.lsn,
                    relation: block.relation,
                    fork: block.fork,
                    blkno: block.blkno,
                    page: restore(record, place),
                });
            }
        }
        true
    }
}
