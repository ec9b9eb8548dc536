//! Who is given the records of a log, one after another.

use pgheadroom_layout::Lsn;

use crate::record::Record;

/// Is given each record.
pub trait Sink {
    /// A record that is whole and whose checksum holds, and where it ends; false to stop before it.
    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool;

    /// Whether it takes some of the records between two positions by [`Sink::simple`].
    ///
    /// For the sake of speed: most records have one of a few simple forms.
    fn takes_simple(&self, _from: Lsn, _to: Lsn) -> bool {
        false
    }

    /// As [`Sink::record`], of a record that is not taken apart yet; false to have it taken apart.
    fn simple(&mut self, _bytes: &[u8]) -> bool {
        false
    }

    /// The last of simple records ends there.
    fn simple_to(&mut self, _end: Lsn) {}

    /// What follows does not join on to what came before.
    ///
    /// # Arguments
    /// * `is_like_end` - what is there instead of a record is what a log's end leaves.
    fn gap(&mut self, _is_like_end: bool) {}

    /// There are no more records for now: what was put off is done.
    fn settle(&mut self) {}
}
