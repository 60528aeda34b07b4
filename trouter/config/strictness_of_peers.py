"""What secureDefaults changes about peers: what each may do, and which the router believes."""

from __future__ import annotations

from typing import Final

from trouter.config.point import Point

#: Who may do what: decided when a peer opens, attaches or asks.
RIGHTS: Final = (
    Point(
        "unheld-tenants",
        "listener.multiTenant",
        "without vhost policy and tenantFrom, the hostname of the open is the tenant; without a hostname addresses "
        "have no prefix",
        "the listener is not opened without vhost policy, or authenticatePeer and tenantFrom; an open without a "
        "hostname is refused",
        "will let clients choose their tenant: no policy says who may",
        "write policy { enableVhostPolicy: yes }, or authenticatePeer: yes and tenantFrom",
        "multi-tenancy.md",
        tests=(
            "config/test_strict.py::test_what_lets_others_in_is_told",
            "e2e/test_free_tenants.py::test_the_hostname_of_the_open_is_the_tenant",
            "e2e/test_tenants.py::test_with_policy_and_secure_defaults_the_tenant_must_be_named",
        ),
    ),
    Point(
        "tenants-outside",
        "listener.multiTenant",
        "tenants may use `_local/...` and `_topo/...`, which are the same for all tenants; there `$management` shows "
        "them the whole router",
        "addresses that begin with an underscore are refused to tenants, but for their own dynamic ones",
        page="multi-tenancy.md",
        tests=(
            "e2e/test_free_tenants.py::test_addresses_of_the_router_are_the_same_for_all_tenants",
            "e2e/test_tenants.py::test_what_begins_with_an_underscore_is_closed",
        ),
    ),
    Point(
        "group-management",
        "vhost.groups",
        "a group without `management` may do everything through `$management`, if its targets let it send there",
        "it may do nothing there",
        "will let users of the group {group} do everything through $management",
        "write management: read, or another level",
        "policy.md",
        tests=("network/test_management_rights.py::test_what_a_group_may_do_on_its_own_router",),
    ),
    Point(
        "router-management",
        "policy.routerManagement",
        "admin, unless it is given: requests to `$management` from other routers may do everything",
        "none, unless it is given",
        "will let users of other routers do everything through $management",
        "write routerManagement: read, or another level",
        "policy.md",
        tests=("network/test_management_rights.py::test_what_requests_may_do_that_come_from_another_router",),
    ),
    Point(
        "files-by-management",
        "router.secretDir",
        "a CREATE or UPDATE may name any file as certificate, key, authority or mapping",
        "only files below secretDir, and those that the configuration names already",
        page="hardening.md",
        tests=("config/test_remote.py::test_management_does_not_tell_what_files_there_are",),
    ),
    Point(
        "unproven-name",
        "vhost.groups",
        "`${user}` in addresses is `anonymous` for a user who did not authenticate",
        "such a user has no addresses with `${user}`, unless substituteAnonymous: yes is given",
        page="policy.md",
        tests=("security/test_addresses.py::test_who_did_not_prove_a_name_has_addresses_unless_defaults_are_secure",),
    ),
    Point(
        "many-links",
        "listener.maxLinks",
        "32,768 links on a connection, unless it is given; budgets of memory hold besides",
        "1,000, unless it is given",
        page="limits.md",
        tests=("config/test_secure_defaults.py::test_the_links_of_a_connection",),
    ),
)

#: Whom the router believes: certificates and authentication services.
BELIEVED: Final = (
    Point(
        "common-names",
        "connector.verifyHostname",
        "the common name of a peer's or a service's certificate counts where it has no subjectAltName",
        "a common name never counts",
        page="tls.md",
        tests=("tls/test_hostnames.py::test_a_common_name_counts_unless_defaults_are_secure",),
    ),
    Point(
        "below-system-minimum",
        "sslProfile.belowSystemMinimum",
        "`yes` allows versions and keys that this machine's OpenSSL configuration forbids",
        "`yes` is an error in the file",
        "will allow what this machine's OpenSSL configuration forbids",
        "leave it out",
        "tls.md",
        tests=(
            "tls/test_machine_limits.py::test_what_the_machine_demands_holds",
            "tls/test_machine_limits.py::test_secure_defaults_let_no_profile_go_below_it",
        ),
    ),
    Point(
        "service-identity",
        "authServicePlugin",
        "a service may say who a user is as a plain string, or not at all: the user is `anonymous`",
        "such a user is refused",
        page="auth-service.md",
        tests=(
            "auth/test_auth_service.py::test_what_existing_services_leave_out_is_forgiven_unless_defaults_are_secure",
        ),
    ),
    Point(
        "service-rights",
        "authServicePlugin.authzOptional",
        "yes, unless it is given: a user whose rights a service leaves out is held to the policy only",
        "no, unless it is given: such a user may use no address",
        page="auth-service.md",
        tests=("config/test_secure_defaults.py::test_rights_of_which_a_service_says_nothing",),
    ),
)
