"""The state of a name at the CA: requested, signed or revoked. Source: protocol reference 3.11."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from ..indirector.core import Indirection, Model
from ..wire.dialects import LEGACY, Dialect


class CertificateStatus(Model):
    """
    The CA's state of a name, or, with `desired_state`, the state that the caller asks for.

    The CA checks what a caller sends, so its fields accept any value here; a body without a name means the key of the URL. Times are
    texts as they are on the wire.
    """

    takes_name_of_key: ClassVar[bool] = True

    name: str = ""
    state: str = ""
    desired_state: Any = None
    cert_ttl: Any = None
    fingerprint: str = ""
    fingerprints: dict[str, str] = Field(default_factory=dict)
    dns_alt_names: list[str] = Field(default_factory=list)
    subject_alt_names: list[str] = Field(default_factory=list)
    authorization_extensions: dict[str, str] = Field(default_factory=dict)
    serial_number: int | None = None
    not_before: str | None = None
    not_after: str | None = None

    def to_data(self, dialect: Dialect) -> Any:
        if self.desired_state is not None and not self.state:  # asked for by a request to the CA
            wish = {"name": self.name, "desired_state": self.desired_state}
            return wish | ({"cert_ttl": self.cert_ttl} if self.cert_ttl is not None else {})
        common = {
            "name": self.name,
            "state": self.state,
            "fingerprint": self.fingerprint,
            "fingerprints": self.fingerprints,
            "dns_alt_names": self.dns_alt_names,
        }
        if dialect is LEGACY:
            return common | ({"desired_state": self.desired_state} if self.desired_state is not None else {})
        common |= {"subject_alt_names": self.subject_alt_names, "authorization_extensions": self.authorization_extensions}
        dated = {"serial_number": self.serial_number, "not_before": self.not_before, "not_after": self.not_after}
        return common | {key: value for key, value in dated.items() if value is not None}


CERTIFICATE_STATUS = Indirection(
    name="certificate_status",
    model=CertificateStatus,
    plural="certificate_statuses",
    options=frozenset({"state", "for"}),
    repeatable=frozenset({"for"}),
    ruby_class="Puppet::SSL::Host",
    needs_environment=False,
    doc="Whether a certificate is requested, signed or revoked.",
)
