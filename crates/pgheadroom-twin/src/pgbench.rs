//! pgbench's random numbers and built-in scripts, so that a run with `--random-seed` is repeated
//! draw by draw.
//!
//! ```text
//! --random-seed -> base sequence -> one generator per client, in order
//!                                -> :default_seed of hash() and permute()
//!                                -> with -j 1: choice of scripts, throttling, log sampling
//! ```
//!
//! Source: src/bin/pgbench/pgbench.c and src/common/pg_prng.c (REL_15_STABLE, REL_18_STABLE,
//! which agree). Before 15 the generator is another one (`erand48`) and is left out, as are
//! retries of failed transactions. `ln`, `sin` and `powf` are the platform's, as in pgbench.

/// Rows of `pgbench_branches` at scale 1. Source: `nbranches`, pgbench.c.
pub const BRANCHES_PER_SCALE: i64 = 1;
/// Rows of `pgbench_tellers` at scale 1. Source: `ntellers`, pgbench.c.
pub const TELLERS_PER_SCALE: i64 = 10;
/// Rows of `pgbench_accounts` at scale 1. Source: `naccounts`, pgbench.c.
pub const ACCOUNTS_PER_SCALE: i64 = 100_000;
/// Smallest parameter of `random_gaussian`. Source: `MIN_GAUSSIAN_PARAM`, pgbench.c.
pub const MIN_GAUSSIAN_PARAM: f64 = 2.0;
/// Smallest parameter of `random_zipfian`. Source: `MIN_ZIPFIAN_PARAM`, pgbench.c.
pub const MIN_ZIPFIAN_PARAM: f64 = 1.001;
/// Largest parameter of `random_zipfian`. Source: `MAX_ZIPFIAN_PARAM`, pgbench.c.
pub const MAX_ZIPFIAN_PARAM: f64 = 1000.0;

/// State of the generator xoroshiro128**.
///
/// Source: `pg_prng_state`, src/include/common/pg_prng.h (REL_18_STABLE).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prng {
    s0: u64,
    s1: u64,
}

impl Prng {
    /// A generator that starts from this seed.
    ///
    /// Source: `pg_prng_seed` and `splitmix64`, src/common/pg_prng.c (REL_18_STABLE).
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
        let s0 = splitmix64(seed.wrapping_add(GAMMA));
        let s1 = splitmix64(seed.wrapping_add(GAMMA).wrapping_add(GAMMA));
        if s0 == 0 && s1 == 0 {
            // All zeroes would stay so; Knuth's parameters instead.
            return Self {
                s0: 0x5851_F42D_4C95_7F2D,
                s1: 0x1405_7B7E_F767_814F,
            };
        }
        Self { s0, s1 }
    }

    /// A generator as `setseed` sets it, by a number from -1 to 1.
    ///
    /// Source: `pg_prng_fseed`, src/common/pg_prng.c (REL_18_STABLE).
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss
    )] // as there
    #[must_use]
    pub const fn from_fraction(seed: f64) -> Self {
        let seed = ((1_u64 << 52) - 1) as f64 * seed;
        Self::from_seed(seed as i64 as u64)
    }

    /// The next 64 bits.
    ///
    /// Source: `xoroshiro128ss`, src/common/pg_prng.c (REL_18_STABLE).
    pub const fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let sx = self.s1 ^ s0;
        let value = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        value
    }

    /// A number from 0 to `range`, both included; draws nothing when `range` is 0.
    ///
    /// Source: `pg_prng_uint64_range`, src/common/pg_prng.c (REL_18_STABLE).
    fn up_to(&mut self, range: u64) -> u64 {
        if range == 0 {
            return 0;
        }
        let shift = range.leading_zeros();
        loop {
            let value = self.next_u64() >> shift;
            if value <= range {
                return value;
            }
        }
    }

    /// A fraction in [0, 1) of 52 bits.
    ///
    /// Source: `pg_prng_double`, src/common/pg_prng.c (REL_18_STABLE).
    #[allow(clippy::cast_precision_loss)] // 52 bits fit exactly
    pub fn fraction(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * SCALE
    }

    /// pgbench's `random(min, max)`: uniform, both ends included.
    ///
    /// # Panics
    /// When `min` is greater than `max`, which pgbench refuses.
    ///
    /// Source: `getrand`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    pub fn random(&mut self, min: i64, max: i64) -> i64 {
        assert!(min <= max, "empty range given to random");
        min.wrapping_add_unsigned(self.up_to(max.abs_diff(min)))
    }

    /// pgbench's `random_gaussian(min, max, parameter)`.
    ///
    /// # Panics
    /// When `min` is greater than `max`, or the parameter below [`MIN_GAUSSIAN_PARAM`].
    ///
    /// Source: `getGaussianRand`, src/bin/pgbench/pgbench.c, and `pg_prng_double_normal`,
    /// src/common/pg_prng.c (REL_18_STABLE; in one function until 15, with the same result).
    pub fn random_gaussian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        assert!(min <= max, "empty range given to random");
        assert!(parameter >= MIN_GAUSSIAN_PARAM, "parameter {parameter}");
        let deviation = loop {
            let radius = 1.0 - self.fraction();
            let angle = 1.0 - self.fraction();
            let normal = (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).sin();
            if normal >= -parameter && normal < parameter {
                break normal;
            }
        };
        scale_to(min, max, (deviation + parameter) / (parameter * 2.0))
    }

    /// pgbench's `random_exponential(min, max, parameter)`.
    ///
    /// # Panics
    /// When `min` is greater than `max`, or the parameter is not above 0.
    ///
    /// Source: `getExponentialRand`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    pub fn random_exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        assert!(min <= max, "empty range given to random");
        assert!(parameter > 0.0, "parameter {parameter}");
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.fraction();
        // Not a fused multiply-add: pgbench rounds twice.
        scale_to(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter)
    }

    /// pgbench's `random_zipfian(min, max, parameter)`: `min` is the most frequent.
    ///
    /// # Panics
    /// When `min` is greater than `max`, or the parameter out of range.
    ///
    /// Source: `getZipfianRand` and `computeIterativeZipfian`, src/bin/pgbench/pgbench.c
    /// (REL_18_STABLE).
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // as in pgbench
    pub fn random_zipfian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        assert!(min <= max, "empty range given to random");
        assert!((MIN_ZIPFIAN_PARAM..=MAX_ZIPFIAN_PARAM).contains(&parameter));
        let count = max - min + 1;
        if count <= 1 {
            return min;
        }
        let exponent = parameter - 1.0;
        let b = 2.0_f64.powf(exponent);
        loop {
            let u = self.fraction();
            let v = self.fraction();
            let x = u.powf(-1.0 / exponent).floor();
            let t = (1.0 + 1.0 / x).powf(exponent);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
                return min - 1 + x as i64;
            }
        }
    }
}

const fn splitmix64(state: u64) -> u64 {
    let value = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // as in pgbench
fn scale_to(min: i64, max: i64, fraction: f64) -> i64 {
    min + ((max - min + 1) as f64 * fraction) as i64
}

/// pgbench's `permute(value, size, seed)`: a bijection of 0..size.
///
/// Source: `permute`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
#[must_use]
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut state = Prng::from_seed(seed as u64);
    let size = size.unsigned_abs();
    let mut v = (value as u64) % size;
    let mask_length = size.ilog2();
    let mask = (1_u64 << mask_length) - 1;
    let scramble = |v: u64, multiplier: u64, flips: u64| {
        let v = (v.wrapping_mul(multiplier) ^ flips) & mask;
        ((v << 1) & mask) | (v >> (mask_length - 1))
    };
    for _ in 0..6 {
        let multiplier = (state.next_u64() & mask) | 1;
        let flips = state.next_u64() & mask;
        if v <= mask {
            v = scramble(v, multiplier, flips);
        }
        let multiplier = (state.next_u64() & mask) | 1;
        let flips = state.next_u64() & mask;
        let from_end = size - 1 - v;
        if from_end <= mask {
            v = size - 1 - scramble(from_end, multiplier, flips);
        }
        let offset = state.up_to(size - 1);
        v = v.wrapping_add(offset) % size; // below 2^64: both are below 2^63
    }
    v as i64
}

/// pgbench's `hash_murmur2(value, seed)`, which is also `hash`.
///
/// Source: `getHashMurmur2`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
#[must_use]
pub const fn hash_murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const ROTATION: u32 = 47;
    let mut key = (value as u64).wrapping_mul(MULTIPLIER);
    key ^= key >> ROTATION;
    key = key.wrapping_mul(MULTIPLIER);
    let mut result = (seed as u64) ^ 0x3525_3c9a_de8f_4ca8;
    result = (result ^ key).wrapping_mul(MULTIPLIER);
    result ^= result >> ROTATION;
    result = result.wrapping_mul(MULTIPLIER);
    result ^= result >> ROTATION;
    result as i64
}

/// pgbench's `hash_fnv1a(value, seed)`.
///
/// Source: `getHashFnv1a`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
#[must_use]
pub fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ (seed as u64);
    let hash = value.to_le_bytes().iter().fold(start, |hash, &octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    hash as i64
}

/// The generators of a run with `-j 1`.
#[derive(Debug, Clone)]
pub struct Generators {
    /// One per client, from which its `\set` commands draw.
    pub clients: Vec<Prng>,
    /// `:default_seed`, where `hash` and `permute` are given none.
    pub default_seed: i64,
    choice: Prng,
    throttle: Prng,
}

impl Generators {
    /// The generators of `--random-seed=seed -c clients -j 1`.
    ///
    /// Source: `set_random_seed`, `main` and `initRandomState`, src/bin/pgbench/pgbench.c
    /// (REL_18_STABLE).
    #[must_use]
    pub fn new(seed: u64, clients: usize) -> Self {
        let mut base = Prng::from_seed(seed);
        let clients = (0..clients)
            .map(|_| Prng::from_seed(base.next_u64()))
            .collect();
        let default_seed = base.next_u64() as i64;
        Self {
            clients,
            default_seed,
            choice: Prng::from_seed(base.next_u64()),
            throttle: Prng::from_seed(base.next_u64()),
        }
    }

    /// How many transactions come within so many seconds of `--rate`, from its beginning on.
    ///
    /// A server that is late at the end has not begun the last of them.
    ///
    /// Source: `getPoissonRand` and `CSTATE_PREPARE_THROTTLE` in `advanceConnectionState`,
    /// src/bin/pgbench/pgbench.c (REL_18_STABLE).
    #[allow(clippy::cast_possible_truncation)] // as there
    #[must_use]
    pub fn arrivals(mut self, rate_per_s: f64, duration_s: f64) -> u64 {
        let throttle_delay_us = 1e6 / rate_per_s;
        let end_us = (duration_s * 1e6) as i64;
        let mut trigger_us = 0_i64;
        let mut found = 0;
        loop {
            let uniform = 1.0 - self.throttle.fraction();
            trigger_us += (-uniform.ln() * throttle_delay_us + 0.5) as i64;
            if trigger_us > end_us {
                return found;
            }
            found += 1;
        }
    }

    /// Which script the next transaction runs: its position among scripts of these weights.
    ///
    /// With several clients, the order in which they ask depends on time.
    ///
    /// # Panics
    /// Without scripts, or when no weight is above 0.
    ///
    /// Source: `chooseScript`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    pub fn choose_script(&mut self, weights: &[i64]) -> usize {
        if weights.len() == 1 {
            return 0;
        }
        let mut left = self.choice.random(0, weights.iter().sum::<i64>() - 1);
        for (position, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0 {
                return position;
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}

/// A built-in script.
///
/// Source: `builtin_script`, src/bin/pgbench/pgbench.c (REL_15_STABLE, REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Updates an account, a teller and a branch, and adds a line to the history.
    TpcbLike,
    /// Updates an account and adds a line to the history.
    SimpleUpdate,
    /// Reads an account.
    SelectOnly,
}

/// What a transaction of a built-in script has drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Key in `pgbench_accounts`.
    pub aid: i64,
    /// Key in `pgbench_branches`; drawn but not used by [`Builtin::SimpleUpdate`].
    pub bid: i64,
    /// Key in `pgbench_tellers`.
    pub tid: i64,
    /// What is added to the balances.
    pub delta: i64,
}

impl Builtin {
    /// Draws one transaction's variables, in the script's order; accounts may be of another scale.
    pub fn draw(self, client: &mut Prng, scale: i64, accounts_scale: i64) -> Drawn {
        let aid = client.random(1, ACCOUNTS_PER_SCALE * accounts_scale);
        if self == Self::SelectOnly {
            return Drawn {
                aid,
                bid: 0,
                tid: 0,
                delta: 0,
            };
        }
        Drawn {
            aid,
            bid: client.random(1, BRANCHES_PER_SCALE * scale),
            tid: client.random(1, TELLERS_PER_SCALE * scale),
            delta: client.random(-5000, 5000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A permutation takes every value once, whatever the size.
    #[test]
    fn permutations_are_bijections() {
        for size in 1..200 {
            let mut seen: Vec<i64> = (0..size).map(|value| permute(value, size, 1)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..size).collect::<Vec<_>>());
        }
    }

    /// A range of one value takes nothing from the generator.
    #[test]
    fn a_single_value_draws_nothing() {
        let mut one = Prng::from_seed(7);
        let mut other = one.clone();
        assert_eq!(one.random(5, 5), 5);
        assert_eq!(one.next_u64(), other.next_u64());
    }
}
