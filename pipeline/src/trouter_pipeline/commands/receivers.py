"""The options of commands that send alerts: an address of AMQP, and a topic of Kafka."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from trouter_pipeline.commands.cluster import add_cluster, is_cluster_given, settings_of, wrong_cluster
from trouter_pipeline.commands.servers import add_servers, names_server, servers_of

if TYPE_CHECKING:
    from trouter.client.servers import Servers
    from trouter_pipeline.alerting import Receivers

_PREFIX: Final = "kafka-"
_SETTLE_S: Final = 60.0


def add_receivers(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where alerts go."""
    group = parser.add_argument_group(
        "alerts",
        "New alerts are sent as JSON: before the command ends, or with each batch of a stream. After a crash an alert "
        "may come twice, with the same message-id.",
    )
    group.add_argument("--alerts-to", metavar="ADDRESS", help="send each alert as a message to this address of -b")
    group.add_argument("--alerts-topic", metavar="TOPIC", help="send each alert as a record to this topic of --kafka")
    add_servers(
        parser, "the server of --alerts-to; may be given again", f"the outcomes of alerts; default {_SETTLE_S:g}", ()
    )
    cluster = parser.add_argument_group("the cluster of --alerts-topic")
    cluster.add_argument("--kafka", metavar="HOST:PORT,...", help="some brokers of the cluster")
    add_cluster(cluster, _PREFIX)


def receivers_of(arguments: argparse.Namespace) -> Receivers | None:
    """Return where alerts go, None for nowhere; ArgumentTypeError, ValueError, OSError for a file.

    The servers and their files are tried for what can be seen without connecting.
    """
    from trouter_pipeline.alerting import Receivers  # noqa: PLC0415  # only when it runs

    _refuse_idle(arguments)
    if arguments.alerts_to is None and arguments.alerts_topic is None:
        return None
    amqp: dict[str, str] = {}
    kafka = None
    if arguments.alerts_to is not None:
        if not names_server(arguments, os.environ):
            raise argparse.ArgumentTypeError("--alerts-to needs a server: give -b URL, as amqps://host:5671")
        servers = servers_of(arguments, os.environ)
        amqp = _options_of(servers, arguments.alerts_to, arguments.timeout)
    if arguments.alerts_topic is not None:
        import trouter_pipeline.kafka.alerts  # noqa: F401, PLC0415  # librdkafka, before Spark starts

        kafka = settings_of(arguments, arguments.alerts_topic, _PREFIX)
    return Receivers(amqp, kafka)


def _refuse_idle(arguments: argparse.Namespace) -> None:
    """Raise ArgumentTypeError for options that would have no effect, or contradict each other."""
    if arguments.alerts_to is None and (arguments.url or arguments.bus or arguments.context):
        raise argparse.ArgumentTypeError("a server is for --alerts-to ADDRESS")
    if (arguments.alerts_topic is None) != (arguments.kafka is None):
        raise argparse.ArgumentTypeError("--alerts-topic and --kafka belong together")
    if arguments.alerts_topic is None and is_cluster_given(arguments, _PREFIX):
        raise argparse.ArgumentTypeError(f"the options --{_PREFIX}... are for --alerts-topic")
    if wrong := wrong_cluster(arguments, _PREFIX):
        raise argparse.ArgumentTypeError(wrong)


def _options_of(servers: Servers, address: str, timeout_s: float | None) -> dict[str, str]:
    """Return the options of the sink for these servers; ValueError, with no secret in it."""
    from trouter_pipeline.connecting import peers  # noqa: PLC0415  # the client, only when alerts are sent
    from trouter_pipeline.options import Options, Side  # noqa: PLC0415

    given = {
        "url": ",".join(servers.urls),
        "address": address,
        "user": servers.user,
        "password": servers.password,
        "saslMechanisms": ",".join(servers.mechanisms),
        "tlsTrustFile": servers.trust_file,
        "tlsCertificateFile": servers.certificate,
        "tlsKeyFile": servers.key,
        "tlsKeyPassword": servers.key_password,
        "tlsVerifyName": "" if servers.verify_name else "false",
        "connectTimeoutS": timeout_s,
        "settleTimeoutS": timeout_s,
    }
    options = {name: str(value) for name, value in given.items() if value}
    peers(Options.parse(options, Side.WRITE))
    return options
