"""Features that the router must not have (security.md 7.3, 7.4): the sources are searched for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, ROOT, imported_by

PLUGINS = ROOT / "plugins" / "trouter_plugins"
RECORDS = PACKAGE / "records"
#: The rooms that the running router imports.
ROOMS = ("net", "telemetry", "tls", "admission", "auth", "backbone", "connections", "http", "app")
ROUTER = [PACKAGE / room for room in ROOMS]
SOURCES = sorted([*PACKAGE.rglob("*.py"), *PLUGINS.rglob("*.py")])
#: Modules that decompress data; zlib is allowed because it also computes checksums.
PACKERS = {"gzip", "bz2", "lzma", "zipfile", "tarfile", "brotli", "zstandard", "lz4", "snappy"}
#: Modules that make objects or code from bytes.
REVIVERS = {"pickle", "marshal", "shelve", "dill", "yaml", "code", "codeop"}
CALLS = {"eval", "exec", "compile", "__import__"}
PATTERNS = {"compile", "match", "search", "fullmatch", "sub", "split", "findall", "finditer"}


@pytest.fixture(scope="module", autouse=True)
def nodes_are_forgotten() -> Iterator[None]:
    """Clear the caches of millions of nodes, which the garbage collector would otherwise scan."""
    yield
    nodes_of.cache_clear()


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports_of(path: Path) -> set[str]:
    """Return the top-level names that a source imports."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def calls_in(path: Path) -> Iterator[ast.Call]:
    return (node for node in nodes_of(path) if isinstance(node, ast.Call))


def where(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def test_there_are_sources_to_search() -> None:
    assert len(SOURCES) > 200


def test_nothing_is_unpacked() -> None:
    """CVE-2026-92573: the router decompresses nothing that a peer sends, so it cannot be bombed.

    Segments of records may be compressed; the router only writes them, and their readers read them piece by piece. An
    archive of `trouter diagnose` is only written. Seeds of fuzz targets are in archives, which tests read and write.
    """
    packed = [
        *RECORDS.iterdir(),
        PACKAGE / "pipeline" / "proof.py",
        PACKAGE / "testing" / "fuzz" / "guided.py",
        PACKAGE / "testing" / "fuzz" / "seeds.py",
        PACKAGE / "tools" / "diagnosis.py",
    ]
    found = [str(path) for path in SOURCES if imports_of(path) & PACKERS and path not in packed]
    rooms = [path for path in SOURCES if any(room in path.parents for room in ROUTER)]
    assert [str(path) for path in rooms if "trouter.records.reader" in imported_by(path)] == []
    unpacking = [
        where(path, node)
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute | ast.Name) and "decompress" in getattr(node, "attr", getattr(node, "id", ""))
    ]
    assert (found, unpacking) == ([], [])


def test_octets_make_values_only() -> None:
    """CVE-2026-57822: a peer's bytes never become objects of other classes, or code.

    `trouter migrate --interconnect` reads an operator's manifest in YAML, by the loader that makes plain values only.
    """
    manifests = PACKAGE / "cli" / "migrate_interconnect.py"
    found = [str(path) for path in SOURCES if imports_of(path) & REVIVERS and path != manifests]
    of_yaml = {ast.unparse(call.func) for call in calls_in(manifests) if ast.unparse(call.func).startswith("yaml.")}
    assert of_yaml == {"yaml.safe_load_all"}
    called = [
        where(path, call)
        for path in SOURCES
        for call in calls_in(path)
        if isinstance(call.func, ast.Name) and call.func.id in CALLS
    ]
    assert (found, called) == ([], [])


def is_ours(pattern: ast.expr) -> bool:
    """Return whether a pattern is a literal, or composed of constants of the source."""
    if isinstance(pattern, ast.Constant):
        return True
    if isinstance(pattern, ast.Name):
        return pattern.id.isupper()
    if isinstance(pattern, ast.JoinedStr):
        return all(not isinstance(part, ast.FormattedValue) or is_ours(part.value) for part in pattern.values)
    if isinstance(pattern, ast.BinOp):
        return is_ours(pattern.left) and is_ours(pattern.right)
    return False


BEFORE_TEXT = "what may stand before a text in a configuration file, one of three constants"
#: Patterns of other forms, with the reason why no peer can influence them.
OTHERS = {
    're.compile(before + \'"([^"\\\\\\\\\\\\n]*)"\')': BEFORE_TEXT,
    ('re.compile(before + \'"([^"\\\\\\\\\\\\n]*)"[ \\\\t]*:[ \\\\t]*"([^"\\\\\\\\\\\\n]*)"\')'): BEFORE_TEXT,
    "re.compile(f'(?:[\\\\s{also}]+|#[^\\\\n]*)*')": "the separators of a configuration file, from a list of three",
    "re.compile(f'(?=[{re.escape(SEPARATORS)}])')": "the separators of addresses, a constant",
    "re.compile(f'{USER_TOKEN.pattern}|\\\\*\\\\Z')": "the token of a user's name, a constant",
    "re.compile(f'{USER_TOKEN.pattern}|(?<![^./])[*#](?![^./])')": "as above, and the wildcards",
}


def test_no_pattern_is_another_projects() -> None:
    """CVE-2026-67240, CVE-2026-44838: regular expressions are constants; no address, user or filter becomes one."""
    found = {
        ast.unparse(call)
        for path in SOURCES
        for call in calls_in(path)
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("re", "regex")
        and call.func.attr in PATTERNS
        and not is_ours(call.args[0])
    }
    assert found == set(OTHERS)
