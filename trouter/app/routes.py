"""The configured link routes and auto links: their changes, applied to the core, and their state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from trouter.config import AutoLinkEntity, LinkRouteEntity
from trouter.core.autolinks import ACTIVE, AutoLink, AutoLinkRule
from trouter.core.patterns import normal_form
from trouter.core.router import Router
from trouter.core.routes import LinkRoute
from trouter.net.parts import Step
from trouter.telemetry.clocks import now_us

#: Seconds between two looks at what is down.
LOOK_S: Final = 1.0


class ConfiguredRoutes:
    """The link routes and auto links of the configuration. ``flush`` writes the output that a change causes."""

    def __init__(self, router: Router, flush: Callable[[], None]) -> None:
        self.router = router
        self.flush = flush
        #: By the entity's identity.
        self.routes: dict[str, tuple[LinkRouteEntity, LinkRoute]] = {}
        self.auto_links: dict[str, tuple[AutoLinkEntity, AutoLink]] = {}
        #: Since when those that are down are, in microseconds since 1970, by the entity's identity.
        self._down_since_us: dict[str, int] = {}

    def prepare(
        self, link_routes: Iterable[LinkRouteEntity], auto_links: Iterable[AutoLinkEntity], *, resumable: bool
    ) -> Step:
        """Return the step that makes exactly these exist; unchanged ones keep their links, as do removed routes."""
        routes = {entity.identity: entity for entity in link_routes}
        autos = {entity.identity: entity for entity in auto_links}
        return Step(partial(self._replace_routes, routes, autos, resumable))

    def _replace_routes(
        self, link_routes: Mapping[str, LinkRouteEntity], auto_links: Mapping[str, AutoLinkEntity], resumable: bool
    ) -> None:
        """Remove routes and auto links that are gone or changed, then add new ones, which were checked when read."""
        router = self.router
        router.routes.resumable = resumable
        for key, (entity, _) in list(self.routes.items()):
            if link_routes.get(key) != entity:
                router.routes.remove(self.routes.pop(key)[1])
        for key, (made_of, _) in list(self.auto_links.items()):
            if auto_links.get(key) != made_of:
                router.auto_links.remove_rule(self.auto_links.pop(key)[1])
        for key, link_route in link_routes.items():
            if key not in self.routes:
                route = route_of(link_route)
                router.routes.add(route, iter(router.containers.matching(route.container_id, route.connection)))
                self.routes[key] = link_route, route
        for key, auto_link in auto_links.items():
            if key not in self.auto_links:
                self.auto_links[key] = auto_link, router.auto_links.add_rule(rule_of(auto_link))
        self.note_states()
        self.flush()

    def note_states(self) -> None:
        """Note since when auto links and link routes are down; to be called every ``LOOK_S`` seconds."""
        known, is_active, now = self._down_since_us, self.router.routes.is_active, now_us()
        down = [key for key, (_, route) in self.routes.items() if not is_active(route)]
        down += [key for key, (_, auto) in self.auto_links.items() if auto.state != ACTIVE]
        self._down_since_us = {key: known.get(key, now) for key in down}

    def down_since_us(self, entity: LinkRouteEntity | AutoLinkEntity, *, up: bool) -> int:
        """Return since when it is down, in microseconds since 1970; 0 if it is ``up``."""
        return 0 if up else self._down_since_us.get(entity.identity) or now_us()

    def status(self, entity: LinkRouteEntity | AutoLinkEntity) -> Mapping[str, object]:
        """Return the state of a link route or auto link; nothing of an auto link that is not in service."""
        if isinstance(entity, LinkRouteEntity):
            _, route = self.routes.get(entity.identity, (None, None))
            active = route is not None and self.router.routes.is_active(route)
            return {
                "operStatus": "active" if active else "inactive",
                "downSince": self.down_since_us(entity, up=active) // 1000 or None,
            }
        _, auto = self.auto_links.get(entity.identity, (None, None))
        if auto is None:
            return {}
        identity = auto.identity
        return {
            "linkRef": str(identity) if identity else None,
            "operStatus": auto.state,
            "lastError": auto.last_error or None,
            "attempts": auto.attempts,
            "downSince": self.down_since_us(entity, up=auto.state == ACTIVE) // 1000 or None,
        }


def route_of(entity: LinkRouteEntity) -> LinkRoute:
    """Return the link route that an entity describes."""
    is_prefix = entity.prefix is not None
    return LinkRoute(
        normal_form(entity.prefix or entity.pattern or "", is_prefix=is_prefix),
        entity.direction,
        is_prefix=is_prefix,
        container_id=entity.container_id or "",
        connection=entity.connection or "",
        add_prefix=entity.add_external_prefix or "",
        del_prefix=entity.del_external_prefix or "",
        name=entity.name,
    )


def rule_of(entity: AutoLinkEntity) -> AutoLinkRule:
    """Return the rule of the auto link that an entity describes."""
    return AutoLinkRule(
        entity.address,
        entity.direction,
        phase=entity.phase,
        container_id=entity.container_id or "",
        connection=entity.connection or "",
        external_address=entity.external_address or "",
        fallback=entity.fallback,
        name=entity.name,
    )
