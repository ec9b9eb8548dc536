//! When several clients' statements begin and end.
//!
//! ```text
//! client 0:  |=S1=|..|=S2=|.|C|....|=S1=|     =: a statement, its snapshot and its row's pin
//! client 1:    |=S1=~~~~~~~~~~=|..|=S2=|      ~: waits for another client's transaction
//! ```
//!
//! What happens is carried out in the order of its time: a statement when it takes its snapshot,
//! or as far as it comes then; its snapshot and pins go at its end, its transaction's number at
//! COMMIT. It comes to its row somewhat later, and has not waited for who has had it until then.
//! One client needs no clock. Times are drawn; only their ratio matters, but for
//! `deadlock_timeout`, which is a second.

mod arrival;

use crate::executor::Scanned;
use crate::heap::{Extensions, Processors};
use crate::pgbench::Prng;
use crate::run::course::Course;
use crate::run::machine::{Asked, Machine, Shared};
use crate::run::standing::{Place, StandsStill};
pub(super) use crate::run::turns::Turn;
use crate::run::turns::Turns;
use crate::run::work::{AFTER, BEFORE, SENDS, Work, time_to_scan};

/// Seconds after which a session that waits looks whether it waits for itself.
///
/// Source: `deadlock_timeout`, src/backend/utils/misc/guc_tables.c: its default.
const DEADLOCK_TIMEOUT_S: f64 = 1.0;
/// The shortest pause of a client that is behind its course, in those of an even one.
const QUICKEST: f64 = 0.05;

/// How long after the processor is free it has one of those that wait for it, at most.
const QUEUED: f64 = 0.001;

/// What is known of a client.
#[derive(Debug, Clone, Copy, Default)]
struct ClientTimes {
    /// When it began to wait last, and how often it did.
    waits_since: f64,
    waits: u64,
    /// When the statement that waits comes to its row.
    reaches_at: f64,
    /// How long its statement was on its way to its row, where it has asked on arrival.
    went: f64,
    /// How long the session was at work without a snapshot and a number, since its last pause.
    outside: f64,
}

/// Clients' turns by time.
#[derive(Debug)]
pub(super) struct Schedule {
    prng: Prng,
    /// Of those that are woken, so that all else is drawn as if nobody waited.
    woken_prng: Prng,
    machine: Machine,
    /// Pauses between transactions and within them, and transactions that have ended.
    betweens: f64,
    pauses: f64,
    ended: f64,
    /// `None` at a rate, where a transaction is much shorter than the time between two.
    standing: Option<StandsStill>,
    /// How clients are to come on, where that was measured.
    course: Option<Course>,
    /// The times of statements and COMMITs that have been carried out, by their means.
    worked: f64,
    /// Whether each transaction is a procedure's call.
    has_calls: bool,
    /// Transactions of all clients a second, where that is known.
    per_s: Option<f64>,
    turns: Turns,
    now: f64,
    /// Until when each processor runs statements, where backends share them, and when one is free.
    busy_until: Vec<f64>,
    free_at: f64,
    /// When the clients' program sends the next statement, where it wakes for all clients.
    sends_at: f64,
    /// Whether the only client has ended a transaction and begins the next.
    is_idle: bool,
    /// By client.
    clients: Vec<ClientTimes>,
    /// With a rate: the time of the last transaction that has one.
    throttle: Option<f64>,
}

impl Schedule {
    /// All clients begin within a short time, in an order that the seed decides.
    /// With a rate pgbench's throttle gives each transaction its time, and whoever is free takes
    /// the next: clients go round in turn, unless one is late.
    ///
    /// Source: `CSTATE_PREPARE_THROTTLE`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    pub fn new(clients: usize, seed: u64, asked: Asked) -> Self {
        let mut prng = Prng::from_seed(seed);
        let draw = || uniform(&mut prng);
        let rate_per_s = asked.rate_per_s;
        let mut machine = Machine::of_seed(clients, seed, asked, draw);
        let standing = machine
            .standing
            .take()
            .map(|standing| StandsStill::new(standing, clients));
        let mut schedule = Self {
            prng,
            woken_prng: Prng::from_seed(!seed),
            machine,
            betweens: 0.0,
            pauses: 0.0,
            ended: 0.0,
            standing,
            course: None,
            worked: 0.0,
            has_calls: false,
            per_s: None,
            turns: Turns::new(clients),
            now: 0.0,
            busy_until: Vec::new(),
            free_at: 0.0,
            sends_at: 0.0,
            is_idle: false,
            clients: vec![ClientTimes::default(); clients],
            throttle: rate_per_s.map(|_| 0.0),
        };
        for client in 0..clients {
            schedule.begin_after(0.0, 1.0, client);
        }
        schedule
    }

    /// The same, where each transaction is a procedure's call, or is not.
    pub fn of_calls(mut self, has_calls: bool) -> Self {
        self.has_calls = has_calls;
        // How many of them are under way at a time was measured (`CALL_PAUSE`).
        if has_calls {
            self.machine.share(Shared::None);
        }
        self
    }

    /// The same, where clients come on as a server's did.
    pub fn along(mut self, course: &[Vec<u32>]) -> Self {
        if self.throttle.is_none() && course.iter().all(|part| part.len() == self.clients.len()) {
            self.course = Course::new(course);
            if let (true, Shared::InStep(_)) = (self.course.is_some(), self.machine.shared) {
                // Whose pauses are those of others keeps to no course.
                let clients = self.clients.len();
                self.machine
                    .share(Shared::of(self.machine.processors, clients));
            }
        }
        self
    }

    /// The same, where so many transactions end in a second.
    pub const fn at(mut self, per_s: Option<f64>) -> Self {
        self.per_s = per_s;
        self
    }

    /// Whether nobody but one client is there, who needs no clock.
    pub fn is_alone(&self) -> bool {
        self.clients.len() == 1
    }

    /// The means of the times that statements and COMMITs took, added, in those of an UPDATE by
    /// key whose transaction goes on.
    pub fn worked(&self) -> f64 {
        self.worked / self.machine.statement
    }

    /// How many pauses there were within transactions.
    pub const fn pauses(&self) -> f64 {
        self.pauses
    }

    /// Waits for extension locks on this machine, none of which there has been.
    pub fn extensions(&self, seed: u64) -> Extensions {
        Extensions::new(seed, self.machine.processor, self.machine.of_work())
    }

    /// When the turn takes place that is carried out.
    #[inline]
    pub const fn now(&self) -> f64 {
        self.now
    }

    /// So many seconds from now on, in the unit of its times: by how many transactions end in them
    /// where that is known, else by how long a statement takes.
    pub fn of_seconds(&self, seconds: f64) -> f64 {
        match self.per_s {
            Some(per_s) if self.ended > 0.0 => seconds * per_s * self.now / self.ended,
            _ => seconds * self.machine.second,
        }
    }

    /// A moment from now on, before a client has begun and ended one more transaction in the mean:
    /// at this place of that time, from 0 to 1.
    pub fn within_a_turn(&self, place: f64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // few clients
        let clients = self.clients.len() as f64;
        self.now + place * self.now * clients / self.ended.max(1.0)
    }

    /// Who is next; `None` when all have stopped.
    #[inline]
    pub fn next(&mut self) -> Option<Turn> {
        if std::mem::take(&mut self.is_idle) {
            return Some(Turn::Begin(0));
        }
        loop {
            let (time, turn) = self.turns.pop()?;
            if time < self.free_at && turn.runs() {
                self.postpone(turn, self.free_at);
                continue;
            }
            self.now = time;
            return Some(turn);
        }
    }

    /// Whoever is to run waits for the processor, as do others: which of them has it first is
    /// drawn.
    #[cold]
    fn postpone(&mut self, turn: Turn, free: f64) {
        let behind = QUEUED * uniform(&mut self.woken_prng);
        self.turns.push(free + behind, turn);
    }

    /// A processor runs a statement for so long, where backends share them: how much longer it
    /// takes, since it loses the processor to others.
    #[inline]
    fn run_for(&mut self, time: f64) -> f64 {
        let until = match self.machine.shared {
            Shared::None => return 0.0,
            Shared::One => self.now + time,
            Shared::WithClients(_) | Shared::InStep(_) => {
                self.now + time + SENDS * self.machine.of_work()
            }
        };
        self.busy_until.resize(self.machine.shared.count(), 0.0);
        let of_each = self.busy_until.iter_mut();
        if let Some(first) = of_each.min_by(|one, other| one.total_cmp(other)) {
            *first = until;
        }
        let of_each = self.busy_until.iter().copied();
        self.free_at = of_each.fold(f64::INFINITY, f64::min);
        let Processors { runs_again, loses } = self.machine.processor;
        let runs = -uniform(&mut self.woken_prng).ln() / loses * self.machine.of_work();
        if runs < time {
            -runs_again * uniform(&mut self.woken_prng).ln()
        } else {
            0.0
        }
    }

    /// The client's statement has been carried out, and takes its time.
    pub fn run_statement(&mut self, client: usize, work: Work) {
        let mean = work.time(self.machine.statement, self.machine.commit);
        self.worked += mean;
        let outside = self.outside(work.writes && work.commits);
        self.clients[client].outside += outside;
        let went = std::mem::take(&mut self.clients[client].went);
        let time = (self.draw(mean - outside) - went).max(0.0);
        let lost = self.run_for(time);
        let time = time + lost + self.stand_still(Place::Statement, client);
        let time = time + work.waited + self.move_entries(work.moved);
        self.push(time, Turn::EndStatement(client));
    }

    /// Which part of a statement's time the session has neither a snapshot nor a number: before it,
    /// and behind its COMMIT.
    fn outside(&self, commits: bool) -> f64 {
        let after = if commits { AFTER } else { 0.0 };
        if self.has_calls {
            0.0 // a procedure's snapshot stays
        } else {
            (BEFORE + after) * self.machine.of_work()
        }
    }

    /// The client's statement has read a part of the table that it scans.
    pub fn scan(&mut self, client: usize, part: Scanned, waited: f64) {
        let mean = time_to_scan(part) * self.machine.of_work();
        self.worked += mean;
        let time = self.draw(mean);
        let lost = self.run_for(time);
        self.push(time + lost + waited, Turn::Scan(client));
    }

    /// How often one who adds to a GIN's pending list does not see a page that another's statement
    /// has begun, in thousandths.
    pub const fn misses_page(&self) -> u32 {
        self.machine.misses_page
    }

    /// The client's statement moves so many more.
    pub fn go_on_cleaning(&mut self, client: usize, moved: u64) {
        let time = self.move_entries(moved);
        self.push(time, Turn::EndStatement(client));
    }

    #[allow(clippy::cast_precision_loss)] // few
    fn move_entries(&mut self, entries: u64) -> f64 {
        let time = self.machine.moves_entry * entries as f64;
        self.worked += time;
        time
    }

    /// The client's statement has failed, which ends its transaction.
    pub fn fail(&mut self, client: usize) {
        self.push(0.0, Turn::EndTransaction(client));
    }

    /// The client's next statement follows after the way to the client and back.
    pub fn pause(&mut self, client: usize) {
        let time = self.pause_within(client);
        self.push(time, Turn::Statement(client));
    }

    /// The client's transaction ends after the same way, and the time of a COMMIT if it `commits`
    /// what it has written.
    pub fn pause_and_end(&mut self, client: usize, commits: bool) {
        let mut time = self.pause_within(client);
        if commits {
            let mean = self.machine.commit;
            self.worked += mean;
            let after = (AFTER * self.machine.of_work()).min(mean);
            self.clients[client].outside += after;
            time += self.draw(mean - after);
        }
        self.push(time, Turn::EndTransaction(client));
    }

    /// A pause within a transaction.
    fn pause_within(&mut self, client: usize) -> f64 {
        self.pauses += 1.0;
        let drawn = self.draw_even(self.machine.pause * self.slowness(client));
        let outside = std::mem::take(&mut self.clients[client].outside);
        let pause = self.until_stretch_ends(drawn);
        outside + self.in_step(pause) + self.on_the_way(client)
    }

    /// The client's wait is over: it goes on when it has been woken, or, if it has not yet come to
    /// the row, when it does: then it has never waited.
    ///
    /// Source: `ProcWakeup` and `ProcSleep`, src/backend/storage/lmgr/proc.c (REL_18_STABLE): a
    /// latch is set, and the process waits for a processor.
    pub fn wake(&mut self, client: usize, after: f64) -> f64 {
        let ClientTimes {
            waits, reaches_at, ..
        } = self.clients[client];
        let left = reaches_at - self.now;
        let time = if left > after {
            left
        } else {
            after + self.draw(self.machine.wake) + self.stand_still(Place::Woken, client)
        };
        self.push(time, Turn::GoOn(client, waits));
        time
    }

    /// A client is on its way: how long it stands still there, if it does.
    fn on_the_way(&mut self, client: usize) -> f64 {
        self.stand_still(Place::Way, client)
    }

    /// How long the client stands still at such a place, if it does.
    fn stand_still(&mut self, place: Place, client: usize) -> f64 {
        let Some(standing) = &mut self.standing else {
            return 0.0;
        };
        let prng = match place {
            Place::Woken => &mut self.woken_prng,
            Place::Way | Place::Statement => &mut self.prng,
        };
        standing
            .at(place, client, || uniform(prng))
            .map_or(0.0, |length| {
                #[allow(clippy::cast_precision_loss)] // few clients
                let clients = self.clients.len() as f64;
                length * self.now * clients / self.ended
            })
    }

    /// The client's statement waits; `begins` says that it has just begun, so that it comes to its
    /// row somewhat later.
    pub fn wait(&mut self, client: usize, begins: bool) {
        let reaches_after = if begins { self.draw_reaches() } else { 0.0 };
        let of = &mut self.clients[client];
        of.reaches_at = self.now + reaches_after;
        of.waits_since = of.reaches_at;
        of.waits += 1;
        if let Some(standing) = &mut self.standing {
            standing.wait();
        }
    }

    /// These clients wait for each other: the first whose timer is still to come will find that
    /// out.
    ///
    /// Source: `ProcSleep` and `CheckDeadLock`, src/backend/storage/lmgr/proc.c (REL_18_STABLE):
    /// the timer goes off once in a wait.
    pub fn expect_deadlock(&mut self, circle: &[usize]) {
        let timeout = DEADLOCK_TIMEOUT_S * self.machine.second;
        let timers = circle.iter().map(|&client| (client, self.clients[client]));
        let timers = timers.map(|(client, of)| (client, of.waits_since + timeout, of.waits));
        let next = timers
            .filter(|&(_, time, _)| time >= self.now)
            .min_by(|one, other| one.1.total_cmp(&other.1));
        let (client, time, count) = next.expect("the last one has just begun to wait");
        self.turns.push(time, Turn::Deadlock(client, count));
    }

    /// The client waits no more, and is not woken.
    pub fn end_wait(&mut self, client: usize) {
        self.clients[client].waits += 1;
    }

    /// Whether this is the client's last wait.
    pub fn is_wait(&self, client: usize, count: u64) -> bool {
        self.clients[client].waits == count
    }

    /// The only client has ended a transaction, and begins the next.
    #[inline]
    pub fn go_on(&mut self) {
        self.is_idle = true;
    }

    /// The client's transaction has ended; its next one follows, after a ROLLBACK's way to the
    /// server and back if an error has ended it and the server waits for that.
    pub fn end_transaction(&mut self, client: usize, rolls_back: bool) {
        if self.is_alone() {
            self.go_on();
        } else {
            self.clients[client].went = 0.0; // of a statement that has failed
            if let Some(standing) = &mut self.standing {
                standing.end_transaction(client);
            }
            self.ended += 1.0;
            if let Some(course) = &mut self.course {
                course.end_transaction(client);
            }
            let between = if self.has_calls {
                self.machine.between_calls * self.worked / self.ended
            } else {
                self.machine.between
            };
            let slowness = self.slowness(client);
            let way = if rolls_back {
                self.pause_within(client)
            } else {
                0.0
            };
            self.begin_after(way, between * slowness, client);
        }
    }

    /// The client begins its transaction when it has been woken, which had to wait until nobody was
    /// in one.
    pub fn begin_woken(&mut self, client: usize) {
        let time = self.draw(self.machine.wake) + self.stand_still(Place::Woken, client);
        self.push(time, Turn::Begin(client));
    }

    /// How long the client's pauses are, in those of an even one: as the machine has it, or so that
    /// the client keeps to its course.
    fn slowness(&self, client: usize) -> f64 {
        let own = self.machine.pauses[client];
        let Some(share) = self.course.as_ref().and_then(|course| course.share(client)) else {
            return own;
        };
        if self.ended == 0.0 {
            return own;
        }
        // Of a transaction, on an even machine.
        let work = self.worked / self.ended;
        let pauses = if self.has_calls {
            self.machine.between_calls * work
        } else {
            let Machine { between, pause, .. } = self.machine;
            (between * self.betweens + pause * self.pauses) / self.ended
        };
        if pauses == 0.0 {
            return own; // there is nothing that could be longer or shorter
        }
        #[allow(clippy::cast_precision_loss)] // few clients
        let clients = self.clients.len() as f64;
        let cycle = (work + pauses) / (share * clients);
        ((cycle - work) / pauses).max(QUICKEST)
    }

    /// How fast a client's transactions of one statement follow each other, beside the others'.
    pub fn pace_of(&self, client: usize) -> f64 {
        if self.throttle.is_some() {
            1.0
        } else {
            1.0 / (1.0 + self.machine.between * self.machine.pauses[client])
        }
    }

    /// The client begins its next transaction: after the way of something else and a pause with
    /// this mean, or at the next time that the throttle gives.
    fn begin_after(&mut self, way: f64, pause: f64, client: usize) {
        let outside = std::mem::take(&mut self.clients[client].outside);
        let time = if let Some(last) = self.throttle {
            let next = last + self.draw(self.machine.between);
            self.throttle = Some(next);
            next.max(self.now + outside)
        } else {
            self.betweens += 1.0;
            let pause = self.draw_pause(pause);
            self.now + outside + way + self.in_step(pause) + self.on_the_way(client)
        };
        self.turns.push(time, Turn::Begin(client));
    }

    fn push(&mut self, after: f64, turn: Turn) {
        self.turns.push(self.now + after, turn);
    }

    /// A pause between two transactions, with this mean.
    fn draw_pause(&mut self, mean: f64) -> f64 {
        let drawn = self.draw(mean);
        self.until_stretch_ends(drawn)
    }

    /// A pause that ends when the clients' program has woken for the first one and comes to this
    /// client, where they are in step.
    ///
    /// Source: `threadRun`, src/bin/pgbench/pgbench.c (REL_18_STABLE): who is ready when it wakes
    /// is served before it sleeps again.
    fn in_step(&mut self, pause: f64) -> f64 {
        let Shared::InStep(_) = self.machine.shared else {
            return pause;
        };
        let at = if self.sends_at > self.now {
            self.sends_at
        } else {
            self.now + pause
        };
        self.sends_at = at + SENDS * self.machine.of_work();
        at - self.now
    }

    /// A pause that keeps a client to its course ends with the stretch.
    fn until_stretch_ends(&self, pause: f64) -> f64 {
        match &self.course {
            Some(course) if self.ended > 0.0 && course.left() > 0.0 => {
                pause.min(course.left() * self.now / self.ended)
            }
            _ => pause,
        }
    }

    /// A time with this mean, from a gamma distribution of the machine's shape.
    fn draw_even(&mut self, mean: f64) -> f64 {
        let shape = self.machine.shape;
        let product: f64 = (0..shape).map(|_| self.uniform()).product();
        -mean * product.ln() / f64::from(shape)
    }

    /// A time with this mean, from an exponential distribution.
    fn draw(&mut self, mean: f64) -> f64 {
        -mean * self.uniform().ln()
    }

    /// From above 0 to 1.
    fn uniform(&mut self) -> f64 {
        uniform(&mut self.prng)
    }
}

#[inline]
#[allow(clippy::cast_precision_loss)] // a part of a million
fn uniform(prng: &mut Prng) -> f64 {
    prng.random(1, 1_000_000) as f64 / 1_000_000.0
}

#[cfg(test)]
mod tests;
