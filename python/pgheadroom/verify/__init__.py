"""
Forecast against outcome: the same measures over a comparable window.

    windows.py    shares over the windows of an interval, with intervals that know of clustering
    comparing.py  whether the workload is still the same; a verdict a measure
    verifying.py  plan, record and a new observation -> verification
"""

from __future__ import annotations

from pgheadroom.verify.verifying import Verification, verify

__all__ = ["Verification", "verify"]
