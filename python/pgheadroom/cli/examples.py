"""
Two calls of each command, as its help shows them; a test reads each by the command itself.
"""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "demo": (
        ("The whole loop, in about two minutes", "pgheadroom demo"),
        (
            "The same on PostgreSQL 16, its files kept in a folder",
            "pgheadroom demo --server 16 --folder shop",
        ),
    ),
    "observe": (
        ("Five minutes of a database", "pgheadroom observe dbname=shop --for 5m -o shop.json"),
        (
            "What would let the role see more",
            "pgheadroom observe dbname=shop --print-grants",
        ),
    ),
    "advise": (
        (
            "Watch a database, advise, and write the plan",
            "pgheadroom advise dbname=shop --for 5m --plan plan.json --html advice.html",
        ),
        (
            "From a profile that is there, for less WAL",
            "pgheadroom advise shop.json --goal wal",
        ),
    ),
    "doctor": (
        ("What is wrong, by the rates of a minute", "pgheadroom doctor dbname=shop --for 60s"),
        (
            "What can be done about it, as steps for apply",
            "pgheadroom doctor dbname=shop --for 5m --plan plan.json",
        ),
    ),
    "watch": (
        ("What happens now", "pgheadroom watch dbname=shop"),
        (
            "For a script: one reading of ten seconds, as JSON",
            "pgheadroom watch dbname=shop --every 10s --count 1 --format json",
        ),
    ),
    "order": (
        ("All large tables, by the rates of ten minutes", "pgheadroom order dbname=shop --for 10m"),
        (
            "One table, and the plan that clusters it",
            "pgheadroom order dbname=shop --table orders --plan plan.json --tool cluster",
        ),
    ),
    "settings": (
        (
            "What of a server's settings would be changed, by the rates of ten minutes",
            "pgheadroom settings dbname=shop --for 10m --memory 64GB --cores 16 --disk ssd",
        ),
        (
            "For a server that is not there yet",
            "pgheadroom settings --server 18 --memory 64GB --cores 16 --disk ssd "
            "--connections 200 --workload oltp",
        ),
    ),
    "check": (
        (
            "A migration, before it is merged",
            "pgheadroom check migrations/0042.sql --profile shop.json",
        ),
        (
            "Fail where anything is not understood, too",
            "pgheadroom check migrations/0042.sql --profile shop.json --strict",
        ),
    ),
    "apply": (
        ("Show what a plan would do", "pgheadroom apply plan.json dbname=shop --dry-run"),
        ("Take it back", "pgheadroom apply plan.json dbname=shop --undo"),
    ),
    "verify": (
        (
            "Hold the forecasts against what came of them",
            "pgheadroom verify plan.json dbname=shop --for 5m",
        ),
        (
            "For a ticket",
            "pgheadroom verify plan.json dbname=shop --format markdown -o outcome.md",
        ),
    ),
    "predict": (
        (
            "A profile over fillfactors",
            "pgheadroom predict examples/accounts.toml --fillfactor 50..100:5",
        ),
        (
            "Without one of its indexes",
            "pgheadroom predict examples/heartbeat.toml --without-index devices_last_seen",
        ),
    ),
    "layout": (
        ("Rows of a profile's tables", "pgheadroom layout examples/queue.toml"),
        ("A live table", "pgheadroom layout dbname=shop --table public.orders"),
    ),
    "prove": (
        (
            "The twin beside a throw-away PostgreSQL 18",
            "pgheadroom prove examples/accounts.toml",
        ),
        (
            "On 16, for a script: exit code 1 when a figure is off",
            "pgheadroom prove examples/accounts.toml --server 16 --fail-over",
        ),
    ),
    "mcp": (
        ("Two profiles", "pgheadroom mcp --profile shop.json --profile billing.json"),
        (
            "A database, whose password is in ~/.pgpass",
            "pgheadroom mcp --connection shop=postgresql://reader@db/shop",
        ),
    ),
    "extension install": (
        (
            "What would be put where, for an installed server",
            "pgheadroom extension install /usr/lib/postgresql/18/bin --dry-run",
        ),
        ("The same, and put it there", "pgheadroom extension install /usr/lib/postgresql/18/bin"),
    ),
    "wal stats": (
        ("Who writes an archive's WAL, and why", "pgheadroom wal stats /archive --html wal.html"),
        ("A running server, for five minutes", "pgheadroom wal stats dbname=shop --for 5m"),
    ),
    "wal what-if": (
        ("Other checkpoint distances, and compressions", "pgheadroom wal what-if /archive"),
        (
            "Some of them, for a server with these settings",
            "pgheadroom wal what-if /archive --timeouts 5min,15min,30min --sizes 1GB,8GB "
            "--timeout-in-force 5min --size-in-force 1GB",
        ),
    ),
    "wal names": (
        (
            "What the files of a cluster's tables are called",
            "pgheadroom wal names dbname=shop -o names.json",
        ),
        (
            "Of another database of it, into the same file",
            "pgheadroom wal names dbname=billing -o names.json",
        ),
    ),
    "lab list": (
        ("All experiments", "pgheadroom lab list"),
        ("What one of them takes", "pgheadroom lab list fillfactor"),
    ),
    "lab run": (
        ("A small run", "pgheadroom lab run fillfactor --scale 1"),
        (
            "Three fillfactors on another server",
            "pgheadroom lab run fillfactor --set fillfactor=100,90,80 --server 16",
        ),
    ),
    "lab report": (
        ("A record's answers", "pgheadroom lab report records/fillfactor"),
        (
            "A site of several records",
            "pgheadroom lab report records/before records/after --site public",
        ),
    ),
    "lab compare": (
        ("Two records", "pgheadroom lab compare records/before records/after"),
        (
            "As a page",
            "pgheadroom lab compare records/before records/after --html compared.html",
        ),
    ),
    "lab merge": (
        (
            "Two machines' records of the same request",
            "pgheadroom lab merge records/one records/other -o records/both",
        ),
        (
            "Three of them",
            "pgheadroom lab merge records/one records/other records/third -o records/all",
        ),
    ),
}
"""By what is typed behind `pgheadroom`: what a call is for, and the call."""
