"""
The client of a PuppetDB: queries go to the first server that answers, commands to the first that takes them, or to all.

Errors and log entries are in the words of the reference.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlsplit

from shared.data import plainjson
from shared.errors import BadData, NotFound, PuppetError, TooLarge

from .commands import PuppetDbCommand
from .configuration import PuppetDbConfiguration
from .sessions import Sessions

log = logging.getLogger("puppet.puppetdb")

QUERY_PATH = "/pdb/query/v4"
VERSION_PATH = "/pdb/meta/v1/version"
FAIL_OVER = "Failing over to the next PuppetDB server_url in the 'server_urls' list"
MAX_COMMAND_ANSWER = 1 << 20  # bytes; it is one UUID, or an error
COMPRESSION = 6  # of gzip, as the reference's


class SubmissionFailed(PuppetError):
    """A command that not enough servers took."""


@dataclass(frozen=True, slots=True)
class PuppetDbAnswer:
    """The answer of a server; `url` is the server's."""

    url: str
    status: int
    reason: str
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def problem(self) -> str:
        """Status and text of an answer that reports a failure, in one line."""
        text = self.body.decode("utf-8", "replace").replace("\r", "").replace("\n", "")
        return f"[{self.status} {self.reason}] {text}"


@dataclass(frozen=True, slots=True)
class PuppetDbRequest:
    """A request as it goes to each server; `target` is path and query, escaped already, and `most` the bytes of an answer."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None
    most: int


class PuppetDbClient:
    """
    The servers of one PuppetDB.

    Args:
        producer: The master's certname, the sender of its commands.
        max_answer: Bytes of the answer to a query.
    """

    def __init__(self, configuration: PuppetDbConfiguration, sessions: Sessions, *, producer: str, max_answer: int) -> None:
        self.configuration = configuration
        self.sessions = sessions
        self.producer = producer
        self.max_answer = max_answer
        self._last_good = 0  # the index of the server that answered the last query that another one did not
        self._dropped: set[str] = set()  # submit_only_server_urls that timed out twice in a row
        self._timed_out: set[str] = set()

    async def close(self) -> None:
        await self.sessions.close()

    async def get(self, target: str) -> PuppetDbAnswer:
        """
        Return the answer to a query; its status may be any below 500 but 404.

        Args:
            target: Path and query, escaped.
        Raises:
            NotFound: All servers say that there is no such thing. PuppetError: No server answers. TooLarge.
        """
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}
        return await self._query(PuppetDbRequest("GET", target, headers, None, self.max_answer))

    async def post_query(self, query: Any) -> PuppetDbAnswer:
        """Return the answer to a query in PQL (text) or as a syntax tree (a list); raises as `get`."""
        headers = {"Accept": "application/json", "Content-Type": "application/json; charset=UTF-8"}
        body = plainjson.dumps({"query": query})
        return await self._query(PuppetDbRequest("POST", QUERY_PATH, headers, body, self.max_answer))

    async def with_sealed(self, resources: bytes) -> bytes:
        """Return an answer with resources as it is: only a master's own store seals parameters."""
        return resources

    async def problem_of(self, server: str, seconds: float) -> PuppetError | None:
        """Return why one of the servers cannot be used, None when it answers in time as a PuppetDB does."""
        import aiohttp

        exchange = PuppetDbRequest("GET", VERSION_PATH, {"Accept": "application/json"}, None, MAX_COMMAND_ANSWER)
        try:
            async with asyncio.timeout(seconds):
                answer = await self._ask(server, exchange)
        except TimeoutError:
            return PuppetError(f"No answer within {seconds:g} seconds", hint="Does it run, and does a firewall let this host in?")
        except (aiohttp.ClientError, OSError) as err:
            hint = "Does it run there? The setting is server_urls in puppetdb.conf."
            if isinstance(err, (aiohttp.ClientSSLError, ssl.SSLError)) or isinstance(err.__cause__, ssl.SSLError):
                hint = "Both need certificates of the same CA, and show them; that of the server has to name the host of server_urls."
            return PuppetError(f"{err or type(err).__name__}", hint=hint)
        if answer.status == 403:
            return PuppetError(answer.problem, hint=f"Write {self.producer} into its certificate-allowlist.")
        try:
            if answer.is_success and "version" in plainjson.loads(answer.body):
                return None
        except (BadData, TypeError):
            pass
        return PuppetError(f"This is not the answer of a PuppetDB: {answer.problem[:200]}", hint="Is it starting, or another program?")

    async def deliver(self, make: Callable[[], PuppetDbCommand]) -> None:
        """
        Make a command, which blocks, and send it, so that a PuppetDB has it before an agent has its answer; raise the errors of `submit`.
        """
        await self.submit(await asyncio.to_thread(make))

    async def submit(self, command: PuppetDbCommand) -> str | None:
        """
        Send a command; return its UUID, or None when it failed and soft_write_failure lets that pass.

        Raises:
            SubmissionFailed: Fewer servers than have to took it.
        """
        try:
            return await self._submit(command)
        except PuppetError as err:
            log.error("%s", err.message)
            if self.configuration.soft_write_failure:
                return None
            raise SubmissionFailed(err.message, hint=err.hint) from err

    async def _submit(self, command: PuppetDbCommand) -> str:
        target, length, body = await asyncio.to_thread(_wire_form, command)
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json; charset=utf-8",
            "Content-Encoding": "gzip",
            "X-Uncompressed-Length": str(length),
        }
        exchange = PuppetDbRequest("POST", target, headers, body, MAX_COMMAND_ANSWER)
        only = [url for url in self.configuration.submit_only_server_urls if url not in self._dropped]
        servers = [*self.configuration.server_urls, *only]
        if self.configuration.command_broadcast:
            answer = await self._broadcast(exchange, servers)
        else:
            answer = (await self._fail_over(exchange, servers))[0]
        if not answer.is_success:
            raise PuppetError(answer.problem)
        try:
            uuid = str(plainjson.loads(answer.body)["uuid"])
        except (BadData, KeyError, TypeError) as err:
            raise PuppetError(f"The PuppetDB at {answer.url} took a command, but gave it no UUID") from err
        log.info("'%s' command for %s submitted to PuppetDB with UUID %s", command.wire_name, command.certname, uuid)
        return uuid

    async def _query(self, exchange: PuppetDbRequest) -> PuppetDbAnswer:
        servers = self.configuration.server_urls
        first = self._last_good if self.configuration.sticky_read_failover else 0
        order = [(first + offset) % len(servers) for offset in range(len(servers))]
        answer, position = await self._fail_over(exchange, [servers[index] for index in order])
        if position:
            self._last_good = order[position]
        return answer

    async def _fail_over(self, exchange: PuppetDbRequest, servers: Sequence[str]) -> tuple[PuppetDbAnswer, int]:
        """Return the first answer that is one, and the position of its server."""
        is_found = True
        for position, server in enumerate(servers):
            answer = await self._answer_of(server, exchange)
            if answer is None:
                continue
            if not self._log_refusal(answer, exchange):
                return answer, position
            is_found = not _says_not_found(answer)
        raise self._failure(exchange, is_found)

    async def _broadcast(self, exchange: PuppetDbRequest, servers: Sequence[str]) -> PuppetDbAnswer:
        """Send to all servers at the same time; return the last answer when enough of them took it."""
        answers = await asyncio.gather(*(self._answer_of(server, exchange) for server in servers))
        good = [answer for answer in answers if answer is not None and not self._log_refusal(answer, exchange)]
        if len(good) < self.configuration.min_successful_submissions:
            raise self._failure(exchange, is_found=True)
        return good[-1]

    def _failure(self, exchange: PuppetDbRequest, is_found: bool) -> PuppetError:
        urls = ", ".join(self.configuration.server_urls)
        if not is_found:
            return NotFound(f"Failed to find '{exchange.target}' on any of the following 'server_urls': {urls}")
        least = self.configuration.min_successful_submissions
        return PuppetError(
            f"Failed to execute '{exchange.target}' on at least {least} of the following 'server_urls': {urls}",
            hint="See their answers in the master's log.",
        )

    async def _answer_of(self, server: str, exchange: PuppetDbRequest) -> PuppetDbAnswer | None:
        """Return the answer of one server; None, with a warning, when it cannot be reached. Raise TooLarge."""
        import aiohttp

        route = f"{server}{exchange.target}"
        try:
            async with asyncio.timeout(self.configuration.server_url_timeout):
                answer = await self._ask(server, exchange)
        except TimeoutError:
            self._warn_of_timeout(server, route)
            self._count_timeout(server)
            return None
        except (aiohttp.ClientError, ssl.SSLError, OSError) as err:
            reason = f"{err or type(err).__name__}"
            self._warn_of_connection(server, route, reason)
            return None
        self._timed_out.discard(server)
        return answer

    def _warn_of_timeout(self, server: str, route: str) -> None:
        seconds = self.configuration.server_url_timeout
        log.warning("Request to %s at route %s timed out after %g seconds. %s", _host_on_port(server), route, seconds, FAIL_OVER)

    def _warn_of_connection(self, server: str, route: str, reason: str) -> None:
        host = _host_on_port(server)
        log.warning("Error connecting to %s at route %s, error message received was '%s'. %s", host, route, reason, FAIL_OVER)

    async def _ask(self, server: str, exchange: PuppetDbRequest) -> PuppetDbAnswer:
        import aiohttp
        from yarl import URL

        async with (
            self.sessions.lend() as session,
            session.request(
                exchange.method,
                URL(f"{server}{exchange.target}", encoded=True),
                data=exchange.body,
                headers=exchange.headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as response,
        ):
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > exchange.most:
                    raise TooLarge(
                        f"The answer of the PuppetDB at {server} is over the limit of {exchange.most} bytes",
                        hint="The limit is puppetdb_answer; a query that asks for less is better.",
                    )
            deprecation = response.headers.get("X-Deprecation")
            if deprecation:
                log.warning("Deprecation from PuppetDB: %s", deprecation)
            return PuppetDbAnswer(server, response.status, response.reason or "", bytes(body))

    def _count_timeout(self, server: str) -> None:
        """Drop a server that gets commands only when it was silent twice in a row."""
        if server not in self.configuration.submit_only_server_urls:
            return
        if server in self._timed_out:
            self._dropped.add(server)
        self._timed_out.add(server)

    def _log_refusal(self, answer: PuppetDbAnswer, exchange: PuppetDbRequest) -> bool:
        """Return whether an answer means that the next server must be tried, which is logged."""
        if answer.status < 500 and answer.status != 404:
            return False
        route = f"{answer.url}{exchange.target}"
        if _says_not_found(answer):
            normal = "HTTP 404 (probably normal) when connecting to %s at route %s, error message received was '%s'. %s"
            log.debug(normal, _host_on_port(answer.url), route, answer.reason, FAIL_OVER)
        else:
            self._warn_of_answer(answer, route)
        return True

    def _warn_of_answer(self, answer: PuppetDbAnswer, route: str) -> None:
        self._warn_of_connection(answer.url, route, answer.reason)


def _wire_form(command: PuppetDbCommand) -> tuple[str, int, bytes]:
    """Return a command's path and query, the length of its payload, and the payload, compressed. Blocks."""
    payload = command.unpacked()
    return command.target(payload), len(payload), gzip.compress(payload, COMPRESSION, mtime=0)


def _says_not_found(answer: PuppetDbAnswer) -> bool:
    """Return whether the 404 comes from a PuppetDB itself, and not from a proxy or a starting server."""
    return answer.status == 404 and answer.body.startswith(b"{")


def _host_on_port(server: str) -> str:
    parts = urlsplit(server)
    return f"{parts.hostname} on {parts.port or 443}"


async def rows_in_pql(client: PuppetDbClient, query: str, what: str) -> list[Any]:
    """Return the rows that a query in PQL finds; PuppetError, which says what was asked for, when it fails."""
    answer = await client.get(f"{QUERY_PATH}?query={quote_plus(query)}")
    if not answer.is_success:
        raise PuppetError(f"The query for {what} failed: {answer.problem}")
    return await asyncio.to_thread(lambda: list(rows_of(answer)))


def rows_of(answer: PuppetDbAnswer) -> Iterator[Any]:
    """Yield the rows of an answer. Blocks: call it in a thread. BadData when it is not JSON array."""
    rows = plainjson.loads_trusted(answer.body)
    if not isinstance(rows, list):
        raise BadData(f"The PuppetDB at {answer.url} did not answer with a list")
    yield from rows
