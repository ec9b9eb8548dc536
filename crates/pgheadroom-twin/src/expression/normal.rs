//! Conditions in the form and order in which a server evaluates them.
//!
//! ```text
//! where not (a or b)                     -> not a; not b
//! where (a and k) or (b and k)           -> k; a or b
//! ```
//!
//! Whether a condition holds is the same in every form; which values are looked at until that is
//! known is not.
//!
//! Source: `RelationGetIndexPredicate`, src/backend/utils/cache/relcache.c;
//! `simplify_and_arguments` and `simplify_or_arguments`, src/backend/optimizer/util/clauses.c;
//! `negate_clause`, `find_duplicate_ors` and `process_duplicate_ors`,
//! src/backend/optimizer/prep/prepqual.c (REL_15_STABLE, REL_18_STABLE). Differs: conditions of
//! literals alone are not left out.

use crate::expression::{Comparison, Node};

impl Node {
    /// ANDs and ORs within their like are one, and NOT stands before nothing that has a negation
    /// of its own.
    pub(super) fn simplified(&self) -> Self {
        match self {
            Self::All(parts) => all(parts.iter().map(Self::simplified).collect()),
            Self::Any(parts) => any(parts.iter().map(Self::simplified).collect()),
            Self::Not(part) => part.simplified().negated(),
            Self::IsNull(part) => Self::IsNull(Box::new(part.simplified())),
            Self::Call(function, parts) => {
                Self::Call(*function, parts.iter().map(Self::simplified).collect())
            }
            other => other.clone(),
        }
    }

    fn negated(self) -> Self {
        match self {
            Self::All(parts) => any(parts.into_iter().map(Self::negated).collect()),
            Self::Any(parts) => all(parts.into_iter().map(Self::negated).collect()),
            Self::Not(part) => *part,
            Self::Compare(comparison, parts) => Self::Compare(comparison.negator(), parts),
            Self::ComparePadded(comparison, parts) => {
                Self::ComparePadded(comparison.negator(), parts)
            }
            other => Self::Not(Box::new(other)),
        }
    }

    /// The conditions of a predicate, simplified, one after the other.
    pub(super) fn conditions(self) -> Vec<Self> {
        match self.without_duplicates() {
            Self::All(parts) => parts,
            other => vec![other],
        }
    }

    /// What all parts of an OR have in common stands before it.
    fn without_duplicates(self) -> Self {
        match self {
            Self::All(parts) => all(parts.into_iter().map(Self::without_duplicates).collect()),
            Self::Any(parts) => {
                let parts = parts.into_iter().map(Self::without_duplicates).collect();
                match any(parts) {
                    Self::Any(parts) => common_first(parts),
                    other => other,
                }
            }
            other => other,
        }
    }

    fn conjuncts(&self) -> &[Self] {
        match self {
            Self::All(parts) => parts,
            other => std::slice::from_ref(other),
        }
    }
}

fn common_first(parts: Vec<Node>) -> Node {
    let shortest = parts
        .iter()
        .map(Node::conjuncts)
        .min_by_key(|part| part.len());
    let mut common: Vec<Node> = Vec::new();
    for one in shortest.unwrap_or_default() {
        let is_common = parts.iter().all(|part| part.conjuncts().contains(one));
        if is_common && !common.contains(one) {
            common.push(one.clone());
        }
    }
    if common.is_empty() {
        return Node::Any(parts);
    }
    let rest = |part: &Node| {
        let rest = part.conjuncts().iter().filter(|one| !common.contains(one));
        rest.cloned().collect::<Vec<_>>()
    };
    let rests: Vec<Vec<Node>> = parts.iter().map(rest).collect();
    if rests.iter().all(|rest| !rest.is_empty()) {
        common.push(any(rests.into_iter().map(all).collect()));
    }
    all(common)
}

/// An AND of these; of one it is that.
fn all(parts: Vec<Node>) -> Node {
    joined(parts, Node::All, |node| match node {
        Node::All(parts) => Ok(parts),
        other => Err(other),
    })
}

/// An OR of these; of one it is that.
fn any(parts: Vec<Node>) -> Node {
    joined(parts, Node::Any, |node| match node {
        Node::Any(parts) => Ok(parts),
        other => Err(other),
    })
}

fn joined(
    parts: Vec<Node>,
    make: fn(Vec<Node>) -> Node,
    within: fn(Node) -> Result<Vec<Node>, Node>,
) -> Node {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match within(part) {
            Ok(parts) => flat.extend(parts),
            Err(other) => flat.push(other),
        }
    }
    if flat.len() == 1 {
        flat.remove(0)
    } else {
        make(flat)
    }
}

impl Comparison {
    const fn negator(self) -> Self {
        match self {
            Self::Equal => Self::Different,
            Self::Different => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }
}
