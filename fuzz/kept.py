"""Any frames of a client leave memory in the router that is charged to it, and that is bounded by their size.

The first byte chooses which links the router refuses. The target measures with tracemalloc the memory that is left once
all frames are answered, and compares it with what the router charges the connection for (trouter.admission.memory), and
with the bytes that the client sent. After the client is gone, nothing is left.

Allowed: nothing.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from typing import Final

from trouter.admission.memory import cost_bytes
from trouter.core.terms import PeerTerms
from trouter.engine.events import LinkAttached
from trouter.engine.limits import EngineLimits
from trouter.engine.states import UNANSWERED
from trouter.testing import MemoryClient, MemoryRouter
from trouter.testing.fuzz import behind, frames
from trouter.wire.constants import MAX_CLIENT_ATTACH_NODES

MUTATOR = behind(1, frames)
COVERS = ("trouter.engine.attaches", "trouter.engine.session_links")
#: As a listener's clients have them.
LIMITS: Final = EngineLimits(
    max_frame_bytes=16384,
    channel_max=255,
    max_links=2000,
    max_buffered_bytes=64 * 1024 * 1024,
    max_attach_nodes=MAX_CLIENT_ATTACH_NODES,
    whole_attaches=False,
    idle_timeout_s=0.0,
)
TERMS: Final = PeerTerms(link_capacity=10)
#: Bytes of memory for each byte that a client sends, at most (docs/limits.md). The shortest attach, of some 50 bytes,
#: comes to some 70 with its link and its address; no other frame comes near it.
WORST_RATIO: Final = 100
#: Memory of a connection before its first frame, and slack of tables that grow in steps.
BASE_BYTES: Final = 40_000
#: The memory left is charged at least by half.
CHARGED_PART: Final = 2


def check(data: bytes) -> None:
    how, stream = (data[0], data[1:]) if data else (0, b"")
    traced = sys.gettrace()
    if traced is not None:  # a coverage, which keeps memory for each line, watches a round that is not measured
        play(MemoryRouter(), how, stream)
    sys.settrace(None)
    MemoryRouter().connect(TERMS, limits=LIMITS).drop()  # makes what is made once
    router = MemoryRouter()
    collected = gc.isenabled()
    gc.disable()  # so that all that is made here is in the youngest generation, which is quickly searched
    gc.collect(0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        client = play(router, how, stream)
        gc.collect(0)
        left = tracemalloc.get_traced_memory()[0] - before
        charged = cost_bytes(client.server)
        assert left <= BASE_BYTES + WORST_RATIO * len(stream), f"{left} bytes are left of {len(stream)}"
        assert left <= BASE_BYTES + CHARGED_PART * charged, f"{left} bytes are left, {charged} are charged"
        client.drop()
        del client
        router.clients.clear()
        router.core.watch_links(1.0)  # lets go of the links that were lost last
        gc.collect(1)  # the first collection has moved the survivors there
        left = tracemalloc.get_traced_memory()[0] - before
        assert left <= BASE_BYTES, f"{left} bytes are left of a client that is gone"
    finally:
        tracemalloc.stop()
        if collected:
            gc.enable()
        sys.settrace(traced)


def play(router: MemoryRouter, how: int, stream: bytes) -> MemoryClient:
    """Let a new client of the router send the stream, answer it, and return the client."""
    client = router.connect(TERMS, limits=LIMITS)
    server = client.server
    for start in range(0, len(stream), 4096):
        server.receive_data(stream[start : start + 4096])
        answer(client, how)
        router.flush()
        server.out.clear()
    return client


def answer(client: MemoryClient, how: int) -> None:
    """Serve the events of the client's frames; refuse some of the links."""
    server = client.server
    while server.events or server.has_more:
        if not server.events:
            server.receive_data(b"")
        for event in list(server.events):
            server.events.remove(event)
            refuses = isinstance(event, LinkAttached) and (how >> event.link.handle % 8) & 1
            if refuses and isinstance(event, LinkAttached) and event.link.state in UNANSWERED:
                event.link.refuse(None)
            else:
                client._serve(event)
