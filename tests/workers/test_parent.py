"""The parent of the workers, when one of them sends what is no message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.routers import needs_workers, stopped_cleanly, watched
from tests.workers import spoiled
from tests.workers.test_calls import BAD, message
from tests.workers.test_view import LISTENER, TWO
from tests.workers.test_workers import pid_of
from trouter.workers.calls import MAX_MESSAGE_BYTES

#: Messages that end the channel, by what is wrong with them, and what the log says of each.
KINDS = {
    "cut": (b'{"note": "alive", "fac', "its first line is not JSON"),
    "malformed": (BAD["no kind of message"][0], "it is no call, answer, error or note"),
    "too large": (b" " * (MAX_MESSAGE_BYTES + 1), f"it has more than {MAX_MESSAGE_BYTES} bytes"),
    "two in one": (BAD["a note that is an answer"][0], "it is no call, answer, error or note"),
    "wrong facts": (message(note="alive", facts={"so": 1}), "its facts are not those of 'alive'"),
}


@needs_workers
@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_sends_what_is_no_message_is_replaced_and_the_router_goes_on(
    kind: str, place: int, tmp_path: Path
) -> None:
    octets, why = KINDS[kind]
    path = tmp_path / "router.conf"
    path.write_text(TWO + LISTENER, encoding="utf-8")
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    with watched([sys.executable, spoiled.__file__, str(path), str(pipes)], path) as router:
        router.wait_for_line("2 workers serve")
        with stopped_cleanly(router):
            (pipes / str(pid_of(router, place))).write_bytes(octets)
            router.wait_for_line(f"worker {place} sent a bad message: {why}; its channel is closed, and it stops")
            router.wait_for_line(rf"worker {place} \(process ID \d+\) ended with status 0: it is started again")
            router.wait_for_line(rf"\[W{place}\] Operational, 1 Threads Running", 2)
            other = 3 - place
            assert len(router.matching(rf"\[W{other}\] Operational, 1 Threads Running")) == 1
