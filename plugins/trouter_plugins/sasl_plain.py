"""SASL PLAIN (RFC 4616): a name and a password, checked against a file of salted hashes (``users_file``).

Without encryption it serves only whom the listener's ``allowInsecurePlain`` lets through. Checking is slow on purpose,
so it runs in few threads beside the event loop, with a short queue; when that is full the peer is asked to come back.
``python -m trouter_plugins.sasl_plain FILE USER`` asks for a password and writes the line.
"""

from __future__ import annotations

import argparse
import getpass
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import trio

from trouter.hooks import (
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Refused,
    RouterFacts,
    SaslExchange,
    hookimpl,
)
from trouter_plugins.users_file import DEFAULT_SCRAM, SCRAM_HASHES, Users, UsersFileError, put_user, read_users

MECHANISM: Final = "PLAIN"
MAX_RESPONSE_BYTES: Final = 1024

#: Threads that hash at once, and peers that may wait for one (security.md 8.2).
HASHING_THREADS: Final = 2 * (os.cpu_count() or 1)
MAX_WAITING: Final = 64

log = logging.getLogger("trouter.PLUGIN")


class Plugin:
    """The users of one router."""

    def __init__(self) -> None:
        self._users: Users | None = None
        self._hashing = trio.CapacityLimiter(HASHING_THREADS)

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self._users = None if router.sasl_users_file is None else _load(Path(router.sasl_users_file))

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        if self._users is None:
            return ()
        if listener.allow_insecure_plain == "yes":
            log.warning("listener %s: allowInsecurePlain lets passwords travel unencrypted", listener.name)
        return (MECHANISM,)

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        if mechanism != MECHANISM or self._users is None or not peer.may_send_password:
            return None
        return PlainExchange(self._users, self._hashing)


class Credentials(NamedTuple):
    """What a PLAIN response says. The repr shows no password."""

    authorization_id: str
    user: str
    password: bytes

    def __repr__(self) -> str:
        return f"Credentials({self.user!r})"


class PlainExchange:
    """One attempt: it asks for the response if none came with the init, and is over after judging one."""

    def __init__(self, users: Users, hashing: trio.CapacityLimiter) -> None:
        self._users = users
        self._hashing = hashing
        self._asked = False
        self._over = False

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if self._over:
            return Refused("the exchange is over")
        if not response and not self._asked:
            self._asked = True
            return Challenge(b"")
        self._over = True
        credentials = parse_response(response)
        if credentials is None:
            return Refused("malformed PLAIN response")
        if credentials.authorization_id not in {"", credentials.user}:
            return Refused("the authorization id is not the user", user=credentials.user)
        return await self._judge(credentials)

    async def _judge(self, credentials: Credentials) -> Authenticated | Refused:
        user = credentials.user
        if self._hashing.statistics().tasks_waiting >= MAX_WAITING:
            return Refused("too many passwords are being checked", temporary=True, user=user)
        right = await trio.to_thread.run_sync(self._users.verify, user, credentials.password, limiter=self._hashing)
        return Authenticated(user) if right else Refused("wrong user or password", user=user)


def parse_response(response: bytes, longest: int = MAX_RESPONSE_BYTES) -> Credentials | None:
    """The three parts of a PLAIN response; None if it is over-long, not UTF-8, not three parts, or lacks one."""
    if len(response) > longest:
        return None
    try:
        parts = response.decode().split("\0")
    except UnicodeDecodeError:
        return None  # the exception holds the response: it must not travel
    if len(parts) != 3 or not parts[1] or not parts[2]:
        return None
    return Credentials(parts[0], parts[1], parts[2].encode())


def _load(path: Path) -> Users:
    try:
        users, mode = read_users(path)
    except UsersFileError as error:
        raise ConfigurationRefused(*(f"{path}: {problem}" for problem in error.problems)) from None
    if mode & 0o077:
        log.warning("%s: mode %04o lets others at the password hashes, 0600 would not", path, mode)
    return users


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask for a password, and put the user into the file."""
    parser = argparse.ArgumentParser(
        prog="python -m trouter_plugins.sasl_plain",
        description="Add a user to a file of SASL PLAIN users, or change the password of one.",
    )
    parser.add_argument("file", type=Path, help="created with mode 0600 if it is not there")
    parser.add_argument("user")
    parser.add_argument(
        "--scram",
        metavar="NAMES",
        default=" ".join(DEFAULT_SCRAM),
        help=f"what to serve besides PLAIN, of {', '.join(SCRAM_HASHES)}; default %(default)s; '' for none",
    )
    options = parser.parse_args(arguments)
    scram = dict.fromkeys(options.scram.upper().replace(",", " ").split())
    if unknown := [name for name in scram if name not in SCRAM_HASHES]:
        parser.error(f"{unknown[0]!r} is not one of {', '.join(SCRAM_HASHES)}")
    try:
        password = _ask_password()
        if len(2 * options.user.encode()) + len(password) + 2 > MAX_RESPONSE_BYTES:
            raise ValueError(f"user and password do not fit into a response of {MAX_RESPONSE_BYTES} bytes")
        replaced = put_user(options.file, options.user, password, tuple(scram))
    except (ValueError, UsersFileError, OSError) as error:
        sys.stderr.write(f"{options.file}: {error}\n")
        return 1
    sys.stdout.write(f"{options.file}: user {options.user} {'changed' if replaced else 'added'}\n")
    return 0


def _ask_password() -> bytes:
    """From the terminal, twice, or else the first line of the standard input; ValueError without the password in it."""
    if sys.stdin.isatty():
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise ValueError("the passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    try:
        encoded = password.encode()
    except UnicodeEncodeError:
        encoded = b"\0"
    if not encoded or b"\0" in encoded:
        raise ValueError("a password is not empty, is UTF-8, and has no NUL")
    return encoded


if __name__ == "__main__":
    raise SystemExit(main())
