//! Domains: a column of one that has constraints is checked row by row.

use pg_query::protobuf::{AlterDomainStmt, ConstrType, CreateDomainStmt};

use super::{Facts, table};
use crate::facts::Fact;
use crate::spelled::{target_of_list, type_spelled};

pub(super) fn create(facts: &mut Facts, made: &CreateDomainStmt) {
    let mut constraints = made.constraints.iter().filter_map(table::constraint);
    let is_constrained = constraints.any(|found| {
        let kind = found.contype();
        matches!(kind, ConstrType::ConstrCheck | ConstrType::ConstrNotnull)
    });
    facts.add(Fact::Domain {
        domain: target_of_list(&made.domainname),
        is_new: true,
        over: Some(type_spelled(made.type_name.as_ref())),
        is_constrained,
        is_checked: false,
    });
}

/// SET NOT NULL, ADD CONSTRAINT, VALIDATE CONSTRAINT; what goes may leave others.
pub(super) fn alter(facts: &mut Facts, statement: &AlterDomainStmt) {
    if !["O", "C", "V"].contains(&statement.subtype.as_str()) {
        return;
    }
    let added = statement.def.as_deref().and_then(table::constraint);
    facts.add(Fact::Domain {
        domain: target_of_list(&statement.type_name),
        is_new: false,
        over: None,
        is_constrained: true,
        is_checked: !added.is_some_and(|made| made.skip_validation),
    });
}
