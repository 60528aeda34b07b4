"""Which mechanisms a listener offers to which peer, and which of those that it names cannot be offered."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from trouter.hooks.facts import CLEARTEXT_MECHANISMS, ListenerFacts, PeerFacts

#: Where saslMechanisms is not configured, these come after all others, in this order.
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
#: Mechanisms that may be named where nothing serves them: with a warning, for the plugin or its users come later. What
#: is neither here nor served is a mistake, and so is a mechanism that takes the site's own software, such as GSSAPI.
KNOWN: Final = frozenset({
    "ANONYMOUS", "EXTERNAL", "PLAIN", "LOGIN", "CRAM-MD5", "DIGEST-MD5", "NTLM", "OTP", "SRP", "OAUTHBEARER", "XOAUTH2",
    *(f"SCRAM-SHA-{size}{end}" for size in (1, 224, 256, 384, 512) for end in ("", "-PLUS")),
})  # fmt: skip
#: Ends the names of mechanisms that are bound to the channel below them (RFC 5801).
_BOUND: Final = "-PLUS"

log = logging.getLogger("trouter.PLUGIN")


class Offer(NamedTuple):
    """What a listener advertises, and what it cannot: two plugins would serve it, no plugin does, or it is unknown."""

    mechanisms: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


NO_OFFER: Final = Offer()


def offer_of(listener: ListenerFacts, servers: dict[str, list[str]]) -> Offer:
    """Return what ``listener`` offers where ``servers`` names, for each mechanism, the plugins that serve it."""
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
    """Return the part of ``mechanisms`` to advertise to ``peer``: none that shows a secret on its wire or cannot be.

    Without TLS there is nothing to be bound to, and no client certificate.
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
    """Return what of a service's mechanisms to advertise to ``peer``, in the service's order.

    Not what the listener does not list; nor ANONYMOUS where authentication is required, nor what would show a
    secret on the peer's wire. Never EXTERNAL, nor what is bound to a channel: the service is at the end of another
    one, which is ours.
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
