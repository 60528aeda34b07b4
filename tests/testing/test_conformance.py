"""The suite for authors of plugins: trouter's plugins pass it, and each case detects a plugin with that fault."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio

from trouter.client import Message, Plain, Scram
from trouter.hooks import (
    AnnotationFilter,
    Authenticated,
    Challenge,
    ConfigurationRefused,
    Plugins,
    Refused,
    SaslExchange,
    Vote,
    hookimpl,
    specs,
)
from trouter.testing import open_router
from trouter.testing.conformance import CALLS, DENIED, Login, Subject, cases, forms
from trouter.testing.sabotage import hooks_of
from trouter_plugins import audit_log, feedback, sasl_anonymous, sasl_plain, sasl_scram, strip_annotations
from trouter_plugins.users_file import put_user

LISTENER = (
    "listener {{ host: 127.0.0.1, port: 0, saslMechanisms: {}, authenticatePeer: yes, allowInsecurePlain: loopback }}\n"
)
GOOD, BAD = "correct horse battery staple", "wrong-horse-battery-staple"


def plain(password: str) -> Callable[[], Plain]:
    return lambda: Plain("alice", password)


PLAIN = Login(plain(GOOD), plain(BAD), user="alice", secrets=[GOOD, BAD])


def run(subject: Subject) -> dict[str, str]:
    """Return the cases that fail, with their errors."""
    failed = {}
    for case in cases(subject):
        try:
            case()
        except AssertionError as error:
            failed[str(case)] = str(error)
    return failed


def test_every_hook_has_its_row() -> None:
    hooks = {name for name, value in vars(specs).items() if hasattr(value, f"{specs.PROJECT}_spec")}
    assert hooks == CALLS.keys() == DENIED.keys(), "add its call and its denial to trouter.testing.hook_calls"


@pytest.mark.parametrize(
    "plugin", [audit_log, feedback, sasl_anonymous, strip_annotations], ids=lambda plugin: plugin.__name__
)
def test_plugins_without_secrets_conform(plugin: ModuleType) -> None:
    assert run(Subject(plugin)) == {}


class Voter:
    """A plugin that votes on connections and links."""

    @hookimpl
    def vhost_policy(self) -> None:
        return None

    @hookimpl
    def judge_attach(self) -> Vote:
        return Vote.ALLOW


def test_plugins_that_vote_conform() -> None:
    assert run(Subject(Voter)) == {}
    assert len([case for case in cases(Subject(Voter)) if "a real router refuses" in str(case)]) == 2


def test_a_router_that_overlooked_a_broken_vote_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plugins, "may_attach", lambda *_: True)
    failed = run(Subject(Voter))
    message = failed["judge_attach that raises: a real router refuses"]
    assert message == "a router whose judge_attach raises attaches a link"


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "users"
    put_user(path, "alice", GOOD.encode())
    return path


@pytest.mark.parametrize(
    ("plugin", "login"),
    [
        (sasl_plain, PLAIN),
        (
            sasl_scram,
            Login(
                lambda: Scram("SCRAM-SHA-256", "alice", GOOD),
                lambda: Scram("SCRAM-SHA-256", "alice", BAD),
                user="alice",
                secrets=[GOOD, BAD],
            ),
        ),
    ],
    ids=["sasl_plain", "sasl_scram"],
)
def test_plugins_with_passwords_conform(plugin: ModuleType, login: Login, users: Path) -> None:
    mechanism = login.right().name
    assert run(Subject(plugin, f"router {{ usersFile: {users} }}\n{LISTENER.format(mechanism)}", [login])) == {}


# --- plugins with faults


class Exchange:
    """PLAIN for alice; each mutant below differs in one thing."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        match response.split(b"\0"):
            case [b"", user, password] if user == b"alice" and password == GOOD.encode():
                return Authenticated("alice")
        return self.refuse()

    def refuse(self) -> Refused:
        """Name no user: the router reads the name in a message of PLAIN."""
        return Refused("wrong password, or malformed")


class Mutant:
    """A plugin that serves PLAIN with this exchange."""

    def __init__(self, exchange: Callable[[], SaslExchange] = Exchange) -> None:
        self.exchange = exchange

    @hookimpl
    def sasl_mechanisms(self) -> list[str]:
        return ["PLAIN"]

    @hookimpl
    def open_sasl(self) -> SaslExchange:
        return self.exchange()


class LetsEverybodyIn(Exchange):
    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        return Authenticated("alice")


class RefusesEverybody(Exchange):
    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        return Refused("no")


class CallsHerBob(Exchange):
    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        answer = await super().respond(response)
        return Authenticated("bob") if isinstance(answer, Authenticated) else answer


class Unpacks(Exchange):
    """Raise on malformed responses."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        _, _, _ = response.decode().split("\0")
        return await super().respond(response)


class NeverEnds(Exchange):
    """Answer a wrong response with another challenge."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        answer = await super().respond(response)
        return answer if isinstance(answer, Authenticated) else Challenge(b"again")


class Logs(Exchange):
    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        logging.getLogger("mutant").debug("heard %s", base64.b64encode(response.split(b"\0")[-1]).decode())
        return await super().respond(response)


class Shows(Exchange):
    """Show the password in its repr, which debuggers and error reports print."""

    received = b""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        self.received = response
        return await super().respond(response)

    def __repr__(self) -> str:
        return f"Shows({self.received!r})"


class NamesAnother(Exchange):
    def refuse(self) -> Refused:
        return Refused("wrong password", user="?")


class IsNeverSure(Exchange):
    def refuse(self) -> Refused:
        return Refused("wrong password", temporary=True)


class Remembers(Exchange):
    """Admit a client that comes after a right one."""

    seen = False

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        answer = await super().respond(response)
        await trio.lowlevel.checkpoint()
        if isinstance(answer, Authenticated):
            type(self).seen = True
        return Authenticated("alice") if self.seen else answer


class HoldsALock(Exchange):
    """Admit no client after one that disconnected."""

    locked = False

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if self.locked:
            return Refused("busy")
        type(self).locked = True
        await trio.lowlevel.checkpoint()
        type(self).locked = False
        return await super().respond(response)


def subject(plugin: object) -> Subject:
    return Subject(plugin, LISTENER.format("PLAIN"), [PLAIN])


def test_the_plugin_that_the_mutants_are_made_of_conforms() -> None:
    assert run(subject(Mutant())) == {}


class Key:
    """A client of a mechanism whose only message is a key; it names no user."""

    name = "HOUSE-KEY"

    def __init__(self, key: str) -> None:
        self.key = key

    async def start(self) -> bytes:
        return self.key.encode()

    async def respond(self, challenge: bytes) -> bytes:
        return self.key.encode()


class Door:
    """A plugin that serves that mechanism."""

    @hookimpl
    def sasl_mechanisms(self) -> list[str]:
        return [Key.name]

    @hookimpl
    def open_sasl(self) -> SaslExchange:
        return self

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        return Authenticated("alice") if response == GOOD.encode() else Refused("no such key")


def test_a_plugin_whose_mechanism_names_nobody_conforms_and_locks_nobody_out() -> None:
    login = Login(lambda: Key(GOOD), lambda: Key(BAD), user="alice", secrets=[GOOD, BAD], tried="")
    assert run(Subject(Door(), LISTENER.format(Key.name), [login])) == {}


@pytest.mark.parametrize(
    ("exchange", "case", "message"),
    [
        (LetsEverybodyIn, "right credentials", "the wrong credentials are let in"),
        (RefusesEverybody, "right credentials", "the right credentials are refused"),
        (CallsHerBob, "right credentials", "the user is 'bob'"),
        (Unpacks, "hostile responses", "faults: {'respond': 1}"),
        (NeverEnds, "hostile responses", "goes on after 16 steps"),
        (Logs, "no secret", "in base64"),
        (Shows, "no secret", "in plain"),
        (Remembers, "two peers", "wrong"),
        (HoldsALock, "a cancelled exchange", "busy"),
        (NamesAnother, "guesses", "a refusal must name 'alice': return Refused(..., user=NAME)"),
        (IsNeverSure, "guesses", "the failures of 'alice' were not counted as those of one user"),
    ],
)
def test_a_fault_is_caught_by_its_case(exchange: type[Exchange], case: str, message: str) -> None:
    (found,) = [each for each in cases(subject(Mutant(exchange))) if str(each).startswith(f"PLAIN: {case}")]
    with pytest.raises(AssertionError) as failure:
        found()
    assert message in str(failure.value)


def test_a_hook_that_waits_is_caught() -> None:
    class Slow(Mutant):
        @hookimpl
        def sasl_mechanisms(self) -> list[str]:
            clock_s[0] += 5.0
            return ["PLAIN"]

    clock_s = [0.0]
    (found,) = [each for each in cases(subject(Slow())) if str(each) == "sasl_mechanisms answers at once"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio.current_time", lambda: clock_s[0])
        with pytest.raises(AssertionError, match=r"sasl_mechanisms took 5.0 s"):
            found()


def test_a_router_that_trusted_broken_hooks_would_fail_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plugins, "annotation_filter", lambda *_: AnnotationFilter(strip_in=False, strip_out=False))
    failed = run(Subject(strip_annotations))
    assert set(failed) == {"annotation_filter that raises denies", "annotation_filter that answers rubbish denies"}


def test_the_hooks_of_a_plugin_are_those_that_the_plugin_implements() -> None:
    assert hooks_of(strip_annotations) == ("annotation_filter",)
    assert hooks_of(Mutant()) == ("open_sasl", "sasl_mechanisms")


def test_secrets_are_looked_for_in_every_form() -> None:
    assert dict(forms("a b")) == {
        "in plain": "a b",
        "in base64": "YSBi",
        "in hexadecimal": "612062",
        "percent-encoded": "a%20b",
    }


# --- a router on a port of this machine


async def test_a_router_serves_a_plugin_beside_its_own() -> None:
    text = LISTENER.format("PLAIN") + "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    async with open_router(text, {"mutant": Mutant()}) as router:
        async with (
            router.connect(user="alice", password=GOOD) as connection,
            connection.open_receiver("kit") as receiver,
            connection.open_sender("kit") as sender,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(sender.send, Message("hello"))
            delivery = await receiver.receive()
            assert delivery.message.body == "hello"
            await delivery.accept()
        assert len(router.ports) == 2
        assert "mutant" in [plugin.name for plugin in router.plugins.describe()]
        assert not router.faults


async def test_a_router_that_a_plugin_refuses_does_not_start() -> None:
    class Picky:
        @hookimpl
        def configure(self, router: Any) -> None:
            raise ConfigurationRefused("not on my watch")

    with pytest.raises(ConfigurationRefused, match="picky: not on my watch"):
        async with open_router(plugins={"picky": Picky()}):
            pass
