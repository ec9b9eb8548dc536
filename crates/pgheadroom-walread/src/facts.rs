//! What a replay under other checkpoints has to know of the whole log before it begins.
//!
//! Times between the ends of transactions; redo points, which a checkpoint's record names only
//! later; how long a block's data are where no image stands for them; whether hint bits are logged.

use std::collections::HashMap;

use pgheadroom_layout::Lsn;

use crate::cause::Cause;
use crate::detail::redo_point;
use crate::format::Major;
use crate::record::{Block, Compression, Record, RelFile};
use crate::rmgr::Rmgr;
use crate::sink::Sink;
use crate::sums::{Moment, ended_at};

/// Points of time that are kept; with more, every second one goes. Arbitrary: half a second apart
/// for nine hours.
const POINTS_MOST: usize = 1 << 16;
/// Kinds of blocks whose data are averaged by relation; beyond that, over all relations.
const KINDS_MOST: usize = 1 << 18;

/// Beyond it no time is believed: 30,000 years.
const MOMENT_MOST: Moment = 1 << 60;

/// When positions were written, by the ends of transactions.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    points: Vec<(Lsn, Moment)>,
    spacing_us: Moment,
}

impl Clock {
    fn note(&mut self, lsn: Lsn, at: Moment) {
        if !(-MOMENT_MOST..MOMENT_MOST).contains(&at) {
            return;
        }
        // Transactions do not end in the order of their clocks.
        let next = self.points.last().map_or(Moment::MIN, |(_, last)| {
            last.saturating_add(self.spacing_us.max(1))
        });
        if at < next {
            return;
        }
        self.points.push((lsn, at));
        if self.points.len() >= POINTS_MOST {
            let mut number = 0_usize;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.spacing_us = (self.spacing_us * 2).max(100_000);
        }
    }

    /// From the first point to the last.
    #[must_use]
    pub fn length_us(&self) -> Moment {
        match (self.points.first(), self.points.last()) {
            (Some((_, first)), Some((_, last))) => last - first,
            _ => 0,
        }
    }

    /// The time at a position, interpolated; before the first point that one's.
    #[must_use]
    pub fn time_at(&self, lsn: Lsn) -> Option<Moment> {
        let place = self.points.partition_point(|(point, _)| *point <= lsn);
        let Some((low, from)) = place.checked_sub(1).map(|at| self.points[at]) else {
            return self.points.first().map(|(_, at)| *at);
        };
        let Some((high, to)) = self.points.get(place) else {
            return Some(from);
        };
        Some(from + share(to - from, lsn.0 - low.0, high.0.saturating_sub(low.0)))
    }

    /// The position at a time, interpolated; None after the last point.
    #[must_use]
    pub fn position_at(&self, at: Moment) -> Option<Lsn> {
        let place = self.points.partition_point(|(_, point)| *point < at);
        let (high, to) = *self.points.get(place)?;
        let Some((low, from)) = place.checked_sub(1).map(|at| self.points[at]) else {
            return Some(high);
        };
        let passed = u64::try_from(at - from).unwrap_or(0);
        let whole = u64::try_from(to - from).unwrap_or(1);
        let bytes = i64::try_from(high.0.saturating_sub(low.0)).unwrap_or(i64::MAX);
        let moved = share(bytes, passed, whole);
        Some(Lsn(low.0.saturating_add(u64::try_from(moved).unwrap_or(0))))
    }
}

/// `whole * part / of`, without overflow.
fn share(whole: i64, part: u64, of: u64) -> i64 {
    let product = i128::from(whole) * i128::from(part) / i128::from(of.max(1));
    i64::try_from(product).unwrap_or(i64::MAX)
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    count: u64,
    bytes: u64,
}

impl Mean {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn value(self) -> Option<u64> {
        (self.count > 0).then(|| (self.bytes + self.count / 2) / self.count)
    }
}

/// Which block of which kind of record.
type Kind = (u8, u8, u8);

/// The facts.
#[derive(Debug)]
pub struct Facts {
    major: Major,
    from: Lsn,
    to: Lsn,
    /// Times.
    pub clock: Clock,
    /// Redo points, and whether the server was shut down there.
    pub redo_points: Vec<(Lsn, bool)>,
    /// Whether changes of hint bits have images (checksums or `wal_log_hints`), as far as the log
    /// shows.
    pub hints_logged: bool,
    /// Whether images are compressed.
    pub compressed: bool,
    data_of: HashMap<(RelFile, Kind), Mean>,
    data: HashMap<Kind, Mean>,
    /// Kinds whose data stay beside an image.
    kept: HashMap<Kind, ()>,
    images_of: HashMap<RelFile, Mean>,
    images: Mean,
}

impl Facts {
    /// None yet; of records that begin at `from` or later and end at `to` or before.
    #[must_use]
    pub fn new(major: Major, from: Lsn, to: Lsn) -> Self {
        Self {
            major,
            from,
            to,
            clock: Clock::default(),
            redo_points: Vec::new(),
            hints_logged: false,
            compressed: false,
            data_of: HashMap::new(),
            data: HashMap::new(),
            kept: HashMap::new(),
            images_of: HashMap::new(),
            images: Mean::default(),
        }
    }

    /// Version that wrote the log.
    #[must_use]
    pub const fn major(&self) -> Major {
        self.major
    }

    /// Bytes that a block's data would have if there were no image: a mean of its kind.
    #[must_use]
    pub fn data_bytes(&self, record: &Record<'_>, block: &Block) -> u64 {
        let kind = kind_of(record, block);
        self.data_of
            .get(&(block.relation, kind))
            .or_else(|| self.data.get(&kind))
            .and_then(|mean| mean.value())
            .unwrap_or(0)
    }

    /// Whether data of this kind stay where there is an image, for logical decoding.
    #[must_use]
    pub fn is_kept(&self, record: &Record<'_>, block: &Block) -> bool {
        self.kept.contains_key(&kind_of(record, block))
    }

    /// Bytes of an image of a relation: a mean.
    #[must_use]
    pub fn image_bytes(&self, relation: RelFile) -> u64 {
        self.images_of
            .get(&relation)
            .and_then(|mean| mean.value())
            .or_else(|| self.images.value())
            .unwrap_or(crate::format::PAGE_BYTES as u64)
    }

    fn note_block(&mut self, record: &Record<'_>, place: usize) {
        let block = &record.blocks[place];
        let kind = kind_of(record, block);
        let Some(image) = block.image else {
            if !block.is_new && !is_unlogged(self.major, record, block) {
                let bytes = u64::from(block.data_bytes);
                self.data.entry(kind).or_default().add(bytes);
                let key = (block.relation, kind);
                if self.data_of.len() < KINDS_MOST || self.data_of.contains_key(&key) {
                    self.data_of.entry(key).or_default().add(bytes);
                }
            }
            return;
        };
        self.compressed |= image.compression != Compression::None;
        let cause = Cause::of_image(record, place);
        if cause == Cause::FpiForced {
            return;
        }
        let is_visible_heap = is_unlogged(self.major, record, block);
        self.hints_logged |= cause == Cause::FpiHint || is_visible_heap;
        if block.data_bytes > 0 {
            self.kept.insert(kind, ());
        }
        let bytes = u64::from(image.bytes);
        self.images.add(bytes);
        if self.images_of.len() < KINDS_MOST || self.images_of.contains_key(&block.relation) {
            self.images_of.entry(block.relation).or_default().add(bytes);
        }
    }
}

fn kind_of(record: &Record<'_>, block: &Block) -> Kind {
    (record.header.rmgr, record.info() >> 4, block.id)
}

/// Whether only the bits of the visibility map change: the heap page has then neither an image nor
/// the record's position, unless hint bits are logged.
///
/// Source: `log_heap_visible`, `log_heap_prune_and_freeze`, src/backend/access/heap
/// (REL_15_STABLE to REL_18_STABLE, 19 candidate).
fn is_unlogged(major: Major, record: &Record<'_>, block: &Block) -> bool {
    const CHANGES_ROWS: u8 = 0xF0;
    if Rmgr::of(record.header.rmgr) != Rmgr::Heap2 {
        return false;
    }
    match record.info() >> 4 & 0x7 {
        0x4 if major < Major::V19 => block.id == 1,
        0x1..=0x3 if major >= Major::V17 && block.id == 0 => {
            let place = usize::from(major < Major::V19);
            let flags = record.main().get(place).copied().unwrap_or(CHANGES_ROWS);
            flags & CHANGES_ROWS == 0
        }
        _ => false,
    }
}

/// Whether a record leaves the block's position as it was, and gives it no image.
///
/// Source: `REGBUF_NO_IMAGE`: beside the above, the bucket's first page where another one of it is
/// changed, src/backend/access/hash/hash.c and hashovfl.c.
#[must_use]
pub fn leaves_alone(facts: &Facts, record: &Record<'_>, block: &Block) -> bool {
    let is_bucket = Rmgr::of(record.header.rmgr) == Rmgr::Hash
        && matches!(record.info() >> 4, 0x7..=0x9)
        && block.id == 0;
    is_bucket || (!facts.hints_logged && is_unlogged(facts.major, record, block))
}

impl Sink for Facts {
    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool {
        if end > self.to {
            return false;
        }
        if record.lsn < self.from {
            return true;
        }
        if let Some(at) = ended_at(record) {
            self.clock.note(record.lsn, at);
        }
        if let Some(redo) = redo_point(record) {
            self.redo_points.push((redo, record.info() == 0x00));
        }
        // From 17 on a record of its own says so at once.
        if Rmgr::of(record.header.rmgr) == Rmgr::Xlog && record.info() == 0xE0 {
            self.redo_points.push((record.lsn, false));
        }
        for place in 0..record.blocks.len() {
            self.note_block(record, place);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between points by their distance, before the first none, after the last not known.
    #[test]
    fn times_between() {
        let mut clock = Clock::default();
        for (lsn, at) in [(1000, 50), (900, 40), (2000, 150), (3000, 150), (4000, 350)] {
            clock.note(Lsn(lsn), at);
        }
        assert_eq!(clock.time_at(Lsn(10)), Some(50));
        assert_eq!(clock.time_at(Lsn(1500)), Some(100));
        assert_eq!(clock.time_at(Lsn(3000)), Some(250));
        assert_eq!(clock.time_at(Lsn(9000)), Some(350));
        assert_eq!(clock.position_at(100), Some(Lsn(1500)));
        assert_eq!(clock.position_at(50), Some(Lsn(1000)));
        assert_eq!(clock.position_at(351), None);
    }

    /// However long the log is, so many points and no more; what they say stays.
    #[test]
    fn points_are_bounded() {
        let mut clock = Clock::default();
        for number in 0..400_000_i64 {
            clock.note(Lsn(number.unsigned_abs() * 10), number * 50_000);
        }
        assert!(clock.points.len() < POINTS_MOST);
        let middle = clock.time_at(Lsn(2_000_000)).unwrap();
        assert!((middle - 200_000 * 50_000).abs() < 50_000, "{middle}");
    }
}
