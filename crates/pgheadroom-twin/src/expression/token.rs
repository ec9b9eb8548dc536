//! Words of an SQL expression.

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or keyword in lower case.
    Word(String),
    /// An identifier in quotes.
    Quoted(String),
    /// Digits.
    Number(String),
    /// A literal in quotes.
    Text(String),
    /// An operator or a sign.
    Sign(&'static str),
}

/// Signs, longer ones first.
const SIGNS: [&str; 18] = [
    "::", "<>", "!=", "<=", ">=", "||", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", ";",
];

/// Divides a text into words; `Err` says what no word begins with.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, behind) = match first {
            '\'' => {
                let (inside, behind) = quoted(rest, '\'')?;
                (Token::Text(inside), behind)
            }
            '"' => {
                let (inside, behind) = quoted(rest, '"')?;
                (Token::Quoted(inside), behind)
            }
            '0'..='9' => {
                let end = |c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_';
                let (number, behind) = rest.split_at(rest.find(end).unwrap_or(rest.len()));
                (Token::Number(number.to_owned()), behind)
            }
            c if c == '_' || c.is_alphabetic() => {
                let end = |c: char| c != '_' && c != '$' && !c.is_alphanumeric();
                let (word, behind) = rest.split_at(rest.find(end).unwrap_or(rest.len()));
                (Token::Word(word.to_ascii_lowercase()), behind)
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| format!("the character {first:?}"))?;
                (Token::Sign(sign), &rest[sign.len()..])
            }
        };
        found.push(token);
        rest = behind.trim_start();
    }
    Ok(found)
}

/// What stands between quotes, which are doubled inside.
fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut inside = String::new();
    let mut rest = &text[1..];
    loop {
        let end = rest.find(quote).ok_or("a quote that is not closed")?;
        inside.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(behind) => {
                inside.push(quote);
                rest = behind;
            }
            None => return Ok((inside, rest)),
        }
    }
}
