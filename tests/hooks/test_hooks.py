"""Every hook through a real manager: valid answers, None, exceptions, invalid values. A test has each hook's name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
import trio

from trouter.hooks import (
    MAX_PERMISSIONS,
    AnnotationFilter,
    AttachRequest,
    Authenticated,
    AuthService,
    AuthServiceFacts,
    AuthSession,
    CertificateFacts,
    Challenge,
    ConfigurationRefused,
    ConnectionRequest,
    ConnectorFacts,
    Consumer,
    ConsumerTerms,
    Decision,
    EndedSpan,
    IncomingMessage,
    ListenerFacts,
    PeerFacts,
    Permissions,
    PluginError,
    Plugins,
    Refused,
    Rejected,
    RouterFacts,
    SslProfileFacts,
    VhostPolicy,
    Vote,
    hookimpl,
    specs,
)

LISTENER = ListenerFacts(name="here", host="127.0.0.1", port="5672")
BOTH = AnnotationFilter(strip_in=True, strip_out=True)
MANUAL = Path(__file__).parents[2] / "docs" / "hooks.md"
HOOKS = {name: spec for name, spec in vars(specs).items() if hasattr(spec, "trouter_spec")}


def peer_of(listener: ListenerFacts = LISTENER, *, encrypted: bool = False, loopback: bool = False) -> PeerFacts:
    return PeerFacts(1, listener, "192.0.2.1", 40000, encrypted=encrypted, loopback=loopback)


def plugin(name: str = "made_up", /, **functions: Callable[..., object]) -> object:
    """Return a plugin with these hooks."""
    module = ModuleType(name)
    for hook, function in functions.items():
        setattr(module, hook, hookimpl(function))
    return module


def raises() -> object:
    raise RuntimeError("made up")


def gives(answer: object) -> Callable[[], object]:
    return lambda: answer


def serving(mechanism: str, exchange: object) -> object:
    """Return a plugin that runs ``mechanism`` through ``exchange``."""
    return plugin(sasl_mechanisms=gives([mechanism]), open_sasl=gives(exchange))


class Echo:
    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        return Challenge(response)


class Answer:
    """An exchange that answers with, or raises, the given value."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # rubbish on purpose


# The rule of the house: each hook's signature is in the manual, and a test has its name.


@pytest.mark.parametrize("hook", HOOKS)
def test_the_manual_shows_the_exact_signature(hook: str) -> None:
    assert f"def {hook}{inspect.signature(HOOKS[hook])}\n".replace("'", "") in MANUAL.read_text()


@pytest.mark.parametrize("hook", HOOKS)
def test_the_manual_has_a_page_for_each_hook(hook: str) -> None:
    page = re.search(rf"^## {hook}$(.*?)(?=^## )", MANUAL.read_text(), re.MULTILINE | re.DOTALL)
    assert page is not None
    assert "**Return**" in page[1]
    assert "**Silence**" in page[1] or "silence" in page[1]
    assert page[1].count("```python") >= 2
    assert all(f"`{argument}`" in page[1] for argument in inspect.signature(HOOKS[hook]).parameters)


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_has_a_test_named_after_it(hook: str) -> None:
    assert callable(globals().get(f"test_{hook}"))


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hookspec_documents_a_raise_and_silence(hook: str) -> None:
    contract = HOOKS[hook].__doc__
    assert "raise" in contract
    assert "silence" in contract.lower()


# configure


def test_configure() -> None:
    calls: list[RouterFacts] = []
    router = RouterFacts("QDR.A", sasl_users_file="/users")

    def configure(router: RouterFacts) -> None:
        calls.append(router)

    Plugins([plugin("one", configure=configure), plugin("two", configure=configure)]).configure(router)
    assert calls == [router, router]


def test_configure_reports_the_problems_of_all_plugins() -> None:
    calls: list[RouterFacts] = []

    def note(router: RouterFacts) -> None:
        calls.append(router)

    def refuse() -> None:
        raise ConfigurationRefused("no salt", "no pepper")

    plugins = Plugins(
        [
            plugin("one", configure=refuse),
            plugin("two", configure=raises),
            plugin("three", configure=note),
        ]
    )
    with pytest.raises(ConfigurationRefused) as refusal:
        plugins.configure(RouterFacts("QDR.A"))
    assert refusal.value.problems == (
        "one: no salt",
        "one: no pepper",
        "two: failed while it was configured, see the log",
    )
    assert len(calls) == 1
    assert plugins.faults == {"configure": 1}


def test_configure_with_a_return_value_is_refused() -> None:
    plugins = Plugins([plugin(configure=gives(True))])
    with pytest.raises(ConfigurationRefused, match="made_up: configure must return nothing"):
        plugins.configure(RouterFacts("QDR.A"))
    assert plugins.faults == {"configure": 1}


# refresh


def test_refresh() -> None:
    plugins = Plugins(
        [
            plugin("one", refresh=gives(False)),
            plugin("two", refresh=gives(True)),
            plugin("three", configure=gives(None)),
        ]
    )
    assert plugins.refresh() is True
    assert Plugins([plugin(refresh=gives(False))]).refresh() is False
    assert Plugins([plugin(configure=gives(None))]).refresh() is False
    assert not plugins.faults


def test_a_refresh_that_fails_or_answers_rubbish_changes_nothing_and_holds_up_no_other_plugin() -> None:
    calls: list[str] = []

    def refresh() -> bool:
        calls.append("three")
        return False

    plugins = Plugins(
        [plugin("one", refresh=raises), plugin("two", refresh=gives("yes")), plugin("three", refresh=refresh)]
    )
    assert plugins.refresh() is False
    assert calls == ["three"]
    assert plugins.faults == {"refresh": 2}


def test_forgotten_offers_are_requested_again() -> None:
    served = ["ANONYMOUS"]
    plugins = Plugins([plugin(sasl_mechanisms=lambda: list(served))])
    assert plugins.sasl_mechanisms(LISTENER) == ("ANONYMOUS",)
    served[:] = ["PLAIN"]
    assert plugins.sasl_mechanisms(LISTENER) == ("ANONYMOUS",)
    plugins.offers.forget()
    assert plugins.sasl_mechanisms(LISTENER) == ("PLAIN",)


# sasl_mechanisms


def test_sasl_mechanisms() -> None:
    calls: list[ListenerFacts] = []

    def sasl_mechanisms(listener: ListenerFacts) -> list[str]:
        calls.append(listener)
        return ["ANONYMOUS", "Scram-Sha-256"]

    plugins = Plugins(
        [plugin("one", sasl_mechanisms=sasl_mechanisms), plugin("two", sasl_mechanisms=gives(("PLAIN",)))]
    )
    assert plugins.sasl_mechanisms(LISTENER) == ("SCRAM-SHA-256", "PLAIN", "ANONYMOUS")
    assert plugins.sasl_mechanisms(LISTENER) == ("SCRAM-SHA-256", "PLAIN", "ANONYMOUS")
    assert calls == [LISTENER]
    plugins.configure(RouterFacts("QDR.A"))
    plugins.sasl_mechanisms(LISTENER)
    assert calls == [LISTENER, LISTENER]
    assert not plugins.faults


def test_configured_sasl_mechanisms_keep_their_order() -> None:
    plugins = Plugins([plugin(sasl_mechanisms=gives(["SCRAM-SHA-256", "PLAIN", "ANONYMOUS"]))])
    listener = ListenerFacts("here", "", "amqp", sasl_mechanisms=("anonymous", "XOAUTH2", "plain", "PLAIN"))
    assert plugins.sasl_mechanisms(listener) == ("ANONYMOUS", "PLAIN")
    assert plugins.offers.of(listener).unserved == ("XOAUTH2",)
    assert not plugins.offers.of(listener).conflicts


LEAVE = "; leave it out, or configure a plugin that serves it"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PLIAN", ", did you mean PLAIN?"),
        ("SCRAM-SHA256", ", did you mean SCRAM-SHA-256?"),
        ("GSSAPI", LEAVE),
        ("Q", LEAVE),
    ],
)
def test_an_unknown_sasl_mechanism_that_nothing_serves_is_refused_with_secure_defaults(name: str, hint: str) -> None:
    plugins = Plugins([plugin(sasl_mechanisms=gives(["PLAIN", "X-OUR-OWN"]))])
    good = ListenerFacts("good", "", "amqp", sasl_mechanisms=("X-OUR-OWN", "EXTERNAL"))
    bad = ListenerFacts("bad", "", "amqp", sasl_mechanisms=(name, "PLAIN"))
    plugins.configure(RouterFacts("QDR.A", listeners=(good,)))
    plugins.configure(RouterFacts("QDR.A", listeners=(good, bad)))
    with pytest.raises(ConfigurationRefused) as refused:
        plugins.configure(RouterFacts("QDR.A", secure_defaults=True, listeners=(good, bad)))
    problem = f"listener bad: saslMechanisms has {name}, which no plugin serves{hint}"
    assert refused.value.problems == (problem,)
    assert plugins.sasl_mechanisms(bad) == ("PLAIN",)


@pytest.mark.parametrize("configured", [(), ("ANONYMOUS", "PLAIN")])
def test_anonymous_is_not_among_the_sasl_mechanisms_where_authentication_is_required(
    configured: tuple[str, ...],
) -> None:
    plugins = Plugins([plugin(sasl_mechanisms=gives(["PLAIN", "ANONYMOUS"]))])
    listener = ListenerFacts("here", "", "amqp", sasl_mechanisms=configured, authenticate_peer=True)
    assert plugins.sasl_mechanisms(listener) == ("PLAIN",)


@pytest.mark.parametrize(
    ("allowed", "encrypted", "loopback", "expected"),
    [
        ("no", False, False, ("X-OWN", "ANONYMOUS")),
        ("no", False, True, ("X-OWN", "ANONYMOUS")),
        ("no", True, False, ("X-OWN", "PLAIN", "ANONYMOUS")),
        ("loopback", False, False, ("X-OWN", "ANONYMOUS")),
        ("loopback", False, True, ("X-OWN", "PLAIN", "ANONYMOUS")),
        ("loopback", True, False, ("X-OWN", "PLAIN", "ANONYMOUS")),
        ("yes", False, False, ("X-OWN", "PLAIN", "ANONYMOUS")),
    ],
)
def test_sasl_mechanisms_that_show_the_secret_need_a_safe_wire(
    allowed: str, encrypted: bool, loopback: bool, expected: tuple[str, ...]
) -> None:
    plugins = Plugins([plugin(sasl_mechanisms=gives(["X-OWN", "PLAIN", "ANONYMOUS"]), open_sasl=gives(Echo()))])
    peer = peer_of(
        ListenerFacts("here", "", "amqp", allow_insecure_plain=allowed), encrypted=encrypted, loopback=loopback
    )
    assert plugins.sasl_mechanisms_for(peer) == expected
    assert (plugins.open_sasl("PLAIN", peer) is not None) is ("PLAIN" in expected)


def test_without_plugins_there_are_no_sasl_mechanisms() -> None:
    assert Plugins().sasl_mechanisms(LISTENER) == ()


@pytest.mark.parametrize(
    "rubbish",
    [
        "PLAIN",
        b"PLAIN",
        7,
        True,
        {"PLAIN"},
        ["PLAIN", None],
        [b"PLAIN"],
        [""],
        ["A B"],
        ["X" * 21],
        ["X"] * 33,
        [["PLAIN"]],
    ],
)
def test_sasl_mechanisms_with_rubbish_let_no_client_in(rubbish: object) -> None:
    plugins = Plugins([plugin("good", sasl_mechanisms=gives(["PLAIN"])), plugin("bad", sasl_mechanisms=gives(rubbish))])
    assert plugins.sasl_mechanisms(LISTENER) == ()
    assert plugins.faults == {"sasl_mechanisms": 1}


def test_sasl_mechanisms_that_raise_let_no_client_in(caplog: pytest.LogCaptureFixture) -> None:
    plugins = Plugins([plugin("good", sasl_mechanisms=gives(["PLAIN"])), plugin("bad", sasl_mechanisms=raises)])
    assert plugins.sasl_mechanisms(LISTENER) == ()
    assert plugins.sasl_mechanisms(LISTENER) == ()
    assert plugins.faults == {"sasl_mechanisms": 1}
    assert caplog.messages == ["plugin bad failed in sasl_mechanisms"]
    assert caplog.records[0].name == "trouter.PLUGIN"
    assert caplog.records[0].exc_info is not None


# open_sasl


def test_open_sasl() -> None:
    calls: list[tuple[str, PeerFacts]] = []
    exchange = Echo()

    def open_sasl(mechanism: str, peer: PeerFacts) -> Echo | None:
        calls.append((mechanism, peer))
        return exchange

    plugins = Plugins(
        [
            plugin("one", sasl_mechanisms=gives(["X-OWN"]), open_sasl=open_sasl),
            plugin("two", sasl_mechanisms=gives(["X-TWO"]), open_sasl=gives(None)),
        ]
    )
    assert plugins.open_sasl("x-own", peer_of()) is exchange
    assert calls == [("X-OWN", peer_of())]
    assert not plugins.faults


@pytest.mark.parametrize("mechanism", ["", "X-OTHER", "X-OWN ", "X-OW\u0130N"])
def test_open_sasl_is_not_called_for_mechanisms_that_were_not_offered(mechanism: str) -> None:
    assert Plugins([serving("X-OWN", Echo())]).open_sasl(mechanism, peer_of()) is None


def test_open_sasl_with_silence_refuses() -> None:
    plugins = Plugins([serving("X-OWN", None)])
    assert plugins.open_sasl("X-OWN", peer_of()) is None
    assert not plugins.faults


def test_open_sasl_that_raises_refuses() -> None:
    plugins = Plugins([serving("X-OWN", Echo()), plugin("bad", open_sasl=raises)])
    assert plugins.open_sasl("X-OWN", peer_of()) is None
    assert plugins.faults == {"open_sasl": 1}


@pytest.mark.parametrize("rubbish", [True, "anonymous", Authenticated("me"), type("No", (), {"respond": "yes"})()])
def test_open_sasl_with_rubbish_refuses(rubbish: object) -> None:
    plugins = Plugins([serving("X-OWN", rubbish)])
    assert plugins.open_sasl("X-OWN", peer_of()) is None
    assert plugins.faults == {"open_sasl": 1}


def test_open_sasl_that_returns_a_coroutine_refuses() -> None:
    async def late() -> Echo:
        return Echo()

    def open_sasl() -> object:
        return late()

    plugins = Plugins([plugin(sasl_mechanisms=gives(["X-OWN"]), open_sasl=open_sasl)])
    assert plugins.open_sasl("X-OWN", peer_of()) is None
    assert plugins.faults == {"open_sasl": 1}


# The exchange


async def test_an_exchange_answers() -> None:
    plugins = Plugins()
    for answer in (Challenge(b"?"), Authenticated("me", b"!"), Refused("no", temporary=True, user="me")):
        assert await plugins.objects.respond_or_refuse(Answer(answer), b"") == answer
    assert not plugins.faults


@pytest.mark.parametrize(
    "rubbish",
    [
        None,
        True,
        "me",
        b"",
        Challenge("?"),  # type: ignore[arg-type]
        Authenticated(7),  # type: ignore[arg-type]
        Authenticated("me", "!"),  # type: ignore[arg-type]
        Authenticated("me", permissions=("a",)),  # type: ignore[arg-type]
        Authenticated("me", tenant=None),  # type: ignore[arg-type]
        Refused(None),  # type: ignore[arg-type]
        Refused("no", "x"),  # type: ignore[arg-type]
    ],
)
async def test_an_exchange_with_rubbish_is_a_temporary_refusal(rubbish: object) -> None:
    plugins = Plugins()
    answer = await plugins.objects.respond_or_refuse(Answer(rubbish), b"")
    assert isinstance(answer, Refused)
    assert answer.temporary
    assert plugins.faults == {"respond": 1}


@pytest.mark.parametrize("entries", [["a"], "a", (b"a",), ("a", ""), (None,)])
def test_permissions_are_addresses(entries: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="sources must be a tuple of addresses"):
        Permissions(sources=entries)
    with pytest.raises(ValueError, match="targets must be a tuple of addresses"):
        Permissions(targets=entries)


def test_permissions_are_bounded() -> None:
    half = ("a",) * (MAX_PERMISSIONS // 2)
    assert Permissions(half, half) == Permissions(half, half)
    with pytest.raises(ValueError, match=f"there can be {MAX_PERMISSIONS} permissions"):
        Permissions(half, (*half, "b"))


def test_no_client_is_authenticated_without_a_name() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        Authenticated("")


async def test_an_exchange_that_does_not_await_is_a_temporary_refusal() -> None:
    class Sync:
        def respond(self, response: bytes) -> Authenticated:
            return Authenticated("me")

    plugins = Plugins()
    answer = await plugins.objects.respond_or_refuse(Sync(), b"")  # type: ignore[arg-type]  # rubbish on purpose
    assert isinstance(answer, Refused)
    assert plugins.faults == {"respond": 1}


async def test_an_exchange_that_raises_is_refused_and_its_text_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Leaky:
        async def respond(self, response: bytes) -> Challenge:
            raise KeyError(response) from ValueError(response)

    plugins = Plugins()
    answer = await plugins.objects.respond_or_refuse(Leaky(), b"open sesame")
    assert answer == Refused("the authentication plugin failed", temporary=True)
    assert plugins.faults == {"respond": 1}
    assert "KeyError at " in caplog.text
    assert "Leaky" in caplog.text
    assert "sesame" not in caplog.text


async def test_an_exchange_group_of_errors_is_refused() -> None:
    answer = await Plugins().objects.respond_or_refuse(Answer(ExceptionGroup("both", [OSError(), ValueError()])), b"")
    assert isinstance(answer, Refused)


async def test_the_cancellation_of_an_exchange_passes_through() -> None:
    class Stalls:
        async def respond(self, response: bytes) -> Challenge:
            await trio.sleep_forever()

    plugins = Plugins()
    with trio.CancelScope() as deadline:
        deadline.cancel()
        await plugins.objects.respond_or_refuse(Stalls(), b"")
    assert deadline.cancelled_caught
    assert not plugins.faults


def test_the_repr_of_an_answer_hides_its_octets() -> None:
    assert "sesame" not in repr((Challenge(b"sesame"), Authenticated("me", b"sesame")))


# open_sasl_client


class Client:
    """The client's side of an exchange, which answers with, or raises, the given value."""

    def __init__(self, answer: object = b"", name: str = "X-OWN") -> None:
        self.answer = answer
        self.name = name

    def _give(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def start(self) -> bytes | None:
        return self._give()  # type: ignore[no-any-return]  # rubbish on purpose

    async def respond(self, challenge: bytes) -> bytes:
        return self._give()  # type: ignore[no-any-return]

    async def finish(self, additional: bytes | None) -> bool:
        return self._give()  # type: ignore[no-any-return]


CONNECTOR = ConnectorFacts("there", "localhost", may_send_password=True, user="me", password="sesame")


def test_open_sasl_client() -> None:
    calls: list[tuple[Sequence[str], ConnectorFacts]] = []
    exchange = Client()

    def open_sasl_client(mechanisms: Sequence[str], connector: ConnectorFacts) -> Client:
        calls.append((mechanisms, connector))
        return exchange

    plugins = Plugins([plugin(open_sasl_client=open_sasl_client)])
    assert plugins.open_sasl_client(["X-OWN", "X-TWO"], CONNECTOR) is exchange
    assert calls == [(("X-OWN", "X-TWO"), CONNECTOR)]
    assert "sesame" not in repr(CONNECTOR)


@pytest.mark.parametrize("answer", [None, True, "X-OWN", b"", Client(name="X-OTHER"), Echo()])
def test_open_sasl_client_with_rubbish_or_silence_gives_up(answer: object) -> None:
    plugins = Plugins([plugin(open_sasl_client=gives(answer))])
    assert plugins.open_sasl_client(["X-OWN"], CONNECTOR) is None
    assert plugins.faults == ({} if answer is None else {"open_sasl_client": 1})


def test_open_sasl_client_that_raises_gives_up() -> None:
    plugins = Plugins([plugin(open_sasl_client=raises)])
    assert plugins.open_sasl_client(["X-OWN"], CONNECTOR) is None
    assert plugins.faults == {"open_sasl_client": 1}


@pytest.mark.parametrize("answer", [True, "sesame", 7, ValueError("sesame")])
@pytest.mark.parametrize("challenge", [None, b"?"])
async def test_a_failing_client_side_does_not_reveal_the_reason(
    answer: object, challenge: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = Plugins()
    with pytest.raises(PluginError, match="the plugin that logs the router in"):
        await plugins.objects.client_answer(Client(answer), challenge)
    assert plugins.faults == {"open_sasl_client": 1}
    assert "sesame" not in caplog.text


@pytest.mark.parametrize(
    ("answer", "satisfied"), [(True, True), (False, False), (1, False), (None, False), (ValueError("sesame"), False)]
)
async def test_the_client_side_is_satisfied_only_by_its_own_answer(answer: object, satisfied: bool) -> None:
    assert await Plugins().objects.client_is_satisfied(Client(answer), b"") is satisfied


# auth_service


class Session:
    """A session with a service that answers with, or raises, the given value."""

    def __init__(self, answer: object = None, mechanisms: object = ("PLAIN",)) -> None:
        self.answer = answer
        self.mechanisms: Any = mechanisms
        self.closed = 0

    async def start(self, mechanism: str, response: bytes | None) -> Challenge | Authenticated | Refused:
        return await self.respond(b"")

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # rubbish on purpose

    def close(self) -> None:
        self.closed += 1


class Service:
    """A service that begins with, or raises, the given value."""

    facts = AuthServiceFacts("there", "localhost", "5671")

    def __init__(self, session: object = None) -> None:
        self.session = session

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        if isinstance(self.session, BaseException):
            raise self.session
        return self.session  # type: ignore[return-value]  # rubbish on purpose


SERVED_ELSEWHERE = ListenerFacts("here", "", "amqp", auth_service="there")


def test_auth_service() -> None:
    calls: list[tuple[ListenerFacts, AuthService]] = []
    own, remote = Service(), Service()

    def auth_service(listener: ListenerFacts, remote: AuthService) -> AuthService:
        calls.append((listener, remote))
        return own

    assert Plugins([plugin(auth_service=auth_service)]).auth_service(SERVED_ELSEWHERE, remote) is own
    assert calls == [(SERVED_ELSEWHERE, remote)]


@pytest.mark.parametrize(
    "answer", [None, True, "there", type("No", (Service,), {"facts": 7})(), Refused("no"), Session()]
)
def test_auth_service_with_rubbish_or_silence_lets_no_client_in(answer: object) -> None:
    plugins = Plugins([plugin(auth_service=gives(answer))])
    assert plugins.auth_service(SERVED_ELSEWHERE, Service()) is None
    assert plugins.faults == ({} if answer is None else {"auth_service": 1})


def test_auth_service_that_raises_lets_no_client_in() -> None:
    plugins = Plugins([plugin(auth_service=raises)])
    assert plugins.auth_service(SERVED_ELSEWHERE, Service()) is None
    assert plugins.faults == {"auth_service": 1}


async def test_a_session_with_a_service_begins_and_answers() -> None:
    plugins = Plugins()
    session = Session(Authenticated("me"))
    assert await plugins.objects.begin_or_refuse(Service(session), peer_of(SERVED_ELSEWHERE)) is session
    assert await plugins.objects.start_or_refuse(session, "PLAIN", None) == Authenticated("me")
    refusal = Refused("not now", temporary=True)
    assert await plugins.objects.begin_or_refuse(Service(refusal), peer_of(SERVED_ELSEWHERE)) == refusal
    assert not plugins.faults


@pytest.mark.parametrize(
    "answer",
    [None, True, Challenge(b""), Refused(7), ValueError("sesame"), Session(mechanisms=["A B"]), Session],  # type: ignore[arg-type]
)
async def test_a_service_that_fails_to_begin_is_a_temporary_refusal(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = Plugins()
    refusal = await plugins.objects.begin_or_refuse(Service(answer), peer_of(SERVED_ELSEWHERE))
    assert isinstance(refusal, Refused)
    assert refusal.temporary
    assert plugins.faults == {"begin": 1}
    assert "sesame" not in caplog.text
    assert not isinstance(answer, Session) or answer.closed == 1


@pytest.mark.parametrize("answer", [None, b"", Challenge("?"), ValueError("sesame")])  # type: ignore[arg-type]
async def test_a_session_that_fails_is_a_temporary_refusal(answer: object, caplog: pytest.LogCaptureFixture) -> None:
    plugins = Plugins()
    refusal = await plugins.objects.start_or_refuse(Session(answer), "PLAIN", b"sesame")
    assert isinstance(refusal, Refused)
    assert refusal.temporary
    assert plugins.faults == {"start": 1}
    assert "sesame" not in caplog.text


OFFERED = ("SCRAM-SHA-256", "plain", "ANONYMOUS", "EXTERNAL", "SCRAM-SHA-256-PLUS", "OAUTHBEARER")


@pytest.mark.parametrize(
    ("listed", "required", "encrypted", "expected"),
    [
        ((), False, True, ("SCRAM-SHA-256", "plain", "ANONYMOUS", "OAUTHBEARER")),
        ((), True, True, ("SCRAM-SHA-256", "plain", "OAUTHBEARER")),
        ((), False, False, ("SCRAM-SHA-256", "ANONYMOUS")),
        (("PLAIN", "Scram-Sha-256"), False, True, ("SCRAM-SHA-256", "plain")),
        (("ANONYMOUS", "EXTERNAL", "SCRAM-SHA-256-PLUS"), True, True, ()),
        (("GSSAPI",), False, True, ()),
    ],
)
def test_mechanisms_of_a_service_are_filtered_and_keep_their_order(
    listed: tuple[str, ...], required: bool, encrypted: bool, expected: tuple[str, ...]
) -> None:
    listener = ListenerFacts(
        "here", "", "amqp", sasl_mechanisms=listed, authenticate_peer=required, auth_service="there"
    )
    assert Plugins.relayed_mechanisms(peer_of(listener, encrypted=encrypted), OFFERED) == expected


def test_plugins_serve_no_mechanism_where_a_service_authenticates() -> None:
    plugins = Plugins([serving("X-OWN", Echo())])
    assert plugins.sasl_mechanisms(SERVED_ELSEWHERE) == ()
    assert plugins.open_sasl("X-OWN", peer_of(SERVED_ELSEWHERE)) is None


# annotation_filter


def test_annotation_filter() -> None:
    calls: list[ListenerFacts] = []
    keep = AnnotationFilter(strip_in=False, strip_out=False)

    def annotation_filter(endpoint: ListenerFacts) -> AnnotationFilter:
        calls.append(endpoint)
        return keep

    plugins = Plugins(
        [plugin("one", annotation_filter=annotation_filter), plugin("two", annotation_filter=gives(None))]
    )
    assert plugins.annotation_filter(LISTENER) == keep
    assert calls == [LISTENER]


@pytest.mark.parametrize("role", ["inter-router", "edge"])
def test_annotation_filter_is_not_called_between_routers(role: str) -> None:
    plugins = Plugins([plugin(annotation_filter=raises)])
    listener = ListenerFacts("here", "", "amqp", role=role)
    assert plugins.annotation_filter(listener) == AnnotationFilter(strip_in=False, strip_out=False)
    assert not plugins.faults


def test_annotation_filter_with_silence_strips_both_ways() -> None:
    assert Plugins().annotation_filter(LISTENER) == BOTH
    plugins = Plugins([plugin(annotation_filter=gives(None))])
    assert plugins.annotation_filter(LISTENER) == BOTH
    assert not plugins.faults


@pytest.mark.parametrize("rubbish", [False, (False, False), "no", 0])
def test_annotation_filter_with_rubbish_strips_both_ways(rubbish: object) -> None:
    plugins = Plugins([plugin(annotation_filter=gives(rubbish))])
    assert plugins.annotation_filter(LISTENER) == BOTH
    assert plugins.faults == {"annotation_filter": 1}


def test_annotation_filter_that_raises_strips_both_ways() -> None:
    plugins = Plugins([plugin(annotation_filter=raises)])
    assert plugins.annotation_filter(LISTENER) == BOTH
    assert plugins.faults == {"annotation_filter": 1}


@pytest.mark.parametrize("field", ["allow_insecure_plain", "strip_annotations"])
@pytest.mark.parametrize("choice", ["", "Yes", "maybe", True])
def test_a_listener_has_no_unknown_choice(field: str, choice: object) -> None:
    with pytest.raises(ValueError, match=field):
        ListenerFacts("here", "", "amqp", **{field: choice})  # type: ignore[arg-type]


# Two plugins for one mechanism


def test_sasl_mechanisms_that_two_plugins_serve_are_offered_to_no_client(caplog: pytest.LogCaptureFixture) -> None:
    one, two = (plugin(name, sasl_mechanisms=gives(["X-OWN", f"X-{name}"]), open_sasl=gives(Echo())) for name in "ab")
    plugins = Plugins([one, two])
    assert plugins.sasl_mechanisms(LISTENER) == ("X-A", "X-B")
    assert plugins.open_sasl("X-OWN", peer_of()) is None
    conflict = "listener here: X-OWN is served by a and by b at once; configure one of them"
    assert plugins.offers.of(LISTENER).conflicts == (conflict,)
    assert caplog.messages == [f"{conflict}; the mechanism is not offered"]
    with pytest.raises(ConfigurationRefused) as refused:
        plugins.configure(RouterFacts("QDR.A", listeners=(LISTENER,)))
    assert refused.value.problems == (conflict,)


def test_a_listener_that_does_not_list_a_mechanism_of_two_plugins_has_no_conflict() -> None:
    plugins = Plugins([plugin(name, sasl_mechanisms=gives(["X-OWN", f"X-{name}"])) for name in "ab"])
    listener = ListenerFacts("here", "", "amqp", sasl_mechanisms=("X-A",))
    plugins.configure(RouterFacts("QDR.A", listeners=(listener,)))
    assert plugins.sasl_mechanisms(listener) == ("X-A",)
    assert plugins.offers.of(listener).conflicts == ()


def test_sasl_mechanisms_with_channel_binding_need_a_binding() -> None:
    plugins = Plugins([plugin(sasl_mechanisms=gives(["X-OWN-PLUS", "X-OWN"]), open_sasl=gives(Echo()))])
    bare = peer_of()
    bound = PeerFacts(
        1, LISTENER, "h", 1, encrypted=True, loopback=False, channel_bindings=(("tls-unique", b"secret"),)
    )
    assert plugins.sasl_mechanisms_for(bare) == ("X-OWN",)
    assert plugins.open_sasl("X-OWN-PLUS", bare) is None
    assert plugins.sasl_mechanisms_for(bound) == ("X-OWN-PLUS", "X-OWN")
    assert "secret" not in repr(bound)


async def test_an_end_of_the_credentials_is_a_number_or_none() -> None:
    plugins = Plugins()
    for good in (Authenticated("me", expires_at_s=1.5), Authenticated("me", expires_at_s=7)):
        assert await plugins.objects.respond_or_refuse(Answer(good), b"") == good
    bad = Authenticated("me", expires_at_s="soon")  # type: ignore[arg-type]  # rubbish on purpose
    assert isinstance(await plugins.objects.respond_or_refuse(Answer(bad), b""), Refused)


# map_uid

CERTIFICATE = CertificateFacts("CN=alice", b"certificate")
PROFILE = SslProfileFacts("p", "n")


def test_map_uid() -> None:
    calls: list[object] = []

    def name(certificate: CertificateFacts, profile: SslProfileFacts) -> str:
        calls.extend((certificate, profile))
        return "alice"

    assert Plugins([plugin(map_uid=name)]).map_uid(CERTIFICATE, PROFILE) == "alice"
    assert calls == [CERTIFICATE, PROFILE]


def test_map_uid_may_refuse() -> None:
    refusal = Refused("nobody of ours")
    assert Plugins([plugin(map_uid=gives(refusal))]).map_uid(CERTIFICATE, PROFILE) is refusal


@pytest.mark.parametrize("answer", ["", b"alice", 0, object()])
def test_map_uid_that_answers_rubbish_refuses(answer: object) -> None:
    plugins = Plugins([plugin(map_uid=gives(answer))])
    assert isinstance(plugins.map_uid(CERTIFICATE, PROFILE), Refused)
    assert plugins.faults["map_uid"] == 1


def test_map_uid_that_raises_or_returns_none_refuses() -> None:
    assert isinstance(Plugins([plugin(map_uid=raises)]).map_uid(CERTIFICATE, PROFILE), Refused)
    assert isinstance(Plugins().map_uid(CERTIFICATE, PROFILE), Refused)


# vhost_policy

OPENING = ConnectionRequest(1, "alice", True, "192.0.2.1", "here", "normal", "example.com")


def test_vhost_policy() -> None:
    first = plugin("first", vhost_policy=gives(VhostPolicy("asked second")))
    last = plugin("last", vhost_policy=lambda connection: VhostPolicy(connection.hostname))
    assert Plugins([first, last]).vhost_policy(OPENING) == VhostPolicy("example.com")
    silent = plugin("silent", vhost_policy=gives(None))
    assert Plugins([first, silent]).vhost_policy(OPENING) == VhostPolicy("asked second")


def test_vhost_policy_silence_leaves_the_vhost_to_the_configuration() -> None:
    assert Plugins([plugin("silent", vhost_policy=gives(None))]).vhost_policy(OPENING) is None
    assert Plugins().vhost_policy(OPENING) is None


@pytest.mark.parametrize(
    "answer",
    [raises, gives("guests"), gives(VhostPolicy(7)), gives(VhostPolicy("a", ("b",))), gives(Vote.ALLOW)],  # type: ignore[arg-type]
)
def test_vhost_policy_a_raise_or_rubbish_denies(answer: Callable[[], object]) -> None:
    plugins = Plugins([plugin("broken", vhost_policy=answer)])
    found = plugins.vhost_policy(OPENING)
    assert found is not None
    assert found.denied
    assert plugins.faults == {"vhost_policy": 1}


# judge_attach

ATTACHING = AttachRequest(1, "alice", True, "192.0.2.1", "normal", "", "", "link", True, "address", False)


@pytest.mark.parametrize(
    ("votes", "allowed"),
    [((), True), ((None,), True), ((Vote.ALLOW,), True), ((Vote.DENY,), False), ((Vote.ALLOW, Vote.DENY, None), False)],
)
def test_judge_attach(votes: tuple[Vote | None, ...], allowed: bool) -> None:
    voters = [plugin(f"voter_{number}", judge_attach=gives(vote)) for number, vote in enumerate(votes)]
    plugins = Plugins(voters)
    assert plugins.may_attach(ATTACHING) == allowed
    assert not plugins.faults


@pytest.mark.parametrize("answer", [raises, gives(True), gives("allow"), gives(0)])
def test_judge_attach_a_raise_or_rubbish_denies(answer: Callable[[], object]) -> None:
    plugins = Plugins([plugin("kind", judge_attach=gives(Vote.ALLOW)), plugin("broken", judge_attach=answer)])
    assert not plugins.may_attach(ATTACHING)
    assert plugins.faults == {"judge_attach": 1}


# observe


def test_observe() -> None:
    received: list[Mapping[str, object]] = []

    def observe(record: Mapping[str, object]) -> None:
        received.append(record)

    record = {"k": "alarm", "n": 0}
    plugins = Plugins([plugin("one", observe=observe), plugin("two", observe=observe)])
    assert plugins.observed_kinds() is None
    plugins.observe(record)
    assert received == [record, record]
    assert not plugins.faults


def test_a_fault_in_observe_is_counted_and_the_other_plugins_get_the_record() -> None:
    received: list[Mapping[str, object]] = []

    def fail(record: Mapping[str, object]) -> None:
        raise RuntimeError("secret")

    def answer(record: Mapping[str, object]) -> int:
        received.append(record)
        return 1

    plugins = Plugins([plugin("one", observe=answer), plugin("two", observe=fail), plugin("three", observe=answer)])
    for _ in range(100):
        plugins.observe({"k": "alarm"})
    assert len(received) == 200
    assert plugins.faults["observe"] == 300


def test_a_plugin_that_observes_some_kinds_gets_only_those_kinds() -> None:
    received: list[object] = []

    def observe(record: Mapping[str, object]) -> None:
        received.append(record["k"])

    some, none = plugin("some", observe=observe), plugin("none", observe=observe)
    some.observes, none.observes = frozenset({"alarm"}), frozenset()  # type: ignore[attr-defined]
    plugins = Plugins([some, none])
    assert plugins.observed_kinds() == frozenset({"alarm"})
    plugins.observe({"k": "alarm"})
    plugins.observe({"k": "clock.step"})
    assert received == ["alarm"]
    assert Plugins([none]).observed_kinds() == frozenset()


# The plugin behind a decision


def blames(plugins: Plugins) -> dict[tuple[str, str, str], int]:
    return {tuple(culprit): count for culprit, count in plugins.culprits.items()}  # type: ignore[misc]


def test_the_plugin_that_raised_is_named_among_others() -> None:
    def guilty() -> object:
        raise LookupError

    plugins = Plugins([
        plugin("one", map_uid=gives(None)), plugin("two", map_uid=guilty), plugin("three", map_uid=gives(None)),
    ])  # fmt: skip
    plugins.map_uid(CertificateFacts("CN=x", b""), SslProfileFacts("p"))
    assert blames(plugins) == {("map_uid", "two", "LookupError"): 1}


def test_the_only_plugin_that_could_have_answered_rubbish_is_named() -> None:
    alone = Plugins([plugin("one", map_uid=gives(7))])
    alone.map_uid(CertificateFacts("CN=x", b""), SslProfileFacts("p"))
    assert blames(alone) == {("map_uid", "one", ""): 1}
    together = Plugins([plugin("one", map_uid=gives(None)), plugin("two", map_uid=gives(7))])
    together.map_uid(CertificateFacts("CN=x", b""), SslProfileFacts("p"))
    assert blames(together) == {("map_uid", "", ""): 1}
    loaded = Plugins([plugin("good", sasl_mechanisms=gives(["PLAIN"])), plugin("bad", sasl_mechanisms=gives(7))])
    loaded.sasl_mechanisms(LISTENER)
    assert blames(loaded) == {("sasl_mechanisms", "bad", ""): 1}


@pytest.mark.parametrize(("answer", "exception"), [(ValueError("secret"), "ValueError"), (7, "")])
async def test_the_exchange_of_a_plugin_is_its_own(answer: object, exception: str) -> None:
    class Serving:
        @hookimpl
        def sasl_mechanisms(self) -> Sequence[str]:
            return ["PLAIN"]

    plugins = Plugins()
    plugins.add(Serving(), "serving")
    plugins.add(plugin("other", map_uid=gives(None)))
    await plugins.objects.respond_or_refuse(Answer(answer), b"")
    assert blames(plugins) == {("respond", "serving", exception): 1}
    assert "secret" not in str(plugins.culprits)


def test_a_plugin_that_fails_in_observe_is_blamed_by_name() -> None:
    plugins = Plugins([plugin("one", observe=raises), plugin("two", observe=gives(7))])
    plugins.observe({"k": "alarm"})
    assert blames(plugins) == {("observe", "one", "RuntimeError"): 1, ("observe", "two", ""): 1}


# consumers


class Taker:
    """A consumer that answers, or raises, the given value."""

    def __init__(self, answer: object, address: str = "here") -> None:
        self.terms = ConsumerTerms(address, frozenset({"audit"}))
        self.answer = answer

    def consume(self, message: IncomingMessage) -> Decision | Rejected:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # rubbish on purpose


ROUTER = RouterFacts("A")
LOCK = Decision("1", "lock-user", "mallory", 1)


def test_consumers() -> None:
    one, two = Taker(LOCK, "one"), Taker(Rejected("no"), "two")
    plugins = Plugins([plugin("a", consumers=gives([one])), plugin("b", consumers=gives((two,))), plugin("c")][:2])
    assert plugins.consumers(ROUTER) == (one, two)
    assert plugins.objects.consume(one, IncomingMessage(b"")) == LOCK
    assert plugins.objects.consume(two, IncomingMessage(b"")) == Rejected("no")
    assert not plugins.faults


def test_each_plugin_is_called_with_its_own_settings() -> None:
    calls: list[object] = []

    def consumers(router: RouterFacts) -> Sequence[Consumer]:
        calls.append(router.settings)
        return []

    plugins = Plugins([plugin("one", consumers=consumers), plugin("two", consumers=consumers)])
    plugins.consumers(ROUTER, {"one": {"a": 1}})
    assert calls == [{"a": 1}, {}]


@pytest.mark.parametrize("answer", [None, "here", Taker(LOCK), [object()], [Taker(LOCK), None]])
def test_rubbish_for_consumers_leaves_the_plugin_without_any(answer: object) -> None:
    good = Taker(LOCK, "good")
    plugins = Plugins([plugin("bad", consumers=gives(answer)), plugin("good", consumers=gives([good]))])
    assert plugins.consumers(ROUTER) == (good,)
    assert plugins.faults["consumers"] == (0 if answer is None else 1)


def test_a_raise_leaves_the_plugin_without_consumers() -> None:
    plugins = Plugins([plugin("bad", consumers=raises)])
    assert plugins.consumers(ROUTER) == ()
    assert plugins.faults["consumers"] == 1


def test_an_address_that_two_plugins_want_goes_to_neither() -> None:
    plugins = Plugins([plugin(name, consumers=gives([Taker(LOCK)])) for name in ("one", "two")])
    assert plugins.consumers(ROUTER) == ()


@pytest.mark.parametrize("answer", [RuntimeError("made up"), None, True, "yes"])
def test_a_consumer_that_fails_rejects_the_message(answer: object) -> None:
    plugins = Plugins([plugin("a", consumers=gives([Taker(answer)]))])
    rejected = plugins.objects.consume(plugins.consumers(ROUTER)[0], IncomingMessage(b""))
    assert isinstance(rejected, Rejected)
    assert rejected.condition == "amqp:internal-error"
    assert plugins.faults["consumers"] == 1


@pytest.mark.parametrize(
    ("address", "senders", "bounds"),
    [
        ("", {"a"}, {}),
        ("here", (), {}),
        ("here", {"a"}, {"max_bytes": 65537}),
        ("here", {"a"}, {"per_second": 0}),
        ("here", {"a"}, {"max_standing": 100_001}),
    ],
)
def test_terms_out_of_bounds_cannot_be_made(address: str, senders: Any, bounds: Any) -> None:
    with pytest.raises(ValueError, match="a consumer"):
        ConsumerTerms(address, frozenset(senders), **bounds)


# message_tracer


class SpanTaker:
    """A tracer with the given choice, whose ``export`` raises ``fault`` if there is one."""

    def __init__(
        self, ratio: float = 1, one_in: int = 0, propagates: bool = False, fault: Exception | None = None
    ) -> None:
        self.ratio = ratio
        self.one_in = one_in
        self.propagates = propagates
        self.fault = fault
        self.got: list[tuple[list[EndedSpan], int]] = []

    def export(self, spans: Sequence[EndedSpan], dropped: int) -> None:
        if self.fault is not None:
            raise self.fault
        self.got.append((list(spans), dropped))


SPAN: EndedSpan = (1, 2, b"a" * 32, b"", b"", b"", "orders", ("client", 1), "accepted")


def test_message_tracer() -> None:
    tracer = SpanTaker()
    plugins = Plugins([plugin("a", message_tracer=gives(None)), plugin("b", message_tracer=gives(tracer))])
    assert plugins.message_tracer(ROUTER) is tracer
    plugins.objects.export_spans(tracer, [SPAN], 3)
    assert tracer.got == [([SPAN], 3)]


@pytest.mark.parametrize(
    "answer",
    [
        7,
        object(),
        SpanTaker(ratio=2),
        SpanTaker(one_in=-1),
        SpanTaker(one_in=cast("Any", 0.5)),
        SpanTaker(propagates=cast("Any", 1)),
    ],
)
def test_rubbish_for_message_tracer_is_no_tracer(answer: object) -> None:
    good = SpanTaker()
    plugins = Plugins([plugin("bad", message_tracer=gives(answer)), plugin("good", message_tracer=gives(good))])
    assert plugins.message_tracer(ROUTER) is good
    assert plugins.faults["message_tracer"] == 1


def test_a_raise_is_no_tracer() -> None:
    plugins = Plugins([plugin("bad", message_tracer=raises)])
    assert plugins.message_tracer(ROUTER) is None
    assert plugins.faults["message_tracer"] == 1


def test_a_tracer_that_fails_loses_the_spans() -> None:
    tracer = SpanTaker(fault=RuntimeError("broken"))
    plugins = Plugins([plugin("a", message_tracer=gives(tracer))])
    plugins.objects.export_spans(tracer, [SPAN], 0)
    assert plugins.faults["message_tracer"] == 1
