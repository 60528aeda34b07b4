"""A new SASL mechanism is its plugin alone: what protects it follows from what the plugin declares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from trouter.config import load
from trouter.config.findings import evaluate
from trouter.hooks import ListenerFacts, Mechanism, PeerFacts, Plugins, TlsFacts, hookimpl
from trouter.mechanisms import STANDARD

OPEN = ListenerFacts("here", "", "amqp")
CERTIFIED = TlsFacts("TLSv1.3", "X", user="ann")
IN_CLEAR = Mechanism("x-secret", in_clear=True, weakness=3)


def serving(*mechanisms: str) -> Plugins:
    class Serving:
        @hookimpl
        def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
            return mechanisms

    return Plugins([Serving])


def peer_of(listener: ListenerFacts = OPEN, *, encrypted: bool = False, tls: TlsFacts | None = None) -> PeerFacts:
    return PeerFacts(1, listener, "192.0.2.1", 1, encrypted=encrypted, loopback=False, tls=tls)


def test_a_mechanism_that_sends_its_secret_is_offered_where_a_password_may_cross() -> None:
    plugins = serving(IN_CLEAR)
    assert plugins.sasl_mechanisms_for(peer_of()) == ()
    assert plugins.sasl_mechanisms_for(peer_of(encrypted=True)) == ("X-SECRET",)


def test_a_mechanism_by_certificate_is_offered_to_a_peer_with_one() -> None:
    plugins = serving(Mechanism("X-CARD", by_certificate=True))
    assert plugins.sasl_mechanisms_for(peer_of(encrypted=True)) == ()
    assert plugins.sasl_mechanisms_for(peer_of(encrypted=True, tls=CERTIFIED)) == ("X-CARD",)


def test_a_mechanism_that_proves_no_user_is_not_offered_where_authentication_is_required() -> None:
    plugins = serving(Mechanism("X-GUEST", anonymous=True))
    assert plugins.sasl_mechanisms(OPEN) == ("X-GUEST",)
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp", authenticate_peer=True)) == ()


def test_mechanisms_are_offered_by_their_strength() -> None:
    plugins = serving("ANONYMOUS", IN_CLEAR, "PLAIN", "X-STRONG")
    assert plugins.sasl_mechanisms(OPEN) == ("X-STRONG", "X-SECRET", "PLAIN", "ANONYMOUS")


def test_a_mechanism_that_sends_its_secret_is_among_the_findings(tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_text("listener { port: 5672 }\n")
    configuration = load(file)
    points = {served: {each.point for each in evaluate(configuration, serving(served))} for served in ("X", IN_CLEAR)}
    assert points[IN_CLEAR] - points["X"] == {"passwords-in-clear", "one-address-many-logins"}
    assert points["X"] - points[IN_CLEAR] == {"require-tls"}


@pytest.mark.parametrize("name", [each for each in STANDARD.values() if each.in_clear])
def test_no_plugin_takes_away_what_protects_a_standard_mechanism(name: str) -> None:
    assert serving(Mechanism(name, in_clear=False)).sasl_mechanisms_for(peer_of()) == ()
