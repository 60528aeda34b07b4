"""The receiver in the process of a query: like `trouter pipeline spool`, in a thread.

It may die at any moment with that process; the next one continues with the spool. If there is time, at SIGTERM, it
settles the durable messages.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import trio

from trouter_pipeline.connecting import servers, why
from trouter_pipeline.options import Options
from trouter_pipeline.spool import Spool, SpoolBusy
from trouter_pipeline.spool.receiver import Progress, ReceiverSettings, receive

#: Time for ending: to write and settle the messages that have come.
GRACE_S: Final = 5.0
_LOOK_S: Final = 0.05


class ReceiverFailed(Exception):
    """The receiver gave up; the text says why."""


def open_spool(options: Options) -> Spool:
    """Open the spool of an embedded receiver, waiting `lockWaitS` for another process; SpoolError, OSError."""
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
    """Return the options as settings of the receiver; BadOption."""
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
    """A receiver that fills ``spool`` until it is stopped or fails."""

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
        """Raise ReceiverFailed if it has failed."""
        if self._failure is not None:
            raise ReceiverFailed(
                f"receiving from {self._settings.address} failed: {why(self._failure)}"
            ) from self._failure

    def stop(self) -> None:
        """End it, in little more than GRACE_S at most. The spool's opener then closes the spool."""
        if self._token is not None and self._scope is not None:
            try:
                self._token.run_sync_soon(self._scope.cancel)
            except trio.RunFinishedError:
                pass
        self._thread.join(GRACE_S + 1)


def receive_some(spool: Spool, options: Options, start: int) -> None:
    """Receive until the spool has `maxMessages` from ``start``, or none came for `idleTimeoutMs`; ReceiverFailed."""
    enough = start + options.max_messages
    if spool.durable >= enough:
        return
    thread = ReceiverThread(spool, receiver_settings(options))
    try:
        wait_for_quiet(thread, spool, enough, options)
    finally:
        thread.stop()


def wait_for_quiet(thread: ReceiverThread, spool: Spool, enough: int, options: Options) -> None:
    """Wait until message ``enough`` - 1 is durable, or none came for `idleTimeoutMs` on a link.

    ReceiverFailed, also without a link within `connectTimeoutS`.
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
