"""secureDefaults: what is not given is what is secure, in a file and through management."""

from __future__ import annotations

import pytest

from trouter.config import Configuration, ConfigurationError, created, load, type_named
from trouter.config.strict import unsafe

SECURE = "router { id: R, secureDefaults: yes }\n"


def configured(text: str) -> Configuration:
    return load(text=SECURE + text)


def test_without_it_everything_is_as_in_the_older_router() -> None:
    configuration = load(text="listener { host: 0.0.0.0, port: 0 }\n")
    (listener,) = configuration.listeners
    assert not listener.authenticate_peer
    assert not configuration.policy.enable_vhost_policy


def test_a_listener_on_this_machine_authenticates() -> None:
    (listener,) = configured("listener { host: 127.0.0.1, port: 0 }\n").listeners
    assert listener.authenticate_peer
    assert not listener.require_ssl
    assert listener.healthz


def test_a_listener_elsewhere_requires_tls_too() -> None:
    (listener,) = configured("sslProfile { name: p }\nlistener { port: 0, sslProfile: p }\n").listeners
    assert listener.authenticate_peer
    assert listener.require_ssl
    assert not listener.healthz
    with pytest.raises(ConfigurationError, match=r"requireSsl|without an sslProfile"):
        configured("listener { port: 0 }\n")


def test_what_is_given_counts_and_is_told() -> None:
    text = "listener { host: ::1, port: 0, authenticatePeer: no, stripAnnotations: no }\npolicy { enableVhostPolicy: no }\n"
    configuration = configured(text)
    (listener,) = configuration.listeners
    assert not listener.authenticate_peer
    told = {f"{finding.section}.{finding.key}" for finding in unsafe(configuration)}
    assert told == {"listener.authenticatePeer", "listener.stripAnnotations", "policy.enableVhostPolicy"}


@pytest.mark.parametrize("policy", ["", "policy { maxConnections: 10 }\n"])
def test_the_policy_holds_whether_it_has_a_section_or_not(policy: str) -> None:
    configuration = configured(f"{policy}vhost {{ hostname: a }}\n")
    assert configuration.policy.enable_vhost_policy
    assert not [warning for warning in configuration.warnings if "holds nobody" in warning.message]


def test_management_is_held_to_it_too() -> None:
    configuration = configured("listener { name: l, host: ::1, port: 0 }\n")
    kind = type_named("listener")
    assert kind is not None
    _, entity = created(configuration, kind, "new", {"host": "::1", "port": "0", "http": True})
    assert entity.authenticate_peer  # type: ignore[attr-defined]
