//! pgbench's draws against those of pgbench itself.
//!
//! Origin: `golden/pgbench`, written by `tools/record_pgbench_golden.py`, which runs pgbench 15, 16
//! and 18 with scripts that insert what they drew: each has to draw the same.

use crate::common;

use pgheadroom_twin::pgbench::{Builtin, Generators, hash_fnv1a, hash_murmur2, permute};

/// Every function, from four seeds, for both clients of a run.
#[test]
fn every_function_draws_what_pgbench_draws() {
    for seed in [0, 1, 42, u64::MAX] {
        let text = common::golden("pgbench", &format!("draws-{seed}.json"));
        let mut generators = Generators::new(seed, 2);
        for client in 0..2 {
            let expected = common::table(&text, &format!("client_{client}"));
            assert_eq!(expected.len(), 200);
            for (number, row) in expected.into_iter().enumerate() {
                let default_seed = generators.default_seed;
                let prng = &mut generators.clients[client];
                let u = prng.random(1, 100_000);
                let drawn = [
                    u,
                    prng.random(-5000, 5000),
                    prng.random(-9_000_000_000_000_000_000, 200_000_000_000_000_000),
                    prng.random_zipfian(1, 100_000, 1.1),
                    prng.random_zipfian(1, 1000, 2.5),
                    prng.random_gaussian(1, 100_000, 3.0),
                    prng.random_exponential(1, 100_000, 4.5),
                    permute(u - 1, 100_000, 1),
                    permute(u, 1_234_567, default_seed),
                    hash_murmur2(u, default_seed),
                    hash_fnv1a(u, 5),
                ];
                assert_eq!(row, drawn, "seed {seed}, {client}, draw {number}");
            }
        }
    }
}

/// Scripts are chosen by weight, and draw their variables in order.
#[test]
fn scripts_are_chosen_as_pgbench_chooses() {
    let text = common::golden("pgbench", "scripts.json");
    let mut generators = Generators::new(7, 1);
    for (number, row) in common::table(&text, "transactions").into_iter().enumerate() {
        let script = generators.choose_script(&[3, 2]);
        let builtin = [Builtin::TpcbLike, Builtin::SelectOnly][script];
        let drawn = builtin.draw(&mut generators.clients[0], 3, 3);
        let script = i64::try_from(script).unwrap();
        let drawn = [script, drawn.aid, drawn.bid, drawn.tid, drawn.delta];
        assert_eq!(row, drawn, "transaction {number}");
    }
}
