"""When certificates and revocation lists end: for warnings at 30, 7 and 1 days, for the metrics, for `--check`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from certs import bundles, certificates
from shared.errors import PuppetError

from ..ca.authority import CertificateAuthority
from ..ca.storage.store import is_name
from ..http.tls import TrustFiles
from ..observability.metrics import Metrics

log = logging.getLogger("puppet.master")

DAYS = (30, 7, 1)  # before an end, at which it is warned of
EVERY = 3600.0  # seconds between two looks
MOST_NAMES = 10  # agents that are named in one sentence

WHAT_TO_DO = {
    "master": "A master that is the CA renews its own; on another, run an agent with the same ssldir.",
    "ca": "Every certificate ends with it: 'puppet cert rollover start' makes the next one, which all agents must have before that day.",
    "crl": "After it no certificate is accepted any more. The CA renews its own, and other masters fetch it;"
    " lists of other authorities have to be uploaded.",
    "agent": "Agents of version 8 and ours renew theirs at their runs; the others need new ones: 'puppet cert clean NAME' here, 'puppet ssl"
    " clean' there, then a run.",
}
ENDED_AGENTS = (  # TLS refuses an ended certificate, so that its agent cannot even ask for another
    "They cannot renew themselves any more. For each that is still in use: 'puppet cert clean NAME' here, 'puppet ssl clean' there,"
    " then a run; for the others 'puppet node clean NAME'."
)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of one certificate or revocation list."""

    kind: Literal["master", "ca", "crl", "agent"]
    name: str
    end: datetime

    def step(self, now: datetime) -> int | None:
        """The least of DAYS within which it ends, 0 when it has ended, None when it is far."""
        left = self.end - now
        if left <= timedelta(0):
            return 0
        return min((days for days in DAYS if left <= timedelta(days=days)), default=None)


def server_endings(files: TrustFiles) -> list[Ending]:
    """The ends of a master's own certificate, of its authorities and of their lists. Blocks; PuppetError, OSError."""
    own = bundles.certificate(files.certificate.read_bytes())
    found = [Ending("master", certificates.name_of(own), own.not_valid_after_utc)]
    for each in bundles.certificates(files.authorities.read_bytes()):
        found.append(Ending("ca", certificates.name_of(each), each.not_valid_after_utc))
    for crl in bundles.revocation_lists(files.crl.read_bytes()):
        if crl.next_update_utc is not None:
            found.append(Ending("crl", crl.issuer.rfc4514_string().removeprefix("CN="), crl.next_update_utc))
    return found


def agent_endings(authority: CertificateAuthority) -> list[Ending]:
    """The ends of what is in signed/ and not revoked, by the inventory's dates. Blocks."""
    ledger, revoked, found = authority.store.ledger(), authority.revoked(), []
    for name in authority.store.signed_names():
        ends = [record.not_after for record in ledger.of(name) if record.serial not in revoked] if is_name(name) else []
        if ends and name != authority.rules.master:
            found.append(Ending("agent", name, max(ends)))
    return found


def expiry_warnings(endings: Iterable[Ending], now: datetime) -> list[str]:
    """One for each thing of the master's that ends soon, and one for all agents of a step; the most urgent first."""
    found: list[tuple[int, str]] = []
    agents: dict[int, list[str]] = {}
    for each in endings:
        step = each.step(now)
        if step is None:
            continue
        if each.kind == "agent":
            agents.setdefault(step, []).append(each.name)
            continue
        what = {"master": "The certificate of this master", "ca": "The CA's certificate", "crl": "The revocation list of"}[each.kind]
        found.append((step, f"{what} '{each.name}' {_when(each.end, step)}. {WHAT_TO_DO[each.kind]}"))
    for step, names in agents.items():
        shown = ", ".join(sorted(names)[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
        within = f"end within {step} days" if step > 1 else "end within a day" if step else "have ended"
        found.append((step, f"Certificates of agents {within}: {shown}. {WHAT_TO_DO['agent'] if step else ENDED_AGENTS}"))
    return [sentence for _, sentence in sorted(found)]


def _when(end: datetime, step: int) -> str:
    return f"{'ends' if step else 'ended'} on {certificates.time_text(end)}"


class Expiries:
    """
    Looks at the ends now and then; says each once a step, and again when the master starts anew.

    Args:
        read: gives all ends; blocks; PuppetError, OSError.
    """

    def __init__(self, read: Callable[[], Sequence[Ending]], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.read = read
        self.now = now
        self.ends: list[Ending] = []  # but for those of agents
        self.agents: dict[int, int] = {}  # how many end within so many days
        self._told: dict[tuple[str, str, datetime], int] = {}

    def look(self) -> list[str]:
        """Sentences about what has come nearer since the last look. Blocks."""
        now, endings = self.now(), self.read()
        self.ends = [each for each in endings if each.kind != "agent"]
        agents = [each.step(now) for each in endings if each.kind == "agent"]
        self.agents = {days: sum(step is not None and step <= days for step in agents) for days in (0, *reversed(DAYS))}
        steps = {(each.kind, each.name, each.end): (each, step) for each in endings if (step := each.step(now)) is not None}
        fresh = [each for key, (each, step) in steps.items() if self._told.get(key) != step]
        self._told = {key: step for key, (_, step) in steps.items()}
        return expiry_warnings(fresh, now)

    async def watch(self, *, every: float = EVERY) -> None:
        """Runs until cancelled: warns."""
        while True:
            try:
                for sentence in await asyncio.to_thread(self.look):
                    log.warning("%s", sentence)
            except (PuppetError, OSError) as err:
                log.error("It is not known when certificates end: %s", err)
            await asyncio.sleep(every)

    def describe(self, metrics: Metrics) -> None:
        """Have the ends in the metrics."""
        doc = "When the master's certificate, the CA's and the revocation lists end, in seconds since the epoch."
        metrics.read(
            "puppet_certificate_end_seconds",
            "gauge",
            doc,
            lambda: [((each.kind, each.name), each.end.timestamp()) for each in self.ends],
            "kind",
            "name",
        )
        doc = "Agents whose certificate ends within so many days, those that have ended among them."
        metrics.read(
            "puppet_agent_certificates_ending",
            "gauge",
            doc,
            lambda: [((str(days),), count) for days, count in self.agents.items()],
            "days",
        )
