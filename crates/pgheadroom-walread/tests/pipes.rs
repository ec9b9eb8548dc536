//! Segments of two timelines, and ones that are kept for later, where no name tells them apart.

#![allow(clippy::cast_possible_truncation)] // places in a segment, which memory holds

mod summing;
mod wal_writer;

use std::fs;
use std::sync::atomic::AtomicBool;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::run::run_stream;
use pgheadroom_walread::{Outcome, Range, WalError, Wanted};
use summing::{START, long_history, put_in_order, read, read_range};
use wal_writer::{SEGMENT, Writer, block, folder, name};

const SEGMENT_BYTES: usize = SEGMENT as usize;
const XLOG: u8 = 0;
const HEAP: u8 = 10;
const END_OF_RECOVERY: u8 = 0x90;
/// Where the first timeline was left: within the second segment.
const LEFT: usize = SEGMENT_BYTES + 400_000;
const HISTORY: &[u8] = b"1\t0/81A8000\tno recovery target specified\n";

fn read_pipe(parts: &[&[u8]]) -> Result<Outcome, WalError> {
    let bytes = Box::new(std::io::Cursor::new(parts.concat()));
    let (range, wanted) = (Range::default(), Wanted::default());
    let stop = AtomicBool::new(false);
    run_stream("-", bytes, range, &wanted, false, &stop).map(|(_, outcome)| outcome)
}

/// The log of two timelines: the first one's segments, and the second one's from the one on in
/// which the first was left; how many records the line has that leads to the second.
fn two_timelines() -> (Vec<u8>, Vec<u8>, u64) {
    let mut first = Writer::new(START);
    let mut records = 0;
    let (mut whole, mut prev) = (0, 0);
    while first.bytes.len() < 4 * SEGMENT_BYTES {
        first.record(HEAP, 0x40, &[block(records as u32 % 5 + 1, 230)], &[0; 14]);
        if first.bytes.len() <= LEFT {
            (whole, prev) = (first.bytes.len(), first.prev);
            records += 1;
        }
    }
    let mut second = Writer::new(START);
    second.bytes = first.bytes[..whole].to_vec();
    (second.prev, second.timeline) = (prev, 2);
    let of_timelines = [2_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
    second.record(
        XLOG,
        END_OF_RECOVERY,
        &[],
        &[vec![0; 8], of_timelines].concat(),
    );
    for n in 0..100 {
        second.record(HEAP, 0x40, &[block(n % 5 + 1, 230)], &[0; 14]);
    }
    second.bytes.resize(2 * SEGMENT_BYTES, 0);
    first.bytes.truncate(4 * SEGMENT_BYTES);
    let second = second.bytes.split_off(SEGMENT_BYTES);
    (first.bytes, second, records + 101)
}

fn segment(bytes: &[u8], number: usize) -> &[u8] {
    &bytes[number * SEGMENT_BYTES..][..SEGMENT_BYTES]
}

/// The second timeline begins with a copy: what was read comes again, wherever in the pipe, and is
/// refused. So it is behind the text of a history file, as `cat pg_wal/*` has it.
#[test]
fn segment_again() {
    let (wal, _, _) = long_history(START);
    let bytes = &wal.bytes[..2 * SEGMENT_BYTES];
    let (first, second, _) = two_timelines();
    let pipes: [&[&[u8]]; 4] = [
        &[bytes, segment(bytes, 1)],
        &[&first[..2 * SEGMENT_BYTES], HISTORY, &second],
        &[&first[..3 * SEGMENT_BYTES], &second],
        &[&first[..3 * SEGMENT_BYTES], HISTORY, &second],
    ];
    for pipe in pipes {
        let Err(WalError::Twice { lsn, .. }) = read_pipe(pipe) else {
            panic!("it is read on")
        };
        assert_eq!(lsn, Lsn(START + SEGMENT));
    }
}

/// What the second timeline's server keeps for later are segments of the first, older ones and ones
/// from behind the place at which it was left.
#[test]
fn kept_for_later() {
    let (first, second, records) = two_timelines();
    let mut older = Writer::new(START - 2 * SEGMENT);
    while older.bytes.len() < 2 * SEGMENT_BYTES {
        older.record(HEAP, 0x40, &[block(1, 230)], &[0; 14]);
    }
    let line: [&[u8]; 2] = [segment(&first, 0), &second];
    let kept = [
        vec![segment(&first, 2)],
        vec![segment(&first, 3), segment(&first, 2)],
        vec![
            segment(&older.bytes, 0),
            segment(&first, 3),
            segment(&older.bytes, 1),
        ],
    ];
    for kept in kept {
        let outcome = read_pipe(&[&line[..], &kept].concat()).unwrap();
        assert!(outcome.gaps.is_empty(), "{:?}", outcome.gaps);
        assert_eq!(outcome.tally.total.records, records);
    }
}

/// As files: one has the very name that its content says, and is none of the second timeline's.
#[test]
fn kept_under_its_own_number() {
    let folder = folder("own-number");
    let (first, second, records) = two_timelines();
    let save = |timeline: u32, number: u64, bytes: &[u8]| {
        fs::write(folder.join(name(timeline, START + number * SEGMENT)), bytes).unwrap();
    };
    save(1, 0, segment(&first, 0));
    save(2, 1, &second);
    save(2, 2, segment(&first, 2));
    save(2, 3, segment(&first, 3));
    let check = |range: Range, expected: u64| {
        let outcome = read_range(&folder, range);
        assert!(outcome.gaps.is_empty(), "{:?}", outcome.gaps);
        assert_eq!(outcome.tally.total.records, expected);
    };
    check(Range::default(), records);
    let history = format!("1\t{}\tx\n", Lsn(START + LEFT as u64));
    fs::write(folder.join("00000002.history"), history).unwrap();
    check(Range::default(), records);
    assert_eq!(put_in_order(&folder, None).not_yet_written.len(), 2);
    // By the history alone, where what tells it lies before the range.
    let outcome = read(&folder);
    let behind = Range {
        from: Lsn(outcome.tally.spans[0].1.0 - 2_000),
        ..Range::default()
    };
    check(behind, read_range(&folder, behind).tally.total.records);
    // The one before it holds another's log: nothing follows that, so nothing is missing.
    save(2, 2, segment(&first, 1));
    check(Range::default(), records);
    assert_eq!(put_in_order(&folder, None).not_yet_written.len(), 2);
    // It has written to one since: its first pages are the second's, the others the first's.
    let mut written = segment(&first, 2).to_vec();
    written[4..8].copy_from_slice(&2_u32.to_le_bytes());
    save(2, 2, &written);
    assert_eq!(put_in_order(&folder, None).not_yet_written.len(), 1);
}
