"""The trust in web servers other than Puppet servers: sources of files, receivers of reports."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

log = logging.getLogger("puppet")


def context(*, authority: Path | None, system: bool = True, trust_store: str = "", own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """
    Return a TLS context for such servers. Blocks.

    Args:
        authority: Certificates of the site's own CA, if there is such a file.
        system: Believe the system's CAs as well, and those in `trust_store` (the setting ssl_trust_store; a file that cannot
            be used is warned about and left out).
        own: Certificate and key to show, if there are such files.
    """
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls_context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authority is not None and authority.exists():
        tls_context.load_verify_locations(cafile=str(authority))
    if system:
        tls_context.load_default_certs()
        if trust_store:
            try:
                tls_context.load_verify_locations(cafile=trust_store)
            except OSError as err:  # what TLS says of a file is one too
                log.warning("The 'ssl_trust_store' setting names no file of certificates and is ignored: '%s': %s", trust_store, err)
    if own is not None and all(path.exists() for path in own):
        tls_context.load_cert_chain(*map(str, own))
    return tls_context
