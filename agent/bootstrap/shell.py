"""The execution of the bootstrap's steps, with the files of the ssldir and the CA."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography import x509

from certs import fingerprints, keys, verify
from certs.files import bundles
from certs.files.ssldir import SslDir
from certs.keys import PrivateKey
from certs.verify import TrustStore
from shared.errors import BadData, PeerAnswered, PeerError, PeerNotTrusted, PuppetError, TooLarge, Unsupported
from shared.failpoints import failpoint
from shared.filesystem.files import FileLock
from shared.indirector import paths
from shared.indirector.core import Indirection, Request
from shared.indirector.rest import Answer
from shared.models.certificate import CERTIFICATE
from shared.models.certificate_request import CERTIFICATE_REQUEST
from shared.models.certificate_revocation_list import CERTIFICATE_REVOCATION_LIST
from shared.process.log import NOTICE
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..servers.server import DialectCache, Server, dialect_of, version_of
from ..servers.tls import Verifier
from . import texts
from .answers import accept_header, one_line, unexpected_answer
from .keeping import save_authorities, save_crls
from .options import BootstrapOptions
from .sequence import BootstrapState, BootstrapStep, next_step, quarter_of_validity, spread_interval

if TYPE_CHECKING:
    from ..servers.http import HttpClient
    from ..servers.sites import Site

log = logging.getLogger("puppet.ssl")

MAX_STEPS = 100  # between two waits; more steps are a fault of the sequence


@dataclass(eq=False, repr=False)
class Bootstrap:
    """
    Prepares an ssldir for a verified connection.

    Args:
        site: The server of the CA.
        connect: Makes a pool of connections with that trust; with None an unverified one, used only for the CA's certificate.
        tell: Prints a line for the person at the terminal.
        locate: Finds the server of the CA when it has to be asked; None: it is `site`.
    """

    layout: SslDir
    site: Site
    options: BootstrapOptions
    connect: Callable[[Verifier | None], HttpClient]
    dialects: DialectCache
    _: KW_ONLY
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    tell: Callable[[str], None] = print
    locate: Callable[[], Awaitable[Site]] | None = None
    _client: HttpClient | None = field(default=None, init=False)  # verified with the CA; for this bootstrap only

    async def run(self) -> Verifier:
        """
        Return the verifier for further connections: the trusted servers, and the certificate to present.

        Raises:
            NoCertificate: there is none, and the time to wait for one is over or zero.
            PeerNotTrusted: the CA or our own certificate cannot be used; the message has a remedy.
            PeerError, OSError: the CA or the disk failed.
            Unavailable: another process holds the lock.
        """
        await asyncio.to_thread(self.layout.create)
        lock = FileLock(self.layout.lock)
        # Two agents that start at once would make two keys, of which one overwrites the other.
        await asyncio.to_thread(lock.acquire, timeout=self.options.waitforlock)
        try:
            state = await self._initial_state()
            steps = 0  # since the start or the last wait: a person may take days to sign
            while steps < MAX_STEPS:
                step = next_step(state)
                steps += 1
                if step is BootstrapStep.DONE:
                    return await asyncio.to_thread(self._verify_certificate)
                if step is BootstrapStep.WAIT:
                    await self._close()
                    # While a person has to sign, `puppet ssl` and other commands must be able to work.
                    await asyncio.to_thread(lock.release)
                    state = await self._wait(state)
                    steps = 0
                    await asyncio.to_thread(lock.acquire, timeout=max(self.options.waitforlock, 60.0))
                    continue
                state = await self._steps()[step](state)
            raise PuppetError("The bootstrap goes round in circles; this is a fault in the agent")
        finally:
            await self._close()
            lock.release()

    def _steps(self) -> Mapping[BootstrapStep, Callable[[BootstrapState], Awaitable[BootstrapState]]]:
        return {
            BootstrapStep.MAKE_KEY: self._make_key,
            BootstrapStep.FETCH_CA: self._fetch_ca,
            BootstrapStep.REFRESH_CA: self._refresh_ca,
            BootstrapStep.FETCH_CRL: self._fetch_crl,
            BootstrapStep.REFRESH_CRL: self._refresh_crl,
            BootstrapStep.FIND_REQUEST: self._find_request,
            BootstrapStep.SEND_REQUEST: self._send_request,
            BootstrapStep.FETCH_CERTIFICATE: self._fetch_certificate,
            BootstrapStep.RENEW: self._renew,
            BootstrapStep.GIVE_UP: self._give_up,
        }

    # --- files on disk

    async def _initial_state(self) -> BootstrapState:
        """Return the state on disk, after locating the CA if a step needs it. When no CA is found, refreshes are left out."""
        state = await asyncio.to_thread(self._state_on_disk)
        if self.locate is None or next_step(state) is BootstrapStep.DONE:
            return state
        try:
            self.site = await self.locate()
        except PeerError as err:
            unrefreshed = replace(state, ca_stale=False, crl_stale=False, renewal_due=False)
            if next_step(unrefreshed) is not BootstrapStep.DONE:
                raise
            log.warning("Nothing was refreshed: %s", err)
            return unrefreshed
        return await asyncio.to_thread(self._state_on_disk)

    def _state_on_disk(self) -> BootstrapState:
        layout, options = self.layout, self.options
        key, certificate, authorities = layout.key(), layout.certificate(), layout.authorities()
        if certificate is not None and key is None:
            raise texts.key_lost(layout)
        if certificate is not None and key is not None and not keys.belongs(key, certificate.public_key()):
            raise texts.mismatch(certificate, layout, self.site.host)
        legacy = self.dialects.get(self.site) is LEGACY
        return BootstrapState(
            legacy=legacy,
            key=key is not None,
            ca=authorities is not None,
            crl=self._crl_is_current(),
            certificate=certificate is not None,
            request=layout.request() is not None,
            revocation=bool(options.revocation),
            ca_stale=self._is_stale(layout.localcacert, options.ca_refresh, certificate),
            crl_stale=self._is_stale(layout.hostcrl, options.crl_refresh, certificate),
            renewal_due=certificate is not None and self._ends_within(certificate, spread_interval(certificate, options.renewal)),
            waitforcert=options.waitforcert,
            maxwaitforcert=options.maxwaitforcert,
        )

    def _crl_is_current(self) -> bool:
        """Return whether there are CRLs and none has expired. An expired CRL counts as missing, as no connection verifies with it."""
        crls = self.layout.crls()
        return crls is not None and all(crl.next_update_utc is None or crl.next_update_utc >= self.now() for crl in crls)

    def _is_stale(self, path: Path, interval: int, certificate: x509.Certificate | None) -> bool:
        """Return whether a file is due for a refresh by its age; without a certificate none is."""
        if not interval or certificate is None or not path.exists():
            return False
        return self.now().timestamp() - path.stat().st_mtime >= interval

    def _ends_within(self, certificate: x509.Certificate, seconds: int) -> bool:
        return bool(seconds) and (certificate.not_valid_after_utc - self.now()).total_seconds() <= seconds

    def _verify_certificate(self) -> Verifier:
        """Verify our own certificate; return the verifier that shows it."""
        certificate = self.layout.certificate()
        assert certificate is not None
        self._require_usable(certificate)
        if self._ends_within(certificate, min(self.options.expire_warning, quarter_of_validity(certificate))):
            log.warning("Certificate '%s' will expire on %s", verify.subject_of(certificate), certificate.not_valid_after_utc)
        return self._verifier(with_certificate=True)

    def _require_usable(self, certificate: x509.Certificate) -> None:
        """Raise PeerNotTrusted when a certificate is not of our CA, not valid now, or revoked by the CRLs that there are."""
        crls = self.layout.crls() or ()
        trust = TrustStore(self.layout.authorities() or (), crls, self.options.revocation if crls else False)
        try:
            verify.verify(certificate, trust, now=self.now(), purpose="client")
        except verify.NotVerified as err:
            raise texts.unusable(err, self.layout, self.now()) from err

    def _verifier(self, *, with_certificate: bool) -> Verifier:
        """
        Return a verifier with the CA, and with its CRL when there is a current one.

        Args:
            with_certificate: Show our certificate. CAs of 4 and later answer nearly all questions without it, and agents whose certificate
                was revoked have to be able to fetch the CRL that says so; Ruby's CAs (3.x to 5) give their CRL only to agents they know.
        """
        layout = self.layout
        crls = layout.hostcrl if self.options.revocation and self._crl_is_current() else None
        certificate, key = (layout.hostcert, layout.hostprivkey) if with_certificate else (None, None)
        return Verifier(layout.localcacert, crls, self.options.revocation, self.now, certificate, key)

    # --- requests to the CA

    async def _server(self) -> Server:
        """Return the CA's server, over connections that are verified with the CA's certificate on disk."""
        if self._client is None:
            certificate_needed = self.dialects.get(self.site) is LEGACY and await asyncio.to_thread(self.layout.hostcert.exists)
            self._client = self.connect(await asyncio.to_thread(self._verifier, with_certificate=certificate_needed))
        return Server(self.site, self._client, self.dialects, lambda: self.options.environment)

    async def _close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _outgoing(self, verb: paths.Verb, indirection: Indirection[Any], key: str, dialect: Dialect) -> paths.Outgoing:
        return paths.build(verb, indirection, Request(key, self.options.environment), dialect, prefix="puppet-ca")

    async def _get(self, indirection: Indirection[Any], key: str, headers: Mapping[str, str] | None = None) -> Answer:
        server = await self._server()
        dialect = await server.dialect()
        outgoing = self._outgoing("find", indirection, key, dialect)
        return await server.send(outgoing, {"Accept": accept_header(dialect), **(headers or {})})

    # --- the steps

    async def _make_key(self, state: BootstrapState) -> BootstrapState:
        kind = "" if state.legacy else f"{self.options.key.type.upper()} "
        log.info("Creating a new %sSSL key for %s", kind, self.layout.certname)
        key = await asyncio.to_thread(self.options.key.generate)
        await asyncio.to_thread(self.layout.save_key, key)
        failpoint("agent.key-saved")
        return replace(state, key=True)

    async def _fetch_ca(self, state: BootstrapState) -> BootstrapState:
        """Fetch the CA's certificate over an unverified connection; check it against ca_fingerprint, or log its fingerprint; save it."""
        answer, dialect = await self._ask_for_ca()
        if answer.status == 404:
            reason = f": {one_line(answer)}" if dialect is LEGACY else ""  # 3.x also answers 404 for a missing environment
            raise PeerError(f"CA certificate is missing from the server{reason}", hint=f"Is {self.site} the CA? See ca_server.")
        if answer.status != 200:
            raise PeerAnswered(f"Could not download CA certificate: {answer.status}: {one_line(answer)}", code=answer.status)
        try:
            authorities = bundles.certificates(answer.body)
            verify.verify_bundle(authorities)
        except (BadData, TooLarge, PeerNotTrusted) as err:
            raise PeerNotTrusted(f"Could not download CA certificate: {err.message}", hint=err.hint) from err
        digest = fingerprints.of_bundle(answer.body)
        pinned = self.options.ca_fingerprint
        if pinned:
            expected_fingerprint = fingerprints.fingerprint(authorities[0]) if len(authorities) == 1 else ""
            if not fingerprints.matches(pinned, digest) and not (
                expected_fingerprint and fingerprints.matches(pinned, expected_fingerprint)
            ):
                raise PeerNotTrusted(
                    f"CA bundle with digest (SHA256) {digest} did not match expected digest {pinned}",
                    hint="Nothing was saved. Either ca_fingerprint is wrong, or another server answered instead of the CA.",
                )
            log.info("Verified CA bundle with digest (SHA256) %s", digest)
        else:
            log.warning(
                "Trusting the CA of %s at first contact: %s (SHA256) %s. Compare it with the output of"
                " 'puppet cert fingerprint ca' on the CA, or set ca_fingerprint.",
                self.site,
                verify.subject_of(authorities[0]),
                fingerprints.fingerprint(authorities[0]),
            )
        await asyncio.to_thread(self.layout.save_authorities, answer.body)
        log.info("Caching certificate for ca")
        failpoint("agent.ca-saved")
        await self.dialects.remember(self.site, dialect)
        return replace(state, ca=True, legacy=dialect is LEGACY)

    async def _ask_for_ca(self) -> tuple[Answer, Dialect]:
        """Request the CA's certificate, first as 4 and later do; a 3.x master refuses, names its version, and gets a request of 3.x."""
        known_dialect = self.dialects.get(self.site)
        # The only unverified connection: nothing but the CA's certificate is read from it, and nothing is sent.
        async with self.connect(None) as stranger:
            for dialect in (known_dialect,) if known_dialect else (MODERN, LEGACY):
                outgoing = self._outgoing("find", CERTIFICATE, "ca", dialect)
                opened = await stranger.request(self.site, "GET", outgoing.target, {"Accept": accept_header(dialect)})
                answer = Answer(opened.status, opened.headers, await opened.read())
                self.dialects.learn(self.site, answer.headers)
                answered_dialect = dialect_of(version_of(answer.headers.get("x-puppet-version")))
                if known_dialect or answer.status == 200 or answered_dialect is dialect:
                    break
        return answer, dialect

    async def _refresh_ca(self, state: BootstrapState) -> BootstrapState:
        """Refresh the CA's certificates over a verified connection; only a bundle under which our own certificate verifies is saved."""
        log.info("Refreshing CA certificate")
        await self._refresh(
            "CA certificate",
            self.layout.localcacert,
            lambda since: self._get(CERTIFICATE, "ca", since),
            lambda pem: save_authorities(self.layout, pem, self.now()),
        )
        return replace(state, ca_stale=False)

    async def _refresh(
        self, what: str, path: Path, ask: Callable[[Mapping[str, str]], Awaitable[Answer]], save: Callable[[bytes], None]
    ) -> None:
        """Save the CA's data if they are newer than the file at `path`; on any failure the old file stays in use."""
        have = await asyncio.to_thread(path.stat)
        since = {"If-Modified-Since": formatdate(have.st_mtime, usegmt=True)}
        try:
            answer = await ask(since)
            if answer.status == 200:
                await asyncio.to_thread(save, answer.body)
            elif answer.status != 304:
                raise PeerAnswered(f"{answer.status}: {one_line(answer)}", code=answer.status)
            await asyncio.to_thread(os.utime, path)
        except (PeerError, BadData, TooLarge) as err:
            log.warning("Could not refresh the %s, keeping the old one: %s", what, err.message)

    async def _fetch_crl(self, state: BootstrapState) -> BootstrapState:
        answer = await self._ask_for_crl()
        # Puppet 5 and older give the CRL to known agents only; it is fetched later, with the certificate.
        if answer.status == 403 and not state.certificate:
            return replace(state, crl_closed=True)
        if answer.status == 404:
            raise PeerError("CRL is missing from the server", hint="With certificate_revocation=false none is needed, at your own risk.")
        if answer.status != 200:
            raise PeerAnswered(f"Could not download CRLs: {answer.status}: {one_line(answer)}", code=answer.status)
        try:
            await asyncio.to_thread(save_crls, self.layout, answer.body)
        except (BadData, TooLarge, PeerNotTrusted) as err:
            raise PeerNotTrusted(f"Could not download CRLs: {err.message}", hint=err.hint) from err
        log.info("Caching certificate_revocation_list for ca")
        failpoint("agent.crl-saved")
        await self._close()  # new connections are checked against the CRL
        return replace(state, crl=True)

    async def _ask_for_crl(self, headers: Mapping[str, str] | None = None) -> Answer:
        """
        Request the CRL without showing our certificate, so that an agent with a revoked certificate learns of it.

        A CA that demands a certificate gets a second request that shows ours.
        """
        answer = await self._get(CERTIFICATE_REVOCATION_LIST, "ca", headers)
        if answer.status == 403 and await asyncio.to_thread(self.layout.hostcert.exists):
            await self._close()
            self._client = self.connect(await asyncio.to_thread(self._verifier, with_certificate=True))
            answer = await self._get(CERTIFICATE_REVOCATION_LIST, "ca", headers)
        return answer

    async def _refresh_crl(self, state: BootstrapState) -> BootstrapState:
        log.info("Refreshing CRL")
        await self._refresh("CRL", self.layout.hostcrl, self._ask_for_crl, lambda pem: save_crls(self.layout, pem))
        return replace(state, crl_stale=False)

    async def _find_request(self, state: BootstrapState) -> BootstrapState:
        """Fetch the certificate request that we no longer have but that the CA may have, as 3.8 does."""
        answer = await self._get(CERTIFICATE_REQUEST, self.layout.certname)
        if answer.status == 200:
            try:
                request = x509.load_pem_x509_csr(answer.body)
            except ValueError as err:
                raise BadData(f"The CA's copy of our certificate request cannot be read: {err}") from err
            key = await asyncio.to_thread(self.layout.key)
            if key is None or not keys.belongs(key, request.public_key()):
                # Sending our own would be refused, and signing the other one would give a certificate without its key.
                raise texts.CertificateMismatch(
                    f"The CA has a certificate request for {self.layout.certname} that was made with another key",
                    hint=f"If that is an old one of this host: 'puppet cert clean {self.layout.certname}' on the CA.",
                )
            log.info("Caching certificate_request for %s", self.layout.certname)
            await asyncio.to_thread(self.layout.save_request, request)
            return replace(state, request=True, request_sought=True, submitted=True, asked=False)
        if answer.status != 404:
            raise unexpected_answer("certificate request", answer)
        return replace(state, request_sought=True)

    async def _send_request(self, state: BootstrapState) -> BootstrapState:
        key = await asyncio.to_thread(self.layout.key)
        assert key is not None
        request = await asyncio.to_thread(self._build_request, key, state.legacy)
        server = await self._server()
        dialect = await server.dialect()
        outgoing = self._outgoing("save", CERTIFICATE_REQUEST, self.layout.certname, dialect)
        headers = {"Accept": accept_header(dialect), "Content-Type": "text/plain"}
        answer = await server.send(outgoing, headers, bundles.dump([request]))
        text = one_line(answer)
        exists_already = "already has a " in text
        failed = f"Failed to submit the CSR, HTTP response was {answer.status}: {text}"
        if answer.status in (400, 500) and exists_already:  # 500: Ruby masters of 4 and 5
            log.debug("The CA has a request for %s already: %s", self.layout.certname, text)
        elif answer.status == 400 and not state.legacy:
            log.info("The CA does not take this request for %s: %s", self.layout.certname, text)
        elif answer.status >= 500 and state.waitforcert > 0 and not state.legacy:
            log.error("%s", failed)
            return replace(state, submitted=True, asked=False)  # it is sent again after the next wait
        elif not 200 <= answer.status < 300:
            raise PeerAnswered(failed, code=answer.status, body=text)
        failpoint("agent.csr-sent")
        await asyncio.to_thread(self.layout.save_request, request)
        failpoint("agent.csr-saved")
        return replace(state, request=True, submitted=True, asked=False)

    def _build_request(self, key: PrivateKey, legacy: bool) -> x509.CertificateSigningRequest:
        from certs import csr
        from certs.csr import CsrAttributes
        from certs.oids import OidNames

        options = self.options
        attributes = CsrAttributes()
        if options.csr_attributes is not None and options.csr_attributes.exists():
            log.info("csr_attributes file loading from %s", options.csr_attributes)
            attributes = CsrAttributes.load(options.csr_attributes, OidNames.load(options.oid_mapping) if options.oid_mapping else None)
        log.info("Creating a new SSL certificate request for %s", self.layout.certname)
        request = csr.build(
            key,
            self.layout.certname,
            dns_alt_names=options.dns_alt_names,
            attributes=attributes,
            auto_renew=bool(options.renewal) and not legacy,
        )
        log.info("Certificate Request fingerprint (SHA256): %s", fingerprints.fingerprint(request))
        return request

    async def _fetch_certificate(self, state: BootstrapState) -> BootstrapState:
        name = self.layout.certname
        answer = await self._get(CERTIFICATE, name)
        if answer.status == 404:
            if not state.legacy:
                log.info("Certificate for %s has not been signed yet", name)
            return replace(state, asked=True)
        if answer.status != 200:
            raise unexpected_answer("certificate", answer)
        certificate = bundles.certificate(answer.body)
        await asyncio.to_thread(self._save_certificate, certificate)
        log.info("Caching certificate for %s", name)
        failpoint("agent.certificate-saved")
        await self._close()  # later requests may have to show the certificate
        return replace(state, certificate=True)

    def _save_certificate(self, certificate: x509.Certificate) -> None:
        """Save a certificate after checking that it is ours: it has our key, our CA issued it, and it is not revoked."""
        key = self.layout.key()
        if key is None or not keys.belongs(key, certificate.public_key()):
            raise texts.mismatch(certificate, self.layout, self.site.host)
        self._require_usable(certificate)
        self.layout.save_certificate(certificate)
        self.layout.hostcsr.unlink(missing_ok=True)

    async def _renew(self, state: BootstrapState) -> BootstrapState:
        """Request a new certificate for the same key before the old one ends, as 8 does. On any failure the old one stays in use."""
        after = replace(state, renewal_due=False)
        if await (await self._server()).dialect() is LEGACY:
            return after
        try:
            await self.renew()
        except Unsupported as err:
            log.info("%s", err.message)
        except (PeerError, BadData) as err:
            log.warning("Could not renew the certificate, going on with the old one: %s", err.message)
        return after

    async def renew(self) -> None:
        """
        Request a new certificate for the same key with the present one, and save it.

        Raises:
            Unsupported: the CA does not renew certificates. PeerError, BadData: it failed; the present one stays in use.
        """
        outgoing = paths.Outgoing("POST", "/puppet-ca/v1/certificate_renewal")
        async with self.connect(await asyncio.to_thread(self._verifier, with_certificate=True)) as client:
            server = Server(self.site, client, self.dialects, lambda: self.options.environment)
            answer = await server.send(outgoing, {"Accept": "text/plain", "Content-Type": "text/plain"}, b"")
        if answer.status == 404:
            raise Unsupported("Certificate autorenewal has not been enabled on the server.")
        if answer.status != 200:
            raise unexpected_answer("renewed certificate", answer)
        await asyncio.to_thread(self._save_certificate, bundles.certificate(answer.body))
        log.info("Renewed the certificate of %s", self.layout.certname)

    async def _wait(self, state: BootstrapState) -> BootstrapState:
        name, seconds = self.layout.certname, state.waitforcert
        if state.legacy:
            log.log(NOTICE, "Did not receive certificate")
        else:
            self.tell(texts.unsigned(name))
            log.info("Will try again in %d seconds.", seconds)
        await self.sleep(seconds)
        # Agents after 3.8 send the request again each time, in case it was removed in between.
        return replace(state, asked=False, submitted=state.legacy, waited=state.waited + seconds)

    async def _give_up(self, state: BootstrapState) -> BootstrapState:
        if state.legacy:
            raise texts.NoCertificate("Exiting; no certificate found and waitforcert is disabled")
        why = "the waitforcert setting is set to 0" if state.waitforcert <= 0 else "the maxwaitforcert timeout has been exceeded"
        raise texts.NoCertificate(f"{texts.unsigned(self.layout.certname)} Exiting now because {why}.")
