"""The options of `trouter stat`, and those that do not go together."""

from __future__ import annotations

import io
import os
import sys
from argparse import Namespace

import pytest

from trouter.cli import Parser, main, parser, stat
from trouter.tools.failures import UsageError
from trouter.tools.table import may_colour
from trouter.tools.views.show import Wishes


def parsed(*words: str) -> Namespace:
    return parser().parse_args(["stat", *words])


def older(*words: str) -> Namespace:
    tool = Parser(prog="qdstat", older=True)
    stat.add_options(tool, older=True)
    wishes: Namespace = tool.parse_args(words)
    return wishes


def views(wishes: Wishes) -> list[str]:
    return [view.name for view in wishes.views]


VIEW_OF = {
    (): "general",
    ("-g",): "general",
    ("--general",): "general",
    ("-c",): "connections",
    ("--connections",): "connections",
    ("-l",): "links",
    ("--links",): "links",
    ("-n",): "nodes",
    ("--nodes",): "nodes",
    ("-e",): "edges",
    ("--edge",): "edges",
    ("-a",): "addresses",
    ("--address",): "addresses",
    ("-m",): "pools",
    ("-p",): "policy",
    ("--policy",): "policy",
    ("--autolinks",): "autolinks",
    ("--linkroutes",): "linkroutes",
    ("--vhosts",): "vhosts",
    ("--vhostgroups",): "vhostgroups",
    ("--vhoststats",): "vhoststats",
    ("--log",): "log",
    ("--auto",): "autolinks",
    ("--addr",): "addresses",
}
OWN_VIEW_OF = {
    ("--memory",): "owners",
    ("--connection",): "connections",
    ("--why", "a"): "why",
    ("--address", "a"): "addresses",
    ("--vhost", "v"): "connections",
    ("--connection", "7"): "connections",
    ("-l", "--address", "a"): "links",
}
OLDER_VIEW_OF = {
    ("--memory",): "pools",
    ("--mem",): "pools",
    ("--conn",): "connections",
    ("--connection",): "connections",
}


@pytest.mark.parametrize(("words", "view"), [*VIEW_OF.items(), *OWN_VIEW_OF.items()])
def test_an_option_chooses_the_view(words: tuple[str, ...], view: str) -> None:
    assert views(stat.wishes_of(parsed(*words))) == [view]


@pytest.mark.parametrize(("words", "view"), [*VIEW_OF.items(), *OLDER_VIEW_OF.items()])
def test_the_older_tool_has_its_own_options_and_no_others(words: tuple[str, ...], view: str) -> None:
    assert views(stat.wishes_of(older(*words))) == [view]


@pytest.mark.parametrize("words", [["--json"], ["--watch", "1"], ["--why", "a"], ["--vhost", "v"], ["--address", "a"]])
def test_the_older_tool_takes_none_of_the_new_options(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        older(*words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: qdstat")


def test_everything_is_most_views_in_a_row() -> None:
    assert views(stat.wishes_of(parsed("--all-entities"))) == [
        "links", "addresses", "connections", "autolinks", "linkroutes", "general", "pools", "policy", "vhosts",
        "vhoststats",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "limit"), [([], 0), (["--limit", "5"], 5), (["--limit", "0"], 0), (["--limit", "-1"], 0)]
)
def test_no_limit_and_a_limit_of_nothing_mean_all(given: list[str], limit: int) -> None:
    assert stat.wishes_of(parsed("-l", *given)).limit == limit


@pytest.mark.parametrize(
    "words",
    [
        ["-l", "--address"],
        ["-g", "--address", "a"],
        ["-n", "--connection", "7"],
        ["--all-entities", "--vhost", "v"],
        ["--why", "a", "--address", "b"],
        ["--why", "a", "--connection"],
        ["--vhost", ""],
        ["--csv", "--json"],
        ["--address", "--connection"],
    ],
)
def test_contradictory_options_are_a_usage_error(words: list[str]) -> None:
    with pytest.raises(UsageError):
        stat.wishes_of(parsed(*words))


@pytest.mark.parametrize(
    "words",
    [
        ["-g", "-l"],
        ["-r", "A", "--all-routers"],
        ["-d", "A", "--all-routers"],
        ["-r", "A", "-d", "B"],
        ["--limit", "many"],
        ["--watch", "0"],
        ["--watch", "nan"],
        ["-x"],
        ["more"],
        ["-g", "--address", "a"],
    ],
)
def test_a_wrong_command_line_gives_usage_on_stderr_and_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["stat", *words])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("trouter stat: ")
    assert err.endswith(" (see `trouter stat --help`)\n")


def test_why_queries_every_router_unless_a_router_is_named() -> None:
    assert stat.wishes_of(parsed("--why", "a")).all_routers
    assert not stat.wishes_of(parsed("--why", "a", "-r", "B")).all_routers
    assert not stat.wishes_of(parsed("-l")).all_routers


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(os.environ, "NO_COLOR", raising=False)
    monkeypatch.setitem(os.environ, "TERM", "xterm")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert not may_colour(sys.stdout)
    monkeypatch.setattr("sys.stdout", Terminal())
    assert may_colour(sys.stdout)
    monkeypatch.setitem(os.environ, "TERM", "dumb")
    assert not may_colour(sys.stdout)
    monkeypatch.setitem(os.environ, "TERM", "xterm")
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    assert not may_colour(sys.stdout)


def test_a_router_that_is_not_there_is_reported_on_stderr_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", "-b", "127.0.0.1:1"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("trouter stat: cannot connect to ")
    assert "refused" in err
