"""Decisions follow from tables, expire, and are sent once to each router that accepts them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from pipeline.tests.stored import metered, store
from pipeline.tests.stores import running
from tests.routers import PLAIN_LISTENER, StartRouter
from trouter.cli import main
from trouter.client import AuthenticationFailed, Delivery, connect
from trouter_pipeline.decisions import (
    ANSWERS,
    MAX_BYTES,
    Answer,
    Decision,
    Quota,
    Standing,
    encode,
    from_alerts,
    from_quotas,
    lifted,
    parse_answer,
    parse_quota,
    period_of,
)
from trouter_pipeline.places import Place
from trouter_plugins.users_file import put_user

NOW = datetime(2026, 3, 31, 12, 34, 56, tzinfo=UTC)


def alert(rule: str = "brute-force", ago_s: int = 60, **changed: Any) -> dict[str, Any]:
    last = NOW - timedelta(seconds=ago_s)
    return {"alert_id": "a1", "rule": rule, "user": "mallory", "host": "192.0.2.9", "vhost": None,
            "first_at": last - timedelta(minutes=5), "last_at": last, "failures": 25, "distinct": 1,
            "evidence": ["A~7~10", "A~7~11"], **changed}  # fmt: skip


def test_an_alert_makes_the_decision_that_its_rule_is_given() -> None:
    (made,) = from_alerts([alert()], ANSWERS, NOW)
    decision = made.decision
    assert (decision.action, decision.subject, decision.evidence) == ("block-host", "192.0.2.9", [10, 11])
    assert decision.until_us == int((NOW + timedelta(minutes=14)).timestamp()) * 1_000_000
    (made,) = from_alerts([alert()], {"brute-force": Answer("lock-user", 5)}, NOW)
    assert (made.decision.action, made.decision.subject) == ("lock-user", "mallory")


@pytest.mark.parametrize(("ago_s", "decisions"), [(15 * 60 - 1, 1), (15 * 60, 0), (15 * 60 + 1, 0)])
def test_an_old_alert_leads_to_no_decision(ago_s: int, decisions: int) -> None:
    assert len(from_alerts([alert(ago_s=ago_s)], ANSWERS, NOW)) == decisions


def test_unwanted_rules_and_alerts_without_a_subject_make_no_decision() -> None:
    assert not from_alerts([alert()], {"spray": ANSWERS["spray"]}, NOW)
    assert not from_alerts([alert("success-after", user=None)], ANSWERS, NOW)


def test_an_attack_that_goes_on_is_another_decision_and_the_same_one_is_the_same() -> None:
    (first,), (again,), (later,) = (from_alerts([alert(ago_s=ago)], ANSWERS, NOW) for ago in (60, 60, 30))
    assert first == again
    assert first.decision.id != later.decision.id


@pytest.mark.parametrize(("sent", "decisions"), [(999, 0), (1000, 0), (1001, 1)])
def test_a_tenant_is_slowed_only_beyond_its_quota(sent: int, decisions: int) -> None:
    made = from_quotas(lambda _vhost, _since: sent, [Quota("acme", 1000, "month", 5)], NOW)
    assert len(made) == decisions
    for each in made:
        assert (each.decision.action, each.decision.subject, each.decision.rate) == ("slow-tenant", "acme", 5)
        # To the end of the day, though the quota is for a month: no decision lasts longer.
        assert each.decision.until_us == int(datetime(2026, 4, 1, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [("hour", (31, 12), (31, 13)), ("day", (31, 0), (32, 0)), ("month", (1, 0), (32, 0))],
)
def test_periods_follow_the_calendar(period: str, start: tuple[int, int], end: tuple[int, int]) -> None:
    march = datetime(2026, 3, 1, tzinfo=UTC)
    assert period_of(period, NOW) == tuple(march + timedelta(days=day - 1, hours=hour) for day, hour in (start, end))


def test_only_decisions_of_the_same_source_that_are_no_longer_due_are_lifted() -> None:
    later = int((NOW + timedelta(hours=1)).timestamp()) * 1_000_000
    standing = {
        "still": Standing("block-host", "192.0.2.9", None, later, "rule:brute-force"),
        "gone": Standing("block-host", "192.0.2.8", None, later, "rule:brute-force"),
        "of somebody else": Standing("lock-user", "eve", None, later, "rule:spray"),
        "over": Standing("block-host", "192.0.2.7", None, later - 7_200_000_000, "rule:brute-force"),
        "paid": Standing("slow-tenant", "acme", None, later, "quota:acme"),
    }
    made = from_alerts([alert()], ANSWERS, NOW)
    found = lifted(standing, made, ["rule:brute-force", "quota:acme"], NOW)
    assert [(each.decision.action, each.decision.subject) for each in found] == [
        ("unblock-host", "192.0.2.8"),
        ("restore-tenant", "acme"),
    ]


@pytest.mark.parametrize("reason", ["", "x" * 256, "\U0001f600" * 256])
def test_a_body_is_never_longer_than_a_router_takes(reason: str) -> None:
    body = encode(Decision("i" * 256, "lock-user", "u" * 256, 2**62, reason, evidence=[2**62] * 10_000))
    assert len(body) <= MAX_BYTES
    assert json.loads(body)["v"] == 1


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("spray", {"spray": ANSWERS["spray"]}),
        ("spray=lock-user", {"spray": Answer("lock-user", ANSWERS["spray"].minutes)}),
        ("spray=block-host:1440", {"spray": Answer("block-host", 1440)}),
        ("all", dict(ANSWERS)),
    ],
)
def test_answers_are_read(text: str, answers: dict[str, Answer]) -> None:
    assert parse_answer(text) == answers


@pytest.mark.parametrize(
    "text", ["", "sprai", "spray=slow-tenant", "spray=lock-user:0", "spray=lock-user:1441", "spray=x"]
)
def test_answers_that_make_no_sense_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "publish", ".", "--on", text])
    assert "--on" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "acme", "acme=5", "acme=5/week:1", "acme=x/day:1", "acme=5/day:", "=5/day:1"])
def test_quotas_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="acme=1000000/day:50"):
        parse_quota(text)


def test_a_quota_is_read() -> None:
    assert parse_quota("acme=1000000/day:50") == Quota("acme", 1_000_000, "day", 50)


# --- sent


def now_alert(**changed: Any) -> dict[str, Any]:
    now = datetime.now(UTC).replace(microsecond=0)
    return alert(**{"first_at": now - timedelta(minutes=5), "last_at": now, **changed})


class Publisher:
    """`trouter pipeline publish` beside a receiver that settles each decision as the test sets."""

    def __init__(self, root: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.url, self._capsys = root, f"amqp://127.0.0.1:{port}", capsys

    async def __call__(
        self, *words: str, answer: Callable[[Delivery], Awaitable[None]] = Delivery.accept, root: Place | None = None
    ) -> tuple[int, str, list[dict[str, Any]]]:
        """Publish by the tables of this or another root; return the exit status, the output, the bodies that came."""
        came: list[dict[str, Any]] = []

        async def take(task_status: trio.TaskStatus[None]) -> None:
            async with connect(self.url) as connection, connection.open_receiver("trouter.decisions") as receiver:
                task_status.started()
                async for delivery in receiver:
                    properties = delivery.message.properties
                    assert properties is not None
                    assert (properties.subject, properties.content_type) == ("trouter.decision.v1", "application/json")
                    came.append(json.loads(delivery.message.body))
                    await answer(delivery)

        async with trio.open_nursery() as nursery:
            await nursery.start(take)
            command = ["pipeline", "publish", str(root or self.root), "--url", self.url, *words]
            status = await trio.to_thread.run_sync(main, command)
            nursery.cancel_scope.cancel()
        printed = self._capsys.readouterr()
        return status, printed.out + printed.err, came


@pytest.fixture
def publish(start_router: StartRouter, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Publisher:
    return Publisher(tmp_path / "root", start_router(PLAIN_LISTENER).port, capsys)


async def test_decisions_are_sent_once_and_lifted_when_the_table_has_changed(publish: Publisher) -> None:
    today = datetime.now(UTC).date()
    store(publish.root, "audit_alerts", [now_alert(), now_alert(alert_id="a2", rule="spray")], today)
    status, printed, came = await publish("--on", "brute-force=lock-user")
    assert status == 0
    assert [(body["action"], body["subject"], body["evidence"]) for body in came] == [
        ("lock-user", "mallory", [10, 11])
    ]
    assert "lock-user mallory: 25 failures, rule brute-force" in printed
    assert (await publish("--on", "brute-force=lock-user"))[1:] == ("There is no new decision to send.\n", [])
    store(publish.root, "audit_alerts", [now_alert(alert_id="a2", rule="spray")], today)
    status, printed, came = await publish("--on", "brute-force=lock-user")
    assert [(body["action"], body["subject"]) for body in came] == [("unlock-user", "mallory")]
    assert (await publish("--on", "brute-force=lock-user"))[2] == []


async def test_a_quota_slows_and_a_larger_one_restores(publish: Publisher) -> None:
    now = datetime.now(UTC)
    rows = [
        {**row, "hour": now.replace(minute=0, second=0, microsecond=0)} for row in metered("acme", hours=1, msgs=1000)
    ]
    store(publish.root, "meter", [*rows, *({**row, "dir": "out"} for row in rows)], now.date())
    assert (await publish("--quota", "acme=1000/day:7"))[2] == []  # only messages received from clients count
    status, printed, came = await publish("--quota", "acme=999/day:7")
    assert status == 0
    assert [(body["action"], body["subject"], body["rate"]) for body in came] == [("slow-tenant", "acme", 7)]
    assert "1000 messages this day, of 999 agreed" in printed
    assert [body["action"] for body in (await publish("--quota", "acme=1000/day:7"))[2]] == ["restore-tenant"]


async def test_decisions_of_tables_in_an_object_store_are_remembered_on_this_machine(
    publish: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = datetime.now(UTC).date()
    with running() as objects:
        for name, value in objects.environment.items():
            monkeypatch.setenv(name, value)
        root = objects.root("decided")
        store(root, "audit_alerts", [now_alert()], today)
        words = ("--on", "brute-force=lock-user", "--book", str(tmp_path))
        status, _, came = await publish(*words, root=root)
        assert (status, [(body["action"], body["subject"]) for body in came]) == (0, [("lock-user", "mallory")])
        assert (await publish(*words, root=root))[1:] == ("There is no new decision to send.\n", [])
        store(root, "audit_alerts", [now_alert(alert_id="a2", rule="spray")], today)
        assert [body["action"] for body in (await publish(*words, root=root))[2]] == ["unlock-user"]
        before = (tmp_path / "decisions.json").read_bytes()
        objects.fails(method="*", holding="audit_alerts", times=1000)
        status, printed, came = await publish(*words, "--storage-option", "max_retries=1", root=root)
        assert (status, came) == (1, [])
        assert "the store does not answer as it should" in printed
        assert (tmp_path / "decisions.json").read_bytes() == before
        assert not [key for key in objects.keys("decided") if "decisions" in key]


async def test_a_busy_router_gets_a_decision_again_and_a_refusal_is_reported(
    publish: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trouter_pipeline.decisions.RETRY_S", 0.0)
    store(publish.root, "audit_alerts", [now_alert()], datetime.now(UTC).date())
    refusals = iter([Delivery.release, Delivery.release, Delivery.modify, Delivery.accept])

    async def answer(delivery: Delivery) -> None:
        await next(refusals)(delivery)

    status, _, came = await publish("--on", "all", answer=answer)
    assert status == 0
    assert len(came) == 4
    assert len({body["id"] for body in came}) == 1
    (publish.root / "decisions.json").unlink()
    status, printed, came = await publish(
        "--on", "all", answer=lambda delivery: delivery.reject("amqp:not-allowed", "too long")
    )
    assert status == 1
    assert "block-host 192.0.2.9 was refused: amqp:not-allowed: too long" in printed
    assert (await publish("--on", "all"))[2]  # a refused decision is not remembered as sent


def test_a_router_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path, "audit_alerts", [now_alert()], datetime.now(UTC).date())
    assert main(["pipeline", "publish", str(tmp_path), "--on", "all", "--url", "amqp://127.0.0.1:1"]) == 1
    assert "amqp://127.0.0.1:1: " in capsys.readouterr().err
    assert main(["pipeline", "publish", str(tmp_path), "--on", "all", "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["action"] == "block-host"


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ([], "give --on or --quota"),
        (["--on", "all"], "give -b URL"),
        (["--on", "all", "--dry-run"], "there is no table audit_alerts"),
        (["--quota", "a=1/day:1", "--dry-run"], "there is no table meter"),
    ],
)
def test_an_impossible_publish_is_refused_with_the_reason(
    words: list[str], printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "publish", str(tmp_path), *words]) == 1
    assert printed in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--user", "audit"], "a user without a password"),
        (["--tls-trust-file", "/none"], "/none: No such file"),
    ],
)
def test_options_that_cannot_connect_are_named(
    words: list[str], printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(tmp_path, "audit_alerts", [now_alert()], datetime.now(UTC).date())
    assert main(["pipeline", "publish", str(tmp_path), "--on", "all", "--url", "amqp://127.0.0.1:1", *words]) == 1
    assert printed in capsys.readouterr().err


def test_a_book_that_is_none_is_named_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path, "audit_alerts", [now_alert()], datetime.now(UTC).date())
    (tmp_path / "decisions.json").write_text("rubbish")
    assert main(["pipeline", "publish", str(tmp_path), "--on", "all", "--url", "amqp://127.0.0.1:1"]) == 1
    assert str(tmp_path / "decisions.json") in capsys.readouterr().err
    assert (tmp_path / "decisions.json").read_text() == "rubbish"


OBEYING = """
router {{ id: R, usersFile: {folder}/users, pluginSettings: {{"feedback": {{"senders": "audit"}}}} }}
listener {{ host: 127.0.0.1, port: 0, authenticatePeer: yes, saslMechanisms: PLAIN }}
"""


def test_a_router_with_the_plugin_feedback_obeys(
    start_router: StartRouter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for user in ("audit", "mallory"):
        put_user(tmp_path / "users", user, b"sesame")
    (tmp_path / "secret").write_text("sesame\n")
    url = f"amqp://127.0.0.1:{start_router(OBEYING.format(folder=tmp_path)).port}"

    async def try_mallory() -> None:
        async with connect(url, user="mallory", password="sesame"):
            pass

    trio.run(try_mallory)
    root, today = tmp_path / "root", datetime.now(UTC).date()
    command = ["pipeline", "publish", str(root), "--url", url, "--on", "brute-force=lock-user"]
    store(root, "audit_alerts", [now_alert(user="audit")], today)
    as_audit = [*command, "--user", "audit", "--password-file", str(tmp_path / "secret")]
    assert main(as_audit) == 1  # a user cannot lock itself out
    assert "lock-user audit was refused: amqp:not-allowed" in capsys.readouterr().err
    store(root, "audit_alerts", [now_alert()], today)
    assert main([*command, "--user", "mallory", "--password-file", str(tmp_path / "secret")]) == 1
    trio.run(try_mallory)  # a decision of an untrusted sender has no effect
    assert main(as_audit) == 0
    with pytest.raises(AuthenticationFailed):
        trio.run(try_mallory)
    store(root, "audit_alerts", [], today)
    assert main(as_audit) == 0
    assert "unlock-user mallory" in capsys.readouterr().out
    trio.run(try_mallory)
