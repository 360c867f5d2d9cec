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
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from environments.code_commands import CodeCommands
from environments.directories import Environments
from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.data import plainjson
from shared.errors import BadRequest, NotFound, PuppetError
from shared.indirector.paths import single
from shared.models.catalog import CATALOG
from shared.names import valid_environment

from ..authorization.defaults import EVERYBODY, rule
from ..authorization.rules import Below
from ..catalogs.v4 import V4Catalogs
from ..catalogs.v4_request import catalog_request_of
from ..pools.body_parser import BodyParser
from .limits import MasterLimits
from .routes import EndpointCall, EndpointRoute
from .schemes import PLAIN_SCHEME

log = logging.getLogger("puppet.http")

_JSON = "application/json;charset=utf-8"
_GZIP_SUFFIX = re.compile(r"--gzip\Z")  # the suffix that Jetty adds to a tag, and that clients send back

# Why an endpoint of puppetserver is missing here, for its 404.
_REASONS_MISSING = {
    "environment_transports": "transports of devices are described by Ruby of modules, which this master does not load",
    "compile": "catalogs of syntax trees, as Bolt's apply sends them, are not compiled",
}


class ListingSource(Protocol):
    async def __call__(self, what: str, environment: str = "", module: str = "", name: str = "") -> bytes:
        """Return a listing of an environment, of all, or of one thing in a module, as JSON; raise NotFound, Unavailable."""


@dataclass(eq=False, repr=False)
class ServerEndpoints:
    """
    puppetserver's own endpoints.

    Args:
        listing: Lists the contents of environments, by the compiling processes.
        catalogs: Compiles catalogs for facts in a request.
        code: Knows versions of the files of tasks; None: there are no versions.
        parser: Parses bodies; by default without processes of its own.
    """

    environments: Environments
    listing: ListingSource
    catalogs: V4Catalogs
    limits: MasterLimits
    code: CodeCommands | None = None
    parser: BodyParser = field(default_factory=BodyParser)

    async def classes(self, call: EndpointCall) -> Response:
        body = await self.listing("classes", await self._environment(call))
        return await _tagged_response(body, call.request.headers.get("If-None-Match", ""))

    async def modules(self, call: EndpointCall) -> Response:
        return _json(await self.listing("modules", await self._environment(call) if "environment" in call.options else ""))

    async def things(self, call: EndpointCall) -> Response | None:
        match call.target.segments[2:]:
            case (name,):
                return _json(await self.listing(name, await self._environment(call)))
            case ("plans", module, plan) if module and plan:
                return _json(await self.listing("plan", await self._environment(call), module, plan))
            case ("tasks", module, task) if module and task:
                return await self._task(await self._environment(call), module, task)
        return None

    async def missing(self, call: EndpointCall) -> None:
        raise NotFound(f"{call.target.path} is not served here: {_REASONS_MISSING[call.target.segments[2]]}")

    async def catalog(self, call: EndpointCall) -> Response:
        body = await bodies.read_body(call.request, self.limits.body(CATALOG.limit))
        catalog_request = catalog_request_of(await self.parser.catalog_request(body))
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

    async def _environment(self, call: EndpointCall) -> str:
        name = single("environment", call.options.get("environment"))
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


_route = partial(EndpointRoute, answer="application/json", part=ServerEndpoints, scheme=PLAIN_SCHEME, as_sent=True)
_get = partial(_route, methods={"GET": ""}, query=("environment",))
_post = partial(_route, methods={"POST": "json"})
_TASKS = rule("/puppet/v3/tasks", Below("/puppet/v3/tasks"), "find", EVERYBODY)

ROUTES = (
    _get("/puppet/v3/environment_classes/{ignored*}", respond=ServerEndpoints.classes, summary="The classes of an environment, by file."),
    _get("/puppet/v3/environment_modules/{ignored*}", respond=ServerEndpoints.modules, summary="The modules of an environment, or of all."),
    _get("/puppet/v3/environment_transports/{ignored*}", respond=ServerEndpoints.missing),
    _get("/puppet/v3/tasks/{other*}", respond=ServerEndpoints.things, summary="The tasks of an environment.", rule=_TASKS),
    _get("/puppet/v3/tasks/{module}/{task}", respond=ServerEndpoints.things, summary="A task and its files.", rule=_TASKS),
    _get("/puppet/v3/plans/{other*}", respond=ServerEndpoints.things, summary="The plans of an environment."),
    _get("/puppet/v3/plans/{module}/{plan}", respond=ServerEndpoints.things, summary="A plan."),
    _post("/puppet/v3/compile/{ignored*}", respond=ServerEndpoints.missing),
    _post("/puppet/v4/catalog", respond=ServerEndpoints.catalog, summary="A catalog compiled with facts that are given.", lane="catalog"),
)
