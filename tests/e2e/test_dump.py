"""SIGUSR1 makes a router write its state to a file: its contents, and its permissions."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.routers import RunningRouter, StartRouter
from trouter import _twin


def dump(router: RunningRouter, number: int = 1) -> Path:
    router.process.send_signal(signal.SIGUSR1)
    return Path(router.wait_for_line(r"MAIN \(info\) The state was written to (.+)", number)[1])


def configuration(folder: Path) -> str:
    return (
        f"router {{ id: R, debugDumpFile: {folder / 'state'} }}\n"
        "listener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, maxLinks: 2000 }\n"
    )


def test_the_dump_shows_deliveries_under_way_and_no_message_body(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(configuration(tmp_path))
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        receiver.attach_receiver("jobs", credit=3)
        link = sender.attach_sender("jobs")
        sender.send_message(link, b"the body of a message")
        sender.be_heard()
        path = dump(router)
        assert path == tmp_path / "state"
        text = path.read_text(encoding="utf-8")
        assert "the body" not in text
        assert re.search(r"^router R, mode standalone", text, re.MULTILINE)
        assert re.search(
            rf"^front .*sockets=\('127\.0\.0\.1', {router.port}\) connections=2 accepted=2", text, re.MULTILINE
        )
        assert re.search(rf"^\[C{receiver.number}\] state=OPENED .*listener=front container=peer", text, re.MULTILINE)
        assert re.search(r"^  session channel=0 .*unsettled_in=1 unsettled_out=0", text, re.MULTILINE)
        assert re.search(r"^  session channel=0 .*unsettled_in=0 unsettled_out=1", text, re.MULTILINE)
        assert re.search(r"^\[C\d+\]\[L\d+\] out up address=M0jobs .*credit=2 .*unsettled=1", text, re.MULTILINE)
        assert re.search(r"^M0jobs balanced consumers=1 inside=0 senders=1 .*in=1 out=1", text, re.MULTILINE)
        room = r"trouter\.connections\."
        # a compiled coroutine has no frame to show: then it is the line that awaits it
        place = "serving" if _twin.running() == "compiled" else "stream"
        waiting = rf"nursery 0: .*\n.*{room}listen\.Listener\._serve_peer at {room}{place}:\d+"
        assert re.search(waiting, text)


def test_the_dump_is_readable_only_for_its_owner(start_router: StartRouter, tmp_path: Path) -> None:
    path = dump(start_router(configuration(tmp_path)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("state")] == ["state"]


def test_every_dump_has_a_file_of_its_own_where_none_is_named(router: RunningRouter) -> None:
    paths = [dump(router, 1), dump(router, 2)]
    try:
        names = [path.name for path in paths]
        assert names == [f"trouter-R-{router.process.pid}-{number}.dump" for number in (1, 2)]
    finally:
        for path in paths:
            path.unlink()


@pytest.mark.parametrize(
    ("place", "why"),
    [("MISSING/state", "No such file or directory"), ("FOLDER", "Is a directory"), ("/", "empty name")],
)
def test_a_place_that_cannot_be_written_is_reported_and_routing_goes_on(
    start_router: StartRouter, tmp_path: Path, place: str, why: str
) -> None:
    place = place.replace("MISSING", str(tmp_path / "missing")).replace("FOLDER", str(tmp_path))
    router = start_router(configuration(tmp_path).replace(str(tmp_path / "state"), place))
    with Peer(router.port) as peer:
        router.process.send_signal(signal.SIGUSR1)
        router.wait_for_line(rf"MAIN \(error\) cannot write the state to a file: .*{why}")
        peer.be_heard()
    assert not list(tmp_path.parent.glob("*.part"))


def test_a_link_that_lies_in_wait_is_not_followed(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(configuration(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("kept", encoding="utf-8")
    for name in ("state", "state.part"):
        (tmp_path / name).symlink_to(victim)
    path = dump(router)
    assert not path.is_symlink()
    assert victim.read_text(encoding="utf-8") == "kept"


def test_names_of_strangers_stay_on_one_line_and_short(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(configuration(tmp_path))
    with Peer(router.port, opened=False) as peer:
        peer.open(container_id="a\nDRAINING\x1b[31m" + "x" * 1000)
        peer.begin()
        text = dump(router).read_text(encoding="utf-8")
        line = next(line for line in text.splitlines() if line.startswith("[C1]"))
        assert r"container='a\nDRAINING\x1b[31mxxx" in line
        assert len(line) < 1000


def test_the_dump_shows_the_state_of_connectors_without_passwords(start_router: StartRouter, tmp_path: Path) -> None:
    connector = "connector { name: out, host: 127.0.0.1, port: 1, saslUsername: me, saslPassword: pass:hush }\n"
    router = start_router(configuration(tmp_path) + connector)
    router.wait_for_line("Connection to 127.0.0.1:1 failed")
    text = dump(router).read_text(encoding="utf-8")
    assert re.search(r"^out 127\.0\.0\.1:1 role=normal status=\w+ next=amqp://127\.0\.0\.1:1 ", text, re.MULTILINE)
    assert "hush" not in text


def test_while_a_dump_is_written_the_router_routes(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(configuration(tmp_path))
    with Peer(router.port) as peer:
        for number in range(2000):
            peer.attach_receiver(f"a.{number}")
        for count in (1, 2, 3):
            router.process.send_signal(signal.SIGUSR1)
            peer.be_heard()
            router.wait_for_line(r"MAIN \(info\) The state was written", count)
        text = (tmp_path / "state").read_text(encoding="utf-8")
        assert len(re.findall(r"^M0a\.\d+ balanced consumers=1", text, re.MULTILINE)) == 2000
