"""The parts of each section's page beside its attributes: an example, commands, metrics and related pages.

A test loads each example, gives the commands to their parsers, and checks that the metrics and pages exist.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Shown(NamedTuple):
    """The example, commands, metrics and pages of one section."""

    #: A whole configuration that is valid as it stands.
    example: str
    #: Commands with which an operator queries a running router about it.
    commands: tuple[str, ...]
    #: Pages of the manual about it.
    pages: tuple[str, ...]
    metrics: tuple[str, ...] = ()


#: For a section without an example.
NOTHING: Final = Shown("", (), ())
#: The other sections of an example.
_LISTENER: Final = "listener { host: 127.0.0.1, port: amqp, saslMechanisms: ANONYMOUS }\n"
_BROKER: Final = "connector { name: broker, role: route-container, host: 127.0.0.1, port: 5673 }\n"
_VHOST: Final = """\
policy {
    enableVhostPolicy: yes
}
vhost {
    hostname: $default
    maxConnectionsPerUser: 20
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: 127.0.0.1, ::1
            sources: news/*, inbox.${user}
            targets: orders/*
        }
    }
}
"""

SHOWN: Final[dict[str, Shown]] = {
    "router": Shown(
        f"router {{\n    id: Site.A\n    mode: interior\n    drainTimeoutSeconds: 30\n}}\n{_LISTENER}",
        ("trouter stat --general", "trouter stat --memory", "trouter manage query --type router"),
        ("networks.md", "edge.md", "authentication.md", "running.md"),
        ("trouter_uptime_seconds", "trouter_memory_bytes", "trouter_held_message_bytes_limit"),
    ),
    "sslProfile": Shown(
        "sslProfile {\n    name: site\n    caCertFile: certs/ca.crt\n    certFile: certs/router.crt\n"
        "    privateKeyFile: certs/router.key\n}\nlistener {\n    port: amqps\n    sslProfile: site\n"
        "    requireSsl: yes\n    saslMechanisms: EXTERNAL\n    authenticatePeer: yes\n}\n",
        ("trouter manage query --type sslProfile name certFile certificateEnds",),
        ("tls.md", "hardening.md"),
        ("trouter_tls_cert_not_after_seconds",),
    ),
    "authServicePlugin": Shown(
        "authServicePlugin {\n    name: accounts\n    host: 127.0.0.1\n    port: 5670\n}\nlistener {\n"
        "    host: 127.0.0.1\n    port: amqp\n    saslPlugin: accounts\n    authenticatePeer: yes\n}\n",
        ("trouter manage query --type authServicePlugin",),
        ("auth-service.md", "authentication.md"),
    ),
    "listener": Shown(
        "listener {\n    name: clients\n    host: 127.0.0.1\n    port: amqp\n    saslMechanisms: ANONYMOUS\n"
        "    maxConnections: 1000\n    linkCapacity: 500\n}\n",
        ("trouter manage query --type listener name host port", "trouter stat --connections"),
        ("outcomes.md", "tls.md", "authentication.md", "hardening.md", "metrics.md"),
        ("trouter_connections", "trouter_connections_accepted_total", "trouter_connections_refused_total"),
    ),
    "connector": Shown(
        "connector {\n    name: broker\n    role: route-container\n    host: 127.0.0.1\n    port: 5673\n}\n"
        + _LISTENER,
        ("trouter manage query --type connector name connectionStatus connectionMsg", "trouter stat --connections"),
        ("link-routing.md", "networks.md", "tls.md"),
        ("trouter_network_neighbours",),
    ),
    "log": Shown(
        f"log {{\n    module: SERVER\n    enable: debug+\n    outputFile: stderr\n}}\n{_LISTENER}",
        ("trouter stat --log --limit 20", "trouter manage query --type logStats"),
        ("logging.md",),
        ("trouter_log_events_total", "trouter_log_lines_lost_total"),
    ),
    "address": Shown(
        "address {\n    prefix: news\n    distribution: multicast\n}\n"
        f"address {{\n    pattern: orders/#\n    distribution: balanced\n}}\n{_LISTENER}",
        ("trouter stat --address", "trouter stat --why orders/new"),
        ("addresses.md", "waypoints.md", "networks.md"),
        ("trouter_deliveries_total", "trouter_settle_latency_seconds"),
    ),
    "linkRoute": Shown(
        f"{_BROKER}linkRoute {{\n    prefix: queue\n    direction: in\n    connection: broker\n}}\n"
        f"linkRoute {{\n    prefix: queue\n    direction: out\n    connection: broker\n}}\n{_LISTENER}",
        ("trouter stat --linkroutes",),
        ("waypoints.md", "link-routing.md", "rabbitmq.md"),
        ("qdr_link_routes_total",),
    ),
    "autoLink": Shown(
        f"{_BROKER}address {{\n    prefix: jobs\n    waypoint: yes\n}}\n"
        "autoLink {\n    address: jobs\n    direction: out\n    connection: broker\n}\n"
        f"autoLink {{\n    address: jobs\n    direction: in\n    connection: broker\n}}\n{_LISTENER}",
        ("trouter stat --autolinks",),
        ("waypoints.md", "link-routing.md", "rabbitmq.md"),
        ("qdr_auto_links_total",),
    ),
    "exchange": Shown(
        f"exchange {{\n    name: weather\n    address: weather\n    alternateAddress: weather.other\n}}\n{_LISTENER}",
        ("trouter manage query --type exchange name receivedCount droppedCount",),
        ("exchanges.md",),
    ),
    "binding": Shown(
        "exchange {\n    name: weather\n    address: weather\n}\n"
        "binding {\n    exchangeName: weather\n    bindingKey: europe.#\n    nextHopAddress: weather.europe\n"
        f"}}\n{_LISTENER}",
        ("trouter manage query --type binding bindingKey nextHopAddress matchedCount",),
        ("exchanges.md",),
    ),
    "console": Shown(
        "listener {\n    name: web\n    host: 127.0.0.1\n    port: 5680\n    http: yes\n}\n",
        ("trouter manage query --type listener name host port http",),
        ("console.md",),
    ),
    "policy": Shown(
        _VHOST + _LISTENER,
        ("trouter stat --policy", "trouter policy explain -c router.conf --user alice --host 127.0.0.1"),
        ("policy.md", "hardening.md"),
    ),
    "vhost": Shown(
        _VHOST + _LISTENER,
        ("trouter stat --vhosts", "trouter stat --vhostgroups", "trouter stat --vhoststats"),
        ("policy.md", "multi-tenancy.md"),
        ("trouter_vhost_connections", "trouter_vhost_quota_alarms_total", "trouter_vhost_quota_alarms_raised"),
    ),
    "dummy": Shown(
        f"dummy {{\n    name: probe\n    arg1: hello\n    num1: 7\n}}\n{_LISTENER}",
        ("trouter manage query --type dummy",),
        ("management.md",),
    ),
    "recordLog": Shown(
        f"recordLog {{\n    name: audit\n    dir: records\n    kinds: audit\n    whenFull: dropNewest\n}}\n{_LISTENER}",
        ("trouter manage query --type recordLog name recordsLost", "trouter records check records"),
        ("records.md", "pipeline.md"),
    ),
}
