"""The sdist and the wheel: their contents, and that the wheel routes on a machine without a compiler."""

from __future__ import annotations

import re
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.packaging.built import Built, build, run
from tests.routers import ROOT
from trouter import __version__, _twin
from trouter.http import web_console

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not web_console.FOLDER.is_dir(), reason="`make console` has not built it"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built"))


def test_the_changelog_names_this_version_and_has_room_for_the_next() -> None:
    sections = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[:2] == ["Unreleased", __version__]


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
    assert unit == {"trouter.service", "trouter.sysusers"}
    assert f"\nVersion: {__version__}\n" in metadata
    assert {"Documentation", "Source", "Issues", "Changelog"} <= {
        line.removeprefix("Project-URL: ").partition(",")[0]
        for line in metadata.splitlines()
        if line.startswith("Project-URL")
    }
    if not _twin.PURE:
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        modules = PROJECT["tool"]["trouter"]["compiled"]
        assert {"trouter/compiled.sha256", *(name.replace(".", "/") + suffix for name in modules)} <= names


def test_the_wheel_routes_where_there_is_no_compiler(built: Built, tmp_path: Path) -> None:
    """The dependencies come from this environment; the package itself comes from the wheel."""
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    nothing = {
        "PATH": str(python.parent),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        **({"TROUTER_PURE": "1"} if _twin.PURE else {}),
    }
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        built.wheel,
        environment=nothing,
    )
    packages = Path(
        sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv"), "platbase": str(tmp_path / "venv")})
    )
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    said = run(python.with_name("trouter"), "--version", cwd=tmp_path, environment=nothing)
    assert said.startswith(f"trouter {__version__} ({'interpreted' if _twin.PURE else 'compiled'}, ")
    where = run(
        python, "-c", "import trouter, trouter_plugins; print(trouter.__file__)", cwd=tmp_path, environment=nothing
    )
    assert Path(where.strip()).is_relative_to(packages)
    assert run(python, ROOT / "packaging" / "smoke.py", cwd=tmp_path, environment=nothing) == "smoke Accepted\n"
