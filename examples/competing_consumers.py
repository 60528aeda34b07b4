"""Share the jobs of one address between two workers: each job is done once.

trouter run
python examples/competing_consumers.py [URL]
"""

import sys
from collections import Counter

import trio

from trouter.client import Connection, Message, connect

URL = sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1:5672"
JOBS = 20
done: Counter[str] = Counter()


async def work(connection: Connection, name: str, task_status: trio.TaskStatus[None]) -> None:
    async with connection.open_receiver("jobs", credit=2) as receiver:
        task_status.started()
        async for delivery in receiver:
            await trio.sleep(0.01)  # the work; a busy worker has no credit, so the other one gets the job
            done[name] += 1
            await delivery.accept()


async def main() -> None:
    async with connect(URL) as connection, trio.open_nursery() as nursery:
        for name in ("Ann", "Bob"):
            await nursery.start(work, connection, name)
        async with connection.open_sender("jobs") as sender:
            async for _ in sender.send_all(Message(number) for number in range(JOBS)):
                pass
        print(f"{done.total()} jobs were done by {' and '.join(sorted(done))}")
        nursery.cancel_scope.cancel()


trio.run(main)
