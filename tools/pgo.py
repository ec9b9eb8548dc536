"""
Measure how often each branch of the core is taken, for the compiler of the released build.

    make pgo

    instrumented module -> examples and tools/pgo/*.toml through `predict` ─┐
    instrumented benchmarks, 200,000 rows ──────────────────────────────────┴> merged
                                        functions of the core alone -> tools/build/pgo-*

The counts are of one release of rustc on one platform, as the names of functions are, and are named
so. Of a function that has changed since they are left out by the compiler; a result never depends
on them. Source: "Profile-guided Optimization" of the rustc book.
"""

from __future__ import annotations

import base64
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "build"))
import pgheadroom_build  # noqa: E402

# Room for HOT and none, rows that come and go, autovacuum and a clock, many sessions.
PREDICTED = (
    ("examples/accounts.toml", "--fillfactor", "50..100:25"),
    ("examples/busy.toml", "--fillfactor", "60..100:20", "--series"),
    ("examples/heartbeat.toml",),
    ("examples/jobs.toml",),
    ("examples/orders.toml",),
    ("examples/pgbench.toml",),
    ("examples/queue.toml",),
    ("examples/steady-queue.toml",),
    ("examples/wide-rows.toml",),
    ("tools/pgo/indexed.toml",),
    ("tools/pgo/tpcb.toml",),
)
BENCHES = ("updates", "clients", "load")
BENCH_ROWS = "200000"


def main() -> int:
    """Build, play, merge."""
    counts = pgheadroom_build.counts_of(*pgheadroom_build.rustc())
    tool = _llvm_profdata()
    target = ROOT / "target" / "pgo"
    made = target / "made"  # the same in every call: it is among the flags of what is built
    shutil.rmtree(made, ignore_errors=True)
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(target),
        "CARGO_ENCODED_RUSTFLAGS": f"-Cprofile-generate={made}",
    }
    with tempfile.TemporaryDirectory(prefix="pgh-pgo-") as folder:
        module = _module(Path(folder), environment)
        benches = _benches(environment)
        for left in made.glob("*.profraw"):
            left.unlink()  # of build scripts and macros
        for profile, *options in PREDICTED:
            print(f"pgheadroom predict {profile} {' '.join(options)}", flush=True)
            _run(
                [sys.executable, "-m", "pgheadroom", "predict", profile, *options],
                os.environ | {"PYTHONPATH": str(module)},
            )
        for bench in benches:
            print(f"{bench.name} --test", flush=True)
            _run([str(bench), "--test"], os.environ | {"PGHEADROOM_BENCH_ROWS": BENCH_ROWS})
        raw = sorted(str(path) for path in made.glob("*.profraw"))
        new = Path(folder) / "merged.profdata"
        _run([str(tool), "merge", "-sparse", "--function=pgheadroom", "-o", str(new), *raw])
        _expect_one_core(new.read_bytes())
        packed = lzma.compress(new.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
        counts.write_bytes(base64.encodebytes(packed))
    print(f"{counts.relative_to(ROOT)}: {counts.stat().st_size:,} bytes of {len(raw)} programs")
    return 0


def _module(folder: Path, environment: dict[str, str]) -> Path:
    wheels = folder / "wheels"
    maturin = Path(sys.executable).with_name("maturin")
    _run([str(maturin), "build", "--release", "--locked", "--out", str(wheels)], environment)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "module")
    return folder / "module"


def _benches(environment: dict[str, str]) -> list[Path]:
    asked = [argument for bench in BENCHES for argument in ("--bench", bench)]
    # Of the whole workspace, as features of what it depends on are among the names of functions.
    command = ["cargo", "bench", "--locked", "--no-run"]
    said = subprocess.run(
        [*command, *asked, "--message-format=json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    messages = [json.loads(line) for line in said.stdout.splitlines()]
    return [
        Path(message["executable"])
        for message in messages
        if message.get("executable") and message["target"]["name"] in BENCHES
    ]


def _expect_one_core(counts: bytes) -> None:
    """The module's functions have the names of the benchmarks', or these teach it nothing."""
    found = set(re.findall(rb"pgheadroom_twin\.[0-9a-f]{16}", counts))
    if len(found) != 1:
        raise SystemExit(f"found the twin under {len(found)} names, expected one: {sorted(found)}")


def _llvm_profdata() -> Path:
    sysroot = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for found in Path(sysroot).glob("lib/rustlib/*/bin/llvm-profdata"):
        return found
    raise SystemExit(
        f"found no llvm-profdata of this rustc below {sysroot}; get it with"
        " `rustup component add llvm-tools`"
    )


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    sys.exit(main())
