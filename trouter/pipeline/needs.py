"""What the jobs need of the machine they start on, and what to do where it is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

#: Packages and the first version of each that does; the cure is the same for all.
PACKAGES: Final = (("pyspark", (4, 0)), ("pyarrow", (15, 0)), ("pandas", (2, 2)), ("protobuf", (5, 0)))
CURE: Final = "pip install 'trouter[spark]'"
#: The oldest Java that Spark 4 runs on.
JAVA: Final = 17


class Need(NamedTuple):
    """Something that is missing, and the cure."""

    what: str
    cure: str


class Missing(Exception):
    """Spark cannot run here; the text names all that is missing."""


def missing() -> list[Need]:
    """All that is missing, in the order in which it would be missed."""
    return [*_java(), *_packages()]


def require() -> None:
    """Go on only if nothing is missing; Missing."""
    if found := missing():
        raise Missing("; ".join(f"{need.what}: {need.cure}" for need in found))


def _java() -> list[Need]:
    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    cure = f"install Java {JAVA} or newer (Debian: apt-get install openjdk-17-jre-headless)"
    if not shutil.which(str(program)):
        return [Need("Java is not on PATH" if not home else f"JAVA_HOME has no {program}", cure)]
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < JAVA:
        return [Need(f"{program} is too old or does not run: {said.splitlines()[:1]}", cure)]
    return []


def _packages() -> list[Need]:
    needs = []
    for package, least in PACKAGES:
        wanted = ".".join(map(str, least))
        try:
            found = version(package)
        except PackageNotFoundError:
            needs.append(Need(f"the package {package} is not installed", CURE))
            continue
        if tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < least:
            needs.append(Need(f"the package {package} is {found}, and {wanted} or newer is needed", CURE))
    return needs
