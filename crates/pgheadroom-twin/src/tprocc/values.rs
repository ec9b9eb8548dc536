//! The values of loaded rows: hashes of their keys.
//!
//! Source: `values.sql`, `warehouse.sql` and `item.sql` of the laboratory's `tprocc`.

use crate::md5;
use crate::row::hashint8extended;
use crate::text::Text;
use crate::value::Value;

pub(super) const DISTRICTS: i64 = 10;
pub(super) const CUSTOMERS: i64 = 3_000;
pub(super) const ITEMS: i64 = 100_000;
/// Orders of a district that are loaded, and those of them that are delivered.
pub(super) const ORDERS: i64 = 3_000;
pub(super) const DELIVERED: i64 = 2_100;
pub(super) const NAMES: i64 = 1_000;
/// So that keys of customers, in four bytes, stay below 2^31.
pub(super) const WAREHOUSES_MAX: u32 = 50_000;
/// Numbers of orders that are rolled back begin here: beyond a district's last one.
pub(super) const ROLLED_BACK: i64 = 1 << 30;
/// A number of type `numeric`, in the twin's whole ones: four digits behind the point are a group
/// of the server's form, so that lengths are its own.
pub(super) const ONE: i64 = 10_000;
pub(super) const CENT: i64 = ONE / 100;

/// A district of a warehouse, both from 1.
pub(super) const fn district(warehouse: i64, number: i64) -> i64 {
    warehouse * DISTRICTS + number
}

/// A district's customer, from 1.
pub(super) const fn customer(district: i64, number: i64) -> i64 {
    district * CUSTOMERS + number
}

/// A warehouse's row of stock.
pub(super) const fn stock(warehouse: i64, item: i64) -> i64 {
    warehouse * ITEMS + item
}

/// Customers of a district with a last name.
pub(super) const fn namesakes(district: i64, name: i64) -> i64 {
    district * NAMES + name
}

/// `tprocc_number(key, col, low, high)`.
pub(super) fn number(key: i64, column: i64, low: i64, high: i64) -> i64 {
    low + (hashint8extended(key, column) & i64::MAX) % (high - low + 1)
}

/// `tprocc_text(key, col, low, high)`: of the same length, out of other digits.
pub(super) fn text(key: i64, column: i64, low: i64, high: i64) -> Value {
    digits(key * 64 + column, number(key, column, low, high))
}

/// So many digits.
pub(super) fn digits(seed: i64, length: i64) -> Value {
    Value::Text(Text::hashes(seed, length_of(length)))
}

/// So many characters that are the same in all rows.
pub(super) fn blank(length: i64) -> Value {
    Value::Text(Text::padded(b'x', length_of(length)))
}

fn length_of(length: i64) -> u32 {
    u32::try_from(length).expect("a short text")
}

/// `tprocc_nurand(key, col, 255, 173, 0, 999)` for all but the first thousand customers.
pub(super) fn last_name(district: i64, number_there: i64) -> i64 {
    if number_there <= NAMES {
        return number_there - 1;
    }
    let key = customer(district, number_there);
    ((number(key, 2, 0, 255) | number(key, 3, 0, NAMES - 1)) + 173) % NAMES
}

/// Length of `tprocc_last_name(number)`.
pub(super) fn last_name_bytes(name: i64) -> i64 {
    const SYLLABLES: [i64; 10] = [3, 5, 4, 3, 4, 3, 4, 5, 5, 4];
    let of = |digit: i64| SYLLABLES[usize::try_from(digit).expect("a digit")];
    of(name / 100) + of(name / 10 % 10) + of(name % 10)
}

/// `c_first`, by which namesakes are ordered.
pub(super) fn first_name(key: i64) -> Vec<u8> {
    let digits = md5::hex(md5::digest((key * 64 + 1).to_string().as_bytes()));
    let length = usize::try_from(number(key, 1, 8, 16)).expect("a short text");
    digits[..length].to_vec()
}

/// Whether `c_credit` is BC.
pub(super) fn has_bad_credit(customer: i64) -> bool {
    number(customer, 10, 1, 10) == 1
}

/// Lines of a loaded order.
pub(super) fn lines(district: i64, order: i64) -> i64 {
    number(district * ORDERS + order, 15, 5, 15)
}

/// The item of a loaded order's line.
pub(super) fn item_of(district: i64, order: i64, line: i64) -> i64 {
    number(line_key(district, order, line), 1, 1, ITEMS)
}

/// Its amount in cents.
pub(super) fn cents_of(district: i64, order: i64, line: i64) -> i64 {
    if order <= DELIVERED {
        return 0;
    }
    number(line_key(district, order, line), 2, 1, 999_999)
}

const fn line_key(district: i64, order: i64, line: i64) -> i64 {
    (district * ORDERS + order) * 16 + line
}

/// An item's price in cents.
pub(super) fn price_cents(item: i64) -> i64 {
    number(item, 3, 100, 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server made of the second warehouse's sixth district (18.4).
    #[test]
    fn as_the_server_has_them() {
        assert_eq!(last_name_bytes(371), 3 + 5 + 5);
        assert_eq!(price_cents(1), number(1, 3, 100, 10_000));
        let lengths: i64 = (1..=CUSTOMERS)
            .map(|n| last_name_bytes(last_name(26, n)))
            .sum();
        assert!((lengths - 4 * 3 * CUSTOMERS).abs() < CUSTOMERS, "{lengths}");
    }
}
