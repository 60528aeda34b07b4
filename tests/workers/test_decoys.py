"""All workers give an unknown user the same salt: the answers of several ones do not tell which users exist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.peer import Peer
from tests.routers import RunningRouter, process, stopped_cleanly
from trouter.wire.performatives import SaslChallenge, SaslInit
from trouter_plugins.users import DECOYS
from trouter_plugins.users_file import put_user

WORKERS = 2
#: Starts of a login for each name; the workers get connections in turn.
STARTS = 6
LISTENER = "listener {\n    host: 127.0.0.1\n    port: 0\n    saslMechanisms: SCRAM-SHA-256\n}\n"

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("decoys")
    users = folder / "users"
    for user in ("alice", "bob"):
        put_user(users, user, b"secret")
    lines = users.read_bytes().splitlines(keepends=True)
    users.write_bytes(b"".join(line for line in lines if not line.startswith(DECOYS)))
    own = f"router {{\n    id: A\n    workers: {WORKERS}\n    usersFile: {users}\n}}\n"
    with process(own + LISTENER, folder) as running:
        running.wait_for_line(rf"MAIN \(notice\) {WORKERS} workers serve")
        with stopped_cleanly(running):
            yield running


def salt_of(router: RunningRouter, user: str) -> bytes:
    """Return the salt in the challenge to a user's first message."""
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        peer.say(SaslInit("SCRAM-SHA-256", f"n,,n={user},r=abcdefgh".encode()), frame_type=1)
        return bytes(peer.expect(SaslChallenge).challenge).split(b",")[1]


def test_known_and_unknown_users_have_one_salt_each(router: RunningRouter) -> None:
    salts = {
        user: {salt_of(router, user) for _ in range(STARTS)} for user in ("alice", "bob", "nobody", "carol", "zoe")
    }
    assert {user: len(seen) for user, seen in salts.items()} == dict.fromkeys(salts, 1)
    assert len(set.union(*salts.values())) == len(salts)
