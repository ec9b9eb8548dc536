//! The machine that several clients of a run share: how long pauses are beside statements, how
//! evenly clients come on, how soon one goes on that has waited.
//!
//! ```text
//! |=statement=|..pause..|=statement=~~~waits~~~wake=|..pause..|C|..pause..|=statement=|
//! ```
//!
//! A profile may say it in microseconds, and `prove` measures it in the server's run. What nobody
//! knows each seed draws for a machine of its own, from a quiet to a busy one: places in the ranges
//! below are spread evenly however many seeds there are, and what the runs differ by is what
//! depends on the machine. The ranges are those of 36 runs of 18.4 and 16.14 on two cores, with 2
//! to 8 clients, idle but for them and beside up to fifteen busy processes
//! (docs/method/clients.md). Only ratios matter, but for `deadlock_timeout`, so the unit is the
//! time of a statement: of an UPDATE by key that is a transaction of its own.

use crate::heap::Processors;
use crate::profile::{MachineSpec, RunSpec};
use crate::run::standing::{PlacedStanding, Standing};
use crate::run::work::{COMMIT, STATEMENT};

/// Shortest and longest pause between two transactions of a client: 0.9 to 4.4 on an idle machine,
/// 1 to 21 on a busy one.
const PAUSE: (f64, f64) = (0.9, 20.0);
/// How many times as long a pause between two transactions is as one within: of 2, 4 and 8 clients
/// of 18.4 on two cores it was 1.6, 1.7 and 1.9 times from COMMIT to the next BEGIN, by each
/// statement's latency and pgbench's log.
const BETWEEN: (f64, f64) = (1.2, 2.8);
/// A pause between two calls of procedures, in times of a call: others' calls keep the processors
/// until they end, and pgbench takes some too. Of 2, 4 and 8 clients of `tprocc` 60, 40 and 38 %
/// were in a call at a time, on two cores with other work: pauses of 0.67, 1.5 and 1.6 calls.
const CALL_PAUSE: (f64, f64) = (0.67, 1.6);
/// How even pauses within a transaction are, on an idle machine and on a busy one: the shape of the
/// gamma distribution that they are drawn from, with 1 an exponential one. Of 2 clients on two idle
/// cores transactions of two statements had a coefficient of variation of 0.33, which it gives with
/// 2 to 8; independent exponential ones would give 0.45 to 0.5. With these two clients that update
/// one row and then another took turns at it in 59 to 93 % of the transactions, as 18.4 has it.
const SHAPE: (f64, f64) = (8.0, 1.0);
/// How soon one that has waited goes on, in times of a pause within a transaction: such a pause is
/// a wake-up of the clients' program, its work, and a wake-up of the backend.
const WAKE: (f64, f64) = (0.1, 0.8);
/// How soon one goes on that gets an extension lock, or has lost its processor: by
/// /proc/PID/schedstat a backend of 2 to 32 clients waited for a processor for 1.3 to 4.2 times of
/// a statement on two cores, and where 12 to 29 waited for the lock each took 4 to 8 to hand it on.
/// On a machine with processors to spare it is less.
const RUNS_AGAIN: (f64, f64) = (1.3, 8.0);
const RUNS_AGAIN_OWN: (f64, f64) = (0.3, 8.0);
/// How often a backend loses its processor, for each time of a statement that it works: by 1 to 3
/// involuntary switches for each millisecond on two cores with 8 to 32 clients and other work.
/// Where each has its own that is only while it has an extension lock, and on a quiet machine
/// hardly ever.
const LOSES: (f64, f64) = (0.03, 0.12);
const LOSES_OWN: (f64, f64) = (0.005, 0.12);
/// How unevenly clients come on: the logarithm of what multiplies a client's pauses lies within
/// this to either side of 0, at most; clients' pauses were 0.52 to 1.9 times an even one's.
const UNEVEN_MAX: f64 = 0.6;
/// What part of the transactions stands still: 0.000_25 in the median of 212 runs of 18.4, 16.14
/// and 15.18 with 2 to 8 clients on two cores with nothing beside, up to 0.02 beside other work.
const STANDING: (f64, f64) = (0.000_2, 0.015);
/// How many times more likely a session stands still that is woken after a wait than one on its
/// way: whoever wakes it goes on, and so do the others, while `pgbench` sleeps when it has sent a
/// statement. 4 to 33 times in six runs of 2 and 4 clients that all update one row, on two cores
/// beside other work, by looks at pg_stat_activity and the processes' states each half millisecond.
const WOKEN_STANDS_STILL: (f64, f64) = (4.0, 33.0);
/// The part of the transactions that stands still in a statement, at most, where it is drawn: with
/// more of them eight clients had up to 1,470 new pages where servers had 919 to 1,048
/// (`tests/golden_clients.rs`).
const INSIDE_MAX: f64 = 0.000_1;
/// For how many transactions of another client: twentieths of the 2,510 times that a client stood
/// still in these runs, each as likely (the longest: 253).
const LENGTHS: [f64; 20] = [
    9.0, 9.3, 10.0, 10.0, 10.7, 11.3, 12.0, 13.0, 13.7, 14.5, 15.7, 17.0, 19.3, 21.7, 24.3, 27.0,
    30.6, 35.5, 45.3, 85.0,
];
/// Shortest and longest time of a statement on the server, in seconds: with a rate it says how many
/// of them fit between two transactions.
const STATEMENT_S: (f64, f64) = (0.000_03, 0.000_3);
/// How long an entry of a GIN's pending list is moved: on two cores 100,000 entries took 0.4 to
/// 2.3 us each, a statement that adds some of them 30 to 300 us.
const MOVES_ENTRY: (f64, f64) = (0.004, 0.02);
/// Which part of a statement that begins a page of such a list it takes to fill and append the
/// page, which nobody has measured: next to nothing to nearly all of it.
const MISSES_PAGE: (f64, f64) = (0.05, 0.9);
/// Steps of these fractions, modulo 1, divide an interval evenly however many there are: the golden
/// section's for how soon one goes on, which counts most, and for the others powers of the root of
/// x^4 = x + 1, so that places are spread evenly in all of them. By the last one half of the quiet
/// machines, half of the busy ones, and half of every other one have one processor.
const STEPS: [f64; 6] = [
    0.819_172_513_396_164_4,
    0.618_033_988_749_894_9,
    0.671_043_606_703_789_2,
    0.549_700_477_901_971,
    0.450_299_522_098_096,
    0.632,
];

/// What is known of the clients of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// Transactions a second of all clients, if they come at a rate.
    pub rate_per_s: Option<f64>,
    /// How often they stood still on a server.
    pub standing: Option<Standing>,
    /// Times of their sessions.
    pub machine: MachineSpec,
    /// How many of these are at work at a time, in the mean.
    pub at_work: Option<f64>,
}

/// Which processors backends share: a statement begins there when one of those before it has ended
/// or has lost its processor, unless that stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// One for all of them.
    One,
    /// So many, with the clients' program.
    WithClients(usize),
    /// The same, which serves all clients that have an answer when it wakes: on a quiet machine
    /// they come to be in step.
    InStep(usize),
    /// Each has its own.
    None,
}

impl Shared {
    /// Where nobody is in step: each has its own, unless there are known to be fewer.
    pub fn of(processors: Option<usize>, clients: usize) -> Self {
        match processors {
            Some(count) if count < clients => Self::WithClients(count),
            _ => Self::None,
        }
    }

    /// Nobody waits for a processor where more are at work than there are: they stop in the middle
    /// of their statements then, whose times have these stops in them.
    fn for_so_many(self, at_work: f64) -> Self {
        #[allow(clippy::cast_precision_loss)] // few
        let count = self.count() as f64;
        if at_work > count { Self::None } else { self }
    }

    /// How backends come by a processor: soon and hardly ever in need of one, or late and often,
    /// both from 0 to 1, where work takes so long.
    fn processor(self, of_work: f64, late: f64, loaded: f64) -> Processors {
        let (runs_again, loses) = match self {
            Self::One | Self::WithClients(_) => (RUNS_AGAIN, LOSES),
            Self::InStep(_) | Self::None => (RUNS_AGAIN_OWN, LOSES_OWN),
        };
        Processors {
            runs_again: of_work * within(runs_again, late),
            loses: within(loses, loaded),
        }
    }

    /// How many there are; 0 where each has its own.
    pub const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::WithClients(count) | Self::InStep(count) => count,
            Self::None => 0,
        }
    }
}

/// Means by which a schedule draws its times, in times of a statement.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// A statement whose transaction goes on, and the COMMIT of one.
    pub statement: f64,
    pub commit: f64,
    /// Between two statements of a transaction.
    pub pause: f64,
    /// Between two transactions; with a rate: of all clients.
    pub between: f64,
    /// Between two calls, in times of one.
    pub between_calls: f64,
    /// Of the distribution of pauses within a transaction.
    pub shape: u32,
    /// Until one that has waited goes on.
    pub wake: f64,
    /// How backends come by a processor that extend a table.
    pub processor: Processors,
    /// Its place in the ranges of that, from a quiet machine to a busy one: how soon, how often.
    late: f64,
    loaded: f64,
    /// Which part of a statement that begins a page of such a list others do not see the page, in
    /// thousandths.
    pub misses_page: u32,
    /// To move an entry out of a GIN's pending list.
    pub moves_entry: f64,
    pub shared: Shared,
    /// Processors of backends and clients, where that is known.
    pub processors: Option<usize>,
    /// A second.
    pub second: f64,
    /// By client: how long its pauses are, in those of an even one.
    pub pauses: Vec<f64>,
    /// `None` at a rate, where a transaction is much shorter than the time between two.
    pub standing: Option<PlacedStanding>,
}

impl Machine {
    /// The machine of a seed; of what is known nothing is drawn, and `uniform` draws from above 0
    /// to 1.
    pub fn of_seed(
        clients: usize,
        seed: u64,
        asked: Asked,
        mut uniform: impl FnMut() -> f64,
    ) -> Self {
        let Asked {
            rate_per_s,
            standing: measured,
            machine: known,
            at_work,
        } = asked;
        #[allow(clippy::cast_precision_loss)] // any place will do
        let [slow, late, loaded, stalled, away, apart] =
            STEPS.map(|step| (0.5 + seed as f64 * step).fract());
        let own = OwnTimes::of(&known, within(STATEMENT_S, slow));
        let times = |us: Option<f64>| us.map(|us| us / own.whole_us);
        let beside = within(BETWEEN, away);
        let pause = times(known.pause_us);
        // At a rate the time between two transactions says nothing of the pauses within them.
        let between = times(known.between_us.filter(|_| rate_per_s.is_none()))
            .or_else(|| pause.map(|pause| pause * beside))
            .unwrap_or_else(|| own.of_work() * within(PAUSE, slow));
        let pause = pause.unwrap_or(between / beside);
        let second = 1e6 / own.whole_us;
        let mut even = || (UNEVEN_MAX * loaded * (2.0 * uniform() - 1.0)).exp();
        let processors = known.processors.map(|count| count as usize);
        let share = match (apart < 0.5, slow < 0.5) {
            _ if processors == Some(1) => Shared::WithClients(1),
            (true, _) => Shared::One,
            (false, true) => Shared::InStep(processors.unwrap_or(2)),
            (false, false) => Shared::of(processors, clients),
        };
        let shared = share.for_so_many(at_work.unwrap_or(0.0));
        let share = within(STANDING, loaded);
        let drawn = Standing {
            share,
            lengths: LENGTHS.to_vec(),
            inside: None,
        };
        let of = measured.unwrap_or(drawn);
        let unknown = (0.0, (INSIDE_MAX / of.share).min(1.0));
        let (least, most) = of.inside.unwrap_or(unknown);
        let inside = least + (most - least) * stalled;
        let standing = rate_per_s.is_none().then(|| PlacedStanding {
            of,
            inside,
            woken: within(WOKEN_STANDS_STILL, loaded),
        });
        Self {
            statement: own.statement,
            commit: own.commit,
            pause,
            between: rate_per_s.map_or(between, |rate| second / rate),
            between_calls: within(CALL_PAUSE, slow),
            shape: whole(within(SHAPE, slow)),
            wake: times(known.wake_us).unwrap_or_else(|| pause * within(WAKE, late)),
            processor: shared.processor(own.of_work(), late, loaded),
            late,
            loaded,
            misses_page: thousandths(MISSES_PAGE, late),
            moves_entry: own.of_work() * within(MOVES_ENTRY, stalled),
            shared,
            processors,
            second,
            pauses: std::iter::repeat_with(&mut even).take(clients).collect(),
            standing,
        }
    }
}

/// How long an UPDATE by key takes that is a transaction of its own, and which part of that its
/// statement and its COMMIT are.
struct OwnTimes {
    whole_us: f64,
    statement: f64,
    commit: f64,
}

impl Machine {
    /// Backends share processors so instead.
    pub fn share(&mut self, shared: Shared) {
        self.shared = shared;
        self.processor = shared.processor(self.of_work(), self.late, self.loaded);
    }

    /// How long work takes that is no COMMIT, in the times that the ranges above are in: these were
    /// measured where COMMIT waits for no disk, and a slow one makes nothing else longer.
    pub fn of_work(&self) -> f64 {
        self.statement / STATEMENT
    }
}

impl OwnTimes {
    /// As of the machine.
    fn of_work(&self) -> f64 {
        self.statement / STATEMENT
    }

    /// Of what is known; `drawn_s` is the time of the whole where nothing is.
    fn of(known: &MachineSpec, drawn_s: f64) -> Self {
        let (statement, commit) = match (known.statement_us, known.commit_us) {
            (Some(statement), Some(commit)) => (statement, commit),
            (Some(statement), None) => (statement, statement * COMMIT / STATEMENT),
            (None, Some(commit)) => (1e6 * drawn_s * STATEMENT, commit),
            (None, None) => (1e6 * drawn_s * STATEMENT, 1e6 * drawn_s * COMMIT),
        };
        let whole_us = statement + commit;
        Self {
            whole_us,
            statement: statement / whole_us,
            commit: commit / whole_us,
        }
    }
}

/// The number at this place of a range, from 0 to 1, evenly on a logarithmic scale.
fn within((low, high): (f64, f64), place: f64) -> f64 {
    low * (high / low).powf(place)
}

/// The nearest whole number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // few
fn whole(number: f64) -> u32 {
    number.round() as u32
}

/// A share within these, evenly.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share
fn thousandths((low, high): (f64, f64), place: f64) -> u32 {
    (1000.0 * (low + (high - low) * place)) as u32
}

/// What a reader is told of it.
pub(crate) fn assumed(
    run: &RunSpec,
    is_measured: bool,
    has_course: bool,
    at_work: Option<f64>,
) -> String {
    let RunSpec {
        clients,
        rate_per_s,
        machine,
        ..
    } = run;
    let pauses = pauses_assumed(*rate_per_s, machine);
    let standing = match (*rate_per_s, is_measured) {
        (Some(_), _) => String::new(),
        (None, true) => ", and clients stand still as often as on the server".to_owned(),
        (None, false) => format!(
            ", and {} to {} % of the transactions stand still, for {:.0} to {:.0} of another \
             client's",
            100.0 * STANDING.0,
            100.0 * STANDING.1,
            LENGTHS[0],
            LENGTHS[LENGTHS.len() - 1]
        ),
    };
    let wakes = match machine.wake_us {
        Some(us) => format!("{us} us"),
        None => format!("{} to {} times a pause", WAKE.0, WAKE.1),
    };
    let processors = processors_assumed(machine.processors, *clients, has_course, at_work);
    let uneven = if has_course {
        "clients come on beside each other as on the server".to_owned()
    } else {
        let slowest = UNEVEN_MAX.exp();
        format!("a client is up to {slowest:.1} times as slow as an even one")
    };
    format!(
        "when statements of {clients} clients begin is drawn, by each run on a machine of its own, \
         from a quiet to a busy one: {pauses}, who waits for a row goes on {wakes} after it is \
         free, {processors}, {uneven}{standing}"
    )
}

/// What a reader is told of processors, where so many sessions are at work at a time.
fn processors_assumed(
    known: Option<u32>,
    clients: u32,
    has_course: bool,
    at_work: Option<f64>,
) -> String {
    let suffices = |count: u32| f64::from(count) >= at_work.unwrap_or(0.0);
    let mut kinds = Vec::new();
    if known != Some(1) && suffices(1) {
        kinds.push("one processor".to_owned());
    }
    let in_step = known.unwrap_or(2);
    if known != Some(1) && !has_course && suffices(in_step) {
        kinds.push(format!("{in_step} with clients in step"));
    }
    match known {
        Some(1) if suffices(1) => kinds.push("one processor with the clients".to_owned()),
        Some(count) if count < clients && suffices(count) => {
            kinds.push(format!("{count} with the clients"));
        }
        _ if kinds.is_empty() => return "each backend has its own processor".to_owned(),
        _ => kinds.push("each its own".to_owned()),
    }
    let last = kinds.len() - 1;
    if last > 0 {
        kinds[last].insert_str(0, "or ");
    }
    format!("all backends have {}", kinds.join(", "))
}

/// What a reader is told of statements and the pauses between them.
fn pauses_assumed(rate_per_s: Option<f64>, machine: &MachineSpec) -> String {
    let own = match (machine.statement_us, machine.commit_us) {
        (None, None) if rate_per_s.is_some() || machine.says_times() => {
            let us = |seconds: f64| (1e6 * seconds).round();
            let (shortest, longest) = STATEMENT_S;
            format!("a statement takes {} to {} us", us(shortest), us(longest))
        }
        (None, None) => String::new(),
        (statement, commit) => {
            let each = [("an UPDATE", statement), ("a COMMIT", commit)];
            let known = each.iter().filter_map(|(what, us)| us.map(|us| (what, us)));
            let said: Vec<String> = known.map(|(what, us)| format!("{what} {us} us")).collect();
            format!("{} at work in the mean", said.join(", "))
        }
    };
    let between = machine.between_us.filter(|_| rate_per_s.is_none());
    let (least, most) = BETWEEN;
    let pauses = match (machine.pause_us, between) {
        (None, None) => format!(
            "pauses between transactions are {} to {} times as long as a statement and {least} to \
             {most} times as long as those within one",
            PAUSE.0, PAUSE.1
        ),
        (Some(pause), None) => format!(
            "pauses are {pause} us within a transaction, {least} to {most} times that between two"
        ),
        (None, Some(between)) => format!(
            "pauses are {between} us between transactions, {least} to {most} times as long as \
             those within one"
        ),
        (Some(pause), Some(between)) => {
            format!("pauses are {pause} us within a transaction, {between} us between two")
        }
    };
    let said = [own, pauses].into_iter().filter(|said| !said.is_empty());
    said.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_seed(seed: u64, standing: Option<Standing>) -> Machine {
        let asked = Asked {
            standing,
            ..Asked::default()
        };
        Machine::of_seed(4, seed, asked, || 1.0)
    }

    /// Of eight seeds some have long pauses and some short ones, whether they wake soon or late;
    /// together they reach into the outer fifths of each range.
    #[test]
    fn eight_seeds_go_from_quiet_to_busy() {
        let machines: Vec<_> = (0..8).map(|seed| of_seed(seed, None)).collect();
        let place = |(low, high): (f64, f64), value: f64| (value / low).ln() / (high / low).ln();
        let places = machines
            .iter()
            .map(|one| [place(PAUSE, one.between), place(WAKE, one.wake / one.pause)]);
        let places: Vec<[f64; 2]> = places.collect();
        for of in 0..2 {
            let mut along: Vec<f64> = places.iter().map(|place| place[of]).collect();
            along.sort_by(f64::total_cmp);
            assert!(along[0] < 0.2 && along[7] > 0.8, "{along:?}");
            assert!(along.windows(2).all(|two| two[1] - two[0] < 0.3));
        }
        for quarter in [[0.0, 0.0], [0.0, 0.5], [0.5, 0.0], [0.5, 0.5]] {
            let lies = |place: &[f64; 2]| {
                (0..2).all(|of| (quarter[of]..quarter[of] + 0.5).contains(&place[of]))
            };
            assert!(places.iter().any(lies), "{quarter:?}: {places:?}");
        }
    }

    /// What a profile says is not drawn, whatever the seed; the rest is.
    #[test]
    fn a_known_machine_is_not_drawn() {
        let machine = MachineSpec {
            statement_us: Some(10.0),
            commit_us: Some(30.0),
            pause_us: Some(80.0),
            between_us: Some(120.0),
            ..MachineSpec::default()
        };
        let of = |seed| {
            let asked = Asked {
                machine,
                ..Asked::default()
            };
            Machine::of_seed(4, seed, asked, || 1.0)
        };
        for seed in 0..8 {
            let one = of(seed);
            assert_eq!((one.statement, one.commit), (0.25, 0.75));
            assert_eq!((one.pause, one.between, one.second), (2.0, 3.0, 25_000.0));
        }
        assert!((of(0).wake - of(1).wake).abs() > 0.1);
    }

    /// A pause alone says how long one between two transactions may be, and a COMMIT alone leaves
    /// the statement to be drawn.
    #[test]
    fn what_is_known_in_part_counts() {
        for seed in 0..8 {
            let asked = |machine| Asked {
                machine,
                ..Asked::default()
            };
            let pause_us = Some(50.0);
            let known = MachineSpec {
                statement_us: Some(45.0),
                pause_us,
                ..MachineSpec::default()
            };
            let one = Machine::of_seed(4, seed, asked(known), || 1.0);
            assert!((one.pause - 0.5).abs() < 1e-12 && (one.commit - COMMIT).abs() < 1e-12);
            assert!((1.2..=2.8).contains(&(one.between / one.pause)));
            let slow = MachineSpec {
                commit_us: Some(5000.0),
                ..MachineSpec::default()
            };
            let one = Machine::of_seed(4, seed, asked(slow), || 1.0);
            assert!(one.commit > 0.95 && one.statement < 0.05);
        }
    }

    /// What was measured is not drawn.
    #[test]
    fn a_measured_run_stands_still_as_it_did() {
        let standing = Standing {
            share: 0.2,
            lengths: vec![3.0],
            inside: None,
        };
        let of = |seed, measured| of_seed(seed, measured).standing.map(|placed| placed.of);
        assert_eq!(of(5, Some(standing.clone())), Some(standing));
        assert_ne!(of(5, None), of(6, None));
    }
}
