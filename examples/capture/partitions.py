"""Print the changes in a topic of Kafka by partition: `python examples/capture/partitions.py HOST:PORT TOPIC`."""

import json
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

BOOTSTRAP, TOPIC = sys.argv[1:3]
PATIENCE_S = 60

consumer = Consumer(
    {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": "partitions",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
)
partitions = sorted(consumer.list_topics(TOPIC, PATIENCE_S).topics[TOPIC].partitions)
consumer.assign([TopicPartition(TOPIC, number, 0) for number in partitions])
changes: dict[int, list[int]] = {number: [] for number in partitions}
sources: dict[int, set[str]] = {number: set() for number in partitions}
ended = 0
while ended < len(partitions):
    message: Any = consumer.poll(PATIENCE_S)
    if message is None:
        sys.exit(f"{BOOTSTRAP} does not answer")
    if message.error() is None:
        changes[message.partition()].append(json.loads(message.value())["change"])
        sources[message.partition()].add(dict(message.headers())["trouter-source"].decode())
    elif message.error().code() == KafkaError._PARTITION_EOF:
        ended += 1
    else:
        sys.exit(message.error().str())
consumer.close()
for number in partitions:
    if found := changes[number]:
        order = "in order, each once" if found == list(range(found[0], found[0] + len(found))) else "not in order"
        print(f"partition {number}: {len(found)} changes of {', '.join(sources[number])}, {order}, to {found[-1]}")
