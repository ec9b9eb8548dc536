//! Which columns a trigger's function in PL/pgSQL may assign to the row that is written.
//!
//! ```text
//! source --lexer--> tokens --which variables may be returned--> what is assigned to one of them
//! ```
//!
//! An upper bound: a column counts that is assigned on any path. What this cannot follow is not
//! known, never nothing: another row that is returned, a whole row that is read INTO one.
//! Statements begin after `;`, BEGIN, THEN, ELSE, LOOP, DECLARE and a label, so `NEW.a = 1` assigns
//! there and compares elsewhere; `CASE ... THEN NEW.a = 1` inside an expression is taken as
//! assigned too.
//!
//! Source: `pl_gram.y` (`proc_sect`, `stmt_assign`, `stmt_return`, `into_target`),
//! src/pl/plpgsql/src, REL_18_STABLE.

use crate::lexer::{Kind, Lexer, Options};

/// Tokens of a function that are read; a longer one is not known.
const TOKENS_MAX: usize = 200_000;

/// A token: a name or keyword as PostgreSQL folds it, a character, or anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A word without quotes.
    Word(String),
    /// A name in quotes.
    Name(String),
    /// One character.
    Sign(u8),
    /// A literal, number or parameter.
    Value,
}

impl Token {
    fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(text) if text == word)
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Name(text) => Some(text),
            Self::Sign(_) | Self::Value => None,
        }
    }
}

/// The columns that the function's body may assign to the row, sorted; None: not known.
#[must_use]
pub fn assigned(source: &str) -> Option<Vec<String>> {
    let body = Body {
        tokens: tokens(source)?,
    };
    let mut found = Vec::new();
    for row in body.rows()? {
        body.assigned_to(&row, &mut found)?;
    }
    found.sort();
    found.dedup();
    Some(found)
}

fn tokens(source: &str) -> Option<Vec<Token>> {
    let mut made = Vec::new();
    for piece in Lexer::new(source, Options::default()) {
        let text = &source[piece.begin..piece.end];
        match piece.kind {
            Kind::Blank | Kind::Comment => {}
            Kind::Cut => return None,
            Kind::Word => made.push(Token::Word(text.to_lowercase())),
            Kind::Name => made.push(Token::Name(text.trim_matches('"').replace("\"\"", "\""))),
            Kind::Semicolon => made.push(Token::Sign(b';')),
            // A piece may have two of them, as `:=` does.
            Kind::Other => made.extend(text.bytes().map(Token::Sign)),
            _ => made.push(Token::Value),
        }
        if made.len() > TOKENS_MAX {
            return None;
        }
    }
    Some(made)
}

struct Body {
    tokens: Vec<Token>,
}

impl Body {
    fn sign(&self, place: usize, sign: u8) -> bool {
        self.tokens.get(place) == Some(&Token::Sign(sign))
    }

    fn word(&self, place: usize, word: &str) -> bool {
        self.tokens.get(place).is_some_and(|token| token.is(word))
    }

    /// Whether a statement or a declaration begins there.
    fn begins(&self, place: usize) -> bool {
        let Some(before) = place.checked_sub(1) else {
            return true;
        };
        let words = ["begin", "then", "else", "loop", "declare"];
        self.sign(before, b';')
            || words.iter().any(|word| self.word(before, word))
            || (self.sign(before, b'>') && before > 0 && self.sign(before - 1, b'>'))
    }

    /// The first word of the statement in which a place is.
    fn first(&self, place: usize) -> &Token {
        let begin = (0..=place).rev().find(|&at| self.begins(at)).unwrap_or(0);
        &self.tokens[begin]
    }

    /// From a place to before the next semicolon.
    fn rest(&self, place: usize) -> &[Token] {
        let left = &self.tokens[place.min(self.tokens.len())..];
        let end = left.iter().position(|token| *token == Token::Sign(b';'));
        &left[..end.unwrap_or(left.len())]
    }

    /// The behind of `:=` or `=` that stands at a place.
    fn behind_assign(&self, place: usize) -> Option<usize> {
        if self.sign(place, b':') && self.sign(place + 1, b'=') {
            Some(place + 2)
        } else if self.sign(place, b'=') {
            Some(place + 1)
        } else {
            None
        }
    }

    /// Variables that the function returns as the row; None: it returns something else too.
    fn rows(&self) -> Option<Vec<String>> {
        let mut found = vec!["new".to_owned()];
        for place in 0..self.tokens.len() {
            if !(self.word(place, "return") && self.begins(place)) {
                continue;
            }
            match self.rest(place + 1) {
                // As it was, which is what OLD is as well.
                [] => {}
                [one] if one.is("new") || one.is("old") || one.is("null") => {}
                [call, _, new, _, old, _]
                    if call.is("coalesce") && new.is("new") && old.is("old") => {}
                [Token::Word(row) | Token::Name(row)] => found.push(row.clone()),
                _ => return None,
            }
        }
        found.dedup();
        Some(found)
    }

    /// What is assigned to a row; None: not known.
    fn assigned_to(&self, row: &str, found: &mut Vec<String>) -> Option<()> {
        let is_new = row == "new";
        let mut is_taken_over = is_new;
        for place in 0..self.tokens.len() {
            let is_name = self.tokens[place].name() == Some(row);
            if !is_name || (place > 0 && self.sign(place - 1, b'.')) {
                continue;
            }
            if self.sign(place + 1, b'.') {
                let column = self.tokens.get(place + 2).and_then(Token::name);
                if self.is_written(place, self.behind_field(place + 1))? {
                    found.push(column?.to_owned());
                }
                continue;
            }
            if !is_new && self.is_declared(place) {
                is_taken_over |= self.is_declared_as_new(place)?;
            } else if let Some(value) = self.behind_assign(place + 1) {
                let is_statement = self.begins(place);
                if is_statement && (is_new || !matches!(self.rest(value), [v] if v.is("new"))) {
                    return None;
                }
                is_taken_over |= is_statement;
            } else if self.is_written(place, place + 1)? {
                return None;
            }
        }
        is_taken_over.then_some(())
    }

    /// After `.name`, `.name.name` and `[...]`, from a dot on.
    fn behind_field(&self, mut place: usize) -> usize {
        loop {
            if self.sign(place, b'.') {
                place += 2;
            } else if self.sign(place, b'[') {
                let mut depth = 0_usize;
                while place < self.tokens.len() {
                    depth += usize::from(self.sign(place, b'['));
                    depth -= usize::from(self.sign(place, b']'));
                    place += 1;
                    if depth == 0 {
                        break;
                    }
                }
            } else {
                return place;
            }
        }
    }

    /// Whether the variable at a place, which ends before another, is written; None: not known.
    fn is_written(&self, place: usize, end: usize) -> Option<bool> {
        if self.begins(place) && self.behind_assign(end).is_some() {
            return Some(true);
        }
        if self.sign(end, b':') && self.sign(end + 1, b'=') {
            return None; // a named argument at best
        }
        // These write into what follows, or make it another name.
        let writes = ["call", "get", "fetch"];
        let behind = place > 0 && (self.word(place - 1, "for") || self.word(place - 1, "foreach"));
        let first = self.first(place);
        if behind || writes.iter().any(|word| first.is(word)) {
            return None;
        }
        Some(self.is_target(place))
    }

    /// Whether it stands among the targets of INTO.
    fn is_target(&self, place: usize) -> bool {
        // Back over names, dots, brackets and commas, which is what a list of targets is made of.
        let mut at = place;
        while let Some(before) = at.checked_sub(1) {
            if self.word(before, "into") {
                return true;
            }
            match &self.tokens[before] {
                Token::Sign(b'.' | b',' | b'[' | b']') | Token::Value => {}
                Token::Word(_) | Token::Name(_) if self.tokens[at].name().is_none() => {}
                Token::Word(text) if text == "strict" => {
                    return before > 0 && self.word(before - 1, "into");
                }
                _ => return false,
            }
            at = before;
        }
        false
    }

    /// Whether the variable is declared there: its type follows.
    fn is_declared(&self, place: usize) -> bool {
        self.begins(place)
            && self.tokens.get(place + 1).and_then(Token::name).is_some()
            && !self.word(place + 1, "is")
    }

    /// Whether a declaration takes NEW over; None: it takes something else.
    fn is_declared_as_new(&self, place: usize) -> Option<bool> {
        let rest = self.rest(place + 1);
        let begin = (0..rest.len())
            .find(|&at| rest[at].is("default") || self.behind_assign(place + 1 + at).is_some());
        let Some(at) = begin else {
            return Some(false);
        };
        let behind = self.behind_assign(place + 1 + at).unwrap_or(place + 2 + at);
        match self.rest(behind) {
            [one] if one.is("new") => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::assigned;

    fn columns(source: &str) -> Vec<String> {
        assigned(source).unwrap_or_else(|| panic!("not known: {source}"))
    }

    #[test]
    fn what_is_assigned_to_the_row_is_found() {
        for (source, wanted) in [
            (
                "BEGIN NEW.updated_at = now(); RETURN NEW; END",
                "updated_at",
            ),
            (
                "begin new.\"updatedAt\" := now(); return new; end;",
                "updatedAt",
            ),
            (
                "BEGIN IF NEW.a = 1 THEN NEW.b = 2; ELSE NEW.c := 3; END IF; RETURN NEW; END",
                "b,c",
            ),
            (
                "DECLARE _new record; BEGIN _new := NEW; _new.\"updated_at\" = NOW(); RETURN \
                 _new; END;",
                "updated_at",
            ),
            (
                "DECLARE r t%ROWTYPE := NEW; BEGIN r.x = 1; RETURN r; END",
                "x",
            ),
            (
                "BEGIN NEW.tags[1] := 'x'; NEW.j['a']['b'] = '1'; NEW.addr.city = 'y'; \
                 RETURN NEW; END",
                "addr,j,tags",
            ),
            (
                "BEGIN SELECT count(*), max(x) INTO STRICT NEW.n, NEW.m FROM o WHERE o.id = \
                 NEW.id; RETURN NEW; END",
                "m,n",
            ),
            (
                "BEGIN INSERT INTO audit SELECT NEW.*; INSERT INTO log VALUES (NEW.id, OLD.a \
                 = NEW.a); RETURN NEW; END",
                "",
            ),
            (
                "BEGIN IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN COALESCE(NEW, OLD); END",
                "",
            ),
            (
                "<<b>> BEGIN <<c>> NEW.a := 1; RAISE NOTICE '% NEW.z := 1', NEW.q; RETURN \
                 NULL; END",
                "a",
            ),
            (
                "BEGIN -- NEW.z = 1;\n /* NEW.y = 2; */ PERFORM f(NEW.x); LOOP NEW.a = 1; \
                 EXIT; END LOOP; RETURN NEW; END",
                "a",
            ),
            (
                "BEGIN NEW.search := to_tsvector(coalesce(NEW.title, '')) || \
                 setweight(NEW.b, 'A'); RETURN NEW; EXCEPTION WHEN others THEN NEW.e = true; \
                 RETURN NEW; END",
                "e,search",
            ),
        ] {
            assert_eq!(columns(source).join(","), wanted, "{source}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_not_known() {
        for source in [
            "BEGIN NEW := f(NEW); RETURN NEW; END",
            "BEGIN RETURN f(NEW); END",
            "BEGIN RETURN NEW #= hstore('a', 'b'); END",
            "DECLARE r t; BEGIN SELECT * INTO r FROM t; RETURN r; END",
            "DECLARE r t := f(NEW); BEGIN RETURN r; END",
            "DECLARE r t; BEGIN r := NEW; r := f(r); RETURN r; END",
            "DECLARE r t; BEGIN RETURN r; END",
            "BEGIN SELECT * INTO NEW FROM f(NEW); RETURN NEW; END",
            "BEGIN EXECUTE 'SELECT $1' USING NEW INTO NEW; RETURN NEW; END",
            "DECLARE x ALIAS FOR NEW; BEGIN x.a = 1; RETURN NEW; END",
            "BEGIN CALL p(NEW.a); RETURN NEW; END",
            "BEGIN GET DIAGNOSTICS NEW.n = ROW_COUNT; RETURN NEW; END",
            "BEGIN FOR NEW IN SELECT * FROM t LOOP EXIT; END LOOP; RETURN NEW; END",
            "BEGIN FETCH c INTO NEW; RETURN NEW; END",
            "BEGIN FETCH c INTO NEW.a; RETURN NEW; END",
            "BEGIN NEW.a = 'x; RETURN NEW; END",
        ] {
            assert_eq!(assigned(source), None, "{source}");
        }
    }

    #[test]
    fn no_text_panics() {
        for source in [
            "",
            ";",
            "NEW",
            "NEW.",
            "NEW.a[",
            "NEW.a]",
            "RETURN",
            ":=",
            "NEW :",
            "into NEW.",
            "for NEW",
            "\"",
            "alias for NEW",
            "r ; RETURN r",
            "NEW.a[1]]] = 2",
        ] {
            let _ = assigned(source);
        }
    }
}
