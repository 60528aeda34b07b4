"""The limits that this machine's OpenSSL configuration sets for every TLS connection.

Most Pythons override them in each context, and ssl does not show them, so they are read from OpenSSL's file.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from .openssl_file import DEFAULT, Sections, openssl_file, read_openssl_file

#: OpenSSL's numbers of versions, by the names in its file.
_VERSIONS: Final = {"none": 0, "sslv3": 0x300, "tlsv1": 0x301, "tlsv1.1": 0x302, "tlsv1.2": 0x303, "tlsv1.3": 0x304}
_LEVEL: Final = re.compile(r"@SECLEVEL=([0-5])")


class TlsLimits(NamedTuple):
    """``minimum`` is the lowest TLS version in OpenSSL's numbers, 0 for none; ``level`` the security level."""

    minimum: int
    level: int


@cache
def machine_limits() -> TlsLimits:
    """Return the machine's limits, read once; Python's own if OpenSSL's file cannot be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = TlsLimits(int(context.minimum_version), context.security_level)
    try:
        sections = read_openssl_file(openssl_file())
    except FileNotFoundError:
        sections = {DEFAULT: {}}
    except (OSError, ValueError):
        return own
    commands = _commands(sections)
    levels = _LEVEL.findall(commands.get("cipherstring", ""))
    return TlsLimits(
        _VERSIONS.get(commands.get("minprotocol", "none").lower(), 0), int(levels[-1]) if levels else own.level
    )


def _commands(sections: Sections) -> Mapping[str, str]:
    """Return the commands that OpenSSL obeys for each new context, by their names in small letters."""
    modules = sections.get(sections[DEFAULT].get("openssl_conf", ""), {})
    applications = sections.get(modules.get("ssl_conf", ""), {})
    commands: dict[str, str] = {}
    for name, value in sections.get(applications.get("system_default", ""), {}).items():
        command = name.rpartition(".")[2].lower()
        if command != "minprotocol" or value.lower() in _VERSIONS:  # the versions of DTLS are of no concern here
            commands[command] = value
    return commands
