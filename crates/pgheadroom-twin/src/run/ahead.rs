//! Transactions drawn before their turn, so that what they will touch is in the cache by then.
//!
//! ```text
//! drawn --16 ahead--> row --10--> page --5--> items --0--> carried out
//! ```
//!
//! A client's draws depend on nothing but its own past, unless the scripts have to be chosen among:
//! that is drawn in the order of all transactions, which only one client's is known of. Drawing
//! early then draws the same. A table is larger than the cache, and an update waits for each of the
//! lines that it needs; prefetched, transactions share that wait. Of several clients each has
//! a ring, the shorter the more there are, since others' transactions pass between two of its own.

use crate::executor::{Assignment, Database, LeafTarget, Prefetch, SessionId, TableId, Target};
use crate::workload::{Access, CmdType, End, Operation, Workload};

/// How far ahead of its turn the only client's transaction is drawn, and its row is prefetched;
/// of that way its page is prefetched behind 6 parts of 16, the page's items behind 11. Chosen
/// by trying; 8 to 32 differ by less than the noise.
const DRAWN: usize = 16;
/// The same of one of many clients, at least.
const DRAWN_LEAST: usize = 4;

/// How far ahead of their turn the transactions of each of some clients are drawn.
fn drawn_ahead(clients: usize) -> usize {
    (DRAWN / clients.next_power_of_two()).max(DRAWN_LEAST)
}

/// A transaction.
#[derive(Debug)]
struct Drawn {
    operations: Vec<Operation>,
    end: End,
    /// The row of its first statement, if that is a simple update.
    target: Option<Target>,
    /// Whether nothing but the end of the transaction follows that, which is no ROLLBACK.
    is_alone: bool,
    /// Where the first statement searches, if it finds rows by one key otherwise.
    leaf: Option<LeafTarget>,
}

/// A client's transactions that are drawn.
#[derive(Debug)]
struct Ring {
    /// Its memory is used again.
    places: Vec<Drawn>,
    first: usize,
    count: usize,
}

impl Ring {
    fn new(places: usize) -> Self {
        let nothing = || Drawn {
            operations: Vec::new(),
            end: End::Commit,
            target: None,
            is_alone: false,
            leaf: None,
        };
        assert!(places.is_power_of_two());
        Self {
            places: std::iter::repeat_with(nothing).take(places).collect(),
            first: 0,
            count: 0,
        }
    }

    /// The place in the ring that is so far behind the next transaction's.
    #[inline]
    fn slot(&self, distance: usize) -> usize {
        (self.first + distance) & (self.places.len() - 1)
    }
}

/// The transaction whose turn it is, and those that are drawn for later.
#[derive(Debug)]
pub(super) struct Ahead {
    /// By client; one for all where their draws depend on each other.
    rings: Vec<Ring>,
    ring: usize,
    current: usize,
    /// Whether more than the next transaction is drawn.
    draws_ahead: bool,
    /// Whether any that was drawn searches a leaf.
    has_leaves: bool,
    /// Where it is not: the row of the next one's first statement, if that finds it by key.
    next_row: Option<Target>,
    /// Transactions of all clients that are drawn and not carried out.
    waiting: u64,
}

impl Ahead {
    /// Nothing is drawn yet.
    pub fn new(workload: &impl Workload) -> Self {
        let clients = workload.clients();
        let draws_ahead = clients == 1 || workload.draws_apart();
        let rings = if draws_ahead {
            let places = drawn_ahead(clients);
            std::iter::repeat_with(|| Ring::new(places))
                .take(clients)
                .collect()
        } else {
            vec![Ring::new(1)]
        };
        Self {
            rings,
            ring: 0,
            current: 0,
            draws_ahead,
            has_leaves: false,
            next_row: None,
            waiting: 0,
        }
    }

    /// Turns to this client's next transaction, and says how it ends; `left` more are wanted of all
    /// clients, this one included.
    #[inline]
    pub fn next(
        &mut self,
        workload: &mut impl Workload,
        client: usize,
        left: u64,
        db: &Database,
    ) -> Option<End> {
        self.ring = if self.draws_ahead { client } else { 0 };
        let ring = &mut self.rings[self.ring];
        while ring.count < ring.places.len() && (ring.count == 0 || self.waiting < left) {
            let place = ring.slot(ring.count);
            let drawn = &mut ring.places[place];
            let Some(end) = workload.next_transaction(client, &mut drawn.operations) else {
                break;
            };
            drawn.end = end;
            drawn.leaf = None;
            let operations = drawn.operations.as_slice();
            drawn.target = target_of(db, operations);
            drawn.is_alone = operations.len() == 1 && end != End::Rollback;
            if !self.draws_ahead {
                self.next_row = drawn.target.or_else(|| row_of(db, operations));
                if let Some(row) = self.next_row {
                    db.prefetch_target(row, Prefetch::Row);
                }
            } else {
                if let Some(target) = drawn.target {
                    db.prefetch_target(target, Prefetch::Row);
                }
                if drawn.target.is_none() {
                    drawn.leaf = leaf_of(db, operations);
                    self.has_leaves |= drawn.leaf.is_some();
                }
            }
            ring.count += 1;
            self.waiting += 1;
        }
        let places = ring.places.len();
        let steps = [
            (places * 10 / 16, Prefetch::Page),
            (places * 5 / 16, Prefetch::Items),
        ];
        for (distance, what) in steps {
            if distance < ring.count && self.draws_ahead {
                let coming = &ring.places[ring.slot(distance)];
                if let Some(target) = coming.target {
                    db.prefetch_target(target, what);
                }
            }
        }
        if self.has_leaves {
            let steps = [
                (places * 12 / 16, Prefetch::Page),
                (places * 8 / 16, Prefetch::Items),
                (places * 6 / 16, Prefetch::Pages),
                (places * 5 / 16, Prefetch::Leaves),
                (places * 4 / 16, Prefetch::Ends),
                (places * 3 / 16, Prefetch::Versions),
                (places * 2 / 16, Prefetch::Tids),
            ];
            for (distance, what) in steps.into_iter().filter(|step| step.0 < ring.count) {
                let place = ring.slot(distance);
                let Drawn {
                    leaf, operations, ..
                } = &mut ring.places[place];
                if let Some(leaf) = leaf {
                    db.prefetch_search(leaf, sets_of(operations), what);
                }
            }
        }
        ring.count = ring.count.checked_sub(1)?;
        self.waiting -= 1;
        self.current = ring.first;
        ring.first = ring.slot(1);
        Some(ring.places[self.current].end)
    }

    /// Searches of the transaction whose turn it is may well end where leaves were prefetched.
    #[inline]
    pub fn expect_leaves(&self, db: &mut Database) {
        if let Some(leaf) = &self.rings[self.ring].places[self.current].leaf {
            db.expect_leaves(leaf);
        }
    }

    /// Prefetches the page of the next transaction's row, where nothing was known of it before.
    #[inline]
    pub fn prefetch_page(&self, db: &Database) {
        if let Some(row) = self.next_row {
            db.prefetch_target(row, Prefetch::Page);
        }
    }

    /// Transactions that are drawn and not carried out.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Rows were put elsewhere: where those of drawn transactions are is to be asked again.
    pub fn forget_targets(&mut self) {
        for drawn in self.rings.iter_mut().flat_map(|ring| &mut ring.places) {
            drawn.target = None;
            drawn.leaf = None;
        }
    }

    /// The same, to be taken away.
    pub fn operations_mut(&mut self) -> &mut Vec<Operation> {
        &mut self.rings[self.ring].places[self.current].operations
    }

    /// The statements of the transaction whose turn it is.
    #[inline]
    pub fn operations(&self) -> &[Operation] {
        &self.rings[self.ring].places[self.current].operations
    }

    /// Carries out the transaction whose turn it is but for its COMMIT, beside other clients; its
    /// table, or `None` when it is not one simple update.
    #[inline]
    pub fn begin_update_alone(&self, client: usize, db: &mut Database) -> Option<TableId> {
        let drawn = &self.rings[self.ring].places[self.current];
        let is_whole = drawn.is_alone && drawn.end == End::Statement;
        let target = drawn.target.filter(|_| is_whole)?;
        let Operation::Find {
            table,
            cmd_type: CmdType::Update(sets),
            ..
        } = &drawn.operations[0]
        else {
            return None;
        };
        db.switch_to(SessionId(client));
        db.begin_update_alone(target, sets).then_some(*table)
    }

    /// Carries out the transaction whose turn it is, COMMIT included; false when it is not one
    /// simple update of the only client.
    #[inline(always)]
    pub fn update_alone(&self, db: &mut Database) -> bool {
        let drawn = &self.rings[self.ring].places[self.current];
        let Some(target) = drawn.target.filter(|_| drawn.is_alone) else {
            return false;
        };
        match &drawn.operations[0] {
            Operation::Find {
                cmd_type: CmdType::Update(sets),
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
                let ring = &mut self.rings[self.ring];
                ring.first = self.current; // its turn comes again
                ring.count += 1;
                self.waiting += 1;
                return done;
            }
        }
        most
    }
}

/// The table, index and key by which a transaction's first statement finds its row, and what it
/// does.
#[inline(always)]
fn by_key(operations: &[Operation]) -> Option<(TableId, usize, i64, &CmdType)> {
    match operations.first()? {
        Operation::Find {
            table,
            by: Access::Index(index),
            low,
            high,
            cmd_type,
            ..
        } if low == high => Some((*table, *index, *low, cmd_type)),
        _ => None,
    }
}

/// The SET clause of a transaction's first statement, if it has one.
fn sets_of(operations: &[Operation]) -> &[Assignment<'_>] {
    match by_key(operations) {
        Some((.., CmdType::Update(sets))) => sets,
        _ => &[],
    }
}

/// The row of a transaction's first statement, if that is a simple update.
#[inline(always)]
fn target_of(db: &Database, operations: &[Operation]) -> Option<Target> {
    match by_key(operations)? {
        (table, index, key, CmdType::Update(sets)) => db.target_of(table, index, key, sets),
        _ => None,
    }
}

/// The row that a transaction's first statement finds by key.
fn row_of(db: &Database, operations: &[Operation]) -> Option<Target> {
    let (table, index, key, _) = by_key(operations)?;
    db.row_by_key(table, index, key)
}

/// Where a transaction's first statement searches.
fn leaf_of(db: &Database, operations: &[Operation]) -> Option<LeafTarget> {
    let (table, index, key, _) = by_key(operations)?;
    db.prefetch_leaf(table, index, key)
}
