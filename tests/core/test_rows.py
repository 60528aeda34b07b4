"""Every row and bullet of routing.md's sections 1 to 4 in order, with its tests or the reason why it has none.

A name that ends with `*` is the beginning of several. Rows on other routers, link routes, policy, tenants, exchanges,
edges or brokers' auto-links have their tests with those features.
"""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

LATER = "later: "
MESH = LATER + "other routers"
ROUTES = LATER + "link routes"
POLICY = LATER + "policy"
TENANTS = LATER + "multi-tenancy"
EDGE = LATER + "edge routers"

ROWS: dict[str, tuple[str, ...] | str] = {
    "1.1 A relative, rooted, host, scheme": ("test_a_scheme_and_host_are_stripped",),
    "1.1 A scheme without a slash": ("test_a_scheme_without_a_slash_belongs_to_the_address",),
    "1.1 B one trailing separator": ("test_one_trailing_separator_is_dropped",),
    "1.1 B case and blanks": ("test_case_and_blanks_count", "test_an_address_may_be_a_symbol"),
    "1.1 C local forms": ("test_local_spellings_meet",),
    "1.1 C topological broadcast": MESH,
    "1.1 C other router, other area": ("test_a_client_may_send_to_a_router_but_not_receive_from_one",),
    "1.1 C edge forms": EDGE,
    "1.1 C anything else is mobile": ("test_an_unknown_reserved_prefix_is_a_mobile_address",),
    "1.1 phase character": ("test_a_fallback_receiver_binds*", "test_a_waypoint_takes_from*"),
    "1.1 tenant space": TENANTS,
    "1.1 longest address": ("test_long_addresses*", "test_longer_addresses_are_refused"),
    "1.2.1 policy first": POLICY,
    "1.2.2 router capabilities, one symbol": ("test_a_router_capability_is_found_among_others",),
    "1.2.3 router links on ordinary connections": ("test_a_router_link_on_an_ordinary_connection_is_forbidden",),
    "1.2.4 ordinary links on router connections": MESH,
    "1.2.5 anonymous senders": ("test_an_anonymous_sender_has_full_credit_at_once",),
    "1.2.6 edge look-up": EDGE,
    "1.3.a dynamic terminus on a link route": (
        "test_a_dynamic_terminus_that_names_a_route_is_refused_without_one",
        "test_only_the_first_node_property_names_a_route",
    ),
    "1.3.a dynamic source": ("test_a_dynamic_source_is_local_and_balanced",),
    "1.3.a dynamic target": ("test_a_dynamic_target_is_mobile_and_balanced",),
    "1.3.a fifteen characters": ("test_no_two_dynamic_addresses_are_equal",),
    "1.3.b link routes win": ROUTES,
    "1.3.c configured phases": ("test_the_configured_phases_part_senders_and_receivers",),
    "1.3.c waypoint capability": (
        "test_a_waypoint_takes_from_one_phase_and_gives_to_the_next",
        "test_another_ordinal_is_no_waypoint",
        "test_the_first_waypoint_of_an_array_counts",
        "test_messages_pass_through_a_waypoint",
    ),
    "1.3.c fallback receiver": (
        "test_a_fallback_receiver_binds_to_the_fallback_phase",
        "test_a_fallback_in_an_array_is_not_seen",
    ),
    "1.3.c fallback sender": ("test_a_fallback_sender_publishes_to_the_normal_phase",),
    "1.3.c router-class key": ("test_a_client_may_send_to_a_router_but_not_receive_from_one",),
    "1.3.c unknown address": ("test_an_unknown_address_is_made_with_the_default_treatment",),
    "1.3.c unavailable": ("test_an_unavailable_address_is_not_made",),
    "1.3.c enableFallback": ("test_the_fallback_sibling_is_made_alongside",),
    "1.4 no usable address": ("test_no_usable_address_is_no_route",),
    "1.4 unavailable": (
        "test_an_unavailable_address_is_not_found",
        "test_an_unavailable_default_refuses_addresses_without_a_rule",
        "test_an_unavailable_default_is_about_mobile_addresses_only",
        "test_an_unavailable_default_leaves_the_ways_to_other_routers",
        "test_addresses_that_the_router_serves_itself_are_available",
        "test_an_unavailable_default_leaves_existing_addresses",
    ),
    "1.4 router-only capability": ("test_a_router_link_on_an_ordinary_connection_is_forbidden",),
    "1.4 inter-router listener": MESH,
    "1.4 coordinator": ("test_a_coordinator_is_refused",),
    "1.4 link expiration": ROUTES,
    "1.4 routed link lost": ROUTES,
    "1.4 policy, two rows": POLICY,
    "1.4 reserved core addresses": ("test_the_routers_own_addresses_are_closed_without_a_word",),
    "1.4 form of the refusal": (
        "test_a_refused_sender_gets_no_termini",
        "test_a_refused_receiver_gets_its_target_only",
    ),
    "1.4 a container's refusal": ROUTES,
    "1.5 echo": (
        "test_termini_are_echoed",
        "test_a_filter_is_not_echoed_because_none_is_applied",
        "test_a_dynamic_source_keeps_its_properties",
    ),
    "1.5 null target": ("test_an_anonymous_senders_missing_target_is_answered_with_an_empty_one",),
    "1.5 settle modes": (
        "test_settle_modes_are_those_asked_where_the_router_can",
        "test_a_receiver_that_wants_settled_gets_settled_and_the_sender_an_acceptance",
    ),
    "1.5 delivery count and message size": ("test_an_attach_has_the_counts_and_sizes_of_a_router_without_limits",),
    "1.5 what is not sent": ("test_an_answering_attach_has_no_further_fields",),
    "1.5 router-initiated attaches": LATER + "auto-links and other routers",
    "1.6 capacity": ("test_the_capacity_is_the_first_credit",),
    "1.6 granted at once": ("test_an_anonymous_sender_has_full*", "test_a_fallback_consumer_is_enough"),
    "1.6 otherwise pending": ("test_without_a_consumer_there_is_no_credit",),
    "1.6 per link": ("test_capacity_is_per_link",),
    "1.7 name in use": ("test_a_name_in_use_closes_the_connection",),
    "1.7 no stealing": ("test_the_same_name_serves_each_direction_session_and_connection",),
    "1.7 routed links renamed": ROUTES,
    "1.7 detach answered": (
        "test_a_detach_is_answered_in_kind",
        "test_a_detached_link_leaves_nothing_to_resume",
    ),
    "1.7 input waiting": ("test_messages_sent_before_the_detach_are_delivered",),
    "1.7 end or loss": (
        "test_the_end_of_a_session_loses_its_links",
        "test_the_loss_of_the_connection_loses_its_links",
    ),
    "1.7 expiry": ("test_no_terminus_outlives_its_link",),
    "1.8": POLICY,
    "1.9": TENANTS,
    "1.10 built-in addresses": LATER + "the management agent and other routers",
    "2.1 priority": ("test_the_priority_of_an_address_changes_no_byte_of_its_messages",),
    "2.1 tags": ("test_tags_are_a_counter_of_eight_bytes_of_each_link",),
    "2.1 inherited settlement and state": ("test_a_copy_inherits_settled_and_the_state_on_the_transfer",),
    "2.1 edge echo": EDGE,
    "2.1 credit does not gate": ("test_credit_does_not_gate_the_choice",),
    "2.1 too many hops": ("test_a_trace_of_two_or_more_is_released",),
    "2.2.1 in-process": ("test_a_consumer_inside_the_router_shields_the_links",),
    "2.2.2 round robin": (
        "test_local_links_take_strict_turns",
        "test_turns_survive_coming_and_going",
        "test_a_second_link_has_the_next_turn_whenever_it_comes",
    ),
    "2.2.3 remote": MESH,
    "2.3 local candidates": (
        "test_the_fewest_waiting_or_unsettled_gets_the_next",
        "test_a_full_link_is_passed_over_while_another_has_room",
        "test_three_receivers_share_250",
    ),
    "2.3 order and ties": ("test_idle_links_take_turns", "test_an_earlier_link_wins_a_tie"),
    "2.3 remote candidates, outstanding, consequence": MESH,
    "2.3 nothing eligible": ("test_the_least_loaded_receiver_gets_the_message_when_all_are_full",),
    "2.3 subscribers": ("test_an_inside_consumer_is_no_candidate_beside_a_link",),
    "2.3 creditless receiver": ("test_one_stalled_receiver_keeps_one_message",),
    "2.3 many receivers": ("test_the_cost_of_a_choice_is_bounded",),
    "2.4 copies": ("test_every_receiver_gets_each_multicast_message_once_and_in_order",),
    "2.4 remote suppression": MESH,
    "2.4 unsettled end to end": (
        "test_a_multicast_settles_in_three*",
        "test_settled_receivers*",
        "test_a_multicast_to_settled*",
    ),
    "2.4 outcome": (
        "test_the_outcome_comes_after_the_last_copys",
        "test_the_highest_outcome_wins",
        "test_settlement_comes_after_every_copys_settlement",
        "test_details_and_non_terminal_states_stay_with_the_copies",
        "test_a_transactional_outcome_counts_as_rejected",
    ),
    "2.4 lost receiver": (
        "test_a_lost_receiver_counts*",
        "test_the_outcome_of_a_receiver_counts_after_its_connection_is_lost",
    ),
    "2.4 sender's side": (
        "test_the_settlement_of_the_sender_reaches_every_copy",
        "test_receivers_are_notified_of_a_lost_sender",
        "test_an_inside_consumer_that_answers_after_the_sender_left_does_no_harm",
    ),
    "2.4 creditless receiver": ("test_a_receiver_without_credit_holds_back*", "test_a_multicast_is_held*"),
    "2.4 no consumers": ("test_a_multicast_without_consumers_is_released",),
    "2.5 flood, linkBalanced": MESH,
    "2.5 unavailable": ("test_an_anonymous_message_to_an_unavailable_address_is_rejected",),
    "2.6 targeted, no destination": (
        "test_targeted_without_destination_unsettled_is_released_and_drained",
        "test_targeted_without_destination_presettled_is_dropped_and_drained",
    ),
    "2.6 targeted, destinations known but none found": MESH,
    "2.6 anonymous, unknown or no consumers": (
        "test_an_anonymous_message_without_a_consumer_is_released_and_paid_back",
    ),
    "2.6 anonymous, link-route address": ROUTES,
    "2.6 anonymous, no to": ("test_an_anonymous_message_without_an_address_is_rejected",),
    "2.6 anonymous, empty to": ("test_an_anonymous_message_without_a_consumer_is_released_and_paid_back",),
    "2.6 fallback": (
        "test_the_fallback_gets_messages_that_no_other_consumer_takes",
        "test_the_fallback_gets_a_streamed_message_too",
        "test_a_fallback_sender_does_not_fall_back",
    ),
    "2.6 edge": EDGE,
    "2.7 out-link gone, queued or in part": (
        "test_a_lost_receiver_releases_its_queued_messages_and_fails_the_delivered_ones",
        "test_credit_6_of_10_then_close",
        "test_a_receiver_lost_mid_stream_releases",
    ),
    "2.7 out-link gone, fully sent": (
        "test_a_failed_delivery_is_modified_not_lost",
        "test_an_outcome_known_before_the_loss_stands",
        "test_the_loss_of_a_whole_session*",
    ),
    "2.7 out-link gone, pre-settled": ("test_presettled_messages_of_a_lost_receiver_are_dropped",),
    "2.7 in-link gone, complete": (
        "test_a_lost_senders_message_stays_with_its_receiver",
        "test_a_lost_senders_receiver_in_second_mode_is_settled_too",
    ),
    "2.7 in-link gone, incomplete": (
        "test_a_message_behind_that_of_a_lost_client_is_not_sent_over_its_lost_link",
        "test_a_sender_lost_mid_stream_takes_its_message_back",
        "test_a_message_of_a_lost_sender_leaves_no_trace_with_receivers_that_got_none_of_it",
    ),
    "2.7 routed link": ROUTES,
    "2.8 credit at once": ("test_presettled_credit_comes_back_at_once",),
    "2.8 drop rule": (
        "test_capacity_10_without_credit_15_sends_leave_1_and_11_to_15",
        "test_a_message_being_written_is_not_dropped",
        "test_unsettled_messages_are_not_dropped",
        "test_dropping_examines_only_deliveries_that_may_be_dropped",
        "test_dropped_deliveries_do_not_pile_up_in_the_queue",
        "test_a_message_that_leaves_the_queue_from_the_middle_leaves_no_dropped_one_in_front",
        "test_a_delivery_removed_to_free_its_window_is_not_dropped_again",
        "test_deliveries_that_the_sender_settled_while_they_waited_may_be_dropped",
    ),
    "2.8 counted": ("test_a_large_backlog_after_the_consumer_has_gone_is_counted",),
    "2.9 header untouched": ("test_the_header_is_not_touched",),
    "2.9 modified, as it was said": ("test_a_modified_outcome_is_relayed_unchanged",),
    "2.10 and 5.6 counters": (
        "test_outcomes_are_counted_on_both_links_and_by_the_router",
        "test_three_step_outcomes_are_counted_once_on_either_side",
        "test_a_lost_receivers_deliveries_are_counted",
        "test_slow_deliveries_are_counted_by_age",
        "test_an_address_counts_its_incoming_and_outgoing_messages",
        "test_undelivered_messages_count_as_ingress",
        "test_fallback_links_count_neither_as_ingress_nor_as_egress",
    ),
    "2.11 resend released": LATER + "not in the router that this one stands in for",
    "3 stopping": ("test_stopping_*",),
    "3.1 pre-settled": ("test_credit_of_presettled_messages_is_paid_back_at_once",),
    "3.1 unsettled": (
        "test_credit_of_unsettled_messages_is_paid_back_when_settled",
        "test_credit_that_is_due_is_there_before_the_sender_runs_out",
    ),
    "3.1 inter-router and edge": MESH,
    "3.1 refused by the router": ("test_credit_for_refused_messages_is_granted_again_at_once",),
    "3.1 taken back by the sender": ("test_a_sender_that_aborts_every_delivery_gets_its_credit_back",),
    "3.1 no destination": ("test_credit_is_not_paid_back*", "test_the_last_credit*"),
    "3.1 link-routed": ROUTES,
    "3.1 batched": ("test_credit_is_one_flow_for_a_pass", "test_a_message_in_pieces*"),
    "3.2 first consumer": (
        "test_the_first_consumer_brings_credit_to_every_sender",
        "test_the_first_fallback_consumer_brings_credit_too",
    ),
    "3.2 no revocation": ("test_losing_the_last_consumer_takes_nothing_back",),
    "3.3 drain": ("test_the_first_message_without_a_receiver_starts_a_drain",),
    "3.3 drained": (
        "test_a_consumer_after_the_answer_brings_the_full_capacity",
        "test_unsettled_messages_are_left_out_of_the_full_capacity",
        "test_a_message_on_its_way_in_when_the_drain_is_answered_counts_once",
    ),
    "3.3 consumer before the answer": (
        "test_a_consumer_before_the_answer_brings_the_pending_credit_only",
        "test_an_answer_that_crosses_the_new_credit_costs_nothing",
    ),
    "3.4 receiver's drain": (
        "test_a_drain_sends_the_waiting_messages_and_returns_the_remaining_credit",
        "test_a_drain_leaves_messages_beyond_the_credit",
        "test_a_drain_waits_for_the_message_under_way",
    ),
    "3.5 routed links": ROUTES,
    "3.6 begin's numbers": LATER + "tests/engine and tests/e2e: what begin says is the engine's and the listener's",
    "3.6 bounded by default": ("test_the_session_window_bounds*", "test_a_receiver_that_does_not_read*"),
    "3.6 a small window": ("test_a_window_smaller*", "test_many_unfinished*"),
    "3.6 peer's window and frame size": ("test_the_receivers_window*", "test_taking_a_message_back*"),
    "3.6 frames of a whole message": ("test_a_message_that_waited_whole*", "test_joined_pieces*"),
    "3.6 channel-max, frame sizes": LATER + "tests/config and tests/engine: the listener's attributes",
    "3.7 Q2, multicast": (
        "test_a_multicast_is_held_to_its_slowest_receiver",
        "test_a_small_multicast_is_not_held_to_its_slowest_receiver",
    ),
    "3.7 Q2 switched off": ("test_discarded_input_is_not_held",),
    "3.7 in-process, whole only": (
        "test_inside_*",
        "test_unsubscribing_ends_an_inside_*",
        "test_the_first_inside_consumer_*",
    ),
    "3.7 Q3": LATER + "tests/engine: the output's high-water mark",
    "3.8 when streaming starts": (
        "test_100_kb_of_an_unfinished_message_are_kept_back",
        "test_a_long_message_streams_through",
        "test_messages_behind_a_streamed_message_follow_it",
        "test_a_message_without_a_receiver_does_not_wait_for_its_end",
        "test_a_head_that_does_not_end_is_given_up",
    ),
    "3.8 a window nearly used up": (
        "test_a_receiver_that_opens_its_window_by_message*",
        "test_a_receiver_that_counts_its_window_by_message*",
    ),
    "3.8 streaming mark and links": MESH,
    "3.9 anonymous": ("test_an_anonymous_sender_is_never_drained",),
    "4.1 with message logging": LATER + "test_messagelog.py: what cannot be read is logged as far as it can",
    "4.1 link-routed": ROUTES,
    "4.1 anonymous": ("test_an_anonymous_link_reads_the_properties",),
    "4.1 targeted": ("test_sections_behind_the_annotations_are_not_read_on_a_targeted_link",),
    "4.1 order and absence": (
        "test_any_of_the_sections_may_be_absent",
        "test_sections_out_of_order_are_refused",
        "test_header_needs_a_list_and_annotations_a_map",
    ),
    "4.1 zero bytes": ("test_a_message_of_no_bytes_is_invalid",),
    "4.1 too few bytes": ("test_a_truncated_head_is_invalid", "test_the_head_may_come_byte_by_byte"),
    "4.2 section check": ("test_an_invalid_message_is_rejected_and_paid_back",),
    "4.2 router annotations": (
        "test_router_annotations_of_a_wrong_type_are_rejected",
        "test_an_odd_map_is_rejected",
    ),
    "4.2 no address, unavailable": ("test_no_address_and_an_unavailable_one",),
    "4.2 routed tag": ROUTES,
    "4.2 user-id, target, size": POLICY,
    "4.3 phase, stream": ("test_a_phase_other_than_0_is_written_and_the_stream_mark_is_passed_on",),
    "4.3 to": (
        "test_a_targeted_message_gets_to_ingress_and_trace",
        "test_the_annotation_to_has_the_target_as_the_client_wrote_it",
    ),
    "4.3 ingress, trace": (
        "test_an_anonymous_message_gets_ingress_and_trace",
        "test_ingress_is_kept_and_trace_appended_to",
    ),
    "4.3 order, swallowed keys": ("test_the_class_key_and_the_bare_prefix_are_swallowed",),
    "4.3 strip modes": ("test_every_way_to_strip", "test_a_multicast_writes_each_receiver_its_own_head"),
    "4.3 all of the users' keys": ("test_users_annotations_come_first_and_unchanged_wherever_they_stood",),
    "4.3 anonymous choice": (
        "test_a_to_annotation_routes_an_anonymous_message_where_the_router_honours_annotations",
        "test_a_to_override_brings_its_phase",
    ),
    "4.3 targeted ignores to": ("test_the_property_to_is_ignored_on_a_targeted_link_and_passed_unchanged",),
    "4.3 edge, link-routed": EDGE,
    "4.3 delivery annotations": ("test_delivery_annotations_and_the_bare_message_keep_their_bytes",),
    "4.3 message-format, passed on": ("test_the_message_format_is_passed_on",),
    "4.4 body": ("test_a_body_in_many_frames_arrives_byte_for_byte",),
    "4.4 aborted before forwarding": (
        "test_an_abort_before_forwarding_is_forgotten",
        "test_aborting_an_unsent_delivery_changes_nothing",
    ),
    "4.4 aborted after part was sent": ("test_an_abort_after_part_was_sent_reaches_the_receiver",),
    "4.4 truncation": ("test_a_sender_lost_mid_stream_takes_its_message_back",),
    "4.4 settled flag on the last frame": ("test_the_settled_flag_may_come_on_the_last_frame",),
    "4.4 outcome while input arrives": (
        "test_an_outcome_before_the_end_is_reported_at_once_and_settled_at_the_end",
        "test_a_non_terminal_state_before_the_end_ends_nothing",
        "test_the_sender_may_settle_before_the_end",
        "test_whole_messages_have_one_outcome",
    ),
    "4.4 settlement of a part": ("test_a_settlement_without_a_state_before_the_end_is_remembered",),
    "4.5 states": (
        "test_every_state_is_relayed_to_the_sender",
        "test_every_state_is_relayed_to_the_receiver",
        "test_non_terminal_states_repeat_and_a_terminal_one_is_final",
    ),
    "4.5 on the transfer": ("test_a_state_on_the_transfer_goes_with_the_transfer",),
    "4.6 patterns": (
        "test_a_presettled_delivery_is_presettled_end_to_end",
        "test_the_receiver_settles_first",
        "test_a_delivery_settles_in_three_steps",
        "test_the_sender_settles*",
        "test_a_sender_may_settle_a_waiting_delivery",
        "test_both_settle_at_once",
    ),
    "4.6 settlement without a state": ("test_a_settlement_without_a_state_stays_without_one",),
    "4.6 batches": ("test_a_batch_is_counted_one_by_one",),
    "4.6 resumption": ("test_a_detached_link_leaves_nothing_to_resume",),
    "4.7 not acted upon": ("test_header_and_properties_are_not_acted_upon",),
    "5.5 life cycle": (
        "test_addresses_come_and_go_without_looking_at_the_others",
        "test_a_record_goes_with_its_last_user",
        "test_anonymous_traffic_makes_no_record",
        "test_the_spellings_remembered_for_an_address_are_bounded",
    ),
}

#: The modules whose tests each belong to a row.
MODULES = ("attaching", "forwarding", "credit", "messages")
TESTS = sorted(
    node.name
    for module in MODULES
    for node in ast.parse(Path(__file__).with_name(f"test_{module}.py").read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
)
PATTERNS = sorted({name for names in ROWS.values() if isinstance(names, tuple) for name in names})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_test_named_in_the_table_exists(pattern: str) -> None:
    assert any(fnmatchcase(name, pattern) for name in TESTS)


def test_every_test_stands_for_a_row() -> None:
    assert [name for name in TESTS if not any(fnmatchcase(name, pattern) for pattern in PATTERNS)] == []


def test_a_row_without_a_test_says_why() -> None:
    assert all(names if isinstance(names, tuple) else names.startswith(LATER) for names in ROWS.values())


def test_the_rows_stand_in_their_order() -> None:
    numbers = [tuple(int(part) for part in row.split()[0].split(".") if part.isdigit()) for row in ROWS]
    assert [number[:2] for number in numbers] == sorted(number[:2] for number in numbers)


def test_every_section_has_its_rows() -> None:
    last = {1: 10, 2: 11, 3: 9, 4: 7}
    sections = {tuple(map(int, row.split()[0].split(".")[:2])) for row in ROWS if "." in row.split()[0]}
    assert {(part, number) for part in last for number in range(1, last[part] + 1)} <= sections
