//! Loads page by page against INSERTs one by one: the databases are equal in all that they hold.

use pgheadroom_layout::{ColumnType, HeapFillfactor, PgVersion};
use pgheadroom_twin::executor::{
    ColumnDefinition, Database, IndexDefinition, StatementError, TableDefinition, TableId,
};
use pgheadroom_twin::places::{self, Places};
use pgheadroom_twin::row::{LoadRule, Numbers};
use pgheadroom_twin::wal::WalSettings;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Case {
    rows: i64,
    /// Rows that are loaded at a time.
    batch: i64,
    fillfactor: i64,
    major: u16,
    hints_are_logged: bool,
    /// Type, numbers, widths, NULLs among a million.
    columns: Vec<(&'static str, Numbers, (u32, u32), u32)>,
    /// Whether an index is there before the rows.
    is_indexed: bool,
    aborts: bool,
}

fn numbers() -> impl Strategy<Value = Numbers> {
    prop_oneof![
        Just(Numbers::Serial),
        Just(Numbers::Constant),
        (1_i64..5000).prop_map(|ndistinct| Numbers::Random { ndistinct }),
        (1_i64..50).prop_map(|rows| Numbers::Parent { rows }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let types = prop::sample::select(vec![
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "bool",
        "timestamptz",
        "numeric",
        "numeric(3,1)",
        "text",
        "varchar(9)",
        "bpchar",
        "bpchar(70)",
    ]);
    let widths = prop_oneof![
        (0_u32..200).prop_map(|width| (width, width)),
        (0_u32..60, 0_u32..300).prop_map(|(min, more)| (min, min + more)),
        (0_u32..10, 1900_u32..3000),
    ];
    let nulls = prop_oneof![3 => Just(0_u32), 1 => Just(400_000_u32), 1 => Just(1_000_000_u32)];
    let columns = prop::collection::vec((types, numbers(), widths, nulls), 1..6);
    (
        (0_i64..500, 1_i64..300, 10_i64..=100, 13_u16..=18),
        any::<(bool, bool, bool)>(),
        columns,
    )
        .prop_map(
            |(
                (rows, batch, fillfactor, major),
                (hints_are_logged, is_indexed, aborts),
                columns,
            )| {
                Case {
                    rows,
                    batch,
                    fillfactor,
                    major,
                    hints_are_logged,
                    columns,
                    is_indexed: is_indexed && rows % 4 == 0,
                    aborts: aborts && rows % 3 == 0,
                }
            },
        )
}

fn rules(case: &Case) -> Vec<LoadRule> {
    let columns = case.columns.iter();
    let rules = columns.map(|&(_, numbers, widths, null_millionths)| LoadRule {
        numbers,
        width_bytes: Some(widths),
        null_millionths,
        is_ordered: false,
        labels: None,
        elements: None,
    });
    rules.collect()
}

/// Some rows by INSERT, so that the load finds a page with room.
const BEFORE: i64 = 3;

fn loaded(case: &Case, page_by_page: bool) -> (Database, Result<(), StatementError>) {
    let minor = if case.major == 13 { 20 } else { 4 };
    let version = PgVersion::new(case.major, minor).expect("a version");
    let settings = WalSettings {
        full_page_writes: true,
        hints_are_logged: case.hints_are_logged,
        is_logical: false,
    };
    let mut db = Database::new(version.behaviour(), settings);
    let columns = case.columns.iter().enumerate();
    let columns = columns.map(|(number, (type_name, ..))| {
        ColumnDefinition::new(&format!("c{number}"), type_name).expect("a type")
    });
    let indexes = case
        .is_indexed
        .then(|| IndexDefinition::on_columns(vec![0], false));
    let definition = TableDefinition {
        columns: columns.collect(),
        indexes: indexes.into_iter().collect(),
        fillfactor: HeapFillfactor::new(case.fillfactor).expect("a fillfactor"),
    };
    let table = db.create_table(definition).expect("a table");
    let done = load(&mut db, table, case, page_by_page);
    if case.aborts || done.is_err() {
        db.rollback();
    } else {
        db.commit();
    }
    db.vacuum(table).unwrap();
    db.checkpoint();
    (db, done)
}

fn load(
    db: &mut Database,
    table: TableId,
    case: &Case,
    page_by_page: bool,
) -> Result<(), StatementError> {
    let rules = rules(case);
    let types: Vec<ColumnType> = case
        .columns
        .iter()
        .map(|(type_name, ..)| ColumnType::parse(type_name).expect("a type"))
        .collect();
    let insert = |db: &mut Database, number| {
        let values = (1..).zip(rules.iter().zip(&types));
        let values = values.map(|(column, (rule, of))| rule.value(of, number, column));
        let values: Result<Vec<_>, _> = values.collect();
        db.insert(table, &values?)
    };
    for number in 1..=BEFORE {
        insert(db, number)?;
    }
    let mut loading = db.begin_load(table, &rules, case.rows);
    let last = BEFORE + case.rows;
    let mut first = BEFORE + 1;
    while first <= last {
        let end = last.min(first + case.batch - 1);
        if page_by_page {
            db.load_rows(&mut loading, first..=end)?;
        } else {
            for number in first..=end {
                insert(db, number)?;
            }
        }
        first = end + 1;
    }
    Ok(())
}

/// Where everything lies; then all that the database holds, in alphabetical order, since what is
/// looked up by a hash lies in none.
fn told(db: &Database, case: &Case) -> (Places, Vec<String>) {
    let table = db.tables().next().expect("the table");
    let indexes: &[&str] = if case.is_indexed { &["index"] } else { &[] };
    let text = format!("{db:?}");
    let parts = text.split(|letter| "{}[](), ".contains(letter));
    let mut parts: Vec<String> = parts.map(str::to_owned).collect();
    parts.sort_unstable();
    (places::of_table(db.table(table), "t", indexes), parts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Pages, maps, rows, strings, counters, log and backends are the same.
    #[test]
    fn as_inserted_one_by_one(case in case()) {
        let (by_page, loaded_by_page) = loaded(&case, true);
        let (by_row, loaded_by_row) = loaded(&case, false);
        prop_assert_eq!(&loaded_by_page, &loaded_by_row);
        if loaded_by_page.is_ok() {
            let (by_page, by_row) = (told(&by_page, &case), told(&by_row, &case));
            prop_assert_eq!(by_page.0, by_row.0);
            let differs = by_page.1.iter().zip(&by_row.1).find(|(one, other)| one != other);
            prop_assert_eq!(differs, None);
            prop_assert_eq!(by_page.1.len(), by_row.1.len());
        }
    }
}
