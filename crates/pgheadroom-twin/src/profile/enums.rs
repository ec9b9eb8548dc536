//! The enums of a profile, and the OIDs that their labels have.

use crate::object_ids::FIRST_NORMAL_OBJECT_ID;
use crate::profile::TableSpec;

/// Enums by their labels, with the OID of the first.
pub(super) type Enums<'a> = Vec<(&'a [String], u32)>;

/// The enums of a profile, one for each list of labels, in the order in which they are made: before
/// all else in a database that is the cluster's first object, and has the first OID.
///
/// Source: `DefineEnum`, src/backend/commands/typecmds.c: the array type has its OID first, then
/// the enum itself, then its labels.
pub(super) fn enums(tables: &[TableSpec]) -> Enums<'_> {
    let mut next = FIRST_NORMAL_OBJECT_ID + 1;
    let mut found = Enums::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        let labels = column.labels.as_slice();
        if labels.is_empty() || found.iter().any(|&(known, _)| known == labels) {
            continue;
        }
        let first = (next + 2).next_multiple_of(2);
        found.push((labels, first));
        next = end_of(labels, first);
    }
    found
}

/// How many OIDs they take, all together.
pub(super) fn oids_of(enums: &Enums<'_>) -> u32 {
    let end = enums.last().map(|&(labels, first)| end_of(labels, first));
    end.map_or(0, |next| next - (FIRST_NORMAL_OBJECT_ID + 1))
}

/// The OID behind that of the last label, which are even all.
fn end_of(labels: &[String], first: u32) -> u32 {
    first + 2 * u32::try_from(labels.len()).expect("few labels") - 1
}
