//! `pgheadroom-layout` for Python: rows, pages and index entries.

use pgheadroom_layout::{self as layout, ColumnType, HeapFillfactor, InsertTarget, LayoutError};
use pyo3::prelude::*;

use crate::error::CoreError;

/// The rule of every version that the Python side supports (14 and later).
const RULE: InsertTarget = InsertTarget::NearlyEmptyPage;

/// A column and the value it holds in the row at hand.
#[pyclass(frozen, eq, hash, from_py_object, module = "pgheadroom._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Column(layout::Column);

#[pymethods]
impl Column {
    #[new]
    #[pyo3(signature = (type_name, *, payload_bytes=None, is_null=false, name=""))]
    fn new(
        type_name: &str,
        payload_bytes: Option<i64>,
        is_null: bool,
        name: &str,
    ) -> Result<Self, CoreError> {
        let column_type = ColumnType::parse(type_name)?;
        if is_null {
            return Ok(Self(layout::Column::null(name, column_type)));
        }
        let payload_bytes = payload_bytes
            .map(|bytes| non_negative("payload_bytes", bytes))
            .transpose()?;
        Ok(Self(layout::Column::new(name, column_type, payload_bytes)?))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn type_name(&self) -> &str {
        self.0.column_type().name()
    }

    #[getter]
    fn typlen(&self) -> i32 {
        self.0.column_type().typlen().catalogue()
    }

    #[getter]
    fn typalign(&self) -> char {
        self.0.column_type().typalign().letter()
    }

    #[getter]
    fn typstorage(&self) -> char {
        self.0.column_type().typstorage().letter()
    }

    #[getter]
    fn is_null(&self) -> bool {
        self.0.is_null()
    }

    fn __repr__(&self) -> String {
        let width = match self.0.stored() {
            layout::Stored::Null => "is_null=True".to_owned(),
            layout::Stored::Inline { payload_bytes } => format!("payload_bytes={payload_bytes}"),
            other => format!("{other:?}"),
        };
        format!(
            "Column({:?}, {width}, name={:?})",
            self.type_name(),
            self.name()
        )
    }
}

/// What Python may give for a column: the class, or a pair of type and payload (None is NULL).
#[derive(FromPyObject)]
pub enum ColumnArgument {
    Column(Column),
    Pair((String, Option<i64>)),
}

impl ColumnArgument {
    fn into_column(self) -> Result<layout::Column, CoreError> {
        match self {
            Self::Column(column) => Ok(column.0),
            Self::Pair((type_name, payload_bytes)) => {
                let is_null = payload_bytes.is_none();
                Column::new(&type_name, payload_bytes, is_null, "").map(|column| column.0)
            }
        }
    }
}

/// Where one column's value lies in the tuple.
#[pyclass(frozen, eq, hash, get_all, module = "pgheadroom._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ColumnLayout {
    column: Column,
    offset_bytes: u32,
    padding_bytes: u32,
    header_bytes: u32,
    payload_bytes: u32,
}

#[pymethods]
impl ColumnLayout {
    fn __repr__(&self) -> String {
        format!(
            "ColumnLayout(column={}, offset_bytes={}, padding_bytes={}, header_bytes={}, \
             payload_bytes={})",
            self.column.__repr__(),
            self.offset_bytes,
            self.padding_bytes,
            self.header_bytes,
            self.payload_bytes
        )
    }
}

/// A heap tuple laid out column by column.
#[pyclass(frozen, eq, hash, module = "pgheadroom._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RowLayout(layout::RowLayout);

#[pymethods]
impl RowLayout {
    #[new]
    fn new(columns: Vec<ColumnArgument>) -> Result<Self, CoreError> {
        Ok(Self(layout::RowLayout::new(into_columns(columns)?)?))
    }

    #[getter]
    fn columns(&self) -> Vec<ColumnLayout> {
        self.0
            .columns()
            .iter()
            .zip(self.0.column_layouts())
            .map(|(column, place)| ColumnLayout {
                column: Column(column.clone()),
                offset_bytes: place.offset_bytes,
                padding_bytes: place.padding_bytes,
                header_bytes: place.header_bytes,
                payload_bytes: place.payload_bytes,
            })
            .collect()
    }

    #[getter]
    fn tuple_bytes(&self) -> u32 {
        self.0.tuple_bytes()
    }

    #[getter]
    fn hoff_bytes(&self) -> u32 {
        self.0.hoff()
    }

    #[getter]
    fn null_bitmap_bytes(&self) -> u32 {
        self.0.null_bitmap_bytes()
    }

    #[getter]
    fn inner_padding_bytes(&self) -> u32 {
        self.0.inner_padding_bytes()
    }

    #[getter]
    fn tail_padding_bytes(&self) -> u32 {
        self.0.tail_padding_bytes()
    }

    #[getter]
    fn page_bytes(&self) -> u32 {
        self.0.page_bytes()
    }

    #[getter]
    fn needs_toast(&self) -> bool {
        layout::toast::needs_toast(&self.0)
    }

    fn best_order(&self) -> Result<Vec<usize>, CoreError> {
        Ok(layout::column_order::best_order(self.0.columns())?)
    }

    fn __repr__(&self) -> String {
        format!(
            "RowLayout({} columns, tuple_bytes={})",
            self.0.columns().len(),
            self.tuple_bytes()
        )
    }
}

/// Length of a heap tuple (`lp_len`) that holds these values.
#[pyfunction]
pub fn heap_tuple_bytes(columns: Vec<ColumnArgument>) -> Result<u32, CoreError> {
    Ok(layout::RowLayout::new(into_columns(columns)?)?.tuple_bytes())
}

/// Rows of equal length that a page holds after loading with INSERT.
#[pyfunction]
pub fn rows_per_page(tuple_bytes: i64, fillfactor: i64) -> Result<u32, CoreError> {
    let fillfactor = HeapFillfactor::new(fillfactor)?;
    let tuple_bytes = size("tuple_bytes", tuple_bytes)?;
    Ok(layout::page::rows_per_page(tuple_bytes, fillfactor, RULE)?)
}

/// Pages of a table after loading rows of equal length with INSERT.
#[pyfunction]
pub fn heap_pages(rows: i64, tuple_bytes: i64, fillfactor: i64) -> Result<u64, CoreError> {
    let rows = non_negative("rows", rows)?;
    let tuple_bytes = size("tuple_bytes", tuple_bytes)?;
    let fillfactor = HeapFillfactor::new(fillfactor)?;
    Ok(layout::page::heap_pages(
        rows,
        tuple_bytes,
        fillfactor,
        RULE,
    )?)
}

/// Further versions of a row that fit the room left on a freshly loaded page.
#[pyfunction]
pub fn spare_versions(tuple_bytes: i64, fillfactor: i64) -> Result<u32, CoreError> {
    let tuple_bytes = size("tuple_bytes", tuple_bytes)?;
    let fillfactor = HeapFillfactor::new(fillfactor)?;
    Ok(layout::page::spare_versions(tuple_bytes, fillfactor, RULE)?)
}

/// Size of a B-tree's leaf tuple that holds these values.
#[pyfunction]
pub fn index_tuple_bytes(columns: Vec<ColumnArgument>) -> Result<u32, CoreError> {
    Ok(layout::index_tuple::index_tuple_bytes(&into_columns(
        columns,
    )?)?)
}

/// Buckets that CREATE INDEX makes in a hash index for so many rows.
#[pyfunction]
#[pyo3(signature = (rows, fillfactor=75))]
pub fn hash_buckets(rows: i64, fillfactor: i64) -> Result<u32, CoreError> {
    let rows = non_negative("rows", rows)?;
    // A hash index takes the same fillfactors.
    let fillfactor = layout::btree::BtreeFillfactor::new(fillfactor)?;
    let each = layout::hash_index::ffactor(fillfactor.percent());
    Ok(layout::hash_index::buckets(rows, each))
}

/// Pages of a B-tree, metapage included, that CREATE INDEX builds on distinct keys.
#[pyfunction]
#[pyo3(signature = (rows, index_tuple_bytes, fillfactor=90, *, pivot_tuple_bytes=None))]
pub fn btree_build_pages(
    rows: i64,
    index_tuple_bytes: i64,
    fillfactor: i64,
    pivot_tuple_bytes: Option<i64>,
) -> Result<u64, CoreError> {
    let rows = non_negative("rows", rows)?;
    let pivot_tuple_bytes = pivot_tuple_bytes.unwrap_or(index_tuple_bytes);
    let index_tuple_bytes = size("index_tuple_bytes", index_tuple_bytes)?;
    let pivot_tuple_bytes = size("pivot_tuple_bytes", pivot_tuple_bytes)?;
    let fillfactor = layout::btree::BtreeFillfactor::new(fillfactor)?;
    let built = layout::btree::build(rows, index_tuple_bytes, pivot_tuple_bytes, fillfactor)?;
    Ok(built.pages())
}

/// Names of the column types that the layout knows, without modifiers.
#[pyfunction]
pub fn type_names() -> Vec<&'static str> {
    layout::column_type::type_names().collect()
}

fn into_columns(columns: Vec<ColumnArgument>) -> Result<Vec<layout::Column>, CoreError> {
    columns
        .into_iter()
        .map(ColumnArgument::into_column)
        .collect()
}

/// `value` as a count; negative numbers are the asker's mistake, not an overflow.
fn non_negative(what: &'static str, value: i64) -> Result<u64, LayoutError> {
    u64::try_from(value).map_err(|_| LayoutError::OutOfRange {
        what,
        value,
        min: 0,
        max: i64::MAX,
    })
}

/// `value` as a size in bytes; the precise limit is checked where it is used.
fn size(what: &'static str, value: i64) -> Result<u32, LayoutError> {
    u32::try_from(value).map_err(|_| LayoutError::OutOfRange {
        what,
        value,
        min: 0,
        max: i64::from(u32::MAX),
    })
}
