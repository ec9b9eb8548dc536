//! A segment's file that is cut off, at every place that could be taken for something else.

#![allow(clippy::cast_possible_truncation)] // places in a segment, which memory holds

mod wal_writer;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::{Outcome, Range, Wanted, choose, run};
use wal_writer::{SEGMENT, Writer, block, folder};

const HEAP: u8 = 10;
const START: u64 = 7 * SEGMENT;

fn read_range(folder: &Path, range: Range) -> Outcome {
    let chosen = choose(&[folder.to_owned()], None).unwrap();
    let stop = AtomicBool::new(false);
    run(&chosen.pieces, range, &Wanted::default(), 1, &stop).unwrap()
}

fn read(folder: &Path) -> Outcome {
    read_range(folder, Range::default())
}

/// A segment's file that ends before the segment does is said, wherever it was cut, if the log
/// went on there; what is whole in it counts. Behind the log's end nothing is missing.
#[test]
fn file_cut_short() {
    let folder = folder("cut");
    let mut wal = Writer::new(START);
    let (mut places, mut ends) = (Vec::new(), Vec::new());
    for n in 0..400 {
        let data = if n % 50 == 0 { 9_000 } else { 20 + n % 90 };
        places.push(wal.record(HEAP, 0x40, &[block(1, data)], &[9; 14]));
        ends.push((wal.position() - START) as usize);
    }
    let written = (wal.position() - START) as usize;
    let path = wal.save(&folder).remove(0);
    let whole = fs::read(&path).unwrap();
    let around = |at: usize| at.saturating_sub(40)..(at + 60).min(written);
    let cuts = (1..written / 8192).flat_map(|page| around(page * 8192));
    for cut in cuts.chain([41, 63, 64, 65, written - 1, written]) {
        fs::write(&path, &whole[..cut]).unwrap();
        let outcome = read(&folder);
        let kept = ends
            .iter()
            .filter(|end| **end <= cut.next_multiple_of(8))
            .count() as u64;
        let records = outcome.tally.total.records;
        // Padding that is missing is no loss; the next place is where the next record would be.
        assert!(
            records == kept || records + 1 == kept,
            "{cut}: {records}, {kept}"
        );
        assert_eq!(outcome.gaps.len(), 1, "{cut}");
        let gap = &outcome.gaps[0];
        assert_eq!(gap.to, Lsn(START + SEGMENT));
        assert_eq!(gap.why, "the file ends within its segment");
        assert_eq!(gap.path, path.display().to_string());
        let lost = places
            .get(records as usize)
            .map_or(wal.position(), |place| place.0);
        let begins = lost.next_multiple_of(8192) - lost < 24;
        assert!(
            gap.from.0 == lost || begins || lost % 8192 <= 40,
            "{cut}: {gap:?}"
        );
        assert!(outcome.end.is_none());
    }
    for cut in [
        written + 1,
        written + 30,
        written.next_multiple_of(8192),
        written + 20_000,
    ] {
        fs::write(&path, &whole[..cut]).unwrap();
        let outcome = read(&folder);
        assert!(outcome.gaps.is_empty(), "{cut}: {:?}", outcome.gaps);
        assert_eq!(outcome.tally.total.records, 400);
    }
    // What was not asked for is not missed.
    fs::write(&path, &whole[..30_000]).unwrap();
    let last = places
        .iter()
        .rfind(|(lsn, _)| *lsn < START + 24_000)
        .unwrap();
    let range = Range {
        to: Lsn(last.0),
        ..Range::default()
    };
    assert!(read_range(&folder, range).gaps.is_empty());
}
