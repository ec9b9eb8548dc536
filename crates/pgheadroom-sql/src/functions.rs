//! PostgreSQL's own functions and how volatile they are.

/// How volatile a function of PostgreSQL's own is, the greatest of those with one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// The same arguments, the same result.
    Immutable,
    /// The same within one statement: `now()`.
    Stable,
    /// Another result each time: `random()`.
    Volatile,
}

const LISTED: &str = include_str!("functions.txt");

/// All names with their volatility, sorted by name.
pub fn listed() -> impl Iterator<Item = (&'static str, Volatility)> {
    LISTED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, letter) = line.split_once(' ')?;
            let volatility = match letter {
                "i" => Volatility::Immutable,
                "s" => Volatility::Stable,
                _ => Volatility::Volatile,
            };
            Some((name, volatility))
        })
}

/// Of the function that is called `name` or `pg_catalog.name`; None if it is somebody's own.
pub fn volatility(name: &str) -> Option<Volatility> {
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    listed()
        .find(|(listed, _)| *listed == name)
        .map(|(_, volatility)| volatility)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_name() {
        assert_eq!(volatility("lower"), Some(Volatility::Immutable));
        assert_eq!(volatility("pg_catalog.now"), Some(Volatility::Stable));
        assert_eq!(volatility("gen_random_uuid"), Some(Volatility::Volatile));
        assert_eq!(volatility("mine.now"), None);
        assert_eq!(volatility("frobnicate"), None);
        assert!(listed().count() > 2_000);
    }
}
