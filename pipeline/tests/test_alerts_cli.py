"""The errors of the commands for attacks and frauds before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.live import status_of
from trouter.cli import main

pytestmark = pytest.mark.one_twin

FRAUD = ["fraud", "ROOT", "--events", "payments"]
TOPIC = ["audit", "ROOT", "--alerts-topic", "alarms", "--kafka", "127.0.0.1:9"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["audit", "ROOT", "--follow", "nowhere", "--checkpoint", "c"], "nowhere: there is no such folder"),
        (["audit", "ROOT", "--follow", "a"], "audit: a stream needs a --checkpoint"),
        (["audit", "ROOT", "--checkpoint", "c"], "audit: --checkpoint is for streams"),
        (["audit", "ROOT", "--stream", "--follow", "a", "--checkpoint", "c"], "choose one of --follow and --stream"),
        (["audit", "ROOT", "--spray-users", "0"], "spray_users is 0: it must be at least 1 and at most 10000"),
        (["audit", "ROOT", "--stream", "--checkpoint", "c", "--late-by", "-1"], "seconds and not negative"),
        (["audit", "ROOT"], "ROOT: there is no such folder"),
        ([*FRAUD, "--stream"], "fraud: a stream needs a --checkpoint"),
        (["fraud", "ROOT", "--table", "t", "--stream", "--checkpoint", "c"], "--stream is for --events"),
        ([*FRAUD, "--cursor", "fraud"], "--cursor and --spool-... are for --spool"),
        ([*FRAUD, "--spool-token-file", "token"], "--cursor and --spool-... are for --spool"),
        (["fraud", "ROOT", "--spool", "grpc://nowhere"], "'grpc://nowhere' is no address of a spool"),
        ([*FRAUD, "--body", "body"], "JSON needs a --schema"),
        ([*FRAUD, "--schema", "a INT"], "a --schema is for the JSON"),
        ([*FRAUD, "--alerts-to", "alarms"], "--alerts-to needs a server: give -b URL"),
        ([*FRAUD, "-b", "127.0.0.1"], "a server is for --alerts-to ADDRESS"),
        (["audit", "ROOT", "--alerts-topic", "alarms"], "--alerts-topic and --kafka belong together"),
        (["audit", "ROOT", "--kafka", "127.0.0.1:9"], "--alerts-topic and --kafka belong together"),
        (["audit", "ROOT", "--kafka-tls-ca", "ca.pem"], "the options --kafka-... are for --alerts-topic"),
        ([*TOPIC, "--kafka-sasl-user", "u"], "--kafka-sasl-user needs --kafka-sasl-mechanism"),
        ([*TOPIC, "--kafka-timeout", "0"], "--kafka-timeout is greater than 0"),
        ([*TOPIC, "--kafka-property", "acks=1"], "acks is not for --kafka-property"),
        (
            [*FRAUD, "--alerts-to", "alarms", "-b", "127.0.0.1", "--ssl-trustfile", "nowhere.pem"],
            "nowhere.pem: No such file or directory",
        ),
        (["latency", "ROOT"], "ROOT: there is no such folder"),
        (["topology", "ROOT"], "ROOT: there is no such folder"),
    ],
)
def test_invalid_arguments_are_refused_before_spark_starts(
    words: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status_of(["pipeline", *words]) == (1 if "no such f" in complaint.lower() else 2)
    assert complaint in capsys.readouterr().err


def test_every_limit_is_an_option_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "audit", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for option, text in (
        ("--brute-failures", "failures of a user at a host (20)"),
        ("--slow-window", "the long window, in seconds (43200)"),
        ("--denials", "denials to a user at a host (100)"),
    ):
        assert option in shown
        assert text in shown
