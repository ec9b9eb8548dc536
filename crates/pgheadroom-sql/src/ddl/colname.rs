//! After what an index column without a name is named.

use pg_query::protobuf::{JsonExprOp, MinMaxOp, SqlValueFunctionOp, SubLinkType, XmlExprOp};
use pg_query::{Node, NodeEnum};

use crate::spelled::name_parts;

/// The name of an expression's column, if it has one.
///
/// Source: `FigureIndexColname`, src/backend/parser/parse_target.c (REL_18_STABLE).
/// Differs: no.
pub(super) fn of(expression: &Node) -> Option<String> {
    figured(Some(expression)).map(|found| found.name)
}

struct Figured {
    name: String,
    /// Not the second-best choice: a cast or CASE around it does not take its place.
    is_good: bool,
}

fn good(name: &str) -> Option<Figured> {
    Some(Figured {
        name: name.to_owned(),
        is_good: true,
    })
}

fn figured(node: Option<&Node>) -> Option<Figured> {
    use NodeEnum as N;
    match node?.node.as_ref()? {
        N::ColumnRef(column) => good(name_parts(&column.fields).last()?),
        N::AIndirection(part) => match name_parts(&part.indirection).last() {
            Some(field) => good(field),
            None => figured(part.arg.as_deref()),
        },
        N::FuncCall(call) => good(name_parts(&call.funcname).last()?),
        N::AExpr(found) if found.kind() == pg_query::protobuf::AExprKind::AexprNullif => {
            good("nullif")
        }
        N::TypeCast(cast) => {
            let inside = figured(cast.arg.as_deref());
            if inside.as_ref().is_some_and(|found| found.is_good) {
                return inside;
            }
            let names = name_parts(&cast.type_name.as_ref()?.names);
            let name = (*names.last()?).to_owned();
            Some(Figured {
                name,
                is_good: false,
            })
        }
        N::CollateClause(collated) => figured(collated.arg.as_deref()),
        N::CaseExpr(case) => match figured(case.defresult.as_deref()) {
            Some(found) if found.is_good => Some(found),
            _ => Some(Figured {
                name: "case".to_owned(),
                is_good: false,
            }),
        },
        N::SubLink(link) => match link.sub_link_type() {
            SubLinkType::ExistsSublink => good("exists"),
            SubLinkType::ArraySublink => good("array"),
            _ => None,
        },
        N::GroupingFunc(_) => good("grouping"),
        N::MergeSupportFunc(_) => good("merge_action"),
        N::AArrayExpr(_) => good("array"),
        N::RowExpr(_) => good("row"),
        N::CoalesceExpr(_) => good("coalesce"),
        N::MinMaxExpr(found) => match found.op() {
            MinMaxOp::IsGreatest => good("greatest"),
            MinMaxOp::IsLeast => good("least"),
            MinMaxOp::Undefined => None,
        },
        N::SqlvalueFunction(found) => good(value_function(found.op())?),
        N::XmlExpr(found) => good(xml(found.op())?),
        N::XmlSerialize(_) => good("xmlserialize"),
        N::JsonParseExpr(_) => good("json"),
        N::JsonScalarExpr(_) => good("json_scalar"),
        N::JsonSerializeExpr(_) => good("json_serialize"),
        N::JsonObjectConstructor(_) => good("json_object"),
        N::JsonArrayConstructor(_) | N::JsonArrayQueryConstructor(_) => good("json_array"),
        N::JsonFuncExpr(found) => match found.op() {
            JsonExprOp::JsonExistsOp => good("json_exists"),
            JsonExprOp::JsonQueryOp => good("json_query"),
            JsonExprOp::JsonValueOp => good("json_value"),
            _ => None,
        },
        _ => None,
    }
}

fn value_function(op: SqlValueFunctionOp) -> Option<&'static str> {
    use SqlValueFunctionOp as F;
    Some(match op {
        F::SvfopCurrentDate => "current_date",
        F::SvfopCurrentTime | F::SvfopCurrentTimeN => "current_time",
        F::SvfopCurrentTimestamp | F::SvfopCurrentTimestampN => "current_timestamp",
        F::SvfopLocaltime | F::SvfopLocaltimeN => "localtime",
        F::SvfopLocaltimestamp | F::SvfopLocaltimestampN => "localtimestamp",
        F::SvfopCurrentRole => "current_role",
        F::SvfopCurrentUser => "current_user",
        F::SvfopUser => "user",
        F::SvfopSessionUser => "session_user",
        F::SvfopCurrentCatalog => "current_catalog",
        F::SvfopCurrentSchema => "current_schema",
        F::SqlvalueFunctionOpUndefined => return None,
    })
}

fn xml(op: XmlExprOp) -> Option<&'static str> {
    use XmlExprOp as X;
    Some(match op {
        X::IsXmlconcat => "xmlconcat",
        X::IsXmlelement => "xmlelement",
        X::IsXmlforest => "xmlforest",
        X::IsXmlparse => "xmlparse",
        X::IsXmlpi => "xmlpi",
        X::IsXmlroot => "xmlroot",
        X::IsXmlserialize => "xmlserialize",
        X::IsDocument | X::Undefined => return None,
    })
}
