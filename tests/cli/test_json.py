"""What a script reads is JSON: one object on standard output, by names that stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trouter.cli import main
from trouter_plugins.users_file import put_user


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def document(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    capsys.readouterr()
    assert main([*words, "--json"]) == status
    output = capsys.readouterr()
    assert output.err == ""
    return json.loads(output.out)


def test_certificates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certs", "ca"]) == 0
    assert main(["certs", "server", "router", "--host", "router.example.com"]) == 0
    ca, server = sorted(document(capsys, "certs", "list")["certificates"], key=lambda each: str(each["purpose"]))
    assert (ca["purpose"], ca["hosts"]) == ("ca", [])
    assert {"name": "router", "purpose": "server", "hosts": ["router.example.com"]}.items() <= server.items()
    assert server["expires"].endswith("+00:00")


def test_users(capsys: pytest.CaptureFixture[str]) -> None:
    put_user(Path("users"), "ann", b"secret", ("SCRAM-SHA-256",))
    put_user(Path("users"), "bob", b"secret", (), expires_at_s=0)
    assert document(capsys, "passwd", "list", "users") == {
        "users": [
            {"user": "ann", "mechanisms": ["PLAIN", "SCRAM-SHA-256"], "disabled": False, "expires": None},
            {"user": "bob", "mechanisms": ["PLAIN"], "disabled": False, "expires": "1970-01-01T00:00:00+00:00"},
        ]
    }


def test_contexts(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "contexts", "list") == {"current": None, "contexts": []}
    assert main(["contexts", "add", "prod", "-b", "amqps://host", "--sasl-username", "ann"]) == 0
    assert main(["contexts", "use", "prod"]) == 0
    known = [{"name": "prod", "bus": "amqps://host", "sasl-username": "ann"}]
    assert document(capsys, "contexts", "list") == {"current": "prod", "contexts": known}


def test_records(capsys: pytest.CaptureFixture[str]) -> None:
    Path("records").mkdir()
    empty = {"segments": 0, "records": 0, "unproved": 0, "errors": [], "notes": []}
    assert document(capsys, "records", "check", "records") == empty
    Path("records/00000000000000000001-20260101T000000Z.jsonl").write_text("rubbish\n")
    assert main(["records", "check", "records", "--json"]) in {0, 1}
    assert json.loads(capsys.readouterr().out).keys() == empty.keys()


def test_expectations(capsys: pytest.CaptureFixture[str]) -> None:
    Path("router.conf").write_text("router { id: R }\npolicy { enableVhostPolicy: yes }\n")
    row = {"vhost": "v", "user": "u", "host": "127.0.0.1", "open": True}
    Path("expected.json").write_text(json.dumps({"policy": "router.conf", "expectations": [row]}))
    main(["policy", "test", "expected.json", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"file", "held", "failures"}
    assert found["held"] + len(found["failures"]) > 0
