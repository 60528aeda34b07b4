"""The answer to a peer's attach: accepted, with or without credit, or refused with an error (routing.md 1.2-1.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.wire.performatives import Attach, Coordinator, Error, Source, Target

from . import trunking
from .addresses import (
    AREA,
    EDGE,
    FALLBACK_PHASE,
    MAX_ADDRESS_BYTES,
    MOBILE,
    ROUTER,
    TEMPORARY_KEY,
    UPLINK_KEY,
    Address,
    temporary_source,
    temporary_target,
    temporary_token,
)
from .edge.downlinks import EdgeRouterPort, accept_downlink, accept_tracking, serve
from .edge.protocol import DOWNLINK, SERVICES, TRACKING
from .entry import AddressEntry
from .links import LinkOptions, attach_link, make_incoming, make_outgoing
from .modes import SETTLED, granted_modes
from .refusals import LINK_DENIED, NO_ROUTE, AttachRefused
from .routed import carry, carry_up
from .routerport import RouterPort
from .routes import dynamic_address
from .table import TENANT_SERVICES, AddressTable, answer_of, is_made_elsewhere
from .tenants import Tenant
from .terms import DEFAULT_CAPACITY, PeerTerms

__all__ = ["PeerTerms", "attach"]

ROUTER_CAPABILITIES: Final = frozenset({"qd.router", "qd.router-data", DOWNLINK})
FALLBACK: Final = ("qd.fallback",)
WAYPOINTS: Final = {"qd.waypoint": 1} | {f"qd.waypoint.{number}": number for number in range(1, 10)}

NOT_FOUND: Final = Error("amqp:not-found", "Node not found")
FORBIDDEN: Final = Error("qd:forbidden", "Connectivity to the node is forbidden")
NO_COORDINATOR: Final = Error(
    "amqp:precondition-failed",
    "The router can't coordinate transactions by itself, a linkRoute to a coordinator must be configured to use "
    "transactions.",
)
TOO_LONG: Final = Error("amqp:invalid-field", f"addresses are limited to {MAX_ADDRESS_BYTES} bytes")
UNFIT: Final = Error("amqp:invalid-field", "an address must not contain control characters")


def attach(router: EdgeRouterPort, link: Link, terms: PeerTerms, *, goes_up: bool = False) -> Error | None:
    """Answer the attach that created ``link``, and route the link if it is accepted; return the error if it is not.

    A link that ``goes_up`` is routed over an edge router's uplink.
    """
    wanted = link.remote_attach
    assert wanted is not None  # noqa: S101 - the peer's attach created the link
    try:
        if terms.trunk is not None and trunking.capability_of(wanted):
            refused = trunking.answer(router, link, terms.trunk, wanted, terms.link_capacity or DEFAULT_CAPACITY)
            if refused is not None:
                raise AttachRefused(refused)
            return None
        if terms.trunk is not None and terms.trunk.control_in is None:
            raise AttachRefused(trunking.CONNECTION_ROLE)
        if goes_up:
            carry_up(router, link, terms, wanted.source if wanted.role else wanted.target)
        elif isinstance(link, IncomingLink):
            _accept_incoming(router, link, wanted, terms)
        elif isinstance(link, OutgoingLink):
            _accept_outgoing(router, link, wanted, terms)
    except AttachRefused as refusal:
        if isinstance(wanted.target, Coordinator):
            link.refuse(refusal.error, None, wanted.source)
        else:
            link.refuse(refusal.error, None if link.incoming else wanted.target)
        return refusal.error
    return None


def _accept_incoming(router: EdgeRouterPort, link: IncomingLink, wanted: Attach, terms: PeerTerms) -> None:
    target = wanted.target
    if isinstance(target, Coordinator):
        if carry(router, link, terms, target):
            return
        raise AttachRefused(NO_COORDINATOR)
    if target is not None and not isinstance(target, Target):
        raise AttachRefused(NO_ROUTE)
    entry = None
    target = target or Target()
    _check_capabilities(target.capabilities)
    if isinstance(target.address, str) and target.address in SERVICES and not target.dynamic and terms.tenant is None:
        serve(router, link, wanted, terms, str(target.address))
        return
    if _is_routed(router, link, target, terms):
        return
    if target.dynamic or target.address not in (None, ""):
        target, text = _name_target(target, router.table, terms.tenant)
        entry = _find_entry(router, text, target.capabilities, terms, outgoing=False, dynamic=target.dynamic)
    options = LinkOptions(
        terms=terms,
        entry=entry,
        to_override=None if entry is None else _override(router.table, str(target.address), entry, terms.tenant),
        is_fallback=target.capabilities == FALLBACK,
    )
    incoming = make_incoming(router, link, options)
    if entry is not None:
        entry.add_sender(incoming)
    attach_link(link, _without_filter(wanted.source), target, **granted_modes(wanted))
    incoming.account.grant_first_credit()
    edge = router.edges.peers.get(terms.connection_number)
    if edge is not None and entry is not None:
        router.edges.add_sender(edge, entry)


def _accept_outgoing(router: EdgeRouterPort, link: OutgoingLink, wanted: Attach, terms: PeerTerms) -> None:
    source = wanted.source
    if not isinstance(source, Source):
        raise AttachRefused(NO_ROUTE)
    edge = router.edges.peers.get(terms.connection_number)
    if edge is not None and source.capabilities == (DOWNLINK,):
        accept_downlink(router, link, wanted, source, terms)
        return
    _check_capabilities(source.capabilities)
    if edge is not None and source.address == TRACKING:
        accept_tracking(router, link, wanted, edge)
        return
    if _is_routed(router, link, source, terms):
        return
    if source.dynamic:
        _refuse_routed_dynamic(source.dynamic_node_properties)
        table = router.table
        token = _new_token(table, terms.tenant)
        source = replace(source, address=temporary_source(table.router_id, token, mode=table.mode))
    if source.address in (None, ""):
        raise AttachRefused(NO_ROUTE)
    text = _address_text(source.address)
    entry = _find_entry(router, text, source.capabilities, terms, outgoing=True, dynamic=source.dynamic)
    sends_settled = wanted.snd_settle_mode == SETTLED
    outgoing = make_outgoing(router, link, LinkOptions(terms=terms, entry=entry, sends_settled=sends_settled))
    attach_link(link, _without_filter(source), wanted.target, **granted_modes(wanted))
    entry.add_consumer(outgoing)
    if link.credit > 0:
        outgoing.on_credit(link)


def _is_routed(router: RouterPort, link: Link, terminus: Source | Target, terms: PeerTerms) -> bool:
    """Return whether the link is routed to a container as a whole; AttachRefused."""
    if terminus.address not in (None, "") and not terminus.dynamic:
        text = _address_text(terminus.address)
        _check_open(router, router.table.parse(text, tenant=terms.tenant), terms, outgoing=not link.incoming)
    return carry(router, link, terms, terminus)


def _name_target(target: Target, table: AddressTable, tenant: Tenant | None) -> tuple[Target, str]:
    """Return the target, with an address if it is dynamic, and the address."""
    if target.dynamic:
        _refuse_routed_dynamic(target.dynamic_node_properties)
        target = replace(target, address=temporary_target(_new_token(table, tenant)))
    return target, _address_text(target.address)


def _new_token(table: AddressTable, tenant: Tenant | None) -> str:
    """Return the token of a new dynamic address of ``tenant``; None for a client without a tenant."""
    return temporary_token() if tenant is None or table.marks is None else table.marks.make_token(tenant.space)


def _address_text(address: object) -> str:
    if not isinstance(address, str):
        raise AttachRefused(NO_ROUTE)
    if len(address.encode()) > MAX_ADDRESS_BYTES:
        raise AttachRefused(TOO_LONG)
    if any(character < " " for character in address):
        raise AttachRefused(UNFIT)
    return address


def _override(table: AddressTable, text: str, entry: AddressEntry, tenant: Tenant | None) -> str:
    """Return the address for other routers; reserved ones are the same for all tenants, except dynamic ones."""
    if tenant is None:
        return text
    if entry.key.startswith(MOBILE):
        return tenant.qualify(text)
    address = table.parse(text, tenant=tenant)
    return answer_of(tenant, address) if is_made_elsewhere(address) else text


def _find_entry(
    router: RouterPort, text: str, capabilities: tuple[str, ...], terms: PeerTerms, *, outgoing: bool, dynamic: bool
) -> AddressEntry:
    """Return the entry for a terminus, created if necessary; AttachRefused."""
    table = router.table
    tenant = terms.tenant
    address = table.parse(text, tenant=tenant)
    if not dynamic:
        _check_open(router, address, terms, outgoing)
    if address.rest in SERVICES:
        raise AttachRefused(None)
    if outgoing and (address.letter in (ROUTER, AREA, EDGE) or address.key == UPLINK_KEY):
        raise AttachRefused(NO_ROUTE)
    treatment = "balanced" if dynamic or address.letter == EDGE else None
    if address.letter == ROUTER or address.key == UPLINK_KEY:
        treatment = "closest"
    phase = _phase(capabilities, outgoing)
    if terms.via_edge and capabilities == FALLBACK:
        phase = FALLBACK_PHASE
    entry = table.obtain_entry(text, outgoing, phase, treatment, tenant)
    if entry is None:
        raise AttachRefused(NOT_FOUND)
    if dynamic:
        table.give_to_tenant(entry, tenant)
        entry.creator = terms.connection_number if outgoing else -1
    return entry


def _check_open(router: RouterPort, address: Address, terms: PeerTerms, outgoing: bool) -> None:
    """Raise AttachRefused for an address that is not the tenant's, or is another connection's dynamic one."""
    if terms.tenant is not None and not router.table.is_open_to(terms.tenant, address):
        raise AttachRefused(LINK_DENIED)
    if not outgoing:
        return
    if terms.tenant is not None and address.text in TENANT_SERVICES:
        raise AttachRefused(LINK_DENIED)
    marks = router.table.marks
    if marks is not None and is_made_elsewhere(address) and marks.is_of_worker(address):
        raise AttachRefused(LINK_DENIED)
    if address.key.startswith(TEMPORARY_KEY):
        entry = router.table.entries.get(address.key)
        if entry is None or entry.creator != terms.connection_number:
            raise AttachRefused(LINK_DENIED)


def _phase(capabilities: tuple[str, ...], outgoing: bool) -> str | None:
    """Return the phase that a waypoint or fallback capability asks for (1.3c); None for the configured one."""
    for capability in capabilities:
        ordinal = WAYPOINTS.get(capability)
        if ordinal is not None:
            return str(ordinal - 1 if outgoing else ordinal)
    if outgoing and capabilities == FALLBACK:
        return FALLBACK_PHASE
    return None


def _check_capabilities(capabilities: tuple[str, ...]) -> None:
    if not ROUTER_CAPABILITIES.isdisjoint(capabilities):
        raise AttachRefused(FORBIDDEN)


def _refuse_routed_dynamic(properties: object) -> None:
    """Raise AttachRefused for a dynamic terminus that names a link-route address: no such route matched (1.3a)."""
    if dynamic_address(properties) is not None:
        raise AttachRefused(NO_ROUTE)


def _without_filter(source: object) -> object:
    """Return the source as the router serves it: a filter that is not echoed is not applied (3.5.3)."""
    return replace(source, filter=None) if isinstance(source, Source) and source.filter else source
