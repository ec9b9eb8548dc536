//! Reads the files of a folder and looks at their sums.

#![allow(dead_code)] // each test file uses its part

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgheadroom_walread::piece::Piece;
use pgheadroom_walread::{Chosen, Outcome, Range, WalError, Wanted, choose};

use super::wal_writer::{SEGMENT, Writer, block};

const HEAP: u8 = 10;
pub const START: u64 = 7 * SEGMENT;

pub fn put_in_order(folder: &Path, timeline: Option<u32>) -> Chosen {
    choose(&[folder.to_owned()], timeline).unwrap()
}

pub fn run(pieces: &[Piece], range: Range, threads: usize) -> Result<Outcome, WalError> {
    pgheadroom_walread::run(
        pieces,
        range,
        &Wanted::default(),
        threads,
        &AtomicBool::new(false),
    )
}

pub fn read(folder: &Path) -> Outcome {
    read_range(folder, Range::default())
}

pub fn read_range(folder: &Path, range: Range) -> Outcome {
    let chosen = put_in_order(folder, None);
    run(&chosen.pieces, range, 1).unwrap()
}

/// Sums over relations, over causes and over record types are the total.
pub fn assert_sums(outcome: &Outcome) {
    let tally = &outcome.tally;
    let relations = tally.relations();
    let records: u64 = relations.iter().map(|(_, sums)| sums.total.records).sum();
    let bytes: u64 = relations.iter().map(|(_, sums)| sums.total.bytes).sum();
    let fpi_bytes: u64 = relations.iter().map(|(_, sums)| sums.fpi_bytes).sum();
    let total = tally.total;
    assert_eq!(
        (records, bytes, fpi_bytes),
        (total.records, total.bytes, total.fpi_bytes)
    );
    for (_, sums) in relations {
        let of_causes: u64 = sums.by_cause.iter().map(|(_, count)| count.bytes).sum();
        assert_eq!(of_causes, sums.total.bytes);
    }
    let of_types: u64 = tally.types().map(|(_, _, sums)| sums.bytes).sum();
    assert_eq!(of_types, total.bytes);
}

pub fn long_history(start: u64) -> (Writer, u64, u64) {
    let mut wal = Writer::new(start);
    let (mut records, mut bytes) = (0, 0);
    for n in 0..12_000_u32 {
        let data = (n % 900) as usize;
        let main = if n % 1_000 == 0 { 20_000 } else { 14 };
        let (_, total) = wal.record(HEAP, 0x40, &[block(n % 7 + 1, data)], &vec![1; main]);
        records += 1;
        bytes += u64::from(total);
    }
    (wal, records, bytes)
}
