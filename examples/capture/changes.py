"""Send changes of a table to `changes/SOURCE`: `python examples/capture/changes.py SOURCE FIRST LAST [URL]`.

A change has a number, which is its message-id too: a reader recognises a duplicate by it. If FIRST is greater than LAST
the changes are sent from the last one back.
"""

import json
import sys
from collections.abc import Iterator

import trio

from trouter.client import ACCEPTED, Message, Properties, connect

SOURCE, FIRST, LAST = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
URL = sys.argv[4] if len(sys.argv) > 4 else "amqp://127.0.0.1:5673"


def changes() -> Iterator[Message]:
    step = 1 if FIRST <= LAST else -1
    for number in range(FIRST, LAST + step, step):
        operation = "insert" if number <= 100 else "update" if number % 7 else "delete"
        row = {"id": number % 100, "change": number, "op": operation, "amount": number / 4}
        yield Message(
            json.dumps(row).encode(),
            properties=Properties(message_id=f"{SOURCE}-{number}", content_type="application/json"),
        )


async def main() -> None:
    taken = 0
    async with connect(URL) as connection, connection.open_sender(f"changes/{SOURCE}") as sender:
        async for message, outcome in sender.send_all(changes()):
            if outcome != ACCEPTED:
                sys.exit(f"{message.properties.message_id}: {outcome}")
            taken += 1
    print(f"{taken} changes of {SOURCE} are safe")


trio.run(main)
