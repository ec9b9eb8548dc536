//! PostgreSQL's own quicksort, because it is not stable: candidates that compare equal end in an
//! order that only the same algorithm gives, and that order decides where pages are split.
//!
//! Source: `ST_SORT`, src/include/lib/sort_template.h (REL_18_STABLE; same since 9.5, as
//! src/port/qsort.c before 15). Bentley and McIlroy, Engineering a sort function (1993), with a
//! check for sorted input.

use std::cmp::Ordering;

/// Sorts as `qsort` does on a server. Differs: no.
pub(crate) fn qsort<T>(mut data: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    loop {
        let n = data.len();
        if n < 7 {
            insertion_sort(data, compare);
            return;
        }
        if data
            .windows(2)
            .all(|pair| compare(&pair[0], &pair[1]) != Ordering::Greater)
        {
            return;
        }
        let pivot = choose_pivot(data, compare);
        data.swap(0, pivot);
        let (smaller, larger) = partition(data, compare);
        // The smaller part by recursion, the other one in the next turn.
        if smaller <= larger {
            let (left, rest) = data.split_at_mut(smaller);
            if smaller > 1 {
                qsort(left, compare);
            }
            if larger <= 1 {
                return;
            }
            let equal = rest.len() - larger;
            data = &mut rest[equal..];
        } else {
            let (left, right) = data.split_at_mut(n - larger);
            if larger > 1 {
                qsort(right, compare);
            }
            if smaller <= 1 {
                return;
            }
            data = &mut left[..smaller];
        }
    }
}

fn insertion_sort<T>(data: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    for start in 1..data.len() {
        let mut at = start;
        while at > 0 && compare(&data[at - 1], &data[at]) == Ordering::Greater {
            data.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Middle, median of three, or above 40 elements the median of three such medians.
fn choose_pivot<T>(data: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let n = data.len();
    let mut middle = n / 2;
    if n > 7 {
        let (mut left, mut right) = (0, n - 1);
        if n > 40 {
            let d = n / 8;
            left = median(data, left, left + d, left + 2 * d, compare);
            middle = median(data, middle - d, middle, middle + d, compare);
            right = median(data, right - 2 * d, right - d, right, compare);
        }
        middle = median(data, left, middle, right, compare);
    }
    middle
}

fn median<T>(
    data: &[T],
    a: usize,
    b: usize,
    c: usize,
    compare: &impl Fn(&T, &T) -> Ordering,
) -> usize {
    let cmp = |one: usize, other: usize| compare(&data[one], &data[other]);
    if cmp(a, b) == Ordering::Less {
        if cmp(b, c) == Ordering::Less {
            b
        } else if cmp(a, c) == Ordering::Less {
            c
        } else {
            a
        }
    } else if cmp(b, c) == Ordering::Greater {
        b
    } else if cmp(a, c) == Ordering::Less {
        a
    } else {
        c
    }
}

/// Three-way partition around the first element; sizes of the smaller and of the larger part.
fn partition<T>(data: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> (usize, usize) {
    let n = data.len();
    let (mut a, mut b) = (1, 1);
    // One past the C code's pointers, which may step in front of the array.
    let (mut c_end, mut d_end) = (n, n);
    loop {
        while b < c_end {
            let order = compare(&data[b], &data[0]);
            if order == Ordering::Greater {
                break;
            }
            if order == Ordering::Equal {
                data.swap(a, b);
                a += 1;
            }
            b += 1;
        }
        while b < c_end {
            let order = compare(&data[c_end - 1], &data[0]);
            if order == Ordering::Less {
                break;
            }
            if order == Ordering::Equal {
                data.swap(c_end - 1, d_end - 1);
                d_end -= 1;
            }
            c_end -= 1;
        }
        if b >= c_end {
            break;
        }
        data.swap(b, c_end - 1);
        b += 1;
        c_end -= 1;
    }
    let smaller = b - a;
    let larger = d_end - c_end;
    swap_ranges(data, 0, b - a.min(smaller), a.min(smaller));
    let equal_right = (n - d_end).min(larger);
    swap_ranges(data, b, n - equal_right, equal_right);
    (smaller, larger)
}

fn swap_ranges<T>(data: &mut [T], one: usize, other: usize, count: usize) {
    for step in 0..count {
        data.swap(one + step, other + step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Sorted, whatever the input; ties are what the goldens check.
        #[test]
        fn sorts(mut data in prop::collection::vec(0_u16..50, 0..600)) {
            let mut expected = data.clone();
            expected.sort_unstable();
            qsort(&mut data, &u16::cmp);
            prop_assert_eq!(data, expected);
        }
    }
}
