"""Finds installed plugins, decides which of them may be loaded, and hashes their code, without running any of it.

Installing a package must not be enough to run its code inside the router: beside the plugins that come with trouter,
only those load that the configuration lists, and one that is listed with a hash only if its code has that hash.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path
from typing import Final

from trouter.hooks.loading import InstalledPlugin, PluginError

#: The distribution whose plugins need not be listed: the router's own.
OURS: Final = "trouter"
_CACHE: Final = "__pycache__"
#: No folder can be made here, so no cache of compiled code is found or left there.
_NO_CACHE: Final = "/dev/null"


def installed_plugins(group: str) -> tuple[InstalledPlugin, ...]:
    """Return all plugins installed under ``group`` of entry points, sorted by name and distribution."""
    found = {
        InstalledPlugin(
            name=entry.name,
            target=entry.value,
            distribution=entry.dist.name if entry.dist else "",
            version=entry.dist.version if entry.dist else "",
            file=str(_file_of(entry.module) or ""),
            ours=entry.dist is not None and entry.dist.name == OURS,
        )
        for entry in metadata.entry_points(group=group)
    }
    return tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.distribution)))


def allowed_plugins(found: Sequence[InstalledPlugin], listed: Mapping[str, str]) -> tuple[InstalledPlugin, ...]:
    """Return the plugins that may be loaded: the router's own, and those ``listed`` with a hash, or "" for any code.

    PluginError if a listed plugin is missing, has another hash, or is claimed by two packages.
    """
    for name, expected in listed.items():
        named = [plugin for plugin in found if plugin.name == name]
        if not named:
            others = ", ".join(sorted({plugin.name for plugin in found})) or "none"
            raise PluginError(f"plugin {name} is listed and not installed (installed: {others})")
        if len(named) > 1:
            packages = " and ".join(plugin.distribution or "?" for plugin in named)
            raise PluginError(f"plugin {name} is installed by {packages}; uninstall one of them")
        if expected and (actual := digest_of(named[0])) != expected:
            raise PluginError(f"plugin {name}: its code ({named[0].file}) is not what is listed: sha256:{actual}")
    return tuple(plugin for plugin in found if plugin.ours or plugin.name in listed)


def digest_of(plugin: InstalledPlugin) -> str:
    """Return the SHA-256 of a plugin's code, in hexadecimal; PluginError if it cannot be read.

    The code is the top-level module or package that the entry point names, compiled caches left out. What is hashed is
    the output of ``sha256sum`` for its files, in the order of their names, relative to the folder that it lies in.
    """
    try:
        root, files = _code_of(plugin.target)
        lines = sorted((file.relative_to(root).as_posix(), file) for file in files)
        listing = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {name}\n" for name, file in lines)
    except (OSError, ValueError) as error:
        raise PluginError(f"plugin {plugin.name}: its code cannot be read: {error}") from error
    return hashlib.sha256(listing.encode()).hexdigest()


def code_of_plugin(name: str, group: str) -> tuple[str, ...]:
    """Return the files with the code of a plugin, and the folders with what is compiled of it; none if it has none."""
    found: list[Path] = []
    for entry in metadata.entry_points(group=group, name=name):
        try:
            files = _code_of(entry.value)[1]
        except (ImportError, OSError, ValueError):
            continue
        caches = {file.parent / _CACHE for file in files}
        found += [*files, *filter(Path.exists, sorted(caches))]
    return tuple(map(str, found))


@contextmanager
def uncached() -> Iterator[None]:
    """Compile modules that the block imports from their sources, which were hashed, instead of using a cache."""
    prefix = sys.pycache_prefix
    sys.pycache_prefix = _NO_CACHE
    try:
        yield
    finally:
        sys.pycache_prefix = prefix


def _code_of(target: str) -> tuple[Path, list[Path]]:
    """Return the folder with the code of an entry point, and the files; ValueError if there is none."""
    spec = util.find_spec(_module(target).partition(".")[0])
    if spec is None:
        raise ValueError(f"there is no module {_module(target)}")
    if spec.submodule_search_locations is None:
        if spec.origin is None or not Path(spec.origin).is_file():
            raise ValueError(f"{_module(target)} is no file")
        return Path(spec.origin).parent, [Path(spec.origin)]
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    if len(folders) != 1:
        raise ValueError(f"{spec.name} lies in {len(folders)} folders")
    files = [file for file in folders[0].rglob("*") if file.is_file() and _CACHE not in file.parts]
    return folders[0].parent, files


def _file_of(module: str) -> Path | None:
    """Return the source of a module without importing its packages; None if there is none."""
    try:
        spec = util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    inner = module.split(".")[1:]
    for folder in spec.submodule_search_locations or ():
        path = Path(folder, *inner)
        for candidate in (path / "__init__.py", path.with_suffix(".py")):
            if candidate.is_file():
                return candidate
    return Path(spec.origin) if spec.origin and not inner else None


def _module(target: str) -> str:
    return target.partition(":")[0].strip()
