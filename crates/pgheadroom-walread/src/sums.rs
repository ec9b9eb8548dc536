//! What sums are made of: counts of a relation, of a record type, and the time of a record.

use crate::cause::{Cause, INDEXES};
use crate::record::Record;
use crate::rmgr::{Rmgr, type_index};

/// Microseconds since 2000-01-01 00:00 UTC.
///
/// Source: `TimestampTz`, src/include/datatype/timestamp.h.
pub type Moment = i64;

/// When a transaction ended, in the record that says so.
///
/// Source: `xl_xact_commit.xact_time`, `xl_xact_abort.xact_time`, src/include/access/xact.h.
pub(crate) fn ended_at(record: &Record<'_>) -> Option<Moment> {
    let is_end = Rmgr::of(record.header.rmgr) == Rmgr::Transaction
        && matches!(
            type_index(record.header.rmgr, record.header.info),
            0 | 2 | 3 | 4
        );
    if !is_end {
        return None;
    }
    record
        .main()
        .first_chunk()
        .map(|time| Moment::from_le_bytes(*time))
}

/// A count of records and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// Sums of one relation; `by_cause` holds the causes that were met, by [`Cause::index`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelationSums {
    /// Records, by the first block's relation, and bytes.
    pub total: Count,
    /// Images.
    pub fpi: u64,
    /// Their bytes.
    pub fpi_bytes: u64,
    /// Each cause's share.
    pub by_cause: Vec<(u16, Count)>,
}

impl RelationSums {
    pub(crate) fn add(&mut self, cause: Cause, records: u64, bytes: u64) {
        let count = Count { records, bytes };
        self.total.add(count);
        self.add_cause(u16::try_from(cause.index()).unwrap_or(u16::MAX), count);
    }

    pub(crate) fn add_cause(&mut self, index: u16, count: Count) {
        match self.by_cause.iter_mut().find(|(known, _)| *known == index) {
            Some((_, sum)) => sum.add(count),
            None => self.by_cause.push((index, count)),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.total.add(other.total);
        self.fpi += other.fpi;
        self.fpi_bytes += other.fpi_bytes;
        for (index, count) in &other.by_cause {
            self.add_cause(*index, *count);
        }
    }
}

const _: () = assert!(INDEXES < u16::MAX as usize);

/// Sums of one record type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypeSums {
    /// Records.
    pub records: u64,
    /// Bytes, images included.
    pub bytes: u64,
    /// Bytes of images.
    pub fpi_bytes: u64,
}

impl TypeSums {
    /// Adds a record.
    pub const fn add(&mut self, bytes: u64, fpi_bytes: u64) {
        self.records += 1;
        self.bytes += bytes;
        self.fpi_bytes += fpi_bytes;
    }

    /// Adds others.
    pub const fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.fpi_bytes += other.fpi_bytes;
    }
}
