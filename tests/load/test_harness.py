"""The comparison harness: its arithmetic, its tables, and that it leaves no process running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.measure import Sample, Spread, interleaved, pair, ratios
from bench.results import Figure, Results
from bench.servers import Router, ServerError
from bench.table import BEGIN, END, put_into, render
from trouter.load.plan import Load

ENVIRONMENT = dict.fromkeys(
    ("processor", "cores", "kernel", "python", "trouter", "commit", "haproxy", "rabbitmq", "extent", "when"), "x"
)


def samples(*cpu_us: float) -> list[Sample]:
    return [Sample(value, 1000.0, 10, 50.0) for value in cpu_us]


def results() -> Results:
    found = Results({**ENVIRONMENT, "repetitions": 3, "seconds": 1})
    found.add("100 B", {"router": samples(3, 1, 2), "HAProxy": samples(1, 1, 1)})
    found.figures.append(Figure("100 B", Spread.of([1, 2, 3]), "x", 2.5))
    found.figures.append(Figure("slow", Spread.of([4]), "x", 2.5))
    found.figures.append(Figure("rate", Spread.of([0.99]), "x", 0.95, at_least=True))
    found.figures.append(Figure("for information", Spread.of([1234]), "us"))
    found.remarks.append("something was left out")
    return found


def test_a_spread_is_least_middle_most() -> None:
    assert Spread.of([5.0, 1.0, 3.0]) == Spread(1.0, 3.0, 5.0)
    assert Spread.of([1.0, 2.0]) == Spread(1.0, 1.5, 2.0)


def test_ratios_are_taken_within_each_repetition() -> None:
    assert ratios(samples(2, 8, 9), samples(1, 2, 3)) == Spread(2.0, 3.0, 4.0)


def test_subjects_take_turns_and_the_order_turns_round() -> None:
    order: list[str] = []

    def measure(name: str) -> Sample:
        order.append(name)
        return Sample(len(order), 0.0, 1)

    taken = interleaved(3, {name: lambda name=name: measure(name) for name in "ab"})  # type: ignore[misc]
    assert "".join(order) == "abbaab"
    assert [sample.cpu_us for sample in taken["a"]] == [1, 4, 5]


@pytest.mark.parametrize(
    ("value", "target", "at_least", "met"),
    [(1.0, 1.0, False, True), (1.1, 1.0, False, False), (1.0, 1.0, True, True), (0.9, 1.0, True, False)],
)
def test_a_figure_is_judged_by_its_median(value: float, target: float, at_least: bool, met: bool) -> None:
    assert Figure("f", Spread(0.0, value, 9.0), "x", target, at_least).met is met
    assert Figure("f", Spread(0.0, value, 9.0), "x").met is None


def test_the_tables_have_a_target_and_a_verdict() -> None:
    text = render(results())
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("|")}
    assert "<= 2.50 x" in rows["100 B"] or "router" in rows["100 B"]
    assert "NOT MET" in rows["slow"]
    assert ">= 0.95 x" in rows["rate"]
    assert "| met" in rows["rate"]
    assert "1,234 us" in rows["for information"]
    assert "- something was left out" in text
    for line in text.splitlines():
        assert line.startswith("|") == line.endswith("|")


def test_the_json_holds_every_sample_and_verdict() -> None:
    kept = json.loads(json.dumps(results().to_dict()))
    assert [figure["met"] for figure in kept["figures"]] == [True, False, True, None]
    router = kept["measurements"][0]
    assert router["cpu_us_per_message"] == {"low": 1, "middle": 2, "high": 3}
    assert [sample["cpu_us"] for sample in router["samples"]] == [3, 1, 2]


def test_tables_are_put_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put_into(page, "new")
    put_into(page, "newer")
    assert page.read_text() == f"before\n{BEGIN}\nnewer\n{END}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no"):
        put_into(page, "new")


def test_a_router_under_test_is_measured_and_gone_afterwards(tmp_path: Path) -> None:
    with Router(tmp_path / "router") as router:
        sample = pair(router, Load(count=500))
        assert sample.messages == 500
        assert sample.cpu_us > 0
        assert router.memory("VmHWM") >= router.memory("VmRSS") > 0
        assert router.members() == [router.process.pid]
    assert router.members() == []
    assert (tmp_path / "router" / "router.log").read_text() == ""


def test_a_server_that_does_not_start_is_reported_with_the_reason(tmp_path: Path) -> None:
    with Router(tmp_path / "one") as first:
        second = Router(tmp_path / "two", port=first.port)
        with pytest.raises(ServerError, match="router ended with status 1: "), second:
            pass
        assert second.members() == []
