"""Applies decisions of the pipeline's jobs: it locks users, blocks hosts and slows tenants down for a time.

``pluginSettings: {"feedback": {"address": "trouter.decisions", "senders": "audit, meter", "maxSeconds": 86400}}``. Off
unless configured. A message is one decision: subject ``trouter.decision.v1``, content type ``application/json``, and a
body such as ``{"v": 1, "id": "a1", "action": "lock-user", "subject": "mallory", "until_us": 1800000000000000}``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from trouter.hooks import (
    DECISION_ACTIONS,
    AttachRequest,
    ConfigurationRefused,
    Consumer,
    ConsumerTerms,
    Decision,
    IncomingMessage,
    Rejected,
    RouterFacts,
    Vote,
    hookimpl,
)

SUBJECT: Final = "trouter.decision.v1"
CONTENT_TYPE: Final = "application/json"
DEFAULT_ADDRESS: Final = "trouter.decisions"
#: Default limit of the seconds that a decision may last.
MAX_SECONDS: Final = 86_400
MAX_BYTES: Final = 4096
MAX_TEXT: Final = 256
MAX_EVIDENCE: Final = 100
#: The settings with their defaults and upper bounds.
NUMBERS: Final = {"maxSeconds": (MAX_SECONDS, 31_536_000), "maxPerSecond": (10, 1000), "maxStanding": (1000, 100_000)}
_MICROSECONDS: Final = 1_000_000
_LARGEST: Final = 2**63


class Plugin:
    def __init__(self) -> None:
        self._deciding: Deciding | None = None

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self._deciding = _deciding(router.settings) if router.settings else None

    @hookimpl
    def consumers(self) -> Sequence[Consumer]:
        return () if self._deciding is None else (self._deciding,)

    @hookimpl
    def judge_attach(self, request: AttachRequest) -> Vote | None:
        """Deny links to the address of decisions, except to the permitted senders."""
        if self._deciding is None or request.address != self._deciding.terms.address:
            return None
        may = request.sends and request.authenticated and request.user in self._deciding.terms.senders
        return None if may else Vote.DENY


class Deciding:
    """The consumer of decisions."""

    def __init__(self, terms: ConsumerTerms, max_seconds: int, calendar: Callable[[], float] = time.time) -> None:
        self.terms = terms
        self._max_seconds = max_seconds
        self._calendar = calendar

    def consume(self, message: IncomingMessage) -> Decision | Rejected:
        """Return the decision in a message, or its rejection with the reason."""
        if message.subject != SUBJECT:
            return Rejected(f"the subject must be {SUBJECT}")
        if message.content_type != CONTENT_TYPE:
            return Rejected(f"the content type must be {CONTENT_TYPE}")
        if message.body is None:
            return Rejected("the body must be one data section, or one string")
        try:
            fields = json.loads(message.body.decode())
            decision = _decision(fields)
        except (ValueError, RecursionError) as error:
            return Rejected(f"the body is no decision: {error}")
        if decision.action == "lock-user" and decision.subject in self.terms.senders:
            return Rejected("users who send decisions cannot be locked out by one", "amqp:not-allowed")
        if decision.until_us > (self._calendar() + self._max_seconds) * _MICROSECONDS:
            return Rejected(f"until_us is more than maxSeconds ({self._max_seconds}) away")
        return decision


def _decision(fields: object) -> Decision:
    """Return the decision in the fields of a body; ValueError."""
    if not isinstance(fields, dict):
        raise ValueError("it must be a map")
    known = {"v", "id", "action", "subject", "vhost", "until_us", "reason", "evidence", "rate"}
    if unknown := sorted(map(str, fields.keys() - known)):
        raise ValueError(f"there is no field {unknown[0][:MAX_TEXT]}")
    if type(fields.get("v")) is not int or fields["v"] != 1:
        raise ValueError("v must be 1")
    action = _text(fields, "action")
    if action not in DECISION_ACTIONS:
        raise ValueError(f"action must be one of {', '.join(DECISION_ACTIONS)}")
    evidence = fields.get("evidence") or []
    if not isinstance(evidence, list) or len(evidence) > MAX_EVIDENCE:
        raise ValueError(f"evidence must be a list of up to {MAX_EVIDENCE} whole numbers")
    return Decision(
        id=_text(fields, "id"),
        action=action,
        subject=_text(fields, "subject"),
        until_us=_whole(fields.get("until_us"), "until_us"),
        vhost=_text(fields, "vhost", ""),
        reason=_text(fields, "reason", ""),
        evidence=tuple(_whole(each, "evidence") for each in evidence),
        rate=None if fields.get("rate") is None else _whole(fields["rate"], "rate"),
    )


def _whole(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise ValueError(f"{name} must be a whole number, not negative, of 63 bits")
    return value


def _text(fields: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT or not value.isprintable():
        raise ValueError(f"{name} must be a text of 1 to {MAX_TEXT} characters that can be printed")
    return value


def _deciding(settings: Mapping[str, object]) -> Deciding:
    """Return the consumer that the settings describe; ConfigurationRefused with all their problems."""
    problems = [f"there is no setting {name}" for name in sorted(settings.keys() - {"address", "senders", *NUMBERS})]
    numbers: dict[str, int] = {}
    for name, (default, limit) in NUMBERS.items():
        value = settings.get(name, default)
        if type(value) is int and 1 <= value <= limit:
            numbers[name] = value
        else:
            problems.append(f"{name} must be a whole number from 1 to {limit}")
    address, text = settings.get("address", DEFAULT_ADDRESS), settings.get("senders", "")
    senders = frozenset(filter(None, map(str.strip, text.split(",")))) if isinstance(text, str) else frozenset()
    if not isinstance(address, str) or not address:
        problems.append("address must be a text")
    if not senders:
        problems.append("senders must name the users who may send decisions, separated by commas")
    if problems or not isinstance(address, str):
        raise ConfigurationRefused(*problems)
    return Deciding(
        ConsumerTerms(address, senders, MAX_BYTES, numbers["maxPerSecond"], numbers["maxStanding"]),
        numbers["maxSeconds"],
    )
