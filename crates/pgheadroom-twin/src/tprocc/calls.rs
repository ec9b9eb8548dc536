//! The five procedures' statements.
//!
//! Source: `procedures.sql` of the laboratory's `tprocc`; its plans on 18.4 are index scans, and
//! of the stock level a nested loop.

use crate::executor::{Assignment, Change, Row, TableId};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::pgbench::Generators;
use crate::tprocc::drawn::{Line, MIX, NewOrder, Payment, Town, Who, who};
use crate::tprocc::orders::Orders;
use crate::tprocc::tables::{
    BY_NAME, C_BALANCE, C_DATA, C_DELIVERIES, C_PAYMENTS, C_YTD, CUSTOMER, D_NEXT, D_YTD, DISTRICT,
    HISTORY, NEW_ORDER, O_CARRIER, OL_DELIVERED, ORDER, ORDER_LINE, S_COUNT, S_QUANTITY, S_REMOTE,
    S_YTD, STOCK, W_YTD, WAREHOUSE, history_row, line_row, new_order_row, order_row,
};
use crate::tprocc::values::{
    CENT, DISTRICTS, customer, district, has_bad_credit, namesakes, number, price_cents, stock,
};
use crate::tprocc::{StretchSpec, TproccSpec};
use crate::value::Value;
use crate::workload::{CmdType, End, Operation, Sets, Workload};

/// Orders whose lines a stock-level transaction reads.
const RECENT: i64 = 20;

/// What a column that was NULL gets: it takes the same room whatever it is.
const SET: Change<'static> = Change::Computed(&|_: Row<'_>| Value::Integer(1));

/// Calls of some clients.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    warehouses: i64,
    at_home: bool,
    generators: Generators,
    /// By client.
    left: Vec<u64>,
    orders: Orders,
}

impl Calls {
    pub fn new(spec: &TproccSpec, stretch: StretchSpec, orders: Orders) -> Self {
        let clients = stretch.clients as usize;
        Self {
            warehouses: i64::from(spec.warehouses),
            at_home: spec.at_home,
            generators: Generators::new(stretch.seed, clients),
            left: vec![stretch.transactions; clients],
            orders,
        }
    }

    /// The orders as they are afterwards.
    pub fn into_orders(self) -> Orders {
        self.orders
    }
}

impl Workload for Calls {
    fn clients(&self) -> usize {
        self.left.len()
    }

    fn transactions_left(&self) -> u64 {
        self.left.iter().sum()
    }

    fn next_transaction(&mut self, client: usize, operations: &mut Vec<Operation>) -> Option<End> {
        operations.clear();
        self.left[client] = self.left[client].checked_sub(1)?;
        let script = self.generators.choose_script(&MIX);
        let number = i64::try_from(client).expect("few clients");
        let town = Town {
            warehouses: self.warehouses,
            home: self.at_home.then_some(1 + number % self.warehouses),
        };
        let prng = &mut self.generators.clients[client];
        let orders = &mut self.orders;
        match script {
            0 => return Some(new_order(&town.new_order(prng), orders, operations)),
            1 => payment(town.payment(prng), orders, operations),
            2 => {
                let warehouse = town.warehouse(prng);
                prng.random(1, 10); // the carrier
                delivery(warehouse, orders, operations);
            }
            3 => {
                let at = (town.warehouse(prng), prng.random(1, DISTRICTS));
                order_status(at, who(prng), orders, operations);
            }
            _ => {
                let at = (town.warehouse(prng), prng.random(1, DISTRICTS));
                prng.random(10, 20); // the threshold
                stock_level(at, orders, operations);
            }
        }
        Some(End::Commit)
    }

    fn is_one_call(&self) -> bool {
        true
    }
}

fn read(table: TableId, key: i64) -> Operation {
    Operation::find(table, 0, (key, key), CmdType::Read)
}

fn update(
    table: TableId,
    key: i64,
    sets: impl IntoIterator<Item = (usize, Change<'static>)>,
) -> Operation {
    Operation::find(table, 0, (key, key), CmdType::Update(changes(sets)))
}

fn changes(sets: impl IntoIterator<Item = (usize, Change<'static>)>) -> Sets {
    let assigned = |(column, change)| Assignment { column, change };
    sets.into_iter().map(assigned).collect()
}

/// A statement over all that an order has in a table, or with more numbers over several orders.
fn of_order(
    table: TableId,
    (w, d): (i64, i64),
    (first, last): (i64, i64),
    cmd_type: CmdType,
) -> Operation {
    Operation::FindByPrefix {
        table,
        index: 0,
        low: vec![w, d, first],
        high: vec![w, d, last],
        cmd_type,
    }
}

fn insert(table: TableId, rows: Vec<Vec<Value>>) -> Operation {
    Operation::Insert { table, rows }
}

fn new_order(drawn: &NewOrder, orders: &mut Orders, operations: &mut Vec<Operation>) -> End {
    let (w, d) = (drawn.warehouse, drawn.district);
    let of = district(w, d);
    let who = customer(of, drawn.customer);
    let found = |line: &Line| line.item.map(|item| (item, line.supply, line.quantity));
    let valid: Vec<(i64, i64, i64)> = drawn.lines.iter().filter_map(found).collect();
    let cents = valid
        .iter()
        .map(|&(item, _, quantity)| quantity * price_cents(item));
    let items = valid.iter().map(|&(item, ..)| item).collect();
    let is_valid = valid.len() == drawn.lines.len();
    let number = if is_valid {
        orders.add(of, who, cents.sum(), items)
    } else {
        orders.add_rolled_back(of)
    };
    let count = i64::try_from(drawn.lines.len()).expect("a few lines");
    let is_local = drawn
        .lines
        .iter()
        .all(|line| line.supply == drawn.warehouse);
    operations.extend([
        read(WAREHOUSE, drawn.warehouse),
        update(DISTRICT, of, [(D_NEXT, Change::Add(1))]),
        read(CUSTOMER, who),
        insert(
            ORDER,
            vec![order_row((w, d, number), drawn.customer, count, is_local)],
        ),
        insert(NEW_ORDER, vec![new_order_row((w, d, number))]),
    ]);
    let mut ordered = valid.clone();
    ordered.sort_by_key(|&(item, supply, _)| (supply, item));
    operations.extend(ordered.iter().map(|&(item, supply, quantity)| {
        let mut sets = vec![
            (S_QUANTITY, Change::Add(-quantity)),
            (S_YTD, Change::Add(quantity)),
            (S_COUNT, Change::Add(1)),
        ];
        if supply != drawn.warehouse {
            sets.push((S_REMOTE, Change::Add(1)));
        }
        update(STOCK, stock(supply, item), sets)
    }));
    let rows = (1..).zip(&valid);
    let rows = rows.map(|(n, &line)| line_row((w, d, number), n, line));
    operations.push(insert(ORDER_LINE, rows.collect()));
    if is_valid { End::Commit } else { End::Rollback }
}

/// A customer by name is looked for by the index of names first; its number.
fn found(of: i64, who: Who, orders: &mut Orders, operations: &mut Vec<Operation>) -> Option<i64> {
    let name = match who {
        Who::Number(number) => return Some(number),
        Who::Name(name) => name,
    };
    let key = namesakes(of, name);
    operations.push(Operation::find(
        CUSTOMER,
        BY_NAME,
        (key, key),
        CmdType::Read,
    ));
    orders.named(of, name)
}

fn payment(drawn: Payment, orders: &mut Orders, operations: &mut Vec<Operation>) {
    let at = (drawn.district, drawn.warehouse);
    let amount = drawn.cents * CENT;
    let here = district(drawn.warehouse, drawn.district);
    let (home_w, home_d) = drawn.home;
    let of = district(home_w, home_d);
    operations.extend([
        update(WAREHOUSE, drawn.warehouse, [(W_YTD, Change::Add(amount))]),
        update(DISTRICT, here, [(D_YTD, Change::Add(amount))]),
    ]);
    let Some(c) = found(of, drawn.who, orders, operations) else {
        return;
    };
    let who = customer(of, c);
    let mut sets = vec![
        (C_BALANCE, Change::Add(-amount)),
        (C_YTD, Change::Add(amount)),
        (C_PAYMENTS, Change::Add(1)),
    ];
    if has_bad_credit(who) {
        let numbers = [c, home_d, home_w, drawn.district, drawn.warehouse];
        let digits: usize = numbers.iter().map(|number| number.to_string().len()).sum();
        // As the server divides: `select_div_scale`, src/backend/utils/adt/numeric.c.
        let behind = if drawn.cents > 100 { 16 } else { 20 };
        let money = (drawn.cents / 100).to_string().len() + 1 + behind;
        let grows_bytes = u32::try_from(digits + money + 6).expect("a few digits");
        sets.push((C_DATA, Change::Next { grows_bytes }));
    }
    operations.push(update(CUSTOMER, who, sets));
    let names = number(drawn.warehouse, 1, 6, 10) + 4 + number(here, 1, 6, 10);
    let row = history_row((c, home_d, home_w), at, drawn.cents, names.min(24));
    operations.push(insert(HISTORY, vec![row]));
}

fn delivery(warehouse: i64, orders: &mut Orders, operations: &mut Vec<Operation>) {
    for d in 1..=DISTRICTS {
        let of = district(warehouse, d);
        let oldest = orders.deliver(of);
        let next = oldest.map_or(orders.next(of), |oldest| oldest.number);
        let head = CmdType::Lock(LockTupleMode::Update, LockWaitPolicy::Skip);
        operations.push(of_order(NEW_ORDER, (warehouse, d), (0, next), head));
        let Some(oldest) = oldest else {
            continue;
        };
        let of_it = |table, cmd_type| {
            of_order(
                table,
                (warehouse, d),
                (oldest.number, oldest.number),
                cmd_type,
            )
        };
        let set = |column| CmdType::Update(changes([(column, SET)]));
        operations.extend([
            of_it(NEW_ORDER, CmdType::Delete),
            of_it(ORDER, set(O_CARRIER)),
            of_it(ORDER_LINE, set(OL_DELIVERED)),
        ]);
        let sets = [
            (C_BALANCE, Change::Add(oldest.cents * CENT)),
            (C_DELIVERIES, Change::Add(1)),
        ];
        operations.push(update(CUSTOMER, oldest.customer, sets));
    }
}

fn order_status(
    (w, d): (i64, i64),
    who: Who,
    orders: &mut Orders,
    operations: &mut Vec<Operation>,
) {
    let of = district(w, d);
    let Some(c) = found(of, who, orders, operations) else {
        return;
    };
    let who = customer(of, c);
    let number = orders.latest(who);
    operations.extend([
        read(CUSTOMER, who),
        of_order(ORDER, (w, d), (number, number), CmdType::Read),
        of_order(ORDER_LINE, (w, d), (number, number), CmdType::Read),
    ]);
}

fn stock_level((w, d): (i64, i64), orders: &mut Orders, operations: &mut Vec<Operation>) {
    let of = district(w, d);
    let next = orders.next(of);
    let recent = (next - RECENT, next - 1);
    let items = orders.recent_items(of).into_iter();
    operations.extend([
        read(DISTRICT, of),
        of_order(ORDER_LINE, (w, d), recent, CmdType::Read),
        Operation::ReadEach {
            table: STOCK,
            index: 0,
            keys: items.map(|item| stock(w, item)).collect(),
        },
    ]);
}
