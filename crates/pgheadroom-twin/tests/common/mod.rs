//! Reading golden files: just enough JSON for tables of whole numbers.

pub mod random_profile;
pub mod table;

use std::path::PathBuf;

/// Whether all is played, as by `make test-long`; else versions and sizes of which others show the
/// same are left out.
pub fn is_long() -> bool {
    std::env::var_os("LONG").is_some()
}

/// Text of a golden file in a folder of `golden`.
pub fn golden(folder: &str, name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden")
        .join(folder)
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the table with this name: whole numbers, one list a row.
pub fn table(text: &str, name: &str) -> Vec<Vec<i64>> {
    let key = format!("\"{name}\": [\n");
    let start = text.find(&key).unwrap_or_else(|| panic!("no table {name}")) + key.len();
    text[start..]
        .lines()
        .map(|line| line.trim().trim_end_matches(','))
        .take_while(|line| *line != "]")
        .map(|line| {
            let inner = line.trim_start_matches('[').trim_end_matches(']');
            inner
                .split(',')
                .map(|number| number.trim().parse().expect("a whole number"))
                .collect()
        })
        .collect()
}

/// The list of texts with this name, which stands on one line.
#[allow(dead_code)] // not every test file needs it
pub fn names(text: &str, name: &str) -> Vec<String> {
    let key = format!("\"{name}\": [");
    let start = text.find(&key).unwrap_or_else(|| panic!("no list {name}")) + key.len();
    let end = text[start..].find(']').expect("a closed list");
    text[start..start + end]
        .split(',')
        .map(|part| part.trim().trim_matches('"').to_owned())
        .collect()
}
