"""An authentication service for `saslPlugin`: users and their rights, from a JSON file (docs/auth-service.md).

python examples/auth_service.py hash            # reads a password, prints its hash for the file
python examples/auth_service.py serve users.json [--host H] [--port P] [--certificate FILE --key FILE]

{"alice": {"password": "scrypt$...", "rights": {"orders/*": ["send", "recv"], "${user}/inbox": ["recv"]}}}
"""

import argparse
import hashlib
import hmac
import json
import os
import ssl
import sys
from getpass import getpass
from pathlib import Path

import trio

from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionOpened, SaslInitReceived, SaslResponseReceived
from trouter.engine.limits import EngineLimits
from trouter.engine.sasl import SASL_AUTH, SASL_OK, SASL_SYS_TEMP, SaslServer
from trouter.wire.performatives import Open
from trouter.wire.types import Array

LIMITS = EngineLimits(max_frame_bytes=65536, max_sasl_frame_bytes=4096, idle_timeout_s=0)
#: Seconds after which the service drops a router that has not finished a login.
LONGEST_S = 30
#: Passwords checked at once: each check takes 16 MiB and all of a core.
CHECKS = 4
SCRYPT = {"n": 2**14, "r": 8, "p": 1}
#: A hash to compare the password of an unknown user with, so that the answer takes as long as for a known one.
NOBODY = "scrypt$00000000000000000000000000000000$" + "00" * 64


def hashed(password: bytes, salt: bytes) -> str:
    """Return a password as it is written in the file."""
    return f"scrypt${salt.hex()}${hashlib.scrypt(password, salt=salt, **SCRYPT).hex()}"


def check(path: Path, response: bytes) -> tuple[str, dict[str, list[str]]] | None:
    """Return the user and the rights for a PLAIN response, None if refused. It reads the file anew each time."""
    parts = response.split(b"\0")
    if len(parts) != 3 or parts[0] not in (b"", parts[1]) or not all(parts[1:]):
        return None
    user = json.loads(path.read_text(encoding="utf-8")).get(parts[1].decode(errors="replace"))
    known = NOBODY if user is None else user["password"]
    right = hmac.compare_digest(hashed(parts[2], bytes.fromhex(known.split("$")[1])), known)
    return (parts[1].decode(), user.get("rights", {})) if right and user is not None else None


class Service:
    """The service of the routers that connect."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.limiter = trio.CapacityLimiter(CHECKS)

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one login: SASL, an open with the user, and the end of the connection by the router."""
        sasl = SaslServer(("PLAIN",), required=True)
        opening = Open(container_id="auth-service")
        engine = Connection(LIMITS, opening, [], sasl, server=True)
        try:
            with trio.move_on_after(LONGEST_S):
                while not engine.finished:
                    data = await stream.receive_some(65536)
                    if not data:
                        return
                    engine.receive_data(bytes(data))
                    while engine.events:
                        event = engine.events.pop(0)
                        if isinstance(event, SaslInitReceived | SaslResponseReceived):
                            await self.answer(sasl, opening, event)
                            engine.receive_data(b"")
                        elif isinstance(event, ConnectionOpened):
                            engine.open()
                    await stream.send_all(bytes(engine.out))
                    engine.out.clear()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the router disconnected
        finally:
            await trio.aclose_forcefully(stream)

    async def answer(self, sasl: SaslServer, opening: Open, event: SaslInitReceived | SaslResponseReceived) -> None:
        """Accept or refuse a login; after an accepted one the open has the user and the rights."""
        if event.response is None:
            sasl.send_challenge(b"")
            return
        try:
            found = await trio.to_thread.run_sync(check, self.path, event.response, limiter=self.limiter)
        except (OSError, ValueError, KeyError, AttributeError, IndexError) as error:
            print(f"{self.path} is of no use: {error!r}", file=sys.stderr)
            sasl.send_outcome(SASL_SYS_TEMP)  # not the user's fault: the client may try again later
            return
        if found is None:
            sasl.send_outcome(SASL_AUTH)
            return
        user, rights = found
        opening.properties = {
            "authenticated-identity": {"sub": user},
            "address-authz": {address: Array("string", words) for address, words in rights.items()},
        }
        sasl.send_outcome(SASL_OK)


async def serve(options: argparse.Namespace) -> None:
    service = Service(options.users)
    listeners = await trio.open_tcp_listeners(options.port, host=options.host)
    host, port = listeners[0].socket.getsockname()[:2]
    print(f"listening on {host}:{port}", flush=True)
    if options.certificate is None:
        await trio.serve_listeners(service.serve, listeners)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        await trio.serve_listeners(service.serve, [trio.SSLListener(each, context) for each in listeners])


def main() -> None:
    parser = argparse.ArgumentParser(description="An authentication service.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("hash", help="read a password and print its hash")
    serving = commands.add_parser("serve", help="answer routers")
    serving.add_argument("users", type=Path, help="the users and their rights, a JSON file")
    serving.add_argument("--host", default="127.0.0.1", help="where to listen")
    serving.add_argument("--port", type=int, default=5680, help="the port, 0 for any")
    serving.add_argument("--certificate", type=Path, help="speak TLS with this certificate (PEM)")
    serving.add_argument("--key", type=Path, help="its key, if it stands in another file")
    options = parser.parse_args()
    if options.command == "hash":
        password = getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        print(hashed(password.encode(), os.urandom(16)))
    else:
        trio.run(serve, options)


if __name__ == "__main__":
    main()
