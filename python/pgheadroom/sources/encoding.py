"""
Encodings of databases under Python's names.
"""

from __future__ import annotations

import codecs

_NAMES = {"UTF8": "utf-8", "SQL_ASCII": "utf-8", "EUC_JIS_2004": "euc_jis_2004"}


def codec_of(encoding: str) -> str:
    """
    Python's name of a server's encoding.

    SQL_ASCII says nothing about its bytes: they are taken for UTF-8, which today they mostly are,
    and so are those of an encoding that Python does not have.
    """
    latin = encoding.replace("LATIN", "latin-").replace("WIN", "cp")
    for tried in (_NAMES.get(encoding), latin, encoding):
        try:
            if tried is not None:
                return codecs.lookup(tried).name
        except LookupError:
            continue
    return "utf-8"
