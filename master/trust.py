"""The files of the server's TLS."""

from __future__ import annotations

from certs.files.cadir import CaFiles
from httpd.tls.trust import TrustFiles
from shared.settings import MasterSettings


def trust_files(settings: MasterSettings) -> TrustFiles:
    """Return the files of the server's TLS; on the CA's master those of the CA itself, so that a revocation counts at once."""
    if settings.ca:
        files = CaFiles.at(settings.cadir)
        return TrustFiles(settings.hostcert, settings.hostprivkey, files.cacert, files.cacrl)
    return TrustFiles(settings.hostcert, settings.hostprivkey, settings.localcacert, settings.hostcrl)
