"""`trouter migrate`: the file that it writes, its report, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trouter.cli import main
from trouter.config import load
from trouter.config.migrate import migrated

OLD = """\
# The router of the site.
router {
    id: A      # its name
    worker-threads: 4
    helloInterval: 1
}
listener { port: 70000, failoverList: amqp://there, maxFrameSize: 2 }
connector {
    name: broker
    port: 5673
    role: route-container
    saslPassword: very-secret
}
linkRoute {
    prefix: a
    pattern: b
    dir: in
    connection: broker
}
autoLink {
    addr: q
    addr: queue
    dir: in
    connection: broker
}
authServicePlugin {
    name: service
    authService: [::1]:5674
}
sslProfile {
    name: tls
    passwordFile: @here@/pass#word
}
"""
NEW = """\
# The router of the site.
router {
    id: A      # its name
    helloIntervalSeconds: 1
}
listener { port: 4464, failoverUrls: amqp://there, maxFrameSize: 512 }
connector {
    name: broker
    port: 5673
    role: route-container
}
autoLink {
    address: queue
    direction: in
    connection: broker
}
authServicePlugin {
    name: service
    host: ::1
    port: 5674
}
sslProfile {
    name: tls
    password: "file:@here@/pass#word"
}
"""
#: Sections of a site of skupper-router that do not concern AMQP.
OF_SKUPPER = """\
[
  ["router", {"id": "A", "mode": "interior", "dataConnectionCount": "auto"}],
  ["listener", {"role": "inter-router", "host": "127.0.0.1", "port": 55671, "saslMechanisms": "ANONYMOUS"}],
  ["tcpListener", {"port": "8080", "address": "web"}],
  ["log", {"module": "FLOW_LOG", "enable": "debug+"}],
  ["address", {"prefix": "mc", "distribution": "multicast"}]
]
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.conf"
    path.write_text(OLD.replace("passwordFile: @here@/pass#word", f'passwordFile: "{tmp_path}/pass#word"'))
    (tmp_path / "pass#word").write_text("word")
    (tmp_path / "pass#word").chmod(0o600)
    return path


def test_old_names_are_replaced_and_settings_without_effect_are_removed(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = old.parent / "new.conf"
    assert main(["migrate", str(old), "-o", str(new)]) == 0
    assert new.read_text() == NEW.replace("@here@", str(old.parent))
    assert new.stat().st_mode & 0o777 == 0o600
    captured = capsys.readouterr()
    assert not captured.err
    assert f"changed: {old}:5: router.helloInterval -> helloIntervalSeconds: this is its name today" in captured.out
    assert f"unsupported: {old}:4: router.worker-threads: '4' -> (removed): trouter runs in one thread" in captured.out
    assert "connector.saslPassword: *** -> (removed)" in captured.out
    assert "very-secret" not in captured.out
    assert f"written to {new}" in captured.out.splitlines()[-1]
    assert main(["migrate", str(new), "--check"]) == 0


def test_without_an_output_the_text_alone_is_on_standard_output(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", str(old)]) == 0
    captured = capsys.readouterr()
    assert captured.out == NEW.replace("@here@", str(old.parent))
    assert "helloIntervalSeconds: this is its name today" in captured.err


def test_check_writes_nothing_and_fails_where_a_migration_would_change_the_file(old: Path) -> None:
    before = sorted(old.parent.iterdir())
    assert main(["migrate", str(old), "--check"]) == 1
    assert sorted(old.parent.iterdir()) == before


def test_a_file_that_exists_is_overwritten_only_by_force(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", str(old), "-o", str(old)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert "worker-threads" in old.read_text()
    old.chmod(0o640)
    assert main(["migrate", str(old), "-o", str(old), "--force"]) == 0
    assert "worker-threads" not in old.read_text()
    assert old.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("text", "status"), [("# nothing yet\n", 0), ("pwcheck_method: auxprop\n", 1)])
def test_a_file_of_comments_migrates_and_a_file_without_sections_is_refused(
    text: str, status: int, tmp_path: Path
) -> None:
    old, new = tmp_path / "old.conf", tmp_path / "new.conf"
    old.write_text(text)
    assert main(["migrate", str(old), "-o", str(new)]) == status
    assert new.exists() == (status == 0)


def test_the_report_as_json(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", str(old), "--json", "--check"]) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert (file["file"], file["written"], file["errors"]) == (str(old), None, [])
    first = file["changes"][0]
    assert (first["line"], first["new"], first["supported"]) == (4, "", False)
    unsafe = next(finding for finding in file["findings"] if finding["point"] == "authenticate-peer")
    assert unsafe["strict"] == "yes, unless it is given"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{}", "--check", "-o", "x"], "leave out one of"),
        (["{}", "--json"], "--json needs -o PATH"),
        (["{folder}"], "a directory needs -o PATH"),
        ([], "OLD"),
    ],
)
def test_a_command_line_without_sense(
    arguments: list[str], words: str, old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["migrate", *(each.format(old, folder=old.parent) for each in arguments)])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_a_file_that_no_router_reads_is_reported_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.conf"
    path.write_text("router {\n    mode: sideways\n}\n")
    assert main(["migrate", str(path), "-o", str(tmp_path / "new.conf")]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"trouter migrate: {path}:2:11: router.mode: ")
    assert not (tmp_path / "new.conf").exists()


def test_a_directory_with_policies_and_files_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "vhosts").mkdir(parents=True)
    (old / "qdrouterd.conf").write_text(
        f"router {{\n    helloInterval: 1\n}}\npolicy {{\n    policyDir: {old}/vhosts\n    enableVhostPolicy: yes\n}}\n"
    )
    (old / "vhosts" / "one.json").write_text('[["vhost", {"id": "one.com", "maxConnections": 2}]]')
    (old / "sasl.conf").write_text("pwcheck_method: auxprop\n")
    (old / "names.json").write_text('{"a": "b"}')
    assert main(["migrate", str(old), "-o", str(new)]) == 0
    assert "helloIntervalSeconds: 1" in (new / "qdrouterd.conf").read_text()
    assert json.loads((new / "vhosts" / "one.json").read_text()) == [
        ["vhost", {"hostname": "one.com", "maxConnections": 2}]
    ]
    assert not (new / "sasl.conf").exists()
    assert not (new / "names.json").exists()
    captured = capsys.readouterr().out
    assert f"{old}/sasl.conf: left alone" in captured
    assert f"{old}/names.json: left alone" in captured
    assert "read where policyDir names its folder" in captured


def test_settings_served_only_by_skupper_router_are_left_out_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "skrouterd.json", tmp_path / "new.json"
    old.write_text(OF_SKUPPER)
    assert main(["migrate", str(old), "-o", str(new)]) == 0
    assert [name for name, _ in json.loads(new.read_text())] == ["router", "listener", "address"]
    captured = capsys.readouterr().out
    for what in ("router.dataConnectionCount", "tcpListener", "log with module: FLOW_LOG"):
        assert any(line.startswith("unsupported: ") and what in line for line in captured.splitlines()), what


OPEN = "host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no"
OPEN_JSON = '{"host": "127.0.0.1", "port": 0, "saslMechanisms": "ANONYMOUS", "authenticatePeer": false}'


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".conf", f"# first\nrouter {{   # here\n    id: A\n}}\nlistener {{ {OPEN} }}\n"),
        (".conf", f"listener {{ {OPEN} }}"),
        (".json", f'[["listener", {OPEN_JSON}]]'),
    ],
)
def test_secure_turns_the_switch_and_writes_the_vhost_that_clients_need(suffix: str, text: str, tmp_path: Path) -> None:
    old, new = tmp_path / f"old{suffix}", tmp_path / f"new{suffix}"
    old.write_text(text)
    assert main(["migrate", str(old), "--secure", "-o", str(new)]) == 0
    configuration = load(new)
    assert configuration.router.secure_defaults
    assert configuration.policy.enable_vhost_policy
    (vhost,) = configuration.vhosts
    assert vhost.hostname == "$default"
    assert vhost.groups["$default"].management == "none"
    assert main(["migrate", str(new), "--secure", "--check"]) == 0


def test_secure_names_the_reason_why_a_file_cannot_be_secure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.conf", tmp_path / "new.conf"
    old.write_text("router {\n    mode: interior\n    id: A\n}\nlistener {\n    port: 0\n    role: inter-router\n}\n")
    assert main(["migrate", str(old), "-o", str(new)]) == 0
    capsys.readouterr()
    assert main(["migrate", str(old), "--secure", "-o", str(new), "--force"]) == 1
    captured = capsys.readouterr()
    assert "without an sslProfile" in captured.err
    assert "cannot be secure yet" in captured.out
    assert "secureDefaults" not in new.read_text()


def test_backslashes_keep_their_meaning_in_the_new_file() -> None:
    """A migrated value that escapes were read in counts as in the old file, and needs no warning any more."""
    old = (
        "router {\n  id: DOMAIN\\\\A\n}\n"
        "connector {\n  name: c\n  sasl-username: DOMAIN\\\\user\n  saslPassword: a\\kb\n}\n"
        "sslProfile {\n  name: p\n  passwordFile: C:\\\\x\n}\n"
    )
    result = migrated(old, "old.conf")
    before, after = load(text=old), load(text=result.text)
    for configuration in (before, after):
        assert configuration.router.id == "DOMAIN\\A"
        assert configuration.connectors[0].sasl_username == "DOMAIN\\user"
        password = configuration.connectors[0].sasl_password
        assert password is not None
        assert password.reveal() == "a\\kb"
    assert 'password: "file:C:\\\\x"' in result.text
    assert any("JSON has no such escape" in each.message for each in before.warnings)
    assert not any("JSON has no such escape" in each.message for each in after.warnings)
    assert not any("a\\kb" in change.old + change.new for change in result.changes)


def test_a_secured_file_keeps_a_default_vhost_with_a_backslash() -> None:
    old = "policy {\n  defaultVhost: DOMAIN\\\\all\n}\n"
    assert load(text=migrated(old, "old.conf", secure=True).text).vhosts[0].hostname == "DOMAIN\\all"


@pytest.mark.parametrize(
    ("old", "text", "new", "cure"),
    [
        ("a.json", '[["router", {"id": "A", "mode": "standalone"}]]', "b.conf", "b.json"),
        ("a.conf", "router { id: A }\n", "b.json", "b.conf"),
    ],
)
def test_a_name_of_the_other_form_is_refused_in_one_line(
    old: str, text: str, new: str, cure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / old).write_text(text)
    with pytest.raises(SystemExit, match="2"):
        main(["migrate", str(tmp_path / old), "-o", str(tmp_path / new)])
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "write -o" in each]
    assert f": write -o {tmp_path / cure} (see " in line
    assert not (tmp_path / new).exists()
    assert main(["migrate", str(tmp_path / old), "-o", str(tmp_path / cure)]) == 0
    assert (tmp_path / cure).exists()
