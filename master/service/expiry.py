"""The ends of certificates and revocation lists: for warnings at 30, 7 and 1 days, for the metrics, for `--check`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ca.authority import CertificateAuthority
from certs import certificates
from certs.files import bundles
from httpd.tls.trust import TrustFiles
from shared.clock import utc_now
from shared.errors import PuppetError
from shared.names import is_certname

from ..observability.metrics import Metrics

log = logging.getLogger("puppet.master")

DAYS = (30, 7, 1)  # before an end, at which a warning is logged
LOOK_EVERY = 3600.0  # seconds between two looks
RENEWED = timedelta(days=27)  # before its end an agent has renewed its certificate: hostcert_renewal_interval, spread over a tenth of it
MAX_NAMES = 10  # agents in one sentence

REMEDIES = {
    "master": "A master that is the CA renews its own; on another, run an agent with the same ssldir.",
    "ca": "All certificates expire with it: 'puppet cert rollover start' makes the next one, which all agents must have before that day.",
    "crl": "After it no certificate is accepted any more. The CA renews its own, and other masters fetch it;"
    " lists of other authorities have to be uploaded.",
    "agent": "These agents do not renew them: version 8 and ours do so 30 to 27 days before expiry (see their logs)."
    " The others need new ones: 'puppet cert clean NAME' here, 'puppet ssl clean' there, then a run.",
}
REMEDY_OF_ENDED_AGENTS = (  # TLS refuses an ended certificate, so that its agent cannot even ask for another
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
        """
        Return the least of DAYS within which it ends, 0 when it has ended, None when it ends later than all of them.

        An agent's does not count while the agent may still renew it.
        """
        remaining = self.end - now
        if remaining <= timedelta(0):
            return 0
        if self.kind == "agent" and remaining > RENEWED:
            return None
        return min((days for days in DAYS if remaining <= timedelta(days=days)), default=None)


def server_endings(files: TrustFiles) -> list[Ending]:
    """Return the ends of a master's own certificate, of its authorities and of their lists. Blocks; raises PuppetError, OSError."""
    own = bundles.certificate(files.certificate.read_bytes())
    endings = [Ending("master", certificates.name_of(own), own.not_valid_after_utc)]
    for authority in bundles.certificates(files.authorities.read_bytes()):
        endings.append(Ending("ca", certificates.name_of(authority), authority.not_valid_after_utc))
    for crl in bundles.revocation_lists(files.crl.read_bytes()):
        if crl.next_update_utc is not None:
            endings.append(Ending("crl", crl.issuer.rfc4514_string().removeprefix("CN="), crl.next_update_utc))
    return endings


def agent_endings(authority: CertificateAuthority) -> list[Ending]:
    """Return the ends of the certificates in signed/ that are not revoked, by the inventory's dates. Blocks."""
    inventory, revoked, endings = authority.store.inventory(), authority.revoked(), []
    for name in authority.store.signed_names():
        ends = [record.not_after for record in inventory.of(name) if record.serial not in revoked] if is_certname(name) else []
        if ends and name != authority.rules.master:
            endings.append(Ending("agent", name, max(ends)))
    return endings


def expiry_warnings(endings: Iterable[Ending], now: datetime) -> list[str]:
    """Return a sentence for each thing of the master that ends soon, and one for all agents of a step; the most urgent first."""
    warnings_by_step: list[tuple[int, str]] = []
    agents: dict[int, list[str]] = {}
    for ending in endings:
        step = ending.step(now)
        if step is None:
            continue
        if ending.kind == "agent":
            agents.setdefault(step, []).append(ending.name)
            continue
        subject = {"master": "The certificate of this master", "ca": "The CA's certificate", "crl": "The revocation list of"}[ending.kind]
        warnings_by_step.append((step, f"{subject} '{ending.name}' {_when(ending.end, step)}. {REMEDIES[ending.kind]}"))
    for step, names in agents.items():
        listed = ", ".join(sorted(names)[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
        within = f"expire within {step} days" if step > 1 else "expire within a day" if step else "have expired"
        warnings_by_step.append(
            (step, f"Certificates of agents {within}: {listed}. {REMEDIES['agent'] if step else REMEDY_OF_ENDED_AGENTS}")
        )
    return [sentence for _, sentence in sorted(warnings_by_step)]


def _when(end: datetime, step: int) -> str:
    return f"{'expires' if step else 'expired'} on {certificates.time_text(end)}"


class Expiries:
    """
    Reads the ends at intervals and warns of each once a step, and again after a restart of the master.

    Args:
        read: Returns all ends. Blocks; raises PuppetError, OSError.
    """

    def __init__(self, read: Callable[[], Sequence[Ending]], *, now: Callable[[], datetime] = utc_now) -> None:
        self.read = read
        self.now = now
        self.ends: list[Ending] = []  # without those of agents
        self.agents: dict[int, int] = {}  # how many end, by days
        self._warned_steps: dict[tuple[str, str, datetime], int] = {}

    def new_warnings(self) -> list[str]:
        """Read the ends; return sentences about those that have reached another step since the last time. Blocks."""
        now, endings = self.now(), self.read()
        self.ends = [ending for ending in endings if ending.kind != "agent"]
        agents = [ending.step(now) for ending in endings if ending.kind == "agent"]
        self.agents = {days: sum(step is not None and step <= days for step in agents) for days in (0, *reversed(DAYS))}
        steps = {(ending.kind, ending.name, ending.end): (ending, step) for ending in endings if (step := ending.step(now)) is not None}
        new = [ending for key, (ending, step) in steps.items() if self._warned_steps.get(key) != step]
        self._warned_steps = {key: step for key, (_, step) in steps.items()}
        return expiry_warnings(new, now)

    async def watch(self, *, every: float = LOOK_EVERY) -> None:
        """Run until cancelled: log warnings."""
        while True:
            try:
                for sentence in await asyncio.to_thread(self.new_warnings):
                    log.warning("%s", sentence)
            except (PuppetError, OSError) as err:
                log.error("Could not read when certificates expire: %s", err)
            await asyncio.sleep(every)

    def describe(self, metrics: Metrics) -> None:
        """Add the ends to the metrics."""
        doc = "When the master's certificate, the CA's and the revocation lists expire, in seconds since the epoch."
        metrics.read(
            "puppet_certificate_end_seconds",
            "gauge",
            doc,
            lambda: [((ending.kind, ending.name), ending.end.timestamp()) for ending in self.ends],
            "kind",
            "name",
        )
        doc = "Agents whose certificate expires within this many days, including those that have expired."
        metrics.read(
            "puppet_agent_certificates_ending",
            "gauge",
            doc,
            lambda: [((str(days),), count) for days, count in self.agents.items()],
            "days",
        )
