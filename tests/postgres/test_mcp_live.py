"""`pgheadroom mcp` asked by the package's own client, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from doctor_sides import run
from jsonschema import Draft202012Validator
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from pgheadroom.servers import Cluster, Host, find_programs

pytestmark = pytest.mark.usefixtures("run_parent")

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "tests" / "unit" / "observed" / "job-queue.json"
SCHEMAS = ROOT / "docs" / "schema"
SECRET = "rather-secret-9"
Ask = Callable[..., Awaitable[Any]]


@pytest.fixture(
    params=[
        "18",
        pytest.param("16", marks=pytest.mark.long(reason="the same on the other wheel's version")),
    ]
)
def server(run_parent: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    assert run_parent.is_dir()
    with Host(find_programs(request.param)) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "fsync": "off"})
        run(
            cluster,
            "postgres",
            "CREATE TABLE orders (id int8 PRIMARY KEY, state int, filler text);\n"
            "CREATE INDEX orders_state ON orders (state);\n"
            "CREATE INDEX orders_again ON orders (state);\n"
            "INSERT INTO orders SELECT i, 0, repeat('x', 100) FROM generate_series(1, 2000) i;\n"
            f"CREATE ROLE reader_of_shop LOGIN PASSWORD '{SECRET}';\n"
            "GRANT pg_monitor, pg_read_all_data TO reader_of_shop",
        )
        yield cluster


def uri(cluster: Cluster, dbname: str = "postgres") -> str:
    env = cluster.client_env()
    host = env["PGHOST"].replace("/", "%2F")
    return f"postgresql://reader_of_shop:{SECRET}@{host}:{env['PGPORT']}/{dbname}"


class Told:
    """All that came back from the server: answers, errors, lists."""

    def __init__(self) -> None:
        self.text = ""


@asynccontextmanager
async def session(told: Told, errors: Path, *options: str) -> AsyncIterator[ClientSession]:
    with errors.open("w") as log:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "pgheadroom", "mcp", *options], env=dict(os.environ)
        )
        async with (
            stdio_client(parameters, errlog=log) as (read, write),
            ClientSession(read, write) as client,
        ):
            told.text += (await client.initialize()).model_dump_json()
            yield client


def asked(
    work: Callable[[ClientSession, Ask], Awaitable[None]], tmp_path: Path, *options: str
) -> tuple[str, str]:
    """Do some work with a server of its own; what it told, and its standard error."""
    told, errors = Told(), tmp_path / "errors.log"

    async def all_of_it() -> None:
        async with session(told, errors, *options) as client:

            async def ask(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                told.text += result.model_dump_json()
                text = result.content[0].text  # type: ignore[union-attr]
                return text if result.is_error else json.loads(text)

            await work(client, ask)

    asyncio.run(all_of_it())
    return told.text, errors.read_text(encoding="utf-8")


def valid(data: Any, name: str) -> None:
    """What an agent gets is the command's own form, but for how much was left out."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    data = {key: value for key, value in data.items() if key != "left_out"}
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []


def test_every_tool_answers(server: Cluster, tmp_path: Path) -> None:
    """As the commands do, over what was granted; the database is only read."""

    async def work(client: ClientSession, ask: Ask) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"sources", "layout", "predict", "check", "doctor", "advise"}
        for tool in tools.values():
            assert tool.description
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
        assert await ask("sources") == {"profiles": ["job-queue"], "connections": ["shop"]}

        layout = await ask("layout", source="shop", table="orders")
        valid(layout, "layout")
        assert [column["name"] for column in layout["tables"][0]["columns"]] == [
            "id",
            "state",
            "filler",
        ]
        valid(await ask("layout", source="job-queue"), "layout")

        found = await ask("doctor", connection="shop", limit=1)
        valid(found, "doctor")
        assert [each["rule"] for each in found["findings"]] == ["fsync-off"]
        assert found["left_out"] >= 1

        predicted = await ask("predict", profile="job-queue", fillfactor=[100, 80])
        valid(predicted, "prediction")

        sql = "CREATE INDEX CONCURRENTLY i ON jobs (state);"
        checked = await ask("check", profile="job-queue", sql=sql)
        valid(checked, "migration-check")

        advised = await ask("advise", source="job-queue", budget_s=2)
        valid(advised, "advice")
        live = await ask("advise", source="shop", observe_s=1, budget_s=1, table="orders")
        valid(live, "advice")
        assert [table["name"] for table in live["tables"]] == ["orders"]

    told, _ = asked(
        work, tmp_path, "--connection", f"shop={uri(server)}", "--profile", str(PROFILE)
    )
    for secret in (SECRET, "reader_of_shop:", "postgresql://", server.client_env()["PGHOST"]):
        assert secret not in told
    assert str(PROFILE.parent) not in told


def test_mistakes_are_tool_errors_in_words(server: Cluster, tmp_path: Path) -> None:
    """Whatever an agent sends: words that say what was expected, and nothing of a connection."""

    async def work(_: ClientSession, ask: Ask) -> None:
        for tool, arguments, said in (
            ("layout", {"source": "other"}, "expected one of gone, job-queue, shop"),
            ("layout", {"source": str(PROFILE)}, "no profile or connection of the name"),
            ("doctor", {"connection": uri(server)}, "no connection of the name"),
            ("doctor", {"connection": "shop", "seconds": 1e6}, "less than or equal to 60"),
            ("doctor", {"connection": "job-queue"}, "expected one of those granted: gone, shop"),
            ("doctor", {"connection": "gone"}, "no connection to the server"),
            ("layout", {"source": "shop", "table": "nowhere"}, "nowhere"),
            ("predict", {"profile": "job-queue", "fillfactor": [5]}, "greater than or equal to 10"),
            ("predict", {"profile": "job-queue", "fillfactor": [90] * 12}, "at most 11"),
            ("predict", {"profile": "job-queue", "table": "nowhere"}, "nowhere"),
            ("predict", {"profile": "../../etc/passwd"}, "no profile of the name"),
            ("check", {"profile": "job-queue"}, "sql"),
            ("check", {"profile": "job-queue", "sql": "x" * 1_000_001}, "at most 1000000"),
            ("advise", {"source": "job-queue", "goal": "speed"}, "balanced"),
            ("advise", {"source": "job-queue", "budget_s": 1e9}, "less than or equal to 120"),
            ("advise", {"source": "shop", "observe_s": 1e9}, "less than or equal to 300"),
        ):
            answer = await ask(tool, **arguments)
            assert isinstance(answer, str), (tool, arguments, answer)
            assert said in answer, (tool, answer)
        assert (await ask("sources"))["connections"] == ["gone", "shop"]

    told, errors = asked(
        work,
        tmp_path,
        "--connection",
        f"shop={uri(server)}",
        "--connection",
        f"gone={uri(server, 'no_such_database')}",
        "--profile",
        str(PROFILE),
    )
    sent = uri(server)  # it was an argument, and is not told back whole
    assert sent not in told
    assert SECRET not in told
    assert SECRET not in errors
    assert "no_such_database" not in told
    assert "no_such_database" in errors


def test_a_question_ends_with_its_budget(tmp_path: Path) -> None:
    """A simulation that would take longer is ended, and says what to ask instead."""

    async def work(_: ClientSession, ask: Ask) -> None:
        answer = await ask("predict", profile="accounts", budget_s=0.001)
        assert isinstance(answer, str)
        assert "budget_s 0.001: used up" in answer
        assert isinstance(await ask("layout", source="accounts"), dict)

    asked(work, tmp_path, "--profile", str(ROOT / "examples" / "accounts.toml"))
