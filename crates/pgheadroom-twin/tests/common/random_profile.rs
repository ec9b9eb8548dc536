//! A profile of choices: sensible, odd or absurd, small enough to be played at once.

use serde_json::{Value, json};

/// Numbers that become choices; after the last one all choices are the first.
pub struct Choices {
    left: std::vec::IntoIter<u16>,
    /// Whether some numbers are absurd; what has one is mostly refused.
    is_odd: bool,
}

impl Choices {
    /// Of some numbers; a third of them make absurd profiles.
    #[must_use]
    pub fn of_numbers(numbers: Vec<u16>) -> Self {
        let mut draw = Self {
            left: numbers.into_iter(),
            is_odd: false,
        };
        draw.is_odd = draw.below(3) == 2;
        draw
    }

    fn below(&mut self, many: usize) -> usize {
        usize::from(self.left.next().unwrap_or(0)) % many
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// One of the usual, or rarely another one.
    fn some<T: Clone>(&mut self, usual: &[T], others: &[T]) -> T {
        if self.is_odd && self.below(8) == 7 {
            self.of(others)
        } else {
            self.of(usual)
        }
    }

    /// A number that is likely one of the first, which are sensible.
    fn odd(&mut self, usual: &[Value], absurd: &[Value]) -> Value {
        if self.is_odd && self.below(40) == 39 {
            self.of(absurd)
        } else {
            self.of(usual)
        }
    }
}

/// What no field should hold. Between the sensible and these nothing is asked for: a run of a
/// billion rows is legal, and takes its time.
fn absurd() -> Vec<Value> {
    let huge = 1_u64 << 60;
    vec![
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(huge),
        json!(-0.5),
        json!(1e300),
    ]
}

fn numbers(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().map(|number| json!(number)).collect()
}

fn fracs() -> Vec<Value> {
    [1.0, 0.5, 0.0, 0.999_999_9]
        .map(|frac| json!(frac))
        .to_vec()
}

const TYPES: [&str; 14] = [
    "int4",
    "int8",
    "int2",
    "text",
    "varchar(40)",
    "bpchar(84)",
    "numeric",
    "numeric(5,2)",
    "float8",
    "float4",
    "bool",
    "timestamptz",
    "date",
    "int4",
];
const COLUMNS: [&str; 6] = ["k", "a", "b", "c", "d", "e"];
const DISTRIBUTIONS: [&str; 9] = [
    "uniform",
    "zipfian",
    "gaussian",
    "hot_set",
    "sequential",
    "stride",
    "newest",
    "oldest",
    "age",
];

fn column(name: &str, draw: &mut Choices) -> Value {
    let type_name = if name == "k" && (!draw.is_odd || draw.below(8) != 7) {
        "int4"
    } else {
        draw.of(&TYPES)
    };
    let kind = draw.of(&["serial", "random", "constant"]);
    let ndistinct = draw.odd(&numbers(&[7, 1, 40, 1_000_000_000]), &absurd());
    let is_text = type_name == "text" || type_name.starts_with("varchar");
    let widths = numbers(&[0, 1, 30, 40, 126, 127, 400, 2000, 2100, 9000]);
    let (one, other) = (draw.odd(&widths, &absurd()), draw.odd(&widths, &absurd()));
    let is_ascending = one.as_i64().unwrap_or(0) <= other.as_i64().unwrap_or(0);
    let (low, high) = if is_ascending {
        (one, other)
    } else {
        (other, one)
    };
    json!({"name": name, "type": type_name,
    "values": {"kind": kind, "ndistinct": if kind == "random" { ndistinct } else { Value::Null }},
    "width": if is_text { json!({"min_bytes": low, "max_bytes": high}) } else { Value::Null },
    "null_frac": if name == "k" { json!(0.0) } else {
        let fracs = [json!(0.0), json!(0.3), json!(1.0)];
        draw.odd(&fracs, &absurd())
    }})
}

fn index(number: usize, draw: &mut Choices) -> Value {
    let is_key = number == 0;
    let many = if is_key {
        1
    } else {
        draw.some(&[1, 2, 3, 6], &[0, 33])
    };
    let mut columns: Vec<&str> = (0..many).map(|_| draw.of(&COLUMNS)).collect();
    if is_key {
        columns = vec!["k"];
    }
    let expressions = ["lower(b)", "k + 1", "abs(a)"];
    json!({"name": format!("i{number}"), "columns": columns, "unique": is_key,
        "expressions": if draw.below(6) == 5 {
            vec![draw.some(&expressions, &["(("])] } else { vec![] },
        "method": if is_key { draw.some(&["btree"], &["brin"]) } else {
            draw.of(&["btree", "btree", "btree", "brin"]) },
        "include": if draw.below(5) == 4 { vec![draw.of(&COLUMNS)] } else { vec![] },
        "where": if is_key { draw.some(&[Value::Null], &[json!("k > 5")]) } else {
            draw.of(&[Value::Null, Value::Null, json!("k > 5"), json!("k = 0")]) },
        "fillfactor": draw.some(&[Value::Null, json!(90), json!(50)], &[json!(9), json!(101)]),
        "deduplicate_items": draw.of(&[Value::Null, json!(false)])})
}

fn operation(draw: &mut Choices) -> Value {
    let kinds = ["update", "insert", "delete", "select", "upsert", "lock"];
    let kind = draw.of(&kinds);
    let usual = numbers(&[1, 2, 5]);
    let rows = draw.odd(&usual, &absurd());
    let range = json!({"min": draw.odd(&usual, &absurd()), "max": draw.odd(&usual, &absurd())});
    let grows = json!({"min": draw.odd(&numbers(&[0, 1]), &absurd()),
        "max": draw.odd(&numbers(&[1, 300]), &absurd())});
    let change = json!({"changed_frac": draw.odd(&fracs(), &absurd()),
        "grows_bytes": draw.of(&[Value::Null, grows])});
    let sets = matches!(kind, "update" | "upsert");
    let distribution = draw.of(&DISTRIBUTIONS);
    let is_living = draw.below(2) == 1;
    let follows = match distribution {
        "oldest" | "age" => is_living,
        "uniform" | "zipfian" | "gaussian" => is_living && draw.below(2) == 1,
        _ => draw.is_odd && draw.below(20) == 19,
    };
    let ages = numbers(&[0, 1, 7, 300]);
    let pick = json!({"distribution": distribution,
        "scatter": if follows { draw.some(&[false], &[true]) } else { draw.below(3) == 2 },
        "among": if follows && !matches!(distribution, "oldest" | "age") { json!("live") }
            else { Value::Null },
        "within": if follows && distribution == "oldest" { draw.odd(&ages[1..], &absurd()) }
            else { Value::Null },
        "min": if distribution == "age" { draw.odd(&ages[..2], &absurd()) } else { Value::Null },
        "max": if distribution == "age" { draw.odd(&ages[1..], &absurd()) } else { Value::Null },
        "theta": draw.odd(&[json!(1.1), json!(2.5), json!(1.001)], &absurd()),
        "param": draw.odd(&[json!(2.0), json!(5.5)], &absurd()),
        "rows_frac": draw.odd(&[json!(0.5), json!(0.1)], &absurd()),
        "weight": draw.odd(&fracs(), &absurd()),
        "n": draw.odd(&numbers(&[1, 7, 50]), &absurd())});
    let rows = if follows {
        draw.some(&[json!(1)], &[rows])
    } else {
        rows
    };
    json!({"table": draw.some(&["t"], &["u"]), "kind": kind,
        "weight": draw.odd(&numbers(&[1, 5]), &absurd()),
        "rows_per_statement": if !follows && draw.below(4) == 3 { range } else { rows },
        "abort_frac": draw.odd(&[json!(0.0), json!(0.2), json!(1.0)], &absurd()),
        "sets": if sets { json!({draw.of(&COLUMNS): change}) } else { json!({}) },
        "pick": if kind == "insert" && draw.below(8) != 7 { Value::Null } else { pick },
        "find": draw.of(&["index", "index", "seqscan", "bitmap"]),
        "transaction": draw.of(&[Value::Null, Value::Null, json!("x")])})
}

pub fn profile(draw: &mut Choices) -> Value {
    let server = json!({"version": "18.4", "shared_buffers": "1GB",
        "full_page_writes": draw.below(2) == 0, "wal_level": draw.of(&["replica", "minimal"]),
        "wal_compression": draw.of(&["off", "off", "pglz", "lz4", "zstd"]), "wal_log_hints": false,
        "data_checksums": null, "autovacuum": draw.is_odd && draw.below(20) == 19});
    let clients = draw.odd(&numbers(&[1, 1, 2, 4]), &absurd());
    let mut run = json!({"clients": clients, "seed": draw.odd(&numbers(&[1, 2]), &absurd()),
        "operations": draw.odd(&numbers(&[40, 200, 0, 1]), &absurd())});
    if draw.below(8) == 7 {
        let frac = draw.odd(&fracs(), &absurd());
        run["snapshot"] =
            json!([{"start_frac": frac, "length_frac": draw.odd(&fracs(), &absurd())}]);
    }
    let mut made = json!({"schema_version": 1, "server": server, "run": run});
    if draw.below(8) == 7 {
        let whole = draw.odd(&numbers(&[40, 400, 4000]), &absurd());
        made["sample"] = json!({"whole_operations": whole});
    }
    if draw.below(60) == 59 {
        let builtin = draw.of(&["tpcb-like", "simple-update", "select-only"]);
        let scale = draw.of(&absurd());
        made["pgbench"] = json!({"builtin": builtin, "scale": scale, "fillfactor": {}});
        return made;
    }
    let table = |name: &str, draw: &mut Choices| {
        let columns: Vec<Value> = COLUMNS.iter().map(|name| column(name, draw)).collect();
        let indexes: Vec<Value> = (0..draw.some(&[1, 2, 3], &[0]))
            .map(|n| index(n, draw))
            .collect();
        json!({"name": name, "rows": draw.odd(&numbers(&[40, 200, 400, 4, 0]), &absurd()),
            "fillfactor": draw.odd(&numbers(&[100, 90, 50, 10]), &absurd()),
            "reloptions": {}, "columns": columns, "indexes": indexes})
    };
    let mut tables = vec![table("t", draw)];
    if draw.below(3) == 2 {
        tables.push(table("u", draw));
    }
    let operations: Vec<Value> = (0..draw.some(&[1, 2, 4], &[0]))
        .map(|_| operation(draw))
        .collect();
    made["table"] = json!(tables);
    made["operation"] = json!(operations);
    made
}
