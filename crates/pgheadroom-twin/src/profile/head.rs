//! The head of a queue as a profile names it: which index, which rows.

use crate::executor::Head;
use crate::expression::Expression;
use crate::profile::{Distribution, IndexSpec, Method, OperationSpec, ProfileError, TableSpec};

/// Which rows an operation takes from the head of a queue; `None` where it finds rows otherwise.
///
/// # Errors
/// [`ProfileError::NotAProfile`] for an index that is not there, and
/// [`ProfileError::Unplayable`] for a condition of which it is not known how a server looks for it.
pub(crate) fn head_of(
    operation: &OperationSpec,
    table: &TableSpec,
) -> Result<Option<Head>, ProfileError> {
    let pick = operation.pick.as_ref();
    let Some(pick) = pick.filter(|pick| pick.distribution == Distribution::Head) else {
        return Ok(None);
    };
    let name = pick.using.as_deref().unwrap_or_default();
    let mut indexes = table.indexes.iter();
    let index = indexes.position(|index| index.name == name);
    let (Some(position), Some(key_index)) = (index, table.key_index()) else {
        return Err(ProfileError::NotAProfile {
            reason: format!("{}: no index {name:?}, or no key", table.name),
        });
    };
    let index = &table.indexes[position];
    let columns = table.columns_of_expressions();
    let columns = columns.map_err(|error| ProfileError::NotAProfile {
        reason: format!("{}: {error}", table.name),
    })?;
    let parse = |text: &String| {
        Expression::condition(text, &columns).map_err(|error| ProfileError::Unplayable {
            field: format!("the head of {name}"),
            reason: error.to_string(),
        })
    };
    let filter = pick.predicate.as_ref().map(parse).transpose()?;
    let predicate = index.predicate.as_ref().map(parse).transpose()?;
    let bound = bound_of(index, table, filter.as_ref(), predicate.as_ref())?;
    Ok(Some(Head {
        index: position,
        bound,
        filter,
        key_index,
    }))
}

/// The value of the index's first column that the query asks for; `None` where it begins with the
/// first entry.
fn bound_of(
    index: &IndexSpec,
    table: &TableSpec,
    filter: Option<&Expression>,
    predicate: Option<&Expression>,
) -> Result<Option<i64>, ProfileError> {
    let cannot = |reason: &str| {
        Err(ProfileError::Unplayable {
            field: format!("the head of {}", index.name),
            reason: reason.to_owned(),
        })
    };
    if index.method != Method::Btree || index.columns.is_empty() {
        return cannot("an index that is no B-tree over columns");
    }
    if predicate.is_some() {
        return if predicate == filter {
            Ok(None)
        } else {
            cannot("another where than that of the partial index")
        };
    }
    let keys = index.columns.iter().map(|name| table.column(name));
    let keys: Vec<Option<usize>> = keys.collect();
    let Some(filter) = filter else {
        return Ok(None);
    };
    match filter.equality() {
        Some((column, value)) if keys[0] == Some(column) => Ok(Some(value)),
        _ if filter
            .columns()
            .iter()
            .any(|&column| keys.contains(&Some(column))) =>
        {
            cannot("a where over the index's columns other than its first column = an integer")
        }
        _ => Ok(None),
    }
}
