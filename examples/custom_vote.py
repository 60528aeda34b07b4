"""Let a plugin vote on each link (examples/plugins/read_only.py): clients may read the archive but not write to it.

PYTHONPATH=examples/plugins trouter run -c examples/custom_vote.conf
python examples/custom_vote.py [URL]
"""

import sys

import trio

from trouter.client import LinkDetached, connect

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"


async def main() -> None:
    async with connect(URL) as connection:
        async with connection.open_sender("orders"), connection.open_receiver("archive/2026"):
            print("orders are written, the archive is read")
        try:
            async with connection.open_sender("archive/2026"):
                print("the archive is written")
        except LinkDetached as refused:
            print(f"archive/2026: {refused.condition}")


trio.run(main)
