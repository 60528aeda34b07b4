"""A plugin's hook as a target: the example of the manual, faults of every kind, and every hook that strangers reach."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.routers import ROOT
from trouter.hooks import (
    AnnotationFilter,
    Authenticated,
    CertificateFacts,
    Challenge,
    Plugins,
    Refused,
    VhostPolicy,
    Vote,
    hookimpl,
)
from trouter.testing.fuzz import Draw, admits_only_with, hook_target, hunt, hunt_mutations, load_file, replay, target_of
from trouter.testing.fuzz.command import main
from trouter.testing.fuzz.hooks import FUZZED

TEMPLATE = ROOT / "examples" / "plugin-template"
TARGET = TEMPLATE / "fuzz" / "tickets.py"
PAGE = (ROOT / "docs" / "fuzzing.md").read_text(encoding="utf-8")
EXECUTIONS = 300


@pytest.fixture(autouse=True)
def _loud_again() -> Iterator[None]:
    """Restore the log of the process, which the command silences."""
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def _template(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(TEMPLATE / "src")
    yield
    for name in ("tickets", "trouter_tickets"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("_template")
def test_the_example_of_the_manual_passes() -> None:
    target = load_file(TARGET)
    assert len(target.inputs) >= 5
    assert replay(target) == []
    found = hunt_mutations(target, 1, executions=EXECUTIONS)
    assert (found.tried, found.error) == (EXECUTIONS, None)


@pytest.mark.usefixtures("_template")
def test_the_example_finds_a_signature_that_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_file(TARGET)
    monkeypatch.setattr("hmac.compare_digest", lambda one, other: True)
    found = hunt_mutations(target, 1, executions=EXECUTIONS)
    assert "let in without a secret" in str(found.error)


@pytest.mark.parametrize(
    ("language", "path"),
    [("python", "fuzz/tickets.py"), ("python", "tests/test_fuzz.py"), ("yaml", ".github/workflows/fuzz.yml")],
)
def test_the_manual_shows_the_example(language: str, path: str) -> None:
    assert f"```{language}\n{(TEMPLATE / path).read_text()}```" in PAGE


def test_the_example_runs_under_atheris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("atheris")
    copy = shutil.copytree(TEMPLATE, tmp_path / "plugin")
    monkeypatch.setenv("PYTHONPATH", str(copy / "src"))
    command = [sys.executable, "-m", "trouter.testing.fuzz", "fuzz/tickets.py", "--guided", "--executions", "300"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Instrumenting trouter_tickets" in done.stderr
    assert "Done 300 runs" in done.stderr
    assert not list(copy.glob("fuzz/seeds/tickets/crash-*"))


def test_the_command_prints_its_counts_and_fails_on_a_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "finds_ab.py"
    target.write_text("def check(data):\n    if data[:2] == b'ab':\n        raise IndexError\n")
    command = [str(target), "--rng-seed", "1"]
    assert main([*command, "--executions", "50"]) == 0
    assert re.search(r"fuzz finds_ab: 50 inputs, [\d,]+ a second, no failure", capsys.readouterr().out)
    seeds = tmp_path / "seeds" / "finds_ab"
    seeds.mkdir(parents=True)
    (seeds / "one").write_bytes(b"ac")
    assert main([*command, "--replay"]) == 0
    assert main([*command, "--executions", "100000"]) == 1
    assert "IndexError" in capsys.readouterr().err
    assert len(list(seeds.glob("crash-*"))) == 1
    assert main([*command, "--replay"]) == 1


class Good:
    """A plugin that implements every such hook correctly."""

    @hookimpl
    def sasl_mechanisms(self, listener: object) -> list[str]:
        return ["X"]

    @hookimpl
    def open_sasl(self, mechanism: str, peer: object) -> object:
        return Exchange(lambda response: Refused("no") if response else Challenge(b"?"))

    @hookimpl
    def map_uid(self, certificate: CertificateFacts, profile: object) -> str | None:
        return certificate.subject or None

    @hookimpl
    def vhost_policy(self, connection: object) -> VhostPolicy:
        return VhostPolicy("v")

    @hookimpl
    def judge_attach(self, request: Any) -> Vote:
        return Vote.DENY if request.dynamic else Vote.ALLOW

    @hookimpl
    def annotation_filter(self, endpoint: object) -> AnnotationFilter:
        return AnnotationFilter(strip_in=True, strip_out=False)

    @hookimpl
    def observe(self, record: Any) -> None:
        assert isinstance(record["k"], str)


class Exchange:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def respond(self, response: bytes) -> Any:
        await trio.lowlevel.checkpoint()
        return self._answer(response)


@pytest.mark.parametrize("hook", FUZZED)
def test_a_good_plugin_passes_and_a_broken_one_is_found(hook: str) -> None:
    inputs = [bytes((number,)) * 40 for number in range(0, 256, 5)] + [b"", bytes(range(200))]
    check = hook_target(Good(), hook)
    for data in inputs:
        check(data)

    class Broken(Good):
        pass

    def raises(**given: object) -> object:
        raise LookupError("a bug")

    original = getattr(Good, hook)
    names = original.__code__.co_varnames[1 : original.__code__.co_argcount]
    source = f"def {hook}(self, {', '.join(names)}):\n    return raises()"
    scope: dict[str, Any] = {"raises": raises}
    exec(source, scope)
    setattr(Broken, hook, hookimpl(scope[hook]))
    fixed: dict[str, Any] = {"mechanism": "X"} if hook == "open_sasl" else {}
    broken = hook_target(Broken(), hook, **fixed)
    assert isinstance(hunt(broken, inputs).error, AssertionError)


def test_an_exchange_that_answers_rubbish_is_found() -> None:
    class Rubbish(Good):
        @hookimpl
        def open_sasl(self, mechanism: str, peer: object) -> object:
            return Exchange(lambda response: "yes")

    check = hook_target(Rubbish(), "open_sasl")
    with pytest.raises(AssertionError, match="respond"):
        check(b"\0\1x")


def test_a_login_without_a_secret_is_found() -> None:
    class Open(Good):
        @hookimpl
        def open_sasl(self, mechanism: str, peer: object) -> object:
            return Exchange(lambda response: Authenticated("alice"))

    check = hook_target(Open(), "open_sasl", judge=admits_only_with(b"open sesame"))
    check(b"\0\x0bopen sesame")
    with pytest.raises(AssertionError, match="without a secret"):
        check(b"\0\x04open")


def test_a_hook_of_the_operators_is_no_target() -> None:
    with pytest.raises(ValueError, match="configure is none of"):
        hook_target(Good(), "configure")


def test_a_plugin_without_mechanisms_is_refused_as_a_target() -> None:
    class Mute(Good):
        @hookimpl
        def sasl_mechanisms(self, listener: object) -> list[str]:
            return []

    with pytest.raises(ValueError, match="no mechanism"):
        hook_target(Mute(), "open_sasl")


def test_a_drawn_value_has_its_type_and_ends_with_the_octets() -> None:
    draw = Draw(bytes(range(1, 9)))
    assert draw.number(0, 255) == 1
    assert draw.flag() is False
    assert draw.piece() == b"\4\5\6"
    assert draw.rest() == b"\7\x08"
    assert (draw.number(5, 9), draw.text(), draw.choice("ab"), draw.rest()) == (5, "", "a", b"")
    made = Draw(bytes(range(1, 200))).value(CertificateFacts)
    assert isinstance(made, CertificateFacts)
    with pytest.raises(TypeError):
        Draw(b"").value(Plugins)


def test_a_module_without_a_check_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        target_of(sys, "sys", tmp_path)
