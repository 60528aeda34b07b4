"""The points of strictness about peers: their rights, and the proofs of identity that the router accepts."""

from __future__ import annotations

from typing import Final

from trouter.config.point import Point

#: Rights, decided when a peer opens, attaches or sends a request.
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
    ),
    Point(
        "tenants-outside",
        "listener.multiTenant",
        "tenants may use `_local/...` and `_topo/...`, which are the same for all tenants; there `$management` shows "
        "them the whole router",
        "addresses that begin with an underscore are refused to tenants, but for their own dynamic ones",
        page="multi-tenancy.md",
    ),
    Point(
        "group-management",
        "vhost.groups",
        "a group without `management` may do everything through `$management`, if its targets let it send there",
        "it may do nothing there",
        "will let users of the group {group} do everything through $management",
        "write management: read, or another level",
        "policy.md",
    ),
    Point(
        "router-management",
        "policy.routerManagement",
        "admin, unless it is given: requests to `$management` from other routers may do everything",
        "none, unless it is given",
        "will let users of other routers do everything through $management",
        "write routerManagement: read, or another level",
        "policy.md",
    ),
    Point(
        "files-by-management",
        "router.secretDir",
        "a CREATE or UPDATE may name any file as certificate, key, authority or mapping",
        "only files below secretDir, and those that the configuration names already",
        page="hardening.md",
    ),
    Point(
        "unproven-name",
        "vhost.groups",
        "`${user}` in addresses is `anonymous` for a user who did not authenticate",
        "such a user has no addresses with `${user}`, unless substituteAnonymous: yes is given",
        page="policy.md",
    ),
    Point(
        "version-to-strangers",
        "listener.openProperties",
        "the router's open tells every peer its version",
        "it tells it to peers that have logged in",
        page="hardening.md",
    ),
    Point(
        "many-links",
        "listener.maxLinks",
        "32,768 links on a connection, unless it is given; budgets of memory hold besides",
        "1,000, unless it is given",
        page="limits.md",
    ),
)

#: Statements of certificates and authentication services that the router accepts.
BELIEVED: Final = (
    Point(
        "common-names",
        "connector.verifyHostname",
        "the common name of a peer's or a service's certificate counts where it has no subjectAltName",
        "a common name never counts",
        page="tls.md",
    ),
    Point(
        "below-system-minimum",
        "sslProfile.belowSystemMinimum",
        "`yes` allows versions and keys that this machine's OpenSSL configuration forbids",
        "`yes` is an error in the file",
        "will allow what the OpenSSL configuration of this machine forbids",
        "leave it out",
        "tls.md",
    ),
    Point(
        "service-identity",
        "authServicePlugin",
        "a service may say who a user is as a plain string, or not at all: the user is `anonymous`",
        "such a user is refused",
        page="auth-service.md",
    ),
    Point(
        "service-rights",
        "authServicePlugin.authzOptional",
        "yes, unless it is given: if a service sends no rights for a user, only the policy applies to the user",
        "no, unless it is given: such a user may use no address",
        page="auth-service.md",
    ),
)
