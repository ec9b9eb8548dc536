"""An advice as text, Markdown, CSV, JSON and as a page."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import synthetic_advice
from browser import opened
from rich.console import Console
from test_report_html import LOADING, Page, browse, with_browser

from pgheadroom.advise.advice import Advice
from pgheadroom.advise.cold_updates import Evidence
from pgheadroom.advise.foreseen import Calibration
from pgheadroom.advise.policy import PRICES, make_policy
from pgheadroom.advise.table_advice import Remark
from pgheadroom.cli.advise import put_advice
from pgheadroom.cli.options import Format
from pgheadroom.forms import write
from pgheadroom.report.advice import card_chart, cards
from pgheadroom.report.advice import csv as advice_csv
from pgheadroom.report.advice import detail as advice_detail
from pgheadroom.report.advice import drawing as advice_drawing
from pgheadroom.report.advice import html as advice_html
from pgheadroom.report.advice import sql as advice_sql
from pgheadroom.report.advice import tables as advice_tables
from pgheadroom.report.advice import text as advice_text
from pgheadroom.types import Interval
from pgheadroom.verify import Verification

SHAPES: dict[str, Advice] = {
    "plain": synthetic_advice.advice(),
    "many": synthetic_advice.many(),
    "hostile": synthetic_advice.hostile(),
    "partitioned": synthetic_advice.partitioned(),
    "none": synthetic_advice.advice(first=()),
    "masked": synthetic_advice.advice(
        observation=replace(synthetic_advice.advice().observation, masked=True, database=None)
    ),
}
SHAPES["none"] = replace(SHAPES["none"], tables=())


def _text(advice: Advice, *, width: int = 130, verbose: bool = False) -> str:
    stream = io.StringIO()
    advice_text.print_advice(
        advice, Console(file=stream, width=width, highlight=False), verbose=verbose
    )
    return stream.getvalue()


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {
        name: advice_html.render(advice, command="pgheadroom advise profile.json")
        for name, advice in SHAPES.items()
    }


def test_a_held_horizon_is_said_first() -> None:
    """No fillfactor helps while it is held, so nothing else may come before."""
    for shown in (_text(SHAPES["plain"]), advice_text.as_markdown(SHAPES["plain"])):
        assert shown.index("holds the horizon") < shown.index("3 tables seen")
        assert shown.index("holds the horizon") < shown.index("Tables by gain")


def test_one_line_a_table_holds_now_and_then() -> None:
    """What was measured and what is foreseen never share a cell: they are not the same state."""
    line = next(line for line in _text(SHAPES["plain"], width=190).splitlines() if "CHANGE" in line)
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[:5] == ["orders", "CHANGE", "100 -> 80", "33.4", "33.3 -> 100.0"]
    assert cells[5:9] == ["455", "460 -> 180", "31.0", "116 MiB +25 %"]
    assert cells[9:11] == ["50.2", "twin"]
    assert cells[11].startswith("a third of the")


def test_wal_that_images_hide_is_no_figure() -> None:
    """Where a checkpoint came, images are most of it: bounds are said, no number for them."""
    hidden = Interval(low=40.0, mid=1222.0, high=2404.0, level=0.9)
    advice = synthetic_advice.advice(replace(synthetic_advice.table(), wal_bytes_per_update=hidden))
    line = next(line for line in _text(advice, width=190).splitlines() if "CHANGE" in line)
    assert line.split("|")[5].strip() == "-"
    page = advice_html.render(advice)
    (first, *_) = csv.DictReader(advice_csv.as_csv(advice).splitlines())
    assert first["now_wal_bytes_per_update"] == ""
    for shown in (" ".join(advice_text.as_markdown(advice).split()), page):
        assert "measured to 40 to 2404 bytes only" in shown
        assert "1222" not in shown


def test_a_forecast_shows_its_interval() -> None:
    """A certain value stands alone, an uncertain one with brackets."""
    unsure = replace(
        synthetic_advice.table(),
        advised_fillfactor=85,
    )
    shown = _text(synthetic_advice.advice(unsure), width=190)
    assert "33.3 -> 83.3 [81.7, 85.0]" in shown


def test_a_change_says_all_that_a_ticket_needs() -> None:
    """Causes, calibration, the way there, statements, undo, the rewrite, remarks with gain."""
    for shown in (_text(SHAPES["plain"]), advice_text.as_markdown(SHAPES["plain"])):
        plain = " ".join(shown.split()).replace("\\", "")
        for said in (
            "repeats the measured HOT, 33.4 %: off by 0.6 points",
            "changed_frac of orders.state = 0.130",
            "Acts on new pages only: it arrives at 98.0 % HOT after 1 h 30 min",
            'ALTER TABLE "public"."orders" SET (fillfactor = 80);',
            'ALTER TABLE "public"."orders" RESET (fillfactor);',
            'VACUUM FULL "public"."orders";',
            "hot_frac 33.4 % -> 95.0 [93.1, 96.9] %",
            "orders_state_idx",
            "Access: pg_monitor, pg_read_all_data.",
            "Not seen: the sizes of pages that are free",
        ):
            assert said in plain


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ((0.466, 0.042), "the twin repeats the measured HOT, 46.6 %: off by 0.0 points, but not "),
        (
            (0.445, 0.042),
            "the twin does not repeat the measured HOT, 44.5 %: off by 2.1 points, nor ",
        ),
        (
            (0.4, 0.064),
            "the twin does not repeat the measured HOT, 40.0 %: off by 6.6 points. After",
        ),
    ],
)
def test_what_the_twin_does_not_repeat_is_named(measured: tuple[float, float], said: str) -> None:
    """A calibration that is off by the updates that moved is not said to be off by 0.0 points."""
    hot, moved = measured
    found = Calibration(
        observed_hot_frac=hot,
        predicted_hot_frac=0.466,
        observed_newpage_frac=moved,
        predicted_newpage_frac=0.065,
        agrees=False,
        fitted=(),
        note="After",
    )
    shown = advice_detail.calibration(replace(synthetic_advice.table(), calibration=found))
    assert shown.startswith(f"At fillfactor 100 {said}")
    if moved == 0.042:
        assert shown.endswith(
            "the 4.2 % of the updates that went to another page: off by 2.3 points. After"
        )


def test_what_needs_nothing_is_counted() -> None:
    """Of 441 tables 10 are shown in full, the others to change listed, the rest named shortly."""
    shown = _text(SHAPES["many"])
    assert len(re.findall(r"^change_\d+: fillfactor 100 -> 80$", shown, re.MULTILINE)) == 10
    assert "KEEP 400: keep_0, keep_1" in shown
    assert "and 392 more." in " ".join(shown.split())
    assert "ABSTAIN 1: open." in shown
    assert "keep_9" not in shown
    assert "30 more deserve it" in shown
    whole = _text(SHAPES["many"], verbose=True)
    assert "keep_399: KEEP, fillfactor 90" in whole


def test_still_tables_take_one_line() -> None:
    """Tables that nothing updated are named, not listed; who wants all of them gets them."""
    advice = SHAPES["plain"]
    model = replace(advice.tables[-1], verdict="KEEP", updates=0, remarks=())
    names = [f"still_{number}" for number in range(11)]
    still = [replace(model, table=name, name=name, oid=9000 + n) for n, name in enumerate(names)]
    grown = replace(advice, tables=(*advice.tables, *still))
    text = _text(grown)
    assert text.count("still_") == 8
    assert "11 tables were not updated, and stay as they are: still_0, " in text
    assert "still_7 and 3 more." in " ".join(text.split())
    listed = _text(grown, verbose=True)
    assert all(name in listed for name in names)
    few = replace(advice, tables=(*advice.tables, *still[:3]))
    assert "stay as they are" not in _text(few)
    assert all(name in _text(few) for name in names[:3])


@pytest.mark.parametrize("name", ["plain", "many", "partitioned"])
def test_a_narrow_terminal_leaves_columns_out(name: str) -> None:
    """No table of 80 columns is printed in more than two parts; what is left out is said."""
    lines = _text(SHAPES[name], width=80).splitlines()
    tables: list[list[str]] = []
    for line in lines:
        if re.fullmatch(r"-+(\+-+)+", line):
            tables[-1].append(line)
        elif re.fullmatch(r"\(\d+ rows?\)", line):
            continue
        elif not line.startswith((" ", "*", "~", "+", "-", "(")):
            tables.append([])
    assert max(map(len, tables)) == 2
    left = " ".join(lines)
    (gone,) = re.findall(r"Left out, for the terminal is narrow: (WAL measured[^.]*)\.", left)
    overview = "\n".join(lines).split("Tables by gain")[1].split(" row")[0]
    wide = _text(SHAPES[name], width=400)
    assert "Left out" not in wide
    for title in map(str.strip, gone.split(", ")):
        assert title in wide
        assert not re.search(rf"\| +{title} *(\||$)", overview, re.MULTILINE)


def test_the_small_curve_keeps_both_marked_points() -> None:
    """Whatever is left out, the setting in force and the advised one stay."""
    table = replace(synthetic_advice.table(), fillfactor=95, advised_fillfactor=85)
    found = advice_tables.curve(table)
    assert found is not None
    assert [row[:2] for row in found.rows if row[1]] == [(95, "now"), (85, "advised")]
    assert len(found.rows) < len(table.curve)


@pytest.mark.parametrize(
    ("evidence", "title"), [("measured", "by the log"), ("estimated", "estimated")]
)
def test_wal_is_by_the_log_where_that_was_read(evidence: Evidence, title: str) -> None:
    """That foreign keys lock rows of the table is about its WAL too; no log was read for it."""
    remark = Remark(kind="wal", text="Locked 7 times a second.", evidence=evidence, gain={})
    found = advice_tables.causes(replace(synthetic_advice.table(), remarks=(remark,)))
    assert found is not None
    assert [column.title for column in found.columns if column.key == "wal"] == [f"WAL, {title}"]


def test_csv_is_one_line_a_table() -> None:
    """Numbers are numbers, names no formulas, missing values empty."""
    rows = list(csv.DictReader(io.StringIO(advice_csv.as_csv(SHAPES["plain"]))))
    assert [row["verdict"] for row in rows] == ["CHANGE", "KEEP", "ABSTAIN"]
    assert float(rows[0]["gain_frac_low"]) == pytest.approx(0.31 * 0.98)
    assert float(rows[0]["then_wal_bytes_per_update"]) == 180
    assert rows[0]["blamed_indexes"] == "orders_state_idx"
    assert rows[2]["advised_fillfactor"] == ""
    hostile = list(csv.DictReader(io.StringIO(advice_csv.as_csv(SHAPES["hostile"]))))
    assert hostile[1]["table"] == "'=cmd|x"


@pytest.mark.parametrize("name", SHAPES)
def test_json_is_the_value_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed is read as the same advice."""
    put_advice(SHAPES[name], Format.JSON, None)
    assert Advice.from_json(json.loads(capsys.readouterr().out)) == SHAPES[name]


def test_files_hold_what_the_terminal_shows(tmp_path: Path) -> None:
    """Text, Markdown, CSV and the page go to files."""
    for form, said in (("text", "Tables by gain"), ("markdown", "| orders |"), ("csv", "rank,")):
        to, page = tmp_path / form, tmp_path / f"{form}.html"
        put_advice(SHAPES["plain"], Format(form), to, html=page)
        assert said in to.read_text(encoding="utf-8")
        assert "<h1>Advice for shop" in page.read_text(encoding="utf-8")


def test_hostile_names_stay_names() -> None:
    """No escape sequence reaches a terminal, no line break a table, no markup a ticket."""
    shown = _text(SHAPES["hostile"])
    assert "\x1b" not in shown
    assert "t\\x1b[31m" in shown
    markdown = advice_text.as_markdown(SHAPES["hostile"])
    outside = re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    assert "<script>" not in outside
    assert "\x1b" not in markdown


def test_a_code_fence_cannot_be_left() -> None:
    """A name with three backticks does not end the block that shows its statements."""
    found = advice_text.as_markdown(
        synthetic_advice.advice(synthetic_advice.table("a```b", remarks=()))
    )
    assert '````sql\nALTER TABLE "public"."a```b" RESET (fillfactor);\n````' in found


@pytest.mark.parametrize(
    ("version", "modules", "said"),
    [
        ("18.4", {}, "VACUUM FULL"),
        ("18.4", {"pg_squeeze": "1.8"}, "squeeze.squeeze_table"),
        (
            "18.4",
            {"pg_repack": "1.5", "pg_squeeze": "1.8"},
            "pg_repack --no-order --no-kill-backend --table=",
        ),
        ("19.0", {}, "REPACK (CONCURRENTLY, ANALYZE)"),
        ("19beta1", {}, "REPACK (CONCURRENTLY, ANALYZE)"),
    ],
)
def test_the_rewrite_is_the_gentlest_at_hand(
    version: str, modules: dict[str, str], said: str
) -> None:
    """VACUUM FULL comes last, and what waits without limit says so."""
    found = advice_sql.rewrite(synthetic_advice.table(), version, modules)
    assert found.text.startswith(("SELECT " if "squeeze." in said else "") + said)
    assert ("without limit" in found.how) == ("squeeze." in said)


def test_undo_leads_back() -> None:
    """To the default by RESET, to any other by its number; nothing to do for KEEP."""
    found = advice_sql.setting(replace(synthetic_advice.table(), fillfactor=95))
    assert found is not None
    assert found[1].endswith("SET (fillfactor = 95);")
    assert advice_sql.setting(synthetic_advice.table("a", "KEEP")) is None


def test_masked_statements_say_that_names_are_missing() -> None:
    """A pseudonym pasted into psql would fail without a reason."""
    assert "The profile is masked" in _text(SHAPES["masked"])


def test_prices_and_formula_are_the_policys() -> None:
    """Every price of the policy, with its number."""
    table = advice_tables.prices(SHAPES["plain"])
    known = write(make_policy())["prices"]
    assert [row[1] for row in table.rows] == [known[key] for key in PRICES]
    assert table.note is not None
    for row in table.rows:
        assert f"{row[0]} x" in table.note


@pytest.mark.parametrize("name", SHAPES)
def test_page_is_self_contained(pages: dict[str, str], name: str) -> None:
    """Our one script, nothing that loads, ids unique, links and labels lead somewhere."""
    page = Page(pages[name])
    assert [tag for tag, _ in page.tags].count("script") == pages[name].count("<script") == 1
    for tag, attrs in page.tags:
        for attribute in LOADING & set(attrs):
            assert (attrs[attribute] or "").startswith("#"), (tag, attrs)
        assert not [key for key in attrs if key.startswith("on")]
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") is not None) or ""
    assert policy.startswith("default-src 'none'; style-src")
    script = pages[name].split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.endswith(f"; script-src 'sha256-{digest}'")
    ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    for tag, attrs in page.tags:
        if tag == "a":
            assert (attrs["href"] or "").removeprefix("#") in ids
        if attrs.get("aria-labelledby"):
            assert attrs["aria-labelledby"] in ids


def test_page_shows_each_number_with_its_evidence(pages: dict[str, str]) -> None:
    """Measured, predicted, estimated and assumed stand beside what they are about."""
    orders = pages["plain"].split('<section class="detail card"')[1]
    found = re.findall(r"<dt>([^<]+)</dt><dd>([^<]+) <small class=\"evidence (\w+)\">", orders)
    facts = {term: (value, how) for term, value, how in found}
    assert facts["HOT, measured"] == ("33.4 %", "measured")
    assert facts["HOT, long run at 80"] == ("100.0 %", "predicted")
    assert facts["WAL bytes per update, measured"] == ("455.0 [445.9, 464.1]", "measured")
    assert facts["WAL bytes per update, long run at 100"] == ("460.0 [450.8, 469.2]", "predicted")
    assert not [term for term in facts if "HOT now" in term]
    assert re.search(r"unknown <b>0.9 %</b> <small class=\"evidence estimated\"", pages["plain"])
    assert re.search(r"one client at a time <small class=\"evidence assumed\"", pages["plain"])


def test_page_treats_thirty_of_hundreds(pages: dict[str, str]) -> None:
    """The list has every table, thirty have their pictures, and the page says so."""
    page = Page(pages["many"])
    assert len(re.findall('<tr class="(?:change|keep|abstain)"', pages["many"])) == 441
    assert sum(attrs.get("class") == "detail card" for _, attrs in page.tags) == 30
    assert pages["many"].count("<svg") == 30 * (1 + 4)
    assert "The first 30 tables to change are shown in full; 10 more" in page.words
    assert "And 380 more, in the list of all tables." in page.words


def test_names_are_escaped_on_the_page(pages: dict[str, str]) -> None:
    """A table called `<script>` is a text, and a template expression is not computed."""
    page = Page(pages["hostile"])
    assert "<script>alert(1)</script>" in page.words
    assert "{{ 7 * 7 }}" in page.words
    assert not {"\x1b", "\u202e"} & set(pages["hostile"])


def test_pictures_show_band_and_marks() -> None:
    """Four measures; each is XML, has its band where values are uncertain, and both points."""
    panels = advice_drawing.panels(synthetic_advice.table())
    assert [panel.title.split(",")[0].split()[0] for panel in panels] == [
        "HOT",
        "Heap",
        "WAL",
        "Cost",
    ]
    for panel in panels:
        tree = ElementTree.fromstring(panel.picture)
        kinds = [item.get("class") for item in tree.iter()]
        assert kinds.count("now") == kinds.count("advised") == 1
        assert ("band" in kinds) == (not panel.title.startswith("Heap"))
        assert "advised at 80" in (tree.get("aria-label") or "")
    assert advice_drawing.panels(synthetic_advice.table("a", "ABSTAIN")) == []


def test_pictures_place_points_by_value() -> None:
    """A higher share stands higher; equal values at one height."""
    hot, *_ = advice_drawing.panels(synthetic_advice.table())
    match = re.search(r'<polyline class="line" points="([^"]+)"', hot.picture)
    assert match is not None
    heights = [float(point.split(",")[1]) for point in match[1].split()]
    assert heights[0] == heights[6], "all HOT from 50 to 80"
    assert heights[6] < heights[7] < heights[10], "lower on the page is less"


def test_the_bar_is_whole(pages: dict[str, str]) -> None:
    """Its parts sum to the table's updates, and each is named with its share below."""
    first = pages["plain"].split('<div class="bar"')[1].split("</ul>")[0]
    widths = [float(width) for width in re.findall(r"flex-basis: ([\d.]+)%", first)]
    assert sum(widths) == pytest.approx(100, abs=0.01)
    assert first.count("<li>") == len(widths) == 4


@with_browser
@pytest.mark.parametrize("name", ["plain", "many", "hostile"])
def test_browser_shows_the_page(pages: dict[str, str], name: str, tmp_path: Path) -> None:
    """No console message, nothing asked for."""
    dom, console, asked = browse(tmp_path, pages[name], "--window-size=1600,900")
    assert "<h1>Advice for shop" in dom
    assert console == ""
    assert asked == []


@with_browser
def test_browser_copies_statements(pages: dict[str, str], tmp_path: Path) -> None:
    """A button for each, which copies it whole; a foreign script beside ours does not run."""
    evil = """</main><script>document.title = "run"</script>"""
    page = tmp_path / "page.html"
    page.write_text(pages["plain"].replace("</main>", evil), encoding="utf-8")
    with opened(tmp_path) as browser:
        browser.show(page.as_uri())
        assert browser.run("document.title") != "run"
        assert browser.run(
            "[...document.querySelectorAll('pre.copy')].every("
            "(text) => text.previousElementSibling.textContent === 'Copy')"
        )
        browser.run("document.oncopy = () => { window.taken = getSelection().toString() }")
        browser.call(
            "Runtime.evaluate",
            expression="document.querySelector('button.copies').click()",
            userGesture=True,
        )
        assert browser.run("document.querySelector('button.copies').textContent") == "Copied"
        taken = browser.run("window.taken")
        assert taken == browser.run("document.querySelector('pre.copy').textContent")


@with_browser
@pytest.mark.parametrize("width", [400, 1600])
def test_browser_fits_the_screen(pages: dict[str, str], tmp_path: Path, width: int) -> None:
    """The page does not scroll sideways, with names of any kind."""
    (tmp_path / "report.html").write_text(pages["hostile"], encoding="utf-8")
    frame = f"""<style>body{{margin:0}}</style><iframe src="report.html" width="{width}"
        height="900" style="border:0"></iframe><script>
        frames[0].onload = () => {{ const page = frames[0].document; document.body.append([
          page.documentElement.scrollWidth,
          ...[...page.querySelectorAll("svg, pre, .bar")].map((item) =>
            Math.ceil(item.getBoundingClientRect().right)),
        ].join(" ")); }};</script>"""
    dom, _, _ = browse(tmp_path, frame, "--allow-file-access-from-files", "--window-size=1700,900")
    match = re.search(r"</script>([\d ]+)", dom)
    assert match is not None
    ends = [int(end) for end in match[1].split()]
    assert len(ends) > 10
    assert max(ends) <= width


def test_page_shows_forecast_beside_outcome() -> None:
    """What a verification found stands on the page of the advice, its names escaped too."""
    share = {"low": 0.97, "mid": 0.99, "high": 1.0, "level": 0.95}
    outcome = {
        "name": "hot_frac", "unit": "frac", "before": 0.6, "planned": 0.999, "forecast": share,
        "now": 0.985, "verdict": "held", "note": "inside the forecast",
    }  # fmt: skip
    table = {
        "schema": "public", "name": synthetic_advice.HOSTILE, "planned": "CHANGE",
        "oid": 1, "fillfactor": 80, "fillfactor_now": 80, "rewritten": False, "windows": 12,
        "updates": 4000, "verdict": "held",
        "reason": "hot_frac: inside the forecast", "progress": None, "outcomes": [outcome],
        "workload": [],
    }  # fmt: skip
    found = {
        "tool_version": "0.1.0", "server_version": "18.4", "database": "shop", "planned_at": "",
        "observed_at": "", "interval_s": 60.0, "tables": [table], "notes": [],
    }  # fmt: skip
    html = advice_html.render(SHAPES["hostile"], outcome=Verification.from_json(found))
    words = " ".join(Page(html).words.split())
    assert "Forecasts of 1 table: 1 held." in words
    assert "98.5" in words
    assert words.index("Forecast and outcome") < words.index("Why updates were HOT")
    (row,) = re.findall(r'<tr class="outcome">.*?</tr>', html, re.DOTALL)
    assert re.findall(r"<td[^>]*>([^<]*)", row) == ["80", "98.5", "-", "-"]
    assert html.count("<script") == 1


def test_partitions_are_named_by_what_is_advised(pages: dict[str, str]) -> None:
    """A partitioned table printed its verdicts as Python spells them, braces and quotes."""
    text = _text(SHAPES["partitioned"], width=200)
    for shown in (text, pages["partitioned"]):
        assert "{'CHANGE'" not in shown
        assert "sales.events" in shown
        assert "part_0, part_1, part_2" in shown
    found = advice_tables.partitioned(SHAPES["partitioned"])
    assert found is not None
    assert found.rows == (
        ("sales.events", "part_0, part_1, part_2", "part_old", "part_odd", "85", 12.5),
    )
    assert all(isinstance(cell, str | float) for cell in found.rows[0])


def test_page_answers_at_a_glance(pages: dict[str, str]) -> None:
    """What to change comes first, then what stays and why, then everything else, folded."""
    page = pages["plain"]
    order = [
        page.index(said)
        for said in (
            '<h2 id="change">To change',
            "fillfactor 100 &rarr; 80",
            '<th scope="row">measured',
            '<th scope="row">if unchanged',
            '<th scope="row">foreseen',
            "HOT updates over fillfactor",
            "SET (fillfactor = 80);",
            "RESET (fillfactor);",
            "Stay as they are",
            "Ends HOT: customers_state_idx.",
            '<summary id="tables">All tables',
        )
    ]
    assert order == sorted(order)
    words = Page(re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL)).words
    assert "Over fillfactor, in the long run" not in words
    assert "Cost a day" not in words


def test_a_card_compares_states_that_are_not_the_same() -> None:
    """Each value of the table is a mark of the picture, said with the same digits."""
    table = synthetic_advice.table()
    states = cards.states(table)
    assert [(state.name, state.fillfactor) for state in states] == [
        ("measured", 100),
        ("if unchanged", 100),
        ("foreseen", 80),
    ]
    found = card_chart.picture(table, states, None)
    assert found is not None
    title, picture = found
    assert title == "HOT updates"
    tree = ElementTree.fromstring(picture)
    labels = [item.text or "" for item in tree.iter() if item.get("class") == "mark"]
    assert labels == ["measured 33.4 %", "if unchanged 33.3 %", "foreseen 100.0 %"]
    heights = [
        (float(item.get("y") or 0), item.get("text-anchor"))
        for item in tree.iter()
        if item.get("class") == "mark"
    ]
    for place, (height, anchor) in enumerate(heights):
        for other, beside in heights[:place]:
            assert anchor != beside or abs(height - other) >= 14
