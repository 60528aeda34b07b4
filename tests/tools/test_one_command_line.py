"""Every command that connects has the same options, and tells a failure in the same words, with the same status."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.routers import RunningRouter, running
from tests.tls.pki import Authority
from trouter.cli import Parser, main, parser
from trouter.tools.options import BUS_VARIABLE, add_server_options
from trouter_plugins.users_file import put_user

#: Command -> the words that let it connect at once, and give up after one attempt.
COMMANDS = {
    "stat": "",
    "manage": "query",
    "send": "denied body",
    "receive": "denied",
    "request": "denied body",
    "reply": "denied",
    "top": "--once",
    "drain": "--status",
    "diagnose": "-o {folder}/archive.tar.gz",
    "bench pair": "--count 1 --address denied",
    "bench send": "--count 1 --address denied",
    "bench handshakes": "--count 1",
    "pipeline spool": "--address denied --dir {folder}/spool --attempts 1",
}
#: It saves the options, or needs tables of the pipeline before it connects.
OTHERS = {"contexts add", "pipeline publish"}
#: Their links are not to an address of the user, or they have none.
WITHOUT_ADDRESS = {"top", "stat", "manage", "drain", "diagnose", "bench handshakes"}
#: Options of bench from before it had those of the other commands, and an option of other commands of these names.
NOT_TO_CONNECT = {"policy explain", "certs server", "certs router", "bench sink"}

ROUTER = """
router {{ id: R, usersFile: {folder}/users, authLockout: off }}
policy {{ enableVhostPolicy: yes, defaultVhost: open }}
vhost {{
    hostname: open
    allowUnknownUser: yes
    groups: {{
        $default: {{
            users: *
            remoteHosts: *
            sources: allowed
            targets: allowed
            allowDynamicSource: yes
        }}
    }}
}}
sslProfile {{ name: tls, certFile: {server.cert}, privateKeyFile: {server.key} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ host: 127.0.0.1, port: 0, sslProfile: tls, requireSsl: yes, saslMechanisms: ANONYMOUS }}
listener {{ host: 127.0.0.1, port: 0, authenticatePeer: yes, saslMechanisms: SCRAM-SHA-256 }}
sslProfile {{ name: both, certFile: {server.cert}, privateKeyFile: {server.key}, caCertFile: {trusted} }}
listener {{
    host: 127.0.0.1
    port: 0
    sslProfile: both
    requireSsl: yes
    authenticatePeer: yes
    saslMechanisms: EXTERNAL
}}
"""


def leaves(command: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, argparse.Action]]:
    """Yield each option of each command, with the command."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                yield from leaves(each, (*words, name))
        elif action.option_strings:
            yield " ".join(words), action


def options_of() -> dict[str, dict[str, argparse.Action]]:
    """Return the options of each command by their names."""
    found: dict[str, dict[str, argparse.Action]] = {}
    for command, action in leaves(parser()):
        found.setdefault(command, {}).update(dict.fromkeys(action.option_strings, action))
    return found


def declared() -> dict[str, argparse.Action]:
    reference = Parser(prog="x", add_help=False)
    add_server_options(reference)
    return {name: action for action in reference._actions for name in action.option_strings}


def test_every_command_that_connects_has_the_same_connection_options() -> None:
    connecting = {command: options for command, options in options_of().items() if "--bus" in options}
    assert connecting.keys() >= {*COMMANDS, *OTHERS}
    for command, options in connecting.items():
        for name, action in declared().items():
            if (command, name) == ("contexts add", "--context"):
                continue  # it makes one
            given = options[name]
            assert (given.dest, given.type, given.metavar, given.nargs) == (
                action.dest,
                action.type,
                action.metavar,
                action.nargs,
            ), (command, name)
            if action.dest != "timeout":  # each says what it waits for
                assert given.help == action.help, (command, name)


def test_no_command_connects_by_options_of_its_own_alone() -> None:
    own = {
        command
        for command, options in options_of().items()
        if options.keys() & {"--url", "--host", "--port", "--server"} and "--bus" not in options
    }
    assert own <= NOT_TO_CONNECT


@dataclass(frozen=True)
class Site:
    """A router with an open listener, one with TLS, one for users, and one for clients with certificates."""

    router: RunningRouter
    folder: Path
    #: The certificate of the authority that issued the router's.
    trusted: Path

    def port(self, number: int) -> int:
        self.router.wait_for_line("Listening on", number + 1)
        return self.router.ports[number]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    put_user(folder / "users", "ann", b"right")
    (folder / "wrong").write_text("wrong")
    authority = Authority(folder)
    server = authority.issue("CN=localhost", "localhost")
    with running(ROUTER.format(folder=folder, server=server, trusted=authority.file), folder) as router:
        yield Site(router, folder, authority.file)


@pytest.fixture(autouse=True)
def _without_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in (BUS_VARIABLE, "TROUTER_SASL_USERNAME", "TROUTER_SASL_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def failure(command: str, options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command says that fails, without its name."""
    words = COMMANDS[command].format(folder=folder).split()
    status = main([*command.split(), *words, *options])
    output = capsys.readouterr()
    assert status == 1, output
    if command != "diagnose":  # its archive holds the rest
        assert output.out == ""
    name = f"trouter {command}: "
    lines = [line for line in output.err.splitlines() if line.startswith(name)]
    assert lines, output.err
    return lines[-1].removeprefix(name)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_refused_connection(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{closed.getsockname()[1]}"
        assert failure(command, ["-b", url], tmp_path, capsys) == f"cannot connect to {url}: Connection refused"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_says_nothing(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"amqp://127.0.0.1:{silent.getsockname()[1]}"
        told = failure(command, ["-b", url, "-t", "0.2"], tmp_path, capsys)
    assert told == f"cannot connect to {url}: no answer within 0.2 s"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_certificate_that_nobody_trusts(
    site: Site, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"amqps://localhost:{site.port(1)}"
    told = failure(command, ["-b", url], tmp_path, capsys)
    assert told == f"cannot connect to {url}: the server's certificate cannot be trusted: {UNTRUSTED}"


UNTRUSTED = "unable to get local issuer certificate"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_wants_a_certificate(
    site: Site, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"amqps://localhost:{site.port(3)}"
    told = failure(command, ["-b", url, "--ssl-trustfile", str(site.trusted)], tmp_path, capsys)
    assert told == (
        f"cannot connect to {url}: TLS failed: "
        "the server wants a certificate of the client (--ssl-certificate and --ssl-key)"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_password(site: Site, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"amqp://127.0.0.1:{site.port(2)}"
    login = ["--sasl-username", "ann", "--sasl-password-file", str(site.folder / "wrong")]
    told = failure(command, ["-b", url, *login], tmp_path, capsys)
    assert told == f"cannot connect to {url}: the login failed: the server did not accept the credentials"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mechanism_that_the_server_does_not_offer(
    site: Site, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"amqp://127.0.0.1:{site.port(2)}"
    told = failure(command, ["-b", url, "--sasl-mechanisms", "ANONYMOUS"], tmp_path, capsys)
    assert told == (
        f"cannot connect to {url}: the login failed: "
        "the server offers the SASL mechanisms SCRAM-SHA-256, the client can use ANONYMOUS"
    )


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - WITHOUT_ADDRESS))
def test_an_address_that_the_policy_denies(
    site: Site, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = failure(command, ["-b", f"127.0.0.1:{site.port(0)}"], tmp_path, capsys)
    assert "the link ended: amqp:unauthorized-access: " in told


@pytest.mark.parametrize("command", [*COMMANDS, "pipeline publish"])
def test_a_context_and_the_environment_name_the_server(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{closed.getsockname()[1]}"
        if command in COMMANDS:
            with monkeypatch.context() as environment:
                environment.setenv(BUS_VARIABLE, url)
                assert url in failure(command, [], tmp_path, capsys)
            assert main(["contexts", "add", "closed", "-b", url]) == 0
            capsys.readouterr()
            (tmp_path / "2").mkdir()
            assert url in failure(command, ["--context", "closed"], tmp_path / "2", capsys)
    words = COMMANDS.get(command, "{folder} --on all").format(folder=tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), *words.split(), "--context", "none"])
    assert ended.value.code == 2
    assert "there is no context 'none'" in capsys.readouterr().err
