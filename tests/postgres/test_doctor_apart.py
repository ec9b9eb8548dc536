"""Rules of the doctor whose facts want a server of their own: its start, its disk."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from doctor_sides import examined, run
from test_doctor_rules import servers

from pgheadroom.doctor import Finding
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.servers import cluster as cluster_module
from pgheadroom.servers.environment import server_environment

pytestmark = pytest.mark.usefixtures("run_parent")

_STARTS = {
    "wal-minimal": ("wal_level", {"wal_level": "minimal", "max_wal_senders": "0"}, 15, 99),
    "old-snapshot-threshold": (
        "old_snapshot_threshold",
        {"wal_level": "replica", "old_snapshot_threshold": "60min"},
        15,
        16,
    ),
}
"""The rule's object, settings by which it fires, and the majors that know them."""


@pytest.mark.parametrize("programs_of", servers())
def test_what_a_server_is_started_with(programs_of: ServerPrograms) -> None:
    """Each setting alone; without it the same server is silent."""
    with Host(programs_of) as host:
        cluster = host.cluster("main")
        for rule, (about, settings, since, until_major) in _STARTS.items():
            if not since <= programs_of.version.major <= until_major:
                continue
            for own, wanted in (({"wal_level": "replica"}, []), (settings, [about])):
                cluster.start(own)
                found = examined(cluster, "postgres", rule).findings
                assert [each.object for each in found] == wanted
                for each in found:
                    assert "It needs a restart" in each.remedy.text or each.remedy.sql == ()
                cluster.stop()


SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int fdatasync(int fd) {
    int (*next)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    struct timespec wait = {0, 12000000};
    nanosleep(&wait, 0);
    return next(fd);
}
"""
"""A disk whose syncs take 12 ms and more."""


@pytest.mark.parametrize("programs_of", servers())
def test_a_slow_disk(
    programs_of: ServerPrograms, run_parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred commits, each synced by a disk that takes its time, and by one that does not."""
    cc = shutil.which("cc")
    assert cc is not None, "the core is linked by it"
    source, library = run_parent / "slow.c", run_parent / "slow.so"
    source.write_text(SLOW)
    subprocess.run([cc, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    source.unlink()
    settings = {"fsync": "on", "track_wal_io_timing": "on", "autovacuum": "off"}
    for is_slow in (False, True):
        with Host(programs_of) as host, monkeypatch.context() as patch:
            if is_slow:
                slow = server_environment() | {"LD_PRELOAD": str(library)}
                patch.setattr(cluster_module, "server_environment", slow.copy)
            cluster = host.cluster("main")
            cluster.start(settings)
            made = "CREATE TABLE t (v int);\n" + "INSERT INTO t VALUES (1);\n" * 101
            run(cluster, "postgres", made)
            found = examined(cluster, "postgres", "log-sync-slow").findings
            assert [each.object for each in found] == (["the log"] if is_slow else [])
            for each in found:
                _slow_right(each)
            cluster.stop()
    library.unlink()


def _slow_right(finding: Finding) -> None:
    syncs, mean_ms, commits_s = (
        float(str(finding.numbers[name])) for name in ("syncs", "mean_ms", "commits_s")
    )
    assert syncs >= 101
    assert mean_ms >= 12
    assert commits_s <= 83
    assert finding.price.unit == "seconds"
    assert finding.price.amount == pytest.approx(syncs * mean_ms / 1000, rel=0.02)
