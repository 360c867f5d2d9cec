"""The layout of a CA's directory: which file is where. Source: protocol reference 5.2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CaFiles:
    """Where everything of a CA is, by the names that Puppet's settings have for it."""

    cadir: Path
    cacert: Path
    cakey: Path
    capub: Path
    cacrl: Path
    serial: Path
    cert_inventory: Path
    csrdir: Path
    signeddir: Path
    capass: Path

    @classmethod
    def at(cls, cadir: Path) -> CaFiles:
        """Return the places below `cadir`."""
        names = ("ca_crt.pem", "ca_key.pem", "ca_pub.pem", "ca_crl.pem", "serial", "inventory.txt", "requests", "signed", "private/ca.pass")
        return cls(cadir, *(cadir / name for name in names))

    @property
    def essential(self) -> dict[str, Path]:
        """The paths that a CA needs, by name."""
        return {
            "key": self.cakey,
            "certificate": self.cacert,
            "CRL": self.cacrl,
            "serial": self.serial,
            "inventory": self.cert_inventory,
        }

    @property
    def rollover(self) -> Path:
        """The folder of a roll-over that is under way."""
        return self.cadir / "rollover"

    @property
    def master_lock(self) -> Path:
        """The lock that a master holds while it runs."""
        return self.cadir / "master.lock"

    @property
    def staging(self) -> Path:
        """The folder in which a new CA is prepared before it is moved into place."""
        return self.cadir / ".new"
