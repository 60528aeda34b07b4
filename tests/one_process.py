"""Tests of one process that do not hold of a router with several workers, and why (`make test-workers`)."""

from __future__ import annotations

from typing import Final

#: By reason the tests below `tests/`: with all their parameters, or with those whose ids begin so.
ONE_PROCESS: Final[dict[str, tuple[str, ...]]] = {
    "each worker is a router of the network, with an id of its own, and its own addresses `_local/`": (
        "e2e/test_free_tenants.py::test_the_agent_shows_a_tenant_everything_where_all_tenants_ask[_topo/0/R/",
        "e2e/test_policy.py::test_a_group_without_management_is_refused_each_request[_topo/0/R/$management-False]",
        "e2e/test_tenants.py::test_a_tenant_may_not_send_to_an_address_with_a_leading_underscore[_topo/0/R/q]",
        "management/test_addresses.py::test_the_node_answers_at_every_form_of_its_address[_edge/R/",
        "management/test_node.py::test_an_interior_router_lists_itself",
    ),
    "only a group with all rights in management may ask another worker by its id": tuple(
        f"network/test_management_rights.py::test_a_group_has_its_rights_on_its_own_router[{switch}-_topo/0/A/"
        for switch in ("secureDefaults", "given", "given with secureDefaults")
    ),
}


def why_one_process(test: str) -> str:
    """Return why the test, by its id, is of one process; empty if it holds with workers too."""
    name = test.removeprefix("tests/")
    return next((reason for reason, tests in ONE_PROCESS.items() if any(_is_of(name, each) for each in tests)), "")


def _is_of(name: str, listed: str) -> bool:
    return name.startswith(listed) if "[" in listed else name.partition("[")[0] == listed
