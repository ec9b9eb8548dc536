//! A server's settings that limit the memory of a command.

/// In kB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// `work_mem`.
    pub work_mem: u32,
    /// `maintenance_work_mem`.
    pub maintenance_work_mem: u32,
    /// What an autovacuum worker has instead of it.
    pub autovacuum_work_mem: u32,
}

impl MemorySettings {
    /// What a VACUUM has, by whether autovacuum does it.
    #[must_use]
    pub const fn of_vacuum(&self, by_itself: bool) -> u32 {
        if by_itself {
            self.autovacuum_work_mem
        } else {
            self.maintenance_work_mem
        }
    }
}

impl Default for MemorySettings {
    /// PostgreSQL's. Source: src/backend/utils/misc/guc_tables.c (REL_18_STABLE).
    fn default() -> Self {
        Self {
            work_mem: 4096,
            maintenance_work_mem: 65_536,
            autovacuum_work_mem: 65_536,
        }
    }
}
