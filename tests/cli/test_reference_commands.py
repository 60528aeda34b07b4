"""Commands on pages of reference, which stand alone: each is typed as printed, with what its page takes for granted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.walks import Shell
from trouter.client import ConnectionClosed, connect

_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Lines that run until they are interrupted, that need a database of others, or a network.
_LEFT_OUT = re.compile(r"bench (receive|sink|hold)|records follow|import-sasldb|stat -c --context|--watch")
CONFIGURATION = """
router { id: A, usersFile: users }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }
listener { name: backdoor, host: 127.0.0.1, port: 0 }
recordLog { name: evidence, dir: records }
"""


class Typist(Shell):
    """A shell whose tools ask the router of the test."""

    def __init__(self, folder: Path, router: RunningRouter | None = None) -> None:
        super().__init__(folder, ports=("9",), brings=())
        self._environment |= {"SECRET": "a password of carol", "XDG_CONFIG_HOME": str(folder)}
        if router is not None:
            self._environment["TROUTER_BUS"] = f"127.0.0.1:{router.port}"

    def type_all(self, text: str) -> str:
        """Type each line; each must end with 0. Return all that they print."""
        said = []
        for line in text.splitlines():
            if not _LEFT_OUT.search(line):
                status, output = self.type(line)
                assert status == 0, f"{line}: {output}"
                said.append(output)
        return "".join(said)


def block(page: str, part: str) -> str:
    """Return the one block of a page that has ``part`` in it."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (found,) = (each for each in _BLOCK.findall(text) if part in each)
    return str(found).replace("\\\n", " ")


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RunningRouter]:
    (tmp_path / "users").touch(mode=0o600)
    (tmp_path / "records").mkdir(mode=0o700)
    text = CONFIGURATION.replace(" users }", f" {tmp_path}/users }}").replace(" records }", f" {tmp_path}/records }}")
    with running(text, tmp_path) as started:
        yield started


def test_the_users_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "robot.secret").write_text("a password of robot\n")
    (tmp_path / "robot.secret").chmod(0o600)
    typed = block("authentication.md", "passwd add users alice").replace("users alice  ", "users alice <robot.secret  ")
    said = Typist(tmp_path).type_all(typed)
    assert "carol" in said
    assert "robot" in said


def test_management(router: RunningRouter, tmp_path: Path) -> None:
    typist = Typist(tmp_path, router)
    typist.type_all(
        "".join(
            line
            for line in block("tools.md", "manage delete --type listener").splitlines(keepends=True)
            if "--identity" not in line
        )
    )
    typist.type_all(block("authentication.md", "query --type authLockout").splitlines()[0])
    typist.type_all(block("decisions.md", "query --type decision").splitlines()[0])
    status, output = typist.type(block("decisions.md", "query --type decision").splitlines()[1])
    assert status == 1
    assert "not found" in output.lower()


def test_one_connection(router: RunningRouter, tmp_path: Path) -> None:
    """Its frames are traced, and then it is closed by its identity."""
    typist = Typist(tmp_path, router)
    typed = [block("logging.md", "enableProtocolTrace=yes"), "trouter stat -c --connection 5\n"]
    typed += [line for line in block("tools.md", "--identity 7").splitlines() if "--identity 7" in line]

    async def type_beside() -> None:
        with trio.fail_after(DEADLINE_S):
            async with connect(f"amqp://127.0.0.1:{router.port}") as connection:
                number = router.wait_for_line(r"\[C(\d+)\] Connection Opened")[1]
                text = re.sub(r"--(identity|connection) [57]\b", rf"--\1 {number}", "\n".join(typed))
                await trio.to_thread.run_sync(typist.type_all, text)
                with pytest.raises(ConnectionClosed):
                    await connection.open_receiver("news").__aenter__()

    trio.run(type_beside)


def test_records(router: RunningRouter, tmp_path: Path) -> None:
    typist = Typist(tmp_path, router)
    typed = block("records.md", "records cat").replace("/var/lib/trouter/records", str(tmp_path / "records"))
    typist.type_all(f"trouter stat -g\n{typed}")


def test_clients(router: RunningRouter, tmp_path: Path) -> None:
    """The page ends a receiver and the one who answers by Ctrl-C: here it is `kill`."""
    typist = Typist(tmp_path, router)
    (tmp_path / "film.mkv").write_bytes(b"frames")
    sent = block("tools.md", "trouter receive films").splitlines()
    answers = block("tools.md", "trouter reply clock").splitlines()
    typist.type_all(f"{sent[0]} {sent[1]}; wait\n{sent[2]}; kill %1\n{answers[1]} & {sent[4]} && kill %1")


def test_contexts(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    (tmp_path / "ann.password").touch(mode=0o600)
    said = Typist(tmp_path).type_all(block("tools.md", "contexts add prod"))
    assert "router.example.com" in said


def test_loads(router: RunningRouter, tmp_path: Path) -> None:
    """With a thousandth of the messages."""
    typed = re.sub(r"--count (\d+)000\b", r"--count \1", block("benchmarks.md", "bench pair --count"))
    said = Typist(tmp_path, router).type_all(typed.replace("--seconds 5", "--seconds 0.5"))
    assert said.count("trouter bench") == 5
