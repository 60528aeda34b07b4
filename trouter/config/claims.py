"""Values that must be unique among entities, and references from one entity to another."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trouter.config.access import host_key, host_pattern
from trouter.config.entities import (
    AddressEntity,
    AuthServicePluginEntity,
    BindingEntity,
    ConnectorEntity,
    ExchangeEntity,
    ListenerEntity,
    LogEntity,
    RecordLogEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.schema import EntityType
from trouter.core.patterns import ADDRESSES, PatternError, prefix_pattern

#: The value of a field of a draft or an entity; None when it has no usable one.
Get = Callable[[str], Any]


#: Qpid Dispatch's text about a second route, exchange or address of one name.
NAME_CONFLICT: Final = "Name conflicts with an existing entity"
MERGE: Final = "make one section of the two"
ANOTHER_HOST: Final = "leave one of the two out"


@dataclass(frozen=True, slots=True)
class Claim:
    """A unique value, `key`, of one entity; the other fields are the error for a second entity with that key."""

    key: Hashable
    message: str
    field: str
    cure: str


@dataclass(frozen=True, slots=True)
class World:
    """Properties of the whole configuration that rules about one entity need."""

    mode: str = "standalone"
    #: Names of vhosts are patterns.
    patterns: bool = False
    #: The vhost policy is enabled.
    vhost_policy: bool = False
    #: secureDefaults is on.
    secure: bool = False
    #: The only folder for log files, None for any.
    log_dir: str | None = None
    #: Name of an exchange -> its match method.
    methods: Mapping[str, str] = dataclasses.field(default_factory=dict)


def claims(kind: EntityType, get: Get, world: World) -> Iterator[Claim]:
    """Yield the unique values of an entity."""
    if kind.singleton:
        yield Claim(("only", kind.short), "there is one already", "", MERGE)
    if name := get("name"):
        scope = kind.short if kind.core else "agent"
        if kind.entity is BindingEntity:
            scope = f"{scope} {get('exchange_name')}"  # names of bindings are unique within their exchange
        message = NAME_CONFLICT if kind.core else "this name is used already"
        message = NAME_MESSAGES.get(kind.entity, message)
        yield Claim(("name", scope, str(name)), message, "name", "give it another name")
    if kind.entity in CLAIMS:
        yield from CLAIMS[kind.entity](get, world)


def references(kind: EntityType) -> tuple[tuple[str, EntityType], ...]:
    """Return the fields that hold names of other entities, with the types of those."""
    return REFERENCES.get(kind.entity, ())


def _listener(get: Get, _: World) -> Iterator[Claim]:
    if get("port") not in {None, "0"}:
        key = ("socket", get("host"), get("port"), get("socket_address_family"))
        yield Claim(key, "this host and port belong to a listener already", "port", "give it another port")


def _address(get: Get, _: World) -> Iterator[Claim]:
    for field in ("prefix", "pattern"):
        text = get(field)
        if isinstance(text, str) and text.strip("./"):
            try:
                pattern = ADDRESSES.parse(prefix_pattern(text) if field == "prefix" else text)
            except PatternError:
                return
            yield Claim(("address", pattern), "the same addresses are configured already", field, MERGE)
            return


def _log(get: Get, _: World) -> Iterator[Claim]:
    if get("module"):
        yield Claim(("log", get("module")), "this module has a section already", "module", MERGE)


def _record_log(get: Get, _: World) -> Iterator[Claim]:
    if get("dir"):
        key = ("recordLog", os.path.realpath(get("dir")))
        yield Claim(key, "another section keeps records in this folder", "dir", "give each a folder of its own")


def _exchange(get: Get, _: World) -> Iterator[Claim]:
    if get("address"):
        yield Claim(("exchange", get("address")), "duplicate exchange address", "address", "give it another address")


def _binding(get: Get, _: World) -> Iterator[Claim]:
    if get("exchange_name") and get("next_hop_address"):
        hop = (get("next_hop_address"), get("next_hop_phase"))
        key = ("binding", get("exchange_name"), get("binding_key") or "#", hop)
        yield Claim(key, "Next hop for key already exists", "next_hop_address", "leave one of the two out")


def _vhost(get: Get, world: World) -> Iterator[Claim]:
    names = [("hostname", get("hostname"))] + [("aliases", alias) for alias in get("aliases") or ()]
    for field, name in names:
        if name is None:
            continue
        host = host_key(str(name))
        if world.patterns and (pattern := host_pattern(host)):
            message = "the pattern conflicts with that of a vhost"
            yield Claim(("vhost", pattern), message, field, ANOTHER_HOST)
        else:
            yield Claim(("vhost", host), "this host name belongs to a vhost already", field, ANOTHER_HOST)


CLAIMS: Final[dict[type | None, Callable[[Get, World], Iterator[Claim]]]] = {
    ListenerEntity: _listener,
    AddressEntity: _address,
    LogEntity: _log,
    RecordLogEntity: _record_log,
    ExchangeEntity: _exchange,
    BindingEntity: _binding,
    VhostEntity: _vhost,
}

NAME_MESSAGES: Final[dict[type | None, str]] = {
    ExchangeEntity: "duplicate exchange name",
    BindingEntity: "Duplicate next hop name",
}

REFERENCES: Final[dict[type | None, tuple[tuple[str, EntityType], ...]]] = {
    ListenerEntity: (
        ("ssl_profile", SslProfileEntity.type),
        ("sni_profiles", SslProfileEntity.type),
        ("sasl_plugin", AuthServicePluginEntity.type),
    ),
    ConnectorEntity: (("ssl_profile", SslProfileEntity.type),),
    AuthServicePluginEntity: (("ssl_profile", SslProfileEntity.type),),
    BindingEntity: (("exchange_name", ExchangeEntity.type),),
}
