"""
The doctor: what an expert looks for on a server, rule by rule, each finding with its price.

    rule.py        what a rule is and what it is told
    rules/         one file a rule; *.toml: those that a query alone decides
    examining.py   asks a database
    choosing.py    which findings count: a baseline, acceptances
    values.py      findings, and what could not be seen
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgheadroom.on_demand import on_demand

if TYPE_CHECKING:
    from pgheadroom.doctor.choosing import accepting, beside_baseline, read_diagnosis
    from pgheadroom.doctor.examining import APPLICATION_NAME, Examination, examine
    from pgheadroom.doctor.live import examine_live
    from pgheadroom.doctor.rule import Rule
    from pgheadroom.doctor.rules import all_rules, rule_named
    from pgheadroom.doctor.values import SEVERITIES, Diagnosis, Finding

__all__ = [
    "APPLICATION_NAME",
    "SEVERITIES",
    "Diagnosis",
    "Examination",
    "Finding",
    "Rule",
    "accepting",
    "all_rules",
    "beside_baseline",
    "examine",
    "examine_live",
    "read_diagnosis",
    "rule_named",
]

_HOMES = {
    "APPLICATION_NAME": "doctor.examining",
    "SEVERITIES": "doctor.values",
    "Diagnosis": "doctor.values",
    "Examination": "doctor.examining",
    "Finding": "doctor.values",
    "Rule": "doctor.rule",
    "accepting": "doctor.choosing",
    "all_rules": "doctor.rules",
    "beside_baseline": "doctor.choosing",
    "examine": "doctor.examining",
    "examine_live": "doctor.live",
    "read_diagnosis": "doctor.choosing",
    "rule_named": "doctor.rules",
}

__getattr__ = on_demand(__name__, _HOMES, below="pgheadroom")
