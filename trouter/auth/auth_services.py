"""The authentication services of a router: the configured ones, and those that plugins choose for a listener."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from trouter.config import AuthServicePluginEntity
from trouter.hooks import AuthService, AuthServiceFacts, ListenerFacts, Plugins
from trouter.net.parts import Step
from trouter.telemetry.recorder import Recorder
from trouter.tls.secure import Secure

if TYPE_CHECKING:
    from .auth_service import RemoteAuthService, ServiceTerms

#: Listeners whose service is cached; listeners may change any number of times.
MAX_KNOWN_LISTENERS: Final = 1024


class AuthServices:
    """The authentication services by name."""

    def __init__(self, secure: Secure, recorder: Recorder, *, secure_defaults: bool = False) -> None:
        self._secure = secure
        self._secure_defaults = secure_defaults
        self._recorder = recorder
        self._services: Mapping[str, RemoteAuthService] = {}
        self._chosen: dict[ListenerFacts, AuthService | None] = {}

    def of(self, listener: ListenerFacts, plugins: Plugins) -> AuthService | None:
        """Return the service for the peers of ``listener``, which names one; None refuses every peer."""
        if listener not in self._chosen:
            if len(self._chosen) >= MAX_KNOWN_LISTENERS:
                self._chosen.clear()
            remote = self._services.get(listener.auth_service)
            self._chosen[listener] = None if remote is None else plugins.auth_service(listener, remote)
        return self._chosen[listener]

    def prepare(self, entities: Iterable[AuthServicePluginEntity]) -> Step:
        """Return the prepared change to these services; an unchanged service keeps its state."""
        services: dict[str, RemoteAuthService] = {}
        for entity in entities:
            if not entity.address[0]:  # reported as not supported
                continue
            terms = _terms(entity, secure=self._secure_defaults)
            known = self._services.get(entity.name)
            services[entity.name] = known if known is not None and known.terms == terms else self._remote(terms)
        return Step(partial(self._take_over, services))

    def _remote(self, terms: ServiceTerms) -> RemoteAuthService:
        from .auth_service import RemoteAuthService  # noqa: PLC0415  # a room that most routers do without

        return RemoteAuthService(terms, self._secure, self._recorder)

    def _take_over(self, services: Mapping[str, RemoteAuthService]) -> None:
        """Use these services from now on; logins under way with others continue."""
        if services != self._services:
            self._chosen.clear()
        self._services = services


def _terms(entity: AuthServicePluginEntity, *, secure: bool) -> ServiceTerms:
    from .auth_service import ServiceTerms  # noqa: PLC0415

    host, port = entity.address
    facts = AuthServiceFacts(
        name=entity.name,
        host=host,
        port=port,
        realm=entity.realm,
        timeout_s=float(entity.timeout_seconds),
        cache_s=float(entity.cache_seconds),
    )
    return ServiceTerms(
        facts,
        entity.ssl_profile or "",
        verify_hostname=entity.verify_hostname,
        lenient=not secure,
        allow_insecure_plain=entity.allow_insecure_plain,
        authz_optional=entity.authz_optional,
    )
