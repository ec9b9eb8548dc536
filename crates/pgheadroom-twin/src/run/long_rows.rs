//! Rows that may be too long to stay as they are, and which of their values are not shortened here
//! as a server would.

use pgheadroom_layout::ColumnType;
use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::compression::Method;
use pgheadroom_layout::page::SIZE_OF_HEAP_TUPLE_HEADER;
use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;
use pgheadroom_layout::tuple::{TOAST_POINTER_SIZE, VARHDRSZ};

use crate::profile::settings::parameters;
use crate::profile::{
    ColumnCompression, ColumnSpec, ColumnStorage, OperationSpec, ProfileSpec, TableSpec,
};
use crate::row::counted::Counted;
use crate::row::kind::{Kind, fixed_width};

/// Longer than any row: of values that grow, or of which nobody says how long they are.
const ENDLESS: u64 = 1 << 40;
/// Of a whole number: the long header, and five groups of four digits.
const NUMERIC_MOST: u64 = 14;
/// What stands before the elements of a value, and beside each, at most.
const ELEMENTS_HEAD: u64 = 40;
const ELEMENT_HEAD: u64 = 12;
/// Digits of the largest int8.
const DIGITS_MOST: u64 = 20;
/// Payload of the largest values that a table does not keep as strings.
const NOT_SHORTENED_MOST: u64 = 28;

/// How a column's values lie in a row.
struct Extent {
    align: u64,
    /// Bytes of a fixed length.
    width: Option<u64>,
    /// Most bytes without a length header, of another.
    payload_most: u64,
    /// Whether the twin may shorten values: all that a table keeps as strings.
    is_kept: bool,
}

/// Columns of `path` and of multiranges with ends of 8 bytes, which a table here never shortens,
/// where a server may: in rows that are too long even when all larger values are out of line, and
/// those of `path` where lz4 may compress them (`(0,0)` becomes shorter; pglz leaves alone what is
/// below 32 bytes).
///
/// Source: `toast_tuple_find_biggest_attribute`, src/backend/access/table/toast_helper.c, and
/// `strategy_default_data`, src/common/pg_lzcompress.c (REL_18_STABLE).
pub(super) fn not_shortened<'a>(
    spec: &ProfileSpec,
    table: &'a TableSpec,
) -> impl Iterator<Item = &'a ColumnSpec> {
    let is_long = may_be_long(table, &spec.operation);
    let target = parameters(&table.reloptions, "").toast_target;
    let is_pglz = spec.server.toast_compression() == Some(Method::Pglz);
    let stays_long = row_bytes(table, |column, extent| {
        let most = payload_most(column, extent, &spec.operation, table);
        let is_main = column.storage == Some(ColumnStorage::Main);
        // The largest go out first: of those that go, no more is left than of the ones asked about.
        if is_main {
            most
        } else {
            most.min(NOT_SHORTENED_MOST)
        }
    }) > u64::from(target);
    table.columns.iter().filter(move |column| {
        let Some(Kind::Counted(counted)) = kind_of(column) else {
            return false;
        };
        let may_be_candidate = counted
            .varlena_bytes()
            .is_some_and(|bytes| bytes + 1 > TOAST_POINTER_SIZE.next_multiple_of(8));
        let own_pglz = column.compression == Some(ColumnCompression::Pglz)
            || (column.compression.is_none() && is_pglz);
        let by_lz4 = counted == Counted::Path && !own_pglz;
        is_long && may_be_candidate && (stays_long || by_lz4)
    })
}

/// Whether a row of the table may be so long that values are compressed or moved out.
fn may_be_long(table: &TableSpec, operations: &[OperationSpec]) -> bool {
    let longest = row_bytes(table, |column, extent| {
        payload_most(column, extent, operations, table)
    });
    longest > u64::from(TOAST_TUPLE_THRESHOLD)
}

/// Bytes of a row whose values of variable length have so many without their headers, at most.
fn row_bytes(table: &TableSpec, payload: impl Fn(&ColumnSpec, &Extent) -> u64) -> u64 {
    let bitmap = u32::try_from(table.columns.len().div_ceil(8)).unwrap_or(u32::MAX);
    let header = maxalign(SIZE_OF_HEAP_TUPLE_HEADER + bitmap);
    let mut end = 0;
    for column in &table.columns {
        let extent = extent_of(column);
        let start = u64::next_multiple_of(end, extent.align);
        let bytes = extent.width;
        end = start + bytes.unwrap_or_else(|| u64::from(VARHDRSZ) + payload(column, &extent));
    }
    u64::from(header) + end
}

fn payload_most(
    column: &ColumnSpec,
    extent: &Extent,
    operations: &[OperationSpec],
    table: &TableSpec,
) -> u64 {
    let of_table = operations.iter().filter(|one| one.table == table.name);
    let mut sets = of_table.flat_map(|one| &one.sets);
    let grows = sets.any(|(name, change)| {
        *name == column.name && change.grows_bytes.is_some_and(|grows| grows.max > 0)
    });
    if grows && extent.is_kept {
        ENDLESS
    } else {
        extent.payload_most
    }
}

fn kind_of(column: &ColumnSpec) -> Option<Kind> {
    Kind::of(&ColumnType::parse(&column.type_name).ok()?)
}

fn extent_of(column: &ColumnSpec) -> Extent {
    let parsed = ColumnType::parse(&column.type_name).ok();
    let kind = parsed.as_ref().and_then(Kind::of);
    let (Some(parsed), Some(kind)) = (parsed, kind) else {
        // An enum is a number; of anything else the type is refused.
        return Extent {
            align: 4,
            width: Some(4),
            payload_most: 0,
            is_kept: false,
        };
    };
    let stated = column.width.map(|width| bytes(width.max_bytes));
    let elements = column.elements.map(|elements| {
        let each = elements.width.map_or(DIGITS_MOST, u64::from) + ELEMENT_HEAD;
        ELEMENTS_HEAD + u64::from(elements.max.max(elements.min)) * each
    });
    Extent {
        align: u64::from(parsed.typalign().bytes()),
        width: fixed_width(&parsed).map(u64::from),
        payload_most: match kind {
            Kind::Numeric { .. } => NUMERIC_MOST,
            Kind::Counted(counted) => counted.varlena_bytes().map_or(0, u64::from),
            Kind::Padded {
                length: Some(length),
            } => u64::from(length),
            _ => elements.or(stated).unwrap_or(ENDLESS),
        },
        is_kept: kind.is_kept() || elements.is_some(),
    }
}

fn bytes(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}
