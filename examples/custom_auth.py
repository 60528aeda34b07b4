"""Log in with a plugin's mechanism (examples/plugins/house_keys.py); the plugin refuses a wrong key.

PYTHONPATH=examples/plugins trouter run -c examples/custom_auth.conf
python examples/custom_auth.py [URL]
"""

import sys

import trio

from trouter.client import AuthenticationFailed, connect

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"


class HouseKey:
    """The client's half of the mechanism."""

    name = "HOUSE-KEY"

    def __init__(self, user: str, key: str) -> None:
        self._response = f"{user}\0{key}".encode()

    async def start(self) -> bytes | None:
        """Return the initial response."""
        return self._response

    async def respond(self, challenge: bytes) -> bytes:
        """Answer a challenge; the plugin sends none."""
        return self._response


async def main() -> None:
    for key in ("blue-key", "red-key"):
        try:
            async with connect(URL, sasl=[HouseKey("ann", key)]) as connection:
                print(f"{key}: connected to {connection.remote.container_id}")
        except AuthenticationFailed:
            print(f"{key}: refused")


trio.run(main)
