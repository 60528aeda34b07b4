"""What a listener asks of clients that log in, and findings about listeners on which none of them can."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from trouter.config.configuration import Configuration
from trouter.config.cyrus import CyrusSite, cyrus_site, found_site
from trouter.config.entities import ListenerEntity, RouterEntity, SslProfileEntity
from trouter.config.facts import listener_facts
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.hooks import Plugins
from trouter.mechanisms import ANONYMOUS, EXTERNAL, STANDARD, Mechanism


def requires_login(listener: ListenerEntity) -> bool:
    """Return whether clients must use SASL: mechanisms without ANONYMOUS leave no client unnamed (security.md 1.4)."""
    named = bool(listener.sasl_mechanisms) and ANONYMOUS not in listener.sasl_mechanisms
    return listener.authenticate_peer or listener.sasl_plugin is not None or named


def client_certificates(listener: ListenerEntity, profile: SslProfileEntity) -> str:
    """Return whether clients show certificates in TLS by ``profile``: `none`, `optional` or `required`."""
    if listener.client_cert is not None:
        return listener.client_cert
    trusts = bool(listener.trusted_certs_file or profile.ca_cert_file or profile.use_system_ca)
    shows = listener.serves_http and listener.authenticate_peer and trusts
    return "required" if EXTERNAL in listener.sasl_mechanisms or shows else "none"


def login_findings(configuration: Configuration, plugins: Plugins) -> Iterator[Problem]:
    """Yield findings about the mechanisms of listeners, and about the users of Cyrus SASL."""
    site = cyrus_site(configuration.router)
    if site is not None and not site.written:
        yield from _found(configuration.router, site)
    asked = False
    for listener in configuration.listeners:
        if configuration.unserved(listener) or listener.sasl_plugin or not speaks_amqp(listener):
            continue
        offered = plugins.sasl_mechanisms(listener_facts(listener))
        yield from _mechanisms(listener, configuration, plugins, site)
        asked = asked or (requires_login(listener) and any(map(_is_password, offered)))
    if site is not None and asked:
        yield from _sasldb(configuration.router, site)


def speaks_amqp(listener: ListenerEntity) -> bool:
    """Return whether clients of a listener may be clients of AMQP; else it has pages only, and no vhost applies."""
    return listener.websockets or not listener.serves_http


def _found(router: RouterEntity, site: CyrusSite) -> Iterator[Problem]:
    """Yield the findings about a configuration of Cyrus SASL that the file does not name."""
    if site.fault:
        finding = finding_of("unreadable-file", router, "saslConfigDir")
        yield replace(finding, message=f"{site.fault}: {finding.message}")
    else:
        yield finding_of("users-elsewhere", router, path=site.path, folder=site.folder)


def _mechanisms(
    listener: ListenerEntity, configuration: Configuration, plugins: Plugins, site: CyrusSite | None
) -> Iterator[Problem]:
    """Yield findings about the mechanisms of one listener: absent ones, weak ones, and none that can succeed."""
    offer = plugins.offers.of(listener_facts(listener))
    # A users file serves SCRAM from its first user on.
    pending = [each for each in offer.unserved if each.startswith("SCRAM-") and configuration.router.users_file]
    missing = [each for each in offer.unserved if each not in pending]
    if missing:
        yield finding_of("unserved-mechanism", listener, mechanisms=" ".join(missing))
    if not listener.sasl_mechanisms and site is not None:
        absent = [each for each in site.mech_list or () if not _is_there(each, offer.mechanisms, configuration)]
        if absent:
            yield finding_of("missing-sasl-module", listener, mechanisms=" ".join(absent), path=site.path)
        if weak := [each for each in offer.mechanisms if each.weak]:
            yield finding_of("weak-mechanisms", listener, mechanisms=" ".join(weak))
    if pending or not (missing or requires_login(listener)) or _is_of_pages(listener):
        return
    reasons = {each: _why_it_fails(each, listener, configuration) for each in offer.mechanisms}
    if all(reasons.values()):
        why = "; ".join(dict.fromkeys(reasons.values())) or "no plugin serves any of its mechanisms"
        yield finding_of("no-mechanism", listener, why=why, suggestion=_unused(configuration.router))


def _is_there(name: str, offered: tuple[Mechanism, ...], configuration: Configuration) -> bool:
    """Return whether a mechanism of mech_list is offered, or left out for a reason of the router's own."""
    known = STANDARD.get(name)
    if known is not None and (known.anonymous or known.by_certificate or known.bound):
        return True
    return name in offered or (configuration.router.secure_defaults and known is not None and known.weak)


def _is_of_pages(listener: ListenerEntity) -> bool:
    """Return whether logins of WebSockets are asked for by defaults alone, on a listener that has pages besides."""
    return listener.serves_http and not {"authenticate_peer", "sasl_mechanisms", "websockets"} & listener.written.keys()


def _why_it_fails(mechanism: Mechanism, listener: ListenerEntity, configuration: Configuration) -> str:
    """Return why no client can log in by ``mechanism``; empty if a client can."""
    profile = configuration.ssl_profile(listener.ssl_profile)
    if mechanism.by_certificate and (profile is None or client_certificates(listener, profile) == "none"):
        return f"{mechanism} needs a certificate, and clients are not asked for one"
    if mechanism.in_clear and profile is None and listener.allow_insecure_plain == "no":
        return f"{mechanism} needs TLS, as allowInsecurePlain is no, and there is no sslProfile"
    if mechanism.bound and profile is None:
        return f"{mechanism} needs TLS, and there is no sslProfile"
    return ""


def _unused(router: RouterEntity) -> str:
    """Return the cure for a router that would have users if its file named their place; empty for another one."""
    site = found_site(router.sasl_config_name) if cyrus_site(router) is None else None
    return f"write saslConfigDir: {site.folder} to use {site.path}" if site is not None and not site.fault else ""


def _is_password(mechanism: Mechanism) -> bool:
    """Return whether users of Cyrus SASL log in by ``mechanism`` with a password that it looks up."""
    return mechanism in STANDARD and not (mechanism.anonymous or mechanism.by_certificate)


def _sasldb(router: RouterEntity, site: CyrusSite) -> Iterator[Problem]:
    """Yield the problem of a database of users that this process cannot read."""
    if site.sasldb and not os.access(site.sasldb, os.R_OK):
        why = "cannot be read" if os.path.lexists(site.sasldb) else "does not exist"
        yield finding_of("no-sasl-users", router, sasldb=site.sasldb, why=why)
