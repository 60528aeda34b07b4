"""The report is one page without scripts, safe for any names of peers, and lists its missing inputs."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.tests.stored import NOON, a_day, metered, store
from tests.tools.live import status_of
from trouter.cli import main
from trouter.records.sketch import bucket_of, merged
from trouter_pipeline.report import Period, Report, build
from trouter_pipeline.report.figures import duration, percentile, short
from trouter_pipeline.report.page import POLICY
from trouter_pipeline.report.sections import SECTIONS
from trouter_pipeline.report.stored import COLUMNS, read
from trouter_pipeline.tables import Table

NOW = datetime(2026, 3, 2, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script><img src=x onerror=y>&amp; $\\frac{1}{0}$ $ \x1b[31m\u202e\n]]> " + "long" * 99


class Page(HTMLParser):
    """The page as a browser parses it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def of(self, name: str) -> list[str]:
        return [value for _, key, value in self.attributes if key == name]


def report(root: Path, period: Period = Period()) -> Report:  # noqa: B008
    return build(root, period, {"acme": 8}, NOW)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("full")
    a_day(root)
    return report(root)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("hostile")
    a_day(root, HOSTILE)
    return report(root)


def test_every_section_has_its_plot_and_its_numbers(full: Report) -> None:
    page = Page(full.page)
    assert page.tags["svg"] == page.tags["table"] == len(SECTIONS) == 8
    assert not page.open
    assert (full.lacking, full.broken) == ([], [])


@pytest.mark.parametrize("which", ["full", "hostile"])
def test_nothing_runs_and_nothing_is_fetched(which: str, request: pytest.FixtureRequest) -> None:
    page = Page(request.getfixturevalue(which).page)
    assert set(page.tags) <= {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "section", "div", "ul", "li", "a",
        "strong", "table", "caption", "thead", "tbody", "tr", "th", "td",
        "svg", "desc", "defs", "g", "path", "use", "text", "tspan", "clippath", "rect",
    }  # fmt: skip
    assert page.tags["style"] == 1
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    for value in [*page.of("href"), *page.of("xlink:href")]:
        assert value.startswith("#"), value
    assert not page.of("src")
    assert not [value for value in page.of("style") if "url(" in value and "url(#" not in value]
    assert POLICY in page.of("content")


@pytest.mark.parametrize("which", ["full", "hostile"])
def test_every_name_is_there_once_and_every_reference_is_met(which: str, request: pytest.FixtureRequest) -> None:
    page = Page(request.getfixturevalue(which).page)
    ids = Counter(page.of("id"))
    assert not [name for name, many in ids.items() if many > 1]
    pointed = {value[1:] for value in [*page.of("href"), *page.of("xlink:href")]}
    pointed |= {name for value in [*page.of("clip-path"), *page.of("aria-labelledby")] for name in _names(value)}
    assert pointed <= set(ids)


def _names(value: str) -> list[str]:
    return re.findall(r"url\(#([^)]+)\)", value) or value.split()


def test_each_plot_has_a_description_for_readers_who_cannot_see_the_plot(full: Report) -> None:
    page = Page(full.page)
    assert page.of("role").count("img") == len(SECTIONS)
    for name, (title, *_) in SECTIONS.items():
        described = re.search(f'<desc id="{name}-desc">([^<]+)</desc>', full.page)
        assert described is not None
        assert f'<title id="{name}-title">{title}</title>' in full.page
        assert f"<p>{described[1]}</p>" in full.page


def test_words_of_strangers_stay_words(hostile: Report) -> None:
    assert "<script" not in hostile.page
    assert "\x1b" not in hostile.page
    assert "\u202e" not in hostile.page
    text = "".join(Page(hostile.page).text)
    assert "<script>alert('x')</script>" in text
    assert "longlonglong" not in text  # truncated


def test_findings_that_need_attention_stand_on_top(full: Report) -> None:
    assert full.attention == [
        "acme had up to 8 connections; its limit is 8.",
        "1 alert of the rule spray.",
        "1 alert of the rule brute-force.",
        "1 alert of fraud.",
        "1 gap that no router reported: look for lost segments and compact them.",
        "A repeatedly lost its neighbour acme: check the connection between them.",
    ]
    head = full.page.partition('<h2 id="traffic">')[0]
    assert all(text in head for text in full.attention)


def test_incomplete_and_estimated_rows_are_named(tmp_path: Path) -> None:
    store(tmp_path, "meter", [*metered("acme"), *metered("globex", hours=2, complete=False),
                              *metered("initech", hours=1, estimated_msgs=40)])  # fmt: skip
    shown = report(tmp_path).attention
    assert shown == [
        "2 of 27 rows of the meter are not complete (tenants: globex), because records are missing: see the gaps.",
        "40 messages are counted for certain, but the hour in which they passed is estimated.",
    ]


def test_tables_that_are_not_there_are_named_with_the_job_that_makes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(tmp_path, "meter", metered("acme"))
    out = tmp_path / "report.html"
    assert main(["pipeline", "report", str(tmp_path), "--out", str(out)]) == 0
    page = out.read_text()
    assert "Latency" not in page
    assert "there is no table latency. `trouter pipeline latency` makes it." in page
    assert "there is no table audit_alerts. `trouter pipeline audit` makes it." in page
    shown = capsys.readouterr().out
    assert "because their tables do not exist: Connections and their limits, " in shown
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize("how", ["rubbish", "truncated", "no column", "other type", "gone", "bad log", "later version"])
def test_a_table_that_cannot_be_read_is_named_and_the_others_are_shown(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(tmp_path, "meter", metered("acme"))
    rows = [{"hour": NOON, "vhost": "v", "addr": "a", "cnt": 1, "max_us": 3, "bi": [3], "bc": [1]}]
    file = Path(store(tmp_path, "latency", rows))
    log = tmp_path / "tables" / "latency" / "_delta_log"
    names = file
    if how == "rubbish":
        file.write_bytes(b"PAR1 or not")
    elif how == "truncated":
        file.write_bytes(file.read_bytes()[:-9])
    elif how == "no column":
        pq.write_table(pq.read_table(file).drop_columns(["bi"]), file)
    elif how == "other type":
        found = pq.read_table(file)
        pq.write_table(found.set_column(found.schema.names.index("cnt"), "cnt", pa.array(["many"])), file)
    elif how == "gone":
        file.unlink()
    elif how == "bad log":
        (log / f"{1:020}.json").write_text('{"days": 7')
        names = log
    else:
        action = {"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}
        (log / f"{2:020}.json").write_text(json.dumps(action) + "\n")
        names = log
    out = tmp_path / "report.html"
    assert main(["pipeline", "report", str(tmp_path), "--out", str(out)]) == 1
    assert str(names) in capsys.readouterr().err
    page = Page(out.read_text())
    assert page.tags["svg"] == 2  # traffic and outcomes


def test_only_the_dates_that_are_wanted(tmp_path: Path) -> None:
    store(tmp_path, "meter", metered("early", hours=2), date(2026, 3, 1))
    store(tmp_path, "meter", metered("umbra", hours=2), date(2026, 3, 2))
    assert "early" not in report(tmp_path, Period(first=date(2026, 3, 2))).page
    assert "umbra" not in report(tmp_path, Period(last=date(2026, 3, 1))).page
    nothing = report(tmp_path, Period(first=date(2026, 3, 3)))
    assert "The table has no rows for these dates." in nothing.page
    assert not nothing.broken


def test_only_the_hours_that_are_wanted(tmp_path: Path) -> None:
    """Rows that go on beyond an end of the range, and those without an end, are part of it."""
    a_day(tmp_path)
    words = ["pipeline", "report", str(tmp_path), "--out", str(tmp_path / "page.html")]
    assert main([*words, "--from", "2026-03-01T14:00", "--to", "2026-03-01T15:00"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "Dates from 2026-03-01 14:00 to 2026-03-01 15:00." in page
    found = {
        name: read(tmp_path, name, Period(NOON + timedelta(hours=2), NOON + timedelta(hours=3))) for name in COLUMNS
    }
    assert {row.hour for row in found["meter"]["hour"].to_pylist()} == {14, 15}
    assert found["topology_history"]["peer"].to_pylist() == ["C"]
    assert found["audit_alerts"].num_rows == 0
    assert found["audit_rules"].num_rows == 2
    later = Period(first=NOON + timedelta(minutes=30))
    assert read(tmp_path, "meter_gaps", later)["router"].to_pylist() == ["acme"]
    assert read(tmp_path, "audit_alerts", later)["alert_id"].to_pylist() == ["a2"]


def test_a_chosen_version_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path, "meter", metered("early", hours=2))
    number = Table(tmp_path, "meter").version()
    store(tmp_path, "meter", metered("umbra", hours=2))
    assert number is not None
    out = tmp_path / "page.html"
    words = ["pipeline", "report", str(tmp_path), "--out", str(out), "--as-of"]
    assert main([*words, f"meter={number.number}"]) == 0
    assert f"Of meter it is version {number.number}." in out.read_text()
    assert "early" in out.read_text()
    assert "umbra" not in out.read_text()
    assert main([*words, "meter=99"]) == 0
    assert "there is no version 99; the last is 2" in out.read_text()
    assert status_of([*words, "meters=1"]) == 2
    assert "'meters=1' is no TABLE=VERSION, such as meter=12" in capsys.readouterr().err


def test_many_tenants_and_hours_are_cut_to_a_readable_page(tmp_path: Path) -> None:
    rows = [row for tenant in range(40) for row in metered(f"t{tenant}", hours=1, msgs=100 * (tenant + 1))]
    rows += [{**row, "hour": row["hour"] + timedelta(days=90)} for row in rows]
    store(tmp_path, "meter", rows)
    made = report(tmp_path)
    assert "all others" in made.page
    assert "messages per day" in made.page
    assert "The first 20 of 40" in made.page
    assert len(made.page) < 200_000


def test_the_same_tables_make_the_same_page(tmp_path: Path) -> None:
    a_day(tmp_path)
    assert report(tmp_path).page == report(tmp_path).page


def test_every_column_read_belongs_to_a_table_with_a_section() -> None:
    assert {"meter", "meter_conn", "meter_gaps", "audit_alerts", "audit_rules", "fraud_alerts", "latency", "top",
            "topology_history"} == set(COLUMNS)  # fmt: skip


def test_limits_come_from_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_day(tmp_path)
    configuration = tmp_path / "r.conf"
    configuration.write_text(
        "router { id: R }\nvhost { hostname: acme, maxConnections: 8 }\nvhost { hostname: globex }\n"
    )
    out = tmp_path / "report.html"
    assert main(["pipeline", "report", str(tmp_path), "-o", str(out), "-c", str(configuration)]) == 0
    assert "its limit is 8" in capsys.readouterr().out
    assert main(["pipeline", "report", str(tmp_path), "-o", str(out), "-c", str(tmp_path / "none.conf")]) == 1
    assert "none.conf" in capsys.readouterr().err


def test_a_folder_that_is_not_there_and_a_place_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "report", str(tmp_path / "none")]) == 1
    assert f"{tmp_path / 'none'}: there is no such folder" in capsys.readouterr().err
    assert main(["pipeline", "report", str(tmp_path), "--out", str(tmp_path / "no" / "r.html")]) == 1
    assert f"{tmp_path / 'no' / 'r.html'}: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
def test_percentiles_keep_their_bound(q: float) -> None:
    import random

    values = sorted(int(random.Random(7).lognormvariate(8, 2)) for _ in range(5000))
    buckets = list(zip(*merged((bucket_of(value), 1) for value in values), strict=True))
    exact = values[-(-len(values) * int(q * 100) // 100) - 1]
    assert percentile(buckets, q) == pytest.approx(exact, rel=1 / 64, abs=1)


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (999, "999"), (1234, "1.23k"), (5_600_000, "5.6M")])
def test_numbers_are_short(number: int, text: str) -> None:
    assert short(number) == text


@pytest.mark.parametrize(("us", "text"), [(0, "0 us"), (999, "999 us"), (1500, "1.5 ms"), (90_000_000, "1.5 min")])
def test_times_are_short(us: int, text: str) -> None:
    assert duration(us) == text
