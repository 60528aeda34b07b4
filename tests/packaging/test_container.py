"""The recipe of the image: no fault for the linter, one pinned base, labels, and words for what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.built import run, tool
from tests.routers import ROOT

FOLDER = ROOT / "packaging" / "container"
RECIPE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
BUILDAH = """#!/bin/sh
echo "$*" >>"{calls}"
case $1 in inspect) echo sha256:0123 ;; esac
"""


def test_the_linter_finds_no_fault() -> None:
    run(tool("hadolint"), FOLDER / "Containerfile")


def test_both_stages_have_one_base_and_the_image_says_what_it_is() -> None:
    assert re.findall(r"^FROM (\S+)", RECIPE, re.MULTILINE) == ["${BASE}", "${BASE}"]
    labels = set(re.findall(r"org\.opencontainers\.image\.([a-z.]+)=", RECIPE))
    assert {"title", "description", "licenses", "version", "revision", "base.name"} <= labels
    assert re.search(r"^USER 10001:10001$", RECIPE, re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with what the script reads, and a buildah that writes down how it was called."""
    for path in ("packaging/container/build.sh", "trouter/__init__.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / "buildah").write_text(BUILDAH.format(calls=tmp_path / "calls"), encoding="utf-8")
    (tmp_path / "buildah").chmod(0o755)
    return tmp_path


def script(checkout: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{checkout}:{os.environ['PATH']}", **settings}
    command = [str(checkout / "packaging" / "container" / "build.sh"), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def make_sdists(checkout: Path) -> None:
    version = re.search(r'__version__ = "(.*)"', (checkout / "trouter" / "__init__.py").read_text(encoding="utf-8"))
    assert version is not None
    (checkout / "dist").mkdir()
    for name in ("trouter", "trouter_pipeline"):
        (checkout / "dist" / f"{name}-{version[1]}.tar.gz").touch()


def test_a_build_is_of_a_pinned_base_with_version_and_revision(checkout: Path) -> None:
    make_sdists(checkout)
    done = script(checkout, "trouter:new", BASE="registry.example/python:3.13")
    assert done.returncode == 0, done.stderr
    call = (checkout / "calls").read_text(encoding="utf-8").splitlines()[-1]
    assert "--build-arg BASE=registry.example/python@sha256:0123 " in call
    assert re.search(r"--build-arg VERSION=\d+\.\d+\.\d+ --build-arg REVISION=\S+", call)
    assert "--tag=trouter:new" in call
    assert "--format=docker" in call
    assert "buildah push trouter:new docker://trouter:new" in done.stdout


def test_two_machines_make_one_list(checkout: Path) -> None:
    make_sdists(checkout)
    done = script(checkout, "trouter:new", "linux/amd64", "linux/arm64")
    assert done.returncode == 0, done.stderr
    call = (checkout / "calls").read_text(encoding="utf-8").splitlines()[-1]
    assert "--platform=linux/amd64 --platform=linux/arm64 --manifest=trouter:new" in call
    assert "buildah manifest push --all trouter:new" in done.stdout


def test_a_checkout_without_sdists_says_how_to_make_them(checkout: Path) -> None:
    done = script(checkout, "trouter:new")
    assert done.returncode == 1
    assert "make wheel" in done.stderr
    assert script(checkout).returncode == 2
