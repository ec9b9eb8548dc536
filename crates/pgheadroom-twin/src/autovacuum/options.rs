//! What settings and storage parameters say about autovacuum.
//!
//! A table's own parameter overrides the setting; a TOAST table without parameters of its own
//! follows its table's.
//!
//! Source: `relation_needs_vacanalyze`, `table_recheck_autovac` and `extract_autovac_opts`,
//! src/backend/postmaster/autovacuum.c; defaults: src/backend/utils/misc/guc_tables.c
//! (REL_18_STABLE).

use std::collections::BTreeMap;

use pgheadroom_layout::Behaviour;

use crate::autovacuum::score::ScoreWeights;
use crate::executor::FreezeAges;
use crate::profile::{ProfileError, ServerSpec};

/// Settings or storage parameters by name.
pub type Named = BTreeMap<String, String>;

/// When a table is vacuumed and analyzed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// `autovacuum_enabled`.
    pub is_enabled: bool,
    /// `autovacuum_vacuum_threshold`, in rows.
    pub vacuum_rows: f32,
    /// `autovacuum_vacuum_scale_factor`.
    pub vacuum_share: f32,
    /// `autovacuum_vacuum_max_threshold` (from 18 on), in rows; below 0: none.
    pub vacuum_max_rows: f32,
    /// `autovacuum_vacuum_insert_threshold`, in rows; below 0: insertions never trigger.
    pub insert_rows: f32,
    /// `autovacuum_vacuum_insert_scale_factor`.
    pub insert_share: f32,
    /// `autovacuum_analyze_threshold`, in rows.
    pub analyze_rows: f32,
    /// `autovacuum_analyze_scale_factor`.
    pub analyze_share: f32,
}

/// How fast a worker goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostLimit {
    /// Credit after which it sleeps.
    pub limit: f64,
    /// How long it sleeps then, in milliseconds; 0: never.
    pub delay_ms: f64,
    /// Whether storage parameters say so: then workers do not share the limit.
    pub is_own: bool,
}

/// What the server's settings say for all tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether it comes by more than age.
    pub is_active: bool,
    /// `autovacuum_freeze_max_age` and its like.
    pub freeze_ages: FreezeAges<u32>,
    /// `autovacuum_naptime`.
    pub naptime_s: f64,
    /// `autovacuum_max_workers`.
    pub max_workers: usize,
    /// `vacuum_cost_page_hit`.
    pub page_hit: f64,
    /// `vacuum_cost_page_miss`.
    pub page_miss: f64,
    /// `vacuum_cost_page_dirty`.
    pub page_dirty: f64,
    /// `default_statistics_target`: ANALYZE reads 300 pages for each.
    pub statistics_target: f64,
    /// `autovacuum_*_score_weight`; absent where tables are taken as they lie in `pg_class`.
    pub score_weights: Option<ScoreWeights>,
    named: Named,
    max_threshold: f32,
}

impl Settings {
    /// The settings of a profile's server, PostgreSQL's defaults where it says nothing.
    ///
    /// # Errors
    /// [`ProfileError::Unsupported`]: a value that is no number of that kind.
    pub fn new(server: &ServerSpec, behaviour: &Behaviour) -> Result<Self, ProfileError> {
        let named = &server.settings;
        let get = |name: &str, unit, default| number(named, "server.settings", name, unit, default);
        let workers = get("autovacuum_max_workers", Unit::None, 3.0)?;
        #[allow(clippy::cast_precision_loss)] // a hundred million
        let max_threshold = behaviour
            .autovacuum_max_threshold
            .map_or(-1.0, |rows| rows as f32);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Self {
            is_active: server.autovacuum,
            freeze_ages: server.freeze_ages(),
            naptime_s: server.autovacuum_naptime_s.unwrap_or(60.0).max(1.0),
            max_workers: workers.max(1.0) as usize,
            page_hit: get("vacuum_cost_page_hit", Unit::None, 1.0)?,
            page_miss: get(
                "vacuum_cost_page_miss",
                Unit::None,
                f64::from(behaviour.vacuum_cost_page_miss),
            )?,
            page_dirty: get("vacuum_cost_page_dirty", Unit::None, 20.0)?,
            score_weights: if behaviour.autovacuum_by_score {
                let weight = |of: &str| {
                    let name = format!("autovacuum_{of}_score_weight");
                    get(&name, Unit::None, 1.0)
                };
                let weights = ScoreWeights {
                    freeze: [weight("freeze")?, weight("multixact_freeze")?],
                    vacuum: weight("vacuum")?,
                    insert: weight("vacuum_insert")?,
                    analyze: weight("analyze")?,
                };
                Some(weights).filter(ScoreWeights::count)
            } else {
                None
            },
            statistics_target: get("default_statistics_target", Unit::None, 100.0)?,
            named: named.clone(),
            max_threshold,
        })
    }

    /// The ages at which VACUUM hurries, of transactions and of multixacts.
    #[must_use]
    pub fn failsafe_ages(&self) -> [u32; 2] {
        [&self.freeze_ages.xid, &self.freeze_ages.multixact].map(|ages| ages.of_failsafe())
    }

    /// A table's thresholds, given its storage parameters (`prefix` is `toast.` for those of the
    /// TOAST table).
    ///
    /// # Errors
    /// As [`Settings::new`].
    pub fn thresholds(&self, reloptions: &Named, prefix: &str) -> Result<Thresholds, ProfileError> {
        let get = |name: &str, default: f32| -> Result<f32, ProfileError> {
            let setting = number(
                &self.named,
                "server.settings",
                name,
                Unit::None,
                f64::from(default),
            )?;
            let own = format!("{prefix}{name}");
            let value = number(reloptions, "reloptions", &own, Unit::None, setting)?;
            #[allow(clippy::cast_possible_truncation)] // the server's float4
            Ok(value as f32)
        };
        let enabled = reloptions.get(&format!("{prefix}autovacuum_enabled"));
        Ok(Thresholds {
            is_enabled: !enabled.is_some_and(|text| is_false(text)),
            vacuum_rows: get("autovacuum_vacuum_threshold", 50.0)?,
            vacuum_share: get("autovacuum_vacuum_scale_factor", 0.2)?,
            vacuum_max_rows: get("autovacuum_vacuum_max_threshold", self.max_threshold)?,
            insert_rows: get("autovacuum_vacuum_insert_threshold", 1000.0)?,
            insert_share: get("autovacuum_vacuum_insert_scale_factor", 0.2)?,
            analyze_rows: get("autovacuum_analyze_threshold", 50.0)?,
            analyze_share: get("autovacuum_analyze_scale_factor", 0.1)?,
        })
    }

    /// How fast a worker vacuums a table.
    ///
    /// # Errors
    /// As [`Settings::new`].
    pub fn cost_limit(&self, reloptions: &Named, prefix: &str) -> Result<CostLimit, ProfileError> {
        let pick = |name: &str, unit, default: f64| -> Result<(f64, bool), ProfileError> {
            let own = number(
                reloptions,
                "reloptions",
                &format!("{prefix}autovacuum_{name}"),
                unit,
                -1.0,
            )?;
            let settings = "server.settings";
            let auto = number(
                &self.named,
                settings,
                &format!("autovacuum_{name}"),
                unit,
                -1.0,
            )?;
            let general = number(&self.named, settings, name, unit, default)?;
            let found = [own, auto].into_iter().find(|value| *value >= 0.0);
            Ok((found.unwrap_or(general), own >= 0.0))
        };
        let name = "vacuum_cost_delay";
        let (mut delay_ms, own_delay) = pick(name, Unit::Milliseconds, 0.0)?;
        let is_set = self.named.contains_key("autovacuum_vacuum_cost_delay");
        if !own_delay && !is_set {
            delay_ms = 2.0; // autovacuum_vacuum_cost_delay's own default
        }
        let (limit, own_limit) = pick("vacuum_cost_limit", Unit::None, 200.0)?;
        Ok(CostLimit {
            limit: if limit > 0.0 { limit } else { 200.0 },
            delay_ms,
            is_own: own_delay || own_limit,
        })
    }
}

/// The unit that a number has if it is given without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    None,
    Milliseconds,
}

/// A number out of settings.
fn number(
    named: &Named,
    path: &str,
    name: &str,
    unit: Unit,
    default: f64,
) -> Result<f64, ProfileError> {
    let Some(text) = named.get(name) else {
        return Ok(default);
    };
    let text = text.trim();
    let end = text
        .find(|sign: char| sign.is_ascii_alphabetic() && sign != 'e' && sign != 'E')
        .unwrap_or(text.len());
    let factor = match (unit, text[end..].trim()) {
        (_, "") => Some(1.0),
        (Unit::Milliseconds, "us") => Some(0.001),
        (Unit::Milliseconds, "ms") => Some(1.0),
        (Unit::Milliseconds, "s") => Some(1000.0),
        (Unit::Milliseconds, "min") => Some(60_000.0),
        _ => None,
    };
    let value = text[..end].trim().parse::<f64>().ok();
    let value = value.filter(|value| value.is_finite()).zip(factor);
    let (value, factor) = value.ok_or_else(|| {
        ProfileError::unsupported(format!("{path}.{name}"), format!("{text:?}"), "a number")
    })?;
    Ok(value * factor)
}

/// Source: `parse_bool_with_len`, src/backend/utils/adt/bool.c (REL_18_STABLE).
fn is_false(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let is_start = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    is_start("false", 1) || is_start("no", 1) || is_start("off", 2) || text == "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pairs: &[(&str, &str)]) -> Named {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let behaviour = "18.4"
            .parse::<pgheadroom_layout::PgVersion>()
            .unwrap()
            .behaviour();
        let text = r#"{"version": "18.4", "shared_buffers": "1GB", "full_page_writes": true,
            "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
            "autovacuum": true}"#;
        let mut server: ServerSpec = serde_json::from_str(text).unwrap();
        server.settings = named(pairs);
        Settings::new(&server, &behaviour).unwrap()
    }

    /// A table's parameter wins over the setting, the setting over the default.
    #[test]
    fn who_wins() {
        let settings = settings(&[
            ("autovacuum_vacuum_threshold", "70"),
            ("autovacuum_vacuum_scale_factor", "0.05"),
        ]);
        let own = named(&[
            ("autovacuum_vacuum_threshold", "500"),
            ("toast.autovacuum_vacuum_threshold", "9"),
            ("autovacuum_enabled", "off"),
        ]);
        let found = settings.thresholds(&own, "").unwrap();
        assert!(!found.is_enabled);
        assert_eq!((found.vacuum_rows, found.vacuum_share), (500.0, 0.05));
        assert_eq!((found.analyze_rows, found.insert_rows), (50.0, 1000.0));
        assert_eq!(found.vacuum_max_rows, 1e8);
        let toast = settings.thresholds(&own, "toast.").unwrap();
        assert_eq!((toast.is_enabled, toast.vacuum_rows), (true, 9.0));
    }

    /// Delay and limit: storage parameters, autovacuum's settings, VACUUM's own for the limit.
    #[test]
    fn cost_limits() {
        let none = Named::new();
        let limit = |pairs: &[(&str, &str)], own: &Named| {
            let found = settings(pairs).cost_limit(own, "").unwrap();
            (found.limit, found.delay_ms, found.is_own)
        };
        assert_eq!(limit(&[], &none), (200.0, 2.0, false));
        let general = [("vacuum_cost_limit", "1000"), ("vacuum_cost_delay", "7")];
        assert_eq!(limit(&general, &none), (1000.0, 2.0, false));
        let auto = [("autovacuum_vacuum_cost_delay", "500us")];
        assert_eq!(limit(&auto, &none), (200.0, 0.5, false));
        let minus = [
            ("autovacuum_vacuum_cost_delay", "-1"),
            ("vacuum_cost_delay", "3ms"),
        ];
        assert_eq!(limit(&minus, &none), (200.0, 3.0, false));
        let own = named(&[("autovacuum_vacuum_cost_delay", "0")]);
        assert_eq!(limit(&[], &own), (200.0, 0.0, true));
    }

    /// What is no number is refused with its name.
    #[test]
    fn refused_values() {
        let found = settings(&[("autovacuum_vacuum_threshold", "many")]);
        let error = found.thresholds(&Named::new(), "").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("server.settings.autovacuum_vacuum_threshold"));
    }
}
