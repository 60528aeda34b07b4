"""The policy that `trouter policy learn` proposes loads, and permits exactly the recorded actions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.policy.policies import admit
from tests.records.written import at, opened
from trouter.cli import main
from trouter.config import load
from trouter.policy.compiled import Policy
from trouter.policy.judge import Admission, Verdict
from trouter.records import ConnectionOpenedRecord, LinkAttachedRecord, PolicyDecision, Record
from trouter.records.stream import Taken

VHOST = "Example.com"


def attached(user: str, address: str | None, direction: str, **more: bool) -> LinkAttachedRecord:
    return LinkAttachedRecord(
        t=1, conn=1, vhost="example.com", user=user, host=HOSTS[user], link=1, addr=address, dir=direction,
        kind="endpoint", dynamic=more.get("dynamic", False), snd_mode=2, rcv_mode=0, credit=250,
    )  # fmt: skip


def decided(user: str, address: str, direction: str, *, allow: bool) -> PolicyDecision:
    return PolicyDecision(
        t=1, conn=1, vhost="example.com", user=user, host=HOSTS[user], op="attach", allow=allow, rule="r", reason="r",
        repeat=1, addr=address, dir=direction,
    )  # fmt: skip


HOSTS = {"alice": "192.0.2.1", "bob": "192.0.2.1", "carol": "2001:db8::1", "dave": "192.0.2.9"}
ALLOWED: list[Record] = [
    ConnectionOpenedRecord(
        t=1, conn=1, vhost="example.com", user="dave", host=HOSTS["dave"], listener="l", role="normal", dir="in"
    ),
    attached("alice", "orders/eu", "in"),
    attached("alice", "news", "out"),
    attached("bob", "orders/eu", "in"),
    attached("bob", "news", "out"),
    attached("carol", "temp.1", "out", dynamic=True),
    attached("carol", None, "in"),
    attached("carol", "${user}", "in"),
    decided("carol", "replies", "out", allow=True),
]
DENIED = [decided("carol", "secrets", "out", allow=False)]
OTHERS = [
    LinkAttachedRecord(
        t=1, conn=1, vhost="another.com", user="eve", host="192.0.2.66", link=1, addr="x", dir="in", kind="endpoint",
        dynamic=False, snd_mode=2, rcv_mode=0, credit=250,
    )
]  # fmt: skip


@pytest.fixture
def proposal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    writer = opened(tmp_path / "kept")
    records: list[Record] = [*ALLOWED, *DENIED, *OTHERS]
    writer.write(Taken(records, Counter()), at(1))
    writer.close(at(2))
    assert main(["policy", "learn", str(tmp_path / "kept"), "--vhost", VHOST]) == 0
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "learned.json").write_text(capsys.readouterr().out)
    return folder


def policy_of(folder: Path, tmp_path: Path) -> Policy:
    path = tmp_path / "r.conf"
    path.write_text(f"router {{ id: R }}\npolicy {{ policyDir: {folder}, enableVhostPolicy: yes }}\n")
    assert main(["check", str(path)]) == 0
    configuration = load(path)
    assert not [warning for warning in configuration.warnings if "learned" in str(warning.place)]
    return Policy.compile(configuration.policy, configuration.vhosts)


def test_everything_that_was_allowed_is_allowed_and_nothing_else(proposal: Path, tmp_path: Path) -> None:
    policy = policy_of(proposal, tmp_path)
    for record in ALLOWED:
        assert isinstance(record, ConnectionOpenedRecord | LinkAttachedRecord | PolicyDecision)
        admission = admit(policy, "example.com", record.user or "", record.host or "", authenticated=True)
        assert isinstance(admission, Admission), admission
        if isinstance(record, ConnectionOpenedRecord):
            continue
        if isinstance(record, LinkAttachedRecord) and record.dynamic:
            assert admission.settings.allow_dynamic_source
        elif record.addr is None:
            assert admission.settings.allow_anonymous_sender
        else:
            assert (admission.may_send if record.dir == "in" else admission.may_receive)(record.addr)
    carol = admit(policy, "example.com", "carol", HOSTS["carol"], authenticated=True)
    assert isinstance(carol, Admission)
    assert not carol.may_receive("secrets")
    assert not carol.may_send("replies")
    assert not carol.may_send("carol")
    for user, host in (("eve", "192.0.2.66"), ("carol", HOSTS["alice"])):
        assert isinstance(admit(policy, "example.com", user, host, authenticated=True), Verdict)


def test_users_with_the_same_actions_are_one_group(proposal: Path) -> None:
    ((_, vhost),) = json.loads((proposal / "learned.json").read_text())
    assert [group["users"] for group in vhost["groups"].values()] == ["alice, bob", "carol", "dave"]


def test_nothing_to_learn_from_is_an_error(proposal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "learn", str(tmp_path / "kept"), "--vhost", "nobody.com"]) == 1
    assert "nobody.com" in capsys.readouterr().err


def test_an_address_that_no_list_can_hold_is_left_out_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = opened(tmp_path)
    writer.write(Taken([attached("alice", "a,b", "in"), attached("alice", "all*", "in")], Counter()), at(1))
    writer.close(at(2))
    assert main(["policy", "learn", str(tmp_path), "--vhost", VHOST]) == 0
    captured = capsys.readouterr()
    assert "'a,b'" in captured.err
    assert "'all*'" in captured.err
    assert json.loads(captured.out)[0][1]["groups"]["users-1"]["targets"] == ""
