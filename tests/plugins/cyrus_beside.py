"""A process in which another part uses Cyrus SASL before the plugin does; test_cyrus_processes.py starts it.

Arguments: the folder of the plugin's configuration, and what happened before. It prints the plugin's answer to alice.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import proton
import trio

from tests.plugins.test_sasl_cyrus import NAME, peer_of, plain
from trouter.hooks import ConfigurationRefused, Plugins, RouterFacts
from trouter.wire.framing import SASL_HEADER
from trouter_plugins import sasl_cyrus

#: A configuration that leaves no mechanism.
EMPTY = "empty"


def offer(mechanism: bytes) -> bytes:
    """Return what a server with one mechanism sends first."""
    listed = b"\xa3%c%b" % (len(mechanism), mechanism)
    body = b"\0S\x40\xc0%c\1%b" % (len(listed) + 1, listed)
    return b"AMQP\3\1\0\0" + (len(body) + 8).to_bytes(4, "big") + b"\2\1\0\0" + body


def proton_as(*, server: bool) -> object:
    """Let python-qpid-proton begin SASL; return the objects that must live on."""
    transport = proton.Transport(proton.Transport.SERVER if server else proton.Transport.CLIENT)
    sasl, connection = transport.sasl(), proton.Connection()
    connection.user = "alice"
    connection.password = "wonderland"
    transport.bind(connection)
    transport.push(SASL_HEADER if server else offer(b"SCRAM-SHA-256"))
    assert b"SCRAM" in (transport.peek(transport.pending()) or b"")
    return transport, sasl, connection


def main(folder: Path, before: str) -> str:
    library = ctypes.CDLL("libsasl2.so.2")
    kept: object = None
    plugins = Plugins([sasl_cyrus])
    if before == "a client":
        assert library.sasl_client_init(None) == 0
    elif before == "a server":
        assert library.sasl_server_init(None, b"other") == 0
    elif before == "a server that has ended":
        assert library.sasl_server_init(None, b"other") == 0
        assert library.sasl_server_done() == 0
    elif before.startswith("proton"):
        kept = proton_as(server=before == "proton as a server")
    elif before == "a configuration without mechanisms":
        (folder / f"{EMPTY}.conf").write_text("mech_list: NONE\n")
        try:
            plugins.configure(RouterFacts("QDR.A", sasl_config_dir=str(folder), sasl_config_name=EMPTY))
        except ConfigurationRefused:
            pass
        else:
            return "not refused"
    try:
        plugins.configure(RouterFacts("QDR.A", sasl_config_dir=str(folder), sasl_config_name=NAME))
    except ConfigurationRefused as error:
        return str(error)
    exchange = plugins.open_sasl("PLAIN", peer_of("PLAIN"))
    assert exchange is not None
    answer = trio.run(exchange.respond, plain("alice", "wonderland"))
    del kept
    return repr(answer)


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]), sys.argv[2]))
