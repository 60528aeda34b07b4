"""Coverage: the lines that a check runs, for reports, and for choosing inputs to keep as seeds.

Python's tracing sees interpreted code only, so coverage needs TROUTER_PURE=1. It counts lines of functions and methods,
not those that a module's import runs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeAlias

#: A file and a line of it.
Line: TypeAlias = tuple[str, int]
Arc: TypeAlias = tuple[str, int, int]


class Coverage:
    """Counts lines, and steps from line to line (``arcs``), of some modules while ``running``."""

    def __init__(self, modules: Iterable[str]) -> None:
        """Count lines of ``modules``; ImportError for a missing one. A compiled module has no lines."""
        self._files: dict[str, set[Line]] = {}
        for name in modules:
            module = import_module(name)
            for each in modules_of(module):
                path = getattr(each, "__file__", None)
                if isinstance(path, str) and path.endswith(".py"):
                    self._files[path] = _lines_of(path)
        self.lines: set[Line] = set()
        self.arcs: set[Arc] = set()

    @property
    def total(self) -> int:
        """Number of lines."""
        return sum(map(len, self._files.values()))

    @property
    def reached(self) -> int:
        """Number of lines that have been run."""
        return sum(line in self._files[line[0]] for line in self.lines)

    def missed(self) -> list[Line]:
        """Return the lines that have not been run, in order."""
        return sorted(line for lines in self._files.values() for line in lines if line not in self.lines)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the lines that the block runs."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        if path not in self._files:
            return None
        last = 0

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                line = frame.f_lineno
                self.lines.add((path, line))
                self.arcs.add((path, last, line))
                last = line
            return step

        return step


def modules_of(module: ModuleType) -> list[ModuleType]:
    """Return the module, or for a package its imported modules."""
    if not hasattr(module, "__path__"):
        return [module]
    prefix = f"{module.__name__}."
    return [each for name, each in list(sys.modules.items()) if name.startswith(prefix) and each is not None]


def _lines_of(path: str) -> set[Line]:
    code = SourceFileLoader("", path).get_code("")
    return {(path, line) for function in (_functions(code) if code else ()) for line in _body(function)}


def _functions(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_OPTIMIZED:
                yield each
            yield from _functions(each)


def _body(code: CodeType) -> set[int]:
    """Return the lines of a function, without the first one."""
    return {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}
