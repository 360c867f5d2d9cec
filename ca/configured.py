"""The CA's part of the settings, as the values that the CA takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from certs.files.cadir import CaFiles
from certs.keys import KeyKind
from shared.errors import ConfigError
from shared.indirector.routes import read_routes
from shared.models.certificate import CERTIFICATE
from shared.settings import MasterSettings
from shared.state.masters import SharedState

from .audit import Audit, Trail
from .authority import CaOptions
from .policy import SigningPolicy
from .signers import password
from .storage.folder import FolderStore
from .storage.store import CaStore


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


def ca_files(settings: MasterSettings) -> CaFiles:
    """Return the places of the CA's files on this machine."""
    files = CaFiles.at(settings.cadir)
    return replace(files, capass=Path(settings.ca_key_passphrase)) if settings.ca_key_passphrase else files


def ca_place(settings: MasterSettings) -> str:
    """Return where the CA is, as in the setting state; routes.yaml may leave it in files. ConfigError for another terminus."""
    route = read_routes(settings.route_file, "master").get(CERTIFICATE.name)
    terminus = route.terminus if route is not None else None
    if settings.state == "files":
        if terminus == "postgresql":
            raise ConfigError(
                "The terminus postgresql of certificate needs a database", hint="Set state = postgresql://USER@HOST/DATABASE."
            )
        return "files"
    if terminus not in (None, "postgresql", "ca", "file"):
        raise ConfigError(f"There is no terminus {terminus} for certificate", hint="There are postgresql, and ca or file for files.")
    return "files" if terminus in ("ca", "file") else settings.state


def ca_store(settings: MasterSettings, state: SharedState | None = None) -> CaStore:
    """
    Return the store of the CA: its folder, or the database that masters share. Nothing is read yet.

    Args:
        state: The state of a master that runs; None: it is opened, where the settings name one.
    Raises:
        ConfigError: A setting or routes.yaml is wrong, or the passphrase of the key is missing.
    """
    if settings.ca and settings.ca_key_passphrase and password(ca_files(settings)) is None:
        raise ConfigError(
            f"There is no passphrase in {settings.ca_key_passphrase}",
            hint="The setting is ca_key_passphrase; a systemd credential is there only while the unit runs.",
        )
    place = ca_place(settings)
    files = ca_files(settings)
    state = None if place == "files" else state or SharedState.at(place)
    if state is None:
        return FolderStore(files)
    from .storage.database import DatabaseStore  # SQLAlchemy takes 10 MB, which a master with files does without

    return DatabaseStore(files, state.database, settings.certname, password(files))


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
