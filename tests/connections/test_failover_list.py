"""The order in which a connector dials endpoints (routing.md 6.6)."""

from __future__ import annotations

import pytest

from trouter.connections.failover import MAX_ALTERNATES, FailoverList
from trouter.net.dialing import Endpoint

FIRST = Endpoint("first", "5672")


def listed(*hosts: str) -> list[dict[str, object]]:
    return [{"network-host": host, "port": "5672"} for host in hosts]


def test_each_endpoint_is_tried_twice_and_then_the_next_and_so_round() -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list(listed("second", "third"))
    tried = []
    for _ in range(7):
        tried.append(endpoints.current.host)
        endpoints.note_failed()
    assert tried == ["first", "first", "second", "second", "third", "third", "first"]


def test_an_endpoint_that_answered_has_its_two_tries_again() -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list(listed("second"))
    endpoints.note_failed()
    endpoints.note_opened()
    endpoints.note_failed()
    assert endpoints.current == FIRST


def test_a_new_list_keeps_only_the_configured_endpoint_and_the_one_in_use() -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list(listed("second", "third"))
    for _ in range(2):
        endpoints.note_failed()
    endpoints.apply_server_list(listed("fourth"))
    assert str(endpoints) == "amqp://second:5672, amqp://first:5672, amqp://fourth:5672"


def test_an_empty_list_leaves_the_configured_endpoint() -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list(listed("second"))
    endpoints.apply_server_list([])
    assert str(endpoints) == "amqp://first:5672"


@pytest.mark.parametrize("nothing", [None, "second", 7, {"network-host": "second"}])
def test_a_value_that_is_no_failover_list_changes_nothing(nothing: object) -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list(listed("second"))
    endpoints.apply_server_list(nothing)
    assert len(endpoints) == 2


@pytest.mark.parametrize(
    "odd",
    [
        "second",
        {},
        {"network-host": ""},
        {"network-host": 5},
        {"network-host": "h", "port": True},
        {"network-host": "h", "port": ""},
        {"network-host": "h", "port": [1]},
        {"network-host": "h", "port": -1},
        {"network-host": "h", "port": 65536},
        {"network-host": "h", "port": "9" * 5000},
        {"network-host": "h", "port": "a\0b"},
        {"network-host": "a\0b"},
        {"network-host": "a b"},
        {"network-host": "h" * 256},
        {"network-host": "h", "scheme": "amqps"},
        {"network-host": "first", "port": 5672},
    ],
)
def test_entries_that_cannot_be_used_or_are_known_are_left_out(odd: object) -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list([odd, *listed("second")])
    assert str(endpoints) == "amqp://first:5672, amqp://second:5672"


def test_endpoints_are_shown_with_the_scheme_amqp_with_tls_too() -> None:
    endpoints = FailoverList(Endpoint("first", "5671", "amqps"))
    endpoints.apply_server_list([{"network-host": "second"}])
    assert str(endpoints) == "amqp://first:5671, amqp://second:5671"
    assert endpoints.current.scheme == "amqps"


def test_a_list_without_end_is_cut() -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list(listed(*(f"h{number}" for number in range(10_000))))
    assert len(endpoints) == MAX_ALTERNATES + 1


def test_ports_may_be_numbers_and_absent_and_hosts_ipv6() -> None:
    endpoints = FailoverList(FIRST)
    endpoints.apply_server_list([{"network-host": "::1", "port": 5}, {"network-host": "h"}])
    assert str(endpoints) == "amqp://first:5672, amqp://[::1]:5, amqp://h:5672"
