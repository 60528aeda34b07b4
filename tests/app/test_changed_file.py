"""A change of the configuration file on the disk, and processes that are killed at each step of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, ROOT
from trouter.app.changed_file import ChangedFile, ChangeOrder, UnreadableChange
from trouter.management.ports import BEGUN, EDITED, MADE

OLD, NEW = b"router { id: A }\n", b"router { id: A, metadata: new }\n"
ORDER = ChangeOrder("c1", "ann@ops", "ann", "10.0.0.7", 1_800_000_000, ("A", "B"))

#: Makes, or takes back, a change in one process after the other, each of which is killed before its next call of the
#: disk than the one before; prints the file and the state of the change after each.
KILLED = """
import json, os, signal, sys
from pathlib import Path
from trouter.app.changed_file import ChangedFile, ChangeOrder

path, step, old, new = Path(sys.argv[1]), sys.argv[2], sys.argv[3].encode(), sys.argv[4].encode()
file, order = ChangedFile(path), ChangeOrder("c1", "ann@ops", "ann", "10.0.0.7", 1, ("A", "B"))

def counted(call, left):
    def counting(*words, **more):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return call(*words, **more)
    return counting

def make():
    file.begin(order, new)
    file.finish()

def killed_at(number):
    pid = os.fork()
    if not pid:
        left = [number]
        for name in ("open", "pwrite", "fsync", "rename", "unlink", "chmod"):
            setattr(os, name, counted(getattr(os, name), left))
        make() if step == "make" else file.restore()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL

states, killed = [], True
while killed:
    path.write_bytes(old)
    file.end()
    if step != "make":
        make()
    killed = killed_at(len(states))
    change = file.open_change()
    states.append(["new" if file.read() == new else "old" if file.read() == old else "?", change and change.state])
print(json.dumps(states))
"""


@pytest.fixture
def file(tmp_path: Path) -> ChangedFile:
    path = tmp_path / "trouter.conf"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return ChangedFile(path)


def state_of(file: ChangedFile) -> str | None:
    change = file.open_change()
    return None if change is None else change.state


def test_a_change_is_begun_made_and_ended(file: ChangedFile) -> None:
    file.begin(ORDER, NEW)
    assert (file.read(), state_of(file)) == (OLD, BEGUN)
    file.finish()
    change = file.open_change()
    assert change is not None
    assert (file.read(), file.read_before(), change.state) == (NEW, OLD, MADE)
    assert (change.id, change.by, change.user, change.host, change.at_s, change.routers) == (
        "c1", "ann@ops", "ann", "10.0.0.7", 1_800_000_000, ("A", "B"),
    )  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in (file.path, file.path.with_name("trouter.conf.before"))} == {0o640}
    assert file.path.with_name("trouter.conf.change").stat().st_mode & 0o777 == 0o600
    file.end()
    assert (file.read(), state_of(file)) == (NEW, None)


def test_a_change_is_taken_back_with_the_text_before(file: ChangedFile) -> None:
    file.begin(ORDER, NEW)
    file.finish()
    file.restore()
    assert (file.read(), state_of(file)) == (OLD, None)
    assert sorted(path.name for path in file.path.parent.iterdir()) == ["trouter.conf", "trouter.conf.before"]


def test_a_change_that_was_only_begun_leaves_nothing_when_it_is_dropped(file: ChangedFile) -> None:
    file.begin(ORDER, NEW)
    file.drop()
    assert (file.read(), state_of(file)) == (OLD, None)
    assert not file.path.with_name("trouter.conf.new").exists()


def test_a_file_that_was_edited_since_says_so(file: ChangedFile) -> None:
    file.begin(ORDER, NEW)
    file.finish()
    file.path.write_bytes(NEW + b"# by hand\n")
    assert state_of(file) == EDITED


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "c1"}', '{"id": "c1", "routers": 5}'])
def test_a_file_of_a_change_with_something_else_in_it_is_named(file: ChangedFile, text: str) -> None:
    change = file.path.with_name("trouter.conf.change")
    change.write_text(text)
    with pytest.raises(UnreadableChange, match=r"trouter\.conf\.change has no change of a configuration in it"):
        file.open_change()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_the_router_may_not_write_to_is_named(file: ChangedFile) -> None:
    file.path.parent.chmod(0o500)
    assert str(file.path.parent) in file.why_not_writable()


def states_of_killed(file: ChangedFile, step: str) -> list[tuple[str, str | None]]:
    """Return what is found after each process of KILLED; the last one was not killed."""
    command = [sys.executable, "-c", KILLED, str(file.path), step, OLD.decode(), NEW.decode()]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=DEADLINE_S).stdout
    return [(content, state) for content, state in json.loads(printed)]


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_makes_a_change_leaves_the_old_file_or_the_new_one(file: ChangedFile) -> None:
    states = states_of_killed(file, "make")
    stages: list[tuple[str, str | None]] = [("old", None), ("old", BEGUN), ("new", MADE)]
    assert sorted(set(states), key=stages.index) == stages
    assert states == sorted(states, key=stages.index)


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_takes_a_change_back_can_do_it_again(file: ChangedFile) -> None:
    states = states_of_killed(file, "restore")
    stages: list[tuple[str, str | None]] = [("new", MADE), ("old", BEGUN), ("old", None)]
    assert sorted(set(states), key=stages.index) == stages
    assert states == sorted(states, key=stages.index)
