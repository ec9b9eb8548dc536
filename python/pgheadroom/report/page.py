"""
A self-contained HTML page out of a template: its style inline, its policy without network.

It opens from disk, loads nothing and runs no script but one of ours, where a page has it, which the
policy names by its hash; every foreign text passes through Jinja's escaping.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).parent / "templates"

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy: no network at all, and no script."""


def page(template: str, *styles: str, script: str | None = None, **values: Any) -> str:
    """
    Make the page.

    Args:
        template: Its file.
        styles: Files of style beside that of every page.
        script: The file of its only script, which the template takes as `script`.
        values: What the template takes.
    """
    import jinja2  # noqa: PLC0415 - only pages need it
    from markupsafe import Markup  # noqa: PLC0415

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    css = "".join((_TEMPLATES / name).read_text("utf-8") for name in ("page.css", *styles))
    policy = _POLICY
    if script is not None:
        text = (_TEMPLATES / script).read_text("utf-8")
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
        values["script"] = Markup(text)  # noqa: S704 - a file of ours
    return environment.get_template(template).render(
        css=Markup(css),  # noqa: S704 - files of ours
        policy=policy,
        **values,
    )
