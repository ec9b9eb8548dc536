//! The nine tables and their rows.
//!
//! Source: `tables.sql`, `indexes.sql`, `warehouse.sql` and `item.sql` of the laboratory's
//! `tprocc`. Columns stand in the server's order, those of a key put together; the ten texts
//! `s_dist_01` to `s_dist_10` are two as long.

use pgheadroom_layout::HeapFillfactor;

use crate::executor::{ColumnDefinition, Database, IndexDefinition, TableDefinition, TableId};
use crate::profile::{Monitor, ProfileError, load};
use crate::row::hashint8extended;
use crate::tprocc::TproccSpec;
use crate::tprocc::values::{
    CENT, CUSTOMERS, DELIVERED, DISTRICTS, ITEMS, ONE, ORDERS, blank, cents_of, customer, digits,
    district, item_of, last_name, last_name_bytes, lines, namesakes, number, price_cents, stock,
    text,
};
use crate::value::Value;

pub(super) const ITEM: TableId = TableId(0);
pub(super) const WAREHOUSE: TableId = TableId(1);
pub(super) const DISTRICT: TableId = TableId(2);
pub(super) const CUSTOMER: TableId = TableId(3);
pub(super) const HISTORY: TableId = TableId(4);
pub(super) const NEW_ORDER: TableId = TableId(5);
pub(super) const ORDER: TableId = TableId(6);
pub(super) const ORDER_LINE: TableId = TableId(7);
pub(super) const STOCK: TableId = TableId(8);

/// Columns that transactions change, by position.
pub(super) const W_YTD: usize = 8;
pub(super) const D_YTD: usize = 8;
pub(super) const D_NEXT: usize = 9;
pub(super) const C_BALANCE: usize = 15;
pub(super) const C_YTD: usize = 16;
pub(super) const C_PAYMENTS: usize = 17;
pub(super) const C_DELIVERIES: usize = 18;
pub(super) const C_DATA: usize = 19;
pub(super) const O_CARRIER: usize = 5;
pub(super) const OL_DELIVERED: usize = 6;
const OL_AMOUNT: usize = 8;
pub(super) const S_QUANTITY: usize = 1;
pub(super) const S_YTD: usize = 4;
pub(super) const S_COUNT: usize = 5;
pub(super) const S_REMOTE: usize = 6;

/// The index of customers by name; the other one is by their key.
pub(super) const BY_NAME: usize = 1;

/// Warehouse, district and number of an order.
pub(super) type OrderKey = (i64, i64, i64);

/// A table: its name, its columns' types, and its indexes by columns.
type Form = (&'static str, &'static str, &'static [&'static [usize]]);

/// In the order of the laboratory.
const FORMS: [Form; 9] = [
    // i_id, i_im_id, i_name, i_price, i_data
    ("item", "int4 int4 text numeric text", &[&[0]]),
    // w_id, name, three of the address, state, zip, tax, ytd
    (
        "warehouse",
        "int4 text text text text bpchar(2) bpchar(9) numeric numeric",
        &[&[0]],
    ),
    // d_w_id and d_id, name, address, tax, ytd, next_o_id
    (
        "district",
        "int8 text text text text bpchar(2) bpchar(9) numeric numeric int4",
        &[&[0]],
    ),
    // c_w_id, c_d_id and the name; c_id with both; first, middle, last, address, phone, since, ...
    (
        "customer",
        "int8 int4 text bpchar(2) text text text text bpchar(2) bpchar(9) bpchar(16) timestamptz \
         bpchar(2) numeric numeric numeric numeric int4 int4 varchar(500)",
        &[&[1, 0], &[0, 4, 2]],
    ),
    // h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data
    (
        "history",
        "int4 int4 int4 int4 int4 timestamptz numeric text",
        &[],
    ),
    // no_o_id, no_d_id, no_w_id
    ("new_order", "int4 int4 int4", &[&[2, 1, 0]]),
    // o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local
    (
        "orders",
        "int4 int4 int4 int4 timestamptz int4 int4 int4",
        &[&[2, 1, 0], &[2, 1, 3, 0]],
    ),
    // ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
    // ol_amount, ol_dist_info
    (
        "order_line",
        "int4 int4 int4 int4 int4 int4 timestamptz int4 numeric bpchar(24)",
        &[&[2, 1, 0, 3]],
    ),
    // s_w_id and s_i_id, quantity, dists, ytd, order_cnt, remote_cnt, data
    (
        "stock",
        "int8 int4 bpchar(124) bpchar(124) int4 int4 int4 text",
        &[&[0]],
    ),
];

/// Names in the order of the tables.
pub(super) fn names() -> Vec<String> {
    FORMS.iter().map(|(name, ..)| (*name).to_owned()).collect()
}

/// Rows that are loaded.
pub(super) fn rows(warehouses: u32) -> u64 {
    let each = ITEMS + DISTRICTS * (2 * CUSTOMERS + 2 * ORDERS + 10 * ORDERS);
    u64::from(warehouses) * each.unsigned_abs() + ITEMS.unsigned_abs()
}

/// Creates and fills the tables, then their indexes; VACUUM, CHECKPOINT.
pub(super) fn load(
    db: &mut Database,
    spec: &TproccSpec,
    monitor: &Monitor,
) -> Result<(), ProfileError> {
    for (name, types, _) in FORMS {
        let percent = spec.fillfactor.get(name).copied().unwrap_or(100);
        let types = types.split_whitespace().enumerate();
        let columns = types.map(|(number, name)| {
            ColumnDefinition::new(&format!("c{number}"), name).expect("a built-in type")
        });
        let fillfactor = HeapFillfactor::new(percent).map_err(|error| {
            let reason = format!("{name}: {error}");
            ProfileError::NotAProfile { reason }
        })?;
        let definition = TableDefinition {
            columns: columns.collect(),
            indexes: Vec::new(),
            fillfactor,
        };
        db.create_table(definition)
            .map_err(|error| load::failure(&error, 0, name, name))?;
    }
    let mut fill = Filling { db, monitor };
    for number in 1..=ITEMS {
        fill.add(ITEM, item(number))?;
    }
    for number in 1..=i64::from(spec.warehouses) {
        fill.warehouse(number)?;
    }
    for (position, (name, _, indexes)) in FORMS.into_iter().enumerate() {
        for (place, columns) in indexes.iter().enumerate() {
            let is_unique = (position, place) != (CUSTOMER.0, BY_NAME);
            let definition = IndexDefinition::on_columns(columns.to_vec(), is_unique);
            db.create_index(TableId(position), definition)
                .map_err(|error| load::failure(&error, 0, name, name))?;
            monitor.advance(0)?;
        }
    }
    for (table, (name, ..)) in db.tables().zip(FORMS) {
        let vacuumed = db.vacuum(table);
        vacuumed.map_err(|error| load::failure(&error, 0, name, name))?;
    }
    db.checkpoint();
    Ok(())
}

struct Filling<'a> {
    db: &'a mut Database,
    monitor: &'a Monitor,
}

impl Filling<'_> {
    fn add(&mut self, table: TableId, row: Vec<Value>) -> Result<(), ProfileError> {
        let name = FORMS[table.0].0;
        self.db
            .insert(table, &row)
            .map_err(|error| load::failure(&error, 0, name, name))
    }

    /// A warehouse's rows, in one transaction.
    fn warehouse(&mut self, w: i64) -> Result<(), ProfileError> {
        for i in 1..=ITEMS {
            self.add(STOCK, stock_row(w, i))?;
        }
        self.told(ITEMS)?;
        for d in 1..=DISTRICTS {
            self.add(DISTRICT, district_row(district(w, d)))?;
        }
        for d in 1..=DISTRICTS {
            for c in 1..=CUSTOMERS {
                self.add(CUSTOMER, customer_row(district(w, d), c))?;
            }
        }
        for d in 1..=DISTRICTS {
            for c in 1..=CUSTOMERS {
                let length = number(customer(district(w, d), c), 13, 12, 24);
                self.add(HISTORY, history_row((c, d, w), (d, w), 1_000, length))?;
            }
        }
        self.told(2 * DISTRICTS * CUSTOMERS)?;
        for d in 1..=DISTRICTS {
            self.orders(w, d)?;
        }
        for d in 1..=DISTRICTS {
            for o in DELIVERED + 1..=ORDERS {
                self.add(NEW_ORDER, new_order_row((w, d, o)))?;
            }
        }
        self.add(WAREHOUSE, warehouse_row(w))?;
        self.db.commit();
        self.told(0)
    }

    fn orders(&mut self, w: i64, d: i64) -> Result<(), ProfileError> {
        let of = district(w, d);
        for (o, c) in (1..).zip(customers_of_orders(of)) {
            let count = lines(of, o);
            let mut row = order_row((w, d, o), c, count, true);
            if o <= DELIVERED {
                row[O_CARRIER] = Value::Integer(1);
            }
            self.add(ORDER, row)?;
            for n in 1..=count {
                let mut row = line_row((w, d, o), n, (item_of(of, o, n), w, 5));
                row[OL_AMOUNT] = Value::Integer(cents_of(of, o, n) * CENT);
                if o <= DELIVERED {
                    row[OL_DELIVERED] = Value::Integer(0);
                }
                self.add(ORDER_LINE, row)?;
            }
        }
        self.told(11 * ORDERS)
    }

    fn told(&self, rows: i64) -> Result<(), ProfileError> {
        self.monitor.advance(rows.unsigned_abs())
    }
}

/// Numbers of a district's customers in the order of their orders.
pub(super) fn customers_of_orders(district: i64) -> Vec<i64> {
    let mut all: Vec<i64> = (1..=CUSTOMERS).collect();
    all.sort_by_key(|&c| hashint8extended(customer(district, c), 16));
    all
}

fn integers(numbers: impl IntoIterator<Item = i64>) -> Vec<Value> {
    numbers.into_iter().map(Value::Integer).collect()
}

/// Two streets, city, state and zip, whose hashes have the numbers from this one on.
fn address(key: i64, first: i64) -> [Value; 5] {
    let [one, two, three] = [0, 1, 2].map(|next| text(key, first + next, 10, 20));
    [one, two, three, blank(2), blank(9)]
}

fn item(i: i64) -> Vec<Value> {
    let mut row = integers([i, number(i, 1, 1, 10_000)]);
    row.push(text(i, 2, 14, 24));
    row.push(Value::Integer(price_cents(i) * CENT));
    row.push(text(i, 4, 26, 50));
    row
}

fn warehouse_row(w: i64) -> Vec<Value> {
    let mut row = vec![Value::Integer(w), text(w, 1, 6, 10)];
    row.extend(address(w, 2));
    row.extend(integers([number(w, 7, 0, 2_000), 300_000 * ONE]));
    row
}

fn district_row(of: i64) -> Vec<Value> {
    let mut row = vec![Value::Integer(of), text(of, 1, 6, 10)];
    row.extend(address(of, 2));
    row.extend(integers([
        number(of, 7, 0, 2_000),
        30_000 * ONE,
        ORDERS + 1,
    ]));
    row
}

fn customer_row(of: i64, c: i64) -> Vec<Value> {
    let key = customer(of, c);
    let name = last_name(of, c);
    let mut row = integers([namesakes(of, name), key]);
    row.extend([
        text(key, 1, 8, 16),
        blank(2),
        digits(name, last_name_bytes(name)),
    ]);
    row.extend(address(key, 4));
    row.extend([blank(16), Value::Integer(0), blank(2)]);
    row.extend(integers([50_000 * ONE, number(key, 11, 0, 5_000)]));
    row.extend(integers([-10 * ONE, 10 * ONE, 1, 0]));
    row.push(text(key, 12, 300, 500));
    row
}

pub(super) fn history_row(
    (c, d, w): (i64, i64, i64),
    (at_d, at_w): (i64, i64),
    cents: i64,
    length: i64,
) -> Vec<Value> {
    let mut row = integers([c, d, w, at_d, at_w, 0, cents * CENT]);
    row.push(blank(length));
    row
}

/// Of an order by warehouse, district and number.
pub(super) fn new_order_row((w, d, o): OrderKey) -> Vec<Value> {
    integers([o, d, w])
}

pub(super) fn order_row((w, d, o): OrderKey, c: i64, count: i64, is_local: bool) -> Vec<Value> {
    let mut row = integers([o, d, w, c, 0]);
    row.push(Value::Null);
    row.extend(integers([count, i64::from(is_local)]));
    row
}

pub(super) fn line_row(
    (w, d, o): OrderKey,
    n: i64,
    (item, supply, quantity): (i64, i64, i64),
) -> Vec<Value> {
    let mut row = integers([o, d, w, n, item, supply]);
    row.push(Value::Null);
    row.extend(integers([quantity, quantity * price_cents(item) * CENT]));
    row.push(blank(24));
    row
}

fn stock_row(w: i64, i: i64) -> Vec<Value> {
    let key = stock(w, i);
    let mut row = integers([key, number(key, 1, 10, 100)]);
    row.extend([blank(124), blank(124)]);
    row.extend(integers([0, 0, 0]));
    row.push(text(key, 2, 26, 50));
    row
}
