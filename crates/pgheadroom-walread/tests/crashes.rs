//! Logs of servers that went on after a crash of the operating system, which had lost a part of the
//! log and kept a later one.

#![allow(clippy::cast_possible_truncation)] // places in a segment, which memory holds

mod summing;
mod wal_writer;

use std::fs;
use std::path::Path;

use pgheadroom_layout::Lsn;
use summing::{START, assert_sums, put_in_order, read, run};
use wal_writer::{Folder, SEGMENT, Writer, block, folder};

const PAGE: usize = 8192;
const XLOG: u8 = 0;
const TRANSACTION: u8 = 1;
const HEAP: u8 = 10;
/// Seconds since 1970; of the second start.
const STARTED: i64 = 1_790_000_000;
const MAGICS: [u16; 5] = [0xD110, 0xD113, 0xD116, 0xD118, 0xD122];

/// How long the server was down, in seconds, and the numbers of its transactions before and after.
#[derive(Clone, Copy)]
struct Crash {
    down_s: i64,
    xid_before: u32,
    xid_after: u32,
    commits: bool,
}

const CRASH: Crash = Crash {
    down_s: 20,
    xid_before: 5_000,
    xid_after: 5_000,
    commits: true,
};

fn checkpoint(wal: &mut Writer, info: u8, next_xid: u32, time_s: i64) {
    if wal.position().is_multiple_of(PAGE as u64) {
        wal.record(HEAP, 0x40, &[block(1, 9)], &[0; 14]);
    }
    let is_19 = wal.magic == 0xD122;
    let mut main = vec![0; if is_19 { 96 } else { 88 }];
    main[..8].copy_from_slice(&wal.position().to_le_bytes());
    let (xid_at, time_at) = if is_19 { (32, 72) } else { (24, 64) };
    main[xid_at..xid_at + 4].copy_from_slice(&next_xid.to_le_bytes());
    main[time_at..time_at + 8].copy_from_slice(&time_s.to_le_bytes());
    let xid = std::mem::take(&mut wal.xid);
    wal.record(XLOG, info, &[], &main);
    wal.xid = xid;
}

/// An update; every second time a commit where a time of it is given.
fn change(wal: &mut Writer, n: usize, commits_s: Option<i64>) {
    match commits_s {
        Some(at) if n % 2 == 1 => {
            let since_2000 = (at - 946_684_800) * 1_000_000 + n as i64;
            wal.record(TRANSACTION, 0, &[], &since_2000.to_le_bytes())
        }
        _ => wal.record(
            HEAP,
            0x40,
            &[block(n as u32 % 5 + 1, 20 + n % 300)],
            &[0; 14],
        ),
    };
}

/// A log of three segments that lost the pages from one on up to another, by their numbers, and
/// went on there; how many records it has and where it ends.
fn crashed(folder: &Path, magic: u16, crash: Crash, lost: (usize, usize)) -> (u64, u64) {
    let write = |upto: usize| {
        let mut wal = Writer::new(START);
        wal.magic = magic;
        wal.xid = crash.xid_before;
        checkpoint(&mut wal, 0x10, 4_000, STARTED - 900);
        let (mut whole, mut n) = (wal.bytes.len(), 1);
        let mut prev = wal.prev;
        while wal.bytes.len() < upto {
            change(&mut wal, n, crash.commits.then_some(STARTED - crash.down_s));
            if wal.bytes.len() <= upto {
                (whole, prev, n) = (wal.bytes.len(), wal.prev, n + 1);
            }
        }
        (wal, whole, prev)
    };
    let (before, _, _) = write(2 * SEGMENT as usize + 300_000);
    let (mut wal, whole, prev) = write(lost.0 * PAGE);
    // What recovery finds: the last record that is whole before the lost page.
    let is_cut = whole < lost.0 * PAGE;
    wal.bytes.truncate(lost.0 * PAGE);
    wal.prev = prev;
    if is_cut {
        // The aborted record stays where it is.
        wal.flags = if magic == 0xD122 { 0x4 } else { 0x8 };
        let aborted = (START + whole as u64).to_le_bytes();
        wal.xid = 0;
        wal.record(XLOG, 0xD0, &[], &[aborted, [0; 8]].concat());
    }
    checkpoint(&mut wal, 0x00, crash.xid_after, STARTED);
    wal.xid = crash.xid_after;
    for n in 0..80 {
        change(&mut wal, n, crash.commits.then_some(STARTED + 1));
    }
    let end = wal.position();
    let (mut bytes, written) = (before.bytes.clone(), wal.bytes.len());
    bytes[lost.0 * PAGE..lost.1 * PAGE].fill(0);
    bytes[..written].copy_from_slice(&wal.bytes);
    bytes[written..written.next_multiple_of(PAGE)].fill(0);
    let mut alone = Writer::new(START);
    alone.bytes.clone_from(&wal.bytes);
    alone.save(folder);
    let records = read(folder).tally.total.records;
    let mut saved = Writer::new(START);
    saved.bytes = bytes;
    saved.save(folder);
    (records, end)
}

fn check(test: &str, crash: Crash, lost: (usize, usize)) {
    for magic in MAGICS {
        let folder: Folder = folder(test);
        let (records, end) = crashed(&folder, magic, crash, lost);
        let pieces = put_in_order(&folder, None).pieces;
        for threads in [1, 2] {
            let outcome = run(&pieces, pgheadroom_walread::Range::default(), threads).unwrap();
            assert_sums(&outcome);
            assert!(outcome.gaps.is_empty(), "{magic:X}: {:?}", outcome.gaps);
            assert_eq!(outcome.tally.total.records, records, "{magic:X}");
            assert_eq!(outcome.end.unwrap().lsn, Lsn(end), "{magic:X}");
        }
    }
}

/// Pages in the middle of a segment, and its whole end: the log ends where the server has got to.
#[test]
fn whole_records_of_before() {
    for lost in [(40, 43), (90, 128), (90, 140), (127, 128)] {
        check("crash-times", CRASH, lost);
    }
}

/// The server writes whole pages while a record goes on; the page behind, of before the crash, goes
/// on with a record too, but another one.
#[test]
fn ends_within_a_record() {
    for magic in MAGICS {
        let write = |start_at: Option<usize>, upto: usize| {
            let mut wal = Writer::new(START);
            (wal.magic, wal.xid) = (magic, 5_000);
            checkpoint(&mut wal, 0x10, 4_000, STARTED - 900);
            let (mut n, mut last, mut is_started) = (1, 0, false);
            while wal.bytes.len() < upto {
                if start_at.is_some_and(|at| !is_started && wal.bytes.len() > at) {
                    checkpoint(&mut wal, 0x00, 5_000, STARTED);
                    is_started = true;
                }
                let at = if is_started {
                    STARTED + 5
                } else {
                    STARTED - 20
                };
                last = wal.bytes.len();
                change(&mut wal, n, Some(at));
                n += if is_started { 3 } else { 1 };
            }
            (wal, last)
        };
        let (before, _) = write(None, 2 * SEGMENT as usize + 300_000);
        let goes_on = |page: usize| before.bytes[page * PAGE + 2] & 1 == 1;
        let mut seen = 0;
        for page in (94..120).filter(|page| goes_on(*page)) {
            let (wal, last) = write(Some(90 * PAGE + 1_000), page * PAGE);
            if last == page * PAGE || wal.bytes.len() <= page * PAGE {
                continue;
            }
            let left = |bytes: &[u8]| bytes[page * PAGE + 16..page * PAGE + 20].to_vec();
            if left(&wal.bytes) == left(&before.bytes) {
                continue;
            }
            let folder = folder("crash-within");
            let mut saved = Writer::new(START);
            saved.bytes = wal.bytes[..page * PAGE].to_vec();
            saved.save(&folder);
            let records = read(&folder).tally.total.records;
            saved.bytes.extend(&before.bytes[page * PAGE..]);
            saved.save(&folder);
            let outcome = read(&folder);
            assert!(outcome.gaps.is_empty(), "{page}: {:?}", outcome.gaps);
            assert_eq!(outcome.tally.total.records, records, "{magic:X} {page}");
            assert_eq!(outcome.end.unwrap().lsn.0, START + last as u64);
            seen += 1;
        }
        assert!(seen > 5, "{seen}");
    }
}

/// Where no transaction ended there, numbers of transactions tell.
#[test]
fn numbers_tell() {
    let crash = Crash {
        commits: false,
        xid_after: 5_001,
        ..CRASH
    };
    check("crash-numbers", crash, (90, 128));
}

/// Started anew within the second in which the last transaction ended, with numbers that no record
/// of before is below of: nothing tells, and it is a gap.
#[test]
fn nothing_tells() {
    let crash = Crash { down_s: 0, ..CRASH };
    let folder = folder("crash-untold");
    crashed(&folder, 0xD118, crash, (90, 128));
    let outcome = read(&folder);
    assert_eq!(outcome.gaps.len(), 1);
}

/// A record that was cut off is given up, and is no gap, by each version's flag.
#[test]
fn given_up() {
    for magic in MAGICS {
        for lost in [40, 41, 42, 43] {
            let folder = folder("crash-given-up");
            crashed(&folder, magic, CRASH, (lost, lost + 1));
            let outcome = read(&folder);
            assert!(outcome.gaps.is_empty(), "{magic:X}: {:?}", outcome.gaps);
        }
    }
}

/// Damage behind a start stays damage: what is behind was written after it; so it does where the
/// clock was set back.
#[test]
fn damage_behind_a_start() {
    for set_back_s in [0, 3_600] {
        let folder = folder("crash-damage");
        let mut wal = Writer::new(START);
        checkpoint(&mut wal, 0x00, 700, STARTED);
        for n in 0..6_000 {
            change(&mut wal, n, Some(STARTED + 5 - set_back_s));
        }
        let place = wal.bytes.len() / 2;
        wal.bytes[place..place + 100].fill(0x55);
        wal.save(&folder);
        let outcome = read(&folder);
        assert_eq!(outcome.gaps.len(), 1);
        assert_eq!(outcome.end.unwrap().lsn, Lsn(wal.position()));
        assert!(outcome.tally.total.records > 5_900);
    }
}

/// As it stays where the clock was set back in the very stretch that cannot be read: what is behind
/// has times from before the start, and no log's end leaves a damaged record, or lacks a segment.
#[test]
fn clock_set_back_within_damage() {
    let mut wal = Writer::new(START);
    checkpoint(&mut wal, 0x00, 700, STARTED);
    let mut n = 0;
    while wal.bytes.len() < 3 * SEGMENT as usize {
        let is_before = wal.bytes.len() < SEGMENT as usize + 400_000;
        let at = if is_before {
            STARTED + 5
        } else {
            STARTED - 3_600
        };
        change(&mut wal, n, Some(at));
        n += 1;
    }
    let damaged = |test: &str, damage: &dyn Fn(&mut Vec<u8>)| {
        let folder = folder(test);
        let mut saved = Writer::new(START);
        saved.bytes = wal.bytes.clone();
        damage(&mut saved.bytes);
        saved.save(&folder);
        folder
    };
    let place = SEGMENT as usize + 399_000;
    let check = |folder: &Path, most_lost: u64| {
        let outcome = read(folder);
        assert_eq!(outcome.gaps.len(), 1, "{:?}", outcome.end);
        assert_eq!(outcome.end.unwrap().lsn, Lsn(wal.position()));
        assert!(outcome.tally.total.records > n as u64 - most_lost);
    };
    check(
        &damaged("crash-set-back", &|bytes| {
            bytes[place..place + 2_000].fill(0x55);
        }),
        200,
    );
    let folder = damaged("crash-set-back-lacks", &|_| {});
    fs::remove_file(folder.join(wal_writer::name(1, START + SEGMENT))).unwrap();
    check(&folder, n as u64 / 2);
    let folder = damaged("crash-set-back-cut", &|_| {});
    let path = folder.join(wal_writer::name(1, START + SEGMENT));
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..399_000]).unwrap();
    check(&folder, n as u64 / 2);
}

/// The next segment's first page alone, without a whole record, is no sign that the log got there.
#[test]
fn first_page_without_a_record() {
    let folder = folder("crash-first-page");
    let mut wal = Writer::new(START);
    for n in 0..100 {
        change(&mut wal, n, None);
    }
    let end = wal.position();
    let mut later = Writer::new(START);
    while later.bytes.len() < SEGMENT as usize - 5_000 {
        change(&mut later, 1, None);
    }
    later.record(HEAP, 0x40, &[block(1, 9)], &[3; 60_000]);
    let mut bytes = wal.bytes.clone();
    bytes.resize(SEGMENT as usize, 0);
    bytes.extend(&later.bytes[SEGMENT as usize..SEGMENT as usize + PAGE]);
    wal.bytes = bytes;
    let paths = wal.save(&folder);
    let outcome = read(&folder);
    assert!(outcome.gaps.is_empty(), "{:?}", outcome.gaps);
    assert_eq!(outcome.end.unwrap().lsn, Lsn(end));
    // Where what is there instead of a record is none that a server leaves, it is one.
    let mut damaged = fs::read(&paths[0]).unwrap();
    damaged[(end - START) as usize..][..3].fill(7);
    fs::write(&paths[0], damaged).unwrap();
    assert_eq!(read(&folder).gaps.len(), 1);
}
