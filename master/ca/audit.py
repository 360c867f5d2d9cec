"""The CA's audit trail: one JSON line for each decision."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from cryptography import x509

from certs.certificates import time_text
from certs.fingerprints import fingerprint
from shared.log import NOTICE

Audit = Callable[[dict[str, object]], None]

log = logging.getLogger("puppet.ca.audit")


def to_log(entry: dict[str, object]) -> None:
    """One line on the logger `puppet.ca.audit`, shown at the usual level; JSON escapes control and non-ASCII characters."""
    log.log(NOTICE, "%s", json.dumps(entry, ensure_ascii=True, separators=(",", ":")))


def entry(action: str, name: str, *, by: str, result: str = "done", **details: object) -> dict[str, object]:
    """What happened to whom, by whom, with which result; details that are None are left out."""
    return {"action": action, "name": name, "by": by, "result": result} | {k: v for k, v in details.items() if v is not None}


def of_certificate(certificate: x509.Certificate) -> dict[str, object]:
    """The details of a certificate that an audit needs."""
    return {
        "serial": certificate.serial_number,
        "fingerprint": fingerprint(certificate),
        "not_after": time_text(certificate.not_valid_after_utc),
    }
