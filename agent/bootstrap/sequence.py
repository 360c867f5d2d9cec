"""
The sequence of steps to a certificate. Pure.

Two sequences: that of 3.8 (also of 4 to 6.3) and the state machine of 6.4 and later. Source: protocol reference 5.11, 5.12.

    3.8     key → CA → certificate? → request at the CA? → send request → certificate? → (wait → certificate?)* → CRL
    6.4+    CA (refresh) → CRL (refresh) → key → send request → certificate? → (wait → send → certificate?)* → (renew)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cryptography import x509
from cryptography.hazmat.primitives import hashes


class BootstrapStep(Enum):
    """A step on the way to a certificate."""

    MAKE_KEY = "make key"
    FETCH_CA = "fetch CA"
    REFRESH_CA = "refresh CA"
    FETCH_CRL = "fetch CRL"
    REFRESH_CRL = "refresh CRL"
    FIND_REQUEST = "find request"
    SEND_REQUEST = "send request"
    FETCH_CERTIFICATE = "fetch certificate"
    RENEW = "renew"
    WAIT = "wait"
    GIVE_UP = "give up"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class BootstrapState:
    """
    The files on disk, the CA's answers so far, and how long to wait.

    Attributes:
        legacy: Whether the sequence of 3.8 applies.
        request: A request of ours is on disk.
        request_sought: The CA was asked whether it has one (3.8).
        submitted: The CA is known to have our request.
        asked: The CA was asked for the certificate and does not have it.
        crl_closed: The CA gives its CRL only to agents that have a certificate (Ruby masters of 4 and 5).
        ca_stale, crl_stale, renewal_due: A refresh is due and was not attempted yet.
        waitforcert: Seconds between two requests for the certificate; 0: do not wait.
        waited, maxwaitforcert: Seconds waited so far, and their limit; None: no limit.
    """

    legacy: bool
    key: bool = False
    ca: bool = False
    crl: bool = False
    certificate: bool = False
    request: bool = False
    revocation: bool = True
    request_sought: bool = False
    submitted: bool = False
    asked: bool = False
    crl_closed: bool = False
    ca_stale: bool = False
    crl_stale: bool = False
    renewal_due: bool = False
    waitforcert: int = 120
    waited: float = 0.0
    maxwaitforcert: int | None = None


def next_step(state: BootstrapState) -> BootstrapStep:
    """Return the step to do now."""
    return _legacy(state) if state.legacy else _modern(state)


def _legacy(state: BootstrapState) -> BootstrapStep:
    if not state.key:
        return BootstrapStep.MAKE_KEY
    if not state.ca:
        return BootstrapStep.FETCH_CA
    if not state.certificate:
        if not state.asked:
            return BootstrapStep.FETCH_CERTIFICATE
        if not state.request:
            return BootstrapStep.SEND_REQUEST if state.request_sought else BootstrapStep.FIND_REQUEST
        return _wait_or_give_up(state)
    if state.revocation and not state.crl:
        return BootstrapStep.FETCH_CRL
    if state.revocation and state.crl_stale:  # Puppet's own agent of 3.8 never refreshes the CRL; ours does, as its setting says
        return BootstrapStep.REFRESH_CRL
    return BootstrapStep.DONE


def _modern(state: BootstrapState) -> BootstrapStep:
    if not state.ca:
        return BootstrapStep.FETCH_CA
    if state.ca_stale:
        return BootstrapStep.REFRESH_CA
    if state.revocation and not state.crl and (state.certificate or not state.crl_closed):
        return BootstrapStep.FETCH_CRL
    if state.revocation and state.crl_stale:
        return BootstrapStep.REFRESH_CRL
    if not state.key:
        return BootstrapStep.MAKE_KEY
    if state.certificate:
        return BootstrapStep.RENEW if state.renewal_due else BootstrapStep.DONE
    if not state.submitted:
        return BootstrapStep.SEND_REQUEST
    if not state.asked:
        return BootstrapStep.FETCH_CERTIFICATE
    return _wait_or_give_up(state)


def _wait_or_give_up(state: BootstrapState) -> BootstrapStep:
    if state.waitforcert <= 0 or (state.maxwaitforcert is not None and state.waited >= state.maxwaitforcert):
        return BootstrapStep.GIVE_UP
    return BootstrapStep.WAIT


def spread_interval(certificate: x509.Certificate, seconds: int) -> int:
    """
    Return `seconds`, or up to a tenth less, always the same for one certificate.

    Agents that got their certificates on one day would otherwise all ask for new ones in the same half hour.
    """
    chance = int.from_bytes(certificate.fingerprint(hashes.SHA256())[:4]) / 2**32
    return round(seconds * (1 - 0.1 * chance))


def quarter_of_validity(certificate: x509.Certificate) -> int:
    """
    Return a quarter of a certificate's validity in seconds, the longest time before its end in which to warn.

    Otherwise a certificate that is made for two months, to be renewed, would be warned of from its first day on.
    """
    return round((certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() / 4)
