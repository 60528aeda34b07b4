"""`trouter migrate` over the configurations of Qpid Dispatch: it writes the same configuration in new names.

A second run changes nothing, and `check` reports no more than for the old file. Some are started, and route.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.dropin.cases import CASES, MANUAL, Case
from tests.dropin.scene import Folder
from tests.dropin.test_configurations import EVERY, dummies, files_of, folder, go, network, pytestmark, written
from tests.routers import DEADLINE_S
from trouter.cli.startup import evaluation, prepare
from trouter.config import Configuration, Entity, load
from trouter.config.entities import AuthServicePluginEntity, SslProfileEntity
from trouter.config.migrate import migrated

__all__ = ["folder", "pytestmark"]

#: Started in each run: every old name, and the JSON form; `make test-all` starts the others.
STARTED = ("old-names", "json")
STARTED_LONG = ("pair", "external-address", "vhost-with-names-that-are-ignored", "clamped-limits")
#: Removed before `check`: Cyrus SASL reads its configuration once in a process, and other tests have theirs.
OF_CYRUS = re.compile(r"saslConfig(?:Dir|Path|Name):.*")
LOCATIONS = re.compile(r"\S+:\d+:\d+: ")


def comparable(entity: Entity) -> tuple[object, ...]:
    """Return an entity's effect: its values without those of no effect, with an old name for two replaced by both."""
    inert = {row.field for row in entity.type.fields if row.inert} | {"password_file", "auth_service"}
    values = {field.name: getattr(entity, field.name) for field in dataclasses.fields(entity) if field.compare}
    if isinstance(entity, SslProfileEntity):
        values["password"] = entity.key_password()
    if isinstance(entity, AuthServicePluginEntity):
        values["host"], values["port"] = entity.address
    return type(entity).__name__, tuple((name, value) for name, value in values.items() if name not in inert)


def served(configuration: Configuration) -> list[tuple[object, ...]]:
    """Return the entities in service."""
    return [comparable(entity) for entity in configuration.entities if not entity.type.unserved]


def notes(file: Path, text: str) -> list[str]:
    """Return the lines of `check` for a text in the place of a file, without positions."""
    return [LOCATIONS.sub("", str(finding)) for finding in evaluation(*prepare(file, OF_CYRUS.sub("", text)))]


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_the_new_file_is_the_same_configuration(case: Case, folder: Folder, tmp_path: Path) -> None:
    for template in files_of(case):
        file = written(template.name, template.read_text(), tmp_path, dummies(folder))
        old = file.read_text()
        new = migrated(old, str(file)).text
        assert served(load(file, new)) == served(load(file, old))
        assert set(notes(file, new)) <= set(notes(file, old))
        assert not migrated(new, str(file)).changes
        assert comments(old) == comments(new)


def comments(text: str) -> Iterable[str]:
    """Return the comments on lines of their own."""
    return re.findall(r"^\s*#.*$", text, re.MULTILINE)


@pytest.mark.parametrize("name", [*STARTED, *(pytest.param(name, marks=pytest.mark.long) for name in STARTED_LONG)])
def test_a_router_started_from_the_new_file_routes(name: str, folder: Folder, tmp_path: Path) -> None:
    case = next(case for case in (*CASES, *MANUAL) if case.name == name)

    def migrate(file: Path) -> None:
        command = [sys.executable, "-m", "trouter", "migrate", str(file), "--force", "-o", str(file)]
        subprocess.run(command, check=True, timeout=DEADLINE_S)

    with network(case, tmp_path, folder, migrate) as routers:
        for way in case.ways:
            go(way, routers, folder)
