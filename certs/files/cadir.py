"""The layout of a CA's directory: which file is where. Source: protocol reference 5.2."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CaFiles:
    """The paths of all files of a CA; each path is a setting of its own in Puppet, so each can be moved."""

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
    def at(cls, cadir: Path, **moved: Path) -> CaFiles:
        """Return the usual places below `cadir`, but for those given by their setting's name."""
        usual = {
            "cadir": cadir,
            "cacert": cadir / "ca_crt.pem",
            "cakey": cadir / "ca_key.pem",
            "capub": cadir / "ca_pub.pem",
            "cacrl": cadir / "ca_crl.pem",
            "serial": cadir / "serial",
            "cert_inventory": cadir / "inventory.txt",
            "csrdir": cadir / "requests",
            "signeddir": cadir / "signed",
            "capass": cadir / "private" / "ca.pass",
        }
        return cls(**{field.name: moved.get(field.name, usual[field.name]) for field in fields(cls)})

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
    def staging(self) -> Path:
        """The folder in which a new CA is prepared before it is moved into place."""
        return self.cadir / ".new"
