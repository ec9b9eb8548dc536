//! The choice among legal split points: the best few by free space, then the cheapest high key.

use super::{
    Candidate, INTERNAL_SPLIT_DISTANCE, LEAF_SPLIT_DISTANCE, Multiplier, SINGLE_VALUE_FILLFACTOR,
    Search, SplitPoint, item_bytes, short, signed_count,
};
use crate::btree::key::keep_natts;

/// Source: `FindSplitStrat`, nbtsplitloc.c.
#[derive(PartialEq, Eq)]
enum Strategy {
    Default,
    ManyDuplicates,
    SingleValue,
}

impl Search<'_> {
    /// The second half of `_bt_findsplitloc`, nbtsplitloc.c.
    pub(super) fn choose(mut self, multiplier: Multiplier) -> SplitPoint {
        let leftmost = self.candidates[0].point;
        let rightmost = self.candidates[self.candidates.len() - 1].point;
        self.sort(multiplier);
        self.interval = self.default_interval();
        let (strategy, perfect) = self.strategy(leftmost, rightmost);
        match strategy {
            Strategy::Default => {}
            Strategy::ManyDuplicates => self.interval = self.candidates.len(),
            Strategy::SingleValue => {
                self.sort(Some(SINGLE_VALUE_FILLFACTOR / 100.0));
                self.interval = 1;
            }
        }
        self.best(perfect, &strategy)
    }

    /// Number of candidates that share space nearly as well as the best.
    ///
    /// Source: `_bt_defaultinterval`, nbtsplitloc.c.
    fn default_interval(&self) -> usize {
        let distance = if self.page.is_leaf() {
            LEAF_SPLIT_DISTANCE
        } else {
            INTERNAL_SPLIT_DISTANCE
        };
        #[allow(clippy::cast_possible_truncation)] // toward zero, as C does
        let tolerance = (f64::from(self.old_total) * distance) as i16;
        let best = &self.candidates[0];
        let near = |free: i16, of: i16| (of - tolerance..=of + tolerance).contains(&free);
        let within = |one: &Candidate| {
            near(one.left_free, best.left_free) && near(one.right_free, best.right_free)
        };
        self.candidates[1..]
            .iter()
            .position(|one| !within(one))
            .map_or(self.candidates.len(), |position| position + 1)
    }

    /// Strategy and the penalty that cannot be beaten.
    ///
    /// Source: `_bt_strategy`, nbtsplitloc.c.
    fn strategy(&self, leftmost: SplitPoint, rightmost: SplitPoint) -> (Strategy, i32) {
        if !self.page.is_leaf() {
            return (Strategy::Default, self.min_first_right);
        }
        let columns = signed_count(self.new.key.len());
        let (left, right) = self.interval_edges();
        let perfect = self.distinguishing(left, right);
        if perfect <= columns {
            return (Strategy::Default, perfect);
        }
        let perfect = self.distinguishing(leftmost, rightmost);
        if perfect <= columns {
            return (Strategy::ManyDuplicates, columns);
        }
        if self.page.is_rightmost() {
            return (Strategy::SingleValue, perfect);
        }
        // The high key tells whether this is the last page of the value.
        let perfect = signed_count(keep_natts(self.page.key(0), self.new.key));
        if perfect <= columns {
            (Strategy::SingleValue, perfect)
        } else {
            (Strategy::Default, perfect)
        }
    }

    /// The outermost candidates of the interval, by place on the page.
    ///
    /// Source: `_bt_interval_edges`, nbtsplitloc.c.
    fn interval_edges(&self) -> (SplitPoint, SplitPoint) {
        let best = self.candidates[0].point;
        let (mut left, mut right) = (None, None);
        let count = self.interval.min(self.candidates.len());
        for (index, candidate) in self.candidates[..count].iter().enumerate().rev() {
            let point = candidate.point;
            let order =
                (point.first_right, point.new_on_left).cmp(&(best.first_right, best.new_on_left));
            if order.is_le() && left.is_none() && (order.is_ne() || index == 0) {
                left = Some(point);
            }
            if order.is_ge() && right.is_none() && (order.is_ne() || index == 0) {
                right = Some(point);
            }
            if let (Some(left), Some(right)) = (left, right) {
                return (left, right);
            }
        }
        unreachable!("the best candidate is an edge if no other is");
    }

    /// Source: `_bt_bestsplitloc`, nbtsplitloc.c.
    fn best(&self, perfect: i32, strategy: &Strategy) -> SplitPoint {
        let mut best_penalty = i32::MAX;
        let mut chosen = 0;
        let count = self.interval.min(self.candidates.len());
        for (index, candidate) in self.candidates[..count].iter().enumerate() {
            let penalty = self.penalty(candidate.point);
            if penalty < best_penalty {
                best_penalty = penalty;
                chosen = index;
            }
            if penalty <= perfect {
                break;
            }
        }
        let point = self.candidates[chosen].point;
        // Descending insertions right of many duplicates would split at the same point for ever.
        let just_right = (self.new.position..self.new.position + 9).contains(&point.first_right);
        if *strategy == Strategy::ManyDuplicates
            && !self.page.is_rightmost()
            && !point.new_on_left
            && just_right
        {
            return self.candidates[0].point;
        }
        point
    }

    /// Cost of the high key that a split needs: columns on leaves, bytes above.
    ///
    /// Source: `_bt_split_penalty`, nbtsplitloc.c.
    fn penalty(&self, point: SplitPoint) -> i32 {
        if self.page.is_leaf() {
            return self.distinguishing(point, point);
        }
        if self.new_is_first_right(point) {
            self.new_bytes
        } else {
            item_bytes(self.page, point.first_right)
        }
    }

    /// Columns that tell the last left item of one split from the first right item of another.
    fn distinguishing(&self, left: SplitPoint, right: SplitPoint) -> i32 {
        let last_left = if left.new_on_left && left.first_right == self.new.position {
            self.new.key
        } else {
            self.page.key(left.first_right - 1)
        };
        let first_right = if self.new_is_first_right(right) {
            self.new.key
        } else {
            self.page.key(right.first_right)
        };
        signed_count(keep_natts(last_left, first_right))
    }

    fn new_is_first_right(&self, point: SplitPoint) -> bool {
        !point.new_on_left && point.first_right == self.new.position
    }
}

const _: () = assert!(short(8152) == 8152);
