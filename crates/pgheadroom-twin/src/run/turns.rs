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

/// A turn in the order of turns: its time, then what it is, then whose. Times are not negative,
/// whose bits have the order of their numbers.
type Key = u128;

/// Behind every turn.
const NONE: Key = Key::MAX;

/// Turns by time.
#[derive(Debug)]
pub(super) struct Turns {
    /// By client.
    keys: Vec<Key>,
    /// By client: the number of the wait that its turn ends.
    waits: Vec<u64>,
    /// Others, with the number of their wait.
    others: BinaryHeap<Reverse<(Key, u64)>>,
}

impl Turns {
    /// No turn of any of so many clients.
    pub fn new(clients: usize) -> Self {
        Self {
            keys: vec![NONE; clients],
            waits: vec![0; clients],
            others: BinaryHeap::new(),
        }
    }

    /// A turn is to come at this time.
    #[inline]
    pub fn push(&mut self, time: f64, turn: Turn) {
        let (kind, client, wait) = match turn {
            Turn::EndStatement(client) => (0, client, 0),
            Turn::EndTransaction(client) => (1, client, 0),
            Turn::Deadlock(client, wait) => (2, client, wait),
            Turn::GoOn(client, wait) => (3, client, wait),
            Turn::Statement(client) => (4, client, 0),
            Turn::Begin(client) => (5, client, 0),
            Turn::Scan(client) => (6, client, 0),
        };
        debug_assert!(time.is_sign_positive(), "{time}");
        let key = u128::from(time.to_bits()) << 64 | kind << 32 | client as u128;
        if kind != 2 && self.keys[client] == NONE {
            self.keys[client] = key;
            self.waits[client] = wait;
        } else {
            self.others.push(Reverse((key, wait)));
        }
    }

    /// The first turn and its time; `None` when there is none.
    #[inline]
    pub fn pop(&mut self) -> Option<(f64, Turn)> {
        let first = self.keys.iter().fold(NONE, |first, &key| first.min(key));
        let (key, wait) = match self.others.peek() {
            Some(&Reverse((other, wait))) if other < first => {
                self.others.pop();
                (other, wait)
            }
            _ if first == NONE => return None,
            _ => {
                let client = client_of(first);
                self.keys[client] = NONE;
                (first, self.waits[client])
            }
        };
        let client = client_of(key);
        let turn = match (key >> 32) & 0xff {
            0 => Turn::EndStatement(client),
            1 => Turn::EndTransaction(client),
            2 => Turn::Deadlock(client, wait),
            3 => Turn::GoOn(client, wait),
            4 => Turn::Statement(client),
            5 => Turn::Begin(client),
            _ => Turn::Scan(client),
        };
        Some((f64::from_bits((key >> 64) as u64), turn))
    }
}

/// Whose turn it is.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the lowest half of a word
const fn client_of(key: Key) -> usize {
    (key & 0xffff_ffff) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns come by time; of those at one time by what they are, then by client.
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
        let order = [5, 2, 3, 1, 0, 4];
        assert_eq!(popped, order.map(|at: usize| pushed[at]));
        assert_eq!(turns.pop(), None);
    }
}
