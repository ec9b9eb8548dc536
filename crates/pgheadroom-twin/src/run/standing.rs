//! Clients that stand still while the others go on.
//!
//! ```text
//! client 0   |-T-| |-T-| |---------------T---------------| |-T-|
//! client 1   |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-|        stood still for 5 of 1's
//! ```
//!
//! A backend that has slept waits for a processor when it is woken, on its way between two
//! statements or after a wait for another's row; or it loses its processor in a statement. `prove`
//! counts in pgbench's log how often that happened; where it did no counter tells.

/// So many transactions of each other client during one say that it stood still.
/// `play/standing.py` counts a server's by the same number.
const STOOD_STILL: f64 = 10.0;
/// How many times more often a client stands still, at most, because others waited for those that
/// did: each such time makes everybody's transactions longer.
const MISSING_MAX: f64 = 3.0;

/// How often a client stands still while the others go on, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Share of the transactions.
    pub share: f64,
    /// For how many transactions of another client, each as likely; not empty unless `share` is 0.
    pub lengths: Vec<f64>,
}

/// The same, and where a client does so.
#[derive(Debug, Clone)]
pub(super) struct PlacedStanding {
    pub of: Standing,
    /// Which part of the times lie within a statement, whose snapshot the client keeps: then
    /// nothing can be pruned that transactions remove after it.
    pub inside: f64,
    /// How many times more likely one stands still that is woken after a wait than one on its way.
    pub woken: f64,
}

/// Where a client may stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Between two statements or transactions.
    Way,
    /// Woken after a wait for another's transaction, by its statement's snapshot still in it.
    Woken,
    /// In a statement that has been carried out.
    Statement,
}

/// How often clients have stood still, and are to.
///
/// One that others wait for does not stand still by the measure of `prove`, since none of them
/// comes on; one that loses its row to others again and again does. So those that did are counted,
/// and the chance follows what is still missing.
#[derive(Debug)]
pub(super) struct StandsStill {
    standing: PlacedStanding,
    /// Ways, and times woken, by how much more likely one stands still there.
    sleeps: f64,
    statements: f64,
    /// Transactions that have ended, and those that stood still.
    ended: f64,
    stood_still: f64,
    /// By client: how many had ended when its last one did, and for how many of another's it is to
    /// stand still in this one.
    since: Vec<f64>,
    lengths: Vec<f64>,
}

impl StandsStill {
    /// Nobody has yet.
    pub fn new(standing: PlacedStanding, clients: usize) -> Self {
        Self {
            standing,
            sleeps: 0.0,
            statements: 0.0,
            ended: 0.0,
            stood_still: 0.0,
            since: vec![0.0; clients],
            lengths: vec![0.0; clients],
        }
    }

    /// The client comes to such a place: for how many transactions of another it stands still
    /// there, if it does. `uniform` draws from above 0 to 1.
    pub fn at(
        &mut self,
        place: Place,
        client: usize,
        mut uniform: impl FnMut() -> f64,
    ) -> Option<f64> {
        let PlacedStanding { of, inside, woken } = &self.standing;
        let (places, weight, part) = match place {
            Place::Way => (&mut self.sleeps, 1.0, 1.0 - inside),
            Place::Woken => (&mut self.sleeps, *woken, 1.0),
            Place::Statement => (&mut self.statements, 1.0, *inside),
        };
        *places += weight;
        if self.ended == 0.0 {
            return None;
        }
        let wanted = of.share * self.ended;
        let missing = ((wanted + 1.0) / (self.stood_still + 1.0)).min(MISSING_MAX);
        if uniform() >= missing * wanted * part * weight / *places {
            return None;
        }
        let place = 1.0 - uniform();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )] // a place in a list
        let length = of.lengths.get((place * of.lengths.len() as f64) as usize);
        let length = length.copied()?;
        self.lengths[client] += length;
        Some(length)
    }

    /// The client's transaction ends. One that was to stand still did so if the others came on for
    /// half as far, since a drawn time is not exactly theirs.
    #[allow(clippy::cast_precision_loss)] // few clients
    pub fn end_transaction(&mut self, client: usize) {
        let others = (self.since.len() - 1) as f64;
        let drawn = std::mem::take(&mut self.lengths[client]);
        let least = if drawn > 0.0 {
            drawn / 2.0
        } else {
            STOOD_STILL
        };
        if self.ended - self.since[client] >= least * others {
            self.stood_still += 1.0;
        }
        self.ended += 1.0;
        self.since[client] = self.ended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::Prng;

    fn of(share: f64, inside: f64, woken: f64) -> StandsStill {
        let lengths = vec![20.0];
        let of = Standing { share, lengths };
        StandsStill::new(PlacedStanding { of, inside, woken }, 2)
    }

    #[allow(clippy::cast_precision_loss)] // a part of a million
    fn draws() -> impl FnMut() -> f64 {
        let mut prng = Prng::from_seed(7);
        move || prng.random(1, 1_000_000) as f64 / 1_000_000.0
    }

    /// Those that are woken stand still as many times more often as the machine has it, and the
    /// times together are as many as wanted as long as each counts.
    #[test]
    fn places_have_their_parts() {
        let mut standing = of(0.02, 0.0, 8.0);
        let mut uniform = draws();
        let (mut ways, mut woken) = (0.0, 0.0);
        for _ in 0..100_000 {
            standing.end_transaction(0);
            standing.since[0] = 0.0; // nobody measures
            standing.stood_still = 0.02 * standing.ended;
            for _ in 0..2 {
                ways += f64::from(u8::from(standing.at(Place::Way, 0, &mut uniform).is_some()));
            }
            woken += f64::from(u8::from(
                standing.at(Place::Woken, 0, &mut uniform).is_some(),
            ));
            assert_eq!(standing.at(Place::Statement, 0, &mut uniform), None);
        }
        let (all, ratio): (f64, f64) = (ways + woken, woken / (ways / 2.0));
        assert!((all / 2000.0 - 1.0).abs() < 0.1, "{all}");
        assert!((ratio / 8.0 - 1.0).abs() < 0.25, "{ratio}");
    }

    /// A transaction during which ten of the other client's ended has stood still, whatever made
    /// it; then further ones are less likely.
    #[test]
    fn those_that_stood_still_are_counted() {
        let mut standing = of(0.1, 0.0, 1.0);
        for _ in 0..9 {
            standing.end_transaction(0);
        }
        standing.end_transaction(1);
        assert_eq!(standing.stood_still, 0.0);
        for _ in 0..10 {
            standing.end_transaction(0);
        }
        standing.end_transaction(1);
        assert_eq!(standing.stood_still, 1.0);
    }

    /// Where each is waited for and none counts, a client stands still up to three times as often.
    #[test]
    fn what_is_missing_is_made_up_for() {
        let times = |counts: bool| {
            let mut standing = of(0.01, 0.0, 1.0);
            let mut uniform = draws();
            let mut times = 0_u32;
            for _ in 0..50_000 {
                standing.ended += 1.0;
                let stands = standing.at(Place::Way, 0, &mut uniform).is_some();
                times += u32::from(stands);
                standing.stood_still += f64::from(u8::from(stands && counts));
            }
            times
        };
        let (counted, not) = (times(true), times(false));
        assert!((450..=550).contains(&counted), "{counted}");
        assert!((1350..=1650).contains(&not), "{not}");
    }
}
