"""Finds parts of a configuration that will not be served, are unsafe, or are worth knowing.

`trouter check`, the log of a start, management, /readyz and /metrics share this evaluation. The texts are in the table
of strictness.
"""

from __future__ import annotations

import dataclasses
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from trouter._text import escape_unprintable
from trouter.config.acceptances import accept
from trouter.config.access import leads_to_management
from trouter.config.configuration import ROUTER_ROLES, Configuration
from trouter.config.cyrus import cyrus_site
from trouter.config.dangling import dangling, unexpanded
from trouter.config.differences import differences
from trouter.config.entities import (
    NOWHERE,
    AuthServicePluginEntity,
    ConnectorEntity,
    Entity,
    ListenerEntity,
    RouterEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.facts import listener_facts
from trouter.config.files import is_absent_console
from trouter.config.hosts import EVERY_ADDRESS, is_loopback
from trouter.config.impostors import impostors
from trouter.config.logins import login_findings, speaks_amqp
from trouter.config.neighbours import neighbours
from trouter.config.page_findings import page_findings
from trouter.config.passwords import Secret
from trouter.config.problems import Problem, Severity, SourcePosition, few_hints, nearest
from trouter.config.reporting import finding_of
from trouter.config.strictness import POINTS
from trouter.config.tenant_findings import tenant_findings
from trouter.config.tenants import why_no_tenants
from trouter.config.texts import PRODUCT_PROPERTIES
from trouter.config.workers import WORKERS_HOST, worker_findings
from trouter.hooks import Plugins
from trouter.mechanisms import ANONYMOUS, PLAIN, mechanism_of

OTHERS_MAY_READ: Final = stat.S_IROTH
OTHERS_MAY_WRITE: Final = stat.S_IWOTH
GROUP_MAY_WRITE: Final = stat.S_IWGRP
OLD_TLS: Final = frozenset({"TLSv1", "TLSv1.1"})
#: The findings about one text that an answer has.
MOST_FINDINGS: Final = 200
#: The severities in the order in which they are counted and shown, the gravest first.
SEVERITIES: Final = (Severity.PROBLEM, Severity.UNSAFE, Severity.NOTE, Severity.ACCEPTED)
#: Findings about files from the time of reading; those about the sslProfiles themselves are newer and replace them.
OVERTAKEN: Final = frozenset({"unreadable-file", "unknown-tls-version"})
#: Findings about this machine: its files, the rights to them, and the services that it knows.
OF_MACHINE: Final = frozenset(
    {"readable-by-others", "writable-by-group", "writable-by-others", "unreadable-file", "unknown-service"}
)
#: What a listener does whose sslProfile cannot be used.
NOT_THEIRS: Final = "will not get its certificate, which cannot be used"
NO_HANDSHAKE: Final = "will open, and no TLS handshake with it will succeed"
NO_FAULTS: Final[Mapping[str, str]] = MappingProxyType({})


@few_hints()
def evaluate(
    configuration: Configuration, plugins: Plugins | None = None, *, is_file: bool = True
) -> tuple[Problem, ...]:
    """Return all findings about a configuration, the gravest first, none of them accepted.

    ``plugins`` are those that are configured with it. ``is_file``: its source is a file, not a name from a request.
    """
    found = [*configuration.warnings, *not_served(configuration), *unsafe(configuration, plugins, is_file=is_file)]
    found += [*dangling(configuration), *unexpanded(configuration), *_alone(configuration)]
    found += worker_findings(configuration)
    found += differences(configuration, anonymous=any(map(_admits_anonymous, configuration.listeners)))
    if plugins is not None:
        found += login_findings(configuration, plugins)
    return ordered(found)


def ordered(found: list[Problem]) -> tuple[Problem, ...]:
    """Return findings, each once, the gravest first, then in the order of the file."""
    return tuple(sorted(dict.fromkeys(found), key=lambda each: (SEVERITIES.index(each.severity), each.place)))


@few_hints()
def judged(configuration: Configuration, found: list[Problem], *, whole: bool = True) -> tuple[Problem, ...]:
    """Return all findings of a configuration in order, those marked that its files accept; ``whole`` as of accept."""
    return ordered(accept(dict.fromkeys(found), configuration.acceptances, whole=whole))


def brief(finding: Problem) -> str:
    """Return a finding as text without the file and its place."""
    where = finding.entity or ".".join(part for part in (finding.section, finding.key) if part)
    return escape_unprintable(f"{where}: {finding.message}" if where else finding.message)


def counted(findings: Iterable[Problem]) -> Mapping[str, int]:
    """Return the number of findings by the name of the severity."""
    counts = Counter(finding.severity for finding in findings)
    return {str(severity): counts[severity] for severity in SEVERITIES}


def first_of(found: Sequence[Problem]) -> Iterator[Problem]:
    """Yield the first findings about a text, and one that says how many more there are."""
    yield from found[:MOST_FINDINGS]
    if more := found[MOST_FINDINGS:]:
        place = SourcePosition(more[0].place.file)
        yield Problem(place, f"there are {len(more)} more findings: mend these first", severity=more[0].severity)


def described(finding: Problem) -> dict[str, object]:
    """Return a finding as JSON shows it."""
    point = POINTS.get(finding.point)
    return {
        "severity": str(finding.severity),
        "file": finding.place.file,
        "line": finding.place.line,
        "column": finding.place.column,
        "section": finding.section,
        "attribute": finding.key,
        "message": finding.message,
        "text": finding.text,
        "cure": finding.suggestion,
        "entity": finding.entity,
        "point": finding.point,
        "page": f"docs/{point.page}" if point is not None else "",
        "reason": finding.reason,
    }


def not_served(configuration: Configuration, faults: Mapping[str, str] = NO_FAULTS) -> Iterator[Problem]:
    """Yield problems of profiles that cannot be used, and of entities that will not be put into service."""
    for profile in configuration.ssl_profiles:
        if fault := faults.get(profile.name):
            yield _problem(profile, f"will not be used: {fault}")
    users: tuple[tuple[str, tuple[ListenerEntity | ConnectorEntity | AuthServicePluginEntity, ...]], ...] = (
        ("will not be opened", configuration.listeners),
        ("will not dial", configuration.connectors),
        ("will not be asked", configuration.auth_services),
    )
    for what, entities in users:
        for entity in entities:
            if reasons := reasons_against(configuration, entity, faults):
                yield _unserved(configuration, entity, f"{what}: {'; '.join(reasons)}")
            elif fault := faults.get(entity.ssl_profile or ""):
                yield _problem(entity, f"{NO_HANDSHAKE}: its sslProfile cannot be used: {fault}")
            elif isinstance(entity, ListenerEntity):
                for name in entity.sni_profiles:
                    if fault := faults.get(name):
                        yield _problem(
                            entity, f"clients that ask for a name of sslProfile {name} {NOT_THEIRS}: {fault}"
                        )


def reasons_against(configuration: Configuration, entity: Entity, faults: Mapping[str, str]) -> tuple[str, ...]:
    """Return the reasons why an entity is not put into service; none if it is, as a listener whose TLS fails."""
    dials = not isinstance(entity, ListenerEntity)
    fault = faults.get(getattr(entity, "ssl_profile", None) or "") if dials else None
    return (*configuration.unserved(entity), *((f"its sslProfile cannot be used: {fault}",) if fault else ()))


def _unserved(configuration: Configuration, entity: Entity, message: str) -> Problem:
    """Return the problem of an entity that is not put into service, with a cure if its sslProfile does not exist."""
    problem = _problem(entity, message)
    wanted = getattr(entity, "ssl_profile", None)
    if not wanted or configuration.ssl_profile(wanted) is not None:
        return problem
    point = POINTS["unknown-profile"]
    cure = nearest(wanted, (each.name for each in configuration.ssl_profiles)) or point.cure
    return dataclasses.replace(problem, key="sslProfile", suggestion=cure, point=point.name)


def _alone(configuration: Configuration) -> Iterator[Problem]:
    """Yield a warning for a router that no peer can connect to and that dials none; for an interior one, no router."""
    roles = {listener.role for listener in configuration.listeners} | {each.role for each in configuration.connectors}
    if configuration.router.mode == "interior" and not roles & ROUTER_ROLES:
        yield finding_of("no-neighbours", configuration.router)
    elif not roles:
        finding = finding_of("no-connections", configuration.router)
        place = configuration.router.place
        yield dataclasses.replace(finding, place=SourcePosition(configuration.source) if place == NOWHERE else place)


def _problem(entity: Entity, message: str) -> Problem:
    section, name = entity.type.section, entity.given_name
    return Problem(entity.place, message, section, name, severity=Severity.PROBLEM, entity=entity.identity)


def unsafe(
    configuration: Configuration, plugins: Plugins | None = None, *, is_file: bool = True
) -> tuple[Problem, ...]:
    """Return the findings about unsafe settings, in the order of the file; ``is_file`` as in ``evaluate``."""
    found = [
        *_files(configuration, configuration.source if is_file else None),
        *_vhosts(configuration),
        *_tenants(configuration),
        *_managers(configuration),
    ]
    found += [*_no_policy(configuration), *_strangers(configuration, plugins)]
    for listener in configuration.listeners:
        found += [*_listener(listener, configuration.router, plugins), *page_findings(listener, configuration)]
    for connector in configuration.connectors:
        found += _connector(connector)
    for service in configuration.auth_services:
        if service.allow_insecure_plain == "yes" and not (service.ssl_profile or is_loopback(service.address[0])):
            found.append(finding_of("service-in-clear", service, host=service.address[0]))
    for profile in configuration.ssl_profiles:
        found += _ssl_profile(profile)
    found += [*impostors(configuration), *neighbours(configuration), *tenant_findings(configuration)]
    return tuple(sorted(found, key=lambda problem: problem.place))


def _listener(listener: ListenerEntity, router: RouterEntity, plugins: Plugins | None) -> Iterator[Problem]:
    if listener.host == WORKERS_HOST:
        return
    finding = partial(finding_of, entity=listener)
    encrypted = listener.require_ssl or listener.require_encryption
    if listener.ssl_profile and not encrypted:
        yield finding("tls-if-they-like")
    yield from _secret(listener, "metricsToken", listener.metrics_token)
    if is_absent_console(listener.http_root_dir):
        yield finding("older-console")
    yield from _product(listener)
    if listener.strip_annotations != "both":
        yield finding("traces-kept")
    if listener.http_root_dir and not is_absent_console(listener.http_root_dir):
        yield finding("files-served")
    exposed = not is_loopback(listener.host)
    if not listener.authenticate_peer and listener.role not in ROUTER_ROLES:
        what = "a name" if exposed and _admits_anonymous(listener) else "authenticating"
        yield finding("authenticate-peer", where="other machines" if exposed else "this machine", what=what)
    where = f"{'every address' if listener.host in EVERY_ADDRESS else listener.host} at port {listener.port}"
    if listener.role in ROUTER_ROLES and not listener.proves_routers:
        yield finding("unproven-router", where=where)
    if not exposed:
        return
    taken = "allow_insecure_plain" in listener.written or _takes_passwords(listener, router, plugins)
    if listener.allow_insecure_plain == "yes" and not encrypted and taken:
        yield finding("passwords-in-clear")
    elif not (listener.ssl_profile or listener.role in ROUTER_ROLES):
        yield finding("require-tls")
    if not listener.initial_handshake_timeout_seconds:
        yield finding("never-opens")


def _connector(connector: ConnectorEntity) -> Iterator[Problem]:
    yield from _secret(connector, "saslPassword", connector.sasl_password)
    yield from _product(connector)
    exposed = not (connector.ssl_profile or is_loopback(connector.host))
    plain = not connector.sasl_mechanisms or PLAIN in connector.sasl_mechanisms
    sent = "allow_insecure_plain" in connector.written or (plain and connector.sasl_password is not None)
    if connector.allow_insecure_plain == "yes" and exposed and sent:
        yield finding_of("password-sent-in-clear", connector)
    if connector.ssl_profile and not connector.verify_hostname:
        yield finding_of("any-host-name", connector)


def _product(entity: ListenerEntity | ConnectorEntity) -> Iterator[Problem]:
    """Yield a finding if an open says that the router is another product, or another version."""
    given = [str(text) for name in PRODUCT_PROPERTIES if (text := entity.open_properties.get(name))]
    if given:
        yield finding_of("other-product", entity, product=" ".join(given))


def _ssl_profile(profile: SslProfileEntity) -> Iterator[Problem]:
    yield from _secret(profile, "password", profile.password)
    if profile.private_key_file:
        yield from _private(profile, "privateKeyFile", profile.private_key_file)
    if profile.password is None and profile.password_file:
        yield from _private(profile, "passwordFile", profile.password_file)
    if old := sorted(OLD_TLS.intersection((profile.protocols or "").split())):
        yield finding_of("old-tls", profile, versions=" and ".join(old))
    if profile.below_system_minimum:
        yield finding_of("below-system-minimum", profile)


def _secret(entity: Entity, attribute: str, secret: Secret | None) -> Iterator[Problem]:
    if secret is not None and secret.in_clear:
        yield finding_of("secret-in-file", entity, attribute)
    if secret is not None and secret.path:
        yield from _private(entity, attribute, secret.path)


def _private(entity: Entity, attribute: str, path: str) -> Iterator[Problem]:
    if _mode(path) & (OTHERS_MAY_READ | OTHERS_MAY_WRITE):
        yield finding_of("readable-by-others", entity, attribute, path=path)
    elif _mode(path) & GROUP_MAY_WRITE:
        yield finding_of("writable-by-group", entity, attribute, path=path)


def _mode(path: str) -> int:
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return 0


def _files(configuration: Configuration, own: str | None) -> Iterator[Problem]:
    """Yield findings about the file of users, the folder of the policy, and the configuration's own file if any."""
    router: RouterEntity = configuration.router
    if router.users_file:
        yield from _private(router, "usersFile", router.users_file)
    for attribute, path in (("", own), ("policyDir", configuration.policy.policy_dir)):
        section = "policy" if attribute else ""
        mode = _mode(path) if path else 0
        if mode & GROUP_MAY_WRITE and not mode & OTHERS_MAY_WRITE:  # that is worse, and reported when the file is read
            point = POINTS["writable-by-group"]
            yield Problem(
                SourcePosition(configuration.source),
                point.warning.format(path=path),
                section,
                attribute,
                suggestion=point.cure.format(path=path),
                severity=point.severity,
                point=point.name,
            )


def _tenants(configuration: Configuration) -> Iterator[Problem]:
    for listener in configuration.listeners:
        if why_no_tenants(partial(getattr, listener), configuration.policy.enable_vhost_policy, secure=True):
            yield finding_of("unheld-tenants", listener)


def _managers(configuration: Configuration) -> Iterator[Problem]:
    """Yield findings where all rights on `$management` are granted only because an attribute is missing."""
    policy = configuration.policy
    if configuration.router.secure_defaults or not policy.enable_vhost_policy:
        return
    for vhost in configuration.vhosts:
        for name, group in vhost.groups.items():
            targets = (*group.targets, *group.target_pattern)
            if "management" not in group.written and any(map(leads_to_management, targets)):
                yield finding_of("group-management", vhost, group=name)
    if configuration.router.mode != "standalone" and "router_management" not in policy.written:
        yield finding_of("router-management", policy)


def _no_policy(configuration: Configuration) -> Iterator[Problem]:
    """Yield a finding if the policy of vhosts is off; each vhost in the file has one of its own."""
    policy = configuration.policy
    if configuration.listeners and not (policy.enable_vhost_policy or configuration.vhosts):
        finding = finding_of("vhost-policy", policy)
        place = SourcePosition(configuration.source) if policy.place == NOWHERE else policy.place
        yield dataclasses.replace(finding, place=place)


def _strangers(configuration: Configuration, plugins: Plugins | None) -> Iterator[Problem]:
    """Yield findings about limits that one host lacks, if clients of other machines may connect."""
    router = configuration.router
    exposed = [
        each
        for each in configuration.listeners
        if each.host != WORKERS_HOST and not is_loopback(each.host) and speaks_amqp(each)
    ]
    if exposed and not (router.max_handshakes_per_host or router.accept_rate_per_host):
        yield finding_of("one-address-many-clients", router)
    if router.auth_lockout == "delay" and any(_takes_passwords(each, router, plugins) for each in exposed):
        yield finding_of("one-address-many-logins", router)


def _vhosts(configuration: Configuration) -> Iterator[Problem]:
    enabled = configuration.policy.enable_vhost_policy
    if configuration.policy.max_message_size and not enabled:
        yield finding_of("idle-message-size", configuration.policy)
    anonymous = _first_anonymous(configuration)
    for vhost in configuration.vhosts:
        if not enabled:
            yield finding_of("idle-vhost", vhost)
        through = min(filter(None, (anonymous.get(None), anonymous.get(vhost.hostname))), default=None)
        for name in _open_groups(vhost):
            if through is not None:
                yield finding_of("open-group", vhost, f"groups.{name}.remoteHosts", listener=through[1])


def _first_anonymous(configuration: Configuration) -> dict[str | None, tuple[int, str]]:
    """Return the number and the name of the first listener that admits clients without a name, by its vhost.

    None stands for every vhost, if it names none, or one that is not there.
    """
    found: dict[str | None, tuple[int, str]] = {}
    for number, each in enumerate(configuration.listeners):
        if _admits_anonymous(each) and speaks_amqp(each):
            vhost = each.policy_vhost if each.policy_vhost in configuration.vhost_names else None
            found.setdefault(vhost, (number, each.name))
    return found


def _takes_passwords(listener: ListenerEntity, router: RouterEntity, plugins: Plugins | None) -> bool:
    """Return whether a login on this listener may send a password or a token in clear."""
    if listener.sasl_plugin:
        return True
    known = (router.users_file, router.pam_service, cyrus_site(router), router.oauth_issuer)
    wanted = listener.sasl_mechanisms
    if any(known) and (not wanted or any(mechanism_of(each).in_clear for each in wanted)):
        return True
    return plugins is not None and any(each.in_clear for each in plugins.sasl_mechanisms(listener_facts(listener)))


def _admits_anonymous(listener: ListenerEntity) -> bool:
    mechanisms = listener.sasl_mechanisms
    return not listener.authenticate_peer and (not mechanisms or ANONYMOUS in mechanisms)


def _open_groups(vhost: VhostEntity) -> Iterator[str]:
    """Yield the groups that users without a name belong to, if these may come from every host."""
    for name, group in vhost.groups.items():
        unknown = name == "$default" and vhost.allow_unknown_user
        everybody = unknown or "*" in group.users or "anonymous" in group.users
        if everybody and any(hosts.everybody for hosts in group.remote_hosts):
            yield name
