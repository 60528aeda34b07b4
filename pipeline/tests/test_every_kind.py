"""Each kind of record, written by a router process for a real reason, and read again after compaction.

One router goes through all of it: logins, TLS, policy, traffic, a neighbour, a plugin that fails, a clock that is set.
A small library moves the clocks of that process, so that the test need not wait.
"""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from proton import Message
from proton.utils import LinkDetached

from tests.clocks import Clock
from tests.e2e.by_proton import Client, Ear, refusal
from tests.e2e.test_records import of, records_of
from tests.management.node import Node
from tests.networks import interior, router_port
from tests.routers import DEADLINE_S, RunningRouter, process, running
from tests.tls.pki import Authority
from tests.waiting import until
from trouter.cli import main
from trouter.records import KINDS
from trouter.records.seals import write_first
from trouter.records.segments import file_label
from trouter_pipeline.datasets import Records, dataset
from trouter_pipeline.metering.engines import OnSpark
from trouter_pipeline.tables import Table
from trouter_plugins.users_file import put_user

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

#: Jobs that read records, in the order of their inputs, and the tables that then have rows.
JOBS = {
    "audit": ("audit_rules",),
    "meter": ("meter", "meter_conn"),
    "rollup": ("rollup_hour", "rollup_day"),
    "top": ("top",),
    "latency": ("latency",),
    "topology": ("topology_history",),
}
PASSWORD = "wonderland"
DAY_S = 86_400
FAULTY = """
from trouter.hooks import hookimpl

@hookimpl
def judge_attach(request):
    if request.address == "broken":
        raise RuntimeError("as it was asked to")
"""
MORE = """
listener {{
    name: clients
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN
    authenticatePeer: yes
    allowInsecurePlain: loopback
    idleTimeoutSeconds: 0
}}
sslProfile {{ name: tls, certFile: {pair.cert}, privateKeyFile: {pair.key} }}
listener {{ host: 127.0.0.1, port: 0, sslProfile: tls, requireSsl: yes, saslMechanisms: ANONYMOUS }}
policy {{ enableVhostPolicy: yes, defaultVhost: main }}
vhost {{
    hostname: main
    allowUnknownUser: yes
    sampleMessages: 2
    groups: {{
        $default: {{ management: admin, sources: "*", targets: "q*, broken, $management", remoteHosts: "*"
                     allowDynamicSource: yes, allowAnonymousSender: yes }}
    }}
}}
recordLog {{ dir: {folder}/all, intervalSeconds: 1 }}
recordLog {{ dir: {folder}/brief, kinds: audit, keepDays: 1, segmentSeconds: 1 }}
"""
CLIENTS, TLS = 2, 3


def install_faulty(folder: Path) -> str:
    """Install a plugin that fails on request; return its folder."""
    place = folder / "installed"
    information = place / "faulty-1.0.dist-info"
    information.mkdir(parents=True)
    (place / "faulty.py").write_text(FAULTY)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[trouter.plugins]\nfaulty = faulty\n")
    return str(place)


def wait_for(folder: Path, kind: str, **wanted: object) -> dict[str, Any]:
    """Wait for the first record of this kind; return it."""

    def look() -> list[dict[str, Any]]:
        with suppress(FileNotFoundError):  # a completed segment is renamed
            return of(records_of(folder), kind, **wanted)
        return []

    return until(look, f"{kind} with {wanted}")[0]


def live(router: RunningRouter, folder: Path, clock: Clock) -> None:
    """Cause each recorded event."""
    everything, brief = folder / "all", folder / "brief"
    client = Client(Ear(), router.ports[CLIENTS], "alice", PASSWORD)
    receiver = client.create_receiver("q", credit=10)
    sender: Any = client.create_sender("q")
    for _ in range(5):
        sent = sender.link.send(Message("x"))
        receiver.receive(timeout=DEADLINE_S)
        receiver.accept()
        client.wait(lambda each=sent: each.settled)  # type: ignore[misc]
    for address in ("forbidden", "broken"):
        with pytest.raises(LinkDetached):
            client.create_sender(address)
    refusal(router.ports[CLIENTS], "alice", "wrong")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", router.ports[TLS]), DEADLINE_S) as sock:
        context.wrap_socket(sock).close()
    node = Node(router.ports[0], anonymous=True)
    node.ask("CREATE", {"prefix": "q", "distribution": "balanced"}, type="router.config.address", name="made")
    node.close()
    wait_for(everything, "delivery.interval", dir="in")
    wait_for(everything, "latency.sketch")
    wait_for(everything, "plugin.fault", plugin="faulty", hook="judge_attach")
    wait_for(everything, "alarm", name="auth-lockout")
    wait_for(everything, "topology.change", what="neighbour-up")
    client.create_receiver("q.stalled", credit=0)
    wait_for(everything, "link.attached", addr="q.stalled")
    clock.set_ahead(11, 11)
    wait_for(everything, "link.stalled", addr="q.stalled", state="start")
    clock.set_ahead(2 * DAY_S, 11)
    wait_for(everything, "clock.step")
    wait_for(brief, "records.dropped", reason="retention")
    wait_for(brief, "records.sealed")
    client.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a pipeline with all records of a router, compacted."""
    folder = tmp_path_factory.mktemp("every-kind")
    put_user(folder / "users", "alice", PASSWORD.encode())
    pair = Authority(folder).issue("CN=localhost", "localhost", days=30)
    clock = Clock(folder)
    (folder / "brief").mkdir()
    write_first(folder / "brief", file_label("A"), bytes(32))
    before = dict(os.environ)
    with running(interior("B", {}), folder) as neighbour:
        more = MORE.format(pair=pair, folder=folder)
        router = f"usersFile: {folder}/users, plugins: faulty, authLockoutAfter: 1"
        os.environ.update(clock.environment, PYTHONPATH=install_faulty(folder))
        try:
            configuration = interior("A", {"B": router_port(neighbour)}, more, router=router)
            with process(configuration, folder) as started:  # the plugin's traceback is in its log
                started.wait_for_line(r"Operational")
                os.environ.clear()
                os.environ.update(before)
                live(started, folder, clock)
                assert started.stop() == 0
        finally:
            os.environ.clear()
            os.environ.update(before)
    assert main(["pipeline", "compact", f"{folder}/all", f"{folder}/brief", f"{folder}/root", "--jobs", "1"]) == 0
    return folder / "root"


@pytest.mark.parametrize("kind", KINDS)
def test_the_router_wrote_the_kind_and_compaction_read_the_kind(root: Path, kind: str) -> None:
    rows = [row for path in Records(root).paths(kind) for row in pq.read_table(path).to_pylist()]
    assert rows
    assert {row["router"] for row in rows} == {"A"}
    assert all(row["n"] >= 0 and row["t_us"] > 0 for row in rows)


@pytest.mark.spark
@pytest.mark.pipeline_long
def test_spark_reads_every_kind(spark: SparkSession, root: Path) -> None:
    assert [kind for kind in KINDS if dataset(spark, Records(root), kind).isEmpty()] == []


@pytest.mark.spark
@pytest.mark.pipeline_long
def test_the_jobs_fill_their_tables_from_the_records(spark: SparkSession, root: Path) -> None:
    for job, tables in JOBS.items():  # a rollup reads the meter, so the order matters
        module = import_module(f"trouter_pipeline.jobs.{job}")
        engine = OnSpark(spark) if job == "meter" else spark
        module.run(engine, root, module.Parameters(), lambda _: None)
        assert [name for name in tables if Table(root, name).read(spark).isEmpty()] == []
