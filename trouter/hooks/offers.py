"""Chooses the mechanisms that a listener offers to a peer, and finds those that it names and cannot offer."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from trouter.hooks.facts import CLEARTEXT_MECHANISMS, ListenerFacts, PeerFacts

#: Without saslMechanisms, these come after all others, in this order.
_WEAKNESS: Final = {
    "DIGEST-MD5": 1,
    "CRAM-MD5": 1,
    "OAUTHBEARER": 2,
    "XOAUTH2": 3,
    "PLAIN": 4,
    "LOGIN": 5,
    "ANONYMOUS": 6,
}
#: The mechanism for peers that are authenticated below SASL already.
_EXTERNAL: Final = "EXTERNAL"
#: Mechanisms that a listener may name, with a warning, even if no plugin serves them: the plugin or its users may come
#: later. Other names that no plugin serves are mistakes, also mechanisms that need software of the site, as GSSAPI.
KNOWN: Final = frozenset({
    "ANONYMOUS", "EXTERNAL", "PLAIN", "LOGIN", "CRAM-MD5", "DIGEST-MD5", "NTLM", "OTP", "SRP", "OAUTHBEARER", "XOAUTH2",
    *(f"SCRAM-SHA-{size}{end}" for size in (1, 224, 256, 384, 512) for end in ("", "-PLUS")),
})  # fmt: skip
#: Ends the names of mechanisms that are bound to the channel below them (RFC 5801).
_BOUND: Final = "-PLUS"

log = logging.getLogger("trouter.PLUGIN")


class Offer(NamedTuple):
    """The mechanisms of a listener; those that it cannot offer, as two plugins or none serve them; unknown ones."""

    mechanisms: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


NO_OFFER: Final = Offer()


def offer_of(listener: ListenerFacts, servers: dict[str, list[str]]) -> Offer:
    """Return the offer of ``listener``; ``servers`` has the plugins that serve each mechanism. Conflicts are logged."""
    if listener.authenticate_peer:
        servers.pop("ANONYMOUS", None)
    if not listener.sasl_mechanisms:
        wanted = sorted(servers, key=lambda mechanism: _WEAKNESS.get(mechanism, 0))
    else:
        wanted = list(dict.fromkeys(mechanism.upper() for mechanism in listener.sasl_mechanisms))
    unserved = tuple(mechanism for mechanism in wanted if mechanism not in servers)
    unknown = tuple(
        f"listener {listener.name}: saslMechanisms has {mechanism}, which no plugin serves"
        + (_hint(mechanism, servers) or "; leave it out, or configure a plugin that serves it")
        for mechanism in unserved
        if mechanism not in KNOWN
    )
    conflicts = tuple(
        f"listener {listener.name}: {mechanism} is served by {' and by '.join(servers[mechanism])} at once; "
        "configure one of them"
        for mechanism in wanted
        if len(servers.get(mechanism, ())) > 1
    )
    for conflict in conflicts:
        log.error("%s; the mechanism is not offered", conflict)
    offered = tuple(mechanism for mechanism in wanted if len(servers.get(mechanism, ())) == 1)
    return Offer(offered, conflicts, unserved, unknown)


def offered_to(peer: PeerFacts, mechanisms: Sequence[str]) -> tuple[str, ...]:
    """Return the ``mechanisms`` to advertise to ``peer``: none that would expose a secret or cannot work.

    Without TLS there is no channel to bind to, and no client certificate.
    """
    known = peer.tls is not None and bool(peer.tls.user)
    return tuple(
        mechanism
        for mechanism in mechanisms
        if (peer.may_send_password or mechanism not in CLEARTEXT_MECHANISMS)
        and (peer.channel_bindings or not mechanism.endswith(_BOUND))
        and (known or mechanism != _EXTERNAL)
    )


def relayed_to(peer: PeerFacts, offered: Sequence[str]) -> tuple[str, ...]:
    """Return the mechanisms of a service to advertise to ``peer``, in the service's order.

    Left out are mechanisms that the listener does not list, ANONYMOUS where authentication is required, and those that
    would expose a secret. EXTERNAL and channel binding are never offered: the service sees the router's channel, not
    the peer's.
    """
    listener = peer.listener
    wanted = {mechanism.upper() for mechanism in listener.sasl_mechanisms}
    return tuple(
        mechanism
        for mechanism in offered
        if (not wanted or mechanism.upper() in wanted)
        and not (mechanism.upper() == "ANONYMOUS" and listener.authenticate_peer)
        and (peer.may_send_password or mechanism.upper() not in CLEARTEXT_MECHANISMS)
        and mechanism.upper() != "EXTERNAL"
        and not mechanism.upper().endswith(_BOUND)
    )


def _hint(mechanism: str, servers: Iterable[str]) -> str:
    near = difflib.get_close_matches(mechanism, [*servers, *sorted(KNOWN)], 1)
    return f", did you mean {near[0]}?" if near else ""
