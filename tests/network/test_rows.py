"""The rows of routing.md section 8 on networks, and the tests that would fail if one did not hold.

Rows are in the order of the section; behind the colon is the part of a row that the tests check. Parts on one router
only have their tests in tests/core, whose table lists them by section. A test is named as folder.module.function,
without the common tests. and test_. The text behind ``NO`` is the reason why a part is not here; the tests beside it
show that it is refused.
"""

from __future__ import annotations

import pytest

from tests.advisories.test_rows import NO, functions_of

ONE_ROUTER_TOO: dict[str, tuple[str, ...]] = {
    "Start-up: six mismatches of role and mode, in files and through management": (
        "config.load.an_error_names_its_place_and_its_cause",
        "config.changes.a_value_that_a_file_may_not_have_is_refused"),
    "Annotations: ingress, trace and the user's own keys over hops": (
        "core.networks.trace_and_ingress_show_the_path_and_annotations_of_the_sender_stay",
        "network.spans.every_outcome_comes_back_from_any_distance",
        "core.edges.the_interior_router_is_where_an_edge_routers_messages_enter"),
}  # fmt: skip

MESH: dict[str, tuple[str, ...]] = {
    "Mesh: every outcome, pre-settled, unsettled, three steps, over one hop and more": (
        "network.two_routers.a_message_goes_to_a_consumer_on_the_other_router",
        "network.spans.every_outcome_comes_back_from_any_distance",
        "network.spans.presettled_messages_cross_in_their_order",
        "core.across.each_order_of_settlement_ends_the_delivery_on_every_router"),
    "Mesh: no consumer, no credit; anonymous without a receiver is released": (
        "network.spans.no_receiver_listens_any_more", "network.edges.messages_without_a_receiver_come_back"),
    "Mesh: closest prefers what is here and takes what is elsewhere": (
        "core.networks.closest_goes_to_the_nearest_receiver_and_then_to_the_next_one",
        "network.spans.closest_goes_to_the_nearest_router_until_its_receiver_leaves"),
    "Mesh: balanced uses both sides": (
        "core.networks.balanced_looks_at_each_connection_once_however_many_routers_lie_behind",
        "core.uplinks.local_and_remote_consumers_share_by_the_treatment_of_the_address"),
    "Mesh: in-transit counters": ("core.networks.routers_count_outcomes_ingress_egress_and_transit",
                                  "network.seeing.transit_is_counted_where_messages_pass"),
    "Mesh: the table of wildcards": ("core.patterns.reference_table",),
    "Mesh: addresses of one character and of 2,019 bytes": (
        "network.spans.every_outcome_comes_back_from_any_distance",),
    "Mesh: a client on the port for routers": (
        "network.connectors.a_client_at_a_listener_for_routers_is_refused_with_that_reason",),
    "Mesh: management closes a client's connection and no router's": (
        "management.changes.a_connection_is_closed_with_a_word",
        "network.seeing.a_router_is_managed_from_any_other",
        "network.seeing.a_connection_between_routers_is_not_closed_by_management"),
    "Mesh: an address is treated as the router says that configured it": (
        "core.across.the_router_that_configured_an_address_sets_its_treatment",),
    "Mesh: states of extensions and transactions cross hops, not with multicast": (
        "core.across.states_cross_hops_in_both_directions", "core.across.a_multicast_drops_a_state_that_is_no_outcome"),
    "Mesh: links for streams are closed down to the limit": (
        "core.networks.idle_links_for_streams_beyond_those_kept_are_closed_a_few_at_a_time",),
    "Mesh: receivers that fail over, in order and not": (
        "core.across.a_lost_receiver_returns_its_messages_and_later_messages_reach_another_receiver",
        "network.edges.a_receiver_that_leaves_in_the_middle_of_a_message_holds_no_other_up"),
    "Mesh: priorities beside each other": ("core.across.messages_of_all_priorities_arrive",),
    "Mesh: unavailable and anonymous": (
        "core.networks.a_message_for_an_unavailable_address_from_a_trunk_is_released",),
}  # fmt: skip

CREDIT: dict[str, tuple[str, ...]] = {
    "Credit: four drains by a receiver, here and over link routes": (
        "core.across.a_drain_sends_the_waiting_messages_and_ends_the_credit",
        "core.link_routes_across.a_drain_reaches_the_container_and_its_answer_the_receiver",
        "core.link_routes_across.a_container_drains_a_sender"),
    "Credit: the last receiver leaves, 249 are drained, another one comes": (
        "core.across.the_last_receiver_leaves_and_another_comes_back",),
    "Credit: a routed link's is the far end's, before and after the attach": (
        "core.link_routes_across.credit_of_a_receiver_is_the_containers_before_and_after_the_answer",
        "network.edge_link_routes.links_go_to_the_container_behind_an_edge_router"),
    "Credit: blocked links are told": (
        "core.watch.a_link_without_credit_is_blocked_until_it_has_some",
        "network.seeing.addresses_and_links_show_ingress_transit_and_egress"),
}  # fmt: skip

MULTICAST: dict[str, tuple[str, ...]] = {
    "Multicast: everybody once, over interior and edge routers, small and large": (
        "network.edges.every_receiver_gets_one_copy_of_a_multicast",
        "network.spans.a_multicast_reaches_every_receiver_once_from_everywhere",
        "network.edges.a_large_message_crosses_everything_whole",
        "core.uplinks.a_multicast_for_consumers_here_goes_up_too"),
    "Multicast: the precedence of outcomes, with one step and with three": (
        "core.across.the_highest_outcome_of_a_multicast_wins_on_every_router",),
    "Multicast: receivers that leave in the middle": (
        "core.networks.a_multicast_stream_goes_on_when_one_of_its_receivers_is_lost",
        "network.edges.a_receiver_that_leaves_in_the_middle_of_a_message_holds_no_other_up"),
    "Multicast: senders wait for a subscriber, anonymous ones do not": (
        "core.uplinks.producers_have_credit_while_a_remote_receiver_takes_their_messages",
        "network.edges.messages_without_a_receiver_come_back"),
    "Multicast: nothing is left of it": (
        "core.networks.a_multicast_stream_goes_on_when_one_of_its_receivers_is_lost",
        "sim.routers.after_a_storm_every_message_has_its_end_and_the_network_its_order"),
}  # fmt: skip

DISTRIBUTION: dict[str, tuple[str, ...]] = {
    "Distribution: targeted, anonymous and answers over any span": (
        "network.spans.the_way_to_a_dynamic_address_leads_over_any_number_of_hops",
        "network.spans.stock_clients_on_different_routers", "network.two_routers.an_answer_finds_its_way_back",
        "network.edges.an_answer_finds_its_requester"),
    "Distribution: closest is the nearest until it closes": (
        "core.networks.closest_goes_to_the_nearest_receiver_and_then_to_the_next_one",
        "core.networks.closest_takes_turns_among_routers_at_the_same_cost"),
    "Distribution: the numbers of balanced": (
        "core.networks.balanced_sends_eleven_to_the_local_receiver_before_the_first_to_a_router_at_a_cost_of_ten",
        "core.networks.balanced_over_linear_costs_of_ten_and_twenty",
        "core.networks.balanced_without_receivers_in_the_middle_keeps_the_way_s_cost_ahead",
        "core.networks.balanced_over_a_triangle_of_ten_and_fifty"),
    "Distribution: multicast counts are equal": ("core.networks.a_multicast_reaches_every_receiver_once",),
    "Distribution: attaches to containers, here first, elsewhere in turn": (
        "core.link_routes_across.containers_here_come_first_and_elsewhere_they_take_turns",),
    "Distribution: attaches go elsewhere when a container is lost": (
        "core.link_routes_across.when_a_container_is_lost_links_are_lost_and_go_to_another",),
    "Distribution: waypoints alone, in a row and beside each other": (
        "network.link_routes.auto_links_serve_the_whole_network",
        "core.across.waypoints_one_behind_the_other_are_passed_in_their_order",
        "core.across.waypoints_beside_each_other_share_the_work"),
    "Phases: a waypoint between any two places": (
        "network.edges.phases_and_fallbacks_are_kept_across_edge_routers",
        "network.spans.stages_of_an_address_on_different_routers"),
    "Phases: a chain of nine stages": ("core.networks.a_chain_of_phases_crosses_routers_at_each_stage",),
    "Fallback: from and to the primary in turn, senders of both kinds": (
        "core.networks.messages_turn_to_the_fallback_and_back",
        "core.networks.a_fallback_that_cannot_be_reached_does_not_keep_the_message"),
    "Fallback: every placement at edge and interior routers": (
        "network.edges.phases_and_fallbacks_are_kept_across_edge_routers",
        "core.uplinks.phases_and_fallbacks_survive_the_hop"),
    "Auto-links: for the whole network": ("network.link_routes.auto_links_serve_the_whole_network",),
}  # fmt: skip

LINK_ROUTES: dict[str, tuple[str, ...]] = {
    "Link routes: prefixes and patterns lead to the container": (
        "network.link_routes.messages_go_to_the_container_and_come_from_the_container",
        "network.link_routes.a_name_is_made_unique_once",
        "core.link_routes_across.the_attach_arrives_with_everything_and_its_name_is_made_unique_once"),
    "Link routes: tags are kept, long ones are not taken": (
        "core.link_routes_across.messages_and_tags_pass_byte_by_byte",
        "engine.limits.a_limit_holds_at_n_and_at_n_plus_1"),
    "Link routes: detaches and closes are relayed as they are": (
        "core.link_routes_across.detaches_pass_with_their_word_in_both_directions",
        "core.link_routes_across.an_attach_that_the_container_refuses_is_refused"),
    "Link routes: empty transfers are rejected": (
        "core.link_routes_across.an_empty_message_is_rejected_and_the_link_goes_on",),
    "Link routes: external prefixes from both sides of a hop": (
        "core.link_routes_across.prefixes_of_the_container_are_its_own",
        "network.link_routes.messages_go_to_the_container_and_come_from_the_container"),
    "Link routes: outcomes and extension states over three routers": (
        "core.link_routes_across.states_cross_three_routers",),
    "Link routes: large messages do not wait for each other": (
        "core.link_routes_across.large_messages_on_one_way_do_not_wait_for_each_other",),
    "Link routes: what is lost is lost at both ends": (
        "core.link_routes_across.a_connection_between_routers_that_breaks_loses_the_link_at_both_ends",
        "network.link_routes.the_container_sees_a_lost_link_when_a_client_disconnects"),
    "Link routes: addresses are addresses again without them": (
        "network.link_routes.a_container_that_leaves_takes_its_routes_along",),
    "Connection-scoped: known everywhere, both patterns at once, gone with the connection": (
        "core.link_routes_across.a_route_requested_by_a_connection_is_known_everywhere_and_ends_with_the_connection",
        "management.changes.a_connection_makes_link_routes_for_itself_alone"),
    "Connection-scoped: through edge routers": (
        "network.edge_link_routes.links_go_to_the_container_behind_an_edge_router",
        "network.edge_link_routes.routes_are_forgotten_when_the_edge_router_has_no_container"),
    "Exchange": (
        "core.exchanges.an_exchange_and_its_next_hops_may_be_on_any_router",
        "core.exchanges.a_long_message_streams_through_an_exchange_to_other_routers",
        "network.exchanges.an_exchange_serves_senders_and_next_hops_everywhere",
        "network.exchanges.bindings_come_and_go_while_messages_cross_the_network"),
}  # fmt: skip

MESSAGES: dict[str, tuple[str, ...]] = {
    "Priority: an address's own, and the header where there is none": (
        "core.networks.a_message_takes_the_link_of_its_priority",
        "core.networks.a_priority_without_a_link_takes_the_next_lower_one",
        "network.seeing.links_between_routers_have_their_types_and_priorities"),
    "Abort: message-routed over routers": (
        "core.networks.an_aborted_stream_is_aborted_on_every_router_and_the_next_messages_pass",
        "network.spans.a_stream_that_breaks_off_is_aborted_at_the_receiver_and_others_go_on"),
    "Abort: routed over routers": ("core.link_routes_across.a_message_that_breaks_off_is_aborted_at_the_container",),
    "Counters: of links, routers and addresses agree": (
        "core.networks.routers_count_outcomes_ingress_egress_and_transit",
        "network.seeing.addresses_and_links_show_ingress_transit_and_egress"),
}  # fmt: skip

TOPOLOGY: dict[str, tuple[str, ...]] = {
    "Topology: costs pick the way": ("network.seeing.every_router_is_listed_with_its_next_hop_and_cost",
                                     "mesh.tree.every_router_works_out_the_same"),
    "Topology: a connector is deleted, does not return, a dearer one changes nothing, a cheaper one does": (
        "network.failures.a_deleted_connector_moves_the_path_and_a_cheaper_new_one_takes_the_path",
        "network.connectors.a_deleted_connector_takes_the_neighbour_along"),
    "Topology: what a router had before its restart is forgotten": (
        "network.failures.a_router_that_is_killed_under_load_and_started_again",
        "mesh.mesh.a_restart_voids_the_earlier_state_of_a_router"),
    "Edge: every kind of traffic in all placements": (
        "network.edges.a_message_reaches_its_consumer_on_every_router", "network.edges.an_answer_finds_its_requester",
        "network.edges.every_receiver_gets_one_copy_of_a_multicast",
        "network.edges.a_large_message_crosses_everything_whole"),
    "Edge: who takes what, as it changes": (
        "core.edges.an_edge_router_is_notified_when_its_addresses_gain_and_lose_consumers",
        "core.edges.addresses_attached_before_the_tracking_link_are_reported_too"),
    "Edge: the other uplink takes over": ("network.edge_uplinks.the_other_uplink_takes_over_with_every_address",),
    "Edge: links of a routed way": (
        "core.link_routes_across.the_attach_arrives_with_everything_and_its_name_is_made_unique_once",),
    "Edge: misuse of heartbeats": (
        "core.edges.a_peer_that_stops_its_heartbeats_counts_as_silent",
        "core.edges.a_service_attached_wrongly_is_closed_without_a_word"),
    "Connection: what is said of where else to go": (
        "e2e.open.properties_and_places_to_fail_over_to_are_reported",
        "connections.failover_list.ports_may_be_numbers_and_absent_and_hosts_ipv6"),
    "Connection: the list after failing over, and emptied": (
        "network.connectors.a_router_dials_the_failover_list_of_a_lost_neighbour",
        "connections.failover_list.a_new_list_keeps_only_the_configured_endpoint_and_the_one_in_use",
        "connections.failover_list.an_empty_list_leaves_the_configured_endpoint"),
    "Connection: the status of a connector": (
        "network.connectors.a_connector_to_a_neighbour_shows_success_and_the_container",
        "network.connectors.a_connector_to_a_listener_for_clients_shows_that_the_peer_is_no_router"),
}  # fmt: skip

ROWS = ONE_ROUTER_TOO | MESH | CREDIT | MULTICAST | DISTRIBUTION | LINK_ROUTES | MESSAGES | TOPOLOGY
TESTS = sorted({name for names in ROWS.values() for name in names if not name.startswith(NO)})
#: The rows of the section on networks; the others are about one router.
ASKED = [
    "Start-up", "Annotations", "Mesh", "Credit", "Multicast", "Distribution", "Phases", "Fallback", "Auto-links",
    "Link routes", "Connection-scoped", "Exchange", "Priority", "Abort", "Counters", "Topology", "Edge", "Connection",
]  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_every_test_named_in_the_table_exists(name: str) -> None:
    folder, module, function = name.split(".")
    assert function in functions_of(folder, module)


def test_no_row_is_missing() -> None:
    assert list(dict.fromkeys(row.split(":")[0] for row in ROWS)) == ASKED


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_a_test(row: str) -> None:
    assert any(not name.startswith(NO) for name in ROWS[row])
