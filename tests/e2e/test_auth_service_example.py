"""The example of an authentication service works as the manual describes, as a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from proton.utils import BlockingConnection

from tests.certificates import Authority
from tests.e2e.peer import Peer
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "auth_service.py"
AUTH, SYS_TEMP = 1, 4


def hashed(password: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLE, "hash"],
        cwd=ROOT,
        input=f"{password}\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout.strip()


@contextmanager
def example(users: Path, *arguments: str | Path) -> Iterator[int]:
    """Run the service as a process; yield its port."""
    command = [sys.executable, EXAMPLE, "serve", users, "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            listening = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", process.stdout.readline())
            assert listening is not None
            yield int(listening[1])
        finally:
            process.kill()


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "users.json"
    rights = {"orders/*": ["send", "recv"], "${user}/inbox": ["recv"], "out": ["send"]}
    password = hashed("wonderland")
    assert "wonderland" not in password
    path.write_text(json.dumps({"alice": {"password": password, "rights": rights}, "bob": {"password": password}}))
    return path


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory, users: Path) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("router")
    authority = Authority(folder, "authority")
    certificate, key = authority.pair("127.0.0.1")
    with example(users) as clear, example(users, "--certificate", certificate, "--key", key) as encrypted:
        text = f"""
router {{ id: R }}
sslProfile {{ name: tls, caCertFile: {authority.certificate} }}
authServicePlugin {{ name: clear, host: 127.0.0.1, port: {clear} }}
authServicePlugin {{ name: encrypted, host: 127.0.0.1, port: {encrypted}, sslProfile: tls }}
"""
        for name in ("clear", "encrypted"):
            text += f"listener {{ host: 127.0.0.1, port: 0, allowInsecurePlain: loopback, saslPlugin: {name} }}\n"
        with running(text, tmp_path_factory.mktemp("configuration")) as router:
            yield router


def connected(port: int, user: str, password: str) -> BlockingConnection:
    return BlockingConnection(
        f"127.0.0.1:{port}",
        user=user,
        password=password,
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
        timeout=DEADLINE_S,
    )


@pytest.mark.parametrize("way", [0, 1], ids=["clear", "encrypted"])
def test_the_right_password_lets_in(router: RunningRouter, way: int) -> None:
    connected(router.ports[way], "alice", "wonderland").close()
    router.wait_for_line(f"to 127.0.0.1:{router.ports[way]} ")
    router.wait_for_line("Connection Opened: .* auth=PLAIN user=alice ")


@pytest.mark.parametrize(
    "response", [b"\0alice\0wrong", b"\0eve\0wonderland", b"\0alice\0", b"rubbish", b"bob\0alice\0x"]
)
def test_other_logins_are_refused(router: RunningRouter, response: bytes) -> None:
    with Peer(router.port, opened=False) as peer:
        assert peer.authenticate("PLAIN", response) == AUTH
        peer.expect_end_of_stream()


def test_a_file_of_no_use_is_a_temporary_refusal(tmp_path: Path) -> None:
    broken = tmp_path / "users.json"
    broken.write_text("{")
    with example(broken) as port:
        text = (
            f"router {{ id: R }}\nauthServicePlugin {{ name: s, host: 127.0.0.1, port: {port} }}\n"
            "listener { host: 127.0.0.1, port: 0, allowInsecurePlain: loopback, saslPlugin: s }\n"
        )
        with running(text, tmp_path) as router, Peer(router.port, opened=False) as peer:
            assert peer.authenticate("PLAIN", b"\0alice\0wonderland") == SYS_TEMP
