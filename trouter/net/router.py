"""The router as a process: its services in one nursery, signals, and a clean stop."""

from __future__ import annotations

import gc
import logging
import os
import signal
from typing import Final

import trio

import trouter
from trouter.config import AddressEntity, Configuration, ListenerEntity
from trouter.core.router import Router
from trouter.core.table import AddressRule
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import Budget
from trouter.hooks import Plugins
from trouter.wire.performatives import Error, Open

from .hub import Hub
from .listen import ConnectionNumbers, Listener, ListenError
from .peer import LINGER_S, PeerSettings, Services
from .poller import Poller
from .rounds import make_rounds
from .ticker import Ticker

CAPABILITIES: Final = ("ANONYMOUS-RELAY",)
#: How often a draining router looks whether it is done.
DRAIN_LOOK_S: Final = 0.05
#: What the process takes note of while it routes.
HANDLED: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})

log = logging.getLogger("trouter.SERVER")
router_log = logging.getLogger("trouter.ROUTER")
main_log = logging.getLogger("trouter.MAIN")


def run(configuration: Configuration, plugins: Plugins) -> int:
    """Route until told to stop; the process's exit status. An INT ends the process by INT after the clean stop."""
    # Unsettled deliveries come and go by the thousand and are freed by their count; the collector's default
    # threshold would look through them again and again.
    gc.set_threshold(50_000, 20, 100)
    process = RouterProcess(configuration, plugins)
    # Blocked in every thread to come, and from here to the end: one task takes them, one at a time, so that no number
    # of signals can interrupt anything.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        trio.run(process.run_with_signals)
    except ListenError as error:
        main_log.critical("Router start-up failed: %s", error)
        return 1
    if process.stopped_by == signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)
    return 0


class RouterProcess:
    """Everything that runs, from the first listener to the last close."""

    def __init__(self, configuration: Configuration, plugins: Plugins) -> None:
        self._configuration = configuration
        router = configuration.router
        self.router = Router(
            router.id,
            router.mode,
            router.default_distribution,
            [address_rule(entity) for entity in configuration.addresses],
        )
        self.hub = Hub(self.router)
        self.services = Services(self.hub, Poller(self.hub), Ticker(), plugins, Budget(held_limit_bytes()))
        numbers = ConnectionNumbers([0])
        self.listeners = [
            Listener(entity, peer_settings(configuration, entity), self.services, numbers)
            for entity in configuration.listeners
        ]
        self.stopped_by: signal.Signals | None = None

    async def run_with_signals(self) -> None:
        """``run``, until signals say to stop; ListenError when a listener cannot stand."""
        await self._bind()
        async with trio.open_nursery() as nursery:
            self._start(nursery)
            while True:
                number = signal.Signals(await trio.to_thread.run_sync(signal.sigwait, HANDLED, abandon_on_cancel=True))
                if number == signal.SIGHUP:
                    main_log.warning("HUP: this version does not reload its configuration while it runs")
                    continue
                if self.stopped_by is not None:
                    break
                self.stopped_by = number
                nursery.start_soon(self._stop, nursery)
            nursery.cancel_scope.cancel()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start everything and serve until cancelled; ListenError when a listener cannot stand."""
        await self._bind()
        async with trio.open_nursery() as nursery:
            self._start(nursery)
            task_status.started()

    async def _bind(self) -> None:
        router_log.info("Router started in %s mode", self._configuration.router.mode.capitalize())
        router_log.info("Version: %s", trouter.__version__)
        for listener in self.listeners:
            await listener.bind()

    def _start(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self.services.ticker.run, self.hub)
        nursery.start_soon(self.services.poller.run)
        nursery.start_soon(make_rounds, self.router)
        for listener in self.listeners:
            nursery.start_soon(listener.run)
        log.info("Operational, 1 Thread Running (process ID %d)", os.getpid())

    async def _stop(self, nursery: trio.Nursery) -> None:
        """Drain: no new links, no new credit, unsettled deliveries finish or the deadline passes, then close."""
        deadline_s = self._configuration.router.drain_timeout_seconds
        log.info("Stopping: draining for at most %d s", deadline_s)
        for listener in self.listeners:
            listener.stop()
        self.router.stop_credit()
        self.hub.flush()
        with trio.move_on_after(deadline_s):
            while self.router.unsettled() > 0:  # noqa: ASYNC110 - the core has no tasks and wakes nobody
                await trio.sleep(DRAIN_LOOK_S)
        error = Error("amqp:connection:forced", "the router is shutting down")
        peers = [peer for listener in self.listeners for peer in listener.peers]
        for peer in peers:
            peer.force_close(error)
        with trio.move_on_after(LINGER_S):
            for listener in self.listeners:
                await listener.done.wait()
        nursery.cancel_scope.cancel()


def held_limit_bytes() -> int:
    """How much of messages under way the router may hold: a quarter of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def address_rule(entity: AddressEntity) -> AddressRule:
    """The core's form of an address section."""
    return AddressRule(
        pattern=entity.prefix or entity.pattern or "",
        is_prefix=entity.prefix is not None,
        distribution=entity.distribution,
        ingress_phase=entity.ingress_phase,
        egress_phase=entity.egress_phase,
        priority=-1 if entity.priority is None else entity.priority,
        enable_fallback=entity.enable_fallback,
        name=entity.name,
    )


def peer_settings(configuration: Configuration, entity: ListenerEntity) -> PeerSettings:
    """What a listener's attributes mean to the engine and to each of its peers."""
    limits = EngineLimits(
        max_frame_bytes=entity.max_frame_size,
        channel_max=entity.max_sessions - 1,
        session_window_frames=0 if entity.max_session_frames is None else entity.max_session_frames or 0x7FFFFFFF,
        idle_timeout_s=float(entity.idle_timeout_seconds),
    )
    properties = {"product": "trouter", "version": trouter.__version__, **own_properties(entity)}

    def introduce(number: int) -> Open:
        return Open(
            container_id=configuration.router.id,
            max_frame_size=entity.max_frame_size,
            channel_max=limits.channel_max,
            idle_time_out=entity.idle_timeout_seconds * 500 or None,
            offered_capabilities=CAPABILITIES,
            desired_capabilities=CAPABILITIES,
            properties={**properties, "qd.conn-id": number},
        )

    return PeerSettings(
        limits=limits,
        open=introduce,
        link_capacity=entity.link_capacity,
        require_sasl=entity.authenticate_peer,
        logged_components=entity.message_logging_components,
        handshake_timeout_s=float(entity.initial_handshake_timeout_seconds or "inf"),
    )


def own_properties(entity: ListenerEntity) -> dict[str, object]:
    """The listener's openProperties and where else its clients may go."""
    properties: dict[str, object] = dict(entity.open_properties)
    if entity.failover_urls:
        properties["failover-server-list"] = [
            {"network-host": url.host, "port": url.port, **({"scheme": url.scheme} if url.scheme else {})}
            for url in entity.failover_urls
        ]
    return properties
