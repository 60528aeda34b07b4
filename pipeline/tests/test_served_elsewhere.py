"""Spark on another host than the spool, which it reaches only over Flight, while the server is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.tests.landed import read_with_duckdb
from pipeline.tests.served import PATIENCE_S, TOKEN, serve, url_of
from pipeline.tests.spooled import fill, numbered
from tests.field.hosts import Host, hosts, needs_hosts
from tests.house.sources import ROOT
from tests.tls.pki import Authority
from trouter_pipeline.spool import SpoolReader
from trouter_pipeline.spool.cursors import add_cursor

MESSAGES = 12_000
KILLS = 3
#: Seconds between two looks at the landed batches.
LOOK_S = 0.02
#: Seconds that only a hang takes.
LANDED_S = 600.0
HIDE = 'mount -t tmpfs none "$0" && test -z "$(ls "$0")" && exec "$@"'


def batches(root: Path) -> int:
    """Return how often the table has changed."""
    return len(list((root / "tables" / "landed" / "_delta_log").glob("*.json")))


def land(host: Host, folder: Path, root: Path, *words: str) -> subprocess.Popen[bytes]:
    """Land in small batches on a host, without the folder of the spool."""
    land = [sys.executable, "-m", "trouter", "pipeline", "land", "--out", str(root), "--cursor", "tables", "--quiet"]
    more = ["--max-rows", "1000", "--master", "local[2]", "--conf", "spark.driver.memory=1g"]
    with host.inside(), root.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", HIDE, str(folder), *land, *more, *words],
            cwd=ROOT,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            stderr=log,
        )


@pytest.mark.pipeline_long
@pytest.mark.slow
@needs_hosts()
def test_nothing_is_lost_or_doubled_when_the_server_of_another_host_is_killed(tmp_path: Path) -> None:
    folder, root = tmp_path / "orders", tmp_path / "root"
    for shard in range(2):
        fill(folder / f"shard-00{shard}", numbered(MESSAGES // 2, shard * MESSAGES // 2), shard=shard)
        add_cursor(folder / f"shard-00{shard}", "tables")
    (tmp_path / "token").write_text(TOKEN)
    servers, readers = Authority(tmp_path, "Servers"), Authority(tmp_path, "Readers")
    with hosts(2) as (there, here):
        own, reader = servers.issue("CN=spool", there.address), readers.issue("CN=reader")
        how = ["--tls-certificate", str(own.cert), "--tls-key", str(own.key), "--token-file", str(tmp_path / "token")]
        how += ["--client-ca", str(readers.file)]
        with there.inside():
            server = serve(folder, *how, listen=f"{there.address}:0")
        url = url_of(server)
        words = ["--spool", url, "--spool-token-file", str(tmp_path / "token"), "--spool-trust-file", str(servers.file)]
        words += ["--spool-certificate", str(reader.cert), "--spool-key", str(reader.key)]
        landing = land(here, folder, root, *words)
        try:
            for _ in range(KILLS):
                before = batches(root)
                while batches(root) == before:
                    with suppress(subprocess.TimeoutExpired):
                        landing.wait(LOOK_S)
                        pytest.fail(f"it ended early: {root.with_suffix('.log').read_text()[-2000:]}")
                server.kill()
                server.wait(PATIENCE_S)
                with there.inside():
                    server = serve(folder, *how, listen=url.split("/")[2])
                assert url_of(server) == url
            assert landing.wait(LANDED_S) == 0, root.with_suffix(".log").read_text()[-2000:]
        finally:
            landing.kill()
            server.kill()
            landing.wait(PATIENCE_S)
            server.wait(PATIENCE_S)
    columns = "count(*), count(distinct (spool_id, seq)), sum(cast(decode(body) AS bigint))"
    (counts,) = read_with_duckdb(root, "landed", columns)
    assert counts == (MESSAGES, MESSAGES, MESSAGES * (MESSAGES - 1) // 2)
    assert [SpoolReader(each, "tables").position for each in sorted(folder.iterdir())] == [MESSAGES // 2] * 2
