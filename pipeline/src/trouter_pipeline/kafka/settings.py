"""How to reach a Kafka cluster and where records go there: the settings of one topic, and librdkafka's for its clients.

They are pickled for Spark's workers. So secrets are in files, of which they have the paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trouter_pipeline.kafka.failures import NotForwarded

#: The choice of the partition by the source of a message.
SOURCE: Final = "source"
#: No file with a secret is longer.
_MAX_SECRET_BYTES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a topic. ``timeout_s`` is the longest wait for an answer of the brokers."""

    bootstrap: str
    topic: str
    #: `SOURCE`, or the field whose text chooses the partition.
    partition_by: str = SOURCE
    #: The fields of the key; none for records without keys.
    keys: Sequence[str] = ()
    timeout_s: float = 60.0
    #: Whether batches are transactions, if the brokers have them.
    transactions: bool = True
    tls: bool = False
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_key_password_file: str = ""
    sasl_mechanism: str = ""
    sasl_user: str = ""
    sasl_password_file: str = ""
    #: Properties of librdkafka's, which override ours.
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The topic and its cluster, for people."""
        return f"topic {self.topic} at {self.bootstrap}"

    def client(self) -> dict[str, Any]:
        """Return librdkafka's configuration for any client; NotForwarded if a file with a secret cannot be read."""
        found: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "trouter",
            "socket.connection.setup.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 1_000,
        }
        found["security.protocol"] = ("sasl_" if self.sasl_mechanism else "") + ("ssl" if self.tls else "plaintext")
        plain = {
            "ssl.ca.location": self.tls_ca,
            "ssl.certificate.location": self.tls_certificate,
            "ssl.key.location": self.tls_key,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_user,
        }
        found |= {name: value for name, value in plain.items() if value}
        for name, file in (
            ("ssl.key.password", self.tls_key_password_file),
            ("sasl.password", self.sasl_password_file),
        ):
            if file:
                found[name] = _secret_in(file)
        return found | dict(self.properties)


def _secret_in(file: str) -> str:
    try:
        text = Path(file).read_bytes()[: _MAX_SECRET_BYTES + 1].decode()
    except OSError as error:
        raise NotForwarded(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NotForwarded(f"{file}: the secret is not text in UTF-8") from None
    if len(text) > _MAX_SECRET_BYTES:
        raise NotForwarded(f"{file}: a secret has at most {_MAX_SECRET_BYTES} bytes")
    return text.rstrip("\r\n")
