//! Whether a table needs to be vacuumed or analyzed.
//!
//! Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (REL_15_STABLE,
//! REL_18_STABLE, 19rc1), in its single precision. Leaves out wraparound.

use crate::autovacuum::options::Thresholds;
use crate::autovacuum::score::ScoreWeights;
use crate::autovacuum::statistics::Shown;

/// What the catalogue has on a table (`pg_class`).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Class {
    /// Rows, as VACUUM or ANALYZE last estimated them.
    pub reltuples: f64,
    /// Pages then.
    pub relpages: u32,
    /// Pages marked all-frozen then.
    pub relallfrozen: u32,
}

/// What a table needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// VACUUM.
    pub vacuum: bool,
    /// ANALYZE.
    pub analyze: bool,
}

/// Rows above which a table needs something.
#[derive(Debug, Clone, Copy)]
struct Limits {
    vacuum: f32,
    insert: f32,
    analyze: f32,
}

impl Thresholds {
    /// What a table needs by its statistics. `by_unfrozen_share`: insertions count by the share
    /// of the table that is not frozen (from 18 on).
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // the server's float4
    pub fn needs(&self, shown: Shown, class: Class, by_unfrozen_share: bool) -> Needs {
        if !self.is_enabled {
            return Needs::default();
        }
        let above = self.limits(class, by_unfrozen_share);
        let dead = shown.dead as f32;
        let inserted = shown.inserted as f32;
        Needs {
            vacuum: dead > above.vacuum || (self.insert_rows >= 0.0 && inserted > above.insert),
            analyze: shown.modified as f32 > above.analyze,
        }
    }

    /// The most times that a table is over one of its thresholds, each by its weight.
    ///
    /// Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (19rc1).
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // the server's float4
    pub fn score(
        &self,
        (shown, class): (Shown, Class),
        by_unfrozen_share: bool,
        weights: &ScoreWeights,
        is_toast: bool,
    ) -> f64 {
        let above = self.limits(class, by_unfrozen_share);
        let times = |rows: i64, limit: f32| f64::from(rows as f32) / f64::from(limit.max(1.0));
        let mut score = times(shown.dead, above.vacuum) * weights.vacuum;
        if self.insert_rows >= 0.0 {
            score = score.max(times(shown.inserted, above.insert) * weights.insert);
        }
        if !is_toast {
            score = score.max(times(shown.modified, above.analyze) * weights.analyze);
        }
        score
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // the server's float4
    fn limits(&self, class: Class, by_unfrozen_share: bool) -> Limits {
        let reltuples = (class.reltuples as f32).max(0.0);
        let mut unfrozen = 1.0;
        if by_unfrozen_share && class.relpages > 0 && class.relallfrozen > 0 {
            let frozen = class.relallfrozen.min(class.relpages);
            unfrozen = 1.0 - frozen as f32 / class.relpages as f32;
        }
        let mut vacuum_above = self.vacuum_rows + self.vacuum_share * reltuples;
        if self.vacuum_max_rows >= 0.0 {
            vacuum_above = vacuum_above.min(self.vacuum_max_rows);
        }
        Limits {
            vacuum: vacuum_above,
            insert: self.insert_rows + self.insert_share * reltuples * unfrozen,
            analyze: self.analyze_rows + self.analyze_share * reltuples,
        }
    }
}

/// The number of rows that VACUUM writes to the catalogue after looking at a part of the pages.
///
/// Source: `vac_estimate_reltuples`, src/backend/commands/vacuum.c (REL_18_STABLE).
#[must_use]
pub fn estimated_rows(class: Class, pages: u32, scanned_pages: u32, scanned_rows: f64) -> f64 {
    let (total, scanned) = (f64::from(pages), f64::from(scanned_pages));
    if scanned_pages >= pages {
        return scanned_rows;
    }
    if class.relpages == pages && scanned < total * 0.02 {
        return class.reltuples;
    }
    if scanned_pages <= 1 {
        return class.reltuples;
    }
    if class.reltuples < 0.0 || class.relpages == 0 {
        return (scanned_rows / scanned * total + 0.5).floor();
    }
    let density = class.reltuples / f64::from(class.relpages);
    (density * (total - scanned) + scanned_rows + 0.5).floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Thresholds = Thresholds {
        is_enabled: true,
        vacuum_rows: 50.0,
        vacuum_share: 0.2,
        vacuum_max_rows: 1e8,
        insert_rows: 1000.0,
        insert_share: 0.2,
        analyze_rows: 50.0,
        analyze_share: 0.1,
    };

    fn class(reltuples: f64, relpages: u32, relallfrozen: u32) -> Class {
        Class {
            reltuples,
            relpages,
            relallfrozen,
        }
    }

    fn shown(dead: i64, modified: i64, inserted: i64) -> Shown {
        Shown {
            dead,
            modified,
            inserted,
        }
    }

    /// A threshold has to be passed, not reached.
    #[test]
    fn thresholds_have_to_be_passed() {
        let thousand = class(1000.0, 10, 0);
        let needs = |dead, modified| DEFAULTS.needs(shown(dead, modified, 0), thousand, true);
        let pair = |vacuum, analyze| Needs { vacuum, analyze };
        assert_eq!(needs(250, 150), pair(false, false));
        assert_eq!(needs(251, 150), pair(true, false));
        assert_eq!(needs(250, 151), pair(false, true));
    }

    /// From 18 on frozen pages do not count for insertions, and a large table has a limit.
    #[test]
    fn what_18_changed() {
        let half_frozen = class(100_000.0, 1000, 500);
        let inserted = shown(0, 0, 12_000);
        assert!(DEFAULTS.needs(inserted, half_frozen, true).vacuum);
        assert!(!DEFAULTS.needs(inserted, half_frozen, false).vacuum);
        let large = class(1e9, 10_000_000, 0);
        let unlimited = Thresholds {
            vacuum_max_rows: -1.0,
            ..DEFAULTS
        };
        let dead = shown(150_000_000, 0, 0);
        assert!(DEFAULTS.needs(dead, large, true).vacuum);
        assert!(!unlimited.needs(dead, large, true).vacuum);
    }

    /// A table that is left out needs nothing; insertions can be switched off.
    #[test]
    fn switches() {
        let off = Thresholds {
            is_enabled: false,
            ..DEFAULTS
        };
        let many = shown(1_000_000, 1_000_000, 1_000_000);
        let none = class(0.0, 0, 0);
        assert_eq!(off.needs(many, none, true), Needs::default());
        let no_inserts = Thresholds {
            insert_rows: -1.0,
            ..DEFAULTS
        };
        let inserted = shown(0, 0, 1_000_000);
        assert!(!no_inserts.needs(inserted, none, true).vacuum);
        assert!(DEFAULTS.needs(inserted, none, true).vacuum);
    }

    const WEIGHTS: ScoreWeights = ScoreWeights {
        freeze: [1.0; 2],
        vacuum: 1.0,
        insert: 1.0,
        analyze: 1.0,
    };

    /// The largest component, each by its weight; analysis of TOAST tables does not count. 19rc1
    /// shows these of tables with such counters (`pg_stat_autovacuum_scores`).
    #[test]
    fn scores() {
        let thousand = class(1000.0, 10, 0);
        let score = |shown, weights: &ScoreWeights, is_toast| {
            DEFAULTS.score((shown, thousand), true, weights, is_toast)
        };
        let some = shown(500, 300, 600); // over 250, 150 and 1,200
        assert!((score(some, &WEIGHTS, false) - 2.0).abs() < 1e-9);
        let by_analysis = ScoreWeights {
            analyze: 3.0,
            ..WEIGHTS
        };
        assert!((score(some, &by_analysis, false) - 6.0).abs() < 1e-9);
        assert!((score(some, &by_analysis, true) - 2.0).abs() < 1e-9);
        let by_inserts = ScoreWeights {
            insert: 10.0,
            ..WEIGHTS
        };
        assert!((score(some, &by_inserts, false) - 5.0).abs() < 1e-9);
    }

    /// Rows of pages that were skipped are estimated by their old density.
    #[test]
    fn rows_after_vacuum() {
        let old = class(1000.0, 100, 0);
        assert!((estimated_rows(old, 100, 100, 900.0) - 900.0).abs() < 1e-9);
        assert!((estimated_rows(old, 100, 1, 3.0) - 1000.0).abs() < 1e-9);
        assert!((estimated_rows(old, 120, 60, 500.0) - 1100.0).abs() < 1e-9);
        assert!((estimated_rows(class(0.0, 0, 0), 4, 2, 10.0) - 20.0).abs() < 1e-9);
    }
}
