//! `pgheadroom-sql`: statements by PostgreSQL's grammar.
//!
//! One call a text or statement. What a statement does comes as JSON, which the callers make their
//! own values of; why it is not understood comes as a value too, for callers count it.

use pgheadroom_sql::lexer::Options;
use pgheadroom_sql::split::Problem;
use pgheadroom_sql::{
    GRAMMAR_MAJOR, SqlError, columns, heads, immutable, normal, reads, split, trigger, writes,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::CoreError;

/// The major version of PostgreSQL whose grammar reads statements.
#[pyfunction]
pub fn grammar_major() -> i32 {
    GRAMMAR_MAJOR
}

/// The statements of a text: line from 1, text without comments, and the problem if it is none.
///
/// The problem is `cut` (a literal, name or comment does not end), `variable` (of psql), `skipped`
/// (a command of psql that runs nothing), `connects` with a blank and the database's name, which
/// may be empty, or the name of another command with its backslash. All but the first only with
/// `psql`.
#[pyfunction]
#[pyo3(signature = (text, /, *, psql = true))]
pub fn split_statements(
    py: Python<'_>,
    text: &str,
    psql: bool,
) -> Vec<(usize, String, Option<String>)> {
    let options = Options {
        commands: psql,
        variables: psql,
    };
    let parts = py.detach(|| split::split(text, options));
    let named = |problem| match problem {
        Problem::Cut => "cut".to_owned(),
        Problem::Variable => "variable".to_owned(),
        Problem::Skipped => "skipped".to_owned(),
        Problem::Connects(name) => format!("connects {}", name.unwrap_or_default()),
        Problem::Command(name) => name,
    };
    parts
        .into_iter()
        .map(|part| (part.line, part.text, part.problem.map(named)))
        .collect()
}

/// The statements of a text, constants and parameters as $1, $2, ...; None if it is cut.
///
/// `variables`: it may have backslash commands, which are left out, and variables (`:name`).
#[pyfunction]
#[pyo3(signature = (text, /, *, variables = false))]
pub fn normalized_statements(py: Python<'_>, text: &str, variables: bool) -> Option<Vec<String>> {
    let options = Options {
        commands: variables,
        variables,
    };
    py.detach(|| normal::normalized(text, options)).ok()
}

/// What a statement writes: JSON, `{"writes": [...]}` or `{"reason": ..., "message": ...}`.
#[pyfunction]
#[pyo3(signature = (statement, /))]
pub fn statement_writes(py: Python<'_>, statement: &str) -> Result<String, CoreError> {
    py.detach(|| answer(writes::writes_of(statement).map(|found| json!({"writes": found}))))
}

/// Which rows a statement takes from the head of a queue: JSON, `{"heads": [...]}` or
/// `{"reason": ..., "message": ...}`.
#[pyfunction]
#[pyo3(signature = (statement, /))]
pub fn statement_heads(py: Python<'_>, statement: &str) -> Result<String, CoreError> {
    py.detach(|| answer(heads::heads_of(statement).map(|found| json!({"heads": found}))))
}

/// What a statement reads: JSON, `{"tables", "ranges", "equals", "ordered", "has_limit"}` or
/// `{"reason": ..., "message": ...}`.
#[pyfunction]
#[pyo3(signature = (statement, /))]
pub fn statement_reads(py: Python<'_>, statement: &str) -> Result<String, CoreError> {
    py.detach(|| answer(reads::reads_of(statement).map(|found| json!(found))))
}

/// What a statement does to tables: JSON, `{"facts": [...]}` or `{"reason": ..., "message": ...}`.
#[pyfunction]
#[pyo3(signature = (statement, /))]
pub fn statement_facts(py: Python<'_>, statement: &str) -> Result<String, CoreError> {
    py.detach(|| answer(pgheadroom_sql::facts_of(statement).map(|found| json!({"facts": found}))))
}

/// What an expression over a row of the table reads: JSON, `{"columns", "whole_row",
/// "may_be_row", "functions", "text"}` or `{"reason": ..., "message": ...}`.
#[pyfunction]
#[pyo3(signature = (expression, /, *, table))]
pub fn expression_reads(
    py: Python<'_>,
    expression: &str,
    table: &str,
) -> Result<String, CoreError> {
    py.detach(|| {
        answer(columns::expression(expression, table).map(|(reads, text)| {
            json!({
                "columns": reads.columns,
                "whole_row": reads.whole_row,
                "may_be_row": reads.may_be_row,
                "functions": reads.functions,
                "text": text,
            })
        }))
    })
}

/// What of an expression no index may have, since it is not immutable; None: nothing is known.
///
/// Columns are names and types.
#[pyfunction]
#[pyo3(signature = (expression, columns, /))]
pub fn not_immutable(
    py: Python<'_>,
    expression: &str,
    columns: Vec<(String, String)>,
) -> Option<String> {
    py.detach(|| immutable::not_immutable(expression, &columns))
        .ok()
        .flatten()
}

/// The columns that the body of a trigger's function in PL/pgSQL may assign to the row; None: not
/// known.
#[pyfunction]
#[pyo3(signature = (source, /))]
pub fn trigger_assigns(py: Python<'_>, source: &str) -> Option<Vec<String>> {
    py.detach(|| trigger::assigned(source))
}

fn answer(found: Result<Value, SqlError>) -> Result<String, CoreError> {
    let value = found
        .unwrap_or_else(|error| json!({"reason": error.reason(), "message": error.to_string()}));
    serde_json::to_string(&value).map_err(|error| CoreError::input(error.to_string()))
}
