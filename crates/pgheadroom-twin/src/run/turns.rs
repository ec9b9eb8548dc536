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
    /// Has read a part of the table that its statement scans, or lost its processor on its way.
    Scan(usize),
    /// Comes to a row with its statement, whose processor it still has.
    Arrive(usize),
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
    order: Box<[f64]>,
    /// By client: the very time, and its turn.
    turns: Box<[(f64, Turn)]>,
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
            order: vec![NEVER; clients].into(),
            turns: vec![(0.0, Turn::Begin(0)); clients].into(),
            clients: clients.next_power_of_two() as u64 - 1,
            others: BinaryHeap::new(),
        }
    }

    /// A turn is to come at this time.
    #[inline]
    pub fn push(&mut self, time: f64, turn: Turn) {
        debug_assert!(time.is_sign_positive(), "{time}");
        let client = turn.client();
        let place = &mut self.order[client];
        if !matches!(turn, Turn::Deadlock(..)) && *place == NEVER {
            *place = f64::from_bits((time.to_bits() & !self.clients) | client as u64);
            self.turns[client] = (time, turn);
        } else {
            let (key, wait) = turn.key(time);
            self.others.push(Reverse((key, wait)));
        }
    }

    /// The turn that a client has next, if it is none of those beside.
    pub fn of(&self, client: usize) -> Option<Turn> {
        (self.order[client] < NEVER).then(|| self.turns[client].1)
    }

    /// The first turn and its time; `None` when there is none.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a client's number
    pub fn pop(&mut self) -> Option<(f64, Turn)> {
        // One after the other: side by side they would wait for the place that was written last.
        let earlier = |first: f64, &one: &f64| if one < first { one } else { first };
        let first = self.order.iter().fold(NEVER, earlier);
        if !self.others.is_empty() && self.is_other_first(first) {
            let Reverse((key, wait)) = self.others.pop()?;
            return Some((f64::from_bits(key.0), Turn::of_key(key, wait)));
        }
        if first == NEVER {
            return None;
        }
        let client = (first.to_bits() & self.clients) as usize;
        self.order[client] = NEVER;
        Some(self.turns[client])
    }

    /// Whether the first one of the others comes before the client's whose place has this time.
    #[cold]
    #[allow(clippy::cast_possible_truncation)] // a client's number
    fn is_other_first(&self, first: f64) -> bool {
        let client = (first.to_bits() & self.clients) as usize;
        let own = (first < NEVER).then(|| self.turns[client]);
        let own = own.map(|(time, turn)| turn.key(time).0);
        let other = self.others.peek().map(|&Reverse((other, _))| other);
        match (other, own) {
            (Some(other), Some(own)) => other < own,
            (other, own) => other.is_some() && own.is_none(),
        }
    }
}

impl Turn {
    /// Whether the client's backend needs a processor to begin with it.
    #[inline]
    pub const fn runs(self) -> bool {
        matches!(
            self,
            Self::Begin(_) | Self::Statement(_) | Self::GoOn(..) | Self::Scan(_)
        )
    }

    /// Whose it is.
    #[inline]
    const fn client(self) -> usize {
        let (Self::EndStatement(client)
        | Self::EndTransaction(client)
        | Self::Deadlock(client, _)
        | Self::GoOn(client, _)
        | Self::Statement(client)
        | Self::Begin(client)
        | Self::Scan(client)
        | Self::Arrive(client)) = self;
        client
    }

    /// By what turns are in order, and the number of the wait that it ends.
    fn key(self, time: f64) -> (Key, u64) {
        let (kind, wait) = match self {
            Self::EndStatement(_) => (0, 0),
            Self::EndTransaction(_) => (1, 0),
            Self::Deadlock(_, wait) => (DEADLOCK, wait),
            Self::GoOn(_, wait) => (3, wait),
            Self::Statement(_) => (4, 0),
            Self::Begin(_) => (5, 0),
            Self::Scan(_) => (6, 0),
            Self::Arrive(_) => (7, 0),
        };
        ((time.to_bits(), kind, self.client()), wait)
    }

    /// The same, back.
    const fn of_key((_, kind, client): Key, wait: u64) -> Self {
        match kind {
            0 => Self::EndStatement(client),
            1 => Self::EndTransaction(client),
            DEADLOCK => Self::Deadlock(client, wait),
            3 => Self::GoOn(client, wait),
            4 => Self::Statement(client),
            5 => Self::Begin(client),
            6 => Self::Scan(client),
            _ => Self::Arrive(client),
        }
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
