//! Clients' turns that are to come, by their time.
//!
//! ```text
//! client      0                1               2           timers
//! turn        (4.2, end of     (3.9, begins)   waits: -    (1003.1, deadlock of 2)
//!              statement)
//! ```
//!
//! A client has one turn at a time, so each has a place and the first turn is found by a look at
//! all of them: with the few clients of a run that is less work than to keep a heap in order. A
//! timer, and whatever comes while the place is taken, waits in a heap beside.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Has ended a statement.
    EndStatement(usize),
    /// COMMIT or ROLLBACK.
    EndTransaction(usize),
    /// Finds that it waits for itself, if its wait of this number goes on.
    Deadlock(usize, u64),
    /// Has been woken out of its wait of this number, and goes on with its statement.
    GoOn(usize, u64),
    /// Begins the next statement of its transaction.
    Statement(usize),
    /// Begins its next transaction.
    Begin(usize),
    /// Has read a part of the table that its statement scans.
    Scan(usize),
}

/// When a turn is, and which: its time, what it is, and whose. Times are not negative, whose bits
/// have the order of their numbers.
type Key = (u64, u32, usize);

/// Behind every turn.
const NEVER: f64 = f64::INFINITY;

/// Turns by time.
#[derive(Debug)]
pub(super) struct Turns {
    /// By client: its turn's time, the last bits of which are its number: so the first of all is
    /// found without a branch. That tells times apart that differ by more than a part in 2^42 of
    /// a thousand clients, and in 2^49 of eight.
    order: Vec<f64>,
    /// By client: the very time, what its turn is, and the number of the wait that it ends.
    turns: Vec<(f64, u32, u64)>,
    /// The bits of a client's number.
    clients: u64,
    /// Others, with the number of their wait.
    others: BinaryHeap<Reverse<(Key, u64)>>,
}

const DEADLOCK: u32 = 2;

impl Turns {
    /// No turn of any of so many clients.
    pub fn new(clients: usize) -> Self {
        Self {
            order: vec![NEVER; clients],
            turns: vec![(0.0, 0, 0); clients],
            clients: clients.next_power_of_two() as u64 - 1,
            others: BinaryHeap::new(),
        }
    }

    /// A turn is to come at this time.
    #[inline]
    pub fn push(&mut self, time: f64, turn: Turn) {
        let (kind, client, wait) = match turn {
            Turn::EndStatement(client) => (0, client, 0),
            Turn::EndTransaction(client) => (1, client, 0),
            Turn::Deadlock(client, wait) => (DEADLOCK, client, wait),
            Turn::GoOn(client, wait) => (3, client, wait),
            Turn::Statement(client) => (4, client, 0),
            Turn::Begin(client) => (5, client, 0),
            Turn::Scan(client) => (6, client, 0),
        };
        debug_assert!(time.is_sign_positive(), "{time}");
        if kind != DEADLOCK && self.order[client] == NEVER {
            self.order[client] = f64::from_bits((time.to_bits() & !self.clients) | client as u64);
            self.turns[client] = (time, kind, wait);
        } else {
            self.others
                .push(Reverse(((time.to_bits(), kind, client), wait)));
        }
    }

    /// The first turn and its time; `None` when there is none.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a client's number
    pub fn pop(&mut self) -> Option<(f64, Turn)> {
        let earlier = |first: f64, &one: &f64| if one < first { one } else { first };
        let first = self.order.iter().fold(NEVER, earlier);
        let client = (first.to_bits() & self.clients) as usize;
        let own = (first < NEVER).then(|| {
            let (time, kind, wait) = self.turns[client];
            ((time.to_bits(), kind, client), wait)
        });
        let is_other = match (self.others.peek(), own) {
            (Some(Reverse((other, _))), Some((own, _))) => *other < own,
            (other, own) => other.is_some() && own.is_none(),
        };
        let ((time, kind, client), wait) = if is_other {
            self.others.pop()?.0
        } else {
            let own = own?;
            self.order[client] = NEVER;
            own
        };
        let turn = match kind {
            0 => Turn::EndStatement(client),
            1 => Turn::EndTransaction(client),
            DEADLOCK => Turn::Deadlock(client, wait),
            3 => Turn::GoOn(client, wait),
            4 => Turn::Statement(client),
            5 => Turn::Begin(client),
            _ => Turn::Scan(client),
        };
        Some((f64::from_bits(time), turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns come by time; those of clients at one time by number, a timer before that of a client
    /// which begins.
    #[test]
    fn turns_come_in_order() {
        let mut turns = Turns::new(3);
        let pushed = [
            (2.0, Turn::Begin(0)),
            (2.0, Turn::GoOn(1, 7)),
            (1.5, Turn::Deadlock(2, 3)),
            (2.0, Turn::Deadlock(1, 4)),
            (2.0, Turn::Begin(2)),
            (0.0, Turn::EndStatement(2)), // its place is taken
        ];
        for (time, turn) in pushed {
            turns.push(time, turn);
        }
        let popped: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        let order = [5, 2, 3, 0, 1, 4];
        assert_eq!(popped, order.map(|at: usize| pushed[at]));
        assert_eq!(turns.pop(), None);
    }
}
