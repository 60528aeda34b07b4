"""The needs of networks with Qpid Dispatch routers, and the tests that fail where trouter does not meet one.

A test is named as folder.module.function, without the common tests. and test_. The first of a row, if it is of this
folder, uses the strict peer; the others concern a part that another test checks better.
"""

from __future__ import annotations

import pytest

from tests.advisories.test_rows import functions_of

HERE = "interop/strict"
ROWS: dict[str, tuple[str, ...]] = {
    "capabilities of routers' links, dialling and dialled": (
        f"{HERE}.beside.links_between_routers_name_their_kind_by_a_bare_symbol",
        f"{HERE}.above.an_uplink_has_the_address_and_the_heartbeat_that_an_interior_router_expects",
        f"{HERE}.above.the_phase_of_an_address_is_named_by_a_bare_symbol",
        f"{HERE}.reading.a_capability_is_one_bare_symbol",
    ),
    "neighbours are confirmed at the first hello, and in reach at once": (
        f"{HERE}.meeting.two_ticks_of_qpid_dispatch_are_enough_to_become_neighbours",
        f"{HERE}.beside.the_router_sends_hellos_and_address_updates_in_order_while_running",
        "mesh.hellos.every_tick_has_its_hello_though_some_come_late_and_the_next_not",
        "sim.first_messages.unreachable_routers_are_not_listed",
    ),
    "defaultDistribution: unavailable": (
        f"{HERE}.below.with_a_default_that_takes_no_address_all_that_routers_need_is_served",
        "e2e.drop_in_routing.a_router_whose_default_is_unavailable_can_be_managed",
    ),
    "an edge router's own linkRoute": (
        f"{HERE}.above.a_link_route_without_a_container_here_hides_none_above",
    ),
    "a delivery-tag over 32 bytes": (
        f"{HERE}.beside.a_tag_that_is_too_long_costs_its_delivery_and_nothing_else",
        f"{HERE}.beside.a_tag_of_a_client_passes_up_to_the_length_that_qpid_dispatch_takes",
    ),
    "long names": (
        f"{HERE}.beside.names_are_as_long_as_addresses_may_be_and_more",
        f"{HERE}.below.a_long_name_is_served_below_too",
        f"{HERE}.above.a_long_name_goes_up",
    ),
    "streams on edge connections, both ways": (
        f"{HERE}.below.a_long_message_goes_down_on_a_link_of_its_own_where_the_edge_router_offers_that",
        f"{HERE}.below.a_long_message_comes_up_on_a_link_without_an_address",
        f"{HERE}.above.a_long_message_goes_up_on_a_link_of_its_own",
        f"{HERE}.above.a_long_message_comes_down_on_a_link_of_its_own",
    ),
    "presettledCount": ("e2e.drop_in_routing.an_outgoing_link_counts_dropped_presettled_deliveries",),
    "deliveriesIngress": (f"{HERE}.beside.a_message_of_a_router_on_a_routed_link_counts_as_ingress",),
    "transitOutstanding, and a QUERY of many addresses": (
        f"{HERE}.beside.transit_deliveries_under_way_are_counted_from_the_first_delivery_on",
        "e2e.drop_in_routing.all_of_many_addresses_arrive_whole",
    ),
    "a connection deleted by management": ("management.changes.a_connection_is_closed_with_a_word",),
    "the status of a connector, and the failover list of an open": (
        f"{HERE}.meeting.a_connector_succeeds_at_the_open_and_follows_the_failover_list_of_the_peer",
        f"{HERE}.meeting.a_connector_keeps_dialling_and_shows_the_reason_of_the_last_failure",
    ),
    "waits between tries": (
        "connections.connector_patience.a_connector_waits_five_seconds_at_most_and_never_twice_the_same",
    ),
    "owed credit": (
        f"{HERE}.beside.a_waiting_sender_gets_credit_again_each_time",
        "e2e.owed_credit.a_sender_that_sends_one_message_for_each_flow_comes_to_its_end",
    ),
    "a client's own trace": (
        f"{HERE}.beside.a_clients_trace_is_kept_where_nothing_is_stripped",
        "e2e.drop_in_routing.a_clients_own_trace_is_kept_where_nothing_is_stripped",
    ),
    "delivery-failed of a relayed outcome": (
        f"{HERE}.beside.a_modified_outcome_of_the_neighbour_is_relayed_unchanged",
        f"{HERE}.above.a_modified_outcome_of_the_router_above_is_relayed_unchanged",
        f"{HERE}.below.a_message_for_the_edge_router_carries_its_ingress_and_its_trace",
    ),
    "a router that stops or drains withdraws no address": (
        f"{HERE}.stopping.nothing_but_drains_and_a_close_is_said_on_term",
        f"{HERE}.stopping.what_ends_while_a_router_stops_is_told_to_none",
        f"{HERE}.stopping.a_router_that_drains_does_not_say_that_receivers_have_left",
        "core.leaving.no_receiver_that_goes_is_told_to_an_edge_router",
    ),
    "a router that stops keeps its neighbours until its close": (
        f"{HERE}.stopping.a_router_that_waits_for_outcomes_keeps_its_neighbours",
        "core.leaving.what_routers_tell_each_other_goes_on_while_one_stops",
    ),
    "an edge router whose interior router ends, and one that ends": (
        f"{HERE}.stopping_edges.an_edge_router_that_stops_withdraws_nothing",
        f"{HERE}.stopping_edges.an_edge_router_recovers_from_every_end_of_the_router_above",
    ),
    "texts that programs match": (
        f"{HERE}.below.a_link_route_of_the_edge_router_is_known_everywhere_until_it_is_deleted",
        "management.descriptions.a_refusal_is_worded_as_by_qpid_dispatch",
        "e2e.log_readers.a_log_reader_finds_the_router_id_the_mode_and_the_version",
    ),
}  # fmt: skip
NAMES = sorted({name for names in ROWS.values() for name in names})


@pytest.mark.parametrize("name", NAMES)
def test_every_test_named_in_the_table_exists(name: str) -> None:
    folder, module, function = name.split(".")
    assert function in functions_of(folder, module)
