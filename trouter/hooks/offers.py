"""Chooses the mechanisms that a listener offers to a peer, and finds those that it names and cannot offer."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from trouter.hooks.answers import is_mechanism_list
from trouter.hooks.facts import ListenerFacts, PeerFacts
from trouter.hooks.faults import Faults
from trouter.hooks.registration import Registration
from trouter.mechanisms import STANDARD, Mechanism, mechanism_of

#: Limit of the listeners whose mechanisms are cached.
MAX_KNOWN_LISTENERS: Final = 1024

log = logging.getLogger("trouter.PLUGIN")


class Offer(NamedTuple):
    """The mechanisms of a listener; those that it cannot offer, as two plugins or none serve them; unknown ones."""

    mechanisms: tuple[Mechanism, ...] = ()
    conflicts: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


NO_OFFER: Final = Offer()


class MechanismOffers:
    """The offers of one router's listeners. Plugins list the mechanisms of a listener once."""

    def __init__(self, registered: Registration, faults: Faults) -> None:
        self._registered = registered
        self._faults = faults
        self._known: dict[ListenerFacts, Offer] = {}

    def of(self, listener: ListenerFacts) -> Offer:
        """Return the offer of ``listener``, in which no mechanism is served by two plugins."""
        offer = self._known.get(listener)
        if offer is None:
            if len(self._known) >= MAX_KNOWN_LISTENERS:  # changed listeners would fill it without end
                self._known.clear()
            offer = self._known[listener] = self._query(listener)
        return offer

    def forget(self) -> None:
        """Forget all offers, so that plugins list the mechanisms again."""
        self._known.clear()

    def _query(self, listener: ListenerFacts) -> Offer:
        """Return what the plugins serve of ``listener``; nothing if one of them fails."""
        if listener.auth_service:
            return NO_OFFER  # the service has mechanisms of its own
        servers: dict[Mechanism, list[str]] = {}
        for name in self._registered.origins:
            try:
                answers = self._registered.only(name, "sasl_mechanisms")(listener=listener)
            except Exception as error:  # noqa: BLE001 - whatever it is, it denies
                self._faults.raised("sasl_mechanisms", error, name)
                return NO_OFFER
            for answer in answers:
                if not is_mechanism_list(answer):
                    self._faults.rubbish("sasl_mechanisms", answer, name)
                    return NO_OFFER
                for served in dict.fromkeys(mechanism_of(each) for each in answer):
                    servers.setdefault(served, []).append(name)
        return offer_of(listener, servers)


def offer_of(listener: ListenerFacts, servers: Mapping[Mechanism, list[str]]) -> Offer:
    """Return the offer of ``listener``; ``servers`` has the plugins that serve each mechanism. Conflicts are logged."""
    barred = listener.authenticate_peer
    served: dict[str, Mechanism] = {each: each for each in servers if not (barred and each.anonymous)}
    if not listener.sasl_mechanisms:
        wanted = sorted(served.values(), key=lambda each: each.weakness)
    else:
        named = dict.fromkeys(name.upper() for name in listener.sasl_mechanisms)
        wanted = [served.get(name) or mechanism_of(name) for name in named]
    unserved = tuple(each for each in wanted if each not in served)
    unknown = tuple(
        f"listener {listener.name}: saslMechanisms has {each}, which no plugin serves"
        + (_hint(each, served) or "; leave it out, or configure a plugin that serves it")
        for each in unserved
        if each not in STANDARD
    )
    conflicts = tuple(
        f"listener {listener.name}: {each} is served by {' and by '.join(servers[each])} at once; configure one of them"
        for each in wanted
        if each in served and len(servers[each]) > 1
    )
    for conflict in conflicts:
        log.error("%s; the mechanism is not offered", conflict)
    offered = tuple(each for each in wanted if each in served and len(servers[each]) == 1)
    return Offer(offered, conflicts, unserved, unknown)


def offered_to(peer: PeerFacts, mechanisms: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
    """Return the ``mechanisms`` to advertise to ``peer``: none that would expose a secret or cannot work.

    Without TLS there is no channel to bind to, and no client certificate.
    """
    known = peer.tls is not None and bool(peer.tls.user)
    return tuple(
        each
        for each in mechanisms
        if (peer.may_send_password or not each.in_clear)
        and (peer.channel_bindings or not each.bound)
        and (known or not each.by_certificate)
    )


def relayed_to(peer: PeerFacts, offered: Sequence[str]) -> tuple[str, ...]:
    """Return the mechanisms of a service to advertise to ``peer``, in the service's order.

    Left out are mechanisms that the listener does not list, those that prove no user where authentication is required,
    and those that would expose a secret. Those by certificate or bound to the channel are never offered: the service
    sees the router's channel, not the peer's.
    """
    listener = peer.listener
    wanted = {name.upper() for name in listener.sasl_mechanisms}
    return tuple(
        name
        for name in offered
        if (not wanted or name.upper() in wanted)
        and not ((each := mechanism_of(name)).anonymous and listener.authenticate_peer)
        and (peer.may_send_password or not each.in_clear)
        and not each.by_certificate
        and not each.bound
    )


def _hint(name: str, served: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [*served, *sorted(STANDARD)], 1)
    return f", did you mean {near[0]}?" if near else ""
