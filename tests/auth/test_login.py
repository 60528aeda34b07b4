"""A plugin's answers to a login: anything but a clear acceptance is a refusal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest
import trio

from tests.connections.plays import Scripted
from tests.routers import DEADLINE_S
from trouter.client import AuthenticationFailed, ConnectionClosed
from trouter.connections.login_checks import LoginChecks
from trouter.hooks import Authenticated
from trouter.records import Record, SaslOutcomeRecord
from trouter.testing import open_router

CONFIGURATION = (
    "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: X-MINE, idleTimeoutSeconds: 0 }\n"
)


class Mine:
    """The client's side of the mechanism."""

    name = "X-MINE"

    async def start(self) -> bytes:
        return b"hello"

    async def respond(self, challenge: bytes) -> bytes:
        return b""

    async def finish(self, additional: bytes | None) -> None: ...


class Outcomes:
    """A sink for the outcomes of logins."""

    def __init__(self) -> None:
        self.told: list[SaslOutcomeRecord] = []

    def put(self, record: Record) -> None:
        if isinstance(record, SaslOutcomeRecord):
            self.told.append(record)


ENDS: dict[str, Callable[[], float]] = {
    "in the past": lambda: time.time() - 1,
    "before there were computers": lambda: -math.inf,
    "no time at all": lambda: math.nan,
}


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
async def test_credentials_that_do_not_end_in_the_future_let_no_user_in(ends: Callable[[], float]) -> None:
    outcomes = Outcomes()
    async with open_router(CONFIGURATION, {"mine": Scripted(Authenticated("alice", expires_at_s=ends()))}) as router:
        router.process.services.recorder.add(outcomes)
        with pytest.raises(AuthenticationFailed):
            async with router.connect(sasl=[Mine()]):
                pass
    (told,) = outcomes.told
    assert (told.ok, told.code, told.reason, told.user) == (False, 1, "expired", "alice")


def raises() -> bool:
    raise LookupError("alice")


STANDINGS: dict[str, tuple[Callable[[], Any], bool]] = {
    "yes": (lambda: True, True),
    "no": (lambda: False, False),
    "what is true in a way": (lambda: "yes", False),
    "nothing": (lambda: None, False),
    "a failure": (raises, False),
}


@pytest.mark.parametrize(("still_good", "stays"), STANDINGS.values(), ids=STANDINGS)
async def test_credentials_are_valid_as_long_as_the_plugin_confirms_them(
    still_good: Callable[[], Any], stays: bool
) -> None:
    async with (
        open_router(CONFIGURATION, {"mine": Scripted(Authenticated("alice", still_good=still_good))}) as router,
        router.connect(sasl=[Mine()], idle_timeout=0) as client,
    ):
        services = router.process.services
        await LoginChecks(services.plugins, services.connections).check_all()
        if stays:
            async with client.open_sender("x"):
                return
        with trio.fail_after(DEADLINE_S), pytest.raises(ConnectionClosed, match="credentials no longer valid"):
            async with client.open_receiver("x") as receiver:
                await receiver.receive()
