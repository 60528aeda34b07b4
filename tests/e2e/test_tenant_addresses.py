"""A running router keeps clients without a tenant out of one, through python-qpid-proton, also after a reload."""

from __future__ import annotations

import pytest

from tests.e2e.by_proton import Client, Ear, Said, refusal
from tests.e2e.test_reload import hang_up
from tests.routers import StartRouter

pytestmark = pytest.mark.attack

CONFIGURATION = """
router {{ id: R }}
policy {{ enableVhostPolicy: yes }}
listener {{ name: clients, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
{tenants}
vhost {{
    hostname: t1.example
    groups: {{
        members: {{
            users: anonymous
            remoteHosts: *
            sources: *
            {attribute}
        }}
    }}
}}
"""
TENANTS = "listener { name: tenants, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, multiTenant: yes }"
DENIED = Said("amqp:resource-limit-exceeded", "connection disallowed by local policy")


def open_and_close(port: int) -> None:
    Client(Ear(), port, virtual_host="t1.example").close()


@pytest.mark.parametrize("attribute", ["", "tenantAddresses: no"])
def test_the_vhost_of_a_tenant_is_not_for_clients_of_other_listeners(start_router: StartRouter, attribute: str) -> None:
    router = start_router(CONFIGURATION.format(tenants=TENANTS, attribute=attribute))
    open_and_close(router.ports[1])
    if attribute:
        assert refusal(router.ports[0], virtual_host="t1.example").said == [DENIED]
        router.wait_for_line(r"t1\.example:members:no-tenant")
    else:
        open_and_close(router.ports[0])


def test_it_is_a_vhost_like_others_until_a_listener_for_tenants_is_configured(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION.format(tenants="", attribute="tenantAddresses: no"))
    open_and_close(router.ports[0])
    hang_up(router, CONFIGURATION.format(tenants=TENANTS, attribute="tenantAddresses: no"))
    assert refusal(router.ports[0], virtual_host="t1.example").said == [DENIED]
