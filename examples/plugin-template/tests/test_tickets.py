"""Test the plugin alone, then with the conformance suite for plugins, then in a router."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
import trouter_tickets
from trouter_tickets import TicketExchange, ticket

from trouter.client import Plain
from trouter.hooks import Authenticated, Challenge, ConfigurationRefused, Plugins, Refused, RouterFacts
from trouter.testing import open_router
from trouter.testing.conformance import Case, Login, Subject, cases

KEY = b"0123456789abcdef0123456789abcdef"
GOOD = ticket(KEY, "alice", 3600)
FORGED = ticket(b"some other key", "alice", 3600)
FOLDER = TemporaryDirectory()
KEY_FILE = Path(FOLDER.name, "tickets.key")
KEY_FILE.write_bytes(KEY)

SUBJECT = Subject(
    trouter_tickets,
    configuration=f"""
router {{
    pluginSettings: {{ tickets: {{ keyFile: {KEY_FILE} }} }}
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN
    authenticatePeer: yes
    allowInsecurePlain: loopback
}}
""",
    logins=[
        Login(lambda: Plain("alice", GOOD), lambda: Plain("alice", FORGED), user="alice", secrets=[GOOD, FORGED, KEY])
    ],
    name="tickets",
)


def says(response: bytes) -> Challenge | Authenticated | Refused:
    return trio.run(TicketExchange(KEY).respond, response)


def test_a_ticket_lets_in_its_user_until_it_expires() -> None:
    said = says(b"\0alice\0" + GOOD.encode())
    assert isinstance(said, Authenticated)
    assert said.user == "alice"
    assert said.expires_at_s == float(GOOD.partition(".")[0])


@pytest.mark.parametrize(
    ("user", "password", "reason"),
    [
        ("alice", FORGED, "no such ticket"),
        ("mallory", GOOD, "no such ticket"),
        ("alice", "1" + GOOD, "no such ticket"),
        ("alice", "", "no such ticket"),
        ("", ticket(KEY, "", 60), "no such ticket"),
        ("alice", ticket(KEY, "alice", -1), "the ticket has expired"),
    ],
)
def test_nothing_else_does(user: str, password: str, reason: str) -> None:
    said = says(f"\0{user}\0{password}".encode())
    assert isinstance(said, Refused)
    assert said.reason == reason


def test_a_key_is_needed(tmp_path: Path) -> None:
    plugins = Plugins([trouter_tickets])
    (tmp_path / "short").write_text("secret")
    for settings, problem in (
        ({}, "pluginSettings must say where the keyFile is"),
        ({"keyFile": "/nowhere/at/all"}, "keyFile /nowhere/at/all: No such file or directory"),
        ({"keyFile": str(tmp_path / "short")}, "a key has at least 32 bytes"),
    ):
        with pytest.raises(ConfigurationRefused, match=problem):
            plugins.configure(RouterFacts("R", settings=settings))


@pytest.mark.parametrize("case", cases(SUBJECT), ids=str)
def test_conformance(case: Case) -> None:
    case()


def test_in_a_router() -> None:
    async def main() -> None:
        async with (
            open_router(SUBJECT.configuration, {"tickets": trouter_tickets}) as router,
            router.connect(user="alice", password=GOOD) as connection,
            connection.open_sender("anything"),
        ):
            assert not router.faults

    trio.run(main)
