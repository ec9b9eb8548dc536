//! How far `wal_compression = pglz` shrinks the images of pages, estimated.
//!
//! A page's image is compressed as the server would, but the page is put together from what the
//! twin knows of its rows: lengths, values and places are right, transaction numbers, command
//! numbers and checksums are made up, and the strings of an index are other ones of the same
//! length. A few pages of each fork, as loaded, give the share that compression leaves of it;
//! pages that the run fills compress as they did. Chunks of long values, which are compressed
//! already or do not compress, stay as they are.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::align::maxalign;

use crate::btree::Btree;
use crate::executor::Database;
use crate::executor::table::Table;
use crate::page::{LinePointer, Tid};
use crate::pglz;

/// Pages of a fork that are looked at.
const SAMPLE_PAGES: usize = 12;
/// Page header. Source: `SizeOfPageHeaderData`, src/include/storage/bufpage.h.
const HEADER: [u8; 24] = [
    0, 0, 0, 0, 0x68, 0x3a, 0x91, 0x02, 0x5d, 0xc4, 0, 0, 0x90, 0x01, 0xe0, 0x02, 0, 0x20, 4, 0x20,
    0, 0, 0, 0,
];
/// Bytes of a map's page that are not zero, about.
const MAP_BYTES: usize = 200;

impl Database {
    /// Estimates how images compress, from the pages as they are now.
    pub fn estimate_compression(&mut self) {
        let map = share_left(&[map_page()]);
        for table in &self.tables {
            let toast = table.toast.iter().map(|toast| (&toast.table, 1.0));
            for (table, share) in toast.chain([(table, heap_share(table))]) {
                self.wal.set_compression(table.main, share);
                self.wal.set_compression(table.fsm, map);
                self.wal.set_compression(table.vm, map);
                for index in &table.indexes {
                    self.wal
                        .set_compression(index.main, index_share(&index.tree));
                    self.wal.set_compression(index.fsm, map);
                }
            }
        }
    }
}

/// The share that compression leaves of these pages, given without their holes; one that it would
/// not shrink stays as it is.
///
/// Source: `XLogCompressBackupBlock`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
fn share_left(pages: &[Vec<u8>]) -> f64 {
    let (mut plain, mut stored) = (0, 0);
    for page in pages {
        plain += page.len();
        let compressed = pglz::compress(page).map_or(page.len(), |bytes| bytes.len());
        stored += compressed.min(page.len());
    }
    if plain == 0 {
        return 1.0;
    }
    stored as f64 / plain as f64
}

/// Evenly spread numbers below `count`.
fn sample(count: usize) -> impl Iterator<Item = usize> {
    let step = (count / SAMPLE_PAGES).max(1);
    (0..count).step_by(step).take(SAMPLE_PAGES)
}

fn heap_share(table: &Table) -> f64 {
    let pages: Vec<Vec<u8>> = sample(table.heap.pages().len())
        .map(|block| heap_page(table, BlockNumber(u32::try_from(block).unwrap_or(u32::MAX))))
        .collect();
    share_left(&pages)
}

fn index_share(tree: &Btree) -> f64 {
    let pages: Vec<Vec<u8>> = sample(tree.page_count() as usize - 1)
        .map(|page| {
            index_page(
                tree,
                BlockNumber(u32::try_from(page + 1).unwrap_or(u32::MAX)),
            )
        })
        .collect();
    share_left(&pages)
}

/// A heap page without its hole.
fn heap_page(table: &Table, block: BlockNumber) -> Vec<u8> {
    let mut items = Vec::new();
    let mut data = Vec::new();
    let mut tuples: Vec<Vec<u8>> = Vec::new();
    let mut upper = 8192;
    let page = &table.heap.pages()[block.0 as usize];
    for item in page.items() {
        let LinePointer::Normal(tuple) = item else {
            items.extend_from_slice(&[0; 4]);
            continue;
        };
        table
            .row_type
            .write_data(table.slots_of(tuple.row), &table.texts, &mut data);
        let hoff = usize::from(tuple.lp_len) - data.len().min(usize::from(tuple.lp_len) - 24);
        let mut bytes = Vec::with_capacity(usize::from(tuple.lp_len) + 8);
        bytes.extend_from_slice(&(tuple.xmin.0 + 700).to_le_bytes());
        bytes.extend_from_slice(&tuple.xmax.0.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]); // command numbers
        bytes.extend_from_slice(&tid(tuple.next));
        bytes.extend_from_slice(&[u8::try_from(table.columns().len()).unwrap_or(u8::MAX), 0]);
        bytes.extend_from_slice(&[0x02, 0x09, u8::try_from(hoff).unwrap_or(24)]);
        bytes.resize(hoff, 0xff); // the bitmap of NULLs
        bytes.extend_from_slice(&data);
        bytes.resize(maxalign(u32::from(tuple.lp_len)) as usize, 0);
        upper -= bytes.len();
        items.extend_from_slice(&line_pointer(upper, tuple.lp_len));
        tuples.push(bytes);
    }
    put_together(&items, &tuples, &[])
}

/// A B-tree page without its hole.
fn index_page(tree: &Btree, block: BlockNumber) -> Vec<u8> {
    let page = tree.page(block);
    let mut items = Vec::new();
    let mut tuples: Vec<Vec<u8>> = Vec::new();
    let mut upper = 8176;
    for (position, item) in page.items().iter().enumerate() {
        let length = item.bytes() as usize;
        let mut bytes = Vec::with_capacity(length);
        let tids = item.tids();
        bytes.extend_from_slice(&tids.first().map_or([0; 6], |&at| tid(at)));
        bytes.extend_from_slice(&u16::try_from(length).unwrap_or(0).to_le_bytes());
        for &code in page.key(position) {
            bytes.extend_from_slice(&code.to_le_bytes());
        }
        if tids.len() > 1 {
            bytes.truncate(16);
            bytes.extend(tids.iter().flat_map(|&at| tid(at)));
        }
        // What is left of strings: digits that do not repeat.
        let mut state = page.key(position).iter().fold(0_u64, |sum, &code| {
            sum.wrapping_mul(31).wrapping_add(code.unsigned_abs())
        });
        while bytes.len() < length {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            bytes.push(b"0123456789abcdef"[(state >> 60) as usize]);
        }
        bytes.truncate(length);
        upper -= length;
        items.extend_from_slice(&line_pointer(upper, u16::try_from(length).unwrap_or(0)));
        tuples.push(bytes);
    }
    put_together(&items, &tuples, &[0; 16])
}

/// A page of a map: nearly all zeros.
fn map_page() -> Vec<u8> {
    let mut page = HEADER.to_vec();
    page.extend((0..MAP_BYTES).map(|at| u8::try_from(at % 7).unwrap_or(0)));
    page.resize(8192, 0);
    page
}

/// The header, the line pointers, and the tuples from the last to the first, as they lie.
fn put_together(items: &[u8], tuples: &[Vec<u8>], special: &[u8]) -> Vec<u8> {
    let mut page = HEADER.to_vec();
    page.extend_from_slice(items);
    for tuple in tuples.iter().rev() {
        page.extend_from_slice(tuple);
    }
    page.extend_from_slice(special);
    page
}

/// Source: `ItemPointerData`, src/include/storage/itemptr.h.
fn tid(tid: Tid) -> [u8; 6] {
    let [low, high, higher, highest] = tid.block.0.to_le_bytes();
    let [offset, page] = tid.offset.0.to_le_bytes();
    [higher, highest, low, high, offset, page]
}

/// Source: `ItemIdData`, src/include/storage/itemid.h.
fn line_pointer(offset: usize, length: u16) -> [u8; 4] {
    let offset = u32::try_from(offset).unwrap_or(0);
    (offset | 1 << 15 | u32::from(length) << 17).to_le_bytes()
}
