"""Addresses of services of other workers, in each way of writing them."""

from __future__ import annotations

import pytest

from trouter.policy.closed import ClosedServices

OTHERS = ClosedServices({"A.2", "site/A.3"})


@pytest.mark.parametrize(
    "address",
    [
        "_topo/0/A.2/$management",
        "_topo/all/A.2/$management",
        "_topo/0/all/$management",
        "_topo/all/all/$management",
        "_topo/0/A.2/$_management_internal",
        "_topo/0/A.2/$management/",
        "_topo/0/A.2/$management.",
        "_topo/0/site/A.3/$management",
        "_edge/A.2/$management",
        "/_topo/0/A.2/$management",
        "amqp:/_topo/0/A.2/$management",
        "amqp://host:5672/_topo/0/A.2/$management",
        "//host/_topo/0/all/$management",
        "any text:/_topo/0/A.2/$management",
    ],
)
def test_a_service_of_another_worker_is_closed(address: str) -> None:
    assert OTHERS.cover(address)


@pytest.mark.parametrize(
    "address",
    [
        "$management",
        "_local/$management",
        "_topo/0/A/$management",
        "_topo/0/A.22/$management",
        "_topo/1/A.2/$management",
        "_topo/0/A.2/queue",
        "_topo/0/A.2/x/$management",
        "_topo/0/A.2",
        "x/_topo/0/A.2/$management",
        "A.2/$management",
        "_edge/B/$management",
        "",
    ],
)
def test_every_other_address_is_not(address: str) -> None:
    assert not OTHERS.cover(address)
