//! The recorded scenarios: reading them, playing them in the twin, and what differs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use pgheadroom_layout::places::digest;
use pgheadroom_twin::executor::Database;
use pgheadroom_twin::places::{Places, of_table};
use pgheadroom_twin::profile::{Method, Monitor, ProfileError, ProfileSpec};
use pgheadroom_twin::run::{self, Conditions, Outcome};
use pgheadroom_twin::scenario::{self, Done, End, Step};
use serde_json::{Value, json};

/// Servers that scenarios are recorded on.
pub const VERSIONS: [&str; 7] = ["15.18", "15.20", "16.14", "17.10", "17.12", "18.4", "19rc1"];
/// Scenarios that the twin does not reproduce: on which versions, why, and their names.
///
/// A scenario that is listed and equal fails the test, so that the list never grows old.
pub const NOT_REPRODUCED: [(&[&str], &str, &[&str]); 0] = [];
/// Hexadecimal digits of a page's digest in the files.
const PAGE_DIGITS: usize = 8;

/// A recorded scenario.
pub struct Recorded {
    /// Its name.
    pub name: String,
    /// The server's version.
    pub version: String,
    content: Value,
}

fn expected_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/expected")
}

/// The scenarios recorded on a version whose names are wanted, by name.
pub fn recorded(version: &str, is_wanted: &impl Fn(&str) -> bool) -> Vec<Recorded> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(expected_folder().join(version)).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let name = stem.strip_prefix("scenario-");
        if let Some(name) = name.filter(|name| is_wanted(name)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let content: Value = serde_json::from_str(&text).unwrap();
            found.push(Recorded {
                name: name.to_owned(),
                version: version.to_owned(),
                content,
            });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

impl Recorded {
    /// Plays it in the twin.
    pub fn play(
        &self,
        uses_fast_path: bool,
    ) -> Result<(ProfileSpec, Database, Outcome, Vec<Done>), ProfileError> {
        let spec = ProfileSpec::from_json(&self.content["profile"].to_string())?;
        let version = self.version.parse().unwrap();
        let (db, outcome, done) = match self.content.get("steps") {
            None => {
                let (monitor, conditions) = (Monitor::default(), Conditions::default());
                let (db, outcome) = run::play(&spec, version, &conditions, &monitor)?;
                (db, outcome, Vec::new())
            }
            Some(steps) => {
                let steps: Vec<Step> = serde_json::from_value(steps.clone()).unwrap();
                scenario::play(&spec, &steps, version, uses_fast_path)?
            }
        };
        Ok((spec, db, outcome, done))
    }

    /// What the sessions do to each other, where there are several.
    pub fn protocol(&self) -> Option<&str> {
        self.content.get("protocol").and_then(Value::as_str)
    }

    /// What the twin does otherwise than the server, be it the long way or the short one; empty
    /// when nothing.
    pub fn differences(&self) -> Vec<String> {
        let mut found = self.differences_of(false);
        if found.is_empty() && self.content.get("steps").is_some() {
            found = self.differences_of(true);
        }
        found
    }

    fn differences_of(&self, uses_fast_path: bool) -> Vec<String> {
        let (spec, db, outcome, done) = match self.play(uses_fast_path) {
            Ok(played) => played,
            Err(error) => return vec![format!("not played: {error}")],
        };
        let mut found = Vec::new();
        self.compare_done(&done, &mut found);
        self.compare_tables(&outcome, &mut found);
        self.compare_records(&outcome, &mut found);
        self.compare_places(&places(&spec, &db, &outcome), &mut found);
        found
    }

    /// Rows found, failures and waits.
    fn compare_done(&self, done: &[Done], found: &mut Vec<String>) {
        let Some(server) = self.content.get("done") else {
            return;
        };
        let twin: Vec<Value> = done.iter().map(told).collect();
        let server = server.as_array().unwrap();
        for number in 0..server.len().max(twin.len()) {
            let (server, twin) = (server.get(number), twin.get(number));
            if server != twin {
                let shown = |done: Option<&Value>| done.map_or("-".to_owned(), Value::to_string);
                found.push(format!(
                    "done: server {}, twin {}",
                    shown(server),
                    shown(twin)
                ));
            }
        }
    }

    fn compare_tables(&self, outcome: &Outcome, found: &mut Vec<String>) {
        for table in &outcome.tables {
            let (counters, wal) = (&table.counters, &table.wal);
            let figures = [
                ("n_tup_ins", counters.n_tup_ins),
                ("n_tup_upd", counters.n_tup_upd),
                ("n_tup_del", counters.n_tup_del),
                ("n_tup_hot_upd", counters.n_tup_hot_upd),
                ("n_tup_newpage_upd", counters.n_tup_newpage_upd),
                ("heap_pages", u64::from(table.heap_pages)),
                ("index_pages", u64::from(table.index_pages)),
                ("wal_records", wal.wal_records),
                ("wal_bytes", wal.wal_bytes),
                ("wal_fpi", wal.wal_fpi),
                ("wal_fpi_bytes", wal.wal_fpi_bytes),
                ("pages_modified", table.pages_modified as u64),
            ];
            let expected = &self.content["tables"][&table.name];
            for (key, twin) in figures {
                // A version that does not count something has no figure.
                if let Some(server) = expected.get(key).and_then(Value::as_u64)
                    && server != twin
                {
                    found.push(format!(
                        "{}.{key}: server {server}, twin {twin}",
                        table.name
                    ));
                }
            }
        }
    }

    fn compare_records(&self, outcome: &Outcome, found: &mut Vec<String>) {
        let server = self.content["by_record"].as_object().unwrap();
        let triple = |value: &Value| {
            let numbers = value.as_array().unwrap().iter();
            numbers.map(|number| number.as_u64().unwrap()).collect()
        };
        let server: BTreeMap<String, Vec<u64>> = server
            .iter()
            .map(|(name, value)| (name.clone(), triple(value)))
            .collect();
        let twin: BTreeMap<String, Vec<u64>> = outcome
            .by_record
            .iter()
            .map(|(name, totals)| {
                let totals = [totals.wal_records, totals.wal_bytes, totals.wal_fpi_bytes];
                (name.clone(), totals.to_vec())
            })
            .collect();
        for name in server
            .keys()
            .chain(twin.keys().filter(|name| !server.contains_key(*name)))
        {
            let (server, twin) = (server.get(name), twin.get(name));
            if server != twin {
                found.push(format!("{name}: server {server:?}, twin {twin:?}"));
            }
        }
    }

    fn compare_places(&self, twin: &Places, found: &mut Vec<String>) {
        let server = self.content["places"].as_object().unwrap();
        for name in twin.keys().filter(|name| !server.contains_key(*name)) {
            found.push(format!("{name}: the server has none"));
        }
        for (name, server) in server {
            let Some(pages) = twin.get(name) else {
                found.push(format!("{name}: the twin has none"));
                continue;
            };
            let server_pages = server["pages"].as_u64().unwrap();
            if server_pages != pages.len() as u64 {
                found.push(format!(
                    "{name}: server {server_pages} pages, twin {}",
                    pages.len()
                ));
            }
            if server["digest"].as_str().unwrap() == format!("{:016x}", digest(&pages.concat())) {
                continue;
            }
            let digests = server["page_digests"].as_str().unwrap().as_bytes();
            let is_equal = |(text, expected): (&String, &[u8])| {
                format!("{:016x}", digest(text)).as_bytes()[..PAGE_DIGITS] == *expected
            };
            let first = pages
                .iter()
                .zip(digests.chunks(PAGE_DIGITS))
                .position(|pair| !is_equal(pair));
            let mut text = format!("{name}: first different page {first:?}");
            if let Some(page) = first {
                let _ = write!(text, "{}", self.first_difference(name, page, &pages[page]));
            }
            found.push(text);
        }
    }

    /// The first line in which a page differs, where the server's texts are at hand
    /// (`record_scenarios.py --texts`, named by `SCENARIO_TEXTS`).
    fn first_difference(&self, fork: &str, page: usize, twin: &str) -> String {
        let Some(folder) = std::env::var_os("SCENARIO_TEXTS") else {
            return String::new();
        };
        let path = Path::new(&folder)
            .join(&self.version)
            .join(format!("{}.txt", self.name));
        let Ok(text) = std::fs::read_to_string(path) else {
            return String::new();
        };
        let mut lines = text
            .lines()
            .skip_while(|line| *line != format!("== {fork}"))
            .skip(1);
        let heading = format!("page {page} ");
        let start = |line: &&str| line.starts_with(&heading) || *line == heading.trim_end();
        let server: Vec<&str> = lines.by_ref().skip_while(|line| !start(line)).collect();
        let end = server
            .iter()
            .skip(1)
            .position(|line| !line.starts_with(' '));
        let server = &server[..end.map_or(server.len(), |end| end + 1)];
        let twin: Vec<&str> = twin.lines().collect();
        for number in 0..server.len().max(twin.len()) {
            let (server, twin) = (server.get(number), twin.get(number));
            if server != twin {
                return format!("\n    server {server:?}\n    twin   {twin:?}");
            }
        }
        String::new()
    }
}

/// What became of a step, as in the file.
fn told(done: &Done) -> Value {
    let ends = done.ends.iter().map(|end| match end {
        End::Rows(rows) => json!(rows),
        End::Failed(state) => json!(state),
    });
    let mut parts = vec![
        json!(done.step),
        json!(done.session),
        Value::Array(ends.collect()),
    ];
    if let Some((waited_for, ended_in)) = &done.waited {
        parts.extend([json!(waited_for), json!(ended_in)]);
    }
    Value::Array(parts)
}

fn places(spec: &ProfileSpec, db: &Database, outcome: &Outcome) -> Places {
    let mut places = Places::new();
    for (table, spec) in outcome.tables.iter().zip(&spec.table) {
        let of = |method| {
            let listed = spec.indexes.iter();
            let listed = listed.filter(move |index| index.method == method);
            listed.map(|index| index.name.as_str())
        };
        let others = of(Method::Hash).chain(of(Method::Gin));
        let names: Vec<&str> = of(Method::Btree).chain(others).collect();
        places.append(&mut of_table(db.table(table.table), &table.name, &names));
    }
    places
}
