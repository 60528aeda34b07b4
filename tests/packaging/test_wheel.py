"""The sdist and the wheel: their contents, and that the wheel routes on a machine without a compiler."""

from __future__ import annotations

import re
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.house.sources import PIPELINE, ROOT, compiled_modules
from tests.packaging.built import Built, Machine, build, build_pipeline, required_by
from trouter import __version__, _twin
from trouter.http import web_console

#: Distributions that only the pipeline needs, by the name of their packages too.
HEAVY = {
    *("pyspark", "py4j", "pandas", "pyarrow", "numpy", "duckdb", "matplotlib", "fastavro", "protobuf", "deltalake"),
    *("confluent-kafka", "confluent_kafka"),
}
#: Imports each room of the router, and prints the names of all modules that this takes.
EVERY_ROOM = """
import importlib, pkgutil, sys, trouter
for room in pkgutil.iter_modules(trouter.__path__, "trouter."):
    if room.name != "trouter.__main__":
        importlib.import_module(room.name)
print(*sys.modules)
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not web_console.FOLDER.is_dir(), reason="`make console` has not built it"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_pipeline(tmp_path_factory.mktemp("pipeline"))


def test_the_changelog_begins_with_this_version() -> None:
    sections = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[0] == __version__


def test_the_sdist_contains_the_sources_of_the_wheel_and_no_binary(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "setup.py",
        "pyproject.toml",
        "LICENSE",
        "CHANGELOG.md",
        "trouter/wire/codec.py",
        "trouter/wire/codec.pxd",
    } <= names
    assert not {name for name in names if name.endswith((".so", ".c"))}


def test_the_wheel_contains_both_packages_their_types_the_console_and_every_compiled_module(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    assert {"trouter/py.typed", "trouter_plugins/py.typed"} <= names
    console = {
        f"trouter/http/console/{path.relative_to(web_console.FOLDER)}" for path in web_console.FOLDER.rglob("*.*")
    }
    assert console <= names
    manual = {name.partition("/share/man/")[2] for name in names if "/share/man/" in name}
    assert {"man1/trouter.1", "man1/qdstat.1", "man1/qdmanage.1", "man8/qdrouterd.8", "man5/qdrouterd.conf.5"} <= manual
    unit = {name.partition("/share/trouter/")[2] for name in names if "/share/trouter/" in name}
    assert unit == {"trouter.service", "trouter@.service", "trouter.sysusers"}
    assert f"\nVersion: {__version__}\n" in metadata
    home = tomllib.loads((ROOT / "packaging" / "home.toml").read_text(encoding="utf-8"))
    pages = {name.capitalize(): home[name] for name in ("documentation", "source", "issues", "changelog") if home[name]}
    urls = re.findall(r"^Project-URL: (\w+), (.*)$", metadata, re.MULTILINE)
    assert dict(urls) == pages
    if not _twin.PURE:
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        modules = compiled_modules()
        assert {"trouter/compiled.sha256", *(name.replace(".", "/") + suffix for name in modules)} <= names


def test_the_wheel_routes_where_there_is_no_compiler(built: Built, tmp_path: Path) -> None:
    """The dependencies come from this environment; the package itself comes from the wheel."""
    machine = Machine(tmp_path / "venv")
    machine.install(built.wheel)
    machine.lend(required_by("trouter"))
    said = machine.run(machine.programs / "trouter", "--version")
    assert said.startswith(f"trouter {__version__} ({'interpreted' if _twin.PURE else 'compiled'}, ")
    where = machine.run(machine.python, "-c", "import trouter, trouter_plugins; print(trouter.__file__)")
    assert Path(where.strip()).is_relative_to(machine.packages)
    assert machine.run(machine.python, ROOT / "packaging" / "smoke.py") == "smoke Accepted\n"


# --- the pipeline, a distribution of its own


def test_the_wheel_of_the_pipeline_contains_its_package_types_page_and_compiled_modules(pipeline: Built) -> None:
    with zipfile.ZipFile(pipeline.wheel) as archive:
        names = set(archive.namelist())
        told = {name.rpartition("/")[2]: archive.read(name).decode() for name in names if ".dist-info/" in name}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"trouter_pipeline"}
    assert {"trouter_pipeline/py.typed", "trouter_pipeline/decoding.pxd", "trouter_pipeline/spool/frames.pxd"} <= names
    assert [name for name in names if "/share/man/" in name and name.endswith("/man1/trouter-pipeline.1")]
    assert f"\nRequires-Dist: trouter=={__version__}\n" in told["METADATA"]
    assert "[trouter.commands]\npipeline = trouter_pipeline.commands\n" in told["entry_points.txt"]
    if not _twin.PURE:
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        compiled = {name.replace(".", "/") + suffix for name in compiled_modules(PIPELINE)}
        assert {"trouter_pipeline/compiled.sha256", *compiled} <= names


def test_the_sdist_of_the_pipeline_contains_the_sources_of_its_wheel_and_no_binary(pipeline: Built) -> None:
    with tarfile.open(pipeline.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"setup.py", "LICENSE", "README.md", "src/trouter_pipeline/decoding.pxd"} <= names
    assert not {name for name in names if name.endswith((".so", ".c")) or name.startswith(("tests/", "bench/"))}


def test_the_router_is_installed_without_one_package_of_the_pipeline(built: Built, tmp_path: Path) -> None:
    wanted = required_by("trouter")
    assert {"trio", "h11"} <= wanted
    assert not wanted & HEAVY
    machine = Machine(tmp_path / "venv")
    machine.install(built.wheel)
    machine.lend(wanted)
    imported = set(machine.run(machine.python, "-c", EVERY_ROOM).split())
    assert {"trouter.app", "trouter.client", "trouter.records"} <= imported
    assert not {name.partition(".")[0] for name in imported} & {*HEAVY, "trouter_pipeline"}
    assert machine.run(machine.python, ROOT / "packaging" / "smoke.py") == "smoke Accepted\n"
    trouter = machine.programs / "trouter"
    cure = "pip install 'trouter[spark]' brings it"
    assert cure in machine.run(trouter, "--help")
    status, said = machine.refused(trouter, "pipeline", "meter", "root")
    assert (status, said.splitlines()[-1]) == (
        2,
        f"trouter: there is no command 'pipeline' here: {cure} (see `trouter --help`)",
    )


def test_the_pipeline_beside_the_router_is_its_command_and_names_the_extra_that_is_missing(
    built: Built, pipeline: Built, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "venv")
    machine.install(built.wheel)
    machine.install(pipeline.wheel)
    machine.lend(required_by("trouter") | required_by("trouter-pipeline") - {"trouter"})
    trouter = machine.programs / "trouter"
    assert "land, meter and audit what routers carried and recorded" in machine.run(trouter, "--help")
    assert "receive an address into a durable spool" in machine.run(trouter, "pipeline", "--help")
    twin = "from trouter import _twin; print(_twin.is_compiled('trouter_pipeline.spool.intake'))"
    assert machine.run(machine.python, "-c", twin) == f"{not _twin.PURE}\n"
    (machine.folder / "root").mkdir()
    status, said = machine.refused(trouter, "pipeline", "compact", ".", "root")
    assert status == 1
    assert said.endswith(": pip install 'trouter[records]'\n")
