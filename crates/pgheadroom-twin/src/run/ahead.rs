//! Transactions drawn before their turn, so that what they will touch is in the cache by then.
//!
//! ```text
//! drawn --16 ahead--> row --10--> page --5--> items --0--> carried out
//! ```
//!
//! One client's draws depend on nothing but its own past, so drawing them early draws the same. A
//! table is larger than the cache, and an update waits for each of the lines that it needs; looked
//! up early, transactions share that wait. With several clients the order of the draws depends on
//! the order of the transactions, and nothing is drawn ahead.

use crate::executor::{Database, LookAhead, Sight, Target};
use crate::workload::{Access, Deed, End, Operation, Workload};

/// How far ahead of its turn a transaction is drawn, and asks for the memory of its row, its page
/// and the page's items. Chosen by trying; 8 to 32 differ by less than the noise.
const DRAWN: usize = 16;
const PAGE: usize = 10;
const ITEMS: usize = 5;

const _: () = assert!(DRAWN.is_power_of_two());

/// A transaction.
#[derive(Debug)]
struct Drawn {
    operations: Vec<Operation>,
    end: End,
    /// The row, if the transaction is one simple update and a COMMIT.
    target: Option<Target>,
    /// Where the first statement looks, if it finds rows by one key otherwise.
    sight: Option<Sight>,
}

/// The transaction whose turn it is, and those that are drawn for later.
#[derive(Debug)]
pub(super) struct Ahead {
    /// A ring, whose memory is used again.
    ring: Vec<Drawn>,
    current: usize,
    first: usize,
    count: usize,
    is_alone: bool,
}

impl Ahead {
    /// Nothing is drawn yet; only of one client's transactions several will be.
    pub fn new(clients: usize) -> Self {
        let nothing = || Drawn {
            operations: Vec::new(),
            end: End::Commit,
            target: None,
            sight: None,
        };
        let is_alone = clients == 1;
        let most = if is_alone { DRAWN } else { 1 };
        Self {
            ring: std::iter::repeat_with(nothing).take(most).collect(),
            current: 0,
            first: 0,
            count: 0,
            is_alone,
        }
    }

    /// The place in the ring that is so far behind the next transaction's.
    #[inline]
    fn place(&self, distance: usize) -> usize {
        (self.first + distance) & (self.ring.len() - 1)
    }

    /// Turns to this client's next transaction, and says how it ends; `left` more are wanted, this
    /// one included.
    #[inline]
    pub fn next(
        &mut self,
        workload: &mut impl Workload,
        client: usize,
        left: u64,
        db: &Database,
    ) -> Option<End> {
        while self.count < self.ring.len() && (self.count as u64) < left {
            let place = self.place(self.count);
            let drawn = &mut self.ring[place];
            let Some(end) = workload.next_transaction(client, &mut drawn.operations) else {
                break;
            };
            drawn.end = end;
            drawn.target = None;
            drawn.sight = None;
            if self.is_alone {
                let operations = drawn.operations.as_slice();
                drawn.target = target_of(db, operations).filter(|_| end == End::Commit);
                if let Some(target) = drawn.target {
                    db.look_ahead(target, LookAhead::Row);
                }
                if drawn.target.is_none() {
                    drawn.sight = sight_of(db, operations);
                }
            }
            self.count += 1;
        }
        for (distance, what) in [(PAGE, LookAhead::Page), (ITEMS, LookAhead::Items)] {
            if distance < self.count {
                let coming = &self.ring[self.place(distance)];
                if let Some(target) = coming.target {
                    db.look_ahead(target, what);
                }
                if let Some(sight) = coming.sight {
                    db.look_at_leaf(sight, what);
                }
            }
        }
        self.count = self.count.checked_sub(1)?;
        self.current = self.first;
        self.first = self.place(1);
        Some(self.ring[self.current].end)
    }

    /// Rows were put elsewhere: where those of drawn transactions are is to be asked again.
    pub fn forget_targets(&mut self) {
        for drawn in &mut self.ring {
            drawn.target = None;
            drawn.sight = None;
        }
    }

    /// The same, to be taken away.
    pub fn operations_mut(&mut self) -> &mut Vec<Operation> {
        &mut self.ring[self.current].operations
    }

    /// The statements of the transaction whose turn it is.
    #[inline]
    pub fn operations(&self) -> &[Operation] {
        &self.ring[self.current].operations
    }

    /// Carries out the transaction whose turn it is, COMMIT included; false when it is not one
    /// simple update of the only client.
    #[inline(always)]
    pub fn update_alone(&self, db: &mut Database) -> bool {
        let drawn = &self.ring[self.current];
        let Some(target) = drawn.target else {
            return false;
        };
        match &drawn.operations[0] {
            Operation::Find {
                deed: Deed::Update(sets),
                ..
            } => db.update_alone(target, sets),
            _ => false,
        }
    }

    /// Carries out the transactions that follow, until one is no simple update, or `most` are
    /// done; how many. `left` more are wanted.
    pub fn update_on(
        &mut self,
        workload: &mut impl Workload,
        (most, left): (u64, u64),
        db: &mut Database,
    ) -> u64 {
        for done in 0..most {
            if self.next(workload, 0, left - done, db).is_none() {
                return done;
            }
            if !self.update_alone(db) {
                self.first = self.current; // its turn comes again
                self.count += 1;
                return done;
            }
        }
        most
    }
}

/// The row of a transaction that is one simple update.
#[inline(always)]
fn target_of(db: &Database, operations: &[Operation]) -> Option<Target> {
    match operations {
        [
            Operation::Find {
                table,
                by: Access::Index(index),
                low,
                high,
                deed: Deed::Update(sets),
                ..
            },
        ] if low == high => db.target_of(*table, *index, *low, sets),
        _ => None,
    }
}

/// Where a transaction's first statement looks.
fn sight_of(db: &Database, operations: &[Operation]) -> Option<Sight> {
    match operations.first()? {
        Operation::Find {
            table,
            by: Access::Index(index),
            low,
            high,
            ..
        } if low == high => db.look_for_leaf(*table, *index, *low),
        _ => None,
    }
}
