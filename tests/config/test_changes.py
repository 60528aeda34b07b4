"""Changes of a running router: a request that a file could not express is refused, and no change is applied in part."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from trouter.config import (
    AddressEntity,
    ChangeRefused,
    Configuration,
    Entity,
    EntityType,
    ListenerEntity,
    LogEntity,
    Secret,
    created,
    deleted,
    load,
    row,
    type_named,
    updated,
)
from trouter.config.entities import MANAGEMENT
from trouter.wire.types import Symbol

BASE = load(
    text="""
router { id: A }
listener {
    name: front
    port: 5672
    saslMechanisms: ANONYMOUS
    openProperties: { site: north }
}
listener {
    port: 0
}
connector {
    name: broker
    host: broker.example.com
    role: route-container
    saslUsername: router
    saslPassword: hunter2
}
address { prefix: news, name: of-the-file }
address { pattern: a/*/c }
vhost {
    hostname: example.com
    groups: {
        admin: { users: alice }
    }
}
sslProfile { name: tls }
dummy { arg1: x }
"""
)


def kind(short: str) -> EntityType:
    found = type_named(short)
    assert found is not None
    return found


def make(short: str, name: str | None = None, /, **attributes: object) -> tuple[Configuration, Entity]:
    return created(BASE, kind(short), name, attributes)


def change(identity: str, attributes: Mapping[str, object]) -> Entity:
    return updated(BASE, present(identity), attributes)[1]


def present(identity: str) -> Entity:
    entity = BASE.find(identity)
    assert entity is not None
    return entity


def refusal(short: str, name: str | None = None, /, **attributes: object) -> tuple[int, str]:
    with pytest.raises(ChangeRefused) as caught:
        make(short, name, **attributes)
    return caught.value.status, caught.value.description


def refused_change(identity: str, attributes: Mapping[str, object]) -> tuple[int, str]:
    with pytest.raises(ChangeRefused) as caught:
        change(identity, attributes)
    return caught.value.status, caught.value.description


# -------------------------------------------------------------------------------------------------------------- create
def test_a_created_entity_is_in_the_new_configuration_and_not_in_the_old() -> None:
    configuration, entity = make("listener", "back", port=5673, authenticatePeer=True)
    assert entity == ListenerEntity(name="back", port="5673", authenticate_peer=True, max_sessions=1024)
    assert configuration.find("listener/:5673:back") is entity
    assert configuration.by_name("back") is entity
    assert BASE.by_name("back") is None
    assert entity in configuration.listeners
    assert entity in configuration.entities


def test_values_arrive_typed_or_as_texts() -> None:
    _, entity = make("listener", port="1", idleTimeoutSeconds="5", http="YES", metrics=0, stripAnnotations=1, cost=2)
    assert entity == ListenerEntity(
        port="1",
        idle_timeout_seconds=5,
        http=True,
        metrics=False,
        strip_annotations="out",
        cost=2,
        max_sessions=1024,
    )
    _, entity = make("router.config.address", prefix=Symbol("x"), waypoint="on")
    assert entity == AddressEntity(prefix="x", waypoint=True, egress_phase=1, place=MANAGEMENT)
    assert type(getattr(entity, "prefix")) is str  # noqa: B009


def test_an_attribute_without_a_value_is_not_given() -> None:
    assert make("listener", port=1, host=None)[1] == ListenerEntity(port="1", max_sessions=1024)


def test_old_names_are_names() -> None:
    assert make("listener", port=1, logMessage="to")[1] == ListenerEntity(
        port="1", message_logging_components=("to",), max_sessions=1024
    )
    assert make("router.config.address", prefix="x", fallback=True)[1] == AddressEntity(
        prefix="x", enable_fallback=True, place=MANAGEMENT
    )


def test_a_name_may_stand_in_either_place() -> None:
    assert make("dummy", None, name="a")[1].name == "a"
    assert make("dummy", "a", name="a")[1].name == "a"
    assert refusal("dummy", "a", name="b") == (400, "Conflicting names: 'a' and 'b'")


def test_an_update_may_repeat_the_type_by_either_name() -> None:
    assert make("dummy", "a", type="dummy")[1].name == "a"
    assert make("dummy", "a", type=kind("dummy").full_name)[1].name == "a"
    assert refusal("dummy", "a", type="log")[0] == 400


def test_an_entity_without_a_name_has_the_name_that_management_gives() -> None:
    assert make("listener", port=7)[1].name == "listener/:7"
    assert make("vhost", hostname="a")[1].name == "vhost/a"
    address = make("router.config.address", prefix="x")[1]
    assert (address.name, address.identity) == ("", "address/2")
    assert row(address)["name"] is None


def test_numbers_go_on() -> None:
    configuration, first = make("router.config.address", prefix="x")
    _, second = created(configuration, kind("router.config.address"), None, {"prefix": "y"})
    assert [first.identity, second.identity] == ["address/2", "address/3"]


def test_listeners_on_a_free_port_are_distinguished() -> None:
    assert make("listener", port=0)[1].identity == "listener/:0 (2)"


UNIQUE = {
    "a name": (("listener", "front"), {"port": 1}, "listener.name: this name is used already (listener/:5672:front)"),
    "a name of another type": (("sslProfile", "broker"), {}, "this name is used already (connector/broker.example"),
    "a socket": (("listener", None), {"port": 5672}, "this host and port belong to a listener already"),
    "an address": (
        ("router.config.address", None),
        {"prefix": "news"},
        "the same addresses are configured already (address/0)",
    ),
    "an address by another pattern": (("router.config.address", None), {"pattern": "news.#"}, "are configured already"),
    "an address's name": (
        ("router.config.address", "of-the-file"),
        {"prefix": "x"},
        "Name conflicts with an existing entity",
    ),
    "a host name": (("vhost", None), {"hostname": "Example.com"}, "this host name belongs to a vhost already"),
    "an alias": (
        ("vhost", None),
        {"hostname": "b", "aliases": "example.com"},
        "this host name belongs to a vhost already",
    ),
    "a default name": (("dummy", "log/DEFAULT"), {}, "this name is used already (log/DEFAULT)"),
}


@pytest.mark.parametrize(("what", "attributes", "text"), UNIQUE.values(), ids=UNIQUE)
def test_a_value_that_another_entity_has_is_refused(
    what: tuple[str, str | None], attributes: dict[str, object], text: str
) -> None:
    status, description = refusal(*what, **attributes)
    assert status == 400
    assert text in description


def test_names_of_routing_are_their_own() -> None:
    assert make("router.config.address", "front", prefix="x")[1].name == "front"


BAD = {
    "an unknown attribute": ("listener", {"prot": 1}, "Unknown attribute 'prot' for 'org.apache.qpid.dispatch.listener' (did you mean 'port'?)"),
    "everything at once": ("listener", {"port": 99999, "cost": "x"}, "listener.port: is not a port: '99999' (a number from 0 to 65535, or a service name); listener.cost: must be an integer: 'x' (an integer from 1 to 2147483647)"),
    "a missing attribute": ("vhost", {}, "PolicyError: Policy 'None' is invalid: vhost: the attribute 'hostname' must be given (add hostname: ...)"),
    "a number that is a text": ("listener", {"maxSessions": "many"}, "listener.maxSessions: must be an integer: 'many'"),
    "a fraction": ("listener", {"maxSessions": 1.5}, "listener.maxSessions: must be an integer: '1.5'"),
    "a truth value for a number": ("listener", {"maxSessions": True}, "must be an integer: 'true'"),
    "a word for a truth value": ("listener", {"http": "perhaps"}, "listener.http: must be yes or no: 'perhaps'"),
    "an enum": ("listener", {"role": "Normal"}, "listener.role: is not one of the values: 'Normal' (did you mean 'normal'?)"),
    "an enum's index": ("listener", {"role": 4}, "listener.role: is not one of the values: '4'"),
    "old and new name": ("listener", {"logMessage": "to", "messageLoggingComponents": "to"}, "both are given"),
    "a reported attribute": ("connector", {"connectionStatus": "SUCCESS"}, "connector.connectionStatus: this attribute is reported by management and cannot be set"),
    "an identity": ("listener", {"identity": "x"}, "cannot be set"),
    "octets": ("listener", {"host": b"\0"}, "listener.'host': a value of the type bytes cannot be used here"),
    "a role": ("connector", {"role": "inter-router"}, "role='standalone' not allowed to connect to or accept connections from other routers."),
    "an unknown profile": ("listener", {"port": 1, "sslProfile": "none"}, "listener.sslProfile: there is no sslProfile of this name: 'none'"),
    "two brokers": ("router.config.autoLink", {"addr": "a", "dir": "in", "connection": "a", "containerId": "b"}, "Both connection and containerId cannot be specified"),
    "an auto link without address": ("router.config.autoLink", {"dir": "in"}, "address and direction fields are mandatory"),
    "a link route without direction": ("router.config.linkRoute", {"prefix": "a"}, "No 'direction' attribute provided - it is mandatory"),
    "a reserved property": ("listener", {"openProperties": {"scheme": "x"}}, "Reserved key 'scheme' not allowed in openProperties"),
    "a vhost's group": ("vhost", {"hostname": "b", "groups": {"g": {"maxSenders": "x"}}}, "PolicyError: Policy 'b' is invalid: vhost.groups.g.maxSenders: must be an integer: 'x' (an integer from 0 to 2147483647)"),
    "a prefix of another type": ("router.config.address", {"prefix": 5}, "Prefix must be a non-empty string type"),
}  # fmt: skip


@pytest.mark.parametrize(("short", "attributes", "text"), BAD.values(), ids=BAD)
def test_a_value_that_a_file_may_not_have_is_refused(short: str, attributes: dict[str, object], text: str) -> None:
    status, description = refusal(short, **attributes)
    assert status == (500 if short == "vhost" else 400)
    assert text in description
    assert "(management)" not in description


ROLES = {
    "standalone": ("standalone", "connector", {"role": "inter-router"}, "role='standalone' not allowed to connect to or accept connections from other routers."),
    "edge": ("edge", "listener", {"port": 1, "role": "edge"}, "role='edge' only allowed with router mode='interior'"),
    "properties": ("interior", "connector", {"role": "inter-router", "openProperties": {"a": "b"}}, "openProperties not allowed for role inter-router"),
}  # fmt: skip


@pytest.mark.parametrize(("mode", "short", "attributes", "text"), ROLES.values(), ids=ROLES)
def test_an_error_of_a_role_has_the_bare_text_of_qpid_dispatch(
    mode: str, short: str, attributes: dict[str, object], text: str
) -> None:
    configuration = load(text=f"router {{ id: R, mode: {mode} }}\n")
    with pytest.raises(ChangeRefused) as refused:
        created(configuration, kind(short), None, attributes)
    assert (refused.value.status, refused.value.description) == (400, text)


def test_a_listener_that_would_not_be_served_is_refused() -> None:
    configuration = load(text="router { id: R, secureDefaults: yes }\npolicy { enableVhostPolicy: no }\n")
    kind = type_named("listener")
    assert kind is not None
    with pytest.raises(ChangeRefused) as refused:
        created(configuration, kind, None, {"host": "::1", "port": "1", "multiTenant": True})
    assert refused.value.status == 501
    assert "without enableVhostPolicy it needs authenticatePeer" in refused.value.description


@pytest.mark.parametrize("short", ["router", "log", "policy", "logStats", "entity", "connection"])
def test_a_type_that_cannot_be_created_is_not_implemented(short: str) -> None:
    assert refusal(short, module="AGENT")[0] == 501


def test_nothing_is_done_to_a_console() -> None:
    assert refusal("console", home="a", proxy="b") == (403, "Forbidden")
    configuration = load(text="console { home: a, proxy: b }")
    for attempt in (lambda entity: deleted(configuration, entity), lambda entity: updated(configuration, entity, {})):
        with pytest.raises(ChangeRefused) as caught:
            attempt(configuration.consoles[0])
        assert caught.value.status in {403, 501}


def test_warnings_are_those_of_the_change() -> None:
    configuration, _ = make("listener", port=1, metrics=False)
    assert [warning.message for warning in configuration.warnings] == ["has no effect without http"]
    assert make("listener", port=1)[0].warnings == ()


# -------------------------------------------------------------------------------------------------------------- update
def test_attributes_left_out_of_an_update_stay() -> None:
    entity = change("listener/:5672:front", {"idleTimeoutSeconds": 3})
    assert isinstance(entity, ListenerEntity)
    assert (entity.idle_timeout_seconds, entity.sasl_mechanisms, entity.name) == (3, ("ANONYMOUS",), "front")
    assert entity.open_properties == {"site": "north"}


def test_null_brings_back_the_default() -> None:
    entity = change("listener/:5672:front", {"saslMechanisms": None, "openProperties": None})
    assert isinstance(entity, ListenerEntity)
    assert (entity.sasl_mechanisms, dict(entity.open_properties)) == ((), {})


def test_an_updated_entity_stands_in_the_place_of_the_old_one() -> None:
    configuration, entity = updated(BASE, BASE.listeners[0], {"host": "127.0.0.1"})
    assert configuration.listeners == (entity, BASE.listeners[1])
    assert configuration.find("listener/127.0.0.1:5672:front") is entity
    assert configuration.find("listener/:5672:front") is None
    assert created(configuration, kind("listener"), None, {"port": 5672})[1].name == "listener/:5672"


def test_a_secret_survives_an_update_and_is_never_shown() -> None:
    entity = change("connector/broker.example.com:amqp:broker", {"linkCapacity": 7})
    secret = getattr(entity, "sasl_password")  # noqa: B009
    assert isinstance(secret, Secret)
    assert secret.reveal() == "hunter2"
    for shown in (repr(entity), str(row(entity)), repr(entity.written), str(BASE)):
        assert "hunter2" not in shown


def test_a_log_module_follows_default_and_default_shows_its_initial_values() -> None:
    entity = change("log/DEFAULT", {"enable": "debug+"})
    assert row(entity) == {
        "module": "DEFAULT",
        "enable": "debug+",
        "includeTimestamp": True,
        "includeSource": False,
        "outputFile": "stderr",
        "format": "text",
        "name": "log/DEFAULT",
        "identity": "log/DEFAULT",
        "type": "org.apache.qpid.dispatch.log",
    }
    assert row(change("log/DEFAULT", {"enable": None}))["enable"] == "info+"
    assert change("log/SERVER", {"enable": "none"}) == LogEntity(module="SERVER", enable=frozenset())


def test_a_row_may_be_sent_back_as_an_update() -> None:
    for entity in BASE.entities:
        if "UPDATE" in entity.type.all_operations:
            assert updated(BASE, entity, row(entity))[1] == entity or getattr(entity, "sasl_password", None)


def test_a_read_only_attribute_may_be_sent_back_unchanged() -> None:
    shown = row(present("connector/broker.example.com:amqp:broker")) | {"connectionStatus": "SUCCESS"}
    entity = present("connector/broker.example.com:amqp:broker")
    assert updated(BASE, entity, {"connectionStatus": "SUCCESS", "cost": 2}, shown)[1] != entity
    with pytest.raises(ChangeRefused, match=r"'connectionStatus' .* cannot be changed"):
        updated(BASE, entity, {"connectionStatus": "FAILED"}, shown)


FIXED = {
    "a name": ("listener/:5672:front", {"name": "back"}, "The attribute 'name' of"),
    "an identity": ("listener/:5672:front", {"identity": "back"}, "The attribute 'identity' of"),
    "a type": ("listener/:5672:front", {"type": "connector"}, "Conflicting types"),
    "a module": ("log/SERVER", {"module": "AGENT"}, "The attribute 'module' of"),
    "a host name": ("vhost/example.com", {"hostname": "b"}, "The attribute 'hostname' of"),
    "a bad level": ("log/SERVER", {"enable": "loud"}, "log.enable: 'loud' is not a log level"),
    "an unknown attribute": ("log/SERVER", {"enabled": "info"}, "Unknown attribute 'enabled' for 'org.apache.qpid.dispatch.log'"),
    "a socket of another": ("listener/:0", {"port": 5672}, "this host and port belong to a listener already"),
    "an own alias": ("vhost/example.com", {"aliases": "example.com"}, "Policy 'example.com' is invalid: vhost.aliases: an alias is"),
}  # fmt: skip


@pytest.mark.parametrize(("identity", "attributes", "text"), FIXED.values(), ids=FIXED)
def test_an_update_is_refused(identity: str, attributes: dict[str, object], text: str) -> None:
    status, description = refused_change(identity, attributes)
    assert status == (500 if text.startswith("Policy ") else 400)
    assert text in description


@pytest.mark.parametrize("identity", ["router/A", "address/0"])
def test_a_type_that_cannot_be_updated_is_not_implemented(identity: str) -> None:
    assert refused_change(identity, {})[0] == 501


def test_policies_profiles_and_vhosts_can_be_changed() -> None:
    assert row(change("policy/None", {"defaultVhost": "other"}))["defaultVhost"] == "other"
    assert row(change("sslProfile/tls", {"ciphers": "HIGH"}))["ciphers"] == "HIGH"
    groups = {"guests": {"users": ["carol", "dave"], "maxSenders": 1}}
    shown = row(change("vhost/example.com", {"groups": groups}))
    assert shown["groups"] == groups


# -------------------------------------------------------------------------------------------------------------- delete
def test_a_deleted_entity_is_gone_and_may_be_created_again() -> None:
    configuration = deleted(BASE, BASE.connectors[0])
    assert (configuration.connectors, configuration.by_name("broker")) == ((), None)
    assert created(configuration, kind("connector"), "broker", {})[1].name == "broker"


def test_a_type_that_cannot_be_deleted_is_not_implemented() -> None:
    for identity in ("router/A", "log/DEFAULT", "policy/None"):
        with pytest.raises(ChangeRefused) as caught:
            deleted(BASE, present(identity))
        assert caught.value.status == 501
    with pytest.raises(ChangeRefused) as caught:
        deleted(deleted(BASE, BASE.dummies[0]), BASE.dummies[0])
    assert (caught.value.status, caught.value.description) == (404, "No entity with identity=dummy/0")


def test_an_entity_in_use_cannot_be_deleted() -> None:
    text = "sslProfile { name: p }\nsslProfile { name: q }\nauthServicePlugin { name: s, host: h, sslProfile: p }\n"
    configuration = load(text=text + "connector { name: c, sslProfile: q }\nlistener { port: 0, saslPlugin: s }\n")
    users = {"sslProfile/p": "authServicePlugin/s", "sslProfile/q": "connector/", "authServicePlugin/s": "listener/:0"}
    for identity, user in users.items():
        with pytest.raises(ChangeRefused, match=f"^{user}.* uses this ") as caught:
            deleted(configuration, configuration.find(identity))  # type: ignore[arg-type]
        assert caught.value.status == 400
    configuration = deleted(configuration, configuration.connectors[0])
    assert deleted(configuration, configuration.find("sslProfile/q")).find("sslProfile/q") is None  # type: ignore[arg-type]


def test_indexes_are_right_after_any_changes() -> None:
    configuration, first = make("router.config.address", "n", prefix="x")
    configuration, _ = updated(configuration, configuration.listeners[0], {"port": 9})
    configuration = deleted(configuration, configuration.addresses[0])
    configuration, _ = created(configuration, kind("router.config.address"), None, {"prefix": "news"})
    fresh = Configuration(**{name: getattr(configuration, name) for name in Configuration.__dataclass_fields__})
    assert configuration.claimed == fresh.claimed
    assert {entity.identity: entity for entity in fresh.entities} == {
        identity: configuration.find(identity) for identity in (entity.identity for entity in configuration.entities)
    }
    assert configuration.find(first.identity) is first
    assert configuration.of("router.config.address") == configuration.addresses
    assert configuration.of("router.link") == ()


# ----------------------------------------------------------------------------------------------------------------- row
def test_a_row_has_every_attribute_in_the_order_of_the_schema_and_both_names() -> None:
    for entity in BASE.entities:
        names = list(row(entity))
        assert [name for name in names if name not in {"fallback", "dir", "addr", "externalAddr", "linksBlocked"}] == [
            attribute.name for attribute in entity.type.attributes
        ]
    shown = row(load(text="autoLink { addr: a, dir: in, externalAddr: b }").auto_links[0])
    assert (shown["addr"], shown["dir"], shown["externalAddr"], shown["phase"]) == ("a", "in", "b", 1)
    assert list(shown)[:4] == ["address", "addr", "direction", "dir"]


def test_a_row_shows_the_values_as_written() -> None:
    shown = row(BASE.listeners[0])
    assert shown["saslMechanisms"] == "ANONYMOUS"
    assert shown["openProperties"] == {"site": "north"}
    assert shown["port"] == "5672"
    assert shown["messageLoggingComponents"] == "none"
    assert shown["type"] == "org.apache.qpid.dispatch.listener"
    assert row(BASE.addresses[1])["pattern"] == "a/*/c"
    assert row(BASE.vhosts[0])["groups"] == {"admin": {"users": "alice"}}
