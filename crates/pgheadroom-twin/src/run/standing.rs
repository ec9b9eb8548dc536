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
/// The part of those woken that stands still, at most: where 2 clients update one row, 139 of
/// 12,000 transactions stood still, which were woken some 6,600 times.
const WOKEN_MAX: f64 = 0.02;

/// More than rounding makes of a product or a quotient.
const SURELY: f64 = 1.0 + 1e-9;

/// How often a client stands still while the others go on, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Share of the transactions.
    pub share: f64,
    /// For how many transactions of another client, each as likely; not empty unless `share` is 0.
    pub lengths: Vec<f64>,
    /// Which part of these times lies within statements, at least and at most; `None`: not known.
    pub inside: Option<(f64, f64)>,
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
/// Where clients wait for each other, one that others wait for does not stand still by the measure
/// of `prove`, since none of them comes on; one that loses its row to others again and again does.
/// Both are counted, and the chance follows what is still missing. Where nobody waits nothing is.
#[derive(Debug)]
pub(super) struct StandsStill {
    standing: PlacedStanding,
    ways: f64,
    statements: f64,
    /// Transactions that have ended.
    ended: f64,
    /// Of these, those that stood still by a wait: before they were woken or afterwards.
    by_waits: f64,
    /// Of the others, those that were to stand still, and for whom the others came on.
    drawn: f64,
    held: f64,
    /// Waits that have begun.
    waits: u64,
    clients: Vec<Since>,
}

/// What there was since the client's last transaction ended.
#[derive(Debug, Clone, Default)]
struct Since {
    /// How many transactions had ended then, and how many waits had begun.
    ended: f64,
    waits: u64,
    /// Whether it was woken after a wait, and for how many of another's transactions it is to stand
    /// still there.
    was_woken: bool,
    woken_length: f64,
    /// And elsewhere.
    length: f64,
}

impl StandsStill {
    /// Nobody has yet.
    pub fn new(standing: PlacedStanding, clients: usize) -> Self {
        Self {
            standing,
            ways: 0.0,
            statements: 0.0,
            ended: 0.0,
            by_waits: 0.0,
            drawn: 0.0,
            held: 0.0,
            waits: 0,
            clients: vec![Since::default(); clients],
        }
    }

    /// Some client begins to wait for another.
    pub const fn wait(&mut self) {
        self.waits += 1;
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
        let since = &mut self.clients[client];
        match place {
            Place::Way => self.ways += 1.0,
            Place::Woken => since.was_woken = true,
            Place::Statement => self.statements += 1.0,
        }
        if self.ended == 0.0 {
            return None;
        }
        let drawn = uniform();
        let wanted = of.share * self.ended;
        // Mostly nobody does, as the chance at most says, without a division.
        let most = MISSING_MAX * wanted * SURELY;
        let does_not = match place {
            Place::Way => drawn * self.ways > most * (1.0 - inside),
            Place::Woken => drawn >= WOKEN_MAX,
            Place::Statement => drawn * self.statements > most * inside,
        };
        if does_not {
            return None;
        }
        let missing = (wanted - self.by_waits).max(0.0) * (self.drawn + 1.0) / (self.held + 1.0);
        let missing = missing.min(MISSING_MAX * wanted);
        let chance = match place {
            Place::Way => missing * (1.0 - inside) / self.ways,
            Place::Woken => (woken * missing / self.ways).min(WOKEN_MAX),
            Place::Statement => missing * inside / self.statements,
        };
        if drawn >= chance {
            return None;
        }
        let drawn = 1.0 - uniform();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )] // a place in a list
        let length = of.lengths.get((drawn * of.lengths.len() as f64) as usize);
        let length = length.copied()?;
        match place {
            Place::Woken => since.woken_length += length,
            Place::Way | Place::Statement => since.length += length,
        }
        Some(length)
    }

    /// The client's transaction ends. Others came on if they did so for half as far as was drawn,
    /// since a drawn time is not exactly theirs; or if nobody waited meanwhile.
    #[allow(clippy::cast_precision_loss)] // few clients
    pub fn end_transaction(&mut self, client: usize) {
        let others = (self.clients.len() - 1) as f64;
        let since = &self.clients[client];
        let meanwhile = (self.ended - since.ended) / others;
        if since.woken_length > 0.0 {
            self.by_waits += f64::from(u8::from(meanwhile >= since.woken_length / 2.0));
        } else if since.length > 0.0 {
            let holds = self.waits == since.waits || meanwhile >= since.length / 2.0;
            self.drawn += 1.0;
            self.held += f64::from(u8::from(holds));
        } else if since.was_woken && meanwhile >= STOOD_STILL {
            self.by_waits += 1.0;
        }
        self.ended += 1.0;
        self.clients[client] = Since {
            ended: self.ended,
            waits: self.waits,
            ..Since::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::Prng;

    fn of(share: f64, inside: f64, woken: f64) -> StandsStill {
        let lengths = vec![16.0];
        let of = Standing {
            share,
            lengths,
            inside: None,
        };
        StandsStill::new(PlacedStanding { of, inside, woken }, 2)
    }

    #[allow(clippy::cast_precision_loss)] // a part of a million
    fn draws() -> impl FnMut() -> f64 {
        let mut prng = Prng::from_seed(7);
        move || prng.random(1, 1_000_000) as f64 / 1_000_000.0
    }

    /// Those that are woken stand still as many times more often as the machine has it, and the
    /// times together are as many as wanted.
    #[test]
    fn places_have_their_parts() {
        let mut standing = of(0.005, 0.0, 8.0);
        let mut uniform = draws();
        let (mut ways, mut woken) = (0.0, 0.0);
        for _ in 0..100_000 {
            for _ in 0..2 {
                ways += f64::from(u8::from(standing.at(Place::Way, 0, &mut uniform).is_some()));
            }
            woken += f64::from(u8::from(
                standing.at(Place::Woken, 0, &mut uniform).is_some(),
            ));
            assert_eq!(standing.at(Place::Statement, 0, &mut uniform), None);
            standing.clients[0].ended = standing.ended - 9.0; // of the other client, each
            standing.end_transaction(0);
        }
        let (all, ratio): (f64, f64) = (ways + woken, woken / (ways / 2.0));
        assert!((all / 500.0 - 1.0).abs() < 0.15, "{all}");
        assert!((ratio / 8.0 - 1.0).abs() < 0.25, "{ratio}");
    }

    /// How many stand still of 50,000, `ended` of the other's ending during each of the client's,
    /// which may be woken and may be waited for.
    fn times(ended: u32, is_woken: bool, is_waited_for: bool) -> u32 {
        let mut standing = of(0.01, 0.0, 1.0);
        let mut uniform = draws();
        let mut times = 0;
        for number in 0..50_000 {
            if is_waited_for {
                standing.wait();
            }
            let place = if is_woken && number % 200 == 0 {
                Place::Woken
            } else {
                Place::Way
            };
            times += u32::from(standing.at(place, 0, &mut uniform).is_some());
            standing.clients[0].ended = standing.ended - f64::from(ended); // of the other
            standing.end_transaction(0);
        }
        times
    }

    /// Where each is waited for and none counts, a client stands still up to three times as often;
    /// not where nobody waits, or the others come on all the same.
    #[test]
    fn what_is_missing_is_made_up_for() {
        let (waited_for, alone, beside) = (
            times(0, false, true),
            times(0, false, false),
            times(10, false, true),
        );
        assert!((1350..=1650).contains(&waited_for), "{waited_for}");
        assert!((450..=550).contains(&alone), "{alone}");
        assert!((450..=550).contains(&beside), "{beside}");
    }

    /// Every 200th transaction waits while ten of the other's end: these are half of those that
    /// are wanted, and as many fewer are drawn.
    #[test]
    fn who_waits_for_long_stands_still() {
        let found = times(10, true, true);
        assert!((215..=285).contains(&found), "{found}");
    }
}
