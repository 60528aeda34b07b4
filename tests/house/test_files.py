"""The project's files name no other machine or project, and the commands in them exist."""

from __future__ import annotations

import ast
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import trouter
import trouter_pipeline
from tests.house.sources import PACKAGES, PIPELINE, ROOT, named, project, tracked_files

TEXT = {"", ".py", ".pxd", ".md", ".toml", ".lock", ".json", ".js", ".mjs", ".conf", ".yml", ".yaml", ".sh", ".in"}
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(work|farm|root|home)/[\w.]")
REGISTRY = re.compile(r"https?://[^\s\"']*(registry\.npm|pythonhosted|pypi\.org/simple|artifactory|nexus)")
FILES = [path for path in tracked_files() if path.suffix in TEXT]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / ".ci" / "run", *(ROOT / "docs").rglob("*.md")]
MAKEFILES = (ROOT / "Makefile", *sorted((ROOT / "make").glob("*.mk")))
MAKEFILE = "".join(path.read_text(encoding="utf-8") for path in MAKEFILES)
#: The distributions of this project, which no lock names.
OURS = {"trouter", "trouter-pipeline"}
#: Maximum lines of a function with its docstring. `test_shapes` limits classes.
MAX_FUNCTION_LINES = 60
SOURCES = sorted(path for folder in (*PACKAGES, ROOT / "plugins") for path in folder.rglob("*.py"))
#: What a stranger reads first: about so many lines.
MAX_README_LINES = 120
PARTS_OF_TEST = re.search(r"^PARTS +:= (.*)", MAKEFILE, re.MULTILINE)[1].split()  # type: ignore[index]
TARGETS = {*re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE), *(f"test-{part}" for part in PARTS_OF_TEST)}


def test_no_file_names_a_machine_or_a_registry() -> None:
    texts = {named(path): path.read_text(encoding="utf-8", errors="replace") for path in FILES}
    assert {name: found[0] for name, text in texts.items() if (found := MACHINE_PATH.search(text))} == {}
    assert {name: found[0] for name, text in texts.items() if (found := REGISTRY.search(text))} == {}


def test_the_patterns_above_find_planted_text() -> None:
    assert MACHINE_PATH.search('open("/' + 'home/somebody/file")')
    assert REGISTRY.search("https://" + "registry.npmjs.org/rhea")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_make_command_that_is_written_down_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8", errors="replace")
    named = set(re.findall(r"`make ([a-z][a-z0-9-]*)", text))
    named |= set(re.findall(r"^(?:\$ |step )?make ([a-z][a-z0-9-]*)", text, re.MULTILINE))
    assert named <= TARGETS


def test_the_examples_page_shows_the_program_that_is_tested() -> None:
    example = (ROOT / "examples" / "hello.py").read_text(encoding="utf-8", errors="replace")
    assert f"```python\n{example}```" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert len(example.splitlines()) <= 30


def test_the_readme_is_short_and_says_what_a_stranger_asks() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_README_LINES
    assert all(word in text for word in ("beta", "Linux", "One core a process", "AMQP 1.0 only", "SECURITY.md"))
    assert all(f"make {target} " in text for target in ("run", "test"))


def test_functions_are_short_enough_to_be_read_at_once() -> None:
    texts = {named(path): path.read_text(encoding="utf-8") for path in SOURCES}
    assert [
        (name, node.name)
        for name, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > MAX_FUNCTION_LINES
    ] == []


def test_the_locks_pin_every_requirement() -> None:
    wanted, pipeline = project()["project"], project(PIPELINE)["project"]
    extras = [name for each in (wanted, pipeline) for extra in each["optional-dependencies"].values() for name in extra]
    extras += pipeline["dependencies"]
    running, whole = pins("requirements.lock"), pins("requirements-dev.lock")
    assert names_in(wanted["dependencies"]) | {"cython", "setuptools"} <= running.keys()
    assert names_in(wanted["dependencies"]) | names_in(extras) - OURS <= whole.keys()
    assert running.items() <= whole.items()


def test_one_version_of_the_pipeline_belongs_to_one_of_the_router() -> None:
    wanted, pipeline = project()["project"], project(PIPELINE)
    assert trouter.__version__ == trouter_pipeline.__version__
    exact = f"trouter=={trouter.__version__}"
    assert exact in pipeline["project"]["dependencies"]
    assert exact in pipeline["build-system"]["requires"]
    for extra in ("records", "spark"):
        assert wanted["optional-dependencies"][extra] == [f"trouter-pipeline[{extra}]=={trouter.__version__}"]


def test_each_distribution_has_the_licence() -> None:
    assert (PIPELINE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_packages_of_the_extras_are_not_locked_for_the_router() -> None:
    extras = project(PIPELINE)["project"]["optional-dependencies"]
    heavy = names_in([*extras["spark"], *extras["records"]]) - OURS
    assert heavy
    assert not heavy & pins("requirements.lock").keys()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_locked_packages_support_the_oldest_python(lock: str) -> None:
    oldest = str(project()["project"]["requires-python"]).removeprefix(">=") + ".0"
    asked = {name: str(metadata.metadata(name).json.get("requires_python", "")) for name in pins(lock)}
    assert {name: text for name, text in asked.items() if oldest not in SpecifierSet(text)} == {}


def pins(lock: str) -> dict[str, str]:
    lines = [line for line in (ROOT / lock).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==\S+", line) for line in lines)
    return {name.lower().replace("_", "-"): version for name, _, version in (line.partition("==") for line in lines)}


def names_in(asked: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", item)[0].lower().replace("_", "-") for item in asked}  # type: ignore[index]


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or 0) - function.lineno + 1
