"""Many connections of one process, as python-qpid-proton makes them; run on a host of its own by `test_storms.py`.

    python storm.py URL COUNT PASSWORD [CA_FILE]

All connect at once, as the user `app`; none tries again. The last line printed tells how many opened, and what became
of the others; then they all close.
"""

from __future__ import annotations

import json
import sys
from collections import Counter

from proton import Event, SSLDomain
from proton.handlers import MessagingHandler
from proton.reactor import Container


class Storm(MessagingHandler):
    def __init__(self, url: str, count: int, password: str, ca_file: str) -> None:
        super().__init__()
        self._url, self._count, self._password = url, count, password
        self._domain = SSLDomain(SSLDomain.MODE_CLIENT) if ca_file else None
        if self._domain is not None:
            self._domain.set_trusted_ca_db(ca_file)
            self._domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
        self._open: set[object] = set()
        self.ends: Counter[str] = Counter()

    def on_start(self, event: Event) -> None:
        for _ in range(self._count):
            event.container.connect(
                self._url,
                reconnect=False,
                heartbeat=600,
                ssl_domain=self._domain,
                user="app",
                password=self._password,
                allowed_mechs="PLAIN",
                allow_insecure_mechs=True,
                sasl_enabled=True,
            )

    def on_connection_opened(self, event: Event) -> None:
        self._open.add(event.connection)
        self._look(event)

    def on_transport_error(self, event: Event) -> None:
        self.ends[str(event.transport and event.transport.condition)] += 1

    def on_disconnected(self, event: Event) -> None:
        if event.connection not in self._open:
            self.ends["ended before it was open"] += 1
            self._look(event)
        else:
            self.ends["ended"] += 1

    def _look(self, event: Event) -> None:
        if len(self._open) + self.ends["ended before it was open"] == self._count:
            sys.stdout.write(json.dumps({"opened": len(self._open), "ends": self.ends}) + "\n")
            event.container.stop()


if __name__ == "__main__":
    Container(Storm(sys.argv[1], int(sys.argv[2]), sys.argv[3], *sys.argv[4:] or [""])).run()
