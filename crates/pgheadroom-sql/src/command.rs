//! psql's own commands: which of them change what is run, and which change nothing but the output.
//!
//! A file of statements may hold any of them. One that only shows something, or sets something that
//! no statement sees, is put away and counted; one that runs other text, leaves text out or changes
//! where statements and transactions end stays, under its name, as what is not understood.
//!
//! Source: `src/bin/psql`'s command.c (`exec_command`) and psqlscanslash.l, REL_18_STABLE.

/// What a line of psql's commands means for the statements around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing is run, sent or left out.
    Quiet,
    /// The statement before it is sent, as by a semicolon; nothing else.
    Sends,
    /// Another connection: the database's name where one is given.
    Connects(Option<String>),
    /// A COPY by the client, as the statement that it stands for.
    Copies(String),
    /// Anything else: the command's name.
    Other(String),
}

/// Commands that show, format or name something, and run no statement of the file.
const QUIET: [&str; 47] = [
    "?",
    "C",
    "H",
    "L",
    "T",
    "a",
    "cd",
    "conninfo",
    "copyright",
    "echo",
    "encoding",
    "endpipeline",
    "errverbose",
    "f",
    "flush",
    "flushrequest",
    "getenv",
    "getresults",
    "h",
    "help",
    "html",
    "l",
    "lo_export",
    "lo_import",
    "lo_list",
    "lo_unlink",
    "o",
    "out",
    "p",
    "password",
    "print",
    "prompt",
    "pset",
    "qecho",
    "restrict",
    "s",
    "set",
    "setenv",
    "sf",
    "sv",
    "t",
    "timing",
    "unrestrict",
    "unset",
    "w",
    "warn",
    "x",
];
/// Commands that send what stands before them, once, as it stands.
const SENDS: [&str; 6] = ["g", "gx", "gset", "gdesc", "crosstabview", "sendpipeline"];
/// Variables of psql that change where statements or transactions end.
const READING: [&str; 2] = ["AUTOCOMMIT", "SINGLELINE"];

/// What a line means, from its first backslash to its end.
pub fn meaning(line: &str) -> Meaning {
    let (name, rest) = named(line);
    if name == "copy" {
        return Meaning::Copies(format!("COPY {}", rest.trim()));
    }
    let mut found = Meaning::Quiet;
    for command in commands(line) {
        let (name, arguments) = named(command);
        let next = one(name, arguments);
        match (&found, &next) {
            (_, Meaning::Other(_)) => return next,
            (Meaning::Connects(_), Meaning::Connects(_)) => {
                return Meaning::Other(format!("\\{name}"));
            }
            (_, Meaning::Quiet) | (Meaning::Connects(_), Meaning::Sends) => {}
            _ => found = next,
        }
    }
    found
}

fn one(name: &str, arguments: &str) -> Meaning {
    let other = || Meaning::Other(format!("\\{name}"));
    let first = arguments.split_whitespace().next().unwrap_or("");
    // Between backquotes stands a command of the shell, behind a bar one that reads the output.
    if arguments.contains('`') || (arguments.contains('|') && !is_said(name)) {
        return other();
    }
    match name {
        "c" | "connect" => connects(arguments).unwrap_or_else(other),
        "set" | "unset" => {
            let is_on = matches!(
                arguments.split_whitespace().nth(1),
                Some("on" | "1" | "true")
            );
            let is_reading = READING.contains(&first);
            // AUTOCOMMIT is on and SINGLELINE off unless somebody says otherwise.
            if is_reading && (name == "unset" || is_on != (first == "AUTOCOMMIT")) {
                return other();
            }
            Meaning::Quiet
        }
        _ if SENDS.contains(&name) => Meaning::Sends,
        _ if QUIET.contains(&name) || is_described(name) || is_listed(name) => Meaning::Quiet,
        _ => other(),
    }
}

/// Text that is said, where a bar is a bar.
fn is_said(name: &str) -> bool {
    matches!(
        name,
        "echo" | "qecho" | "warn" | "set" | "pset" | "prompt" | "f" | "C" | "T"
    )
}

/// `\d` and its kin.
fn is_described(name: &str) -> bool {
    name.strip_prefix('d').is_some_and(|rest| {
        rest.bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'+')
    })
}

/// `\l+`, `\z`, `\sf+`, `\lo_list+`.
fn is_listed(name: &str) -> bool {
    let bare = name.trim_end_matches(['+', 'x', 'S']);
    matches!(bare, "l" | "z" | "sf" | "sv" | "lo_list" | "list")
}

/// `\connect [dbname | - | conninfo] ...`: the same database, or one by name.
fn connects(arguments: &str) -> Option<Meaning> {
    let mut words = arguments.split_whitespace();
    let first = words.next();
    match first {
        None | Some("-") => Some(Meaning::Connects(None)),
        Some(word) if word.starts_with("-reuse-previous") || word.contains(['=', ':', '\'']) => {
            None
        }
        Some(word) => Some(Meaning::Connects(Some(word.trim_matches('"').to_owned()))),
    }
}

/// The command's name without its backslash, and what stands behind it.
fn named(command: &str) -> (&str, &str) {
    let inside = command.strip_prefix('\\').unwrap_or(command);
    let end = inside
        .find(|c: char| c.is_whitespace() || c == '\\')
        .unwrap_or(inside.len());
    inside.split_at(end)
}

/// The commands of one line: a backslash outside of quotes begins the next one.
fn commands(line: &str) -> Vec<&str> {
    let (mut found, mut begin, mut quote) = (Vec::new(), 0, None);
    for (place, character) in line.char_indices() {
        match (character, quote) {
            ('\'' | '"' | '`', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            ('\\', None) if place > begin => {
                found.push(&line[begin..place]);
                begin = place;
            }
            _ => {}
        }
    }
    found.push(&line[begin..]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_or_names_something_runs_nothing() {
        for line in [
            "\\timing on",
            "\\echo it's 5 | 6",
            "\\set ON_ERROR_STOP on",
            "\\set AUTOCOMMIT on",
            "\\set SINGLELINE off",
            "\\pset pager off",
            "\\d+ t",
            "\\dt",
            "\\l+",
            "\\x \\timing",
            "\\restrict abc",
            "\\o /tmp/x",
            "\\?",
        ] {
            assert_eq!(meaning(line), Meaning::Quiet, "{line}");
        }
        for line in [
            "\\g",
            "\\gx",
            "\\gset a_",
            "\\g (format=aligned) x.txt",
            "\\g \\x",
        ] {
            assert_eq!(meaning(line), Meaning::Sends, "{line}");
        }
    }

    #[test]
    fn what_changes_what_is_run_has_a_name() {
        for (line, name) in [
            ("\\i more.sql", "\\i"),
            ("\\ir more.sql", "\\ir"),
            ("\\include more.sql", "\\include"),
            ("\\gexec", "\\gexec"),
            ("\\if :x", "\\if"),
            ("\\endif", "\\endif"),
            ("\\q", "\\q"),
            ("\\r", "\\r"),
            ("\\! psql -f x", "\\!"),
            ("\\watch 1", "\\watch"),
            ("\\timing \\i x", "\\i"),
            ("\\x \\\\ DROP TABLE t", "\\"),
            ("\\set AUTOCOMMIT off", "\\set"),
            ("\\unset AUTOCOMMIT", "\\unset"),
            ("\\set SINGLELINE on", "\\set"),
            ("\\set x `psql -c 'DROP TABLE t'`", "\\set"),
            ("\\g | psql", "\\g"),
            ("\\o | psql", "\\o"),
            ("\\c dbname=x", "\\c"),
            ("\\parse s", "\\parse"),
            ("\\frobnicate", "\\frobnicate"),
        ] {
            assert_eq!(meaning(line), Meaning::Other(name.to_owned()), "{line}");
        }
    }

    #[test]
    fn another_connection_and_a_copy_are_told() {
        assert_eq!(meaning("\\c"), Meaning::Connects(None));
        assert_eq!(meaning("\\connect - bob"), Meaning::Connects(None));
        let named = |name: &str| Meaning::Connects(Some(name.to_owned()));
        assert_eq!(meaning("\\connect shop"), named("shop"));
        assert_eq!(meaning("\\c \"Shop\" bob"), named("Shop"));
        assert_eq!(
            meaning("\\copy t FROM 'x\\y.csv' csv"),
            Meaning::Copies("COPY t FROM 'x\\y.csv' csv".to_owned())
        );
    }
}
