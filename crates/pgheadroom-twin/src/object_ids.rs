//! OIDs: one counter numbers objects, files and values out of line.
//!
//! Which bytes of two values' pointers agree depends on it, and so the bytes of the record of an
//! update on one page.

/// The first OID that a cluster gives to an object of users; its first database has it.
///
/// Source: `FirstNormalObjectId`, src/include/access/transam.h (REL_18_STABLE).
pub(crate) const FIRST_NORMAL_OBJECT_ID: u32 = 16_384;

/// OIDs that are given out, of the objects in the cluster's first database on.
#[derive(Debug, Clone)]
pub(crate) struct ObjectIds {
    /// `nextOid`.
    next: u32,
}

impl Default for ObjectIds {
    fn default() -> Self {
        Self {
            next: FIRST_NORMAL_OBJECT_ID + 1,
        }
    }
}

impl ObjectIds {
    /// The OID of a new object, or of a value out of line.
    ///
    /// Source: `GetNewObjectId`, src/backend/access/transam/varsup.c (REL_18_STABLE).
    pub const fn make(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// So many objects are made whose OIDs nobody here asks for.
    pub const fn skip(&mut self, count: u32) {
        self.next += count;
    }
}

/// A table: itself, its row type and an array type of that.
///
/// Source: `heap_create_with_catalog`, src/backend/catalog/heap.c (REL_18_STABLE).
pub(crate) const OIDS_OF_TABLE: u32 = 3;
/// A TOAST table and its index.
///
/// Source: `create_toast_table`, src/backend/catalog/toasting.c (REL_18_STABLE).
pub(crate) const OIDS_OF_TOAST_TABLE: u32 = 2;
/// A constraint, and two triggers on either side.
///
/// Source: `ATAddForeignKeyConstraint` and what it calls, src/backend/commands/tablecmds.c
/// (REL_18_STABLE).
pub(crate) const OIDS_OF_FOREIGN_KEY: u32 = 5;
/// The first temporary table of a session: two schemas, and itself.
///
/// Source: `InitTempTableNamespace`, src/backend/catalog/namespace.c (REL_18_STABLE).
pub(crate) const OIDS_OF_FIRST_TEMPORARY_TABLE: u32 = 2 + OIDS_OF_TABLE;
/// Another one of it.
pub(crate) const OIDS_OF_TEMPORARY_TABLE: u32 = OIDS_OF_TABLE;
