"""Explains the decision on a connection, and optionally on an address: each step with its rule.

`judge` decides; this module puts its verdicts into words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

from trouter._text import escape_unprintable
from trouter.config.access import covers_user
from trouter.config.entities import GroupSettings
from trouter.config.entities.group import ANY_NUMBER
from trouter.config.schema import camel
from trouter.policy.choice import ChosenBy
from trouter.policy.compiled import ConnectionLimits, Policy
from trouter.policy.judge import NO_ADDRESSES, Admission, Verdict, deny_user, judge_attach, judge_open
from trouter.policy.kinds import MemberBy, Reason
from trouter.policy.requests import OpenRequest
from trouter.policy.settings import Settings
from trouter.wire.performatives import Attach, Source, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A connection, and at most one address that it wants to receive from or send to."""

    vhost: str = ""
    user: str = ""
    host: str = ""
    #: The user's name is proven.
    authenticated: bool = True
    #: The `policyVhost` of the listener or connector; whether the connection is a connector's.
    policy_vhost: str = ""
    connector: bool = False
    #: The listener, its role, and its `allowedUsers`; whether it is multi-tenant, None for as the vhost needs it.
    listener: str = ""
    role: str = "normal"
    allowed_users: tuple[str, ...] | None = None
    has_tenancy: bool | None = None
    source: str | None = None
    target: str | None = None


class ExplanationStep(NamedTuple):
    """One step of a decision: its subject, the result, and the reason."""

    what: str
    found: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision, its rule, and its steps."""

    allowed: bool
    rule: str
    steps: tuple[ExplanationStep, ...]
    #: The verdict on the connection itself.
    opened: Verdict

    def as_text(self) -> str:
        """Return the steps as lines of three columns, with the decision last."""
        last = ExplanationStep("so", "allowed" if self.allowed else "DENIED", f"by {self.rule}")
        lines = (*self.steps, last)
        widths = [max(len(escape_unprintable(step[column])) for step in lines) for column in (0, 1)]
        rows = (
            f"{step.what:<{widths[0]}}  {escape_unprintable(step.found):<{widths[1]}}  {escape_unprintable(step.why)}"
            for step in lines
        )
        return "\n".join(row.rstrip() for row in rows)

    def as_map(self) -> dict[str, Any]:
        """Return the explanation as a map for programs."""
        explanation: dict[str, Any] = {"allowed": self.allowed, "rule": self.rule}
        explanation |= {"vhost": self.opened.vhost, "group": self.opened.group}
        admission = self.opened.admission
        if admission is None:
            explanation["reason"] = self.opened.reason
        else:
            explanation |= {
                "restricted": not admission.unrestricted,
                "settings": _settings(admission.settings),
                "limits": {camel(name): value for name, value in admission.limits._asdict().items()},
            }
        return {**explanation, "steps": [step._asdict() for step in self.steps]}


def explain(policy: Policy, question: Question) -> Explanation:
    """Return the policy's decision on a question, with its steps."""
    request = OpenRequest(
        hostname=question.vhost,
        user=question.user,
        remote_host=question.host,
        authenticated=question.authenticated,
        policy_vhost=question.policy_vhost,
        outgoing=question.connector,
        listener=question.listener,
        role=question.role,
        has_tenancy=_asks_for_tenant(policy, question) if question.has_tenancy is None else question.has_tenancy,
    )
    listed = _listed(question)
    if listed and listed[0].found == NOT_LISTED:
        opened = deny_user(request)
        return Explanation(False, opened.rule, listed, opened)
    opened = judge_open(policy, request)
    admission = opened.admission
    if admission is None:
        return Explanation(False, opened.rule, (*listed, *_denied(policy, opened, question)), opened)
    steps, attach = (*listed, *_admitted(policy, admission, question)), _attach_of(question)
    if attach is None:
        return Explanation(True, opened.rule, steps, opened)
    verdict = judge_attach(admission, attach, _no_others)
    asked = shown_name(verdict.address or "")
    step = ExplanationStep("source" if attach.role else "target", asked, _entry(policy, admission, verdict))
    return Explanation(verdict.allowed, verdict.rule, (*steps, step), opened)


def _asks_for_tenant(policy: Policy, question: Question) -> bool:
    """Return whether a question is about the vhost of a tenant."""
    chosen = policy.choice.choose_vhost(question.policy_vhost or question.vhost)
    return chosen is not None and chosen[0].name in policy.tenants.names


def _listed(question: Question) -> tuple[ExplanationStep, ...]:
    """Return the step about `allowedUsers` of the listener, if it has some."""
    allowed = question.allowed_users
    if allowed is None:
        return ()
    user = question.user if question.authenticated else ""
    why = f"allowedUsers of the listener {shown_name(question.listener)}: {', '.join(map(shown_name, allowed))}"
    return (ExplanationStep("user", LISTED if covers_user(allowed, user) else NOT_LISTED, why),)


def _attach_of(question: Question) -> Attach | None:
    """Return the attach that a question is about; None if it is about the connection only."""
    if question.source is not None:
        return Attach("", 0, True, source=Source(question.source), target=Target())
    if question.target is not None:
        return Attach("", 0, False, source=Source(), target=Target(question.target), initial_delivery_count=0)
    return None


def _no_others() -> int:
    return 0


def explained(policy: Policy, question: Mapping[str, str]) -> dict[str, Any]:
    """Return the explanation, as a map, of a question of a management client; a named user counts as proven.

    The keys are ``vhost``, ``user``, ``host``, ``policyVhost``, ``source`` and ``target``, all optional.
    """
    user = question.get("user", "")
    explanation = explain(
        policy,
        Question(
            vhost=question.get("vhost", ""),
            user=user,
            host=question.get("host", ""),
            authenticated=bool(user),
            policy_vhost=question.get("policyVhost", ""),
            source=question.get("source"),
            target=question.get("target"),
        ),
    )
    return explanation.as_map()


LISTED: Final = "listed"
NOT_LISTED: Final = "not listed"
#: Limit of the characters of a name that are shown.
MAX_SHOWN: Final = 100
WHY_VHOST: Final = {
    ChosenBy.HOSTNAME: "its host name is {}",
    ChosenBy.ALIAS: "{} is one of its aliases",
    ChosenBy.PATTERN: "{} matches its pattern",
    ChosenBy.DEFAULT: "no vhost is called {}: it is the default one",
}
WHY_GROUP: Final = {
    MemberBy.LISTED: "it lists the user {}",
    MemberBy.EVERY_USER: "no group lists the user {}, and this one is of every user",
    MemberBy.UNKNOWN_USER: "no group lists the user {}, and the vhost says allowUnknownUser",
    MemberBy.CONNECTOR: "it is the one for connectors",
}
WHY_NOT: Final = {
    Reason.NO_VHOST: "no vhost is called {vhost}, and none is the default one for it",
    Reason.NO_GROUP: "no group is for the user {user}, and the vhost does not say allowUnknownUser",
    Reason.NO_CONNECTOR_GROUP: "the vhost has no group $connector",
    Reason.NO_TENANT: "the vhost is a tenant's, and its group reaches the whole router where there is no tenant",
    Reason.REMOTE_HOST: "no entry of remoteHosts has {host}",
}


def _vhost_of(question: Question) -> str:
    return shown_name(question.policy_vhost or question.vhost)


def _denied(policy: Policy, denial: Verdict, question: Question) -> tuple[ExplanationStep, ...]:
    words = {"vhost": _vhost_of(question), "user": shown_name(question.user), "host": shown_name(question.host)}
    steps = []
    if denial.vhost:
        steps.append(ExplanationStep("vhost", denial.vhost))
    if denial.group:
        steps.append(ExplanationStep("group", denial.group))
    assert denial.reason is not None  # noqa: S101 - a denied open has one
    if denial.reason is Reason.REMOTE_HOST:
        steps += _unresolved(policy, denial.vhost, denial.group)
    return (*steps, ExplanationStep("open", "denied", WHY_NOT[denial.reason].format(**words)))


def _admitted(policy: Policy, admission: Admission, question: Question) -> tuple[ExplanationStep, ...]:
    if admission.unrestricted:
        why = (
            "no policyVhost for it"
            if policy.entity.enable_vhost_policy
            else "the policy does not say enableVhostPolicy"
        )
        return (ExplanationStep("open", "allowed", f"nothing is held to a vhost: {why}"),)
    if admission.sources is NO_ADDRESSES:
        return (ExplanationStep("open", "allowed", "it may attach no links: no policyVhost for it"),)
    steps: list[ExplanationStep] = []
    if admission.chosen_by is not None:
        steps.append(
            ExplanationStep(
                "vhost", shown_name(admission.vhost), WHY_VHOST[admission.chosen_by].format(_vhost_of(question))
            )
        )
    if admission.member_by is not None:
        why = WHY_GROUP[admission.member_by].format(shown_name(question.user))
        steps.append(ExplanationStep("group", admission.group, why))
    if admission.host_entry:
        entry = _group(policy, admission.vhost, admission.group).remote_hosts[admission.host_entry - 1]
        steps.append(ExplanationStep("host", question.host, f"entry {admission.host_entry} of remoteHosts: {entry}"))
    steps.append(ExplanationStep("open", "allowed", _limits(admission.limits)))
    if question.source is None and question.target is None:
        unset = {None, ANY_NUMBER}
        given = {name: value for name, value in _settings(admission.settings).items() if value not in unset}
        steps += [ExplanationStep("with", f"{name}: {_shown(value)}") for name, value in given.items()]
    return tuple(steps)


def _limits(limits: ConnectionLimits) -> str:
    if limits.connections >= ANY_NUMBER:
        return "its number is limited by no vhost"
    return (
        f"while there are fewer than {limits.connections} connections, {limits.per_user} of the user,"
        f" {limits.per_host} from the host"
    )


def _settings(settings: Settings) -> dict[str, Any]:
    """Return the settings by the names of their attributes in the configuration."""
    return {camel(name): value for name, value in asdict(settings).items()}


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _group(policy: Policy, vhost: str, group: str) -> GroupSettings:
    return policy.vhosts[vhost].entity.groups[group]


def _entry(policy: Policy, admission: Admission, verdict: Verdict) -> str:
    """Return the deciding entry as it is configured, or what decided if no entry did."""
    if admission.unrestricted:
        return "every address"
    if admission.sources is NO_ADDRESSES:
        return "no address"
    label, _, last = verdict.rule.rpartition(":")
    attribute = label.rpartition(":")[2]
    if attribute in FIELDS and label == f"{admission.vhost}:{admission.group}:{attribute}":
        if last == "undecided":
            return f"too many ways to match {attribute}"
        if last == "none":
            return f"no entry of {attribute} has it"
        entries = getattr(_group(policy, admission.vhost, admission.group), FIELDS[attribute])
        return f"entry {last} of {attribute}: {entries[int(last) - 1]}"
    if last == ANONYMOUS_SENDER:
        return f"a sender without an address: {ANONYMOUS_SENDER} is {_shown(verdict.allowed)}"
    if last in LINK_LIMITS:
        return f"{last} is {LINK_LIMITS[last](admission.settings)}"
    return "a receiver without an address"


#: The setting that decides on an empty target.
ANONYMOUS_SENDER: Final = "allowAnonymousSender"
#: The settings that limit links, and their numbers.
LINK_LIMITS: Final[Mapping[str, Callable[[Settings], int]]] = {
    "maxSenders": attrgetter("max_senders"),
    "maxReceivers": attrgetter("max_receivers"),
}
FIELDS: Final = {
    "sources": "sources",
    "targets": "targets",
    "sourcePattern": "source_pattern",
    "targetPattern": "target_pattern",
}


def _unresolved(policy: Policy, vhost: str, group: str) -> list[ExplanationStep]:
    """Return a step for each host name of a group without a known address."""
    known = {name for names in policy.resolved.values() for name in names}
    names = {host.name for host in _group(policy, vhost, group).remote_hosts if host.name}
    return [ExplanationStep("host name", name, "its address is not known here") for name in sorted(names - known)]


def shown_name(text: str) -> str:
    """Return a name in quotes, safe for a terminal and cut to ``MAX_SHOWN`` characters."""
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}...")
