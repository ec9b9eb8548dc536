//! Foreign keys of a profile: which column of which table refers to which other table.

use crate::profile::{ProfileError, TableSpec, ValuesKind};

/// A foreign key by positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    /// The table, and its column that refers.
    pub table: usize,
    pub column: usize,
    /// The table referred to, and which of its indexes is over its key.
    pub parent: usize,
    pub index: usize,
}

/// All foreign keys of these tables, in the order of their creation.
///
/// # Errors
/// [`ProfileError::NotAProfile`] for one that PostgreSQL would refuse as well, and
/// [`ProfileError::Unplayable`] for one that the twin does not play.
pub(crate) fn foreign_keys(tables: &[TableSpec]) -> Result<Vec<ForeignKey>, ProfileError> {
    let mut found = Vec::new();
    for (table, spec) in tables.iter().enumerate() {
        for number in 0..spec.foreign_keys.len() {
            found.push(foreign_key(tables, table, number)?);
        }
        for (number, column) in spec.columns.iter().enumerate() {
            let refers = found
                .iter()
                .any(|key| (key.table, key.column) == (table, number));
            if refers != (column.values.kind == ValuesKind::Parent) {
                return Err(ProfileError::NotAProfile {
                    reason: format!(
                        "table[{table}].columns[{number}].values: expected the kind parent for a \
                         foreign key's column, and for no other"
                    ),
                });
            }
        }
    }
    Ok(found)
}

fn foreign_key(
    tables: &[TableSpec],
    table: usize,
    number: usize,
) -> Result<ForeignKey, ProfileError> {
    let spec = &tables[table];
    let path = format!("table[{table}].foreign_keys[{number}]");
    let wrong = |reason: &str| ProfileError::NotAProfile {
        reason: format!("{path}: {reason}"),
    };
    let found = &spec.foreign_keys[number];
    let parent = tables.iter().position(|one| one.name == found.references);
    let parent = parent.ok_or_else(|| wrong("expected references to a table of the profile"))?;
    if parent == table {
        return Err(ProfileError::Unplayable {
            field: path,
            reason: "a table that refers to itself".to_owned(),
        });
    }
    let [column] = &found.columns[..] else {
        return Err(ProfileError::Unplayable {
            field: path,
            reason: "a foreign key of other than one column".to_owned(),
        });
    };
    let column = spec.column(column);
    let column = column.ok_or_else(|| wrong("expected a column of this table"))?;
    if spec.key_column() == Some(column) {
        return Err(wrong("expected a column that is not the key"));
    }
    let is_alone = |index: &usize| tables[parent].indexes[*index].columns.len() == 1;
    let index = tables[parent].key_index().filter(is_alone);
    let index = index.ok_or_else(|| wrong("expected a unique index over the key referred to"))?;
    let key = tables[parent]
        .key_column()
        .map(|key| &tables[parent].columns[key]);
    let is_integer = |name: &str| matches!(name, "int2" | "int4" | "int8");
    let own = &spec.columns[column];
    let fits = key.is_some_and(|key| {
        let is_uuid = key.type_name == "uuid" && key.values.ordered == own.values.ordered;
        (is_integer(&key.type_name) && is_integer(&own.type_name))
            || (is_uuid && own.type_name == "uuid")
    });
    if !fits {
        return Err(ProfileError::Unplayable {
            field: path,
            reason: "a reference that is neither an integer nor a uuid as the key is".to_owned(),
        });
    }
    let rule = &own.values;
    if rule.ndistinct.is_none_or(|rows| rows < 1) {
        return Err(wrong("expected rows in the table referred to"));
    }
    Ok(ForeignKey {
        table,
        column,
        parent,
        index,
    })
}
