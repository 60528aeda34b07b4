"""A server of spools that asks readers for a certificate: a stranger without one sends it nothing."""

from __future__ import annotations

import pickle
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from pyarrow import flight

from pipeline.tests.served import PATIENCE_S, TOKEN, serve, served, url_of
from pipeline.tests.spooled import fill, numbered
from pipeline.tests.test_source_reading import batch, bodies, rows, stream
from tests.tls.pki import Authority, Pair
from trouter.cli import main
from trouter_pipeline.flight.access import address_of
from trouter_pipeline.flight.client import NotAdmitted, ServerAway
from trouter_pipeline.options import BadOption, Options, Side

#: The length of a question, and what a server may keep of it if it reads none.
QUESTION_BYTES = 64 << 20
KEPT_KIB = 16 << 10
FEW_DESCRIPTORS = 128


class Site(NamedTuple):
    """The files of a spool's server and of its readers."""

    spool: Path
    words: tuple[str, ...]
    servers: Authority
    readers: Authority
    reader: Pair


@pytest.fixture
def site(tmp_path: Path) -> Site:
    fill(tmp_path / "orders", numbered(100))
    (tmp_path / "token").write_text(TOKEN)
    servers, readers = Authority(tmp_path, "Servers"), Authority(tmp_path, "Readers")
    own = servers.issue("CN=spool", "127.0.0.1")
    words = ("--tls-certificate", str(own.cert), "--tls-key", str(own.key), "--token-file", str(tmp_path / "token"))
    return Site(tmp_path / "orders", words, servers, readers, readers.issue("CN=reader"))


@pytest.fixture
def url(site: Site) -> Iterator[str]:
    with served(site.spool, *site.words, "--client-ca", str(site.readers.file)) as url:
        yield url


def options(site: Site, reader: Pair | None, **more: str) -> dict[str, str]:
    given = {"tlsTrustFile": str(site.servers.file), "token": TOKEN, "connectTimeoutS": str(PATIENCE_S)}
    if reader is not None:
        given |= {"tlsCertificateFile": str(reader.cert), "tlsKeyFile": str(reader.key)}
    return given | more


def test_a_reader_with_a_certificate_reads_and_its_workers_have_neither_key_nor_token(site: Site, url: str) -> None:
    reader = batch(url, **options(site, site.reader, readParallelism="2"))
    parts = reader.partitions()
    sent = pickle.dumps(reader) + pickle.dumps(parts)
    assert bodies(pickle.loads(pickle.dumps(reader)), parts) == list(range(100))
    lines = site.reader.key.read_bytes().splitlines()[1:-1]
    assert not [line for line in [*lines, TOKEN.encode()] if line in sent]
    site.reader.key.unlink()  # as on a worker that has no file there
    with pytest.raises(NotAdmitted, match=f"{re.escape(str(site.reader.key))}: No such file.*tlsKeyFile"):
        rows(reader, parts)


def test_a_certificate_does_not_replace_the_token(site: Site, url: str) -> None:
    with pytest.raises(NotAdmitted, match="see token and tokenFile"):
        stream(url, **options(site, site.reader, token="another")).initialOffset()


@pytest.mark.attack
@pytest.mark.parametrize("kind", ["none", "of another authority", "expired", "of the server's authority"])
def test_a_certificate_that_is_not_good_is_refused(site: Site, url: str, tmp_path: Path, kind: str) -> None:
    issued = {
        "of another authority": partial(Authority(tmp_path, "Readers").issue, "CN=reader"),
        "expired": partial(site.readers.issue, "CN=reader", begins=-2, days=-1),
        "of the server's authority": partial(site.servers.issue, "CN=reader"),
    }
    reader = issued[kind]() if kind in issued else None
    with pytest.raises(ServerAway, match=r"does TLS fit .*tlsCertificateFile"):
        stream(url, **options(site, reader, connectTimeoutS="0.5")).initialOffset()
    good = batch(url, **options(site, site.reader))
    assert len(rows(good, good.partitions())) == 100


@pytest.mark.attack
def test_a_question_of_a_stranger_takes_no_memory(site: Site) -> None:
    process = serve(site.spool, *site.words, "--client-ca", str(site.readers.file))
    try:
        host = address_of(url_of(process))[0]
        before = peak_kib(process.pid)
        stranger = flight.connect(host, tls_root_certs=site.servers.file.read_bytes())
        with pytest.raises(flight.FlightUnavailableError):
            list(stranger.do_action(("any", bytes(QUESTION_BYTES)), flight.FlightCallOptions(timeout=PATIENCE_S)))
        stranger.close()
        assert peak_kib(process.pid) - before < KEPT_KIB
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stderr is not None
        with process.stderr:
            assert process.stderr.read() == ""  # and no line for each of its handshakes


@pytest.mark.attack
def test_connections_that_say_nothing_leave_descriptors_for_readers(site: Site) -> None:
    few = ["sh", "-c", f'ulimit -Sn {FEW_DESCRIPTORS} && exec "$@"', "sh"]
    process = serve(site.spool, *site.words, "--client-ca", str(site.readers.file), before=few)
    with ExitStack() as silent:
        silent.callback(process.wait, PATIENCE_S)
        silent.callback(process.kill)
        url = url_of(process)
        port = int(address_of(url)[0].rpartition(":")[2])
        for _ in range(2 * FEW_DESCRIPTORS):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        reader = batch(url, **options(site, site.reader))
        assert len(rows(reader, reader.partitions())) == 100


def peak_kib(pid: int) -> int:
    """Return the most memory that a process has had, in KiB."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1])


def test_a_server_that_strangers_reach_says_what_it_lacks(site: Site) -> None:
    for more, warned in (((), True), (("--client-ca", str(site.readers.file)), False)):
        process = serve(site.spool, *site.words, *more, listen="0.0.0.0:0")
        url_of(process)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        with process.stderr:
            assert ("give --client-ca" in process.stderr.read()) == warned


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--client-ca", "{ca}"], "--client-ca is for --tls-certificate"),
        (["--tls-certificate", "{cert}", "--tls-key", "{key}", "--client-ca", "{key}"], "has no certificate"),
        (["--tls-certificate", "{cert}", "--tls-key", "{ca}"], "cannot be used, or are no pair"),
    ],
)
def test_certificates_that_cannot_be_used_are_named(
    site: Site, capsys: pytest.CaptureFixture[str], words: list[str], fault: str
) -> None:
    files = {"ca": site.readers.file, "cert": site.reader.cert, "key": site.reader.key}
    given = [word.format(**files) for word in words]
    with suppress(SystemExit):
        assert main(["pipeline", "serve", "--dir", str(site.spool), "--listen", "127.0.0.1:0", *given]) != 0
    assert fault in capsys.readouterr().err


def test_a_port_that_is_in_use_is_an_error_with_the_cure(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with served(site.spool) as url:
        place = url.split("/")[2]
        assert main(["pipeline", "serve", "--dir", str(site.spool), "--listen", place]) == 1
    assert f"cannot listen on {place}: another process uses the port: end " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"spool": "grpc://h:1/a", "tlsCertificateFile": "c"}, "tlsCertificateFile is for TLS: write grpc.tls://"),
        ({"spool": "grpc+tls://h:1/a", "tlsCertificateFile": "c", "tlsKeyPassword": "x"}, "without a password"),
    ],
)
def test_options_that_protect_nothing_are_refused(given: dict[str, str], fault: str) -> None:
    with pytest.raises(BadOption, match=fault):
        Options.parse({"receiver": "none", **given}, Side.READ)
