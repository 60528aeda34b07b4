"""`trouter policy`: explain and test, as an operator or a pipeline calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trouter.cli import main

VHOST = """vhost {
 hostname: traders.com
 groups: { feeds: { users: feeder, remoteHosts: "10.0.0.0/8, my-host.example.com", sources: news* } }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "router.conf").write_text("policy { enableVhostPolicy: yes }\n" + VHOST)
    (tmp_path / "off.conf").write_text(VHOST)
    policies = tmp_path / "policies"
    policies.mkdir()
    groups = {"feeds": {"users": "feeder", "remoteHosts": "10.0.0.0/8", "sources": "news*"}}
    (policies / "traders.json").write_text(json.dumps([["vhost", {"hostname": "traders.com", "groups": groups}]]))
    return tmp_path


def explained(*arguments: str | Path) -> int:
    return main(["policy", "explain", *map(str, arguments)])


FEEDER = ("--vhost", "traders.com", "--user", "feeder", "--host", "10.0.0.1")


@pytest.mark.parametrize("config", ["router.conf", "policies", "off.conf --enforce"])
def test_explain_answers_with_its_exit_status(folder: Path, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *options = config.split()
    assert explained("-c", folder / name, *options, *FEEDER, "--source", "news-1") == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["so", "allowed", "by", "traders.com:feeds:sources:1"]
    assert explained("-c", folder / name, *options, *FEEDER, "--target", "news-1") == 1
    assert capsys.readouterr().out.splitlines()[-1].split() == ["so", "DENIED", "by", "traders.com:feeds:targets:none"]


def test_explain_answers_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained("-c", folder / "router.conf", *FEEDER, "--json") == 0
    captured = json.loads(capsys.readouterr().out)
    assert (captured["allowed"], captured["rule"]) == (True, "traders.com:feeds:remoteHosts:1")


def test_explain_holds_no_user_where_the_policy_is_off(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained("-c", folder / "off.conf", "--vhost", "x") == 0
    assert "the policy does not say enableVhostPolicy" in capsys.readouterr().out


def test_explain_gets_addresses_of_names_and_looks_none_up(folder: Path) -> None:
    arguments = ("-c", folder / "router.conf", "--vhost", "traders.com", "--user", "feeder", "--host", "172.16.0.1")
    assert explained(*arguments) == 1
    assert explained(*arguments, "--resolve", "My-Host.example.com=172.16.0.1") == 0


def test_without_a_user_the_client_is_not_authenticated(folder: Path) -> None:
    assert explained("-c", folder / "router.conf", "--vhost", "traders.com", "--host", "10.0.0.1") == 1


BROKEN = {"router.conf": "vhost {\n hostname: a\n groups: { g: 1 }\n}", "none.conf": None}


@pytest.mark.parametrize("name", BROKEN)
def test_a_configuration_that_cannot_be_used_is_no_answer(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if (text := BROKEN[name]) is not None:
        (tmp_path / name).write_text(text)
    assert explained("-c", tmp_path / name, *FEEDER) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(tmp_path / name) in captured.err


@pytest.mark.parametrize("arguments", [["--resolve", "x"], ["--source", "a", "--target", "b"], ["--foo"]])
def test_a_wrong_command_line_is_no_answer(folder: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        explained("-c", folder / "router.conf", *arguments)
    assert caught.value.code == 2


def held(folder: Path, table: object, *options: str | Path) -> int:
    path = folder / "expected.json"
    path.write_text(json.dumps(table))
    return main(["policy", "test", str(path), *map(str, options)])


ROW = {"vhost": "traders.com", "user": "feeder", "host": "10.0.0.1", "mayReceive": ["news"], "mayNotSend": "news"}


def test_a_policy_that_is_as_expected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert held(folder, {"policy": "policies", "expectations": [ROW]}) == 0
    assert capsys.readouterr().out == f"{folder / 'expected.json'}: 3 as expected\n"
    assert held(folder, {"expectations": [ROW]}, "-c", folder / "router.conf") == 0
    assert held(folder, {"expectations": [ROW]}, "-c", folder / "off.conf", "--enforce") == 0


def test_a_policy_that_is_not_as_expected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert held(folder, {"policy": "router.conf", "expectations": [{**ROW, "maySend": "news"}]}) == 1
    failure, last = capsys.readouterr().out.splitlines()
    assert failure.startswith(f"{folder / 'expected.json'}:1:")
    assert "may not send to 'news', by traders.com:feeds:targets:none" in failure
    assert last == f"{folder / 'expected.json'}: 1 of 4 not as expected"
    assert held(folder, {"expectations": [ROW]}, "-c", folder / "off.conf") == 1


NO_ANSWER = {
    "no policy": {"expectations": [ROW]},
    "no such policy": {"policy": "none.conf", "expectations": [ROW]},
    "nothing expected": {"policy": "router.conf", "expectations": []},
    "not a table": [],
}


@pytest.mark.parametrize("table", NO_ANSWER.values(), ids=NO_ANSWER)
def test_a_table_without_an_answer(folder: Path, table: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert held(folder, table) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"trouter policy test: {folder}")
