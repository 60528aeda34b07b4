"""vhost_policy: the vhost of a user who logs in as name@domain."""

from __future__ import annotations

from typing import Any

import pytest

from trouter.hooks import ConfigurationRefused, ConnectionRequest, Plugins, RouterFacts, VhostPolicy
from trouter_plugins import vhost_policy

ON = {"userDomain": True}


def plugins(settings: dict[str, Any]) -> Plugins:
    loaded = Plugins([vhost_policy])
    loaded.configure(RouterFacts("A"), {"trouter_plugins.vhost_policy": settings})
    return loaded


def opening(user: str, **more: Any) -> ConnectionRequest:
    facts = {"authenticated": True, "remote_host": "192.0.2.1", "listener": "here", "role": "normal", "hostname": "x"}
    return ConnectionRequest(1, user, **{**facts, **more})


def test_a_user_s_domain_is_the_vhost() -> None:
    assert plugins(ON).vhost_policy(opening("alice@example.com")) == VhostPolicy(vhost="example.com")
    assert plugins(ON).vhost_policy(opening("a@b@example.com")) == VhostPolicy(vhost="example.com")


@pytest.mark.parametrize("user", ["alice", "alice@", "@example.com", ""])
def test_a_user_without_a_domain_is_denied(user: str) -> None:
    answer = plugins(ON).vhost_policy(opening(user))
    assert answer is not None
    assert answer.denied


def test_a_name_that_is_not_proven_is_none() -> None:
    answer = plugins(ON).vhost_policy(opening("alice@example.com", authenticated=False))
    assert answer is not None
    assert answer.denied


@pytest.mark.parametrize("more", [{"outgoing": True}, {"role": "inter-router"}])
def test_routers_and_outgoing_connections_are_left_to_the_configuration(more: dict[str, Any]) -> None:
    assert plugins(ON).vhost_policy(opening("alice@example.com", **more)) is None


def test_without_the_setting_the_plugin_chooses_no_vhost() -> None:
    assert plugins({}).vhost_policy(opening("alice@example.com")) is None


@pytest.mark.parametrize("settings", [{"userDomains": True}, {"userDomain": "yes"}])
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationRefused, match="userDomain"):
        plugins(settings)
