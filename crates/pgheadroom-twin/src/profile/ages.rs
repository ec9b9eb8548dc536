//! Whether a run's tables become so old that autovacuum comes to them though it is off.

use std::collections::BTreeMap;

use crate::executor::{Ages, FreezeAges};
use crate::profile::{CommandName, ProfileSpec, setting_values};

/// More transactions than a new cluster and the load of a run have had.
const TRANSACTIONS_BEFORE: u64 = 2_000;
/// The launcher is woken where the next number is a multiple of this.
///
/// Source: `GetNewTransactionId`, src/backend/access/transam/varsup.c (REL_18_STABLE).
pub(crate) const WOKEN_EVERY: u64 = 65_536;

/// The ages by which VACUUM freezes and autovacuum comes, as settings have them.
#[must_use]
pub fn freeze_ages(settings: &BTreeMap<String, String>) -> FreezeAges<u32> {
    let ages = |kind: &str, known: Ages<u32>| {
        let given = |before: &str, after: &str, known: u32| {
            let name = format!("{before}{kind}{after}");
            let value = settings.get(&name);
            value
                .and_then(|value| setting_values::whole(&name, value))
                .unwrap_or(known)
        };
        Ages {
            min: given("vacuum_", "freeze_min_age", known.min),
            table: given("vacuum_", "freeze_table_age", known.table),
            max: given("autovacuum_", "freeze_max_age", known.max),
            failsafe: given("vacuum_", "failsafe_age", known.failsafe),
        }
    };
    FreezeAges {
        xid: ages("", FreezeAges::DEFAULT.xid),
        multixact: ages("multixact_", FreezeAges::DEFAULT.multixact),
    }
}

/// Whether so many transactions may wake the launcher while autovacuum is off. Where their number
/// is not known, or that of their multixacts, which only several clients have: where the setting is
/// below its default. A VACUUM wakes it too, once a database is too old; the last one that
/// something follows on comes after so many transactions.
///
/// Source: `vac_truncate_clog`, src/backend/commands/vacuum.c, and `SetTransactionIdLimit`,
/// src/backend/access/transam/varsup.c (REL_18_STABLE).
#[must_use]
pub fn may_wake_autovacuum(
    ages: &FreezeAges<u32>,
    transactions: Option<u64>,
    clients: u32,
    last_vacuum: Option<u64>,
) -> bool {
    let shares_locks = clients > 1;
    let max = u64::from(ages.xid.max);
    let woken_from = max.next_multiple_of(WOKEN_EVERY);
    let by_number = match transactions {
        None => ages.xid.max < FreezeAges::DEFAULT.xid.max,
        Some(transactions) => transactions + TRANSACTIONS_BEFORE >= woken_from,
    };
    let by_vacuum = last_vacuum.is_some_and(|after| after + TRANSACTIONS_BEFORE >= max);
    let by_multixact = shares_locks && ages.multixact.max < FreezeAges::DEFAULT.multixact.max;
    by_number || by_vacuum || by_multixact
}

impl ProfileSpec {
    /// Whether autovacuum may come in a run of so many transactions: because it is on, or by age.
    #[must_use]
    pub fn may_autovacuum(&self, transactions: Option<u64>) -> bool {
        self.server.autovacuum || self.may_wake_autovacuum(transactions)
    }

    pub(crate) fn may_wake_autovacuum(&self, transactions: Option<u64>) -> bool {
        let run = &self.run;
        let last_vacuum = self.last_vacuum(transactions);
        may_wake_autovacuum(
            &self.server.freeze_ages(),
            transactions,
            run.clients,
            last_vacuum,
        )
    }

    /// After how many transactions the last VACUUM comes that is not at the end.
    fn last_vacuum(&self, transactions: Option<u64>) -> Option<u64> {
        let is_vacuum = |what| matches!(what, CommandName::Vacuum | CommandName::VacuumFull);
        let commands = self.run.maintenance.iter();
        let vacuums = commands.filter(|one| is_vacuum(one.command));
        let at = vacuums.filter_map(|one| {
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
            #[allow(clippy::cast_sign_loss)] // a part of them
            let part = |(frac, all): (f64, u64)| (frac * all as f64) as u64;
            one.after.or(one.at_frac.zip(transactions).map(part))
        });
        at.filter(|&at| transactions.is_none_or(|all| at < all))
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ages(name: &str, value: &str) -> FreezeAges<u32> {
        freeze_ages(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    /// Up to the multiple of 65,536 that follows on the age, whatever is older.
    #[test]
    fn the_launcher_is_woken_by_a_multiple() {
        let least = ages("autovacuum_freeze_max_age", "100000");
        assert!(!may_wake_autovacuum(&least, Some(129_000), 1, None));
        assert!(may_wake_autovacuum(&least, Some(129_072), 1, None));
        assert!(may_wake_autovacuum(&least, None, 1, None));
        assert!(may_wake_autovacuum(&least, Some(110_000), 1, Some(98_000)));
        assert!(!may_wake_autovacuum(&least, Some(110_000), 1, Some(97_999)));
        assert!(!may_wake_autovacuum(&FreezeAges::DEFAULT, None, 1, None));
        assert!(!may_wake_autovacuum(
            &FreezeAges::DEFAULT,
            Some(9_000_000),
            8,
            Some(1)
        ));
    }

    /// One client makes no multixacts.
    #[test]
    fn multixacts_are_made_by_several() {
        let least = ages("autovacuum_multixact_freeze_max_age", "10000");
        assert!(!may_wake_autovacuum(&least, Some(100), 1, None));
        assert!(may_wake_autovacuum(&least, Some(100), 2, None));
    }

    /// In any spelling of a number.
    #[test]
    fn ages_are_settings() {
        assert_eq!(ages("vacuum_failsafe_age", "0x10").xid.failsafe, 16);
        let named = ages("vacuum_multixact_freeze_table_age", "7");
        assert_eq!(named.multixact.table, 7);
        assert_eq!(named.xid, FreezeAges::DEFAULT.xid);
    }
}
