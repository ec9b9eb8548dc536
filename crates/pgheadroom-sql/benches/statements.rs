//! Statements a second, as `observe` and `check` read them.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pgheadroom_sql::lexer::Options;
use pgheadroom_sql::{facts_of, normal, writes};

const UPDATE: &str = "UPDATE pgbench_accounts SET abalance = abalance + 17, filler = 'x' \
                      WHERE aid = 4711 -- a comment";
const INDEX: &str = "CREATE INDEX CONCURRENTLY i ON s.t (lower(a), b) INCLUDE (c) WHERE d > 0";

fn statements(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("statements");
    group.throughput(Throughput::Elements(1));
    group.bench_function("normalized", |bench| {
        bench.iter(|| normal::normalized(UPDATE, Options::default()));
    });
    group.bench_function("writes", |bench| bench.iter(|| writes::writes_of(UPDATE)));
    group.bench_function("facts", |bench| bench.iter(|| facts_of(INDEX)));
    group.finish();
}

criterion_group!(benches, statements);
criterion_main!(benches);
