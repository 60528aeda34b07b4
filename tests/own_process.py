"""Tests in a process of their own: those marked `own_process`, because a process can start a library only once.

All selected tests of such a module run in one child of pytest. In this process an item for each shows what the
child reported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

MARK: Final = "own_process"
_OPTION: Final = "--reports-to"
_PROFILE: Final = "--hypothesis-profile"


class Failed(Exception):
    """The test failed in the other process; the text is that of the failure there."""


class Elsewhere(pytest.Item):
    """A test that runs in the process of its module."""

    def __init__(self, *, run: ModuleRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run

    def runtest(self) -> None:
        for _, outcome, text in self._run.reports_of(self.nodeid):
            if outcome == "skipped":
                pytest.skip(text)
            if outcome == "failed":
                raise Failed(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any, **options: Any) -> Any:
        return str(excinfo.value) if excinfo.errisinstance(Failed) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


class ModuleRun:
    """The run of one module's tests; it begins when the first of them is asked for."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.tests: list[str] = []
        self._reports: dict[str, list[tuple[str, str, str]]] = {}

    def reports_of(self, test: str) -> list[tuple[str, str, str]]:
        """Return the name, the outcome and the text of each phase of the test, in order."""
        if not self._reports:
            self._run()
        return self._reports[test]

    def _run(self) -> None:
        with tempfile.NamedTemporaryFile() as told:
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{_OPTION}={told.name}"]
            if profile := self._config.getoption(_PROFILE, None):
                command.append(f"{_PROFILE}={profile}")
            done = subprocess.run(
                [*command, *self.tests],
                cwd=self._config.rootpath,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            for line in Path(told.name).read_text(encoding="utf-8").splitlines():
                test, *report = json.loads(line)
                self._reports.setdefault(test, []).append((report[0], report[1], report[2]))
        early = f"the process of this module ended with status {done.returncode} before the end of this test:\n"
        for test in self.tests:
            phases = self._reports.setdefault(test, [])
            if not any(name == "teardown" for name, _, _ in phases):
                phases.append(("teardown", "failed", early + done.stdout))


class Reporter:
    """What the child has instead: it writes the report of each phase as a line of JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        with self._path.open("a", encoding="utf-8") as told:
            told.write(json.dumps([report.nodeid, report.when, report.outcome, text]) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which a child knows that it is one."""
    parser.addoption(_OPTION, type=Path, help="write the reports of these tests to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Make the child write its reports."""
    path = config.getoption(_OPTION)
    if path is not None:
        config.pluginmanager.register(Reporter(path))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put an item that asks the child in the place of each marked test."""
    if config.getoption(_OPTION) is not None:
        return
    runs: dict[Path, ModuleRun] = {}
    for place, item in enumerate(items):
        if item.get_closest_marker(MARK) is None:
            continue
        run = runs.setdefault(item.path, ModuleRun(config))
        run.tests.append(item.nodeid)
        assert item.parent is not None
        items[place] = Elsewhere.from_parent(item.parent, name=item.name, run=run)
