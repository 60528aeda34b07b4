"""source_hosts: rights on addresses by the network of the client."""

from __future__ import annotations

from typing import Any

import pytest

from trouter.hooks import AttachRequest, ConfigurationRefused, Plugins, RouterFacts
from trouter_plugins import source_hosts

TABLE = {"0.0.0.0/0": "public*", "10.1.0.0/16": "payroll*, audit", "10.1.2.3/32": "*", "2001:db8::/32": "six"}


def plugins(settings: dict[str, Any]) -> Plugins:
    loaded = Plugins([source_hosts])
    loaded.configure(RouterFacts("A"), {"trouter_plugins.source_hosts": settings})
    return loaded


def attaching(host: str, address: str | None, **more: Any) -> AttachRequest:
    facts = {"authenticated": True, "role": "normal", "vhost": "", "group": "", "link_name": "l", "sends": False}
    return AttachRequest(1, "alice", remote_host=host, address=address, **{**facts, "dynamic": False, **more})


@pytest.mark.parametrize(
    ("host", "address", "allowed"),
    [
        ("192.0.2.1", "public.news", True),
        ("192.0.2.1", "payroll", False),
        ("10.1.0.1", "payroll", True),
        ("10.1.0.1", "payroll.7", True),
        ("10.1.0.1", "audit", True),
        ("10.1.0.1", "audit.7", False),
        ("10.1.0.1", "public.news", False),
        ("::ffff:10.1.0.1", "audit", True),
        ("10.1.2.3", "anything", True),
        ("2001:db8::1", "six", True),
        ("2001:db9::1", "six", False),
        ("somewhere", "public", False),
    ],
)
def test_the_smallest_network_decides(host: str, address: str, allowed: bool) -> None:
    assert plugins(TABLE).may_attach(attaching(host, address)) == allowed
    assert plugins(TABLE).may_attach(attaching(host, address, sends=True)) == allowed


def test_no_address_takes_all_of_them() -> None:
    loaded = plugins(TABLE)
    assert loaded.may_attach(attaching("10.1.2.3", None, sends=True))
    assert not loaded.may_attach(attaching("10.1.0.1", None, sends=True))
    assert not loaded.may_attach(attaching("10.1.0.1", None, sends=True, dynamic=True))


def test_a_reply_address_takes_a_network() -> None:
    loaded = plugins(TABLE)
    assert loaded.may_attach(attaching("10.1.0.1", None, dynamic=True))
    assert not loaded.may_attach(attaching("2001:db9::1", None, dynamic=True))


def test_without_a_table_every_attach_is_allowed() -> None:
    assert plugins({}).may_attach(attaching("192.0.2.1", "payroll"))


def test_everything_wrong_is_reported() -> None:
    with pytest.raises(ConfigurationRefused, match=r"'10\.1' is no network.*10\.1\.0\.0/16: the addresses must be"):
        plugins({"10.1": "a", "10.1.0.0/16": ["a"]})
