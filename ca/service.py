"""The CA as the rest of the master sees it: async, safe against cancelled callers, one writer at a time."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from cryptography import x509

from certs import certificates
from certs.files import bundles
from shared.client import Client
from shared.errors import NO_SPACE, BadRequest, NotFound, OutOfSpace, PuppetError, Unavailable
from shared.filesystem.files import FileLock
from shared.models.certificate_status import CertificateStatus
from shared.names import quoted_for_log, valid_certname
from shared.process.supervision import Supervisor

from . import policy
from .authority import CertificateAuthority
from .autosign import Autosign
from .registry import KINDS, STATES, CertificateRegistry, DuplicateRequest
from .storage.store import CaStore
from .tasks import CA_TASKS, CHANGE_CA, DECIDE_AGAIN

log = logging.getLogger("puppet.ca")

P = ParamSpec("P")
T = TypeVar("T")

# As many requests may be pending by default; more names in one call are a mistake.
MAX_BULK = 10_000  # names in one sign or clean
MAX_QUEUED = 1000  # changes that may wait for the writer


class CaService:
    """
    The CA's operations for HTTP and the command line.

    Every change runs as a unit in one writer thread: a cancelled caller leaves nothing half done, because a change that has begun is
    finished. `on_revocation` are awaited after each change of the CRL and before the caller gets the result.
    """

    def __init__(self, authority: CertificateAuthority, autosign: Autosign, *, supervisor: Supervisor | None = None) -> None:
        self.authority = authority
        self.supervisor = supervisor or Supervisor(CA_TASKS)
        self.registry = CertificateRegistry(authority)
        self.autosign = autosign
        self.on_revocation: list[Callable[[], Awaitable[None]]] = []
        self.renew_own: Callable[[], None] = lambda: None  # the master's certificate, when it is due
        # One thread, so that changes are made one after the other in the order in which they came.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ca-writer")
        self._queued = 0
        self._running: set[asyncio.Task[Any]] = set()
        self._seen_crl = authority.crl().signature

    @property
    def store(self) -> CaStore:
        return self.authority.store

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CaService]:
        """The CA of a master, for as long as the block runs: no second master may use the same directory; ends when all is finished."""
        lock = FileLock(self.store.files.master_lock)
        # Before the lock is taken, which writes our own process into the file.
        killed = await asyncio.to_thread(_start_of_killed, lock)
        try:
            await asyncio.to_thread(lock.acquire)
        except Unavailable as err:
            raise Unavailable(
                f"Another master uses the CA in {self.store.files.cadir}: process {lock.holder() or 'unknown'}",
                hint="Stop it first, or give this one a cadir of its own.",
            ) from err
        if killed is not None:
            self.supervisor.start(DECIDE_AGAIN, lambda: self.decide_again(killed))
        try:
            yield self
        finally:
            await self.supervisor.stop(DECIDE_AGAIN)
            await self.close()
            # Last: another master may start as soon as it is free.
            lock.release()

    async def close(self) -> None:
        """Wait for the changes that have begun."""
        # A change that finishes may start another one.
        while self._running:
            await asyncio.wait(self._running)
        await asyncio.to_thread(self._writer.shutdown)

    async def follow(self) -> None:
        """Take over what another master has changed; the listeners are told of another CRL. PuppetError: the store is away."""
        await asyncio.to_thread(self.store.refresh)
        await self._tell()

    async def keep_fresh(self, *, every: float = 3600.0) -> None:
        """Runs until cancelled: signs the CRL and the master's own certificate before they end; decides what a lost master has not."""
        while True:
            try:
                await self.refresh_crl_if_due()
            except (PuppetError, OSError) as err:
                log.error("The CA could not refresh its CRL: %s", err)
            try:
                await self._finish(self._write(self.renew_own))
            except (PuppetError, OSError) as err:
                log.error("The CA could not see to the master's own certificate: %s", err)
            try:
                await self.decide_again(None)
            except PuppetError as err:
                log.error("The CA could not look for requests without a decision: %s", err)
            await asyncio.sleep(every)

    # --- requests

    async def submit_request(self, name: str, pem: bytes, *, client: Client | None = None) -> bool:
        """
        Store a request, and sign it if autosign decides so; return whether it was signed.

        A second submission of a request for the same asks autosign again: the first may have been cut short.

        Raises:
            BadRequest and others: see CertificateRegistry.submit; also when autosign wanted to sign but the policy refuses
                (the request stays pending then).
        """
        return await self._finish(self._submit(name, pem, _who(client)))

    async def _submit(self, name: str, pem: bytes, by: str) -> bool:
        # Checked before the request is stored: otherwise it would stay pending without a decision.
        if self.autosign.busy:
            raise Unavailable("Too many requests are pending for autosign", retry_after=60)
        again: DuplicateRequest | None = None
        try:
            facts = await self._write(self.registry.submit, name, pem, by=by)
            text = facts.pem
        except DuplicateRequest as err:
            if not err.same:
                raise
            again, text = err, pem
        # Outside of the writer: a policy program may take seconds, and must not delay revocations.
        decision = await self.autosign.decide(name, text)
        log.info("Autosign %s %s: %s", "signs" if decision.sign else "leaves", name, decision.reason)
        if not decision.sign:
            await self._mark_decided(name)
            if again is not None:
                raise again
            return False
        try:
            await self._write(self.registry.sign, name, by=f"autosign for {by}")
        except (policy.PolicyViolation, BadRequest) as err:
            raise BadRequest(err.message, hint=err.hint, legacy=err.legacy) from err
        return True

    async def _mark_decided(self, name: str) -> None:
        try:
            await asyncio.to_thread(self.store.mark_decided, name)
        except Unavailable as err:
            log.info("Autosign will be asked about %s again: %s", name, err)

    async def decide_again(self, since: float | None) -> list[str]:
        """
        Ask autosign again about requests that a killed master may not have decided; return the signed names.

        A master that was killed may have stored a request without getting to its decision. 3.x agents see it on the CA and do not send
        it again, so that it would stay undecided.
        """
        signed = []
        for name in await asyncio.to_thread(self.store.undecided, since):
            pem = await self.request(name)
            if pem is None:
                continue
            decision = await self.autosign.decide(name, pem)
            if not decision.sign:
                await self._mark_decided(name)
                continue
            log.info("Autosign signs %s, which a master that was killed may have left undecided: %s", name, decision.reason)
            try:
                await self._write(self.registry.sign, name, by="autosign after a crash")
                signed.append(name)
            except PuppetError as err:
                log.warning("The request of %s stays pending: %s", name, err)
        return signed

    async def request(self, name: str) -> bytes | None:
        """Return the PEM of a pending request, None when there is none."""
        return await asyncio.to_thread(self.registry.request, valid_certname(name))

    async def requests(self) -> list[bytes]:
        """Return the PEMs of all pending requests, by name."""
        return [pem for name in await asyncio.to_thread(self.registry.pending) if (pem := await self.request(name)) is not None]

    async def delete_request(self, name: str, *, client: Client | None = None) -> bool:
        """Throw a pending request away; whether there was one."""
        return await self._finish(self._write(self.registry.delete_request, name, by=_who(client)))

    # --- certificates

    async def certificate(self, name: str) -> bytes | None:
        """Return the PEM of a certificate, None when there is none; `ca` is the CA's own, with its chain."""
        if name == "ca":
            return await asyncio.to_thread(self.authority_pem)
        found = await asyncio.to_thread(self.authority.signed_certificate, valid_certname(name))
        return certificates.pem(found) if found is not None else None

    async def certificates(self) -> list[bytes]:
        """Return the PEMs of all certificates in signed/, by name."""
        names = [each.name for each in await self.statuses() if each.state != "requested"]
        return [pem for name in names if (pem := await self.certificate(name)) is not None]

    def authority_pem(self) -> bytes:
        """Return the CA's bundle, the issuing certificate first."""
        signers = self.authority.signers()
        own = signers.own.certificate
        return bundles.dump([own, *(c for c in signers.bundle if c != own)])

    async def crl(self) -> bytes:
        """Return the CRLs of the chain, ours first, from the present file."""
        return await asyncio.to_thread(self.authority.crl_pem)

    async def status(self, name: str) -> CertificateStatus | None:
        """Return the state of a name; None when the CA does not know it."""
        return await asyncio.to_thread(self.registry.status, name)

    async def statuses(self, state: str = "", kinds: Sequence[str] = ()) -> list[CertificateStatus]:
        """
        Return all names, or those that are requested, signed or revoked, or have files of these kinds; BadRequest for others of either.
        """
        if state and state not in STATES:
            raise BadRequest(f"State {quoted_for_log(state)} invalid; must be one of {', '.join(STATES)}")
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            raise BadRequest(f"There are no states for {quoted_for_log(unknown[0])}", hint=f"'for' is one of {', '.join(KINDS)}.")
        found = await asyncio.to_thread(self.registry.statuses, state)
        return [each for each in found if not kinds or any(each.state in KINDS[kind] for kind in kinds)]

    async def set_state(
        self, name: str, desired_state: object, cert_ttl: object = None, *, client: Client | None = None
    ) -> bytes | list[int]:
        """Sign or revoke: the PEM of the new certificate, or the serials that are revoked. Errors: see CertificateRegistry.set_state."""
        done = await self._finish(self._write(self.registry.set_state, name, desired_state, ttl=cert_ttl, by=_who(client)))
        return certificates.pem(done) if isinstance(done, x509.Certificate) else done

    async def delete(self, name: str, *, client: Client | None = None) -> list[str]:
        """Remove certificate and request without revoking; return Puppet's names of the removed things, [] for none."""
        return await self._finish(self._write(self.registry.delete, name, by=_who(client)))

    async def clean(self, names: Iterable[str], *, client: Client | None = None) -> list[str]:
        """Revoke and delete each; the names that had no certificate."""
        return await self._finish(self._write(self.registry.clean, _bulk(names), by=_who(client)))

    async def sign(self, names: Iterable[str], *, client: Client | None = None) -> dict[str, list[str]]:
        """Sign each: `{"signed": names, "no-csr": names, "signing-errors": names}`."""
        result: dict[str, list[str]] = {"signed": [], "no-csr": [], "signing-errors": []}
        for name in _bulk(names):
            try:
                # As puppetserver's bulk interface: one bad name fails no other.
                if await self.request(name) is None:
                    result["no-csr"].append(name)
                    continue
                await self._finish(self._write(self.registry.sign, name, by=_who(client)))
                result["signed"].append(name)
            except (OutOfSpace, Unavailable):
                raise
            except PuppetError as err:
                log.warning("Could not sign %s: %s", quoted_for_log(name), err)
                result["signing-errors"].append(name)
        return result

    async def sign_all(self, *, client: Client | None = None) -> dict[str, list[str]]:
        """Sign all that are pending; the same answer as `sign`."""
        return await self.sign(await asyncio.to_thread(self.registry.pending), client=client)

    async def expirations(self) -> dict[str, dict[str, str]]:
        """Return when the certificates and CRLs of the chain expire: `{"ca-certs": {name: time}, "crls": {name: time}}`."""
        return await asyncio.to_thread(self.authority.expirations)

    async def renew(self, certificate: bytes | None, *, client: Client | None = None) -> bytes:
        """
        Return the PEM of a new certificate for the holder of this one (DER, from the TLS layer, which has seen the proof of possession).

        Raises:
            NotFound: renewal is off. BadRequest: no certificate. Denied: foreign, expired or revoked.
        """
        if not self.authority.rules.allow_auto_renewal:
            raise NotFound("Not Found")
        if not certificate:
            raise BadRequest("No valid certificate found in renewal request")
        try:
            presented = x509.load_der_x509_certificate(certificate)
        except ValueError as err:
            raise BadRequest("No valid certificate found in renewal request") from err
        made = await self._finish(self._write(self.authority.renew, presented, by=_who(client)))
        return certificates.pem(made)

    async def upload_crls(self, pem: bytes, *, client: Client | None = None) -> None:
        """Take over CRLs of the other authorities of the chain; BadRequest when one of them is not right."""
        await self._finish(self._write(self.authority.upload_crls, pem, by=_who(client)))

    async def refresh_crl_if_due(self) -> bool:
        """Sign the CRL again when 30 days or less of it are left; whether it was done."""
        return await self._finish(self._write(self.authority.refresh_crl_if_due))

    async def ocsp(self, request: bytes) -> bytes:
        """Return the DER of the answer to an OCSP request."""
        return await asyncio.to_thread(self.authority.answer_ocsp, request)

    # --- the writer

    async def _write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in the writer thread; the system's errors become ours; tells the listeners of a new CRL."""
        if self._queued >= MAX_QUEUED:
            raise Unavailable("The CA is busy", retry_after=30)
        self._queued += 1
        try:
            asked = functools.partial(contextvars.copy_context().run, work, *args, **kwargs)  # the audit names the request
            return await asyncio.get_running_loop().run_in_executor(self._writer, asked)
        except OSError as err:
            raise _storage_error(err) from err
        finally:
            self._queued -= 1
            # Even after an error: a revocation may have been written before it.
            await self._tell()

    async def _tell(self) -> None:
        """Call the listeners when the CRL is another than last time; also after work that failed half-way."""
        try:
            crl = await asyncio.to_thread(self.authority.crl)
        except (PuppetError, OSError) as err:
            log.error("The CRL cannot be read: %s", err)
            return
        # `puppet cert` may have changed the list meanwhile; its signature shows it.
        if crl.signature != self._seen_crl:
            self._seen_crl = crl.signature
            for listener in self.on_revocation:
                await listener()

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, which continues to its end when the caller is cancelled; its failure is then logged."""
        task = asyncio.create_task(work, name=CHANGE_CA)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            # A client that disconnects must not leave a certificate half issued.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._report)
            raise

    def _report(self, task: asyncio.Task[Any]) -> None:
        """Report the failure of a change whose caller has left: a refusal is the CA's right, anything else is a fault."""
        if not task.cancelled() and isinstance(error := task.exception(), PuppetError):
            log.info("The CA refused a request whose client had disconnected: %s", error)
        else:
            self.supervisor.report(task)


def _start_of_killed(lock: FileLock) -> float | None:
    """The time at which the lock's last holder took it, if it never released it (seconds since the epoch); otherwise None."""
    if not lock.holder():
        return None
    return lock.path.stat().st_mtime


def _who(client: Client | None) -> str:
    if client is None:
        return "a local call"
    return f"{quoted_for_log(client.name)[1:-1] if client.authenticated else 'somebody without a certificate'} at {client.address}"


def _bulk(names: Iterable[str]) -> list[str]:
    found = [valid_certname(name) for name in dict.fromkeys(names)]
    if len(found) > MAX_BULK:
        raise BadRequest(f"More than {MAX_BULK} names in one call")
    return found


def _storage_error(err: OSError) -> PuppetError:
    """Return the system's word on a file as an error for the caller; the path is for the log only."""
    log.error("The CA could not write: %s", err)
    if err.errno in (*NO_SPACE, errno.EFBIG):
        return OutOfSpace("The CA's disk is full; nothing was changed", hint="Free some space; the CA continues without a restart.")
    return Unavailable("The CA cannot write its files now", hint="Its log says why.")
