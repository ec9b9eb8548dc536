//! Types of an expression's parts, and what operators and functions take.

use crate::expression::{Comparison, Function, Node, Operator, Width};
use crate::row::kind::Kind;
use crate::value::{Text, Value};

/// A part whose type is known.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub node: Node,
    pub kind: Kind,
    /// A literal in quotes or NULL, which takes the type of what it meets.
    pub is_unknown: bool,
}

pub(super) enum Problem {
    Unsupported(String),
    Unread(String),
    Wrong(String),
}

pub(super) type Parsed = Result<Typed, Problem>;

pub(super) const BOOLEAN: Kind = Kind::Boolean;
pub(super) const TEXT: Kind = Kind::Text { length: None };

pub(super) const fn typed(node: Node, kind: Kind) -> Typed {
    Typed {
        node,
        kind,
        is_unknown: false,
    }
}

pub(super) fn number(digits: &str) -> Parsed {
    let value: i64 = digits
        .parse()
        .map_err(|_| Problem::Unsupported(format!("the number {digits}")))?;
    let width = if i32::try_from(value).is_ok() { 4 } else { 8 };
    Ok(typed(
        Node::Literal(Value::Integer(value)),
        Kind::Integer { width },
    ))
}

pub(super) fn boolean(part: Typed) -> Result<Node, Problem> {
    if part.kind == BOOLEAN || part.node == Node::Literal(Value::Null) {
        Ok(part.node)
    } else if part.is_unknown {
        // Some are booleans, as 'yes' is.
        Err(Problem::Unsupported("a literal as a condition".into()))
    } else {
        Err(Problem::Wrong("a condition that is not boolean".into()))
    }
}

/// A string, without blanks at the end if it is a bpchar.
pub(super) fn as_text(part: Typed, what: &str) -> Result<Node, Problem> {
    match part.kind {
        Kind::Text { .. } => Ok(part.node),
        Kind::Padded { .. } => Ok(Node::Call(Function::ToText, vec![part.node])),
        _ => Err(Problem::Unsupported(format!(
            "{what} of something else than strings"
        ))),
    }
}

/// A literal in quotes as a value of this type.
fn known(literal: Typed, kind: Kind) -> Parsed {
    let Node::Literal(Value::Text(text)) = &literal.node else {
        return Ok(typed(literal.node, kind)); // NULL
    };
    let text = String::from_utf8_lossy(&text.to_bytes()).into_owned();
    let value = match kind {
        Kind::Text { .. } | Kind::Padded { .. } => Value::Text(Text::new(&text)),
        Kind::Integer { .. } | Kind::Numeric { .. } => {
            let number = text.trim().parse().map(Value::Integer);
            number.map_err(|_| Problem::Unsupported(format!("the literal '{text}'")))?
        }
        _ => return Err(Problem::Unsupported(format!("the literal '{text}'"))),
    };
    Ok(typed(Node::Literal(value), kind))
}

const fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Integer { .. } | Kind::Numeric { .. }) || kind.is_float()
}

pub(super) fn compare(comparison: Comparison, one: Typed, other: Typed) -> Parsed {
    let (one, other) = match (one.is_unknown, other.is_unknown) {
        (true, false) => (known(one, other.kind)?, other),
        (false, true) => {
            let kind = one.kind;
            (one, known(other, kind)?)
        }
        _ => (one, other),
    };
    let node = match (one.kind, other.kind) {
        (Kind::Padded { .. }, Kind::Padded { .. }) => {
            Node::ComparePadded(comparison, Box::new([one.node, other.node]))
        }
        (one_kind, other_kind) if one_kind.is_text() && other_kind.is_text() => {
            let parts = [as_text(one, "=")?, as_text(other, "=")?];
            Node::Compare(comparison, Box::new(parts))
        }
        (one_kind, other_kind)
            if (is_number(one_kind) && is_number(other_kind)) || one_kind == other_kind =>
        {
            Node::Compare(comparison, Box::new([one.node, other.node]))
        }
        _ => {
            return Err(Problem::Unsupported(
                "a comparison of different types".into(),
            ));
        }
    };
    Ok(typed(node, BOOLEAN))
}

/// What arithmetic of these two works on.
fn common_width(one: Kind, other: Kind) -> Option<Width> {
    let of = |kind| match kind {
        Kind::Integer { width: 2 } => Some(Width::Int2),
        Kind::Integer { width: 4 } => Some(Width::Int4),
        Kind::Integer { .. } => Some(Width::Int8),
        Kind::Float8 => Some(Width::Float8),
        _ => None,
    };
    let rank = |width| match width {
        Width::Int2 => 0,
        Width::Int4 => 1,
        Width::Int8 => 2,
        Width::Float8 => 3,
    };
    let (one, other) = (of(one)?, of(other)?);
    Some(if rank(one) >= rank(other) { one } else { other })
}

const fn kind_of(width: Width) -> Kind {
    match width {
        Width::Int2 => Kind::Integer { width: 2 },
        Width::Int4 => Kind::Integer { width: 4 },
        Width::Int8 => Kind::Integer { width: 8 },
        Width::Float8 => Kind::Float8,
    }
}

pub(super) fn arithmetic(operator: Operator, one: Typed, other: Typed) -> Parsed {
    let (one, other) = match (one.is_unknown, other.is_unknown) {
        (true, false) => (known(one, other.kind)?, other),
        (false, true) => {
            let kind = one.kind;
            (one, known(other, kind)?)
        }
        _ => (one, other),
    };
    let width = common_width(one.kind, other.kind)
        .filter(|&width| width != Width::Float8 || operator != Operator::Remainder)
        .ok_or_else(|| {
            let what = "arithmetic of other types than integers and float8";
            Problem::Unsupported(what.to_owned())
        })?;
    let parts = Box::new([one.node, other.node]);
    Ok(typed(
        Node::Arithmetic(operator, width, parts),
        kind_of(width),
    ))
}

pub(super) fn cast(part: Typed, type_name: &str) -> Parsed {
    let width = match type_name {
        "int2" | "smallint" => Some(Width::Int2),
        "int4" | "int" | "integer" => Some(Width::Int4),
        "int8" | "bigint" => Some(Width::Int8),
        _ => None,
    };
    if part.is_unknown {
        return match (width, type_name) {
            (Some(width), _) => known(part, kind_of(width)),
            (None, "text" | "varchar") => known(part, TEXT),
            _ => Err(Problem::Unsupported(format!("a cast to {type_name}"))),
        };
    }
    match (part.kind, width, type_name) {
        (Kind::Integer { .. }, Some(width), _) => {
            let node = Node::Call(Function::ToInteger(width), vec![part.node]);
            Ok(typed(node, kind_of(width)))
        }
        (Kind::Text { .. }, None, "text" | "varchar") => Ok(typed(part.node, TEXT)),
        (Kind::Padded { .. } | Kind::Integer { .. }, None, "text") => {
            Ok(typed(Node::Call(Function::ToText, vec![part.node]), TEXT))
        }
        _ => Err(Problem::Unsupported(format!("a cast to {type_name}"))),
    }
}

pub(super) fn call(name: &str, mut arguments: Vec<Typed>) -> Parsed {
    for argument in &mut arguments {
        // A literal in quotes is a string for all functions here but coalesce.
        if argument.is_unknown && name != "coalesce" {
            argument.is_unknown = false;
        }
    }
    match (name, arguments.len()) {
        ("coalesce", 1..) => coalesce(arguments),
        ("lower" | "upper" | "md5" | "length" | "char_length", 1) => {
            let (function, kind) = match name {
                "lower" => (Function::Lower, TEXT),
                "upper" => (Function::Upper, TEXT),
                "md5" => (Function::Md5, TEXT),
                _ => (Function::Length, Kind::Integer { width: 4 }),
            };
            let argument = as_text(arguments.remove(0), name)?;
            Ok(typed(Node::Call(function, vec![argument]), kind))
        }
        ("left", 2) => {
            let count = arguments.remove(1);
            if !matches!(count.kind, Kind::Integer { width: 2 | 4 }) {
                return Err(Problem::Unsupported(
                    "left with a count that is no int4".into(),
                ));
            }
            let text = as_text(arguments.remove(0), name)?;
            Ok(typed(
                Node::Call(Function::Left, vec![text, count.node]),
                TEXT,
            ))
        }
        ("abs", 1) => {
            let argument = arguments.remove(0);
            let width = common_width(argument.kind, argument.kind)
                .ok_or_else(|| Problem::Unsupported("abs of this type".into()))?;
            Ok(typed(
                Node::Call(Function::Abs(width), vec![argument.node]),
                kind_of(width),
            ))
        }
        ("mod", 2) => {
            let other = arguments.remove(1);
            arithmetic(Operator::Remainder, arguments.remove(0), other)
        }
        _ => Err(Problem::Unsupported(format!("the function {name}"))),
    }
}

fn coalesce(arguments: Vec<Typed>) -> Parsed {
    let first = arguments.iter().find(|argument| !argument.is_unknown);
    let kind = first.map_or(TEXT, |first| first.kind);
    let mut parts = Vec::with_capacity(arguments.len());
    let mut widest = kind;
    for argument in arguments {
        let argument = if argument.is_unknown {
            known(argument, kind)?
        } else {
            argument
        };
        match (widest, argument.kind) {
            (Kind::Integer { width: one }, Kind::Integer { width: other }) => {
                widest = Kind::Integer {
                    width: one.max(other),
                };
            }
            (Kind::Text { .. }, Kind::Text { .. }) => widest = TEXT,
            (one, other) if one == other => {}
            _ => return Err(Problem::Unsupported("coalesce of different types".into())),
        }
        parts.push(argument.node);
    }
    Ok(typed(Node::Call(Function::Coalesce, parts), widest))
}
