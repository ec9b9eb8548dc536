"""
A self-contained HTML page out of a template: its style inline, its policy without network.

It opens from disk and loads nothing; every foreign text passes through Jinja's escaping.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).parent / "templates"


def page(template: str, *styles: str, scripts: tuple[str, ...] = (), **values: Any) -> str:
    """
    Make the page.

    Args:
        template: Its file.
        styles: Files of style beside that of every page.
        scripts: Sources of scripts that may run, for the Content-Security-Policy.
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
    css = "".join(map(asset, ("page.css", *styles)))
    return environment.get_template(template).render(
        css=Markup(css),  # noqa: S704 - files of ours
        policy=_policy(scripts),
        **values,
    )


def asset(name: str) -> str:
    """A file of the templates' folder."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _policy(scripts: tuple[str, ...]) -> str:
    """Content-Security-Policy: no network at all, and no script but the sources given."""
    allowed = f"script-src {' '.join(scripts)}; " if scripts else ""
    rest = "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; {allowed}{rest}"
