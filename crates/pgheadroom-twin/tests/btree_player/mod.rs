//! Plays recorded scenarios: what `tools/record_btree_golden.py` does with SQL, here on the twin.

use std::collections::HashSet;

use pgheadroom_layout::btree::BtreeFillfactor;
use pgheadroom_layout::{
    BlockNumber, Column, ColumnType, HeapFillfactor, OffsetNumber, PgVersion, RowLayout,
};
use pgheadroom_twin::btree::{
    Btree, Definition, Entry, NULL_FIRST, NULL_LAST, Table, TupleSizes, UniqueCheck, UniqueFetch,
    check,
};
use pgheadroom_twin::heap::{InsertTargetBlock, Mode};
use pgheadroom_twin::transaction::{SingleSession, Transactions};
use pgheadroom_twin::vacuum::VacuumOptions;
use pgheadroom_twin::{Heap, LinePointer, Tid, Xid};

use crate::json::Json;

mod account;
use account::Account;

fn ignore(_: BlockNumber) {}

/// The heap and one session.
pub struct World {
    pub heap: Heap,
    session: SingleSession,
    /// The page that the running statement reads, which it cannot prune.
    pinned: Option<BlockNumber>,
}

impl World {
    fn item(&self, tid: Tid) -> LinePointer {
        self.heap.pages()[tid.block.0 as usize].item(tid.offset)
    }

    /// Walks a HOT chain.
    fn state(&self, tid: Tid) -> UniqueFetch {
        let mut tid = tid;
        let mut state = UniqueFetch::AllDead;
        loop {
            match self.item(tid) {
                LinePointer::Redirect(offset) => tid.offset = offset,
                LinePointer::Normal(tuple) if !tuple.xmax.is_valid() => {
                    return UniqueFetch::Conflict;
                }
                LinePointer::Normal(tuple) => {
                    if !self.session.is_removable(tuple.xmax) {
                        state = UniqueFetch::Invisible;
                    }
                    if !tuple.is_hot_updated {
                        return state;
                    }
                    tid = tuple.next;
                }
                LinePointer::Unused | LinePointer::Dead => return state,
            }
        }
    }
}

impl Table for World {
    fn fetch_for_uniqueness(&mut self, tid: Tid) -> UniqueFetch {
        if self.pinned != Some(tid.block) {
            self.heap.prune_opt(tid.block, &self.session);
        }
        self.state(tid)
    }
    fn is_deletable(&mut self, tid: Tid) -> bool {
        self.state(tid) == UniqueFetch::AllDead
    }
    fn is_removable(&self, xid: Xid) -> bool {
        self.session.is_removable(xid)
    }
}

/// A row's values: the columns with their lengths, and the key's codes.
struct Values {
    columns: Vec<Column>,
    codes: Vec<i64>,
}

/// Plays a scenario on the twin's heap and index.
pub struct Player<'a> {
    scenario: &'a Json,
    pub world: World,
    target: InsertTargetBlock,
    pub tree: Option<Btree>,
    pub account: Account,
    /// Types of i, f and the key columns.
    types: Vec<ColumnType>,
    /// s of each row.
    random: Vec<i64>,
    /// Rows deleted and not yet vacuumed leave index entries.
    dead: HashSet<Tid>,
}

impl<'a> Player<'a> {
    pub fn new(version: &str, scenario: &'a Json) -> Self {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let mut random = vec![42_i64];
        for row in 0..100_000 {
            random.push((random[row] * 1_664_525 + 1_013_904_223) % (1 << 32));
        }
        Self {
            scenario,
            world: World {
                heap: Heap::new(behaviour, HeapFillfactor::new(100).unwrap()),
                session: SingleSession {
                    current: Xid(10),
                    held_xmin: None,
                },
                pinned: None,
            },
            target: InsertTargetBlock::default(),
            tree: None,
            types: std::iter::repeat_n("int4", 2)
                .chain(
                    scenario
                        .at("columns")
                        .list()
                        .iter()
                        .map(|spec| spec.at("type").text()),
                )
                .map(|name| ColumnType::parse(name).unwrap())
                .collect(),
            account: Account::new(
                scenario.at("full_page_writes").is_true(),
                behaviour.checksums_by_default,
            ),
            random,
            dead: HashSet::new(),
        }
    }

    fn values(&self, row: i64) -> Values {
        let int4 = || Column::new("i", self.types[0].clone(), None).unwrap();
        let mut columns = vec![int4(), int4()];
        let mut codes = Vec::new();
        let s = self.random[usize::try_from(row).unwrap()];
        let specs = self.scenario.at("columns").list();
        for (spec, column_type) in specs.iter().zip(&self.types[2..]) {
            let column_type = column_type.clone();
            let modulus = spec.at("modulus").number();
            let type_name = spec.at("type").text();
            let value = match spec.at("value").text() {
                "random" if type_name == "text" => s,
                "random" => s - (1 << 31),
                "random_mod" => s / 65_536 % modulus,
                "ascending" => row,
                "descending" => -row,
                "i_mod" => row % modulus,
                "i_div" => row / modulus,
                other => panic!("unknown value {other}"),
            };
            let order = spec.at("order").text();
            if s / 1024 % 10 < spec.at("null_tenths").number() {
                columns.push(Column::null("k", column_type));
                codes.push(if order.is_empty() {
                    NULL_LAST
                } else {
                    NULL_FIRST
                });
                continue;
            }
            let pad = spec.get("pad").map_or(0, Json::number);
            let letters = value % spec.at("length_modulus").number() + pad;
            let payload = (type_name == "text").then(|| u64::try_from(10 + letters).unwrap());
            columns.push(Column::new("k", column_type, payload).unwrap());
            codes.push(if order == "DESC" { -value } else { value });
        }
        Values { columns, codes }
    }

    fn key_columns(&self) -> usize {
        let include = self.scenario.at("include").number();
        self.scenario.at("columns").list().len() - usize::try_from(include).unwrap()
    }

    /// Inserts the index entry of a row version.
    fn index_row(&mut self, row: i64, tid: Tid, unchanged: bool) {
        let Some(mut tree) = self.tree.take() else {
            return;
        };
        let values = self.values(row);
        let keys = self.key_columns();
        let (key, include) = values.columns[2..].split_at(keys);
        let shape = tree
            .shape(TupleSizes::of_columns(key, include).unwrap())
            .unwrap();
        let entry = Entry {
            key: &values.codes[..keys],
            shape,
            tid,
        };
        tree.insert(
            entry,
            UniqueCheck::Yes,
            unchanged,
            &mut self.world,
            &mut self.account,
        )
        .unwrap();
        self.tree = Some(tree);
    }

    fn insert(&mut self, from: i64, to: i64) {
        for row in from..=to {
            let layout = RowLayout::new(self.values(row).columns).unwrap();
            let bytes = u16::try_from(layout.tuple_bytes()).unwrap();
            let number = u32::try_from(row).unwrap();
            let xid = self.world.session.current;
            let placed = self
                .world
                .heap
                .insert(&mut self.target, Mode::Row, number, bytes, xid, &mut ignore)
                .unwrap();
            self.index_row(row, placed.tid, false);
        }
    }

    /// A sequential scan that deletes or updates rows.
    fn change(&mut self, matches: impl Fn(i64) -> bool, deletes: bool) {
        let xid = self.world.session.current;
        for block in (0..self.world.heap.page_count()).map(BlockNumber) {
            let session = self.world.session;
            self.world.heap.prune_opt(block, &session);
            self.world.pinned = Some(block);
            for (offset, row, bytes) in self.visible(block) {
                if !matches(i64::from(row)) {
                    continue;
                }
                let old = Tid { block, offset };
                if deletes {
                    self.world.heap.delete(old, xid);
                    continue;
                }
                let heap = &mut self.world.heap;
                let updated = heap
                    .update(&mut self.target, old, bytes, true, false, xid, &mut ignore)
                    .unwrap();
                if !updated.is_hot {
                    self.index_row(i64::from(row), updated.new.tid, true);
                }
            }
        }
        self.world.pinned = None;
    }

    fn visible(&self, block: BlockNumber) -> Vec<(OffsetNumber, u32, u16)> {
        let page = &self.world.heap.pages()[block.0 as usize];
        (1..=u16::try_from(page.items().len()).unwrap())
            .map(OffsetNumber)
            .filter_map(|offset| match page.item(offset) {
                LinePointer::Normal(tuple)
                    if !tuple.xmax.is_valid() && tuple.xmin != self.world.session.current =>
                {
                    Some((offset, tuple.row, tuple.lp_len))
                }
                _ => None,
            })
            .collect()
    }

    /// Index entries whose rows are dead before VACUUM frees their line pointers.
    fn note_dead(&mut self) {
        let tree = self.tree.as_ref().unwrap();
        for (_, tid) in check::entries(tree) {
            if self.world.state(tid) == UniqueFetch::AllDead {
                self.dead.insert(tid);
            }
        }
    }

    fn vacuum(&mut self) {
        self.note_dead();
        let session = self.world.session;
        let options = VacuumOptions {
            truncate: false, // as recorded
            ..VacuumOptions::default()
        };
        let heap = &mut self.world.heap;
        let scan = heap.vacuum_scan(options, &session, &mut ignore);
        let done = heap.vacuum_reclaim(scan, &session, &mut ignore);
        let mut tree = self.tree.take().unwrap();
        let dead = std::mem::take(&mut self.dead);
        let xid = session.current;
        let bulk = (!done.bypassed_indexes && !done.cleaned.is_empty()).then(|| {
            let is_dead = |tid| dead.contains(&tid);
            tree.bulk_delete(None, is_dead, xid, &self.world, &mut self.account)
        });
        tree.vacuum_cleanup(bulk, xid, &self.world, &mut self.account);
        self.tree = Some(tree);
        self.target = InsertTargetBlock::default();
    }

    fn create_index(&mut self) {
        let scenario = self.scenario;
        let columns = u8::try_from(self.key_columns()).unwrap();
        let mut definition = Definition::new(columns, scenario.at("unique").is_true());
        definition.fillfactor = BtreeFillfactor::new(scenario.at("fillfactor").number()).unwrap();
        definition.deduplicate_items = scenario.at("deduplicate_items").is_true();
        definition.all_equal_image = scenario.at("include").number() == 0;
        let behaviour = *self.world.heap.behaviour();
        let mut tree = Btree::new(behaviour, definition);
        let keys = self.key_columns();
        let mut rows = Vec::new();
        for block in (0..self.world.heap.page_count()).map(BlockNumber) {
            for (offset, row, _) in self.visible(block) {
                let values = self.values(i64::from(row));
                let (key, include) = values.columns[2..].split_at(keys);
                let shape = tree
                    .shape(TupleSizes::of_columns(key, include).unwrap())
                    .unwrap();
                rows.push((values.codes, shape, Tid { block, offset }));
            }
        }
        let entries = rows.iter().map(|(codes, shape, tid)| Entry {
            key: &codes[..keys],
            shape: *shape,
            tid: *tid,
        });
        let built = tree.build(entries);
        let (records, bytes) = built.wal(&behaviour);
        let pair = (
            i64::try_from(records).unwrap(),
            i64::try_from(bytes).unwrap(),
        );
        self.account.records.insert("FPI".into(), pair);
        self.tree = Some(tree);
        self.target = InsertTargetBlock::default();
    }

    /// Plays one step after a checkpoint.
    pub fn step(&mut self, step: &Json) {
        self.account.checkpoint();
        let number = |name: &str| step.at(name).number();
        match step.at("op").text() {
            "index" => self.create_index(),
            "insert" => self.insert(number("a"), number("b")),
            "delete" => self.change(|i| i % number("a") == number("b"), true),
            "delete_range" => {
                self.change(|i| (number("a")..=number("b")).contains(&i), true);
            }
            "update" => self.change(|i| i % number("a") == number("b"), false),
            "vacuum" => return self.vacuum(),
            other => panic!("unknown step {other}"),
        }
        self.world.session.current.0 += 1;
    }
}
