"""Changes of the configuration as a whole that come over the network, each one of several routers at once.

A change is made, then confirmed or taken back, by the same id at every router that it is of; in between it is open, and
management shows it. A change is made only in the state that it was planned for: a digest of what is in force and what
is in the file, with a key of the process, so that nothing can be tried by it and a restarted router has another one.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import trio

from trouter.config import ChangeRefused, Changes, Configuration, ConfigurationError, Problem, compare, load
from trouter.config.changes import Why
from trouter.config.configuration import BUILT_IN
from trouter.config.policy_part import policy_only, with_policy
from trouter.config.problems import SourcePosition
from trouter.config.remote import beyond_management
from trouter.management.ports import BEGUN, EDITED, MADE, POLICY, OpenChange, PlanReport, ReloadReport
from trouter.net.reach import Reach
from trouter.telemetry.change_records import ChangeRecords
from trouter.telemetry.clocks import now_us

from .changed_file import ChangedFile, ChangeOrder, UnreadableChange
from .checking import check_policy, load_asked, refused
from .in_force import FORBIDDEN, ConfigurationInForce
from .preparing import BAD_REQUEST, FAILED, Occasion
from .reload_report import log_reload, report_of

OK, NOT_FOUND, CONFLICT = 200, 404, 409
#: Changes taken back that are remembered: a request to make one that comes late is refused.
_REMEMBERED: Final = 64
_US: Final = 1_000_000

log = logging.getLogger("trouter.MAIN")

T = TypeVar("T")


class NetworkChanges:
    """The changes over the network of one router; see ``management.ports.NetworkChangesPort``."""

    def __init__(self, in_force: ConfigurationInForce, reach: Reach, records: ChangeRecords, *, has_file: bool) -> None:
        """``has_file``: the configuration comes from a file that can be read again."""
        self._in_force = in_force
        self._reach = reach
        self._records = records
        self._has_file = has_file
        self._key = secrets.token_bytes(32)
        #: The id of the last change, and the configuration in force before it.
        self._before: tuple[str, Configuration] | None = None
        self._taken_back: deque[str] = deque(maxlen=_REMEMBERED)

    # --- what management shows

    async def open_change(self) -> OpenChange | None:
        """Return the change that is open here, None without one; ChangeRefused if its file cannot be read."""
        file = self._file()
        return None if file is None else await _on_disk(file.open_change)

    async def complete(self, report: PlanReport, text: str) -> PlanReport:
        """Return the report of a check with the state that it holds for, and why the change would be refused."""
        file, why = self._file(), self._why_fixed()
        if file is None or why:
            return replace(report, refusals=(*report.refusals, why))
        present = await _on_disk(file.open_change)
        octets = await _on_disk(file.read)
        if present is not None:
            why = f"the change {present.id} by {present.by} is open here"
        elif unwritable := file.why_not_writable():
            why = unwritable
        return replace(
            report,
            state=self._state(octets),
            is_same=octets == text.encode(),
            open_change="" if present is None else present.id,
            refusals=(*report.refusals, why) if why else report.refusals,
        )

    async def check_policy(self, text: str, name: str, expectations: str) -> PlanReport:
        """Return the report of a check of a policy, in the place of that in the file; see ``NetworkChangesPort``."""
        file, why = self._file(), self._why_fixed()
        if file is None or why:
            return refused([Problem(SourcePosition(name), why)])
        present = self._in_force.whole
        before = _text_of(await _on_disk(file.read), file.path)

        def judge() -> tuple[PlanReport, str]:
            try:
                whole = with_policy(before, text, name)
            except ConfigurationError as error:
                return refused(error.problems), ""
            return check_policy(present, whole, str(file.path), expectations), whole

        report, whole = await trio.to_thread.run_sync(judge, abandon_on_cancel=True)
        return await self.complete(report, whole)

    # --- a change

    async def apply(
        self,
        id: str,  # noqa: A002
        by: str,
        routers: tuple[str, ...],
        text: str,
        state: str,
        part: str,
    ) -> ReloadReport:
        """Make a change, and leave it open; see ``NetworkChangesPort``."""
        requester = self._records.requester()
        order = ChangeOrder(
            id,
            by,
            str(requester.get("user") or ""),
            str(requester.get("host") or ""),
            now_us() // _US,
            routers,
        )
        async with self._recording("APPLY", id, {"by": by}):
            report = await self._apply(order, text, state, part)
            await self._reach.publish(self._in_force.whole, reloaded=True)
        log_reload(report, f"the change {id} by {by}")
        return report

    async def _apply(self, order: ChangeOrder, text: str, state: str, part: str) -> ReloadReport:
        file = self._changeable()
        if part == POLICY:
            text = await self._with_policy(file, text)
        octets = text.encode()
        if order.id in self._taken_back:
            raise ChangeRefused(CONFLICT, f"the change {order.id} was taken back here: begin another one")
        present = await _on_disk(file.open_change)
        if present is not None:
            if present.id != order.id:
                raise ChangeRefused(CONFLICT, f"the change {present.id} by {present.by} is open here: end it first")
            if present.state == MADE and await _on_disk(file.read) == octets:
                return ReloadReport(kept=len(self._in_force.whole.entities))
            if present.state != BEGUN:
                raise ChangeRefused(CONFLICT, f"the file is another one since the change {order.id} was made here")
        if not hmac.compare_digest(state.encode(), self._state(await _on_disk(file.read)).encode()):
            raise ChangeRefused(CONFLICT, "the router, or its file, was changed since the check: check again")
        before = self._in_force.whole
        changes = await self._changes_to(file.path, text, part)
        await _on_disk(lambda: file.begin(order, octets))
        try:
            await self._in_force.replace(changes.configuration, Occasion.RELOAD)
        except BaseException:
            file.drop()
            raise
        try:
            await _on_disk(file.finish)
        except ChangeRefused:
            await self._in_force.replace(compare(self._in_force.whole, before).configuration, Occasion.RELOAD)
            file.drop()
            raise
        self._before = (order.id, before)
        return report_of(changes)

    async def _with_policy(self, file: ChangedFile, policy: str) -> str:
        """Return the text of the file with another policy; ChangeRefused with every problem of it."""
        before = _text_of(await _on_disk(file.read), file.path)
        try:
            return await trio.to_thread.run_sync(with_policy, before, policy, "(request)", abandon_on_cancel=True)
        except ConfigurationError as error:
            raise ChangeRefused(BAD_REQUEST, str(error)) from error

    async def _changes_to(self, path: Path, text: str, part: str) -> Changes:
        """Return what a text, or the part of it, changes; ChangeRefused with every problem of it."""
        present = self._in_force.whole

        def judge() -> Changes:
            if not text.strip():  # a router does not start with such a file
                raise ChangeRefused(BAD_REQUEST, "the text is empty; a comment is enough")
            wanted = load_asked(present, text, str(path))
            if part == POLICY:
                wanted = policy_only(present, wanted)
            if problems := list(beyond_management(present, wanted)):
                raise ChangeRefused(FORBIDDEN, "\n".join(map(str, problems)))
            return compare(present, wanted)

        try:
            return await trio.to_thread.run_sync(judge, abandon_on_cancel=True)
        except ConfigurationError as error:
            raise ChangeRefused(BAD_REQUEST, "\n".join(map(str, error.problems))) from error

    async def revert(self, id: str) -> OpenChange:  # noqa: A002
        """Take a change back, and return it as it was; see ``NetworkChangesPort``."""
        async with self._recording("REVERT-CHANGE", id, {}):
            if id not in self._taken_back:
                self._taken_back.append(id)
            file = self._changeable()
            present = await self._open(file, id)
            if present.state == EDITED:
                raise ChangeRefused(
                    CONFLICT, f"{file.path} was edited since the change {id}: mend it, then confirm the change"
                )
            if present.state == BEGUN:
                file.drop()
                return present
            changes = await self._changes_back(file, id)
            await self._in_force.replace(changes.configuration, Occasion.RELOAD)
            await self._reach.publish(self._in_force.whole, reloaded=True)
            await _on_disk(file.restore)
        log_reload(report_of(changes), f"the configuration before the change {id}")
        return present

    async def _changes_back(self, file: ChangedFile, id: str) -> Changes:  # noqa: A002
        """Return what changes if the configuration before a change is in force again; ChangeRefused."""
        present = self._in_force.whole
        if self._before is not None and self._before[0] == id:
            before = self._before[1]
            return await trio.to_thread.run_sync(compare, present, before, abandon_on_cancel=True)
        text = (await _on_disk(file.read_before)).decode()
        try:
            return await trio.to_thread.run_sync(
                lambda: compare(present, load(file.path, text)), abandon_on_cancel=True
            )
        except ConfigurationError as error:
            raise ChangeRefused(BAD_REQUEST, "\n".join(map(str, error.problems))) from error

    async def confirm(self, id: str) -> OpenChange:  # noqa: A002
        """End a change as it is, and return it as it was; see ``NetworkChangesPort``."""
        async with self._recording("CONFIRM-CHANGE", id, {}):
            file = self._changeable()
            present = await self._open(file, id)
            await _on_disk(file.end)
            self._before = None
        return present

    # --- its conditions

    @asynccontextmanager
    async def _recording(self, operation: str, id: str, values: Mapping[str, str]) -> AsyncIterator[None]:  # noqa: A002
        """Take the turn for a step of a change, and record it with its result."""
        status = OK
        try:
            async with self._in_force.turn():
                yield
        except ChangeRefused as refused:
            status = refused.status
            log.warning("%s of the change %s refused: %s", operation, id, refused.description)
            raise
        finally:
            self._records.network_change(operation, id, status, values)

    async def _open(self, file: ChangedFile, id: str) -> OpenChange:  # noqa: A002
        """Return the open change with this id; ChangeRefused if there is none."""
        present = await _on_disk(file.open_change)
        if present is None or present.id != id:
            raise ChangeRefused(NOT_FOUND, f"no change {id} is open here", Why.ABSENT)
        return present

    def _state(self, octets: bytes) -> str:
        """Return the digest of what is in force and of the file with these bytes."""
        stand = f"{self._in_force.revision}\0".encode() + octets
        return hmac.new(self._key, stand, hashlib.sha256).hexdigest()

    def _file(self) -> ChangedFile | None:
        """Return the configuration file; None for the built-in configuration."""
        source = self._in_force.whole.source
        return ChangedFile(Path(source).resolve()) if self._has_file and source != BUILT_IN else None

    def _changeable(self) -> ChangedFile:
        """Return the configuration file, which this process may change; ChangeRefused."""
        file = self._file()
        if file is None or (why := self._why_fixed()):
            raise ChangeRefused(FORBIDDEN, why if file is not None else self._why_fixed())
        return file

    def _why_fixed(self) -> str:
        """Return why no change over the network can be made here; empty if one can."""
        file = self._file()
        if file is None:
            return "this router was not started from a configuration file"
        if file.path.suffix == ".json":
            return f"the configuration {file.path} is in the JSON form: changes over the network have the .conf form"
        return self._reach.why_fixed


def _text_of(octets: bytes, path: Path) -> str:
    """Return the text of a configuration file; ChangeRefused."""
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise ChangeRefused(FAILED, f"{path} is not UTF-8 text: save it as UTF-8; nothing was changed") from error


async def _on_disk(work: Callable[[], T]) -> T:
    """Return the result of work with files, done in a thread to its end; ChangeRefused."""
    try:
        return await trio.to_thread.run_sync(work)
    except UnreadableChange as error:
        raise ChangeRefused(FAILED, str(error)) from error
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        raise ChangeRefused(FAILED, f"{name}{error.strerror or error}; nothing was changed") from error
