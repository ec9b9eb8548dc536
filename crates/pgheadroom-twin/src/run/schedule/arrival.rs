//! When a statement comes to its rows that has begun before: a queue's to those at the head, an
//! upsert to those of the entries that it has read.

use crate::run::schedule::{Schedule, uniform};
use crate::run::turns::Turn;
use crate::run::work::{FETCHES, FETCHES_ENTRY, LOCKS_PAGE, REACHES};

impl Schedule {
    /// The client's statement is on its way to its rows, and goes on when it comes there.
    pub fn go_to_row(&mut self, client: usize) {
        let time = self.draw_reaches();
        self.clients[client].went = time;
        self.arrive_after(time, client);
    }

    /// The client's statement comes to its row after this time, with the same processor if it does
    /// not lose it.
    fn arrive_after(&mut self, time: f64, client: usize) {
        let lost = self.run_for(time);
        let turn = if lost > 0.0 {
            Turn::Scan(client)
        } else {
            Turn::Arrive(client)
        };
        self.push(time + lost, turn);
    }

    /// Whether the client's statement runs, or its COMMIT as a part of it.
    pub fn is_at_work(&self, client: usize) -> bool {
        self.turns.of(client) == Some(Turn::EndStatement(client))
    }

    /// The client's upsert has read so many entries in an index, and goes on when it has come to
    /// their rows: so many others are `beside` it on the page, and who has locked it is waited for.
    pub fn fetch(&mut self, client: usize, entries: usize, beside: usize) {
        let own = FETCHES * self.machine.of_work();
        #[allow(clippy::cast_precision_loss)] // few
        let more = FETCHES_ENTRY * self.machine.of_work() * entries.saturating_sub(1) as f64;
        self.clients[client].went += own;
        let waits = (0..beside).any(|_| uniform(&mut self.woken_prng) < LOCKS_PAGE);
        if waits {
            self.run_for(own + more);
            let woken = self.machine.wake * -uniform(&mut self.woken_prng).ln();
            self.push(own + more + woken, Turn::Scan(client));
        } else {
            self.arrive_after(own + more, client);
        }
    }

    /// How long after its beginning a statement comes to its row.
    pub(super) fn draw_reaches(&mut self) -> f64 {
        let mean = REACHES * self.machine.of_work();
        -mean * uniform(&mut self.woken_prng).ln()
    }
}
