"""Scenarios of one router under load: full disks, no descriptors, a stopped receiver, moved clocks, new rules."""

from __future__ import annotations

import re
import resource
import shutil
import socket
import ssl
from contextlib import AsyncExitStack, ExitStack

import trio

from tests.routers import DEADLINE_S
from tests.waiting import until
from trouter.client import connect
from trouter.records.check import check_folder

from .traffic import Traffic, run_blocking
from .worlds import World

DAY_S = 86_400


async def log_disk_full(world: World, traffic: Traffic) -> None:
    """The disk of the logs is full for some time: messages flow on, and each line that is lost is counted."""
    disk = world.disks["logs"]
    await traffic.until(0.3)
    disk.fill()
    traffic.fault()
    await traffic.until_recovered()
    await traffic.until(0.6)
    disk.make_room()
    await traffic.until(0.8)
    gaps = re.findall(r"(\d+) log lines? could not be written", (disk.folder / "messages.log").read_text())
    assert sum(map(int, gaps)) > 0


async def records_disk_full(world: World, traffic: Traffic) -> None:
    """The disk of the records is full for some time: messages flow on, and each lost record is counted."""
    disk, router = world.disks["records"], world.sites["R"].router
    await traffic.until(0.3)
    assert not router.matching("cannot write records into")
    disk.fill()
    traffic.fault()
    await traffic.until_recovered()
    await run_blocking(router.wait_for_line, "cannot write records into")
    await traffic.until(0.6)
    disk.make_room()
    await run_blocking(router.wait_for_line, "writing records into .* again; [1-9][0-9]* were dropped")
    report = check_folder(disk.folder / "records")
    assert (report.errors, report.records > 0) == ([], True)


async def no_descriptors_left(world: World, traffic: Traffic) -> None:
    """The router may open no more descriptors: it refuses new clients, keeps the connected ones, and recovers."""
    site = world.sites["R"]
    await traffic.until(0.3)
    before = resource.prlimit(site.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(site.pid, resource.RLIMIT_NOFILE, (site.router.open_files(), before[1]))
    traffic.fault()
    with ExitStack() as crowd:
        for _ in range(20):
            crowd.enter_context(socket.create_connection(("127.0.0.1", site.ports[0]), DEADLINE_S))
        await traffic.until_recovered()
        await traffic.until(0.6)
    resource.prlimit(site.pid, resource.RLIMIT_NOFILE, before)
    with trio.fail_after(DEADLINE_S):
        async with connect(site.url) as newcomer, newcomer.open_receiver("newcomers"):
            pass


async def reader_stops(world: World, traffic: Traffic) -> None:
    """A receiver takes messages up to its credit and settles none; then its connection ends."""
    await traffic.until(0.3)
    async with AsyncExitStack() as stack:
        lazy = await stack.enter_async_context(connect(world.sites["R"].url))
        await stack.enter_async_context(lazy.open_receiver(traffic.address, credit=50))
        traffic.fault()
        await traffic.until_recovered()
        await traffic.until(0.6)
    await traffic.until(0.8)


async def clock_steps(world: World, traffic: Traffic) -> None:
    """The system clock moves a day ahead, two days back, and to the right time again."""
    assert world.clock is not None
    for share, ahead_s in ((0.2, DAY_S), (0.4, -DAY_S), (0.6, 0)):
        await traffic.until(share)
        world.clock.set_ahead(ahead_s, 0)
        traffic.fault()
        await traffic.until_recovered()


async def policy_reloaded(world: World, traffic: Traffic) -> None:
    """The configuration is reloaded ten times, each time with another limit of the vhost."""
    site = world.sites["R"]
    text = site.file.read_text()
    for number in range(1, 11):
        await traffic.until(number / 12)
        site.file.write_text(text.replace("maxConnections: 100", f"maxConnections: {100 + number}"))
        traffic.fault()
        await run_blocking(site.reload)
        await traffic.until_recovered()


async def certificate_renewed(world: World, traffic: Traffic) -> None:
    """The router's certificate is replaced on the disk, and the next handshake uses it."""
    assert world.authority is not None
    await traffic.until(0.3)
    await _renew(world, days=30)
    traffic.fault()
    await traffic.until_recovered()


async def certificate_expires(world: World, traffic: Traffic) -> None:
    """The router's certificate expires: clients keep their connections, new clients refuse it until it is replaced."""
    await traffic.until(0.2)
    await _renew(world, days=8 / DAY_S)
    traffic.fault()
    await run_blocking(until, lambda: _serial(world) is None, "the end of the certificate")
    await traffic.until_recovered()
    await _renew(world, days=30)
    await traffic.until(0.8)


async def _renew(world: World, days: float) -> None:
    assert world.authority is not None
    assert world.pair is not None
    fresh = world.authority.issue("CN=localhost", "localhost", days=days)
    shutil.copy(fresh.key, world.pair.key)
    shutil.copy(fresh.cert, world.pair.cert)
    serial = f"{fresh.certificate.serial_number:X}"
    await run_blocking(until, lambda: int(_serial(world) or "0", 16) == int(serial, 16), "the new certificate")


def _serial(world: World) -> str | None:
    """Return the serial number of the router's certificate, in hexadecimal; None if a client refuses it."""
    try:
        with (
            socket.create_connection(("127.0.0.1", world.sites["R"].ports[1]), DEADLINE_S) as plain,
            world.trust().wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            shown = secure.getpeercert()
    except ssl.SSLCertVerificationError:
        return None
    assert shown is not None
    return str(shown["serialNumber"])
