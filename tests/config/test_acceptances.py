"""A finding that the operator accepts in the file, with a reason, is listed as accepted and counts no more."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.routers import DEADLINE_S, running
from trouter.cli import main
from trouter.config import ConfigurationError, load
from trouter.config.findings import evaluate, judged
from trouter.config.problems import Severity

OPEN = "listener {\n    host: 127.0.0.1\n    port: 0\n    authenticatePeer: no\n}\n"
POLICY = "policy {\n    enableVhostPolicy: yes\n}\n"
ACCEPT = "# trouter: accept authenticate-peer: only users of this machine\n"
BEFORE = {
    "above": (ACCEPT + OPEN, ".conf"),
    "above, other comments between": (ACCEPT + "# and more\n" + OPEN, ".conf"),
    "inside": (OPEN.replace("{\n", "{\n    " + ACCEPT, 1), ".conf"),
    "at the end of the section": (OPEN.replace("}\n", "    " + ACCEPT + "}\n"), ".conf"),
    "JSON": ('[\n' + ACCEPT + '["listener", {"host": "127.0.0.1", "authenticatePeer": false}]\n]', ".json"),
    "JSON as printed by tools": (
        '[\n  [\n' + ACCEPT + '    "listener",\n    {\n      "host": "127.0.0.1",\n      "authenticatePeer": false\n    }\n  ]\n]',
        ".json",
    ),
    "JSON, inside": ('[["listener", {"host": "127.0.0.1",\n' + ACCEPT + '"authenticatePeer": false}]]', ".json"),
}  # fmt: skip


def severities(text: str, file: str = "f.conf") -> dict[str, Severity]:
    configuration = load(Path(file), text)
    return {each.point or each.message: each.severity for each in judged(configuration, list(evaluate(configuration)))}


@pytest.mark.parametrize(("text", "form"), BEFORE.values(), ids=BEFORE)
def test_an_accepted_point_of_a_section_counts_no_more(text: str, form: str) -> None:
    assert severities(text, f"f{form}")["authenticate-peer"] is Severity.ACCEPTED


def test_an_acceptance_holds_for_its_section_only() -> None:
    text = POLICY + OPEN + "\n" + ACCEPT + OPEN.replace("port: 0", "port: 1")
    configuration = load(text=text)
    found = judged(configuration, list(evaluate(configuration)))
    assert [(each.place.line, each.severity, each.reason) for each in found] == [
        (4, Severity.UNSAFE, ""),
        (11, Severity.ACCEPTED, "only users of this machine"),
    ]
    assert str(found[1]).endswith("; accepted: only users of this machine")


def test_an_acceptance_at_the_head_holds_for_the_file_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text(
        "# trouter: accept writable-by-others: a volume of the test\n\n" + POLICY + "\nconnector {\n    host: ::1\n}\n"
    )
    path.chmod(0o666)
    configuration = load(path)
    found = judged(configuration, list(evaluate(configuration)))
    assert [(each.point, each.severity) for each in found] == [("writable-by-others", Severity.ACCEPTED)]


UNMATCHED = {
    "another point": ("# trouter: accept require-tls: why\n", "accepts require-tls, which is not found here"),
    "no such point": ("# trouter: accept authenticate-per: why\n", "did you mean 'authenticate-peer'?"),
    "another section": (POLICY + "# x\n" + ACCEPT + "\n", "accepts authenticate-peer, which is not found here"),
}


@pytest.mark.parametrize(("comment", "words"), UNMATCHED.values(), ids=UNMATCHED)
def test_an_acceptance_of_what_is_not_found_is_a_warning(comment: str, words: str) -> None:
    configuration = load(text=comment + OPEN)
    found = judged(configuration, list(evaluate(configuration)))
    (warning,) = [each for each in found if each.severity is Severity.NOTE]
    assert words in str(warning)
    assert warning.place.line


@pytest.mark.parametrize(
    "comment", ["# trouter: accept authenticate-peer", "# trouter: accept authenticate-peer: ", "# trouter: accept"]
)
def test_an_acceptance_without_a_reason_is_an_error(comment: str) -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)2:1: this acceptance lacks the .*reason.*accept POINT: REASON"):
        load(text=f"\n{comment}\n{OPEN}")


@pytest.mark.parametrize("comment", ["# trouter: the router of site A", "# accept authenticate-peer: x"])
def test_another_comment_is_a_comment(comment: str) -> None:
    assert severities(f"{comment}\n{OPEN}")["authenticate-peer"] is Severity.UNSAFE


def test_check_and_the_running_router_show_what_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listener = "listener {\n    host: 127.0.0.1\n    port: 0\n    http: yes\n    webSocketOrigins: none\n    allowedHosts: none\n}\n"
    same = [f"# trouter: accept {point}: the same\n" for point in ("authenticate-peer", "http-on-loopback")]
    http = "".join([*same, listener])
    vhost = (
        "vhost {\n    hostname: $default\n    allowUnknownUser: yes\n    groups: {\n        $default: {\n"
        "            remoteHosts: 127.0.0.1\n            sources: *\n            targets: *\n"
        "            allowDynamicSource: yes\n            management: read\n        }\n    }\n}\n"
    )
    with running(POLICY + ACCEPT + OPEN + http + vhost, tmp_path) as router:
        router.wait_for_line(r"\(info\) accepted: .*accepted: only users of this machine")
        port = router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1]
        shown = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S).read().decode()
        assert 'trouter_configuration_findings{severity="unsafe"} 0.0' in shown
        assert 'trouter_configuration_findings{severity="accepted"} 3.0' in shown
        assert main(["manage", "-b", f"127.0.0.1:{router.port}", "query", "--type", "finding"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert {(row["severity"], row["reason"]) for row in rows} == {
            ("accepted", "only users of this machine"),
            ("accepted", "the same"),
        }
    assert main(["check", "--strict", str(router.configuration)]) == 0
    captured = capsys.readouterr()
    assert "accepted: " in captured.err
    assert "0 warning(s), 3 accepted" in captured.out
    assert main(["check", "--strict", "--json", str(router.configuration)]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["counts"]["accepted"] == 3
    assert file["findings"][0]["reason"] == "only users of this machine"
