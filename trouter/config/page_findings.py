"""Findings about what a listener with HTTP shows to browsers, probes and scrapers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from trouter.config.configuration import Configuration
from trouter.config.entities import ListenerEntity
from trouter.config.hosts import is_loopback
from trouter.config.logins import client_certificates
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.workers import WORKERS_HOST


def page_findings(listener: ListenerEntity, configuration: Configuration) -> Iterator[Problem]:
    """Yield findings about a listener's pages; none if it has no HTTP."""
    if not listener.serves_http or listener.host == WORKERS_HOST:
        return
    finding = partial(finding_of, entity=listener)
    if listener.websockets and "*" in listener.web_socket_origins:
        yield finding("pages-of-every-site")
    metrics = listener.metrics and not (listener.multi_tenant and not listener.policy_vhost)
    clear = not (listener.require_ssl or listener.require_encryption)
    if clear and "*" in listener.allowed_hosts and (metrics or listener.websockets or listener.http_root_dir):
        yield finding("names-of-strangers")
    if is_loopback(listener.host):
        return
    if listener.healthz:
        yield finding("health-for-others")
    if metrics and not _limits_metrics(listener, configuration):
        yield finding("metrics-for-others")


def _limits_metrics(listener: ListenerEntity, configuration: Configuration) -> bool:
    """Return whether only some clients may read the metrics: those of hosts, with a token or with a certificate."""
    if listener.metrics_token or (
        listener.metrics_hosts and not any(each.everybody for each in listener.metrics_hosts)
    ):
        return True
    profile = configuration.ssl_profile(listener.ssl_profile)
    encrypted = listener.require_ssl or listener.require_encryption
    return encrypted and profile is not None and client_certificates(listener, profile) == "required"
