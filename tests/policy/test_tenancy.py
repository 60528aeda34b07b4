"""The tenant of a connection through a multi-tenant listener without a policy: one tenant, or none."""

from __future__ import annotations

import pytest

from trouter.config.tenants import TenantSource
from trouter.hooks import ListenerFacts, PeerFacts, Plugins
from trouter.policy.kinds import TENANT_DENIED
from trouter.policy.tenancy import NoTenant, Tenancy

CLAIMED = Tenancy("", TenantSource())
FACTS = PeerFacts(1, ListenerFacts("l", "127.0.0.1", "0"), "192.0.2.1", 1, encrypted=False, loopback=False)


@pytest.mark.parametrize(
    ("hostname", "own", "tenant"),
    [
        ("t1.org", ("t1.org", "T1.org"), "t1.org"),
        ("T1.ORG.:5672", ("t1.org", "t2.org"), "t1.org"),
        ("T1.ORG", ("t1.org", "T1.org"), None),
        ("t3.org", ("t1.org", "t2.org"), None),
        ("t1.org", (), None),
    ],
)
def test_a_hostname_means_one_of_the_users_tenants_or_none(
    hostname: str, own: tuple[str, ...], tenant: str | None
) -> None:
    if tenant is not None:
        assert CLAIMED.tenant_name(hostname, "", own) == tenant
        return
    with pytest.raises(NoTenant) as refused:
        CLAIMED.tenant_name(hostname, "", own)
    assert refused.value.error == TENANT_DENIED


@pytest.mark.parametrize("claimed", ["", "a/b", "a\n", "a\0", "x" * 256])
def test_a_login_whose_realm_is_no_tenant_name_has_no_tenant(claimed: str) -> None:
    assert CLAIMED.tenants_of("alice", claimed, FACTS, Plugins()) == ()
    assert CLAIMED.tenants_of("alice", "a", FACTS, Plugins()) == ("a",)
    assert CLAIMED.tenants_of("", "a", FACTS, Plugins()) == ()
