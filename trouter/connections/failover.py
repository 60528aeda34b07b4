"""The endpoints that a connector may dial: the configured one, and those that a peer's open named (routing.md 6.6)."""

from __future__ import annotations

from typing import Any, Final

from trouter.config import ConnectorEntity, texts
from trouter.config.schema import BadValue
from trouter.net.dialing import Endpoint

TRIES_EACH: Final = 2
#: Alternates that a peer may name; further ones are ignored.
MAX_ALTERNATES: Final = 64
#: The longest host name, in characters.
MAX_HOST_CHARACTERS: Final = 255


class FailoverList:
    """The endpoints that a connector may dial, in the order of trying, always with the configured one."""

    def __init__(self, configured: Endpoint) -> None:
        self._configured = configured
        self._endpoints = [configured]
        self._tries = 0

    @property
    def current(self) -> Endpoint:
        """Endpoint to try next, or in use."""
        return self._endpoints[0]

    def __len__(self) -> int:
        return len(self._endpoints)

    def __str__(self) -> str:
        return ", ".join(str(endpoint) for endpoint in self._endpoints)

    def note_opened(self) -> None:
        """Note that the current endpoint answered."""
        self._tries = 0

    def note_failed(self) -> None:
        """Note that the current endpoint failed; after the second time, move to the next."""
        self._tries += 1
        if self._tries >= TRIES_EACH:
            self._tries = 0
            self._endpoints.append(self._endpoints.pop(0))

    def apply_server_list(self, listed: object, allowed: frozenset[str] | None = None) -> None:
        """Apply a peer's ``failover-server-list``; ignore it if it is no list; an empty one removes the alternates.

        ``allowed`` are the only hosts, in lower case, besides the configured one that it may name; None for any.
        """
        if not isinstance(listed, list | tuple):
            return
        kept = [self.current, *({self._configured} - {self.current})]
        endpoints = (_endpoint(entry, self._configured.scheme) for entry in listed[:MAX_ALTERNATES])
        known = {(endpoint.host, endpoint.port) for endpoint in kept}

        def may_follow(host: str) -> bool:
            return allowed is None or host.lower() in {self._configured.host.lower(), *allowed}

        for endpoint in endpoints:
            if endpoint is not None and (endpoint.host, endpoint.port) not in known and may_follow(endpoint.host):
                known.add((endpoint.host, endpoint.port))
                kept.append(endpoint)
        self._endpoints = kept


def allowed_hosts(entity: ConnectorEntity, *, has_certificate: bool) -> frozenset[str] | None:
    """Return the hosts to which a peer may redirect a connector (security.md R-1.11b); None for any.

    A connector with credentials shows them only to hosts that the configuration names.
    """
    if not entity.allow_redirect:
        return frozenset()
    named = frozenset(host.lower() for host in entity.redirect_hosts)
    return named if named or entity.sasl_password is not None or has_certificate else None


def _endpoint(entry: Any, scheme_due: str) -> Endpoint | None:
    """Return an entry of a failover list as an endpoint; None if it is invalid or has another scheme.

    So no peer can make the connector give up TLS, or show a certificate where the operator configured none.
    """
    if not isinstance(entry, dict):
        return None
    host, port, scheme = entry.get("network-host"), entry.get("port"), entry.get("scheme", scheme_due)
    port = texts.WELL_KNOWN_PORTS[scheme_due] if port is None else port
    if not isinstance(host, str) or not host or scheme != scheme_due or isinstance(port, bool):
        return None
    if not isinstance(port, str | int) or len(host) > MAX_HOST_CHARACTERS:
        return None
    try:
        return Endpoint(texts.host(host), texts.port(str(port)), scheme_due)
    except BadValue:
        return None
