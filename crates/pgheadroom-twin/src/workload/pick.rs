//! Which keys an operation takes, drawn as pgbench's scripts draw them.
//!
//! Source: `scripts.py` of the Python side, which writes those scripts: the two agree draw by draw.

use crate::pgbench::{Prng, permute};
use crate::profile::{Distribution, PickSpec};
use crate::workload::living::Living;

/// One part in a million: how exactly frequencies are drawn.
const MILLION: f64 = 1_000_000.0;

/// Which keys an operation takes: of 1 to the table's rows as loaded, or of the living ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pick {
    /// All alike.
    Uniform,
    /// pgbench's `random_zipfian` with this parameter.
    Zipfian(f64),
    /// pgbench's `random_gaussian` with this parameter.
    Gaussian(f64),
    /// With probability `weight` among the first `rows_frac` of the keys, else among the others.
    HotSet {
        /// Share of the rows that is hot.
        rows_frac: f64,
        /// Share of the operations that goes there.
        weight: f64,
    },
    /// One statement's keys after the other's, all clients in turn.
    Sequential,
    /// The same where the number of keys is drawn: each client goes around in its own part of the
    /// table, and begins where its last statement ended.
    Following,
    /// Every nth, around and around, all clients in turn.
    Stride(i64),
    /// The key that this client inserted last; one of the highest loaded before that.
    Newest,
    /// The smallest of this client's loaded keys that it has not tried to delete, and those after
    /// it.
    Oldest,
    /// One of the rows that are there.
    Living(Living),
    /// Those that a query finds at the head of a queue.
    Head,
}

impl Pick {
    /// The pick that a profile names, for a statement over at most so many keys.
    ///
    /// # Panics
    /// When a parameter is missing, which `profile::ranges` has checked.
    #[must_use]
    pub fn of(spec: &PickSpec, width: i64) -> Self {
        let given = |value: Option<f64>| value.expect("the distribution's parameter");
        let age = |value: Option<i64>| value.expect("an age");
        match spec.distribution {
            Distribution::Uniform if spec.among.is_some() => Self::Living(Living::Uniform),
            Distribution::Zipfian if spec.among.is_some() => {
                Self::Living(Living::Zipfian(given(spec.theta)))
            }
            Distribution::Gaussian if spec.among.is_some() => {
                Self::Living(Living::Gaussian(given(spec.param)))
            }
            Distribution::Uniform => Self::Uniform,
            Distribution::Zipfian => Self::Zipfian(given(spec.theta)),
            Distribution::Gaussian => Self::Gaussian(given(spec.param)),
            Distribution::HotSet => Self::HotSet {
                rows_frac: given(spec.rows_frac),
                weight: given(spec.weight),
            },
            Distribution::Sequential => Self::Sequential,
            Distribution::Stride => Self::Stride(spec.n.expect("the stride")),
            Distribution::Newest => Self::Newest,
            Distribution::Oldest if width > 1 => Self::Oldest,
            Distribution::Oldest => {
                Self::Living(spec.within.map_or(Living::Oldest, Living::Within))
            }
            Distribution::Age => Self::Living(Living::Age {
                min: age(spec.min),
                max: age(spec.max),
            }),
            Distribution::Head => Self::Head,
        }
    }
}

/// A frequency as the bound of a draw from 1 to 1,000,000; Python rounds halves to even.
#[allow(clippy::cast_possible_truncation)] // a part of a million
pub(super) fn millionths(frac: f64) -> i64 {
    (frac * MILLION).round_ties_even() as i64
}

/// A draw from 1 to 1,000,000.
pub(super) fn draw(client: &mut Prng) -> i64 {
    client.random(1, 1_000_000)
}

/// What of a client's past decides about its next key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    /// The client's number, from 0, and how many there are.
    pub client: i64,
    pub clients: i64,
    /// How often it has attempted this operation; for [`Pick::Following`] over how many keys.
    pub attempts: i64,
    /// The key that it inserted last into this table; one of the highest loaded before that.
    pub newest: i64,
    /// How far its deletes of the oldest have come in this table.
    pub deleted: i64,
}

/// The first key of a statement over at most `width` keys of a table of `rows`.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // keys are below 2^53
#[inline]
pub(super) fn key(
    pick: Pick,
    scatter: bool,
    (rows, width): (i64, i64),
    past: Past,
    client: &mut Prng,
) -> i64 {
    let turn = past.client + past.attempts * past.clients;
    let key = match pick {
        Pick::Uniform => client.random(1, rows),
        Pick::Zipfian(theta) => client.random_zipfian(1, rows, theta),
        Pick::Gaussian(parameter) => client.random_gaussian(1, rows, parameter),
        Pick::HotSet { rows_frac, weight } => {
            let hot = ((rows_frac * rows as f64) as i64).max(1);
            if draw(client) <= millionths(weight) {
                client.random(1, hot)
            } else {
                client.random(hot + 1, rows)
            }
        }
        Pick::Sequential => 1 + turn * width % rows,
        Pick::Following => {
            let part = rows / past.clients;
            1 + past.client * part + past.attempts % part
        }
        Pick::Stride(step) => 1 + turn * step % rows,
        Pick::Newest => past.newest,
        Pick::Oldest => {
            let oldest = past.client + 1 + past.deleted;
            // Nothing is left: keys that no row has.
            if oldest > rows { -width } else { oldest }
        }
        Pick::Living(_) => unreachable!("living rows are picked among a client's own"),
        Pick::Head => unreachable!("a statement finds the head itself"),
    };
    if scatter {
        1 + permute(key - 1, rows, 1)
    } else {
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(client: i64, attempts: i64) -> Past {
        Past {
            client,
            clients: 2,
            attempts,
            newest: 9,
            deleted: 0,
        }
    }

    fn taken(pick: Pick, width: i64, past: Past) -> i64 {
        key(pick, false, (10, width), past, &mut Prng::from_seed(1))
    }

    /// Clients take turns, and go around together.
    #[test]
    fn clients_take_turns() {
        let keys = |pick, width, client| -> Vec<i64> {
            (0..4)
                .map(|n| taken(pick, width, past(client, n)))
                .collect()
        };
        assert_eq!(keys(Pick::Sequential, 1, 0), [1, 3, 5, 7]);
        assert_eq!(keys(Pick::Sequential, 2, 1), [3, 7, 1, 5]);
        assert_eq!(keys(Pick::Stride(3), 1, 1), [4, 10, 6, 2]);
        let following = |passed| taken(Pick::Following, 3, past(1, passed));
        assert_eq!([0, 4, 5, 6].map(following), [6, 10, 6, 7]);
    }

    /// The newest key is taken as it is; the oldest come to an end.
    #[test]
    fn ends_of_the_table() {
        assert_eq!(taken(Pick::Newest, 1, past(1, 0)), 9);
        let at = |deleted| Past {
            deleted,
            ..past(1, 0)
        };
        assert_eq!(taken(Pick::Oldest, 3, at(8)), 10);
        assert_eq!(taken(Pick::Oldest, 3, at(10)), -3);
    }

    /// Python's `round` decides what a frequency of half a millionth is.
    #[test]
    fn halves_go_to_even() {
        assert_eq!(millionths(0.000_000_5), 0);
        assert_eq!(millionths(0.000_001_5), 2);
        assert_eq!(millionths(1.0), 1_000_000);
    }
}
