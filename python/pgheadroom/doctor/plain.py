"""
Rules that their query alone decides, as data: the TOML files beside the rules.

Each row that the query gives is a finding; `{name}` in its texts is a column of the row. A column
`bytes` or `seconds` is its price. A rule with `to` is of a setting, whose row of pg_settings says
where it is set; its statements follow from that.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import SEVERITIES, Finding, Price, Remedy, Severity, no_price
from pgheadroom.doctor.where_set import change_of

_OF_RULE = ("id", "question", "threshold", "price", "blind", "link")


def plain_rules() -> list[Rule]:
    """Those of all files."""
    folder = resources.files("pgheadroom.doctor").joinpath("rules")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return [
        _rule(entry)
        for file in files
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["rule"]
    ]


def _rule(entry: Mapping[str, Any]) -> Rule:
    severity = entry["severity"]
    assert severity in SEVERITIES, f"{entry['id']}: {severity!r} is no severity"
    sql = entry["sql"]
    remedy = Remedy(
        text=entry["remedy"],
        sql=tuple(entry.get("remedy_sql", ())),
        lock=entry.get("lock"),
        cost=entry.get("cost"),
        undo=entry.get("undo"),
    )
    made = Rule(
        **{name: entry[name] for name in _OF_RULE},
        book=tuple(entry.get("book", ())),
        sql={int(since): text for since, text in sql.items()}
        if isinstance(sql, dict)
        else {15: sql},
        decide=lambda _facts, _rows: (),
        severity=f"{severity}: {entry['effect']}",
        remedy=entry["remedy"],
        needs_monitor=entry.get("needs_monitor", False),
        on_standby=entry.get("on_standby", True),
    )

    def decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
        for row in rows:
            yield _finding(made, severity, entry, remedy, row)

    return replace(made, decide=decide)


def _finding(
    rule: Rule, severity: Severity, entry: Mapping[str, Any], remedy: Remedy, row: QueryRow
) -> Finding:
    numbers = {name: value for name, value in row.items() if name != "object"}
    price = no_price(rule.price)
    for unit in ("bytes", "seconds"):
        if row.get(unit) is not None:
            amount = float(row[unit])
            price = Price(amount=amount, unit=unit, basis="measured", text=rule.price)
    if "to" in entry:
        made = change_of(row, entry["to"], remedy.text, remedy.cost)
    else:
        made = replace(
            remedy,
            text=remedy.text.format(**row),
            sql=tuple(statement.format(**row) for statement in remedy.sql),
            undo=None if remedy.undo is None else remedy.undo.format(**row),
        )
    return rule.finding(
        severity,
        str(row["object"]),
        entry["text"].format(**row),
        price=price,
        remedy=made,
        **numbers,
    )
