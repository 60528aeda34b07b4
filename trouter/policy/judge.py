"""Judges what peers request: to open, to begin a session, to attach, to send, to manage (security.md 4.3-4.10).

Each function takes the request, the compiled policy or the terms of the connection, and the present counts. It returns
a Verdict and changes nothing: the caller counts, records and answers. The verdict has what led to it, which `explain`
puts into words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

from trouter.config.access import goes_on, is_separated
from trouter.config.entities.group import ANY_NUMBER, LEVELS, OPERATORS
from trouter.config.tenant_spaces import TenantSpaces
from trouter.core.addresses import plain
from trouter.core.check import NO_TO, TARGET, USER_ID
from trouter.core.routes import dynamic_address
from trouter.hooks import Permissions, VhostPolicy
from trouter.management.ports import Rights
from trouter.wire.performatives import Attach, Coordinator, Error, Source, Target

from .book import Book, QuotaAnswer
from .choice import ChosenBy
from .closed import ClosedServices
from .compiled import AddressRules, ConnectionLimits, Entries, Policy
from .entries import EntryError
from .kinds import (
    CONNECTION_DENIED,
    LINK_DENIED,
    SESSION_DENIED,
    TOO_MANY_LINKS,
    USER_DENIED,
    Judged,
    MemberBy,
    Reason,
)
from .names import NO_ENTRY
from .patterns import UNDECIDED, PatternRules
from .quota_rules import QuotaRule
from .requests import OpenRequest
from .settings import Settings

CONNECTOR_GROUP: Final = "$connector"
#: The text of `${user}` for users without a name, if the group substitutes it for them.
ANONYMOUS: Final = "anonymous"
#: First part of the rules that an authentication service grants.
SERVICE: Final = "auth-service"
#: The rule that denies an invalid address: too long, or no UTF-8. The rest of it may look like a valid one.
UNFIT: Final = "unfit-address"
#: The rule by which a plugin denies a link.
BY_PLUGIN: Final = "plugin:judge_attach"
#: Settings of a client without vhost and with permissions of an authentication service, which limit its addresses.
GRANTED: Final = Settings(allow_dynamic_source=True, allow_anonymous_sender=True)
_ALL_ALLOWED: Final[dict[str, Any]] = {row.name: True for row in fields(Settings) if row.name.startswith("allow_")}
UNRESTRICTED: Final = Settings(**_ALL_ALLOWED)
NO_POLICY: Final = AddressRules("no-policy", Entries.of_names(("*",)))
#: Terms of a peer that the router dials without a policyVhost, with secureDefaults: it has the links that the router
#: attaches, attaches none by itself, and forwards messages of any user.
DIALLED: Final = Settings(allow_user_id_proxy=True)
NO_ADDRESSES: Final = AddressRules("no-policyVhost", Entries.of_names(()))
NO_LIMITS: Final = ConnectionLimits(*[2**31 - 1] * 3)
#: The rights without a policy, and those of an unknown requester.
EVERYTHING: Final = Rights("admin")
NOTHING: Final = Rights("none", allow_admin_status_update=False, allow_dynamic_link_routes=False)
#: The rights of requests from users unknown here, by the policy's routerManagement.
RIGHTS_AT: Final = {
    level: NOTHING if level == "none" else Rights(level, allow_dynamic_link_routes=level in OPERATORS)
    for level in LEVELS
}
_WAYPOINT: Final = "qd.waypoint"
_FALLBACK: Final = "qd.fallback"
_OF_MESSAGES: Final = {USER_ID: Judged.USER_ID, NO_TO: Judged.NO_TO}


@dataclass(frozen=True, slots=True)
class Admission:
    """The terms under which a connection may open. `vhost` is empty if no vhost applies."""

    vhost: str
    group: str
    user: str
    settings: Settings
    sources: AddressRules
    targets: AddressRules
    limits: ConnectionLimits
    #: The text of `${user}`; empty if entries with it cover nothing.
    user_text: str = ""
    chosen_by: ChosenBy | None = None
    member_by: MemberBy | None = None
    #: The number of the entry of `remoteHosts`; 0 if they were not checked.
    host_entry: int = 0
    #: The quotas for all, for each user and for each host.
    quotas: tuple[QuotaRule, ...] = ()
    #: No policy applies to the connection: everything is allowed.
    unrestricted: bool = False
    #: What is closed to a user without all rights in management; None for nothing.
    closed: ClosedServices | None = None
    #: With secureDefaults a dynamic link that names a link route needs that address, too.
    judges_routes: bool = True

    def may_receive(self, address: str) -> Verdict:
        """Return whether a receiver may have `address` for its source."""
        return judge_address(self.sources, address, self.user_text)

    def may_send(self, address: str) -> Verdict:
        """Return whether a sender may have `address` for its target, or send messages to it."""
        if self.closed is not None and self.closed.cover(address):
            return Verdict(False, f"management:{self.settings.management}")
        return judge_address(self.targets, address, self.user_text)

    @property
    def rule(self) -> str:
        """The rule that admitted the connection."""
        if not self.vhost and not self.group:
            return self.sources.label
        if not self.host_entry:
            return f"{self.vhost}:{self.group}"
        return f"{self.vhost}:{self.group}:remoteHosts:{self.host_entry}"

    def rule_of(self, attribute: str) -> str:
        """Return the rule of an attribute of the group."""
        return ":".join(part for part in (self.vhost, self.group, attribute) if part)


class Verdict(NamedTuple):
    """The answer to one request: whether it is allowed, by which rule, and what the peer and the record get.

    The rule of an address is `VHOST:GROUP:ATTRIBUTE:N`, where N counts entries from 1. N is `none` if no entry covers
    the address, and `undecided` if the search was given up.
    """

    allowed: bool
    rule: str
    #: The kind of the request; None for an address by itself.
    judged: Judged | None = None
    #: The error that the peer gets if it is denied.
    error: Error | None = None
    #: Both empty if none was found.
    vhost: str = ""
    group: str = ""
    #: No policy applies, so that nothing is recorded if it is allowed.
    unrestricted: bool = False
    #: The address of a link or message, and its direction; another object of the request, for the log.
    address: str | None = None
    direction: str | None = None
    text: str = ""
    #: Why a connection is denied; its terms if it is not.
    reason: Reason | None = None
    admission: Admission | None = None

    def __bool__(self) -> bool:
        return self.allowed

    def denied_by(self, rule: str, error: Error) -> Verdict:
        """Return the verdict with another outcome: denied, by ``rule``."""
        return self._replace(allowed=False, rule=rule, error=error)


# --- open


def judge_accept(policy: Policy, host: str, open_now: int, *, router: bool) -> Verdict:
    """Return whether one more socket may be accepted; connections of routers have room that clients cannot take."""
    entity = policy.entity
    reserve = entity.router_connections if router and entity.max_connections else 0
    allowed = open_now < entity.max_connections + reserve
    return Verdict(allowed, "policy:maxConnections", Judged.ACCEPT, text=host)


def judge_open(policy: Policy, request: OpenRequest, chosen: VhostPolicy | None = None) -> Verdict:
    """Return the decision on a connection that opens, without its links and without the counts of others.

    ``chosen``: the answer of a plugin, which may choose the vhost or the addresses.
    """
    policy_vhost, permissions = request.policy_vhost, request.permissions
    if chosen is not None:
        if chosen.denied or (chosen.vhost and not policy.entity.enable_vhost_policy):
            return _deny_open(request, Reason.PLUGIN, chosen.vhost if chosen.vhost in policy.vhosts else "")
        policy_vhost = chosen.vhost or policy_vhost
        permissions = permissions if chosen.permissions is None else chosen.permissions
    if not policy.entity.enable_vhost_policy or request.is_exempt:
        verdict = _allow_open(request, _without_vhost(request.user))
    elif request.outgoing and not policy_vhost:
        verdict = _allow_open(request, (_without_addresses if policy.secure else _without_vhost)(request.user))
    elif request.outgoing:
        verdict = _judge_connector(policy, request, policy_vhost)
    else:
        verdict = _judge_client(policy, request, policy_vhost or request.hostname)
    if permissions is None or verdict.admission is None:
        return verdict
    return _grant(policy, request, verdict.admission, permissions)


def judge_counts(verdict: Verdict, request: OpenRequest, host: str, counts: Book) -> tuple[Verdict, QuotaAnswer | None]:
    """Return the verdict on a connection that may open by itself, after the counts, and what the quotas said.

    ``host`` is what the counts have it under.
    """
    admission = verdict.admission
    if admission is None:
        return verdict, None
    over = counts.limits_reached(admission.vhost, admission.limits, request.user, host)
    if over:
        rule = f"{admission.vhost}:{admission.group}:{'+'.join(over)}"
        return _deny_open(request, over[0], admission.vhost, admission.group, rule), None
    if not admission.quotas:
        return verdict, None
    answer = counts.quotas_at_open(admission.quotas, request.user, host)
    if answer.rule:
        return _deny_open(request, Reason.QUOTA, admission.vhost, admission.group, answer.rule), answer
    return verdict, answer


def judge_decisions(request: OpenRequest, admission: Admission, action: str) -> Verdict:
    """Return whether a connection may be open; ``action`` is the decision that blocks it, empty for none."""
    if not action:
        return _allow_open(request, admission)
    rule = f"decision:{action}"
    return _deny_open(request, Reason.DECISION, admission.vhost, admission.group, rule, Judged.ORDER)


def judge_tenant(request: OpenRequest, why: str, error: Error) -> Verdict:
    """Return the denial of a connection that belongs to no tenant."""
    return Verdict(False, f"tenant:{why}", Judged.TENANT, error, reason=Reason.NO_VHOST, text=request.hostname)


def deny_user(request: OpenRequest) -> Verdict:
    """Return the denial of a connection whose user `allowedUsers` of its listener does not name."""
    rule = f"listener:{request.listener}:allowedUsers"
    return Verdict(False, rule, Judged.USER, USER_DENIED, text=request.hostname)


def _allow_open(request: OpenRequest, admission: Admission) -> Verdict:
    return Verdict(
        True,
        admission.rule,
        Judged.CONNECTOR if request.outgoing else Judged.OPEN,
        None,
        admission.vhost,
        admission.group,
        admission.unrestricted,
        admission=admission,
    )


def _deny_open(
    request: OpenRequest,
    reason: Reason,
    vhost: str = "",
    group: str = "",
    rule: str = "",
    judged: Judged | None = None,
) -> Verdict:
    """Return a denial; its rule is by default the vhost and the group as far as they were found, and the reason."""
    return Verdict(
        False,
        rule or ":".join(part for part in (vhost, group, reason.value) if part),
        judged or (Judged.CONNECTOR if request.outgoing else Judged.OPEN),
        CONNECTION_DENIED,
        vhost,
        group,
        text=request.hostname,
        reason=reason,
    )


def _judge_connector(policy: Policy, request: OpenRequest, policy_vhost: str) -> Verdict:
    found = policy.choice.find_vhost(policy_vhost)
    if found is None:
        return _deny_open(request, Reason.NO_VHOST)
    vhost, chosen_by = found
    group = vhost.groups.get(CONNECTOR_GROUP)
    if group is None:
        return _deny_open(request, Reason.NO_CONNECTOR_GROUP, vhost.name)
    settings = replace(group.settings, max_frame_size=None, max_session_window=None, max_sessions=None)
    admission = Admission(
        vhost.name,
        group.name,
        "",
        settings,
        group.sources,
        group.targets,
        NO_LIMITS,
        ANONYMOUS if group.substitute_anonymous else "",
        chosen_by,
        MemberBy.CONNECTOR,
        judges_routes=policy.secure,
    )
    return _allow_open(request, admission)


def _judge_client(policy: Policy, request: OpenRequest, name: str) -> Verdict:
    found = policy.choice.choose_vhost(name)
    if found is None:
        return _deny_open(request, Reason.NO_VHOST)
    vhost, chosen_by = found
    assigned = vhost.group_of(request.user)
    if assigned is None:
        return _deny_open(request, Reason.NO_GROUP, vhost.name)
    group, member_by = assigned
    host_entry = group.hosts.find_entry(request.remote_host, policy.resolved)
    if not host_entry:
        return _deny_open(request, Reason.REMOTE_HOST, vhost.name, group.name)
    is_apart = request.has_tenancy or group.tenant_addresses
    if group.is_of_all and not is_apart and vhost.name in policy.tenants.names:
        return _deny_open(request, Reason.NO_TENANT, vhost.name, group.name)
    user_text = request.user if request.authenticated else ""
    if group.substitute_anonymous:
        user_text = request.user or ANONYMOUS
    if policy.reaches_longer_names and not group.substitute_separated and is_separated(user_text):
        user_text = ""
    if not is_apart and _reaches_tenant(policy.tenants, user_text, group.sources, group.targets):
        user_text = ""
    admission = Admission(
        vhost.name,
        group.name,
        request.user,
        group.settings,
        group.sources,
        group.targets,
        group.limits,
        user_text,
        chosen_by,
        member_by,
        host_entry,
        group.quotas,
        judges_routes=policy.secure,
    )
    return _allow_open(request, admission)


def _reaches_tenant(tenants: TenantSpaces, user_text: str, *rules: AddressRules) -> bool:
    """Return whether the text of a user's name leads to addresses of a tenant by an entry that does not name it."""
    return bool(tenants and user_text) and any(
        tenants.find_reached(entry, user_text, pattern=isinstance(each.entries.written, PatternRules), separated=True)
        for each in rules
        for entry in each.entries.texts
    )


def _without_vhost(user: str) -> Admission:
    """Return the terms of a connection without a vhost: everything is allowed, in messages of any size."""
    return Admission("", "", user, UNRESTRICTED, NO_POLICY, NO_POLICY, NO_LIMITS, user, unrestricted=True)


def _without_addresses(user: str) -> Admission:
    """Return the terms of a peer that may attach no link by itself."""
    return Admission("", "", user, DIALLED, NO_ADDRESSES, NO_ADDRESSES, NO_LIMITS)


def _grant(policy: Policy, request: OpenRequest, admission: Admission, permissions: Permissions) -> Verdict:
    """Return the admission with a service's grant instead of sources and targets; patterns stay (security.md 3.3)."""
    try:
        sources = AddressRules(f"{SERVICE}:sources", Entries.of_names(tuple(permissions.sources)))
        targets = AddressRules(f"{SERVICE}:targets", Entries.of_names(tuple(permissions.targets)))
    except EntryError:
        return _deny_open(request, Reason.BAD_PERMISSIONS, admission.vhost, admission.group)
    user_text = admission.user_text
    if _is_doubtful(policy, request, admission, sources, targets):
        user_text = ""
    if admission.unrestricted:
        settings = GRANTED
    else:
        settings = replace(admission.settings, allow_dynamic_source=True, allow_anonymous_sender=True)
    granted = replace(
        admission,
        settings=settings,
        user_text=user_text,
        sources=admission.sources if isinstance(admission.sources.entries.written, PatternRules) else sources,
        targets=admission.targets if isinstance(admission.targets.entries.written, PatternRules) else targets,
        unrestricted=False,
    )
    return _allow_open(request, granted)


def _is_doubtful(policy: Policy, request: OpenRequest, admission: Admission, *rules: AddressRules) -> bool:
    """Return whether the user's name leads to the addresses of another user, or of a tenant, by the entries of a grant.

    They are judged as those of the user's group; without one, by secureDefaults.
    """
    vhost = policy.vhosts.get(admission.vhost)
    group = None if vhost is None else vhost.groups[admission.group]
    separated = not policy.secure if group is None else group.substitute_separated
    is_apart = request.has_tenancy or (not policy.secure if group is None else group.tenant_addresses)
    if not separated and is_separated(admission.user_text):
        return any(goes_on(entry) for each in rules for entry in each.entries.texts)
    return not is_apart and _reaches_tenant(policy.tenants, admission.user_text, *rules)


# --- begin


def judge_begin(admission: Admission, others: int, quotas: QuotaAnswer | None) -> Verdict:
    """Return whether the peer may begin another session beside its ``others``; ``quotas``: None if none count it."""
    limit = admission.settings.max_sessions
    if limit is not None and others >= limit:
        rule = admission.rule_of("maxSessions")
    else:
        rule = "" if quotas is None else quotas.rule
    return Verdict(not rule, rule, Judged.BEGIN, SESSION_DENIED if rule else None, admission.vhost, admission.group)


# --- attach


def judge_attach(
    admission: Admission, attach: Attach, others: Callable[[], int], full: str = "", quotas: QuotaAnswer | None = None
) -> Verdict:
    """Return the decision on an attach, by number, flags and address (security.md 4.6, 4.9).

    others: returns how many links the peer has in this direction already; called only if that is limited. full: the
    rule by which the connection has as many links as it may, empty if it has not. quotas: what the quotas say to one
    more link, None if none count it.

    The decoder delivers the capabilities of a terminus as symbols, whether they were one symbol, an array or a list,
    and refuses deeper nesting. Each of them counts.
    """
    receives = attach.role
    terminus = attach.source if receives else attach.target
    over = full if quotas is None else quotas.rule or full
    if over:
        allowed, rule, error = False, over, TOO_MANY_LINKS
    elif admission.unrestricted:
        allowed, rule, error = True, admission.rule, None
    else:
        allowed, rule, error = _judge_link(admission, terminus, others, sends=not receives)
    address = getattr(terminus, "address", None)
    return Verdict(
        allowed,
        rule,
        Judged.RECEIVER if receives else Judged.SENDER,
        error,
        admission.vhost,
        admission.group,
        admission.unrestricted,
        address if isinstance(address, str) else None,
        "out" if receives else "in",
    )


def _judge_link(
    admission: Admission, terminus: object, others: Callable[[], int], *, sends: bool
) -> tuple[bool, str, Error | None]:
    label, settings = f"{admission.vhost}:{admission.group}", admission.settings
    limit = settings.max_senders if sends else settings.max_receivers
    if limit < ANY_NUMBER and others() >= limit:
        return False, f"{label}:{'maxSenders' if sends else 'maxReceivers'}", TOO_MANY_LINKS
    if isinstance(terminus, Coordinator):
        return True, f"{label}:coordinator", None  # the core decides on it: it has no address to judge
    if isinstance(terminus, Source | Target):
        for flag, capability in (("allowWaypointLinks", _WAYPOINT), ("allowFallbackLinks", _FALLBACK)):
            allowed = settings.allow_waypoint_links if capability is _WAYPOINT else settings.allow_fallback_links
            if not allowed and any(each.startswith(capability) for each in terminus.capabilities):
                return False, f"{label}:{flag}", LINK_DENIED
    allowed, rule = _judge_target(admission, label, terminus) if sends else _judge_source(admission, label, terminus)
    return allowed, rule, None if allowed else LINK_DENIED


def _judge_target(admission: Admission, label: str, target: object) -> tuple[bool, str]:
    """Return the decision on a target; one without an address, or a dynamic one, is that of an anonymous sender."""
    if target is not None and not isinstance(target, Target):
        return False, f"{label}:target"
    if admission.settings.allow_anonymous_sender and (routed := _route_of(admission, target)) is not None:
        return admission.may_send(routed)[:2]
    if target is None or target.dynamic or target.address in (None, ""):
        return admission.settings.allow_anonymous_sender, f"{label}:allowAnonymousSender"
    if not isinstance(target.address, str):
        return False, f"{label}:target"
    return admission.may_send(target.address)[:2]


def _judge_source(admission: Admission, label: str, source: object) -> tuple[bool, str]:
    if not isinstance(source, Source):
        return False, f"{label}:source"
    if admission.settings.allow_dynamic_source and (routed := _route_of(admission, source)) is not None:
        return _judge_entries(admission.sources, routed, admission.user_text)
    if source.dynamic:
        return admission.settings.allow_dynamic_source, f"{label}:allowDynamicSource"
    if not isinstance(source.address, str) or not source.address:
        return False, f"{label}:source"
    return _judge_entries(admission.sources, source.address, admission.user_text)


def _route_of(admission: Admission, terminus: Source | Target | None) -> str | None:
    """Return the address of the link route that a dynamic terminus names; None if it names none, or needs none."""
    if not admission.judges_routes or terminus is None or not terminus.dynamic:
        return None
    return dynamic_address(terminus.dynamic_node_properties)


def judge_address(rules: AddressRules, address: str, user: str) -> Verdict:
    """Return the decision on `address`; entries with `${user}` cover nothing if `user` is empty."""
    return Verdict(*_judge_entries(rules, address, user))


def _judge_entries(rules: AddressRules, address: str, user: str) -> tuple[bool, str]:
    number = _find_entry(rules.entries, address, user)
    if number > NO_ENTRY:
        return True, f"{rules.label}:{number}"
    return False, f"{rules.label}:{'undecided' if number == UNDECIDED else 'none'}"


def _find_entry(entries: Entries, address: str, user: str) -> int:
    """Return the number of the entry that covers `address` as it is written, NO_ENTRY, or UNDECIDED.

    The router's spelling must be allowed too: else `pub:/secret`, which `pub*` covers, would reach `secret`.
    """
    number = entries.written.find_entry(address, user)
    meant = plain(address)
    if number <= NO_ENTRY or meant == address:
        return number
    found = entries.plain.find_entry(meant, user)
    return number if found > NO_ENTRY else found


def deny_address(admission: Admission, attach: Attach, rule: str) -> Verdict:
    """Return the denial of a link whose address is not open to the peer, by a ``rule`` other than the policy's."""
    return judge_attach(admission, attach, _none, full=rule).denied_by(rule, LINK_DENIED)


def _none() -> int:
    return 0


# --- send


def judge_message(admission: Admission, what: str, text: str) -> Verdict:
    """Return the denial of a message, which the core refused for ``what`` (`core.check`); ``text`` is its object."""
    vhost, group = admission.vhost, admission.group
    if (judged := _OF_MESSAGES.get(what)) is not None:
        return Verdict(False, what, judged, None, vhost, group, direction="in", text=text)
    rule = what
    if what == TARGET:
        verdict = admission.may_send(text)
        rule = UNFIT if verdict.allowed else verdict.rule
    return Verdict(False, rule, Judged.TARGET, None, vhost, group, address=text, direction="in")


def judge_size(admission: Admission) -> Verdict:
    """Return the denial of a message above the largest size."""
    rule = admission.rule_of("maxMessageSize")
    return Verdict(False, rule, Judged.TOO_LARGE, None, admission.vhost, admission.group, direction="in")


def deny_consumer(admission: Admission | None, address: str) -> Verdict:
    """Return the denial of a message to a plugin's consumer, which does not list its sender."""
    vhost, group = ("", "") if admission is None else (admission.vhost, admission.group)
    return Verdict(False, "decision:sender", Judged.DECISION, None, vhost, group, address=address, direction="in")


# --- manage


def rights_of(policy: Policy, admission: Admission | None) -> Rights:
    """Return the management rights of a connection's user; ``admission`` is None for an unknown connection."""
    if not policy.entity.enable_vhost_policy:
        return EVERYTHING
    if admission is None:
        return NOTHING
    if admission.unrestricted:  # a connection between routers, or ours without a policyVhost and secureDefaults
        return RIGHTS_AT[policy.entity.router_management]
    settings = admission.settings
    return Rights(settings.management, settings.allow_admin_status_update, settings.allow_dynamic_link_routes)


def deny_management(rights: Rights, admission: Admission | None, what: str) -> Verdict:
    """Return the denial of a management request ``what``, which needs more than the rights of the user."""
    vhost, group = ("", "") if admission is None else (admission.vhost, admission.group)
    return Verdict(False, f"management:{rights.level}", Judged.MANAGEMENT, None, vhost, group, text=what)
