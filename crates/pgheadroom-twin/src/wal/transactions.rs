//! Records of transactions: their ends, and multixacts.

use pgheadroom_layout::Behaviour;
use pgheadroom_layout::wal_record::{
    COMMIT, COMMIT_LOGICAL, multixact_create, multixact_zero_page, subtransactions,
};

use crate::multixact::Created;
use crate::wal::{RecordType, Wal};

impl Wal {
    /// Writes the record of a COMMIT.
    #[inline]
    pub fn record_commit(&mut self) {
        self.record_commit_of(0);
    }

    /// The same of a transaction with so many parts.
    pub(crate) fn record_commit_of(&mut self, parts: usize) {
        let bytes = if self.is_logical() {
            COMMIT_LOGICAL
        } else {
            COMMIT
        };
        let parts = self.bytes_of_parts(parts);
        self.record(RecordType::Commit, bytes + parts);
    }

    /// A transaction, or a part of one, is rolled back, which has so many parts.
    ///
    /// Source: `XactLogAbortRecord`, src/backend/access/transam/xact.c (REL_18_STABLE): the same
    /// shape, without the database's name.
    pub(crate) fn record_abort_of(&mut self, parts: usize) {
        let parts = self.bytes_of_parts(parts);
        self.record(RecordType::Abort, COMMIT + parts);
    }

    fn bytes_of_parts(&self, parts: usize) -> u32 {
        let parts = u32::try_from(parts).expect("few parts");
        subtransactions(parts, self.is_logical())
    }

    /// A multixact was made, if it was.
    ///
    /// Source: `MultiXactIdCreateFromMembers` and `WriteMZeroPageXlogRec`,
    /// src/backend/access/transam/multixact.c (REL_15_STABLE, REL_18_STABLE).
    pub fn record_multixact(&mut self, created: Option<Created>, behaviour: &Behaviour) {
        let Some(created) = created else { return };
        let page_bytes = multixact_zero_page(behaviour.multixact_page_number_bytes);
        if created.begins_offsets_page(behaviour) {
            self.record(RecordType::MultixactZeroOffsets, page_bytes);
        }
        if created.begins_members_page(behaviour) {
            self.record(RecordType::MultixactZeroMembers, page_bytes);
        }
        let bytes = multixact_create(created.members, behaviour.multixact_offset_bytes);
        self.record(RecordType::MultixactCreate, bytes);
    }
}
