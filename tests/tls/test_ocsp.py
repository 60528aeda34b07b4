"""The answers of OCSP responders, and their effect: security.md 8.4."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.ocsp import OCSPCertStatus
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.tls.pki import Authority, Pair
from tests.tls.responder import Responder, appointed
from trouter.config import load
from trouter.tls.profiles import OCSP_DEAD_S, OCSP_S, TlsProfiles

OK = b"HTTP/1.1 200 OK\r\n"
BELIEVED, DOUBTED, REFUSED = (True, True), (True, False), (False, False)


def saying(data: bytes) -> Callable[[Responder], None]:
    return lambda responder: setattr(responder, "data", data)


def being(**attributes: object) -> Callable[[Responder], None]:
    return lambda responder: responder.__dict__.update(attributes)


def by(**attributes: object) -> Callable[[Responder], None]:
    return lambda responder: responder.__dict__.update(signer=appointed(responder.authority, **attributes))  # type: ignore[arg-type]


def by_a_stranger(responder: Responder) -> None:
    other = Authority(responder.authority.folder)
    responder.signer = other.certificate, other.key


def by_the_strangers_delegate(responder: Responder) -> None:
    responder.signer = appointed(Authority(responder.authority.folder))


def about_another(responder: Responder) -> None:
    responder.mistaken = responder.authority.certificate


#: The responder's answer, and whether the certificate is accepted with ``soft`` and with ``hard``.
ANSWERS = {
    "good": (being(), BELIEVED),
    "revoked": (being(status=OCSPCertStatus.REVOKED), REFUSED),
    "unknown": (being(status=OCSPCertStatus.UNKNOWN), DOUBTED),
    "try later": (being(status=None), DOUBTED),
    "good once": (being(age=5), DOUBTED),
    "revoked once": (being(age=5, status=OCSPCertStatus.REVOKED), DOUBTED),
    "good tomorrow": (being(age=-24), DOUBTED),
    "about another": (about_another, DOUBTED),
    "about another authority's": (being(issuer_key_hash=bytes(20)), DOUBTED),
    "by a delegate": (by(), BELIEVED),
    "revoked by a delegate": (being(status=OCSPCertStatus.REVOKED, delegate=True), REFUSED),
    "by a delegate who may not": (by(may_sign=False), DOUBTED),
    "by a delegate whose time is over": (by(days=-1), DOUBTED),
    "by a stranger": (by_a_stranger, DOUBTED),
    "by a stranger's delegate": (by_the_strangers_delegate, DOUBTED),
    "status 500": (saying(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), DOUBTED),
    "sent elsewhere": (saying(b"HTTP/1.1 302 Found\r\nLocation: /ocsp\r\nContent-Length: 0\r\n\r\n"), DOUBTED),
    "no HTTP": (saying(b"SSH-2.0-OpenSSH\r\n"), DOUBTED),
    "an end without an answer": (saying(OK + b"Content-Length: 100\r\n\r\nhalf"), DOUBTED),
    "no OCSP": (saying(OK + b"Content-Length: 5\r\n\r\nhello"), DOUBTED),
    "too long an answer": (saying(OK + b"\r\n" + bytes(1 << 20)), DOUBTED),
    "too long a head": (saying(OK + b"X: " + b"x" * (1 << 20)), DOUBTED),
}


async def profiles_with(authority: Authority, mode: str, clock: Callable[[], float] = time.time) -> TlsProfiles:
    profiles = TlsProfiles(clock)
    text = f"sslProfile {{\n name: p\n caCertFile: {authority.file}\n ocsp: {mode}\n}}"
    (await profiles.prepare(load(text=text))).apply()
    return profiles


async def is_believed(pair: Pair, profiles: TlsProfiles) -> bool:
    return await profiles.objection((pair.certificate.public_bytes(Encoding.DER),), "p") == ""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize(("change", "believed"), ANSWERS.values(), ids=ANSWERS)
async def test_each_ocsp_answer_counts_as_listed(
    authority: Authority, change: Callable[[Responder], None], believed: tuple[bool, bool], mode: str
) -> None:
    async with Responder.running(authority) as responder:
        change(responder)
        if responder.__dict__.pop("delegate", False):
            responder.signer = appointed(authority)
        alice = authority.issue("CN=alice", ocsp=responder.url)
        profiles = await profiles_with(authority, mode)
        assert await is_believed(alice, profiles) == believed[mode == "hard"]
        assert responder.asked == [alice.certificate.serial_number]


@pytest.mark.parametrize("mode", ["soft", "hard"])
async def test_a_silent_responder_costs_its_time_and_no_more(
    authority: Authority, mock_clock: MockClock, mode: str
) -> None:
    async with Responder.running(authority) as responder:
        responder.data = None
        alice = authority.issue("CN=alice", ocsp=responder.url)
        profiles = await profiles_with(authority, mode)
        async with trio.open_nursery() as nursery:
            found: list[bool] = []

            async def ask() -> None:
                found.append(await is_believed(alice, profiles))

            nursery.start_soon(ask)
            while not responder.asked:
                await wait_all_tasks_blocked()
            mock_clock.jump(OCSP_S)
        assert found == [mode == "soft"]


#: URLs in a certificate that the router does not query; {port} is that of a responder that would answer good.
URLS = (
    "https://127.0.0.1:{port}/ocsp",
    "file:///etc/passwd",
    "ldap://127.0.0.1:{port}/ocsp",
    "http:///ocsp",
    "http://",
    "http://user:secret@127.0.0.1:{port}/ocsp",
    "http://127.0.0.1:{port}/ocsp\r\nX: y",
    "http://127.0.0.1:{port}/oc sp",
    "http://127.0.0.1:x/ocsp",
    "http://127.0.0.1:99999/ocsp",
    "http://[::1/ocsp",
    "http://0.0.0.0:{port}/ocsp",
    "http://[::]:{port}/ocsp",
    "http://[::ffff:0.0.0.0]:{port}/ocsp",
    "http://169.254.169.254/ocsp",
    "http://[fe80::1]/ocsp",
    "http://224.0.0.1/ocsp",
    "http://" + "x" * 300 + "/ocsp",
)


@pytest.mark.parametrize("url", URLS)
async def test_not_every_url_is_a_responders(authority: Authority, url: str) -> None:
    async with Responder.running(authority) as responder:
        alice = authority.issue("CN=alice", ocsp=url.format(port=responder.port))
        assert not await is_believed(alice, await profiles_with(authority, "hard"))
        assert await is_believed(alice, await profiles_with(authority, "soft"))
        assert responder.asked == []


async def test_a_responder_that_is_not_there_or_not_named_is_no_answer(authority: Authority) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    for url in (f"http://127.0.0.1:{port}/", ""):
        alice = authority.issue("CN=alice", ocsp=url)
        assert not await is_believed(alice, await profiles_with(authority, "hard"))
        assert await is_believed(alice, await profiles_with(authority, "soft"))


async def test_a_good_word_is_remembered_for_five_minutes_and_a_bad_one_is_not(authority: Authority) -> None:
    now = [datetime.now(UTC).timestamp()]
    async with Responder.running(authority) as responder:
        alice = authority.issue("CN=alice", ocsp=responder.url)
        profiles = await profiles_with(authority, "hard", lambda: now[0])
        for seconds, times in ((0, 1), (299, 1), (2, 2)):
            now[0] += seconds
            assert await is_believed(alice, profiles)
            assert len(responder.asked) == times
        now[0] += 301
        responder.status = OCSPCertStatus.REVOKED
        assert not await is_believed(alice, profiles)
        responder.status = OCSPCertStatus.GOOD
        assert await is_believed(alice, profiles)


async def test_a_good_word_is_about_one_certificate_only(authority: Authority) -> None:
    async with Responder.running(authority) as responder:
        alice, bob = (authority.issue(f"CN={name}", ocsp=responder.url) for name in ("alice", "bob"))
        profiles = await profiles_with(authority, "hard")
        assert await is_believed(alice, profiles)
        responder.status = OCSPCertStatus.REVOKED
        assert not await is_believed(bob, profiles)


async def test_a_responder_that_disconnects_is_queried_again_only_after_a_pause(authority: Authority) -> None:
    now = [datetime.now(UTC).timestamp()]
    async with Responder.running(authority) as responder:
        profiles = await profiles_with(authority, "hard", lambda: now[0])
        alice, bob = (authority.issue(f"CN={name}", ocsp=responder.url) for name in ("alice", "bob"))
        responder.data = OK + b"Content-Length: 100\r\n\r\nhalf"
        assert not await is_believed(alice, profiles)
        responder.data = b""
        now[0] += OCSP_DEAD_S - 1
        for each in (alice, bob):
            assert not await is_believed(each, profiles)
        assert len(responder.asked) == 1
        now[0] += 2
        for each in (alice, bob):
            assert await is_believed(each, profiles)
        assert len(responder.asked) == 3


async def test_a_silent_responder_is_waited_for_once(authority: Authority, mock_clock: MockClock) -> None:
    mock_clock.autojump_threshold = 0.2
    async with Responder.running(authority) as responder:
        responder.data = None
        profiles = await profiles_with(authority, "hard", lambda: datetime.now(UTC).timestamp())
        began = trio.current_time()
        for name in ("alice", "bob", "carol"):
            assert not await is_believed(authority.issue(f"CN={name}", ocsp=responder.url), profiles)
        assert trio.current_time() - began < 2 * OCSP_S
        assert len(responder.asked) == 1


async def test_of_two_authorities_with_one_name_the_signer_is_queried(authority: Authority) -> None:
    other = Authority(authority.folder)
    both = authority.folder / "both.pem"
    both.write_bytes(other.file.read_bytes() + authority.file.read_bytes())
    profiles = TlsProfiles()
    (await profiles.prepare(load(text=f"sslProfile {{\n name: p\n caCertFile: {both}\n ocsp: hard\n}}"))).apply()
    async with Responder.running(authority) as responder:
        assert await is_believed(authority.issue("CN=alice", ocsp=responder.url), profiles)
        assert not await is_believed(other.issue("CN=alice", ocsp=responder.url), profiles)
