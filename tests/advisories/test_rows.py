"""Every known weakness of security.md section 7 and the tests that would fail if this router had it.

A test is named as folder.module.function, without the common tests. and test_. For a feature that this router does not
have the text behind ``NO`` is the reason, and the tests show that the feature is refused or absent.
"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.house.sources import ROOT

TESTS = ROOT / "tests"
NO = "not here: "

FOUND: dict[str, tuple[str, ...]] = {
    "Q-01": ("advisories.decoding.alternates_that_a_client_names_are_ignored",
             "advisories.decoding.ten_thousand_alternates_are_too_many"),
    "Q-02": ("advisories.authorization.a_client_without_a_name_speaks_for_no_user",
             "e2e.policy.a_message_in_the_name_of_another_is_rejected"),
    "Q-03": ("config.broken.errors_of_a_file_name_the_place_the_fault_and_the_remedy",
             "plugins.uid_format.a_format_makes_the_user"),
    "Q-04": ("policy.addresses.the_name_of_a_user_is_text", "policy.addresses.the_user_in_a_pattern_is_text"),
    "Q-05": ("tls.listeners.each_client_certificate_gives_its_mechanisms",),
    "Q-06": ("tls.listeners.each_client_agrees_on_tls_or_fails_as_listed",),
    "Q-07": ("e2e.sasl_plugins.a_connector_does_not_trust_a_server_without_a_proof",
             "client.scram.success_without_the_servers_proof_is_refused"),
    "Q-08": ("e2e.policy.a_waypoint_capability_counts_in_every_form",
             "e2e.policy.a_capability_that_is_nested_deeper_is_no_attach"),
    "Q-09": ("core.link_routes.a_forged_user_id_is_rejected",),
    "Q-10": ("e2e.tenants.no_address_leads_into_the_space_of_another",
             "e2e.tenants.a_tenant_may_not_attach_to_an_address_with_a_leading_underscore",
             "e2e.tenants.no_client_opens_without_a_tenant_of_its_own",
             "management.tenants.no_tenant_changes_any_entity",
             "management.tenants.a_tenant_cannot_read_entities_of_another_tenant"),
    "Q-11": ("policy.router_policy.limits_of_users_and_hosts_stay_their_own_through_a_change",
             "policy.vhosts.a_change_does_not_mix_up_users_and_hosts"),
    "Q-12": ("policy.addresses.a_pattern_is_for_addresses", "policy.addresses.an_entry_is_for_addresses"),
    "Q-13": ("policy.addresses.an_entry_is_for_addresses", "config.policy.an_item_of_a_list_may_hold_a_comma",
             "auth.auth_service.rights"),
    "Q-14": ("auth.auth_service.rights", "e2e.auth_service.rights_allow_exactly_the_addresses_that_they_name"),
    "Q-15": ("auth.auth_service.a_service_that_stalls_later",
             "e2e.auth_service.a_service_that_hangs_holds_up_its_own_clients_only_and_not_for_long"),
    "Q-16": ("e2e.auth_service.sasl_cannot_be_skipped",),
    "Q-17": ("tls.listeners.no_password_mechanism_is_offered_in_clear_where_tls_is_required",),
    "Q-18": ("e2e.sasl_plugins.an_unknown_user_goes_the_steps_of_a_wrong_password",
             "plugins.sasl_scram.an_unknown_user_has_a_salt_that_stays_and_a_cost_like_others"),
    "Q-19": ("http.live.a_silent_websocket_has_the_time_of_the_listener_to_open",
             "connections.played_websockets.a_peer_that_drips_through_a_websocket_is_cut_off",
             "e2e.bad_input.a_peer_that_never_opens_is_disconnected"),
    "Q-20": ("tls.profiles.an_unusable_profile_is_refused_with_the_attribute",
             "tls.listeners.a_peer_that_stops_in_the_handshake_is_disconnected",
             "management.live_updates.a_listener_on_a_profile_without_a_certificate_is_refused_with_the_cause"),
    "Q-21": ("advisories.management.secrets_are_nowhere", "logs.trace.secrets_of_sasl_frames_are_hidden"),
    "Q-22": ("management.changes.management_may_not_choose_where_the_log_is_written",
             "e2e.policy.levels_of_management"),
    "Q-23": ("e2e.policy.a_message_that_is_too_large_ends_its_link_on_the_frame_that_is_too_much",),
    "Q-24": ("e2e.policy.a_policy_change_applies_to_open_connections",
             "e2e.policy.deleting_a_vhost_closes_its_connections",
             "policy.vhosts.a_vhost_that_is_gone_leaves_its_names_free"),
    "Q-25": ("policy.counts.users_that_come_and_go_leave_nothing_behind",
             "admission.lockout.a_million_names_take_bounded_room"),
    "Q-26": ("e2e.policy.an_anonymous_message_goes_only_where_its_sender_may_send",
             "e2e.policy.a_message_in_the_name_of_another_is_rejected"),
    "Q-27": ("connections.failover_list.entries_that_cannot_be_used_or_are_known_are_left_out",
             "tls.parts.credentials_go_only_to_the_configured_hosts",
             "tls.parts.a_peer_cannot_send_a_connector_from_tls_to_clear_text"),
    "Q-28": ("advisories.authorization.reserved_properties_are_refused_one_by_one",
             "advisories.authorization.the_keys_that_are_reserved"),
}  # fmt: skip

REPORTED: dict[str, tuple[str, ...]] = {
    "CVE-2017-15699 / DISPATCH-924": ("engine.any_bytes.any_frames_and_bytes_behind_any_beginning",
                                      "engine.any_bytes.frames_in_an_open_session",
                                      "fuzz.hypothesis.a_target_holds_for_any_input"),
    "DISPATCH-1011, 1025": ("policy.addresses.the_name_of_a_user_is_text",
                            "policy.addresses.an_address_is_allowed_if_and_only_if_an_entry_matches_the_address"),
    "DISPATCH-1732": ("advisories.authorization.dispatch_1732_an_open_without_a_hostname",),
    "DISPATCH-1821": ("advisories.authorization.dispatch_1821_a_wrong_policy_is_refused_with_its_place",
                      "advisories.authorization.dispatch_1821_a_wrong_policy_ends_the_start_with_the_reason",),
    "DISPATCH-2179": ("auth.auth_service.a_service_of_another_authority_is_refused",
                      "auth.auth_service.a_service_of_another_name_is_refused",
                      "auth.auth_service.without_its_profile_a_service_gets_no_question"),
    "DISPATCH-2305": ("e2e.policy.the_numbers_of_a_group_stand_in_open_and_begin",),
    "DISPATCH-883": ("advisories.decoding.dispatch_883_properties_of_every_type",
                     "advisories.decoding.dispatch_883_properties_that_are_no_map"),
    "DISPATCH-519": ("e2e.policy.an_anonymous_message_goes_only_where_its_sender_may_send",
                     "core.credit.credit_for_refused_messages_is_granted_again_at_once"),
    "DISPATCH-975, 1628, 1641": ("e2e.policy.a_message_that_is_too_large_ends_its_link_on_the_frame_that_is_too_much",
                                 "engine.limits.a_limit_holds_at_n_and_at_n_plus_1"),
    "DISPATCH-2307": ("advisories.decoding.dispatch_2307_a_container_may_have_a_long_name",
                      "advisories.decoding.dispatch_2307_a_container_may_not_have_a_longer_name",
                      "advisories.decoding.dispatch_2307_a_router_has_a_name_of_1_to_127_characters"),
    "DISPATCH-2308": ("advisories.management.dispatch_2308_a_hundred_thousand_rows_in_one_answer",),
    "DISPATCH-1276/1326/1492, 2274": ("advisories.flow.clients_that_go_while_messages_are_on_their_way_harm_no_other",
                                      "core.leftovers.a_connection_that_is_over_goes_without_the_collector"),
}  # fmt: skip

DECODING: dict[str, tuple[str, ...]] = {
    "CVE-2026-66257, -68074, -67588, -67465": (
        "advisories.decoding.symbols_of_strangers_are_not_kept",
        "advisories.decoding.tens_of_thousands_of_symbols_leave_nothing_behind"),
    "CVE-2026-66273, -68060, -67589, -67551": ("advisories.decoding.announced_sizes_allocate_no_memory",
                                               "wire.codec.octets_that_lie_are_refused"),
    "CVE-2026-66274, -68073, -67590, -67552": (
        "advisories.decoding.nesting_is_bounded_for_every_type",
        "advisories.decoding.nesting_ends_the_connection_before_any_user_is_known",
        "e2e.bad_input.a_value_nested_10_000_deep_closes_the_connection"),
    "CVE-2026-66275, -68075, -67591, -67553": (
        "e2e.bad_input.a_sender_that_ignores_its_window_is_slowed_and_not_ended",
        "e2e.bad_input.a_peer_that_receives_too_loses_its_session_far_beyond_its_window"),
    "CVE-2026-66276, -68077, -67554": ("advisories.flow.the_widest_disposition_costs_only_the_present_deliveries",
                                       "engine.session.the_widest_range_costs_no_more_than_the_deliveries_there_are",
                                       "engine.session.a_range_of_half_of_all_ids_or_more_runs_backwards"),
    "CVE-2026-66277, -68078, -67592, -67555": ("advisories.flow.a_message_of_countless_frames_ends_its_link",
                                               "core.memory.small_pieces_of_a_message_are_kept_together",
                                               "engine.session.held_bytes_never_exceed_the_bytes_of_the_window"),
    "CVE-2026-68080": ("advisories.flow.echoes_that_come_together_are_answered_once",
                       "advisories.flow.a_hundred_thousand_echoes_are_few_answers",
                       "e2e.bad_input.a_sender_that_never_reads_costs_no_more_than_its_answers"),
    "CVE-2026-92573": (NO + "nothing is ever unpacked", "advisories.absent.nothing_is_unpacked",
                       "http.websockets.extensions_are_not_taken_up"),
    "CVE-2026-92608": ("advisories.flow.a_bad_message_harms_its_own_delivery_only",),
    "CVE-2017-15701": ("advisories.decoding.a_frame_of_any_size_is_refused_on_its_first_octets",
                       "e2e.guard.an_oversized_sasl_frame_is_refused_on_its_first_octets"),
    "PROTON-2853": ("engine.faults.a_fault_is_reported_on_its_scope_and_the_rest_goes_on",),
    "PROTON-2945": ("advisories.decoding.no_performative_of_amqp_belongs_into_the_sasl_layer",
                    "advisories.decoding.sasl_performatives_are_refused_above_the_sasl_layer"),
    "PROTON-2952, 2954": ("advisories.decoding.values_of_a_performative_are_counted",
                          "core.memory.small_pieces_of_a_message_are_kept_together"),
    "CVE-2026-66079, CVE-2026-67414": (
        "wire.codec.array_items_without_octets_are_read_to_their_bound_and_refused_beyond",
        "advisories.decoding.announced_sizes_allocate_no_memory"),
    "CVE-2026-67416": ("wire.sections.symbolic_descriptors_are_matched_whole",
                       "wire.transfers.descriptors_outside_the_standard_are_distinguished_from_no_descriptor"),
    "CVE-2021-22116": ("advisories.decoding.no_open_costs_much_more_than_an_ordinary_one",
                       "wire.codec.keys_that_were_chosen_to_have_one_hash_are_not_compared_each_with_each",
                       "wire.codec.any_octets_decode_or_are_refused_and_skip_agrees"),
    "CVE-2026-67240": (NO + "no filter is applied and no pattern is a user's",
                       "advisories.absent.no_pattern_is_another_projects",
                       "core.attaching.a_filter_is_not_echoed_because_none_is_applied"),
    "CVE-2026-67419, 75880": ("core.patterns.rows_of_wildcards_are_normalised",
                              "core.patterns.a_search_takes_at_most_nodes_times_positions",
                              "policy.addresses.a_search_made_long_on_purpose_is_given_up_and_denied"),
    "CVE-2024-21646, 25110, 27099": ("wire.codec.octets_that_lie_are_refused",
                                     "wire.transfers.any_octets_are_read_or_refused",
                                     "engine.any_bytes.any_frames_and_bytes_behind_any_beginning"),
}  # fmt: skip

RIGHTS: dict[str, tuple[str, ...]] = {
    "CVE-2015-0223": ("e2e.guard.a_mechanism_that_was_not_offered",),
    "CVE-2015-0224": ("advisories.authentication.frames_around_a_refused_login_have_no_effect",),
    "CVE-2012-2145": ("admission.played_limits.a_host_has_few_handshakes_at_a_time_and_open_connections_do_not_count",
                      "e2e.guard.so_many_handshakes_in_all"),
    "CVE-2016-3094, CVE-2018-1298": ("advisories.authentication.nuls_in_a_login",
                                     "advisories.authentication.a_login_of_a_megabyte",
                                     "e2e.guard.a_malformed_login_is_refused_and_the_next_one_is_not"),
    "CVE-2016-4432": ("advisories.authentication.frames_around_a_refused_login_have_no_effect",
                      "advisories.authentication.a_client_without_sasl_is_refused_with_any_first_frames",
                      "engine.states.every_frame_in_every_state_of_a_connection"),
    "CVE-2016-8741": ("e2e.sasl_plugins.an_unknown_user_goes_the_steps_of_a_wrong_password",
                      "e2e.guard.a_lock_reveals_neither_the_existing_users_nor_the_right_password"),
    "CVE-2017-15702": ("advisories.authentication.each_listener_uses_its_own_authentication_service",),
    "CVE-2016-2166": ("tls.https_and_connectors.a_connector_with_tls_sends_nothing_in_clear",
                      "client.tls.a_server_without_tls_is_an_os_error"),
    "CVE-2016-4467, CVE-2018-17187": ("tls.https_and_connectors.a_connector_takes_no_server_of_another_name",
                                      "tls.profiles.a_connector_accepts_certificates_of_the_host_and_the_trusted_authority",
                                      "client.tls.a_certificate_for_another_name_is_refused"),
    "CVE-2019-0223": ("advisories.tls.a_server_without_a_certificate_or_a_cipher_is_refused",),
    "CVE-2021-26117": ("advisories.authentication.a_login_without_a_password_is_none",),
    "CVE-2016-9877": ("advisories.authentication.a_login_without_a_password_is_none",
                      "tls.listeners.external_without_a_certificate_stays_out"),
    "CVE-2026-67231": ("tls.listeners.two_certificates_of_one_serial_and_issuer_are_distinguished_by_the_signature",),
    "CVE-2026-67404": ("tls.profiles.an_unusable_profile_is_refused_with_the_attribute",
                       "tls.profiles.a_broken_renewal_keeps_the_old_pair_and_a_whole_one_replaces_it",
                       "auth.auth_service.without_its_profile_a_service_gets_no_question"),
    "CVE-2026-57216, 67411": ("advisories.authentication.headers_of_a_peer_do_not_change_its_address",
                              "advisories.authentication.a_proxys_preface_is_no_amqp",
                              "e2e.authentication.a_password_from_another_machine_needs_the_listeners_yes"),
    "CVE-2026-57217": ("e2e.tenants.no_address_leads_into_the_space_of_another",
                       "core.tenants.every_message_stays_in_its_space"),
    "CVE-2026-44838, 67407": ("policy.addresses.the_name_of_a_user_is_text",
                              "advisories.absent.no_pattern_is_another_projects"),
    "CVE-2026-67223": ("advisories.authentication.plugins_get_a_user_name_unchanged",),
    "CVE-2026-57218, 67420": (
        "e2e.policy.a_policy_change_applies_to_open_connections",
        "e2e.sasl_plugins.a_changed_users_file_closes_only_connections_of_disabled_users",
        "e2e.sasl_plugins.the_connection_ends_when_the_token_does",
        "tls.profiles.open_connections_are_judged_by_the_lists_of_now"),
    "CVE-2026-61837, 67241, 57221": ("e2e.policy.levels_of_management",
                                     "e2e.policy.a_group_without_management_is_refused_each_request",
                                     "management.tenants.nothing_else_is_listed_or_read"),
    "CVE-2026-57215, 54475": ("core.addresses.temporary_tokens_hold_132_random_bits_and_never_repeat",
                              "e2e.tenants.a_dynamic_address_is_taken_over_by_no_client"),
    "CVE-2026-66067": ("advisories.authorization.limits_count_whichever_way_a_client_comes",
                       "e2e.guard.websockets_are_held_to_the_same"),
    "CVE-2026-67405": ("http.origins.any_other_page_is_not",
                       "http.websockets.a_handshake_that_is_refused_leaves_a_connection_for_requests"),
    "CVE-2026-66077, 67239, 44839": ("logs.lines.any_text_gives_one_line",
                                     "records.text.hostile_text_stays_one_harmless_line",
                                     "plugins.uid_format.a_name_with_control_characters_is_refused",
                                     "http.metrics.any_configured_name_makes_a_text_that_parses"),
    "CVE-2026-67221, 66068, CVE-2025-50200, CVE-2025-27391, GHSA-6gmw-wxch-cvvc": (
        "advisories.management.secrets_are_nowhere", "config.secrets.no_secret_of_a_configuration_is_shown",
        "e2e.dump.the_dump_shows_the_state_of_connectors_without_passwords"),
    "CVE-2026-27446, 57967, 49362, 49363, 49364": (
        "advisories.authentication.frames_around_a_refused_login_have_no_effect",
        "advisories.decoding.nothing_is_done_before_the_open",
        "e2e.policy.nothing_that_comes_with_a_denied_open_is_looked_at",
        "core.attaching.no_terminus_outlives_its_link"),
    "CVE-2026-39304": ("tls.listeners.keys_cannot_be_changed_for_ever",),
    "CVE-2022-23913, 2021-4040": ("e2e.bad_input.a_receiver_that_never_reads_costs_no_more_than_a_window",
                                  "engine.faults.memory_may_be_held_up_to_the_limit_and_a_refused_transfer_is_not_counted",
                                  "core.memory.small_pieces_of_a_message_are_kept_together"),
    "CVE-2026-57822": ("advisories.management.a_management_body_has_the_nesting_limit_of_every_value",
                       "advisories.absent.octets_make_values_only",
                       "management.requests.a_request_that_is_too_large_is_refused_unread"),
    "CVE-2024-6535": ("advisories.authentication.no_secret_is_built_in",
                      "plugins.sasl_plain.without_users_no_client_gets_in"),
    "CVE-2024-12582": ("http.pages.no_target_leads_out_of_the_root",
                       "plugins.users_file.the_password_is_not_in_the_file_in_any_form",
                       "advisories.authentication.a_user_name_is_looked_up_unchanged"),
    "CVE-2019-19906, 2022-24407": ("plugins.sasl_cyrus.an_over_long_response_never_reaches_the_library",
                                   "plugins.sasl_cyrus.any_bytes_are_answered_and_let_no_user_in",
                                   "plugins.sasl_cyrus.a_library_that_stalls_is_left_behind"),
    "CVE-2023-46118, 57212, 57220": ("engine.limits.a_limit_holds_at_n_and_at_n_plus_1",
                                     "http.hostile.a_body_beyond_the_limit_is_refused_while_the_client_sends",
                                     "http.websockets.a_message_beyond_the_limit_is_refused"),
}  # fmt: skip

#: The numbers of security.md 8.9.
NUMBERS: dict[str, tuple[str, ...]] = {
    "depth 32": ("advisories.decoding.nesting_is_bounded_for_every_type",),
    "nodes of a frame": ("advisories.decoding.values_of_a_performative_are_counted",),
    "symbols of 1,024 bytes": ("wire.codec.a_symbol_has_at_most_1024_octets_and_a_string_as_many_as_there_are",),
    "link names of 8,192 bytes, container ids of 1,024 bytes": ("engine.limits.a_limit_holds_at_n_and_at_n_plus_1",),
    "addresses of 4,096 bytes": ("core.attaching.longer_addresses_are_refused",),
    "addresses without NUL, CR and LF": ("advisories.authorization.no_address_has_control_characters",),
    "the processor's time": ("advisories.decoding.no_open_costs_much_more_than_an_ordinary_one",),
}  # fmt: skip

SECTIONS = {"7.1": FOUND, "7.2": REPORTED, "7.3": DECODING, "7.4": RIGHTS, "8.9": NUMBERS}
ROWS = {f"{section} {row}": tests for section, rows in SECTIONS.items() for row, tests in rows.items()}
NAMES = sorted({name for names in ROWS.values() for name in names if not name.startswith(NO)})


@cache
def functions_of(folder: str, module: str) -> frozenset[str]:
    path = TESTS / folder / f"test_{module}.py"
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(name.removeprefix("test_") for name in found if name.startswith("test_"))


@pytest.mark.parametrize("name", NAMES)
def test_every_test_named_in_the_table_exists(name: str) -> None:
    folder, module, function = name.split(".")
    assert function in functions_of(folder, module)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_a_test(row: str) -> None:
    assert any(not name.startswith(NO) for name in ROWS[row])


def test_no_row_is_missing() -> None:
    assert list(FOUND) == [f"Q-{number:02}" for number in range(1, 29)]
    assert {section: len(rows) for section, rows in SECTIONS.items()} == {
        "7.1": 28, "7.2": 12, "7.3": 19, "7.4": 33, "8.9": 7
    }  # fmt: skip
    numbered = re.compile(r"(CVE|DISPATCH|PROTON|GHSA)-")
    assert all(numbered.match(row) for rows in (REPORTED, DECODING, RIGHTS) for row in rows)


def test_every_test_here_stands_for_a_row() -> None:
    modules = sorted(path.stem.removeprefix("test_") for path in (TESTS / "advisories").glob("test_*.py"))
    here = {
        f"advisories.{module}.{name}"
        for module in modules
        if module != "rows"
        for name in functions_of("advisories", module)
    }
    assert here - set(NAMES) == {"advisories.absent.there_are_sources_to_search"}
