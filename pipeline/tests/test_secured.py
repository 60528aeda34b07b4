"""The source and the sink on Spark with a router that requires TLS and a password: their logins, and the errors.

No secret is shown by Spark or written to a file.
"""

from __future__ import annotations

import io
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from pipeline.tests.spooled import send
from pipeline.tests.test_sink import taking
from tests.certificates import Authority
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.cli import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PASSWORD = "open-sesame-4711"
WRONG = "no-such-word-0815"
CONFIGURATION = """
router {{ id: R, usersFile: {folder}/users }}
sslProfile {{ name: tls, certFile: {certificate}, privateKeyFile: {key} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ host: 127.0.0.1, port: 0, sslProfile: tls, requireSsl: yes, authenticatePeer: yes, saslMechanisms: PLAIN }}
listener {{
    host: 127.0.0.1
    port: 0
    sslProfile: tls
    requireSsl: yes
    authenticatePeer: yes
    saslMechanisms: SCRAM-SHA-256
}}
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A router with several listeners, and the files of its clients."""

    router: RunningRouter
    folder: Path
    authority: Path
    another_authority: Path

    @property
    def plain(self) -> str:
        return f"127.0.0.1:{self.router.ports[1]}"

    @property
    def scram(self) -> str:
        return f"127.0.0.1:{self.router.ports[2]}"

    @property
    def inside(self) -> str:
        return f"127.0.0.1:{self.router.ports[0]}"

    def options(self, **more: str) -> dict[str, str]:
        """Return valid options, with changes."""
        return {
            "url": f"amqps://{self.plain}",
            "user": "spark",
            "passwordFile": str(self.folder / "secret"),
            "tlsTrustFile": str(self.authority),
            **more,
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("secured")
    for name, word in (("secret", PASSWORD), ("wrong", WRONG)):
        (folder / name).write_text(f"{word}\n")
    for name in ("ours", "theirs"):
        (folder / name).mkdir()
    ours, theirs = Authority(folder / "ours", "ours"), Authority(folder / "theirs", "theirs")
    certificate, key = ours.pair("127.0.0.1")
    users = ["passwd", "add", str(folder / "users"), "spark", "--password-file", str(folder / "secret")]
    assert main(users) == 0
    text = CONFIGURATION.format(folder=folder, certificate=certificate, key=key)
    with running(text, folder) as router:
        yield Site(router, folder, ours.certificate, theirs.certificate)
        assert PASSWORD not in router.text()
        assert WRONG not in router.text()


class Sending:
    """Send messages to an address until the block ends, because a reader attaches later."""

    def __init__(self, site: Site, address: str, count: int) -> None:
        self._thread = threading.Thread(target=send, args=(site.inside, address, count))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()


def shown(spark: SparkSession, *frames: DataFrame) -> str:
    """Return Spark's texts on these frames and all earlier queries, from which its pages are made."""
    page = io.StringIO()
    with redirect_stdout(page):
        for frame in frames:
            frame.explain(mode="extended")
            frame.explain(mode="formatted")
    texts = [page.getvalue(), *(str(frame._jdf.queryExecution().toString()) for frame in frames)]
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    for number in range(executions.size()):
        execution = executions.apply(number)
        texts += [
            execution.description(),
            execution.details(),
            execution.physicalPlanDescription(),
            str(execution.modifiedConfigs()),
        ]
    assert executions.size()
    return "\n".join(texts)


def files_with(folder: Path, word: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def first_and_rest(cases: Iterable[str]) -> list[Any]:
    """Return the first case for every run; the others differ only in configuration, and each takes Spark seconds."""
    return [pytest.param(case, marks=[pytest.mark.pipeline_long] * (n > 0)) for n, case in enumerate(cases)]


WAYS: dict[str, Callable[[Site], dict[str, str]]] = {
    "PLAIN, a password in a file": lambda site: site.options(),
    "SCRAM, a password": lambda site: {
        **{name: text for name, text in site.options().items() if name != "passwordFile"},
        "url": f"amqps://{site.scram}",
        "password": PASSWORD,
    },
    "PLAIN, a password in the URL": lambda site: {
        "url": f"amqps://spark:{PASSWORD}@{site.plain}",
        "tlsTrustFile": str(site.authority),
    },
}


@pytest.mark.parametrize("way", first_and_rest(WAYS))
def test_a_batch_comes_and_goes_and_shows_no_secret(
    amqp: SparkSession, site: Site, tmp_path: Path, way: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = WAYS[way](site)
    address = way.partition(",")[0]
    read = amqp.read.format("amqp").options(
        **given, address=address, spool=str(tmp_path / "spool"), maxMessages="20", connectTimeoutS="60"
    )
    with Sending(site, address, 20):
        frame = read.load()
        assert sorted(int(row.body) for row in frame.select("body").collect()) == list(range(20))
    with taking(site.router, f"{address} out") as taker:
        frame.select("body").write.format("amqp").mode("append").options(**given, address=f"{address} out").save()
    assert sorted(int(message.body) for message in taker.messages) == list(range(20))
    options = shown(amqp, frame)
    assert "format: amqp" in options
    assert PASSWORD not in options
    assert not files_with(tmp_path, PASSWORD)
    assert PASSWORD not in "".join(capfd.readouterr())


@pytest.mark.pipeline_long
def test_a_stream_comes_and_goes_and_shows_no_secret(
    amqp: SparkSession, site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = WAYS["SCRAM, a password"](site)
    frame = amqp.readStream.format("amqp").options(**given, address="in", spool=str(tmp_path / "spool")).load()
    with taking(site.router, "out") as taker:
        query = (
            frame.select("body")
            .writeStream.format("amqp")
            .options(**given, address="out", checkpointLocation=str(tmp_path / "checkpoint"))
            .start()
        )
        with Sending(site, "in", 20):
            pass
        query.processAllAvailable()
        texts = [str(query._jsq.explainInternal(True)), str(query.lastProgress), str(query.status)]
        query.stop()
    assert sorted(int(message.body) for message in taker.messages) == list(range(20))
    assert PASSWORD not in shown(amqp) + "".join(texts)
    assert not files_with(tmp_path, PASSWORD)
    assert PASSWORD not in "".join(capfd.readouterr())


FAULTS: dict[str, tuple[Callable[[Site], dict[str, str]], str]] = {
    "another authority": (
        lambda site: site.options(tlsTrustFile=str(site.another_authority)),
        "certificate cannot be trusted: .*: name the authority that signed it with tlsTrustFile",
    ),
    "another host": (
        lambda site: site.options(url=f"amqps://localhost:{site.router.ports[1]}"),
        "certificate cannot be trusted: .*: write url as the certificate does, or tlsVerifyName=false",
    ),
    "another password": (
        lambda site: site.options(passwordFile=str(site.folder / "wrong")),
        "the server did not accept the credentials: see user and passwordFile",
    ),
    "another mechanism": (
        lambda site: site.options(saslMechanisms="SCRAM-SHA-256"),
        "the server offers the SASL mechanisms PLAIN, the client can use SCRAM-SHA-256: see saslMechanisms and user",
    ),
    "no TLS there": (
        lambda site: site.options(url=f"amqps://{site.inside}"),
        ": does the server expect TLS. amqps://, tlsTrustFile or tlsCertificateFile turns it on",
    ),
    "no such file": (
        lambda site: site.options(tlsTrustFile="/none/ca.pem"),
        "tlsTrustFile: /none/ca.pem: No such file or directory",
    ),
}


@pytest.mark.parametrize("fault", first_and_rest(FAULTS))
def test_a_faulty_option_is_named_and_no_secret_is_shown(
    amqp: SparkSession, site: Site, tmp_path: Path, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong, reason = FAULTS[fault]
    given = {"connectTimeoutS": "5", "address": "refused", **wrong(site)}
    with pytest.raises(PySparkException, match=reason) as reading:
        amqp.read.format("amqp").options(**given, spool=str(tmp_path / "spool")).load().count()
    rows = amqp.range(0, 2, 1, 1).selectExpr("cast(id as string) body")
    with pytest.raises(PySparkException, match=reason) as writing:
        rows.write.format("amqp").mode("append").options(**given, settleTimeoutS="5").save()
    logged = "".join(
        [*traceback.format_exception(reading.value), *traceback.format_exception(writing.value), *capfd.readouterr()]
    )
    for secret in (PASSWORD, WRONG):
        assert secret not in logged + shown(amqp)
        assert not files_with(tmp_path, secret)


@pytest.mark.pipeline_long
def test_a_stream_ends_with_its_fault_and_the_option(amqp: SparkSession, site: Site, tmp_path: Path) -> None:
    given = {**site.options(passwordFile=str(site.folder / "wrong")), "address": "refused"}
    frame = amqp.readStream.format("amqp").options(**given, spool=str(tmp_path / "spool")).load()
    query = (
        frame.select("body")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "landed"))
    )
    with pytest.raises(PySparkException, match="the server did not accept the credentials: see user and passwordFile"):
        query.awaitTermination(int(DEADLINE_S * 3))
    assert not files_with(tmp_path, WRONG)
