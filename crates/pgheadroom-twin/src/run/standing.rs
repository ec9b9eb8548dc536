//! Clients that stand still while the others go on.
//!
//! ```text
//! client 0   |-T-| |-T-| |---------------T---------------| |-T-|
//! client 1   |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-| |-T-|        stood still for 5 of 1's
//! ```
//!
//! A backend that has slept waits for a processor when it is woken, on its way between two
//! statements or after a wait for another's row; or it loses its processor in a statement. `prove`
//! counts in pgbench's log how often that happened, and for how long; where it did no counter
//! tells. Pauses are drawn, so some clients fall behind here by themselves: these are counted by
//! the same measure, each length for itself, and only what they lack is made up for.

/// From so many transactions of each other client on, between the ends of two of a client's own,
/// it stood still so long. Those below the first are pauses as others are; `play/standing.py`
/// counts a server's from there on.
const STOOD_STILL: [f64; 10] = [2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 22.0, 33.0];
/// For so many a look tells whether that lies within a statement (`_SURELY` in `play/standing.py`);
/// whoever stands still for fewer is on its way.
const TOLD_BY_LOOKS: f64 = 5.0;
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
    /// Share of the transactions, below 1.
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
/// of `prove`, since none of them comes on; one that loses its row to others again and again does,
/// and so does one whose pauses are drawn long. All are counted, and the chance follows what is
/// still missing.
#[derive(Debug)]
pub(super) struct StandsStill {
    standing: PlacedStanding,
    /// By how long they stood still, as `STOOD_STILL` has it.
    classes: [Class; STOOD_STILL.len()],
    /// How many transactions of another client end during one that does not, in the mean.
    usual: f64,
    ways: f64,
    statements: f64,
    /// Transactions that have ended.
    ended: f64,
    /// Those that were to stand still, and for whom the others came on.
    drawn: f64,
    held: f64,
    /// Waits that have begun.
    waits: u64,
    clients: Vec<Since>,
}

/// Transactions that stand still about as long.
#[derive(Debug, Clone, Default)]
struct Class {
    /// For how many transactions of another client, each as likely.
    lengths: Vec<f64>,
    /// Share of the transactions.
    share: f64,
    /// Those that stood still by a wait, before or after they were woken, or by their pauses.
    by_itself: f64,
}

impl Class {
    /// How many of so many that have ended were to be drawn.
    fn missing(&self, ended: f64) -> f64 {
        (self.share * ended - self.by_itself).max(0.0)
    }
}

/// The class of a client during whose transaction so many of another's ended.
fn class_of(meanwhile: f64) -> Option<usize> {
    STOOD_STILL.iter().rposition(|&from| meanwhile >= from)
}

/// Those of the lengths: one that stood still for so many had one more of its own to end.
#[allow(clippy::cast_precision_loss)] // numbers of a list
fn classes_of(standing: &Standing) -> [Class; STOOD_STILL.len()] {
    let mut classes: [Class; STOOD_STILL.len()] = std::array::from_fn(|_| Class::default());
    let each = standing.share / standing.lengths.len() as f64;
    for &length in &standing.lengths {
        let class = &mut classes[class_of(length + 1.0).unwrap_or(0)];
        class.lengths.push(length);
        class.share += each;
    }
    classes
}

/// How many of another client's end during a transaction that does not stand still, where it is one
/// of all.
#[allow(clippy::cast_precision_loss)] // numbers of a list
fn usual_of(standing: &Standing) -> f64 {
    let all: f64 = standing.lengths.iter().map(|length| length + 1.0).sum();
    let still = standing.share * all / standing.lengths.len().max(1) as f64;
    ((1.0 - still) / (1.0 - standing.share)).clamp(0.0, 1.0)
}

/// What there was since the client's last transaction ended.
#[derive(Debug, Clone, Default)]
struct Since {
    /// How many transactions had ended then, and how many waits had begun.
    ended: f64,
    waits: u64,
    /// For how many of another's transactions it is to stand still where it was woken after a wait.
    woken_length: f64,
    /// And elsewhere.
    length: f64,
}

impl StandsStill {
    /// Nobody has yet.
    pub fn new(standing: PlacedStanding, clients: usize) -> Self {
        Self {
            classes: classes_of(&standing.of),
            usual: usual_of(&standing.of),
            standing,
            ways: 0.0,
            statements: 0.0,
            ended: 0.0,
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
        match place {
            Place::Way => self.ways += 1.0,
            Place::Woken => {}
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
            Place::Way => drawn * self.ways > most,
            Place::Woken => drawn >= WOKEN_MAX,
            Place::Statement => drawn * self.statements > most * inside,
        };
        if does_not {
            return None;
        }
        let missing: f64 = self.missing_at(place).iter().sum();
        let missing = missing * (self.drawn + 1.0) / (self.held + 1.0);
        let missing = missing.min(MISSING_MAX * wanted);
        let chance = match place {
            Place::Way => missing / self.ways,
            Place::Woken => (woken * missing / self.ways).min(WOKEN_MAX),
            Place::Statement => missing / self.statements,
        };
        if drawn >= chance {
            return None;
        }
        let length = self.draw_length(place, 1.0 - uniform())? + 1.0 - self.usual;
        let since = &mut self.clients[client];
        match place {
            Place::Woken => since.woken_length += length,
            Place::Way | Place::Statement => since.length += length,
        }
        Some(length)
    }

    /// How many are missing of each class that stand still at such a place.
    fn missing_at(&self, place: Place) -> [f64; STOOD_STILL.len()] {
        let inside = self.standing.inside;
        std::array::from_fn(|number| {
            let inside = if STOOD_STILL[number] < TOLD_BY_LOOKS {
                0.0
            } else {
                inside
            };
            let part = match place {
                Place::Way => 1.0 - inside,
                Place::Woken => 1.0,
                Place::Statement => inside,
            };
            part * self.classes[number].missing(self.ended)
        })
    }

    /// One of the lengths that are missing at a place; `drawn` is from 0 to below 1.
    fn draw_length(&self, place: Place, drawn: f64) -> Option<f64> {
        let missing = self.missing_at(place);
        let mut left = drawn * missing.iter().sum::<f64>();
        let (class, missing) = self.classes.iter().zip(missing).find(|&(_, missing)| {
            let is_here = left < missing;
            left -= if is_here { 0.0 } else { missing };
            is_here
        })?;
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )] // a place in a list
        let number = (left / missing * class.lengths.len() as f64) as usize;
        class.lengths.get(number).copied()
    }

    /// The client's transaction ends. Others came on if they did so for half as far as was drawn,
    /// since a drawn time is not exactly theirs; or if nobody waited meanwhile.
    #[allow(clippy::cast_precision_loss)] // few clients
    pub fn end_transaction(&mut self, client: usize) {
        let others = (self.clients.len() - 1) as f64;
        let since = &self.clients[client];
        let meanwhile = (self.ended - since.ended) / others;
        if since.length > 0.0 && since.woken_length == 0.0 {
            let holds = self.waits == since.waits || meanwhile >= since.length / 2.0;
            self.drawn += 1.0;
            self.held += f64::from(u8::from(holds));
        } else if let Some(class) = class_of(meanwhile) {
            self.classes[class].by_itself += 1.0;
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
            let is_woken = standing.at(Place::Woken, 0, &mut uniform).is_some();
            woken += f64::from(u8::from(is_woken));
            assert_eq!(standing.at(Place::Statement, 0, &mut uniform), None);
            let meanwhile = if is_woken { 17.0 } else { 1.0 }; // of the other client's
            standing.clients[0].ended = standing.ended - meanwhile;
            standing.end_transaction(0);
        }
        let (all, ratio): (f64, f64) = (ways + woken, woken / (ways / 2.0));
        assert!((all / 500.0 - 1.0).abs() < 0.15, "{all}");
        assert!((ratio / 8.0 - 1.0).abs() < 0.25, "{ratio}");
    }

    /// How many stand still of 50,000. So many of the other's end during each of the client's, by
    /// its number, which may be woken and may be waited for.
    fn times(ended: impl Fn(u32) -> u32, is_woken: bool, is_waited_for: bool) -> u32 {
        let mut standing = of(0.01, 0.0, 1.0);
        let mut uniform = draws();
        let mut times = 0;
        for number in 0..50_000_u32 {
            if is_waited_for {
                standing.wait();
            }
            let place = if is_woken && number.is_multiple_of(200) {
                Place::Woken
            } else {
                Place::Way
            };
            times += u32::from(standing.at(place, 0, &mut uniform).is_some());
            standing.clients[0].ended = standing.ended - f64::from(ended(number)); // of the other
            standing.end_transaction(0);
        }
        times
    }

    /// Where each is waited for and none counts, a client stands still up to three times as often;
    /// not where nobody waits.
    #[test]
    fn what_is_missing_is_made_up_for() {
        let (waited_for, alone) = (times(|_| 0, false, true), times(|_| 0, false, false));
        assert!((1350..=1650).contains(&waited_for), "{waited_for}");
        assert!((450..=550).contains(&alone), "{alone}");
    }

    /// Every 200th transaction goes on while 17 of the other's end, woken or by its pauses: these
    /// are half of those that are wanted, and as many fewer are drawn. Where it was 8 they are no
    /// such times, and none is left out.
    #[test]
    fn who_stands_still_by_itself_is_not_drawn() {
        let each =
            |ended: u32| move |number: u32| if number.is_multiple_of(200) { ended } else { 0 };
        for is_woken in [false, true] {
            let found = times(each(17), is_woken, false);
            assert!((215..=285).contains(&found), "{found}");
            let shorter = times(each(8), is_woken, false);
            assert!((450..=550).contains(&shorter), "{shorter}");
        }
    }

    /// Which part of the times lies within statements is known of those that looks tell.
    #[test]
    fn short_times_are_on_the_way() {
        for (length, most) in [(3.0, 0), (16.0, 550)] {
            let mut standing = of(0.01, 1.0, 1.0);
            standing.classes = classes_of(&Standing {
                share: 0.01,
                lengths: vec![length],
                inside: None,
            });
            let mut uniform = draws();
            let mut times = [0, 0];
            for _ in 0..50_000 {
                for (number, place) in [Place::Way, Place::Statement].into_iter().enumerate() {
                    let stands = standing.at(place, 0, &mut uniform).is_some();
                    times[number] += u32::from(stands);
                }
                standing.clients[0].ended = standing.ended;
                standing.end_transaction(0);
            }
            let [way, within] = times;
            assert!((450..=550).contains(&(way + within)), "{times:?}");
            assert_eq!(
                (within == 0, within <= most),
                (most == 0, true),
                "{times:?}"
            );
        }
    }

    /// Each length is drawn as often as it was measured, but for those that there are without.
    #[test]
    fn each_length_is_missing_for_itself() {
        let mut standing = of(0.03, 0.0, 1.0);
        standing.classes = classes_of(&Standing {
            share: 0.03,
            lengths: vec![2.5, 2.5, 16.0],
            inside: None,
        });
        let mut uniform = draws();
        let mut found = [0, 0];
        for number in 0..100_000 {
            if let Some(length) = standing.at(Place::Way, 0, &mut uniform) {
                found[usize::from(length > 10.0)] += 1;
            }
            let meanwhile = if number % 100 == 0 { 3.0 } else { 0.0 };
            standing.clients[0].ended = standing.ended - meanwhile;
            standing.end_transaction(0);
        }
        assert!(
            found.iter().all(|of| (900..=1100).contains(of)),
            "{found:?}"
        );
    }
}
