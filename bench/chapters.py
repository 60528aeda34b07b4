"""The chapters of the bench, each with its own servers; each load has its target beside it."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.rabbitmq import V3, V4
from trouter.load.led import Led
from trouter.load.plan import Load
from trouter.tools.options import ConnectionOptions

from . import areas as whole_areas
from . import balanced, flooding, policies, strangers, syncing
from . import failing as failures
from . import fleet as fleets
from . import greeting as greetings
from . import guessing as guesses
from . import joining as joined
from . import managing as managed
from . import paths as ways
from . import sessions as flood
from .floods import FLOODS, OTHER_FLOODS
from .measure import (
    Sample,
    Spread,
    handshakes,
    interleaved,
    into,
    measured_apart,
    pair,
    pair_across,
    pair_through,
    ratios,
)
from .plan import Extent
from .results import Figure, Results
from .servers import Epmd, HAProxy, ProtonBroker, Rabbit, Router, Server, free_port
from .shares import NoShares, limited

KILO: Final = 1024
#: The part of a core that each process of a router gets where its clients must not be the limit.
SHARE: Final = 0.25
HAPROXY_SINK: Final = "HAProxy to a sink"
HAPROXY_ROUTER: Final = "HAProxy to the router"
#: Messages a second that two routers in line carry at least: the time of a run becomes a count by it.
LINE_RATES: Final = (100_000, 10_000, 200)
#: Connections of a receiver that listens on all addresses of the addresses chapter.
_RECEIVERS: Final = 4
#: Seconds of the hello measurement.
_HELLO_S: Final = 60.0
#: Seconds for which a great many clients send.
_CROWD_S: Final = 20.0
#: Descriptors that a process needs for itself.
_OWN_DESCRIPTORS: Final = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A load, and the target: how many times the proxy's CPU the router may use for it."""

    name: str
    load: Load
    target: float | None = None
    #: Whether it is a row of the quick bench too.
    quick: bool = False
    #: Whether RabbitMQ runs it too.
    rabbit: bool = False


SMALL: Final = Load()
ROWS: Final = (
    Row("100 B", SMALL, 3.0, quick=True, rabbit=True),
    Row("10 kB", replace(SMALL, size=10_000), 2.0, quick=True, rabbit=True),
    Row("1 MB", replace(SMALL, size=1_000_000, window=10), 1.7, quick=True, rabbit=True),
    Row("100 B, window 1", replace(SMALL, window=1, latency=True), 2.5, quick=True, rabbit=True),
    Row("100 B, window 10", replace(SMALL, window=10, latency=True)),
    Row("10 kB, window 1", replace(SMALL, size=10_000, window=1, latency=True)),
    Row("1 MB, window 1", replace(SMALL, size=1_000_000, window=1, latency=True)),
    Row("100 B, pre-settled", replace(SMALL, presettled=True)),
    Row("10 kB, pre-settled", replace(SMALL, size=10_000, presettled=True)),
    Row("100 B, 10 pairs", replace(SMALL, connections=10, addresses=10), quick=True),
    Row("100 B, 100 pairs", replace(SMALL, connections=100, addresses=100)),
    Row("10 kB, 10 pairs", replace(SMALL, size=10_000, connections=10, addresses=10)),
)


@dataclass(slots=True)
class Bench:
    """The state that the chapters share."""

    extent: Extent
    folder: Path
    results: Results
    say: Callable[[str], None]
    _folders: int = 0

    def new_folder(self, name: str) -> Path:
        """Return the path of a folder for one server."""
        self._folders += 1
        return self.folder / f"{self._folders}-{name}"

    def router(self, *, pure: bool = False, more: str = "") -> Router:
        return Router(self.new_folder("router"), pure=pure, more=more)

    def interleave(self, row: str, subjects: dict[str, Callable[[], Sample]]) -> dict[str, list[Sample]]:
        """Measure a row and store it; return the samples."""
        self.say(row)
        return self.results.add(row, interleaved(self.extent.repetitions, subjects))

    def figure(
        self, name: str, value: Spread, unit: str, target: float | None = None, *, at_least: bool = False
    ) -> None:
        self.results.figures.append(Figure(name, value, unit, target, at_least))

    def remark(self, text: str) -> None:
        self.results.remarks.append(text)
        self.say(f"  {text}")


@contextmanager
def proxied_sink(bench: Bench) -> Iterator[HAProxy]:
    """Run HAProxy with the load generator's own sink behind it, which behaves as the router does towards a sender."""
    with Led("sink", Load(port=0, session_frames=0)) as sink:
        port = sink.ready()["port"]
        sink.send_go()
        with HAProxy(bench.new_folder("haproxy"), port) as proxy:
            yield proxy


def against_haproxy(bench: Bench) -> None:
    """Compare the router with the copying of the same bytes: sizes, windows, pairs, settlement.

    The router receives a message on one connection, sends it on another, and returns an outcome; the proxy copies the
    same with a sender's one connection. The server behind the proxy sets the pace: a sink answers at once, so the proxy
    copies large pieces; a router makes it copy pieces of the sizes that the router itself gets.
    """
    with ExitStack() as stack:
        router = stack.enter_context(bench.router())
        to_router = stack.enter_context(HAProxy(bench.new_folder("haproxy"), router.port))
        to_sink = stack.enter_context(proxied_sink(bench))
        taken: dict[str, list[Sample]] = {}
        for row in ROWS:
            if row.quick or bench.extent.everything:
                load = replace(row.load, seconds=bench.extent.seconds)
                samples = bench.interleave(
                    row.name,
                    {
                        "router": partial(pair, router, load),
                        HAPROXY_SINK: partial(into, to_sink, load),
                        HAPROXY_ROUTER: partial(pair_through, to_router, router, load),
                    },
                )
                taken[row.name] = samples["router"]
                for proxy in (HAPROXY_SINK, HAPROXY_ROUTER):
                    value = ratios(samples["router"], samples[proxy])
                    bench.figure(f"{row.name}: CPU to that of {proxy}", value, "x", row.target)
        one, ten = taken["100 B"], taken["100 B, 10 pairs"]
        bench.figure("ten pairs: CPU to one pair's", ratios(ten, one), "x", 1.3)


def against_rabbitmq(bench: Bench) -> None:
    """Compare the router with RabbitMQ 3.10 and 4.0, which store the messages that the router forwards."""
    for version, cure in ((V3, "Debian: rabbitmq-server"), (V4, "`make rabbitmq4`")):
        if version.missing:
            bench.remark(f"RabbitMQ {version.name} is not installed ({cure}): not measured")
            continue
        with Epmd(bench.new_folder("epmd")) as epmd, Rabbit(bench.new_folder("rabbitmq"), epmd, version) as rabbit:
            for row in ROWS:
                if row.rabbit and (row.quick or bench.extent.everything):
                    load = replace(row.load, seconds=bench.extent.seconds, address=f"{version.queue}bench")
                    bench.interleave(row.name, {f"RabbitMQ {version.name}": partial(pair, rabbit, load)})


def against_proton(bench: Bench) -> None:
    """Compare the router with the example broker of Qpid Proton for Python, which keeps messages in memory."""
    if not ProtonBroker.PROGRAM.exists():
        bench.remark("the example broker is not installed (Debian: libqpid-proton11-dev-examples): not measured")
        return
    with ProtonBroker(bench.new_folder("proton")) as broker, bench.router() as router:
        for row in ROWS[:3]:
            load = replace(row.load, seconds=bench.extent.seconds)
            subjects: dict[str, Callable[[], Sample]] = {
                "python-qpid-proton's broker": partial(pair, broker, load),
                "router": partial(pair, router, load),
            }
            theirs, mine = bench.interleave(f"{row.name}, proton", subjects).values()
            bench.figure(f"{row.name}: CPU of python-qpid-proton's broker to the router's", ratios(theirs, mine), "x")


def twins(bench: Bench) -> None:
    """Compare the interpreted twin with the compiled one."""
    with bench.router() as compiled, bench.router(pure=True) as interpreted:
        load = replace(SMALL, seconds=bench.extent.seconds)
        samples = bench.interleave(
            "100 B, twins",
            {"interpreted": partial(pair, interpreted, load), "router": partial(pair, compiled, load)},
        )
        bench.figure("interpreted: CPU to the compiled twin's", ratios(*samples.values()), "x", 6.0)


def many_addresses(bench: Bench) -> None:
    """Measure an anonymous sender with receivers for one, a thousand and very many addresses; then one address."""
    extent = bench.extent
    many = extent.addresses
    if not extent.everything:
        bench.remark(f"addresses: {many:,} in place of 100,000 in the quick bench")
    with ExitStack() as stack:
        subjects: dict[str, Callable[[], Sample]] = {}
        for count in (1, 1_000, many):
            router = stack.enter_context(bench.router())
            load = Load(anonymous=True, addresses=count, seconds=extent.seconds)
            receive(stack, router, load)
            subjects[f"{count:,} used"] = partial(into, router, load)
        samples = bench.interleave("100 B, anonymous, addresses", subjects)
        one, thousand, all_of_them = samples.values()
        bench.figure("1,000 addresses used: CPU to one's", ratios(thousand, one), "x", 1.1)
        bench.figure(f"{many:,} addresses used: CPU to one's", ratios(all_of_them, one), "x", 1.1)
        # The router with very many addresses has one more, with a pair of its own.
        alone = stack.enter_context(bench.router())
        load = replace(SMALL, address="one-more", seconds=extent.seconds)
        samples = bench.interleave(
            "100 B, addresses known",
            {f"{many:,} known": partial(pair, router, load), "1 known": partial(pair, alone, load)},
        )
        bench.figure(f"{many:,} addresses known, one used: CPU to one's", ratios(*samples.values()), "x", 1.1)


def receive(stack: ExitStack, router: Router, load: Load) -> None:
    """Run receivers on every address of ``load``, until the stack is closed."""
    everywhere = Load(port=router.port, addresses=load.addresses, connections=_RECEIVERS)
    receiver = stack.enter_context(Led("receive", everywhere))
    receiver.ready()
    receiver.send_go()


def idle_connections(bench: Bench) -> None:
    """Measure the router's resident memory per idle connection, without the kernel's memory."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OWN_DESCRIPTORS
    count = min(bench.extent.connections, limit)
    if count < 5_000:
        why = "descriptor limit" if count == limit else "quick bench"
        bench.remark(f"idle connections: {count:,} in place of 5,000 ({why})")
    for name, bare, target in (("connection", True, 12.0), ("connection with session and link", False, None)):
        bench.say(f"{count:,} idle: {name}")
        with bench.router() as router:
            load = Load(port=router.port, connections=count, addresses=count, bare=bare, credit=10)
            pair(router, Load(count=1))
            before = router.memory("VmRSS")
            with Led("hold", load) as held:
                held.ready()
                grown = (router.memory("VmRSS") - before) / count / KILO
                cpu_ns = router.cpu_ns()
                time.sleep(bench.extent.idle_seconds)
                idle = (router.cpu_ns() - cpu_ns) / 1e9 / bench.extent.idle_seconds * 100
                held.send_go()
        bench.figure(f"idle {name}: memory", Spread(grown, grown, grown), "kB", target)
        bench.figure(f"{count:,} idle ({name}): CPU", Spread(idle, idle, idle), "% of a core")


def connecting(bench: Bench) -> None:
    """Measure connections that are opened (TCP, SASL, open) and closed, one after the other and several at a time."""
    with bench.router() as router:
        samples = bench.interleave("handshakes", {"router": partial(handshakes, router, bench.extent.seconds)})
    bench.figure("handshakes", Spread.of([sample.per_second for sample in samples["router"]]), "a second")
    bench.figure("handshake: router CPU", Spread.of([sample.cpu_us for sample in samples["router"]]), "us")


def clients(bench: Bench) -> None:
    """Measure a great many clients, half of which send a message a second to the other half, each to another one."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - _OWN_DESCRIPTORS
    pairs = min(10_000, limit // 2) if bench.extent.everything else 1_000
    load = Load(
        connections=pairs,
        addresses=pairs,
        rate=pairs,
        window=10,
        credit=10,
        latency=True,
        seconds=_CROWD_S if bench.extent.everything else bench.extent.idle_seconds,
    )
    name = f"{2 * pairs:,} clients, {pairs:,} messages a second"
    bench.say(name)
    with bench.router() as router:
        before = router.memory("VmRSS")
        sample = pair(router, load, settle=settle_down)
        grown = (router.memory("VmHWM") - before) / (2 * pairs) / KILO
    share = sample.cpu_us * sample.per_second / 1e6 * 100
    for what, value, unit, target in (
        ("slowest hundredth of the messages", (sample.slow_latency_us or 0.0) / 1e3, "ms", 20.0),
        ("CPU", share, "% of a core", 60.0),
        ("memory of a client", grown, "kB", None),
    ):
        bench.figure(f"{name}: {what}", Spread.of([value]), unit, target)


def over_tls(bench: Bench) -> None:
    """Compare a router whose clients use TLS 1.3 with one in clear, and with HAProxy that decrypts and encrypts."""
    folder = bench.new_folder("tls")
    folder.mkdir(parents=True)
    port = free_port()
    listener = (
        f"listener {{\n host: 127.0.0.1\n port: {port}\n sslProfile: bench\n requireSsl: yes\n authenticatePeer: no\n"
    )
    listener += " saslMechanisms: ANONYMOUS\n linkCapacity: 1000\n maxUnsettled: 1000000\n}\n"
    profile = greetings.secured(folder, port).partition("\nlistener")[0]
    certificate, both = folder / "cert.pem", folder / "both.pem"
    both.write_bytes(certificate.read_bytes() + (folder / "key.pem").read_bytes())
    login = ConnectionOptions(tls=True, trust_file=str(certificate), verify_name=False)
    with (
        bench.router() as clear,
        Router(bench.new_folder("router"), more=f"{profile}\n{listener}") as secured,
        HAProxy(bench.new_folder("haproxy"), port, both) as proxy,
    ):
        secured.port = port
        for row in (*ROWS[:4], ROWS[7]):
            load = replace(row.load, seconds=bench.extent.seconds)
            cipher = replace(load, login=login)
            samples = bench.interleave(
                f"{row.name}, TLS",
                {
                    "router, TLS": partial(pair, secured, cipher),
                    "router": partial(pair, clear, load),
                    "HAProxy, TLS both sides": partial(pair_through, proxy, secured, cipher),
                },
            )
            mine, plain, theirs = samples.values()
            bench.figure(f"{row.name}, TLS: CPU to that in clear", ratios(mine, plain), "x")
            bench.figure(f"{row.name}, TLS: CPU to HAProxy's", ratios(mine, theirs), "x")


def workers(bench: Bench) -> None:
    """Compare two workers with one process: ten pairs, whose clients come to either worker, and handshakes.

    On a machine whose cores the clients share, the clients are the limit. So the messages/s are compared once more
    with a quarter of a core for each process of the routers: they use all of it if the clients are not the limit.
    """
    with bench.router() as alone, Router(bench.new_folder("router"), own="workers: 2", mode="interior") as both:
        for row in (ROWS[9], ROWS[11]):
            load = replace(row.load, seconds=bench.extent.seconds)
            samples = bench.interleave(
                f"{row.name}, workers", {"two workers": partial(pair, both, load), "router": partial(pair, alone, load)}
            )
            two, one = samples.values()
            bench.figure(f"{row.name}, two workers: CPU to one process's", ratios(two, one), "x", 1.25)
            note_cores(bench, row.name, samples)
            gains(bench, f"{row.name}, two workers: messages/s to one process's", two, one)
            try:
                with limited(alone, SHARE), limited(both, SHARE):
                    samples = bench.interleave(
                        f"{row.name}, workers with {SHARE:g} of a core each",
                        {"two workers": partial(pair, both, load), "router": partial(pair, alone, load)},
                    )
            except NoShares as error:
                bench.remark(f"not measured with {SHARE:g} of a core for each worker: {error}")
                continue
            two, one = samples.values()
            note_cores(bench, f"{row.name}, {SHARE:g} of a core each", samples)
            name = f"{row.name}, two workers with {SHARE:g} of a core each: messages/s to one process's"
            gains(bench, name, two, one, 1.6)
        for at_once, name in ((16, "handshakes"), (64, "handshakes, 64 at a time")):
            samples = bench.interleave(
                f"{name}, workers",
                {
                    subject: partial(handshakes, router, bench.extent.seconds, at_once)
                    for subject, router in (("two workers", both), ("router", alone))
                },
            )
            bench.figure(f"{name}, two workers: CPU to one process's", ratios(*samples.values()), "x", 1.25)


def note_cores(bench: Bench, name: str, samples: dict[str, list[Sample]]) -> None:
    """Note how many cores each subject used."""
    for subject, found in samples.items():
        cores = [each.cpu_us * each.per_second / 1e6 for each in found]
        bench.figure(f"{name}, {subject}: cores in use", Spread.of(cores), "")


def gains(bench: Bench, name: str, over: list[Sample], under: list[Sample], target: float | None = None) -> None:
    """Note how many messages a second one subject passes for each of another."""
    faster = [mine.per_second / other.per_second for mine, other in zip(over, under, strict=True)]
    bench.figure(name, Spread.of(faster), "x", target, at_least=True)


def one_gigabyte(bench: Bench) -> None:
    """Measure a message that is larger than any buffer."""
    bench.say("a message of 1 GB")
    grown = []
    for _ in range(bench.extent.repetitions if bench.extent.everything else 1):
        with bench.router() as router:
            pair(router, Load(count=1))
            before = router.memory("VmRSS")
            router.forget_peak()
            pair(router, Load(size=10**9, count=1))
            grown.append((router.memory("VmHWM") - before) / KILO**2)
    bench.figure("a message of 1 GB: peak memory growth", Spread.of(grown), "MB", 16.0)


def stalled_neighbour(bench: Bench) -> None:
    """Measure a pair alone in its router, and beside a pair whose receiver stopped settling long ago."""
    with bench.router() as quiet, bench.router() as troubled, ExitStack() as stack:
        stalled = Load(port=troubled.port, address="stalled", size=10_000, stalled=True)
        for role in ("receive", "send"):
            fleet = stack.enter_context(Led(role, stalled))
            stack.callback(fleet.kill)
            fleet.ready()
            fleet.send_go()
        settle_down(troubled)
        load = replace(SMALL, seconds=bench.extent.seconds)
        samples = bench.interleave(
            "100 B, stalled neighbour",
            {"beside it": partial(pair, troubled, load), "alone": partial(pair, quiet, load)},
        )
    beside, alone = samples.values()
    speed = Spread.of([one.per_second / other.per_second for one, other in zip(beside, alone, strict=True)])
    bench.figure("beside a stalled receiver: messages/s to those without", speed, "x", 0.95, at_least=True)
    bench.figure("beside a stalled receiver: CPU to that without", ratios(beside, alone), "x", 1.05)


def managing(bench: Bench) -> None:
    """Measure a start, listings of 10,000 links while messages flow, and scrapes with 10,000 connections open."""
    bench.say("start")
    starts = [managed.start_s(bench.new_folder("start")) - managed.interpreter_s() for _ in range(5)]
    bench.figure("start to ready, without the interpreter's own start", Spread.of(starts), "s", 0.5)
    bench.say(f"{managed.LINKS:,} links listed under half the load")
    with bench.router() as router, managed.listed(router):
        load = managed.half_load(router, replace(SMALL, port=router.port, seconds=bench.extent.seconds))
        shares, times = [], []
        for _ in range(bench.extent.repetitions):
            alone, _ = managed.loaded(router, load, listing=False)
            beside, took_s = managed.loaded(router, load, listing=True)
            shares.append(beside / alone)
            times += took_s
    bench.figure(f"listing of {managed.LINKS:,} links under half the load", Spread.of(times), "s", 1.0)
    bench.figure("messages/s during listings to those without", Spread.of(shares), "x", 0.9, at_least=True)
    count = min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OWN_DESCRIPTORS)
    bench.say(f"scrapes with {count:,} connections")
    with (
        managed.WatchedRouter(bench.new_folder("router")) as router,
        Led("hold", Load(port=router.port, connections=count, addresses=count, credit=10)) as held,
    ):
        held.ready()
        scrapes = [managed.scrape_s(router.metrics_port) * 1e3 for _ in range(10)]
        held.send_go()
    bench.figure(f"/metrics with {count:,} connections", Spread.of(scrapes), "ms", 100.0)


def policy(bench: Bench) -> None:
    """Measure a policy of very many vhosts: loading, decisions at open and attach, and the cost while messages flow."""
    bench.say(f"{policies.VHOSTS:,} vhosts")
    runs = [measured_apart(policies) for _ in range(bench.extent.repetitions)]
    users = policies.VHOSTS * policies.USERS_OF_A_VHOST
    loads = Spread.of([run["load_s"] for run in runs])
    bench.figure(f"{policies.VHOSTS:,} vhosts, {users:,} users: loaded", loads, "s of CPU", 3.0)
    bench.figure("decision at open", Spread.of([run["open_us"] for run in runs]), "us of CPU", 200.0)
    for what in runs[0]["attach_us"]:
        value = Spread.of([run["attach_us"][what] for run in runs])
        bench.figure(f"decision at attach among {policies.ENTRIES:,} entries: {what}", value, "us of CPU", 20.0)
    with bench.router(more=policies.HELD) as held, bench.router() as free:
        load = replace(SMALL, seconds=bench.extent.seconds)
        samples = bench.interleave(
            "100 B, policy", {"held to a policy": partial(pair, held, load), "router": partial(pair, free, load)}
        )
    bench.figure("under a policy: CPU per message to that without", ratios(*samples.values()), "x", 1.05)


def network(bench: Bench) -> None:
    """Measure routers that advertise a great many addresses to each other."""
    bench.say(f"{syncing.ADDRESSES:,} addresses")
    runs = [measured_apart(syncing) for _ in range(bench.extent.repetitions)]
    for what, key in (
        ("that appear at once: known to a neighbour", "told_s"),
        ("known to a router that joins", "joined_s"),
    ):
        bench.figure(f"{syncing.ADDRESSES:,} addresses {what}", Spread.of([run[key] for run in runs]), "s", 5.0)


def networks(bench: Bench) -> None:
    """Measure routers that find each other, that send hellos on a busy machine, and one that dies."""
    for what, name, target in (
        ("two", "two routers join: first message after TCP connects", 100.0),
        ("line", "five routers in line join: first message after TCP connects", 300.0),
        ("triangle", "a router of three is killed: the others list it for", None),
    ):
        bench.say(name)
        runs = [measured_apart(joined, what)[what][0] for _ in range(bench.extent.repetitions)]
        bench.figure(name, Spread.of(runs), "ms", target)
    seconds = _HELLO_S if bench.extent.everything else _HELLO_S / 3
    if not bench.extent.everything:
        bench.remark(f"networks: hellos for {seconds:g} s in place of {_HELLO_S:g} s (quick bench)")
    *off, longest = measured_apart(joined, "hellos", str(seconds))["hellos"]
    bench.figure("hellos on a busy machine: mean period off 1 s by", Spread.of(off), "%", 10.0)
    bench.figure("hellos on a busy machine: longest period", Spread.of([longest]), "s")


def administering(bench: Bench) -> None:
    """Measure what an operator of thirty routers waits for; a command begins with the start of Python."""
    bench.say(f"{fleets.ROUTERS} routers start")
    with fleets.fleet(bench.new_folder) as fleet:
        folder = str(fleet.folder)
        took: dict[str, list[float]] = {"status": [], "check": [], "apply": []}
        for number in range(bench.extent.repetitions):
            took["status"].append(fleet.seconds_of("status"))
            fleet.add_vhost(number)
            took["check"].append(fleet.seconds_of("check", folder))
            took["apply"].append(fleet.seconds_of("apply", folder, "--yes"))
    for command, target in (("status", 1.0), ("check", 5.0), ("apply", 3.0)):
        what = f"{fleets.ROUTERS} routers: `trouter network {command}`"
        bench.figure(f"{what}, of a new vhost" if command != "status" else what, Spread.of(took[command]), "s", target)


def failing(bench: Bench) -> None:
    """Measure the loss of a router on the path of messages that is killed or stops answering."""
    runs = [measured_apart(failures) for _ in range(bench.extent.repetitions)]
    for what, key, unit, target in (
        ("is killed: messages take another way after", "killed_ms", "ms", 100.0),
        ("falls silent: given up after", "noticed_s", "s", 3.0),
        ("was given up: messages take another way after", "resumed_ms", "ms", 200.0),
    ):
        bench.figure(f"a router {what}", Spread.of([run[key] for run in runs]), unit, target)


@contextmanager
def routers_in_line(bench: Bench, python: str = sys.executable) -> Iterator[tuple[Router, Router]]:
    """Run two routers of the environment of ``python`` that have found each other."""
    terms = f"host: 127.0.0.1, port: {free_port()}, role: inter-router, saslMechanisms: ANONYMOUS, linkCapacity: 1000"
    listens, dials = f"listener {{ {terms}, allowInsecureRole: yes }}", f"connector {{ {terms} }}"
    with (
        Router(bench.new_folder("router"), mode="interior", router_id="Near", more=listens, python=python) as near,
        Router(bench.new_folder("router"), mode="interior", router_id="Far", more=dials, python=python) as far,
    ):
        pair_across(near, far, replace(SMALL, count=1000))
        yield near, far


def line(bench: Bench) -> None:
    """Compare a pair on two routers in line with a pair on one: CPU of each router."""
    with routers_in_line(bench) as (near, far), bench.router() as single:
        for row, rate in zip(ROWS[:3], LINE_RATES, strict=True):
            # a count of messages instead of seconds: a router learns of another's new address within a second
            load = replace(row.load, count=int(rate * bench.extent.seconds))
            subjects: dict[str, Callable[[], Sample]] = {
                "two routers": partial(pair_across, near, far, load),
                "one": partial(pair, single, load),
            }
            samples = bench.interleave(f"{row.name}, two routers", subjects)
            target = 1.6 if row.load is SMALL else None
            bench.figure(
                f"{row.name}: CPU of each of two routers to that of one", ratios(*samples.values()), "x", target
            )


def guessing(bench: Bench) -> None:
    """Measure a pair beside a client that tries a thousand passwords a second, at its router or at HAProxy.

    HAProxy closes every connection when it arrives. So both runs contain the cost of the client and the kernel, and the
    difference is the cost of the attempts to the router, except for that of a bare close.
    """
    port = free_port()
    folder = bench.new_folder("guessed")
    folder.mkdir(parents=True)
    own, more = guesses.guarded(folder, port)
    rates: list[float] = []

    def beside(guessed: int, router: Router, load: Load) -> Sample:
        with guesses.guessed_at(guessed) as told:
            sample = pair(router, load)
        if guessed == port:
            rates.extend(told)
        return sample

    with (
        Router(bench.new_folder("router"), own=own, more=more) as troubled,
        bench.router() as quiet,
        HAProxy(bench.new_folder("haproxy"), None) as elsewhere,
    ):
        load = replace(SMALL, seconds=bench.extent.seconds)
        samples = bench.interleave(
            "100 B, somebody guesses",
            {
                "at the router": partial(beside, port, troubled, load),
                "elsewhere": partial(beside, elsewhere.port, quiet, load),
            },
        )
    here, there = samples.values()
    speed = Spread.of([one.per_second / other.per_second for one, other in zip(here, there, strict=True)])
    bench.figure("failed logins meanwhile", Spread.of(rates), "a second", 0.95 * guesses.RATE, at_least=True)
    bench.figure("beside who guesses: messages/s to those beside who does elsewhere", speed, "x", 0.9, at_least=True)
    bench.figure("beside who guesses: CPU to that beside who does elsewhere", ratios(here, there), "x")


def hostile(bench: Bench) -> None:
    """Measure a pair beside connections that send garbage, at its router or at HAProxy; and half-open connections.

    HAProxy is as for passwords. The hostile address is limited like any other, or exempt, so that everything is read.
    """
    share = 1.0 if bench.extent.everything else 0.1
    load = replace(SMALL, seconds=bench.extent.seconds)
    for name, own, target in (("", strangers.GUARDED, 0.9), (", all of it read", strangers.UNGUARDED, None)):
        with (
            Router(bench.new_folder("router"), own=own) as troubled,
            bench.router() as quiet,
            HAProxy(bench.new_folder("haproxy"), None) as elsewhere,
        ):
            subjects: dict[str, Callable[[], Sample]] = {
                "at the router": partial(beside_garbage, troubled.port, troubled, load),
                "elsewhere": partial(beside_garbage, elsewhere.port, quiet, load),
            }
            here, there = bench.interleave(f"100 B, garbage{name}", subjects).values()
            speed = Spread.of([one.per_second / other.per_second for one, other in zip(here, there, strict=True)])
            bench.figure(f"beside garbage{name}: messages/s to those elsewhere", speed, "x", target, at_least=True)
            grown, rate = after_garbage(troubled, int(strangers.GARBAGE * share))
        what = f"{int(strangers.GARBAGE * share):,} connections with garbage{name}"
        bench.figure(f"{what}: in a second", Spread.of([rate]), "a second")
        bench.figure(f"{what}: memory afterwards above that before", Spread.of([grown]), "MB", 1.0)
    count = int(strangers.HALF_OPEN * share)
    with bench.router() as router:
        seen = strangers.half_open(router, count)
        settle_down(router)
    bench.figure(f"{count:,} half-open connections: memory", Spread.of([seen.peak_bytes / KILO**2]), "MB", 100.0)
    bench.figure(f"{count:,} half-open connections: gone after", Spread.of([seen.gone_s]), "s", 11.0)

    beside_floods(bench)


def beside_floods(bench: Bench) -> None:
    """Measure how long others wait beside one user whose connections ask without end, by what they ask for.

    Then the router is told to stop, while they go on.
    """
    for name in ("nothing", *FLOODS, *OTHER_FLOODS):
        bench.say(f"{flooding.CONNECTIONS} connections flood with {name}")
        with flooding.Scene(name, bench.new_folder) as scene, scene.flooded() as rates:
            found = flooding.waits(scene.router.port, scene.http_port, 4 * bench.extent.seconds)
            stop_s = scene.stop_s()
        what = f"beside {flooding.CONNECTIONS} connections that flood with {name}"
        bench.figure(f"{what}: /readyz", Spread.of(found.ready_ms), "ms", 50.0)
        bench.figure(f"{what}: a login", Spread.of(found.login_ms), "ms", 500.0)
        bench.figure(f"{what}: an echo", Spread.of(found.echo_ms), "ms")
        bench.figure(f"{what}: an echo, of a hundred the slowest", Spread.of([found.slow_echo_ms]), "ms", 20.0)
        bench.figure(f"{what}: SIGTERM to the end", Spread.of([stop_s]), "s", 2.0)
        if rates:
            bench.figure(f"{what}: taken of them", Spread.of(rates), scene.unit)


def beside_garbage(port: int, router: Router, load: Load) -> Sample:
    """Measure a pair at a router while garbage arrives at a port."""
    with strangers.garbage_at(port):
        return pair(router, load)


def after_garbage(router: Router, count: int) -> tuple[float, float]:
    """Return the MB that the router grew over these connections with garbage, and the connections per second."""
    with strangers.garbage_at(router.port, strangers.WARM_UP):
        pass
    settle_down(router)
    before, began_s = router.memory("VmRSS"), time.monotonic()
    with strangers.garbage_at(router.port, count):
        pass
    took_s = time.monotonic() - began_s
    settle_down(router)
    return (router.memory("VmRSS") - before) / KILO**2, count / took_s


def greeting(bench: Bench) -> None:
    """Compare a pair beside a flood of TLS handshakes at its router with one beside a flood at another router."""
    folders, ports = [bench.new_folder("greeted") for _ in range(2)], [free_port(), free_port()]
    for folder in folders:
        folder.mkdir(parents=True)
    rates: list[float] = []

    def beside(greeted: int, router: Router, load: Load) -> Sample:
        with greetings.greeted(ports[greeted], folders[greeted]) as told:
            sample = pair(router, load)
        rates.extend(told)
        return sample

    mores = [greetings.secured(folder, port) for folder, port in zip(folders, ports, strict=True)]
    with bench.router(more=mores[0]) as router, bench.router(more=mores[1]):
        load = replace(SMALL, seconds=bench.extent.seconds)
        samples = bench.interleave(
            "100 B, TLS handshakes",
            {"beside them": partial(beside, 0, router, load), "in the next router": partial(beside, 1, router, load)},
        )
    here, there = samples.values()
    speed = Spread.of([one.per_second / other.per_second for one, other in zip(here, there, strict=True)])
    bench.figure("TLS handshakes meanwhile", Spread.of(rates), "a second")
    bench.figure("beside TLS handshakes: messages/s to those beside another router's", speed, "x")


def balanced_clients(bench: Bench) -> None:
    """Compare handshakes with a PROXY header, and those with a certificate by name, with those without."""
    folder = bench.new_folder("balanced")
    folder.mkdir(parents=True)
    proxied, secured, named = (free_port() for _ in range(3))
    more = balanced.listeners(folder, proxied, secured, named)
    with Router(bench.new_folder("router"), own=balanced.EXEMPT, more=more) as router:
        measured, tls = partial(balanced.handshakes, router), balanced.wrapper(folder)
        samples = bench.interleave(
            "handshakes behind a balancer",
            {
                "plain": partial(measured, router.port),
                "PROXY 1": partial(measured, proxied, balanced.LINE),
                "PROXY 2": partial(measured, proxied, balanced.BLOCK),
                "TLS": partial(measured, secured, b"", tls),
                "TLS, by name": partial(measured, named, b"", tls),
            },
        )
    lowest = {name: min(each.cpu_us for each in found) for name, found in samples.items()}
    for version in ("1", "2"):
        more_us = lowest[f"PROXY {version}"] - lowest["plain"]
        name = f"PROXY header, version {version}"
        bench.figure(f"{name}: CPU to a plain handshake's", Spread.of([1 + more_us / lowest["plain"]]), "x")
        bench.figure(f"{name}: CPU to a TLS handshake's", Spread.of([1 + more_us / lowest["TLS"]]), "x", 1.02)
    by_name = lowest["TLS, by name"] / lowest["TLS"]
    bench.figure("a certificate by name: CPU to a TLS handshake's", Spread.of([by_name]), "x", 1.02)


def sessions(bench: Bench) -> None:
    """Measure a client that begins 32,767 sessions and leaves, beside one that sends a thousand requests a second."""
    port = free_port()
    runs = []
    for _ in range(bench.extent.repetitions):
        with Router(bench.new_folder("router"), more=flood.allowing(port)) as router:
            runs.append(flood.measured(router, port))
    bench.figure("a session: memory", Spread.of([run.session_bytes / KILO for run in runs]), "kB", 2.0)
    for what, slowest in (("begin", [run.beginning_ms for run in runs]), ("end", [run.ending_ms for run in runs])):
        bench.figure(
            f"while {flood.SESSIONS:,} sessions {what}: a neighbour's slowest answer", Spread.of(slowest), "ms", 20.0
        )


def paths(bench: Bench) -> None:
    """Measure the paths through a random network, computed anew as after a change of its links."""
    bench.say(f"{ways.ROUTERS:,} routers")
    runs = [measured_apart(ways) for _ in range(bench.extent.repetitions)]
    for name in ways.COSTS:
        own, everything = (Spread.of([run[name][what] for run in runs]) for what in ("own_ms", "all_ms"))
        what = f"{ways.ROUTERS:,} routers, {name}"
        bench.figure(f"{what}: the ways from one", own, "ms of CPU", 10.0)
        bench.figure(f"{what}: the ways of all messages through it besides", everything, "ms of CPU", 100.0)


def areas(bench: Bench) -> None:
    """Simulate a network of 10,000 routers (quick: 1,000): interior routers, each with edge routers behind it."""
    edges = whole_areas.EDGES if bench.extent.everything else 9
    routers = whole_areas.INTERIOR * (1 + edges)
    bench.say(f"{routers:,} routers in areas")
    run = measured_apart(whole_areas, str(whole_areas.INTERIOR), str(edges))
    for what, key, unit in (
        ("all addresses are known after", "addresses_known_s", "s"),
        ("messages reach the edge routers of one that was killed after", "edges_moved_s", "s"),
        ("an interior router at rest", "calm_interior_cpu_us", "us of CPU a second"),
        ("an interior router at rest sends", "calm_interior_octets", "octets a second"),
        ("an edge router's start costs the network", "edge_join_cpu_ms", "ms of CPU"),
    ):
        bench.figure(f"{routers:,} routers in areas: {what}", Spread.of([run[key]]), unit)


def recording(bench: Bench) -> None:
    """Compare a router that records everything with one that records nothing, both with all links in use."""
    each = bench.extent.connections
    if not bench.extent.everything:
        bench.remark(f"recording: {2 * each:,} links in place of 10,000 (quick bench)")
    folder = bench.new_folder("records")
    load = replace(SMALL, connections=_RECEIVERS, addresses=each, seconds=bench.extent.seconds, credit=10)
    with bench.router() as silent, bench.router(more=f"recordLog {{ dir: {folder} }}") as recorded:
        # At full speed, and at two messages a second for each link, where the cost of each link shows most.
        for name, rate in (("at full speed", 0), ("two messages a second on each", 2 * each)):
            told: dict[str, Callable[[], Sample]] = {
                "recording": partial(steady_pair, recorded, replace(load, rate=rate)),
                "not recording": partial(steady_pair, silent, replace(load, rate=rate)),
            }
            samples = bench.interleave(f"100 B, {2 * each:,} links, {name}", told)
            bench.figure(f"recording, {2 * each:,} links, {name}: CPU to without", ratios(*samples.values()), "x", 1.05)


def steady_pair(router: Router, load: Load) -> Sample:
    """Measure as ``pair``, from the time when all links are attached and their records are written."""
    return pair(router, load, settle=settle_down)


def settle_down(server: Server) -> None:
    """Wait until a server is idle, or for some seconds at most."""
    for _ in range(50):
        before_ns = server.cpu_ns()
        time.sleep(0.1)
        if server.cpu_ns() - before_ns < 1_000_000:
            return


CHAPTERS: Final[dict[str, Callable[[Bench], None]]] = {
    "haproxy": against_haproxy,
    "rabbitmq": against_rabbitmq,
    "proton": against_proton,
    "twins": twins,
    "addresses": many_addresses,
    "idle": idle_connections,
    "handshakes": connecting,
    "clients": clients,
    "tls": over_tls,
    "workers": workers,
    "gigabyte": one_gigabyte,
    "stalled": stalled_neighbour,
    "managing": managing,
    "policy": policy,
    "network": network,
    "networks": networks,
    "administering": administering,
    "failing": failing,
    "line": line,
    "guessing": guessing,
    "hostile": hostile,
    "greeting": greeting,
    "balanced": balanced_clients,
    "sessions": sessions,
    "paths": paths,
    "areas": areas,
    "recording": recording,
}
