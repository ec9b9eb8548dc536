//! The fast path of simple updates against the slow one: random histories of one client and of
//! several give the same figures, and the same places of everything, whether updates may take it or
//! not, and whether transactions are drawn ahead of their turn or in it.

use crate::common::is_long;

use pgheadroom_layout::{HeapFillfactor, PgVersion};
use pgheadroom_twin::executor::{
    Assignment, Change, ColumnDefinition, Database, IndexDefinition, Row, SessionId,
    TableDefinition, TableId,
};
use pgheadroom_twin::lock_options::{LockTupleMode, LockWaitPolicy};
use pgheadroom_twin::pgbench::Prng;
use pgheadroom_twin::places;
use pgheadroom_twin::procarray::Isolation;
use pgheadroom_twin::profile::Monitor;
use pgheadroom_twin::run::{Plan, run};
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::WalSettings;
use pgheadroom_twin::workload::{Access, CmdType, End, Operation, Sets, Workload};
use proptest::prelude::*;

/// What a history is like; shares are of 100.
#[derive(Debug, Clone)]
struct Case {
    clients: usize,
    repeatable_read: bool,
    rows: i64,
    fillfactor: i64,
    major: u16,
    filler_bytes: u32,
    has_nulls: bool,
    full_page_writes: bool,
    hints_are_logged: bool,
    is_logical: bool,
    second_index: Option<usize>,
    simple_share: i64,
    abort_share: i64,
    /// Transactions between two things from outside, and which.
    pauses: Vec<(u16, u8)>,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let clients = (prop_oneof![Just(1_usize), 2_usize..7], any::<bool>());
    let shape = (1_i64..400, 10_i64..=100, 13_u16..=18, 1_u32..900);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let shares = (
        proptest::option::of(1_usize..4),
        prop_oneof![Just(100_i64), 0_i64..100],
        prop_oneof![Just(0_i64), 0_i64..40],
    );
    let pauses = proptest::collection::vec((1_u16..600, 0_u8..5), 1..6);
    (clients, shape, switches, shares, pauses, any::<u64>()).prop_map(
        |(
            (clients, repeatable_read),
            (rows, fillfactor, major, filler_bytes),
            (has_nulls, full_page_writes, hints_are_logged, is_logical),
            (second_index, simple_share, abort_share),
            pauses,
            seed,
        )| Case {
            clients,
            repeatable_read,
            rows,
            fillfactor,
            major,
            filler_bytes,
            has_nulls,
            full_page_writes,
            hints_are_logged,
            is_logical,
            second_index,
            simple_share,
            abort_share,
            pauses,
            seed,
        },
    )
}

/// Rows: key, an integer that may be NULL, a small integer, an integer, a string.
fn row(case: &Case, key: i64) -> Vec<Value> {
    let second = if case.has_nulls && key % 3 == 0 {
        Value::Null
    } else {
        Value::Integer(key % 7)
    };
    let filler = Value::Text(Text::padded(b'x', case.filler_bytes));
    vec![key.into(), second, 0.into(), (key * 255).into(), filler]
}

/// A value that does not depend on the one before.
const SEVEN: Change<'static> = Change::Computed(&|_: Row<'_>| Value::Integer(7));

/// More than a run inserts.
const KEYS_OF_A_RUN: i64 = 10_000;

/// Statements of some clients, each client's drawn one after the other.
struct Random {
    case: Case,
    table: TableId,
    prngs: Vec<Prng>,
    draws_apart: bool,
    /// Below the keys that this run inserts, of which every client has its own.
    below_new: i64,
    /// By client: keys inserted.
    inserted: Vec<i64>,
}

impl Random {
    fn new(case: &Case, table: TableId, draws_apart: bool) -> Self {
        let mut random = Self {
            case: case.clone(),
            table,
            prngs: Vec::new(),
            draws_apart,
            below_new: 0,
            inserted: Vec::new(),
        };
        random.start(0);
        random
    }

    /// Draws anew, for the run of this number: what was drawn ahead in the last one is lost.
    fn start(&mut self, run: u64) {
        let clients = 0..self.case.clients as u64;
        let seeds = clients.map(|client| self.case.seed ^ (run << 8 | client));
        self.prngs = seeds.map(Prng::from_seed).collect();
        self.inserted = vec![0; self.case.clients];
        self.below_new = 2 * self.case.rows + KEYS_OF_A_RUN * i64::try_from(run).unwrap();
    }

    /// The next key of this client: keys of several do not ascend with the rows.
    fn new_key(&mut self, client: usize) -> i64 {
        let [clients, client_number] = [self.case.clients, client].map(|n| n as i64);
        let number = self.inserted[client] * clients + client_number;
        self.inserted[client] += 1;
        self.below_new + 1 + number
    }

    fn operation(&mut self, client: usize) -> Operation {
        let table = self.table;
        let clients = self.case.clients as i64;
        let prng = &mut self.prngs[client];
        let loaded = prng.random(1, self.case.rows);
        let newest = clients * (self.inserted[client] + 1);
        let inserts = self.case.simple_share < 100;
        let key = if inserts && prng.random(1, 4) == 1 {
            self.below_new + prng.random(1, newest)
        } else {
            loaded
        };
        let set = |column, change| Sets::from(vec![Assignment { column, change }]);
        let by_key = |high, cmd_type| Operation::Find {
            table,
            by: Access::Index(0),
            low: key,
            high,
            cmd_type,
            number: 0,
        };
        let addend = prng.random(-300, 300);
        if prng.random(1, 100) <= self.case.simple_share {
            return match prng.random(1, 4) {
                1 => by_key(
                    key,
                    CmdType::Update(set(1, Change::Next { grows_bytes: 0 })),
                ),
                2 => by_key(key, CmdType::Update(set(2, Change::Same))),
                _ => by_key(key, CmdType::Update(set(3, Change::Add(addend)))),
            };
        }
        match prng.random(1, 12) {
            1 => by_key(key, CmdType::Delete),
            2 => by_key(
                key,
                CmdType::Lock(LockTupleMode::Update, LockWaitPolicy::Block),
            ),
            3 => by_key(key + 5, CmdType::Read),
            4 => by_key(loaded, CmdType::Update(set(0, Change::Add(self.case.rows)))),
            5 => by_key(key + 9, CmdType::Update(set(3, Change::Add(1)))),
            6 => by_key(
                key,
                CmdType::Update(set(4, Change::Next { grows_bytes: 3 })),
            ),
            7 => {
                let key = self.new_key(client);
                let rows = vec![row(&self.case, key)];
                Operation::Insert { table, rows }
            }
            8 => by_key(key, CmdType::Update(set(1, SEVEN))), // of a NULL too
            9 => Operation::Find {
                table,
                by: Access::SeqScan(0),
                low: key,
                high: key + 2,
                number: 0,
                cmd_type: CmdType::Update(set(2, Change::Next { grows_bytes: 0 })),
            },
            _ => Operation::Upsert {
                table,
                index: 0,
                rows: vec![row(&self.case, key)],
                sets: set(3, Change::Add(1)),
            },
        }
    }
}

impl Workload for Random {
    fn clients(&self) -> usize {
        self.case.clients
    }

    fn draws_apart(&self) -> bool {
        self.draws_apart
    }

    fn transactions_left(&self) -> u64 {
        u64::MAX
    }

    fn next_transaction(&mut self, client: usize, operations: &mut Vec<Operation>) -> Option<End> {
        operations.clear();
        let statements = if self.prngs[client].random(1, 100) <= self.case.simple_share {
            1
        } else {
            self.prngs[client].random(1, 3)
        };
        for _ in 0..statements {
            operations.push(self.operation(client));
        }
        let fails = self.prngs[client].random(1, 100) <= self.case.abort_share;
        Some(match operations.len() {
            _ if fails => End::Rollback,
            1 => End::Statement,
            _ => End::Commit,
        })
    }
}

/// A loaded table.
fn loaded(case: &Case) -> (Database, TableId) {
    let version = PgVersion::new(case.major, 3).unwrap();
    let settings = WalSettings {
        full_page_writes: case.full_page_writes,
        hints_are_logged: case.hints_are_logged,
        is_logical: case.is_logical,
    };
    let mut db = Database::new(version.behaviour(), settings);
    let types = ["int4", "int4", "int2", "int8", "varchar"];
    let columns = types.iter().enumerate();
    let columns = columns.map(|(number, kind)| {
        ColumnDefinition::new(&format!("c{number}"), kind).expect("a known type")
    });
    let definition = TableDefinition {
        columns: columns.collect(),
        indexes: Vec::new(),
        fillfactor: HeapFillfactor::new(case.fillfactor).unwrap(),
    };
    let table = db.create_table(definition).unwrap();
    for key in 1..=case.rows {
        db.insert(table, &row(case, key)).unwrap();
    }
    db.commit();
    let key = IndexDefinition::on_columns(vec![0], true);
    db.create_index(table, key).unwrap();
    if let Some(column) = case.second_index {
        let index = IndexDefinition::on_columns(vec![column], false);
        db.create_index(table, index).unwrap();
    }
    db.checkpoint();
    (db, table)
}

/// What a history leaves behind, and how many updates took the fast path.
fn play(case: &Case, uses_fast_path: bool) -> (Vec<String>, u64) {
    let (mut db, table) = loaded(case);
    db.use_fast_path(uses_fast_path);
    let mut workload = Random::new(case, table, uses_fast_path);
    let names = ["t".to_owned()];
    let mut left = Vec::new();
    let mut held = Vec::new();
    let monitor = Monitor::default();
    for (number, &(transactions, event)) in (0..).zip(&case.pauses) {
        let mut plan = Plan::of_one_client(u64::from(transactions));
        plan.interleaving = case.seed % 1000;
        if case.repeatable_read {
            plan.isolation = Isolation::RepeatableRead;
        }
        workload.start(number);
        let outcome = run(&mut db, &mut workload, &names, &plan, &monitor);
        let is_over = outcome.is_err(); // such as a taken key
        left.push(format!("{outcome:?}"));
        if is_over {
            db.rollback();
        }
        let indexes = 1 + usize::from(case.second_index.is_some());
        let places = places::of_table(db.table(table), "t", &["t_pk", "t_second"][..indexes]);
        left.push(format!("{places:?}"));
        let mut clients = (0..case.clients).map(SessionId);
        let is_stuck = clients.any(|client| db.waits_for(client).is_some());
        assert!(is_over || !is_stuck, "clients wait for each other for ever");
        if is_over && case.clients > 1 {
            break; // in the middle of the others' transactions
        }
        match event {
            0 => db.vacuum(table).unwrap(),
            1 => db.checkpoint(),
            2 => held.push(db.procs_mut().hold()),
            3 => held
                .drain(..)
                .for_each(|snapshot| db.procs_mut().release(snapshot)),
            _ => {}
        }
    }
    left.push(format!("{:?}", db.wal().totals()));
    // What updates have logged is a part of what the table's records take, images apart.
    let (all, updates) = (db.wal().of_table(table.0), db.wal().update_bytes(table.0));
    assert!(updates <= all.wal_bytes - all.wal_fpi_bytes);
    left.push(format!("{updates} bytes of updates"));
    (left, db.fast_updates())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if is_long() { 300 } else { 100 }))]

    /// Figures, records and places are the same.
    #[test]
    fn both_ways_agree(case in case()) {
        let (short, _) = play(&case, true);
        let (long, none) = play(&case, false);
        prop_assert_eq!(none, 0);
        for (one, other) in short.iter().zip(&long) {
            let differ = one.bytes().zip(other.bytes()).position(|(one, other)| one != other);
            let from = differ.unwrap_or(0).saturating_sub(60);
            let part = |text: &str| text.get(from..(from + 160).min(text.len())).map(str::to_owned);
            prop_assert!(one == other, "{:?}\n{:?}", part(one), part(other));
        }
    }
}

/// Where nothing but updates runs, all that is logged of the table is theirs, but for images.
#[test]
fn updates_alone_log_all() {
    let mut case = Case {
        clients: 1,
        repeatable_read: false,
        rows: 300,
        fillfactor: 95,
        major: 18,
        filler_bytes: 60,
        has_nulls: false,
        full_page_writes: true,
        hints_are_logged: true,
        is_logical: false,
        second_index: Some(3),
        simple_share: 100,
        abort_share: 0,
        pauses: vec![(900, 1), (900, 4)],
        seed: 7,
    };
    for second_index in [Some(3), None] {
        case.second_index = second_index;
        let (mut db, table) = loaded(&case);
        db.wal_mut().reset_totals();
        let mut workload = Random::new(&case, table, true);
        let plan = Plan::of_one_client(900);
        run(
            &mut db,
            &mut workload,
            &["t".to_owned()],
            &plan,
            &Monitor::default(),
        )
        .unwrap();
        let all = db.wal().of_table(table.0);
        assert_eq!(
            db.wal().update_bytes(table.0),
            all.wal_bytes - all.wal_fpi_bytes
        );
    }
}

/// On a steady table nearly every update takes the fast path, of several clients most of them.
#[test]
fn steady_tables_take_the_fast_path() {
    let mut case = Case {
        clients: 1,
        repeatable_read: false,
        rows: 300,
        fillfactor: 80,
        major: 18,
        filler_bytes: 60,
        has_nulls: false,
        full_page_writes: true,
        hints_are_logged: true,
        is_logical: false,
        second_index: None,
        simple_share: 100,
        abort_share: 0,
        pauses: vec![(2000, 1), (2000, 4)],
        seed: 1,
    };
    let (_, taken) = play(&case, true);
    assert!(taken > 3500, "{taken} of 4000");
    (case.clients, case.rows) = (4, 3000);
    let (_, taken) = play(&case, true);
    assert!(taken > 1000, "{taken} of 4000");
}
