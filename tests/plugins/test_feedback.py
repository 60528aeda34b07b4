"""feedback: messages to decisions, settings to terms, and the users that may send to the address."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from trouter.hooks import (
    AttachRequest,
    ConfigurationRefused,
    Consumer,
    Decision,
    IncomingMessage,
    Plugins,
    Rejected,
    RouterFacts,
)
from trouter_plugins import feedback

SETTINGS: dict[str, object] = {"senders": "audit, meter", "maxSeconds": 3600}


def loaded(settings: dict[str, object]) -> Plugins:
    plugins = Plugins([feedback])
    plugins.configure(RouterFacts("A"), {"trouter_plugins.feedback": settings})
    return plugins


def consumer_of(settings: dict[str, object]) -> Consumer:
    plugins = loaded(settings)
    (consumer,) = plugins.consumers(RouterFacts("A"), {"trouter_plugins.feedback": settings})
    return consumer


def until(seconds: float) -> int:
    return int((time.time() + seconds) * 1_000_000)


def fields(**more: Any) -> dict[str, Any]:
    found = {"v": 1, "id": "a1", "action": "lock-user", "subject": "mallory", "until_us": until(600), **more}
    return {name: value for name, value in found.items() if value is not ...}


def message(body: object, **more: Any) -> IncomingMessage:
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    return IncomingMessage(data, **{"subject": feedback.SUBJECT, "content_type": feedback.CONTENT_TYPE, **more})


def test_a_message_becomes_a_decision() -> None:
    decision = fields(vhost="acme", reason="25 failures", evidence=[4, 7], rate=None)
    answer = consumer_of(SETTINGS).consume(message(decision))
    assert answer == Decision("a1", "lock-user", "mallory", decision["until_us"], "acme", "25 failures", (4, 7))


def test_a_rate_goes_with_slowing_down() -> None:
    answer = consumer_of(SETTINGS).consume(message(fields(action="slow-tenant", subject="acme", rate=20)))
    assert isinstance(answer, Decision)
    assert answer.rate == 20


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"v": 2}, "v must be 1"),
        ({"v": True}, "v must be 1"),
        ({"v": ...}, "v must be 1"),
        ({"more": 1}, "there is no field more"),
        ({"id": ""}, "id must be a text of 1 to 256 characters"),
        ({"id": ...}, "id must be a text"),
        ({"id": "x" * 257}, "id must be a text"),
        ({"subject": "a\nb"}, "that can be printed"),
        ({"subject": 7}, "subject must be a text"),
        ({"action": "reboot"}, "action must be one of lock-user, unlock-user,"),
        ({"until_us": ...}, "until_us must be a whole number"),
        ({"until_us": 1.5}, "until_us must be a whole number"),
        ({"until_us": True}, "until_us must be a whole number"),
        ({"until_us": -1}, "until_us must be a whole number"),
        ({"until_us": 2**63}, "until_us must be a whole number"),
        ({"evidence": [1] * 101}, "evidence must be a list of up to 100"),
        ({"evidence": ["1"]}, "evidence must be a whole number"),
        ({"evidence": {"a": 1}}, "evidence must be a list"),
        ({"rate": 5}, "rate belongs to slow-tenant"),
        ({"action": "slow-tenant"}, "rate belongs to slow-tenant"),
        ({"action": "slow-tenant", "rate": 0}, "rate must be at least 1"),
        ({"action": "block-host", "subject": "192.0.2.1", "vhost": "acme"}, "vhost does not belong to block-host"),
    ],
)
def test_a_message_that_is_no_decision_is_rejected_with_the_reason(changed: dict[str, Any], reason: str) -> None:
    answer = consumer_of(SETTINGS).consume(message(fields(**changed)))
    assert isinstance(answer, Rejected)
    assert reason in answer.reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "no decision"),
        (b"\xff\xfe", "no decision"),
        (b"[]", "it must be a map"),
        (b"[" * 4096, "no decision"),
        (b'{"v": 1' + b"0" * 4000 + b"}", "no decision"),
        (None, "one data section"),
    ],
)
def test_any_body_is_answered(body: bytes | None, reason: str) -> None:
    answer = consumer_of(SETTINGS).consume(message(body))
    assert isinstance(answer, Rejected)
    assert reason in answer.reason


def test_another_subject_or_content_type_is_rejected() -> None:
    consumer = consumer_of(SETTINGS)
    for more in ({"subject": "trouter.decision.v2"}, {"content_type": ""}):
        assert isinstance(consumer.consume(message(fields(), **more)), Rejected)


def test_nothing_lasts_longer_than_is_allowed() -> None:
    consumer = consumer_of(SETTINGS)
    assert isinstance(consumer.consume(message(fields(until_us=until(3590)))), Decision)
    answer = consumer.consume(message(fields(until_us=until(3610))))
    assert answer == Rejected("until_us is more than maxSeconds (3600) away")


def test_the_user_who_sends_decisions_cannot_be_locked_out() -> None:
    answer = consumer_of(SETTINGS).consume(message(fields(subject="meter")))
    assert isinstance(answer, Rejected)
    assert answer.condition == "amqp:not-allowed"


def test_without_settings_nothing_is_taken() -> None:
    assert loaded({}).consumers(RouterFacts("A")) == ()


def test_everything_wrong_with_the_settings_is_reported() -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        loaded({"address": 7, "maxSeconds": 0, "maxPerSecond": 1001, "maxStanding": "many", "sender": "x"})
    assert refused.value.problems == tuple(
        f"trouter_plugins.feedback: {each}"
        for each in (
            "there is no setting sender",
            "maxSeconds must be a whole number from 1 to 31536000",
            "maxPerSecond must be a whole number from 1 to 1000",
            "maxStanding must be a whole number from 1 to 100000",
            "address must be a text",
            "senders must name the users who may send decisions, separated by commas",
        )
    )


@pytest.mark.parametrize(
    ("user", "more", "allowed"),
    [
        ("audit", {}, True),
        ("audit", {"authenticated": False}, False),
        ("alice", {}, False),
        ("audit", {"sends": False}, False),
        ("alice", {"address": "elsewhere"}, True),
    ],
)
def test_only_the_senders_have_the_address(user: str, more: dict[str, Any], allowed: bool) -> None:
    facts: dict[str, Any] = {"authenticated": True, "role": "normal", "vhost": "", "group": "", "link_name": "l"}
    facts |= {"sends": True, "remote_host": "192.0.2.1", "address": feedback.DEFAULT_ADDRESS, "dynamic": False, **more}
    assert loaded(SETTINGS).may_attach(AttachRequest(1, user, **facts)) == allowed
