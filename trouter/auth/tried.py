"""The user's name that a peer tries, read from its own messages by mechanism, so that a refusal has a name.

A plugin that names the user of its refusal knows better; an authentication service says nothing, nor does a plugin that
leaves the name out. A message is read only in the exact form of its mechanism: what a lenient server may read otherwise
has no name here, and counts as an attempt without one. No reader ever looks at a place where a password stands.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from trouter.hooks import PeerFacts
from trouter.mechanisms import EXTERNAL, STANDARD

#: Characters of a name that are kept; no user whom the router admits has more bytes.
MAX_TRIED: Final = 255

#: Takes a message of the client; returns the name in it, "" for none.
Reader: TypeAlias = Callable[[bytes], str]

_DIRECTIVE: Final = re.compile(rb'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",=]+))\s*(?:,|$)')
_SCRAM: Final = re.compile(rb"(?:[ny]|p=[A-Za-z0-9.-]+),(?:a=[^,]*)?,n=([^,]+),r=[!-+\--~]+(?:,.*)?", re.DOTALL)
_GS2: Final = re.compile(rb"[ny],a=([^,]+),\x01.*\x01\x01", re.DOTALL)
_XOAUTH2: Final = re.compile(rb"user=([^\x01]+)\x01auth=[^\x01]*\x01\x01")
_CRAM: Final = re.compile(rb"(.+) [0-9a-fA-F]{32}", re.DOTALL)
#: An AUTHENTICATE message of NTLM: where the user's name stands, and the flag for names in UTF-16.
_NTLM: Final = b"NTLMSSP\0\3\0\0\0"
_NTLM_USER_AT, _NTLM_FLAGS_AT, _NTLM_UNICODE = 36, 60, 1


def _plain(message: bytes) -> bytes:
    parts = message.split(b"\0")
    return parts[1] if len(parts) == 3 else b""


def _otp(message: bytes) -> bytes:
    parts = message.split(b"\0")
    return parts[1] if len(parts) == 2 else b""


def _scram(message: bytes) -> bytes:
    found = _SCRAM.fullmatch(message)
    return b"" if found is None else _unescaped(found[1])


def _unescaped(name: bytes) -> bytes:
    """Return a name of RFC 5802, in which =2C and =3D stand for a comma and an equals sign."""
    return name.replace(b"=2C", b",").replace(b"=3D", b"=")


def _oauthbearer(message: bytes) -> bytes:
    found = _GS2.fullmatch(message)
    return b"" if found is None else _unescaped(found[1])


def _xoauth2(message: bytes) -> bytes:
    found = _XOAUTH2.fullmatch(message)
    return b"" if found is None else found[1]


def _cram(message: bytes) -> bytes:
    found = _CRAM.fullmatch(message)
    return b"" if found is None else found[1]


def _digest(message: bytes) -> bytes:
    """Return the one user name of a response of DIGEST-MD5 (RFC 2831, 2.1.2)."""
    names, at = [], 0
    while at < len(message):
        found = _DIRECTIVE.match(message, at)
        if found is None:
            return b""
        at = found.end()
        if found[1].lower() == b"username" and found[2] is not None:
            names.append(re.sub(rb"\\(.)", rb"\1", found[2], flags=re.DOTALL))
    return names[0] if len(names) == 1 else b""


def _srp(message: bytes) -> bytes:
    """Return the name of the client's first message: four bytes of length, then a name with two bytes of length."""
    if len(message) < 6:
        return b""
    size = struct.unpack_from(">H", message, 4)[0]
    return message[6 : 6 + size] if 6 + size <= len(message) else b""


def _ntlm(message: bytes) -> str:
    if not message.startswith(_NTLM) or len(message) < _NTLM_FLAGS_AT + 4:
        return ""
    size, _, at = struct.unpack_from("<HHI", message, _NTLM_USER_AT)
    (flags,) = struct.unpack_from("<I", message, _NTLM_FLAGS_AT)
    return message[at : at + size].decode("utf-16-le" if flags & _NTLM_UNICODE else "latin-1", "replace")


def _text(read: Callable[[bytes], bytes]) -> Reader:
    return lambda message: read(message).decode(errors="replace")


#: Of the mechanisms in ``STANDARD``; all but NTLM name the user in the first message that the client sends. EXTERNAL
#: names it in the certificate, and ANONYMOUS tries no user.
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "PLAIN": _text(_plain),
        "LOGIN": _text(bytes),
        "CRAM-MD5": _text(_cram),
        "DIGEST-MD5": _text(_digest),
        "NTLM": _ntlm,
        "OTP": _text(_otp),
        "SRP": _text(_srp),
        "OAUTHBEARER": _text(_oauthbearer),
        "XOAUTH2": _text(_xoauth2),
        **{str(each): _text(_scram) for each in STANDARD.values() if each.digest},
    }
)
#: Its first message names no user, the later one has a signature by which it is known.
_LATER: Final = "NTLM"


class TriedName:
    """The name in one peer's exchange; ``name`` is empty until a message has named one."""

    __slots__ = ("_mechanism", "_reader", "name")

    def __init__(self, mechanism: str, facts: PeerFacts) -> None:
        """``mechanism`` is in capitals."""
        by_certificate = mechanism == EXTERNAL and facts.tls is not None
        self.name = facts.tls.user[:MAX_TRIED] if by_certificate and facts.tls is not None else ""
        self._mechanism = mechanism
        self._reader = READERS.get(mechanism)

    def begin(self, response: bytes) -> None:
        """Read the initial response; an empty one, or none, leaves the name to the next message."""
        if response:
            self.read(response)

    def read(self, response: bytes) -> None:
        """Read a response. Only the first one is read: the next may hold nothing but a password."""
        reader = self._reader
        if reader is None:
            return
        if self._mechanism != _LATER or self.name:
            self._reader = None
        self.name = self.name or reader(response)[:MAX_TRIED]
