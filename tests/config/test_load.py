"""From a text to frozen entities, and every error that the table of attributes and the rules between them can give."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from manual.configuration import pages
from trouter.config import (
    DEFAULT_TEXT,
    AddressEntity,
    Configuration,
    ConfigurationError,
    FailoverUrl,
    ListenerEntity,
    LogEntity,
    RouterEntity,
    load,
)
from trouter.config.facts import router_facts
from trouter.config.findings import evaluate
from trouter.config.schema import Attribute, Kind, attributes_of, camel, same_name
from trouter.config.strictness import REFUSED
from trouter.config.texts import LEVELS, MESSAGE_COMPONENTS
from trouter.config.types import CONFIGURED
from trouter.hooks import Plugins

ROOT = Path(__file__).parents[2]


def errors_of(text: str, path: Path | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(path, text)
    return [str(problem) for problem in caught.value.problems]


def listener(attributes: str) -> ListenerEntity:
    return load(text=f"listener {{\n{attributes}\n}}").listeners[0]


def warnings_of(text: str) -> list[str]:
    return [str(warning) for warning in load(text=text).warnings]


# ----------------------------------------------------------------------------------------------- the source of the text
def test_without_a_file_only_this_machine_can_connect() -> None:
    built_in = load()
    assert [(one.host, one.port_or_service, one.http) for one in built_in.listeners] == [
        ("127.0.0.1", 5672, False),
        ("127.0.0.1", 5680, True),
    ]
    assert built_in.listeners[0].sasl_mechanisms == ("ANONYMOUS",)
    assert built_in.router.mode == "standalone"
    assert built_in.router.secure_defaults
    assert built_in.warnings == ()
    plugins = Plugins.load(dict(built_in.router.plugins))
    plugins.configure(router_facts(built_in), built_in.router.plugin_settings)
    assert [finding.point for finding in evaluate(built_in, plugins)] == ["authenticate-peer"] * 2
    assert built_in.policy.enable_vhost_policy
    assert built_in.vhosts[0].groups["$default"].written["remote_hosts"] == "127.0.0.1, ::1"
    assert load(text=DEFAULT_TEXT).listeners == built_in.listeners


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_bytes(b"\xef\xbb\xbfrouter {\r\n id: \xc3\xa9\r\n}\r\n")
    assert load(path).router.id == "é"
    assert load(path).source == str(path)


def test_the_json_form_is_chosen_by_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps([["listener", {"port": 5672, "authenticatePeer": True, "host": None, "linkCapacity": 7}]])
    )
    assert load(path).listeners == (
        ListenerEntity(port="5672", authenticate_peer=True, link_capacity=7, max_sessions=1024),
    )


def test_a_file_of_comments_gives_a_router_that_listens_nowhere() -> None:
    configuration = load(text="# nothing\n")
    assert [*configuration.listeners, *configuration.addresses] == []


UNREADABLE = {
    "there is none": (None, "cannot be read: No such file or directory"),
    "it is empty": (b" \n", "is empty (a comment is enough)"),
    "it is not UTF-8": (b"router {\n id: \xff\n}", "is not UTF-8 text (save the file as UTF-8)"),
}


@pytest.mark.parametrize(("data", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read(tmp_path: Path, data: bytes | None, message: str) -> None:
    path = tmp_path / "x.conf"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    place = f"{path}:2:6" if data and b"\xff" in data else str(path)
    assert str(caught.value) == f"{place}: {message}"


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load(tmp_path)


# ------------------------------------------------------------------------------------------------------------- values
ROUTER_IDS = ["a", "Ünï-1", "x" * 127]


@pytest.mark.parametrize("name", ROUTER_IDS)
def test_a_router_id(name: str) -> None:
    assert load(text=f"router {{ id: {name} }}").router.id == name


def test_a_router_without_id_gets_one_of_its_own() -> None:
    first, second = load(text="router {\n}").router.id, load(text="").router.id
    assert first != second
    assert first.startswith("Standalone_")
    assert len(first) == len("Standalone_") + 15


def test_all_attributes_of_a_listener() -> None:
    text = """
        name: here
        host: [::1]
        port: 0
        role: route-container
        socketAddressFamily: IPv6
        saslMechanisms: plain, ANONYMOUS PLAIN
        authenticatePeer: On
        allowInsecurePlain: loopback
        maxFrameSize: 512
        maxSessions: 0
        maxSessionFrames: 100
        idleTimeoutSeconds: 0
        initialHandshakeTimeoutSeconds: 5
        linkCapacity: 0
        stripAnnotations: no
        maxConnections: 3
        acceptRate: 4
        openProperties: { a: 1, b: "1", c: true, d: { e: [f, 2] } }
        failoverUrls: amqps://[::2]:71 , other, x:amqp
        messageLoggingComponents: to,message-id
    """
    assert listener(text) == ListenerEntity(
        name="here",
        host="::1",
        port="0",
        role="route-container",
        socket_address_family="IPv6",
        sasl_mechanisms=("PLAIN", "ANONYMOUS"),
        authenticate_peer=True,
        allow_insecure_plain="loopback",
        max_frame_size=512,
        max_sessions=32768,
        max_session_frames=100,
        idle_timeout_seconds=0,
        initial_handshake_timeout_seconds=5,
        link_capacity=250,
        strip_annotations="no",
        max_connections=3,
        accept_rate=4,
        open_properties={"a": 1, "b": "1", "c": True, "d": {"e": ["f", 2]}},
        failover_urls=(FailoverUrl("::2", "71", "amqps"), FailoverUrl("other"), FailoverUrl("x", "amqp")),
        message_logging_components=("message-id", "to"),
    )


def test_an_absent_attribute_has_the_default_of_the_table() -> None:
    given = listener("")
    assert given == ListenerEntity(max_sessions=1024)  # fewer than in the table, for the role is normal
    assert given.port_or_service == 5672
    assert (given.link_capacity, given.max_frame_size, given.idle_timeout_seconds) == (250, 16384, 16)
    assert given.initial_handshake_timeout_seconds == 10


PORTS = {"0": 0, "05672": 5672, "65535": 65535, "amqp": 5672, "amqps": 5671, "some-service": "some-service"}


@pytest.mark.parametrize(("text", "port"), PORTS.items())
def test_a_port_is_a_number_or_a_service(text: str, port: int | str) -> None:
    assert listener(f"port: {text}").port_or_service == port


COMPONENTS = {"all": MESSAGE_COMPONENTS, "none": (), "app-properties, to": ("to", "app-properties")}


@pytest.mark.parametrize(("text", "parts"), COMPONENTS.items())
def test_message_parts_to_log(text: str, parts: tuple[str, ...]) -> None:
    assert listener(f"messageLoggingComponents: {text}").message_logging_components == parts


INSECURE_PLAIN = {"yes": "yes", "TRUE": "yes", "no": "no", "off": "no", "loopback": "loopback", "1": "loopback"}


@pytest.mark.parametrize(("text", "value"), INSECURE_PLAIN.items())
def test_allow_insecure_plain_takes_each_of_its_values(text: str, value: str) -> None:
    assert listener(f"allowInsecurePlain: {text}").allow_insecure_plain == value


@pytest.mark.parametrize("word", ["yes", "true", "on", "YES", "oN"])
def test_yes_in_any_spelling(word: str) -> None:
    assert listener(f"authenticatePeer: {word}").authenticate_peer is True


@pytest.mark.parametrize("word", ["no", "false", "off", "No"])
def test_no_in_any_spelling(word: str) -> None:
    assert listener(f"authenticatePeer: {word}").authenticate_peer is False


def test_an_enum_by_its_index() -> None:
    assert load(text="address { prefix: a, distribution: 1 }").addresses[0].distribution == "closest"


ENABLE = {
    "info": {"info"},
    "INFO+": set(LEVELS[2:]),
    "trace, error": {"trace", "error"},
    "t;d:w": {"trace", "default", "warning"},
    "not+ tr": {"trace", "notice", "warning", "error", "critical"},
    "none": set(),
    "default": {"default"},
    "deb": {"debug"},
}


@pytest.mark.parametrize(("text", "enabled"), ENABLE.items())
def test_log_levels(text: str, enabled: set[str]) -> None:
    assert load(text=f"log {{\n module: SERVER\n enable: {text}\n}}").logs[0].enable == frozenset(enabled)


def test_an_empty_list_of_levels_is_nothing_and_no_list_is_default() -> None:
    assert load(text='log { module: SERVER, enable: "" }').logs[0].enable == frozenset()
    assert load(text="log { module: SERVER }").logs[0].enable is None


SPELLINGS = ["maxFrameSize", "max-frame-size", "max_frame_size", "max_Frame-size"]


@pytest.mark.parametrize("name", SPELLINGS)
def test_attribute_names_may_be_written_with_hyphens_and_underscores(name: str) -> None:
    assert listener(f"{name}: 600").max_frame_size == 600


@pytest.mark.parametrize("name", ["maxframesize", "MaxFrameSize", "Max-frame-size", "frameSize"])
def test_other_spellings_are_unknown(name: str) -> None:
    assert "unknown attribute" in errors_of(f"listener {{ {name}: 600 }}")[0]


OLD_NAMES = [
    (entity_type.section, old, row)
    for entity_type in CONFIGURED
    for row in attributes_of(entity_type.entity)
    for old in row.old_names
]
VALUES = {
    "failoverList": "a",
    "protocolFamily": "IPv4",
    "logMessage": "all",
    "timestamp": "no",
    "source": "no",
    "dir": "in",
    "fallback": "yes",
    "verifyHostName": "no",
    "keyFile": __file__,
    "certDb": "/",
    "httpRoot": "/",
    "trustedCerts": '""',
    "displayNameFile": '""',
    "authSslProfile": '""',
}
NEEDED = {
    "log": {"module": "SERVER"},
    "sslProfile": {"name": "a", "certFile": __file__, "privateKeyFile": __file__},
    "authServicePlugin": {"name": "a", "host": "b"},
    "address": {"prefix": "a"},
    "linkRoute": {"prefix": "a", "direction": "in"},
    "autoLink": {"address": "a", "direction": "in"},
    "vhost": {"hostname": "a"},
}


@pytest.mark.parametrize(
    ("section", "old", "row"), OLD_NAMES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_old_name_works_with_a_warning(section: str, old: str, row: Attribute) -> None:
    needed = NEEDED.get(section, {})
    given = "".join(f" {name}: {value}\n" for name, value in needed.items() if name != row.name)
    text = f"{section} {{\n{given} {old}: {VALUES.get(old, '5')}\n}}"
    assert any(f".{old}: this is the old name of '{row.name}'" in warning for warning in warnings_of(text))


def test_old_names_are_those_of_the_specification() -> None:
    assert {(section, old, row.name) for section, old, row in OLD_NAMES} == {
        ("router", "helloInterval", "helloIntervalSeconds"),
        ("router", "helloMaxAge", "helloMaxAgeSeconds"),
        ("router", "raInterval", "raIntervalSeconds"),
        ("router", "raIntervalFlux", "raIntervalFluxSeconds"),
        ("router", "remoteLsMaxAge", "remoteLsMaxAgeSeconds"),
        ("router", "debugDump", "debugDumpFile"),
        ("router", "saslConfigPath", "saslConfigDir"),
        ("listener", "protocolFamily", "socketAddressFamily"),
        ("listener", "trustedCerts", "trustedCertsFile"),
        ("listener", "failoverList", "failoverUrls"),
        ("listener", "httpRoot", "httpRootDir"),
        ("listener", "logMessage", "messageLoggingComponents"),
        ("log", "timestamp", "includeTimestamp"),
        ("log", "source", "includeSource"),
        ("log", "output", "outputFile"),
        ("sslProfile", "certDb", "caCertFile"),
        ("sslProfile", "keyFile", "privateKeyFile"),
        ("sslProfile", "displayNameFile", "uidNameMappingFile"),
        ("authServicePlugin", "saslInitHostname", "realm"),
        ("authServicePlugin", "authSslProfile", "sslProfile"),
        ("connector", "verifyHostName", "verifyHostname"),
        ("connector", "logMessage", "messageLoggingComponents"),
        ("address", "fallback", "enableFallback"),
        ("linkRoute", "dir", "direction"),
        ("autoLink", "dir", "direction"),
        ("autoLink", "addr", "address"),
        ("autoLink", "externalAddr", "externalAddress"),
        ("vhost", "id", "hostname"),
        ("vhost", "maxConnectionsPerRemoteHost", "maxConnectionsPerHost"),
    }


def test_the_last_of_a_repeated_attribute_counts() -> None:
    text = "listener {\n port: 1\n port: 2\n}"
    assert load(text=text).listeners[0].port == "2"
    assert warnings_of(text) == ["(text):3:8: listener.port: given more than once: the last one counts"]


def test_null_and_nothing_are_not_given(tmp_path: Path) -> None:
    assert load(Path("x.json"), '[["listener", {"port": null}]]').listeners[0].port == "amqp"
    assert listener("port:").port == "amqp"


# ----------------------------------------------------------------------------------------------------------- addresses
def address(attributes: str) -> AddressEntity:
    return load(text=f"address {{ {attributes} }}").addresses[0]


ADDRESSES = {
    "a prefix": ("prefix: a.b", AddressEntity(prefix="a.b")),
    "a prefix is reported as written": ("prefix: /a.b./", AddressEntity(prefix="/a.b./")),
    "a pattern": ("pattern: a/*/#", AddressEntity(pattern="a/*/#")),
    "a pattern is reported as written": ("pattern: a.#.*.#", AddressEntity(pattern="a.#.*.#")),
    "a waypoint's phases": ("prefix: a, waypoint: yes", AddressEntity(prefix="a", waypoint=True, egress_phase=1)),
    "phases": (
        "prefix: a, ingressPhase: 0, egressPhase: 9",
        AddressEntity(prefix="a", ingress_phase=0, egress_phase=9),
    ),
    "a waypoint with phases": (
        "prefix: a, waypoint: yes, ingressPhase: 2, egressPhase: 3",
        AddressEntity(prefix="a", waypoint=True, ingress_phase=2, egress_phase=3),
    ),
    "a priority": ("prefix: a, priority: 9", AddressEntity(prefix="a", priority=9)),
    "a fallback": ("prefix: a, enableFallback: yes", AddressEntity(prefix="a", enable_fallback=True)),
}


@pytest.mark.parametrize(("text", "entity"), ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_reads_as(text: str, entity: AddressEntity) -> None:
    assert address(text) == entity


BOTH = "Cannot specify both a 'prefix' and a 'pattern' attribute"
NEITHER = "Either a 'prefix' or 'pattern' attribute must be provided"
FALLBACK = "Fallback cannot be specified with waypoint or non-zero ingress and egress phases"
TOGETHER = "ingressPhase and egressPhase must be given together"

SECURE = "router { secureDefaults: yes }\n"

ADDRESS_ERRORS = {
    "neither": ("distribution: closest", NEITHER),
    "both": ("prefix: a, pattern: b", BOTH),
    "an empty prefix": ('prefix: ""', "Prefix must be a non-empty string type"),
    "an empty pattern": ('pattern: ""', "Pattern must be a non-empty string type"),
    "a prefix without tokens": ("prefix: ///", "Prefix invalid - no tokens"),
    "a pattern without tokens": ("pattern: ./.", "Pattern invalid - no tokens"),
    "a phase too high": ("prefix: a, ingressPhase: 10, egressPhase: 0", "is out of range: '10' (an integer from 0 to 9)"),
    "a phase too low": ("prefix: a, ingressPhase: 0, egressPhase: -1", "is out of range: '-1' (an integer from 0 to 9)"),
    "only ingress": ("prefix: a, ingressPhase: 0", TOGETHER),
    "only egress": ("prefix: a, egressPhase: 0", TOGETHER),
    "a priority too high": ("prefix: a, priority: 10", "is out of range: '10' (an integer from 0 to 9)"),
    "a fallback for a waypoint": ("prefix: a, waypoint: on, enableFallback: on", FALLBACK),
    "a fallback with phases": ("prefix: a, ingressPhase: 0, egressPhase: 1, enableFallback: on", FALLBACK),
    "a distribution": ("prefix: a, distribution: closets", "is not one of the values: 'closets' (did you mean 'closest'?)"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ADDRESS_ERRORS.values(), ids=ADDRESS_ERRORS)
def test_an_address_is_refused(text: str, message: str) -> None:
    errors = errors_of(f"{SECURE}address {{ {text} }}")
    assert len(errors) == 1
    assert message in errors[0].replace(f"; {REFUSED}", "")


@pytest.mark.parametrize("value", ["5", "true", '{"a": 1}', '["a"]'])
def test_a_prefix_of_the_wrong_type_is_refused(value: str) -> None:
    errors = errors_of(f'[["address", {{"prefix": {value}}}]]', Path("x.json"))
    assert ["Prefix must be a non-empty string type" in error for error in errors] == [True]


SAME = [
    ("prefix: a", "prefix: a/"),
    ("prefix: a", "pattern: a.#"),
    ("pattern: #/*", "pattern: */#"),
    ("pattern: #", "pattern: #/#"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_the_same_addresses_twice_are_refused(first: str, second: str) -> None:
    errors = errors_of(f"router {{ secureDefaults: yes }} address {{ {first} }}\naddress {{ {second} }}")
    assert len(errors) == 1
    assert "the same addresses are configured already, at (text):1:" in errors[0]


# --------------------------------------------------------------------------------------------------- between sections
ERRORS = {
    "an unknown section": ("listner {\n}", "(text):1:1: listner: unknown section (did you mean 'listener'?)"),
    "a full type name": ("router.config.address {\n}", "unknown section (did you mean 'address'?)"),
    "the first letter counts": ("Router {\n}", "unknown section (did you mean 'router'?)"),
    "an unknown attribute": ("router { ids: a }", "(text):1:10: router.ids: unknown attribute (did you mean 'id'?)"),
    "an attribute like nothing": ("router { qqqqq: a }", "(text):1:10: router.qqqqq: unknown attribute"),
    "type": ("router { type: router }", "router.type: this attribute is reported by management and cannot be set"),
    "identity": ("log { module: AGENT, identity: x }", "log.identity: this attribute is reported by management"),
    "a statistic": ("router { secureDefaults: yes, addrCount: 1 }", "router.addrCount: this attribute is reported by management"),
    "no integer": ("listener { maxSessions: many }", "must be an integer: 'many' (an integer from 0 to 32768)"),
    "a fraction": ("listener { maxSessions: 1.5 }", "must be an integer: '1.5'"),
    "digits of another alphabet": ("listener { maxSessions: ٣ }", "must be an integer"),
    "an integer too large": (f"{SECURE}autoLink {{ address: a, direction: in, phase: 10 }}", "with secureDefaults it is refused: '10' (an integer from 0 to 9)"),
    "an integer far too large": (f"router {{ drainTimeoutSeconds: {'9' * 5000} }}", "is out of range"),
    "a boolean": ("listener { authenticatePeer: 1 }", "must be yes or no: '1'"),
    "another boolean": ("listener { authenticatePeer: y }", "must be yes or no: 'y'"),
    "an enum": ("listener { stripAnnotations: Both }", "is not one of the values: 'Both' (did you mean 'both'?)"),
    "an enum's index": ("listener { stripAnnotations: 4 }", "'4' (one of in, out, both, no)"),
    "a map for a text": ("listener { host: {\n a: b\n }\n}", "listener.host: must be text: '{...}'"),
    "a text for a map": ("listener { openProperties: a }", "Properties must be a map"),
    "a port": (SECURE + "listener { host: ::1, port: 65536 }", "with secureDefaults it is refused: '65536' (a number from 0 to 65535, or a service name)"),
    "a service": ("listener { port: a/b }", "is neither a port number nor a service name: 'a/b'"),
    "a host": ("listener { host: a b }", "must not contain blanks"),
    "a part of a message": (SECURE + "listener { host: ::1, logMessage: tos }", "'tos' is not a part of a message"),
    "all and more": (SECURE + "listener { host: ::1, logMessage: all,to }", "'all' is not a part of a message"),
    "a failover host": ("listener { failoverUrls: a,,b }", "'' has no usable host"),
    "a failover port": ("listener { failoverUrls: a:99999 }", "is not a port"),
    "a failover scheme": ("listener { failoverUrls: ://a }", "empty scheme"),
    "too many properties": (
        f"listener {{ openProperties: {{ {', '.join(f'p{number}: 1' for number in range(65))} }} }}",
        "has 65 entries",
    ),
    "a reserved property": ("listener { openProperties: { port: x } }", "Reserved key 'port' not allowed"),
    "a product that is no text": ("connector { openProperties: { product: 1 } }", "'product' must be text"),
    "a version that is no text": ("listener { openProperties: { version: 4.0 } }", "'version' must be text"),
    "a reserved prefix": ("listener { openProperties: { qd.x: x } }", "Reserved key 'qd.x' not allowed"),
    "another reserved prefix": ("listener { openProperties: { x-opt-qd.x: x } }", "Reserved key 'x-opt-qd.x' not"),
    "a key that is not ASCII": ("listener { openProperties: { é: x } }", "Property keys must be ASCII encoded"),
    "an integer that no peer reads": ("listener { openProperties: { a: 9223372036854775808 } }", "64 bits"),
    "a log module": ("log { module: SERVERS }", "'SERVERS' (did you mean 'SERVER'?)"),
    "no log module": ("log { enable: info }", "(text):1:1: log: the attribute 'module' must be given"),
    "a log level": ("log { module: AGENT, enable: info wrning+ }", "'wrning+' is not a log level: 'info wrning+' (did you mean 'warning'?)"),
    "a blank in the id": ("router { id: a b }", "must not contain blanks or control characters: 'a b'"),
    "a control character in the id": ('router { id: "a\\u0007" }', "must not contain blanks or control characters"),
    "a long id": (f"router {{ id: {'x' * 128} }}", "is 128 characters long"),
    "an empty id": ('router { id: "" }', "must not be empty"),
    "old and new name": ("log { module: AGENT, output: a, outputFile: b }", "'output' is the old name of 'outputFile': both are given"),
    "two routers": ("router {\n}\nrouter {\n}", "(text):3:1: router: there is one already, at (text):1:1"),
    "a log module twice": ("log { module: AGENT }\nlog { module: AGENT }", "(text):2:15: log.module: this module has a section already, at (text):1:15: 'AGENT'"),
    "a name twice": ("listener { name: a, port: 1 }\nlistener { name: a, port: 2 }", "(text):2:18: listener.name: this name is used already, at (text):1:18: 'a'"),
    "a socket twice": ("listener { port: 1 }\nlistener { port: 1 }", "(text):2:18: listener.port: this host and port belong to a listener already, at (text):1:18: '1'"),
    "an inter-router listener": ("listener { role: inter-router }", "role='standalone' not allowed to connect to or accept connections from other routers."),
    "an edge listener": ("router { mode: standalone }\nlistener { role: edge }", "role='standalone' not allowed to connect to or accept"),
    "an inter-router connector": ("connector { role: inter-router }", "role='standalone' not allowed to connect to or accept"),
    "an edge connector": ("connector { role: edge }", "role='standalone' not allowed to connect to or accept"),
    "an inter-router listener at the edge": ("router { mode: edge }\nlistener { role: inter-router }", "role='inter-router' only allowed with router mode='interior'"),
    "an inter-router connector at the edge": ("router { mode: edge }\nconnector { role: inter-router }", "role='inter-router' only allowed with router mode='interior'"),
    "an edge listener at the edge": ("router { mode: edge }\nlistener { role: edge }", "role='edge' only allowed with router mode='interior'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_its_place_and_its_cause(text: str, message: str) -> None:
    errors = errors_of(text)
    assert len(errors) == 1
    assert message in errors[0]


def test_properties_do_not_go_with_the_role_of_a_router() -> None:
    errors = errors_of("listener {\n role: inter-router\n openProperties: { a: b }\n}")
    assert "openProperties not allowed for role inter-router" in errors[1]


def test_names_may_meet_across_kinds_of_sections() -> None:
    configuration = load(text="listener { name: a }\naddress { name: a, prefix: b }")
    assert configuration.listeners[0].name == configuration.addresses[0].name == "a"


def test_one_host_and_port_in_both_families_and_free_ports_are_no_conflict() -> None:
    text = "listener { host: h, protocolFamily: IPv4 }\nlistener { host: h, protocolFamily: IPv6 }\n"
    assert len(load(text=text + "listener { port: 0 }\nlistener { port: 0 }").listeners) == 4


def test_every_error_is_reported_at_once_in_the_order_of_the_file() -> None:
    text = "log {\n}\nlistener {\n prot: 1\n port: x y\n}\nfoo\nvhost {\n}\nrouter { id: a b }\n"
    places = [error.split(": ")[0] for error in errors_of(text)]
    assert places == [f"(text):{place}" for place in ("1:1", "4:2", "5:8", "7:1", "8:1", "10:14")]


def test_a_secret_is_not_shown_in_an_error() -> None:
    assert "hunter2" not in errors_of('listener {\n port: "password hunter2"\n}')[0]


# ------------------------------------------------------------------------------------------------ what has no effect
INERT = [(kind.section, row) for kind in CONFIGURED for row in attributes_of(kind.entity) if row.inert]
ANOTHER_VALUE = {Kind.INTEGER: "7", Kind.STRING: "x", Kind.PATH: "x"}


@pytest.mark.parametrize(("section", "row"), INERT, ids=lambda value: getattr(value, "name", value))
def test_an_attribute_without_effect_is_warned_of(section: str, row: Attribute) -> None:
    value = ("no" if row.default else "yes") if row.kind is Kind.BOOLEAN else ANOTHER_VALUE[row.kind]
    text = f"{section} {{ {row.name}: {value} }}"
    assert [warning.endswith(f"accepted without effect: {row.inert}") for warning in warnings_of(text)] == [True]


WARNED = {
    "a pattern written otherwise": ("address { pattern: #/#/a }", "this pattern is the same as '#/a'"),
    "no value": ("listener {\n port:\n}", "no value: taken as not given"),
}


@pytest.mark.parametrize(("text", "message"), WARNED.values(), ids=WARNED)
def test_a_probable_mistake_is_a_warning(text: str, message: str) -> None:
    assert [message in warning for warning in warnings_of(text)] == [True]


# ---------------------------------------------------------------------------------------------------------- the table
ROWS = [(kind.section, row) for kind in CONFIGURED for row in attributes_of(kind.entity)]


@pytest.mark.parametrize("entity", [RouterEntity, ListenerEntity, AddressEntity, LogEntity])
def test_entities_are_frozen(entity: type) -> None:
    one = load(text="router {\n}\nlistener {\n}\naddress { prefix: a }\nlog { module: AGENT }")
    instances = [one.router, *one.listeners, *one.addresses, *one.logs]
    instance = next(value for value in instances if type(value) is entity)
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.name = "x"  # type: ignore[misc]
    assert instance.place.line > 0


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Configuration(router=RouterEntity()).source = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        listener("openProperties: { a: b }").open_properties["a"] = "c"  # type: ignore[index]


@pytest.mark.parametrize(("section", "row"), ROWS, ids=lambda value: getattr(value, "name", value))
def test_a_row_of_the_table_is_whole(section: str, row: Attribute) -> None:
    assert row.doc.endswith(".")
    assert same_name(row.field, row.name)
    assert row.kind is not Kind.ENUM or row.values
    assert row.default is None or row.kind is not Kind.INTEGER or row.low <= row.default <= row.high


def test_no_two_attributes_of_an_entity_can_be_meant_by_one_name() -> None:
    for kind in CONFIGURED:
        names = [name for row in attributes_of(kind.entity) for name in (row.name, *row.old_names)]
        assert len(set(names)) == len(names)
        assert len({name.lower() for name in names if name != "verifyHostName"}) == len({*names} - {"verifyHostName"})


def test_a_field_name_gives_the_attribute_name() -> None:
    assert camel("max_frame_size") == "maxFrameSize"
    assert camel("id") == "id"


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_of_the_manual_is_fresh_and_its_examples_load(name: str) -> None:
    text = pages()[name]
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "make docs"
    blocks = text.split("```\n")[1::2]
    assert blocks
    for block in blocks:
        load(text=block)


def test_the_manual_has_no_page_about_a_section_that_is_gone() -> None:
    kept = {f"reference/{path.name}" for path in (ROOT / "docs" / "reference").glob("*.md")}
    assert kept == {*pages()} - {"configuration.md"}


# ------------------------------------------------------------------------------------------------- what is not served
NOT_SERVED = {
    "a tenant": ("router { id: R, secureDefaults: yes }\npolicy { enableVhostPolicy: no }\nlistener { host: ::1, multiTenant: yes }", "listener", "multiTenant: with secureDefaults and without enableVhostPolicy it needs authenticatePeer: yes and tenantFrom"),
    "a console": ("console { home: a, proxy: b }", "console", "trouter starts no other programs"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "section", "reason"), NOT_SERVED.values(), ids=NOT_SERVED)
def test_an_unserved_setting_loads_with_a_reason_and_a_warning(text: str, section: str, reason: str) -> None:
    configuration = load(text=text)
    unserved = {entity.type.section: configuration.unserved(entity) for entity in configuration.entities}
    assert reason in unserved.pop(section)[0]
    assert not any(reasons for other, reasons in unserved.items() if other != "router")
    reported = [
        warning for warning in configuration.warnings if "not served" in warning.message and warning.section == section
    ]
    assert len(reported) == 1


@pytest.mark.parametrize(
    "text",
    [
        "listener { requireSsl: no, multiTenant: off }",
        "router { mode: standalone }",
        "policy { maxConnections: 65535 }",
    ],
)
def test_a_setting_that_states_the_default_is_served(text: str) -> None:
    configuration = load(text=text)
    assert not any(configuration.unserved(entity) for entity in configuration.entities)
    assert configuration.warnings == ()


def test_profiles_services_and_vhosts_are_there_before_a_listener_uses_them() -> None:
    configuration = load(text="sslProfile { name: a }\nauthServicePlugin { name: b, host: c }\nvhost { hostname: d }")
    assert not any(configuration.unserved(entity) for entity in configuration.entities)
    assert [entity.identity for entity in configuration.entities[-3:]] == [
        "sslProfile/a",
        "authServicePlugin/b",
        "vhost/d",
    ]


def test_every_module_has_a_log_entity() -> None:
    logs = load(text="log { module: SERVER, enable: debug+ }").logs
    assert len(logs) == 18
    assert logs[0].identity == "log/SERVER"
    assert [one.output_file for one in logs if one.module == "DEFAULT"] == ["stderr"]


IDENTITIES = {
    "listener { name: a, host: h, port: 1 }": ("listener/h:1:a", "a"),
    "listener {\n}": ("listener/:amqp", "listener/:amqp"),
    "connector { host: h }": ("connector/h:amqp", "connector/h:amqp"),
    "address { prefix: a }": ("address/0", "address/0"),
    "address { prefix: a, name: b }": ("address/0", "b"),
    "linkRoute { prefix: a, dir: in }": ("linkRoute/0", "linkRoute/0"),
    "autoLink { addr: a, dir: in, name: b }": ("autoLink/0", "b"),
    "vhost { hostname: a }": ("vhost/a", "vhost/a"),
    "vhost { name: a }": ("vhost/a", "a"),
    "sslProfile { name: a }": ("sslProfile/a", "a"),
    "dummy {\n}": ("dummy/0", "dummy/0"),
}


@pytest.mark.parametrize(("text", "expected"), IDENTITIES.items())
def test_identities_and_names(text: str, expected: tuple[str, str]) -> None:
    configuration = load(text=text)
    entity = configuration.find(expected[0])
    assert entity is not None
    assert entity.name == expected[1]
    assert configuration.by_name(expected[1]) is entity


def test_a_name_that_was_given_is_distinguished_from_one_by_default() -> None:
    given, default = load(text="listener { name: a, port: 1 }\nlistener { port: 2 }").listeners
    assert (given.given_name, default.given_name, default.name) == ("a", "", "listener/:2")
    assert dataclasses.replace(default, cost=2).given_name == ""
