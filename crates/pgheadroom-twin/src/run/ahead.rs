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

use crate::executor::{Database, LookAhead};
use crate::workload::{Access, End, Operation, Workload};

/// How far ahead of its turn a transaction is drawn, and asks for the memory of its row, its page
/// and the page's items. Chosen by trying; 8 to 32 differ by less than the noise.
const DRAWN: usize = 16;
const PAGE: usize = 10;
const ITEMS: usize = 5;

/// A transaction.
#[derive(Debug)]
struct Drawn {
    operations: Vec<Operation>,
    end: End,
}

/// The transaction whose turn it is, and those that are drawn for later.
#[derive(Debug)]
pub(super) struct Ahead {
    /// A ring, whose memory is used again.
    ring: Vec<Drawn>,
    current: usize,
    first: usize,
    count: usize,
    most: usize,
}

impl Ahead {
    /// Nothing is drawn yet; only of one client's transactions several will be.
    pub fn new(clients: usize) -> Self {
        let nothing = || Drawn {
            operations: Vec::new(),
            end: End::Commit,
        };
        let most = if clients == 1 { DRAWN } else { 1 };
        Self {
            ring: std::iter::repeat_with(nothing).take(most).collect(),
            current: 0,
            first: 0,
            count: 0,
            most,
        }
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
        while self.count < self.most && (self.count as u64) < left {
            let drawn = &mut self.ring[(self.first + self.count) % self.most];
            drawn.operations.clear();
            let Some(end) = workload.next_transaction(client, &mut drawn.operations) else {
                break;
            };
            drawn.end = end;
            look(db, &drawn.operations, LookAhead::Row);
            self.count += 1;
        }
        for (distance, what) in [(PAGE, LookAhead::Page), (ITEMS, LookAhead::Items)] {
            if distance < self.count {
                let coming = &self.ring[(self.first + distance) % self.most];
                look(db, &coming.operations, what);
            }
        }
        self.count = self.count.checked_sub(1)?;
        self.current = self.first;
        self.first = (self.first + 1) % self.most;
        Some(self.ring[self.current].end)
    }

    /// The statements of the transaction whose turn it is.
    #[inline]
    pub fn operations(&self) -> &[Operation] {
        &self.ring[self.current].operations
    }
}

#[inline(always)]
fn look(db: &Database, operations: &[Operation], what: LookAhead) {
    for operation in operations {
        if let Operation::Find {
            table,
            by: Access::Index(index),
            low,
            high,
            ..
        } = operation
        {
            if low == high {
                db.look_ahead(*table, *index, *low, what);
            }
        }
    }
}
