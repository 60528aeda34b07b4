"""Configurations of Qpid Dispatch: each starts with Qpid Dispatch's command line, and its traffic flows.

`check` finds nothing in it that would not be served. With `secureDefaults: yes` each is served, or refused with the
reason and the cure.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from proton import Message
from proton.utils import BlockingConnection, BlockingSender, LinkDetached, SendException

from tests.brokers import broker
from tests.dropin.cases import CASES, MANUAL, Case, Login, Way
from tests.dropin.scene import Folder
from tests.proton_build import WITH_TLS
from tests.routers import DEADLINE_S, RunningRouter, stopped_cleanly, watched

QDROUTERD = str(Path(sys.executable).with_name("qdrouterd"))
#: The text of `check` for a missing file.
UNREADABLE = "cannot be read"
HERE = Path(__file__).parent
EVERY = (*CASES, *MANUAL)

pytestmark = pytest.mark.skipif(shutil.which("saslpasswd2") is None, reason="saslpasswd2 (sasl2-bin) is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Make the files that the configurations name; one folder for all, as they never change."""
    return Folder(tmp_path_factory.mktemp("site"))


def files_of(case: Case) -> list[Path]:
    """Return the files of a configuration, in the order in which their routers are started."""
    return sorted((HERE / ("manual" if case in MANUAL else "files") / case.name).iterdir())


def brokers_of(case: Case) -> list[str]:
    """Return the names of the brokers that its files dial."""
    return sorted({name for file in files_of(case) for name in re.findall(r"@(broker\d?)@", file.read_text())})


def written(name: str, text: str, path: Path, names: dict[str, str]) -> Path:
    """Write the file of one router, with the names in it replaced."""
    file = path / name
    file.write_text(re.sub(r"@([A-Za-z0-9.]+)@", lambda found: names[found[1]], text))
    file.chmod(0o600)
    return file


def unchanged(file: Path) -> None:
    """Leave a file as Qpid Dispatch has it."""


@contextmanager
def network(
    case: Case, path: Path, folder: Folder, change: Callable[[Path], None] = unchanged
) -> Iterator[dict[str, RunningRouter]]:
    """Start the routers of a case, each as its unit file does, after a ``change`` of its file."""
    routers: dict[str, RunningRouter] = {}
    names = {"dir": str(folder.path)}
    with ExitStack() as stack:
        for name in brokers_of(case):
            beside = stack.enter_context(broker(name.replace("broker", "B"), keeps=True))
            names[name] = str(beside.port)
        for template in files_of(case):
            name, file = template.stem, written(template.name, template.read_text(), path, names)
            change(file)
            router = routers[name] = stack.enter_context(watched([QDROUTERD, "-c", str(file)], file))
            router.wait_for_line(r"SERVER \(\w+\) Operational")
            stack.enter_context(stopped_cleanly(router))
            names |= {f"{name}.{number}": str(port) for number, port in enumerate(router.ports)}
        yield routers


@contextmanager
def client(routers: dict[str, RunningRouter], place: str, login: Login, folder: Folder) -> Iterator[BlockingConnection]:
    """Connect a client of python-qpid-proton to a router's listener."""
    name, _, number = place.partition(".")
    scheme = "amqps" if login.tls else "amqp"
    url = f"{scheme}://127.0.0.1:{routers[name].ports[int(number)]}"
    options: dict[str, Any] = folder.options(login)
    connection = BlockingConnection(url, timeout=DEADLINE_S, **options)
    try:
        yield connection
    finally:
        connection.close()


def sender_once_routed(connection: BlockingConnection, address: str) -> BlockingSender:
    """Attach a link to a broker, as soon as a router has a path to one."""
    ends_s = time.monotonic() + DEADLINE_S
    number = 0
    while True:
        number += 1
        try:  # a refused link keeps its name until the client closes it, too
            return connection.create_sender(address, name=f"{address}-{number}")
        except LinkDetached:
            assert time.monotonic() < ends_s, f"{address} was never routed"


def go(way: Way, routers: dict[str, RunningRouter], folder: Folder) -> None:
    """Send to the way's address until each of its receivers has a message."""
    over = threading.Event()
    with ExitStack() as stack:
        login = way.login if way.receiver_login is None else way.receiver_login
        if way.kept:
            storing = stack.enter_context(client(routers, way.sender, way.login, folder))
            sender_once_routed(storing, way.address).send(Message(body=way.address), timeout=DEADLINE_S)
            receiver = storing.create_receiver(way.address, credit=1)
            assert receiver.receive(timeout=DEADLINE_S).body == way.address
            return
        receivers = []
        for _ in range(way.copies):
            receiving = stack.enter_context(client(routers, way.receiver, login, folder))
            receivers.append(receiving.create_receiver(way.address, credit=10))
        sending = stack.enter_context(client(routers, way.sender, way.login, folder))
        sender = sending.create_sender(way.address)

        def send() -> None:
            while not over.is_set():
                try:
                    sender.send(Message(body=way.address), timeout=DEADLINE_S)
                except SendException:  # released: its router knows no receiver yet
                    continue
                if way.copies == 1:
                    return

        thread = threading.Thread(target=send)
        thread.start()
        try:
            for receiver in receivers:
                assert receiver.receive(timeout=DEADLINE_S).body == way.address
                assert receiver.fetcher is not None
                if receiver.fetcher.unsettled:  # copies of an exchange arrive settled
                    receiver.accept()
            over.set()
            for receiver in receivers:  # so that messages sent meanwhile do not keep the sender waiting
                receiver.close()
        finally:
            over.set()
            thread.join(DEADLINE_S)
        assert not thread.is_alive()


def with_what_it_needs(case: Case) -> object:
    """Return the case as a parameter, skipped where python-qpid-proton cannot log in as it does."""
    logins = [each for way in case.ways for each in (way.login, way.receiver_login) if each is not None]
    return pytest.param(case, marks=WITH_TLS if any(login.tls for login in logins) else ())


@pytest.mark.parametrize("case", [with_what_it_needs(case) for case in EVERY], ids=lambda case: case.name)
def test_an_old_file_is_served_and_its_traffic_flows(case: Case, folder: Folder, tmp_path: Path) -> None:
    with network(case, tmp_path, folder) as routers:
        for way in case.ways:
            go(way, routers, folder)
        for line in case.logs:
            routers["A"].wait_for_line(line)


@pytest.fixture(scope="module")
def checked(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], list[dict[str, Any]]]:
    """Return the problems that `check` finds in each case, with and without secureDefaults, all in one process."""
    path = tmp_path_factory.mktemp("checked")
    files: dict[str, tuple[str, bool]] = {}
    for case in EVERY:
        for template in files_of(case):
            text = template.read_text()
            for secure, said in ((False, text), (True, secured(text, template.suffix))):
                place = path / case.name / str(secure)
                place.mkdir(parents=True, exist_ok=True)
                files[str(written(template.name, said, place, dummies(folder)))] = case.name, secure
    command = [sys.executable, "-m", "trouter", "check", "--json", *files]
    patience_s = DEADLINE_S + len(files)
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience_s, check=False)
    found: dict[tuple[str, bool], list[dict[str, Any]]] = {name: [] for name in files.values()}
    for file in json.loads(done.stdout)["files"]:
        problems = [finding for finding in file["findings"] if finding["severity"] == "problem"]
        assert (file["verdict"] == "good") == (not problems)
        found[files[file["file"]]] += problems
    return found


Checked = dict[tuple[str, bool], list[dict[str, Any]]]


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_check_finds_nothing_that_would_not_be_served(case: Case, checked: Checked) -> None:
    problems = checked[case.name, False]
    if case.strict == UNREADABLE:  # an error with or without the switch
        assert problems
        assert all(UNREADABLE in problem["message"] or "missing.pem" in problem["message"] for problem in problems)
    else:
        assert not problems


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_under_secure_defaults_a_configuration_is_served_or_refused_with_a_cure(case: Case, checked: Checked) -> None:
    problems = checked[case.name, True]
    words = " ".join(f"{problem.get('attribute', '')} {problem['message']}" for problem in problems)
    assert case.strict in words
    assert bool(problems) == bool(case.strict), problems
    assert all(
        problem.get("cure") or "must" in problem["message"] or "leave" in problem["message"] for problem in problems
    )


def secured(text: str, suffix: str) -> str:
    """Return the file with the switch on."""
    if suffix == ".json":
        secure = text.replace('"mode"', '"secureDefaults": true, "mode"', 1)
    else:
        end = "," if "{ mode" in text else "\n"
        secure = text.replace("mode:", f"secureDefaults: yes{end} mode:", 1)
    assert secure != text
    return secure


def dummies(folder: Folder) -> dict[str, str]:
    """Return replacements for the names in files where no router runs."""
    ports = {f"{router}.{number}": "5672" for router in "ABCEF" for number in range(3)}
    return {"dir": str(folder.path), "broker": "5672", "broker2": "5672", **ports}
