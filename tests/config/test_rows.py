"""Every point of the table of strictness, and the tests for it: each point has at least one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trouter.config.strictness import POINTS

TESTS = Path(__file__).parents[1]

#: By test, as folder.module.function without the common parts: the points that it checks.
HOLDS: dict[str, tuple[str, ...]] = {
    "e2e.open.a_peer_that_has_not_logged_in_learns_the_version_unless_defaults_are_secure": ("version-to-strangers",),
    "config.strictness.passwords_in_clear_are_allowed_by_the_switch": ("passwords-in-clear", "password-sent-in-clear", "service-in-clear"),
    "e2e.connectors.plain_without_tls_logs_in_unless_defaults_are_secure": ("password-sent-in-clear",),
    "config.strict.an_unsafe_setting_is_found": ("authenticate-peer", "pages-of-every-site", "tls-if-they-like", "never-opens", "any-host-name", "old-tls", "secret-in-file", "idle-vhost"),
    "config.secure_defaults.a_listener_on_this_machine_authenticates": ("authenticate-peer",),
    "config.secure_defaults.only_its_own_pages_open_websockets_unless_sites_are_given": ("pages-of-every-site",),
    "http.names.only_its_own_names_are_known_unless_others_are_given": ("names-of-strangers",),
    "http.names.metrics_that_every_machine_may_read_are_reported": ("metrics-for-others",),
    "config.secure_defaults.a_listener_elsewhere_requires_tls_too": ("require-tls", "health-for-others"),
    "config.secure_defaults.a_client_has_fewer_sessions_where_defaults_are_secure": ("sessions",),
    "config.secure_defaults.the_policy_is_enabled_with_and_without_its_section": ("vhost-policy",),
    "config.strictness.a_listener_for_routers_opens_unless_defaults_are_secure": ("unproven-router",),
    "config.neighbours.a_login_that_serves_clients_and_routers_is_found": ("any-user-is-a-router",),
    "config.neighbours.secure_defaults_open_no_listener_for_routers_that_nobody_named": ("any-user-is-a-router",),
    "config.remote.a_listener_may_stand_anywhere_unless_defaults_are_secure": ("listener-elsewhere",),
    "config.remote.management_may_create_a_listener_elsewhere_only_within_allowed_bind_addresses": ("listener-elsewhere",),
    "config.remote.management_logs_anywhere_but_to_special_files_unless_defaults_are_secure": ("log-elsewhere",),
    "config.remote.without_log_dir_only_to_files_that_are_logged_to": ("log-elsewhere",),
    "config.strictness.a_mechanism_that_nothing_serves": ("no-mechanism", "unserved-mechanism"),
    "e2e.closed_listeners.the_rest_serves_and_the_listener_opens_once_its_address_is_free": ("closed-listener",),
    "e2e.closed_listeners.with_secure_defaults_the_router_does_not_start_without_one_of_its_listeners": ("closed-listener",),
    "config.same_addresses.check_names_both": ("same-address",),
    "config.strictness.a_router_without_listeners_and_connectors_is_a_warning": ("no-connections",),
    "logs.outputs.a_new_log_file_has_the_mode_of_the_older_router_unless_defaults_are_secure": ("logs-for-others",),
    "config.logins.a_listener_on_which_no_client_can_log_in_is_a_problem": ("no-mechanism",),
    "config.logins.users_that_the_file_does_not_name_are_a_note": ("users-elsewhere",),
    "config.logins.a_database_of_users_that_does_not_exist_is_a_problem": ("no-sasl-users",),
    "config.logins.a_module_that_cyrus_sasl_lacks_is_a_note": ("missing-sasl-module",),
    "e2e.cyrus_places.a_stock_client_logs_in_by_what_mech_list_names": ("weak-mechanisms",),
    "e2e.cyrus_places.secure_defaults_leave_weak_mechanisms_out": ("weak-mechanisms",),
    "config.strict.files_that_every_user_of_the_machine_can_read_or_write_are_found": ("readable-by-others", "writable-by-others"),
    "config.trusted_files.a_file_that_strangers_can_change_is_found_and_refused_with_secure_defaults": ("writable-by-others",),
    "config.impostors.parts_of_certificates_that_do_not_tell_users_apart_are_found": ("ambiguous-user",),
    "config.impostors.secure_defaults_tell_users_of_certificates_apart": ("ambiguous-user",),
    "config.impostors.an_entry_that_covers_addresses_of_longer_names_is_found": ("open-user-entry",),
    "config.impostors.an_entry_that_goes_on_after_the_user_is_found_unless_defaults_are_secure": ("longer-users",),
    "policy.separated_users.a_user_reaches_no_address_of_a_longer_name": ("longer-users",),
    "config.impostors.load_balancers_that_may_be_anybody_are_found": ("any-proxy",),
    "config.impostors.a_service_on_another_machine_that_is_asked_without_tls_is_found": ("service-without-tls",),
    "config.strict.the_mode_of_a_private_file_counts": ("writable-by-group",),
    "config.strict.a_group_for_every_user_from_everywhere_is_found": ("open-group",),
    "config.secure_defaults.explicit_unsafe_values_count_and_are_reported": ("traces-kept", "files-served"),
    "config.older_console.the_own_console_is_served_and_reported_where_the_older_folder_is_absent": ("older-console",),
    "cli.check.a_memory_limit_below_the_memory_at_start_up_is_reported": ("no-memory-left",),
    "config.strictness.a_value_that_qpid_dispatch_reads_in_its_own_way_is_read_alike": ("unknown-in-group", "unknown-tls-version", "unknown-uid-letter", "size-clamped", "port-too-high", "reported-attribute", "unknown-component", "half-a-pair", "key-alone", "service-without-host", "same-addresses", "encryption-without-profile", "external-without-profile", "password-without-user", "no-such-mechanism", "unreadable-folder"),
    "config.strictness.a_section_that_qpid_dispatch_leaves_out_is_left_out": ("left-out",),
    "config.strictness.an_ssl_profile_that_does_not_exist_is_one_problem_with_the_nearest_name": ("unknown-profile",),
    "config.earlier_releases.a_section_of_an_earlier_release_is_left_out_with_a_problem_and_its_cure": ("earlier-release",),
    "config.dangling.a_name_that_points_nowhere_is_a_problem_with_the_nearest_name": ("unknown-connection", "not-for-routes", "unknown-vhost"),
    "config.dangling.a_link_route_whose_connection_another_router_has_is_worth_a_note": ("connection-elsewhere",),
    "config.dangling.a_variable_that_nothing_expands_is_a_warning": ("not-expanded",),
    "config.dangling.an_interior_router_without_neighbours_is_warned_of_everywhere": ("no-neighbours",),
    "e2e.not_served.clear_clients_are_served_where_only_versions_of_tls_are_at_fault": ("unusable-profile",),
    "e2e.not_served.with_secure_defaults_the_router_does_not_start": ("unusable-profile",),
    "config.strictness.an_unreadable_file_fails_only_the_entities_that_need_the_file": ("unreadable-file",),
    "config.strict.a_setting_that_admits_more_peers_is_reported": ("unheld-tenants", "idle-message-size"),
    "e2e.free_tenants.the_hostname_of_the_open_is_the_tenant": ("unheld-tenants",),
    "e2e.tenants.with_policy_and_secure_defaults_the_tenant_must_be_named": ("unheld-tenants",),
    "e2e.free_tenants.addresses_of_the_router_are_the_same_for_all_tenants": ("tenants-outside",),
    "e2e.tenants.a_tenant_may_not_attach_to_an_address_with_a_leading_underscore": ("tenants-outside",),
    "network.management_rights.a_group_has_its_rights_on_its_own_router": ("group-management",),
    "network.management_rights.requests_from_another_router_have_the_rights_of_routers": ("router-management",),
    "config.remote.management_does_not_reveal_which_files_exist": ("files-by-management",),
    "policy.addresses.an_unauthenticated_name_fills_user_patterns_unless_defaults_are_secure": ("unproven-name",),
    "config.secure_defaults.the_links_of_a_connection": ("many-links",),
    "config.secure_defaults.hosts_are_limited_before_their_users_are_known": ("one-address-many-clients", "one-address-many-logins"),
    "config.strict.what_one_address_may_do_before_its_users_are_known_is_reported": ("one-address-many-clients", "one-address-many-logins"),
    "tls.hostnames.a_common_name_counts_unless_defaults_are_secure": ("common-names",),
    "tls.machine_limits.the_minimum_of_the_machine_holds": ("below-system-minimum",),
    "tls.machine_limits.under_secure_defaults_no_profile_may_go_below_the_minimum_of_the_machine": ("below-system-minimum",),
    "auth.auth_service.fields_that_existing_services_leave_out_are_forgiven_unless_defaults_are_secure": ("service-identity",),
    "config.differences.what_that_router_reads_otherwise_is_found": ("host-names-folded", "flag-with-capitals", "comma-in-item", "star-pattern", "separators-at-ends", "user-with-star", "user-without-name", "group-without-users", "hosts-unknown-there", "http-on-loopback"),
    "config.differences.a_limit_of_no_links_is_no_limit_and_is_found_unless_defaults_are_secure": ("no-links",),
    "e2e.policy.a_limit_of_no_links_allows_any_number_unless_defaults_are_secure": ("no-links",),
    "e2e.open.the_product_and_the_version_in_the_open_may_be_another_one_with_a_finding": ("other-product",),
    "config.workers.a_router_that_cannot_have_workers_is_a_finding": ("not-with-workers",),
    "config.workers.what_workers_do_not_count_together_is_a_finding": ("limits-by-worker",),
    "config.workers.an_edge_router_that_is_to_serve_without_an_uplink_has_better_one_worker": ("workers-apart",),
    "config.workers.more_workers_than_cores_are_a_note": ("more-workers-than-cores",),
    "config.secure_defaults.missing_rights_from_a_service_are_optional_only_without_secure_defaults": ("service-rights",),
}  # fmt: skip


@pytest.mark.parametrize("test", HOLDS)
def test_every_test_named_in_the_table_exists(test: str) -> None:
    folder, module, function = test.split(".")
    text = (TESTS / folder / f"test_{module}.py").read_text(encoding="utf-8")
    assert re.search(rf"def test_{function}\(", text)


def test_every_point_has_a_test() -> None:
    assert {point for points in HOLDS.values() for point in points} == set(POINTS)
