//! When several clients' statements begin and end.
//!
//! ```text
//! client 0:  |=S1=|..|=S2=|.|C|....|=S1=|     =: a statement, its snapshot and its row's pin
//! client 1:    |=S1=~~~~~~~~~~=|..|=S2=|      ~: waits for another client's transaction
//! ```
//!
//! What happens is carried out in the order of its time: a statement at its beginning, or as far
//! as it comes then; its snapshot and pins go at its end, its transaction's number at COMMIT. One
//! client needs no clock. Times are drawn; only their ratio matters, but for `deadlock_timeout`,
//! which is a second. Left out: waits for the extension lock.

use crate::executor::Scanned;
use crate::pgbench::Prng;
use crate::run::course::Course;
use crate::run::machine::Machine;
use crate::run::standing::{Place, Standing, StandsStill};
pub(super) use crate::run::turns::Turn;
use crate::run::turns::Turns;
use crate::run::work::{Work, time_to_scan};

/// Seconds after which a session that waits looks whether it waits for itself.
///
/// Source: `deadlock_timeout`, src/backend/utils/misc/guc_tables.c: its default.
const DEADLOCK_TIMEOUT_S: f64 = 1.0;
/// The shortest pause of a client that is behind its course, in those of an even one.
const QUICKEST: f64 = 0.05;

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
    /// Statements that have been carried out.
    statements: f64,
    /// Whether each transaction is a procedure's call.
    has_calls: bool,
    turns: Turns,
    now: f64,
    /// Whether the only client has ended a transaction and begins the next.
    is_idle: bool,
    /// By client: when it began to wait last, and how often it did.
    waits: Vec<(f64, u64)>,
    /// With a rate: the time of the last transaction that has one.
    throttle: Option<f64>,
}

impl Schedule {
    /// All clients begin within a short time, in an order that the seed decides.
    /// With a rate pgbench's throttle gives each transaction its time, and whoever is free takes
    /// the next: clients go round in turn, unless one is late.
    ///
    /// Source: `CSTATE_PREPARE_THROTTLE`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    pub fn new(
        clients: usize,
        seed: u64,
        rate_per_s: Option<f64>,
        standing: Option<Standing>,
    ) -> Self {
        let mut prng = Prng::from_seed(seed);
        let draw = || uniform(&mut prng);
        let mut machine = Machine::of_seed(clients, seed, rate_per_s, standing, draw);
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
            statements: 0.0,
            has_calls: false,
            turns: Turns::new(clients),
            now: 0.0,
            is_idle: false,
            waits: vec![(0.0, 0); clients],
            throttle: rate_per_s.map(|_| 0.0),
        };
        for client in 0..clients {
            schedule.begin_after(0.0, 1.0, client);
        }
        schedule
    }

    /// The same, where each transaction is a procedure's call, or is not.
    pub const fn of_calls(mut self, has_calls: bool) -> Self {
        self.has_calls = has_calls;
        self
    }

    /// The same, where clients come on as a server's did.
    pub fn along(mut self, course: &[Vec<u32>]) -> Self {
        if self.throttle.is_none() && course.iter().all(|part| part.len() == self.waits.len()) {
            self.course = Course::new(course);
        }
        self
    }

    /// Whether nobody but one client is there, who needs no clock.
    pub fn is_alone(&self) -> bool {
        self.waits.len() == 1
    }

    /// Who is next; `None` when all have stopped.
    #[inline]
    pub fn next(&mut self) -> Option<Turn> {
        if std::mem::take(&mut self.is_idle) {
            return Some(Turn::Begin(0));
        }
        let (time, turn) = self.turns.pop()?;
        self.now = time;
        Some(turn)
    }

    /// The client's statement has been carried out, and takes its time.
    pub fn run_statement(&mut self, client: usize, work: Work) {
        self.statements += 1.0;
        let time = self.draw(work.time()) + self.stand_still(Place::Statement, client);
        self.push(
            time + self.time_to_move(work.moved),
            Turn::EndStatement(client),
        );
    }

    /// The client's statement has read a part of the table that it scans.
    pub fn scan(&mut self, client: usize, part: Scanned) {
        let time = self.draw(time_to_scan(part));
        self.push(time, Turn::Scan(client));
    }

    /// How often one who adds to a GIN's pending list does not see a page that another's statement
    /// has begun, in thousandths.
    pub const fn misses_page(&self) -> u32 {
        self.machine.misses_page
    }

    /// The client's statement moves so many more.
    pub fn go_on_cleaning(&mut self, client: usize, moved: u64) {
        self.push(self.time_to_move(moved), Turn::EndStatement(client));
    }

    #[allow(clippy::cast_precision_loss)] // few
    fn time_to_move(&self, entries: u64) -> f64 {
        self.machine.moves_entry * entries as f64
    }

    /// The client's statement has failed, which ends its transaction.
    pub fn fail(&mut self, client: usize) {
        self.push(0.0, Turn::EndTransaction(client));
    }

    /// The client's next statement, or its COMMIT, follows after the way to the client and back.
    pub fn pause(&mut self, client: usize, turn: Turn) {
        self.pauses += 1.0;
        let mean = self.machine.pause * self.slowness(client);
        let drawn = self.draw_even(mean);
        let time = self.until_stretch_ends(drawn) + self.on_the_way(client);
        self.push(time, turn);
    }

    /// The client's wait is over: it goes on when it has been woken.
    ///
    /// Source: `ProcWakeup` and `ProcSleep`, src/backend/storage/lmgr/proc.c (REL_18_STABLE): a
    /// latch is set, and the process waits for a processor.
    pub fn wake(&mut self, client: usize, after: f64) -> f64 {
        let time = after + self.draw(self.machine.wake) + self.stand_still(Place::Woken, client);
        let (_, count) = self.waits[client];
        self.push(time, Turn::GoOn(client, count));
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
                let clients = self.waits.len() as f64;
                length * self.now * clients / self.ended
            })
    }

    /// The client's statement waits.
    pub fn wait(&mut self, client: usize) {
        let (since, count) = &mut self.waits[client];
        *since = self.now;
        *count += 1;
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
        let timers = circle.iter().map(|&client| (client, self.waits[client]));
        let timers = timers.map(|(client, (since, count))| (client, since + timeout, count));
        let next = timers
            .filter(|&(_, time, _)| time >= self.now)
            .min_by(|one, other| one.1.total_cmp(&other.1));
        let (client, time, count) = next.expect("the last one has just begun to wait");
        self.turns.push(time, Turn::Deadlock(client, count));
    }

    /// The client waits no more, and is not woken.
    pub fn end_wait(&mut self, client: usize) {
        self.waits[client].1 += 1;
    }

    /// Whether this is the client's last wait.
    pub fn is_wait(&self, client: usize, count: u64) -> bool {
        self.waits[client].1 == count
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
            if let Some(standing) = &mut self.standing {
                standing.end_transaction(client);
            }
            self.ended += 1.0;
            if let Some(course) = &mut self.course {
                course.end_transaction(client);
            }
            let between = if self.has_calls {
                self.machine.between_calls * self.statements / self.ended
            } else {
                self.machine.between
            };
            let slowness = self.slowness(client);
            let way = if rolls_back {
                self.pauses += 1.0;
                let drawn = self.draw_even(self.machine.pause * slowness);
                self.until_stretch_ends(drawn) + self.on_the_way(client)
            } else {
                0.0
            };
            self.begin_after(way, between * slowness, client);
        }
    }

    /// The client begins its transaction now, which had to wait until nobody was in one.
    pub fn begin_now(&mut self, client: usize) {
        self.push(0.0, Turn::Begin(client));
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
        let work = self.statements / self.ended;
        let pauses = if self.has_calls {
            self.machine.between_calls * work
        } else {
            let Machine { between, pause, .. } = self.machine;
            (between * self.betweens + pause * self.pauses) / self.ended
        };
        #[allow(clippy::cast_precision_loss)] // few clients
        let clients = self.waits.len() as f64;
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
        let time = if let Some(last) = self.throttle {
            let next = last + self.draw(self.machine.between);
            self.throttle = Some(next);
            next.max(self.now)
        } else {
            self.betweens += 1.0;
            self.now + way + self.draw_pause(pause) + self.on_the_way(client)
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
mod tests {
    use super::*;

    /// At a rate clients take turns, as long as none is late.
    #[test]
    fn a_throttle_makes_clients_take_turns() {
        let mut schedule = Schedule::new(4, 3, Some(1000.0), None);
        let turns: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
        assert_eq!(turns, [0, 1, 2, 3].map(Turn::Begin));
    }

    /// The same seed gives the same order, and another one another.
    #[test]
    fn seeds_decide_the_order() {
        let order = |seed| {
            let mut schedule = Schedule::new(20, seed, None, None);
            std::iter::from_fn(|| schedule.next()).collect::<Vec<_>>()
        };
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
        assert_eq!(order(3).len(), 20);
    }

    /// Of those who wait for each other the first one's timer finds it out, unless that has gone
    /// off before.
    #[test]
    fn the_first_timer_finds_a_deadlock() {
        let mut schedule = Schedule::new(2, 1, None, None);
        while schedule.next().is_some() {}
        schedule.wait(1);
        let began = schedule.now;
        schedule.now = began + 10.0;
        schedule.wait(0);
        schedule.expect_deadlock(&[1, 0]);
        assert_eq!(schedule.next(), Some(Turn::Deadlock(1, 1)));
        assert!(schedule.is_wait(1, 1) && schedule.now > began + 1000.0);
        schedule.wait(0);
        schedule.now += 1.0;
        schedule.expect_deadlock(&[1, 0]);
        assert_eq!(schedule.next(), Some(Turn::Deadlock(0, 2)));
        assert!(!schedule.is_wait(0, 1));
    }

    /// A client is away between two calls for as long as calls take, not statements.
    #[test]
    fn calls_are_waited_for() {
        for (has_calls, least, most) in [(false, 0.0, 0.3), (true, 0.4, 0.65)] {
            let mut schedule = Schedule::new(4, 1, None, None).of_calls(has_calls);
            let (mut left, mut away, mut since) = ([0; 4], 0.0, [0.0; 4]);
            while let Some(turn) = schedule.next() {
                match turn {
                    Turn::Begin(client) if schedule.ended < 4000.0 => {
                        away += schedule.now - since[client];
                        left[client] = 30;
                        schedule.run_statement(client, Work::default());
                    }
                    Turn::EndStatement(client) => {
                        left[client] -= 1;
                        if left[client] == 0 {
                            since[client] = schedule.now;
                            schedule.end_transaction(client, false);
                        } else {
                            schedule.run_statement(client, Work::default());
                        }
                    }
                    _ => {}
                }
            }
            let share = away / (4.0 * schedule.now);
            assert!(least < share && share < most, "{has_calls}: {share}");
        }
    }

    /// A ROLLBACK behind an error is a way of its own, and pauses within a transaction are shorter
    /// than those between two.
    #[test]
    fn a_rollback_takes_its_time() {
        for seed in 0..8 {
            let mut schedule = Schedule::new(2, seed, None, None);
            schedule.standing = None;
            let Machine { between, pause, .. } = schedule.machine;
            assert!(pause * 1.2 <= between * 1.001 && between <= pause * 2.801);
            while schedule.next().is_some() {}
            let mut mean_until_next = |rolls_back| {
                let mut sum = 0.0;
                for _ in 0..20_000 {
                    let ended = schedule.now;
                    schedule.end_transaction(0, rolls_back);
                    assert_eq!(schedule.next(), Some(Turn::Begin(0)));
                    sum += schedule.now - ended;
                }
                sum / 20_000.0 / schedule.machine.pauses[0]
            };
            let (commits, rolls_back) = (mean_until_next(false), mean_until_next(true));
            let way = (rolls_back - commits) / pause;
            assert!((0.8..1.2).contains(&way), "{seed}: {way}");
        }
    }

    /// Pauses within a transaction have the machine's mean, and are the more even the quieter it
    /// is.
    #[test]
    fn quiet_machines_are_even() {
        for seed in 0..8 {
            let mut schedule = Schedule::new(2, seed, None, None);
            let drawn: Vec<_> = (0..20_000).map(|_| schedule.draw_even(3.0)).collect();
            let mean = drawn.iter().sum::<f64>() / 20_000.0;
            let variance = drawn.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 20_000.0;
            let shape = f64::from(schedule.machine.shape);
            assert!((mean / 3.0 - 1.0).abs() < 0.05, "{seed}: {mean}");
            assert!(
                (variance * shape / 9.0 - 1.0).abs() < 0.15,
                "{seed}: {variance}"
            );
            let is_quiet = schedule.machine.between < 2.0;
            assert!(!is_quiet || shape >= 5.0, "{seed}: {shape}");
        }
    }

    /// What was measured is met in the mean: how many stand still, and how far others come.
    #[test]
    fn clients_stand_still_as_measured() {
        let standing = Standing {
            share: 0.002,
            lengths: vec![10.0, 90.0],
        };
        let mut schedule = Schedule::new(4, 1, None, Some(standing));
        let (mut long, mut count) = (0, 0);
        let mut ended = [0.0; 4];
        while let Some(turn) = schedule.next() {
            match turn {
                Turn::Begin(client) if count < 400_000 => {
                    schedule.run_statement(client, Work::default());
                }
                Turn::EndStatement(client) => {
                    count += 1;
                    let all = (schedule.now - ended[client]) * schedule.ended / schedule.now;
                    long += u32::from(all > 4.0 * 50.0);
                    ended[client] = schedule.now;
                    schedule.end_transaction(client, false);
                }
                _ => {}
            }
        }
        // Each length is as likely.
        let (expected, found) = (400_000.0 * 0.002 * 0.5, f64::from(long));
        assert!(found > 0.8 * expected && found < 1.2 * expected, "{found}");
    }

    /// Behind the last stretch pauses are as long as the machine has them.
    #[test]
    #[allow(clippy::cast_precision_loss)] // few
    fn a_course_that_is_over_cuts_no_pause() {
        let mean = |over: bool| {
            let mut schedule = Schedule::new(2, 3, None, None).along(&[vec![2, 2], vec![8, 8]]);
            for _ in 0..if over { 20 } else { 10 } {
                schedule.now += 0.5;
                schedule.end_transaction(0, false);
            }
            let drawn = (0..1000).map(|_| schedule.draw_pause(100.0));
            drawn.sum::<f64>() / 1000.0
        };
        assert!(mean(false) < 6.0, "until the stretch ends");
        assert!(mean(true) > 80.0);
    }

    /// Whatever the machine, a client is where the server's was when a stretch ends, within a few
    /// transactions; also one that stands still while the others go on.
    #[test]
    fn clients_keep_to_their_course() {
        let stretches = [[300, 100, 50, 350], [100, 300, 400, 0], [0, 400, 350, 50]];
        let course = stretches.map(|stretch| stretch.to_vec());
        for seed in 0..8 {
            let mut schedule = Schedule::new(4, seed, None, None).along(&course);
            let mut done = [0_u32; 4];
            let mut goals = [0_u32; 4];
            let mut next_end = 0;
            let mut ends = stretches.iter();
            while let Some(turn) = schedule.next() {
                match turn {
                    Turn::Begin(client) if done.iter().sum::<u32>() < 2400 => {
                        schedule.run_statement(client, Work::default());
                    }
                    Turn::EndStatement(client) => {
                        done[client] += 1;
                        schedule.end_transaction(client, false);
                    }
                    _ => {}
                }
                if done.iter().sum::<u32>() == next_end {
                    for (client, &goal) in goals.iter().enumerate() {
                        assert!(
                            done[client].abs_diff(goal) < 40,
                            "{seed}: {done:?} {goals:?}"
                        );
                    }
                    let Some(stretch) = ends.next() else { break };
                    for (goal, count) in goals.iter_mut().zip(stretch) {
                        *goal += count;
                    }
                    next_end = goals.iter().sum();
                }
            }
            assert_eq!(next_end, 2400, "{seed}");
        }
    }
}
