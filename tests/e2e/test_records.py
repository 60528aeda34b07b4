"""The records of real clients in a router process: each kind, complete after a stop and after a kill."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException, Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, LinkDetached, SendException

from tests.e2e.peer import Peer
from tests.management.node import node_of
from tests.records.test_chain import rewritten
from tests.routers import StartRouter, process, running
from tests.waiting import until
from trouter.cli import main
from trouter.records.anchors import heads_in
from trouter.records.check import check_folder
from trouter.records.segments import segments_in
from trouter.wire.performatives import Attach, Detach, Source, Target
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

SECRET = "ma{rk}er-of-the-secret"


def records_of(folder: Path) -> list[dict[str, Any]]:
    lines = [line for place in segments_in(folder) for line in place.path.read_bytes().splitlines()]
    return [record for line in lines if not (record := json.loads(line))["k"].startswith("segment.")]


def of(records: list[dict[str, Any]], kind: str, **wanted: object) -> list[dict[str, Any]]:
    return [
        record
        for record in records
        if record["k"] == kind and all(record.get(name) == value for name, value in wanted.items())
    ]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("router")
    put_user(folder / "users", "alice", SECRET.encode())
    kept = folder / "kept"
    configuration = f"""
    router {{ id: R, usersFile: {folder}/users }}
    listener {{
        name: here
        host: 127.0.0.1
        port: 0
        authenticatePeer: yes
        saslMechanisms: PLAIN
        allowInsecurePlain: loopback
    }}
    recordLog {{ dir: {kept}, intervalSeconds: 1 }}
    """
    with running(configuration, folder) as router:
        url = f"127.0.0.1:{router.port}"
        client = BlockingConnection(
            url,
            timeout=60,
            user="alice",
            password=SECRET,
            allowed_mechs="PLAIN",
            allow_insecure_mechs=True,
            virtual_host="example.com",
        )
        receiver = client.create_receiver("q", credit=20)
        sender = client.create_sender("q")
        for _ in range(5):
            delivery: Any = sender.link.send(Message("x"))
            receiver.receive(timeout=60)
            receiver.accept()
            while not delivery.settled:
                client.container.process()
        sender.close()
        client.close()
        for user, password in (("alice", "wrong-" + SECRET), ("mal\r\nlory\x1b[31m", SECRET)):
            with pytest.raises(ConnectionException):
                BlockingConnection(
                    url, timeout=60, user=user, password=password, allowed_mechs="PLAIN", allow_insecure_mechs=True
                )
        with Peer(router.port, opened=False) as peer:
            assert peer.authenticate("PLAIN", f"ad\nmin\0alice\0{SECRET}".encode()) == 1
        router.wait_for_line(r"failed: amqp:unauthorized-access Authentication failed \[mech=PLAIN\]", 3)
        assert router.stop() == 0
        assert SECRET not in router.text()
    report = check_folder(kept)
    assert report.errors == report.notes == []
    octets = b"".join(place.path.read_bytes() for place in segments_in(kept))
    assert SECRET.encode() not in octets
    return records_of(kept)


def test_the_user_that_a_login_wanted_to_act_for_is_reported(records: list[dict[str, Any]]) -> None:
    (outcome,) = [each for each in of(records, "sasl.outcome") if "authz" in each]
    assert (outcome["authz"], outcome["user"], outcome["ok"]) == ("ad\\nmin", "alice", False)


def test_a_connection_is_reported_from_beginning_to_end(records: list[dict[str, Any]]) -> None:
    (opened,) = of(records, "connection.opened", conn=1)
    assert (opened["user"], opened["vhost"], opened["host"]) == ("alice", "example.com", "127.0.0.1")
    assert (opened["listener"], opened["role"], opened["dir"], opened["mech"]) == (
        "here",
        "normal",
        "in",
        "PLAIN",
    )
    (closed,) = of(records, "connection.closed", conn=1)
    assert closed["by"] == "peer"
    assert closed["opened_at"] <= closed["t"]
    assert closed["bytes_in"] > 500
    assert closed["bytes_out"] > 500


def test_connections_that_got_nowhere_are_reported_too(records: list[dict[str, Any]]) -> None:
    assert [closed["opened_at"] for closed in of(records, "connection.closed")[1:]] == [0, 0, 0]


def test_each_login_has_one_outcome(records: list[dict[str, Any]]) -> None:
    outcomes = of(records, "sasl.outcome")
    assert [(outcome["conn"], outcome["ok"], outcome["code"], outcome["reason"]) for outcome in outcomes] == [
        (1, True, 0, "ok"),
        (2, False, 1, "bad-credentials"),
        (3, False, 1, "bad-credentials"),
        (4, False, 1, "bad-credentials"),
    ]
    assert {outcome["plugin"] for outcome in outcomes} == {"sasl_plain"}
    assert outcomes[0]["user"] == "alice"
    assert "\n" not in outcomes[2].get("user", "")


def test_links_are_reported_with_their_addresses(records: list[dict[str, Any]]) -> None:
    attached = of(records, "link.attached", conn=1, addr="q")
    assert [link["dir"] for link in attached] == ["out", "in"]
    assert {link["user"] for link in attached} == {"alice"}
    detached = {link["link"]: link for link in of(records, "link.detached", conn=1)}
    incoming = detached[attached[1]["link"]]
    assert (incoming["reason"], incoming["closed"]) == ("detached", True)
    assert detached[attached[0]["link"]]["reason"] == "lost"
    assert all(link["attached_at"] <= link["t"] for link in detached.values())


def test_the_intervals_of_an_address_add_up_to_its_totals(records: list[dict[str, Any]]) -> None:
    for direction in ("in", "out"):
        intervals = of(records, "delivery.interval", addr="q", dir=direction)
        assert intervals[-1]["final"]
        assert not any(interval["final"] for interval in intervals[:-1])
        assert sum(interval["d_msgs"] for interval in intervals) == intervals[-1]["c_msgs"] == 5
        assert sum(interval["d_accepted"] for interval in intervals) == intervals[-1]["c_accepted"] == 5
        assert all(interval["t0"] <= interval["t1"] for interval in intervals)
        assert (
            sum(interval["d_bytes"] for interval in intervals)
            == intervals[-1]["c_bytes"]
            == 5 * len(Message("x").encode())
        )


def test_latency_is_reported_by_class_of_address(records: list[dict[str, Any]]) -> None:
    sketches = of(records, "latency.sketch", family="mobile")
    assert sum(sketch["cnt"] for sketch in sketches) == 5
    assert all(sum(sketch["bc"]) == sketch["cnt"] for sketch in sketches)


def test_latency_is_reported_by_address(records: list[dict[str, Any]]) -> None:
    sketches = of(records, "latency.sketch", addr="q")
    assert sum(sketch["cnt"] for sketch in sketches) == 5
    assert all(sum(sketch["bc"]) == sketch["cnt"] for sketch in sketches)
    assert all(sketch["min"] <= sketch["max"] and sketch["t0"] <= sketch["t1"] for sketch in sketches)
    assert not any("rounded" in sketch or "family" in sketch for sketch in sketches)


def test_numbers_have_no_gaps(records: list[dict[str, Any]]) -> None:
    assert [record["n"] for record in records] == list(range(len(records)))


def test_records_are_sent_to_an_address(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(f"""
    router {{ id: R }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    recordLog {{ dir: {tmp_path}/kept, kinds: audit, address: events }}
    """)
    watcher = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    receiver = watcher.create_receiver("events", credit=100)
    other = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60, container_id="the other")
    other.create_sender("q", options=AtMostOnce())
    found: list[dict[str, Any]] = []
    while not of(found, "link.attached", addr="q"):
        message = receiver.receive(timeout=60)
        body: Any = message.body
        found.append(json.loads(bytes(body)))
        assert message.subject == found[-1]["k"]
        assert message.content_type == "application/json"
    assert of(found, "connection.opened", container="the other")
    numbers = [record["n"] for record in found]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    other.close()
    watcher.close()


def test_a_router_sends_its_heads_and_the_command_compares_them(
    start_router: StartRouter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, kept = tmp_path / "log", tmp_path / "heads"
    log.mkdir()
    assert main(["records", "keys", str(log), "--router", "R"]) == 0
    router = start_router(f"""
    router {{ id: R }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    recordLog {{ dir: {log}, kinds: audit, segmentSeconds: 1, anchorAddress: heads }}
    """)
    watcher = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    receiver = watcher.create_receiver("heads", credit=10)
    with kept.open("wb") as file:
        for number in range(2):
            other = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60, container_id=f"other-{number}")
            message = receiver.receive(timeout=60)
            other.close()
            assert message.subject == "records.head"
            body: Any = message.body
            file.write(bytes(body) + b"\n")
    watcher.close()
    assert router.stop() == 0
    heads = heads_in(kept)
    assert all(head.router == "R" for head in heads)
    capsys.readouterr()
    assert main(["records", "check", str(log), "--anchors", str(kept)]) == 0
    assert "2 heads compared" in capsys.readouterr().err
    changed = next(place for place in segments_in(log) if place.name == heads[-1].seg)
    rewritten(changed.path, b"other-", b"OTHER-")
    assert main(["records", "check", str(log), "--anchors", str(kept)]) == 1
    assert "is not as it was when the head of record" in capsys.readouterr().err


def test_management_changes_are_recorded_and_the_record_folder_can_change_while_in_use(
    start_router: StartRouter, tmp_path: Path
) -> None:
    router = start_router(f"""
    router {{ id: R }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    recordLog {{ dir: {tmp_path}/kept }}
    """)
    kept = f"{tmp_path}/kept"
    with node_of(router.port) as node:
        address = {"prefix": "news", "distribution": "multicast"}
        assert node.ask("CREATE", address, type="router.config.address", name="n").status == 201
        changed = {"maxBytes": 5_000_000, "kinds": "management.change"}
        assert node.ask("UPDATE", changed, type="recordLog", name=kept).status == 200
        refused = node.ask("CREATE", {"prefix": "news"}, type="router.config.address", name="other").status
        assert refused >= 400
    assert router.stop() == 0
    records = records_of(tmp_path / "kept")
    changes = of(records, "management.change")
    told = [(change["op"], change["status"]) for change in changes]
    assert told == [("CREATE", 201), ("UPDATE", 200), ("CREATE", refused)]
    made = changes[0]
    assert (made["user"], made["host"]) == ("anonymous", "127.0.0.1")
    assert made["values"]["distribution"] == "multicast"
    assert "before_hash" not in made
    assert changes[1]["before_hash"] != changes[1]["after_hash"]
    assert set(changes[1]["attrs"]) == {"maxBytes", "kinds"}
    (started,) = of(records, "config.reloaded")
    assert (started["by"], started["ok"]) == ("start", True)
    assert records[-1]["k"] == "management.change"
    assert check_folder(tmp_path / "kept").errors == []


def test_a_killed_router_loses_nothing_that_was_written(tmp_path: Path) -> None:
    configuration = f"""
    router {{ id: R }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    recordLog {{ dir: {tmp_path}/kept }}
    """
    with process(configuration, tmp_path) as router:
        router.wait_for_line("Operational")
        BlockingConnection(f"127.0.0.1:{router.port}", timeout=60).close()
        router.wait_for_line(r"\[C1\] Connection Closed")
        (place,) = segments_in(tmp_path / "kept")
        until(lambda: b"connection.closed" in place.path.read_bytes())
        router.process.kill()
        router.wait()
    with running(configuration, tmp_path):
        pass
    assert len(of(records_of(tmp_path / "kept"), "connection.closed")) == 1
    report = check_folder(tmp_path / "kept")
    assert report.errors == []
    assert any("recovered" in note for note in report.notes)


def test_a_router_whose_records_cannot_be_kept_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with process(f"recordLog {{ dir: {tmp_path}/file/x }}\n", tmp_path) as router:
        assert router.wait() == 1
        assert "records cannot be kept in" in router.text()


def test_the_policy_and_its_decisions_are_reported_by_the_same_rules(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(f"""
    router {{ id: R }}
    policy {{ enableVhostPolicy: yes }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    recordLog {{ dir: {tmp_path}/kept, kinds: audit }}
    vhost {{
        hostname: example.com
        groups: {{ all: {{ users: *, remoteHosts: *, sources: "news, mine", targets: "q" }} }}
    }}
    """)
    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60, virtual_host="example.com")
    client.create_receiver("mine")
    with pytest.raises(LinkDetached):
        client.create_receiver("secrets")
    client.close()
    router.wait_for_line(r"\[C1\] Connection Closed")
    assert router.stop() == 0
    records = records_of(tmp_path / "kept")
    (loaded,) = of(records, "policy.loaded", vhost="example.com")
    assert loaded["rules"] == [
        f"example.com:all:{rule}" for rule in ("remoteHosts:1", "sources:1", "sources:2", "targets:1")
    ]
    decisions = of(records, "policy.decision", op="attach")
    assert [(decision["allow"], decision["addr"]) for decision in decisions] == [(True, "mine"), (False, "secrets")]
    assert decisions[0]["rule"] == "example.com:all:sources:2"
    assert {of(records, "policy.decision", op="open")[0]["rule"], decisions[0]["rule"]} <= set(loaded["rules"])


def test_attaches_that_are_denied_over_and_over_are_reported_together(
    start_router: StartRouter, tmp_path: Path
) -> None:
    router = start_router(f"""
    router {{ id: R }}
    policy {{ enableVhostPolicy: yes }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    recordLog {{ dir: {tmp_path}/kept, kinds: audit }}
    vhost {{ hostname: example.com, groups: {{ all: {{ users: *, remoteHosts: * }} }} }}
    """)
    with Peer(router.port, hostname="example.com") as peer:
        for number in range(300):
            peer.say(Attach(f"link-{number}", number, False, source=Source(), target=Target("q"),
                            initial_delivery_count=0))  # fmt: skip
        for _ in range(300):
            assert peer.expect(Attach).target is None
            peer.expect(Detach)
    router.wait_for_line(r"\[C1\] Connection Closed")
    assert router.stop() == 0
    denied = of(records_of(tmp_path / "kept"), "policy.decision", op="attach", allow=False)
    assert sum(record["repeat"] for record in denied) == 300
    assert len(denied) < 150
    for line in ("DENY AMQP Attach sender", "Link refused"):
        lines = router.matching(line)
        assert len(lines) == len(denied)
        more = [int(found[1]) for each in lines if (found := re.search(r"\(and (\d+) more\)$", each))]
        assert len(lines) + sum(more) == 300


def test_released_deliveries_are_counted_for_their_sender(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(f"""
    router {{ id: R }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    recordLog {{ dir: {tmp_path}/kept, kinds: telemetry }}
    """)
    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    receiver, sender = client.create_receiver("q", credit=10), client.create_sender(None)
    sender.link.send(Message("x", address="q"))
    receiver.receive(timeout=60)
    receiver.accept()
    with pytest.raises(SendException):
        sender.send(Message("x", address="nowhere"), timeout=60)
    settled = client.create_sender(None, options=AtMostOnce())
    settled.send(Message("x", address="nowhere"))
    settled.close()
    client.close()
    router.wait_for_line(r"\[C1\] Connection Closed")
    assert router.stop() == 0
    told = [
        record for record in of(records_of(tmp_path / "kept"), "delivery.interval", final=True) if record["dir"] == "in"
    ]
    assert sorted((each["c_msgs"], each.get("c_undeliverable", 0)) for each in told) == [(1, 1), (2, 1)]
    assert all(each["c_bytes"] > each["c_msgs"] * len(Message("x").encode()) for each in told)


def test_a_vhost_may_have_bodies_recorded_with_hidden_fields_hashed(start_router: StartRouter, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"sixteen octets, or more")
    groups = 'groups: { $default: { sources: "*", targets: "*", remoteHosts: "*", management: admin } }'
    router = start_router(
        f"""
        router {{ id: R }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        policy {{ enableVhostPolicy: yes, defaultVhost: silent }}
        vhost {{
            hostname: silent
            allowUnknownUser: yes
            {groups}
        }}
        vhost {{
            hostname: shop
            allowUnknownUser: yes
            sampleMessages: 1
            sampleHashFields: card
            sampleKeyFile: {tmp_path}/key
            {groups}
        }}
        recordLog {{ dir: {tmp_path}/records, kinds: "message.sampled link.detached" }}
        """
    )
    for vhost in ("silent", "shop"):
        client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60, virtual_host=vhost)
        receiver = client.create_receiver("q", credit=10)
        sender = client.create_sender("q", options=AtMostOnce())
        for body in (b'{"card": "4929-1234", "amount": 5}', b"4929-1234"):
            sender.send(Message(body, inferred=True))
            receiver.receive(timeout=60)
        client.close()
    assert router.stop() == 0
    octets = b"".join(place.path.read_bytes() for place in segments_in(tmp_path / "records"))
    assert b"4929-" not in octets  # with the hyphen, as hashes have digits
    parsed, plain = of(records_of(tmp_path / "records"), "message.sampled")
    assert (parsed["vhost"], parsed["addr"], parsed["size"]) == ("shop", "q", 34)
    body = json.loads(base64.b64decode(parsed["body"]))
    assert body["amount"] == 5
    assert re.fullmatch("hmac:[0-9a-f]{32}", body["card"])
    assert ("body" in plain, plain["hashed"], plain["size"]) == (False, ["*"], 9)


@pytest.mark.attack
def test_a_start_logs_and_records_that_segments_are_gone(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    assert main(["records", "keys", str(folder), "--router", "R"]) == 0
    configuration = f"router {{ id: R }}\nlistener {{ host: 127.0.0.1, port: 0 }}\nrecordLog {{ dir: {folder} }}"
    for _ in range(2):
        with running(configuration, tmp_path) as router:
            assert router.stop() == 0
    gone = segments_in(folder)[-1]
    gone.path.unlink()
    with running(configuration, tmp_path) as router:
        router.wait_for_line(rf"the manifest lists {re.escape(gone.name)}, which is not in the folder")
        router.wait_for_line(r"seals \d+-\d+ are missing at the end")
        assert router.stop() == 0
    alarms = of(records_of(folder), "alarm", name="recordsChanged", state="raised")
    assert [gone.name in alarm["value"] for alarm in alarms] == [True, False]
