//! Codes for strings whose order is the strings' order.
//!
//! Every string known when an index is built gets a label, evenly spaced over all integers; one
//! that comes later takes the middle between its neighbours. When two neighbours leave no room,
//! all labels are spread anew and the index replaces its codes.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::row::kind::Kind;
use crate::wrap::Wrap;

/// Smallest and largest label; beyond them are the codes of NULL.
const FIRST: i128 = i64::MIN as i128 + 2;
const LAST: i128 = i64::MAX as i128 - 1;

/// What share of the room at the end a string takes that is behind all others; arbitrary.
const APPENDED: i128 = 1 << 20;

/// Whether the strings of this kind have codes as they come.
pub(super) fn needs_labels(kind: Kind) -> bool {
    kind.is_kept() && kind != Kind::Wrapped(Wrap::Uuid)
}

/// Labels of strings, compared byte by byte as the C collation does.
#[derive(Debug, Clone, Default)]
pub(super) struct TextOrder {
    labels: BTreeMap<Box<[u8]>, i64>,
}

impl TextOrder {
    /// Strings known from the beginning.
    pub fn spread_over(texts: impl Iterator<Item = Box<[u8]>>) -> Self {
        let mut order = Self {
            labels: texts.map(|text| (text, 0)).collect(),
        };
        order.spread();
        order
    }

    /// The label of a string; `None` when there is no room between its neighbours, and
    /// [`TextOrder::respread`] has to make some.
    pub fn code(&mut self, text: &[u8]) -> Option<i64> {
        if let Some(&label) = self.labels.get(text) {
            return Some(label);
        }
        let below = self
            .labels
            .range::<[u8], _>((Unbounded, Excluded(text)))
            .next_back();
        let above = self
            .labels
            .range::<[u8], _>((Excluded(text), Unbounded))
            .next();
        let low = below.map_or(FIRST, |(_, &label)| i128::from(label));
        let high = above.map_or(LAST, |(_, &label)| i128::from(label));
        // Strings that ascend each come behind the last one: most of the room there is for them.
        let part = if above.is_none() && below.is_some() {
            APPENDED
        } else {
            2
        };
        let middle = low + ((high - low) / part).max(1);
        if middle <= low || middle >= high {
            return None;
        }
        let label = i64::try_from(middle).expect("between two labels");
        self.labels.insert(text.into(), label);
        Some(label)
    }

    /// The string of a label, looked for byte by byte; `None` where no string has it.
    pub fn text_of(&self, label: i64) -> Option<&[u8]> {
        let mut prefix: Vec<u8> = Vec::new();
        loop {
            let (first, &of_first) = self.from(&prefix)?;
            if of_first == label {
                return Some(first);
            }
            if of_first > label {
                return None;
            }
            let last = self.last_with(&prefix)?;
            let shared = first
                .iter()
                .zip(last)
                .take_while(|(one, other)| one == other);
            let shared = shared.count();
            prefix = first[..shared].to_vec();
            // The last byte behind what all share whose first string is not behind the label's.
            let mut low = first.get(shared).copied().unwrap_or(0);
            let mut high = *last.get(shared)?;
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                let beyond = [&prefix[..], &[middle]].concat();
                let is_behind = self.from(&beyond).is_none_or(|(_, &of)| of > label);
                if is_behind {
                    high = middle - 1;
                } else {
                    low = middle;
                }
            }
            prefix.push(low);
        }
    }

    fn from(&self, bound: &[u8]) -> Option<(&[u8], &i64)> {
        let mut from = self.labels.range::<[u8], _>((Included(bound), Unbounded));
        from.next().map(|(text, label)| (&**text, label))
    }

    /// The last string that begins like this.
    fn last_with(&self, prefix: &[u8]) -> Option<&[u8]> {
        let mut end = prefix.to_vec();
        while end.pop_if(|byte| *byte == u8::MAX).is_some() {}
        let mut all = match end.last_mut() {
            Some(byte) => {
                *byte += 1;
                self.labels.range::<[u8], _>((Unbounded, Excluded(&*end)))
            }
            None => self
                .labels
                .range::<[u8], _>((Unbounded::<&[u8]>, Unbounded)),
        };
        all.next_back().map(|(text, _)| &**text)
    }

    /// Spreads all labels evenly; pairs of an old label and the new one, ascending.
    pub fn respread(&mut self) -> Vec<(i64, i64)> {
        let old: Vec<i64> = self.labels.values().copied().collect();
        self.spread();
        old.into_iter().zip(self.labels.values().copied()).collect()
    }

    fn spread(&mut self) {
        let count = i128::try_from(self.labels.len()).expect("strings in memory");
        let step = (LAST - FIRST) / (count + 1);
        for (position, label) in (1..).zip(self.labels.values_mut()) {
            *label = i64::try_from(FIRST + position * step).expect("an evenly spaced label");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings that ascend do not use up the labels.
    #[test]
    fn appended_without_respreads() {
        let text = |number: u32| number.to_be_bytes();
        let mut order = TextOrder::spread_over((0..100_000).map(|number| text(number).into()));
        assert!((100_000..200_000).all(|number| order.code(&text(number)).is_some()));
    }

    /// A label leads back to its string, also where one string begins another; others to none.
    #[test]
    fn strings_of_labels() {
        let mut texts: Vec<Vec<u8>> = (0..3000_u32)
            .map(|number| format!("{:0>9}", number * 37).into_bytes())
            .collect();
        texts.extend((0..300_usize).map(|length| vec![u8::MAX; length]));
        texts.extend((1..300_usize).map(|length| vec![0; length]));
        let order = TextOrder::spread_over(texts.iter().map(|text| text.clone().into()));
        for (text, &label) in &order.labels {
            assert_eq!(order.text_of(label), Some(&**text));
            assert_eq!(order.text_of(label + 1), None);
        }
        assert_eq!(TextOrder::default().text_of(5), None);
    }

    /// Labels are ordered as the strings are, also after all gaps were used up.
    #[test]
    fn ordered_through_respreads() {
        let mut order = TextOrder::default();
        let mut respreads = 0;
        for length in (0..500).rev() {
            let text = vec![b'a'; length];
            if order.code(&text).is_none() {
                respreads += 1;
                let moved = order.respread();
                assert!(moved.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1));
                assert!(order.code(&text).is_some());
            }
        }
        assert!(respreads > 1);
        assert!(order.labels.values().is_sorted_by(|one, other| one < other));
    }
}
