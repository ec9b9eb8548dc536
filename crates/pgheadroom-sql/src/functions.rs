//! PostgreSQL's own functions and how volatile they are, and the names of its catalogs.

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
/// Extensions that migrations call everywhere (`uuid_generate_v4()`, `crypt()`); somebody's own
/// function of such a name is taken for theirs.
const CONTRIB: &str = include_str!("contrib.txt");
const CATALOGS: &str = include_str!("catalogs.txt");

fn names(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

/// Whether `pg_catalog` has a table or view of that name.
pub fn is_catalog(name: &str) -> bool {
    names(CATALOGS).any(|listed| listed == name)
}

/// All names with their volatility, sorted by name.
pub fn listed() -> impl Iterator<Item = (&'static str, Volatility)> {
    with_volatility(LISTED)
}

fn with_volatility(list: &'static str) -> impl Iterator<Item = (&'static str, Volatility)> {
    names(list).filter_map(|line| {
        let (name, letter) = line.split_once(' ')?;
        let volatility = match letter {
            "i" => Volatility::Immutable,
            "s" => Volatility::Stable,
            _ => Volatility::Volatile,
        };
        Some((name, volatility))
    })
}

/// Of the function that is called `name` or `pg_catalog.name`, or that an extension of
/// PostgreSQL's has put into any schema; None if it is somebody's own.
pub fn volatility(name: &str) -> Option<Volatility> {
    let own = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    let of = |list, wanted: &str| {
        with_volatility(list)
            .find(|(listed, _)| *listed == wanted)
            .map(|(_, volatility)| volatility)
    };
    of(LISTED, own).or_else(|| of(CONTRIB, last))
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
        assert_eq!(
            volatility("extensions.uuid_generate_v4"),
            Some(Volatility::Volatile)
        );
        assert_eq!(volatility("crypt"), Some(Volatility::Immutable));
        assert_eq!(volatility("frobnicate"), None);
        assert!(listed().count() > 2_000);
        assert!(is_catalog("pg_index"));
        assert!(!is_catalog("pg_mine"));
    }
}
