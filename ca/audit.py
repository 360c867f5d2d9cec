"""The audit trail: one JSON line for each decision of the CA, and for each request that was refused."""

from __future__ import annotations

import getpass
import json
import logging
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from cryptography import x509

from certs.certificates import time_text
from certs.fingerprints import fingerprint
from shared.clock import utc_now
from shared.errors import ConfigError
from shared.filesystem.files import make_directory, open_for_appending
from shared.process.log import NOTICE, ORIGIN

Audit = Callable[[dict[str, object]], None]

log = logging.getLogger("puppet.ca.audit")

MODE = 0o640


def line(entry: Mapping[str, object]) -> str:
    """Return an entry as JSON on one line, which escapes control and non-ASCII characters."""
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":"))


_SENTENCES = {
    "create-ca": "Made the CA '{name}'",
    "sign": "Signed the certificate of {name}",
    "generate": "Made key and certificate of {name}",
    "renew": "Renewed the certificate of {name}",
    "revoke": "Revoked the certificates of {name}",
    "request": "Stored a certificate request of {name}",
    "delete": "Removed the CA's files of {name}",
    "delete-request": "Removed the certificate request of {name}",
    "reinventory": "Rebuilt the inventory",
    "refresh-crl": "Renewed the revocation list",
    "upload-crl": "Took over revocation lists",
    "rollover-start": "Made the next CA '{name}'",
    "rollover-switch": "From now on '{name}' signs",
    "rollover-finish": "Retired the CA before '{name}'",
}
ACTIONS = tuple(sorted(_SENTENCES.keys() - {"generate"}))  # of a CA that serves, as the entries name them
_EXPECTED = frozenset({"done", "stored"})  # results that the sentence says already


def sentence(entry: Mapping[str, object]) -> str:
    """Return an entry as a sentence for people: action, name, actor, result and fingerprint."""
    action, name, by, result = (str(entry.get(key, "")) for key in ("action", "name", "by", "result"))
    known = _SENTENCES.get(action)
    refused = result.startswith("refused")
    text = known.format(name=name) if known and not refused else f"{action} {name}".strip()
    if result not in _EXPECTED and (action != "delete" or refused or result.startswith("nothing")):
        text += f": {result}"
    details = [
        *([f"fingerprint (SHA256) {entry['fingerprint']}"] if entry.get("fingerprint") and action != "revoke" else []),
        *([f"valid until {entry['not_after']}"] if entry.get("not_after") else []),
        *([f"by {by}"] if by else []),
    ]
    return f"{text} ({', '.join(details)})" if details else text


def to_log(entry: dict[str, object]) -> None:
    """Write a sentence to the logger `puppet.ca.audit`; logs with fields of their own, in JSON and in the journal, get the entry's, too."""
    log.log(NOTICE, "%s", sentence(entry), extra={"fields": entry})


class Trail:
    """
    Entries in a file, each with its time and, where a request is being answered, that one's id and address.

    The file is opened for each line, so that it may be rotated at any time, and so that `puppet cert` can write it, too.
    """

    def __init__(self, path: Path, now: Callable[[], datetime] = utc_now) -> None:
        self.path = path
        self.now = now

    def check(self) -> None:
        """Raise ConfigError when nothing can be written there."""
        try:
            self._append(b"")
        except OSError as err:
            raise ConfigError(
                f"Could not write the audit log {self.path}: {err.strerror}",
                hint=f"Give the master's account the folder {self.path.parent}, or set auditlog to another file, or to '' for none.",
            ) from err

    def write(self, entry: Mapping[str, object]) -> None:
        """Add an entry; if it cannot be written, log an error only, because the action has happened already."""
        origin = ORIGIN.get()
        origin_fields = {"from": origin.address, "request": origin.request} if origin is not None else {}
        try:
            self._append(line({"time": self.now().isoformat(timespec="milliseconds"), **entry, **origin_fields}).encode() + b"\n")
        except OSError as err:
            log.error("Could not write the audit log %s: %s: %s", self.path, err.strerror, line(entry))

    def _append(self, data: bytes) -> None:
        make_directory(self.path.parent, mode=0o750, inherit=True)
        fd = open_for_appending(self.path, mode=MODE)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)


def by_command_line() -> str:
    """Return the user of this command, for an entry."""
    try:
        user = getpass.getuser() if "SUDO_USER" not in os.environ else f"{os.environ['SUDO_USER']} by sudo"
    except (OSError, KeyError):
        user = f"uid {os.getuid()}"
    return f"{user} at the command line"


def entry(action: str, name: str, *, by: str, result: str = "done", **details: object) -> dict[str, object]:
    """Return an entry: what happened to whom, by whom, with which result; details that are None are left out."""
    return {"action": action, "name": name, "by": by, "result": result} | {k: v for k, v in details.items() if v is not None}


def of_certificate(certificate: x509.Certificate) -> dict[str, object]:
    """Return the details of a certificate that an audit needs."""
    return {
        "serial": certificate.serial_number,
        "fingerprint": fingerprint(certificate),
        "not_after": time_text(certificate.not_valid_after_utc),
    }
