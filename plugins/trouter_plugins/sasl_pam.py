"""SASL PLAIN with the accounts of the machine: PAM checks passwords by the service that ``pamService`` names.

A PAM module may query a directory server, or wait on purpose after a wrong password, so each check runs in one of few
threads, with a short queue and a deadline. A check that misses the deadline keeps its thread, and its peer is refused
for now. PAM judges the account as well as the password; the plugin opens no PAM session.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import trio

from trouter.hooks import (
    Authenticated,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Refused,
    RouterFacts,
    SaslExchange,
    hookimpl,
)
from trouter_plugins.sasl_plain import MECHANISM, PasswordExchange

#: Checks at once, and peers that may wait for one (security.md 8.2).
CHECKING_THREADS: Final = 8
MAX_WAITING: Final = 64
#: Shorter than the router's deadline for an exchange, so that the peer gets the refusal.
DEADLINE_S: Final = 8.0
MAX_USER_BYTES: Final = 255

#: PAM writes names of services in lower case. Without a file of that name it would use the service `other`.
_SERVICE: Final = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,63}")
SERVICE_FOLDERS: Final = (Path("/etc/pam.d"), Path("/usr/lib/pam.d"))

#: What PAM says when it could not judge (Linux-PAM, _pam_types.h): a module or the system failed, no memory, or the
#: service that knows the password cannot be reached.
UNABLE: Final = frozenset({1, 2, 3, 4, 5, 9, 24, 26, 28})

#: Takes a user, a password and a service; returns the code of PAM, 0 for success.
Check = Callable[[str, bytes, str], int]


class Plugin:
    """One router's PAM service."""

    def __init__(self) -> None:
        self._service: str | None = None
        self._check: Check | None = None
        self._threads = trio.CapacityLimiter(CHECKING_THREADS)

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        check = None if router.pam_service is None else _prepare(router.pam_service)
        self._service, self._check = router.pam_service, check

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        return () if self._service is None else (MECHANISM,)

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        if mechanism != MECHANISM or self._service is None or self._check is None or not peer.may_send_password:
            return None
        return PamExchange(self._service, self._check, self._threads)


class PamExchange(PasswordExchange):
    """An attempt that PAM judges."""

    def __init__(
        self, service: str, check: Check, threads: trio.CapacityLimiter, deadline_s: float = DEADLINE_S
    ) -> None:
        super().__init__()
        self._service = service
        self._check = check
        self._threads = threads
        self._deadline_s = deadline_s

    def _is_acceptable(self, user: str) -> bool:
        return _acceptable(user)

    async def _judge(self, user: str, password: bytes) -> Authenticated | Refused:
        if self._threads.statistics().tasks_waiting >= MAX_WAITING:
            return Refused("too many passwords are being checked", temporary=True, user=user)
        with trio.move_on_after(self._deadline_s):
            code = await trio.to_thread.run_sync(
                self._check, user, password, self._service, limiter=self._threads, abandon_on_cancel=True
            )
            if code == 0:
                return Authenticated(user)
            if code in UNABLE:
                return Refused(f"PAM could not judge (code {code})", temporary=True, user=user)
            return Refused("wrong user or password, or PAM does not let the account in", user=user)
        return Refused("PAM took too long", temporary=True, user=user)


def _acceptable(user: str) -> bool:
    """Return whether PAM modules, which are written in C and keep logs, can be given this name."""
    return user.isprintable() and user == user.strip() and len(user.encode()) <= MAX_USER_BYTES


def _prepare(service: str) -> Check:
    """Return the check by PAM; ConfigurationRefused without PAM, or if it would use another service."""
    if not _SERVICE.fullmatch(service):
        raise ConfigurationRefused(f"pamService: {service[:64]!r} is not the name of a PAM service, in lower case")
    if not any((folder / service).is_file() for folder in SERVICE_FOLDERS):
        raise ConfigurationRefused(f"pamService: there is no service {service}, no {SERVICE_FOLDERS[0] / service}")
    try:
        module = importlib.import_module("pam")
        authenticator = module.PamAuthenticator
        authenticator()  # finds the library
    except (ImportError, AttributeError, OSError):
        raise ConfigurationRefused("pamService needs the package python-pam and the library libpam") from None

    def check(user: str, password: bytes, service: str) -> int:
        attempt = authenticator()
        # Latin-1 reads any text that a module says; an exception in its callback would end the conversation.
        allowed = attempt.authenticate(user.encode(), password, service, resetcreds=False, encoding="latin-1")
        code = int(attempt.code)
        return code if bool(allowed) is (code == 0) else 4  # a contradiction is a system error

    return check
