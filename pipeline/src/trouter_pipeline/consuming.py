"""Spools as a query consumes them: the options of its source, how far it has come, and where its cursors end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from trouter_pipeline.checkpoints import planned_of, settled
from trouter_pipeline.connecting import access_of
from trouter_pipeline.flight.access import Access
from trouter_pipeline.lasts import note, require_same
from trouter_pipeline.options import Options, Side
from trouter_pipeline.shards import OpenSpool, let_go, open_shards


def options_for(places: Sequence[str], cursor: str, source: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the source for spools; ``source`` are those for servers of spools, and further ones."""
    return {"receiver": "none", "spool": ",".join(places), "cursor": cursor, **source}


@contextmanager
def open_source(options: Mapping[str, str]) -> Iterator[tuple[list[OpenSpool], Access]]:
    """Open the spools of a source, and what it brings along to servers; BadOption, SpoolError, OSError."""
    parsed = Options.parse(options, Side.READ)
    access = access_of(parsed)
    with ExitStack() as stack:
        shards = open_shards(parsed.spool, parsed.cursor, access)
        for shard in shards:
            stack.callback(shard.close)
        yield shards, access


def require_same_spools(options: Mapping[str, str], checkpoint: Path) -> None:
    """Raise SpoolReplaced if a spool is not the one that the query of a checkpoint had: see `lasts`.

    BadOption, SpoolError, OSError.
    """
    with open_source(options) as (shards, access):
        require_same(checkpoint, shards, access)


def note_batch(options: Mapping[str, str], checkpoint: Path, number: int) -> None:
    """Keep which messages a finished batch had last: see `lasts`; Torn, SpoolError, OSError."""
    with open_source(options) as (shards, access):
        note(checkpoint, shards, planned_of(checkpoint, number), access)


def let_go_of(options: Mapping[str, str], checkpoint: Path) -> int:
    """Move the cursors to where a checkpoint is; return the number of messages that no batch of it has.

    Torn, BadOption, SpoolError, OSError.
    """
    with open_source(options) as (shards, _):
        return let_go(shards, settled(checkpoint))
