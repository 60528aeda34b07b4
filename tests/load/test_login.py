"""The load generator finds its router, encrypts and logs in as the other tools do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import Authority
from trouter.cli import main
from trouter.load.led import Led
from trouter.load.plan import Load
from trouter.tools.options import ConnectionOptions
from trouter_plugins.users_file import put_user

PASSWORD = "wonderland"
ROUTER = """
router {{ id: R, usersFile: {folder}/users }}
sslProfile {{ name: tls, certFile: {server.cert}, privateKeyFile: {server.key}, caCertFile: {authority.file} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{
    host: 127.0.0.1
    port: 0
    sslProfile: tls
    requireSsl: yes
    authenticatePeer: yes
    clientCert: optional
    saslMechanisms: SCRAM-SHA-256 EXTERNAL
    initialHandshakeTimeoutSeconds: {wait_s:.0f}
}}
"""


@dataclass(frozen=True)
class Site:
    """A router with an open listener and a guarded one, and the files that its clients need."""

    router: RunningRouter
    authority: Authority
    folder: Path

    @property
    def guarded(self) -> str:
        self.router.wait_for_line("Listening on", 2)
        return f"amqps://localhost:{self.router.ports[1]}"

    @property
    def login(self) -> list[str]:
        """The options of a user with a password."""
        return [
            "--ssl-trustfile", str(self.authority.file), "--sasl-username", "alice",
            "--sasl-password-file", str(self.folder / "password"), "--timeout", f"{DEADLINE_S:g}",
        ]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority(folder)
    put_user(folder / "users", "alice", PASSWORD.encode())
    (folder / "password").write_text(PASSWORD)
    server = authority.issue("CN=localhost", "localhost")
    with running(ROUTER.format(folder=folder, server=server, authority=authority, wait_s=DEADLINE_S), folder) as router:
        yield Site(router, authority, folder)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the contexts of each test apart from the user's."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TROUTER_BUS", "TROUTER_SASL_USERNAME", "TROUTER_SASL_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def sent(capsys: pytest.CaptureFixture[str], *words: str, role: str = "pair") -> int:
    """Run a load of 50 messages and return how many were accepted."""
    assert main(["bench", role, "--count", "50", "--json", *words]) == 0, capsys.readouterr().err
    report = json.loads(capsys.readouterr().out)
    return int(report["send"]["outcomes"]["accepted"] if role == "pair" else report["messages"])


def test_the_variable_names_the_router(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TROUTER_BUS", f"127.0.0.1:{site.router.port}")
    assert sent(capsys) == 50


def test_the_context_in_use_gives_server_tls_and_login(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contexts", "add", "guarded", "-b", site.guarded, *site.login]) == 0
    assert main(["contexts", "use", "guarded"]) == 0
    capsys.readouterr()
    assert sent(capsys) == 50
    assert sent(capsys, "--host", "127.0.0.1", "--port", str(site.router.port)) == 50


@pytest.mark.parametrize("role", ["pair", "handshakes"])
def test_a_user_logs_in_with_the_best_mechanism_over_tls(
    site: Site, role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sent(capsys, "-b", site.guarded, *site.login, role=role) == 50


def test_a_client_certificate_logs_in(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    pair = site.authority.issue("CN=bench")
    files = ["--ssl-certificate", str(pair.cert), "--ssl-key", str(pair.key)]
    assert sent(capsys, "-b", site.guarded, "--ssl-trustfile", str(site.authority.file), *files) == 50


def test_a_large_message_passes_through_tls(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert sent(capsys, "-b", site.guarded, *site.login, "--size", "1000000", "--window", "3") == 50


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--sasl-username", "alice", "--sasl-password", "wrong"], "the server did not accept the credentials"),
        ([], "the server offers the SASL mechanisms SCRAM-SHA-256"),
    ],
)
def test_a_login_that_fails_is_one_line(
    site: Site, words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["-b", site.guarded, "--ssl-trustfile", str(site.authority.file), *words]
    assert main(["bench", "send", "--count", "1", *options]) == 1
    error = capsys.readouterr().err
    assert error.startswith("trouter bench send: ")
    assert text in error
    assert error.count("\n") == 1


def test_an_untrusted_server_gets_no_password(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-b", site.guarded, "--sasl-username", "alice", "--sasl-password", PASSWORD]
    assert main(["bench", "send", "--count", "1", *options]) == 1
    assert "the server's certificate cannot be trusted: " in capsys.readouterr().err


def test_host_and_port_exclude_a_bus(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["bench", "send", "--count", "1", "--port", "1", "-b", "127.0.0.1:2"])
    assert end.value.code == 2
    assert "give --host and --port, or else -b or --context" in capsys.readouterr().err


def test_a_password_is_no_argument_of_a_process() -> None:
    login = ConnectionOptions(user="alice", password=PASSWORD, mechanisms=("PLAIN",), sasl=True)
    load = Load(host="127.0.0.1", port=1, login=login)
    assert Load.from_json(load.to_json()) == load
    with Led("sink", Load(port=0, login=login)) as led:
        led.ready()
        assert PASSWORD.encode() not in Path(f"/proc/{led.process.pid}/cmdline").read_bytes()
        led.kill()
