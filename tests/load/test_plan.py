"""The assignment of addresses to connections, and the options of a load."""

from __future__ import annotations

import argparse

import pytest

from trouter.cli import bench
from trouter.load.plan import Load
from trouter.load.report import LoadReport
from trouter.tools.failures import UsageError


@pytest.mark.parametrize(("addresses", "connections"), [(1, 1), (1, 5), (5, 5), (7, 3), (100, 9)])
def test_every_address_has_a_connection_and_every_connection_an_address(addresses: int, connections: int) -> None:
    load = Load(address="a", addresses=addresses, connections=connections)
    shares = [load.addresses_of(connection) for connection in range(connections)]
    assert all(shares)
    everything = {"a"} if addresses == 1 else {f"a.{number}" for number in range(addresses)}
    assert {address for share in shares for address in share} == everything
    if addresses >= connections > 1:
        assert sum(map(len, shares)) == addresses


def test_more_connections_than_addresses_share_them() -> None:
    load = Load(address="a", addresses=2, connections=3)
    assert [load.addresses_of(connection) for connection in range(3)] == [("a.0",), ("a.1",), ("a.0",)]


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench.add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", *words])


def test_options_become_a_load() -> None:
    words = ["--port", "1", "--count", "5", "--addresses", "3", "--window", "7", "--presettled", "--frame", "512"]
    load = bench.load_of(parse("pair", *words))
    assert load == Load(port=1, count=5, addresses=3, window=7, presettled=True, frame_bytes=512, timeout_s=5.0)


def test_a_sink_has_the_window_of_a_router() -> None:
    assert bench.load_of(parse("sink", "--credit", "10")) == Load(port=0, credit=10, session_frames=0)


@pytest.mark.parametrize("role", [name for name, role in bench.ROLES.items() if role.ends])
def test_a_sending_role_needs_a_count_or_a_duration(role: str) -> None:
    with pytest.raises(UsageError, match="--count or --seconds"):
        bench.load_of(parse(role))


@pytest.mark.parametrize("option", ["addresses", "connections", "size", "window", "credit"])
def test_an_option_of_zero_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=f"--{option} is at least 1"):
        bench.load_of(parse("pair", "--count", "1", f"--{option}", "0"))


def test_a_report_survives_its_json() -> None:
    report = LoadReport("send", 10, 2.5, {"accepted": 10}, 1000, 1400, 90, 0.25, {"p50": 3.5}, 2)
    assert LoadReport.from_json(report.to_json()) == report
    assert report.messages_per_second == 4


def test_a_report_of_nothing_divides_by_nothing() -> None:
    report = LoadReport("receive", 0, 0.0, {}, 0, 0, 0, 0.0)
    assert report.messages_per_second == 0
    assert "no outcomes" in bench.as_table([report])


def test_the_table_has_a_line_for_each_role() -> None:
    sent = LoadReport("send", 2000, 2.0, {"accepted": 1999, "released": 1}, 1, 1, 1, 0.002, {"p50": 3.5})
    lines = bench.as_table([sent, LoadReport("hold", 0, 0.0, {}, 0, 0, 0, 0.0, {}, 7)]).splitlines()
    assert "1,000/s" in lines[1]
    assert "1,999 accepted, 1 released" in lines[1]
    assert "own CPU 1.00 us" in lines[1]
    assert "p50 3.5" in lines[2]
    assert "7 connections" in lines[3]
