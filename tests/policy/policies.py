"""Policies for tests, written as an operator writes them."""

from __future__ import annotations

from trouter.config import load
from trouter.hooks import Permissions
from trouter.policy.compiled import Policy
from trouter.policy.judge import Admission, Verdict, judge_open
from trouter.policy.requests import OpenRequest


def policy(vhosts: str, settings: str = "") -> Policy:
    """Return the policy of these sections, with enableVhostPolicy."""
    configuration = load(text=f"policy {{\n enableVhostPolicy: yes\n{settings}\n}}\n{vhosts}")
    return Policy.compile(configuration.policy, configuration.vhosts)


def group(settings: str, name: str = "g", vhost: str = "") -> Policy:
    """Return the policy of one vhost `v` with one group, by default for every user from every host."""
    users = "" if "users:" in settings else "users: *\n"
    hosts = "" if "remoteHosts:" in settings else "remoteHosts: *\n"
    return policy(f"vhost {{\n hostname: v\n{vhost}\n groups: {{\n{name}: {{\n{users}{hosts}{settings}\n}}\n}}\n}}")


def admit(
    rules: Policy,
    hostname: str | None,
    user: str,
    host: str,
    *,
    authenticated: bool,
    policy_vhost: str = "",
    connector: bool = False,
    permissions: Permissions | None = None,
) -> Admission | Verdict:
    """Return the terms of a connection, or its denial."""
    verdict = judge_open(
        rules,
        OpenRequest(
            hostname=hostname or "",
            user=user,
            remote_host=host,
            authenticated=authenticated,
            policy_vhost=policy_vhost,
            outgoing=connector,
            permissions=permissions,
        ),
    )
    assert verdict.allowed == (verdict.admission is not None)
    return verdict.admission or verdict


def opened(
    rules: Policy, hostname: str | None = "v", user: str = "alice", host: str = "10.0.0.1", authenticated: bool = True
) -> Admission:
    """Return the admission of a connection; the policy must admit it."""
    admission = admit(rules, hostname, user, host, authenticated=authenticated)
    assert isinstance(admission, Admission), admission
    return admission


def refused(
    rules: Policy, hostname: str | None = "v", user: str = "alice", host: str = "10.0.0.1", authenticated: bool = True
) -> Verdict:
    """Return the denial of a connection; the policy must deny it."""
    denial = admit(rules, hostname, user, host, authenticated=authenticated)
    assert isinstance(denial, Verdict), denial
    return denial
