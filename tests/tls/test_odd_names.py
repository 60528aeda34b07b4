"""Client certificates with odd names, for each letter of uidFormat: the user is exactly the name, or stays out."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import ssl
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type

from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import OIDS, Authority, Pair
from trouter.client import Connection, ConnectionClosed, External, connect

#: The library that issues these certificates warns of names that the standard does not permit.
pytestmark = [pytest.mark.attack, pytest.mark.filterwarnings("ignore:Attribute's length must be:UserWarning")]
#: Letter of uidFormat -> the attribute of the subject; "" is the whole subject.
LETTERS = {"c": "C", "s": "ST", "l": "L", "o": "O", "u": "OU", "n": "CN", "": "CN"}
DIGESTS = {"1": "sha1", "2": "sha256", "5": "sha512"}
FORMATS = (*LETTERS, *DIGESTS)
PROFILE = """
sslProfile {{
    name: p{number}
    certFile: {server.cert}
    privateKeyFile: {server.key}
    caCertFile: {authority.file}
    uidNameMappingFile: {names}
    {letter}
}}
listener {{
    host: 127.0.1.{number}
    port: 0
    sslProfile: p{number}
    requireSsl: yes
    authenticatePeer: yes
    saslMechanisms: EXTERNAL
}}
"""
CLEAR = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
LONGEST = 8192
#: The value of an attribute -> the user that it makes, and the user that the whole subject CN=value makes.
NAMES = {
    "a line and a column of text that turns": ("al\u202eice\u2066", r"CN=al\E2\80\AEice\E2\81\A6"),
    "a space of no width": ("alice\u200b", r"CN=alice\E2\80\8B"),
    "letters that look like others": ("\u0430lice", r"CN=\D0\B0lice"),
    "beyond the first plane": ("\U0001f600" * 3, "CN=" + r"\F0\9F\98\80" * 3),
    "a blank": (" ", r"CN=\ "),
    "separators": ("a;b,c=d+e", r"CN=a\;b\,c=d\+e"),
    "markup": ("<b>\"'&", r"CN=\<b\>\"'&"),
    "wildcards": ("#", r"CN=\#"),
    "more than the standard permits": ("x" * 300, "CN=" + "x" * 300),
    "the longest": ("y" * LONGEST, None),
}
MAPPED = "Zo\u00eb\u200b"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningRouter]:
    """Run a router with a listener for each format."""
    folder = tmp_path_factory.mktemp("router")
    names = folder / "names.json"
    names.write_text(json.dumps({MAPPED: "zoe", f"CN={MAPPED}": "never"}))
    server = authority.issue("CN=localhost", "localhost")
    text = CLEAR
    for number, letter in enumerate(FORMATS, 1):
        line = f"uidFormat: {letter}" if letter else ""
        text += PROFILE.format(number=number, server=server, authority=authority, names=names, letter=line)
    with running(text, folder) as router:
        yield router


def issue(authority: Authority, attribute: str, value: str) -> Pair:
    named = x509.NameAttribute(OIDS[attribute], value, _ASN1Type.UTF8String, _validate=False)
    return authority.issue_for(x509.Name([named]))


async def user_of(router: RunningRouter, authority: Authority, letter: str, pair: Pair) -> str:
    """Return the user that management shows of a client with this certificate."""
    number = 1 + FORMATS.index(letter)
    context = ssl.create_default_context(cafile=str(authority.file))
    context.check_hostname = False
    context.load_cert_chain(pair.cert, pair.key)
    url = f"amqps://127.0.1.{number}:{router.ports[number]}"
    async with connect(url, ssl_context=context, sasl=(External(),), container_id="odd") as connection:
        assert isinstance(connection, Connection)
        with node_of(router.port) as node:
            (row,) = [row for row in node.query("connection") if row["container"] == "odd"]
    assert (row["sasl"], row["isAuthenticated"]) == ("EXTERNAL", True)
    user: str = row["user"]
    return user


#: Every letter with a value that has something of each kind, and the letter n with each kind alone.
ALL = "al\u202eice\u200b\u0430\U0001f600;<b>#"
CASES = [(letter, ALL) for letter in LETTERS if letter] + [("n", value) for value, _ in NAMES.values()]


@pytest.mark.parametrize(("letter", "value"), CASES, ids=[letter for letter, _ in CASES])
async def test_a_user_is_exactly_the_name(router: RunningRouter, authority: Authority, letter: str, value: str) -> None:
    line = len(router.lines)
    assert await user_of(router, authority, letter, issue(authority, LETTERS[letter], value)) == value
    assert_quiet(router, line)


async def test_without_a_format_the_user_is_the_whole_subject_in_ascii(
    router: RunningRouter, authority: Authority
) -> None:
    line = len(router.lines)
    for value, subject in [*NAMES.values(), ("alice\0", r"CN=alice\00")]:
        if subject is not None:
            assert await user_of(router, authority, "", issue(authority, "CN", value)) == subject
    assert_quiet(router, line)


def assert_quiet(router: RunningRouter, line: int) -> None:
    """Check that the log has since that line no warning about the name, and nothing that a terminal would obey."""
    router.assert_no_fault_of_ours(since=line)
    assert [each for each in router.lines[line:] if "PYTHON" in each or not each.isprintable()] == []


REFUSED = "a part of the certificate that makes the user has control characters"
TOO_LONG = f"the certificate makes a user of more than {LONGEST} bytes"
ODD = [("n", value, REFUSED) for value in ("alice\0", "alice\0.example", "\0", "alice\r\nforged line")]
ODD += [(letter, "\0\n", REFUSED) for letter in LETTERS if letter]
ODD += [(letter, "z" * 64_000, TOO_LONG) for letter in LETTERS]
ODD += [("n", "z" * (LONGEST + 1), TOO_LONG), ("n", "\u00eb" * (LONGEST // 2 + 1), TOO_LONG)]


@pytest.mark.parametrize(("letter", "value", "why"), ODD, ids=[letter or "subject" for letter, _, _ in ODD])
async def test_a_name_that_makes_no_user_is_refused_with_the_reason(
    router: RunningRouter, authority: Authority, letter: str, value: str, why: str
) -> None:
    line = len(router.lines)
    await stays_out(router, authority, letter, issue(authority, LETTERS[letter], value), why)
    assert_quiet(router, line)


async def stays_out(router: RunningRouter, authority: Authority, letter: str, pair: Pair, why: str) -> None:
    """Check that a client with this certificate is refused, and that the log says why."""
    refusals = len(router.matching(re.escape(why)))
    with pytest.raises((ConnectionClosed, OSError)):
        await user_of(router, authority, letter, pair)
    router.wait_for_line(rf"failed: TLS: {re.escape(why)}$", refusals + 1)


@pytest.mark.parametrize("letter", DIGESTS)
@pytest.mark.parametrize("value", ["alice\0", "\u202e", "z" * 64_000])
async def test_a_digest_does_not_depend_on_the_name(
    router: RunningRouter, authority: Authority, letter: str, value: str
) -> None:
    pair = issue(authority, "CN", value)
    user = await user_of(router, authority, letter, pair)
    assert user == hashlib.new(DIGESTS[letter], pair.certificate.public_bytes(Encoding.DER)).hexdigest()


async def test_only_the_whole_name_is_mapped(router: RunningRouter, authority: Authority) -> None:
    for value, user in ((MAPPED, "zoe"), (MAPPED.rstrip("\u200b"), "Zo\u00eb"), (f"{MAPPED}\u200b", f"{MAPPED}\u200b")):
        assert await user_of(router, authority, "n", issue(authority, "CN", value)) == user


def test_a_chain_beyond_what_tls_takes_ends_this_handshake_only(router: RunningRouter, authority: Authority) -> None:
    pair = issue(authority, "CN", "z" * 200_000)
    context = ssl.create_default_context(cafile=str(authority.file))
    context.check_hostname = False
    context.load_cert_chain(pair.cert, pair.key)
    address = ("127.0.1.6", router.ports[6])
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        socket.create_connection(address, DEADLINE_S) as sock,
        context.wrap_socket(sock) as secured,  # in TLS 1.3 the client's handshake ends before the refusal
    ):
        secured.recv(1)
    with node_of(router.port) as node:
        assert node.query("router")
