//! In which order several clients' transactions run, and how long each keeps others from pruning.
//!
//! ```text
//! client 0:  |==T1==|..|===T4===|.     =: in a transaction, its xid and xmin hold the horizon
//! client 1:    |=T2=|...|=T5=|...      .: between two transactions
//! client 2:  ..|====T3====|..|=T6      order of execution: that of the beginnings
//! ```
//!
//! A transaction is carried out whole when it begins, and ended for the horizon later: a row
//! version that it removed can be pruned when neither it nor one that began before its end is
//! still in progress. Times are drawn; only their ratio matters. One client is never held up by
//! itself, so that its runs are exact.
//! Who changes a row that a running transaction has changed waits for its end, then locks the row.
//! The page of its row stays pinned for as long as a statement takes, waits included, and is not
//! pruned by others then. Left out: waits for the extension lock, deadlocks; and since a
//! transaction of several statements is carried out whole, those of one that begins later do not
//! pin what an earlier one visits.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::pgbench::Prng;
use crate::procarray::{HeldSnapshot, ProcArray};
use crate::transaction::Xid;

/// Shortest and longest time between two statements of a client, when the time of a statement on
/// the server is 1. How much transactions overlap depends on the machine, so each seed takes
/// another ratio, evenly on a logarithmic scale: what 18.4 showed of 2, 4 and 8 clients on an idle
/// and on a busy machine lies among a few seeds (`tests/golden_clients.rs`, docs/method.md).
const GAP_MIN: f64 = 1.0;
const GAP_MAX: f64 = 15.0;
/// Shortest and longest time of a statement on the server, in seconds: with a rate it says how many
/// of them fit between two transactions.
const STATEMENT_S_MIN: f64 = 0.000_03;
const STATEMENT_S_MAX: f64 = 0.000_3;
/// How often a session loses its processor in the middle of a statement, at most, and for how
/// long: each seed takes another share of it. That is what fills hot pages: nothing that a
/// transaction removed after the snapshot that stands still can be pruned.
const STALLS_MAX: f64 = 0.0002;
const STALL: f64 = 100.0;
/// How unevenly clients come on: the logarithm of what multiplies a client's pauses lies within
/// this to either side of 0, at most, and each seed takes another share of it. A client that is
/// ahead inserts ahead of the others, and uses up what it deletes earlier.
const UNEVEN_MAX: f64 = 0.6;
/// Steps of these fractions, modulo 1, divide an interval, a square or a cube evenly however many
/// there are: powers of the root of x^4 = x + 1.
const STEPS: [f64; 3] = [
    0.819_172_513_396_164_4,
    0.671_043_606_703_789_2,
    0.549_700_477_901_971,
];

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Begins its next transaction.
    Begin(usize),
    /// Has ended it.
    End(usize),
}

#[derive(Debug, Clone, Copy)]
struct Due {
    time: f64,
    turn: Turn,
}

impl Ord for Due {
    /// The earliest is the greatest, as the heap wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |due: &Self| match due.turn {
            Turn::End(client) => (0, client),
            Turn::Begin(client) => (1, client),
        };
        let by_time = other.time.total_cmp(&self.time);
        by_time.then_with(|| key(other).cmp(&key(self)))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

/// What a transaction that is done here holds for the others.
#[derive(Debug, Clone, Copy)]
struct Running {
    snapshot: HeldSnapshot,
    xmin: Xid,
    xid: Option<Xid>,
}

/// Clients' turns by time, and what their running transactions hold.
#[derive(Debug)]
pub(super) struct Schedule {
    prng: Prng,
    gap: f64,
    /// How often a statement stands still.
    stalls: f64,
    due: BinaryHeap<Due>,
    now: f64,
    /// Whether the only client has ended a transaction and begins the next.
    is_idle: bool,
    /// By client.
    running: Vec<Option<Running>>,
    /// By client: how long its pauses are, in those of an even one.
    pauses: Vec<f64>,
    /// With a rate: the time of the last transaction that has one.
    throttle: Option<f64>,
}

impl Schedule {
    /// All clients begin within a short time, in an order that the seed decides.
    /// With a rate pgbench's throttle gives each transaction its time, and whoever is free takes
    /// the next: clients go round in turn, unless one is late.
    ///
    /// Source: `CSTATE_PREPARE_THROTTLE`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    pub fn new(clients: usize, seed: u64, rate_per_s: Option<f64>) -> Self {
        #[allow(clippy::cast_precision_loss)] // any place will do
        let [busy, stalled, uneven] = STEPS.map(|step| (0.5 + seed as f64 * step).fract());
        let within = |low: f64, high: f64| low * (high / low).powf(busy);
        let spacing =
            rate_per_s.map(|rate| 1.0 / (rate * within(STATEMENT_S_MIN, STATEMENT_S_MAX)));
        let mut schedule = Self {
            prng: Prng::from_seed(seed),
            gap: spacing.unwrap_or_else(|| within(GAP_MIN, GAP_MAX)),
            stalls: STALLS_MAX * stalled,
            due: BinaryHeap::new(),
            now: 0.0,
            is_idle: false,
            running: vec![None; clients],
            pauses: vec![1.0; clients],
            throttle: rate_per_s.map(|_| 0.0),
        };
        for client in 0..clients {
            let place = 2.0 * schedule.uniform() - 1.0;
            schedule.pauses[client] = (UNEVEN_MAX * uneven * place).exp();
        }
        for client in 0..clients {
            schedule.begin_after(1.0, client);
        }
        schedule
    }

    /// Who is next; `None` when all have stopped.
    #[inline]
    pub fn next(&mut self) -> Option<Turn> {
        if std::mem::take(&mut self.is_idle) {
            return Some(Turn::Begin(0));
        }
        let due = self.due.pop()?;
        self.now = due.time;
        Some(due.turn)
    }

    /// The client begins a transaction.
    pub fn begin(&self, procs: &mut ProcArray) {
        procs.set_clock(self.now);
        procs.drop_pins(self.now);
    }

    /// A statement takes its time; in a transaction of several, so does the way to the next.
    pub fn pass(&mut self, is_alone: bool, procs: &mut ProcArray) {
        if self.running.len() == 1 {
            return; // nobody looks at the clock
        }
        let mut statement = self.draw(1.0);
        if self.uniform() < self.stalls {
            statement += self.draw(STALL);
        }
        procs.pin_slot(procs.clock() + statement);
        let mut time = procs.clock() + statement;
        if !is_alone {
            time += self.draw(self.gap);
        }
        procs.set_clock(time);
    }

    /// The client's transaction is done, but goes on to hold what its snapshot and its number
    /// hold until the time that it has reached.
    pub fn hold(&mut self, client: usize, (xmin, xid): (Xid, Option<Xid>), procs: &mut ProcArray) {
        if self.running.len() == 1 {
            self.go_on();
            return; // nobody is there to be held up
        }
        let snapshot = procs.hold_at(xmin);
        self.running[client] = Some(Running {
            snapshot,
            xmin,
            xid,
        });
        let time = procs.clock();
        if let Some(xid) = xid {
            procs.run_on(xid, time);
        }
        self.due.push(Due {
            time,
            turn: Turn::End(client),
        });
    }

    /// The only client has ended a transaction, and begins the next.
    #[inline]
    pub fn go_on(&mut self) {
        self.is_idle = true;
    }

    /// The client's transaction has ended; its next one follows.
    pub fn release(&mut self, client: usize, procs: &mut ProcArray) {
        let running = self.running[client].take().expect("a transaction");
        procs.release(running.snapshot);
        if let Some(xid) = running.xid {
            procs.end(xid);
        }
        self.begin_after(self.gap * self.pauses[client], client);
    }

    /// Whether a transaction in progress keeps what this one removed.
    pub fn holds(&self, xid: Xid) -> bool {
        let mut running = self.running.iter().flatten();
        running.any(|running| running.xmin <= xid)
    }

    /// How fast a client's transactions of one statement follow each other, beside the others'.
    pub fn pace_of(&self, client: usize) -> f64 {
        if self.throttle.is_some() {
            1.0
        } else {
            1.0 / (1.0 + self.gap * self.pauses[client])
        }
    }

    /// The client begins its next transaction: after a pause with this mean, or at the next time
    /// that the throttle gives.
    fn begin_after(&mut self, pause: f64, client: usize) {
        let time = if let Some(last) = self.throttle {
            let next = last + self.draw(self.gap);
            self.throttle = Some(next);
            next.max(self.now)
        } else {
            self.now + self.draw(pause)
        };
        let turn = Turn::Begin(client);
        self.due.push(Due { time, turn });
    }

    /// A time with this mean, from an exponential distribution.
    fn draw(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }

    /// From above 0 to 1.
    fn uniform(&mut self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // a part of a million
        let uniform = self.prng.random(1, 1_000_000) as f64 / 1_000_000.0;
        uniform
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transaction holds the horizon until its end, and no client holds up itself.
    #[test]
    fn running_transactions_hold_the_horizon() {
        use crate::transaction::Transactions;

        let mut procs = ProcArray::default();
        let mut schedule = Schedule::new(2, 1, None);
        let xmin = procs.xmin();
        let first = procs.assign();
        procs.commit();
        procs.set_clock(2.0);
        schedule.hold(0, (xmin, Some(first)), &mut procs);
        assert_eq!(procs.xmin(), first);
        procs.set_clock(1.5);
        assert!(procs.wait_for(first) && !procs.wait_for(first));
        procs.begin_statement();
        assert!(!procs.is_removable(first));
        procs.commit();
        let second = procs.assign();
        procs.commit();
        schedule.hold(1, (first, Some(second)), &mut procs);
        schedule.release(0, &mut procs);
        assert!(
            !procs.is_removable(first),
            "the other began before it ended"
        );
        schedule.release(1, &mut procs);
        procs.begin_statement();
        assert!(procs.is_removable(second));
    }

    /// At a rate clients take turns, as long as none is late.
    #[test]
    fn a_throttle_makes_clients_take_turns() {
        let mut schedule = Schedule::new(4, 3, Some(1000.0));
        let turns: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
        assert_eq!(turns, [0, 1, 2, 3].map(Turn::Begin));
    }

    /// The same seed gives the same order, and another one another.
    #[test]
    fn seeds_decide_the_order() {
        let order = |seed| {
            let mut schedule = Schedule::new(20, seed, None);
            std::iter::from_fn(|| schedule.next()).collect::<Vec<_>>()
        };
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
        assert_eq!(order(3).len(), 20);
    }
}
