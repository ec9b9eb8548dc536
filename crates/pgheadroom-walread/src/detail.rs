//! Sums beside those by relation: stretches of the log, and transactions.
//!
//! A stretch begins where a checkpoint's redo point is, or with the first end of a transaction in
//! another slice of time. Redo points are known only from the checkpoint's record, which comes
//! later: they are collected in one pass ([`Detail::marks`]) and cut at in another.

use std::collections::HashMap;

use pgheadroom_layout::Lsn;

use crate::format::Major;
use crate::record::Record;
use crate::rmgr::{Rmgr, type_index};
use crate::sums::{Moment, TypeSums};

/// How many transactions are kept, the largest. Arbitrary.
const TRANSACTIONS_KEPT: usize = 100;
/// So many that have not ended are followed: more than `max_connections` and prepared ones, with
/// parts. What is beyond is not followed, and counted ([`Transactions::not_followed`]).
const OPEN_MAX: usize = 1 << 20;

/// What is asked for beside the sums by relation.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Where stretches begin, in order.
    pub cuts: Vec<Lsn>,
    /// Width of slices of time, in microseconds, whose begins are collected.
    pub slice_us: Option<i64>,
    /// Whether transactions are told apart; they are then read one after another.
    pub transactions: bool,
}

impl Wanted {
    /// Whether each record has to be looked at by itself.
    pub(crate) fn is_of_each_record(&self) -> bool {
        !self.cuts.is_empty() || self.slice_us.is_some() || self.transactions
    }
}

/// Begins of stretches, and what lies between them.
#[derive(Debug, Clone, Default)]
pub struct Detail {
    wanted: Wanted,
    at: usize,
    /// Sums before the first cut, between cuts, and after the last.
    pub stretches: Vec<TypeSums>,
    /// Redo points, in the order of the checkpoints' records.
    pub redo_points: Vec<Lsn>,
    /// Where slices of time begin, and the number of the slice.
    pub slices: Vec<(Lsn, i64)>,
    /// Transactions, where they were asked for.
    pub transactions: Transactions,
}

impl Detail {
    /// Nothing yet.
    #[must_use]
    pub fn new(wanted: &Wanted) -> Self {
        Self {
            stretches: vec![TypeSums::default(); wanted.cuts.len() + 1],
            wanted: wanted.clone(),
            ..Self::default()
        }
    }

    /// Takes a record that counts, with the bytes of its images and the time it says.
    pub fn note(
        &mut self,
        major: Major,
        record: &Record<'_>,
        fpi_bytes: u64,
        ended: Option<Moment>,
    ) {
        while self
            .wanted
            .cuts
            .get(self.at)
            .is_some_and(|cut| record.lsn >= *cut)
        {
            self.at += 1;
        }
        let total = u64::from(record.header.total_bytes);
        if let Some(stretch) = self.stretches.get_mut(self.at) {
            stretch.add(total, fpi_bytes);
        }
        if let (Some(width), Some(at)) = (self.wanted.slice_us, ended) {
            let slice = at.div_euclid(width.max(1));
            if self.slices.last().is_none_or(|(_, last)| slice > *last) {
                self.slices.push((record.lsn, slice));
            }
        }
        if let Some(redo) = redo_point(record) {
            self.redo_points.push(redo);
        }
        if self.wanted.transactions {
            self.transactions.note(major, record, fpi_bytes, ended);
        }
    }

    /// Adds what another reader has found that went on where this one stopped.
    pub fn merge(&mut self, other: &Self) {
        for (sum, added) in self.stretches.iter_mut().zip(&other.stretches) {
            sum.merge(added);
        }
        self.redo_points.extend(&other.redo_points);
        for (lsn, slice) in &other.slices {
            if self.slices.last().is_none_or(|(_, last)| slice > last) {
                self.slices.push((*lsn, *slice));
            }
        }
    }
}

/// The redo point that a checkpoint's record names.
///
/// Source: `CheckPoint.redo`, the first field, src/include/catalog/pg_control.h.
pub(crate) fn redo_point(record: &Record<'_>) -> Option<Lsn> {
    if Rmgr::of(record.header.rmgr) != Rmgr::Xlog || !matches!(record.info(), 0x00 | 0x10) {
        return None;
    }
    let redo = record.main().first_chunk()?;
    Some(Lsn(u64::from_le_bytes(*redo)))
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum End {
    Open,
    Commit,
    Abort,
}

/// What a transaction has written, with its parts as far as its end names them.
#[derive(Debug, Clone, Copy)]
pub struct Transaction {
    /// Its number.
    pub xid: u32,
    /// Its records.
    pub sums: TypeSums,
    /// Where its first record begins.
    pub first: Lsn,
    /// How it ended.
    pub end: End,
    /// When it ended.
    pub ended: Option<Moment>,
}

/// The transactions that have written most.
#[derive(Debug, Clone, Default)]
pub struct Transactions {
    open: HashMap<u32, (Lsn, TypeSums)>,
    largest: Vec<Transaction>,
    /// Records of transactions beyond those that are followed at the same time.
    pub not_followed: u64,
}

/// Source: `XLOG_XACT_HAS_INFO`, `XACT_XINFO_*`, src/include/access/xact.h.
const HAS_INFO: u8 = 0x80;
const XINFO_HAS_DBINFO: u32 = 1;
const XINFO_HAS_SUBXACTS: u32 = 1 << 1;
const XINFO_HAS_RELFILELOCATORS: u32 = 1 << 2;
const XINFO_HAS_INVALS: u32 = 1 << 3;
const XINFO_HAS_TWOPHASE: u32 = 1 << 4;
const XINFO_HAS_DROPPED_STATS: u32 = 1 << 8;

impl Transactions {
    fn note(&mut self, major: Major, record: &Record<'_>, fpi_bytes: u64, ended: Option<Moment>) {
        let is_end = ended.is_some() && Rmgr::of(record.header.rmgr) == Rmgr::Transaction;
        let kind = type_index(record.header.rmgr, record.header.info);
        let total = u64::from(record.header.total_bytes);
        let parts = if is_end {
            Parts::of(major, record)
        } else {
            Parts::default()
        };
        let xid = match (is_end && kind >= 3, parts.prepared) {
            (true, Some(prepared)) => prepared,
            _ => record.header.xid,
        };
        if xid == 0 {
            return;
        }
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&xid) {
            self.not_followed += 1;
            return;
        }
        let entry = self.open.entry(xid);
        entry
            .or_insert((record.lsn, TypeSums::default()))
            .1
            .add(total, fpi_bytes);
        if !is_end {
            return;
        }
        let Some((mut first, mut sums)) = self.open.remove(&xid) else {
            return;
        };
        for part in parts.parts {
            if let Some((lsn, of_part)) = self.open.remove(&part) {
                first = first.min(lsn);
                sums.merge(&of_part);
            }
        }
        let end = if matches!(kind, 0 | 3) {
            End::Commit
        } else {
            End::Abort
        };
        self.keep(Transaction {
            xid,
            sums,
            first,
            end,
            ended,
        });
    }

    fn keep(&mut self, transaction: Transaction) {
        let is_full = self.largest.len() >= TRANSACTIONS_KEPT;
        let least = self.largest.last().map_or(0, |last| last.sums.bytes);
        if is_full && transaction.sums.bytes <= least {
            return;
        }
        let place = self
            .largest
            .partition_point(|other| other.sums.bytes >= transaction.sums.bytes);
        self.largest.insert(place, transaction);
        self.largest.truncate(TRANSACTIONS_KEPT);
    }

    /// The largest, those too that have not ended where the log does.
    #[must_use]
    pub fn largest(&self) -> Vec<Transaction> {
        let mut all = self.clone();
        let mut open: Vec<_> = self.open.iter().collect();
        open.sort_unstable_by_key(|(xid, _)| **xid);
        for (xid, (first, sums)) in open {
            all.keep(Transaction {
                xid: *xid,
                sums: *sums,
                first: *first,
                end: End::Open,
                ended: None,
            });
        }
        all.largest
    }
}

/// What the end of a transaction names beside its own number.
#[derive(Debug, Default)]
struct Parts {
    parts: Vec<u32>,
    prepared: Option<u32>,
}

impl Parts {
    /// Source: `ParseCommitRecord`, `ParseAbortRecord`,
    /// src/backend/access/rmgrdesc/xactdesc.c (REL_15_STABLE to REL_18_STABLE).
    fn of(major: Major, record: &Record<'_>) -> Self {
        Self::read(major, record).unwrap_or_default()
    }

    fn read(major: Major, record: &Record<'_>) -> Option<Self> {
        let mut found = Self::default();
        if record.header.info & HAS_INFO == 0 {
            return Some(found);
        }
        let mut rest = Words(record.main().get(8..)?);
        let xinfo = rest.word()?;
        if xinfo & XINFO_HAS_DBINFO != 0 {
            rest.skip(2)?;
        }
        if xinfo & XINFO_HAS_SUBXACTS != 0 {
            let count = rest.word()? as usize;
            let parts = rest.0.get(..count.checked_mul(4)?)?;
            found.parts = parts
                .chunks_exact(4)
                .map(|word| Words(word).word().unwrap_or(0))
                .collect();
            rest.skip(count)?;
        }
        if xinfo & XINFO_HAS_RELFILELOCATORS != 0 {
            let count = rest.word()? as usize;
            rest.skip(count.checked_mul(3)?)?;
        }
        if xinfo & XINFO_HAS_DROPPED_STATS != 0 {
            let count = rest.word()? as usize;
            // Kind, database, object; from 18 on an object's number has 8 bytes.
            let words = if major >= Major::V18 { 4 } else { 3 };
            rest.skip(count.checked_mul(words)?)?;
        }
        if xinfo & XINFO_HAS_INVALS != 0 {
            let count = rest.word()? as usize;
            rest.skip(count.checked_mul(4)?)?;
        }
        if xinfo & XINFO_HAS_TWOPHASE != 0 {
            found.prepared = rest.word();
        }
        Some(found)
    }
}

/// Words of four bytes, one after another.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn word(&mut self) -> Option<u32> {
        let word: [u8; 4] = self.0.get(..4)?.try_into().ok()?;
        self.skip(1)?;
        Some(u32::from_le_bytes(word))
    }

    fn skip(&mut self, words: usize) -> Option<()> {
        self.0 = self.0.get(words.checked_mul(4)?..)?;
        Some(())
    }
}
