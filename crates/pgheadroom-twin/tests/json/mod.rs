//! A reader for the golden files: strings without escapes, whole numbers, booleans, lists, objects.
//!
//! The files are our own and never written by hand, so what it does not know is a panic.

use std::collections::BTreeMap;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    pub fn parse(text: &str) -> Self {
        let mut rest = text.trim_start();
        let value = parse_value(&mut rest);
        assert!(rest.trim().is_empty(), "text after the value");
        value
    }

    /// A member, which has to exist.
    pub fn at(&self, name: &str) -> &Json {
        self.get(name)
            .unwrap_or_else(|| panic!("no member {name} in {self:?}"))
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members.get(name),
            _ => panic!("not an object: {self:?}"),
        }
    }

    pub fn members(&self) -> &BTreeMap<String, Json> {
        match self {
            Self::Object(members) => members,
            _ => panic!("not an object: {self:?}"),
        }
    }

    pub fn list(&self) -> &[Json] {
        match self {
            Self::List(items) => items,
            _ => panic!("not a list: {self:?}"),
        }
    }

    pub fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            _ => panic!("not a number: {self:?}"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => panic!("not a text: {self:?}"),
        }
    }

    pub fn is_true(&self) -> bool {
        match self {
            Self::Bool(value) => *value,
            _ => panic!("not a boolean: {self:?}"),
        }
    }
}

fn skip(rest: &mut &str, expected: char) -> bool {
    let found = rest.trim_start().strip_prefix(expected);
    *rest = found.unwrap_or(rest);
    found.is_some()
}

fn parse_value(rest: &mut &str) -> Json {
    *rest = rest.trim_start();
    for (word, value) in [
        ("null", Json::Null),
        ("true", Json::Bool(true)),
        ("false", Json::Bool(false)),
    ] {
        if let Some(behind) = rest.strip_prefix(word) {
            *rest = behind;
            return value;
        }
    }
    match rest.as_bytes()[0] {
        b'"' => Json::Text(parse_text(rest)),
        b'[' => {
            skip(rest, '[');
            let mut items = Vec::new();
            while !skip(rest, ']') {
                items.push(parse_value(rest));
                skip(rest, ',');
            }
            Json::List(items)
        }
        b'{' => {
            skip(rest, '{');
            let mut members = BTreeMap::new();
            while !skip(rest, '}') {
                *rest = rest.trim_start();
                let name = parse_text(rest);
                assert!(skip(rest, ':'), "a colon after {name}");
                members.insert(name, parse_value(rest));
                skip(rest, ',');
            }
            Json::Object(members)
        }
        _ => {
            let end = rest
                .find(|c: char| !c.is_ascii_digit() && c != '-')
                .unwrap_or(rest.len());
            let (number, behind) = rest.split_at(end);
            *rest = behind;
            Json::Number(number.parse().expect("a whole number"))
        }
    }
}

fn parse_text(rest: &mut &str) -> String {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                *rest = &rest[at + 1..];
                return text;
            }
            '\\' => text.push(chars.next().expect("an escaped character").1),
            _ => text.push(c),
        }
    }
    panic!("text without end");
}
