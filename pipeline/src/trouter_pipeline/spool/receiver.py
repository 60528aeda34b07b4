"""The receiver: writes the messages of an address into a spool, and accepts each once it is durable, not before.

One task does it in turn. It gathers messages for ``linger_s`` or until there are enough; a thread writes them and waits
for the disk while more come; then the task settles them and gives the credit back. So at most ``credit`` messages are
without an outcome, and may come twice when this process or the link dies. A spool at its limit gets no more credit
until a consumer has finished some of it. When the disk fails, nothing of the group is settled, the link is closed, and
``receive`` raises the OSError. When a server is lost, the next one is tried; the pauses between rounds grow.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, time
from typing import TYPE_CHECKING, Final

import trio

from trouter.client import EngineLimits
from trouter.client.errors import ClientError, LinkDetached, SessionEnded
from trouter.client.servers import Servers, is_lasting, kind_of, reason_of
from trouter_pipeline.spool.intake import Batch, Intake
from trouter_pipeline.spool.writer import MAX_MESSAGE_BYTES, Group, Spool

if TYPE_CHECKING:
    from trouter.client.inlet import Inlet

#: Interval between looks at the consumer's mark: while the receiver waits for it, and otherwise.
_LOOK_S: Final = 0.1
_LOOK_SELDOM_S: Final = 1.0
_CLOSE_TIMEOUT_S: Final = 2.0
#: Frames that the peer may send ahead, large enough for the credit of many small messages.
_WINDOW_FRAMES: Final = 4096
_FRAME_BYTES: Final = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverSettings:
    """Source, address and limits of a receiver. Times in seconds; ValueError for impossible values."""

    servers: Servers
    address: str
    #: Messages that may be without an outcome: at most so many come twice after a crash.
    credit: int = 2000
    #: A group is written after this time, at this size, or at half of the credit.
    linger_s: float = 0.005
    max_group_bytes: int = 1 << 20
    #: A larger message is rejected. With the group's size this bounds the memory.
    max_message_bytes: int = 64 << 20
    #: Name of the link and of the container; "" for one made of the spool's uuid.
    name: str = ""
    connect_timeout_s: float = 30.0
    idle_timeout_s: float = 60.0
    #: The pause after the first round in which no server answered; it doubles up to the longest.
    first_pause_s: float = 0.2
    longest_pause_s: float = 30.0
    #: Rounds without a link before giving up; 0 for never.
    attempts: int = 0
    #: Time for ending: to write and settle the messages that have come.
    grace_s: float = 10.0
    #: Describes a failure to connect.
    reason: Callable[[BaseException], str] = reason_of

    def __post_init__(self) -> None:
        if not self.address:
            raise ValueError("the receiver needs an address to receive from")
        for name in ("credit", "max_group_bytes", "max_message_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be 1 or more")
        if self.max_message_bytes > MAX_MESSAGE_BYTES:
            raise ValueError(f"max_message_bytes is {self.max_message_bytes}: a frame holds no more than 2 GiB")
        for name in ("linger_s", "attempts", "idle_timeout_s", "grace_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, must be 0 or more")
        for name in ("connect_timeout_s", "first_pause_s", "longest_pause_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, must be more than 0")


#: Kinds of faults: the disk, the spool's contents, a killed process, and the results of `kind_of`.
FAULTS: Final = ("disk", "spool", "killed", "authentication", "tls", "timeout", "refused", "peer", "connection")


@dataclass(slots=True)
class Progress:
    """State and counts of a receiver since its process began; reports read it."""

    #: connecting, receiving, waiting (for a consumer, or before the next attempt), ended or failed.
    state: str = "connecting"
    #: Label of the connected server; "" while there is none.
    server: str = ""
    #: The present problem; "" for none.
    trouble: str = ""
    #: Kind and time of the last error: one of `FAULTS`, and seconds since 1970; "" and 0 for never.
    fault: str = ""
    fault_at: float = 0.0
    #: The link gets no credit, because the spool holds as much unconsumed data as it may.
    full: bool = False
    messages: int = 0
    octets: int = 0
    groups: int = 0
    accepted: int = 0
    presettled: int = 0
    refused: int = 0
    aborted: int = 0
    links: int = 0
    #: Seconds of writing and syncing: in all, and for the last group.
    sync_s: float = 0.0
    last_sync_s: float = 0.0
    #: Sequence of the next message, first sequence that is not durable, and first that is not consumed.
    next: int = 0
    durable: int = 0
    consumed: int = 0
    backlog_bytes: int = 0
    #: When the last message became durable, in seconds since 1970; 0 for never.
    last_message_at: float = 0.0
    began_at: float = field(default_factory=time)

    def failed(self, fault: str, trouble: str) -> None:
        """Note an error of now: its kind (one of `FAULTS`) and its description."""
        self.trouble = trouble
        self.fault = fault
        self.fault_at = time()


async def receive(spool: Spool, settings: ReceiverSettings, progress: Progress) -> None:
    """Receive until cancelled; then write and settle what has come and close the link, within ``grace_s``.

    Raise OSError when the disk fails (``spool.failure`` is then set), SpoolCorrupt, and the last server's error when
    every server failed for a lasting reason or the attempts are used up: AuthenticationFailed, LinkDetached,
    ssl.SSLError...
    """
    receiving = _Receiving(spool, settings, progress)
    raised: BaseException | None = None
    fault = ""
    async with trio.open_nursery() as nursery:
        with trio.CancelScope(shield=True) as scope:
            nursery.start_soon(receiving.end_when_cancelled, scope)
            try:
                await receiving.run()
            except trio.Cancelled:
                raise
            except _DiskRefuses as refusal:
                raised, fault = refusal.error, "disk"
            except BaseException as error:  # noqa: BLE001 - raised again below, not as one of a group
                raised, fault = error, fault_of(error)
        if raised is None:
            progress.trouble = ""
        else:
            progress.failed(fault, receiving.why_not if raised is receiving.last else reason_of(raised))
        progress.state = "ended" if raised is None else "failed"
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
    await trio.lowlevel.checkpoint()


def fault_of(failure: BaseException) -> str:
    """Return the kind of a failure that is not of the disk: one of `FAULTS`."""
    return kind_of(failure) if isinstance(failure, ClientError | OSError | trio.TooSlowError) else "spool"


class _DiskRefuses(Exception):
    """An OSError of the spool, to distinguish it from one of a socket."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


class _Receiving:
    """One run of ``receive``."""

    def __init__(self, spool: Spool, settings: ReceiverSettings, progress: Progress) -> None:
        self.spool = spool
        self.settings = settings
        self.progress = progress
        self.ending = trio.Event()
        self._inlet: Inlet | None = None
        self._reaped_at = 0.0
        #: The last failure to connect, and what there is to say about it.
        self.last: Exception = trio.TooSlowError()
        self.why_not = ""

    async def end_when_cancelled(self, scope: trio.CancelScope) -> None:
        """Wait for the caller's cancellation, then end ``run`` within the grace time."""
        try:
            await trio.sleep_forever()
        finally:
            self.ending.set()
            scope.deadline = trio.current_time() + self.settings.grace_s
            if self._inlet is None:
                scope.cancel()
            self._stir()

    def _stir(self) -> None:
        """Wake the task that waits for the link, if there is one."""
        if self._inlet is not None:
            self._inlet.wake_waiting()

    async def run(self) -> None:
        """Run rounds until ``ending``; raise a lasting failure, or the last one after ``attempts`` vain rounds."""
        rounds = 0
        while not self.ending.is_set():
            before = self.progress.messages
            await self._round()
            if self.spool.frames.count:  # whole frames of a link that was lost before they were written
                await self.store(Batch())
            if self.ending.is_set():
                return
            rounds = 1 if self.progress.messages > before else rounds + 1
            if 0 < self.settings.attempts <= rounds:
                raise self.last
            await self._pause(rounds)

    async def _round(self) -> None:
        """Try each server once, until one gave a link; raise the last failure if all are lasting."""
        lasting = 0
        servers = self.settings.servers
        for url, label in zip(servers.urls, servers.labels, strict=True):
            links = self.progress.links
            self.progress.state = "connecting"
            try:
                await self._serve(url, label)
            except (ClientError, OSError, trio.TooSlowError) as failure:
                late = isinstance(failure, trio.TooSlowError)
                within = f"no answer within {self.settings.connect_timeout_s:g} s"
                why = within if late else self.settings.reason(failure)
                connected = self.progress.links > links or isinstance(failure, LinkDetached | SessionEnded)
                self.why_not = f"{label}: {why}" if connected else f"cannot connect to {label}: {why}"
                self.progress.failed(kind_of(failure), self.why_not)
                self.last = failure
                lasting += is_lasting(failure)
            finally:
                self.progress.server = ""
                self.progress.full = False
            if self.ending.is_set() or self.progress.links > links:
                return
        if lasting == len(servers.urls):
            raise self.last

    async def _pause(self, rounds: int) -> None:
        """Wait before the next round, with jitter so that receivers do not return together."""
        pause_s = min(self.settings.longest_pause_s, self.settings.first_pause_s * 2 ** min(rounds - 1, 30))
        self.progress.state = "waiting"
        with trio.move_on_after(pause_s * random.uniform(0.5, 1.0)):
            await self.ending.wait()

    async def _serve(self, url: str, label: str) -> None:
        """Serve one connection until it or the program ends."""
        settings = self.settings
        name = settings.name or f"spool-{self.spool.uuid}"
        intake = Intake(
            self.spool.frames,
            settings.max_message_bytes,
            settings.max_group_bytes,
            max(1, settings.credit // 2),
            self._stir,
        )
        async with (
            settings.servers.connect(
                url,
                container_id=name,
                timeout=settings.connect_timeout_s,
                idle_timeout=settings.idle_timeout_s,
                close_timeout=_CLOSE_TIMEOUT_S,
                max_frame_size=_FRAME_BYTES,
                limits=EngineLimits(session_window_frames=_WINDOW_FRAMES),
            ) as connection,
            connection.open_inlet(
                settings.address,
                sink=intake,
                name=name,
                max_message_size=settings.max_message_bytes,
                close_timeout=_CLOSE_TIMEOUT_S,
            ) as inlet,
        ):
            self._inlet = inlet
            self.progress.links += 1
            self.progress.server = label
            self.progress.trouble = ""
            try:
                await self._work(inlet, intake)
            finally:
                self._inlet = None
                intake.cut()

    # --- one link

    async def _work(self, inlet: Inlet, intake: Intake) -> None:
        """Store group after group until the link or the program ends."""
        owed = self._grant(inlet, self.settings.credit)
        while not self.ending.is_set():
            await self._gather(inlet, intake, waiting=owed > 0)
            if intake.batch.credit:
                owed += await self._store_and_settle(inlet, intake)
            else:
                await self._look()
            owed = self._grant(inlet, owed)
        inlet.drain()
        with trio.move_on_after(self.settings.grace_s / 2):
            await inlet.wait(lambda: intake.drained or inlet.credit == 0)
        intake.cut()
        await self._store_and_settle(inlet, intake)

    async def _gather(self, inlet: Inlet, intake: Intake, *, waiting: bool) -> None:
        """Wait for a group, or until the consumer's mark should be read."""
        ending = self.ending
        with trio.move_on_after(_LOOK_S if waiting else _LOOK_SELDOM_S):
            await inlet.wait(lambda: intake.batch.credit > 0 or ending.is_set())
        if intake.batch.credit and not intake.due:
            with trio.move_on_after(self.settings.linger_s):
                await inlet.wait(lambda: intake.due or ending.is_set())

    async def _store_and_settle(self, inlet: Inlet, intake: Intake) -> int:
        """Write and sync the batch, then settle it; return the credit to give back."""
        batch = intake.take()
        await self.store(batch)
        intake.accept(batch)
        inlet.flush()
        return batch.credit

    def _grant(self, inlet: Inlet, owed: int) -> int:
        """Give ``owed`` credit back unless the spool is full; return the credit that is still owed."""
        progress = self.progress
        if owed and self.spool.full:
            progress.state = "waiting"
            progress.full = True
            limit = self.spool.backlog_limit
            progress.trouble = (
                f"{limit} bytes in the spool are not consumed yet, by cursor {self.spool.slowest}: "
                "the receiver gives no more credit"
            )
            return owed
        if progress.state != "receiving":
            progress.state = "receiving"
            progress.full = False
            progress.trouble = ""
        if owed:
            inlet.grant(owed)
        return 0

    # --- the disk

    async def store(self, batch: Batch) -> None:
        """Write and sync the gathered frames in a thread, and count ``batch``."""
        group = self.spool.take()
        progress = self.progress
        if group.messages:
            began = monotonic()
            await trio.to_thread.run_sync(self._commit, group)
            progress.last_sync_s = monotonic() - began
            progress.sync_s += progress.last_sync_s
            progress.groups += 1
            progress.messages += group.messages
            progress.last_message_at = time()
        progress.octets += batch.octets
        progress.accepted += len(batch.unsettled)
        progress.presettled += batch.presettled
        progress.refused += batch.refused
        progress.aborted += batch.aborted
        self._note()

    async def _look(self) -> None:
        """Delete consumed segments."""
        await trio.to_thread.run_sync(self._reap)
        self._note()

    def _commit(self, group: Group) -> None:
        try:
            self.spool.commit(group)
        except OSError as error:
            raise _DiskRefuses(error) from None
        if monotonic() - self._reaped_at >= _LOOK_SELDOM_S:
            self._reap()

    def _reap(self) -> None:
        self._reaped_at = monotonic()
        try:
            self.spool.reap()
        except OSError as error:
            raise _DiskRefuses(error) from None

    def _note(self) -> None:
        self.progress.next = self.spool.next
        self.progress.durable = self.spool.durable
        self.progress.consumed = self.spool.consumed
        self.progress.backlog_bytes = self.spool.backlog_bytes
