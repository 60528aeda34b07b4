"""Read the grant in the open of an authentication service: the user's name and rights (R-3a).

Names and words are matched exactly and types are strict: an invalid grant admits no user. An unknown word grants
nothing. Omissions of existing services are accepted, unless secureDefaults forbids it.
"""

from __future__ import annotations

from typing import Final

from trouter.hooks import MAX_PERMISSIONS, Permissions
from trouter.wire.types import Array, Symbol

IDENTITY: Final = "authenticated-identity"
AUTHORIZATION: Final = "address-authz"
SUBJECT: Final = "sub"
RECEIVE: Final = "recv"
SEND: Final = "send"
#: The user of a client that a service accepted without a name.
NAMELESS: Final = "anonymous"
MAX_USER_BYTES: Final = 255


class BadGrant(Exception):
    """The properties are invalid, and no client is admitted; the text describes the fault, without quoting them."""


def user_of(properties: object, *, lenient: bool = False) -> str:
    """Return the user whom the service accepted; BadGrant.

    ``lenient``: the identity may also be a plain string, or absent, as from existing services; a user without a name is
    ``anonymous``.
    """
    identity = _property(properties, IDENTITY)
    if lenient and (identity is None or isinstance(identity, str)):
        return _fit(str(identity)) if identity else NAMELESS
    if not isinstance(identity, dict):
        raise BadGrant(f"{IDENTITY} is missing, or is not a map")
    user = identity.get(SUBJECT)
    if type(user) is not str or not user:
        raise BadGrant(f"{IDENTITY} has no {SUBJECT} that is a string")
    return _fit(user)


def _fit(user: str) -> str:
    """Return the name if it is valid; BadGrant."""
    if not user.isprintable() or len(user.encode()) > MAX_USER_BYTES:
        raise BadGrant(f"{IDENTITY} is not a valid user name")
    return user


def permissions_of(properties: object, *, optional: bool) -> Permissions | None:
    """Return the user's rights; if the service gives none, no rights, or None if that is ``optional``. BadGrant."""
    rights = _property(properties, AUTHORIZATION)
    if rights is None:
        return None if optional else Permissions()
    if not isinstance(rights, dict):
        raise BadGrant(f"{AUTHORIZATION} is not a map")
    sources: list[str] = []
    targets: list[str] = []
    for address, words in rights.items():
        if type(address) is not str or not address:
            raise BadGrant(f"an address in {AUTHORIZATION} is not a string, or is empty")
        given = _words(words)
        if RECEIVE in given:
            sources.append(address)
        if SEND in given:
            targets.append(address)
        if len(sources) + len(targets) > MAX_PERMISSIONS:
            raise BadGrant(f"{AUTHORIZATION} has more than {MAX_PERMISSIONS} rights")
    return Permissions(tuple(sources), tuple(targets))


def _property(properties: object, name: str) -> object:
    """Return one of the properties, None if absent; its name must be a symbol (2.7.1)."""
    if not isinstance(properties, dict):
        return None
    return next((value for key, value in properties.items() if isinstance(key, Symbol) and key == name), None)


def _words(words: object) -> frozenset[str]:
    """Return the strings in an array or a list, without symbols. BadGrant."""
    if not isinstance(words, list | Array) or (isinstance(words, Array) and words.descriptors):
        raise BadGrant(f"the rights of an address in {AUTHORIZATION} are not an array")
    return frozenset(word for word in words if type(word) is str)
