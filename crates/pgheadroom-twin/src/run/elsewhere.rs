//! Transactions of a whole of which the run plays a share: the others take place elsewhere.
//!
//! ```text
//! client 0:  ==T1==..----..----..----..==T2==     =: played    -: elsewhere    .: between two
//! client 1:  ..----..==T1==..----..----..----
//! ```
//!
//! A sample has a share of the pages and of the transactions, but all clients. If they did nothing
//! else, they would meet on a page as many times more often as there are fewer pages. So each of
//! them has as many transactions between two played ones as in the whole: those take their time,
//! have numbers, and keep others from pruning, and do nothing to pages that are not there. What
//! the sample has whole (pgbench's branches and tellers) they change.
//! Once nothing that was played is held by anybody, what happens elsewhere leaves no trace, and is
//! skipped until shortly before the next played transaction.
//! Left out: waits for rows that are elsewhere.

use crate::executor::TableId;
use crate::pgbench::Prng;
use crate::run::schedule::Schedule;
use crate::transaction::Xid;
use crate::workload::{End, Operation, Workload};

/// Transactions of each client elsewhere before the next played one that are not skipped: enough
/// that by then as many are in progress as there always are.
const WARM_UP: u64 = 16;

/// What the run is a share of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// Transactions of one client in the whole.
    pub transactions_each: u64,
    /// Tables that the sample has whole.
    pub tables: Vec<TableId>,
}

/// A client's transactions.
#[derive(Debug, Clone, Copy)]
struct Client {
    /// That are still to be played.
    played: u64,
    /// That are still to take place elsewhere.
    elsewhere: u64,
    /// Of those, before the next that is played.
    before_next: u64,
}

/// What takes place beside the transactions that are played.
#[derive(Debug)]
pub(super) struct Elsewhere<W> {
    workload: W,
    tables: Vec<TableId>,
    clients: Vec<Client>,
    prng: Prng,
    operations: Vec<Operation>,
    /// The last played transaction that had a number.
    last_played: Option<Xid>,
}

impl<W: Workload> Elsewhere<W> {
    /// The rest of a whole of which each client plays so many transactions.
    pub fn new(whole: &Whole, workload: &W, played_each: u64, seed: u64) -> Self {
        let others = workload
            .others()
            .expect("a workload of which a share is played");
        let client = Client {
            played: played_each,
            elsewhere: whole.transactions_each.saturating_sub(played_each),
            before_next: 0,
        };
        let mut made = Self {
            clients: vec![client; workload.clients()],
            workload: others,
            tables: whole.tables.clone(),
            prng: Prng::from_seed(!seed),
            operations: Vec::new(),
            last_played: None,
        };
        for client in 0..made.clients.len() {
            made.draw(client);
        }
        made
    }

    /// Whether there is something to do after the last played transaction.
    pub fn goes_on(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Whether this client's next transaction takes place elsewhere; if not, it is played now.
    pub fn is_next(&mut self, client: usize) -> bool {
        let state = &mut self.clients[client];
        if state.before_next > 0 {
            state.before_next -= 1;
            state.elsewhere -= 1;
            return true;
        }
        if state.played > 0 {
            state.played -= 1;
            self.draw(client);
        }
        false
    }

    /// How many take place elsewhere before this client's next that is played: each of those left
    /// is as likely to be the next.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // a share; the quotient is positive and saturates
    fn draw(&mut self, client: usize) {
        let uniform = self.prng.random(1, 1_000_000_000) as f64 / 1e9;
        let state = &mut self.clients[client];
        state.before_next = if state.played == 0 {
            state.elsewhere
        } else {
            let played = state.played as f64;
            let share = played / (played + state.elsewhere as f64);
            let passed = uniform.ln() / (-share).ln_1p();
            (passed as u64).min(state.elsewhere)
        };
    }

    /// The client's next transaction: its statements, and how it ends.
    pub fn next_transaction(&mut self, client: usize) -> (&mut Vec<Operation>, End) {
        let end = self.workload.next_transaction(client, &mut self.operations);
        let end = end.expect("transactions elsewhere have no end");
        (&mut self.operations, end)
    }

    /// A transaction was played.
    pub fn played(&mut self, xid: Option<Xid>) {
        self.last_played = xid.or(self.last_played);
    }

    /// Passes over what leaves no trace.
    pub fn skip(&mut self, schedule: &Schedule, oldest_xmin: Xid) {
        let is_far = |client: &Client| client.before_next > WARM_UP;
        if self.goes_on()
            || !self
                .clients
                .iter()
                .all(|client| client.played == 0 || is_far(client))
        {
            return;
        }
        if self.last_played.is_some_and(|xid| oldest_xmin <= xid) {
            return;
        }
        let rounds = (0..)
            .zip(&self.clients)
            .filter(|(_, client)| client.played > 0)
            .map(|(number, client)| float(client.before_next - WARM_UP) / schedule.pace_of(number))
            .fold(f64::INFINITY, f64::min);
        if rounds.is_infinite() {
            return;
        }
        for (number, client) in self.clients.iter_mut().enumerate() {
            let passed = whole(rounds * schedule.pace_of(number)).min(client.before_next);
            client.before_next -= passed;
            client.elsewhere -= passed;
        }
    }
}

#[allow(clippy::cast_precision_loss)] // a ratio of times
fn float(number: u64) -> f64 {
    number as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive; saturates
fn whole(number: f64) -> u64 {
    number as u64
}
