//! The heap's maintenance against scenarios played by servers: `tools/record_heap_golden.py`.
//!
//! After each step the forks' sizes and the WAL records of table and index, by type; at the end
//! every line pointer with its tuple's length and hint bits, the flags of every page, both maps.

use std::fmt::Write;
use std::path::PathBuf;

use pgheadroom_layout::{BlockNumber, HeapFillfactor, PgVersion};
use pgheadroom_twin::executor::{
    Action, Assignment, Assignments, Change, ColumnDefinition, Database, IndexDefinition, Row,
    TableDefinition, TableId,
};
use pgheadroom_twin::lock_options::{LockTupleMode, LockWaitPolicy};
use pgheadroom_twin::page::{Tuple, XmaxHint, XminHint};
use pgheadroom_twin::procarray::HeldSnapshot;
use pgheadroom_twin::vacuum::VacuumOptions;
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::WalSettings;
use pgheadroom_twin::{HeapPage, LinePointer, check};

/// `SET v = v + 1`.
const ADD_ONE: [Assignment<'_>; 1] = [Assignment {
    column: 1,
    change: Change::Add(1),
}];

/// The scenarios' table while they are played.
struct Player {
    db: Database,
    table: TableId,
    in_transaction: bool,
    held: Option<HeldSnapshot>,
}

impl Player {
    fn new(version: &str, settings: &str, table: &str) -> Self {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let settings = WalSettings {
            full_page_writes: settings.contains("images=1"),
            hints_are_logged: settings.contains("checksums=1"),
            is_logical: false,
        };
        let fillfactor = table.split_once("fillfactor=").unwrap().1;
        let column = |name, type_name| ColumnDefinition::new(name, type_name).unwrap();
        let mut db = Database::new(behaviour, settings);
        let table = TableDefinition {
            columns: vec![
                column("id", "int4"),
                column("v", "int4"),
                column("p", "bpchar(64)"),
            ],
            indexes: if table.contains("key") {
                vec![IndexDefinition::on_columns(vec![0], true)]
            } else {
                Vec::new()
            },
            fillfactor: HeapFillfactor::new(fillfactor.parse().unwrap()).unwrap(),
        };
        let table = db.create_table(table).unwrap();
        Self {
            db,
            table,
            in_transaction: false,
            held: None,
        }
    }

    /// Plays a step; what the recording says about it.
    fn step(&mut self, step: &str) -> String {
        self.db.wal_mut().reset_totals();
        let words: Vec<&str> = step.split(' ').collect();
        let numbers: Vec<i64> = words.iter().filter_map(|word| word.parse().ok()).collect();
        match words[0] {
            "insert" => {
                for id in numbers[0]..=numbers[1] {
                    let filler = Value::Text(Text::padded(b' ', 64));
                    self.db
                        .insert(self.table, &[id.into(), 0.into(), filler])
                        .unwrap();
                }
            }
            "begin" => self.in_transaction = true,
            "commit" => {
                self.in_transaction = false;
                self.db.commit();
            }
            "rollback" => {
                self.in_transaction = false;
                self.db.rollback();
            }
            "checkpoint" => self.db.checkpoint(),
            "vacuum" => {
                let options = VacuumOptions {
                    freeze: words.contains(&"freeze"),
                    truncate: !words.contains(&"keep"),
                    ..VacuumOptions::default()
                };
                self.db.vacuum_as(self.table, options).unwrap();
            }
            "hold" => self.held = Some(self.db.procs_mut().hold()),
            "release" => {
                let held = self.held.take().unwrap();
                self.db.procs_mut().release(held);
            }
            word => self.change(word, &numbers),
        }
        if !self.in_transaction {
            self.db.commit();
        }
        self.told(step)
    }

    fn change(&mut self, word: &str, numbers: &[i64]) {
        let (kind, by_key) = word
            .strip_suffix("_key")
            .map_or((word, false), |kind| (kind, true));
        let action = match kind {
            "update" => Action::Update(Assignments { columns: &ADD_ONE }),
            "delete" => Action::Delete,
            "lock" => Action::Lock(LockTupleMode::Update, LockWaitPolicy::Block),
            "select" => Action::Read,
            other => panic!("unknown step {other}"),
        };
        if by_key {
            let (low, high) = (numbers[0], numbers[1]);
            self.db
                .by_index(self.table, 0, &[low], &[high], &action)
                .unwrap();
            return;
        }
        let wanted = |row: Row<'_>| match *numbers {
            [modulus, rest, low, high] => {
                let id = row.integer(0).unwrap();
                id % modulus == rest && (low..=high).contains(&id)
            }
            _ => true,
        };
        self.db.by_seq_scan(self.table, wanted, &action).unwrap();
    }

    fn told(&self, step: &str) -> String {
        let heap = self.db.table(self.table).heap();
        let forks = (
            heap.page_count(),
            heap.fsm().page_count(),
            heap.vm().page_count(),
        );
        let cleaning = heap.behaviour().heap_cleaning_records;
        let mut records: Vec<String> = self
            .db
            .wal()
            .by_type()
            .map(|(record, totals)| {
                let (records, bytes) = (totals.wal_records, totals.wal_bytes);
                format!("{} {records} {bytes}", record.name(cleaning))
            })
            .filter(|record| !record.starts_with("Transaction"))
            .collect();
        records.sort_unstable();
        let told = format!(
            "{step} -> {} {} {}: {}",
            forks.0,
            forks.1,
            forks.2,
            records.join("; ")
        );
        told.trim_end_matches([':', ' ']).to_owned()
    }
}

fn tuple_text(tuple: &Tuple) -> String {
    let mut text = tuple.lp_len.to_string();
    for (holds, letter) in [
        (tuple.is_heap_only, 'H'),
        (tuple.is_hot_updated, 'U'),
        (tuple.is_updated, 'n'),
        (tuple.is_locked_only, 'l'),
        (tuple.xmin_hint == XminHint::Set, 'c'),
        (tuple.xmin_hint == XminHint::Frozen, 'f'),
        (tuple.xmax_hint == XmaxHint::Set, 'x'),
    ] {
        if holds {
            text.push(letter);
        }
    }
    text
}

fn page_text(page: &HeapPage) -> String {
    if page.is_new() {
        return "new".to_owned();
    }
    let items = page.items().into_iter().map(|item| match item {
        LinePointer::Unused => "u".to_owned(),
        LinePointer::Redirect(target) => format!("r{}", target.0),
        LinePointer::Dead => "d".to_owned(),
        LinePointer::Normal(tuple) => tuple_text(&tuple),
    });
    let flags = u8::from(page.has_free_lines())
        + 2 * u8::from(page.is_full())
        + 4 * u8::from(page.is_all_visible());
    let prunable = u8::from(page.prune_xid().is_valid());
    let (lower, upper) = (page.pd_lower(), page.pd_upper());
    let text = format!("{lower} {upper} {flags} {prunable}: {}", joined_runs(items));
    text.trim_end().to_owned()
}

/// Equal neighbours and how many.
fn runs(texts: impl Iterator<Item = String>) -> Vec<(String, u32)> {
    let mut runs: Vec<(String, u32)> = Vec::new();
    for text in texts {
        match runs.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => runs.push((text, 1)),
        }
    }
    runs
}

fn joined_runs(texts: impl Iterator<Item = String>) -> String {
    let mut joined = String::new();
    for (text, count) in runs(texts) {
        let gap = if joined.is_empty() { "" } else { " " };
        if count > 1 {
            write!(joined, "{gap}{text}*{count}").unwrap();
        } else {
            write!(joined, "{gap}{text}").unwrap();
        }
    }
    joined
}

/// The strings of a list in a recording, one a line.
fn list<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let start = text
        .find(&format!("\"{name}\": ["))
        .unwrap_or_else(|| panic!("no list {name}"));
    let lines = text[start..].lines().skip(1);
    lines
        .map(|line| line.trim().trim_end_matches(','))
        .take_while(|line| *line != "]")
        .map(|line| line.trim_matches('"'))
        .collect()
}

fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let start = text.find(&format!("\"{name}\": \"")).unwrap() + name.len() + 5;
    text[start..].split('"').next().unwrap()
}

/// Plays a recording; the first difference.
fn play(version: &str, text: &str) -> Result<(), String> {
    let steps = list(text, "steps");
    let created = steps[0].split(" -> ").next().unwrap();
    let mut player = Player::new(version, value(text, "settings"), created);
    for told in &steps[1..] {
        let step = told.split(" -> ").next().unwrap();
        let ours = player.step(step);
        if ours != *told {
            return Err(format!("\n  server {told}\n  twin   {ours}"));
        }
    }
    let heap = player.db.table(player.table).heap();
    for (block, page) in (0..).zip(heap.pages()) {
        let sound = check::page_after(BlockNumber(block), page, player.db.procs());
        sound.map_err(|violation| violation.to_string())?;
    }
    let pages = runs(heap.pages().iter().map(page_text));
    let pages: Vec<String> = pages
        .into_iter()
        .map(|(text, count)| format!("{count} x {text}"))
        .collect();
    let blocks = || (0..heap.page_count()).map(BlockNumber);
    let bits = |block| {
        let bits = heap.vm().get(block);
        u8::from(bits.all_visible) + 2 * u8::from(bits.all_frozen)
    };
    let vm: String = blocks().map(|block| bits(block).to_string()).collect();
    let fsm = joined_runs(blocks().map(|block| heap.fsm().recorded(block).to_string()));
    for (name, ours) in [("pages", pages), ("vm", vec![vm]), ("fsm", vec![fsm])] {
        let theirs = list(text, name);
        if ours != theirs {
            let at = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            let at = at.unwrap_or(ours.len().min(theirs.len()));
            let (theirs, ours) = (theirs.get(at), ours.get(at));
            return Err(format!(
                "{name} {at}\n  server {theirs:?}\n  twin   {ours:?}"
            ));
        }
    }
    Ok(())
}

/// Every recorded scenario of every version, to the hint bit and the byte.
#[test]
fn scenarios_agree_with_servers() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/expected");
    let mut failures = Vec::new();
    let mut played = 0;
    for version in ["15.18", "16.14", "17.10", "18.4"] {
        let Ok(files) = std::fs::read_dir(folder.join(version)) else {
            continue;
        };
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort_unstable();
        for path in files {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if !name.starts_with("heap-") {
                continue;
            }
            played += 1;
            if let Err(failure) = play(version, &std::fs::read_to_string(&path).unwrap()) {
                failures.push(format!("{version} {name}: {failure}"));
            }
        }
    }
    assert!(played >= 80, "only {played} recordings found");
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
