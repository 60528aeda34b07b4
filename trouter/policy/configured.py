"""The policy of a configuration, as a router with it judges by it."""

from __future__ import annotations

from trouter.config import Configuration
from trouter.config.tenant_spaces import tenants_in
from trouter.policy.compiled import Policy


def policy_of(configuration: Configuration) -> Policy:
    """Return the policy of a configuration, without the addresses of host names."""
    return Policy.compile(
        configuration.policy,
        configuration.vhosts,
        tenants=tenants_in(configuration),
        secure=configuration.router.secure_defaults,
    )
