"""
The revocation lists of a master that is not the CA, refreshed from the CA at intervals.

They are fetched from ca_server over TLS that trusts the CA alone, and replace those on disk only when the CA has signed
them and they are not older. The server notices the changed file (see `httpd.tls.trust`), as it does when somebody copies one there.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509

from certs import crl
from certs.files import bundles
from certs.verify import CRL_FROM_THE_FUTURE
from httpd.tls.trust import TrustFiles, client_context
from shared.clock import utc_now
from shared.errors import BadData, PeerAnswered, PeerNotTrusted, PeerUnreachable, PuppetError, TooLarge
from shared.filesystem.files import owner_in, write_atomic
from shared.indirector import paths
from shared.indirector.core import Indirection, Request
from shared.models.certificate_revocation_list import CERTIFICATE_REVOCATION_LIST
from shared.process.log import NOTICE
from shared.settings import MasterSettings
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..observability.metrics import Metrics

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger("puppet.crl")

SPREAD = 0.1  # of the interval, either way, so that masters that were started together do not ask together
LOG_AGAIN_AFTER = timedelta(hours=1)  # a failure that stays the same is logged again
LATE = 3  # intervals after which the lists count as out of date
LEAST_LATE = timedelta(hours=1)

# The ways to ask, with our certificate or without; the first that is answered counts. CAs of Puppet 4 and later answer anybody, or any
# certificate; one of 3.x answers in its own scheme.
WAYS: Final[tuple[tuple[Dialect, bool], ...]] = ((MODERN, False), (MODERN, True), (LEGACY, True))


class CrlSource:
    """The CA as a source of revocation lists."""

    def __init__(self, settings: MasterSettings, files: TrustFiles, *, now: Callable[[], datetime]) -> None:
        self.settings = settings
        self.files = files
        self.now = now

    def __str__(self) -> str:
        return f"{self.settings.ca_server}:{self.settings.ca_port}"

    async def fetch(self) -> bytes:
        """
        Return the lists that the CA gives out now, PEM.

        Raises:
            PeerUnreachable, PeerNotTrusted, PeerAnswered, TooLarge: The CA did not give them.
            ConfigError: Our own files cannot be used.
        """
        refusals = []
        for dialect, with_certificate in WAYS:
            try:
                return await self._fetch_by(dialect, with_certificate=with_certificate)
            except PeerAnswered as err:
                refusals.append(err)
        raise refusals[0]

    async def _fetch_by(self, dialect: Dialect, *, with_certificate: bool) -> bytes:
        """Fetch the lists in one way; a certificate of ours that is revoked could not even ask."""
        import aiohttp

        indirection: Indirection[Any] = CERTIFICATE_REVOCATION_LIST
        request: Request[Any] = Request("ca", self.settings.environment)
        target = paths.build("find", indirection, request, dialect, prefix="puppet-ca").target
        context = await asyncio.to_thread(client_context, self.files, self.now(), with_certificate=with_certificate)
        host = f"[{self.settings.ca_server}]" if ":" in self.settings.ca_server else self.settings.ca_server
        headers = {"Accept": "s" if dialect is LEGACY else "text/plain", "Accept-Encoding": "identity"}
        limit = aiohttp.ClientTimeout(total=self.settings.crl_refresh_timeout)
        url = f"https://{host}:{self.settings.ca_port}{target}"
        try:
            async with (
                aiohttp.ClientSession(timeout=limit, auto_decompress=False) as session,
                session.get(url, ssl=context, headers=headers, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    message = " ".join((await response.content.read(2000)).decode("utf-8", "replace").split())
                    its = "Is that the CA? Its name and port are ca_server and ca_port."
                    hint = its if response.status < 500 else "See the CA's log."
                    raise PeerAnswered(f"{self} answered {response.status}: {message}", code=response.status, hint=hint)
                return await self._body(response.content)
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as err:
            hint = (
                f"It has to show a certificate of the CA in {self.files.authorities}, not revoked, with '{self.settings.ca_server}' in it."
            )
            raise PeerNotTrusted(f"{self} is not who it should be: {err}", hint=hint) from err
        except (aiohttp.ClientError, ssl.SSLError, OSError, TimeoutError) as err:
            why = str(err) or f"no answer within {self.settings.crl_refresh_timeout} seconds"
            raise PeerUnreachable(f"{self} could not be asked: {why}", hint="Its name and port are ca_server and ca_port.") from err

    async def _body(self, content: aiohttp.StreamReader) -> bytes:
        limit, body = self.settings.max_crl_body, bytearray()
        async for piece in content.iter_any():
            body += piece
            if len(body) > limit:
                raise TooLarge(f"The CRL of {self} is over the limit of {limit} bytes", hint="The limit is max_crl_body.")
        return bytes(body)


@dataclass(eq=False, repr=False)
class CrlRefresh:
    """
    Keeps the file of revocation lists up to date.

    Args:
        fetch: Returns the CA's lists, PEM; raises PuppetError, OSError.
        source: The CA, as the log names it.
    """

    files: TrustFiles
    fetch: Callable[[], Awaitable[bytes]]
    source: object
    _: KW_ONLY
    now: Callable[[], datetime] = utc_now
    refreshed: datetime | None = field(default=None, init=False)  # when the CA last answered
    _last_error: str = field(default="", init=False)
    _logged_at: datetime | None = field(default=None, init=False)

    @classmethod
    def of(cls, settings: MasterSettings, files: TrustFiles) -> CrlRefresh | None:
        """Return the refresh that the settings ask for; None for a master that is the CA, and when it is switched off."""
        if settings.ca or not settings.crl_refresh_interval:
            return None
        source = CrlSource(settings, files, now=utc_now)
        return cls(files, source.fetch, source)

    async def refresh(self) -> None:
        """
        Fetch the CA's lists once and store them.

        Raises:
            PeerError, TooLarge, BadData: The lists on disk stay as they were.
            OSError: The lists cannot be written.
        """
        pem = await self.fetch()
        if await asyncio.to_thread(store_crls, self.files, pem, self.now()):
            log.log(NOTICE, "Took over the CRL of %s", self.source)
        self.refreshed = self.now()

    async def attempt(self) -> None:
        """Refresh; log a failure with a hint, again only when it is another one or an hour has passed."""
        try:
            await self.refresh()
        except (PuppetError, OSError, ValueError) as err:  # a list whose extensions do not parse is a ValueError
            text, now = str(err), self.now()
            if text == self._last_error and self._logged_at is not None and now - self._logged_at < LOG_AGAIN_AFTER:
                return
            self._last_error, self._logged_at = text, now
            log.error("Could not refresh the CRL, so that revocations are not seen: %s", text)
            if hint := getattr(err, "hint", ""):
                log.error("%s", hint)
            return
        if self._last_error:
            self._last_error = ""
            log.log(NOTICE, "The CRL is refreshed again")

    async def keep_fresh(self, interval: float, *, chance: Callable[[], float] = random.random) -> None:
        """Run until cancelled: attempt a refresh at once, then each `interval` seconds, more or less."""
        while True:
            await self.attempt()
            await asyncio.sleep(interval * (1 - SPREAD + 2 * SPREAD * chance()))

    def describe(self, metrics: Metrics) -> None:
        """Add the time of the last refresh to the metrics."""
        metrics.read(
            "puppet_crl_refreshed_seconds",
            "gauge",
            "When a master that is no CA last had the CA's revocation list, in seconds since the epoch; 0: not since its start.",
            lambda: [((), self.refreshed.timestamp() if self.refreshed else 0.0)],
        )


def store_crls(files: TrustFiles, pem: bytes, now: datetime) -> bool:
    """
    Replace the lists on disk by the CA's; return whether they differ. Blocks.

    The file always gets the present time, from which `--check` knows when the CA last answered. A list that was not sent stays:
    that of a CA above an intermediate, for example, which somebody has copied there.

    Raises:
        PeerNotTrusted: A list is of another CA, not genuine, older, or not valid now.
        BadData, TooLarge: `pem` holds no lists.
        OSError: The file cannot be written.
    """
    authorities = bundles.certificates(files.authorities.read_bytes())
    before = files.crl.read_bytes() if files.crl.exists() else b""
    stored = _stored_crls(files.crl, before)
    accepted = crl.accept_newer(bundles.revocation_lists(pem), stored, authorities)
    for issued in accepted:
        name = issued.issuer.rfc4514_string()
        if crl.is_delta(issued):
            raise PeerNotTrusted(f"The CRL issued by '{name}' is a difference to another one only")
        if issued.last_update_utc > now + CRL_FROM_THE_FUTURE or (issued.next_update_utc is not None and issued.next_update_utc <= now):
            raise PeerNotTrusted(
                f"The CRL issued by '{name}' is valid from {issued.last_update_utc} to {issued.next_update_utc}, which is not now",
                hint="Compare the clocks of this host and of the CA; a CA that runs signs its list again in time.",
            )
    sent_issuers = {issued.issuer for issued in accepted}
    kept_issuers = {authority.subject for authority in authorities} - sent_issuers
    after = bundles.dump([*accepted, *(known for known in stored if known.issuer in kept_issuers)])
    if after == before:
        os.utime(files.crl)
        return False
    write_atomic(files.crl, after, mode=0o644, owner=owner_in(files.crl.parent))
    return True


def _stored_crls(path: Path, pem: bytes) -> tuple[x509.CertificateRevocationList, ...]:
    """Return the lists on disk; none when they cannot be read, so that they are replaced."""
    try:
        return bundles.revocation_lists(pem) if pem else ()
    except (BadData, TooLarge) as err:
        log.warning("The CRL in %s cannot be read, and is replaced: %s", path, err)
        return ()


def overdue_since(path: Path, interval: float, now: datetime) -> datetime | None:
    """Return when the lists were last refreshed if that is too long ago for a refresh each `interval` seconds, else None. Blocks."""
    refreshed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return refreshed if now - refreshed > max(LATE * timedelta(seconds=interval), LEAST_LATE) else None
