"""The number of workers, and the part of the configuration that each of them has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trouter.config import Configuration, ConfigurationError, load
from trouter.config.findings import evaluate
from trouter.config.problems import Severity
from trouter.config.workers import WORKERS_HOST, available_cores, count_workers, part_of, with_workers, worker_id

GIB = 1 << 30
CLIENTS = "listener {\n    host: 127.0.0.1\n    port: 1\n    maxConnections: 5\n    acceptRate: 3\n}\n"
ROUTERS = "listener {\n    host: 127.0.0.1\n    port: 2\n    role: inter-router\n}\n"
PAGES = "listener {\n    host: 127.0.0.1\n    port: 3\n    http: yes\n}\n"
DIALS = "connector {\n    name: b\n    host: 127.0.0.1\n    port: 4\n    role: route-container\n}\n"
AUTO_LINK = "autoLink {\n    address: a\n    direction: in\n    connection: b\n}\n"
EXCHANGE = "exchange {\n    name: x\n    address: x\n}\n"


def configuration(workers: str, *sections: str, router: str = "") -> Configuration:
    return load(text=f"router {{\n    id: A\n    workers: {workers}\n{router}}}\n" + "".join(sections))


def points(found: Configuration) -> dict[str, Severity]:
    return {each.point: each.severity for each in evaluate(found) if each.key == "workers"}


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "65", "1.5", "99999999999"])
def test_a_number_of_workers_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="number of workers"):
        configuration(wrong)


def test_auto_is_a_worker_for_each_core_of_this_process() -> None:
    assert count_workers(configuration("Auto").router) == available_cores() <= len(os.sched_getaffinity(0))
    assert count_workers(load(text="").router) == 1


@pytest.mark.parametrize(
    ("text", "most"),
    [("max 100000", 10**6), ("100000 100000", 1), ("150000 100000", 2), ("1 100000", 1), ("x", 10**6), ("1 0", 10**6)],
)
def test_the_quota_of_a_container_bounds_the_cores(text: str, most: int, tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text, encoding="ascii")
    assert available_cores(quota) == min(most, len(os.sched_getaffinity(0)))


def test_the_first_worker_has_all_and_the_others_the_listeners_of_clients() -> None:
    sections = CLIENTS, ROUTERS, PAGES, DIALS, AUTO_LINK, EXCHANGE
    whole = configuration("3", *sections, router="    mode: interior\n")
    first, third = part_of(whole, "A", 1, 3, GIB), part_of(whole, "A", 3, 3, GIB)
    assert [each.port for each in first.listeners if each.host != WORKERS_HOST] == ["1", "2", "3"]
    assert [each.port for each in third.listeners if each.host != WORKERS_HOST] == ["1"]
    assert [each.host for each in first.connectors] == ["127.0.0.1"]
    assert [(each.host, each.port) for each in third.connectors] == [(WORKERS_HOST, "1"), (WORKERS_HOST, "2")]
    assert len(first.auto_links) == len(first.exchanges) == 1
    assert not third.auto_links
    assert not third.exchanges
    assert (first.router.id, third.router.id) == ("A", "A.3") == (worker_id("A", 1), worker_id("A", 3))
    assert first.router.mode == third.router.mode == "interior"
    assert not [each for each in evaluate(third) if WORKERS_HOST in str(each)]


def test_each_worker_of_an_edge_router_has_the_uplinks_and_none_has_the_others() -> None:
    uplink = DIALS.replace("name: b", "name: up").replace("route-container", "edge")
    whole = configuration("3", CLIENTS, PAGES, DIALS, uplink, AUTO_LINK, EXCHANGE, router="    mode: edge\n")
    first, third = part_of(whole, "A", 1, 3, GIB), part_of(whole, "A", 3, 3, GIB)
    assert [each.name for each in first.connectors] == ["b", "up"]
    assert [each.name for each in third.connectors] == ["up"]
    assert ([each.port for each in first.listeners], [each.port for each in third.listeners]) == (["1", "3"], ["1"])
    assert (first.router.id, third.router.id) == ("A", "A.3")
    assert first.router.mode == third.router.mode == "edge"
    assert len(first.auto_links) == len(first.exchanges) == 1
    assert not third.auto_links
    assert not third.exchanges
    assert "not-with-workers" not in points(whole)


@pytest.mark.parametrize("count", [2, 3])
def test_every_worker_writes_records_within_its_share_of_the_size(count: int) -> None:
    log = "recordLog {{\n    dir: /var/lib/records\n    maxBytes: {}\n    keepDays: 9\n}}\n"
    whole = configuration(str(count), log.format(100_000_001))
    assert not points(configuration("2", log.format(100_000_001)))
    logs = [part_of(whole, "A", place, count, GIB).record_logs[0] for place in range(1, count + 1)]
    assert sum(each.max_bytes for each in logs) == 100_000_001
    assert {(each.dir, each.keep_days) for each in logs} == {("/var/lib/records", 9)}
    least = part_of(configuration(str(count), log.format(1 << 20)), "A", 2, count, GIB)
    assert least.record_logs[0].max_bytes == 1 << 20


QUOTAS = "policy {\n    enableVhostPolicy: yes\n}\nvhost {\n    hostname: h\n    maxLinks: 9\n}\n"
PER_USER = "perUser: {\n        maxMessagesPerSecond: 9\n    }"


@pytest.mark.parametrize("count", [2, 3, 7])
def test_memory_is_divided_and_the_limits_that_workers_count_together_are_not(count: int) -> None:
    given = (
        "    maxHandshakes: 100\n    acceptBurstPerHost: 21\n    acceptRatePerHost: 7\n    maxMemoryBytes: 700000000\n"
    )
    whole = configuration(str(count), CLIENTS, router=given)
    parts = [part_of(whole, "A", place, count, GIB) for place in range(1, count + 1)]
    assert {each.router.max_handshakes for each in parts} == {100}
    assert {(each.router.accept_rate_per_host, each.router.accept_burst_per_host) for each in parts} == {(7, 21)}
    assert {(each.listeners[0].max_connections, each.listeners[0].accept_rate) for each in parts} == {(5, 3)}
    assert sum(each.router.max_memory_bytes or 0 for each in parts) <= 700_000_000
    assert part_of(load(text=""), "A", 1, 4, GIB).router.max_memory_bytes == GIB // 4


@pytest.mark.parametrize("quota", ["maxBufferedBytes: 9", PER_USER.replace("MessagesPerSecond", "BufferedBytes")])
def test_what_workers_do_not_count_together_is_a_finding(quota: str) -> None:
    sections = QUOTAS.replace("maxLinks: 9", quota)
    assert points(with_workers(configuration("1", sections), "2")) == {"limits-by-worker": Severity.NOTE}
    assert not points(configuration("1", sections))


@pytest.mark.parametrize("quota", ["maxLinks: 9", "maxConnectionsPerUser: 9", PER_USER])
def test_the_limits_that_workers_count_together_are_no_finding(quota: str) -> None:
    assert not points(with_workers(configuration("1", QUOTAS.replace("maxLinks: 9", quota)), "2"))


def test_a_router_that_cannot_have_workers_is_a_finding() -> None:
    long = load(text=f"router {{\n    id: {'a' * 127}\n}}\n")
    assert points(with_workers(long, "2"))["not-with-workers"] is Severity.PROBLEM


def test_an_edge_router_that_is_to_serve_without_an_uplink_has_better_one_worker() -> None:
    uplink, alone = DIALS.replace("route-container", "edge"), "    mode: edge\n    readyWithoutUplink: yes\n"
    assert points(configuration("2", uplink, router=alone))["workers-apart"] is Severity.NOTE
    assert points(configuration("2", router="    mode: edge\n"))["workers-apart"] is Severity.NOTE
    assert not points(configuration("2", uplink, router="    mode: edge\n"))
    assert not points(configuration("1", uplink, router=alone))


def test_more_workers_than_cores_are_a_note() -> None:
    cores = available_cores()
    assert points(configuration(str(cores + 1))).get("more-workers-than-cores") is Severity.NOTE
    assert not points(configuration("auto"))


def test_the_command_line_replaces_the_number_of_the_file() -> None:
    assert with_workers(configuration("3"), "2").router.workers == "2"
    assert with_workers(configuration("3"), None).router.workers == "3"
