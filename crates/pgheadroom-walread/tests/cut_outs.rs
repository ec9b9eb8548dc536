//! Whatever is missing of a log, the records that are whole in what is there are summed, and what
//! cannot be read is named: in order, disjoint, and with what was read the whole.
//!
//! Sixty logs in every run, 200 by `make test-long`; `CASES=100000 cargo test --release -p
//! pgheadroom-walread --test cut_outs` tries more, `SEED=n` others.

#![allow(clippy::cast_possible_truncation)] // places in a log that memory holds

mod wal_writer;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::piece::Piece;
use pgheadroom_walread::record::Record;
use pgheadroom_walread::run::{run_sink, run_stream};
use pgheadroom_walread::sink::Sink;
use pgheadroom_walread::{Outcome, Range, Wanted, choose, run};
use wal_writer::{Folder, SEGMENT, Writer, block, folder, imaged, name, random};

const PAGE: usize = 8192;
const LONG_HEADER: usize = 40;
const SEGMENT_BYTES: usize = SEGMENT as usize;
const START: u64 = 7 * SEGMENT;

/// A log, and where its records begin and end.
struct Log {
    bytes: Vec<u8>,
    records: Vec<(usize, usize)>,
}

/// What is there of a log: each byte, None where its page is not.
struct There {
    bytes: Vec<Option<u8>>,
    /// Of each segment how many bytes its file has; None where there is no file.
    lengths: Vec<Option<usize>>,
}

fn below(state: &mut u64, most: usize) -> usize {
    random(state) as usize % most.max(1)
}

/// Two to five segments: short records, images, some longer than several pages, switches.
fn log(state: &mut u64) -> Log {
    let mut wal = Writer::new(START);
    let mut records = Vec::new();
    let length = SEGMENT_BYTES * (1 + below(state, 4)) + 1 + below(state, SEGMENT_BYTES);
    // Of some logs most records are longer than a page.
    let is_of_long = below(state, 4) == 0;
    while wal.bytes.len() < length {
        let kind = below(state, if is_of_long { 4 } else { 60 });
        let (rmgr, blocks, main) = match kind {
            0 => (10, vec![], 20_000 + below(state, 100_000)),
            1 => (0, vec![imaged(1, 8192), imaged(2, 8192)], 0),
            2 => (10, vec![imaged(3, 5000), block(1, 900)], 14),
            3 => (11, vec![block(2, below(state, 9000))], 3),
            _ => (10, vec![block(1, 1 + below(state, 300))], 14),
        };
        let info = if rmgr == 0 { 0xB0 } else { 0x40 };
        let (begin, total) = wal.record(rmgr, info, &blocks, &vec![9; main]);
        let begin = (begin - START) as usize;
        records.push((begin, behind(begin, total as usize)));
        if below(state, 3000) == 0 {
            let mut begin = (wal.position() - START) as usize;
            if begin.is_multiple_of(PAGE) {
                begin += header(begin);
            }
            wal.switch();
            records.push((begin, behind(begin, 24)));
        }
    }
    let bytes = wal.bytes.len().next_multiple_of(SEGMENT_BYTES);
    wal.bytes.resize(bytes, 0);
    Log {
        bytes: wal.bytes,
        records,
    }
}

fn header(page: usize) -> usize {
    if page.is_multiple_of(SEGMENT_BYTES) {
        LONG_HEADER
    } else {
        24
    }
}

/// Where a record of so many bytes ends that begins at a place.
fn behind(begin: usize, total: usize) -> usize {
    let (mut at, mut left) = (begin, total);
    loop {
        if at.is_multiple_of(PAGE) {
            at += header(at);
        }
        let room = PAGE - at % PAGE;
        if left <= room {
            return at + left;
        }
        (at, left) = (at + room, left - room);
    }
}

impl There {
    fn of(log: &Log) -> Self {
        Self {
            bytes: log.bytes.iter().map(|byte| Some(*byte)).collect(),
            lengths: vec![Some(SEGMENT_BYTES); log.bytes.len() / SEGMENT_BYTES],
        }
    }

    /// Segments that are missing or were cut off, stretches that were overwritten. In a pipe, where
    /// no name says which segment it is, first pages stay.
    fn damage(&mut self, state: &mut u64, is_pipe: bool) {
        for _ in 0..=below(state, 5) {
            let segment = below(state, self.lengths.len());
            let begin = segment * SEGMENT_BYTES;
            let place = match below(state, 4) {
                // Where pages end it can be taken for something else.
                0 => (below(state, 128) * PAGE + below(state, 3)).saturating_sub(1),
                1 => below(state, 100),
                _ => below(state, SEGMENT_BYTES),
            };
            match below(state, 4) {
                0 => self.cut(segment, None),
                1 if segment > 0 || !is_pipe => self.cut(segment, Some(place)),
                1 => self.cut(segment, Some(place.max(LONG_HEADER))),
                _ => {
                    let most = [30, 600, 20_000, 400_000][below(state, 4)];
                    let fill = [0, 0xA5][below(state, 2)];
                    let end = (begin + place + below(state, most)).next_multiple_of(8);
                    self.overwrite((begin + place) / 8 * 8, end, fill, is_pipe);
                }
            }
        }
    }

    fn cut(&mut self, segment: usize, length: Option<usize>) {
        let Some(had) = self.lengths[segment] else {
            return;
        };
        let length = length.map(|length| length.min(had));
        let begin = segment * SEGMENT_BYTES;
        let kept = length.unwrap_or(0);
        for at in kept..SEGMENT_BYTES {
            let is_filled_up = at < kept.next_multiple_of(PAGE);
            self.bytes[begin + at] = is_filled_up.then_some(0);
        }
        self.lengths[segment] = length;
    }

    /// A header of a page that is hit is gone as a whole: not all of it is looked at.
    fn overwrite(&mut self, from: usize, to: usize, fill: u8, is_pipe: bool) {
        let mut hit: BTreeSet<usize> = (from..to.min(self.bytes.len())).collect();
        for at in hit.clone() {
            let page = at / PAGE * PAGE;
            if at - page < header(page) {
                hit.extend(page..page + header(page));
            }
        }
        for at in hit {
            let within = at % SEGMENT_BYTES;
            let is_there = self.lengths[at / SEGMENT_BYTES].is_some_and(|length| within < length);
            if is_there && !(is_pipe && within < LONG_HEADER) {
                self.bytes[at] = Some(fill);
            }
        }
    }

    fn segment(&self, segment: usize) -> Option<Vec<u8>> {
        let begin = segment * SEGMENT_BYTES;
        let length = self.lengths[segment]?;
        Some(
            self.bytes[begin..begin + length]
                .iter()
                .map(|byte| byte.unwrap_or(0))
                .collect(),
        )
    }

    fn save(&self, folder: &Path) {
        for segment in 0..self.lengths.len() {
            let path = folder.join(name(1, START + segment as u64 * SEGMENT));
            match self.segment(segment) {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => drop(fs::remove_file(path)),
            }
        }
    }

    fn stream(&self) -> Vec<u8> {
        (0..self.lengths.len())
            .filter_map(|segment| self.segment(segment))
            .flatten()
            .collect()
    }

    /// A segment that neither its first page nor another one tells by, and behind which none does,
    /// is taken for one that is kept for later, as a server has them.
    fn forget_unwritten(&mut self, log: &Log) {
        for segment in 0..self.lengths.len() {
            let begin = segment * SEGMENT_BYTES;
            let Some(length) = self.lengths[segment] else {
                continue;
            };
            let has = |page: usize| {
                let at = begin + page * PAGE;
                let bytes = at..at + header(at);
                log.bytes[at] != 0
                    && page * PAGE + header(at) <= length
                    && log.bytes[bytes.clone()]
                        .iter()
                        .zip(&self.bytes[bytes])
                        .all(|(was, is)| Some(*was) == *is)
            };
            let is_empty = self.bytes[begin..begin + LONG_HEADER.min(length)]
                .iter()
                .all(|byte| *byte == Some(0));
            let is_followed = (segment + 1..self.lengths.len()).any(|later| self.says(log, later));
            if is_empty && !is_followed && !(0..7).any(|shift| has(1 << shift)) {
                self.cut(segment, None);
            }
        }
    }

    /// Whether a segment's first page says what it is.
    fn says(&self, log: &Log, segment: usize) -> bool {
        let header = segment * SEGMENT_BYTES..segment * SEGMENT_BYTES + LONG_HEADER;
        let mut bytes = self.bytes[header.clone()].iter().zip(&log.bytes[header]);
        self.lengths[segment].is_some_and(|length| length >= LONG_HEADER)
            && bytes.all(|(is, was)| *is == Some(*was))
    }

    /// Records of which each byte is there, and the header of each page that they lie on.
    fn whole(&self, log: &Log) -> Vec<usize> {
        let is_there =
            |from: usize, to: usize| (from..to).all(|at| self.bytes[at] == Some(log.bytes[at]));
        let records = log.records.iter().enumerate();
        records
            .filter(|(_, (begin, end))| {
                let first = begin / PAGE * PAGE;
                is_there(*begin, *end)
                    && (first..*end)
                        .step_by(PAGE)
                        .all(|page| is_there(page, page + header(page)))
            })
            .map(|(place, _)| place)
            .collect()
    }
}

/// Positions behind a page's header are the page's begin.
fn plain(lsn: Lsn) -> u64 {
    let within = (lsn.0 % PAGE as u64) as usize;
    let page = lsn.0 - within as u64;
    if within == header((page - START) as usize) {
        page
    } else {
        lsn.0
    }
}

/// A range that begins and ends anywhere, some of it before the log and behind it.
fn any_range(state: &mut u64, log: &Log) -> Range {
    let mut place = || START - SEGMENT + below(state, log.bytes.len() + 2 * SEGMENT_BYTES) as u64;
    let (one, other) = (place(), place());
    Range {
        from: Lsn(one.min(other)),
        to: Lsn(one.max(other) + 1),
        times: None,
    }
}

/// Behind what was read, and what is missing before that.
fn end_of(outcome: &Outcome) -> u64 {
    let spans = outcome.tally.spans.iter().map(|(_, to)| plain(*to));
    let gaps = outcome.gaps.iter().map(|gap| plain(gap.to));
    spans.chain(gaps).max().unwrap_or(START)
}

/// What must hold of a range: a record in it is summed, or a gap has a part of it, or the log at
/// hand, as it is read without a range, has ended before.
fn check_range(outcome: &Outcome, range: Range, whole: &[usize], log: &Log, ends: u64) {
    let (from, to) = (range.from.0, range.to.0);
    let mut summed = 0;
    for (place, (begin, end)) in log.records.iter().enumerate() {
        let (begin, end) = (START + *begin as u64, START + *end as u64);
        if begin < from || end > to {
            continue;
        }
        if whole.binary_search(&place).is_ok() {
            summed += 1;
            continue;
        }
        let in_gap = outcome
            .gaps
            .iter()
            .any(|gap| gap.from.0 < end && begin < gap.to.0);
        let at_end = begin >= ends;
        assert!(
            in_gap || at_end,
            "{begin:X} to {end:X} is in none of {from:X} to {to:X}: {:X?} {:X?}",
            outcome.gaps,
            outcome.tally.spans
        );
    }
    assert_eq!(outcome.tally.total.records, summed);
    for gap in &outcome.gaps {
        assert!(from <= gap.from.0 && gap.from < gap.to && gap.to.0 <= to);
    }
    for two in outcome.gaps.windows(2) {
        assert!(two[0].to <= two[1].from);
    }
}

/// What must hold of any reading.
fn check(outcome: &Outcome, whole: &[usize], log: &Log) {
    let tally = &outcome.tally;
    let mut found: Vec<(u64, u64, bool)> = Vec::new();
    found.extend(
        tally
            .spans
            .iter()
            .map(|(from, to)| (plain(*from), plain(*to), true)),
    );
    found.extend(
        outcome
            .gaps
            .iter()
            .map(|gap| (plain(gap.from), plain(gap.to), false)),
    );
    let of_gaps: Vec<_> = found.iter().filter(|one| !one.2).copied().collect();
    assert!(of_gaps.is_sorted(), "gaps in order: {of_gaps:X?}");
    found.sort_unstable();
    for (from, to, _) in &found {
        assert!(from < to, "{from:X} to {to:X}");
    }
    for two in found.windows(2) {
        assert_eq!(two[0].1, two[1].0, "{found:X?}");
    }
    let missed = whole.iter().filter(|place| {
        let begin = START + log.records[**place].0 as u64;
        !tally
            .spans
            .iter()
            .any(|(from, to)| (from.0..to.0).contains(&begin))
    });
    let missed: Vec<_> = missed
        .map(|place| START + log.records[*place].0 as u64)
        .collect();
    assert!(
        missed.is_empty(),
        "whole, not read: {missed:X?} of {found:X?}"
    );
    assert_eq!(tally.total.records, whole.len() as u64, "{found:X?}");
}

fn try_folder(folder: &Folder, there: &mut There, log: &Log, (threads, state): (usize, &mut u64)) {
    there.save(folder);
    there.forget_unwritten(log);
    let whole = there.whole(log);
    let Ok(chosen) = choose(&[folder.to_path_buf()], None) else {
        // No segment says what it is.
        assert!(!(0..there.lengths.len()).any(|segment| there.says(log, segment)));
        return;
    };
    let stop = AtomicBool::new(false);
    let outcome = run(
        &chosen.pieces,
        Range::default(),
        &Wanted::default(),
        threads,
        &stop,
    )
    .unwrap();
    check(&outcome, &whole, log);
    let ends = end_of(&outcome);
    for _ in 0..4 {
        let range = any_range(state, log);
        let outcome = run(&chosen.pieces, range, &Wanted::default(), threads, &stop).unwrap();
        check_range(&outcome, range, &whole, log, ends);
        check_sink(&chosen.pieces, range, &whole, log, &outcome);
    }
}

/// Keeps where the records of a range begin, as those who replay a log look at them.
struct Handed {
    range: Range,
    begins: Vec<usize>,
    is_gap: bool,
    /// Those that follow on a gap.
    behind_gaps: Vec<usize>,
}

impl Sink for Handed {
    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool {
        if end > self.range.to {
            return false;
        }
        if record.lsn >= self.range.from {
            let begin = (record.lsn.0 - START) as usize;
            if std::mem::take(&mut self.is_gap) {
                self.behind_gaps.push(begin);
            }
            self.begins.push(begin);
        }
        true
    }

    fn gap(&mut self, _is_like_end: bool) {
        self.is_gap = true;
    }
}

/// Whoever is handed the records of a range is handed those that are summed, once and in order, and
/// told each gap between them; and the gaps are the same.
fn check_sink(pieces: &[Piece], range: Range, whole: &[usize], log: &Log, outcome: &Outcome) {
    let sink = Handed {
        range,
        begins: Vec::new(),
        is_gap: false,
        behind_gaps: Vec::new(),
    };
    let (handed, gaps) = run_sink(pieces, range, sink, &AtomicBool::new(false)).unwrap();
    let expected: Vec<usize> = whole
        .iter()
        .map(|place| log.records[*place])
        .filter(|(begin, end)| {
            START + *begin as u64 >= range.from.0 && START + *end as u64 <= range.to.0
        })
        .map(|(begin, _)| begin)
        .collect();
    assert_eq!(handed.begins, expected);
    assert_eq!(gaps, outcome.gaps);
    for (from, _) in outcome.tally.spans.iter().skip(1) {
        let begin = (from.0 - START) as usize;
        assert!(handed.behind_gaps.contains(&begin), "{begin:X}");
    }
}

fn try_pipe(there: &There, log: &Log, state: &mut u64) {
    let whole = there.whole(log);
    let bytes = there.stream();
    // The first segment says what all are.
    if there
        .lengths
        .iter()
        .flatten()
        .find(|length| **length > 0)
        .is_none_or(|first| *first < LONG_HEADER)
    {
        return;
    }
    let read = |range: Range| {
        let bytes = Box::new(std::io::Cursor::new(bytes.clone()));
        let stop = AtomicBool::new(false);
        let read = run_stream("-", bytes, range, &Wanted::default(), false, &stop);
        read.unwrap().1
    };
    let outcome = read(Range::default());
    check(&outcome, &whole, log);
    for _ in 0..2 {
        let range = any_range(state, log);
        check_range(&read(range), range, &whole, log, end_of(&outcome));
    }
}

#[test]
fn cut_outs() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().unwrap());
    let (cases, seed) = (number("CASES", 60), number("SEED", 0));
    let folder = folder("cut-outs");
    for case in seed..seed + cases {
        let mut state = (case + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let log = log(&mut state);
        println!(
            "SEED={} of {} segments",
            case,
            log.bytes.len() / SEGMENT_BYTES
        );
        let mut there = There::of(&log);
        there.damage(&mut state, case % 2 == 1);
        if case % 2 == 1 {
            try_pipe(&there, &log, &mut state);
        }
        for segment in 0..6 {
            drop(fs::remove_file(
                folder.join(name(1, START + segment * SEGMENT)),
            ));
        }
        let threads = 1 + (case % 3) as usize;
        try_folder(&folder, &mut there, &log, (threads, &mut state));
    }
}
