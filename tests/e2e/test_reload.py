"""A running router applies its configuration file on SIGHUP: all of it, or nothing."""

from __future__ import annotations

import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.management.node import Node, node_of
from tests.ports import free_port
from tests.routers import DEADLINE_S, RunningRouter, StartRouter
from trouter.wire.performatives import Accepted, Attach, Detach, Source, Target
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

ROUTER = "router { id: R }\n"
FRONT = "listener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
REFUSED = r"MAIN \(error\) Reload refused, nothing was changed"


def listener(name: str, port: int = 0, more: str = "") -> str:
    return f"listener {{ name: {name}, host: 127.0.0.1, port: {port}, saslMechanisms: ANONYMOUS{more} }}\n"


def hang_up(router: RunningRouter, text: str | None = None, count: int = 1) -> str:
    """Make the router read ``text`` as its configuration; return its report after ``count`` reports."""
    if text is not None:
        router.configuration.write_text(text, encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    pattern = rf"{REFUSED}|MAIN \(info\) Reloaded .*?: (\d+ created, \d+ updated, \d+ deleted, \d+ kept)"
    return router.wait_for_line(pattern, count)[1] or "refused"


def is_open(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether a process listens there; here a router."""
    try:
        socket.create_connection((host, port), DEADLINE_S).close()
    except ConnectionRefusedError:
        return False
    with Peer(port, host) as peer:
        peer.be_heard()
    return True


@contextmanager
def used_port() -> Iterator[int]:
    """Yield a port that another process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def state(node: Node) -> dict[str, list[object]]:
    """Return every row that a change of the configuration might affect."""
    kinds = ("listener", "connector", "log", "sslProfile", "vhost", "policy", "dummy", "router.config.address",
             "router.config.linkRoute", "router.config.autoLink")  # fmt: skip
    return {kind: [sorted(row.items(), key=str) for row in node.query(kind)] for kind in kinds}


def test_a_new_listener_stands_and_no_client_notices(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with Peer(router.port) as before:
        assert hang_up(router, ROUTER + FRONT + listener("side")) == "1 created, 0 updated, 0 deleted, 21 kept"
        assert is_open(router.ports[1])
        before.be_heard()
    assert router.matching(r"CONN_MGR \(info\) Configured Listener: 127\.0\.0\.1:0 proto=any, role=normal$")


def test_a_listener_that_is_gone_from_the_file_takes_no_client_and_its_connections_stay(
    start_router: StartRouter,
) -> None:
    router = start_router(ROUTER + FRONT + listener("side"))
    with Peer(router.ports[1]) as stays:
        assert hang_up(router, ROUTER + FRONT).startswith("0 created, 0 updated, 1 deleted")
        assert not is_open(router.ports[1])
        stays.be_heard()
        assert is_open(router.port)


def test_changed_settings_hold_for_connections_to_come(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with Peer(router.port) as old:
        changed = FRONT.replace(" }", ", maxFrameSize: 4096, maxConnections: 2 }")
        assert hang_up(router, ROUTER + changed).startswith("0 created, 1 updated, 0 deleted")
        router.wait_for_line(r"MAIN \(info\) updated listener/127\.0\.0\.1:0:front: maxFrameSize, maxConnections$")
        with Peer(router.port) as new:
            assert old.remote_open is not None
            assert new.remote_open is not None
            assert (old.remote_open.max_frame_size, new.remote_open.max_frame_size) == (16384, 4096)
            with Peer(router.port, opened=False) as third:
                assert third.sock.recv(1) == b""
        old.be_heard()


def test_a_listener_with_another_name_takes_over_the_socket_without_a_gap(start_router: StartRouter) -> None:
    port = free_port()
    router = start_router(ROUTER + listener("a", port))
    ended = threading.Event()
    failures: list[Exception] = []

    def keep_coming() -> None:
        while not ended.is_set():
            try:
                with Peer(port):
                    pass
            except Exception as failure:  # noqa: BLE001 - whatever it is, the test tells
                failures.append(failure)

    others = threading.Thread(target=keep_coming)
    others.start()
    try:
        for number, name in enumerate("bababa", 1):
            assert hang_up(router, ROUTER + listener(name, port), number).startswith("1 created, 0 updated, 1 deleted")
    finally:
        ended.set()
        others.join()
    assert not failures


def test_from_every_interface_to_one_and_back(start_router: StartRouter) -> None:
    port = free_port()
    all_of_them = f"listener {{ name: a, host: 0.0.0.0, port: {port}, saslMechanisms: ANONYMOUS }}\n"
    router = start_router(ROUTER + all_of_them)
    assert is_open(port, "127.0.0.2")
    hang_up(router, ROUTER + listener("b", port))
    assert is_open(port)
    assert not is_open(port, "127.0.0.2")
    hang_up(router, ROUTER + all_of_them, 2)
    assert is_open(port, "127.0.0.2")


def test_two_listeners_swap_their_ports(start_router: StartRouter) -> None:
    ports = free_port(), free_port()
    small = ", maxFrameSize: 512"
    router = start_router(ROUTER + listener("a", ports[0]) + listener("b", ports[1], small))
    assert hang_up(router, ROUTER + listener("a", ports[1]) + listener("b", ports[0], small)) != "refused"
    sizes = []
    for port in ports:
        with Peer(port) as peer:
            assert peer.remote_open is not None
            sizes.append(peer.remote_open.max_frame_size)
    assert sizes == [512, 16384]


EVERYTHING = f"""
{ROUTER}{FRONT}
address {{ prefix: near, distribution: closest }}
log {{ module: AGENT, enable: debug+ }}
sslProfile {{ name: tls }}
"""
CHANGED = """
router { id: R, drainTimeoutSeconds: 3 }
listener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, maxFrameSize: 4096 }
listener { name: good, host: 127.0.0.1, port: 0 }
address { prefix: far, distribution: multicast }
log { module: AGENT, enable: none }
"""


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("listener { name: x, host: 127.0.0.1, port: USED }", r"cannot listen on 127\.0\.0\.1:USED: Address already"),
        ("log { module: ROUTER, outputFile: MISSING/log }", r"Failed to open log file 'MISSING/log'"),
        ("nonsense { a: b }", r"nonsense"),
        ("listener { prot: 5 }", r"listener\.prot"),
        ("router { id: R2 }", r"router"),
        ("listener { name: front, port: 1 }", r"front"),
        ("listener {", r"listener"),
    ],
)
def test_a_refused_reload_changes_nothing(start_router: StartRouter, tmp_path: Path, broken: str, told: str) -> None:
    router = start_router(EVERYTHING)
    with used_port() as used, Peer(router.port) as neighbour, node_of(router.port) as node:

        def filled(text: str) -> str:
            return text.replace("USED", str(used)).replace("MISSING", str(tmp_path / "missing"))

        before = state(node)
        descriptors = router.open_files()
        assert hang_up(router, CHANGED + filled(broken)) == "refused"
        router.wait_for_line(rf"MAIN \(error\) .*{filled(told)}")
        assert state(node) == before
        assert router.open_files() == descriptors
        neighbour.be_heard()
        assert is_open(router.port)
        assert not router.matching("good")


def test_every_problem_is_reported_at_once(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with used_port() as one, used_port() as other:
        text = listener("x", one) + listener("y", other) + "log { module: ROUTER, outputFile: /dev/null/x }\n"
        assert hang_up(router, ROUTER + FRONT + text) == "refused"
        for told in (f"cannot listen on .*:{one}", f"cannot listen on .*:{other}", "Failed to open log file"):
            router.wait_for_line(rf"MAIN \(error\) .*{told}")
    assert hang_up(router, ROUTER + FRONT + "listener { prot: 1 }\nlog { module: X }\n", 2) == "refused"
    for told in ("prot", "module"):
        router.wait_for_line(rf"MAIN \(error\) .*{told}")


def test_a_file_that_vanished_is_a_bad_reload(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    router.configuration.unlink()
    assert hang_up(router) == "refused"
    router.wait_for_line(r"MAIN \(error\) .*trouter-0\.conf: cannot be read: No such file or directory")
    assert is_open(router.port)
    assert hang_up(router, ROUTER + FRONT, 2) == "0 created, 0 updated, 0 deleted, 21 kept"


def test_entities_that_only_moved_in_the_file_are_kept(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT + listener("side") + "address { prefix: a }\n")
    moved = "# a comment\n" + "address { prefix: a }\n" + listener("side") + FRONT + ROUTER
    assert hang_up(router, moved) == "0 created, 0 updated, 0 deleted, 23 kept"
    assert len(router.matching("Listening on")) == 2


def test_a_reload_removes_entities_and_updates_made_by_management(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with node_of(router.port) as node:
        node.create("listener", {"host": "127.0.0.1", "port": "0"}, name="meanwhile")
        node.get("UPDATE", {"enable": "trace+"}, type="log", name="log/AGENT")
        assert hang_up(router).startswith("0 created, 1 updated, 1 deleted")
        router.wait_for_line(r"MAIN \(info\) deleted listener/127\.0\.0\.1:0:meanwhile$")
        assert [row["name"] for row in node.query("listener")] == ["front"]
        assert {row["enable"] for row in node.query("log") if row["module"] == "AGENT"} == {None}
    assert not is_open(router.ports[1])


def test_a_change_that_needs_a_restart_is_reported_and_not_applied(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    for count in (1, 2):  # reported each time
        assert hang_up(router, ROUTER.replace("id: R", "id: Other") + FRONT, count).startswith("0 created, 0 updated")
        router.wait_for_line(r"MAIN \(warning\) needs a restart: router\.id", count)
    with Peer(router.port) as peer:
        assert peer.remote_open is not None
        assert peer.remote_open.container_id == "R"


def test_an_id_that_is_made_up_stays(start_router: StartRouter) -> None:
    router = start_router(FRONT)
    assert hang_up(router).startswith("0 created, 0 updated, 0 deleted")
    assert not router.matching("needs a restart")


def test_rules_hold_for_addresses_that_come_into_being_afterwards(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT + "address { prefix: x, distribution: multicast }\n")
    with Peer(router.port) as peer, node_of(router.port) as node:
        peer.attach_receiver("x.old")
        peer.be_heard()
        hang_up(router, ROUTER + FRONT + "address { prefix: x, distribution: closest }\n")
        peer.attach_receiver("x.new")
        peer.be_heard()
        found = {row["key"]: row["distribution"] for row in node.query("router.address", ["key", "distribution"])}
        assert (found["M0x.old"], found["M0x.new"]) == ("multicast", "closest")
        hang_up(router, ROUTER + FRONT, 2)
        peer.attach_receiver("x.last")
        peer.be_heard()
        found = {row["key"]: row["distribution"] for row in node.query("router.address", ["key", "distribution"])}
        assert found["M0x.last"] == "balanced"


def test_levels_and_outputs_of_the_log_change(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(ROUTER + FRONT)
    log = tmp_path / "core.log"
    hang_up(router, ROUTER + FRONT + f"log {{ module: ROUTER_CORE, enable: info+, outputFile: {log} }}\n")
    with Peer(router.port) as peer:
        number = peer.number
    assert f"[C{number}] Connection Opened" in log.read_text(encoding="utf-8")
    assert not router.matching(rf"\[C{number}\] Connection Opened")


def test_log_files_that_were_moved_are_opened_anew(start_router: StartRouter, tmp_path: Path) -> None:
    log = tmp_path / "core.log"
    text = ROUTER + FRONT + f"log {{ module: ROUTER_CORE, enable: info+, outputFile: {log} }}\n"
    router = start_router(text)
    with Peer(router.port):
        pass
    log.rename(tmp_path / "core.log.1")
    hang_up(router)
    with Peer(router.port) as peer:
        number = peer.number
    assert f"[C{number}] Connection Opened" in log.read_text(encoding="utf-8")


def users(path: Path, *names: str) -> None:
    """Write a file of users whose passwords are their names."""
    path.unlink(missing_ok=True)
    for name in names:
        put_user(path, name, name.encode())


def may_enter(port: int, name: str) -> bool:
    with Peer(port, opened=False) as peer:
        return peer.authenticate("PLAIN", f"\0{name}\0{name}".encode()) == 0


def test_users_are_read_anew_and_a_broken_file_of_users_is_a_bad_reload(
    start_router: StartRouter, tmp_path: Path
) -> None:
    file = tmp_path / "users"
    users(file, "ann")
    plain = "listener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: PLAIN, allowInsecurePlain: loopback }\n"
    text = f"router {{ id: R, usersFile: {file} }}\n{plain}"
    router = start_router(text)
    assert (may_enter(router.port, "ann"), may_enter(router.port, "bob")) == (True, False)
    users(file, "bob")
    hang_up(router)
    assert (may_enter(router.port, "ann"), may_enter(router.port, "bob")) == (False, True)
    file.write_text("nonsense\n", encoding="utf-8")
    assert hang_up(router, text + listener("more"), 2) == "refused"
    assert may_enter(router.port, "bob")
    assert len(router.ports) == 1


def test_hups_in_any_number_are_worked_off_one_after_the_other(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with Peer(router.port) as peer:
        for round_ in range(20):
            text = ROUTER + FRONT + (listener("side") if round_ % 2 == 0 else "")
            router.configuration.write_text(text, encoding="utf-8")
            for _ in range(50):
                router.process.send_signal(signal.SIGHUP)
        router.configuration.write_text(ROUTER + FRONT + "dummy { name: last }\n", encoding="utf-8")
        router.process.send_signal(signal.SIGHUP)
        router.wait_for_line(r"MAIN \(info\) created dummy/")
        peer.be_heard()
    with node_of(router.port) as node:
        assert [row["name"] for row in node.query("listener")] == ["front"]


def test_a_router_that_stops_follows_no_file(start_router: StartRouter) -> None:
    router = start_router("router { id: R, drainTimeoutSeconds: 3600 }\n" + FRONT)
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        source = receiver.attach_receiver("a", credit=1)
        link = sender.attach_sender("a")
        delivery = sender.send_message(link, b"holds it up")
        sender.be_heard()
        router.process.send_signal(signal.SIGTERM)
        router.wait_for_line("Stopping: draining")
        assert hang_up(router, ROUTER + FRONT + listener("late")) == "refused"
        router.wait_for_line(r"MAIN \(error\) the router is shutting down")
        receiver.take_message(source)
        assert sender.expect_outcome(delivery) == Accepted()
    assert router.wait() == 0


def test_repeated_reloads_leave_nothing_behind(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    texts = (ROUTER + FRONT + listener("side") + "address { prefix: a }\n", ROUTER + FRONT)
    count = 0
    for text in texts:
        count += 1
        hang_up(router, text, count)
    descriptors = router.open_files()
    for _ in range(10):
        for text in texts:
            count += 1
            hang_up(router, text, count)
    assert router.open_files() == descriptors


# --- attributes that this version does not serve


def test_a_listener_with_unsafe_settings_is_not_opened_under_secure_defaults(start_router: StartRouter) -> None:
    front = FRONT.replace("{ ", "{ authenticatePeer: no, ")
    text = front + "listener { name: safe, host: 127.0.0.1, port: 0, role: inter-router, authenticatePeer: no }\n"
    text += "policy { enableVhostPolicy: no }\n"
    router = start_router("router { id: R, mode: interior, secureDefaults: yes }\n" + text)
    found = router.wait_for_line(r"MAIN \(critical\) .*:3:1: listener\.safe: will not be opened: (.*)")
    assert "other routers must authenticate (authenticatePeer)" in found[1]
    assert len(router.ports) == 1
    with node_of(router.port) as node:
        assert [row["name"] for row in node.query("listener")] == ["front", "safe"]


def test_a_new_vhost_policy_closes_and_refuses_unknown_clients(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with Peer(router.port) as before:
        hang_up(router, ROUTER + FRONT + "policy { enableVhostPolicy: yes }\n")
        error = before.expect_close()  # its rights are evaluated again, and no group grants any
        assert error is not None
        assert error.condition == "amqp:resource-limit-exceeded"
    with Peer(router.port, opened=False) as after:
        after.open()
        error = after.expect_close()
        assert error is not None
        assert error.description == "connection disallowed by local policy"
    hang_up(router, ROUTER + FRONT, 2)
    with Peer(router.port) as later:
        later.be_heard()


def test_addresses_of_link_routes_have_no_consumer(start_router: StartRouter) -> None:
    router = start_router(
        ROUTER + FRONT + "linkRoute { prefix: broker, direction: in }\naddress { prefix: broker.inner }\n"
    )
    with Peer(router.port) as peer:
        for handle, address in enumerate(("broker", "broker.x", "broker.inner.y"), 10):
            answer = peer.attach(
                Attach(address, handle, False, source=Source(), target=Target(address), initial_delivery_count=0)
            )
            assert answer.target is None
            assert peer.expect(Detach).error is not None
        peer.attach_sender("other", credit=False)


# --- connectors and HTTP


def accept(server: socket.socket) -> socket.socket:
    server.settimeout(DEADLINE_S)
    return server.accept()[0]


def test_connectors_come_and_go_with_the_file(start_router: StartRouter) -> None:
    router = start_router(ROUTER + FRONT)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        connector = f"connector {{ name: c, host: 127.0.0.1, port: {port} }}\n"
        assert hang_up(router, ROUTER + FRONT + connector).startswith("1 created")
        with closing(accept(server)) as dialled:
            assert dialled.recv(4) == b"AMQP"
            hang_up(router, ROUTER + FRONT + connector + "# the same\n", 2)
            assert hang_up(router, ROUTER + FRONT, 3).startswith("0 created, 0 updated, 1 deleted")
            dialled.settimeout(DEADLINE_S)
            while dialled.recv(4096):
                pass
        with node_of(router.port) as node:
            assert node.query("connector") == []


def test_a_port_changes_from_amqp_to_http_and_back(start_router: StartRouter) -> None:
    port = free_port()
    router = start_router(ROUTER + FRONT + listener("web", port))
    assert is_open(port)
    hang_up(router, ROUTER + FRONT + listener("web", port, ", http: yes"))
    with closing(socket.create_connection(("127.0.0.1", port), DEADLINE_S)) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert re.match(rb"HTTP/1\.1 200 ", client.makefile("rb").read())
    hang_up(router, ROUTER + FRONT + listener("web", port), 2)
    assert is_open(port)
