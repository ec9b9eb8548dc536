"""
The pgbench scripts of `insert-rate`: so many rows a statement, by each method.
"""

from __future__ import annotations

from pathlib import Path

from pgheadroom.lab.base.plain_rows import value_text
from pgheadroom.lab.design import Request, TrialCell

TABLE = "t"

METHODS = {
    "values": "INSERT with a list of VALUES",
    "unnest": "INSERT ... SELECT from one array",
    "copy": "COPY from a file on the server",
}

PARAMETERS_MAX = 255
"""MAX_ARGS of pgbench.c is 256, the statement itself being one."""


def write_script(folder: Path, data_dir: Path, request: Request, cell: TrialCell) -> list[str]:
    """
    Write a cell's script, and the file that COPY reads.

    Args:
        folder: For the script.
        data_dir: The cluster's, which its server can read whoever it runs as.
        request: Its protocol decides whether values are text or parameters.
        cell: Method, rows and length of the value.

    Returns:
        pgbench's arguments.
    """
    rows, value = int(cell["rows"]), value_text(int(cell["value_bytes"]))
    is_text = request.options["protocol"] == "simple"
    variables: list[str] = []
    if cell["method"] == "copy":
        data = data_dir / "pgheadroom-rows.txt"
        data.write_text(f"{value}\n" * rows, encoding="ascii")
        data.chmod(0o644)
        statement = f"COPY {TABLE} (v) FROM '{data}'"
    elif cell["method"] == "unnest":
        array = "{" + ",".join([value] * rows) + "}"
        shown = f"'{array}'" if is_text else ":vs"
        variables = [] if is_text else ["-D", f"vs={array}"]
        statement = f"INSERT INTO {TABLE} (v) SELECT unnest({shown}::text[])"
    else:
        shown = f"'{value}'" if is_text else ":v"
        variables = [] if is_text else ["-D", f"v={value}"]
        statement = f"INSERT INTO {TABLE} (v) VALUES " + ", ".join([f"({shown})"] * rows)
    path = folder / "insert.sql"
    path.write_text(statement + ";\n", encoding="ascii")
    path.chmod(0o644)
    return [*variables, "-f", str(path)]
