//! What a statement writes: the table, and for an update the columns that it assigns.

use pg_query::protobuf::{
    CmdType, DeleteStmt, InsertStmt, MergeStmt, MergeWhenClause, MultiAssignRef, OnConflictAction,
    RangeVar, ResTarget, SelectStmt, UpdateStmt, WithClause, a_const,
};
use pg_query::{Node, NodeEnum};
use serde::Serialize;

use crate::SqlError;
use crate::spelled::{is_set, name_parts, optional};
use crate::tree::with_tree;

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteKind {
    /// INSERT, also by MERGE.
    Insert,
    /// UPDATE.
    Update,
    /// INSERT ... ON CONFLICT DO UPDATE.
    Upsert,
    /// The UPDATE of a MERGE.
    Merge,
    /// DELETE, also by MERGE.
    Delete,
}

/// One target of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    /// How.
    pub kind: WriteKind,
    /// The table's schema, if it is named.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// Of ONLY that table: rows of those that inherit from it, its partitions too, are not meant.
    pub only: bool,
    /// Columns that an update assigns, in order.
    pub columns: Vec<String>,
    /// Those of them that are assigned to themselves.
    pub same: Vec<String>,
    /// Those that get something appended to their own value by `||`.
    pub appended: Vec<String>,
    /// It stands in a WITH of the statement, whose count of rows has not its rows.
    pub is_inner: bool,
    /// An update or a delete of rows that a condition finds: a WHERE that is not always true, or
    /// the ON of a MERGE.
    pub has_where: bool,
}

/// What a statement writes; empty for one that only reads, or whose code is not seen (CALL).
///
/// # Errors
///
/// Of the parser.
pub fn writes_of(text: &str) -> Result<Vec<Write>, SqlError> {
    with_tree(text, |tree| Ok(writes_in(tree.only()?)))
}

/// What a statement of a tree writes.
pub(crate) fn writes_in(statement: &NodeEnum) -> Vec<Write> {
    let mut found = Found { writes: Vec::new() };
    found.statement(statement, false);
    found.writes
}

struct Found {
    writes: Vec<Write>,
}

impl Found {
    fn node(&mut self, node: Option<&Node>, is_inner: bool) {
        if let Some(inside) = node.and_then(|node| node.node.as_ref()) {
            self.statement(inside, is_inner);
        }
    }

    fn statement(&mut self, statement: &NodeEnum, is_inner: bool) {
        match statement {
            NodeEnum::UpdateStmt(update) => self.update(update, is_inner),
            NodeEnum::InsertStmt(insert) => self.insert(insert, is_inner),
            NodeEnum::DeleteStmt(delete) => self.delete(delete, is_inner),
            NodeEnum::MergeStmt(merge) => self.merge(merge, is_inner),
            NodeEnum::SelectStmt(select) => self.select(select),
            NodeEnum::PrepareStmt(prepare) => self.node(prepare.query.as_deref(), is_inner),
            NodeEnum::CopyStmt(copy) => self.node(copy.query.as_deref(), true),
            NodeEnum::CreateTableAsStmt(made) => self.node(made.query.as_deref(), true),
            NodeEnum::DeclareCursorStmt(cursor) => self.node(cursor.query.as_deref(), true),
            NodeEnum::ExplainStmt(explain) if is_set(&explain.options, "analyze") => {
                self.node(explain.query.as_deref(), true);
            }
            _ => {}
        }
    }

    fn with(&mut self, clause: Option<&WithClause>) {
        for cte in clause.iter().flat_map(|with| &with.ctes) {
            if let Some(NodeEnum::CommonTableExpr(cte)) = cte.node.as_ref() {
                self.node(cte.ctequery.as_deref(), true);
            }
        }
    }

    /// Its WITHs: a chain of UNION is as deep as it is long, so no recursion over the left side.
    fn select(&mut self, select: &SelectStmt) {
        let mut next = Some(select);
        while let Some(select) = next {
            self.with(select.with_clause.as_ref());
            if let Some(right) = select.rarg.as_deref() {
                self.select(right);
            }
            next = select.larg.as_deref();
        }
    }

    fn push(
        &mut self,
        kind: WriteKind,
        target: Option<&RangeVar>,
        list: Option<&[Node]>,
        is_inner: bool,
    ) {
        let Some(target) = target else { return };
        let mut write = Write {
            kind,
            schema: optional(&target.schemaname),
            table: target.relname.clone(),
            only: !target.inh,
            columns: Vec::new(),
            same: Vec::new(),
            appended: Vec::new(),
            is_inner,
            has_where: matches!(kind, WriteKind::Merge),
        };
        for item in list.unwrap_or_default() {
            if let Some(NodeEnum::ResTarget(assigned)) = item.node.as_ref() {
                assign(&mut write, target, assigned);
            }
        }
        self.writes.push(write);
    }

    fn update(&mut self, update: &UpdateStmt, is_inner: bool) {
        self.with(update.with_clause.as_ref());
        let list = Some(update.target_list.as_slice());
        self.push(WriteKind::Update, update.relation.as_ref(), list, is_inner);
        self.only_where(update.where_clause.as_deref());
    }

    fn insert(&mut self, insert: &InsertStmt, is_inner: bool) {
        self.with(insert.with_clause.as_ref());
        self.node(insert.select_stmt.as_deref(), true);
        let target = insert.relation.as_ref();
        match insert.on_conflict_clause.as_deref() {
            Some(conflict) if conflict.action() == OnConflictAction::OnconflictUpdate => {
                let list = Some(conflict.target_list.as_slice());
                self.push(WriteKind::Upsert, target, list, is_inner);
            }
            _ => self.push(WriteKind::Insert, target, None, is_inner),
        }
    }

    fn delete(&mut self, delete: &DeleteStmt, is_inner: bool) {
        self.with(delete.with_clause.as_ref());
        self.push(WriteKind::Delete, delete.relation.as_ref(), None, is_inner);
        self.only_where(delete.where_clause.as_deref());
    }

    /// What was pushed last concerns the rows of that condition.
    fn only_where(&mut self, clause: Option<&Node>) {
        if let Some(write) = self.writes.last_mut() {
            write.has_where = clause.is_some_and(|clause| !is_true(clause));
        }
    }

    fn merge(&mut self, merge: &MergeStmt, is_inner: bool) {
        self.with(merge.with_clause.as_ref());
        for clause in &merge.merge_when_clauses {
            if let Some(NodeEnum::MergeWhenClause(when)) = clause.node.as_ref() {
                self.when(merge.relation.as_ref(), when, is_inner);
            }
        }
    }

    fn when(&mut self, target: Option<&RangeVar>, when: &MergeWhenClause, is_inner: bool) {
        match when.command_type() {
            CmdType::CmdUpdate => {
                let list = Some(when.target_list.as_slice());
                self.push(WriteKind::Merge, target, list, is_inner);
            }
            CmdType::CmdInsert => self.push(WriteKind::Insert, target, None, is_inner),
            CmdType::CmdDelete => {
                self.push(WriteKind::Delete, target, None, is_inner);
                if let Some(write) = self.writes.last_mut() {
                    write.has_where = true;
                }
            }
            _ => {}
        }
    }
}

fn assign(write: &mut Write, target: &RangeVar, assigned: &ResTarget) {
    let name = &assigned.name;
    if !write.columns.contains(name) {
        write.columns.push(name.clone());
    }
    if !assigned.indirection.is_empty() {
        return; // an element or a field of it
    }
    let value = match assigned.val.as_deref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::MultiAssignRef(part)) => part_of_row(part),
        other => other,
    };
    let Some(value) = value else { return };
    if is_own(value, name, target) {
        write.same.push(name.clone());
    } else if is_appended(value, name, target) {
        write.appended.push(name.clone());
    }
}

/// The constant TRUE.
fn is_true(node: &Node) -> bool {
    match node.node.as_ref() {
        Some(NodeEnum::AConst(constant)) => {
            matches!(&constant.val, Some(a_const::Val::Boolval(found)) if found.boolval)
        }
        _ => false,
    }
}

/// The value of one column in `(a, b) = (x, y)`; None for a subquery.
fn part_of_row(part: &MultiAssignRef) -> Option<&NodeEnum> {
    let Some(NodeEnum::RowExpr(row)) = part.source.as_deref()?.node.as_ref() else {
        return None;
    };
    let index = usize::try_from(part.colno).ok()?.checked_sub(1)?;
    row.args.get(index)?.node.as_ref()
}

/// Whether a value is that column of the row itself.
fn is_own(value: &NodeEnum, name: &str, target: &RangeVar) -> bool {
    let NodeEnum::ColumnRef(column) = value else {
        return false;
    };
    let parts = name_parts(&column.fields);
    let alias = target.alias.as_ref().map(|alias| alias.aliasname.as_str());
    match *parts.as_slice() {
        [column] => column == name,
        [table, column] => column == name && table == alias.unwrap_or(&target.relname),
        [schema, table, column] => {
            let is_target = schema == target.schemaname && table == target.relname;
            column == name && alias.is_none() && is_target
        }
        _ => false,
    }
}

/// Whether the column stands in a chain of `||`.
fn is_appended(value: &NodeEnum, name: &str, target: &RangeVar) -> bool {
    let mut left = Some(value);
    while let Some(NodeEnum::AExpr(chain)) = left {
        if name_parts(&chain.name) != ["||"] {
            return false;
        }
        let side = |node: &Option<Box<Node>>| -> Option<NodeEnum> {
            node.as_deref().and_then(|node| node.node.clone())
        };
        if side(&chain.rexpr).is_some_and(|node| is_own(&node, name, target)) {
            return true;
        }
        left = chain.lexpr.as_deref().and_then(|node| node.node.as_ref());
        if left.is_some_and(|node| is_own(node, name, target)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let found = writes_of(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        found
            .iter()
            .map(|write| {
                let list = |name: &str, columns: &[String]| match columns {
                    [] => String::new(),
                    some => format!(" {name}{}", some.join(",")),
                };
                format!(
                    "{:?} {}{}{}{}{}{}{}",
                    write.kind,
                    if write.only { "only " } else { "" },
                    write
                        .schema
                        .as_ref()
                        .map(|s| format!("{s}."))
                        .unwrap_or_default(),
                    write.table,
                    list("", &write.columns),
                    list("same:", &write.same),
                    list("appended:", &write.appended),
                    if write.is_inner { " inner" } else { "" },
                )
            })
            .collect()
    }

    #[test]
    fn each_way_to_write_a_row_gives_its_target_and_columns() {
        for (text, expected) in [
            (
                "UPDATE ONLY s.t AS x SET (a, b) = (x.a, $2) RETURNING *",
                vec!["Update only s.t a,b same:a"],
            ),
            ("UPDATE t SET (a, b) = (SELECT 1, 2)", vec!["Update t a,b"]),
            (
                "UPDATE \"S\".\"T\" SET \"A\" = 1, A = t2.a FROM t2",
                vec!["Update S.T A,a"],
            ),
            (
                "UPDATE t SET a[1] = a, b[1:2] = 2, c.f = 3, a[2] = 1",
                vec!["Update t a,b,c"],
            ),
            (
                "UPDATE t * SET a = DEFAULT WHERE CURRENT OF c",
                vec!["Update t a"],
            ),
            (
                "UPDATE t SET a = x || a || y, b = b || 'x', c = c + 1 || d",
                vec!["Update t a,b,c appended:a,b"],
            ),
            (
                "UPDATE s.t SET a = s.t.a, b = r.t.b",
                vec!["Update s.t a,b same:a"],
            ),
            (
                "UPDATE t SET a = 1 RETURNING WITH (OLD AS o, NEW AS n) o.a, n.a",
                vec!["Update t a"],
            ),
            ("PREPARE p (int) AS UPDATE t SET a = $1", vec!["Update t a"]),
            (
                "EXPLAIN (ANALYZE, VERBOSE off) UPDATE t SET a = 1",
                vec!["Update t a inner"],
            ),
            ("EXPLAIN (ANALYZE false) UPDATE t SET a = 1", vec![]),
            ("EXPLAIN UPDATE t SET a = 1", vec![]),
            (
                "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
                vec!["Insert t"],
            ),
            (
                "INSERT INTO t AS x (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = x.b, c = \
              excluded.c",
                vec!["Upsert t b,c same:b"],
            ),
            (
                "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.x THEN DELETE WHEN MATCHED \
              THEN UPDATE SET a = s.a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 1 \
              WHEN NOT MATCHED THEN INSERT VALUES (1)",
                vec!["Delete t", "Merge t a", "Merge t b", "Insert t"],
            ),
            (
                "WITH u AS (UPDATE t SET a = 1 RETURNING id), v AS (DELETE FROM w) SELECT * FROM u",
                vec!["Update t a inner", "Delete w inner"],
            ),
            (
                "WITH u AS (INSERT INTO t VALUES (1)) UPDATE s SET b = 1",
                vec!["Insert t inner", "Update s b"],
            ),
            (
                "COPY (UPDATE t SET a = 1 RETURNING a) TO STDOUT",
                vec!["Update t a inner"],
            ),
            ("SELECT 'update t set a = 1' FOR UPDATE", vec![]),
            ("COPY t FROM STDIN", vec![]),
            ("CALL f(1)", vec![]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn the_condition_is_that_of_the_statement_itself() {
        for (text, expected) in [
            ("UPDATE t SET a = 1 WHERE b = 2", vec![true]),
            ("UPDATE t SET a = 1 WHERE CURRENT OF c", vec![true]),
            ("UPDATE t SET a = ' WHERE '", vec![false]),
            (
                "UPDATE t SET a = (SELECT b FROM s WHERE s.id = t.id)",
                vec![false],
            ),
            ("UPDATE t SET a = 1 WHERE true", vec![false]),
            ("UPDATE t SET a = 1 WHERE false", vec![true]),
            ("WITH s AS (SELECT 1 WHERE $1) DELETE FROM t", vec![false]),
            (
                "WITH u AS (UPDATE t SET a = 1 WHERE b RETURNING id) DELETE FROM s",
                vec![true, false],
            ),
            (
                "WITH u AS (UPDATE t SET a = 1) DELETE FROM s USING u WHERE s.id = u.id",
                vec![false, true],
            ),
            (
                "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.x THEN DELETE \
              WHEN MATCHED THEN UPDATE SET a = 1",
                vec![true, true],
            ),
            (
                "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1 WHERE t.c",
                vec![false],
            ),
        ] {
            let found = writes_of(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let conditions: Vec<bool> = found.iter().map(|write| write.has_where).collect();
            assert_eq!(conditions, expected, "{text}");
        }
    }

    #[test]
    fn a_long_chain_does_not_need_a_deep_stack_of_ours() {
        let text = format!(
            "INSERT INTO t SELECT 1{}",
            " UNION ALL SELECT 1".repeat(3_000)
        );
        assert_eq!(shown(&text), ["Insert t"]);
        let text = format!("UPDATE t SET a = a{}", " || 'x'".repeat(3_000));
        assert_eq!(shown(&text), ["Update t a appended:a"]);
    }
}
