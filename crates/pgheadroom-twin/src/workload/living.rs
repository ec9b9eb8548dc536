//! Picks that follow the rows that are there: the oldest, rows of an age, any of the living.
//!
//! ```text
//! a client's own rows of a table, in order:
//!   i = 0 .. m-1   loaded     key c + 1 + i*C, with m = N/C
//!   i = m ..       inserted   key N + 1 + (c + C*(x div R))*R + x mod R, with x = i - m
//!
//!   0 ... first ........... last ...        living: n = last - first + 1
//!         |                 +- the last that it attempted to insert
//!         +- the first that it has not yet tried to delete by `oldest`
//! ```
//!
//! Counters move as keys are drawn, whatever becomes of the transaction: they are variables of a
//! pgbench script (`scripts.py` of the Python side), and one client's draws are those of the
//! server. A number that no row has (left out by an insert of fewer rows, rolled back, deleted
//! otherwise) is taken like any other, and its statement finds nothing.

use crate::pgbench::{Prng, permute};

/// A key that no row has.
pub(super) const NO_ROW: i64 = -1;

/// Which of a client's own rows an operation takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Living {
    /// The first that it has not tried to delete.
    Oldest,
    /// The same, but deletes go through blocks of so many rows in a mixed order.
    Within(i64),
    /// As many before the last as is drawn evenly between the two; none where that was deleted.
    Age {
        /// At least.
        min: i64,
        /// At most.
        max: i64,
    },
    /// All alike.
    Uniform,
    /// pgbench's `random_zipfian` with this parameter, the last row being the most frequent.
    Zipfian(f64),
    /// pgbench's `random_gaussian` with this parameter, counted from the last row.
    Gaussian(f64),
}

/// A client's own rows of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnRows {
    client: i64,
    clients: i64,
    /// Rows that are loaded, of all clients.
    loaded: i64,
    /// Keys of an insert statement.
    width: i64,
    /// The first number that this client has not tried to delete by `oldest`.
    pub first: i64,
    /// The last number that it has attempted to insert.
    last: i64,
    /// Deletes of [`Living::Within`].
    deletes: i64,
    /// Insert statements attempted.
    inserts: i64,
    /// The last key of the last of them; 0 before that.
    last_inserted: i64,
}

impl OwnRows {
    /// Nothing is inserted or deleted yet.
    pub fn new((client, clients): (i64, i64), loaded: i64, width: i64) -> Self {
        Self {
            client,
            clients,
            loaded,
            width,
            first: 0,
            last: loaded / clients - 1,
            deletes: 0,
            inserts: 0,
            last_inserted: 0,
        }
    }

    /// The first key of the next insert statement over at most so many keys.
    #[inline]
    pub fn next_insert(&self, most: i64) -> i64 {
        self.loaded + 1 + (self.client + self.clients * self.inserts) * most
    }

    /// That statement inserts so many rows from this key on.
    #[inline]
    pub fn insert(&mut self, low: i64, rows: i64) {
        self.last_inserted = low + rows - 1;
        self.last = self.loaded / self.clients + self.inserts * self.width + rows - 1;
        self.inserts += 1;
    }

    /// The key that this client inserted last; one of the highest loaded before that.
    #[inline]
    pub const fn newest(&self) -> i64 {
        if self.last_inserted == 0 {
            self.loaded - self.client
        } else {
            self.last_inserted
        }
    }

    /// A statement over so many keys has tried to delete the oldest.
    pub fn delete_oldest(&mut self, keys: i64) {
        self.first += (keys + self.clients - 1) / self.clients;
    }

    /// A statement has tried to delete so many rows at the head of a queue, the oldest for its only
    /// client.
    pub fn delete_head(&mut self, rows: i64) {
        self.first = (self.first + rows).min(self.last + 1);
    }

    /// The key of the row that is picked, or one that no row has; nothing is drawn where no row is
    /// living.
    pub fn pick(&mut self, living: Living, deletes: bool, client: &mut Prng) -> i64 {
        let rows = self.last - self.first + 1;
        if rows < 1 {
            return NO_ROW;
        }
        let number = match living {
            Living::Oldest => self.first,
            Living::Within(block) => {
                let (begin, place) = (self.deletes / block * block, self.deletes % block);
                begin + permute(place, block, 1)
            }
            Living::Age { min, max } => self.last - client.random(min, max),
            Living::Uniform => self.first - 1 + client.random(1, rows),
            Living::Zipfian(theta) => self.last + 1 - client.random_zipfian(1, rows, theta),
            Living::Gaussian(parameter) => {
                self.last + 1 - client.random_gaussian(1, rows, parameter)
            }
        };
        if !(self.first..=self.last).contains(&number) {
            return NO_ROW;
        }
        match living {
            Living::Oldest if deletes => self.first += 1,
            Living::Within(block) if deletes => {
                self.deletes += 1;
                self.first = self.deletes / block * block;
            }
            _ => {}
        }
        self.key(number)
    }

    /// The key of the own row of this number.
    fn key(&self, number: i64) -> i64 {
        let inserted = number - self.loaded / self.clients;
        if inserted < 0 {
            return self.client + 1 + number * self.clients;
        }
        let statement = self.client + self.clients * (inserted / self.width);
        self.loaded + 1 + statement * self.width + inserted % self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rows: &mut OwnRows, living: Living, many: usize) -> Vec<i64> {
        let mut client = Prng::from_seed(1);
        (0..many)
            .map(|_| rows.pick(living, true, &mut client))
            .collect()
    }

    /// A queue goes on from the loaded rows to the inserted ones, and waits where nothing is left.
    #[test]
    fn the_oldest_goes_on_beyond_the_loaded_rows() {
        let mut rows = OwnRows::new((1, 2), 4, 3);
        assert_eq!(rows.newest(), 3);
        let low = rows.next_insert(3);
        rows.insert(low, 2);
        assert_eq!(rows.newest(), 9);
        let low = rows.next_insert(3);
        rows.insert(low, 1);
        // Two loaded ones, the first insert's three places (one of them left out), the second's.
        let keys = taken(&mut rows, Living::Oldest, 7);
        assert_eq!(keys, [2, 4, 8, 9, 10, 14, NO_ROW]);
        let low = rows.next_insert(3);
        rows.insert(low, 3);
        // What the second insert left out is in between.
        let keys = taken(&mut rows, Living::Oldest, 6);
        assert_eq!(keys, [15, 16, 20, 21, 22, NO_ROW]);
    }

    /// Within a block the order is mixed, and blocks follow on each other; a row that is not there
    /// yet is waited for.
    #[test]
    fn deletes_go_block_by_block() {
        let mut rows = OwnRows::new((0, 1), 10, 1);
        let mut keys = taken(&mut rows, Living::Within(4), 8);
        assert_ne!(keys, (1..=8).collect::<Vec<_>>());
        keys[..4].sort_unstable();
        keys[4..].sort_unstable();
        assert_eq!(keys, (1..=8).collect::<Vec<_>>());
        assert_eq!(rows.first, 8);
        let before = rows.deletes;
        let waits = taken(&mut rows, Living::Within(4), 5);
        assert_eq!(waits.last(), Some(&NO_ROW));
        assert_eq!(rows.first, 8);
        assert!(rows.deletes < before + 4);
        for _ in 0..2 {
            let low = rows.next_insert(1);
            rows.insert(low, 1);
        }
        let rest = taken(&mut rows, Living::Within(4), 4);
        let found = waits.iter().chain(&rest).filter(|&&key| key != NO_ROW);
        let mut found: Vec<i64> = found.copied().collect();
        found.sort_unstable();
        assert_eq!(found, [9, 10, 11, 12]);
        assert_eq!(rows.first, 12);
    }

    /// Nothing is drawn where no row is living; other statements than deletes move nothing.
    #[test]
    fn an_empty_table_draws_nothing() {
        let mut rows = OwnRows::new((0, 1), 0, 1);
        let mut client = Prng::from_seed(1);
        for living in [
            Living::Age { min: 0, max: 5 },
            Living::Uniform,
            Living::Zipfian(1.5),
            Living::Gaussian(3.0),
        ] {
            assert_eq!(rows.pick(living, false, &mut client), NO_ROW);
        }
        assert_eq!(client, Prng::from_seed(1));
        let low = rows.next_insert(1);
        rows.insert(low, 1);
        for living in [Living::Oldest, Living::Within(3)] {
            assert_eq!(rows.pick(living, false, &mut client), 1);
            assert_eq!(rows.first, 0);
        }
    }

    /// Ages count from the last row, and what was deleted is no row; the draw is made all the same.
    #[test]
    fn ages_count_from_the_last_row() {
        let mut rows = OwnRows::new((0, 1), 10, 1);
        taken(&mut rows, Living::Oldest, 6);
        let mut client = Prng::from_seed(7);
        let mut like = client.clone();
        let mut found = 0;
        for _ in 0..100 {
            let age = like.random(2, 5);
            let key = rows.pick(Living::Age { min: 2, max: 5 }, false, &mut client);
            let expected = if age < 4 { 10 - age } else { NO_ROW };
            assert_eq!(key, expected);
            found += i64::from(key != NO_ROW);
        }
        assert!((1..100).contains(&found));
        assert_eq!(client, like);
    }
}
