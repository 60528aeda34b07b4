"""SASL mechanisms: what the router, its client and its tools need to know of each, declared once.

A plugin declares a mechanism of its own by returning a ``Mechanism`` in place of its name. The names in ``STANDARD``
mean the mechanisms of the standards, also if a plugin serves them, so that no plugin can take away what protects a
password.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Self

#: Ends the names of mechanisms that are bound to the channel below them (RFC 5801).
BOUND: Final = "-PLUS"


class Mechanism(str):
    """The name of a mechanism, in capitals, with its properties.

    in_clear: it sends the secret itself, so it is offered only where a password may cross the connection.
    by_certificate: the peer is known from its TLS certificate, without which it is not offered.
    anonymous: it proves no user, so it is not offered where authentication is required.
    weakness: without saslMechanisms, stronger ones are offered first; 0 for the strongest.
    weak: what an eavesdropper sees is soon worth a password; secureDefaults offer it only where it is named.
    digest: the hash function of SCRAM, as hashlib calls it.
    """

    __slots__ = ("anonymous", "by_certificate", "digest", "in_clear", "weak", "weakness")

    in_clear: bool
    by_certificate: bool
    anonymous: bool
    weakness: int
    weak: bool
    digest: str

    def __new__(
        cls,
        name: str,
        *,
        in_clear: bool = False,
        by_certificate: bool = False,
        anonymous: bool = False,
        weakness: int = 0,
        weak: bool = False,
        digest: str = "",
    ) -> Self:
        made = super().__new__(cls, name.upper())
        made.in_clear = in_clear
        made.by_certificate = by_certificate
        made.anonymous = anonymous
        made.weakness = weakness
        made.weak = weak
        made.digest = digest
        return made

    @property
    def bound(self) -> bool:
        """Whether it is bound to the channel, which therefore needs data for channel binding."""
        return self.endswith(BOUND)


EXTERNAL: Final = Mechanism("EXTERNAL", by_certificate=True)
PLAIN: Final = Mechanism("PLAIN", in_clear=True, weakness=4)
ANONYMOUS: Final = Mechanism("ANONYMOUS", anonymous=True, weakness=6)
#: Those of SCRAM that the router serves and uses, the strongest first.
SCRAM: Final = (
    Mechanism("SCRAM-SHA-512", digest="sha512"),
    Mechanism("SCRAM-SHA-256", digest="sha256"),
    Mechanism("SCRAM-SHA-1", digest="sha1", weak=True),
)
_OTHERS: Final = (
    Mechanism("SCRAM-SHA-224", digest="sha224"),
    Mechanism("SCRAM-SHA-384", digest="sha384"),
    Mechanism("CRAM-MD5", weakness=1, weak=True),
    Mechanism("DIGEST-MD5", weakness=1, weak=True),
    Mechanism("NTLM", weakness=1, weak=True),
    Mechanism("OTP"),
    Mechanism("SRP"),
    Mechanism("OAUTHBEARER", in_clear=True, weakness=2),
    Mechanism("XOAUTH2", in_clear=True, weakness=3),
    Mechanism("LOGIN", in_clear=True, weakness=5, weak=True),
)
#: A listener may name these, with a warning, even if no plugin serves them: the plugin or its users may come later.
#: Other names that no plugin serves are mistakes, also mechanisms that need software of the site, as GSSAPI.
STANDARD: Final[Mapping[str, Mechanism]] = MappingProxyType(
    {
        each: each
        for one in (EXTERNAL, *SCRAM, *_OTHERS, PLAIN, ANONYMOUS)
        for each in ((one, Mechanism(f"{one}{BOUND}", digest=one.digest, weak=one.weak)) if one.digest else (one,))
    }
)
#: With a user and a password, the preferred one first.
PASSWORDS: Final = (*SCRAM, PLAIN)
#: Those of the client and of the tools, the preferred one first.
CLIENT: Final = (EXTERNAL, *PASSWORDS, ANONYMOUS)
#: Those of the router where it dials; it leaves others to plugins.
DIALLING: Final = frozenset({*CLIENT, *(f"{each}{BOUND}" for each in SCRAM)})


def mechanism_of(name: str) -> Mechanism:
    """Return the mechanism of this name: the standard one, else the one that a plugin declares, else a plain one."""
    known = STANDARD.get(name.upper())
    if known is not None:
        return known
    return name if isinstance(name, Mechanism) else Mechanism(name)
