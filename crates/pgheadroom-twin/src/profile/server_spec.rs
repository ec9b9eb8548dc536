//! The server of a profile: its settings, and what they mean for pages.

use std::collections::BTreeMap;

use pgheadroom_layout::compression::Method;
use pgheadroom_layout::{Behaviour, Storage};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

use crate::executor::{FreezeAges, GinSettings, ParallelSettings};
use crate::memory_settings::MemorySettings;
use crate::profile::{ages, setting_values};
use crate::vacuum::eager::fails_per_region;

/// Settings of the server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // PostgreSQL's own switches
pub struct ServerSpec {
    /// As asked for: a major or minor version.
    pub version: String,
    /// As PostgreSQL spells sizes.
    pub shared_buffers: String,
    /// Images after checkpoints.
    pub full_page_writes: bool,
    /// What WAL is for.
    pub wal_level: WalLevel,
    /// Compression of images.
    pub wal_compression: Compression,
    /// Hints are logged.
    pub wal_log_hints: bool,
    /// Checksums; the version's default when absent.
    pub data_checksums: Option<bool>,
    /// Whether autovacuum runs.
    pub autovacuum: bool,
    /// How often it looks.
    pub autovacuum_naptime_s: Option<f64>,
    /// Checkpoints by time; none inside the run when absent.
    pub checkpoint_interval_s: Option<f64>,
    /// Checkpoints by WAL; out of reach when absent.
    pub max_wal_size: Option<String>,
    /// Further settings.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// What was observed; of no concern here.
    #[serde(default)]
    pub observed: Option<Ignored>,
}

impl ServerSpec {
    /// By what values are compressed, if the profile says so.
    #[must_use]
    pub fn toast_compression(&self) -> Option<Method> {
        let given = self.settings.get("default_toast_compression")?;
        match given.trim().to_ascii_lowercase().as_str() {
            "pglz" => Some(Method::Pglz),
            "lz4" => Some(Method::Lz4),
            _ => None,
        }
    }

    /// The ages by which VACUUM freezes and autovacuum comes.
    #[must_use]
    pub fn freeze_ages(&self) -> FreezeAges<u32> {
        ages::freeze_ages(&self.settings)
    }

    /// How many pages of a region an eager scan may look at in vain.
    ///
    /// Source: `vacuum_max_eager_freeze_failure_rate`, src/backend/commands/vacuum.c
    /// (REL_18_STABLE): 0.03.
    #[must_use]
    pub fn eager_fails(&self) -> u32 {
        let name = "vacuum_max_eager_freeze_failure_rate";
        let rate = self.settings.get(name);
        let rate = rate.and_then(|value| setting_values::number(name, value));
        fails_per_region(rate.unwrap_or(0.03))
    }

    /// A setting in kB, which is the unit of a bare number, if the profile has it.
    pub(crate) fn kilobytes(&self, name: &str) -> Option<u32> {
        setting_values::whole(name, self.settings.get(name)?)
    }

    /// `default_statistics_target`.
    #[must_use]
    pub fn statistics_target(&self) -> u32 {
        let name = "default_statistics_target";
        let target = self.settings.get(name);
        let target = target.and_then(|value| setting_values::whole(name, value));
        target.unwrap_or(100)
    }

    /// How rows come to GINs.
    #[must_use]
    pub fn gin_settings(&self, behaviour: &Behaviour) -> GinSettings {
        let limit = self.kilobytes("gin_pending_list_limit");
        GinSettings {
            pending_list_limit: limit.unwrap_or(GinSettings::default().pending_list_limit),
            memory: self.memory_settings(behaviour),
            beside: None,
        }
    }

    /// What a command may take. A server raises an `autovacuum_work_mem` below what
    /// `maintenance_work_mem` is at least.
    ///
    /// Source: `check_autovacuum_work_mem`, src/backend/utils/misc/guc.c (REL_15_STABLE),
    /// src/backend/postmaster/autovacuum.c (REL_18_STABLE).
    #[must_use]
    pub fn memory_settings(&self, behaviour: &Behaviour) -> MemorySettings {
        let least = if behaviour.vacuum_has_tid_store {
            64
        } else {
            1024
        };
        let defaults = MemorySettings::default();
        let maintenance = self.kilobytes("maintenance_work_mem");
        let maintenance_work_mem = maintenance.unwrap_or(defaults.maintenance_work_mem);
        MemorySettings {
            work_mem: self.kilobytes("work_mem").unwrap_or(defaults.work_mem),
            maintenance_work_mem,
            // -1, the default, is the other one.
            autovacuum_work_mem: self
                .kilobytes("autovacuum_work_mem")
                .map_or(maintenance_work_mem, |memory| memory.max(least)),
        }
    }

    /// When VACUUM has parallel workers.
    #[must_use]
    pub fn parallel_settings(&self) -> ParallelSettings {
        let whole = |name: &str| setting_values::whole(name, self.settings.get(name)?);
        let least = whole("min_parallel_index_scan_size"); // in pages
        let helpers = whole("autovacuum_max_parallel_workers");
        let defaults = ParallelSettings::default();
        ParallelSettings {
            least_index_pages: least.unwrap_or(defaults.least_index_pages),
            autovacuum_workers: helpers.unwrap_or(defaults.autovacuum_workers),
        }
    }

    /// The same server where no page is written: what a checkpoint, or the image that repairs a
    /// torn page, is for is not there.
    pub(crate) fn without_pages(&self) -> Self {
        Self {
            full_page_writes: false,
            wal_log_hints: false,
            data_checksums: Some(false),
            checkpoint_interval_s: None,
            max_wal_size: None,
            ..self.clone()
        }
    }

    /// By what images are compressed, if there are any and they are.
    #[must_use]
    pub fn image_compression(&self) -> Option<Method> {
        self.full_page_writes
            .then(|| self.wal_compression.method())?
    }
}

/// `wal_level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // PostgreSQL's words
pub enum WalLevel {
    Minimal,
    Replica,
    Logical,
}

/// `wal_compression`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // PostgreSQL's words
pub enum Compression {
    Off,
    On,
    Pglz,
    Lz4,
    Zstd,
}

impl Compression {
    /// What compresses, if anything does; `on` is pglz.
    ///
    /// Source: `wal_compression_options`, src/backend/utils/misc/guc_tables.c (REL_18_STABLE).
    const fn method(self) -> Option<Method> {
        match self {
            Self::Off => None,
            Self::On | Self::Pglz => Some(Method::Pglz),
            Self::Lz4 => Some(Method::Lz4),
            Self::Zstd => Some(Method::Zstd),
        }
    }
}

/// Something that is accepted and not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A column's own COMPRESSION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // PostgreSQL's words
pub enum ColumnCompression {
    Pglz,
    Lz4,
}

impl ColumnCompression {
    /// What compresses.
    #[must_use]
    pub fn method(self) -> Method {
        match self {
            Self::Pglz => Method::Pglz,
            Self::Lz4 => Method::Lz4,
        }
    }
}

/// A column's own STORAGE. PLAIN is left out: whether a value has a short header depends there on
/// where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // PostgreSQL's words
pub enum ColumnStorage {
    External,
    Extended,
    Main,
}

impl From<ColumnStorage> for Storage {
    fn from(storage: ColumnStorage) -> Self {
        match storage {
            ColumnStorage::External => Self::External,
            ColumnStorage::Extended => Self::Extended,
            ColumnStorage::Main => Self::Main,
        }
    }
}

#[cfg(test)]
mod tests {
    use pgheadroom_layout::PgVersion;

    use super::*;

    /// `postgres -C autovacuum_work_mem` of 15.18 says 1024 for 5.
    #[test]
    fn autovacuum_has_the_least_memory_at_least() {
        let memory = |own: &str, version: &str| {
            let text = format!(
                r#"{{"version": "{version}", "shared_buffers": "1GB", "full_page_writes": true,
                "wal_level": "replica", "wal_compression": "off",
                "wal_log_hints": false, "autovacuum": false,
                "settings": {{"autovacuum_work_mem": "{own}", "maintenance_work_mem": "2MB"}}}}"#
            );
            let server: ServerSpec = serde_json::from_str(&text).unwrap();
            let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
            server.memory_settings(&behaviour).autovacuum_work_mem
        };
        assert_eq!(memory("5", "15.18"), 1024);
        assert_eq!(memory("0", "18.4"), 64);
        assert_eq!(memory("4MB", "16.14"), 4096);
        assert_eq!(memory("-1", "18.4"), 2048);
    }
}
