"""Checks a policy against expected decisions, for continuous integration (`docs/policy.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trouter.config.problems import SourcePosition
from trouter.policy.compiled import Policy
from trouter.policy.explain import Question, explain, shown_name


@dataclass(frozen=True, slots=True)
class Expectation:
    """One row: a connection, with the expected decisions on it and on addresses."""

    place: SourcePosition
    question: Question
    #: The connection may open; the rule and group that decide, empty if any may.
    open: bool = True
    rule: str = ""
    group: str = ""
    #: Addresses, each with its place in the file.
    may_receive: tuple[tuple[str, SourcePosition], ...] = ()
    may_not_receive: tuple[tuple[str, SourcePosition], ...] = ()
    may_send: tuple[tuple[str, SourcePosition], ...] = ()
    may_not_send: tuple[tuple[str, SourcePosition], ...] = ()


@dataclass(frozen=True, slots=True)
class Expectations:
    """The content of one file of expectations."""

    #: The configuration, or the folder of policies, to check; None if the file names none.
    policy: Path | None
    #: Check as if the policy had enableVhostPolicy.
    enforce: bool
    #: Host name -> its addresses.
    addresses: Mapping[str, tuple[str, ...]]
    rows: tuple[Expectation, ...]


@dataclass(slots=True)
class Outcome:
    """The number of expectations that hold, and a line for each that does not."""

    held: int = 0
    failures: list[str] = field(default_factory=list)


def hold(expectations: Expectations, policy: Policy) -> Outcome:
    """Return the outcome of checking every expectation against the policy."""
    outcome = Outcome()
    rules = policy.with_addresses(expectations.addresses)
    for row in expectations.rows:
        for failure in _held_to(row, rules):
            if failure:
                outcome.failures.append(failure)
            else:
                outcome.held += 1
    return outcome


def _held_to(row: Expectation, policy: Policy) -> Iterator[str]:
    """Yield for each expectation of the row its failure, empty if it holds."""
    opened = explain(policy, row.question)
    who = f"{shown_name(row.question.user)} at {shown_name(row.question.vhost)} from {row.question.host or 'anywhere'}"
    if opened.allowed != row.open:
        yield f"{row.place}: {who} {'may not' if row.open else 'may'} connect, by {opened.rule}"
    else:
        yield ""
    if row.rule:
        wrong = "" if opened.rule == row.rule else f"{row.place}: {who}: decided by {opened.rule}, not by {row.rule}"
        yield wrong
    if row.group:
        found = opened.opened.group
        yield "" if found == row.group else f"{row.place}: {who}: in the group {shown_name(found)}, not {row.group}"
    for addresses, verb, wanted in (
        (row.may_receive, "receive from", True),
        (row.may_not_receive, "receive from", False),
        (row.may_send, "send to", True),
        (row.may_not_send, "send to", False),
    ):
        for address, place in addresses:
            source, target = (address, None) if verb == "receive from" else (None, address)
            explanation = explain(policy, replace(row.question, source=source, target=target))
            finding = f"{'may not' if wanted else 'may'} {verb} {shown_name(address)}, by {explanation.rule}"
            yield "" if explanation.allowed == wanted else f"{place}: {who} {finding}"
