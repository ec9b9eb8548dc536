//! Which files are read, and what is missing: holes, recycled segments, timelines, packings.

#![allow(clippy::cast_possible_truncation)] // places in a segment, which memory holds

mod summing;
mod wal_writer;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::{Range, WalError, choose};
use summing::{START, assert_sums, long_history, put_in_order, read, read_range, run};
use wal_writer::{SEGMENT, Writer, block, folder, name};

const HEAP: u8 = 10;

/// What lies in a segment from before it was used again is no record of this log.
#[test]
fn recycled_bytes_are_the_end() {
    let folder = folder("recycled");
    let mut old = Writer::new(START - 2 * SEGMENT);
    for _ in 0..3_000 {
        old.record(HEAP, 0x40, &[block(1, 300)], &[0; 14]);
    }
    let mut wal = Writer::new(START);
    for _ in 0..100 {
        wal.record(HEAP, 0x40, &[block(1, 300)], &[0; 14]);
    }
    let place = wal.bytes.len();
    wal.bytes.extend(&old.bytes[place..SEGMENT as usize]);
    wal.save(&folder);
    // And one that was made ready under a later name.
    fs::write(
        folder.join(name(1, START + SEGMENT)),
        &old.bytes[..SEGMENT as usize],
    )
    .unwrap();
    let outcome = read(&folder);
    assert_eq!(outcome.tally.total.records, 100);
    assert!(outcome.gaps.is_empty());
    let chosen = put_in_order(&folder, None);
    assert_eq!(chosen.not_yet_written.len(), 1);
}

/// A missing segment is a gap; both sides count.
#[test]
fn hole() {
    let folder = folder("hole");
    let (wal, records, _) = long_history(START);
    let paths = wal.save(&folder);
    fs::remove_file(&paths[2]).unwrap();
    let outcome = read(&folder);
    assert_sums(&outcome);
    assert_eq!(outcome.gaps.len(), 1);
    let (gap, spans) = (&outcome.gaps[0], &outcome.tally.spans);
    assert!(gap.from.0 < START + 2 * SEGMENT && gap.to.0 > START + 3 * SEGMENT);
    // A record that began in the missing segment is not whole.
    assert_eq!((spans[0].1, spans[1].0), (gap.from, gap.to));
    assert_eq!(spans.len(), 2);
    assert!(outcome.tally.total.records > records / 2);
    assert!(outcome.tally.total.records < records);
}

/// What was asked for and lies in a segment that is missing is a gap, at either end.
#[test]
fn hole_at_the_ends_of_a_range() {
    let folder = folder("hole-at-ends");
    let (wal, _, _) = long_history(START);
    let paths = wal.save(&folder);
    assert!(paths.len() > 4);
    fs::remove_file(&paths[2]).unwrap();
    let hole = START + 2 * SEGMENT;
    let gaps = |from: u64, to: u64| {
        let range = Range {
            from: Lsn(from),
            to: Lsn(to),
            times: None,
        };
        let outcome = read_range(&folder, range);
        let gaps = outcome.gaps.iter().map(|gap| (gap.from.0, gap.to.0));
        (gaps.collect::<Vec<_>>(), outcome.tally.total.records)
    };
    let whole = read(&folder).gaps[0].clone();
    let (before, behind) = (whole.from.0, whole.to.0);
    let (from_within, records) = gaps(hole + 99, START + 4 * SEGMENT);
    assert_eq!(from_within, [(hole + 99, behind)]);
    assert!(records > 0);
    let (to_within, records) = gaps(START + SEGMENT, hole + 99);
    assert_eq!(to_within, [(before, hole + 99)]);
    assert!(records > 0);
    assert_eq!(
        gaps(hole + 99, hole + 999),
        (vec![(hole + 99, hole + 999)], 0)
    );
    let (earlier, _) = gaps(START - SEGMENT, START + SEGMENT);
    assert_eq!(earlier.len(), 1, "the log at hand begins later");
    assert_eq!(earlier[0].0, START - SEGMENT);
    assert_eq!(gaps(START + 100, START + SEGMENT).0, []);
    let named = read_range(
        &folder,
        Range {
            from: Lsn(hole + 99),
            ..Range::default()
        },
    );
    assert_eq!(named.gaps[0].path, paths[1].display().to_string());
}

/// What is empty or an older segment's, where the log goes on behind it, is a gap of that file.
#[test]
fn not_written_in_the_middle() {
    let folder = folder("unwritten-middle");
    let (wal, _, _) = long_history(START);
    let paths = wal.save(&folder);
    let first = fs::read(&paths[0]).unwrap();
    for bytes in [vec![], vec![0; SEGMENT as usize], first] {
        fs::write(&paths[2], &bytes).unwrap();
        let chosen = put_in_order(&folder, None);
        assert!(chosen.not_yet_written.is_empty());
        let outcome = read(&folder);
        assert_sums(&outcome);
        assert_eq!(outcome.gaps.len(), 1);
        assert_eq!(outcome.gaps[0].path, paths[2].display().to_string());
    }
}

/// A segment of the timeline that was left, which waits for being archived, lies behind one that is
/// kept for later.
#[test]
fn left_timeline_behind_one_kept_for_later() {
    let folder = folder("left-behind");
    let (first, _, _) = long_history(START);
    let old = first.save(&folder);
    let mut second = Writer::new(START);
    second.timeline = 2;
    second.record(HEAP, 0x00, &[block(9, 5)], &[0; 3]);
    second.save(&folder);
    let recycled = folder.join(name(2, START + SEGMENT));
    fs::write(&recycled, fs::read(&old[3]).unwrap()).unwrap();
    fs::remove_file(&old[1]).unwrap();
    let history = format!("1\t{}\tx\n", Lsn(START + 40));
    fs::write(folder.join("00000002.history"), history).unwrap();
    let chosen = put_in_order(&folder, None);
    assert_eq!(chosen.not_yet_written, std::slice::from_ref(&recycled));
    let outcome = read(&folder);
    assert!(outcome.gaps.is_empty(), "{:?}", outcome.gaps);
    assert_eq!(outcome.tally.total.records, 1);
}

/// A server that runs removes segments and makes them others: one that was there when the folder
/// was looked at and is gone when it is to be read is a gap with its name.
#[test]
fn removed_meanwhile() {
    let folder = folder("removed-meanwhile");
    let (wal, records, _) = long_history(START);
    let paths = wal.save(&folder);
    for gone in [0, 2, paths.len() - 1] {
        let pieces = put_in_order(&folder, None).pieces;
        let bytes = fs::read(&paths[gone]).unwrap();
        fs::remove_file(&paths[gone]).unwrap();
        for threads in [1, 2] {
            let outcome = run(&pieces, Range::default(), threads).unwrap();
            assert_sums(&outcome);
            assert_eq!(outcome.gaps.len(), 1);
            assert_eq!(outcome.gaps[0].path, paths[gone].display().to_string());
            assert!(outcome.gaps[0].why.contains("removed"));
            assert!(outcome.tally.total.records > records / 2);
        }
        fs::write(&paths[gone], bytes).unwrap();
    }
}

/// A file that is only called like a newer timeline's hides nothing.
#[test]
fn name_of_a_newer_timeline() {
    let folder = folder("newer-name");
    let (wal, records, _) = long_history(START);
    wal.save(&folder);
    let damaged = folder.join(name(2, START + SEGMENT));
    fs::write(&damaged, vec![7; SEGMENT as usize]).unwrap();
    for history in [None, Some(format!("1\t{}\tx\n", Lsn(START + 9 * SEGMENT)))] {
        if let Some(history) = history {
            fs::write(folder.join("00000002.history"), history).unwrap();
        }
        let chosen = put_in_order(&folder, None);
        assert_eq!(chosen.other_timelines, std::slice::from_ref(&damaged));
        assert_eq!(read(&folder).tally.total.records, records);
    }
}

/// `pg_receivewal --compress` has the segment that it receives as `.gz.partial`: its end is the
/// log's.
#[test]
fn packed_and_partial() {
    let folder = folder("gz-partial");
    let (wal, records, _) = long_history(START);
    let paths = wal.save(&folder);
    let last = paths.last().unwrap();
    let bytes = fs::read(last).unwrap();
    fs::remove_file(last).unwrap();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&bytes).unwrap();
    let packed = packer.finish().unwrap();
    let partial = PathBuf::from(format!("{}.gz.partial", last.display()));
    fs::write(&partial, &packed).unwrap();
    assert_eq!(read(&folder).tally.total.records, records);
    fs::write(&partial, &packed[..400]).unwrap();
    let outcome = read(&folder);
    assert!(outcome.gaps.is_empty(), "{:?}", outcome.gaps);
    assert!(outcome.tally.total.records < records);
    // Where the log goes on behind it, it is one that was cut off.
    let first = fs::read(&paths[1]).unwrap();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&first).unwrap();
    let packed = packer.finish().unwrap();
    fs::remove_file(&paths[1]).unwrap();
    let partial = PathBuf::from(format!("{}.gz.partial", paths[1].display()));
    fs::write(&partial, &packed[..packed.len() / 2]).unwrap();
    assert_eq!(read(&folder).gaps.len(), 1);
}

/// A timeline that was left goes on in the newer one's files, by the history.
#[test]
fn timelines() {
    let folder = folder("timelines");
    let (first, _, _) = long_history(START);
    first.save(&folder);
    let left = START + 2 * SEGMENT + 400_000;
    // The second begins with a copy of the segment in which the first was left.
    let mut second = Writer::new(START + 2 * SEGMENT);
    second.timeline = 2;
    for _ in 0..50 {
        second.record(HEAP, 0x00, &[block(9, 5)], &[0; 3]);
    }
    second.save(&folder);
    let history = format!("1\t{}\tno recovery target\n", Lsn(left));
    fs::write(folder.join("00000002.history"), history).unwrap();
    let chosen = put_in_order(&folder, None);
    let timelines: Vec<_> = chosen.pieces.iter().map(|piece| piece.timeline).collect();
    assert_eq!(timelines, [1, 1, 2]);
    assert!(!chosen.history_missing && !chosen.other_timelines.is_empty());
    // Where the second's segment is missing, the first's ends where it was left: what it went on
    // with is not of this line.
    let copy = folder.join(name(2, START + 2 * SEGMENT));
    let bytes = fs::read(&copy).unwrap();
    fs::remove_file(&copy).unwrap();
    let mut later = Writer::new(START + 3 * SEGMENT);
    later.timeline = 2;
    later.prev = left;
    later.record(HEAP, 0x00, &[block(9, 5)], &[0; 3]);
    later.save(&folder);
    let up_to = read_range(
        &folder,
        Range {
            to: Lsn(left),
            ..Range::default()
        },
    );
    let whole = read(&folder);
    assert_eq!(whole.tally.total.records, up_to.tally.total.records + 1);
    fs::write(&copy, bytes).unwrap();
    let before = put_in_order(&folder, Some(1));
    assert!(before.pieces.iter().all(|piece| piece.timeline == 1));
    fs::remove_file(folder.join("00000002.history")).unwrap();
    assert!(put_in_order(&folder, None).history_missing);
}

type Pack = fn(&[u8]) -> Vec<u8>;

/// `.partial`, `.gz`, `.lz4` and `.zst` hold what the plain files do.
#[test]
fn packings() {
    let (wal, records, _) = long_history(START);
    let plain = folder("plain");
    let paths = wal.save(&plain);
    let pack: [(&str, Pack); 4] = [
        ("partial", <[u8]>::to_vec),
        ("gz", |bytes| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(bytes).unwrap();
            packer.finish().unwrap()
        }),
        ("lz4", |bytes| {
            let mut packer = lz4::EncoderBuilder::new().build(Vec::new()).unwrap();
            packer.write_all(bytes).unwrap();
            let (packed, result) = packer.finish();
            result.unwrap();
            packed
        }),
        ("zst", |bytes| zstd::encode_all(bytes, 1).unwrap()),
    ];
    for (end, pack) in pack {
        let packed = folder(end);
        for path in &paths {
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::write(
                packed.join(format!("{name}.{end}")),
                pack(&fs::read(path).unwrap()),
            )
            .unwrap();
        }
        let outcome = read(&packed);
        assert_eq!(outcome.tally.total.records, records, "{end}");
        assert!(outcome.gaps.is_empty());
    }
}

/// What is no WAL of ours is refused by name; so are files of two servers.
#[test]
fn refused() {
    let refuse = |paths: &[PathBuf]| choose(paths, None).unwrap_err().to_string();
    let folder = folder("refused");
    let mut wal = Writer::new(START);
    wal.record(HEAP, 0x00, &[block(1, 5)], &[0; 3]);
    let ours = wal.save(&folder);
    let mut other = Writer::new(START + SEGMENT);
    other.system = 43;
    other.record(HEAP, 0x00, &[block(1, 5)], &[0; 3]);
    let theirs = other.save(&folder);
    assert!(matches!(
        choose(std::slice::from_ref(&folder), None),
        Err(WalError::Mixed { .. })
    ));
    fs::remove_file(&theirs[0]).unwrap();
    let text = folder.join("text");
    fs::write(&text, "x".repeat(9000)).unwrap();
    assert!(refuse(&[text]).contains("no version's"));
    let old = folder.join("old");
    let mut bytes = fs::read(&ours[0]).unwrap();
    bytes[..2].copy_from_slice(&0xD10D_u16.to_le_bytes());
    fs::write(&old, bytes).unwrap();
    assert!(refuse(&[old]).contains("PostgreSQL 14's"));
    assert!(refuse(&[folder.join("none")]).contains("cannot be read"));
}

/// What unpacks to much more than a segment is read no further than one.
#[test]
fn bomb() {
    let folder = folder("bomb");
    let mut wal = Writer::new(START);
    wal.record(HEAP, 0x00, &[block(1, 5)], &[0; 3]);
    let mut bytes = wal.bytes.clone();
    bytes.resize(1 << 29, 0);
    fs::write(
        folder.join(format!("{}.zst", name(1, START))),
        zstd::encode_all(&bytes[..], 1).unwrap(),
    )
    .unwrap();
    let outcome = read(&folder);
    assert_eq!(outcome.tally.total.records, 1);
    assert_eq!(outcome.end.unwrap().lsn, Lsn(wal.position()));
}
