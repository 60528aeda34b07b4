"""`trouter pipeline forward`: messages of spools into Kafka, each once, in order, by two brokers."""

from __future__ import annotations

import json
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import proton
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from pipeline.tests.kafkas import PATIENCE_S, Broker, Sent, mock_cluster, records_in, started, tansu, tls_before
from pipeline.tests.served import served
from tests.certificates import Authority
from tests.extras import SPARKS, run_without
from trouter.cli import main
from trouter.client import Message, Properties
from trouter_pipeline.flight.access import Access
from trouter_pipeline.kafka import alerts, local
from trouter_pipeline.kafka.failures import NotForwarded, failure
from trouter_pipeline.kafka.records import murmur2, origin_of
from trouter_pipeline.kafka.settings import Settings
from trouter_pipeline.kafka.writer import Writer
from trouter_pipeline.shards import open_spools
from trouter_pipeline.spool import Spool, SpoolGap
from trouter_pipeline.spool.cursors import add_cursor, lags_of

MIB = 1 << 20
#: Seconds for a broker that never answers.
SHORT_S = 2.0


def fill(folder: Path, address: str, *messages: bytes) -> str:
    with Spool.open(folder, address=address) as spool:
        for message in messages:
            spool.append(message, ingest_us=1_769_904_000_000_000)
        spool.sync()
        return spool.uuid


def change(site: str, number: int) -> bytes:
    body = json.dumps({"id": number % 7, "change": number, "site": site}).encode()
    return Message(body, properties=Properties(message_id=f"{site}-{number}")).encode()


def changes(site: str, first: int, end: int) -> list[bytes]:
    return [change(site, number) for number in range(first, end)]


def numbers(records: list[Sent]) -> list[int]:
    return [json.loads(record.value or b"{}")["change"] for record in records]


@pytest.fixture(scope="module", params=["mock", "tansu"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if request.param == "mock":
        with mock_cluster() as bootstrap:
            yield Broker(bootstrap, makes_topics=True)
    else:
        with tansu(tmp_path_factory.mktemp("tansu")) as bootstrap:
            yield Broker(bootstrap, makes_topics=False)


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
    broker.create(name)
    return name


@pytest.fixture
def settings(broker: Broker, topic: str) -> Settings:
    return Settings(bootstrap=broker.bootstrap, topic=topic, timeout_s=PATIENCE_S)


def forward(settings: Settings, *spools: Path, given: dict[str, int] | None = None, **more: Any) -> local.Summary:
    return local.run(settings, list(map(str, spools)), given or {}, max_message=MIB, **more)


def test_each_source_has_a_partition_of_its_own_and_its_order(
    settings: Settings, broker: Broker, tmp_path: Path
) -> None:
    east, west = tmp_path / "east", tmp_path / "west"
    fill(west, "changes/west", *changes("west", 0, 300))
    first = forward(settings, west, max_rows=100)
    assert (first.sent, first.known, first.left) == ({"changes/west": 300}, {"changes/west": 0}, 0)
    fill(east, "changes/east", *changes("east", 0, 200))
    fill(west, "changes/west", *changes("west", 300, 350))
    assert forward(settings, east, west).sent == {"changes/east": 200, "changes/west": 50}
    assert forward(settings, east, west).sent == {}
    found = records_in(broker.bootstrap, settings.topic)
    assert [numbers(found[partition]) for partition in (0, 1)] == [list(range(350)), list(range(200))]
    assert not found[2]
    assert {json.loads(record.value or b"")["site"] for record in found[0]} == {"west"}


@pytest.mark.parametrize("transactions", [True, False])
def test_a_writer_that_starts_goes_on_behind_what_the_topic_has(
    settings: Settings, broker: Broker, tmp_path: Path, transactions: bool
) -> None:
    spool = tmp_path / "spool"
    uuid = fill(spool, "changes", *changes("a", 0, 50))
    given = replace(settings, transactions=transactions)
    forward(given, spool)
    fill(spool, "changes", *changes("a", 50, 1000))
    # a writer has sent half of the next messages, and was killed before the spool knew
    writer = Writer(given, uuid, 50, 0)
    line = local._Line(open_spools([str(spool)])[0], given, 0, MIB, Access())
    line._writer = writer
    line._shard.consumed = lambda upto: None  # type: ignore[method-assign]
    assert line.forward(400).sent == 400
    again = forward(given, spool)
    assert (again.sent, again.known) == ({"changes": 550}, {"changes": 400})
    assert numbers(records_in(broker.bootstrap, settings.topic)[0]) == list(range(1000))


def test_a_field_chooses_the_partition_as_kafkas_own_clients_do(
    settings: Settings, broker: Broker, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    fill(spool, "changes", *changes("a", 0, 70))
    given = replace(settings, partition_by="id", keys=["id"])
    assert forward(given, spool).sent == {"changes": 70}
    found = records_in(broker.bootstrap, settings.topic)
    by_key: dict[bytes | None, list[int]] = {}
    for partition, records in found.items():
        for record in records:
            assert murmur2(record.key or b"") % 4 == partition
            by_key.setdefault(record.key, []).extend(numbers([record]))
    assert by_key == {b"%d" % key: list(range(key, 70, 7)) for key in range(7)}
    assert len([partition for partition, records in found.items() if records]) > 1


@pytest.mark.parametrize(
    ("octets", "value"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"", 275646681)],
)
def test_the_hash_is_that_of_kafka(octets: bytes, value: int) -> None:
    assert murmur2(octets) == value & 0x7FFFFFFF


def test_values_keys_and_headers_of_all_kinds_of_messages(settings: Settings, broker: Broker, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    messages = [
        proton.Message(
            b'{"id": 1.10, "after": {"no": "x"}}',
            inferred=True,
            subject="s",
            id="m1",
            properties={"site": "e", "trouter-seq": "9", "n": proton.int32(5)},
            annotations={proton.symbol("x-opt-at"): 7},
        ),
        proton.Message("text"),
        proton.Message({"id": 2}, properties={"site": "f"}),
        proton.Message(None, properties={"site": "g"}),
        proton.Message(b"", inferred=True),
    ]
    uuid = fill(spool, "all", *(bytes(message.encode()) for message in messages), b"no message")
    given = replace(settings, keys=["property:site", "id", "after.no"])
    assert forward(given, spool).sent == {"all": 6}
    found = records_in(broker.bootstrap, settings.topic)[0]
    assert [record.key for record in found] == [
        b'["e","1.10","x"]',
        None,
        b'["f",null,null]',
        b'["g",null,null]',
        None,
        None,
    ]
    assert [record.value for record in found] == [
        messages[0].body, b"text", found[2].value, None, b"", b"no message"
    ]  # fmt: skip
    assert b'"id"' in (found[2].value or b"")
    assert found[0].headers == {
        "trouter-spool": uuid.encode(), "trouter-seq": b"0", "trouter-source": b"all", "amqp-message-id": b"m1",
        "amqp-subject": b"s", "site": b"e", "property:trouter-seq": b"9", "n": b"5", "annotation:x-opt-at": b"7",
    }  # fmt: skip
    assert found[2].headers["trouter-body"] == b"value"
    assert "trouter-error" in found[5].headers


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"id": "\\ud800x"}', b"\\ud800x"),
        (b'{"id": ["\\udfff"]}', b'["\\udfff"]'),
        (b'{"id": ' + b"[" * 900 + b"]" * 900 + b"}", b"[" * 900 + b"]" * 900),
        (b"[" * 100_000, None),
    ],
)
def test_no_body_of_a_sender_keeps_others_from_being_forwarded(
    settings: Settings, broker: Broker, tmp_path: Path, body: bytes, key: bytes | None
) -> None:
    spool = tmp_path / "spool"
    fill(spool, "all", Message(body).encode(), change("a", 1))
    given = replace(settings, keys=["id"], partition_by="id")
    assert forward(given, spool).sent == {"all": 2}
    found = [record for records in records_in(broker.bootstrap, settings.topic).values() for record in records]
    assert {(record.key, record.value == body) for record in found} == {(key, True), (b"1", False)}
    assert forward(replace(settings, keys=["id", "id"]), spool).sent == {}


def test_the_command_needs_no_spark(settings: Settings, tmp_path: Path) -> None:
    fill(tmp_path / "spool", "changes", *changes("a", 0, 3))
    words = ["forward", "--spool", "spool", "--kafka", settings.bootstrap, "--topic", settings.topic]
    words += ["--engine", "local", "--quiet", "--timeout", str(PATIENCE_S)]
    done = run_without(SPARKS, "pipeline", *words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "changes: 3 sent\n"), done.stderr
    done = run_without({"confluent_kafka"}, "pipeline", *words, folder=tmp_path)
    assert (done.returncode, "pip install 'trouter[kafka]'" in done.stderr) == (1, True), done.stderr


def test_only_one_forwards_a_spool(settings: Settings, tmp_path: Path) -> None:
    fill(tmp_path / "spool", "changes", *changes("a", 0, 1))
    shards = open_spools([str(tmp_path / "spool")])
    with local.held(shards), pytest.raises(NotForwarded, match=r"process .* forwards spool .*: only one may"):
        forward(settings, tmp_path / "spool")


@pytest.mark.parametrize("is_served", [False, True])
def test_messages_that_are_gone_are_not_passed_over(
    settings: Settings, broker: Broker, tmp_path: Path, is_served: bool
) -> None:
    spool = tmp_path / "spool"
    fill(spool, "changes", *changes("a", 0, 10))
    next(spool.glob("*.spool")).unlink()
    with ExitStack() as stack:
        place = stack.enter_context(served(spool)) if is_served else str(spool)
        with pytest.raises(SpoolGap, match="messages 0 to 9 are gone, and were not read"):
            local.run(settings, [place], {}, max_message=MIB)
    assert not any(records_in(broker.bootstrap, settings.topic).values())


def test_a_spool_that_was_put_back_from_a_backup_is_known_by_what_the_topic_has(
    settings: Settings, broker: Broker, tmp_path: Path
) -> None:
    spool, backup = tmp_path / "spool", tmp_path / "backup"
    fill(spool, "changes", *changes("a", 0, 10))
    shutil.copytree(spool, backup)
    fill(spool, "changes", *changes("a", 10, 15))
    forward(settings, spool)
    shutil.rmtree(spool)
    backup.rename(spool)
    assert forward(settings, spool).known == {"changes": 10}
    fill(spool, "changes", *changes("b", 10, 30))
    with pytest.raises(NotForwarded, match=f"topic {settings.topic} at .* has another message 10 of spool .*a backup"):
        forward(settings, spool)
    assert numbers(records_in(broker.bootstrap, settings.topic)[0]) == list(range(15))


@pytest.mark.parametrize("cursor", ["default", "kafka"])
def test_a_spool_of_a_server_is_forwarded_as_one_of_a_folder(
    settings: Settings, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str], cursor: str
) -> None:
    spool = tmp_path / "orders"
    fill(spool, "changes", *changes("a", 0, 30))
    if cursor != "default":
        add_cursor(spool, cursor)
    (tmp_path / "token").write_text("a-token-of-the-test\n")
    words = ["--kafka", settings.bootstrap, "--topic", settings.topic, "--engine", "local", "--quiet", "--json"]
    words += ["--spool-token-file", str(tmp_path / "token"), "--max-rows", "20", "--cursor", cursor]
    with served(spool, "--token-file", str(tmp_path / "token")) as url:
        for more in (0, 10):
            fill(spool, "changes", *changes("a", 30, 30 + more))
            assert main(["pipeline", "forward", "--spool", url, *words, "--timeout", str(PATIENCE_S)]) == 0
            assert json.loads(capsys.readouterr().out)["sent"] == {"changes": more or 30}
    assert numbers(records_in(broker.bootstrap, settings.topic)[0]) == list(range(40))
    assert {lag.cursor: lag.messages for lag in lags_of(spool)}[cursor] == 0
    words[words.index(str(tmp_path / "token"))] = str(tmp_path / "none")
    assert main(["pipeline", "forward", "--spool", url, *words]) == 1
    assert f"tokenFile: {tmp_path / 'none'}: No such file" in capsys.readouterr().err


def test_sources_share_a_partition_only_by_order(broker: Broker, settings: Settings, tmp_path: Path) -> None:
    spools = [tmp_path / str(number) for number in range(5)]
    for number, spool in enumerate(spools):
        fill(spool, f"site/{number}", *changes(str(number), 0, 3))
    with pytest.raises(
        NotForwarded, match=r"has 4 partitions, and none is free for site/4: .*--partition site/4=NUMBER"
    ):
        forward(settings, *spools)
    with pytest.raises(NotForwarded, match="--partition site/4=4 is none of them"):
        forward(settings, *spools, given={"site/4": 4})
    assert forward(settings, *spools, given={"site/4": 3, "site/3": 3}).sent.total() == 15
    assert [len(records) for records in records_in(broker.bootstrap, settings.topic).values()] == [3, 3, 3, 6]


def test_an_unknown_topic_is_named(broker: Broker, tmp_path: Path) -> None:
    fill(tmp_path / "spool", "changes", *changes("a", 0, 1))
    settings = Settings(bootstrap=broker.bootstrap, topic="nothing", timeout_s=PATIENCE_S)
    with pytest.raises(NotForwarded, match=r"topic nothing at .*: there is no such topic.*: create"):
        forward(settings, tmp_path / "spool")


@pytest.mark.parametrize("given", [{"no.such": "1"}, {"compression.codec": "none-such"}])
def test_a_property_that_librdkafka_does_not_have_is_named(given: dict[str, str], tmp_path: Path) -> None:
    fill(tmp_path / "spool", "changes", *changes("a", 0, 1))
    settings = Settings(bootstrap="127.0.0.1:1", topic="t", properties=given)
    said = f"librdkafka refuses its settings: .*{next(iter(given))}"
    with pytest.raises(NotForwarded, match=said):
        forward(settings, tmp_path / "spool")
    with pytest.raises(NotForwarded, match=said):
        alerts.send(settings, [])


def test_a_cluster_that_is_away_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "spool", "changes", *changes("a", 0, 1))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        words = ["pipeline", "forward", "--spool", str(tmp_path / "spool"), "--kafka", f"127.0.0.1:{port}"]
        status = main([*words, "--topic", "t", "--engine", "local", "--timeout", "1", "--quiet"])
    said = capsys.readouterr().err
    assert status == 1
    assert said.startswith(f"trouter pipeline forward: topic t at 127.0.0.1:{port}: no broker can be reached")


def test_the_broker_is_reached_by_tls_and_its_certificate_is_verified(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    fill(spool, "changes", *changes("a", 0, 20))
    ours, others = (tmp_path / name for name in ("ours", "others"))
    for folder in (ours, others):
        folder.mkdir()
    authority = Authority(ours, "ours")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        advertised = f"127.0.0.1:{listener.getsockname()[1]}"
        with (
            tansu(tmp_path, advertised=advertised) as plain,
            tls_before(listener, authority.server("127.0.0.1"), plain),
        ):
            secured = Settings(
                bootstrap=advertised, topic="t", tls=True, tls_ca=str(authority.certificate), timeout_s=PATIENCE_S
            )
            admin = AdminClient({**secured.client(), "log_level": 0})
            admin.create_topics([NewTopic("t", 1, 1)])["t"].result(PATIENCE_S)
            assert forward(secured, spool).sent == {"changes": 20}
            wrong = replace(secured, tls_ca=str(Authority(others, "others").certificate), timeout_s=PATIENCE_S)
            fill(spool, "changes", *changes("a", 20, 21))
            with pytest.raises(NotForwarded, match="TLS failed: see --tls-ca"):
                forward(wrong, spool)


def test_a_login_that_the_broker_refuses_is_named(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "changes", *changes("a", 0, 1))
    (tmp_path / "secret").write_text("s3cret")
    with tansu(tmp_path, login=True) as bootstrap:
        settings = Settings(
            bootstrap=bootstrap,
            topic="t",
            timeout_s=PATIENCE_S,
            sasl_mechanism="SCRAM-SHA-256",
            sasl_user="alice",
            sasl_password_file=str(tmp_path / "secret"),
        )
        with pytest.raises(NotForwarded, match="the login failed: see --sasl") as caught:
            forward(settings, tmp_path / "spool")
    assert "s3cret" not in str(caught.value)


def test_a_broker_that_stands_still_is_named_and_nothing_comes_twice(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    fill(spool, "changes", *changes("a", 0, 100))
    with started(tmp_path) as (bootstrap, process):
        Broker(bootstrap, makes_topics=False).create("t")
        settings = Settings(bootstrap=bootstrap, topic="t", timeout_s=PATIENCE_S)
        assert forward(settings, spool).sent == {"changes": 100}
        fill(spool, "changes", *changes("a", 100, 300))
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(NotForwarded, match=r"topic t at .*: (the brokers did not answer|no broker can be reached)"):
            forward(replace(settings, timeout_s=SHORT_S), spool)
        process.send_signal(signal.SIGCONT)
        assert forward(settings, spool).sent == {"changes": 200}
        assert numbers(records_in(bootstrap, "t")[0]) == list(range(300))


def test_a_message_that_is_too_large_is_named_and_stays(settings: Settings, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    fill(spool, "changes", change("a", 0), Message(b"x" * 5000).encode(), change("a", 2))
    small = replace(settings, properties={"message.max.bytes": "3000"})
    with pytest.raises(NotForwarded, match=r"message 1 of spool .*larger than the topic allows: raise"):
        forward(small, spool)
    again = forward(settings, spool)
    assert again.sent["changes"] + again.known["changes"] == 3


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
def test_an_older_writer_is_told_that_it_is_fenced(code: int) -> None:
    said = failure(Settings(bootstrap="b:1", topic="t").place, KafkaError(code), "message 7 of spool u")
    assert str(said).startswith("message 7 of spool u, to topic t at b:1: another writer has taken over this spool: ")


def test_headers_that_are_not_ours_are_no_origin() -> None:
    own: list[tuple[str, Any]] = [("trouter-spool", b"u"), ("trouter-seq", b"7"), ("trouter-source", b"s")]
    assert origin_of([*own, ("trouter-seq", b"9")]) == ("s", "u", 7)
    assert origin_of([("x", b""), *own]) is None
    assert origin_of([own[0], ("trouter-seq", b"-7"), own[2]]) is None
    assert origin_of([own[0], ("trouter-seq", b"7" * 30), own[2]]) is None
    assert origin_of([own[0], ("trouter-seq", None), own[2]]) is None
    assert origin_of(None) is None


def test_the_password_is_read_where_it_is_used_and_its_file_is_named(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    settings = Settings(
        bootstrap="b", topic="t", tls=True, sasl_mechanism="PLAIN", sasl_user="u", sasl_password_file=str(secret)
    )
    with pytest.raises(NotForwarded, match=f"{secret}: No such file"):
        settings.client()
    secret.write_text("s3cret\n")
    assert "s3cret" not in repr(settings)
    client = settings.client()
    assert (client["sasl.password"], client["security.protocol"]) == ("s3cret", "sasl_ssl")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--checkpoint DIR is needed on Spark"),
        (["--engine", "local", "--checkpoint", "c"], "--checkpoint is for --engine spark"),
        (["--engine", "local", "--master", "local[1]"], "--master is for --engine spark, not local"),
        (["--engine", "local", "--partition-by", "id", "--partition", "a=0"], "--partition is for --partition-by"),
        (["--engine", "local", "--partition", "a"], "write SOURCE=NUMBER"),
        (["--engine", "local", "--property", "acks=1"], "acks is not for --property: with less than all of them"),
        (["--engine", "local", "--property", "sasl.password=x"], "sasl.password is not for --property: give a file"),
        (["--engine", "local", "--sasl-mechanism", "PLAIN"], "--sasl-mechanism needs --sasl-user and"),
        (["--engine", "local", "--max-rows", "0"], "--max-rows and --every are greater than 0"),
        (["--engine", "local", "--every", "0"], "--max-rows and --every are greater than 0"),
        (["--engine", "local", "--timeout", "0"], "--timeout is greater than 0"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "forward", "--spool", "s", "--kafka", "k:1", "--topic", "t", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
