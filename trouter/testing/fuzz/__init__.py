"""Fuzzing of plugins, and of any code that takes bytes from peers, with the tools of the router's own targets.

A target is a file with a function ``check(data)``; ``hook_target`` makes one for a hook of a plugin. Run it with
``python -m trouter.testing.fuzz FILE.py``; docs/fuzzing.md has an example in ten lines.
"""

from __future__ import annotations

from trouter.testing.fuzz.command import hunt_mutations, replay
from trouter.testing.fuzz.draw import Draw
from trouter.testing.fuzz.hooks import admits_only_with, hook_target
from trouter.testing.fuzz.hunting import Check, Found, hunt
from trouter.testing.fuzz.mutation import Mutator, behind, files, octets, text
from trouter.testing.fuzz.structure import frames, values
from trouter.testing.fuzz.target import FuzzTarget, load_file, target_of

__all__ = [
    "Check",
    "Draw",
    "Found",
    "FuzzTarget",
    "Mutator",
    "admits_only_with",
    "behind",
    "files",
    "frames",
    "hook_target",
    "hunt",
    "hunt_mutations",
    "load_file",
    "octets",
    "replay",
    "target_of",
    "text",
    "values",
]
