//! The order of columns that loses least padding.
//!
//! Columns cannot be moved in an existing table; this is for tables that are made anew, and shows
//! what an order costs. Works on the widths of one row; where widths vary, that row should be a
//! typical one.

use crate::column_type::TypeLength;
use crate::error::LayoutError;
use crate::tuple::{Column, RowLayout};

/// Largest number of columns for which every order of different shapes is tried.
const EXHAUSTIVE_SHAPES: usize = 4_096;

/// One column reduced to what padding depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Shape {
    alignment: u32,
    size_mod_8: u32,
    is_varlena: bool,
}

/// The positions of the columns in the order that makes the row shortest.
///
/// Among orders that are equally short: strict alignments first, fixed lengths before variable
/// ones (so that PostgreSQL can find them without walking the row), otherwise as they stood. The
/// row never gets longer than it was. A NULL counts as a variable-length value of no bytes.
///
/// The result is optimal whenever every fixed-length value is a multiple of its alignment, that is
/// for all built-in types but `timetz` and `macaddr`, and long variable values are few; else it is
/// the best of a greedy and an exhaustive search, the latter bounded.
///
/// # Errors
/// As [`RowLayout::new`].
pub fn best_order(columns: &[Column]) -> Result<Vec<usize>, LayoutError> {
    let given = RowLayout::new(columns.to_vec())?;
    let shapes: Vec<Shape> = columns
        .iter()
        .zip(given.column_layouts())
        .map(|(column, layout)| Shape {
            alignment: if column.is_null() || layout.header_bytes == 1 {
                1
            } else {
                column.column_type().typalign().bytes()
            },
            size_mod_8: layout.stored_bytes() % 8,
            is_varlena: column.column_type().typlen() == TypeLength::Varlena || column.is_null(),
        })
        .collect();
    let mut candidates = vec![by_alignment(&shapes), greedy(&shapes)];
    candidates.extend(exhaustive(&shapes));
    let mut best: Vec<usize> = (0..columns.len()).collect();
    let mut best_padding = padding(&shapes, &best);
    for (rank, order) in candidates.into_iter().enumerate() {
        let lost = padding(&shapes, &order);
        // The tidy order wins ties against the given one, later searches only if they are better.
        if lost < best_padding || (rank == 0 && lost == best_padding) {
            best = order;
            best_padding = lost;
        }
    }
    Ok(best)
}

/// Bytes lost between the values in this order.
fn padding(shapes: &[Shape], order: &[usize]) -> u32 {
    let mut offset = 0;
    let mut lost = 0;
    for &index in order {
        let Shape {
            alignment,
            size_mod_8,
            ..
        } = shapes[index];
        let start = u32::next_multiple_of(offset, alignment);
        lost += start - offset;
        offset = (start + size_mod_8) % 8;
    }
    lost
}

/// Strictest alignment first; whole multiples before others; fixed before variable length.
fn by_alignment(shapes: &[Shape]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shapes.len()).collect();
    order.sort_by_key(|&index| tidiness(shapes[index]));
    order
}

fn tidiness(shape: Shape) -> (std::cmp::Reverse<u32>, bool, bool) {
    let ragged = !shape.size_mod_8.is_multiple_of(shape.alignment);
    (std::cmp::Reverse(shape.alignment), ragged, shape.is_varlena)
}

/// At each step the column that needs least padding there, the tidiest of equals.
fn greedy(shapes: &[Shape]) -> Vec<usize> {
    let mut left = by_alignment(shapes);
    let mut order = Vec::with_capacity(left.len());
    let mut offset = 0;
    while !left.is_empty() {
        let lost = |index: usize| u32::next_multiple_of(offset, shapes[index].alignment) - offset;
        // `min_by_key` takes the first of equals, and `left` is sorted by tidiness.
        let Some(position) = (0..left.len()).min_by_key(|&position| lost(left[position])) else {
            break;
        };
        let index = left.remove(position);
        offset = (offset + lost(index) + shapes[index].size_mod_8) % 8;
        order.push(index);
    }
    order
}

/// The best order of all, if the different shapes are few enough; `None` otherwise.
///
/// Columns of equal shape are interchangeable, so a state is how many of each are left and where
/// the row has got to, modulo 8.
fn exhaustive(shapes: &[Shape]) -> Option<Vec<usize>> {
    let mut groups: Vec<(Shape, Vec<usize>)> = Vec::new();
    for index in by_alignment(shapes) {
        match groups.iter_mut().find(|(shape, _)| *shape == shapes[index]) {
            Some((_, members)) => members.push(index),
            None => groups.push((shapes[index], vec![index])),
        }
    }
    let state_count = groups.iter().try_fold(1_usize, |product, (_, members)| {
        product
            .checked_mul(members.len() + 1)
            .filter(|&states| states <= EXHAUSTIVE_SHAPES)
    })?;
    let mut search = Search {
        groups: &groups,
        known: vec![[None; 8]; state_count],
    };
    let mut taken = vec![0; groups.len()];
    search.least(&mut taken, 0);
    let mut order = Vec::with_capacity(shapes.len());
    let mut offset = 0;
    while order.len() < shapes.len() {
        let (_, next) = search.least(&mut taken, offset);
        let (shape, members) = &groups[next];
        order.push(members[taken[next]]);
        taken[next] += 1;
        offset = (u32::next_multiple_of(offset, shape.alignment) + shape.size_mod_8) % 8;
    }
    Some(order)
}

struct Search<'a> {
    groups: &'a [(Shape, Vec<usize>)],
    /// By how many of each group are taken, then by the offset modulo 8: padding of the rest of
    /// the row and the group to take next.
    known: Vec<[Option<(u32, usize)>; 8]>,
}

impl Search<'_> {
    /// Least padding of what is not yet taken, from this offset, and the group to begin with.
    fn least(&mut self, taken: &mut [usize], offset: u32) -> (u32, usize) {
        let mut key = 0;
        for ((_, members), count) in self.groups.iter().zip(taken.iter()) {
            key = key * (members.len() + 1) + count;
        }
        if let Some(answer) = self.known[key][offset as usize] {
            return answer;
        }
        let mut best = None;
        for group in 0..self.groups.len() {
            let (shape, count) = (self.groups[group].0, self.groups[group].1.len());
            if taken[group] == count {
                continue;
            }
            let start = offset.next_multiple_of(shape.alignment);
            taken[group] += 1;
            let (rest, _) = self.least(taken, (start + shape.size_mod_8) % 8);
            taken[group] -= 1;
            let lost = start - offset + rest;
            if best.is_none_or(|(least, _)| lost < least) {
                best = Some((lost, group));
            }
        }
        let answer = best.unwrap_or((0, 0));
        self.known[key][offset as usize] = Some(answer);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuple::tests::{column, null};
    use proptest::prelude::*;

    fn reordered(columns: &[Column]) -> RowLayout {
        let order = best_order(columns).unwrap();
        RowLayout::new(order.iter().map(|&index| columns[index].clone()).collect()).unwrap()
    }

    /// The usual case: eight, four, two, one; the variable ones last.
    #[test]
    fn usual_types_lose_nothing() {
        let types = ["bool", "int8", "int2", "int4", "bool", "timestamptz"];
        let mut columns: Vec<_> = types.iter().map(|name| column(name, None)).collect();
        columns.insert(0, column("text", Some(20)));
        let order = best_order(&columns).unwrap();
        assert_eq!(order, [2, 6, 4, 3, 1, 5, 0]);
        assert_eq!(reordered(&columns).inner_padding_bytes(), 0);
    }

    /// Two timetz (12 bytes, aligned to 8) lose nothing with a four-byte column between them.
    #[test]
    fn ragged_types_are_interleaved() {
        let columns = [
            column("timetz", None),
            column("timetz", None),
            column("int4", None),
        ];
        assert_eq!(reordered(&columns).inner_padding_bytes(), 0);
        let tuple = reordered(&columns).tuple_bytes();
        assert_eq!(tuple, 24 + 12 + 4 + 12);
    }

    /// A table as wide as can be still gets an answer.
    #[test]
    fn wide_tables_are_answered() {
        let types = ["timetz", "int2", "macaddr", "bool", "int4", "name", "int8"];
        let columns: Vec<_> = (0..1600).map(|i| column(types[i % 7], None)).collect();
        assert!(reordered(&columns).inner_padding_bytes() <= 8);
    }

    proptest! {
        /// No order of up to six columns is shorter, and each column appears once.
        #[test]
        fn nothing_beats_it(picks in proptest::collection::vec(0_usize..9, 0..7)) {
            let types = ["timetz", "macaddr", "int8", "int4", "int2", "bool", "text", "jsonb"];
            let columns: Vec<_> = picks.iter().map(|&pick| match types.get(pick) {
                Some(&"text") => column("text", Some(131)),
                Some(&"jsonb") => column("jsonb", Some(30)),
                Some(name) => column(name, None),
                None => null("int4"),
            }).collect();
            let order = best_order(&columns).unwrap();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..columns.len()).collect::<Vec<_>>());
            let best = reordered(&columns).tuple_bytes();
            let mut all: Vec<usize> = (0..columns.len()).collect();
            permutations(&mut all, 0, &mut |order| {
                let other = order.iter().map(|&index| columns[index].clone()).collect();
                assert!(RowLayout::new(other).unwrap().tuple_bytes() >= best);
            });
        }
    }

    fn permutations(items: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
        if from >= items.len() {
            return visit(items);
        }
        for other in from..items.len() {
            items.swap(from, other);
            permutations(items, from + 1, visit);
            items.swap(from, other);
        }
    }
}
