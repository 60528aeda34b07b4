"""Tests of one process that do not hold of a router with several workers, and why (`make test-workers`)."""

from __future__ import annotations

from typing import Final

#: By reason the tests below `tests/`, with all their parameters. "not yet" is what users may notice.
ONE_PROCESS: Final[dict[str, tuple[str, ...]]] = {
    "messages that wait at another worker than their sender's are not counted for the sender": (
        "e2e/test_quotas.py::test_kept_messages_have_a_quota",
        "e2e/test_caps.py::test_a_connection_beyond_its_buffer_limit_loses_its_session_and_other_connections_go_on",
    ),
    "each worker is a router of the network, with an id of its own": (
        "e2e/test_free_tenants.py::test_addresses_of_the_router_are_the_same_for_all_tenants",
        "e2e/test_tenants.py::test_a_tenant_may_not_send_to_an_address_with_a_leading_underscore",
        "management/test_addresses.py::test_the_node_answers_at_every_form_of_its_address",
        "management/test_addresses.py::test_the_reply_address_names_the_router",
        "management/test_node.py::test_a_router_that_stands_alone_reports_no_nodes",
        "management/test_node.py::test_an_interior_router_lists_itself",
    ),
    "not yet: a worker does not know which tenant has a dynamic address of another worker": (
        "e2e/test_free_tenants.py::test_a_dynamic_address_is_closed_to_other_tenants",
        "e2e/test_tenants.py::test_a_dynamic_target_is_open_to_the_same_tenant_only",
        "e2e/test_tenants.py::test_a_dynamic_address_is_taken_over_by_no_client",
    ),
    "not yet: the answer to RELOAD counts what joins the workers as kept": (
        "e2e/test_link_routes.py::test_a_change_of_the_policy_of_the_brokers_connection_leaves_the_links_that_the_router_attached",
    ),
    "/metrics has trouter_worker_up besides": ("e2e/test_tenants.py::test_the_page_of_figures_shows_one_tenant",),
    "rows have the column worker besides": (
        "management/test_changes.py::test_a_connection_makes_link_routes_for_itself_alone",
    ),
    "an answer that would go to another worker is dropped, but not counted as denied": (
        "e2e/test_policy.py::test_answers_go_only_where_the_requester_may_send_or_receives_alone",
    ),
    "who may not manage gets no link to the management of another worker": (
        "e2e/test_policy.py::test_a_group_without_management_is_refused_each_request",
    ),
    "the denials of each worker are listed together, not by time": (
        "management/test_denials.py::test_a_denied_link_a_denied_host_and_a_refused_login_are_reported",
    ),
    "not yet: a listing with a number of more than 31 bits cannot be encoded": (
        "management/test_denials.py::test_a_record_log_shows_its_number_of_lost_records",
    ),
    "it looks into the memory of one process": (
        "management/test_cost.py::test_looking_up_a_name_measures_no_memory",
        "management/test_cost.py::test_a_memory_listing_measures_memory_once",
        "management/test_cost.py::test_a_connection_is_found_by_name_without_the_rows_of_the_others",
        "management/test_node.py::test_profile_shows_where_the_time_goes",
        "management/test_node.py::test_the_pools_show_how_many_connections_and_sessions_there_are",
        "management/test_tenants.py::test_a_listing_of_addresses_looks_at_the_tenants_own_only",
    ),
    "not yet: GET-LOG gives the newest entries of each worker, so more than asked for": (
        "management/test_node.py::test_get_log_gives_the_newest_entries_oldest_first",
    ),
    "not yet: GET-MEMORY may have less than the message that crosses; not looked into": (
        "management/test_node.py::test_get_memory_groups_memory_by_connection_user_vhost_and_address",
    ),
    "a standalone router with workers is a network of its workers, and interior": (
        "management/test_answers.py::test_properties_may_be_symbols_and_the_operation_in_any_case",
        "management/test_query.py::test_a_router_that_stands_alone_has_no_nodes_to_list",
        "management/test_entities.py::test_the_router_has_its_counts_for_every_requester",
    ),
    "not yet: not looked into": (
        "e2e/test_policy.py::test_connections_beyond_the_global_limit_are_closed_at_once",
        "management/test_entities.py::test_an_ambiguous_identity_is_refused",
        "management/test_query.py::test_a_query_leaves_out_rows_without_the_requested_attributes",
    ),
}


def why_one_process(test: str) -> str:
    """Return why the test, by its id, is of one process; empty if it holds with workers too."""
    name = test.partition("[")[0].removeprefix("tests/")
    return next((reason for reason, tests in ONE_PROCESS.items() if name in tests), "")
