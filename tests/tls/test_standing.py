"""The effect of time, renewed files and other authorities on open connections (security.md R-2.3d, 8.4)."""

from __future__ import annotations

import json
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.admission.test_alarms import Alarms
from tests.routers import DEADLINE_S
from tests.tls.pki import DAY, Authority, Pair
from trouter.app.process import RouterProcess
from trouter.client import Connection, ConnectionClosed, connect
from trouter.client.sasl import External
from trouter.config import load
from trouter.hooks import Plugins
from trouter.tls.secure import RECHECK_S
from trouter.wire.performatives import Error

DAY_S = DAY.total_seconds()
_steps = iter(range(1, 1_000_000))


@dataclass
class Scene:
    """A router in the test's own event loop, with a calendar that the test moves."""

    authority: Authority
    nursery: trio.Nursery
    now: list[float] = field(default_factory=lambda: [time.time()])
    process: RouterProcess = field(init=False)

    async def start(self, *, listener: str = "", **attributes: object) -> None:
        server = self.authority.issue("CN=router", "localhost", days=300)
        given = {
            "caCertFile": self.authority.file,
            "certFile": server.cert,
            "privateKeyFile": server.key,
            "uidFormat": "n",
            **attributes,
        }
        profile = "".join(f" {key}: {value}\n" for key, value in given.items())
        text = (
            f"router {{ id: R }}\nsslProfile {{\n name: p\n{profile}}}\nlistener {{\n host: 127.0.0.1\n port: 0\n"
            " sslProfile: p\n saslMechanisms: EXTERNAL\n authenticatePeer: yes\n idleTimeoutSeconds: 0\n"
            f" {listener}\n}}\n"
        )
        self.process = RouterProcess(load(text=text), Plugins.load(), calendar=lambda: self.now[0])
        await self.nursery.start(self.process.run)

    @property
    def port(self) -> int:
        return int(self.process.listeners[0].sockets[0].getsockname()[1])

    def connect(self, client: Pair) -> AbstractAsyncContextManager[Connection]:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        context.load_cert_chain(client.cert, client.key)
        url = f"amqps://localhost:{self.port}"
        return connect(url, ssl_context=context, sasl=[External()], idle_timeout=0, container_id=str(next(_steps)))

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows of connections by user."""
        standing = self.process.services.connections.values()
        rows: list[dict[str, Any]] = [each.build_management_row(trio.current_time()) for each in standing]
        return {row["user"]: row for row in rows}

    async def look(self) -> None:
        """Run the periodic check: a changed file is used when it is seen to change no more."""
        for _ in range(2):
            if await self.process.services.secure.renew_profiles():
                await self.process.control.retry_withheld()


@pytest.fixture
async def scene(tmp_path: Path, nursery: trio.Nursery, mock_clock: MockClock) -> AsyncIterator[Scene]:
    """Start the router; the loop's clock stands still, and ``mock_clock`` moves it."""
    found = Scene(Authority(tmp_path), nursery)
    yield found
    found.process.in_force.stop(Error("amqp:connection:forced", "the test is over"))
    nursery.cancel_scope.cancel()


async def is_alive(connection: Connection) -> bool:
    async with connection.open_sender("anywhere"):
        return True


async def end_of(connection: Connection) -> tuple[str | None, str | None]:
    """Wait until the router closes the connection; return the reason."""
    with pytest.raises(ConnectionClosed) as closed:
        async with connection.open_receiver("nothing") as receiver:
            await receiver.receive()
    return closed.value.condition, closed.value.description


FORCED = ("amqp:connection:forced", "credentials no longer valid")


async def test_a_certificate_that_expires_ends_its_connection(scene: Scene, mock_clock: MockClock) -> None:
    await scene.start()
    short, long = scene.authority.issue("CN=short", days=3), scene.authority.issue("CN=long", days=90)
    async with scene.connect(short) as ends, scene.connect(long) as stays:
        scene.now[0] += 4 * DAY_S
        mock_clock.jump(RECHECK_S - 1)
        assert await is_alive(ends)
        mock_clock.jump(2)
        assert await end_of(ends) == FORCED
        assert await is_alive(stays)


async def test_a_certificate_that_is_revoked_by_list_ends_its_connection(scene: Scene, mock_clock: MockClock) -> None:
    crl = scene.authority.revoke(days=30)
    await scene.start(crlFile=crl)
    alice, bob = scene.authority.issue("CN=alice"), scene.authority.issue("CN=bob")
    async with scene.connect(alice) as ends, scene.connect(bob) as stays:
        scene.authority.revoke(alice.certificate, days=30, into=crl)
        await scene.look()
        assert await is_alive(ends)
        mock_clock.jump(RECHECK_S + 1)
        assert await end_of(ends) == FORCED
        assert await is_alive(stays)


@pytest.mark.parametrize("attribute", ["caCertFile", "trustedCertsFile"])
async def test_the_removal_of_its_authority_ends_a_connection(
    scene: Scene, mock_clock: MockClock, tmp_path: Path, attribute: str
) -> None:
    removed, kept = Authority(tmp_path, "Removed"), Authority(tmp_path, "Kept")
    between = Authority(tmp_path, "Between", removed)
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(removed.file.read_bytes() + kept.file.read_bytes() + between.file.read_bytes())
    if attribute == "caCertFile":
        await scene.start(caCertFile=trusted)
    else:
        await scene.start(listener=f"trustedCertsFile: {trusted}")
    async with (
        scene.connect(removed.issue("CN=one")) as ends,
        scene.connect(between.issue("CN=two")) as ends_too,
        scene.connect(kept.issue("CN=three")) as stays,
    ):
        # The root that stays has another certificate now, of the same key; an authority without its root is no root.
        trusted.write_bytes(kept.renewed().file.read_bytes() + between.file.read_bytes())
        await scene.look()
        assert await is_alive(ends)
        mock_clock.jump(RECHECK_S + 1)
        mock_clock.rate = 10  # else nothing would end it if they stayed
        with trio.fail_after(DEADLINE_S):
            assert await end_of(ends) == FORCED
            assert await end_of(ends_too) == FORCED
        assert await is_alive(stays)


async def test_an_authority_of_the_system_is_not_looked_for(
    scene: Scene, mock_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL alone knows the system's authorities."""
    system = Authority(tmp_path, "The System's")
    monkeypatch.setenv("SSL_CERT_FILE", str(system.file))
    await scene.start(useSystemCA="yes")
    async with scene.connect(system.issue("CN=alice")) as stays:
        mock_clock.jump(RECHECK_S + 1)
        assert await is_alive(stays)


@pytest.mark.parametrize(("written", "tls_s"), [("", 5), (" initialHandshakeTimeoutSeconds: 600\n", 300)])
async def test_a_handshake_of_tls_has_half_of_the_time_until_the_open(
    scene: Scene, mock_clock: MockClock, info: pytest.LogCaptureFixture, written: str, tls_s: int
) -> None:
    await scene.start(listener=written)
    async with (
        await trio.open_tcp_stream("127.0.0.1", scene.port) as late,
        scene.connect(scene.authority.issue("CN=alice")) as stays,
    ):
        await late.send_all(b"\x16\x03\x01\x02")
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(tls_s + 0.1)
        mock_clock.rate = 10  # else nothing would end it if the limit failed
        assert await late.receive_some(1) == b""
        assert any(f"timed out: TLS took more than {tls_s} s; " in each.getMessage() for each in info.records)
        assert await is_alive(stays)


# --- other names for users


def write_names(path: Path, text: str) -> None:
    """Write the file with a new modification time, at any speed of the test."""
    path.write_text(text)
    os.utime(path, (1_000_000 + next(_steps), 1_000_000))


async def test_other_names_are_followed(scene: Scene, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = tmp_path / "names.json"
    write_names(names, json.dumps({"alice": "Alice"}))
    await scene.start(uidNameMappingFile=names)
    alice, bob = scene.authority.issue("CN=alice"), scene.authority.issue("CN=bob")
    async with scene.connect(alice), scene.connect(bob):
        assert set(scene.rows()) == {"Alice", "bob"}
        write_names(names, json.dumps({"alice": "Alicia"}))
        await scene.look()
        async with scene.connect(alice):
            assert set(scene.rows()) == {"Alice", "Alicia", "bob"}
        for text in ('{"alice": "same", "bob": "same"}', '{"alice": "A", "alice": "B"}', '{"alice": ["A"]}', "{"):
            caplog.clear()
            write_names(names, text)
            await scene.look()
            (logged,) = (each for each in caplog.records if each.levelno == logging.CRITICAL)
            assert "uidNameMappingFile: " in logged.getMessage()
            async with scene.connect(alice):
                assert "Alicia" in scene.rows()


# --- warnings


async def test_new_files_that_cannot_be_used_raise_an_alarm_until_others_can(scene: Scene) -> None:
    server = scene.authority.issue("CN=router", "localhost", days=300)
    await scene.start(certFile=server.cert, privateKeyFile=server.key)
    alarms = Alarms(scene.process.services.recorder)
    whole = server.cert.read_text()
    write_names(server.cert, "no certificate")
    await scene.look()
    ((name, severity, subject, state, why, _),) = alarms.take()
    assert (name, severity, subject, state) == ("tls-renewal", "critical", "p", "raised")
    assert "certFile" in str(why)
    async with scene.connect(scene.authority.issue("CN=alice")):
        pass
    write_names(server.cert, whole)
    await scene.look()
    assert alarms.take() == [("tls-renewal", "critical", "p", "cleared", "", None)]


@pytest.fixture
def info(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO):
        yield caplog


async def test_the_expiry_of_the_own_certificate_is_reported_three_times(
    scene: Scene, info: pytest.LogCaptureFixture
) -> None:
    server, crl = scene.authority.issue("CN=router", "localhost", days=40), scene.authority.revoke(days=99)
    await scene.start(certFile=server.cert, privateKeyFile=server.key, crlFile=crl)
    alarms = Alarms(scene.process.services.recorder)
    logged = []
    for _ in range(42):
        scene.now[0] += DAY_S
        scene.authority.revoke(days=99, into=crl)  # the renewal of another file does not repeat the warning
        await scene.look()
        logged += [each.getMessage() for each in info.records if "its certificate" in each.getMessage()]
        info.clear()
    assert logged == [f"sslProfile p: its certificate ends in {days}.0 days" for days in (30, 7, 1)]
    assert [alarm for alarm in alarms.take() if alarm[0] != "tls-renewal"] == [
        ("tls-certificate-ends", severity, "p", "raised", f"{days}.0", str(days))
        for severity, days in (("warning", 30), ("warning", 7), ("critical", 1))
    ]
