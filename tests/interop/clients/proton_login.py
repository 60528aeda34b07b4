"""A stock client that logs in once: a process of its own, because Cyrus SASL is started once in a process.

Its argument is JSON: `url`, `options` of a connection, and optionally `tls` with `ca`, `cert` and `key`. It sends a
message to itself through the router, and prints the mechanism, or the error of a refusal.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from proton import ConnectionException, Message, SSLDomain
from proton.utils import BlockingConnection

TIMEOUT_S = 120.0
BODY = "to myself"


class Client(BlockingConnection):
    """A connection that keeps the outcome of SASL."""

    mechanism: str | None = None
    condition: str | None = None

    def on_connection_remote_open(self, event: Any) -> None:
        self.mechanism = event.transport.sasl().mech

    def on_transport_error(self, event: Any) -> None:
        Client.condition = f"{event.transport.condition.name}: {event.transport.condition.description}"


def domain(tls: dict[str, str]) -> SSLDomain:
    made = SSLDomain(SSLDomain.MODE_CLIENT)
    made.set_trusted_ca_db(tls["ca"])
    made.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    if "cert" in tls:
        made.set_credentials(tls["cert"], tls["key"], None)
    return made


def log_in(wanted: dict[str, Any]) -> dict[str, object]:
    options = wanted["options"]
    if wanted.get("tls"):
        options["ssl_domain"] = domain(wanted["tls"])
    try:
        client = Client(wanted["url"], timeout=TIMEOUT_S, reconnect=False, **options)
    except ConnectionException as error:
        return {"refused": Client.condition or str(error)}
    receiver = client.create_receiver("own", credit=1)
    client.create_sender("own").link.send(Message(body=BODY))  # it is accepted below
    body = receiver.receive().body
    receiver.accept()
    client.close()
    return {"mechanism": client.mechanism, "body": body}


sys.stdout.write(json.dumps(log_in(json.loads(sys.argv[1]))))
