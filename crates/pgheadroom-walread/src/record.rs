//! One record: its header, its blocks, its main data; every length checked against the others.
//!
//! ```text
//! header 24 | block header... | [origin 3] | [toplevel xid 5] | main data header 2 or 5 |
//!   image and data of block 0 | image and data of block 1 | ... | main data
//! ```
//!
//! Source: src/include/access/xlogrecord.h; `DecodeXLogRecord`,
//! src/backend/access/transam/xlogreader.c (REL_15_STABLE to REL_18_STABLE).

use pgheadroom_layout::Lsn;

use crate::format::{PAGE_BYTES, RECORD_HEADER_BYTES};

/// Source: `XLR_MAX_BLOCK_ID`.
const MAX_BLOCK_ID: u8 = 32;
/// Source: `XLR_BLOCK_ID_DATA_SHORT`, `_DATA_LONG`, `_ORIGIN`, `_TOPLEVEL_XID`.
const ID_DATA_SHORT: u8 = 255;
const ID_DATA_LONG: u8 = 254;
const ID_ORIGIN: u8 = 253;
const ID_TOPLEVEL_XID: u8 = 252;
/// Source: `BKPBLOCK_*`.
const FORK_MASK: u8 = 0x0F;
const HAS_IMAGE: u8 = 0x10;
const HAS_DATA: u8 = 0x20;
const WILL_INIT: u8 = 0x40;
const SAME_REL: u8 = 0x80;
/// Source: `BKPIMAGE_*` (15 and later).
const IMAGE_HAS_HOLE: u8 = 0x01;
const IMAGE_APPLY: u8 = 0x02;
const IMAGE_PGLZ: u8 = 0x04;
const IMAGE_LZ4: u8 = 0x08;
const IMAGE_ZSTD: u8 = 0x10;
const IMAGE_COMPRESSED: u8 = IMAGE_PGLZ | IMAGE_LZ4 | IMAGE_ZSTD;

/// A relation's files. Source: `RelFileLocator`, src/include/storage/relfilelocator.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelFile {
    /// `spcOid`.
    pub tablespace: u32,
    /// `dbOid`; 0 for shared relations.
    pub database: u32,
    /// `relNumber`.
    pub relfilenode: u32,
}

/// How an image is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compression {
    None,
    Pglz,
    Lz4,
    Zstd,
}

/// A full-page image, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// `bimg_len`: bytes in the record.
    pub bytes: u16,
    /// Where the hole begins.
    pub hole_offset: u16,
    /// How long the hole is.
    pub hole_bytes: u16,
    /// How it is compressed.
    pub compression: Compression,
    /// Whether replay puts it in place; else it is there to be compared.
    pub is_applied: bool,
}

/// A block that a record references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its relation.
    pub relation: RelFile,
    /// 0 main, 1 free space map, 2 visibility map, 3 init.
    pub fork: u8,
    /// Block number.
    pub blkno: u32,
    /// The id under which the record knows it.
    pub id: u8,
    /// Bytes of its header in the record.
    pub header_bytes: u16,
    /// Bytes of its data.
    pub data_bytes: u16,
    /// Whether replay makes the page anew: such a block never has an image.
    pub is_new: bool,
    /// Its image.
    pub image: Option<Image>,
}

impl Block {
    /// Bytes of its image, 0 without one.
    #[must_use]
    pub fn image_bytes(&self) -> u32 {
        self.image.map_or(0, |image| u32::from(image.bytes))
    }
}

/// A record's fixed header. Source: `XLogRecord`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `xl_tot_len`.
    pub total_bytes: u32,
    /// `xl_xid`.
    pub xid: u32,
    /// `xl_prev`.
    pub prev: Lsn,
    /// `xl_info`, with the bits of the record's type in its upper half.
    pub info: u8,
    /// `xl_rmid`.
    pub rmgr: u8,
    /// `xl_crc`.
    pub crc: u32,
}

impl Header {
    /// Reads the first 24 bytes of a record; zeros where there are fewer.
    #[must_use]
    #[inline]
    pub fn read(bytes: &[u8]) -> Self {
        Self::of(bytes.first_chunk().unwrap_or(&[0; RECORD_HEADER_BYTES]))
    }

    /// Reads a record's header; of an array of known length each place is known to be there.
    #[must_use]
    #[inline]
    pub fn of(head: &[u8; RECORD_HEADER_BYTES]) -> Self {
        let four =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Self {
            total_bytes: four(0),
            xid: four(4),
            prev: Lsn(u64::from(four(12)) << 32 | u64::from(four(8))),
            info: head[16],
            rmgr: head[17],
            crc: four(20),
        }
    }
}

/// The checksum of a record's payload so far, to which more is added.
///
/// Source: `ValidXLogRecord`, xlogreader.c: first what follows the header, then the header.
#[must_use]
pub fn crc_of(header: &[u8], payload_crc: u32) -> u32 {
    crc32c::crc32c_append(payload_crc, &header[..RECORD_HEADER_BYTES - 4])
}

/// A record taken apart; refers to the bytes that were read.
#[derive(Debug)]
pub struct Record<'a> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Its fixed header.
    pub header: Header,
    /// The blocks that it references, by id.
    pub blocks: &'a [Block],
    /// The xid of the transaction whose part wrote it, where the record says so.
    pub toplevel_xid: Option<u32>,
    /// `data_bytes` of main data.
    pub main_bytes: u32,
    payload_at: usize,
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Takes a record apart.
    ///
    /// # Arguments
    /// * `header` - its first bytes, read.
    /// * `bytes` - the record, or of a very long one the beginning, which has all headers.
    /// * `blocks` - room for its blocks, used again for each record.
    ///
    /// # Errors
    /// What is wrong, in words; the checksum is not looked at.
    #[inline]
    pub fn decode(
        lsn: Lsn,
        header: Header,
        bytes: &'a [u8],
        blocks: &'a mut Vec<Block>,
    ) -> Result<Self, &'static str> {
        let total = header.total_bytes as usize;
        let mut cursor = Cursor {
            bytes,
            at: RECORD_HEADER_BYTES,
        };
        blocks.clear();
        let (mut main_bytes, mut toplevel_xid, mut data_total) = (0, None, 0_usize);
        while total.saturating_sub(cursor.at) > data_total {
            match cursor.u8()? {
                ID_DATA_SHORT => {
                    main_bytes = u32::from(cursor.u8()?);
                    data_total += main_bytes as usize;
                    break;
                }
                ID_DATA_LONG => {
                    main_bytes = cursor.u32()?;
                    data_total = data_total.saturating_add(main_bytes as usize);
                    break;
                }
                ID_ORIGIN => {
                    cursor.u16()?;
                }
                ID_TOPLEVEL_XID => toplevel_xid = Some(cursor.u32()?),
                id if id <= MAX_BLOCK_ID => {
                    let last = blocks.last();
                    if last.is_some_and(|last| id <= last.id) {
                        return Err("block ids out of order");
                    }
                    let block = cursor.block(id, last)?;
                    data_total += usize::from(block.data_bytes) + block.image_bytes() as usize;
                    blocks.push(block);
                }
                _ => return Err("a block id that there is not"),
            }
        }
        if cursor.at.checked_add(data_total) != Some(total) {
            return Err("lengths that do not add up to the record's");
        }
        Ok(Self {
            lsn,
            header,
            blocks,
            toplevel_xid,
            main_bytes,
            payload_at: cursor.at,
            bytes,
        })
    }

    /// `xl_info` without the bits that the insertion uses.
    #[must_use]
    pub const fn info(&self) -> u8 {
        self.header.info & 0xF0
    }

    /// Main data; of a very long record as much as was kept.
    #[must_use]
    pub fn main(&self) -> &'a [u8] {
        let from = (self.header.total_bytes - self.main_bytes) as usize;
        self.bytes.get(from..).unwrap_or_default()
    }

    /// Data of the block at this place in [`Self::blocks`], where it was kept whole.
    #[must_use]
    pub fn block_data(&self, index: usize) -> &'a [u8] {
        let mut at = self.payload_at;
        for block in &self.blocks[..index] {
            at += block.image_bytes() as usize + usize::from(block.data_bytes);
        }
        let block = &self.blocks[index];
        at += block.image_bytes() as usize;
        self.bytes
            .get(at..at + usize::from(block.data_bytes))
            .unwrap_or_default()
    }

    /// The image of the block at this place in [`Self::blocks`], as it is in the record.
    #[must_use]
    pub fn image_bytes(&self, index: usize) -> &'a [u8] {
        let mut at = self.payload_at;
        for block in &self.blocks[..index] {
            at += block.image_bytes() as usize + usize::from(block.data_bytes);
        }
        let bytes = self.blocks[index].image_bytes() as usize;
        self.bytes.get(at..at + bytes).unwrap_or_default()
    }
}

/// Reads forward, never past the end.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

const SHORT: &str = "a header that ends too early";

impl<'a> Cursor<'a> {
    #[inline]
    fn take<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], &'static str> {
        let taken = self.rest().copied();
        self.at += BYTES;
        taken
    }

    #[inline]
    fn rest<const BYTES: usize>(&self) -> Result<&'a [u8; BYTES], &'static str> {
        let rest = self.bytes.get(self.at..).ok_or(SHORT)?;
        rest.first_chunk().ok_or(SHORT)
    }

    #[inline]
    fn u8(&mut self) -> Result<u8, &'static str> {
        Ok(self.take::<1>()?[0])
    }

    #[inline]
    fn u16(&mut self) -> Result<u16, &'static str> {
        self.take().map(u16::from_le_bytes)
    }

    #[inline]
    fn u32(&mut self) -> Result<u32, &'static str> {
        self.take().map(u32::from_le_bytes)
    }

    #[inline]
    fn block(&mut self, id: u8, last: Option<&Block>) -> Result<Block, &'static str> {
        let begin = self.at - 1;
        let fork_flags = self.u8()?;
        let data_bytes = self.u16()?;
        if (fork_flags & HAS_DATA != 0) != (data_bytes > 0) {
            return Err("a block whose data and flags contradict each other");
        }
        let image = if fork_flags & HAS_IMAGE == 0 {
            None
        } else {
            Some(self.image()?)
        };
        let relation = if fork_flags & SAME_REL == 0 {
            // Read where it is: what is copied first is waited for.
            let numbers: &[u8; 12] = self.rest()?;
            self.at += numbers.len();
            let four = |at: usize| {
                u32::from_le_bytes([
                    numbers[at],
                    numbers[at + 1],
                    numbers[at + 2],
                    numbers[at + 3],
                ])
            };
            RelFile {
                tablespace: four(0),
                database: four(4),
                relfilenode: four(8),
            }
        } else {
            last.ok_or("a first block of the same relation as the one before")?
                .relation
        };
        let blkno = self.u32()?;
        Ok(Block {
            relation,
            fork: fork_flags & FORK_MASK,
            blkno,
            id,
            header_bytes: u16::try_from(self.at - begin).unwrap_or(u16::MAX),
            data_bytes,
            is_new: fork_flags & WILL_INIT != 0,
            image,
        })
    }

    fn image(&mut self) -> Result<Image, &'static str> {
        let bytes = self.u16()?;
        let hole_offset = self.u16()?;
        let flags = self.u8()?;
        let compression = match flags & IMAGE_COMPRESSED {
            0 => Compression::None,
            IMAGE_PGLZ => Compression::Pglz,
            IMAGE_LZ4 => Compression::Lz4,
            IMAGE_ZSTD => Compression::Zstd,
            _ => return Err("an image compressed in several ways"),
        };
        let has_hole = flags & IMAGE_HAS_HOLE != 0;
        let page_bytes = u16::try_from(PAGE_BYTES).unwrap_or(u16::MAX);
        if bytes > page_bytes {
            return Err("an image longer than a page");
        }
        let hole_bytes = match (compression, has_hole) {
            (Compression::None, _) => page_bytes - bytes,
            (_, true) => self.u16()?,
            (_, false) => 0,
        };
        let holed = hole_offset > 0 && hole_bytes > 0 && bytes < page_bytes;
        let hole_ends = u32::from(hole_offset) + u32::from(hole_bytes);
        if has_hole && !(holed && hole_ends <= u32::from(page_bytes)) {
            return Err("an image with an impossible hole");
        }
        if !has_hole && (hole_offset > 0 || hole_bytes > 0) {
            return Err("an image with a hole that its flags deny");
        }
        if compression != Compression::None && bytes == page_bytes {
            return Err("a compressed image as long as a page");
        }
        Ok(Image {
            bytes,
            hole_offset,
            hole_bytes,
            compression,
            is_applied: flags & IMAGE_APPLY != 0,
        })
    }
}
