"""Rules about the attributes of a section together (routing.md 5.1, 6 and 7; security.md 4)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from trouter.config.access import host_key
from trouter.config.claims import World, claims, references
from trouter.config.configuration import ROUTER_ROLES
from trouter.config.cyrus import first_site
from trouter.config.draft import Draft
from trouter.config.entities import (
    AddressEntity,
    AuthServicePluginEntity,
    AutoLinkEntity,
    BindingEntity,
    ConnectorEntity,
    ExchangeEntity,
    LinkRouteEntity,
    ListenerEntity,
    LogEntity,
    PolicyEntity,
    RouterEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.entities.ends import MAX_LINKS_SECURE
from trouter.config.entities.group import ANY_NUMBER, GroupSettings
from trouter.config.files import UNREADABLE, is_below
from trouter.config.hosts import is_loopback
from trouter.config.passwords import Secret
from trouter.config.problems import ProblemKind, nearest
from trouter.config.tenants import why_no_tenants
from trouter.core.patterns import KEYS, MANY_TEXT, PatternError, normal_form
from trouter.mechanisms import EXTERNAL

#: A bearer token that cannot be guessed (RFC 6750, 2.1).
TOKEN: Final = re.compile(r"(?=.{16,512}\Z)[A-Za-z0-9._~+/-]+=*")
#: Default limit of a client's sessions, and the one with secureDefaults; routers may need all.
CLIENT_SESSIONS: Final = 1024
FEW_SESSIONS: Final = 256
#: The limits of what one host may do before its users are known, with secureDefaults.
HOST_LIMITS: Final[Mapping[str, object]] = {
    "max_handshakes": 1000,
    "max_handshakes_per_host": 20,
    "accept_rate_per_host": 50,
    "min_handshake_rate": 64,
    "auth_lockout": "enforce",
}
#: Attributes of the router that would have no effect without another one, which has this default if they are given.
IMPLIED: Final[Mapping[str, str]] = {
    "accept_burst_per_host": "accept_rate_per_host",
    "auth_lockout_after": "auth_lockout",
    "auth_lockout_window_seconds": "auth_lockout",
    "auth_lockout_seconds": "auth_lockout",
}
#: Attributes of a listener that have no effect without http.
OF_HTTP: Final = (
    "metrics", "metrics_hosts", "metrics_token", "healthz", "websockets", "web_socket_origins", "allowed_hosts",
)  # fmt: skip
#: Outputs of the log that are no files.
LOG_STREAMS: Final = frozenset({"stderr", "stdout", "syslog"})
ALONE: Final = "role='standalone' not allowed to connect to or accept connections from other routers."
INTERIOR_ONLY: Final = "role='{role}' only allowed with router mode='interior'"


def check(drafts: list[Draft]) -> list[Draft]:
    """Apply every rule to the sections of a file; problems go to the findings. Return the drafts to be served."""
    world = world_of(drafts)
    named: dict[str, dict[str, None]] = {}
    for draft in drafts:
        named.setdefault(draft.type.short, {})[str(draft.value("name") or "")] = None
    first: dict[Hashable, tuple[Draft, str]] = {}
    served: list[Draft] = []
    for draft in drafts:
        check_one(draft, world, lambda short: named.get(short, ()))
        own = [] if draft.left_out else [*claims(draft.type, draft.value, world)]
        taken = [(claim, first[claim.key]) for claim in own if claim.key in first]
        for claim, (owner, field) in taken:
            message = f"{claim.message}, at {owner.place(field)}"
            if draft.type.entity in {ExchangeEntity, BindingEntity} and claim.field != "name":
                draft.leave_out(message, claim.field, claim.cure)
            elif draft.type.entity is not AddressEntity or claim.field not in ("prefix", "pattern"):
                draft.error(message, claim.field, claim.cure)
            else:
                draft.doubt("same-addresses", message, claim.field, claim.cure)
        if not (taken or draft.left_out):
            served.append(draft)
            first |= {claim.key: (draft, claim.field) for claim in own}
    return _with_exchanges(served)


def _with_exchanges(drafts: list[Draft]) -> list[Draft]:
    """Return the sections that are not left out; leave out each binding whose exchange was left out."""
    exchanges = {draft.value("name") for draft in drafts if draft.type.entity is ExchangeEntity}
    for draft in drafts:
        if draft.type.entity is BindingEntity and draft.value("exchange_name") not in exchanges:
            draft.leave_out("its exchange is left out", "exchange_name", "mend the exchange")
    return [draft for draft in drafts if not draft.left_out]


def check_one(draft: Draft, world: World, names_of: Callable[[str], Collection[str]]) -> None:
    """Apply the rules for one section; `names_of` returns the names of the entities of a type."""
    if world.secure:
        _complete_securely(draft)
        if draft.type.entity is SslProfileEntity and draft.value("below_system_minimum"):
            draft.error("is forbidden by secureDefaults", "below_system_minimum", "leave it out")
    elif draft.type.entity is VhostEntity:
        _change_groups(draft, _unlimited_group)
    if draft.type.entity in RULES:
        RULES[draft.type.entity](draft)
    _binding_key(draft, world)
    _role(draft, world)
    _tenants(draft, world)
    _log_place(draft, world)
    for field, kind in references(draft.type):
        value = draft.value(field)
        for name in value if isinstance(value, tuple) else (value,):
            if not name or name in names_of(kind.short):
                continue
            message = NO_SUCH_OF.get(kind.entity, NO_SUCH).format(kind.section)
            cure = nearest(str(name), names_of(kind.short)) or NEEDED.format(kind.section)
            if draft.type.entity is BindingEntity:
                draft.leave_out(message, field, cure)
            elif draft.type.entity in {ListenerEntity, ConnectorEntity} and kind.entity is SslProfileEntity:
                if draft.findings.secure or draft.findings.single:  # else `findings.not_served` reports it
                    draft.doubt("unknown-profile", message, field, cure)
            else:
                draft.error(message, field, cure)
    if draft.type.unserved:
        draft.warning(f"not served: {draft.type.unserved}; {draft.type.instead}")


def world_of(drafts: list[Draft]) -> World:
    """Return the properties of the whole configuration from the sections of a file."""
    values = {draft.type.short: draft for draft in reversed(drafts) if draft.type.singleton}
    router, policy = values.get("router"), values.get("policy")
    secure = bool(router and router.value("secure_defaults"))
    held = policy.value("enable_vhost_policy") if policy and "enable_vhost_policy" in policy.given else secure
    return World(
        mode=str((router.value("mode") if router else None) or ("standalone" if router is None else "")),
        patterns=bool(policy and policy.value("enable_vhost_name_patterns")),
        vhost_policy=bool(held),
        secure=secure,
        log_dir=router.value("log_dir") if router else None,
        methods={
            str(draft.value("name")): str(draft.value("match_method") or "amqp")
            for draft in drafts
            if draft.type.entity is ExchangeEntity
        },
    )


def _complete_securely(draft: Draft) -> None:
    """Set attributes that are not given to the defaults of secureDefaults (security.md 8.7)."""
    secure: dict[str, object] = {}
    if draft.type.entity is RouterEntity:
        secure = dict(HOST_LIMITS)
    elif draft.type.entity is PolicyEntity:
        secure = {"enable_vhost_policy": True, "router_management": "none"}
    elif draft.type.entity is ListenerEntity:
        exposed = not is_loopback(str(draft.value("host")))
        secure = {"authenticate_peer": True, "require_ssl": exposed, "healthz": not exposed}
        secure |= {"allow_insecure_plain": "loopback", "web_socket_origins": (), "allowed_hosts": ()}
        if draft.value("role") == "normal":
            secure["max_sessions"] = FEW_SESSIONS
    elif draft.type.entity is ConnectorEntity:
        secure = {"allow_insecure_plain": "no"}
    elif draft.type.entity is AuthServicePluginEntity:
        secure = {"allow_insecure_plain": "loopback", "authz_optional": False}
    elif draft.type.entity is SslProfileEntity and len(draft.value("uid_format") or "") > 1:
        secure = {"uid_missing": "reject", "uid_escape": True}
    elif draft.type.entity is VhostEntity:
        _change_groups(draft, _secure_group)
    if draft.type.entity in {ListenerEntity, ConnectorEntity} and draft.value("role") not in ROUTER_ROLES:
        secure["max_links"] = MAX_LINKS_SECURE
    for field, value in secure.items():
        if field not in draft.given:
            draft.values[field] = value


def _change_groups(draft: Draft, change: Callable[[GroupSettings], GroupSettings]) -> None:
    groups = draft.values.get("groups")
    if groups:
        draft.values["groups"] = MappingProxyType({name: change(group) for name, group in groups.items()})


def _unlimited_group(group: GroupSettings) -> GroupSettings:
    """Return the group with the limits of links that Qpid Dispatch reads from 0: none."""
    limits: dict[str, Any] = {
        field: ANY_NUMBER for field in ("max_senders", "max_receivers") if not getattr(group, field)
    }
    return replace(group, **limits) if limits else group


def _secure_group(group: GroupSettings) -> GroupSettings:
    """Return the group, with the defaults of secureDefaults for settings that it lacks."""
    secure: dict[str, Any] = {
        "management": "none",
        "substitute_anonymous": False,
        "substitute_separated": False,
        "tenant_addresses": False,
    }
    return replace(group, **{field: value for field, value in secure.items() if field not in group.written})


def _log_place(draft: Draft, world: World) -> None:
    """Report a log file outside of logDir, if there is one."""
    if draft.type.entity is LogEntity and world.log_dir:
        output = draft.value("output_file")
        if output and output not in LOG_STREAMS and not is_below(output, world.log_dir):
            draft.error("is outside of logDir", "output_file", f"a file below {world.log_dir}")


def _role(draft: Draft, world: World) -> None:
    """Report a role that the mode forbids: standalone routers have no neighbours, edge routers only interior ones."""
    if draft.type.entity not in {ListenerEntity, ConnectorEntity} or draft.value("role") not in ROUTER_ROLES:
        return
    role = draft.value("role")
    if draft.value("open_properties"):
        message = f"openProperties not allowed for role {role}"
        draft.error(message, "open_properties", "leave them out", ProblemKind.OLDER)
    if world.mode == "standalone":
        draft.first_error(
            ALONE, "role", "write mode: interior in the router section, or role: normal", ProblemKind.OLDER
        )
    elif world.mode == "edge" and (role == "inter-router" or draft.type.entity is ListenerEntity):
        draft.first_error(
            INTERIOR_ONLY.format(role=role), "role", "write mode: interior, or another role", ProblemKind.OLDER
        )


def _tenants(draft: Draft, world: World) -> None:
    """Warn if a listener cannot know a connection's tenant reliably, or has tenantFrom without effect."""
    if draft.type.entity is ListenerEntity:
        if reason := why_no_tenants(draft.value, world.vhost_policy, world.secure):
            draft.warning(f"not served: {reason}; {draft.type.instead}", "multi_tenant")
        if "tenant_from" in draft.given and not draft.value("multi_tenant"):
            draft.warning("has no effect without multiTenant", "tenant_from")


def _router(draft: Draft) -> None:
    for field, other in IMPLIED.items():
        if field in draft.given and other not in draft.given | draft.values.keys():
            draft.values[other] = HOST_LIMITS[other]
    folder, name = draft.value("sasl_config_dir"), draft.value("sasl_config_name")
    if folder and name:
        site = first_site(folder.split(os.pathsep), name, written=True)
        if site.fault:
            draft.doubt(UNREADABLE, site.fault, "sasl_config_dir")


def _listener(draft: Draft) -> None:
    if draft.value("role") == "normal" and "max_sessions" not in draft.given | draft.values.keys():
        draft.values["max_sessions"] = CLIENT_SESSIONS
    if "ssl_profile" not in draft.given:
        for field in ("require_ssl", "require_encryption"):
            if draft.value(field):
                draft.doubt("encryption-without-profile", "no client could connect without an sslProfile", field)
        if draft.value("client_cert") not in {None, "none"}:
            draft.error("no client could connect without an sslProfile", "client_cert", "add sslProfile: NAME")
        for field in ("trusted_certs_file", "sni_profiles", "strict_sni", "hostname_from_sni"):
            if draft.value(field):
                draft.warning("has no effect without an sslProfile", field)
        if set(draft.value("sasl_mechanisms") or ()) == {EXTERNAL}:
            message = (
                "no client could connect: EXTERNAL needs a certificate, and without an sslProfile no client shows one"
            )
            draft.doubt("encryption-without-profile", message, "sasl_mechanisms")
    if draft.value("client_cert") == "none" and EXTERNAL in (draft.value("sasl_mechanisms") or ()):
        draft.error("EXTERNAL in saslMechanisms needs client certificates", "client_cert", "write required or optional")
    token = draft.value("metrics_token")
    if isinstance(token, Secret) and not token.fault and not TOKEN.fullmatch(token.reveal()):
        draft.error("is not a token: 16 to 512 letters, digits and -._~+/=", "metrics_token", "openssl rand -hex 32")
    if not (draft.value("http") or draft.value("http_root_dir")):
        for field in OF_HTTP:
            if field in draft.given:
                draft.warning("has no effect without http", field)


def _connector(draft: Draft) -> None:
    if draft.value("sasl_password") is not None and not draft.value("sasl_username"):
        draft.doubt("password-without-user", "a saslPassword needs a saslUsername", "sasl_password")
    secret = draft.value("sasl_password")
    if isinstance(secret, Secret) and secret.in_clear and secret.reveal().startswith("literal:"):
        draft.warning("`literal:` is part of the password: only an sslProfile knows it as a prefix", "sasl_password")
    if EXTERNAL in (draft.value("sasl_mechanisms") or ()) and not draft.value("ssl_profile"):
        draft.doubt("external-without-profile", "EXTERNAL needs a certificate", "sasl_mechanisms")


def _ssl_profile(draft: Draft) -> None:
    _needs_name(draft)
    if "password_file" in draft.given:
        if "password" in draft.given:
            draft.warning("is ignored: password is given too", "password_file")
        else:
            draft.warning("write password: file:PATH instead", "password_file")
    if draft.value("cert_file") and "private_key_file" not in draft.given:
        draft.doubt("half-a-pair", BOTH_FILES, "cert_file")
    alone = draft.value("private_key_file") and "cert_file" not in draft.given
    if alone and draft.doubt("key-alone", BOTH_FILES, "private_key_file"):
        draft.values["private_key_file"] = None
    for field, needed in (("crl_file", "ca_cert_file"), ("crl_required", "crl_file")):
        if draft.value(field) and not draft.value(needed):
            name = "caCertFile" if needed == "ca_cert_file" else "crlFile"
            draft.error(f"does nothing without a {name}", field, f"add {name}: PATH")
    oldest, present = draft.value("oldest_valid_ordinal"), draft.value("ordinal")
    if oldest is not None and present is not None and oldest > present:
        draft.error(f"is greater than the ordinal, {present}: no connection could stay", "oldest_valid_ordinal")


def _auth_service(draft: Draft) -> None:
    _needs_name(draft)
    if "auth_service" in draft.given:
        if "host" in draft.given:
            draft.warning("is ignored: host and port are given too", "auth_service")
        else:
            draft.warning("write host and port instead", "auth_service")
    elif not draft.value("host"):
        draft.doubt("service-without-host", "the attribute 'host' must be given", "host", "add host: HOST")


def _needs_name(draft: Draft) -> None:
    if not draft.value("name"):
        draft.leave_out(
            "the attribute 'name' must be given", suggestion="add name: NAME; others refer to it by its name"
        )


def _address(draft: Draft) -> None:
    _prefix_or_pattern(draft)
    _phases(draft)


def _link_route(draft: Draft) -> None:
    _prefix_or_pattern(draft)
    _one_container(draft)


def _auto_link(draft: Draft) -> None:
    _one_container(draft)
    if draft.value("address") == "":
        draft.leave_out("must not be empty", "address", "e.g. queue.1")
    if "phase" not in draft.given and draft.value("direction") == "in" and not draft.value("fallback"):
        draft.values["phase"] = 1


def _exchange(draft: Draft) -> None:
    if not draft.value("name"):
        draft.leave_out("exchange requires a unique name", suggestion="add name: NAME")
    if draft.value("address") == "":
        draft.leave_out("exchange address is mandatory", "address", "e.g. events")


def _binding(draft: Draft) -> None:
    if draft.value("next_hop_address") == "":
        draft.leave_out("No next hop specified", "next_hop_address", "e.g. queue.1")
    if not draft.value("binding_key"):
        draft.values["binding_key"] = MANY_TEXT


def _binding_key(draft: Draft, world: World) -> None:
    """Leave out a binding whose key its exchange cannot read."""
    if draft.type.entity is not BindingEntity:
        return
    method = world.methods.get(str(draft.value("exchange_name")), "amqp")
    try:
        KEYS[method].parse(str(draft.value("binding_key")))
    except PatternError as error:
        draft.leave_out("The binding key pattern is invalid", "binding_key", str(error))


def _one_container(draft: Draft) -> None:
    if draft.value("connection") and draft.value("container_id"):
        draft.leave_out(
            "Both connection and containerId cannot be specified. Specify only one",
            "container_id",
            "leave one of them out",
        )


def _prefix_or_pattern(draft: Draft) -> None:
    given = [name for name in ("prefix", "pattern") if name in draft.given]
    if not given:
        draft.leave_out("Either a 'prefix' or 'pattern' attribute must be provided", suggestion="e.g. prefix: news")
    elif len(given) == 2:
        draft.leave_out("Cannot specify both a 'prefix' and a 'pattern' attribute", "pattern", "leave one of them out")
    for name in given:
        _check_tokens(draft, name)


def _check_tokens(draft: Draft, name: str) -> None:
    text = draft.values.get(name)
    if not isinstance(text, str):
        return
    if not text:
        draft.leave_out(f"{name.capitalize()} must be a non-empty string type", name, EXAMPLES[name])
        return
    try:
        normal = normal_form(text, is_prefix=name == "prefix")
    except PatternError:
        draft.leave_out(f"{name.capitalize()} invalid - no tokens", name, EXAMPLES[name])
        return
    if normal != text.strip("./"):
        draft.warning(f"this pattern is the same as '{normal}'", name)


def _phases(draft: Draft) -> None:
    given = [name for name in ("ingress_phase", "egress_phase") if name in draft.given]
    if len(given) == 1:
        draft.leave_out("ingressPhase and egressPhase must be given together", given[0], "add the other")
    if draft.value("waypoint") and not given:
        draft.values["egress_phase"] = 1
    phased = draft.value("waypoint") or draft.value("ingress_phase") or draft.value("egress_phase")
    if draft.value("enable_fallback") and phased:
        draft.leave_out(
            "Fallback cannot be specified with waypoint or non-zero ingress and egress phases",
            "enable_fallback",
            "leave one of the two out",
        )


def _vhost(draft: Draft) -> None:
    hostname = host_key(draft.value("hostname") or "")
    groups = draft.value("groups") if "groups" in draft.given else {}
    if hostname in map(host_key, draft.value("aliases") or ()):
        draft.error("an alias is the host name itself", "aliases", "leave it out")
    if draft.value("allow_unknown_user") and groups is not None and "$default" not in groups:
        draft.error("needs a group named $default", "allow_unknown_user", "add the group, or write no")


BOTH_FILES: Final = "certFile and privateKeyFile must be given together"
NO_SUCH: Final = "there is no {} of this name"
#: Type -> Qpid Dispatch's text about a missing reference.
NO_SUCH_OF: Final[dict[type | None, str]] = {ExchangeEntity: "Named exchange does not exist"}
NEEDED: Final = "add a section {} with this name"
EXAMPLES: Final = {"prefix": "e.g. news", "pattern": "e.g. news/*/#"}

RULES: Final[dict[type | None, Callable[[Draft], None]]] = {
    RouterEntity: _router,
    ListenerEntity: _listener,
    ConnectorEntity: _connector,
    SslProfileEntity: _ssl_profile,
    AuthServicePluginEntity: _auth_service,
    AddressEntity: _address,
    LinkRouteEntity: _link_route,
    AutoLinkEntity: _auto_link,
    BindingEntity: _binding,
    ExchangeEntity: _exchange,
    VhostEntity: _vhost,
}
