"""Reads the public keys of a token issuer, a JSON Web Key Set (RFC 7517), from a file or a URL.

The plugin reads a file at start and at each reload. It fetches a URL when it needs a key: again if its keys
are ten minutes old, and at most every ten seconds if a token names an unknown key. While the issuer cannot be reached,
the keys are valid for an hour; after that all tokens are refused. Symmetric keys are never used: a router that checks
tokens with such a key could also issue them.

The router's own client fetches them, because PyJWT's follows redirects, takes answers of any size and waits for as long
as bytes arrive.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

import jwt
import trio

from trouter.hooks.web import FetchError, get

MAX_BYTES: Final = 256 * 1024
MAX_KEYS: Final = 64
#: Ages at which keys of a URL are fetched again, and are no longer used.
FRESH_S: Final = 600.0
STALE_S: Final = 3600.0
#: Seconds between two fetches, at least.
PAUSE_S: Final = 10.0
TIMEOUT_S: Final = 5.0
MAX_WAITING: Final = 64
MIN_RSA_BITS: Final = 2048

#: Type of key -> its algorithms; other keys are not used.
ALGORITHMS: Final = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "EC": frozenset({"ES256", "ES384", "ES512"}),
    "OKP": frozenset({"EdDSA"}),
}
CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}

log = logging.getLogger("trouter.PLUGIN")


class KeysError(Exception):
    """The keys cannot be used; the text says why."""


class Unreachable(Exception):
    """The keys are not available now; the text says why."""


class Keys:
    """The keys of one issuer. Use from one trio loop."""

    def __init__(self, source: str, now: Callable[[], float] = time.monotonic) -> None:
        """``source`` is a path or an https URL (http, on this machine); KeysError."""
        self.source = source
        self._now = now
        self._url = _checked_url(source) if "://" in source else None
        self._keys: Sequence[Key] = ()
        self._read_at_s: float | None = None
        self._requested_at_s: float | None = None
        self._fetching = trio.CapacityLimiter(1)
        if self._url is None:
            self._keys = parse_keys(_read_file(Path(source)))

    def inherit(self, older: Keys) -> None:
        """Take over the keys that ``older`` has fetched."""
        if self._url is not None:
            self._keys, self._read_at_s, self._requested_at_s = older._keys, older._read_at_s, older._requested_at_s

    async def find(self, key_id: str | None, algorithm: str) -> list[Any]:
        """Return the keys that may have signed a token with this header; Unreachable."""
        if self._url is not None:
            await self._refresh(lambda: bool(self._matching(key_id, algorithm)))
        return self._matching(key_id, algorithm)

    def _matching(self, key_id: str | None, algorithm: str) -> list[Any]:
        return [key.public for key in self._keys if key.serves(key_id, algorithm)]

    async def _refresh(self, has_key: Callable[[], bool]) -> None:
        """Fetch keys if they are old or lack the wanted one; Unreachable if they stay too old, or too many wait."""
        if has_key() and (self._age_s() < FRESH_S or (self._age_s() < STALE_S and self._fetching.borrowed_tokens)):
            return
        if self._fetching.statistics().tasks_waiting >= MAX_WAITING:
            raise Unreachable("too many wait for them")
        async with self._fetching:
            if not (self._age_s() < FRESH_S and has_key()) and self._may_request():
                await self._fetch()
        if self._age_s() >= STALE_S:
            raise Unreachable("they are too old" if self._read_at_s is not None else "they were never fetched")

    def _age_s(self) -> float:
        return float("inf") if self._read_at_s is None else self._now() - self._read_at_s

    def _may_request(self) -> bool:
        return self._requested_at_s is None or self._now() - self._requested_at_s >= PAUSE_S

    async def _fetch(self) -> None:
        """Fetch the issuer's present keys; a failure is logged and leaves the former ones."""
        url = str(self._url)
        self._requested_at_s = self._now()
        try:
            with trio.fail_after(TIMEOUT_S):
                data = await get(url, "application/json", max_bytes=MAX_BYTES)
            self._keys, self._read_at_s = parse_keys(data), self._now()
        except (KeysError, FetchError, trio.TooSlowError) as error:
            why = "no answer in time" if isinstance(error, trio.TooSlowError) else error
            log.warning("cannot fetch the keys of the token issuer from %s: %s", _shown(url), why)


class Key:
    """One public key and the algorithms that it may verify."""

    def __init__(self, public: Any, key_id: str | None, algorithms: frozenset[str]) -> None:
        self.public = public
        self._key_id = key_id
        self._algorithms = algorithms

    def serves(self, key_id: str | None, algorithm: str) -> bool:
        """Return whether this key may verify a token with ``algorithm`` and ``key_id``, None if it names none."""
        return algorithm in self._algorithms and (key_id is None or key_id == self._key_id)


def parse_keys(data: bytes) -> Sequence[Key]:
    """Return the usable keys of a set; KeysError if it is no set, or has no usable key."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise KeysError("this is not JSON") from None
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise KeysError('this is not a JSON Web Key Set: {"keys": [...]}')
    if len(listed) > MAX_KEYS:
        raise KeysError(f"there are more than {MAX_KEYS} keys")
    keys = [key for each in listed if isinstance(each, dict) and (key := _parse_key(each)) is not None]
    if not keys:
        raise KeysError("no key among these can be used: RSA of 2048 bits or more, EC or Ed25519, to verify signatures")
    return keys


def _parse_key(each: Mapping[str, Any]) -> Key | None:
    """Return a public key for signatures; None for any other, as a set may hold keys for other purposes."""
    kind, named, key_id = each.get("kty"), each.get("alg"), each.get("kid")
    operations = each.get("key_ops", ["verify"])
    if each.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    if not isinstance(kind, str) or not (key_id is None or isinstance(key_id, str)) or "d" in each:
        return None
    allowed = ALGORITHMS.get(kind, frozenset())
    if kind != "RSA":
        allowed &= {CURVES.get(str(each.get("crv")), "")}
    if named is not None:
        allowed &= {named} if isinstance(named, str) else set()
    if not allowed:
        return None
    try:
        public = jwt.PyJWK(dict(each), algorithm=min(allowed)).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if kind == "RSA" and public.key_size < MIN_RSA_BITS:
        return None
    return Key(public, key_id, allowed)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _bounded(file)
    except OSError as error:
        raise KeysError(f"{path}: {error.strerror or type(error).__name__}") from None
    except ValueError:
        raise KeysError("this is no path") from None


def _bounded(file: IO[bytes]) -> bytes:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise KeysError(f"there are more than {MAX_BYTES} bytes")
    return data


def _checked_url(text: str) -> str:
    """Return ``text`` if keys from there can be trusted; KeysError."""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        raise KeysError("this is no URL") from None
    if parts.username is not None or not host or parts.fragment:
        raise KeysError("the URL has no host, or has a user or a fragment")
    if parts.scheme == "https" or (parts.scheme == "http" and _is_here(host)):
        return text
    raise KeysError("only https can be trusted; http, on this machine")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(url: str) -> str:
    """Return the URL without its query, which may hold a secret."""
    return urlsplit(url)._replace(query="").geturl()
