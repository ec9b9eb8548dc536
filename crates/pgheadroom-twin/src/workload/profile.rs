//! A profile's operations: what is done, to which keys, how often, by which client.
//!
//! Draws of a transaction, in order: which one it is; for each operation its key, the number of its
//! rows where that varies, and one draw for every column that changes at times or grows; last
//! whether it is rolled back.

use std::sync::Arc;

use crate::executor::{Assignment, Change, Head, TableId};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::pgbench::{Generators, Prng};
use crate::profile::foreign_key::foreign_keys;
use crate::profile::head::head_of;
use crate::profile::{
    ChangeSpec, ColumnSpec, Find, KindName, LoadedTable, OperationSpec, ParentPick, ProfileError,
    ProfileSpec, RowsSpec, TableSpec,
};
use crate::row::kind::Kind;
use crate::row::{LoadRule, Numbers};
use crate::value::{Value, ValueError};
use crate::workload::living::{NO_ROW, OwnRows};
use crate::workload::pick::{self, Past, draw, millionths};
use crate::workload::{Access, CmdType, End, Operation, Pick, Sets, Workload};

/// What an update does to one column.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Set {
    column: usize,
    /// In millionths; it draws when below a million.
    changed: i64,
    /// Growth of a string, from and to.
    grows: Option<(i64, i64)>,
    /// A foreign key's: the last of the keys that it goes around in.
    last_key: Option<i64>,
    /// The number of the label that an enum gets, if not the next.
    label: Option<i64>,
}

impl Set {
    fn of((column, spec): (usize, &ColumnSpec), change: &ChangeSpec, rule: &LoadRule) -> Self {
        Self {
            column,
            label: change.to.as_deref().and_then(|label| spec.label(label)),
            changed: millionths(change.changed_frac),
            grows: change.grows_bytes.map(|grows| (grows.min, grows.max)),
            last_key: match rule.numbers {
                Numbers::Parent { rows } => Some(rows),
                _ => None,
            },
        }
    }

    /// What this statement does, with its draw.
    #[inline]
    fn draw(&self, changed_frac_below_one: bool, client: &mut Prng) -> Assignment<'static> {
        let next = Change::Next { grows_bytes: 0 };
        let next = self.label.map_or(next, Change::Label);
        let mut change = self.last_key.map_or(next, |last| Change::NextKey { last });
        if changed_frac_below_one || self.grows.is_some() {
            let drawn = draw(client);
            if changed_frac_below_one && drawn > self.changed {
                change = Change::Same;
            } else if let Some((low, high)) = self.grows {
                let grows = low + (drawn - 1) % (high - low + 1);
                let grows_bytes = u32::try_from(grows).expect("growth of at most a million");
                change = Change::Next { grows_bytes };
            }
        }
        Assignment {
            column: self.column,
            change,
        }
    }
}

/// An operation of a profile, ready to be carried out.
#[derive(Debug, Clone)]
pub struct ProfileOperation {
    kind: KindName,
    table: TableId,
    /// Its position, and that of its table, among the profile's.
    number: usize,
    table_number: usize,
    rows: i64,
    /// Keys of a statement.
    width: RowsSpec,
    pick: Option<Pick>,
    scatter: bool,
    by: Access,
    /// Where it takes rows from the head of a queue.
    head: Option<Arc<Head>>,
    key_index: usize,
    /// With whether a share of the statements leaves the column as it is.
    sets: Vec<(Set, bool)>,
    values: Vec<ColumnRule>,
}

#[derive(Debug, Clone)]
struct ColumnRule {
    rule: LoadRule,
    column_type: pgheadroom_layout::ColumnType,
    /// The type's, where it is one that has values.
    kind: Option<Kind>,
    /// The table whose newest key inserts take, by its position.
    newest_of: Option<usize>,
}

impl ColumnRule {
    #[inline]
    fn value(&self, row: i64, number: u32) -> Result<Value, ValueError> {
        match self.kind {
            Some(kind) => {
                let kind = (kind, self.column_type.name());
                self.rule.value_of_kind(kind, row, number)
            }
            None => self.rule.value(&self.column_type, row, number),
        }
    }
}

impl ProfileOperation {
    /// Makes an operation ready.
    ///
    /// # Errors
    /// [`ProfileError::NotAProfile`] when it names what its table does not have.
    pub fn new(
        spec: &OperationSpec,
        (number, table_number): (usize, usize),
        table: &TableSpec,
        loaded: &LoadedTable,
    ) -> Result<Self, ProfileError> {
        let missing = |what: &str| ProfileError::NotAProfile {
            reason: format!("an operation on {} needs {what}", table.name),
        };
        let finds = spec.kind != KindName::Insert;
        let key_index = table.key_index();
        let (by, key_index) = match (finds, key_index, table.key_column()) {
            (false, ..) => (Access::SeqScan(0), 0),
            (true, Some(index), Some(column)) => match spec.find {
                Some(Find::Index) | None => (Access::Index(index), index),
                Some(Find::Seqscan) => (Access::SeqScan(column), index),
                Some(Find::Bitmap) => (Access::Bitmap(index), index),
            },
            (true, ..) => return Err(missing("a key")),
        };
        let width = spec.rows_per_statement;
        let mut sets = Vec::new();
        for (name, change) in &spec.sets {
            let column = table
                .column(name)
                .ok_or_else(|| missing(&format!("the column {name}")))?;
            sets.push((
                Set::of(
                    (column, &table.columns[column]),
                    change,
                    &loaded.rules[column],
                ),
                change.changed_frac < 1.0,
            ));
        }
        let columns = loaded.rules.iter().zip(&loaded.column_types);
        Ok(Self {
            kind: spec.kind,
            table: loaded.table,
            number,
            table_number,
            rows: table.rows,
            width,
            pick: spec
                .pick
                .as_ref()
                .map(|pick| match Pick::of(pick, width.max) {
                    Pick::Sequential if width.min < width.max => Pick::Following,
                    pick => pick,
                }),
            scatter: spec.pick.as_ref().is_some_and(|pick| pick.scatter),
            by,
            head: head_of(spec, table)?.map(Arc::new),
            key_index,
            sets,
            values: columns
                .map(|(rule, column_type)| ColumnRule {
                    rule: rule.clone(),
                    column_type: column_type.clone(),
                    kind: rule
                        .elements
                        .map(Kind::Elements)
                        .or_else(|| Kind::of(column_type)),
                    newest_of: None,
                })
                .collect(),
        })
    }

    /// Its inserts take the newest key of a table, by its position, for this column.
    fn refer_to_newest(&mut self, column: usize, parent: usize) {
        self.values[column].newest_of = Some(parent);
    }

    /// Whether its statements differ in nothing but their keys.
    fn is_fixed(&self) -> bool {
        let finds =
            !matches!(self.kind, KindName::Insert | KindName::Upsert) && self.head.is_none();
        let mut sets = self.sets.iter();
        finds && sets.all(|(set, at_times)| !at_times && set.grows.is_none())
    }

    /// The keys that a statement is given, which not all of them need.
    #[must_use]
    pub fn width_max(&self) -> i64 {
        self.width.max
    }

    /// Over how many keys a statement goes; draws where that varies.
    #[inline]
    fn draw_width(&self, client: &mut Prng) -> i64 {
        let RowsSpec { min, max } = self.width;
        if min == max {
            max
        } else {
            client.random(min, max)
        }
    }

    /// The statement over `width` keys from `low` on; draws what its changes need.
    ///
    /// New rows may have a key, or another serial value, that their column cannot hold. `newest` is
    /// asked for the key that the client inserted last into the table at this position.
    #[must_use]
    #[inline]
    pub fn at(
        &self,
        low: i64,
        width: i64,
        newest: &dyn Fn(usize) -> i64,
        client: &mut Prng,
    ) -> Operation {
        self.in_memory(low, width, newest, client, &mut Vec::new())
    }

    /// The same, its SET clause in memory that another one has had.
    #[inline]
    fn in_memory(
        &self,
        low: i64,
        width: i64,
        newest: &dyn Fn(usize) -> i64,
        client: &mut Prng,
        memory: &mut Vec<Assignment<'static>>,
    ) -> Operation {
        let sets = self.sets.iter();
        let sets = Sets::collected(
            sets.map(|(set, at_times)| set.draw(*at_times, client)),
            memory,
        );
        let table = self.table;
        let cmd_type = match self.kind {
            KindName::Insert => {
                return match self.new_rows(low, width, newest) {
                    Ok(rows) => Operation::Insert { table, rows },
                    Err(reason) => Operation::Refused { table, reason },
                };
            }
            KindName::Upsert => {
                return match self.new_rows(low, width, newest) {
                    Ok(rows) => Operation::Upsert {
                        table,
                        index: self.key_index,
                        rows,
                        sets,
                    },
                    Err(reason) => Operation::Refused { table, reason },
                };
            }
            KindName::Update => CmdType::Update(sets),
            KindName::Delete => CmdType::Delete,
            KindName::Select => CmdType::Read,
            KindName::Lock => CmdType::Lock(LockTupleMode::Update, LockWaitPolicy::Block),
        };
        if let Some(head) = &self.head {
            return Operation::Head {
                table,
                head: Arc::clone(head),
                limit: usize::try_from(width).expect("a few rows"),
                cmd_type,
                number: self.number,
            };
        }
        Operation::Find {
            table,
            by: self.by,
            low,
            high: low + width - 1,
            cmd_type,
            number: self.number,
        }
    }

    fn new_rows(
        &self,
        low: i64,
        width: i64,
        newest: &dyn Fn(usize) -> i64,
    ) -> Result<Vec<Vec<Value>>, ValueError> {
        let mut rows = Vec::with_capacity(usize::try_from(width).unwrap_or(0));
        for row in low..low + width {
            let mut values = Vec::with_capacity(self.values.len());
            for (number, column) in (1..).zip(&self.values) {
                let made = column.value(row, number)?;
                values.push(match column.newest_of {
                    Some(parent) if made != Value::Null => {
                        column.rule.reference(&column.column_type, newest(parent))?
                    }
                    _ => made,
                });
            }
            rows.push(values);
        }
        Ok(rows)
    }
}

/// What a client remembers, as its script's variables do.
#[derive(Debug, Clone)]
struct Client {
    left: u64,
    /// By operation; keys passed where statements follow on each other.
    attempts: Vec<i64>,
    /// By table.
    tables: Vec<OwnRows>,
}

/// A transaction of a profile.
#[derive(Debug, Clone)]
struct Script {
    /// Numbers of its operations.
    operations: Vec<usize>,
    /// How it ends, unless it is rolled back.
    end: End,
    /// The share that is rolled back, in millionths.
    aborted: Option<i64>,
}

impl Script {
    /// One with a name, or with a share that is rolled back, is between BEGIN and COMMIT.
    fn new(spec: &ProfileSpec, operations: Vec<usize>) -> Self {
        let head = &spec.operation[operations[0]];
        let aborted = (head.abort_frac > 0.0).then(|| millionths(head.abort_frac));
        let is_block = head.transaction.is_some() || aborted.is_some();
        Self {
            operations,
            end: if is_block {
                End::Commit
            } else {
                End::Statement
            },
            aborted,
        }
    }
}

/// A profile's operations, run by its clients.
#[derive(Debug, Clone)]
pub struct ProfileWorkload {
    operations: Vec<ProfileOperation>,
    scripts: Vec<Script>,
    weights: Vec<i64>,
    generators: Generators,
    seed: u64,
    clients: Vec<Client>,
    /// By operation: how often it was drawn.
    turns: Vec<u64>,
    /// Whether all transactions are one statement that differs in nothing but its keys.
    is_one_statement: bool,
    /// What a SET clause that is over has left for the next one.
    memory: Vec<Assignment<'static>>,
}

impl ProfileWorkload {
    /// The workload of a profile whose tables are loaded; `transactions` are those of one client.
    ///
    /// # Errors
    /// [`ProfileError::NotAProfile`] when operations do not fit the tables.
    pub fn new(
        spec: &ProfileSpec,
        loaded: &[LoadedTable],
        transactions: u64,
    ) -> Result<Self, ProfileError> {
        let mut operations = Vec::new();
        for (number, operation) in spec.operation.iter().enumerate() {
            let names = spec.table.iter().map(|table| &table.name);
            let place = names
                .into_iter()
                .position(|name| *name == operation.table)
                .ok_or_else(|| ProfileError::NotAProfile {
                    reason: format!("no table {}", operation.table),
                })?;
            let (table, loaded) = (&spec.table[place], &loaded[place]);
            let numbers = (number, place);
            operations.push(ProfileOperation::new(operation, numbers, table, loaded)?);
        }
        for key in foreign_keys(&spec.table)? {
            let pick = spec.table[key.table].columns[key.column].values.pick;
            for operation in &mut operations {
                if pick == Some(ParentPick::Newest) && operation.table_number == key.table {
                    operation.refer_to_newest(key.column, key.parent);
                }
            }
        }
        let scripts = spec.transactions();
        let head = |script: &Vec<usize>| &spec.operation[script[0]];
        let clients = spec.run.clients as usize;
        let client = |client: u32| Client {
            left: transactions,
            attempts: vec![0; operations.len()],
            tables: own_rows(spec, client),
        };
        let states = (0..spec.run.clients).map(client).collect();
        let aborts = |script: &Vec<usize>| head(script).abort_frac > 0.0;
        let is_one_statement = match &scripts[..] {
            [script] if script.len() == 1 => operations[script[0]].is_fixed() && !aborts(script),
            _ => false,
        };
        Ok(Self {
            is_one_statement,
            memory: Vec::new(),
            weights: scripts.iter().map(|script| head(script).weight).collect(),
            scripts: scripts
                .into_iter()
                .map(|operations| Script::new(spec, operations))
                .collect(),
            turns: vec![0; operations.len()],
            operations,
            generators: Generators::new(spec.run.seed, clients),
            seed: spec.run.seed,
            clients: states,
        })
    }
}

/// What a statement that is over leaves for the next one's SET clause.
fn memory_of(operation: Operation) -> Option<Vec<Assignment<'static>>> {
    match operation {
        Operation::Find {
            cmd_type: CmdType::Update(sets),
            ..
        } => sets.into_memory(),
        _ => None,
    }
}

/// A client's own rows of each table, as they are loaded.
fn own_rows(spec: &ProfileSpec, client: u32) -> Vec<OwnRows> {
    let clients = (i64::from(client), i64::from(spec.run.clients));
    let of = |table: &TableSpec| {
        let inserts = spec.operation.iter();
        let inserts = inserts.filter(|one| one.kind == KindName::Insert && one.table == table.name);
        let width = inserts.map(|insert| insert.rows_per_statement.max).max();
        OwnRows::new(clients, table.rows, width.unwrap_or(1))
    };
    spec.table.iter().map(of).collect()
}

impl Workload for ProfileWorkload {
    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn transactions_left(&self) -> u64 {
        self.clients.iter().map(|client| client.left).sum()
    }

    fn next_transaction(&mut self, client: usize, operations: &mut Vec<Operation>) -> Option<End> {
        let count = i64::try_from(self.clients.len()).expect("few clients");
        let state = &mut self.clients[client];
        state.left = state.left.checked_sub(1)?;
        let chosen = self.generators.choose_script(&self.weights);
        let generator = &mut self.generators.clients[client];
        if !self.is_one_statement {
            if let Some(memory) = operations.pop().and_then(memory_of) {
                self.memory = memory;
            }
            operations.clear();
        }
        let client = i64::try_from(client).expect("few clients");
        let script = &self.scripts[chosen];
        for &number in &script.operations {
            let operation = &self.operations[number];
            let most = operation.width_max();
            let attempts = &mut state.attempts[number];
            self.turns[number] += 1;
            let own = &mut state.tables[operation.table_number];
            let deletes = operation.kind == KindName::Delete;
            let low = match operation.pick {
                None => own.next_insert(most),
                Some(Pick::Living(living)) => own.pick(living, deletes, generator),
                Some(Pick::Head) => {
                    if deletes {
                        own.delete_head(most);
                    }
                    NO_ROW
                }
                Some(pick) => {
                    let past = Past {
                        client,
                        clients: count,
                        attempts: *attempts,
                        newest: own.newest(),
                        deleted: own.first * count,
                    };
                    let size = (operation.rows, most);
                    pick::key(pick, operation.scatter, size, past, generator)
                }
            };
            let width = operation.draw_width(generator);
            *attempts += if operation.pick == Some(Pick::Following) {
                width
            } else {
                1
            };
            match operation.pick {
                None => own.insert(low, width),
                // Where nothing is left nothing is tried.
                Some(Pick::Oldest) if deletes && low > 0 => own.delete_oldest(width),
                Some(_) => {}
            }
            if let (
                true,
                [
                    Operation::Find {
                        low: first, high, ..
                    },
                ],
            ) = (self.is_one_statement, operations.as_mut_slice())
            {
                // The earlier transaction, but for its keys.
                *first = low;
                *high = low + width - 1;
                return Some(script.end);
            }
            let newest = |table: usize| state.tables[table].newest();
            let memory = &mut self.memory;
            operations.push(operation.in_memory(low, width, &newest, generator, memory));
        }
        let fails = script.aborted.is_some_and(|bound| draw(generator) <= bound);
        Some(if fails { End::Rollback } else { script.end })
    }

    /// A script that is chosen among several is drawn in the order of all transactions.
    fn draws_apart(&self) -> bool {
        self.scripts.len() == 1
    }

    fn give_back(&mut self, transactions: u64) {
        if let [script] = &self.scripts[..] {
            for &number in &script.operations {
                self.turns[number] -= transactions;
            }
        }
    }

    fn turns(&self) -> &[u64] {
        &self.turns
    }

    fn others(&self) -> Option<Self> {
        let mut others = self.clone();
        others.generators = Generators::new(!self.seed, self.clients.len());
        for client in &mut others.clients {
            client.left = u64::MAX;
        }
        Some(others)
    }
}
