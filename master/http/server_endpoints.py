"""
The endpoints that puppetserver has of its own, beside those of Puppet's masters: what is in environments, catalogs of given facts.

The default rules let nobody in; a site's own may. Work is done by the compiling processes. Source: protocol reference 3.15.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from typing import Protocol

from shared.errors import BadRequest, NotFound
from shared.indirector.core import Client, Option
from shared.indirector.paths import parameters
from shared.models.catalog import CATALOG
from shared.names import environment as environment_name

from ..given_catalogs import CatalogWanted
from . import bodies
from .answers import Answer
from .auth_conf import Rules
from .catalog_request import catalog_wanted
from .connection import HttpRequest
from .handlers import Environments, parsed
from .limits import Limits
from .native import Target, only, permitted

_PATH = re.compile(
    r"/puppet/v3/(environment_classes|environment_modules|environment_transports|tasks|plans|compile)(?:/.*)?|/puppet/v4/(catalog)",
    re.DOTALL | re.ASCII,
)
_PACKED = re.compile(r"--gzip$")  # what Jetty puts behind a tag, and clients send back

# What is not there, and why: a 404 that says so.
_MISSING = {
    "environment_transports": "transports of devices are described by Ruby of modules, which this master does not load",
    "tasks": "this master does not list the tasks of modules",
    "plans": "this master does not list the plans of modules",
    "compile": "catalogs of syntax trees, as Bolt's apply sends them, are not compiled",
}


def server_endpoint(raw_path: str) -> str:
    """The name of the endpoint that a path, as it was sent, belongs to; '' for every other path."""
    match = _PATH.fullmatch(raw_path)
    return match[1] or match[2] if match is not None else ""


class Listing(Protocol):
    async def __call__(self, what: str, environment: str = "") -> bytes:
        """What is listed of an environment, or of all, as JSON; NotFound, Unavailable."""


class Catalogs(Protocol):
    async def find(self, wanted: CatalogWanted) -> bytes:
        """The answer as JSON; BadName, NotFound, CompileError, Unavailable."""


class ServerEndpoints:
    """`listing` and `catalogs` ask compiling processes."""

    def __init__(self, environments: Environments, listing: Listing, catalogs: Catalogs, limits: Limits) -> None:
        self.environments = environments
        self.listing = listing
        self.catalogs = catalogs
        self.limits = limits

    async def answer(self, request: HttpRequest, target: Target, client: Client, rules: Rules) -> Answer:
        """The answer of the endpoint that the target names; PuppetError for the plain scheme to put into words."""
        name = target.segments[2]
        if name == "catalog":
            only(target, "POST")
            return permitted(target, client, rules) or await self._catalog(request)
        if name in _MISSING:
            denied = permitted(target, client, rules)
            if denied is None:
                raise NotFound(f"{target.path} is not served here: {_MISSING[name]}")
            return denied
        only(target, "GET")
        denied = permitted(target, client, rules)
        if denied is not None:
            return denied
        options = parameters(target.raw_query)
        if name == "environment_modules" and "environment" not in options:
            return _json(await self.listing("modules"))
        environment = await self._environment(options)
        if name == "environment_modules":
            return _json(await self.listing("modules", environment))
        return await _tagged(await self.listing("classes", environment), request.headers.get("If-None-Match", ""))

    async def _catalog(self, request: HttpRequest) -> Answer:
        body = await bodies.whole(request, self.limits.body(CATALOG.limit), self.limits)
        return Answer(200, await self.catalogs.find(await parsed(catalog_wanted, body)), "application/json")

    async def _environment(self, options: Mapping[str, Option]) -> str:
        name = options.get("environment")
        if name is None:
            raise BadRequest("An environment parameter must be specified")
        if not isinstance(name, str):
            raise BadRequest("The parameter environment stands more than once")
        if not await self.environments.exists(environment_name(name)):
            raise NotFound(f"Could not find environment '{name}'")
        return name


def _json(body: bytes) -> Answer:
    return Answer(200, body, "application/json;charset=utf-8")


async def _tagged(body: bytes, known: str) -> Answer:
    """A body with its hash as its tag, bare as puppetserver has it; 304 for who knows it already. The body is made anew each time."""
    tag = await asyncio.to_thread(lambda: hashlib.sha256(body).hexdigest())
    if _PACKED.sub("", known) == tag:
        return Answer(304, headers={"ETag": tag})
    return Answer(200, body, "application/json", {"ETag": tag})
