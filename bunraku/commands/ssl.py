"""Get, verify, show and remove this host's key and certificate. Source: command line reference 2.6."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509

from agent.bootstrap import Bootstrap
from agent.bootstrap.texts import NoCertificate, mismatch
from agent.process.agent import bootstrap_options
from agent.servers.http import HttpClient
from agent.servers.selection import locate_ca
from agent.servers.server import DialectCache
from agent.servers.sites import Site
from certs import fingerprints, keys, text, verify
from certs.files.ssldir import SslDir
from certs.verify import TrustStore
from shared.clock import utc_now
from shared.errors import ConfigError, PeerNotTrusted, PuppetError, Unsupported
from shared.filesystem.files import FileLock
from shared.indirector import Request
from shared.indirector.rest import Rest
from shared.models.certificate import CERTIFICATE
from shared.process import log as logs
from shared.process.cli import flag, maybe_text
from shared.process.command import CommandSpec
from shared.process.service import make_room
from shared.settings import AgentSettings, load
from shared.suggestions import did_you_mean

from ..faces import FaceOptions
from ..peer import open_server

log = logging.getLogger("puppet.ssl")


@dataclass(frozen=True, slots=True)
class SslOptions(FaceOptions):
    """The command line of `puppet ssl`."""

    target: str | None = maybe_text("DEVICE", None)
    localca: bool = flag("clean: the CA's certificate and its revocation list too")


@CommandSpec(
    "ssl",
    SslOptions,
    (AgentSettings,),
    usage=["ACTION [--localca]"],
    actions={
        "bootstrap": "get key, request and certificate, as the first run of the agent does; wait for the CA every waitforcert seconds",
        "submit_request": "the same, without waiting",
        "download_cert": "the same, and fail when the certificate is not there yet",
        "renew_cert": "get a new certificate for the same key, with the present one, which must still be valid",
        "verify": "check that the certificate belongs to the key, comes from the CA, is valid today, and is not revoked",
        "show": "print the certificate as text",
        "clean": "remove key, request and certificate of this host",
    },
    notes="""The CA is ca_server, on ca_port, or the first that answers of those that DNS (use_srv_records) or server_list names.

    Exit codes: 0 done, 1 it could not be done.""",
    is_face=False,
).main
def main(options: SslOptions, flags: dict[str, Any]) -> int:
    if not options.arguments:
        raise ConfigError("An action must be specified.", hint="Try 'puppet ssl --help'.")
    if options.target is not None:
        raise Unsupported("puppet ssl --target is for devices, which are not supported")
    action = options.action
    if action not in main.actions:
        hint = did_you_mean(action, main.actions, form="puppet ssl {}", otherwise=f"The actions are {', '.join(main.actions)}.")
        raise ConfigError(f"Unknown action '{action}'", hint=hint)
    options.exactly(0)
    settings = load(AgentSettings, section="agent", flags=flags)
    make_room(settings)
    logs.set_up(level=logs.level_of(settings, verbose=action == "bootstrap"))
    host = HostSsl(settings)
    actions: dict[str, Any] = {
        "bootstrap": host.bootstrap,
        "submit_request": host.submit_request,
        "download_cert": host.download_cert,
        "renew_cert": host.renew_cert,
        "verify": host.verify,
        "show": host.show,
        "clean": lambda: host.clean(localca=options.localca),
    }
    actions[action]()
    return 0


class HostSsl:
    """The ssldir of this host, and the actions on it."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings
        self.layout = SslDir.of(settings)
        self._ca = Site(settings.ca_server, settings.ca_port)

    def bootstrap(self) -> None:
        """NoCertificate when waiting is over."""
        asyncio.run(self._bootstrap(None))
        log.log(logs.NOTICE, "Completed SSL initialization")

    def submit_request(self) -> None:
        name = self.settings.certname
        try:
            asyncio.run(self._bootstrap(0))
        except NoCertificate:
            log.log(logs.NOTICE, "Submitted certificate request for '%s' to %s", name, self._ca.host)
            log.info("The certificate for '%s' has not yet been signed", name)
        else:
            self._downloaded()

    def download_cert(self) -> None:
        try:
            asyncio.run(self._bootstrap(0))
        except NoCertificate as err:
            raise PuppetError(f"The certificate for '{self.settings.certname}' has not yet been signed") from err
        self._downloaded()

    def _downloaded(self) -> None:
        certificate = self._certificate()
        log.log(logs.NOTICE, "Downloaded certificate '%s' with fingerprint %s", self.settings.certname, fingerprints.labelled(certificate))

    def renew_cert(self) -> None:
        """PeerNotTrusted without a certificate; PuppetError when the CA does not renew it."""
        self._certificate()
        lock = FileLock(self.layout.lock)
        lock.acquire(timeout=self.settings.waitforlock)
        try:
            asyncio.run(self._renew())
        finally:
            lock.release()
        self._downloaded()

    async def _renew(self) -> None:
        await (await asyncio.to_thread(self._enrolment, 0, await self._located())).renew()

    async def _bootstrap(self, waitforcert: int | None) -> None:
        await (await asyncio.to_thread(self._enrolment, waitforcert, self._ca)).run()

    def _enrolment(self, waitforcert: int | None, ca: Site) -> Bootstrap:
        """Return the steps to a certificate of that CA. Reads files: blocks."""
        settings = self.settings
        return Bootstrap(
            self.layout,
            ca,
            bootstrap_options(settings, waitforcert),
            lambda verifier: HttpClient.of(settings, verifier),
            DialectCache.load(settings.scheme, settings.statedir / "dialects.json"),
            now=utc_now,
            locate=self._located,
        )

    async def _located(self) -> Site:
        self._ca = await locate_ca(self.settings)
        return self._ca

    def _certificate(self) -> x509.Certificate:
        certificate = self.layout.certificate()
        if certificate is None:
            raise PeerNotTrusted(f"The client certificate is missing from '{self.layout.hostcert}'", hint="Run `puppet ssl bootstrap`.")
        return certificate

    def verify(self) -> None:
        """
        Say of each certificate of the chain that it holds, the CA's first.

        Raises:
            PeerNotTrusted: something is missing, does not belong together, or does not verify.
        """
        authorities = self.layout.authorities()
        if authorities is None:
            raise PeerNotTrusted(f"The CA certificates are missing from '{self.layout.localcacert}'", hint="Run `puppet ssl bootstrap`.")
        revocation = self.settings.certificate_revocation
        crls = self.layout.crls() if revocation != "false" else ()
        if crls is None:
            raise PeerNotTrusted(f"The CRL is missing from '{self.layout.hostcrl}'", hint="Run `puppet ssl bootstrap`.")
        key = self.layout.key()
        if key is None:
            raise PeerNotTrusted(f"The private key is missing from '{self.layout.hostprivkey}'")
        certificate = self._certificate()
        if not keys.belongs(key, certificate.public_key()):
            raise mismatch(certificate, self.layout, self.settings.ca_server)
        trust = TrustStore(authorities, crls, False if revocation == "false" else revocation)
        chain = verify.verify(certificate, trust, now=datetime.now(UTC), purpose="client")
        for member in reversed(chain):
            kind = "client" if member is chain[0] else "CA"
            log.log(
                logs.NOTICE, "Verified %s certificate '%s' fingerprint %s", kind, verify.subject_of(member), fingerprints.labelled(member)
            )

    def show(self) -> None:
        print(text.certificate(self._certificate()).rstrip("\n"))

    def clean(self, *, localca: bool) -> None:
        """Remove this host's files; PuppetError while this host is the CA, and has not forgotten the certificate."""
        settings = self.settings
        layout = self.layout
        is_the_master = (layout.root / "ca" / "signed" / f"{settings.certname}.pem").exists()
        if is_the_master or (settings.certname == settings.ca_server and asyncio.run(self._known_to_the_ca())):
            raise PuppetError(
                f"The certificate {settings.certname} must be cleaned from the CA first",
                hint=f"Run 'puppet cert clean --force {settings.certname}' or 'puppetserver ca clean --certname {settings.certname}'.",
            )
        own = {
            "private key": layout.hostprivkey,
            "public key": layout.hostpubkey,
            "certificate request": layout.hostcsr,
            "certificate": layout.hostcert,
        }
        of_the_ca: dict[str, Path] = {"local CA certificate": layout.localcacert, "local CRL": layout.hostcrl} if localca else {}
        for label, path in (own | of_the_ca).items():
            try:
                path.unlink()
            except FileNotFoundError:
                continue
            log.log(logs.NOTICE, "Removed %s %s", label, path)

    async def _known_to_the_ca(self) -> bool:
        settings = self.settings
        async with open_server(settings, "ca") as server:
            certificate = await Rest(CERTIFICATE, server, prefix="puppet-ca").find(Request(settings.certname, settings.environment))
        return certificate is not None
