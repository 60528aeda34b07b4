"""Chooses the vhost of an open (security.md 4.3) by host name, alias or pattern, else the default one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final, Generic, TypeVar

from trouter.config.access import host_key, host_pattern
from trouter.core.patterns import HOSTS, PatternTree, is_exact

T = TypeVar("T")


class ChosenBy(Enum):
    """Why a vhost was chosen for a connection."""

    HOSTNAME = "hostname"
    ALIAS = "alias"
    PATTERN = "pattern"
    DEFAULT = "defaultVhost"


class VhostChoice(Generic[T]):
    """Vhosts by host name, alias and pattern. An exact host name is preferred to a pattern."""

    __slots__ = ("_default", "_names", "_tree")

    def __init__(self, vhosts: Iterable[tuple[str, Iterable[str], T]], patterns: bool, default: str) -> None:
        """`vhosts`: host name, aliases and vhost of each; `default`: the name of a vhost, empty for none."""
        self._names: dict[str, tuple[T, ChosenBy]] = {}
        self._tree: PatternTree[T] | None = None
        tree: PatternTree[T] = PatternTree(HOSTS)
        for hostname, aliases, vhost in vhosts:
            for name, chosen_by in ((hostname, ChosenBy.HOSTNAME), *((alias, ChosenBy.ALIAS) for alias in aliases)):
                key = host_key(name)
                if patterns and not is_exact(host_pattern(key) or ()):
                    tree.insert(key, vhost)
                    self._tree = tree
                else:
                    self._names[key] = vhost, chosen_by
        found = self.find_vhost(default) if default else None
        self._default: Final = None if found is None else (found[0], ChosenBy.DEFAULT)

    def find_vhost(self, name: str) -> tuple[T, ChosenBy] | None:
        """Return the vhost called `name`, and why; None if there is none. The default vhost is not considered."""
        key = host_key(name)
        if (found := self._names.get(key)) is not None:
            return found
        vhost = None if self._tree is None else self._tree.match(key)
        return None if vhost is None else (vhost, ChosenBy.PATTERN)

    def choose_vhost(self, name: str) -> tuple[T, ChosenBy] | None:
        """Return the vhost for a connection to `name`, or the default one, and why; None without either."""
        return self.find_vhost(name) or self._default
