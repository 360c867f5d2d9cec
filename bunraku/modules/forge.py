"""The Puppet Forge, or a server with its API v3: releases of modules, searches, archives."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from agent.servers.pace import Bounds, Pace
from agent.servers.sites import HttpLimits, Proxy
from agent.servers.websources import WebSources, peer_error, without_password
from language.values.versions import SemVer
from shared.data import plainjson
from shared.errors import BadData, ConfigError, PeerAnswered, PeerError, PeerNotTrusted, PeerUnreachable, PuppetError, TooLarge
from shared.filesystem.files import write_all
from shared.names import quoted_for_log
from shared.process.log import for_console
from shared.settings import AgentSettings

from .errors import ModuleToolError
from .releases.metadata import ModuleDependency, dashed, name_and_version, released_dependencies

if TYPE_CHECKING:
    import aiohttp

_LEFT_OUT = "readme,changelog,license,uri,module,tags,supported,file_size,downloads,created_at,updated_at,deleted_at"
_SUMS: Final = (("file_sha256", hashlib.sha256), ("file_md5", hashlib.md5))  # the first that a release has counts
_CHUNK: Final = 256 << 10
USER_AGENT: Final = "PMT/1.1.1 (v3; Bunraku)"  # the Forge and its mirrors know this tool by the first word


@dataclass(frozen=True, slots=True)
class ForgeRelease:
    """A release of a module on a Forge; `sums`: the fields of its checksums."""

    name: str
    version: SemVer
    dependencies: tuple[ModuleDependency, ...]
    file: str
    sums: Mapping[str, str] = field(default_factory=dict, hash=False)
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class FoundModule:
    """A module that a search has found."""

    name: str
    version: str
    summary: str
    tags: tuple[str, ...]

    def to_data(self) -> dict[str, Any]:
        author, _, _ = self.name.partition("-")
        return {"name": self.name, "author": author, "version": self.version, "summary": self.summary, "tags": list(self.tags)}


class ChecksumMismatch(PuppetError):
    """An archive that is not the one that the Forge names."""


@dataclass(frozen=True, slots=True)
class ForgeLimits:
    """Bytes of an answer, releases or results in all, bytes of an archive, seconds for one answer."""

    answer: int = 32 << 20
    releases: int = 5000
    archive: int = 64 << 20
    seconds: float = 600.0


class Forge:
    """
    A Forge at a URL.

    Args:
        groups: groups of modules to search, joined by `+`.
        authorization: the header that it gets; '' for the password in the URL, if there is one.
        warn: is called with releases that cannot be used.
    """

    def __init__(
        self,
        url: str,
        sources: WebSources,
        limits: ForgeLimits,
        *,
        groups: str = "",
        authorization: str = "",
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise ConfigError(f"The setting module_repository is no URL: {quoted_for_log(without_password(url))}", hint="Write https://…")
        self.url = url
        self._base = url.rstrip("/")
        self._sources = sources
        self._limits = limits
        self._groups = groups.replace("+", " ")
        self._authorization = authorization
        self._warn = warn

    @property
    def shown_url(self) -> str:
        """The URL without a password."""
        return without_password(self.url)

    async def releases(self, name: str) -> list[ForgeRelease]:
        """
        Return the releases of the module `author-name`, none when there is no such module.

        Raises:
            ModuleToolError: it cannot be asked, or answers with an error. BadData, TooLarge: its answer makes no sense.
        """
        target = f"/v3/releases?module={quote(name, safe='')}&sort_by=version&exclude_fields={quote(_LEFT_OUT, safe='')}"
        releases = []
        async for entry in self._results(self._in_groups(target)):
            try:
                release = _release(entry)
            except PuppetError as err:
                metadata = entry.get("metadata")
                name_of = metadata.get if isinstance(metadata, dict) else entry.get
                shown = for_console(f"{name_of('name')}-{name_of('version')}: {err}")
                self._warn(f"Cannot consider release {shown}")
                continue
            # The search of some mirrors matches parts of names.
            if release.name == name:
                releases.append(release)
        return releases

    async def search(self, term: str) -> list[FoundModule]:
        """Return the modules that a term finds; errors as `releases`."""
        return [_found_module(entry) async for entry in self._results(self._in_groups(f"/v3/modules?query={quote(term, safe='')}"))]

    async def download(self, release: ForgeRelease, path: Path, progress: Callable[[int], None] = lambda size: None) -> None:
        """
        Write the archive of a release to the new file `path`.

        Args:
            progress: is called with the number of received bytes.
        Raises:
            ChecksumMismatch: it is not the archive that the release names, or the release names none. Others as `releases`.
        """
        algorithm, expected = next(((make, release.sums[name]) for name, make in _SUMS if name in release.sums), (None, ""))
        # Without any sum a mirror could deliver anything; Puppet refuses it, too.
        if algorithm is None:
            raise ChecksumMismatch("Forge module is missing SHA256 and MD5 checksums")
        total = algorithm(usedforsecurity=False)
        size = 0
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            async with self._answer(release.file) as response:
                async for block in self._body(response, release.file, self._limits.archive, "module_archive_size"):
                    total.update(block)
                    await asyncio.to_thread(_write, fd, block, path)
                    size += len(block)
                    progress(size)
        finally:
            os.close(fd)
        if not hmac.compare_digest(total.hexdigest(), expected.lower()):
            raise ChecksumMismatch(f"Downloaded release for {release.name} did not match expected checksum {expected}")

    # --- exchanges

    def _in_groups(self, target: str) -> str:
        return f"{target}&module_groups={quote(self._groups, safe='')}" if self._groups else target

    async def _results(self, target: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the entries in all pages of an answer."""
        count, pages = 0, set[str]()
        while target:
            pages.add(target)
            async with self._answer(target) as response:
                body = b"".join([block async for block in self._body(response, target, self._limits.answer, "module_answer")])
            try:
                data = plainjson.loads(body)
                entries, following = data["results"], data["pagination"]["next"]
            except (BadData, KeyError, TypeError) as err:
                raise BadData(f"{self.shown_url} does not answer as a Forge does: {err}", hint="See module_repository.") from err
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                raise BadData(f"{self.shown_url} does not answer as a Forge does", hint="See module_repository.")
            count += len(entries)
            if count > self._limits.releases:
                raise TooLarge(f"{self.shown_url} lists more than {self._limits.releases} results", hint="See module_releases.")
            for entry in entries:
                yield entry
            # A page that leads back, or to another server, must neither loop nor get our authorization.
            if following is not None and (not isinstance(following, str) or not following.startswith("/") or following in pages):
                raise BadData(f"{self.shown_url} names an invalid next page: {quoted_for_log(str(following))}")
            target = quote(following, safe="/?&=%+:,;@!$'()*~") if following and entries else ""

    @asynccontextmanager
    async def _answer(self, target: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the answer to a request; ModuleToolError when there is none, or it has another status than 200."""
        url = f"{self._base}{target}"
        try:
            async with (
                asyncio.timeout(self._limits.seconds),
                self._sources.request("GET", url, {}, authorization=self._authorization) as response,
            ):
                if response.status != 200:
                    raise await self._answered(response, url)
                yield response
        except PuppetError as err:
            if isinstance(err, PeerError):
                raise self._unreachable(err) from err
            raise
        except Exception as err:
            problem = peer_error(err, url)
            if problem is None:
                raise
            raise self._unreachable(problem) from err

    async def _body(self, response: aiohttp.ClientResponse, target: str, most: int, setting: str) -> AsyncIterator[bytes]:
        bounds = self._sources.limits.bounds
        pace = Pace(Bounds(most, bounds.rate, bounds.window, bounds.seconds), f"{self.shown_url}{target}")
        try:
            async for block in pace.watch(response.content.iter_chunked(_CHUNK)):
                yield block
        except TooLarge as err:
            raise TooLarge(err.message, hint=f"See {setting}, if the Forge is right to send so much.") from err

    async def _answered(self, response: aiohttp.ClientResponse, url: str) -> ModuleToolError:
        """Return the error for a status other than success."""
        lines = [
            "Request to Puppet Forge failed.",
            f"  The server being queried was {without_password(url)}",
            f"  The HTTP response we received was '{response.status} {for_console(response.reason or '').strip()}'",
        ]
        try:
            message = plainjson.loads(await response.content.read(64 << 10))["message"]
        except (BadData, KeyError, TypeError):
            message = None
        if isinstance(message, str):
            lines.append(f"  The message we received said '{for_console(message.strip()[:1000])}'")
        return ModuleToolError("\n".join(lines))

    def _unreachable(self, err: PeerError) -> ModuleToolError:
        if isinstance(err, PeerNotTrusted):
            lines = [
                f"Could not connect via HTTPS to {self.shown_url}",
                "  Unable to verify the SSL certificate",
                "    The certificate may not be signed by a valid CA",
                "    The CA bundle included with OpenSSL may not be valid or up to date",
            ]
        elif isinstance(err, PeerUnreachable | PeerAnswered):
            lines = [
                f"Could not connect to {self.shown_url}",
                "  There was a network communications problem",
                f"    The error we caught said '{for_console(str(err))}'",
                "    Check your network connection and try again",
            ]
        else:
            lines = [str(err)]
        return ModuleToolError("\n".join(lines))


def forge_of(settings: AgentSettings, warn: Callable[[str], None] = lambda text: None, *, url: str = "") -> Forge:
    """
    Return the Forge of the settings, reached by the proxy of the settings; its certificate has to be of one of the system's CAs.

    Args:
        url: another Forge; it is not shown the authorization for that of the settings.
    """
    sources = WebSources(
        trust_store=settings.ssl_trust_store,
        user_agent=f"{USER_AGENT} {settings.http_user_agent}".rstrip(),
        limits=HttpLimits.of(settings),
        proxy=Proxy.of(settings),
        source=settings.sourceaddress,
    )
    limits = ForgeLimits(settings.module_answer, settings.module_releases, settings.module_archive_size, settings.module_download_timeout)
    # The authorization is for the configured Forge only; a Puppetfile may name another one.
    is_other = url not in ("", settings.module_repository)
    return Forge(
        url or settings.module_repository,
        sources,
        limits,
        groups=settings.module_groups,
        authorization="" if is_other else settings.forge_authorization,
        warn=warn,
    )


def _write(fd: int, block: bytes, path: Path) -> None:
    try:
        write_all(fd, block)
    except OSError as err:
        raise PuppetError(f"Could not write {path}: {err}") from err


def _release(entry: Mapping[str, Any]) -> ForgeRelease:
    """Return a release from an entry of the Forge; raise BadData when the entry is not one."""
    metadata = entry.get("metadata")
    if not isinstance(metadata, dict):
        raise BadData("It has no metadata")
    dependencies = released_dependencies(metadata)
    name, version = name_and_version(metadata)
    file = entry.get("file_uri")
    if not isinstance(file, str) or not file.startswith("/") or not file.isprintable():
        raise BadData("It names no file")
    sums = {key: entry[key] for key, _ in _SUMS if isinstance(entry.get(key), str)}
    module = entry.get("module")
    deprecated = isinstance(module, dict) and module.get("deprecated_at") is not None
    return ForgeRelease(name, version, dependencies, quote(file, safe="/%"), sums, deprecated)


def _found_module(entry: Mapping[str, Any]) -> FoundModule:
    """Return a module from an entry of the Forge; raise BadData when the entry is not one."""
    try:
        current = entry["current_release"]
        name = dashed(f"{entry['owner']['username']}-{entry['name']}")
        summary = current["metadata"].get("summary") or ""
        return FoundModule(name, str(current["version"]), str(summary), tuple(map(str, current.get("tags") or ())))
    except (KeyError, TypeError, AttributeError) as err:
        raise BadData(f"The Forge describes a module without {err}", hint="See module_repository.") from err
