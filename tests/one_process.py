"""Tests of one process that do not hold of a router with several workers, and why (`make test-workers`)."""

from __future__ import annotations

from typing import Final

#: By reason the tests below `tests/`, with all their parameters. "not yet" is what users may notice.
ONE_PROCESS: Final[dict[str, tuple[str, ...]]] = {
    "messages that wait at another worker than their sender's are not counted for the sender": (
        "e2e/test_quotas.py::test_kept_messages_have_a_quota",
        "e2e/test_caps.py::test_a_connection_beyond_its_buffer_limit_loses_its_session_and_other_connections_go_on",
    ),
    "management cannot create, update or delete what the file has": (
        "management/test_exchanges.py::test_a_fault_is_answered_with_the_text_that_programs_parse",
        "management/test_exchanges.py::test_the_names_of_bindings_are_their_exchanges_own",
        "management/test_exchanges.py::test_neither_is_updated",
        "management/test_exchanges.py::test_an_exchange_and_its_bindings_are_made_used_counted_and_deleted",
        "management/test_exchanges.py::test_a_sender_that_was_there_before_the_exchange_goes_on",
        "management/test_exchanges.py::test_an_explanation_reports_the_exchange",
        "management/test_operations.py::test_every_operation_that_works_is_listed_and_every_listed_one_works",
        "management/test_operations.py::test_every_entity_can_be_read_and_updated_if_its_type_lists_it",
        "management/test_entities.py::test_a_dummy_calls_back",
        "management/test_entities.py::test_the_placeholder_of_a_secret_keeps_the_secret_and_creates_none",
        "management/test_descriptions.py::test_a_refusal_is_worded_as_by_qpid_dispatch",
        "management/test_descriptions.py::test_an_attribute_without_a_name_is_ignored_in_a_create",
        "management/test_descriptions.py::test_the_listing_of_everything_leaves_out_routes_without_a_name",
        "e2e/test_policy.py::test_an_oversize_message_may_end_the_connection",
        "e2e/test_quotas.py::test_quotas_come_and_go_while_connections_are_open",
        "e2e/test_tenants.py::test_a_connection_that_the_policy_moves_to_another_tenant_is_closed",
        "e2e/test_free_tenants.py::test_the_agent_shows_a_tenant_everything_where_all_tenants_ask",
        "e2e/test_link_routes.py::test_routes_and_auto_links_come_and_go_while_the_router_runs",
        "management/test_bad_input.py::test_a_bad_attribute_is_named_with_its_accepted_values",
        "management/test_bad_input.py::test_a_read_only_attribute_cannot_be_updated",
        "management/test_changes.py::test_a_created_listener_listens_at_once_and_a_deleted_one_is_gone_at_once",
        "management/test_changes.py::test_a_listener_that_cannot_be_leaves_nothing_behind",
        "management/test_changes.py::test_name_and_type_may_stand_in_the_body",
        "management/test_changes.py::test_without_a_name_the_identity_is_the_name",
        "management/test_changes.py::test_a_name_exists_once_over_all_types",
        "management/test_changes.py::test_a_dummy_lives_its_life",
        "management/test_changes.py::test_an_update_may_repeat_the_identity_of_the_entity",
        "management/test_changes.py::test_an_update_that_names_its_entity_by_a_key_without_value",
        "management/test_changes.py::test_a_log_changes_at_once",
        "management/test_changes.py::test_a_log_may_follow_the_default_again",
        "management/test_changes.py::test_a_refused_update_changes_nothing_and_hinders_no_other",
        "management/test_changes.py::test_a_log_file_that_cannot_be_opened_is_named_once_however_many_modules_use_it",
        "management/test_changes.py::test_a_log_writes_to_a_file_from_now_on",
        "management/test_changes.py::test_an_address_rule_applies_to_addresses_created_afterwards",
        "management/test_changes.py::test_booleans_are_words_everywhere",
        "management/test_changes.py::test_an_address_that_makes_no_sense_is_refused",
        "management/test_changes.py::test_an_auto_link_has_one_place_to_go",
        "management/test_changes.py::test_integers_of_any_width_are_integers",
        "management/test_changes.py::test_management_may_not_open_the_machine",
        "management/test_changes.py::test_management_may_not_choose_where_the_log_is_written",
        "management/test_live_updates.py::test_a_changed_listener_applies_to_later_connections",
        "management/test_live_updates.py::test_a_listener_moves_without_losing_a_client",
        "management/test_live_updates.py::test_a_listener_that_cannot_move_stays_unchanged",
        "management/test_live_updates.py::test_a_created_connector_dials_at_once_and_a_deleted_one_disconnects",
        "management/test_live_updates.py::test_a_connector_without_a_server_shows_the_failure",
        "management/test_live_updates.py::test_a_profile_is_kept_and_read_and_its_password_is_not",
        "management/test_live_updates.py::test_a_listener_on_a_profile_without_a_certificate_is_refused_with_the_cause",
        "management/test_live_updates.py::test_a_vhost_comes_with_its_statistics",
        "management/test_live_updates.py::test_a_former_name_of_an_attribute_is_as_good",
        "management/test_live_updates.py::test_the_policy_can_be_changed",
        "management/test_live_updates.py::test_both_names_of_an_attribute_stand_in_a_row",
        "e2e/test_policy.py::test_a_policy_change_applies_to_open_connections",
        "e2e/test_policy.py::test_a_change_is_for_the_size_of_messages_on_links_that_are_there",
        "e2e/test_policy.py::test_a_change_that_is_wrong_changes_nothing",
        "e2e/test_policy.py::test_a_vhost_may_keep_its_open_connections_through_a_change",
        "e2e/test_policy.py::test_deleting_a_vhost_closes_its_connections",
        "e2e/test_policy.py::test_the_policy_can_be_switched_off_and_on",
        "e2e/test_policy.py::test_levels_of_management",
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
