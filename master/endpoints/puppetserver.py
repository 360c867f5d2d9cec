"""
The endpoints that puppetserver adds to those of Puppet's masters: listings of environments, catalogs for facts in the request.

The default rules allow access to tasks alone; a site's own may allow more. Compiling processes do the work.
Source: protocol reference 3.15.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from environments.code_commands import CodeCommands
from httpd.connections.connection import HttpRequest
from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.client import Client
from shared.data import plainjson
from shared.errors import BadRequest, NotFound, PuppetError
from shared.indirector.core import Option
from shared.indirector.paths import parameters, single
from shared.models.catalog import CATALOG
from shared.names import valid_environment

from ..authorization.auth_conf import Rules
from ..catalogs.v4_request import CatalogRequest, parse_catalog_request, parse_large_catalog_request
from ..pools.parse_pool import IN_PLACE, ParsePool
from .handlers import EnvironmentLookup, parse_body
from .limits import MasterLimits
from .schemes import not_routed
from .service import RequestTarget, denial_for, require_method

log = logging.getLogger("puppet.http")

_PATH = re.compile(
    r"/puppet/v3/(environment_classes|environment_modules|environment_transports|tasks|plans|compile)(?:/.*)?|/puppet/v4/(catalog)",
    re.DOTALL | re.ASCII,
)
_JSON = "application/json;charset=utf-8"
_GZIP_SUFFIX = re.compile(r"--gzip\Z")  # the suffix that Jetty adds to a tag, and that clients send back

# Why an endpoint of puppetserver is missing here, for its 404.
_REASONS_MISSING = {
    "environment_transports": "transports of devices are described by Ruby of modules, which this master does not load",
    "compile": "catalogs of syntax trees, as Bolt's apply sends them, are not compiled",
}


def server_endpoint(raw_path: str) -> str:
    """Return the name of the endpoint that a path, as it was sent, belongs to; '' for every other path."""
    match = _PATH.fullmatch(raw_path)
    return match[1] or match[2] if match is not None else ""


class ListingSource(Protocol):
    async def __call__(self, what: str, environment: str = "", module: str = "", name: str = "") -> bytes:
        """Return a listing of an environment, of all, or of one thing in a module, as JSON; raise NotFound, Unavailable."""


class Catalogs(Protocol):
    async def find(self, request: CatalogRequest) -> bytes:
        """Return the answer as JSON; raise BadName, NotFound, CompileError, Unavailable."""


@dataclass(eq=False, repr=False)
class ServerEndpoints:
    """
    puppetserver's own endpoints.

    Args:
        listing: Lists the contents of environments, by the compiling processes.
        catalogs: Compiles catalogs for facts in a request.
        code: Knows versions of the files of tasks; None: there are no versions.
        parsers: Read large bodies; None: they are read in this process.
    """

    environments: EnvironmentLookup
    listing: ListingSource
    catalogs: Catalogs
    limits: MasterLimits
    code: CodeCommands | None = None
    parsers: ParsePool | None = None

    async def respond(self, request: HttpRequest, target: RequestTarget, client: Client, rules: Rules) -> Response:
        """Return the response of the endpoint that the target names; raise PuppetError, which the plain scheme puts into words."""
        name, *thing = target.segments[2:]  # behind the name: a module and a task or plan of it, else ignored
        require_method(target, "POST" if name in ("catalog", "compile") else "GET")
        denied = denial_for(target, client, rules)
        if denied is not None:
            return denied
        options = parameters(target.raw_query)
        match name, thing:
            case "catalog", _:
                return await self._catalog(request)
            case "environment_classes", _:
                body = await self.listing("classes", await self._environment(options))
                return await _tagged_response(body, request.headers.get("If-None-Match", ""))
            case "environment_modules", _:
                return _json(await self.listing("modules", await self._environment(options) if "environment" in options else ""))
            case (("tasks" | "plans"), []):
                return _json(await self.listing(name, await self._environment(options)))
            case "tasks", [module, task] if module and task:
                return await self._task(await self._environment(options), module, task)
            case "plans", [module, plan] if module and plan:
                return _json(await self.listing("plan", await self._environment(options), module, plan))
            case (("tasks" | "plans"), _):
                return not_routed(target.path, request.headers.get("Accept", ""))
        raise NotFound(f"{target.path} is not served here: {_REASONS_MISSING[name]}")

    async def _catalog(self, request: HttpRequest) -> Response:
        body = await bodies.read_body(request, self.limits.body(CATALOG.limit))
        if self.parsers is not None and len(body) >= IN_PLACE:
            catalog_request = await parse_large_catalog_request(body, self.parsers)
        else:
            catalog_request = await parse_body(parse_catalog_request, body)
        return Response(200, await self.catalogs.find(catalog_request), "application/json")

    async def _task(self, environment: str, module: str, name: str) -> Response:
        task = plainjson.loads(await self.listing("task", environment, module, name))
        if "error" in task:
            return Response(500, plainjson.dumps(task["error"]), _JSON)
        code_id = await self.code.code_id(environment) if self.code is not None else None
        for file in task["files"]:
            file["uri"] = await self._uri(environment, code_id, file.pop("place"), file["sha256"])
        return _json(plainjson.dumps(task))

    async def _uri(self, environment: str, code_id: str | None, place: Sequence[str], digest: str) -> dict[str, Any]:
        """Return where to fetch a file of a task: by version if it is the same at that version, else as it is now."""
        folder, module, mount, inside = place
        path = f"{folder}/{module}/{mount}/{inside}"
        if code_id is not None and await self._digest(environment, code_id, path) == digest:
            return {"path": f"/puppet/v3/static_file_content/{path}", "params": {"environment": environment, "code_id": code_id}}
        mounted = "plugins" if mount == "lib" else f"{'modules' if mount == 'files' else mount}/{module}"
        return {"path": f"/puppet/v3/file_content/{mounted}/{inside}", "params": {"environment": environment}}

    async def _digest(self, environment: str, code_id: str, path: str) -> str:
        """Return the SHA-256 of a file at a version; '' when the site's program does not give it."""
        assert self.code is not None
        digest = hashlib.sha256()
        try:
            async with aclosing(self.code.file(environment, code_id, path)) as pieces:
                async for piece in pieces:
                    digest.update(piece)
        except PuppetError as err:
            log.debug("No version of %s: %s", path, err)
            return ""
        return digest.hexdigest()

    async def _environment(self, options: Mapping[str, Option]) -> str:
        name = single("environment", options.get("environment"))
        if name is None:
            raise BadRequest("An environment parameter must be specified")
        if not await self.environments.exists(valid_environment(name)):
            raise NotFound(f"Could not find environment '{name}'")
        return name


def _json(body: bytes) -> Response:
    return Response(200, body, _JSON)


async def _tagged_response(body: bytes, if_none_match: str) -> Response:
    """Return a body with its hash as its tag, unquoted as puppetserver sends it; a 304 for a client that has it already."""
    tag = await asyncio.to_thread(lambda: hashlib.sha256(body).hexdigest())
    if _GZIP_SUFFIX.sub("", if_none_match) == tag:
        return Response(304, headers={"ETag": tag})
    return Response(200, body, "application/json", {"ETag": tag})
