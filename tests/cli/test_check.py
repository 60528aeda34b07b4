"""`trouter check`: all problems that start-up would report, and with --strict also unsafe settings."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trouter.cli import main
from trouter.config.entities.oddities import NO_CONSOLE
from trouter_plugins.users_file import put_user

BROKEN = Path(__file__).parents[1] / "config" / "broken"
EXPECTED: dict[str, list[list[object]]] = json.loads((BROKEN.parent / "broken.json").read_text(encoding="utf-8"))


def checked(path: Path, *, strict: bool = False, as_json: bool = False) -> int:
    return main(["check", *["--strict"] * strict, *["--json"] * as_json, str(path)])


@pytest.fixture
def unsafe_file(tmp_path: Path) -> Path:
    path = tmp_path / "unsafe.conf"
    path.write_text("listener {\n    port: 0\n}\n")
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("name", EXPECTED)
def test_check_shows_each_error_of_a_broken_file_with_line_and_cure(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BROKEN)
    assert checked(Path(name)) == 1
    *lines, last = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if not line.startswith(("problem: ", "unsafe: ", "warning: "))]
    assert last == f"trouter check: {name}: not usable, {len(errors)} error(s)"
    for error, (line, message, cure) in zip(errors, EXPECTED[name], strict=True):
        assert error.startswith(f"{name}:{line}:" if line else f"{name}: ")
        assert str(message) in error
        assert error.endswith(f"({cure})")


def test_an_unsafe_file_passes_and_fails_with_strict(unsafe_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = "will let in every client from other machines, without a name (write authenticatePeer: yes)"
    line = f"unsafe: {unsafe_file}:1:1: listener.authenticatePeer: {message} [authenticate-peer]"
    assert checked(unsafe_file) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{unsafe_file}: good, 1 listener(s), 0 address rule(s), 1 warning(s), 3 unsafe\n"
    assert line in captured.err.splitlines()
    assert captured.err.endswith(": 1 of 1 entities served, 3 unsafe, 0 renamed, 0 unused\n")
    assert checked(unsafe_file, strict=True) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    *lines, last = captured.err.splitlines()
    assert line in lines
    assert last == f"trouter check: {unsafe_file}: not safe, 3 finding(s)"


def test_an_unserved_listener_fails_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.conf"
    path.write_text(
        "router { secureDefaults: yes, mode: interior }\nlistener { host: ::1, role: edge, authenticatePeer: no }\n"
    )
    path.chmod(0o600)
    assert checked(path) == 1
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"problem: {path}:2:1: listener: will not be opened: role edge: ")
    assert last == f"trouter check: {path}: not served as written, 1 problem(s)"


def test_the_findings_as_a_document(
    unsafe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checked(unsafe_file, strict=True, as_json=True) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    (file,) = json.loads(captured.out)["files"]
    assert file["verdict"] == "not safe"
    assert file["counts"] == {"problem": 0, "unsafe": 3, "warning": 1, "accepted": 0}
    (finding,) = [each for each in file["findings"] if each["attribute"] == "authenticatePeer"]
    assert finding["severity"] == "unsafe"
    assert (finding["file"], finding["line"], finding["section"]) == (str(unsafe_file), 1, "listener")
    assert (finding["point"], finding["page"]) == ("authenticate-peer", "docs/authentication.md")
    broken = tmp_path / "broken.conf"
    broken.write_text("listener {\n    port: none at all\n}\n")
    assert checked(broken, as_json=True) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["verdict"] == "not usable"
    found = [(each["severity"], each["line"], each["attribute"]) for each in file["findings"]]
    assert found == [("problem", 2, "port"), ("unsafe", 0, "enableVhostPolicy"), ("warning", 0, "maxHandshakesPerHost")]


STAGES = """\
router {
    mode: standalone
    usersFile: @here@/users
}
listener {
    host: ::1
    port: 99999
    role: inter-router
    stripAnnotations: Both
    sslProfile: nope
}
sslProfile {
    name: nop
}
vhost {
    hostname: a
    aliases: a
}
vhost {
    hostname: a
}
connector {
    name: broker
    role: route-container
}
autoLink {
    address: q
    direction: in
    connection: brokr
}
binding {
    exchangeName: other
    nextHopAddress: a
}
"""


def test_all_errors_and_findings_of_a_file_are_shown_in_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.conf"
    path.write_text(STAGES.replace("@here@", str(tmp_path)))
    assert checked(path) == 1
    shown = capsys.readouterr().err
    for words in (
        f"{path}:1:1: router.usersFile: {tmp_path}/users: ",
        f"{path}:5:1: listener.role: role='standalone' not allowed",
        f"{path}:9:23: listener.stripAnnotations: is not one of the values",
        f"{path}:17:14: vhost.aliases: an alias is the host name itself",
        f"{path}:20:15: vhost.hostname: this host name belongs to a vhost already",
        f"problem: {path}:7:11: listener.port: ",
        f"problem: {path}:5:1: listener.sslProfile: will not be opened: there is no sslProfile 'nope' (did you mean",
        f"problem: {path}:26:1: autoLink.connection: there is no connector or listener 'brokr'",
        f"problem: {path}:32:19: binding.exchangeName: Named exchange does not exist",
    ):
        assert shown.count(words) == 1, words
    assert shown.endswith(f"trouter check: {path}: not usable, 5 error(s)\n")
    assert checked(path, as_json=True) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["counts"]["problem"] == 9


def test_an_error_of_two_plugins_about_one_file_comes_once_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.conf"
    path.write_text(f"\nrouter {{\n    usersFile: {tmp_path}/users\n}}\n")
    assert checked(path) == 1
    error, last = capsys.readouterr().err.splitlines()
    assert error == f"{path}:2:1: router.usersFile: {tmp_path}/users: No such file or directory"
    assert last == f"trouter check: {path}: not usable, 1 error(s)"


@pytest.mark.parametrize(
    "text",
    [
        "sslProfile {\n    name: p\n    caCertFile: /no/such\n}\nconnector {\n    sslProfile: p\n}\n",
        "connector {\n    sslProfile: p\n}\n",
        "connector {\n    saslUsername: a\n    saslPassword: in the file\n}\n",
        "vhost {\n    hostname: a\n}\n",
    ],
    ids=["certificate", "profile", "password", "idle vhost"],
)
def test_one_fault_is_one_finding(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.conf"
    path.write_text(text)
    path.chmod(0o600)
    checked(path, as_json=True)
    (file,) = json.loads(capsys.readouterr().out)["files"]
    causes = {"/no/such", "sslProfile", "saslPassword", "vhost"}
    found = [each for each in file["findings"] if any(cause in json.dumps(each) for cause in causes)]
    clear = "password-sent-in-clear"  # that it is sent without TLS is another fault
    assert len([each for each in found if each["point"] != clear and "requireSsl" not in each["attribute"]]) == 1


OPEN_FILES = {
    "a name for nobody": "listener {\n    host: ::1\n    stripAnnotations: no\n    authenticatePeer: no\n}\n",
    "everybody": "listener {\n    authenticatePeer: no\n    requireSsl: no\n    allowInsecurePlain: yes\n}\n",
    "no TLS": "listener {\n    authenticatePeer: yes\n    saslMechanisms: SCRAM-SHA-256\n    requireSsl: no\n}\n"
    "policy {\n    enableVhostPolicy: no\n}\n",
    "HTTP": "listener {\n    http: yes\n    healthz: yes\n    requireSsl: no\n    httpRootDir: /tmp\n}\n",
    "routers": "listener {\n    role: edge\n    authenticatePeer: no\n    requireSsl: no\n"
    "    allowInsecureRole: yes\n}\n",
}


@pytest.mark.parametrize("text", OPEN_FILES.values(), ids=OPEN_FILES)
def test_a_file_with_secure_defaults_is_never_judged_worse(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for secure in ("no", "yes"):
        path = tmp_path / f"{secure}.conf"
        put_user(tmp_path / "users", "alice", b"wonderland")
        users = f"usersFile: {tmp_path / 'users'}" if "SCRAM" in text else ""
        path.write_text(f"router {{\n    mode: interior\n    secureDefaults: {secure}\n    {users}\n}}\n{text}")
        path.chmod(0o600)
        checked(path, strict=True, as_json=True)
        (file,) = json.loads(capsys.readouterr().out)["files"]
        assert file["verdict"] in {"good", "not safe"}
        found.append({(each["point"], each["section"]) for each in file["findings"] if each["severity"] == "unsafe"})
    assert found[1] <= found[0]
    assert found[0]


def test_a_memory_limit_below_the_memory_at_start_up_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "router.conf"
    for octets, status in ((10_000_000, 1), (1 << 40, 0)):
        path.write_text(f"router {{ maxMemoryBytes: {octets} }}\nlistener {{ host: ::1, port: 0 }}\n")
        path.chmod(0o644)
        assert checked(path) == status
        captured = capsys.readouterr().err
        assert ("router.maxMemoryBytes: no client could connect: the router uses " in captured) == bool(status)


def test_a_safe_file_is_good_with_strict_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "safe.conf"
    put_user(tmp_path / "users", "alice", b"wonderland")
    start = f"router {{ usersFile: {tmp_path / 'users'} }}\npolicy {{ enableVhostPolicy: yes }}"
    path.write_text(f"{start}\nlistener {{ host: ::1, port: 0, authenticatePeer: yes }}\nconnector {{ host: ::1 }}\n")
    path.chmod(0o644)
    assert checked(path, strict=True) == 0
    assert capsys.readouterr().out == (
        f"{path}: good, 1 listener(s), 1 connector(s), 0 address rule(s), 0 warning(s)\n"
    )


def test_an_unserved_section_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "routers.conf"
    path.write_text("console {\n    home: a\n    proxy: b\n}\n")
    assert checked(path) == 0
    assert f"warning: {path}:1:1: console: not served: {NO_CONSOLE}; it does nothing\n" in capsys.readouterr().err


def test_certificates_that_cannot_be_used_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tls.conf"
    path.write_text("sslProfile { name: a }\nlistener {\n    port: 0\n    sslProfile: a\n}\n")
    assert checked(path) == 1
    captured = capsys.readouterr().err
    assert (
        f"problem: {path}:1:1: sslProfile.a: certFile: a listener needs a certificate; its listeners will open"
        in captured
    )
    assert captured.endswith(f"trouter check: {path}: not served as written, 1 problem(s)\n")


@pytest.mark.parametrize("output", ["{folder}", "{folder}/none/a.log", '""'])
def test_a_log_file_that_cannot_be_opened_is_an_error(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.conf"
    path.write_text(f"log {{ module: DEFAULT, outputFile: {output.format(folder=tmp_path)} }}\n")
    assert checked(path) == 1
    assert "log.outputFile: Failed to open log file '" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["stdout", "stderr", "syslog", "{folder}/a.log"])
def test_checking_opens_no_log_file(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.conf"
    path.write_text(f"connector {{ }}\nlog {{ module: DEFAULT, outputFile: {output.format(folder=tmp_path)} }}\n")
    assert checked(path) == 0
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "a.log").exists()


def test_a_setting_that_admits_more_peers_fails_only_with_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "idle.conf"
    path.write_text("listener { port: 0 }\nvhost { hostname: a }\n")
    path.chmod(0o600)
    assert checked(path) == 0
    message = "the rules of this vhost will apply to no connection (write policy { enableVhostPolicy: yes })"
    assert f"unsafe: {path}:2:1: vhost: {message} [idle-vhost]\n" in capsys.readouterr().err
    assert checked(path, strict=True) == 1


NETWORK = "listener {{ name: routers, host: 127.0.0.1, port: {0}, role: inter-router, allowInsecureRole: yes }}"
DIALS = "connector {{ name: out, host: 127.0.0.1, port: {0}, role: inter-router }}"


@pytest.mark.parametrize(
    ("first", "second", "status", "problem"),
    [
        (NETWORK.format(7001), DIALS.format(7001), 0, ""),
        (NETWORK.format(7001), DIALS.format(7001).replace(" }", ", cost: 5 }"), 0, "5 counts on both sides"),
        (DIALS.format(7001), DIALS.format(7002), 1, "no file has a listener of role inter-router"),
        (
            NETWORK.format(7001) + "\nlistener { name: clients, host: 127.0.0.1, port: 7002 }",
            DIALS.format(7002),
            1,
            "dials the listener clients of ",
        ),
        ("", NETWORK.format(7001), 0, "the router is interior, but no listener and no connector is for other routers"),
    ],
)
def test_files_of_a_network_are_checked_together(
    first: str, second: str, status: int, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "a.conf", tmp_path / "b.conf"]
    for name, path, text in zip("AB", paths, (first, second), strict=True):
        path.write_text(f"router {{ mode: interior, id: {name} }}\n{text}\n")
    assert main(["check", *map(str, paths)]) == status
    captured = capsys.readouterr().err
    assert problem in captured
    assert bool(problem) is any(line.startswith(("network:", "warning:")) for line in captured.splitlines())


def test_two_files_with_one_id_are_no_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.conf", tmp_path / "b.conf"]
    for path, port in zip(paths, (7001, 7002), strict=True):
        path.write_text(f"router {{ mode: interior, id: A }}\n{NETWORK.format(port)}\n")
    assert main(["check", *map(str, paths)]) == 1
    assert f"{paths[1]}: the router has the id A, as that of {paths[0]} has" in capsys.readouterr().err


def test_severities_are_in_colour_on_a_terminal_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.conf"
    path.write_text("router {\n  workerThreads: 2\n}\n")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert checked(path) == 0
    assert "\x1b" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert checked(path) == 0
    captured = capsys.readouterr().err
    assert f"\x1b[2mwarning\x1b[0m: {path}" in captured
    assert captured.splitlines()[-1].endswith("0 unsafe, 0 renamed, 1 unused")
