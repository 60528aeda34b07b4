"""Fuzz a plugin, or anything that takes octets from strangers: what the router's own targets are run with.

    \"\"\"Any ticket is answered, and none that we did not sign lets a peer in.\"\"\"

    from trouter.hooks import RouterFacts
    from trouter.testing.fuzz import hook_target, nobody_without
    import trouter_tickets

    check = hook_target(trouter_tickets, "open_sasl", router=RouterFacts("R", settings={"keyFile": "ticket.key"}))
    COVERS = ("trouter_tickets",)

Run it with ``python -m trouter.testing.fuzz FILE.py``; docs/fuzzing.md says more.
"""

from __future__ import annotations

from trouter.testing.fuzz.command import Target, hunt_mutations, load_file, replay, target_of
from trouter.testing.fuzz.draw import Draw
from trouter.testing.fuzz.hooks import hook_target, nobody_without
from trouter.testing.fuzz.hunting import Check, Found, hunt
from trouter.testing.fuzz.mutation import Mutator, behind, files, mutate, octets, text
from trouter.testing.fuzz.structure import frames, values

__all__ = [
    "Check",
    "Draw",
    "Found",
    "Mutator",
    "Target",
    "behind",
    "files",
    "frames",
    "hook_target",
    "hunt",
    "hunt_mutations",
    "load_file",
    "mutate",
    "nobody_without",
    "octets",
    "replay",
    "target_of",
    "text",
    "values",
]
