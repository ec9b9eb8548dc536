//! Names, options and types out of parse trees.

use pg_query::protobuf::{DefElem, RangeVar, TypeName, a_const};
use pg_query::{Node, NodeEnum};

use crate::facts::Target;

/// A text that the parser leaves empty where there is none.
pub(crate) fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The names of a list of strings; anything else, such as `*`, is left out.
pub(crate) fn name_parts(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().filter_map(text_of).collect()
}

/// A string node's text.
pub(crate) fn text_of(node: &Node) -> Option<&str> {
    match node.node.as_ref()? {
        NodeEnum::String(string) => Some(&string.sval),
        _ => None,
    }
}

/// A table or index as a statement names it.
pub(crate) fn target(relation: Option<&RangeVar>) -> Target {
    relation.map_or_else(
        || Target {
            schema: None,
            name: String::new(),
        },
        |found| Target {
            schema: optional(&found.schemaname),
            name: found.relname.clone(),
        },
    )
}

/// From `schema.name` as a list of strings.
pub(crate) fn target_of_list(nodes: &[Node]) -> Target {
    let parts = name_parts(nodes);
    let name = parts.last().copied().unwrap_or_default().to_owned();
    let schema = parts
        .len()
        .checked_sub(2)
        .map(|place| parts[place].to_owned());
    Target { schema, name }
}

/// The options `(name value, ...)` of a statement.
pub(crate) fn options(nodes: &[Node]) -> impl Iterator<Item = &DefElem> {
    nodes.iter().filter_map(|node| match node.node.as_ref() {
        Some(NodeEnum::DefElem(option)) => Some(&**option),
        _ => None,
    })
}

/// Whether a boolean option is on: named alone, or with a true value. The last one counts.
pub(crate) fn is_set(nodes: &[Node], name: &str) -> bool {
    let found = options(nodes)
        .filter(|option| option.defname.eq_ignore_ascii_case(name))
        .last();
    found.is_some_and(|option| {
        value_of(option).is_none_or(|value| {
            !matches!(
                value.to_ascii_lowercase().as_str(),
                "false" | "off" | "0" | "no"
            )
        })
    })
}

/// An option's value as it is written.
pub(crate) fn value_of(option: &DefElem) -> Option<String> {
    match option.arg.as_deref()?.node.as_ref()? {
        NodeEnum::Integer(number) => Some(number.ival.to_string()),
        NodeEnum::Float(number) => Some(number.fval.clone()),
        NodeEnum::Boolean(value) => Some(value.boolval.to_string()),
        NodeEnum::String(text) => Some(text.sval.clone()),
        NodeEnum::TypeName(name) => Some(name_parts(&name.names).join(".")),
        _ => None,
    }
}

/// Types whose names in statements are not those in the catalog: (catalog, before the modifier,
/// behind it). Source: `format_type_extended`, src/backend/utils/adt/format_type.c.
const SPELLED: [(&str, &str, &str); 14] = [
    ("bit", "bit", ""),
    ("bool", "boolean", ""),
    ("bpchar", "character", ""),
    ("float4", "real", ""),
    ("float8", "double precision", ""),
    ("int2", "smallint", ""),
    ("int4", "integer", ""),
    ("int8", "bigint", ""),
    ("time", "time", " without time zone"),
    ("timetz", "time", " with time zone"),
    ("timestamp", "timestamp", " without time zone"),
    ("timestamptz", "timestamp", " with time zone"),
    ("varbit", "bit varying", ""),
    ("varchar", "character varying", ""),
];

/// A type as PostgreSQL spells it (`format_type`): `character varying(20)`, `integer[]`.
pub(crate) fn type_spelled(found: Option<&TypeName>) -> String {
    let Some(found) = found else {
        return String::new();
    };
    let names = name_parts(&found.names);
    let own = match names.as_slice() {
        [name] | ["pg_catalog", name] => SPELLED.iter().find(|(catalog, ..)| catalog == name),
        _ => None,
    };
    let modifiers: Vec<String> = found.typmods.iter().map(constant).collect();
    let is_interval = matches!(names.as_slice(), ["pg_catalog", "interval"]);
    let modifiers = match modifiers.as_slice() {
        [] => String::new(),
        // INTERVAL DAY TO SECOND (3): the first is a mask of fields.
        [_, precision] if is_interval => format!("({precision})"),
        [_] if is_interval => String::new(),
        some => format!("({})", some.join(",")),
    };
    let bounds = "[]".repeat(found.array_bounds.len().min(1));
    match own {
        Some((_, before, behind)) => format!("{before}{modifiers}{behind}{bounds}"),
        None => {
            let names = names.strip_prefix(&["pg_catalog"]).unwrap_or(&names);
            let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            format!("{}{modifiers}{bounds}", quoted.join("."))
        }
    }
}

fn constant(node: &Node) -> String {
    match node.node.as_ref() {
        Some(NodeEnum::AConst(found)) => match found.val.as_ref() {
            Some(a_const::Val::Ival(number)) => number.ival.to_string(),
            Some(a_const::Val::Fval(number)) => number.fval.clone(),
            Some(a_const::Val::Sval(text)) => text.sval.clone(),
            _ => "?".to_owned(),
        },
        // geometry(Point, 4326)
        Some(NodeEnum::ColumnRef(column)) => name_parts(&column.fields).join("."),
        _ => "?".to_owned(),
    }
}

fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
