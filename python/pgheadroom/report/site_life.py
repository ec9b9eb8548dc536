"""
A site's page on what happens to one page of a table, and the profile that it is played from.

The twin plays a small table that is full when the run begins: updates find no room and leave the
page, readers prune it, and further updates stay (HOT). Played anew for each site, so that the
page shows what this version of the twin does.
"""

from __future__ import annotations

import tomllib

from pgheadroom.predict.page import predict_page
from pgheadroom.profile import parse_profile
from pgheadroom.report.page_life import html

PAGE = "page-life.html"
PROFILE = "data/page-life/profile.toml"
_BLOCK = 1

_TOML = """\
# A table that is loaded full, and updated in a column that no index has.
schema_version = 1

[server]
version = "18"

[[table]]
name = "accounts"
rows = 3050
fillfactor = 100
columns = [
  { name = "id", type = "int4" },
  { name = "balance", type = "int4" },
  { name = "filler", type = "bpchar(84)" },
]
indexes = [{ name = "accounts_pkey", columns = ["id"], unique = true }]

[[operation]]
table = "accounts"
kind = "update"
sets = ["balance"]

[run]
operations = 1000
seed = 7
"""


def life_files() -> dict[str, bytes]:
    """The page and the profile, by their paths in the site."""
    watched = predict_page(parse_profile(tomllib.loads(_TOML)), _BLOCK)
    page = html.render(
        watched.life,
        command=f"pgheadroom predict profile.toml --page {_BLOCK} --html {PAGE}",
        server=str(watched.server),
        place=html.SiteLinks(home="index.html", profile=PROFILE),
    )
    return {PAGE: page.encode(), PROFILE: _TOML.encode()}
