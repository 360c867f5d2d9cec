"""The queries of a compilation to a PuppetDB: exported resources, and the function puppetdb_query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus, urlsplit

from shared.errors import PuppetError

from .client import QUERY_PATH, PuppetDbAnswer, PuppetDbClient


class PuppetDbQueries:
    """Answers the questions that compiling processes put to the listening one, which alone speaks to a PuppetDB."""

    def __init__(self, client: PuppetDbClient) -> None:
        self.client = client

    async def __call__(self, question: Mapping[str, Any]) -> bytes:
        """
        Return a PuppetDB's answer, JSON.

        Args:
            question: `query`, and `of`, which is `resources` where a collector asks; else `query` may be any.
        Raises:
            PuppetError: No server answers, or it refuses the query.
        """
        if question.get("of") == "resources":
            return await self._resources(question["query"])
        answer = await self.client.post_query(question["query"])
        return _body(answer)

    async def _resources(self, query: Any) -> bytes:
        text = json.dumps(query, separators=(",", ":"), ensure_ascii=False)
        try:
            answer = await self.client.get(f"{QUERY_PATH}/resources?query={quote_plus(text)}")
            return await self.client.with_sealed(_body(answer))
        except PuppetError as err:
            server = self.client.configuration.server_urls[-1]
            parts = urlsplit(server)
            where = f"{server}:443" if parts.scheme == "https" and parts.port is None else server
            raise PuppetError(f"Could not retrieve resources from the PuppetDB at {where}: {err.message}", hint=err.hint) from err


def _body(answer: PuppetDbAnswer) -> bytes:
    if not answer.is_success:
        raise PuppetError(answer.problem, hint="The PuppetDB refuses the query.")
    return answer.body
