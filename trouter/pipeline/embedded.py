"""The receiver that lives in the process of a query: the same as `trouter pipeline spool`, in a thread of its own.

It may die at any moment with that process, and the next one takes up the spool where it was; nothing here needs to be
said goodbye to. When there is time, at SIGTERM, it settles what the disk has.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import trio

from trouter.pipeline.connecting import servers, why
from trouter.pipeline.options import Options
from trouter.spool import Spool, SpoolBusy
from trouter.spool.receiver import Progress, ReceiverSettings, receive

#: How long the end may take: to have what came written and settled.
GRACE_S: Final = 5.0
_LOOK_S: Final = 0.05


class ReceiverFailed(Exception):
    """The receiver gave up; the text says why."""


def open_spool(options: Options) -> Spool:
    """The spool of an embedded receiver, waiting for a process before us to let go of it; SpoolError, OSError."""
    deadline = time.monotonic() + options.lock_wait_s
    while True:
        try:
            return Spool.open(
                options.spool[0],
                segment_bytes=options.segment_bytes,
                backlog_bytes=options.backlog_bytes,
                address=options.address,
            )
        except SpoolBusy:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_LOOK_S)


def receiver_settings(options: Options) -> ReceiverSettings:
    """What the receiver is told; BadOption."""
    return ReceiverSettings(
        servers=servers(options),
        address=options.address,
        credit=options.credit,
        linger_s=options.linger_ms / 1000,
        max_group_bytes=options.max_group_bytes,
        max_message_bytes=options.max_message_bytes,
        connect_timeout_s=options.connect_timeout_s,
        idle_timeout_s=options.heartbeat_s,
        grace_s=GRACE_S,
        reason=why,
    )


class ReceiverThread:
    """A receiver that fills ``spool`` until it is stopped, or fails."""

    def __init__(self, spool: Spool, settings: ReceiverSettings) -> None:
        self.progress = Progress()
        self._spool = spool
        self._settings = settings
        self._failure: BaseException | None = None
        self._scope: trio.CancelScope | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="amqp-receiver", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:  # noqa: BLE001 - raised to the next caller
            self._failure = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self._scope:
            self._ready.set()
            await receive(self._spool, self._settings, self.progress)

    def check(self) -> None:
        """ReceiverFailed if it has given up."""
        if self._failure is not None:
            raise ReceiverFailed(
                f"receiving from {self._settings.address} failed: {why(self._failure)}"
            ) from self._failure

    def stop(self) -> None:
        """End it; in a little more than GRACE_S at most. The spool is then its opener's to close."""
        if self._token is not None and self._scope is not None:
            try:
                self._token.run_sync_soon(self._scope.cancel)
            except trio.RunFinishedError:
                pass
        self._thread.join(GRACE_S + 1)


def receive_some(spool: Spool, options: Options, start: int) -> None:
    """Receive until the spool has `maxMessages` from ``start`` on, or none came for `idleTimeoutMs`; ReceiverFailed."""
    enough = start + options.max_messages
    if spool.durable >= enough:
        return
    thread = ReceiverThread(spool, receiver_settings(options))
    try:
        wait_for_quiet(thread, spool, enough, options)
    finally:
        thread.stop()


def wait_for_quiet(thread: ReceiverThread, spool: Spool, enough: int, options: Options) -> None:
    """Until the spool has the message before ``enough``, or none came for `idleTimeoutMs` on a link.

    ReceiverFailed, also if there is no link within `connectTimeoutS`.
    """
    seen = spool.durable
    since = time.monotonic()
    linked = False
    while spool.durable < enough:
        thread.check()
        waited = time.monotonic() - since
        if not thread.progress.links:
            if waited > options.connect_timeout_s:
                raise ReceiverFailed(f"no link to {options.address}: {thread.progress.trouble or 'no answer'}")
        elif seen != spool.durable or not linked:
            seen = spool.durable
            since = time.monotonic()
        elif waited >= options.idle_timeout_ms / 1000:
            return
        linked = thread.progress.links > 0
        time.sleep(_LOOK_S)
