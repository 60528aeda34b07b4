"""A configuration: all its entities, and how to find one."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, get_args, get_type_hints

from trouter.config.acceptances import Acceptance
from trouter.config.access import host_key
from trouter.config.claims import World, claims
from trouter.config.entities import (
    AddressEntity,
    AuthServicePluginEntity,
    AutoLinkEntity,
    BindingEntity,
    ConnectorEntity,
    ConsoleEntity,
    DummyEntity,
    Entity,
    ExchangeEntity,
    LinkRouteEntity,
    ListenerEntity,
    LogEntity,
    PolicyEntity,
    RecordLogEntity,
    RouterEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.policy_digest import digest_of_policy
from trouter.config.problems import Problem
from trouter.config.schema import camel
from trouter.config.tenants import why_no_tenants
from trouter.config.types import type_named

#: The roles of listeners and connectors for other routers.
ROUTER_ROLES: Final = frozenset({"inter-router", "edge"})
PROVE_ROUTERS: Final = (
    "with secureDefaults other routers must authenticate (authenticatePeer), and use TLS (sslProfile) unless the "
    "listener is on a loopback address; allowInsecureRole lets them in without"
)
NAME_ROUTERS: Final = (
    "with secureDefaults allowedUsers must name the users that are routers, or be `*` if no client can log in here; "
    "allowInsecureRole lets all in without"
)
#: Type -> the secret that its entities need to be put into service.
SECRETS: Final[dict[type[Entity], str]] = {ListenerEntity: "metrics_token", ConnectorEntity: "sasl_password"}
BUILT_IN: Final = "(built-in configuration)"

#: Properties that are computed once for a configuration.
INDEXES: Final = ("entities", "world", "claimed", "_by_identity", "_by_name")


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """All entities of a router, which never change; a change makes another configuration."""

    # The entities of each type, in the order in which they are put into service.
    logs: tuple[LogEntity, ...] = ()
    record_logs: tuple[RecordLogEntity, ...] = ()
    router: RouterEntity
    policy: PolicyEntity = dataclasses.field(default_factory=PolicyEntity)
    ssl_profiles: tuple[SslProfileEntity, ...] = ()
    auth_services: tuple[AuthServicePluginEntity, ...] = ()
    addresses: tuple[AddressEntity, ...] = ()
    link_routes: tuple[LinkRouteEntity, ...] = ()
    auto_links: tuple[AutoLinkEntity, ...] = ()
    exchanges: tuple[ExchangeEntity, ...] = ()
    bindings: tuple[BindingEntity, ...] = ()
    vhosts: tuple[VhostEntity, ...] = ()
    consoles: tuple[ConsoleEntity, ...] = ()
    dummies: tuple[DummyEntity, ...] = ()
    connectors: tuple[ConnectorEntity, ...] = ()
    listeners: tuple[ListenerEntity, ...] = ()
    #: The source of the configuration: a path, or a name in parentheses.
    source: str = BUILT_IN
    #: Warnings to log: old names, attributes without effect, parts that are not served, doubtful values.
    warnings: tuple[Problem, ...] = ()
    #: Findings that the operator accepts.
    acceptances: tuple[Acceptance, ...] = ()

    @cached_property
    def entities(self) -> tuple[Entity, ...]:
        """All entities, in the order in which they are put into service."""
        return tuple(entity for field in HOLDS for entity in self.held(field))

    def held(self, field: str) -> tuple[Entity, ...]:
        """Return the entities in a field, also a single one as a tuple."""
        value = getattr(self, field)
        return (value,) if field in ONE_ONLY else value

    def of(self, short: str) -> tuple[Entity, ...]:
        """Return the entities of a type, by its short or its full name."""
        kind = type_named(short)
        field = None if kind is None or kind.entity is None else FIELDS.get(kind.entity)
        return () if field is None else self.held(field)

    def find(self, identity: str) -> Entity | None:
        return self._by_identity.get(identity)

    def by_name(self, name: str) -> Entity | None:
        """Return the entity of this name, None without one; configured routing, with separate names, comes last."""
        return self._by_name.get(name)

    def ssl_profile(self, name: str | None) -> SslProfileEntity | None:
        """Return the sslProfile of a name, None without one."""
        return self._profiles.get(name or "")

    def vhosts_called(self, name: str) -> frozenset[str]:
        """Return the host name of the vhost that has ``name`` for its host name or an alias; empty without one."""
        return self._vhosts_called.get(host_key(name), frozenset())

    @cached_property
    def vhost_names(self) -> frozenset[str]:
        """The host names of all vhosts."""
        return frozenset(vhost.hostname for vhost in self.vhosts)

    def unserved(self, entity: Entity) -> tuple[str, ...]:
        """Return the reasons in this configuration why an entity is not put into service; none if it is."""
        reasons: tuple[str, ...] = (entity.type.unserved,) if entity.type.unserved else ()
        secret = SECRETS.get(type(entity))
        if secret is not None and (held := getattr(entity, secret)) is not None and held.fault:
            reasons += (f"{camel(secret)}: {held.fault}",)
        if isinstance(entity, ListenerEntity | ConnectorEntity):
            known = self._profiles
            named = (entity.ssl_profile or "", *(entity.sni_profiles if isinstance(entity, ListenerEntity) else ()))
            reasons += tuple(f"there is no sslProfile '{name}'" for name in named if name and name not in known)
        if isinstance(entity, AuthServicePluginEntity) and not entity.address[0]:
            reasons += ("it has no host",)
        if isinstance(entity, ListenerEntity):
            policy, secure = self.policy.enable_vhost_policy, self.router.secure_defaults
            reason = why_no_tenants(partial(getattr, entity), policy, secure)
            reasons += (reason,) if reason else ()
            if self.router.secure_defaults and entity.role in ROUTER_ROLES:
                unproven = not (entity.proves_routers or entity.allow_insecure_role)
                reasons += (f"role {entity.role}: {PROVE_ROUTERS}",) if unproven else ()
                free = entity.role == "inter-router" or not policy  # no vhost says who may be an edge router
                unnamed = free and entity.allowed_users is None and not entity.allow_insecure_role
                reasons += (NAME_ROUTERS,) if unnamed else ()
        return reasons

    @cached_property
    def world(self) -> World:
        router, policy = self.router, self.policy
        return World(
            mode=router.mode,
            patterns=policy.enable_vhost_name_patterns,
            vhost_policy=policy.enable_vhost_policy,
            secure=router.secure_defaults,
            log_dir=router.log_dir,
            methods={exchange.name: exchange.match_method for exchange in self.exchanges},
        )

    @cached_property
    def policy_digest(self) -> str:
        """The digest of the policy and its vhosts."""
        return digest_of_policy(self.policy, self.vhosts)

    @cached_property
    def claimed(self) -> dict[Hashable, Entity]:
        """Unique key -> the entity that has it; for reading only."""
        return {key: entity for entity in self.entities for key in keys_of(entity, self.world)}

    def with_entity(self, entity: Entity) -> Configuration:
        """Return a copy with one more entity."""
        return self._changed((*self._alike(entity), entity), None, entity)

    def without(self, entity: Entity) -> Configuration:
        """Return the configuration without an entity; an exchange takes its bindings along."""
        left = self
        if isinstance(entity, ExchangeEntity):
            for binding in self.bindings:
                if binding.exchange_name == entity.name:
                    left = left.without(binding)
        return left._changed((one for one in self._alike(entity) if one is not entity), entity, None)

    def with_other(self, old: Entity, new: Entity) -> Configuration:
        """Return the configuration with one entity in the place of another of its type."""
        return self._changed((new if one is old else one for one in self._alike(old)), old, new)

    def with_warnings(self, warnings: Iterable[Problem]) -> Configuration:
        """Return the configuration with these warnings in place of its own."""
        changed = dataclasses.replace(self, warnings=tuple(warnings))
        changed.__dict__.update({name: self.__dict__[name] for name in INDEXES if name in self.__dict__})
        return changed

    def _alike(self, entity: Entity) -> tuple[Entity, ...]:
        return self.held(FIELDS[type(entity)])

    def _changed(self, entities: Iterable[Entity], gone: Entity | None, come: Entity | None) -> Configuration:
        """Return a copy with other entities of one type; it reuses the indexes, so one change of many stays cheap."""
        field = next(FIELDS[type(entity)] for entity in (come, gone) if entity is not None)
        held = tuple(entities)
        changes: dict[str, Any] = {field: held[0] if field in ONE_ONLY else held}
        changed = dataclasses.replace(self, **changes)
        if changed.world == self.world:
            claimed, identities = dict(self.claimed), dict(self._by_identity)
            if gone is not None:
                identities.pop(gone.identity, None)
                for key in keys_of(gone, self.world):
                    claimed.pop(key, None)
            if come is not None:
                identities[come.identity] = come
                claimed.update(dict.fromkeys(keys_of(come, self.world), come))
            changed.__dict__.update(claimed=claimed, _by_identity=identities)
        return changed

    @cached_property
    def _profiles(self) -> dict[str, SslProfileEntity]:
        return {profile.name: profile for profile in self.ssl_profiles}

    @cached_property
    def _vhosts_called(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for vhost in self.vhosts:
            for key in map(host_key, (vhost.hostname, *vhost.aliases)):
                found[key] = found.get(key, frozenset()) | {vhost.hostname}
        return found

    @cached_property
    def _by_identity(self) -> dict[str, Entity]:
        return {entity.identity: entity for entity in self.entities}

    @cached_property
    def _by_name(self) -> dict[str, Entity]:
        ordered = sorted(self.entities, key=lambda entity: not entity.type.core)
        return {entity.name: entity for entity in ordered if entity.name}


def keys_of(entity: Entity, world: World) -> list[Hashable]:
    """Return the unique keys of an entity, its name and its identity among them."""
    keys = [claim.key for claim in claims(entity.type, partial(getattr, entity), world)]
    return keys if entity.type.core else [*keys, ("name", "agent", entity.identity)]


def entities_of(configuration: type) -> Iterator[tuple[str, type[Entity], bool]]:
    """Yield each field that holds entities, with their type, and whether it holds one only."""
    for name, hint in get_type_hints(configuration).items():
        kind = next(iter(get_args(hint)), hint)
        if isinstance(kind, type) and issubclass(kind, Entity):
            yield name, kind, kind is hint


#: Field of a configuration -> the type of its entities, in the order in which these are put into service.
HOLDS: Final = {name: kind for name, kind, _ in entities_of(Configuration)}
FIELDS: Final = {kind: name for name, kind in HOLDS.items()}
ONE_ONLY: Final = frozenset(name for name, _, only in entities_of(Configuration) if only)
