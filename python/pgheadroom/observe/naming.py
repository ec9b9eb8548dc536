"""
Names in a profile: unique, printable, at most 63 bytes, as `profile` asks for them.
"""

from __future__ import annotations

import hashlib

_BYTES_MAX = 63


def profile_name(name: str, taken: set[str]) -> str:
    """
    The name as a profile may carry it; it is added to those that are taken.

    What a profile cannot hold becomes `_`; a name that was changed, cut or is taken already gets
    a few digits of its hash, so that it stays the same from one observation to the next.
    """
    clean = "".join("_" if c in ":\\" or not c.isprintable() else c for c in name).strip() or "_"
    found = clean
    if clean != name or len(clean.encode()) > _BYTES_MAX or clean in taken:
        digest = hashlib.sha256(name.encode()).hexdigest()
        cut = clean.encode()[: _BYTES_MAX - 9].decode(errors="ignore")
        found, digits = f"{cut}_{digest[:8]}", 8
        while found in taken:
            digits += 1
            found = f"{cut[: 40 - digits]}_{digest[:digits]}"
    taken.add(found)
    return found
