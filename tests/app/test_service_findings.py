"""Ports that are names of services: `trouter check` says which of them this machine does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.cli import main

#: A name that no list of services has.
UNKNOWN = "amqpx-of-nobody"


def check(folder: Path, text: str) -> int:
    file = folder / "router.conf"
    file.write_text(f"listener {{ port: 0 }}\n{text}\n")
    return main(["check", str(file)])


@pytest.mark.parametrize(
    "text",
    [
        f"listener {{ name: odd, port: {UNKNOWN} }}",
        f"connector {{ name: odd, port: {UNKNOWN} }}",
        f"authServicePlugin {{ name: odd, host: localhost, port: {UNKNOWN} }}",
    ],
)
def test_an_unknown_service_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert check(tmp_path, text) == 1
    output = "".join(capsys.readouterr())
    assert f"this machine knows no service {UNKNOWN}" in output
    assert "write the number of the port" in output


@pytest.mark.parametrize("port", ["amqp", "amqps", "5673"])
def test_a_known_service_or_a_number_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], port: str) -> None:
    check(tmp_path, f"connector {{ name: usual, port: {port} }}")
    assert "knows no service" not in "".join(capsys.readouterr())


def test_what_is_not_served_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(tmp_path, f"connector {{ name: odd, port: {UNKNOWN}, sslProfile: absent }}")
    assert "knows no service" not in "".join(capsys.readouterr())
