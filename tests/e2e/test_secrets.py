"""Secrets in every place, all operations of management, all levels of the log: none is shown (security.md 8.8)."""

from __future__ import annotations

import base64
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from proton.utils import BlockingConnection

from tests.management.node import Node, node_of
from tests.routers import DEADLINE_S, StartRouter
from trouter.config import TYPES
from trouter_plugins.users_file import put_user

pytestmark = [pytest.mark.attack, pytest.mark.slow]

#: With a space and an umlaut, so that each encoding of it differs.
MARKS = [
    f"m4rk {kind} \u00fc9" for kind in ("user", "connector", "file", "variable", "update", "create", "wrong", "key")
]
USER, CONNECTOR, FILE, VARIABLE, UPDATE, CREATE, WRONG, KEY = MARKS
LEVELS = ("trace+", "debug+", "info+", "notice+", "warning+", "error+", "critical")

CONFIGURATION = """
router {{ id: R, usersFile: {folder}/users, debugDumpFile: {folder}/state.dump }}
listener {{ name: in, host: 127.0.0.1, port: 0, authenticatePeer: no, saslMechanisms: PLAIN ANONYMOUS
    allowInsecurePlain: loopback
}}
connector {{ name: clear, host: 127.0.0.1, port: 1, allowInsecurePlain: loopback, saslUsername: alice
    saslPassword: "pass:{connector}"
}}
connector {{ name: file, host: 127.0.0.1, port: 1, saslUsername: alice, saslPassword: file:{folder}/password }}
connector {{ name: variable, host: 127.0.0.1, port: 1, saslUsername: alice, saslPassword: env:MARKED_SECRET }}
sslProfile {{ name: tls, certFile: {folder}/certificate.pem, privateKeyFile: {folder}/key.pem
    password: "literal:{key}"
}}
log {{ module: DEFAULT, enable: trace+ }}
"""


def spellings(secret: str) -> set[str]:
    """Return the secret in plain, hex, percent form and escaped, and in base64 at each offset."""
    octets = secret.encode()
    forms = {secret, octets.hex(), octets.hex(" "), quote(secret), quote(secret, safe=""), ascii(secret)[1:-1]}
    forms |= {secret.encode("latin-1").hex(), repr(octets)[2:-1]}
    for before in range(3):  # without the digits that depend on the bytes around it
        encoded = base64.b64encode(b"x" * before + octets + b"y" * 3).decode()
        forms.add(encoded[4 if before else 0 : -6])
    return forms


def certificate(folder: Path) -> None:
    """Write a key with a password, and its certificate."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem"), "-passout", f"pass:{KEY}"]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "key.pem").chmod(0o600)


def log_in(port: int, password: str) -> BlockingConnection:
    how: dict[str, Any] = {
        "allowed_mechs": "PLAIN",
        "allow_insecure_mechs": True,
        "reconnect": False,
        "timeout": DEADLINE_S,
    }
    return BlockingConnection(f"127.0.0.1:{port}", user="alice", password=password, **how)


def ask_everything(node: Node, port: int) -> list[str]:
    """Return the answers to every kind of request, valid and invalid."""
    said: list[object] = [node.query()]
    said += [node.ask("QUERY", {"attributeNames": []}, entityType=kind.short) for kind in TYPES]
    said += [node.ask(f"GET-{what}") for what in ("SCHEMA", "JSON-SCHEMA", "ATTRIBUTES", "OPERATIONS", "TYPES")]
    said += [node.ask("READ", name=name) for name in ("clear", "file", "variable", "tls", "in")]
    dialled = {"host": "127.0.0.1", "port": str(port), "saslUsername": "alice", "allowInsecurePlain": "loopback"}
    said.append(node.ask("UPDATE", {**dialled, "saslPassword": UPDATE}, type="connector", name="clear"))
    said.append(node.ask("CREATE", {**dialled, "saslPassword": CREATE}, type="connector", name="new"))
    said.append(node.ask("CREATE", {**dialled, "saslPassword": WRONG, "colour": "red"}, type="connector", name="bad"))
    said.append(node.ask("CREATE", {**dialled, "saslPassword": {"x": WRONG}}, type="connector", name="bad"))
    said.append(node.ask("UPDATE", {"password": f"file:/{WRONG}"}, type="sslProfile", name="tls"))
    said.append(node.ask("READ", name="new"))
    said.append(node.ask("DELETE", type="connector", name="new"))
    said.append(node.ask("RELOAD"))
    said.append(node.ask("EXPLAIN", address="queue"))
    for level in LEVELS:
        said.append(node.ask("UPDATE", {"enable": level}, type="log", name="log/DEFAULT"))
        said.append(node.ask("READ", name="clear"))
    said.append(node.ask("UPDATE", {"enable": "trace+"}, type="log", name="log/DEFAULT"))
    said.append(node.ask("GET-LOG", limit=1000))
    return [str(each) for each in said]


def test_no_secret_comes_out_anywhere(
    start_router: StartRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_user(tmp_path / "users", "alice", USER.encode())
    (tmp_path / "password").write_text(f"{FILE}\n", encoding="utf-8")
    (tmp_path / "password").chmod(0o600)
    certificate(tmp_path)
    monkeypatch.setenv("MARKED_SECRET", VARIABLE)
    router = start_router(CONFIGURATION.format(folder=tmp_path, connector=CONNECTOR, key=KEY))
    log_in(router.port, USER).close()
    with pytest.raises(Exception, match=r"refused|closed|unauthorized|disconnected|[Aa]uthentication"):
        log_in(router.port, WRONG)
    with node_of(router.port) as node:
        said = ask_everything(node, router.port)
        router.wait_for_line("Authentication failed")
        router.process.send_signal(signal.SIGUSR1)
        router.wait_for_line("The state was written to")
        said.append(str(node.ask("GET-LOG", limit=1000)))
    router.stop()
    state = (tmp_path / "state.dump").read_text(encoding="utf-8")
    assert "connector" in state
    told = "\n".join([*said, state, router.text()])
    assert "@sasl-init" in told  # the frames were shown
    assert "*****" in told
    for mark in MARKS:
        for spelling in spellings(mark):
            assert spelling not in told, f"{mark!r} as {spelling!r}"


def test_the_search_would_find_a_secret() -> None:
    for wrapped in (f"x{USER}y", base64.b64encode(f"\0alice\0{USER} and more".encode()).decode(), USER.encode().hex()):
        assert any(spelling in wrapped for spelling in spellings(USER))
