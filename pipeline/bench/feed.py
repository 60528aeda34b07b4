"""A server that sends a given count of messages on the links that are attached, and reports the outcomes.

`python -m pipeline.bench.feed SIZE COUNT LINKS` prints a line with its port, then, when COUNT messages have their
outcome, its report. It sends once LINKS links are attached, on connections of their own. Measurements of receivers use
it: it is the reverse of `trouter.load`, and needs a fraction of a receiver's CPU.
"""

from __future__ import annotations

import json
import sys

from trouter.engine.events import LinkAttached
from trouter.engine.link import OutgoingLink
from trouter.engine.session import Session
from trouter.load.messages import make_messages
from trouter.load.plan import Load
from trouter.load.pump import LoadSender, Wire
from trouter.load.report import report_of
from trouter.load.roles import SinkFleet

#: Deliveries without outcome on each link; the receiver's credit is the lower limit.
_WINDOW = 100_000


class FeedFleet(SinkFleet):
    """A fleet of the sink that sends."""

    role = "feed"

    def __init__(self, load: Load, links: int) -> None:
        super().__init__(load)
        self._waiting_for = links
        self._ready: list[tuple[Wire, OutgoingLink]] = []

    def feed(self) -> None:
        """Send all messages."""
        print(json.dumps({"port": self.port}), flush=True)
        self._loop(lambda: self.tally.messages >= self.load.count)
        print(report_of(self.role, self.tally, 0.0, 1).to_json(), flush=True)
        sys.stdin.read()
        self._close()

    def _begun(self, wire: Wire, session: Session) -> None:
        session.begin()

    def _attached(self, wire: Wire, event: LinkAttached) -> None:
        link = event.link
        assert isinstance(link, OutgoingLink)
        link.attach(event.attach.source, event.attach.target, initial_delivery_count=link.delivery_count)
        messages = make_messages(self.load.size)
        wire.sender = LoadSender(self.tally, messages.each, _WINDOW, False, messages.filler, messages.repeats)
        self._ready.append((wire, link))
        if len(self._ready) == self._waiting_for:
            self.tally.left = self.load.count
            for each, ready in self._ready:
                assert each.sender is not None
                each.sender.add(ready)
                self._drive(each)


def main() -> None:
    size, count, links = (int(text) for text in sys.argv[1:])
    FeedFleet(Load(port=0, size=size, count=count), links).feed()


if __name__ == "__main__":
    main()
