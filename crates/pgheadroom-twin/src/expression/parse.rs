//! Reading an expression: precedence and types as PostgreSQL's grammar and operators have them.
//!
//! ```text
//! OR < AND < NOT < IS < comparison < IN, BETWEEN < || < + - < * / % < unary minus < ::
//! ```
//!
//! Source: src/backend/parser/gram.y, src/include/catalog/pg_operator.dat (REL_18_STABLE).

use crate::expression::token::{Token, tokens};
use crate::expression::typing::{
    BOOLEAN, Parsed, Problem, TEXT, Typed, arithmetic, as_text, boolean, call, cast, compare,
    number, typed,
};
use crate::expression::{Comparison, ExpressionError, Function, Node, Operator};
use crate::row::ColumnDefinition;
use crate::row::counted::Counted;
use crate::row::kind::Kind;
use crate::value::{Text, Value};

pub(super) fn parse(text: &str, columns: &[ColumnDefinition]) -> Result<Typed, ExpressionError> {
    read(text, columns, Ok)
}

/// What WHERE takes: a boolean.
pub(super) fn condition(
    text: &str,
    columns: &[ColumnDefinition],
) -> Result<Typed, ExpressionError> {
    read(text, columns, |part| Ok(typed(boolean(part)?, BOOLEAN)))
}

fn read(
    text: &str,
    columns: &[ColumnDefinition],
    taken: impl Fn(Typed) -> Parsed,
) -> Result<Typed, ExpressionError> {
    let whole = || {
        let tokens = tokens(text).map_err(Problem::Unsupported)?;
        let mut parser = Parser {
            tokens,
            at: 0,
            columns,
        };
        let found = parser.any()?;
        match parser.peek() {
            None => taken(found),
            Some(token) => Err(Problem::Unsupported(shown(token))),
        }
    };
    whole().map_err(|problem| {
        let text = text.to_owned();
        match problem {
            Problem::Unsupported(what) => ExpressionError::Unsupported { text, what },
            Problem::Unread(what) => ExpressionError::Unread { text, what },
            Problem::Wrong(what) => ExpressionError::Wrong { text, what },
        }
    })
}

fn shown(token: &Token) -> String {
    match token {
        Token::Word(word) => word.to_ascii_uppercase(),
        Token::Quoted(name) => format!("\"{name}\""),
        Token::Number(number) => format!("the number {number}"),
        Token::Text(text) => format!("the literal '{text}'"),
        Token::Sign(sign) => format!("{sign:?}"),
    }
}

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    columns: &'a [ColumnDefinition],
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), Problem> {
        if self.skip_sign(sign) {
            return Ok(());
        }
        let found = self.peek().map_or_else(|| "its end".to_owned(), shown);
        Err(Problem::Unread(format!("expected {sign:?}, found {found}")))
    }

    fn any(&mut self) -> Parsed {
        self.connected("or", Self::all, Node::Any)
    }

    fn all(&mut self) -> Parsed {
        self.connected("and", Self::negated, Node::All)
    }

    fn connected(
        &mut self,
        word: &str,
        part: impl Fn(&mut Self) -> Parsed,
        connect: impl Fn(Vec<Node>) -> Node,
    ) -> Parsed {
        let first = part(self)?;
        if !matches!(self.peek(), Some(Token::Word(next)) if next == word) {
            return Ok(first);
        }
        let mut parts = vec![boolean(first)?];
        while self.skip_word(word) {
            parts.push(boolean(part(self)?)?);
        }
        Ok(typed(connect(parts), BOOLEAN))
    }

    fn negated(&mut self) -> Parsed {
        if self.skip_word("not") {
            let inner = boolean(self.negated()?)?;
            return Ok(typed(Node::Not(Box::new(inner)), BOOLEAN));
        }
        self.tested()
    }

    /// `... IS [NOT] NULL | TRUE | FALSE`.
    fn tested(&mut self) -> Parsed {
        let mut inner = self.compared()?;
        while self.skip_word("is") {
            let negated = self.skip_word("not");
            let test = if self.skip_word("null") {
                Node::IsNull(Box::new(inner.node))
            } else if self.skip_word("true") {
                let known = Node::Literal(Value::Integer(0));
                Node::Call(Function::Coalesce, vec![boolean(inner)?, known])
            } else if self.skip_word("false") {
                let known = Node::Literal(Value::Integer(1));
                let inner = Node::Call(Function::Coalesce, vec![boolean(inner)?, known]);
                Node::Not(Box::new(inner))
            } else {
                return Err(Problem::Unsupported(
                    "IS with something else than NULL".into(),
                ));
            };
            let test = if negated {
                Node::Not(Box::new(test))
            } else {
                test
            };
            inner = typed(test, BOOLEAN);
        }
        Ok(inner)
    }

    fn compared(&mut self) -> Parsed {
        let one = self.listed()?;
        let comparison = match self.peek() {
            Some(Token::Sign("=")) => Comparison::Equal,
            Some(Token::Sign("<>" | "!=")) => Comparison::Different,
            Some(Token::Sign("<")) => Comparison::Less,
            Some(Token::Sign("<=")) => Comparison::LessOrEqual,
            Some(Token::Sign(">")) => Comparison::Greater,
            Some(Token::Sign(">=")) => Comparison::GreaterOrEqual,
            _ => return Ok(one),
        };
        self.at += 1;
        let other = self.listed()?;
        self.compare(comparison, one, other)
    }

    /// `... [NOT] IN (...)` and `... [NOT] BETWEEN ... AND ...`.
    fn listed(&mut self) -> Parsed {
        let one = self.concatenated()?;
        let start = self.at;
        let negated = self.skip_word("not");
        let found = if self.skip_word("in") {
            self.expect_sign("(")?;
            let mut parts = Vec::new();
            loop {
                let other = self.concatenated()?;
                parts.push(self.compare(Comparison::Equal, one.clone(), other)?.node);
                if !self.skip_sign(",") {
                    break;
                }
            }
            self.expect_sign(")")?;
            Node::Any(parts)
        } else if self.skip_word("between") {
            let low = self.concatenated()?;
            if !self.skip_word("and") {
                return Err(Problem::Unread("BETWEEN without AND".into()));
            }
            let high = self.concatenated()?;
            let low = self.compare(Comparison::GreaterOrEqual, one.clone(), low)?;
            let high = self.compare(Comparison::LessOrEqual, one, high)?;
            Node::All(vec![low.node, high.node])
        } else {
            self.at = start;
            return Ok(one);
        };
        let found = if negated {
            Node::Not(Box::new(found))
        } else {
            found
        };
        Ok(typed(found, BOOLEAN))
    }

    fn compare(&self, comparison: Comparison, one: Typed, other: Typed) -> Parsed {
        let kind = one.kind;
        let (one, other) = (self.label(one, other.kind)?, self.label(other, kind)?);
        compare(comparison, one, other)
    }

    /// A literal beside an enum is one of its labels.
    fn label(&self, part: Typed, beside: Kind) -> Parsed {
        let (true, Kind::Counted(Counted::Enum { .. })) = (part.is_unknown, beside) else {
            return Ok(part);
        };
        let Node::Literal(Value::Text(text)) = &part.node else {
            return Ok(typed(part.node, beside)); // NULL
        };
        let text = String::from_utf8_lossy(&text.to_bytes()).into_owned();
        let has = |column: &&ColumnDefinition| Kind::of(&column.column_type) == Some(beside);
        let column = self.columns.iter().find(has);
        let labels = column.map_or(&[][..], |column| &column.labels);
        let number = labels.iter().position(|label| *label == text);
        let number = number.ok_or_else(|| Problem::Wrong(format!("no label '{text}'")))?;
        let number = i64::try_from(number).expect("few labels");
        Ok(typed(Node::Literal(Value::Integer(number)), beside))
    }

    fn concatenated(&mut self) -> Parsed {
        let mut one = self.sum()?;
        while self.skip_sign("||") {
            let other = self.sum()?;
            let parts = vec![as_text(one, "||")?, as_text(other, "||")?];
            one = typed(Node::Call(Function::Concatenate, parts), TEXT);
        }
        Ok(one)
    }

    fn sum(&mut self) -> Parsed {
        let mut one = self.product()?;
        loop {
            let operator = if self.skip_sign("+") {
                Operator::Add
            } else if self.skip_sign("-") {
                Operator::Subtract
            } else {
                return Ok(one);
            };
            one = arithmetic(operator, one, self.product()?)?;
        }
    }

    fn product(&mut self) -> Parsed {
        let mut one = self.signed()?;
        loop {
            let operator = if self.skip_sign("*") {
                Operator::Multiply
            } else if self.skip_sign("/") {
                Operator::Divide
            } else if self.skip_sign("%") {
                Operator::Remainder
            } else {
                return Ok(one);
            };
            one = arithmetic(operator, one, self.signed()?)?;
        }
    }

    fn signed(&mut self) -> Parsed {
        if self.skip_sign("-") {
            let zero = typed(Node::Literal(Value::Integer(0)), Kind::Integer { width: 2 });
            let inner = self.signed()?;
            return arithmetic(Operator::Subtract, zero, inner);
        }
        if self.skip_sign("+") {
            return self.signed();
        }
        let mut inner = self.atom()?;
        while self.skip_sign("::") {
            let name = self.type_name()?;
            inner = cast(inner, &name)?;
        }
        Ok(inner)
    }

    fn type_name(&mut self) -> Result<String, Problem> {
        let Some(Token::Word(word)) = self.peek() else {
            return Err(Problem::Unread("a cast without a type".into()));
        };
        let word = word.clone();
        self.at += 1;
        if self.skip_sign("(") {
            return Err(Problem::Unsupported(format!("a cast to {word}(...)")));
        }
        Ok(word)
    }

    fn atom(&mut self) -> Parsed {
        let token = self
            .peek()
            .cloned()
            .ok_or_else(|| Problem::Unread("it ends too early".into()))?;
        self.at += 1;
        match token {
            Token::Sign("(") => {
                let inner = self.any()?;
                self.expect_sign(")")?;
                Ok(inner)
            }
            Token::Number(digits) => number(&digits),
            Token::Text(text) => Ok(Typed {
                node: Node::Literal(Value::Text(Text::new(&text))),
                kind: TEXT,
                is_unknown: true,
            }),
            Token::Word(word) => self.word(&word),
            Token::Quoted(name) => self.column(&name),
            Token::Sign(_) => Err(Problem::Unsupported(shown(&token))),
        }
    }

    fn word(&mut self, word: &str) -> Parsed {
        match word {
            "true" => return Ok(typed(Node::Literal(Value::Integer(1)), BOOLEAN)),
            "false" => return Ok(typed(Node::Literal(Value::Integer(0)), BOOLEAN)),
            "null" => {
                return Ok(Typed {
                    node: Node::Literal(Value::Null),
                    kind: TEXT,
                    is_unknown: true,
                });
            }
            "cast" => {
                self.expect_sign("(")?;
                let inner = self.any()?;
                if !self.skip_word("as") {
                    return Err(Problem::Unread("CAST without AS".into()));
                }
                let name = self.type_name()?;
                self.expect_sign(")")?;
                return cast(inner, &name);
            }
            _ => {}
        }
        if !self.skip_sign("(") {
            return self.column(word);
        }
        let mut arguments = Vec::new();
        if !self.skip_sign(")") {
            loop {
                arguments.push(self.any()?);
                if !self.skip_sign(",") {
                    break;
                }
            }
            self.expect_sign(")")?;
        }
        if word == "coalesce" {
            let known = arguments.iter().find(|argument| !argument.is_unknown);
            let beside = known.map_or(TEXT, |known| known.kind);
            let labelled = arguments.into_iter().map(|one| self.label(one, beside));
            arguments = labelled.collect::<Result<_, _>>()?;
        }
        call(word, arguments)
    }

    fn column(&self, name: &str) -> Parsed {
        let position = self.columns.iter().position(|column| column.name == name);
        let unknown = || Problem::Unsupported(format!("{name:?}, which is no column"));
        let position = position.ok_or_else(unknown)?;
        let column_type = &self.columns[position].column_type;
        let kind = Kind::of(column_type);
        let kind = kind.ok_or_else(|| Problem::Unsupported(format!("type {column_type}")))?;
        Ok(typed(Node::Column(position), kind))
    }
}
