//! The built-in base types: one line each.

use super::Storage::{Extended, Main, Plain};
use super::{MAX_PAYLOAD, Storage, TypeLength};
use crate::align::Alignment::{self, Char, Double, Int, Short};

/// What the parentheses after a type's name mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Modifier {
    /// Nothing may stand there.
    None,
    /// `bpchar(n)`: n characters, blank-padded.
    PaddedCharacters,
    /// `varchar(n)`: at most n characters.
    Characters,
    /// `bit(n)`: exactly n bits.
    Bits,
    /// `varbit(n)`: at most n bits.
    AtMostBits,
    /// `numeric(p,s)`: no effect on the width of a given value.
    PrecisionScale,
    /// `timestamp(p)`, `time(p)`, `interval(p)`: no effect on the width.
    Precision,
    /// `float(p)`: chooses between float4 and float8.
    FloatPrecision,
    /// Of an enum, as we write it: how many labels, and the first one's OID.
    Labels,
}

/// What the catalogue and the grammar say about one type.
pub(super) struct TypeSpec {
    pub(super) typname: &'static str,
    pub(super) typlen: TypeLength,
    pub(super) typalign: Alignment,
    pub(super) typstorage: Storage,
    pub(super) modifier: Modifier,
    /// Payload bytes of a varlena: smallest and largest.
    pub(super) payload: (u32, u32),
    pub(super) spellings: &'static [&'static str],
}

const fn fixed(
    typname: &'static str,
    length: u16,
    typalign: Alignment,
    spellings: &'static [&'static str],
) -> TypeSpec {
    TypeSpec {
        typname,
        typlen: TypeLength::Fixed(length),
        typalign,
        typstorage: Storage::Plain,
        modifier: Modifier::None,
        payload: (0, 0),
        spellings,
    }
}

const fn timed(typname: &'static str, length: u16, spellings: &'static [&'static str]) -> TypeSpec {
    let mut spec = fixed(typname, length, Alignment::Double, spellings);
    spec.modifier = Modifier::Precision;
    spec
}

const fn varlena(
    typname: &'static str,
    typalign: Alignment,
    typstorage: Storage,
    min_payload: u32,
    spellings: &'static [&'static str],
) -> TypeSpec {
    TypeSpec {
        typname,
        typlen: TypeLength::Varlena,
        typalign,
        typstorage,
        modifier: Modifier::None,
        payload: (min_payload, MAX_PAYLOAD),
        spellings,
    }
}

const fn modified(mut spec: TypeSpec, modifier: Modifier) -> TypeSpec {
    spec.modifier = modifier;
    spec
}

const fn at_most(mut spec: TypeSpec, max_payload: u32) -> TypeSpec {
    spec.payload.1 = max_payload;
    spec
}

/// The built-in base types.
///
/// Source: src/include/catalog/pg_type.dat (REL_15_STABLE to REL_18_STABLE agree on all of them);
/// spellings: `SystemTypeName` rules in src/backend/parser/gram.y and `format_type_extended`,
/// src/backend/utils/adt/format_type.c.
pub(super) const TYPES: &[TypeSpec] = &[
    fixed("bool", 1, Char, &["boolean"]),
    fixed("\"char\"", 1, Char, &[]),
    fixed("int2", 2, Short, &["smallint", "smallserial", "serial2"]),
    fixed("int4", 4, Int, &["integer", "int", "serial", "serial4"]),
    fixed("int8", 8, Double, &["bigint", "bigserial", "serial8"]),
    fixed("float4", 4, Int, &["real"]),
    modified(
        fixed("float8", 8, Double, &["double precision", "float"]),
        Modifier::FloatPrecision,
    ),
    modified(
        varlena("numeric", Int, Main, 2, &["decimal", "dec"]),
        Modifier::PrecisionScale,
    ),
    fixed("money", 8, Double, &[]),
    fixed("date", 4, Int, &[]),
    timed("time", 8, &["time without time zone"]),
    timed("timetz", 12, &["time with time zone"]),
    timed("timestamp", 8, &["timestamp without time zone"]),
    timed("timestamptz", 8, &["timestamp with time zone"]),
    timed("interval", 16, &[]),
    varlena("text", Int, Extended, 0, &[]),
    modified(
        varlena(
            "varchar",
            Int,
            Extended,
            0,
            &["character varying", "char varying"],
        ),
        Modifier::Characters,
    ),
    modified(
        varlena("bpchar", Int, Extended, 0, &["character", "char"]),
        Modifier::PaddedCharacters,
    ),
    fixed("name", 64, Char, &[]),
    TypeSpec {
        typname: "cstring",
        typlen: TypeLength::Cstring,
        typalign: Char,
        typstorage: Plain,
        modifier: Modifier::None,
        payload: (0, MAX_PAYLOAD),
        spellings: &[],
    },
    varlena("bytea", Int, Extended, 0, &[]),
    modified(varlena("bit", Int, Extended, 4, &[]), Modifier::Bits),
    modified(
        varlena("varbit", Int, Extended, 4, &["bit varying"]),
        Modifier::AtMostBits,
    ),
    fixed("uuid", 16, Char, &[]),
    at_most(varlena("inet", Int, Main, 6, &[]), 18),
    at_most(varlena("cidr", Int, Main, 6, &[]), 18),
    fixed("macaddr", 6, Int, &[]),
    fixed("macaddr8", 8, Int, &[]),
    varlena("json", Int, Extended, 1, &[]),
    varlena("jsonb", Int, Extended, 4, &[]),
    varlena("jsonpath", Int, Extended, 4, &[]),
    varlena("xml", Int, Extended, 0, &[]),
    varlena("tsvector", Int, Extended, 4, &[]),
    varlena("tsquery", Int, Plain, 4, &[]),
    fixed("oid", 4, Int, &[]),
    fixed("xid", 4, Int, &[]),
    fixed("cid", 4, Int, &[]),
    fixed("tid", 6, Short, &[]),
    fixed("xid8", 8, Double, &[]),
    fixed("pg_lsn", 8, Double, &[]),
    fixed("regproc", 4, Int, &[]),
    fixed("regprocedure", 4, Int, &[]),
    fixed("regoper", 4, Int, &[]),
    fixed("regoperator", 4, Int, &[]),
    fixed("regclass", 4, Int, &[]),
    fixed("regtype", 4, Int, &[]),
    fixed("regrole", 4, Int, &[]),
    fixed("regnamespace", 4, Int, &[]),
    fixed("regconfig", 4, Int, &[]),
    fixed("regdictionary", 4, Int, &[]),
    fixed("regcollation", 4, Int, &[]),
    fixed("point", 16, Double, &[]),
    fixed("line", 24, Double, &[]),
    fixed("lseg", 32, Double, &[]),
    fixed("box", 32, Double, &[]),
    fixed("circle", 24, Double, &[]),
    varlena("path", Double, Extended, 12, &[]),
    // Ours, of one text; a composite type has the form of its likes, whatever its fields are.
    varlena("composite", Double, Extended, 21, &[]),
    varlena("polygon", Double, Extended, 36, &[]),
    varlena("int4range", Int, Extended, 5, &[]),
    varlena("int8range", Double, Extended, 5, &[]),
    varlena("numrange", Int, Extended, 5, &[]),
    varlena("tsrange", Double, Extended, 5, &[]),
    varlena("tstzrange", Double, Extended, 5, &[]),
    varlena("daterange", Int, Extended, 5, &[]),
    varlena("int4multirange", Int, Extended, 8, &[]),
    varlena("int8multirange", Double, Extended, 8, &[]),
    varlena("nummultirange", Int, Extended, 8, &[]),
    varlena("tsmultirange", Double, Extended, 8, &[]),
    varlena("tstzmultirange", Double, Extended, 8, &[]),
    varlena("datemultirange", Int, Extended, 8, &[]),
    varlena("pg_snapshot", Double, Extended, 20, &[]),
    varlena("txid_snapshot", Double, Extended, 20, &[]),
    varlena("refcursor", Int, Extended, 0, &[]),
    varlena("oidvector", Int, Plain, 20, &[]),
    varlena("int2vector", Int, Plain, 20, &[]),
    // Of users: what a label is stored as, the OID of its row in pg_enum.
    modified(fixed("enum", 4, Int, &[]), Modifier::Labels),
    // Of extensions.
    varlena("citext", Int, Extended, 0, &[]),
    varlena("hstore", Int, Extended, 4, &[]),
    varlena("ltree", Int, Extended, 4, &[]),
];
