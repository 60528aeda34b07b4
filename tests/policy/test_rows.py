"""The rows and requirements of security.md, and the tests that would fail if one did not hold.

Sections 2 and 8.4 have their own table in tests/tls, sections 7 and 8.9 in tests/advisories. A test is named as
folder.module.function, without the common tests. and test_.
"""

from __future__ import annotations

import pytest

from tests.advisories.test_rows import functions_of

NAMES_AND_LOGINS: dict[str, tuple[str, ...]] = {
    "0 older names": ("config.load.old_names_are_those_of_the_specification",
                      "config.load.an_old_name_works_with_a_warning"),
    "0 `{user}` and `${user}`": ("config.policy.the_users_token_is_distinguished_from_its_text",),
    "1.1 R-1.1a what the first bytes are": (
        "tls.parts.the_first_bytes_choose_the_layer", "tls.listeners.amqps_own_header_for_tls_begins_tls",
        "engine.faults.a_fault_is_reported_on_its_scope_and_the_rest_goes_on",
        "e2e.bad_input.connection_is_refused_for", "e2e.bad_input.a_peer_that_never_opens_is_disconnected",
        "engine.sasl.a_header_of_neither_layer_is_answered_in_amqp", "http.live.plain_amqp_is_not_spoken_here"),
    "1.1 R-1.1b TLS where there is none": ("tls.listeners.a_tls_client_at_a_plain_listener_gets_no_answer",),
    "1.2 the table": ("e2e.ways_in.each_listener_offers_its_mechanisms",),
    "1.2 R-1.2a names that nothing serves": (
        "hooks.hooks.an_unknown_sasl_mechanism_that_nothing_serves_is_refused_with_secure_defaults",
        "config.load.all_attributes_of_a_listener"),
    "1.2 R-1.2b what is offered by default": (
        "e2e.ways_in.each_listener_offers_its_mechanisms",
        "plugins.sasl_scram.the_offered_mechanisms_fit_the_users_file_and_the_channel",
        "plugins.sasl_cyrus.weak_mechanisms_are_served_only_where_the_listener_names_them"),
    "1.3 the table": ("e2e.ways_in.outcomes", "e2e.ways_in.plain_without_an_initial_response_is_challenged",
                      "e2e.authentication.no_other_user_is_let_in", "e2e.guard.a_mechanism_that_was_not_offered"),
    "1.3 R-1.3 come back later": ("e2e.denials_by_proton.a_login",
                                  "e2e.auth_service.each_refusal_and_each_death_of_the_service_has_its_outcome"),
    "1.4 the table": ("e2e.ways_in.sasl_may_be_skipped_only_on_the_listeners_that_allow_this",
                      "tls.listeners.a_client_that_skips_sasl_is_the_subject_of_its_certificate",
                      "e2e.authentication.the_anonymous_user_is_not_authenticated_in_any_spelling"),
    "1.4 R-1.4a a service cannot be skipped": ("e2e.auth_service.sasl_cannot_be_skipped",
                                               "e2e.websocket_logins.sasl_cannot_be_skipped"),
    "1.4 R-1.4b it is told": ("e2e.authentication.a_client_without_sasl_is_refused_where_peers_must_authenticate",
                              "e2e.denials_by_proton.without_sasl"),
    "1.5 R-1.5 no other authorization id": (
        "plugins.sasl_plain.another_authorization_id_is_refused_with_the_right_password_too",
        "plugins.sasl_external.a_client_that_requests_another_user_is_refused",
        "plugins.sasl_pam.another_authorization_id_is_refused", "plugins.sasl_oauth.a_token_is_for_its_own_user_only",
        "e2e.ways_in.the_user_of_a_connection_to_management"),
    "1.6 R-1.6a passwords in clear": (
        "e2e.authentication.plain_is_neither_offered_nor_accepted_where_it_is_not_allowed",
        "e2e.authentication.a_password_from_another_machine_needs_the_listeners_yes",
        "config.strictness.passwords_in_clear_are_allowed_by_the_switch"),
    "1.6 R-1.6b nothing is asked for in clear": (
        "tls.listeners.no_password_mechanism_is_offered_in_clear_where_tls_is_required",
        "e2e.denials_by_proton.clear_text_where_tls_is_required"),
    "1.7 the frames of SCRAM": ("e2e.sasl_plugins.scram_frame_by_frame",
                                "client.scram.the_servers_proof_may_be_a_challenge_or_stand_in_the_outcome"),
    "1.7 R-1.7a users who are not there": (
        "e2e.sasl_plugins.an_unknown_user_goes_the_steps_of_a_wrong_password",
        "plugins.sasl_scram.an_unknown_user_has_a_salt_that_stays_and_a_cost_like_others"),
    "1.7 R-1.7b SHA-256, SHA-512 and what is bound": ("tls.listeners.scram_is_bound_to_the_channel",
                                                      "plugins.sasl_scram.the_offered_mechanisms_fit_the_users_file_and_the_channel"),
    "1.8 R-1.8 GSSAPI": ("plugins.gssapi.a_router_with_a_ticket_gets_in",
                         "plugins.gssapi.a_router_without_a_ticket_does_not"),
    "1.9 R-1.9 a store of its own": ("cli.passwd.every_user_of_a_sasldb_is_read",
                                     "plugins.sasl_cyrus.a_configuration_that_is_not_there_is_refused"),
    "1.10 R-1.10a time until the open": (
        "e2e.bad_input.a_peer_that_never_opens_is_disconnected",
        "http.live.a_silent_websocket_has_the_time_of_the_listener_to_open",
        "tls.listeners.a_peer_that_stops_in_the_handshake_is_disconnected",
        "connections.played_logins.a_listener_without_a_limit_waits_for_an_open_for_ever"),
    "1.10 R-1.10b so many before their open": ("e2e.guard.so_many_handshakes_in_all",),
    "1.11 the table": ("config.secrets.a_password_from_the_environment",
                       "config.secrets.a_password_is_the_first_line_of_a_file",
                       "e2e.connectors.a_connection_that_is_lost_is_made_again",
                       "e2e.sasl_plugins.a_connector_that_may_use_one_mechanism_uses_no_other"),
    "1.11 R-1.11a the server proves itself": (
        "e2e.sasl_plugins.a_connector_does_not_trust_a_server_without_a_proof",),
    "1.11 R-1.11b where else to go": ("tls.parts.credentials_go_only_to_the_configured_hosts",
                                      "tls.parts.a_peer_cannot_send_a_connector_from_tls_to_clear_text"),
    "1.11 R-1.11c its own passwords in clear": ("e2e.connectors.plain_without_tls_logs_in_unless_defaults_are_secure",
                                                "e2e.sasl_plugins.a_connector_uses_scram_where_its_password_may_not_be_sent"),
}  # fmt: skip

SERVICES: dict[str, tuple[str, ...]] = {
    "3.1 what a service sees": ("auth.auth_service.the_service_gets_the_mechanism_the_response_and_the_host_name",
                                "auth.auth_service.challenges_and_responses_are_relayed_unchanged_for_many_rounds",
                                "auth.auth_service.a_proof_of_scram_comes_with_the_outcome",
                                "e2e.auth_service.the_offer_of_the_service_is_filtered"),
    "3.2 who it says it is": ("auth.auth_service.the_subject_is_the_user",
                              "auth.auth_service.a_key_that_is_no_symbol_is_another"),
    "3.3 what it grants": ("auth.auth_service.rights", "policy.addresses.an_empty_grant_is_nothing",
                           "e2e.auth_service.an_empty_map_allows_nothing",
                           "policy.addresses.patterns_of_the_vhost_outlast_a_grant"),
    "3.4 R-3a what is missing or wrong": ("auth.auth_service.rights_that_are_missing",
                                        "auth.auth_service.a_service_that_lies_lets_no_user_in",
                                        "e2e.auth_service.rights_that_are_left_to_the_policy"),
    "3.4 R-3b time, and the breaker": ("auth.auth_service.a_service_that_stops_later",
                                     "auth.auth_service.the_breaker_opens_only_after_failures_in_a_row",
                                     "auth.auth_service.a_service_that_fails_again_and_again_is_left_alone"),
    "3.4 R-3c passwords in clear": ("auth.auth_service.passwords_in_the_clear_on_this_machine",),
    "3.4 R-3d it is verified": ("auth.auth_service.a_service_of_another_authority_is_refused",
                              "auth.auth_service.a_service_of_another_name_is_refused",
                              "auth.auth_service.a_service_without_tls_is_refused"),
    "3.4 R-3e what is remembered": ("plugins.auth_service.nothing_is_remembered_for_more_than_a_minute",
                                  "plugins.auth_service.without_cache_seconds_there_is_no_memory"),
    "3.4 R-3f a scripted service": ("e2e.auth_service.each_refusal_and_each_death_of_the_service_has_its_outcome",
                                  "e2e.auth_service_example.other_logins_are_refused"),
}  # fmt: skip

POLICY: dict[str, tuple[str, ...]] = {
    "4.1 maxConnections": ("e2e.denials_by_proton.one_connection_too_many_for_the_router",
                           "e2e.policy.connections_beyond_the_global_limit_are_closed_at_once"),
    "4.1 policyDir": ("config.policy.the_files_of_policy_dir_are_read_in_the_order_of_their_names",
                      "config.policy.only_vhosts_are_taken_from_them"),
    "4.1 R-4.1a vhosts that hold no client": ("config.policy.vhosts_that_hold_no_client_are_warned_of",),
    "4.1 R-4.1b room for routers": ("policy.router_policy.routers_have_room_that_clients_cannot_take",),
    "4.2 R-4.2 unknown attributes": ("config.policy.a_vhost_is_refused", "config.policy.a_group_is_refused"),
    "4.3 which vhost": ("policy.vhosts.a_vhost_is_chosen", "policy.vhosts.patterns_are_preferred_exact_first",
                        "policy.vhosts.policy_vhost_is_in_the_place_of_the_host_name",
                        "policy.vhosts.a_vhost_that_is_gone_leaves_its_names_free"),
    "4.3 R-4.3 how host names are compared": ("policy.vhosts.host_names_are_compared_without_case_port_and_dot",
                                              "policy.vhosts.other_host_names_are_other_vhosts"),
    "4.4 which group": ("policy.vhosts.a_user_is_in_one_group",
                        "policy.vhosts.unknown_users_are_in_the_default_group_or_nowhere"),
    "4.4 R-4.4 the empty name": ("policy.vhosts.the_empty_name_is_in_no_group",
                                 "config.policy.groups_without_users_are_legal_in_any_number"),
    "4.5 R-4.5 from where": ("config.policy.hosts_are_written_in_many_ways",
                             "config.policy.a_faulty_remote_host_is_refused",
                             "policy.vhosts.a_group_is_for_hosts",
                             "policy.vhosts.without_remote_hosts_no_client_comes_in",
                             "policy.router_policy.names_are_looked_up_again"),
    "4.6 numbers and flags": ("policy.settings.a_connection_has_the_settings_of_its_group",
                              "policy.settings.settings_that_make_no_sense_are_refused",
                              "policy.settings.the_first_level_with_a_limit_counts"),
    "4.6 R-4.6a 0 is none": ("e2e.denials_by_proton.one_link_too_many", "config.policy.no_links_at_all_is_warned_of"),
    "4.6 R-4.6b a session too many": ("e2e.denials_by_proton.a_session",
                                      "e2e.policy.a_policy_change_applies_to_open_connections"),
    "4.6 R-4.6c capabilities": ("e2e.policy.a_waypoint_capability_counts_in_every_form",
                                "e2e.denials_by_proton.a_link"),
    "4.6 R-4.6d upper bounds": ("e2e.policy.the_numbers_of_a_group_stand_in_open_and_begin",),
    "4.7 entries": ("policy.addresses.an_entry_is_for_addresses", "config.policy.an_item_of_a_list_may_hold_a_comma"),
    "4.7 R-4.7a the user's name is text": ("policy.addresses.the_name_of_a_user_is_text",),
    "4.7 R-4.7b the token": ("policy.addresses.an_entry_that_cannot_be_decided_is_refused",
                             "config.policy.the_users_token_is_distinguished_from_its_text"),
    "4.7 R-4.7c who has proven no name": (
        "policy.addresses.an_unauthenticated_name_fills_user_patterns_unless_defaults_are_secure",
        "policy.addresses.substitute_anonymous_gives_them_some"),
    "4.7 R-4.7d any name": ("policy.addresses.an_address_is_allowed_if_and_only_if_an_entry_matches_the_address",),
    "4.8 R-4.8 patterns": ("policy.addresses.a_pattern_is_for_addresses",
                           "policy.addresses.an_address_is_allowed_if_and_only_if_a_pattern_matches_the_address",
                           "policy.addresses.a_search_made_long_on_purpose_is_given_up_and_denied"),
    "4.9 the router is full": ("e2e.denials_by_proton.one_connection_too_many_for_the_router",),
    "4.9 no vhost, user, host": ("e2e.denials_by_proton.a_connection",),
    "4.9 a vhost is full": ("e2e.denials_by_proton.one_connection_too_many",),
    "4.9 a connector": ("e2e.policy.a_connector_that_the_policy_denies",),
    "4.9 sessions": ("e2e.denials_by_proton.a_session",),
    "4.9 links": ("e2e.denials_by_proton.a_link", "e2e.denials_by_proton.one_link_too_many"),
    "4.9 messages": (
        "e2e.denials_by_proton.a_message", "e2e.denials_by_proton.a_denied_presettled_message_has_no_outcome"),
    "4.9 messages too large": ("e2e.denials_by_proton.a_message_too_large",),
    "4.9 R-4.9a conditions, and the end of TCP": ("e2e.policy.a_denied_client_that_does_not_close_is_cut_off",
                                                  "e2e.denials_by_proton.a_connection_that_was_denied_is_reported_as_over"),
    "4.9 R-4.9b on the first frame too much": (
        "e2e.policy.a_message_that_is_too_large_ends_its_link_on_the_frame_that_is_too_much",
        "e2e.policy.an_oversize_message_may_end_the_connection"),
    "4.9 R-4.9c each is counted and recorded": ("policy.router_policy.each_denial_counts_and_is_one_record",
                                                "policy.router_policy.repeated_denials_of_a_peer_flood_neither_the_log_nor_the_records"),
    "4.10 counters of connections": (
        "policy.counts.one_more_is_held_to_every_limit",
        "policy.counts.users_that_come_and_go_leave_nothing_behind",
        "policy.router_policy.limits_of_users_and_hosts_stay_their_own_through_a_change"),
    "4.11 who is exempt": ("policy.router_policy.inter_router_and_outgoing_connections_are_exempt",
                           "policy.vhosts.a_connector_is_held_to_the_connector_group",
                           "policy.vhosts.a_connector_without_policy_vhost_is_exempt"),
    "4.11 R-4.11 listeners for routers": (
        "config.strictness.a_listener_for_routers_opens_unless_defaults_are_secure",
        "core.attaching.a_router_link_on_an_ordinary_connection_is_forbidden",
        "network.secured.a_router_joins_by_its_certificate_or_its_password",
        "network.secured.a_router_with_wrong_credentials_does_not_join",
        "network.secured.no_router_joins_without_credentials_where_they_are_required"),
    "4.12 before the listener's": ("e2e.policy.the_numbers_of_a_group_stand_in_open_and_begin",
                                   "e2e.policy.policy_limits_hold_for_sessions_that_came_with_the_open"),
    "4.13 R-4.13a open connections": (
        "e2e.policy.a_policy_change_applies_to_open_connections",
        "e2e.policy.a_vhost_may_keep_its_open_connections_through_a_change",
        "e2e.denials_by_proton.a_connection_whose_user_the_vhost_has_no_longer",
        "e2e.denials_by_proton.a_link_that_the_policy_allows_no_longer",
        "e2e.denials_by_proton.a_connection_whose_vhost_is_deleted"),
    "4.13 R-4.13b all or nothing": ("e2e.policy.a_change_that_is_wrong_changes_nothing",
                                    "policy.router_policy.a_connection_that_fails_to_follow_a_change_is_closed_and_the_others_are_judged"),
    "4.14 vhostStats": ("e2e.policy.a_vhost_has_its_limit_of_connections",
                        "management.live_updates.a_vhost_comes_with_its_statistics"),
    "4.15 R-4.15 levels of management": (
        "e2e.denials_by_proton.a_request_of_management", "e2e.policy.levels_of_management",
        "e2e.policy.a_group_without_management_is_refused_each_request",
        "policy.router_policy.no_user_has_rights_unless_a_group_gives_them",
        "e2e.policy.answers_go_only_where_the_requester_may_send_or_receives_alone"),
    "4.15 a connection that management closes": ("e2e.denials_by_proton.a_connection_that_management_closes",
                                                 "network.seeing.a_connection_between_routers_is_not_closed_by_management"),
    "4.16 the examples": ("policy.vhosts.without_enable_vhost_policy_vhosts_hold_no_client",
                          "policy.settings.example_2_ten_connections_of_a_user",
                          "policy.settings.example_3_administrators_come_from_here_and_others_read_news",
                          "policy.settings.example_4_feeds_have_larger_frames"),
}  # fmt: skip

TENANTS_AND_MESSAGES: dict[str, tuple[str, ...]] = {
    "5 the table": (
        "e2e.tenants.one_address_is_another_in_each_space",
        "e2e.tenants.the_answer_to_an_attach_has_the_address_as_the_client_wrote_it",
        "e2e.tenants.the_properties_arrive_as_they_were_sent",
        "e2e.tenants.a_dynamic_target_is_open_to_the_same_tenant_only",
        "e2e.tenants.treatment_is_configured_with_the_tenants_prefix",
        "e2e.tenants.the_policy_checks_the_addresses_as_clients_write_them",
        "e2e.tenants.the_tenant_is_the_vhost_that_the_policy_found"),
    "5 R-5a a tenant has a name": ("e2e.tenants.no_client_opens_without_a_tenant_of_its_own",
                                   "e2e.tenants.with_policy_and_secure_defaults_the_tenant_must_be_named",
                                   "e2e.denials_by_proton.a_tenant_that_names_none"),
    "5 R-5b which names": ("core.tenants.the_name_of_a_tenant_is_checked",
                           "core.tenants.no_two_tenants_come_to_the_same_key"),
    "5 R-5c reserved addresses, and management": (
        "e2e.tenants.a_tenant_may_not_attach_to_an_address_with_a_leading_underscore",
        "e2e.denials_by_proton.an_address_outside_every_tenant_is_denied_to_a_tenant",
        "e2e.tenants.a_tenant_may_not_send_to_an_address_with_a_leading_underscore",
        "management.tenants.nothing_else_is_listed_or_read", "management.tenants.no_tenant_changes_any_entity"),
    "5 R-5d whose a user is": ("e2e.tenant_proofs.a_token_and_a_certificate_lead_into_the_same_tenant",
                               "e2e.tenant_proofs.a_token_that_does_not_name_the_tenant",
                               "e2e.tenant_proofs.a_certificate_that_does_not_name_the_tenant",
                               "e2e.denials_by_proton.without_a_policy", "config.tenants.other_forms_are_refused"),
    "5 R-5e between routers": ("core.tenants.every_message_stays_in_its_space",
        "core.networks.an_answer_finds_its_tenant_on_any_router_and_no_other_tenant_can_give_one",
                               "core.tenants.a_trusted_annotation_stays_in_the_space_too",
                               "network.secured.tenants_stay_apart_on_both_sides_of_a_hop"),
    "6.1 the user-id": ("e2e.policy.a_message_may_name_its_own_user",
                        "e2e.policy.a_message_in_the_name_of_another_is_rejected",
                        "e2e.policy.a_user_with_the_right_to_proxy_sends_with_the_user_id_of_another_user"),
    "6.1 R-6.1 before the first byte goes on": ("e2e.policy.properties_stand_nowhere_else",
                                                 "wire.sections.sections_stand_in_order_and_once",
                                                 "e2e.policy.a_listener_may_stamp_messages_with_their_user"),
    "6.2 stripAnnotations": ("plugins.strip_annotations.each_choice_of_the_listener",
                             "wire.annotations.other_keys_belong_to_the_sender"),
    "6.2 R-6.2a clients steer nothing": ("e2e.policy.router_annotations_of_a_client_steer_nothing",
                                         "e2e.tenants.a_forged_annotation_leads_nowhere_else"),
    "6.2 R-6.2b bounds": ("e2e.policy.annotations_are_bounded",
                          "wire.annotations.a_trace_is_read_to_its_bound_and_rejected_beyond"),
}  # fmt: skip

BEYOND: dict[str, tuple[str, ...]] = {
    "8.1 delays": ("admission.lockout.each_further_failure_of_a_host_doubles_the_wait_up_to_the_longest",
                   "admission.lockout.thirty_wrong_passwords",
                   "e2e.sasl_plugins.a_guessing_host_waits_and_other_hosts_do_not"),
    "8.1 locks": ("e2e.denials_by_proton.a_locked_out_user_is_refused_recorded_and_shown_until_the_lock_is_deleted",
                  "e2e.guard.a_lock_reveals_neither_the_existing_users_nor_the_right_password",
                  "e2e.guard.management_shows_locks_and_lifts_them",
                  "admission.lockout.a_success_forgives_the_user_and_not_the_host"),
    "8.1 a bounded table": ("admission.lockout.a_million_names_take_bounded_room",),
    "8.2 so many handshakes": ("admission.handshakes.a_thousand_in_all_and_routers_are_counted_apart",
                               "admission.played_limits.a_host_has_few_handshakes_at_a_time_and_open_connections_do_not_count"),
    "8.2 time and speed": ("admission.played_limits.a_peer_that_drips_is_aborted_and_a_silent_one_has_its_time",
                           "tls.standing.a_handshake_of_tls_has_five_seconds"),
    "8.2 sizes and rounds": ("e2e.guard.an_oversized_sasl_frame_is_refused_on_its_first_octets",
                             "advisories.decoding.a_frame_of_any_size_is_refused_on_its_first_octets",
                             "engine.sasl.challenges_and_responses_alternate_up_to_the_limit"),
    "8.2 hashing": ("plugins.sasl_plain.hashing_does_not_block_the_event_loop",
                    "plugins.sasl_plain.logins_beyond_the_queue_are_refused_as_temporary"),
    "8.2 arrivals": ("admission.handshakes.a_hundred_at_once_then_fifty_a_second",
                     "admission.played_limits.a_host_that_connects_too_often_is_turned_away_until_time_has_passed"),
    "8.3 the file of users": ("plugins.users_file.a_record_has_the_required_cost",
                              "plugins.users_file.a_file_that_other_users_can_read_or_write_is_refused",
                              "plugins.users_file.the_password_is_not_in_the_file_in_any_form",
                              "plugins.users_file.one_flipped_bit_of_the_digest_refuses",
                              "e2e.denials_by_proton.a_connection_whose_user_is_disabled"),
    "8.3 its command": ("cli.passwd.a_life_of_a_user", "cli.passwd.users_are_taken_over_with_their_passwords"),
    "8.5 caps of a connection": ("engine.limits.a_limit_holds_at_n_and_at_n_plus_1",
                                 "e2e.bad_input.a_receiver_that_never_reads_costs_no_more_than_a_window"),
    "8.5 quotas": ("e2e.denials_by_proton.connections_too_fast", "e2e.denials_by_proton.links_too_fast",
                   "e2e.denials_by_proton.more_links_than_a_quota_allows",
                   "e2e.denials_by_proton.links_while_as_much_is_kept_as_may_be",
                   "e2e.quotas.messages_that_come_too_fast_wait_for_credit",
                   "core.quotas.bytes_are_paid_for_when_they_have_come",
                   "admission.alarms.a_quota_is_reported_when_it_is_reached_and_when_it_clears"),
    "8.5 memory": ("e2e.memory.few_clients_may_connect_above_the_second_mark_and_connected_clients_go_on",
                   "e2e.memory.only_the_user_with_the_most_memory_gets_no_credit_above_the_first_mark",
                   "admission.alarms.memory_is_reported_at_each_mark_and_when_it_falls_below"),
    "8.5 others do not notice": ("core.quotas.one_vhost_at_its_cap_leaves_the_credit_of_others_alone",),
    "8.6 what is recorded": (
        "e2e.records.a_connection_is_reported_from_beginning_to_end", "e2e.records.each_login_has_one_outcome",
        "e2e.records.the_policy_and_its_decisions_are_reported_by_the_same_rules",
        "e2e.records.management_changes_are_recorded_and_the_record_folder_can_change_while_in_use",
        "e2e.denials_by_proton.a_connection_that_management_closes",
        "tls.standing.new_files_that_cannot_be_used_raise_an_alarm_until_others_can",
        "records.stalled.a_stalled_link_is_reported_at_its_start_and_at_its_end"),
    "8.6 text, numbers and gaps": ("records.text.hostile_text_stays_one_harmless_line",
                                   "records.check.every_harm_is_noticed_and_its_place_reported",
                                   "plugins.audit_log.records_of_a_client_are_lines_of_the_module_audit"),
    "8.7 secureDefaults": ("cli.init.the_new_configuration_is_safe_and_private",
                           "config.strict.an_unsafe_setting_is_found",
                           "cli.check.a_setting_that_admits_more_peers_fails_only_with_strict",
                           "cli.run.an_unsafe_setting_is_reported_at_the_start"),
    "8.7 hooks that fail": ("hooks.hooks.sasl_mechanisms_that_raise_let_no_client_in",
                            "records.sketch.faults_of_plugins_are_reported_by_hook_and_plugin"),
    "8.8 secrets": ("e2e.secrets.no_secret_comes_out_anywhere", "logs.trace.secrets_of_sasl_frames_are_hidden",
                    "config.secrets.no_secret_of_a_configuration_is_shown"),
    "8.10 the process": ("app.privileges.every_thread_is_an_ordinary_user_with_no_group_and_no_right_of_roots",
                         "management.changes.management_may_not_choose_where_the_log_is_written",
                         "management.changes.management_may_not_open_the_machine",
                         "config.strict.files_that_every_user_of_the_machine_can_read_or_write_are_found"),
    "8.10 plugins by a list": ("cli.plugins.nothing_loads_where_the_router_would_not_start",
                               "cli.plugins.a_listed_third_party_plugin_is_loaded"),
    "9 the hooks": ("hooks.hooks.each_hook_has_a_test_named_after_it",),
}  # fmt: skip

ROWS = NAMES_AND_LOGINS | SERVICES | POLICY | TENANTS_AND_MESSAGES | BEYOND
TESTS = sorted({name for names in ROWS.values() for name in names})
#: The numbered requirements of these sections.
REQUIRED = [
    "R-1.1a", "R-1.1b", "R-1.2a", "R-1.2b", "R-1.3", "R-1.4a", "R-1.4b", "R-1.5", "R-1.6a", "R-1.6b", "R-1.7a",
    "R-1.7b", "R-1.8", "R-1.9", "R-1.10a", "R-1.10b", "R-1.11a", "R-1.11b", "R-1.11c", "R-3a", "R-3b", "R-3c", "R-3d",
    "R-3e", "R-3f", "R-4.1a", "R-4.1b", "R-4.2", "R-4.3", "R-4.4", "R-4.5", "R-4.6a", "R-4.6b", "R-4.6c", "R-4.6d",
    "R-4.7a", "R-4.7b", "R-4.7c", "R-4.7d", "R-4.8", "R-4.9a", "R-4.9b", "R-4.9c", "R-4.11", "R-4.13a", "R-4.13b",
    "R-4.15", "R-5a", "R-5b", "R-5c", "R-5d", "R-5e", "R-6.1", "R-6.2a", "R-6.2b",
]  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_every_test_named_in_the_table_exists(name: str) -> None:
    folder, module, function = name.split(".")
    assert function in functions_of(folder, module)


def test_no_requirement_is_missing() -> None:
    assert [word for row in ROWS for word in row.split() if word.startswith("R-")] == REQUIRED


def test_the_rows_stand_in_their_order() -> None:
    numbers = [tuple(map(int, row.split()[0].split("."))) for row in ROWS]
    assert numbers == sorted(numbers)
    assert all(ROWS.values())
