"""The `ca` termini: certificates, requests, CRLs, states and OCSP, answered by the CA service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic

from ca.service import CaService
from shared.errors import BadRequest, Conflict, PuppetError
from shared.indirector.core import M, Request, Terminus
from shared.models.certificate import Certificate
from shared.models.certificate_request import CertificateRequest
from shared.models.certificate_revocation_list import CertificateRevocationList
from shared.models.certificate_status import CertificateStatus
from shared.models.ocsp import Ocsp, request_of
from shared.wire.dialects import LEGACY


class _OfCa(Terminus[M], Generic[M]):
    def __init__(self, ca: CaService) -> None:
        self.ca = ca


@contextmanager
def _worded(request: Request[M]) -> Iterator[None]:
    """Translate errors into the words that the caller's version of Puppet has for them."""
    try:
        yield
    except PuppetError as err:
        if request.dialect is LEGACY and err.legacy:
            err.message = err.legacy
        raise


class CaCertificates(_OfCa[Certificate]):
    """The certificates in signed/, and the CA's own under the key `ca`."""

    async def find(self, request: Request[Certificate]) -> Certificate | None:
        pem = await self.ca.certificate(request.key)
        return Certificate(name=request.key, pem=pem) if pem is not None else None

    async def search(self, request: Request[Certificate]) -> list[Certificate]:
        return [Certificate.from_bytes(pem) for pem in await self.ca.certificates()]


class CaRequests(_OfCa[CertificateRequest]):
    """The pending certificate requests."""

    async def find(self, request: Request[CertificateRequest]) -> CertificateRequest | None:
        pem = await self.ca.request(request.key)
        return CertificateRequest(name=request.key, pem=pem) if pem is not None else None

    async def search(self, request: Request[CertificateRequest]) -> list[CertificateRequest]:
        """Return all that are pending; none at all is an error, as in 3.8."""
        requests = await self.ca.requests()
        if not requests:
            raise BadRequest("Could not find any certificate requests")
        return [CertificateRequest.from_bytes(pem) for pem in requests]

    async def save(self, request: Request[CertificateRequest]) -> object:
        with _worded(request):
            await self.ca.submit_request(request.key, request.instance.pem, client=request.client)
        return None

    async def destroy(self, request: Request[CertificateRequest]) -> object:
        return await self.ca.delete_request(request.key, client=request.client)


class CaCrls(_OfCa[CertificateRevocationList]):
    """The CRLs of the chain; every key finds them."""

    async def find(self, request: Request[CertificateRevocationList]) -> CertificateRevocationList:
        return CertificateRevocationList(name=request.key, pem=await self.ca.crl())

    async def search(self, request: Request[CertificateRevocationList]) -> list[CertificateRevocationList]:
        return [await self.find(request)]


class CaStatuses(_OfCa[CertificateStatus]):
    """The states of names; saving a desired state signs or revokes."""

    async def find(self, request: Request[CertificateStatus]) -> CertificateStatus | None:
        return await self.ca.status(request.key)

    async def search(self, request: Request[CertificateStatus]) -> list[CertificateStatus]:
        return await self.ca.statuses(request.option("state"), request.many("for"))

    async def save(self, request: Request[CertificateStatus]) -> object:
        """Return the new certificate's PEM for `signed`, the serials as text for `revoked`."""
        wish = request.instance
        with _worded(request):
            result = await self.ca.set_state(request.key, wish.desired_state, wish.cert_ttl, client=request.client)
        return result.decode("ascii") if isinstance(result, bytes) else [str(serial) for serial in result]

    async def destroy(self, request: Request[CertificateStatus]) -> object:
        removed = await self.ca.delete(request.key, client=request.client)
        return f"Deleted for {request.key}: {', '.join(removed)}" if removed else "Nothing was deleted"


class CaOcsp(_OfCa[Ocsp]):
    """The CA's own answer to an OCSP request, which is the key."""

    async def find(self, request: Request[Ocsp]) -> Ocsp:
        return Ocsp(name=request.key, content=await self.ca.ocsp(request_of(request.key)))


class NoCa(Terminus[M]):
    """The terminus that replaces all of these on a master that is not the CA."""

    async def find(self, request: Request[M]) -> M | None:
        raise self._no()

    async def search(self, request: Request[M]) -> list[M] | None:
        raise self._no()

    async def save(self, request: Request[M]) -> object:
        raise self._no()

    async def destroy(self, request: Request[M]) -> object:
        raise self._no()

    def _no(self) -> PuppetError:
        return Conflict("This process is not configured as a certificate authority", hint="Agents find the CA by their setting ca_server.")
