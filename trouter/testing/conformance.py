"""A conformance suite for plugins: their behaviour, and the router's when a hook breaks.

    SUBJECT = Subject(
        plugin=tickets,
        configuration="listener { host: 127.0.0.1, port: 0, saslMechanisms: PLAIN, allowInsecurePlain: loopback }",
        logins=[Login(lambda: Plain("alice", GOOD), lambda: Plain("alice", BAD), user="alice", secrets=[GOOD, BAD])],
    )

    @pytest.mark.parametrize("case", cases(SUBJECT), ids=str)
    def test_conformance(case: Case) -> None:
        case()

Each case runs its own event loop, and fails with an AssertionError that says what the plugin did. It does not need
pytest: any runner may call the cases.
"""

from __future__ import annotations

import base64
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_network
from typing import Final
from urllib.parse import quote

import trio

from trouter.client import AuthenticationFailed, ConnectionClosed, connect
from trouter.client.sasl import SaslMechanism
from trouter.hooks import Authenticated, Challenge, Plugins, Refused, SaslExchange

from .hook_calls import CALLS, DENIED, REFUSED
from .loopback import ANONYMOUS_ROUTER, open_router
from .sabotage import BROKEN_EXCHANGES, RUBBISH, Once, broken, hooks_of, raises, timed
from .subject import Login, Subject

__all__ = ["CALLS", "DENIED", "Case", "Login", "Subject", "cases", "forms"]

#: Steps that an exchange may take in the router.
MAX_STEPS: Final = 16
#: Limits of one step and of a hook, which must not wait; only code that hangs takes so long.
STEP_S: Final = 10.0
HOOK_S: Final = 1.0
#: Called at start and reload only, or in a thread.
MAY_READ_FILES: Final = frozenset({"configure", "refresh", "observe"})
#: The router's time-out for a stalled exchange here.
STALL_S: Final = 1
#: Wrong credentials, after which the user is locked out and each attempt waits for ``WAIT_S``: no time to speak of, but
#: a power of two, so that it is the same after it was added to another time.
GUESSES: Final = 4
WAIT_S: Final = 2.0**-10
#: Hostile responses: nothing, nonsense, invalid UTF-8, and far too much.
HOSTILE: Final = (
    b"",
    b"\0",
    b"\0\0",
    b"\0\0\0\0",
    b"\xff\xfe\0\xff\0\xff",
    b"n,,n=,r=",
    b"\0a\0" + b"b" * 65536,
    b"\0" * 1000,
)


@dataclass(frozen=True)
class Case:
    """One test; call it to run it."""

    name: str
    _run: Callable[[], None] = field(repr=False)

    def __call__(self) -> None:
        self._run()

    def __str__(self) -> str:
        return self.name


def cases(subject: Subject) -> list[Case]:
    """Return the cases of a plugin: for each hook that it implements, and for each login."""
    found = []
    for hook in hooks_of(subject.plugin):
        found += [
            Case(f"{hook} answers at once", partial(_trio, _answers_at_once, subject, hook)),
            Case(f"{hook} that raises denies", partial(_denies, subject, hook, raises)),
            Case(f"{hook} that answers rubbish denies", partial(_denies, subject, hook, lambda: RUBBISH)),
        ]
        if hook in REFUSED:
            found.append(Case(f"{hook} that raises: a real router refuses", partial(_trio, _refuses, subject, hook)))
    for login in subject.logins:
        mechanism = login.right().name
        found += [
            Case(f"{mechanism}: {what}", partial(_trio, check, subject, login)) for what, check in LOGIN_CHECKS.items()
        ]
        found += [
            Case(
                f"{mechanism}: the router outlives an exchange that {what}",
                partial(_trio, _outlives, subject, login, what),
            )
            for what in BROKEN_EXCHANGES
        ]
    return found


def _trio(check: Callable[..., Awaitable[None]], *arguments: object) -> None:
    trio.run(check, *arguments)


# --- hooks


async def _answers_at_once(subject: Subject, hook: str) -> None:
    took_s: list[float] = []
    plugins = subject.registered(timed(subject.plugin, hook, took_s))
    subject.configure(plugins)
    CALLS[hook](plugins, subject)
    if hook not in MAY_READ_FILES:
        longest_s = max(took_s, default=0.0)
        assert longest_s < HOOK_S, f"{hook} took {longest_s:.1f} s; slow work belongs to what it returns"
    assert not plugins.faults, f"faults: {dict(plugins.faults)}"


def _denies(subject: Subject, hook: str, answer: Callable[[], object]) -> None:
    plugins = subject.registered(broken(subject.plugin, hook, answer))
    with captured() as lines:
        if hook != "configure":
            subject.configure(plugins)
        denial = CALLS[hook](plugins, subject)
    assert denial == DENIED[hook], f"a broken {hook} must deny, and the answer is {denial!r}"
    assert plugins.faults[hook] > 0, f"a broken {hook} was not counted"
    assert any(line.startswith("plugin ") and hook in line for line in lines), f"a broken {hook} was not logged"


async def _refuses(subject: Subject, hook: str) -> None:
    plugins = {subject.name: broken(subject.plugin, hook, raises)}
    async with open_router(ANONYMOUS_ROUTER, plugins) as router:
        for _ in range(2):  # twice, since a router that had stopped could not refuse again
            try:
                async with router.connect() as connection, connection.open_sender("address"):
                    pass
            except REFUSED[hook]:
                continue
            raise AssertionError(f"a router whose {hook} raises attaches a link")
        assert router.faults[hook] >= 2, f"a broken {hook} was not counted"


# --- ways in


async def converse(plugins: Plugins, exchange: SaslExchange, client: SaslMechanism) -> Authenticated | Refused:
    """Run one exchange to its end like the router; AssertionError if it is too slow or too long."""
    response = await client.start() or b""
    for _ in range(MAX_STEPS):
        with trio.move_on_after(STEP_S) as step:
            answer = await plugins.objects.respond_or_refuse(exchange, response)
        assert not step.cancelled_caught, f"a step took more than {STEP_S:.0f} s"
        if not isinstance(answer, Challenge):
            return answer
        response = await client.respond(answer.data)
    raise AssertionError(f"the exchange goes on after {MAX_STEPS} steps")


def _opened(plugins: Plugins, subject: Subject, mechanism: str, number: int = 1) -> SaslExchange:
    exchange = plugins.open_sasl(mechanism, subject.peer(number))
    assert exchange is not None, f"{mechanism} is not served on listener {subject.listener.name}"
    return exchange


async def _log_in(
    plugins: Plugins, subject: Subject, client: SaslMechanism, number: int = 1
) -> Authenticated | Refused:
    return await converse(plugins, _opened(plugins, subject, client.name, number), client)


async def _right_and_wrong(subject: Subject, login: Login) -> None:
    plugins = subject.plugins()
    answer = await _log_in(plugins, subject, login.right())
    assert isinstance(answer, Authenticated), f"the right credentials are refused: {answer}"
    assert answer.user == login.user, f"the user is {answer.user!r}, and should be {login.user!r}"
    answer = await _log_in(plugins, subject, login.wrong())
    assert isinstance(answer, Refused), f"the wrong credentials are let in: {answer}"
    assert not answer.temporary, "wrong credentials are refused for now only"
    assert not plugins.faults, f"faults: {dict(plugins.faults)}"


async def _hostile(subject: Subject, login: Login) -> None:
    plugins = subject.plugins()
    for response in HOSTILE:
        for later in (response, b"", b"\xff" * 100):
            client = _Says(login.right().name, response, later)
            answer = await _log_in(plugins, subject, client)
            assert isinstance(answer, Refused), f"{response[:20]!r} is let in as {answer}"
            assert not plugins.faults, f"after {response[:20]!r}: faults: {dict(plugins.faults)}"


async def _cancelled(subject: Subject, login: Login) -> None:
    plugins = subject.plugins()
    client = login.right()
    with trio.CancelScope() as scope:
        scope.cancel()
        await _log_in(plugins, subject, client)
    assert not plugins.faults, f"being cancelled is no fault: {dict(plugins.faults)}"
    await _right_and_wrong(subject, login)
    answer = await _log_in(plugins, subject, login.right())
    assert isinstance(answer, Authenticated), f"after a client hung up: {answer}"


async def _two_peers(subject: Subject, login: Login) -> None:
    plugins = subject.plugins()
    answers: dict[str, Authenticated | Refused] = {}

    async def as_one(name: str, client: SaslMechanism, number: int) -> None:
        answers[name] = await _log_in(plugins, subject, client, number)

    # Begun first, ended last: the credentials of one peer may not help the other.
    early = _opened(plugins, subject, login.right().name, 1)
    async with trio.open_nursery() as nursery:
        for number, (name, make) in enumerate((("right", login.right), ("wrong", login.wrong)) * 3, 2):
            nursery.start_soon(as_one, f"{name} {number}", make(), number)
    answers["wrong, begun before"] = await converse(plugins, early, login.wrong())
    for name, answer in answers.items():
        expected = Authenticated if name.startswith("right") else Refused
        assert isinstance(answer, expected), f"{name}: {answer}"


async def _secrets(subject: Subject, login: Login) -> None:
    plugins = subject.plugins()
    with captured() as lines:
        for make in (login.right, login.wrong):
            client = make()
            exchange = _opened(plugins, subject, client.name)
            answer = await converse(plugins, exchange, client)
            lines += [repr(exchange), repr(answer)]
        async with open_router(subject.loaded(), subject.registered()) as router:
            await _enter(router.url, login)
    shown = "\n".join(lines)
    for secret in login.secrets:
        for encoding, text in forms(secret):
            assert text not in shown, f"a secret stands in the log, {encoding}"


async def _real(subject: Subject, login: Login) -> None:
    async with open_router(subject.loaded(), subject.registered()) as router:
        await _enter(router.url, login)
        assert not router.faults, f"faults: {dict(router.faults)}"


async def _guesses(subject: Subject, login: Login) -> None:
    configuration = subject.loaded()
    limits = dataclasses.replace(
        configuration.router,
        auth_lockout="enforce",
        auth_delay_after=GUESSES,
        auth_lockout_after=GUESSES,
        auth_lockout_exempt=(),
        handshake_exempt=(ip_network("127.0.0.0/8"),),
    )
    tried = login.guessed
    with captured() as lines:
        async with open_router(dataclasses.replace(configuration, router=limits), subject.registered()) as router:
            services = router.process.services
            lockout = services.guard.lockout
            lockout.rules = dataclasses.replace(lockout.rules, longest_delay_s=WAIT_S)
            for _ in range(GUESSES):
                await _is_refused(router.url, login.wrong)
            refusals = {line for line in lines if "Authentication failed" in line}
            named = [line for line in refusals if f" user={tried!r} " in line]
            assert len(named) == GUESSES, f"a refusal must name {tried!r}: return Refused(..., user=NAME)"
            keys = lockout.keys()
            assert len(keys) == 1, f"the failures of {tried!r} were not counted as those of one user"
            state = lockout.state_of(keys[0])
            assert state is not None
            assert state[:2] == (GUESSES, WAIT_S), f"{GUESSES} failures of {tried!r} are no reason for a delay: {state}"
            assert services.recorder.denials.logins_denied == GUESSES, "a refused login was not counted"
            if tried:
                assert state[2] > 0, f"{tried!r} was not locked out"
                await _is_refused(router.url, login.right)
            else:
                async with connect(router.url, sasl=[login.right()]):
                    pass


async def _outlives(subject: Subject, login: Login, what: str) -> None:
    make, counts = BROKEN_EXCHANGES[what]
    configuration = subject.loaded()
    first, *others = configuration.listeners
    hasty = dataclasses.replace(first, name="hasty", initial_handshake_timeout_seconds=STALL_S)
    configuration = dataclasses.replace(configuration, listeners=(first, hasty, *others))
    with captured() as lines:
        async with open_router(configuration, subject.registered(Once(subject.plugin, make()))) as router:
            await _is_refused(f"amqp://127.0.0.1:{router.ports[1]}", login.right)
            assert bool(router.faults["respond"]) is counts, f"faults: {dict(router.faults)}"
            await _enter(router.url, login)
    words = ("Authentication failed", "refused", "timeout")
    assert any(word.lower() in line.lower() for line in lines for word in words), "the refusal was not logged"


async def _enter(url: str, login: Login) -> None:
    """Assert that the right credentials log in through a socket, and the wrong ones do not."""
    async with connect(url, sasl=[login.right()]):
        pass
    await _is_refused(url, login.wrong)


async def _is_refused(url: str, make: Callable[[], SaslMechanism]) -> None:
    try:
        async with connect(url, sasl=[make()]):
            pass
    except (AuthenticationFailed, ConnectionClosed):
        return
    raise AssertionError("the router let in whom it should have refused")


LOGIN_CHECKS: Final[dict[str, Callable[[Subject, Login], Awaitable[None]]]] = {
    "right credentials get in and wrong ones do not": _right_and_wrong,
    "hostile responses are refused without a fault": _hostile,
    "a cancelled exchange leaves nothing behind": _cancelled,
    "two peers know nothing of each other": _two_peers,
    "no secret reaches a log": _secrets,
    "a real router lets in and refuses": _real,
    "guesses are delayed, logged, counted, and lock the user out": _guesses,
}


class _Says:
    """A client that sends the same responses to all challenges."""

    def __init__(self, name: str, first: bytes, later: bytes) -> None:
        self.name = name
        self._first = first
        self._later = later

    async def start(self) -> bytes | None:
        return self._first

    async def respond(self, challenge: bytes) -> bytes:
        return self._later


# --- the log


@contextmanager
def captured() -> Iterator[list[str]]:
    """Capture the log of the block at every level, with tracebacks."""
    lines: list[str] = []
    handler = _Lines(lines)
    loggers = logging.getLogger(), logging.getLogger("trouter")  # the second may not propagate to the first
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(1)
    try:
        yield lines
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(1)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


def forms(secret: str | bytes) -> list[tuple[str, str]]:
    """Return the forms in which a secret may be written: name of the encoding, and text."""
    data = secret.encode() if isinstance(secret, str) else secret
    return [
        ("in plain", data.decode("utf-8", "backslashreplace")),
        ("in base64", base64.b64encode(data).decode().rstrip("=")),
        ("in hexadecimal", data.hex()),
        ("percent-encoded", quote(data, safe="")),
    ]
