from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from trouter_pipeline.connecting import peers
from trouter_pipeline.options import BadOption, Mode, Options, Receiver, Side, manual, option_name, rows
from trouter_pipeline.schema import SCHEMA

READ = {"url": "amqp://host", "address": "events", "spool": "/var/spool/events"}


def test_options_come_as_text_in_any_case_of_letters() -> None:
    options = Options.parse(
        READ | {"MAXROWSPERBATCH": "500", "FailOnDataLoss": "FALSE", "mode": "failfast", "receiver": "Embedded"},
        Side.READ,
    )
    assert options.max_rows_per_batch == 500
    assert options.fail_on_data_loss is False
    assert options.mode is Mode.FAILFAST
    assert options.receiver is Receiver.EMBEDDED
    assert options.spool == ("/var/spool/events",)
    assert options.url == ("amqp://host",)


def test_failover_is_a_list_of_urls() -> None:
    options = Options.parse(READ | {"url": "amqp://a, amqps://u:p@b:5671"}, Side.READ)
    assert [peer.url for peer in peers(options)] == ["amqp://a:5672", "amqps://b:5671"]
    assert [peer.arguments["ssl_context"] is None for peer in peers(options)] == [True, False]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"maxRowPerBatch": "5"}, "there is no option 'maxRowPerBatch', did you mean maxRowsPerBatch?"),
        ({"zzz": "5"}, "there is no option 'zzz'"),
        ({"window": "5"}, "window has no effect when reading"),
        ({"credit": "many"}, "credit 'many' is no whole number"),
        ({"credit": "0"}, "credit is 0, outside 1 to 1000000"),
        ({"mode": "lax"}, "mode 'lax' is none of PERMISSIVE, FAILFAST, DEADLETTER"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss 'maybe' is neither true nor false"),
        ({"mode": "DEADLETTER"}, "needs deadLetterPath"),
        ({"spool": ""}, "spool is missing"),
        ({"url": ""}, "url is missing"),
        ({"address": ""}, "address is missing"),
        ({"spool": "a,b"}, "with several, use receiver=none"),
        ({"path": "x"}, "take no path"),
        ({"password": "a", "passwordFile": "b"}, "password and passwordFile set the same"),
        ({"tlsKeyFile": "b"}, "of no use without tlsCertificateFile"),
        ({"bodyFormat": "xml"}, "neither json nor avro"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], fault: str) -> None:
    with pytest.raises(BadOption) as refused:
        Options.parse(READ | given, Side.READ)
    assert fault in str(refused.value)


def test_each_number_is_taken_at_its_bounds_and_refused_beyond() -> None:
    bounded = [(name, row) for name, row in rows() if row.high]
    assert len(bounded) > 15
    for name, row in bounded:
        side = Side.READ if Side.READ in row.side else Side.WRITE
        base = READ if side is Side.READ else {"url": "amqp://h"}
        for number in (row.low, row.high):
            assert getattr(Options.parse(base | {option_name(name): f"{number:.20g}"}, side), name) == number
        for number in (row.low - 1, row.high + 1):
            with pytest.raises(BadOption):
                Options.parse(base | {option_name(name): f"{number:.20g}"}, side)


def test_every_secret_has_a_name_that_spark_redacts_and_is_not_in_the_repr() -> None:
    secrets = [name for name, row in rows() if row.secret]
    assert set(secrets) == {"url", "password", "token", "tls_key_password"}
    for name in secrets:
        assert any(word in name for word in ("password", "token", "url"))
    assert all(not each.repr for each in fields(Options) if each.name in secrets)
    options = Options.parse(
        READ | {"url": "amqp://u:hidden@h", "password": "hidden", "tlsKeyPassword": "hidden"}, Side.READ
    )
    assert "hidden" not in repr(options)
    assert "hidden" not in repr(peers(options))


def test_a_secret_in_a_file_is_read_there(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    options = Options.parse(READ | {"user": "u", "passwordFile": str(file)}, Side.READ)
    assert options.secret("password") == "secret"
    assert [mechanism.name for mechanism in peers(options)[0].arguments["sasl"]][-1] == "PLAIN"


@pytest.mark.parametrize(
    ("content", "fault"),
    [(None, "No such file or directory"), (b"x" * 5000, "holds more than 4096 bytes"), (b"\xff\xfe", "is not UTF-8")],
)
def test_a_file_without_a_password_is_named(tmp_path: Path, content: bytes | None, fault: str) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    options = Options.parse(READ | {"user": "u", "passwordFile": str(file)}, Side.READ)
    with pytest.raises(BadOption, match=f"passwordFile: {file}.*{fault}"):
        peers(options)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"url": "http://h"}, "url: the scheme is 'http'"),
        ({"user": "u"}, "there is no password"),
        ({"saslMechanisms": "PLAIN"}, "PLAIN needs a user"),
        ({"saslMechanisms": "MAGIC"}, "SASL MAGIC is none of"),
        ({"tlsTrustFile": "/nowhere.pem"}, "tlsTrustFile: /nowhere.pem: No such file or directory"),
        ({"tlsCertificateFile": "/nowhere.pem"}, "tlsCertificateFile: /nowhere.pem: No such file or directory"),
    ],
)
def test_an_unusable_connection_is_refused_before_dialling(given: dict[str, str], fault: str) -> None:
    with pytest.raises(BadOption) as refused:
        peers(Options.parse(READ | given, Side.READ))
    assert fault in str(refused.value)


def test_the_manual_has_a_line_for_each_option() -> None:
    lines = manual().splitlines()[2:]
    assert len(lines) == len(fields(Options))
    assert (
        "| `maxRowsPerBatch` | reading | integer | `0` |" in lines[[n for n, _ in rows()].index("max_rows_per_batch")]
    )
    page = Path(__file__).parents[2] / "docs" / "pipeline-source.md"
    text = page.read_text(encoding="utf-8")
    assert manual() in text
    assert [name for name in SCHEMA.names if f"`{name}`" not in text] == []
