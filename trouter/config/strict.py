"""What a configuration may say, and a careful operator does not: told at start, and by `trouter check`.

What is grave lets somebody in, or lets them read what lets them in (security.md 8.7): with it `trouter check` fails.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trouter.config.configuration import Configuration
from trouter.config.entities import (
    ConnectorEntity,
    Entity,
    ListenerEntity,
    RouterEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.hosts import is_loopback
from trouter.config.passwords import Secret
from trouter.config.problems import Place, Problem
from trouter.config.rules import ROUTER_ROLES

OTHERS_MAY_READ: Final = stat.S_IROTH
OTHERS_MAY_WRITE: Final = stat.S_IWOTH
GROUP_MAY_WRITE: Final = stat.S_IWGRP
OLD_TLS: Final = frozenset({"TLSv1", "TLSv1.1"})


@dataclass(frozen=True, slots=True)
class Finding(Problem):
    """Something unsafe."""

    grave: bool = False


def unsafe(configuration: Configuration) -> tuple[Finding, ...]:
    """Everything that should not be so, in the order of the file."""
    found = [*_files(configuration), *_vhosts(configuration), *_tenants(configuration), *_insecure(configuration)]
    for listener in configuration.listeners:
        found += _listener(listener)
    for connector in configuration.connectors:
        found += _connector(connector)
    for profile in configuration.ssl_profiles:
        found += _ssl_profile(profile)
    return tuple(sorted(found, key=lambda problem: problem.place))


def _problem(entity: Entity, attribute: str, message: str, suggestion: str, *, grave: bool = False) -> Finding:
    section = entity.type.section
    return Finding(entity.place, message, section, attribute, suggestion=suggestion, grave=grave)


def _listener(listener: ListenerEntity) -> Iterator[Finding]:
    if "*" in listener.web_socket_origins:
        yield _problem(listener, "webSocketOrigins", "pages of every site may connect", "name the sites")
    if listener.ssl_profile and not (listener.require_ssl or listener.require_encryption):
        yield _problem(listener, "requireSsl", "clients may connect without TLS", "write requireSsl: yes")
    yield from _secret(listener, "metricsToken", listener.metrics_token)
    if is_loopback(listener.host):
        return
    if listener.allow_insecure_plain == "yes" and not (listener.require_ssl or listener.require_encryption):
        yield _problem(
            listener,
            "allowInsecurePlain",
            "passwords from other machines cross the network unencrypted",
            "write allowInsecurePlain: loopback, or require TLS",
            grave=True,
        )
    if not listener.authenticate_peer:
        who = "without saying who they are" if _admits_anonymous(listener) else "without authenticating"
        yield _problem(
            listener,
            "authenticatePeer",
            f"other machines may connect {who}",
            "write authenticatePeer: yes",
            grave=listener.role in ROUTER_ROLES,
        )
    if listener.role in ROUTER_ROLES and not listener.ssl_profile:
        yield _problem(
            listener,
            "role",
            "whoever reaches this listener can be a router of the network",
            "write an sslProfile",
            grave=not listener.authenticate_peer,
        )
    if not listener.initial_handshake_timeout_seconds:
        yield _problem(
            listener,
            "initialHandshakeTimeoutSeconds",
            "connections that never open may stay for ever",
            "write a number of seconds",
        )


def _connector(connector: ConnectorEntity) -> Iterator[Finding]:
    yield from _secret(connector, "saslPassword", connector.sasl_password)
    if connector.allow_insecure_plain == "yes" and not connector.ssl_profile and not is_loopback(connector.host):
        yield _problem(
            connector,
            "allowInsecurePlain",
            "the password crosses the network unencrypted",
            "write an sslProfile, or allowInsecurePlain: loopback",
        )
    if connector.ssl_profile and not connector.verify_hostname:
        yield _problem(
            connector, "verifyHostname", "any host with a certificate can be this one", "write verifyHostname: yes"
        )


def _ssl_profile(profile: SslProfileEntity) -> Iterator[Finding]:
    yield from _secret(profile, "password", profile.password)
    if profile.private_key_file:
        yield from _private(profile, "privateKeyFile", profile.private_key_file)
    if profile.password is None and profile.password_file:
        yield from _private(profile, "passwordFile", profile.password_file)
    if old := sorted(OLD_TLS.intersection((profile.protocols or "").split())):
        message = f"{' and '.join(old)} can be broken"
        yield _problem(profile, "protocols", message, "write TLSv1.2 TLSv1.3")


def _secret(entity: Entity, attribute: str, secret: Secret | None) -> Iterator[Finding]:
    if secret is not None and secret.in_clear:
        yield _problem(
            entity, attribute, "the password stands in the configuration itself", "write env:NAME or file:PATH"
        )
    if secret is not None and secret.path:
        yield from _private(entity, attribute, secret.path)


def _private(entity: Entity, attribute: str, path: str) -> Iterator[Finding]:
    if _mode(path) & (OTHERS_MAY_READ | OTHERS_MAY_WRITE):
        message = f"everybody on this machine can read {path}"
        yield _problem(entity, attribute, message, f"chmod o= {path}", grave=True)
    elif _mode(path) & GROUP_MAY_WRITE:
        yield _problem(entity, attribute, f"all of its group can change {path}", f"chmod g-w {path}")


def _mode(path: str) -> int:
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return 0


def _files(configuration: Configuration) -> Iterator[Finding]:
    router: RouterEntity = configuration.router
    if router.users_file:
        yield from _private(router, "usersFile", router.users_file)
    for attribute, path in (("", configuration.source), ("policyDir", configuration.policy.policy_dir)):
        section = "policy" if attribute else ""
        place = Place(configuration.source)
        if path and _mode(path) & OTHERS_MAY_WRITE:
            message = f"everybody on this machine can change {path}"
            yield Finding(place, message, section, attribute, suggestion=f"chmod o-w {path}", grave=True)
        elif path and _mode(path) & GROUP_MAY_WRITE:
            message = f"all of its group can change {path}"
            yield Finding(place, message, section, attribute, suggestion=f"chmod g-w {path}")


def _tenants(configuration: Configuration) -> Iterator[Finding]:
    for listener in configuration.listeners:
        if listener.multi_tenant and not configuration.policy.enable_vhost_policy:
            yield _problem(
                listener,
                "multiTenant",
                "clients choose their tenant, and no policy says who may",
                "write policy { enableVhostPolicy: yes }",
                grave=True,
            )


def _insecure(configuration: Configuration) -> Iterator[Finding]:
    """What goes against secureDefaults, and nothing else tells of."""
    for listener in configuration.listeners if configuration.router.secure_defaults else ():
        if not listener.authenticate_peer and is_loopback(listener.host):
            yield _problem(
                listener, "authenticatePeer", "everybody on this machine may connect", "write authenticatePeer: yes"
            )
        if listener.strip_annotations != "both":
            message = "peers see, or may forge, where messages went"
            yield _problem(listener, "stripAnnotations", message, "write stripAnnotations: both")
        if listener.http_root_dir:
            yield _problem(listener, "httpRootDir", "files are served", "leave it out")
        if listener.serves_http and listener.healthz and not is_loopback(listener.host):
            yield _problem(listener, "healthz", "other machines may ask how the router is", "write healthz: no")
        if not (listener.ssl_profile or is_loopback(listener.host)):
            yield _problem(listener, "requireSsl", "other machines may connect without TLS", "write requireSsl: yes")
    if configuration.router.secure_defaults and not configuration.policy.enable_vhost_policy:
        message = "nobody is held to a vhost"
        yield _problem(configuration.policy, "enableVhostPolicy", message, "write enableVhostPolicy: yes")


def _vhosts(configuration: Configuration) -> Iterator[Finding]:
    enabled = configuration.policy.enable_vhost_policy
    anonymous = [listener for listener in configuration.listeners if _admits_anonymous(listener)]
    for vhost in configuration.vhosts:
        if not enabled:
            yield _problem(
                vhost,
                "",
                "nobody is held to the rules of this vhost",
                "write policy { enableVhostPolicy: yes }",
                grave=True,
            )
        for name in _open_groups(vhost):
            if anonymous:
                yield _problem(
                    vhost,
                    f"groups.{name}.remoteHosts",
                    f"anybody from anywhere may come in without a name, through {anonymous[0].name}",
                    "name the hosts, or write authenticatePeer: yes there",
                )


def _admits_anonymous(listener: ListenerEntity) -> bool:
    mechanisms = listener.sasl_mechanisms
    return not listener.authenticate_peer and (not mechanisms or "ANONYMOUS" in mechanisms)


def _open_groups(vhost: VhostEntity) -> Iterator[str]:
    """The groups to which users without a name belong, if they may come from everywhere."""
    for name, group in vhost.groups.items():
        unknown = name == "$default" and vhost.allow_unknown_user
        everybody = unknown or "*" in group.users or "anonymous" in group.users
        if everybody and any(hosts.everybody for hosts in group.remote_hosts):
            yield name
