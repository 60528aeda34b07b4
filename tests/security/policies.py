"""Policies for tests, written as an operator writes them."""

from __future__ import annotations

from trouter.config import load
from trouter.security.policy import Admission, Denial, Policy


def policy(vhosts: str, settings: str = "") -> Policy:
    """Return the policy of these sections, with enableVhostPolicy."""
    configuration = load(text=f"policy {{\n enableVhostPolicy: yes\n{settings}\n}}\n{vhosts}")
    return Policy.compile(configuration.policy, configuration.vhosts)


def group(settings: str, name: str = "g", vhost: str = "") -> Policy:
    """Return the policy of one vhost `v` with one group, by default for every user from every host."""
    users = "" if "users:" in settings else "users: *\n"
    hosts = "" if "remoteHosts:" in settings else "remoteHosts: *\n"
    return policy(f"vhost {{\n hostname: v\n{vhost}\n groups: {{\n{name}: {{\n{users}{hosts}{settings}\n}}\n}}\n}}")


def opened(
    rules: Policy, hostname: str | None = "v", user: str = "alice", host: str = "10.0.0.1", authenticated: bool = True
) -> Admission:
    """Return the admission of a connection; the policy must admit it."""
    admission = rules.admit(hostname, user, host, authenticated=authenticated)
    assert isinstance(admission, Admission), admission
    return admission


def refused(
    rules: Policy, hostname: str | None = "v", user: str = "alice", host: str = "10.0.0.1", authenticated: bool = True
) -> Denial:
    """Return the denial of a connection; the policy must deny it."""
    denial = rules.admit(hostname, user, host, authenticated=authenticated)
    assert isinstance(denial, Denial), denial
    return denial
