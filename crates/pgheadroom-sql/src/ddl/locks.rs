//! Statements that take a lock on a table for a moment, and do no more to it.

use pg_query::protobuf::{CommentStmt, ObjectType};
use pg_query::{Node, NodeEnum};

use super::{Facts, relations};
use crate::spelled::{target, target_of_list};

/// Whether the statement is one of these; then it is told.
pub(super) fn only(facts: &mut Facts, statement: &NodeEnum) -> bool {
    match statement {
        NodeEnum::CreatePolicyStmt(policy) => {
            facts.work("policy", Some(target(policy.table.as_ref())));
        }
        NodeEnum::AlterPolicyStmt(policy) => {
            facts.work("policy", Some(target(policy.table.as_ref())));
        }
        NodeEnum::CommentStmt(made) => comment(facts, made),
        NodeEnum::CreateStatsStmt(statistics) => {
            for table in relations(&statistics.relations) {
                facts.work("statistics", Some(table));
            }
        }
        NodeEnum::CreatePublicationStmt(made) => published(facts, &made.pubobjects),
        NodeEnum::AlterPublicationStmt(made) => published(facts, &made.pubobjects),
        _ => return false,
    }
    true
}

/// Of a table or a column of it.
fn comment(facts: &mut Facts, made: &CommentStmt) {
    let object = made.object.as_deref().and_then(|node| node.node.as_ref());
    let Some(NodeEnum::List(parts)) = object else {
        return;
    };
    let before = parts.items.len().saturating_sub(1);
    match made.objtype() {
        ObjectType::ObjectTable => facts.work("comment", Some(target_of_list(&parts.items))),
        ObjectType::ObjectColumn if before > 0 => {
            facts.work("comment", Some(target_of_list(&parts.items[..before])));
        }
        _ => {}
    }
}

fn published(facts: &mut Facts, objects: &[Node]) {
    for object in objects {
        if let Some(NodeEnum::PublicationObjSpec(one)) = object.node.as_ref()
            && let Some(table) = one.pubtable.as_ref()
        {
            facts.work("publication", Some(target(table.relation.as_ref())));
        }
    }
}
