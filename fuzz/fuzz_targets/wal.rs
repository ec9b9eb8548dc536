//! Pages of WAL: no panic, no endless loop, no more memory than the input, and sums that add up,
//! whichever way records are summed.
//!
//! The first byte says what is put right before reading, for chance seldom does: 1 the headers of
//! pages, 2 the checksums of records that lie whole on their page, both that records follow each
//! other over the ends of pages; what is left, the version. The pages follow.

#![no_main]

#[path = "../../crates/pgheadroom-walread/tests/foreign_pages/mod.rs"]
mod foreign_pages;

use foreign_pages::{
    Foreign, PAGE, SEGMENT, behind_header, put_checksums_right, put_records_right,
};
use libfuzzer_sys::fuzz_target;
use pgheadroom_layout::Lsn;
use pgheadroom_walread::format::Major;

const START: u64 = 3 * SEGMENT;
const PAGES_MOST: usize = 8;
/// `XLP_LONG_HEADER` of a page's `xlp_info`.
const LONG_HEADER: u8 = 2;
const VERSIONS: [(Major, u16); 5] = [
    (Major::V15, 0xD110),
    (Major::V16, 0xD113),
    (Major::V17, 0xD116),
    (Major::V18, 0xD118),
    (Major::V19, 0xD122),
];

fuzz_target!(|data: &[u8]| {
    let Some((how, pages)) = data.split_first() else {
        return;
    };
    // A page says by its header's length whether a segment begins with it.
    let start = match pages.get(2) {
        Some(info) if info & LONG_HEADER != 0 => START,
        _ => START + PAGE as u64,
    };
    let (major, magic) = VERSIONS[usize::from(how >> 2) % VERSIONS.len()];
    let whole = pages.len().min(PAGES_MOST * PAGE).next_multiple_of(PAGE);
    let mut bytes = pages[..pages.len().min(whole)].to_vec();
    bytes.resize(whole, 0);
    if how & 1 != 0 {
        put_headers_right(&mut bytes, start, magic);
    }
    match how & 3 {
        2 => put_checksums_right(&mut bytes, first_record),
        3 => put_records_right(&mut bytes, start),
        _ => {}
    }
    let foreign = Foreign {
        bytes: &bytes,
        start: Lsn(start),
        major,
        magic,
    };
    foreign.summed();
    foreign.asked_otherwise();
});

fn put_headers_right(bytes: &mut [u8], start: u64, magic: u16) {
    for (n, page) in bytes.chunks_exact_mut(PAGE).enumerate() {
        let lsn = start + (n * PAGE) as u64;
        page[..2].copy_from_slice(&magic.to_le_bytes());
        page[3] = 0;
        let long = if lsn.is_multiple_of(SEGMENT) {
            LONG_HEADER
        } else {
            0
        };
        page[2] = page[2] & 0x0D | long;
        page[8..16].copy_from_slice(&lsn.to_le_bytes());
    }
}

/// Behind the header, and what is left of a record of the page before.
fn first_record(_: usize, page: &[u8]) -> usize {
    behind_header(page)
}
