"""The certificate by the name that a client asks for in TLS (server name indication, RFC 6066, 3)."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping

from trouter._text import escape_unprintable

from .loaded import Loaded

#: The most characters of a client's name that a text shows.
MAX_SHOWN = 100


class ServerObject(ssl.SSLObject):
    """A server's end of TLS, with the name that the client asked for."""

    #: In lower case, without a dot at its end; empty if the client asked for none.
    server_name = ""
    #: The profile whose certificate was chosen by the name; None for the listener's own.
    chosen: Loaded | None = None
    #: Why the handshake was refused because of the name, empty if it was not.
    refusal = ""


def names_of(loaded: Loaded) -> tuple[str, ...]:
    """Return the names that a profile's certificate is used for: those configured, else those in the certificate."""
    return loaded.entity.server_names or loaded.material.server_names


def table_of(profiles: Iterable[Loaded]) -> dict[str, Loaded]:
    """Return the profiles by their names in lower case; the first one counts if two have the same."""
    table: dict[str, Loaded] = {}
    for loaded in profiles:
        for name in names_of(loaded):
            table.setdefault(name.lower().removesuffix("."), loaded)
    return table


def find_by_name(table: Mapping[str, Loaded], name: str) -> Loaded | None:
    """Return the profile for a name, None for an unknown one; a wildcard stands for exactly the first label."""
    found = table.get(name)
    if found is None:
        label, dot, parent = name.partition(".")
        found = table.get(f"*.{parent}") if label and dot else None
    return found


def choose_certificate(
    find: Callable[[str], tuple[Loaded, ssl.SSLContext] | None], *, strict: bool
) -> Callable[[ssl.SSLObject, str | None, ssl.SSLContext], int | None]:
    """Return the callback of a context that chooses the certificate; ``find`` returns that of a name, None for none.

    A client with an unknown name, or none, gets the context's own certificate, or if ``strict`` an alert.
    """

    def choose(tls: ssl.SSLObject, wanted: str | None, _: ssl.SSLContext) -> int | None:
        assert isinstance(tls, ServerObject)  # noqa: S101 - the context makes no others
        name = (wanted or "").lower().removesuffix(".")
        tls.server_name = name
        found = find(name) if name else None
        if found is not None:
            tls.chosen, tls.context = found
            return None
        if not strict:
            return None
        shown = escape_unprintable(name[:MAX_SHOWN])
        tls.refusal = f"no certificate is for the name {shown!r}" if name else "the client asked for no server name"
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    return choose
