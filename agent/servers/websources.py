"""
Files of web servers: `source => 'https://…'`.

The server's answer decides whether a file is fetched: checksums in its headers, else the entity tag or time that it named when the file was
fetched last (in a conditional request), else its time. When a server says nothing at all, its content is fetched, and the file is replaced
only when that differs. Source: protocol reference 7.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from shared import webtrust
from shared.errors import BadData, NotFound, PeerAnswered, PeerNotTrusted, PeerUnreachable, TooLarge, Unsupported
from shared.file_serving.metadata import MetadataOptions
from shared.filesystem import checksums
from shared.filesystem.checksums import Algorithm
from shared.filesystem.files import read_regular, write_atomic
from shared.models.file_metadata import FileMetadata, MetadataChecksum
from shared.names import quoted_for_log

from .pace import Pace
from .sites import HttpLimits, Proxy

if TYPE_CHECKING:
    import aiohttp

    from shared.settings import AgentSettings

log = logging.getLogger("puppet.file")

MAX_REDIRECTS: Final = 10
TRIES: Final = 5  # of one download; each resumes where the last one broke off
MAX_REMEMBERED: Final = 2000  # URLs
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SUMS: Final[tuple[tuple[Algorithm, str], ...]] = (("sha256", "x-checksum-sha256"), ("sha1", "x-checksum-sha1"), ("md5", "x-checksum-md5"))


@dataclass(frozen=True, slots=True)
class CachedDownload:
    """The checksum of a content that was fetched, and the server's headers that identify that content."""

    sha256: str
    etag: str = ""
    modified: str = ""

    def conditions(self) -> dict[str, str]:
        """Return the headers that make a request conditional on a change."""
        return {name: value for name, value in (("If-None-Match", self.etag), ("If-Modified-Since", self.modified)) if value}

    def holds_for(self, headers: Mapping[str, str]) -> bool:
        """Return whether an answer's headers identify the same content."""
        etag = strong_tag(headers)
        if self.etag or etag:
            return self.etag == etag
        return bool(self.modified) and self.modified == headers.get("last-modified", "")


@dataclass
class DownloadCache:
    """
    Downloads by URL, in a file, so that the next run need not fetch the same content again.

    Attributes:
        path: The file; None: the cache lasts as long as this process.
    """

    path: Path | None = None
    _known: dict[str, CachedDownload] = field(default_factory=dict)
    _loaded: bool = False

    def get(self, url: str) -> CachedDownload | None:
        """Return the last download from a URL. Blocks at its first call."""
        self._load()
        return self._known.get(url)

    def put(self, url: str, download: CachedDownload) -> None:
        """Remember a download. Blocks. An error when the file is written is ignored, as it only costs a download."""
        self._load()
        self._known.pop(url, None)
        self._known[url] = download
        while len(self._known) > MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        if self.path is not None:
            with suppress(OSError):
                write_atomic(self.path, json.dumps({url: asdict(cached) for url, cached in self._known.items()}).encode(), mode=0o600)

    def _load(self) -> None:
        if self._loaded or self.path is None:
            return
        self._loaded = True
        try:
            data = json.loads(read_regular(self.path))
            self._known = {str(url): CachedDownload(**fields) for url, fields in data.items()}
        except (OSError, BadData, ValueError, TypeError, AttributeError):
            self._known = {}


def strong_tag(headers: Mapping[str, str]) -> str:
    """Return the entity tag when it identifies the exact bytes; '' for a weak or missing one."""
    tag = headers.get("etag", "")
    return "" if tag.startswith("W/") else tag


def checksums_in(headers: Mapping[str, str]) -> dict[Algorithm, str]:
    """Return the checksums in an answer's headers; malformed ones are left out."""
    checksum_by_algorithm: dict[Algorithm, str] = {}
    with suppress(binascii.Error, ValueError):
        checksum_by_algorithm["md5"] = base64.b64decode(headers.get("content-md5", ""), validate=True).hex()
    for algorithm, name in _SUMS:
        if name in headers:
            checksum_by_algorithm[algorithm] = headers[name].strip().lower()
    return {algorithm: value for algorithm, value in checksum_by_algorithm.items() if checksums.valid(algorithm, value)}


def announced_checksum(headers: Mapping[str, str], preferred: Algorithm, remembered: CachedDownload | None) -> MetadataChecksum | None:
    """Return the best checksum known without the content: of the wanted algorithm, else a digest, else the time; None without any."""
    sums = checksums_in(headers)
    for algorithm in (preferred, "sha256", "sha1", "md5"):
        if algorithm in sums:
            return MetadataChecksum(type=algorithm, value=f"{{{algorithm}}}{sums[algorithm]}")
    if remembered is not None and preferred != "mtime":
        return MetadataChecksum(type="sha256", value=f"{{sha256}}{remembered.sha256}")
    try:
        seconds = parsedate_to_datetime(headers["last-modified"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return MetadataChecksum(type="mtime", value=f"{{mtime}}{checksums.time_text(seconds)}")


@dataclass(kw_only=True, eq=False, repr=False)
class WebSources:
    """
    Files of web servers (`http:` and `https:` URLs, percent-encoded as they are); each is a plain file.

    No client certificate is ever shown, as these servers are not the master.

    Args:
        authority: A bundle of CAs that are trusted in addition to the system's own.
        trust_store: Another bundle, that of the site (the setting ssl_trust_store).
        cache: The cache of earlier downloads.
        source: The address of this host that connections start from; '' for any.
    """

    authority: Path | None = None
    trust_store: str = ""
    limits: HttpLimits = field(default_factory=HttpLimits)
    proxy: Proxy = field(default_factory=Proxy)
    cache: DownloadCache = field(default_factory=DownloadCache)
    user_agent: str = "Puppet"
    source: str = ""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _context: ssl.SSLContext | None = field(default=None, init=False)

    # --- FileSources

    async def metadata(self, source: str, options: MetadataOptions) -> FileMetadata | None:
        """Return the metadata of the file; None when the server does not have it, or does not send any."""
        remembered = await asyncio.to_thread(self.cache.get, source)
        answer = await self._describe(source, remembered)
        if answer is None:
            return None
        status, headers = answer
        if remembered is not None and status != 304 and not remembered.holds_for(headers):
            remembered = None
        total = announced_checksum(headers, options.checksum_type, remembered)
        if total is None:
            total = MetadataChecksum(type="sha256", value=f"{{sha256}}{await self._checksum_of_content(source)}")
        return FileMetadata(name=source, path=source, type="file", checksum=total)

    async def search(self, source: str, options: MetadataOptions) -> list[FileMetadata] | None:
        raise Unsupported(f"cannot lookup multiple files: {without_password(source)}", hint="Only single files come from web servers.")

    async def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        """Yield the bytes. A download that breaks off is resumed where it stopped, if the content is still the same."""
        received = 0
        total = hashlib.sha256()
        first: Mapping[str, str] = {}
        pace = Pace(self.limits.bounds, without_password(source))  # of all attempts together
        for attempt in range(1, TRIES + 1):
            headers: dict[str, str] = {}
            validator = strong_tag(first) or first.get("last-modified", "")
            if received:
                headers = {"Range": f"bytes={received}-", "If-Range": validator}
            try:
                async with self.request("GET", source, headers) as response:
                    answer_headers = _lower_case_headers(response)
                    skip = self._bytes_to_skip(source, response, answer_headers, received, first)
                    first = first or answer_headers
                    async for block in pace.watch(response.content.iter_any()):
                        fresh, skip = block[skip:], max(skip - len(block), 0)
                        if fresh:
                            total.update(fresh)
                            received += len(fresh)
                            yield fresh
                break
            except (PeerUnreachable, TooLarge):
                raise
            except Exception as err:
                problem = peer_error(err, source)
                if problem is None:
                    raise
                resumable = bool(strong_tag(first) or first.get("last-modified")) or not received
                if attempt == TRIES or not first or not resumable:
                    raise problem from err
                log.info("%s; going on after %d bytes", problem.message, received)
                await self.sleep(float(attempt))
        keep = CachedDownload(total.hexdigest(), strong_tag(first), first.get("last-modified", ""))
        if keep.conditions():
            await asyncio.to_thread(self.cache.put, source, keep)

    def _bytes_to_skip(
        self, source: str, response: aiohttp.ClientResponse, headers: Mapping[str, str], received: int, first: Mapping[str, str]
    ) -> int:
        """Return how many bytes of an answer were received before; raise when it is not an answer to resume from."""
        if response.status == 404:
            raise NotFound(f"Could not find the content of {without_password(source)}")
        if received and response.status == 206:
            if not headers.get("content-range", "").startswith(f"bytes {received}-"):
                raise BadData(f"{without_password(source)}: the server sent another part than it was asked for")
            return 0
        if response.status != 200:
            raise PeerAnswered(f"Error {response.status} for {without_password(source)}", code=response.status)
        if received and (strong_tag(headers), headers.get("last-modified")) != (strong_tag(first), first.get("last-modified")):
            raise BadData(f"{without_password(source)} changed while it was fetched", hint="The next run fetches it again.")
        return received

    async def _checksum_of_content(self, source: str) -> str:
        """Return the checksum of a content whose server announces none, by downloading it."""
        total = hashlib.sha256()
        async for block in self.content(source, None):
            total.update(block)
        return total.hexdigest()

    async def _describe(self, source: str, remembered: CachedDownload | None) -> tuple[int, Mapping[str, str]] | None:
        """Return status and headers of the file; None when the server does not have it. Without HEAD, its first byte is requested."""
        conditions = remembered.conditions() if remembered else {}
        for method, headers in (("HEAD", conditions), ("GET", {"Range": "bytes=0-0", **conditions})):
            try:
                async with self.request(method, source, headers) as response:
                    status, answer_headers = response.status, _lower_case_headers(response)
            except Exception as err:
                problem = peer_error(err, source)
                if problem is None:
                    raise
                raise problem from err
            if status == 304 or 200 <= status < 300:
                return status, answer_headers
            if method == "HEAD" and status in (403, 405, 501):
                continue
            level = logging.DEBUG if status == 404 else logging.WARNING
            log.log(level, "%s: the server answered %d", without_password(source), status)
            return None
        return None

    # --- one exchange

    @asynccontextmanager
    async def request(
        self, method: str, source: str, headers: Mapping[str, str], *, authorization: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """
        Yield the first answer that is not a redirect. The password of a URL is sent only to the origin that the URL names.

        Args:
            authorization: the header that takes the place of a password in the URL.
        """
        import aiohttp
        from yarl import URL

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect, sock_read=self.limits.read)
        context = await asyncio.to_thread(self._trust)
        connector = aiohttp.TCPConnector(ssl=context, local_addr=(self.source, 0) if self.source else None)
        request_headers = {"User-Agent": self.user_agent, "Accept": "*/*", "Accept-Encoding": "identity", **headers}
        url, secret = _split_credentials(source)
        secret = authorization or secret
        origin = _origin(url)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            for _ in range(MAX_REDIRECTS + 1):
                options: dict[str, Any] = self.proxy.options(urlsplit(url).hostname or "")
                own_headers = {"Authorization": secret} if secret and _origin(url) == origin else {}
                async with session.request(
                    method, URL(url, encoded=True), headers={**request_headers, **own_headers}, allow_redirects=False, **options
                ) as response:
                    location = response.headers.get("Location")
                    if response.status not in _REDIRECTS or not location:
                        yield response
                        return
                    url = _redirect_target(url, location)
        raise PeerAnswered(f"{without_password(source)}: more than {MAX_REDIRECTS} redirects", code=310)

    def _trust(self) -> ssl.SSLContext:
        """Return a context that trusts the system's CAs and the site's own, and has no certificate to show. Blocks at its first call."""
        if self._context is None:
            self._context = webtrust.context(authority=self.authority, trust_store=self.trust_store)
        return self._context


def web_sources(settings: AgentSettings) -> WebSources:
    """Return web sources with the limits, the proxy and the CAs of the settings."""
    return WebSources(
        authority=settings.localcacert,
        trust_store=settings.ssl_trust_store,
        user_agent=settings.http_user_agent or "Puppet",
        limits=HttpLimits.of(settings),
        proxy=Proxy.of(settings),
        source=settings.sourceaddress,
        cache=DownloadCache(settings.statedir / "http_sources.json"),
    )


def _lower_case_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def without_password(url: str) -> str:
    """Return a URL without its user and password, for logs."""
    return _split_credentials(url)[0]


def _split_credentials(url: str) -> tuple[str, str]:
    """Return a URL without user and password, and the Authorization header that carries them ('' without them)."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, ""
    account, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=host).geturl(), "Basic " + base64.b64encode(unquote(account).encode()).decode()


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port


def _redirect_target(url: str, location: str) -> str:
    """Return the URL that a redirect leads to; raise PeerAnswered when it may not be followed."""
    target = _split_credentials(urljoin(url, location))[0]
    scheme = urlsplit(target).scheme
    if scheme not in ("http", "https"):
        raise PeerAnswered(f"{url} redirects to {quoted_for_log(location)}; not followed: only http and https are", code=302)
    if scheme == "http" and url.startswith("https:"):
        raise PeerAnswered(f"{url} redirects to {quoted_for_log(location)}; not followed, because it is not encrypted", code=302)
    return target


def peer_error(err: Exception, source: str) -> PeerUnreachable | PeerNotTrusted | None:
    """Return an error with a remedy in place of a library's error; None when `err` is not about the peer."""
    import aiohttp

    url = without_password(source)
    if isinstance(err, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError | ssl.SSLError):
        return PeerNotTrusted(f"Could not trust the server of {url}: {err}", hint="Is its CA among those of the system?")
    if isinstance(err, TimeoutError):
        return PeerUnreachable(f"{url}: the server did not answer in time", hint="See http_connect_timeout and http_read_timeout.")
    if isinstance(err, aiohttp.ClientError | OSError):
        return PeerUnreachable(f"Could not fetch {url}: {err}")
    return None
