"""The TLS listener of a store."""

from __future__ import annotations

from dataclasses import replace

from certs.oids import OidNames
from httpd.options import ServerOptions
from httpd.server import HttpServer
from httpd.tls.trust import TrustFiles
from shared.process.supervision import Supervisor
from shared.settings import MasterSettings

from ..endpoints.application import StoreApplication

_HINT = "Another program may use the port already; the settings are store_bindaddress and store_port."


def tls_server(application: StoreApplication, settings: MasterSettings, options: ServerOptions, supervisor: Supervisor) -> HttpServer:
    """Return the server over TLS; `options` are those of all places where the store listens. Blocks; ConfigError for a bad file."""
    oid_names = OidNames.load(settings.trusted_oid_mapping_file)
    return HttpServer(application, replace(options, trust=_trust_files(settings), oid_names=oid_names, listen_hint=_HINT), supervisor)


def _trust_files(settings: MasterSettings) -> TrustFiles:
    """Return the files of the store's TLS: those of this host, and on the CA's host the CA's own lists."""
    if settings.ca and (settings.cadir / "ca_crl.pem").exists():
        return TrustFiles(settings.hostcert, settings.hostprivkey, settings.cadir / "ca_crt.pem", settings.cadir / "ca_crl.pem")
    return TrustFiles(settings.hostcert, settings.hostprivkey, settings.localcacert, settings.hostcrl)
