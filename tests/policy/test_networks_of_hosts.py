"""With secureDefaults a client with an IPv6 network counts as one host; each address counts by itself without them."""

from __future__ import annotations

import pytest

from tests.policy.test_router_policy import enter, request, router_policy
from trouter.config import load
from trouter.policy.compiled import Policy
from trouter.policy.router_policy import RouterPolicy

pytestmark = pytest.mark.attack

VHOST = """
policy {{ enableVhostPolicy: yes }}
vhost {{
    hostname: one
    {limit}
    groups: {{ $default: {{ remoteHosts: "*", sources: "*" }} }}
    allowUnknownUser: yes
}}
"""
CONNECTIONS = VHOST.format(limit="maxConnectionsPerHost: 2")
RATE = VHOST.format(limit="perHost: { maxConnectionsPerSecond: 2 }")


def policy(text: str, *, secure: bool) -> RouterPolicy:
    made, _ = router_policy(text)
    configuration = load(text=text)
    made.replace_policy(Policy.compile(configuration.policy, configuration.vhosts, secure=secure))
    return made


def admitted(made: RouterPolicy, *hosts: str) -> list[bool]:
    """Let users connect from hosts, one after the other; return which of them may."""
    found = []
    for number, host in enumerate(hosts, 1):
        who = request(number, f"user{number}", remote_host=host)
        found.append(made.judge_open(who).allowed)
        if found[-1]:
            enter(made, who)
    return found


@pytest.mark.parametrize("text", [CONNECTIONS, RATE], ids=["connections", "rate"])
async def test_addresses_of_one_network_are_one_host(text: str) -> None:
    if text == CONNECTIONS:
        addresses = [f"2001:db8:0:1:{number:x}::1" for number in range(4)]
        assert admitted(policy(text, secure=True), *addresses, "2001:db8:0:2::1") == [True, True, False, False, True]
        assert admitted(policy(text, secure=False), *addresses) == [True] * 4
        return
    rate = policy(text, secure=True)
    who = [request(number, remote_host=f"2001:db8:0:1:{number:x}::1") for number in range(1, 4)]
    assert [rate.judge_open(each).allowed for each in who] == [True, True, False]


async def test_addresses_of_version_4_are_hosts_each() -> None:
    assert admitted(policy(CONNECTIONS, secure=True), "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2") == [
        True,
        True,
        False,
        True,
    ]


async def test_a_connection_that_leaves_gives_its_place_back_to_the_network() -> None:
    made = policy(CONNECTIONS, secure=True)
    for number in range(3):
        who = request(number, remote_host=f"2001:db8:0:1:{number:x}::1")
        assert made.judge_open(who).allowed
        enter(made, who)
        made.release_connection(number)
