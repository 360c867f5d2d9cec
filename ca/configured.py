"""The CA's part of the settings, as the plain values that the CA takes."""

from __future__ import annotations

from pathlib import Path

from certs.keys import KeyKind
from shared.errors import ConfigError
from shared.settings import MasterSettings

from .audit import Audit, Trail
from .authority import CaOptions
from .policy import SigningPolicy


def ca_options(settings: MasterSettings) -> CaOptions:
    """Return how the CA works."""
    return CaOptions(
        ca_ttl=settings.ca_ttl,
        renewal_ttl=settings.auto_renewal_cert_ttl,
        crl_ttl=settings.crl_ttl,
        allow_duplicate_certs=settings.allow_duplicate_certs,
        allow_auto_renewal=settings.allow_auto_renewal,
        policy=SigningPolicy(settings.allow_subject_alt_names, settings.allow_authorization_extensions),
        master=settings.certname,
        max_pending_requests=settings.max_pending_requests,
        max_pending_bytes=settings.max_pending_bytes,
    )


def audit_of(settings: MasterSettings, *, check: bool = True) -> Audit:
    """
    Return the audit log in the folder of the logs. Blocks.

    Args:
        check: raise ConfigError when it is not writable now.
    """
    if not settings.auditlog:
        return lambda entry: None
    if not settings.auditlog.startswith("/"):
        raise ConfigError(f"The setting auditlog is no absolute path: {settings.auditlog}", hint="Write one, or '' for no such file.")
    trail = Trail(Path(settings.auditlog))
    if check:
        trail.check()
    return trail.write


def key_kind(settings: MasterSettings) -> KeyKind:
    """Return what kind of private key is made."""
    return KeyKind(settings.key_type, settings.keylength, settings.named_curve)
