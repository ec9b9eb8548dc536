//! Records a second, out of pages in memory: what the reader and the sums cost without files.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pgheadroom_layout::Lsn;
use pgheadroom_walread::format::Major;
use pgheadroom_walread::reader::{Reader, Step};
use pgheadroom_walread::sink::Sink;
use pgheadroom_walread::{Range, Tally, Wanted};

#[path = "../tests/wal_writer/mod.rs"]
mod wal_writer;

use wal_writer::{SEGMENT, Writer, block};

const START: u64 = 3 * SEGMENT;
const RECORDS: u64 = 10_000;

/// HOT updates and index insertions, of 81 bytes in the mean as pgbench's.
fn pages() -> Vec<u8> {
    let mut wal = Writer::new(START);
    for n in 0..RECORDS {
        let (rmgr, info, data, main) = if n % 2 == 0 {
            (10, 0x40, 26, 14)
        } else {
            (11, 0, 16, 2)
        };
        let relation = u32::try_from(n % 6).unwrap_or_default() + 1;
        wal.record(rmgr, info, &[block(relation, data)], &vec![0; main]);
    }
    let whole = wal.bytes.len().next_multiple_of(8192);
    wal.bytes.resize(whole, 0);
    wal.bytes
}

fn read(bytes: &[u8]) -> u64 {
    let wanted = Wanted::default();
    let mut tally = Tally::new(
        Major::V18,
        SEGMENT,
        Range::default(),
        &wanted,
        Lsn(u64::MAX),
    );
    let mut reader = Reader::new(0xD118, SEGMENT);
    for (n, page) in bytes.chunks_exact(8192).enumerate() {
        let page = page.try_into().unwrap();
        if reader.take(Lsn(START + n as u64 * 8192), page, None, &mut tally) != Step::Next {
            break;
        }
    }
    tally.settle();
    tally.total.records
}

fn records(criterion: &mut Criterion) {
    let bytes = pages();
    assert_eq!(read(&bytes), RECORDS);
    let mut group = criterion.benchmark_group("walread");
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("records", |bencher| {
        bencher.iter(|| read(black_box(&bytes)))
    });
    group.finish();
}

criterion_group!(benches, records);
criterion_main!(benches);
