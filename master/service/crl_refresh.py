"""
The revocation lists of a master that is no CA, kept as fresh as the CA's.

They are asked for at ca_server now and then, over TLS that believes the CA alone, and take the place of those on disk only when
the CA has signed them and they are not older. The listener notices the changed file (see `http.tls`), as it does when somebody
copies one there.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509

from certs import bundles, crl
from certs.verify import CRL_FROM_THE_FUTURE
from shared.errors import BadData, PeerAnswered, PeerNotTrusted, PeerUnreachable, PuppetError, TooLarge
from shared.filesystem.files import owner_in, write_atomic
from shared.indirector import paths
from shared.indirector.core import Indirection, Request
from shared.models.certificate_revocation_list import CERTIFICATE_REVOCATION_LIST
from shared.process.log import NOTICE
from shared.settings import MasterSettings
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..http import tls
from ..http.tls import TrustFiles
from ..observability.metrics import Metrics

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger("puppet.crl")

SPREAD = 0.1  # of the interval, either way: masters that were started together do not ask together
REPEATED = timedelta(hours=1)  # a failure that stays the same is said again
LATE = 3  # intervals after which the lists count as out of date
LEAST_LATE = timedelta(hours=1)

# How it is asked for, the first that is answered: CAs of 4 and later answer anybody, or any certificate; one of 3.x in its own scheme.
WAYS: Final[tuple[tuple[Dialect, bool], ...]] = ((MODERN, False), (MODERN, True), (LEGACY, True))


class CrlSource:
    """The CA, as it is asked for its revocation lists."""

    def __init__(self, settings: MasterSettings, files: TrustFiles, *, now: Callable[[], datetime]) -> None:
        self.settings = settings
        self.files = files
        self.now = now

    def __str__(self) -> str:
        return f"{self.settings.ca_server}:{self.settings.ca_port}"

    async def fetch(self) -> bytes:
        """
        What the CA gives out now, PEM.

        Raises:
            PeerUnreachable, PeerNotTrusted, PeerAnswered, TooLarge; ConfigError: our own files cannot be used.
        """
        refusals = []
        for dialect, known in WAYS:
            try:
                return await self._asked(dialect, known=known)
            except PeerAnswered as err:
                refusals.append(err)
        raise refusals[0]

    async def _asked(self, dialect: Dialect, *, known: bool) -> bytes:
        """`known`: with our certificate. One that is revoked could not even ask with it."""
        import aiohttp

        indirection: Indirection[Any] = CERTIFICATE_REVOCATION_LIST
        request: Request[Any] = Request("ca", self.settings.environment)
        target = paths.build("find", indirection, request, dialect, prefix="puppet-ca").target
        context = await asyncio.to_thread(tls.client_context, self.files, self.now(), known=known)
        host = f"[{self.settings.ca_server}]" if ":" in self.settings.ca_server else self.settings.ca_server
        headers = {"Accept": "s" if dialect is LEGACY else "text/plain", "Accept-Encoding": "identity"}
        limit = aiohttp.ClientTimeout(total=self.settings.crl_refresh_timeout)
        url = f"https://{host}:{self.settings.ca_port}{target}"
        try:
            async with (
                aiohttp.ClientSession(timeout=limit, auto_decompress=False) as session,
                session.get(url, ssl=context, headers=headers, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    said = " ".join((await answer.content.read(2000)).decode("utf-8", "replace").split())
                    its = "Is that the CA? Its name and port are ca_server and ca_port."
                    hint = its if answer.status < 500 else "The CA's log says why."
                    raise PeerAnswered(f"{self} answered {answer.status}: {said}", code=answer.status, hint=hint)
                return await self._body(answer.content)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as err:
            hint = (
                f"It has to show a certificate of the CA in {self.files.authorities}, not revoked, with '{self.settings.ca_server}' in it."
            )
            raise PeerNotTrusted(f"{self} is not who it should be: {err}", hint=hint) from err
        except (aiohttp.ClientError, ssl.SSLError, OSError, TimeoutError) as err:
            why = str(err) or f"no answer within {self.settings.crl_refresh_timeout} seconds"
            raise PeerUnreachable(f"{self} could not be asked: {why}", hint="Its name and port are ca_server and ca_port.") from err

    async def _body(self, content: aiohttp.StreamReader) -> bytes:
        limit, found = self.settings.max_crl_body, bytearray()
        async for piece in content.iter_any():
            found += piece
            if len(found) > limit:
                raise TooLarge(f"The CRL of {self} is over the limit of {limit} bytes", hint="The limit is max_crl_body.")
        return bytes(found)


class CrlRefresh:
    """
    Keeps the file of revocation lists up to date.

    Args:
        fetch: gives the CA's lists, PEM; raises PuppetError, OSError.
        source: the CA, as it is named in the log.
    """

    def __init__(
        self,
        files: TrustFiles,
        fetch: Callable[[], Awaitable[bytes]],
        source: object,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.files = files
        self.fetch = fetch
        self.source = source
        self.now = now
        self.refreshed: datetime | None = None  # when the CA was last heard
        self._complaint = ""
        self._complained: datetime | None = None

    @classmethod
    def of(cls, settings: MasterSettings, files: TrustFiles) -> CrlRefresh | None:
        """As the settings want it; None for a master that is the CA, and where it is switched off."""
        if settings.ca or not settings.crl_refresh_interval:
            return None
        source = CrlSource(settings, files, now=lambda: datetime.now(UTC))
        return cls(files, source.fetch, source)

    async def refresh(self) -> None:
        """
        Ask the CA once, and keep what it says.

        Raises:
            PeerError, TooLarge, BadData: what is on disk stays as it was. OSError: it cannot be written.
        """
        pem = await self.fetch()
        if await asyncio.to_thread(store_crls, self.files, pem, self.now()):
            log.log(NOTICE, "Took over the CRL of %s", self.source)
        self.refreshed = self.now()

    async def attempt(self) -> None:
        """Refresh; a failure is logged with what to do, again only when it is another one or an hour has passed."""
        try:
            await self.refresh()
        except (PuppetError, OSError, ValueError) as err:  # a list whose extensions do not parse is a ValueError
            text, now = str(err), self.now()
            if text == self._complaint and self._complained is not None and now - self._complained < REPEATED:
                return
            self._complaint, self._complained = text, now
            log.error("Could not refresh the CRL, so that revocations are not seen: %s", text)
            if hint := getattr(err, "hint", ""):
                log.error("%s", hint)
            return
        if self._complaint:
            self._complaint = ""
            log.log(NOTICE, "The CRL is refreshed again")

    async def keep_fresh(self, interval: float, *, chance: Callable[[], float] = random.random) -> None:
        """Runs until cancelled: one attempt at once, then one each `interval` seconds, more or less."""
        while True:
            await self.attempt()
            await asyncio.sleep(interval * (1 - SPREAD + 2 * SPREAD * chance()))

    def describe(self, metrics: Metrics) -> None:
        metrics.read(
            "puppet_crl_refreshed_seconds",
            "gauge",
            "When a master that is no CA last had the CA's revocation list, in seconds since the epoch; 0: not since its start.",
            lambda: [((), self.refreshed.timestamp() if self.refreshed else 0.0)],
        )


def store_crls(files: TrustFiles, pem: bytes, now: datetime) -> bool:
    """
    Put the CA's lists into the place of those on disk; whether they are others. Blocks.

    The file gets the time of now in any case, which tells `--check` when the CA was last heard. A list that was not sent stays:
    that of a CA above an intermediate, say, which somebody has copied there.

    Raises:
        PeerNotTrusted: of another CA, not genuine, older, not valid now. BadData, TooLarge: not a list. OSError.
    """
    authorities = bundles.certificates(files.authorities.read_bytes())
    before = files.crl.read_bytes() if files.crl.exists() else b""
    known = _known(files.crl, before)
    taken = crl.accept_newer(bundles.revocation_lists(pem), known, authorities)
    for each in taken:
        name = each.issuer.rfc4514_string()
        if crl.is_delta(each):
            raise PeerNotTrusted(f"The CRL issued by '{name}' is a difference to another one only")
        if each.last_update_utc > now + CRL_FROM_THE_FUTURE or (each.next_update_utc is not None and each.next_update_utc <= now):
            raise PeerNotTrusted(
                f"The CRL issued by '{name}' is valid from {each.last_update_utc} to {each.next_update_utc}, which is not now",
                hint="Compare the clocks of this host and of the CA; a CA that runs signs its list again in time.",
            )
    sent = {each.issuer for each in taken}
    ours = {each.subject for each in authorities} - sent
    after = bundles.dump([*taken, *(each for each in known if each.issuer in ours)])
    if after == before:
        os.utime(files.crl)
        return False
    write_atomic(files.crl, after, mode=0o644, owner=owner_in(files.crl.parent))
    return True


def _known(path: Path, pem: bytes) -> tuple[x509.CertificateRevocationList, ...]:
    """The lists on disk; none when they cannot be read, which is no reason to go on without."""
    try:
        return bundles.revocation_lists(pem) if pem else ()
    except (BadData, TooLarge) as err:
        log.warning("The CRL in %s cannot be read, and is replaced: %s", path, err)
        return ()


def overdue_since(path: Path, interval: float, now: datetime) -> datetime | None:
    """When the lists were last refreshed, if that is too long ago for masters that ask each `interval` seconds. Blocks."""
    refreshed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return refreshed if now - refreshed > max(LATE * timedelta(seconds=interval), LEAST_LATE) else None
