//! A profile's indexes as CREATE INDEX makes them.

use pgheadroom_layout::btree::BtreeFillfactor;

use crate::executor::{
    ColumnDefinition, GinOperators, GinOptions, IndexDefinition, IndexKey, IndexMethod, KeyOrder,
    PAGES_PER_RANGE,
};
use crate::expression::{Expression, ExpressionError, Found, Statement};
use crate::profile::{IndexSpec, Method, ProfileError, TableSpec};
use crate::row::kind::Kind;

/// An index as CREATE INDEX makes it.
pub(super) fn definition(
    spec: &IndexSpec,
    table: &TableSpec,
    columns: &[ColumnDefinition],
    path: &str,
) -> Result<IndexDefinition, ProfileError> {
    let column = |name: &String| {
        table.column(name).ok_or_else(|| ProfileError::NotAProfile {
            reason: format!("{path}: no column {name}"),
        })
    };
    let expression = |text: &String, field: &str| {
        evaluated(text, spec, table, columns).map_err(|error| ProfileError::Unplayable {
            field: format!("{path}.{field}"),
            reason: error.to_string(),
        })
    };
    let mut keys = Vec::new();
    for name in &spec.columns {
        keys.push(IndexKey::Column(column(name)?));
    }
    for (number, text) in spec.expressions.iter().enumerate() {
        let field = format!("expressions[{number}]");
        keys.push(IndexKey::Expression(expression(text, &field)?));
    }
    let gin_operators = match spec.method {
        Method::Gin => gin_operators(spec, &keys, columns),
        _ => Vec::new(),
    };
    let default = if spec.method == Method::Hash { 75 } else { 90 };
    let fillfactor = BtreeFillfactor::new(spec.fillfactor.unwrap_or(default));
    Ok(IndexDefinition {
        name: spec.name.clone(),
        method: match spec.method {
            Method::Btree => IndexMethod::Btree,
            Method::Brin => IndexMethod::Brin,
            Method::Hash => IndexMethod::Hash,
            Method::Gin if gin_operators.len() == keys.len() => IndexMethod::Gin,
            Method::Gin | Method::Gist | Method::Spgist => IndexMethod::Unpriced,
        },
        keys,
        include: spec
            .include
            .iter()
            .map(column)
            .collect::<Result<Vec<_>, _>>()?,
        predicate: spec
            .predicate
            .as_ref()
            .map(|text| expression(text, "where"))
            .transpose()?,
        is_unique: spec.unique,
        fillfactor: fillfactor.map_err(|error| ProfileError::NotAProfile {
            reason: format!("{path}.fillfactor: {error}"),
        })?,
        deduplicate_items: spec.deduplicate_items.unwrap_or(true),
        order: spec.order.iter().map(|text| key_order(text)).collect(),
        nulls_not_distinct: spec.nulls_not_distinct,
        pages_per_range: spec.pages_per_range.unwrap_or(PAGES_PER_RANGE).max(1),
        gin_operators,
        gin: GinOptions {
            fast_update: spec.fastupdate.unwrap_or(true),
            pending_list_limit: spec.gin_pending_list_limit,
            ..GinOptions::default()
        },
    })
}

/// Whether the keys are known that a GIN's operator class (empty: the default) makes of a type.
#[must_use]
pub fn knows_gin_keys(type_name: &str, opclass: &str) -> bool {
    let column = ColumnDefinition::new("", type_name).ok();
    let kind = column.and_then(|column| column.kind());
    kind.is_some_and(|kind| GinOperators::of(opclass, kind).is_some())
}

/// Operator classes of a GIN's columns, as far as their keys are known.
fn gin_operators(
    spec: &IndexSpec,
    keys: &[IndexKey],
    columns: &[ColumnDefinition],
) -> Vec<GinOperators> {
    let kind_of = |key: &IndexKey| match key {
        IndexKey::Column(column) => columns[*column].kind(),
        // Of a stated value of one element nobody says how many it really has.
        IndexKey::Expression(expression) => {
            let kind = expression.kind();
            let is_known = !expression.is_stated() || matches!(kind, Kind::Elements(_));
            is_known.then_some(kind)
        }
    };
    let names = spec.opclass.iter().map(String::as_str);
    let names = names.chain(std::iter::repeat(""));
    let keys = keys.iter().zip(names);
    keys.filter_map(|(key, name)| GinOperators::of(name, kind_of(key)?))
        .collect()
}

/// An expression of an index, or what is stated of one that cannot be evaluated.
fn evaluated(
    text: &String,
    index: &IndexSpec,
    table: &TableSpec,
    columns: &[ColumnDefinition],
) -> Result<Expression, ExpressionError> {
    let parsed = read(text, index, columns);
    let stated = index.stated.iter().find(|one| one.expression == *text);
    let (Err(ExpressionError::Unsupported { .. } | ExpressionError::Unread { .. }), Some(stated)) =
        (&parsed, stated)
    else {
        return parsed;
    };
    let bytes = |bytes: i64| u32::try_from(bytes).unwrap_or(0);
    let statement = Statement {
        type_name: stated.type_name.clone(),
        ndistinct: stated.ndistinct.unwrap_or(1).max(1),
        width_bytes: stated
            .width
            .map(|width| (bytes(width.min_bytes), bytes(width.max_bytes))),
        null_frac: stated.null_frac,
        true_frac: stated.true_frac,
        changed_frac: stated.changed_frac,
        columns: stated.columns.clone(),
        identity: table.key_column().unwrap_or(0),
        salt: stated.salt,
        elements: stated
            .elements
            .and_then(|elements| elements.of_type(&stated.type_name)),
        found: Found::of(&stated.true_for, &stated.false_for),
    };
    Expression::stated(text, &statement, columns)
}

/// Expressions of a table's indexes of whose values is known what is stated, or assumed.
pub(crate) fn stated_expressions(table: &TableSpec) -> Vec<String> {
    let Ok(columns) = table.columns_of_expressions() else {
        return Vec::new();
    };
    let stated = table.indexes.iter().flat_map(|index| {
        let texts = index.stated.iter().map(|stated| &stated.expression);
        texts.filter(|text| read(text, index, &columns).is_err())
    });
    stated.cloned().collect()
}

/// Indexes that read columns which stand for others: their values, order and equality are those of
/// another type. Included columns are not compared, and methods without a price have no figures.
pub(crate) fn standing_in(table: &TableSpec) -> Vec<&IndexSpec> {
    let others: Vec<&str> = table
        .columns
        .iter()
        .filter(|column| column.stands_for.is_some())
        .map(|column| &*column.name)
        .collect();
    let Ok(columns) = table.columns_of_expressions() else {
        return Vec::new();
    };
    let is_priced = |index: &&IndexSpec| match index.method {
        Method::Btree | Method::Hash | Method::Brin => true,
        Method::Gin => has_known_keys(index, table),
        Method::Gist | Method::Spgist => false,
    };
    let indexes = table.indexes.iter().filter(is_priced);
    let reads_another = |index: &&IndexSpec| {
        let names = names_read(index, &columns);
        names.iter().any(|name| others.contains(&&**name))
    };
    indexes
        .filter(|_| !others.is_empty())
        .filter(reads_another)
        .collect()
}

/// Whether a GIN is played as one, as far as its columns say.
fn has_known_keys(index: &IndexSpec, table: &TableSpec) -> bool {
    let opclasses = index.opclass.iter().map(String::as_str);
    let mut named = index
        .columns
        .iter()
        .zip(opclasses.chain(std::iter::repeat("")));
    named.all(|(name, opclass)| {
        let column = table.column(name).map(|column| &table.columns[column]);
        column.is_some_and(|column| knows_gin_keys(&column.type_name, opclass))
    })
}

/// The columns that an index compares, or reads to make what it compares, or in its predicate.
fn names_read(index: &IndexSpec, columns: &[ColumnDefinition]) -> Vec<String> {
    let mut names = index.columns.clone();
    for text in index.expressions.iter().chain(&index.predicate) {
        if let Ok(expression) = read(text, index, columns) {
            let numbers = expression.columns().iter();
            names.extend(numbers.map(|&number| columns[number].name.clone()));
        } else {
            let stated = index.stated.iter().filter(|one| one.expression == *text);
            names.extend(stated.flat_map(|one| one.columns.iter().cloned()));
        }
    }
    names
}

/// An expression of an index, or its predicate, which has to be a condition.
fn read(
    text: &str,
    index: &IndexSpec,
    columns: &[ColumnDefinition],
) -> Result<Expression, ExpressionError> {
    if index.predicate.as_deref() == Some(text) {
        Expression::condition(text, columns)
    } else {
        Expression::parse(text, columns)
    }
}

/// `DESC`, `ASC NULLS FIRST` and the like; NULLs come first in a descending column.
fn key_order(text: &str) -> KeyOrder {
    let is_descending = text.starts_with("DESC");
    KeyOrder {
        is_descending,
        nulls_first: text.ends_with("FIRST") || (is_descending && !text.ends_with("LAST")),
    }
}
