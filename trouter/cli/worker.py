"""The program of one worker; only the parent process starts it, with the descriptor of its channel."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import trouter
from trouter import logs
from trouter.admission.process_memory import available_bytes
from trouter.app.process import run as serve
from trouter.cli.run import confine
from trouter.cli.startup import StartError, configured_plugins, prepare
from trouter.config import Configuration, ConfigurationError, load
from trouter.config.portable import read_portable
from trouter.config.workers import with_workers
from trouter.net.tallies import Tallies
from trouter.workers.calls import BadMessage, Channel, ChannelEnded
from trouter.workers.worker import WorkerReach, WorkerTerms


def main(descriptor: int) -> int:
    """Serve as a worker until the parent stops it; return the exit status."""
    channel = Channel.at(descriptor)
    try:
        first = channel.receive_first()
        given: Any = dict(first.facts)
    except ChannelEnded:  # the router has stopped, and this process was not needed
        return 0
    except BadMessage:
        given = {}
    if given.get("release") != trouter.__version__:  # what the processes send each other may be different
        print(
            f"worker {given.get('place', '')} cannot start: trouter {trouter.__version__} is installed, and the router "
            f"that runs is trouter {given.get('release', 'of an older release')}: restart the router",
            file=sys.stderr,
        )
        return 1
    terms = WorkerTerms(**given)
    logs.name_worker(terms.place)
    (shared,) = first.descriptors
    tallies = Tallies(shared, terms.place, terms.count)
    decoy_key = tallies.derive_key("decoys")
    try:
        if first.body:
            whole = read_portable(first.body)
            plugins = configured_plugins(whole, decoy_key)
        else:
            whole, plugins = prepare(terms.file, decoy_key=decoy_key)
            whole = with_workers(whole, terms.workers)
        logs.configure(whole)
    except (StartError, ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 1
    reach = WorkerReach(channel, terms, tallies, available_bytes())

    def read() -> Configuration:
        return with_workers(load(terms.file), terms.workers)

    return serve(whole, plugins, read, bound=partial(confine, whole, None), reach=reach)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
