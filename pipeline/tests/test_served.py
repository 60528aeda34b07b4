"""Spools of a server, read over Arrow Flight: the rows of the folder, whatever happens to the server."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import flight

from pipeline.tests.landed import read_with_duckdb
from pipeline.tests.served import PATIENCE_S, TOKEN, serve, served, signed_of, url_of
from pipeline.tests.spooled import fill, numbered
from pipeline.tests.test_source_reading import batch, bodies, rows, stream
from tests.certificates import Authority
from tests.house.sources import ROOT
from trouter.cli import main
from trouter_pipeline.flight import protocol
from trouter_pipeline.flight.access import Access, address_of
from trouter_pipeline.flight.client import NotAdmitted, Server, ServerAway
from trouter_pipeline.options import BadOption, Options, Side
from trouter_pipeline.spool import NoCursor, SpoolError, SpoolGap, SpoolReader, SpoolReplaced
from trouter_pipeline.spool.cursors import add_cursor

LARGE = 100_000


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(f"an-older-one\n{TOKEN}\n")
    return tmp_path / "token"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    fill(tmp_path / "orders", numbered(100))
    return tmp_path / "orders"


def large(number: int) -> bytes:
    """Return a message of 100 kB whose body begins with its number."""
    return b"\0\x53\x75\xb0" + LARGE.to_bytes(4, "big") + b"%08d" % number + bytes(LARGE - 8)


def test_a_batch_and_a_stream_have_the_rows_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    uuids = [fill(folder / f"shard-00{shard}", numbered(60, 100 * shard), shard=shard) for shard in range(2)]
    add_to_each(folder, "tables")
    with served(folder) as url:
        here, there = batch(folder, readParallelism="3"), batch(url, readParallelism="3")
        assert len(there.partitions()) == 6
        assert rows(there, there.partitions()) == rows(here, here.partitions())
        source = stream(url, cursor="tables")
        begin = source.initialOffset()
        assert begin == dict.fromkeys(sorted(uuids), 0)
        end = source.latestOffset()
        assert bodies(source, source.partitions(begin, end)) == [*range(60), *range(100, 160)]
        source.commit(end)
        source.stop()
        assert [SpoolReader(path, "tables").position for path in sorted(folder.iterdir())] == [60, 60]
        assert SpoolReader(folder / "shard-000").position == 0
        fill(folder / "shard-000", numbered(5, 60))
        source = stream(url, cursor="tables")
        assert source.initialOffset() == end
        source.stop()


def test_a_server_killed_in_the_middle_and_started_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    folder, count = tmp_path / "orders", 600  # 60 MB: four pieces
    fill(folder, map(large, range(count)))
    process = serve(folder)
    url = url_of(process)
    reader = batch(url, connectTimeoutS=str(PATIENCE_S), readParallelism="1")
    (part,) = reader.partitions()
    numbers: list[int] = []
    kills = 0
    try:
        for rows_of_part in pickle.loads(pickle.dumps(reader.read))(part):
            numbers += [int(body[:8]) for body in rows_of_part.column("body").to_pylist()]
            if kills < 2:
                kills += 1
                process.kill()
                process.wait(PATIENCE_S)
                process = serve(folder, listen=url.split("/")[2])  # and the reader asks before it answers
    finally:
        process.kill()
        process.wait(PATIENCE_S)
    assert kills == 2
    assert numbers == list(range(count))


def test_a_server_that_is_away_is_an_error_in_time_with_the_cure(spool: Path) -> None:
    process = serve(spool)
    url = url_of(process)
    process.kill()
    process.wait(PATIENCE_S)
    with pytest.raises(
        ServerAway, match=r"tried for 0\.5 s: is `trouter pipeline serve` running there.*connectTimeoutS"
    ):
        stream(url, connectTimeoutS="0.5").initialOffset()


def test_a_server_that_has_too_many_readers_is_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    huge = b"\0\x53\x75\xb0" + (40 << 20).to_bytes(4, "big") + bytes(40 << 20)
    fill(folder, [*numbered(1), huge])
    with served(folder, "--readers", "1") as url:
        (part,) = batch(url, readParallelism="1").partitions()
        client = flight.connect(address_of(url)[0])
        stalled = client.do_get(flight.Ticket(msgspec.json.encode(protocol.Ticket(signed_of(part), 0))))
        stalled.read_chunk()  # and no more: the other message is more than what is under way
        other = client.do_get(flight.Ticket(msgspec.json.encode(protocol.Ticket(signed_of(part), 0))))
        with pytest.raises(flight.FlightUnavailableError, match="1 readers are served already"):
            other.read_all()
        with pytest.raises(ServerAway):
            rows(batch(url, connectTimeoutS="0.5"), [part])
        stalled.cancel()
        client.close()
        assert len(rows(batch(url, connectTimeoutS=str(PATIENCE_S)), [part])) == 2


@pytest.mark.pipeline_long
@pytest.mark.slow
def test_spark_lands_a_spool_whose_folder_it_does_not_see(tmp_path: Path, token_file: Path) -> None:
    folder, root, mine = tmp_path / "orders", tmp_path / "root", tmp_path / "mine"
    for shard in range(2):
        fill(folder / f"shard-00{shard}", numbered(3000, 3000 * shard), shard=shard)
    add_to_each(folder, "tables")
    mine.write_text(TOKEN)
    with served(folder, "--token-file", str(token_file)) as url:
        words = ["land", "--spool", url, "--spool-token-file", str(mine), "--cursor", "tables", "--out", str(root)]
        words = [sys.executable, "-m", "trouter", "pipeline", *words, "--master", "local[2]", "--json"]
        for waiting in ([], numbered(100, 6000)):
            if waiting:
                fill(folder / "shard-001", waiting, shard=1)
            hidden = f'mount -t tmpfs none {folder} && test -z "$(ls {folder})" && exec "$@"'
            process = subprocess.run(
                ["unshare", "--mount", "sh", "-c", hidden, "sh", *words],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            if "unshare" in process.stderr or "mount:" in process.stderr:
                pytest.skip(f"a folder cannot be hidden here: {process.stderr.strip()}")
            assert process.returncode == 0, process.stderr
            assert TOKEN not in process.stderr
    (counts,) = read_with_duckdb(
        root, "landed", "count(*), count(distinct (spool_id, seq)), max(cast(decode(body) AS int))"
    )
    assert counts == (6100, 6100, 6099)


def add_to_each(folder: Path, cursor: str) -> None:
    for spool in folder.iterdir():
        add_cursor(spool, cursor)


def test_only_holders_of_a_token_and_of_grants_read(spool: Path, token_file: Path, tmp_path: Path) -> None:
    with served(spool, "--token-file", str(token_file)) as url:
        for more in ({}, {"token": f"{TOKEN}?"}):
            with pytest.raises(NotAdmitted, match="not one of this server's: see token and tokenFile") as refused:
                stream(url, **more).initialOffset()
            assert TOKEN not in str(refused.value)
        (tmp_path / "mine").write_text(f"{TOKEN}\n")
        reader = batch(url, tokenFile=str(tmp_path / "mine"), readParallelism="2")
        parts = reader.partitions()
        (tmp_path / "mine").unlink()  # workers do not read it
        assert TOKEN.encode() not in pickle.dumps(reader) + pickle.dumps(parts)
        assert bodies(reader, parts) == list(range(100))
        own, other = (signed_of(part) for part in parts)
        with Server(url, Access()) as worker:
            mixed = protocol.SignedGrant(other.grant, own.signature)
            with pytest.raises(NotAdmitted, match="not granted by a token"):
                list(worker.blocks(mixed, 50, 100))
            with pytest.raises(SpoolError, match="message 60 is not among those granted, 0 to 49"):
                list(worker.blocks(own, 60, 70))
            past = replace_grant(own, expires=int(time.time()) - 1)
            with pytest.raises(NotAdmitted, match="expired: run the query again"):
                list(worker.blocks(past, 0, 50))


def replace_grant(signed: protocol.SignedGrant, **values: Any) -> protocol.SignedGrant:
    """Return a grant with other values, signed by the holder of the token."""
    grant = msgspec.json.decode(signed.grant, type=protocol.Grant)
    return protocol.signed(TOKEN.encode(), msgspec.structs.replace(grant, **values))


def test_errors_of_the_spool_keep_their_kind(spool: Path, tmp_path: Path) -> None:
    with served(spool) as url:
        with pytest.raises(NoCursor, match=r"no cursor 'tabels'.*trouter pipeline cursors"):
            stream(url, cursor="tabels").initialOffset()
        with pytest.raises(SpoolError, match="there is no spool 'other' here, but orders"):
            stream(url.replace("/orders", "/other")).initialOffset()
        reader = batch(url)
        parts = reader.partitions()
        longer = replace_grant(signed_of(parts[1]), end=200)
        with Server(url, Access()) as worker, pytest.raises(SpoolGap, match="has no message 199 yet"):
            list(worker.blocks(longer, 50, 200))
        shutil.rmtree(spool)
        fill(spool, numbered(100))
        with pytest.raises(SpoolReplaced, match="it was replaced"):
            rows(reader, parts)


def test_a_stranger_learns_no_path_by_a_question_that_is_nested_too_deep(spool: Path, token_file: Path) -> None:
    nested = b'{"other":' + b"[" * 60_000
    with served(spool, "--token-file", str(token_file)) as url:
        client = flight.connect(address_of(url)[0])
        with pytest.raises(flight.FlightServerError, match="does not understand the question") as refused:
            client.do_get(flight.Ticket(nested)).read_all()
        client.close()
    assert "Traceback" not in str(refused.value)


def test_a_server_or_a_client_of_another_version_is_named(spool: Path) -> None:
    with served(spool) as url:
        client = flight.connect(address_of(url)[0])
        later = msgspec.json.encode({"version": 2, "name": "orders", "cursor": "default"})
        with pytest.raises(flight.FlightServerError, match="speaks version 1, its client 2: install the same version"):
            list(client.do_action((protocol.STATE, later)))
        for name, question in ((protocol.STATE, b"?"), (protocol.STATE, bytes(1 << 20))):
            with pytest.raises(flight.FlightServerError, match="does not understand the question: install the same"):
                list(client.do_action((name, question)))
        client.close()
    with flight.FlightServerBase("grpc://127.0.0.1:0") as other, pytest.raises(SpoolError, match=r"127\.0\.0\.1"):
        stream(f"grpc://127.0.0.1:{other.port}/orders").initialOffset()


def test_tls_needs_an_authority_that_is_trusted(spool: Path, token_file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    certificate, key = Authority(tmp_path, "ours").pair("127.0.0.1")
    wrong = Authority(tmp_path / "other", "theirs").certificate
    how = ("--tls-certificate", str(certificate), "--tls-key", str(key), "--token-file", str(token_file))
    with served(spool, *how) as url:
        assert url.startswith("grpc+tls://")
        trusting = batch(url, token=TOKEN, tlsTrustFile=str(tmp_path / "ca.pem"))
        assert bodies(trusting, trusting.partitions()) == list(range(100))
        with pytest.raises(ServerAway, match=r"does TLS fit \(grpc\+tls://, tlsTrustFile, tlsCertificateFile\)"):
            stream(url, token=TOKEN, tlsTrustFile=str(wrong), connectTimeoutS="0.5").initialOffset()
        with pytest.raises(ServerAway, match="does TLS fit"):
            stream(url.replace("+tls", ""), token=TOKEN, connectTimeoutS="0.5").initialOffset()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"spool": "grpc://user:secret@h:1/a"}, "'h:1/a' is no address of a spool: write grpc"),
        ({"spool": "grpc+tls://h/a"}, "no address of a spool"),
        ({"spool": "grpc+tls://h:99999/a"}, "no address of a spool"),
        ({"spool": "grpc+tls://h:1"}, "no address of a spool"),
        ({"spool": "grpc://h:1/a", "receiver": "embedded", "url": "amqp://h", "address": "a"}, "use receiver=none"),
        ({"spool": "grpc://h:1/a", "tlsVerifyName": "false"}, "its certificate names its host"),
        ({"spool": "/a", "token": "x", "tokenFile": "y"}, "token and tokenFile set the same"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(given: dict[str, str], fault: str) -> None:
    with pytest.raises(BadOption, match=fault) as refused:
        Options.parse({"receiver": "none", **given}, Side.READ)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--listen", "0.0.0.0:0"], "others can reach it: give --token-file and --tls-certificate"),
        (["--listen", "127.0.0.1"], "--listen 127.0.0.1: is no HOST:PORT"),
        (["--listen", "127.0.0.1:0", "--token-file", "{folder}/empty"], "has no token"),
        (["--listen", "127.0.0.1:0", "--tls-certificate", "{folder}/none"], "No such file"),
        (["--listen", "127.0.0.1:0", "--tls-certificate", "{folder}/empty"], "127.0.0.1:0"),
        (["--listen", "127.0.0.1:0", "--dir", "{folder}"], "two folders have one name"),
        (["--listen", "127.0.0.1:0", "--dir", "none={folder}/none"], "there is no spool"),
    ],
)
def test_a_server_that_cannot_begin_says_why(
    spool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], fault: str
) -> None:
    (tmp_path / "empty").touch()
    given = [word.format(folder=spool if "--dir" in words and "none" not in word else tmp_path) for word in words]
    with suppress(SystemExit):
        assert main(["pipeline", "serve", "--dir", str(spool), *given]) != 0
    assert fault in capsys.readouterr().err


def test_no_reader_waits_until_the_server_has_imported_pandas() -> None:
    made = "from trouter_pipeline.flight.protocol import batch_of; print(batch_of(b'frames', 7).to_pylist())"
    told = f"import sys; {made}; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[{'frames': b'frames', 'next': 7}]\nFalse\n"
