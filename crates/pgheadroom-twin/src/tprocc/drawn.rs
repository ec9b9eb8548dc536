//! What pgbench's scripts draw, in their order; CASE and AND draw only what they come to.
//!
//! Source: the `.pgbench` files of the laboratory's `tprocc`; `evalLazyFunc`,
//! src/bin/pgbench/pgbench.c (REL_18_STABLE).

use crate::pgbench::Prng;
use crate::tprocc::values::{CUSTOMERS, DISTRICTS, ITEMS, NAMES};

/// Lines that the script draws, whatever the order has.
const LINES_MAX: usize = 15;

/// The standard's mix, in the order of the scripts: new orders, payments, deliveries, order status,
/// stock level.
pub(super) const MIX: [i64; 5] = [45, 43, 4, 4, 4];

/// Where clients work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Town {
    pub warehouses: i64,
    /// The warehouse that the client stays at, if it does.
    pub home: Option<i64>,
}

/// A line of a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// None where it does not exist.
    pub item: Option<i64>,
    pub supply: i64,
    pub quantity: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewOrder {
    pub warehouse: i64,
    pub district: i64,
    pub customer: i64,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payment {
    pub warehouse: i64,
    pub district: i64,
    /// Of the customer.
    pub home: (i64, i64),
    pub who: Who,
    pub cents: i64,
}

/// A customer by number or by last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Number(i64),
    Name(i64),
}

/// NURand with the constant C.
fn uneven(prng: &mut Prng, a: i64, (low, high): (i64, i64), c: i64) -> i64 {
    let one = prng.random(0, a);
    ((one | prng.random(low, high)) + c) % (high - low + 1) + low
}

fn customer(prng: &mut Prng) -> i64 {
    uneven(prng, 1023, (1, CUSTOMERS), 259)
}

impl Town {
    pub fn warehouse(self, prng: &mut Prng) -> i64 {
        self.home.unwrap_or_else(|| prng.random(1, self.warehouses))
    }

    /// Another warehouse.
    fn other(self, warehouse: i64, prng: &mut Prng) -> i64 {
        1 + (warehouse - 1 + prng.random(1, self.warehouses - 1)) % self.warehouses
    }

    pub fn new_order(self, prng: &mut Prng) -> NewOrder {
        let warehouse = self.warehouse(prng);
        let district = prng.random(1, DISTRICTS);
        let customer = customer(prng);
        let count = usize::try_from(prng.random(5, 15)).expect("a few lines");
        let is_unused = prng.random(1, 100) == 1;
        let mut lines = Vec::with_capacity(LINES_MAX);
        for _ in 0..LINES_MAX {
            let item = Some(uneven(prng, 8191, (1, ITEMS), 7911));
            let is_remote = self.warehouses > 1 && prng.random(1, 100) == 1;
            let supply = if is_remote {
                self.other(warehouse, prng)
            } else {
                warehouse
            };
            let quantity = prng.random(1, 10);
            lines.push(Line {
                item,
                supply,
                quantity,
            });
        }
        lines.truncate(count);
        if is_unused {
            lines[count - 1].item = None;
        }
        NewOrder {
            warehouse,
            district,
            customer,
            lines,
        }
    }

    pub fn payment(self, prng: &mut Prng) -> Payment {
        let warehouse = self.warehouse(prng);
        let district = prng.random(1, DISTRICTS);
        let mut home = (warehouse, district);
        if self.warehouses > 1 && prng.random(1, 100) > 85 {
            home.0 = self.other(warehouse, prng);
            home.1 = prng.random(1, DISTRICTS);
        }
        let who = who(prng);
        Payment {
            warehouse,
            district,
            home,
            who,
            cents: prng.random(100, 500_000),
        }
    }
}

/// Six in ten are named.
pub(super) fn who(prng: &mut Prng) -> Who {
    let by_name = prng.random(1, 100);
    let name = uneven(prng, 255, (0, NAMES - 1), 85);
    if by_name <= 60 {
        Who::Name(name)
    } else {
        Who::Number(customer(prng))
    }
}
