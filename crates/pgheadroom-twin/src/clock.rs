//! Simulated time: when each transaction of a run begins.
//!
//! ```text
//! even      |....|....|....|....   so many a second: clients that wait for nothing
//! arrivals  |.|......|..|.....|.   at random within the duration: pgbench --rate
//! ```
//!
//! What happens between transactions (autovacuum, checkpoints) is placed on the same axis. How
//! long a transaction takes is an input, not a result: the twin knows no machine.

use crate::pgbench::Prng;

/// How fast transactions follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// So many a second, all clients together, evenly.
    Even {
        /// Transactions a second.
        per_s: f64,
    },
    /// They arrive independently of each other within so many seconds.
    ///
    /// Source: `getPoissonRand`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    Arrivals {
        /// Seconds of the run.
        duration_s: f64,
    },
}

/// The time of a run, from 0.
#[derive(Debug, Clone)]
pub struct Clock {
    pace: Pace,
    transactions: u64,
    begun: u64,
    now_s: f64,
    prng: Prng,
}

impl Clock {
    /// A clock at 0 for so many transactions.
    #[must_use]
    pub fn new(pace: Pace, transactions: u64, seed: u64) -> Self {
        Self {
            pace,
            transactions,
            begun: 0,
            now_s: 0.0,
            prng: Prng::from_seed(seed),
        }
    }

    /// The time now, in seconds.
    #[must_use]
    pub const fn now_s(&self) -> f64 {
        self.now_s
    }

    /// The next transaction begins; when.
    ///
    /// Given their number, arrivals are independent and uniform over the duration: the first of
    /// the k that are left is the smallest of k uniform numbers.
    #[allow(clippy::cast_precision_loss)] // fewer than 2^53
    pub fn begin(&mut self) -> f64 {
        match self.pace {
            Pace::Even { per_s } => self.now_s = self.begun as f64 / per_s,
            Pace::Arrivals { duration_s } => {
                let left = self.transactions.saturating_sub(self.begun).max(1) as f64;
                let uniform = self.prng.random(1, 1_000_000_000) as f64 / 1e9;
                let share = 1.0 - uniform.powf(1.0 / left);
                self.now_s += (duration_s - self.now_s) * share;
            }
        }
        self.begun += 1;
        self.now_s
    }

    /// When the run ends.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn end_s(&self) -> f64 {
        match self.pace {
            Pace::Even { per_s } => self.transactions as f64 / per_s,
            Pace::Arrivals { duration_s } => duration_s,
        }
    }
}

/// A number from 0 to 1 for each seed: of any number of them, evenly spread. `kind` tells
/// independent quantities apart.
///
/// Source: the additive recurrence over 1/p, 1/p^2 and 1/p^3 with p^3 = p + 1 (Martin Roberts, The
/// unreasonable effectiveness of quasirandom sequences, 2018).
#[must_use]
#[allow(clippy::cast_precision_loss)] // any place will do
pub(crate) fn phase(seed: u64, kind: Phase) -> f64 {
    let step = match kind {
        Phase::Autovacuum => 0.754_877_666_246_692_8,
        Phase::WalSegment => 0.569_840_290_998_053_3,
        Phase::Second => 0.430_159_709_001_946_7,
        Phase::EagerScan => 0.618_033_988_749_894_9,
        Phase::Statistics => 0.819_172_513_396_164_4,
    };
    (0.5 + seed as f64 * step).fract()
}

/// What of a server's state nobody knows when a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// How much of the time between two looks of autovacuum has passed.
    Autovacuum,
    /// How full the current WAL segment is.
    WalSegment,
    /// How much of the current second has passed; the checkpointer counts whole ones.
    Second,
    /// Where in its first region an eager scan begins.
    EagerScan,
    /// How many of the values that may be out of line an ANALYZE has moved there.
    Statistics,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evenly spaced transactions end where the run does.
    #[test]
    fn even_transactions() {
        let mut clock = Clock::new(Pace::Even { per_s: 4.0 }, 8, 1);
        let times: Vec<f64> = (0..8).map(|_| clock.begin()).collect();
        assert_eq!(times, [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]);
        assert!((clock.end_s() - 2.0).abs() < 1e-9);
    }

    /// Arrivals ascend, stay inside the duration, and are spread over it as uniform numbers are.
    #[test]
    fn arrivals_fill_the_duration() {
        let mut clock = Clock::new(Pace::Arrivals { duration_s: 10.0 }, 10_000, 7);
        let times: Vec<f64> = (0..10_000).map(|_| clock.begin()).collect();
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(*times.last().unwrap() <= clock.end_s());
        let before = |limit: f64| times.iter().filter(|&&time| time < limit).count();
        for quarter in 1..=3_u32 {
            let seen = before(2.5 * f64::from(quarter));
            let expected = 2_500 * quarter as usize;
            assert!(seen.abs_diff(expected) < 200, "{seen} before {quarter}/4");
        }
    }

    /// Seeds spread a phase evenly: eight of them leave no gap of a quarter.
    #[test]
    fn phases_are_spread() {
        let kinds = [
            Phase::Autovacuum,
            Phase::WalSegment,
            Phase::Second,
            Phase::EagerScan,
            Phase::Statistics,
        ];
        for kind in kinds {
            let mut places: Vec<f64> = (0..8).map(|seed| phase(seed, kind)).collect();
            places.sort_by(f64::total_cmp);
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] < 0.25));
        }
    }
}
