"""The Makefile: twelve chores first, the others by group, and nothing installed on a system whose user says so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.house.sources import ROOT
from tests.house.test_files import MAKEFILE, TARGETS

if TYPE_CHECKING:
    from pathlib import Path

DAILY = ["run", "build", "test", "test-quick", "lint", "types", "fuzz", "bench", "docs", "package", "clean", "help"]
DESCRIBED = re.compile(r"^([a-z][a-z0-9-]*):.* ## \S", re.MULTILINE)


def test_every_target_that_makes_no_file_is_phony() -> None:
    joined = MAKEFILE.replace("\\\n", " ")
    assert {name for line in re.findall(r"^\.PHONY: (.*)", joined, re.MULTILINE) for name in line.split()} == TARGETS


def test_make_alone_describes_the_daily_chores_and_names_all_others() -> None:
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^make ([a-z-]+) ", shown, re.MULTILINE) == DAILY
    assert DESCRIBED.findall((ROOT / "Makefile").read_text(encoding="utf-8")) == DAILY
    assert set(DESCRIBED.findall(MAKEFILE)) <= {word for line in shown.splitlines() for word in line.split()}


@pytest.mark.parametrize("group", sorted(path.stem for path in (ROOT / "make").glob("*.mk")))
def test_help_describes_each_chore_of_a_group(group: str) -> None:
    shown = subprocess.run(
        ["make", "help", f"GROUP={group}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    named = DESCRIBED.findall((ROOT / "make" / f"{group}.mk").read_text(encoding="utf-8"))
    assert re.findall(r"^make ([a-z0-9-]+) +\w", shown, re.MULTILINE) == named


def test_every_name_of_a_package_in_the_rules_has_a_row() -> None:
    asked = re.findall(r"\$\(call (?:needs|wants),([^)]*)\)", MAKEFILE)
    tested = re.search(r"^TESTED +:= ((?:.*\\\n)*.*)\$\(if", MAKEFILE, re.MULTILINE)
    assert tested is not None
    names = {name for text in (*asked, tested[1].replace("\\\n", " ")) for name in text.split()} - {
        "names",
        "of",
        "make/system.sh",
    }
    assert _system("has", *names).returncode in (0, 1)
    assert _system("has", "absent").returncode == 2


class Bare:
    """A path with few programs for make/system.sh; its apt-get writes down its arguments and fails."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "apt.log"
        for name in ("bash", "sh", "sed", "grep", "cut", "tr", "awk", "cat", "python3"):
            (self.bin / name).symlink_to(shutil.which(name) or "")
        self.write("id", "echo 0")
        self.write("apt-get", f'echo "$@" >>{self.log}; exit 1')

    def write(self, name: str, text: str, shell: str = "sh") -> None:
        (self.bin / name).write_text(f"#!/usr/bin/env {shell}\n{text}\n", encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return _system(*arguments, PATH=str(self.bin), **settings)


def _system(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: text for name, text in os.environ.items() if name not in ("SYSTEM", "SAID", "MIRROR")
    } | settings
    return subprocess.run(
        [ROOT / "make" / "system.sh", *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_a_plan_names_the_packages_before_they_are_installed(tmp_path: Path) -> None:
    bare = Bare(tmp_path)
    done = bare.run("plan", "haproxy", "python", "curl")
    assert (done.returncode, done.stderr) == (
        0,
        "make: to be installed by apt-get, which SYSTEM=no prevents: haproxy curl\n",
    )
    assert not bare.log.exists()


def test_system_no_installs_nothing_and_says_what_is_left_out(tmp_path: Path) -> None:
    bare = Bare(tmp_path)
    for verb in ("plan", "want"):
        done = bare.run(verb, "haproxy", "curl", SYSTEM="no")
        assert done.returncode == 0
        assert "left out: tests and measurements with HAProxy (Debian: haproxy)" in done.stderr
        assert "left out: tests of HTTP by curl (Debian: curl)" in done.stderr
    assert bare.run("need", "curl", SYSTEM="no").returncode == 1
    assert not bare.log.exists()


def test_what_cannot_be_installed_is_said(tmp_path: Path) -> None:
    bare = Bare(tmp_path)
    done = bare.run("want", "curl")
    assert done.returncode == 0
    assert "could not install curl" in done.stderr
    assert "left out: tests of HTTP by curl" in done.stderr
    assert bare.log.exists()
    assert bare.run("need", "curl").returncode == 1


def test_the_mirror_is_the_one_that_apt_is_configured_for(tmp_path: Path) -> None:
    bare = Bare(tmp_path)
    assert bare.run("mirror").returncode == 1
    assert bare.run("mirror", MIRROR="http://mirror.test/debian").stdout == "http://mirror.test/debian\n"
    # More than a pipe holds: a reader that leaves after the first line would end apt-get, and with it the script.
    bare.write("apt-get", "for i in {1..9999}; do echo http://apt.test/debian; done", shell="bash")
    assert bare.run("mirror").stdout == "http://apt.test/debian\n"
