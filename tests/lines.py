"""Network namespaces, and lines between them that delay or lose packets, or are cut in one direction or both.

Each end of a line is a TUN device, and a thread carries the packets, so that routers use the kernel's TCP over it. `tc
netem` does the same, but only some kernels have it; here the lost packets also follow from a seed.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TUN = Path("/dev/net/tun")
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_MAX_PACKET = 65536
#: Seconds that a packet is delayed so that others overtake it.
_OVERTAKEN_S = 0.02
_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str:
    """Return the reason why this machine cannot have such lines; "" if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "`ip` is missing (Debian: iproute2)"
    try:
        os.close(os.open(_TUN, os.O_RDWR))
        Namespace().close()
    except OSError as failure:
        return f"this machine has no network namespaces with TUN devices: {failure}"
    return ""


def _call(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Namespace:
    """A network namespace with a working loopback interface."""

    def __init__(self) -> None:
        with _here() as back:
            _call(_libc.unshare(_CLONE_NEWNET))
            try:
                self._fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
                _ip("link", "set", "lo", "up")
            finally:
                _call(_libc.setns(back, _CLONE_NEWNET))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Run the block in the namespace, with the sockets of this thread and the processes that it starts."""
        with _here() as back:
            _call(_libc.setns(self._fd, _CLONE_NEWNET))
            try:
                yield
            finally:
                _call(_libc.setns(back, _CLONE_NEWNET))

    def close(self) -> None:
        """Release the namespace; the kernel removes it after its last process and socket."""
        os.close(self._fd)


@contextmanager
def _here() -> Iterator[int]:
    fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Line:
    """A line between two namespaces; ``addresses`` are those of its ends.

    ``delay_s``, ``loss`` and ``reorder`` (0 to 1) and ``rate`` (bytes a second; 0 for no limit) apply to packets in
    both directions, ``dead`` to those from the one end and from the other.
    """

    def __init__(self, number: int, one: Namespace, other: Namespace) -> None:
        self.addresses = (f"10.201.{number}.1", f"10.201.{number}.2")
        self.delay_s = 0.0
        self.loss = 0.0
        self.reorder = 0.0
        self.rate = 0
        self.dead = [False, False]
        #: Count of packets lost by chance.
        self.lost = 0
        self._dice = random.Random(number)
        self._fds = [
            _device(f"line{number}", namespace, mine, theirs)
            for namespace, mine, theirs in (
                (one, self.addresses[0], self.addresses[1]),
                (other, self.addresses[1], self.addresses[0]),
            )
        ]
        self._over, self._end = os.pipe()
        self._carrier = threading.Thread(target=self._carry, daemon=True)
        self._carrier.start()

    def cut(self) -> None:
        """Cut the line in both directions."""
        self.dead = [True, True]

    def mend(self) -> None:
        """Remove all delays and losses."""
        self.dead = [False, False]
        self.delay_s = self.loss = self.reorder = 0.0
        self.rate = 0

    def close(self) -> None:
        """Remove the devices."""
        os.close(self._end)
        self._carrier.join()
        for fd in (*self._fds, self._over):
            os.close(fd)

    def _carry(self) -> None:
        under_way: list[tuple[float, int, int, bytes]] = []
        count = 0
        free_s = [0.0, 0.0]
        while True:
            wait_s = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
            ready = select.select([*self._fds, self._over], [], [], wait_s)[0]
            if self._over in ready:
                return
            for end, fd in enumerate(self._fds):
                if fd in ready:
                    packet = os.read(fd, _MAX_PACKET)
                    if self._dice.random() < self.loss:
                        self.lost += 1
                    elif not self.dead[end]:
                        count += 1
                        leaves_s = max(time.monotonic(), free_s[end])
                        free_s[end] = leaves_s + (len(packet) / self.rate if self.rate else 0.0)
                        late_s = _OVERTAKEN_S if self._dice.random() < self.reorder else 0.0
                        arrives_s = free_s[end] + self.delay_s + late_s
                        heapq.heappush(under_way, (arrives_s, count, self._fds[1 - end], packet))
            while under_way and under_way[0][0] <= time.monotonic():
                os.write(under_way[0][2], under_way[0][3])
                heapq.heappop(under_way)


def _device(name: str, namespace: Namespace, mine: str, theirs: str) -> int:
    with namespace.inside():
        fd = os.open(_TUN, os.O_RDWR)
        fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH14x", name.encode(), _IFF_TUN | _IFF_NO_PI))
        _ip("address", "add", mine, "peer", theirs, "dev", name)
        _ip("link", "set", name, "up")
    return fd
