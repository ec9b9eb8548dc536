//! What a new version's tuple repeats of the old one's, which its WAL record leaves out.

use pgheadroom_layout::wal_record::SharedBytes;

use crate::row::{ColumnLayout, NULL_SLOT, RowType, Texts};

impl RowType {
    /// What a new version's tuple repeats of the old one's.
    ///
    /// `old` and `new` are all slots of both versions, of which the columns in `changed` differ.
    ///
    /// Source: `log_heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub fn shared_bytes(
        &self,
        old: &[i64],
        new: &[i64],
        changed: &[usize],
        texts: &Texts,
        new_data_bytes: u32,
        buffers: &mut [Vec<u8>; 2],
    ) -> SharedBytes {
        let moves = |&column: &usize| {
            self.columns[column].offset.is_none()
                || old[column] == NULL_SLOT
                || new[column] == NULL_SLOT
        };
        if changed.iter().any(moves) || old[..self.last(changed)].contains(&NULL_SLOT) {
            let stays = |&column: &usize| {
                let is_null = old[column] == NULL_SLOT || new[column] == NULL_SLOT;
                let layout = &self.columns[column];
                layout.width.is_some() && !layout.kind.is_kept() && !is_null
            };
            if changed.iter().all(stays) {
                let end = self.last(changed) + 1;
                let values = (&old[..end], &new[..end]);
                return self.shared_where_they_are(values, texts, new_data_bytes);
            }
            return self
                .shared_but_kept((old, new), texts, buffers)
                .unwrap_or_else(|| self.shared_of_all((old, new), texts, buffers));
        }
        let mut differing = Differing::NOTHING;
        for &column in changed {
            differing.add(&self.columns[column], old[column], new[column]);
        }
        differing.shared(new_data_bytes)
    }

    /// Where nothing differs but values of fixed width, so that each stands at the same place in
    /// both; columns behind the last of them need not be given.
    fn shared_where_they_are(
        &self,
        (old, new): (&[i64], &[i64]),
        texts: &Texts,
        data_bytes: u32,
    ) -> SharedBytes {
        let mut differing = Differing::NOTHING;
        let mut end = 0;
        for (column, (&one, &other)) in self.columns.iter().zip(old.iter().zip(new)) {
            if one == NULL_SLOT {
                continue;
            }
            let start;
            (start, end) = column.extent(end, one, texts);
            if let Some(width) = column.width.filter(|_| one != other) {
                differing.add_at((start, width), column, one, other);
            }
        }
        differing.shared(data_bytes)
    }

    /// By writing out both tuples.
    fn shared_of_all(
        &self,
        (old, new): (&[i64], &[i64]),
        texts: &Texts,
        buffers: &mut [Vec<u8>; 2],
    ) -> SharedBytes {
        self.write_data(old, texts, &mut buffers[0]);
        self.write_data(new, texts, &mut buffers[1]);
        SharedBytes::between(&buffers[0], &buffers[1])
    }

    /// The same without the bytes of strings and numbers that both have: they are compared with
    /// themselves, as long as both stand as far from the beginning, or from the end. `None` where
    /// that cannot be told.
    ///
    /// From the beginning both do up to the first value of another length, whose length header
    /// differs; from the end as far as [`RowType::exact_from_end`] says.
    fn shared_but_kept(
        &self,
        (old, new): (&[i64], &[i64]),
        texts: &Texts,
        buffers: &mut [Vec<u8>; 2],
    ) -> Option<SharedBytes> {
        let is_null = |&slot: &i64| slot == NULL_SLOT;
        if old.iter().map(is_null).ne(new.iter().map(is_null)) {
            return None;
        }
        let is_kept =
            |column: usize| old[column] == new[column] && self.columns[column].width.is_none();
        self.write_data_but(old, is_kept, texts, &mut buffers[0]);
        self.write_data_but(new, is_kept, texts, &mut buffers[1]);
        let shared = SharedBytes::between(&buffers[0], &buffers[1]);
        let exact_from_end = self.exact_from_end((old, new), texts);
        let is_exact = exact_from_end.is_none_or(|bytes| shared.suffix.max(2) < bytes);
        is_exact.then_some(shared)
    }

    /// So many bytes at the end of both versions are compared with what they are compared with
    /// when kept values are written out too; `None` when that is so of all.
    fn exact_from_end(&self, (old, new): (&[i64], &[i64]), texts: &Texts) -> Option<u32> {
        let mut spans = Vec::new();
        let (mut old_end, mut new_end) = (0, 0);
        let mut are_equal = true;
        for (column, (&one, &other)) in self.columns.iter().zip(old.iter().zip(new)) {
            if one == NULL_SLOT {
                continue;
            }
            let before = column.extent(old_end, one, texts);
            let after = column.extent(new_end, other, texts);
            (old_end, new_end) = (before.1, after.1);
            are_equal &= before == after;
            spans.push((before, after));
        }
        if are_equal {
            return None;
        }
        for (before, after) in spans.into_iter().rev() {
            let behind = (old_end - before.1, new_end - after.1);
            if behind.0 != behind.1 {
                return Some(behind.0.min(behind.1)); // zeros that align what is behind
            }
            let lengths = (before.1 - before.0, after.1 - after.0);
            if lengths.0 != lengths.1 {
                return Some(behind.0 + lengths.0.min(lengths.1));
            }
        }
        Some(old_end.min(new_end))
    }

    fn last(&self, changed: &[usize]) -> usize {
        changed.iter().max().map_or(0, |&column| column)
    }
}

/// From where to where the fixed-width values of two versions differ, in bytes behind `t_hoff`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Differing {
    first: u32,
    end: u32,
}

impl Differing {
    pub const NOTHING: Self = Self {
        first: u32::MAX,
        end: 0,
    };

    /// A column with a fixed place has these slots, neither of them NULL, and no NULL is before.
    #[inline(always)]
    pub fn add(&mut self, layout: &ColumnLayout, old: i64, new: i64) {
        let start = layout.offset.expect("a fixed place");
        let width = layout.width.expect("a fixed length");
        self.add_at((start, width), layout, old, new);
    }

    /// The same of a column of this width that stands here in both versions.
    #[inline(always)]
    fn add_at(&mut self, (start, width): (u32, u32), layout: &ColumnLayout, old: i64, new: i64) {
        let old = u64::from_le_bytes(layout.fixed_bytes(old));
        let new = u64::from_le_bytes(layout.fixed_bytes(new));
        // What is wider is zero behind the first 8 bytes.
        let bits = (old ^ new) & (u64::MAX >> (64 - 8 * width.min(8)));
        if bits != 0 {
            self.first = self.first.min(start + bits.trailing_zeros() / 8);
            self.end = self.end.max(start + 8 - bits.leading_zeros() / 8);
        }
    }

    /// What the new version repeats of the old one.
    #[inline]
    pub fn shared(self, data_bytes: u32) -> SharedBytes {
        let at_least_3 = |bytes: u32| if bytes < 3 { 0 } else { bytes };
        if self.end == 0 {
            return SharedBytes {
                prefix: at_least_3(data_bytes),
                suffix: 0,
            };
        }
        SharedBytes {
            prefix: at_least_3(self.first),
            suffix: at_least_3(data_bytes - self.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::ColumnDefinition;
    use crate::text::Text;
    use crate::value::Value;
    use crate::wrap::{Integers, Wrap};
    use proptest::prelude::*;

    const TYPES: [&str; 16] = [
        "uuid",
        "jsonb",
        "bytea",
        "name",
        "inet",
        "interval",
        "macaddr",
        "int4[]",
        "int2",
        "int4",
        "int8",
        "bool",
        "numeric",
        "text",
        "bpchar(20)",
        "varchar",
    ];

    /// A value by its type: numbers small and large, strings of few letters, or of hashes.
    fn value(type_name: &str, number: i64, length: u32) -> Value {
        match type_name {
            _ if length % 11 == 10 => Value::Null,
            "bool" => Value::Integer(number % 2),
            "int2" => Value::Integer(number * 255),
            "int4" | "int8" => Value::Integer(number * 65_793),
            "uuid" => Value::Text(Text::uuid(number)),
            "jsonb" => Value::Text(Text::wrapped_hashes(number, length, Wrap::Jsonb)),
            "bytea" => Value::Text(Text::wrapped_hashes(number, length, Wrap::Bytea)),
            "name" => Value::Text(Text::wrapped_hashes(number, 32, Wrap::Name)),
            "int4[]" => {
                let array = Integers::of("int4[]").unwrap();
                Value::Text(Text::from_bytes(&array.filled(number, length + 24)))
            }
            "inet" | "interval" | "macaddr" => Value::Integer(number * 65_793),
            "numeric" => Value::Integer(10_i64.pow(length % 18) * (number + 1)),
            _ if number % 2 == 0 => Value::Text(Text::hashes(number % 8, length)),
            _ => Value::Text(Text::padded(
                b'A' + u8::try_from(length / 9).unwrap_or(0),
                length,
            )),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// Leaving out what both versions have gives the same as comparing all bytes.
        #[test]
        fn kept_values_need_no_bytes(
            columns in prop::collection::vec(
                (0..TYPES.len(), 0_i64..20, 0_u32..160, prop::option::of((0_i64..20, 0_u32..160))),
                1..8,
            ),
        ) {
            let definitions: Vec<ColumnDefinition> = columns
                .iter()
                .map(|&(of, ..)| ColumnDefinition::new("c", TYPES[of]).unwrap())
                .collect();
            let row_type = RowType::new(&definitions).unwrap();
            let mut texts = Texts::default();
            let (mut old, mut new) = (Vec::new(), Vec::new());
            for (position, &(of, number, length, changed)) in columns.iter().enumerate() {
                let before = value(TYPES[of], number, length);
                let slot = row_type.slot(position, before, &mut texts).unwrap();
                old.push(slot);
                new.push(match changed {
                    Some((number, length)) => {
                        let after = value(TYPES[of], number, length);
                        row_type.slot(position, after, &mut texts).unwrap()
                    }
                    None => slot,
                });
            }
            let mut buffers = [Vec::new(), Vec::new()];
            let all = row_type.shared_of_all((&old, &new), &texts, &mut buffers);
            if let Some(shared) = row_type.shared_but_kept((&old, &new), &texts, &mut buffers) {
                prop_assert_eq!(shared, all);
            }
        }
    }
}
