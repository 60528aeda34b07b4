"""Any message to the management node is read without an exception and gets at most one answer.

The node carries out requests that change the router. After each message it answers GET-MGMT-NODES with status 200.

Allowed: nothing. An invalid request gets an answer with its error, and no answer has status 500.
"""

from __future__ import annotations

import trio
import trio.testing

from tests.management.still import Asker, sections_of, serve
from trouter.management.operations import LOGGED
from trouter.management.requests import read_request
from trouter.management.status import INTERNAL_ERROR, REASONS
from trouter.testing.fuzz import values

MUTATOR = values
COVERS = ("trouter.management.requests", "trouter.management.operations", "trouter.management.query")
REPLY_TO = b"REPLY-TO"


def check(data: bytes) -> None:
    request = read_request(data)
    assert len(request.reply_to.encode()) <= 4096
    assert len(request.summary(LOGGED)) < 4000
    trio.run(ask, data)


async def ask(data: bytes) -> None:
    async with trio.open_nursery() as nursery:
        asker = await serve(nursery)
        # A seed does not contain the receiver's real address; its stand-in REPLY-TO is replaced by the address.
        address = asker.reply_to.encode()
        named = data.replace(b"\xa1" + bytes((len(REPLY_TO),)) + REPLY_TO, b"\xa1" + bytes((len(address),)) + address)
        asker.sender.send(named)
        asker.memory.pump()
        await trio.testing.wait_all_tasks_blocked()
        asker.memory.pump()
        look(asker)
        status, text, _ = await alive(asker)
        assert status == 200, text
        nursery.cancel_scope.cancel()


def look(asker: Asker) -> None:
    answers = asker.receiver.received
    assert len(answers) <= 1
    for answer in answers:
        sections = sections_of(answer.payload)
        status = int(sections[0x74]["statusCode"])
        assert status in REASONS
        assert status != INTERNAL_ERROR, sections[0x74]["statusDescription"]
    asker._taken = len(answers)


async def alive(asker: Asker) -> tuple[int, str, object]:
    return await asker.ask("GET-MGMT-NODES")
