//! The orders of all districts, and who is called how: what statements find, so that the next ones
//! can be said.

use std::collections::{HashMap, VecDeque};

use crate::tprocc::tables::customers_of_orders;
use crate::tprocc::values::{
    CUSTOMERS, DELIVERED, DISTRICTS, NAMES, ORDERS, ROLLED_BACK, cents_of, customer, district,
    first_name, item_of, last_name, lines,
};

/// Orders of a district whose items a stock-level transaction reads.
const RECENT: usize = 20;

/// An order that is not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub number: i64,
    /// Its customer, by key.
    pub customer: i64,
    pub cents: i64,
}

#[derive(Debug, Clone)]
struct District {
    next: i64,
    rolled_back: i64,
    waiting: VecDeque<Waiting>,
    /// Items of the last orders.
    recent: VecDeque<Vec<i64>>,
    /// By last name: the customer that a transaction takes, the middle one of its namesakes.
    named: Vec<Option<i64>>,
}

/// All of them.
#[derive(Debug, Clone)]
pub(super) struct Orders {
    districts: Vec<District>,
    /// By customer: the last order, where it is of the run.
    latest: HashMap<i64, i64>,
}

impl Orders {
    /// As they are loaded.
    pub fn loaded(warehouses: i64) -> Self {
        let all = (1..=warehouses).flat_map(|w| (1..=DISTRICTS).map(move |d| district(w, d)));
        let mut latest = HashMap::new();
        let districts = all.map(|of| {
            let customers = customers_of_orders(of);
            for (o, &c) in (1..).zip(&customers) {
                latest.insert(customer(of, c), o);
            }
            let numbered = (1..).zip(&customers);
            let waiting = numbered.filter(|&(number, _)| number > DELIVERED);
            let waiting = waiting.map(|(number, &c)| Waiting {
                number,
                customer: customer(of, c),
                cents: (1..=lines(of, number))
                    .map(|n| cents_of(of, number, n))
                    .sum(),
            });
            let recent = (1..=ORDERS).rev().take(RECENT).collect::<Vec<_>>();
            let items = |&o: &i64| (1..=lines(of, o)).map(|n| item_of(of, o, n)).collect();
            District {
                next: ORDERS + 1,
                rolled_back: 0,
                waiting: waiting.collect(),
                recent: recent.iter().rev().map(items).collect(),
                named: named(of),
            }
        });
        let districts = districts.collect();
        Self { districts, latest }
    }

    fn of(&mut self, district: i64) -> &mut District {
        let place = usize::try_from(district - DISTRICTS - 1).expect("a district");
        &mut self.districts[place]
    }

    /// The number of a district's next order, which comes to be.
    pub fn add(&mut self, district: i64, customer: i64, cents: i64, items: Vec<i64>) -> i64 {
        let of = self.of(district);
        let number = of.next;
        of.next += 1;
        of.waiting.push_back(Waiting {
            number,
            customer,
            cents,
        });
        of.recent.push_back(items);
        of.recent.pop_front();
        self.latest.insert(customer, number);
        number
    }

    /// The number of one that is rolled back. Its own would be the next one's again; another
    /// client's may come to be meanwhile, so it has one behind all others.
    pub fn add_rolled_back(&mut self, district: i64) -> i64 {
        let of = self.of(district);
        of.rolled_back += 1;
        ROLLED_BACK + of.rolled_back
    }

    /// The oldest order that is not delivered, which is now.
    pub fn deliver(&mut self, district: i64) -> Option<Waiting> {
        self.of(district).waiting.pop_front()
    }

    /// The number that the district's next order will have.
    pub fn next(&mut self, district: i64) -> i64 {
        self.of(district).next
    }

    /// Items of the last orders, line by line.
    pub fn recent_items(&mut self, district: i64) -> Vec<i64> {
        self.of(district).recent.iter().flatten().copied().collect()
    }

    /// The middle one of the customers with this last name, by its number; none in few districts.
    pub fn named(&mut self, district: i64, name: i64) -> Option<i64> {
        self.of(district).named[usize::try_from(name).expect("a name")]
    }

    /// The last order of a customer.
    pub fn latest(&self, customer: i64) -> i64 {
        self.latest[&customer]
    }
}

/// Of the customers of each last name, in the order of their first names, the middle one.
fn named(district: i64) -> Vec<Option<i64>> {
    let mut all: Vec<Vec<_>> = (0..NAMES).map(|_| Vec::new()).collect();
    for c in 1..=CUSTOMERS {
        let name = usize::try_from(last_name(district, c)).expect("a name");
        all[name].push((first_name(customer(district, c)), c));
    }
    let middle = |mut namesakes: Vec<(Vec<u8>, i64)>| {
        namesakes.sort();
        let place = namesakes.len().checked_sub(1)? / 2;
        Some(namesakes[place].1)
    };
    all.into_iter().map(middle).collect()
}
