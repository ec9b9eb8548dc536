//! The enums of a profile, and the OIDs that their labels have.

use crate::object_ids::FIRST_NORMAL_OBJECT_ID;
use crate::profile::TableSpec;
use crate::wrap::OIDS_OF_COMPOSITE;

/// Enums by their labels, with the OID of the first.
pub(super) type Enums<'a> = Vec<(&'a [String], u32)>;

/// The enums of a profile, one for each list of labels, in the order in which they are made: before
/// all else in a database that is the cluster's first object, and has the first OID.
///
/// Source: `DefineEnum`, src/backend/commands/typecmds.c: the array type has its OID first, then
/// the enum itself, then its labels.
pub(super) fn enums(tables: &[TableSpec]) -> Enums<'_> {
    let mut next = FIRST_NORMAL_OBJECT_ID + 1 + oids_of_composite(tables);
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

/// How many OIDs they take, all together, and the composite type before them.
pub(super) fn oids_of(enums: &Enums<'_>, tables: &[TableSpec]) -> u32 {
    let end = enums.last().map(|&(labels, first)| end_of(labels, first));
    end.map_or_else(
        || oids_of_composite(tables),
        |next| next - (FIRST_NORMAL_OBJECT_ID + 1),
    )
}

/// How many the composite type takes, which is made before them where a column is of it.
fn oids_of_composite(tables: &[TableSpec]) -> u32 {
    let mut columns = tables.iter().flat_map(|table| &table.columns);
    if columns.any(|column| column.type_name == "composite") {
        OIDS_OF_COMPOSITE
    } else {
        0
    }
}

/// The OID behind that of the last label, which are even all.
fn end_of(labels: &[String], first: u32) -> u32 {
    first + 2 * u32::try_from(labels.len()).expect("few labels") - 1
}
