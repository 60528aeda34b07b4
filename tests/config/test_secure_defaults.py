"""secureDefaults: an attribute that is not given has its secure value, in a file and through management."""

from __future__ import annotations

import pytest

from trouter.config import Configuration, ConfigurationError, created, load, type_named
from trouter.config.findings import unsafe

SECURE = "router { id: R, secureDefaults: yes }\n"


def configured(text: str) -> Configuration:
    return load(text=SECURE + text)


def test_without_secure_defaults_all_defaults_are_those_of_qpid_dispatch() -> None:
    configuration = load(text="listener { host: 0.0.0.0, port: 0 }\n")
    (listener,) = configuration.listeners
    assert not listener.authenticate_peer
    assert not configuration.policy.enable_vhost_policy


def test_a_listener_on_this_machine_authenticates() -> None:
    (listener,) = configured("listener { host: 127.0.0.1, port: 0 }\n").listeners
    assert listener.authenticate_peer
    assert not listener.require_ssl
    assert listener.healthz


def test_a_listener_elsewhere_requires_tls_too() -> None:
    (listener,) = configured("sslProfile { name: p }\nlistener { port: 0, sslProfile: p }\n").listeners
    assert listener.authenticate_peer
    assert listener.require_ssl
    assert not listener.healthz
    with pytest.raises(ConfigurationError, match=r"requireSsl|without an sslProfile"):
        configured("listener { port: 0 }\n")


def test_only_its_own_pages_open_websockets_unless_sites_are_given() -> None:
    for given, strict, compatible in (
        ("", (), ("*",)),
        (", webSocketOrigins: none", (), ()),
        (", webSocketOrigins: https://a.example", ("https://a.example",), ("https://a.example",)),
        (", webSocketOrigins: *", ("*",), ("*",)),
    ):
        text = f"listener {{ host: ::1, port: 0, http: yes{given} }}\n"
        for configuration, origins in ((configured(text), strict), (load(text=text), compatible)):
            assert configuration.listeners[0].web_socket_origins == origins
            reported = "pages-of-every-site" in {finding.point for finding in unsafe(configuration)}
            assert reported is ("*" in origins)


def test_a_client_has_fewer_sessions_where_defaults_are_secure() -> None:
    text = "listener { host: ::1, port: 0 }\nlistener { host: ::1, port: 0, maxSessions: 32768 }\n"
    assert [each.max_sessions for each in configured(text).listeners] == [256, 32768]
    assert [each.max_sessions for each in load(text=text).listeners] == [1024, 32768]
    interior = "router { mode: interior, id: A }\nlistener { port: 0, role: inter-router }\n"
    assert load(text=interior).listeners[0].max_sessions == 32768


def test_explicit_unsafe_values_count_and_are_reported() -> None:
    text = "listener { host: ::1, port: 0, authenticatePeer: no, stripAnnotations: no }\npolicy { enableVhostPolicy: no }\n"
    configuration = configured(text)
    (listener,) = configuration.listeners
    assert not listener.authenticate_peer
    found = {f"{finding.section}.{finding.key}" for finding in unsafe(configuration)}
    assert found == {"listener.authenticatePeer", "listener.stripAnnotations", "policy.enableVhostPolicy"}


@pytest.mark.parametrize("policy", ["", "policy { maxConnections: 10 }\n"])
def test_the_policy_is_enabled_with_and_without_its_section(policy: str) -> None:
    configuration = configured(f"{policy}vhost {{ hostname: a }}\n")
    assert configuration.policy.enable_vhost_policy
    assert not [warning for warning in configuration.warnings if "does not have enableVhostPolicy" in warning.message]


def test_a_listener_created_by_management_has_secure_defaults_too() -> None:
    configuration = configured("listener { name: l, host: ::1, port: 0 }\n")
    kind = type_named("listener")
    assert kind is not None
    _, entity = created(configuration, kind, "new", {"host": "::1", "port": "0", "http": True})
    assert entity.authenticate_peer  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("attributes", "given", "compatible", "strict"),
    [("", None, None, 1000), ("maxLinks: 7", 7, 7, 7), ("role: inter-router", None, None, None)],
)
def test_the_links_of_a_connection(
    attributes: str, given: int | None, compatible: int | None, strict: int | None
) -> None:
    """The default is 32,768, and no limit for routers."""
    text = f"listener {{\n host: ::1\n{attributes}\n}}\nconnector {{\n host: ::1\n{attributes}\n}}"
    for router, expected in (("id: R", compatible), ("id: R\nsecureDefaults: yes", strict)):
        configuration = load(text=f"router {{\n mode: interior\n{router}\n}}\n{text}")
        (listener,), (connector,) = configuration.listeners, configuration.connectors
        assert (listener.max_links, connector.max_links) == (expected, expected)


def test_full_management_access_is_reported() -> None:
    groups = (
        'a: { targets: "*", management: read }, b: { targets: q }, c: { targets: "$man*" }, d: { targetPattern: "#" }'
    )
    text = f"policy {{ enableVhostPolicy: yes }}\nvhost {{\n hostname: v\n groups: {{ {groups} }}\n}}"
    router = "router {{ id: R, mode: interior{} }}\n"
    found = [f"{each.point}: {each.message}" for each in unsafe(load(text=router.format("") + text))]
    assert [each for each in found if "management" in each] == [
        "router-management: will let users of other routers do everything through $management",
        "group-management: will let users of the group c do everything through $management",
        "group-management: will let users of the group d do everything through $management",
    ]
    secure = [each.point for each in unsafe(load(text=router.format(", secureDefaults: yes") + text))]
    assert not {"router-management", "group-management"} & set(secure)


@pytest.mark.parametrize(
    ("given", "compatible", "strict"),
    [("", True, False), ("authzOptional: yes", True, True), ("authzOptional: no", False, False)],
)
def test_missing_rights_from_a_service_are_optional_only_without_secure_defaults(
    given: str, compatible: bool, strict: bool
) -> None:
    text = f"authServicePlugin {{\n name: s\n host: ::1\n{given}\n}}\n"
    assert load(text=text).auth_services[0].authz_optional is compatible
    assert configured(text).auth_services[0].authz_optional is strict


def test_hosts_are_limited_before_their_users_are_known() -> None:
    names = ("max_handshakes", "max_handshakes_per_host", "min_handshake_rate", "accept_rate_per_host", "auth_lockout")

    def limits(text: str) -> tuple[object, ...]:
        return tuple(getattr(load(text=f"router {{\n{text}\n}}").router, name) for name in names)

    assert limits("secureDefaults: yes") == (1000, 20, 64, 50, "enforce")
    assert limits("") == (0, 0, 0, 0, "delay")
    assert limits("maxHandshakesPerHost: 20\nmaxHandshakes: 5") == (5, 20, 0, 0, "delay")
    assert limits("acceptBurstPerHost: 200\nauthLockoutSeconds: 60") == (0, 0, 0, 50, "enforce")
    assert limits("authLockout: alarm\nauthLockoutAfter: 3")[-1] == "alarm"
    assert limits("secureDefaults: yes\nauthLockout: delay\nmaxHandshakes: 0") == (0, 20, 64, 50, "delay")
