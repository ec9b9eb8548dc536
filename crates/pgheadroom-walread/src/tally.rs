//! Sums of records: by relation and cause, and by record type.
//!
//! A block's header, data and image go to that block's relation; the record's own header, its main
//! data and its count to the relation of its first block; records without blocks to none. So sums
//! over relations equal those over causes and the total.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pgheadroom_layout::Lsn;

use crate::cause::Cause;
use crate::detail::{Detail, Wanted};
use crate::format::{Major, padded};
use crate::memo::Memo;
use crate::record::{Record, RelFile};
use crate::rmgr::{Rmgr, type_index};
use crate::simple::{Simple, Taken};
use crate::sink::Sink;
use crate::sums::{Moment, RelationSums, TypeSums, ended_at};

/// Multiplies and folds: a relation's three numbers are small and near each other.
#[derive(Default)]
struct Folding(u64);

impl Hasher for Folding {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        let mixed = (self.0 ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

const RECENT: usize = 64;
const TYPES: usize = 256 * 16;

/// What a range of WAL adds up to.
pub struct Tally {
    major: Major,
    segment_bytes: u64,
    from: Lsn,
    to: Lsn,
    times: Option<(Moment, Moment)>,
    now: Option<Moment>,
    stop_at: Lsn,
    relations: Vec<(Option<RelFile>, RelationSums)>,
    numbers: HashMap<RelFile, u32, BuildHasherDefault<Folding>>,
    recent: [(RelFile, u32); RECENT],
    types: Vec<TypeSums>,
    simple: Simple,
    /// Which records are summed without being taken apart: they begin and end within.
    simple_within: (Lsn, Lsn),
    /// Everything together.
    pub total: TypeSums,
    /// Images.
    pub fpi: u64,
    /// Shares of bytes that are of interest beside their cause.
    pub memo: Memo,
    /// Ranges without a gap whose records are counted, in order.
    pub spans: Vec<(Lsn, Lsn)>,
    is_within_span: bool,
    /// Stretches and transactions.
    pub detail: Detail,
    /// Times of the first and the last transaction that ended, of those counted.
    pub ended: Option<(Moment, Moment)>,
}

/// Which records count: those that begin at `from` or later and end at `to` or before, and of them
/// those of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first position.
    pub from: Lsn,
    /// The position behind the last.
    pub to: Lsn,
    /// First and last time. A record is of the time of the transaction that ended last before it,
    /// or with it; before the first one it has none.
    pub times: Option<(Moment, Moment)>,
}

impl Default for Range {
    fn default() -> Self {
        Self {
            from: Lsn(0),
            to: Lsn(u64::MAX),
            times: None,
        }
    }
}

impl Tally {
    /// Sums of nothing yet; `stop_at` is where another reader goes on.
    #[must_use]
    pub fn new(
        major: Major,
        segment_bytes: u64,
        range: Range,
        wanted: &Wanted,
        stop_at: Lsn,
    ) -> Self {
        let is_plain = range.times.is_none() && !wanted.is_of_each_record();
        let simple_to = if is_plain {
            range.to.min(stop_at)
        } else {
            Lsn(0)
        };
        Self {
            simple: Simple::new(major),
            simple_within: (range.from, simple_to),
            major,
            segment_bytes,
            from: range.from,
            to: range.to,
            times: range.times,
            now: None,
            stop_at,
            relations: vec![(None, RelationSums::default())],
            numbers: HashMap::default(),
            recent: [(RelFile::default(), 0); RECENT],
            types: vec![TypeSums::default(); TYPES],
            total: TypeSums::default(),
            fpi: 0,
            memo: Memo::default(),
            spans: Vec::new(),
            is_within_span: false,
            detail: Detail::new(wanted),
            ended: None,
        }
    }

    /// Version that wrote the WAL.
    #[must_use]
    pub const fn major(&self) -> Major {
        self.major
    }

    /// Relations with records or bytes, by their numbers; the one without comes first.
    #[must_use]
    pub fn relations(&self) -> Vec<(Option<RelFile>, &RelationSums)> {
        let mut found: Vec<_> = self
            .relations
            .iter()
            .filter(|(_, sums)| sums.total.bytes > 0)
            .map(|(relation, sums)| (*relation, sums))
            .collect();
        found.sort_by_key(|(relation, _)| *relation);
        found
    }

    /// Record types that occurred: resource manager, type, sums.
    pub fn types(&self) -> impl Iterator<Item = (u8, u8, TypeSums)> + '_ {
        self.types
            .iter()
            .enumerate()
            .filter(|(_, sums)| sums.records > 0)
            .map(|(at, sums)| {
                let byte = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
                (byte(at / 16), byte(at % 16), *sums)
            })
    }

    /// Page headers, padding, rests of switched segments, and records that were given up.
    #[must_use]
    pub fn overhead_bytes(&self) -> u64 {
        let passed: u64 = self.spans.iter().map(|(from, to)| to.0 - from.0).sum();
        passed.saturating_sub(self.total.bytes)
    }

    /// Adds what a reader has summed that went on where this one stopped.
    pub fn merge(&mut self, other: &Self) {
        for (relation, sums) in &other.relations {
            let number = relation.map_or(0, |relation| self.relation_number(relation));
            self.relations[number].1.merge(sums);
        }
        for (sum, added) in self.types.iter_mut().zip(&other.types) {
            sum.merge(added);
        }
        self.total.merge(&other.total);
        self.detail.merge(&other.detail);
        self.fpi += other.fpi;
        self.memo.merge(&other.memo);
        self.ended = match (self.ended, other.ended) {
            (Some(ours), Some(theirs)) => Some((ours.0.min(theirs.0), ours.1.max(theirs.1))),
            (ours, theirs) => ours.or(theirs),
        };
        let mut added = other.spans.iter().copied();
        if self.is_within_span
            && let (Some(last), Some(first)) = (self.spans.last_mut(), added.next())
        {
            last.1 = first.1;
        }
        self.spans.extend(added);
        self.is_within_span = !self.spans.is_empty();
    }

    fn relation_number(&mut self, relation: RelFile) -> usize {
        let slot = relation.relfilenode as usize % RECENT;
        let (known, number) = self.recent[slot];
        if known == relation && number > 0 {
            return number as usize;
        }
        let next = u32::try_from(self.relations.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(relation).or_insert(next);
        if number == next {
            self.relations
                .push((Some(relation), RelationSums::default()));
        }
        self.recent[slot] = (relation, number);
        number as usize
    }

    fn count(&mut self, record: &Record<'_>, ended: Option<Moment>) {
        let cause = Cause::of_record(self.major, record);
        let total = u64::from(record.header.total_bytes);
        // What the first block has beside its image is counted with the record's own part.
        let (mut of_others, mut fpi_bytes) = (0_u64, 0_u64);
        let mut first = 0;
        for (at, block) in record.blocks.iter().enumerate() {
            let number = self.relation_number(block.relation);
            if at == 0 {
                first = number;
            }
            let sums = &mut self.relations[number].1;
            if at > 0 {
                let own = u64::from(block.header_bytes) + u64::from(block.data_bytes);
                of_others += own;
                sums.add(cause, 0, own);
            }
            if let Some(image) = block.image {
                let bytes = u64::from(image.bytes);
                sums.add(Cause::of_image(record, at), 0, bytes);
                sums.fpi += 1;
                sums.fpi_bytes += bytes;
                self.fpi += 1;
                fpi_bytes += bytes;
            }
        }
        self.relations[first]
            .1
            .add(cause, 1, total - of_others - fpi_bytes);
        let at = usize::from(record.header.rmgr) * 16
            + usize::from(type_index(record.header.rmgr, record.header.info));
        for sums in [&mut self.types[at], &mut self.total] {
            sums.add(total, fpi_bytes);
        }
        self.memo.note(self.major, record);
        self.detail.note(self.major, record, fpi_bytes, ended);
    }

    fn note_end(&mut self, at: Moment) {
        let (first, last) = self.ended.unwrap_or((at, at));
        self.ended = Some((first.min(at), last.max(at)));
    }

    fn pass(&mut self, record: &Record<'_>, end: Lsn) {
        let is_switch = Rmgr::of(record.header.rmgr) == Rmgr::Xlog && record.info() == 0x40;
        let end = Lsn(if is_switch {
            end.0.next_multiple_of(self.segment_bytes)
        } else {
            padded(end.0)
        });
        match self.spans.last_mut() {
            Some(last) if self.is_within_span => last.1 = end,
            _ => self.spans.push((record.lsn, end)),
        }
        self.is_within_span = true;
    }
}

impl Sink for Tally {
    fn gap(&mut self, _is_like_end: bool) {
        self.is_within_span = false;
    }

    fn takes_simple(&self, from: Lsn, to: Lsn) -> bool {
        self.is_within_span && from >= self.simple_within.0 && to <= self.simple_within.1
    }

    #[inline]
    fn simple(&mut self, bytes: &[u8]) -> bool {
        match self.simple.take(bytes) {
            Taken::No => return false,
            Taken::Yes => {}
            Taken::Ended(at) => self.note_end(at),
        }
        true
    }

    fn simple_to(&mut self, end: Lsn) {
        if let Some(last) = self.spans.last_mut() {
            last.1 = Lsn(padded(end.0));
        }
    }

    fn settle(&mut self) {
        for sum in self.simple.settle() {
            let number = sum
                .relation
                .map_or(0, |relation| self.relation_number(relation));
            self.relations[number]
                .1
                .add(sum.cause, sum.records, sum.bytes);
            let added = TypeSums {
                records: sum.records,
                bytes: sum.bytes,
                fpi_bytes: 0,
            };
            let (rmgr, index) = sum.kind;
            let at = usize::from(rmgr) * 16 + usize::from(type_index(rmgr, index << 4));
            self.types[at].merge(&added);
            self.total.merge(&added);
        }
    }

    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool {
        if self.simple.is_full() {
            self.settle();
        }
        if record.lsn >= self.stop_at || end > self.to {
            return false;
        }
        let ended = ended_at(record);
        self.now = ended.or(self.now);
        let is_of_time = match self.times {
            None => true,
            Some((first, last)) => self.now.is_some_and(|now| (first..=last).contains(&now)),
        };
        if !is_of_time {
            self.is_within_span = false;
        } else if record.lsn >= self.from {
            self.count(record, ended);
            self.pass(record, end);
            if let Some(at) = ended {
                self.note_end(at);
            }
        }
        true
    }
}
