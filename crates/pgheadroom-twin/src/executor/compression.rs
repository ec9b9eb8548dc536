//! What `wal_compression` makes of the images of pages.
//!
//! Each image is compressed as the server would, by itself, from its page as it is when the
//! statement that logged it has ended. The page is put together from what the twin knows of it:
//! lengths, values and places are right, transaction numbers, command numbers and checksums are
//! made up, and so is the order of an index's tuples on their page.
//!
//! ```text
//! the first IMAGES_EACH of a fork   each by itself
//! then every SAMPLED_EACH-th        the others shrink as the last one did
//! ```

use std::collections::HashMap;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::compression::Method;
use pgheadroom_layout::decode::{LpFlags, PG_PAGE_LAYOUT_VERSION};
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::pglz;

use crate::checkpoint::ForkId;
use crate::executor::Database;
use crate::executor::table::{Table, Toast};
use crate::page::Tid;
use crate::transaction::Xid;
use crate::wal::Uncompressed;

mod gin_page;
mod hash_page;
mod heap_page;
mod index_page;
mod version;

use gin_page::gin_page;
use hash_page::hash_page;
use heap_page::{chunk_page, heap_page};
use index_page::index_page;

/// Images of a fork that are compressed one by one: some seconds of work.
const IMAGES_EACH: u32 = 4096;
/// Of those that follow, one in so many.
const SAMPLED_EACH: u32 = 16;
/// Header of a compressed image whose page has a hole.
///
/// Source: `SizeOfXLogRecordBlockCompressHeader`, src/include/access/xlogrecord.h (REL_18_STABLE).
const COMPRESS_HEADER: u32 = 2;
/// How far from what a server stores compressed an image is at the border: its bytes, and a share
/// of the page. Of 600 images of recorded runs none was off by more than 7 bytes of 748.
const BORDER_BYTES: usize = 4;
const BORDER_SHARE: usize = 100;
/// A new database's next transaction, about.
const FIRST_XID: u32 = 740;

/// How images of a fork shrank.
#[derive(Debug, Clone, Copy, Default)]
struct Shrunk {
    images: u32,
    /// Bytes of the last one, before and after.
    last: (u32, u32),
    is_at_border: bool,
}

/// By what images are compressed, and what is known of each fork's.
#[derive(Debug, Clone, Default)]
pub(super) struct Compression {
    method: Method,
    forks: HashMap<usize, Shrunk>,
}

impl Database {
    /// Images are compressed from now on.
    pub fn compress_images(&mut self, method: Method) {
        self.compression.method = method;
        self.wal.compress_images();
        for table in &mut self.tables {
            table.keep_for_images();
        }
    }

    /// Images that the last statement, or what came since, has logged are compressed.
    #[inline]
    pub(crate) fn settle_images(&mut self) {
        if self.wal.has_uncompressed() {
            self.compress_waiting();
        }
    }

    fn compress_waiting(&mut self) {
        let method = self.compression.method;
        for image in self.wal.take_uncompressed() {
            if self.copies_online.is_any() && !self.has_fork(image.fork) {
                self.wal.wait_for_pages(image); // those of a copy, until it is in its place
                continue;
            }
            let number = image.fork.0;
            let mut shrunk = self
                .compression
                .forks
                .get(&number)
                .copied()
                .unwrap_or_default();
            shrunk.images += 1;
            let plain = BLCKSZ - image.hole_bytes;
            let by_itself =
                shrunk.images <= IMAGES_EACH || shrunk.images.is_multiple_of(SAMPLED_EACH);
            if by_itself {
                let page = self.page_of(&image);
                let found = page.map(|page| (compressed(method, &page), length(&page)));
                let (found, of) = found.unwrap_or((Compressed::plain(plain), plain));
                shrunk.last = (plain, scaled(found.stored_bytes, of, plain));
                shrunk.is_at_border = found.is_at_border;
            }
            let (before, after) = shrunk.last;
            let stored = scaled(after, before, plain);
            self.compression.forks.insert(number, shrunk);
            if shrunk.is_at_border {
                self.wal.doubt(&image, plain - most_bytes(method, plain));
            }
            if is_worth_it(stored, &image) {
                self.wal.compressed(&image, stored);
            }
        }
    }

    fn has_fork(&self, fork: ForkId) -> bool {
        self.tables.iter().any(|table| {
            let of_toast = |toast: &Table| toast.forks().contains(&fork);
            table.forks().contains(&fork) || table.toast().is_some_and(of_toast)
        })
    }

    /// The page of an image, without its hole; none where it is gone or is not compressed.
    fn page_of(&self, image: &Uncompressed) -> Option<Vec<u8>> {
        let of_table = |table: &Table, is_toast: bool| {
            // A TOAST table's index is not built: its pages never were past the buffers.
            let has_checksums = self.wal.hints_are_logged() && !is_toast;
            page_of(table, has_checksums, image.fork, image.block)
        };
        self.tables.iter().find_map(|table| {
            let toast = table.toast.as_ref().and_then(|toast| {
                if image.fork == toast.table.forks.main {
                    return chunks_of(table, toast, image.block);
                }
                of_table(&toast.table, true)
            });
            toast.or_else(|| of_table(table, false))
        })
    }
}

/// As many bytes for an image of another length.
fn scaled(stored: u32, of: u32, plain: u32) -> u32 {
    let scaled = u64::from(stored) * u64::from(plain) / u64::from(of.max(1));
    u32::try_from(scaled).unwrap_or(plain).min(plain)
}

fn length(page: &[u8]) -> u32 {
    u32::try_from(page.len()).unwrap_or(BLCKSZ)
}

/// Whether a server stores the image compressed to so many bytes.
///
/// Source: `XLogCompressBackupBlock`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
fn is_worth_it(stored: u32, image: &Uncompressed) -> bool {
    let header = if image.hole_bytes > 0 {
        COMPRESS_HEADER
    } else {
        0
    };
    stored + header < BLCKSZ - image.hole_bytes
}

/// What compression makes of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Compressed {
    stored_bytes: u32,
    /// Whether the server's page, which differs in a few bytes, may be stored the other way.
    is_at_border: bool,
}

impl Compressed {
    const fn plain(bytes: u32) -> Self {
        Self {
            stored_bytes: bytes,
            is_at_border: false,
        }
    }
}

/// How many bytes are too many for an image of so many.
fn most_bytes(method: Method, plain: u32) -> u32 {
    u32::try_from(method.most_bytes(plain as usize)).unwrap_or(plain)
}

/// Compresses a page, given without its hole; it stays as it is where that saves too little.
fn compressed(method: Method, page: &[u8]) -> Compressed {
    let most = method.most_bytes(page.len());
    let doubt = BORDER_BYTES + page.len() / BORDER_SHARE;
    let found = match method {
        Method::Pglz => pglz::compress_below(page, most + doubt),
        Method::Lz4 | Method::Zstd => method.compress(page),
    };
    let Some(bytes) = found else {
        return Compressed::plain(length(page));
    };
    let is_stored = bytes.len() < most;
    Compressed {
        stored_bytes: length(if is_stored { &bytes } else { page }),
        is_at_border: bytes.len() + doubt >= most,
    }
}

fn page_of(
    table: &Table,
    has_checksums: bool,
    fork: ForkId,
    block: BlockNumber,
) -> Option<Vec<u8>> {
    if fork == table.forks.main {
        let is_there = (block.0 as usize) < table.heap.pages().len();
        return is_there.then(|| heap_page(table, block, |at, tuple| table.body(at, tuple)));
    }
    if fork == table.forks.fsm {
        return table.heap.fsm().page_bytes(block).map(map_page);
    }
    if fork == table.forks.vm {
        return Some(map_page(table.heap.vm().page_bytes(block)));
    }
    let mut hashes = table.indexes.hashes.iter();
    if let Some(hash) = hashes.find(|hash| hash.index.main() == fork) {
        return (block.0 < hash.index.page_count()).then(|| hash_page(&hash.index, block));
    }
    let mut gins = table.indexes.gins.iter();
    if let Some(gin) = gins.find(|gin| gin.index.forks().contains(&fork)) {
        let [main, _] = gin.index.forks();
        if fork != main {
            return gin.index.fsm().page_bytes(block).map(map_page);
        }
        return (block.0 < gin.index.page_count()).then(|| gin_page(&gin.index, block));
    }
    table.indexes.btrees.iter().find_map(|index| {
        if fork == index.fsm {
            return index.tree.fsm().page_bytes(block).map(map_page);
        }
        let is_there = fork == index.main && block.0 > 0 && block.0 < index.tree.page_count();
        is_there.then(|| index_page(index, &table.values.texts, block, has_checksums))
    })
}

/// A page of the TOAST table of a table, if it is there.
fn chunks_of(table: &Table, toast: &Toast, block: BlockNumber) -> Option<Vec<u8>> {
    let is_there = (block.0 as usize) < toast.table.heap.pages().len();
    is_there.then(|| chunk_page(toast, &table.values.texts, block))
}

/// A number like those of a new database's transactions.
fn xid(xid: Xid) -> [u8; 4] {
    let first = if xid == Xid::INVALID { 0 } else { FIRST_XID };
    (xid.0 + first).to_le_bytes()
}

/// A page of a map, which has no hole.
fn map_page(contents: Vec<u8>) -> Vec<u8> {
    let header = Header {
        lower: SIZE_OF_PAGE_HEADER,
        upper: BLCKSZ,
        special: BLCKSZ,
        ..Header::default()
    };
    let mut page = header.to_bytes();
    page.extend(contents);
    page.resize(BLCKSZ as usize, 0);
    page
}

/// What of a page's header is not the same in all pages.
#[derive(Debug, Clone, Copy, Default)]
struct Header {
    has_checksum: bool,
    flags: u16,
    lower: u32,
    upper: u32,
    special: u32,
    prune_xid: Xid,
}

impl Header {
    /// Source: `PageHeaderData`, src/include/storage/bufpage.h.
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0, 0x68, 0x3a, 0x91, 0x02]; // an LSN
        bytes.extend(if self.has_checksum {
            [0x5d, 0xc4]
        } else {
            [0; 2]
        });
        bytes.extend(self.flags.to_le_bytes());
        for place in [
            self.lower,
            self.upper,
            self.special,
            BLCKSZ | u32::from(PG_PAGE_LAYOUT_VERSION),
        ] {
            bytes.extend(&place.to_le_bytes()[..2]);
        }
        bytes.extend(xid(self.prune_xid));
        bytes
    }
}

/// What a page without its hole is put together from.
struct PageBytes {
    items: Vec<u8>,
    tuples: Vec<Vec<u8>>,
    upper: u32,
    special: Vec<u8>,
}

impl PageBytes {
    fn with_special(special: &[u8]) -> Self {
        Self {
            items: Vec::new(),
            tuples: Vec::new(),
            upper: BLCKSZ - length(special),
            special: special.to_vec(),
        }
    }

    /// The next line pointer, with flags, and its tuple, below the ones before.
    fn add(&mut self, tuple: Vec<u8>, flags: LpFlags, lp_len: u32) {
        self.upper = self.upper.saturating_sub(length(&tuple));
        self.point(self.upper, flags, lp_len);
        self.tuples.push(tuple);
    }

    /// The next line pointer. Source: `ItemIdData`, src/include/storage/itemid.h.
    fn point(&mut self, offset: u32, flags: LpFlags, lp_len: u32) {
        let word = offset | flags.bits() << 15 | lp_len << 17;
        self.items.extend_from_slice(&word.to_le_bytes());
    }

    /// The header, the line pointers, and the tuples from the last to the first, as they lie.
    fn put_together(self, header: Header) -> Vec<u8> {
        let header = Header {
            lower: SIZE_OF_PAGE_HEADER + length(&self.items),
            upper: self.upper,
            special: BLCKSZ - length(&self.special),
            ..header
        };
        let mut page = header.to_bytes();
        page.extend(self.items);
        page.extend(self.tuples.into_iter().rev().flatten());
        page.extend(self.special);
        page
    }
}

/// Source: `ItemPointerData`, src/include/storage/itemptr.h.
fn tid(tid: Tid) -> [u8; 6] {
    let [low, high, higher, highest] = tid.block.0.to_le_bytes();
    let [offset, page] = tid.offset.0.to_le_bytes();
    [higher, highest, low, high, offset, page]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;

    /// Pages on either side of the border are told from those that are far from it.
    #[test]
    fn the_border() {
        let mut seen = [[0; 2]; 2];
        for zeros in (0..4000).step_by(20) {
            let mut page = Text::hashes(7, 6000 - zeros).to_bytes();
            page.resize(6000, 0);
            let found = compressed(Method::Pglz, &page);
            let stored = pglz::compress(&page).map(|bytes| length(&bytes));
            assert_eq!(found.stored_bytes, stored.unwrap_or(6000), "{zeros}");
            seen[usize::from(stored.is_some())][usize::from(found.is_at_border)] += 1;
            if found.is_at_border {
                let near = stored.unwrap_or(4500).abs_diff(4500);
                assert!(near <= 64, "{zeros}: {near} bytes from the border");
            }
        }
        assert!(
            seen.as_flattened().iter().all(|&pages| pages > 0),
            "{seen:?}"
        );
    }
}
