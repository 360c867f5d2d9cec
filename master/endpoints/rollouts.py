"""Rollouts for tools and users without a shell on the master: `/puppet/v1/rollouts` shows them, and pauses, resumes or aborts one."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.data import plainjson
from shared.errors import BadRequest, NotFound
from shared.process.log import NOTICE

from ..authorization.defaults import ADMINISTRATOR, rule
from ..authorization.rules import Exactly
from ..rollouts.actions import command_rollout
from ..rollouts.status import status_of
from ..rollouts.storage import RolloutStorage
from .routes import EndpointCall, EndpointRoute

log = logging.getLogger("puppet.rollout")

PATH: Final = "/puppet/v1/rollouts"
MAX_BODY: Final = 64 * 1024
_MEMBERS: Final = frozenset({"environment", "action", "reason"})


@dataclass(frozen=True, slots=True)
class RolloutEndpoint:
    """The endpoint."""

    storage: RolloutStorage

    async def respond(self, call: EndpointCall) -> Response:
        """Return the statuses, or that of the rollout after a command; raise BadRequest, NotFound, Conflict."""
        if call.target.method == "POST":
            body = await bodies.read_body(call.request, MAX_BODY)
            return _json(await asyncio.to_thread(self._command, body, call.request.client.name))
        environment = call.options.get("environment")
        return _json(await asyncio.to_thread(self._statuses, environment if isinstance(environment, str) else ""))

    def _statuses(self, environment: str) -> list[dict[str, Any]]:
        """Return the status of one rollout, or of all. Blocks."""
        stored = [self.storage.load(name) for name in ([environment] if environment else self.storage.environments())]
        if environment and None in stored:
            raise NotFound(f"There is no rollout of {environment}")
        return [status_of(each.rollout) for each in stored if each is not None]

    def _command(self, body: bytes, client: str | None) -> dict[str, Any]:
        """Carry out a command, and return the status after it. Blocks."""
        data = plainjson.loads(body)
        if not isinstance(data, dict) or not data.keys() <= _MEMBERS or not all(isinstance(value, str) for value in data.values()):
            raise BadRequest(f"The body is an object of texts: {', '.join(sorted(_MEMBERS))}")
        if "environment" not in data or "action" not in data:
            raise BadRequest("The body names an environment and an action")
        rollout = command_rollout(self.storage, data["environment"], data["action"], data.get("reason", ""))
        log.log(NOTICE, "%s: %s of the rollout of %s over HTTP", client, data["action"], data["environment"])
        return status_of(rollout)


def _json(data: object) -> Response:
    return Response(200, plainjson.dumps(data), "application/json;charset=utf-8")


_SUMMARY = "The statuses of the rollouts; a POST pauses, resumes or aborts one."
_RULE = rule(PATH, Exactly(PATH), "find save", ADMINISTRATOR)
_route = partial(EndpointRoute, respond=RolloutEndpoint.respond, part=RolloutEndpoint, rule=_RULE)
ROUTES = (_route(PATH, {"GET": "", "POST": "json"}, "application/json", _SUMMARY, ("environment",)),)
