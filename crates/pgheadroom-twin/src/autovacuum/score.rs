//! What counts in the order in which a worker of autovacuum takes tables, from 19 on.
//!
//! Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (19rc1).

/// What the components of a table's score are multiplied by (`autovacuum_*_score_weight`, 19).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreWeights {
    /// Ages of transactions, and of multixacts.
    pub freeze: [f64; 2],
    /// Dead rows.
    pub vacuum: f64,
    /// Inserted rows.
    pub insert: f64,
    /// Rows that have changed since the last ANALYZE.
    pub analyze: f64,
}

impl ScoreWeights {
    /// Whether tables are taken by their score: with no weight they lie as to 18.
    ///
    /// Source: `do_autovacuum`, src/backend/postmaster/autovacuum.c (19rc1).
    #[must_use]
    pub fn count(&self) -> bool {
        let others = [self.vacuum, self.insert, self.analyze];
        self.freeze
            .iter()
            .chain(&others)
            .any(|&weight| weight > 0.0)
    }

    /// The score of ages: over what they may be, and to a power of theirs once VACUUM would hurry.
    ///
    /// `max_ages` are the table's, `failsafe_ages` those of the server.
    ///
    /// Source: `relation_needs_vacanalyze`, as above (19rc1).
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an int there
    pub fn of_ages(&self, ages: [u32; 2], max_ages: [u32; 2], failsafe_ages: [u32; 2]) -> f64 {
        let of = |n: usize| {
            let weight = self.freeze[n];
            let failsafe = (f64::from(failsafe_ages[n]) / weight.max(1.0)) as u32;
            let age = f64::from(ages[n]);
            let mut score = age / f64::from(max_ages[n].max(1));
            if ages[n] >= failsafe {
                score = score.powf((age / 1e8).max(1.0));
            }
            score * weight
        };
        of(0).max(of(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: ScoreWeights = ScoreWeights {
        freeze: [1.0; 2],
        vacuum: 1.0,
        insert: 1.0,
        analyze: 1.0,
    };

    /// Ages over what they may be; beyond the failsafe age they outweigh all else.
    #[test]
    fn scores_of_ages() {
        let max = [200_000_000, 400_000_000];
        let failsafe = [1_600_000_000; 2];
        let of = |weights: ScoreWeights, ages| weights.of_ages(ages, max, failsafe);
        assert!((of(WEIGHTS, [100_000_000, 0]) - 0.5).abs() < 1e-9);
        assert!((of(WEIGHTS, [100_000_000, 800_000_000]) - 2.0).abs() < 1e-9);
        let eight_fold = of(WEIGHTS, [1_600_000_000, 0]);
        assert!((eight_fold / 8.0_f64.powi(16) - 1.0).abs() < 1e-9);
        let doubled = ScoreWeights {
            freeze: [2.0, 1.0],
            ..WEIGHTS
        };
        let sooner = of(doubled, [800_000_000, 0]);
        assert!((sooner / (2.0 * 4.0_f64.powi(8)) - 1.0).abs() < 1e-9);
        let none = ScoreWeights {
            freeze: [0.0; 2],
            vacuum: 0.0,
            insert: 0.0,
            analyze: 0.0,
        };
        assert!(!none.count() && WEIGHTS.count());
    }
}
