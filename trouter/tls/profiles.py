"""The sslProfiles in force: loads them, renews them when their files change, verifies certificates again.

Listeners and connectors look their profile up for each connection. So a renewed certificate holds for the next
handshake, and existing connections keep the state of theirs (security.md R-2.1b, R-2.1c).
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar, TypeVarTuple

import trio
from cryptography import x509

from trouter.config import Configuration, ListenerEntity, Problem, SslProfileEntity
from trouter.config.findings import NO_HANDSHAKE
from trouter.config.problems import Severity
from trouter.config.strictness import REFUSED
from trouter.hooks.certificates import UNREADABLE

from .contexts import ClientUse, ServerUse, Use, context_of_one, use_by_name, use_of
from .loaded import Loaded, danger_to, load, stamp_for
from .material import Stamp
from .problems import TlsProblem, TlsProblems
from .sni import ServerObject, choose_certificate, find_by_name, table_of

#: Days before the end of a profile's certificate at which the operator is warned.
WARN_DAYS: Final = (1, 7, 30)
DAY_S: Final = 86_400.0

A = TypeVarTuple("A")
T = TypeVar("T")

log = logging.getLogger("trouter.SERVER")


@dataclass(slots=True)
class Profile:
    """One profile, and the observed states of its files."""

    loaded: Loaded
    uses: frozenset[Use]
    #: The files at the last look, and when they were unusable.
    seen: Stamp
    failed: Stamp | None = None
    #: What strangers could do to its files when the configuration was read, which then accepts it; "" for nothing.
    accepted: str = ""
    #: The same of new files, which are not used.
    danger: str = ""
    #: The smallest number of days in a warning about the present certificate.
    warned_days: int = field(default=10_000)

    def continue_from(self, before: Profile | None) -> Profile:
        """Replace ``before`` and return self; warnings about an unchanged certificate are not repeated."""
        if before is not None and before.loaded.certificate == self.loaded.certificate:
            self.warned_days = before.warned_days
        return self


@dataclass(frozen=True, slots=True)
class ProfileFault:
    """An unusable profile: the reason, and the state of its files at that time."""

    entity: SslProfileEntity
    uses: frozenset[Use]
    why: str
    stamp: Stamp
    #: With other ``protocols`` the profile could be used.
    versions_only: bool = False


@dataclass(frozen=True, slots=True)
class Renewal:
    """The result of a look at a profile's files."""

    profile: str
    #: Why the files are unusable; "" if they are in use now.
    problem: str = ""


class TlsProfiles:
    """Profiles by name."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """``clock`` returns seconds since 1970."""
        self._clock = clock
        #: Whether a common name counts, and strangers may change files, as without secureDefaults.
        self._compatible = False
        self._profiles: dict[str, Profile] = {}
        #: Profiles by the names that clients ask for, of each list of profiles; empty after a change.
        self._by_name: dict[tuple[str, ...], dict[str, Loaded]] = {}
        #: The profiles that cannot be used.
        self._faults: dict[str, ProfileFault] = {}

    # --- another configuration

    async def prepare(self, configuration: Configuration, *, tolerant: bool = False) -> PendingProfiles:
        """Load the profiles of ``configuration``; TlsProblems with a line for each that is unusable.

        A profile of which only the files changed keeps its state if they are unusable. ``tolerant`` accepts a
        configuration with unusable profiles; profiles that were unusable before are always accepted.
        """
        secure = configuration.router.secure_defaults
        self._compatible = not secure
        uses = uses_in(configuration)
        profiles: dict[str, Profile] = {}
        lines: list[str] = []
        renewals: list[Renewal] = []
        faults: dict[str, ProfileFault] = {}
        for entity in configuration.ssl_profiles:
            wanted = frozenset(uses.get(entity.name, ()))
            before = self._profiles.get(entity.name)
            same = before is not None and before.loaded.entity == entity and before.uses == wanted
            if same and before is not None:
                stamp = await _in_thread(stamp_for, entity, wanted)
                if stamp in {before.loaded.stamp, before.failed}:
                    profiles[entity.name] = before
                    continue
            try:
                loaded = await _in_thread(load, entity, wanted, self._clock())
            except TlsProblem as problem:
                if not same or before is None:
                    known = self._faults.get(entity.name)
                    if tolerant or (known is not None and known.entity == entity):
                        faults[entity.name] = await self._examine(entity, wanted, problem)
                    else:
                        lines.append(_line(entity, problem))
                else:
                    profiles[entity.name] = before
                    before.failed = stamp
                    renewals.append(Renewal(entity.name, str(problem)))
            else:
                accepted = await _in_thread(danger_to, entity, wanted) if secure else ""
                profiles[entity.name] = Profile(loaded, wanted, loaded.stamp, accepted=accepted).continue_from(before)
                if before is not None or entity.name in self._faults:
                    renewals.append(Renewal(entity.name))
        if lines:
            raise TlsProblems(*lines)
        return PendingProfiles(self, profiles, renewals, faults)

    async def _examine(self, entity: SslProfileEntity, uses: frozenset[Use], problem: TlsProblem) -> ProfileFault:
        """Return the fault of a profile that cannot be loaded."""
        stamp = await _in_thread(stamp_for, entity, uses)
        versions_only = problem.attribute == "protocols"
        if versions_only:
            try:
                await _in_thread(load, replace(entity, protocols=None), uses, self._clock())
            except TlsProblem:
                versions_only = False
        return ProfileFault(entity, uses, str(problem), stamp, versions_only)

    def replace_profiles(self, profiles: dict[str, Profile], faults: dict[str, ProfileFault]) -> None:
        """Use these profiles from now on."""
        self._profiles = profiles
        self._faults = faults
        self._by_name = {}

    # --- what is in force

    def loaded(self, name: str) -> Loaded | None:
        """Return the present state of a profile, or None."""
        profile = self._profiles.get(name)
        return None if profile is None else profile.loaded

    def fault(self, name: str) -> ProfileFault | None:
        """Return the fault of a profile that cannot be used, None for another."""
        return self._faults.get(name)

    def server(self, listener: ListenerEntity) -> tuple[Loaded, ssl.SSLContext] | None:
        """Return the profile of ``listener``, and a context for its next client; None if the profile is gone."""
        loaded = self.loaded(listener.ssl_profile or "")
        if loaded is None:
            return None
        use = use_of(listener, loaded.entity)
        context = loaded.contexts.get(use)
        if context is not None and (use.by_name or use.strict or listener.hostname_from_sni):
            context.sslobject_class = ServerObject
            find = partial(self._find_by_name, (*use.by_name, loaded.entity.name), use_by_name(listener, loaded.entity))
            context.sni_callback = choose_certificate(find, strict=use.strict)
        if context is None:
            return None
        return loaded, context_of_one(context) if use.asks_for_certificates else context

    def _find_by_name(
        self, profiles: tuple[str, ...], use: ServerUse, name: str
    ) -> tuple[Loaded, ssl.SSLContext] | None:
        """Return the profile of these that is for a name, and its context for a use; None if none is."""
        tables = self._by_name  # a handshake's thread is here: a change meanwhile begins others
        table = tables.get(profiles)
        if table is None:
            usable = (self.loaded(each) for each in profiles)
            table = tables[profiles] = table_of(each for each in usable if each is not None)
        found = find_by_name(table, name)
        context = None if found is None else found.contexts.get(use)
        return None if found is None or context is None else (found, context)

    def client(self, name: str, *, verify_hostname: bool) -> tuple[Loaded, ssl.SSLContext, ClientUse] | None:
        """Return profile, context and use for dialling; None if there is no such profile any more."""
        loaded = self.loaded(name)
        use = ClientUse(verify_hostname, self._compatible)
        context = None if loaded is None else loaded.contexts.get(use)
        return None if loaded is None or context is None else (loaded, context, use)

    def ends(self) -> Iterable[tuple[str, float]]:
        """Yield each profile that has its own certificate, and when that expires, in seconds since 1970."""
        for name, profile in self._profiles.items():
            if (end_s := profile.loaded.material.ends_at_s) is not None:
                yield name, end_s

    def oldest_valid(self, name: str) -> int:
        """Return the oldest generation of a profile whose connections may stay; 0 for an unknown profile."""
        loaded = self.loaded(name)
        return 0 if loaded is None else loaded.entity.oldest_valid_ordinal

    # --- as time goes by

    async def renew(self) -> list[Renewal]:
        """Load profiles whose files have changed and return the results; an unusable file changes nothing.

        Files that changed since the last look are left for the next, because they may still be changing.
        """
        renewals = []
        for name, profile in list(self._profiles.items()):
            entity, uses = profile.loaded.entity, profile.uses
            stamp = await _in_thread(stamp_for, entity, uses)
            settled, profile.seen = stamp == profile.seen, stamp
            if stamp in {profile.loaded.stamp, profile.failed} or not settled:
                continue
            if not self._compatible and not profile.accepted:
                danger, told = await _in_thread(danger_to, entity, uses), profile.danger
                profile.danger = danger
                if danger:
                    if danger != told:
                        renewals.append(Renewal(name, f"{danger}; {REFUSED}"))
                    continue
            try:
                loaded = await _in_thread(load, entity, uses, self._clock())
            except TlsProblem as problem:
                profile.failed = stamp
                renewals.append(Renewal(name, str(problem)))
            else:
                if self._profiles.get(name) is profile:  # the profile was not replaced meanwhile
                    renewed = Profile(loaded, uses, loaded.stamp, accepted=profile.accepted)
                    self._profiles[name] = renewed.continue_from(profile)
                    self._by_name = {}
                    renewals.append(Renewal(name))
        return renewals

    async def mended(self) -> bool:
        """Return whether an unusable profile has become usable, because its files have changed."""
        for name, fault in list(self._faults.items()):
            stamp = await _in_thread(stamp_for, fault.entity, fault.uses)
            if stamp == fault.stamp:
                continue
            with suppress(TlsProblem):
                await _in_thread(load, fault.entity, fault.uses, self._clock())
                return True
            self._faults[name] = replace(fault, stamp=stamp)
        return False

    def endings(self) -> list[tuple[str, int, float]]:
        """Return certificates that expire within 30, 7 or 1 days, each once: profile, days, seconds left."""
        endings = []
        for name, end_s in self.ends():
            left_s = end_s - self._clock()
            profile = self._profiles[name]
            days = next((days for days in WARN_DAYS if left_s <= days * DAY_S), None)
            if days is not None and days < profile.warned_days:
                profile.warned_days = days
                endings.append((name, days, left_s))
        return endings

    def objection(self, chain: Sequence[bytes], name: str, trusted_file: str = "") -> str:
        """Return why a chain that was verified before is not valid now; "" if it is (security.md 8.4)."""
        loaded = self.loaded(name)
        if loaded is None:
            return "its sslProfile is gone"
        try:
            certificates = [x509.load_der_x509_certificate(each) for each in chain]
            _ = certificates[0].subject
            if not loaded.trusts(certificates[-1], trusted_file):
                return "no authority that is trusted now has issued the certificate"
            return self._objection(certificates, loaded)
        except UNREADABLE:  # OpenSSL accepts more, but an unreadable certificate cannot be verified
            return "the certificate, or one of its issuers, cannot be read"

    def _objection(self, chain: Sequence[x509.Certificate], loaded: Loaded) -> str:
        """Check expiry and revocation lists; return the problem, or ""."""
        now_s = self._clock()
        if any(each.not_valid_after_utc.timestamp() < now_s for each in chain):
            return "the certificate, or one of its issuers, has expired"
        revocations = loaded.material.revocations
        return "" if revocations is None else revocations.problem(chain, now_s, required=loaded.entity.crl_required)


@dataclass(frozen=True, slots=True)
class PendingProfiles:
    """Loaded profiles, and the renewals of those whose files changed."""

    parts: TlsProfiles
    profiles: dict[str, Profile]
    renewals: list[Renewal]
    faults: dict[str, ProfileFault]

    def apply(self) -> None:
        """Use the profiles from now on."""
        self.parts.replace_profiles(self.profiles, self.faults)


def problems_in(configuration: Configuration, now_s: float) -> list[Problem]:
    """Return one problem for each unusable profile. Blocks."""
    uses = uses_in(configuration)
    found = []
    for entity in configuration.ssl_profiles:
        try:
            load(entity, frozenset(uses.get(entity.name, ())), now_s)
        except TlsProblem as problem:
            section, message = entity.type.section, str(problem)
            opens = not configuration.router.secure_defaults
            if opens and any(isinstance(use, ServerUse) for use in uses.get(entity.name, ())):
                message = f"{message}; its listeners {NO_HANDSHAKE}"
            found.append(Problem(entity.place, message, section, entity.name, severity=Severity.PROBLEM))
    return found


def _line(entity: SslProfileEntity, problem: TlsProblem) -> str:
    return f"{entity.identity} ({entity.place}): {problem}"


def uses_in(configuration: Configuration) -> Mapping[str, set[Use]]:
    """Return the uses of each profile, by its name."""
    profiles: dict[str, SslProfileEntity] = {entity.name: entity for entity in configuration.ssl_profiles}
    uses: dict[str, set[Use]] = {}
    common_name = not configuration.router.secure_defaults
    for listener in configuration.listeners:
        if (profile := profiles.get(listener.ssl_profile or "")) is not None:
            uses.setdefault(profile.name, set()).add(use_of(listener, profile))
            for name in (*listener.sni_profiles, profile.name) if listener.sni_profiles or listener.strict_sni else ():
                uses.setdefault(name, set()).add(use_by_name(listener, profile))
    for connector in configuration.connectors:
        if connector.ssl_profile:
            uses.setdefault(connector.ssl_profile, set()).add(ClientUse(connector.verify_hostname, common_name))
    for service in configuration.auth_services:
        if service.ssl_profile:
            uses.setdefault(service.ssl_profile, set()).add(ClientUse(service.verify_hostname, common_name))
    return uses


async def _in_thread(work: Callable[[*A], T], *arguments: *A) -> T:
    return await trio.to_thread.run_sync(work, *arguments)
