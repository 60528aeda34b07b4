"""The options of commands that connect to a cluster of Kafka: TLS, the login, and properties of librdkafka's."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trouter_pipeline.kafka.settings import Settings

#: Properties that exactly once depends on, or that have options.
_FIXED: Final = {
    "enable.idempotence": "without it a record may come twice",
    "acks": "with less than all of them a record may be lost",
    "transactional.id": "each spool has its own",
    "bootstrap.servers": "see --kafka",
    "isolation.level": "it belongs to --transactions",
}
_TIMEOUT_S: Final = 60.0


def add_cluster(group: argparse._ArgumentGroup, prefix: str = "") -> None:
    """Add the options, each with ``prefix`` before its name, for a command that connects to other servers, too."""
    group.add_argument(
        f"--{prefix}timeout",
        type=float,
        default=_TIMEOUT_S,
        metavar="SECONDS",
        help=f"the longest wait for the brokers ({_TIMEOUT_S:g})",
    )
    group.add_argument(
        f"--{prefix}tls", action="store_true", help="connect with TLS; any of the other options for it does so"
    )
    for name, what in (
        ("tls-ca", "the certificates that sign the brokers'; by default those of the system"),
        ("tls-certificate", "the client's certificate"),
        ("tls-key", "its key"),
        ("tls-key-password-file", "the key's password"),
    ):
        group.add_argument(f"--{prefix}{name}", default="", metavar="FILE", help=what)
    group.add_argument(
        f"--{prefix}sasl-mechanism", default="", metavar="NAME", help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, ..."
    )
    group.add_argument(f"--{prefix}sasl-user", default="", metavar="NAME", help="the user")
    group.add_argument(f"--{prefix}sasl-password-file", default="", metavar="FILE", help="the user's password")
    group.add_argument(
        f"--{prefix}property",
        action="append",
        type=partial(_property, f"--{prefix}property"),
        default=[],
        metavar="NAME=VALUE",
        help="a property of librdkafka's, such as compression.type=zstd; may be given again",
    )


def _property(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError("write NAME=VALUE")
    if "password" in name or "secret" in name or name in _FIXED:
        raise argparse.ArgumentTypeError(f"{name} is not for {option}: {_FIXED.get(name, 'give a file with it')}")
    return name, value


def _values(arguments: argparse.Namespace, prefix: str) -> dict[str, Any]:
    """Return the values of the options by the fields of `Settings`, without the property."""
    of_tls = ("tls", "tls_ca", "tls_certificate", "tls_key", "tls_key_password_file")
    of_login = ("sasl_mechanism", "sasl_user", "sasl_password_file")
    return {name: getattr(arguments, f"{prefix.replace('-', '_')}{name}") for name in (*of_tls, *of_login)}


def wrong_cluster(arguments: argparse.Namespace, prefix: str = "") -> str:
    """Return the fault of the options, "" for none."""
    given = _values(arguments, prefix)
    if _timeout_s(arguments, prefix) <= 0:
        return f"--{prefix}timeout is greater than 0"
    if given["sasl_mechanism"] and not (given["sasl_user"] and given["sasl_password_file"]):
        return f"--{prefix}sasl-mechanism needs --{prefix}sasl-user and --{prefix}sasl-password-file"
    if given["sasl_user"] and not given["sasl_mechanism"]:
        return f"--{prefix}sasl-user needs --{prefix}sasl-mechanism"
    return ""


def is_cluster_given(arguments: argparse.Namespace, prefix: str) -> bool:
    """Return whether any of the options is given."""
    properties = getattr(arguments, f"{prefix.replace('-', '_')}property")
    return any(_values(arguments, prefix).values()) or bool(properties) or _timeout_s(arguments, prefix) != _TIMEOUT_S


def settings_of(arguments: argparse.Namespace, topic: str, prefix: str = "", **more: Any) -> Settings:
    """Return the settings of a topic at the cluster that ``--kafka`` names; ``more`` are fields beside these."""
    from trouter_pipeline.kafka.settings import Settings  # noqa: PLC0415

    given = _values(arguments, prefix)
    given["tls"] = any(value for name, value in given.items() if name.startswith("tls"))
    properties = dict(getattr(arguments, f"{prefix.replace('-', '_')}property"))
    timeout_s = _timeout_s(arguments, prefix)
    return Settings(bootstrap=arguments.kafka, topic=topic, timeout_s=timeout_s, properties=properties, **given, **more)


def _timeout_s(arguments: argparse.Namespace, prefix: str) -> float:
    timeout_s: float = getattr(arguments, f"{prefix.replace('-', '_')}timeout")
    return timeout_s
