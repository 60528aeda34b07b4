"""`trouter policy learn`: makes a vhost that allows exactly the use in a router's records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trouter.records.reader import Corrupt, SegmentReader
from trouter.records.schema import ConnectionOpenedRecord, LinkAttachedRecord, ManagementChange, PolicyDecision, Record
from trouter.records.segments import EMPTY, OPEN, opened, segments_in
from trouter.tools.failures import print_problem

EPILOG = (
    "Let a router run until every client has done its work, without a policy or with a generous one, and with a "
    "recordLog section that keeps the kinds `audit`. The proposal denies everything that the records do not have: read "
    "it before you use it."
)


def add_learn(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "learn",
        help="propose a vhost that allows the recorded use, and no more",
        description="Print a file for policyDir with a vhost that allows what the records show: the users, the hosts "
        "from which they connected, and the addresses that they used.",
        epilog=EPILOG,
    )
    parser.add_argument("path", type=Path, metavar="DIR", help="the folder of a recordLog section")
    parser.add_argument("--vhost", required=True, metavar="NAME", help="the host name in the opens of the clients")
    parser.set_defaults(run=run)


@dataclass
class Seen:
    """The addresses that one user sent to and received from, and the other rights used."""

    hosts: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    dynamic: bool = False
    anonymous: bool = False
    changes: bool = False

    @property
    def management(self) -> str:
        """The level of management that the recorded requests needed."""
        return "admin" if self.changes else "read" if "$management" in self.targets else "none"

    def settings(self) -> dict[str, Any]:
        """Return the settings of a group of a vhost, without its users."""
        return {
            "remoteHosts": ", ".join(sorted(self.hosts)),
            "sources": ", ".join(sorted(self.sources)),
            "targets": ", ".join(sorted(self.targets)),
            "allowDynamicSource": self.dynamic,
            "allowAnonymousSender": self.anonymous,
            "management": self.management,
        }


class Learner:
    """The allowed use of one vhost; ``left_out`` has texts that no vhost can hold."""

    def __init__(self, vhost: str) -> None:
        self.vhost = vhost
        self.users: dict[str, Seen] = {}
        self.left_out: set[str] = set()

    def learn(self, record: Record) -> None:
        """Add a record, if it is about allowed use of this vhost."""
        if not isinstance(record, ConnectionOpenedRecord | LinkAttachedRecord | PolicyDecision | ManagementChange):
            return
        if record.vhost is None or record.vhost.casefold() != self.vhost.casefold() or not record.user:
            return
        if not self._fit(record.user, "user"):
            return
        if isinstance(record, PolicyDecision) and not record.allow:
            return
        seen = self.users.setdefault(record.user, Seen())
        if record.host:
            seen.hosts.add(record.host)
        if isinstance(record, ManagementChange):
            seen.changes |= record.status < 400
        elif isinstance(record, LinkAttachedRecord) and record.dynamic:
            seen.dynamic = True
        elif isinstance(record, LinkAttachedRecord | PolicyDecision):
            self._use(seen, record)

    def _use(self, seen: Seen, record: LinkAttachedRecord | PolicyDecision) -> None:
        if record.addr is None:
            seen.anonymous |= isinstance(record, LinkAttachedRecord) and record.dir == "in"
        elif self._fit(record.addr, "address"):
            addresses = seen.targets if record.dir == "in" or record.dir is None else seen.sources
            addresses.add(record.addr.replace("${user}", "$${user}"))

    def _fit(self, text: str, what: str) -> bool:
        """Return whether a list of a vhost can hold ``text`` literally; note it as left out if not."""
        if text.strip() == text and text and "," not in text and not text.endswith("*"):
            return True
        self.left_out.add(f"{what} {text!r}")
        return False

    def proposal(self) -> dict[str, Any]:
        """Return the vhost as a map. Users with the same use are one group."""
        groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for user, seen in sorted(self.users.items()):
            settings = seen.settings()
            groups.setdefault(json.dumps(settings), (settings, []))[1].append(user)
        return {
            "hostname": self.vhost.lower(),  # as it is compared
            "allowUnknownUser": False,
            "groups": {
                f"users-{number}": {"users": ", ".join(users), **settings}
                for number, (settings, users) in enumerate(groups.values(), 1)
            },
        }


def recorded(folder: Path) -> Iterator[Record]:
    """Yield every record of a folder whose kind is known; OSError, Corrupt."""
    for place in segments_in(folder):
        if place.rest != EMPTY:
            with opened(place.path) as file:
                for line in SegmentReader(place.path, file, open_ended=place.rest == OPEN).lines():
                    if line.record is not None:
                        yield line.record


def learned(records: Iterable[Record], vhost: str) -> Learner:
    """Return the learner of a vhost after these records."""
    learner = Learner(vhost)
    for record in records:
        learner.learn(record)
    return learner


def run(arguments: argparse.Namespace) -> int:
    """Print the proposal; return 1 if there are no usable records, or they are corrupt."""
    try:
        learner = learned(recorded(arguments.path), arguments.vhost)
    except (Corrupt, OSError) as error:
        print_problem(arguments, error)
        return 1
    if not learner.users:
        print_problem(arguments, f"{arguments.path}: no record names a user of the vhost {arguments.vhost}")
        return 1
    for what in sorted(learner.left_out):
        print(f"left out, because no list of a vhost can contain it: {what}", file=sys.stderr)
    print(json.dumps([["vhost", learner.proposal()]], indent=2, ensure_ascii=False))
    return 0
