"""Rollouts for tools and users without a shell on the master: `/puppet/v1/rollouts` shows, starts, pauses, resumes and aborts them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.data import plainjson
from shared.errors import BadRequest, NotFound, Unavailable
from shared.names import valid_environment
from shared.process.log import NOTICE

from ..authorization.defaults import ADMINISTRATOR, rule
from ..authorization.rules import Exactly
from ..rollouts.actions import command_rollout
from ..rollouts.status import status_of
from ..rollouts.storage import RolloutStorage
from .routes import EndpointCall, EndpointRoute, json_response

log = logging.getLogger("puppet.rollout")

PATH: Final = "/puppet/v1/rollouts"
MAX_BODY: Final = 64 * 1024
START: Final = "start"
RETRY: Final = 60  # seconds after which to ask again while another rollout is started

_OPTIONS: Final = frozenset({"ref", "waves", "wait", "max_failed", "noop_first", "on_failure"})
"""Those of `puppet rollout start` that a client may give. It chooses neither the repository nor programs."""

_MEMBERS: Final = _OPTIONS | {"environment", "action", "reason"}

StartRollout = Callable[[str, Mapping[str, str]], Awaitable[dict[str, Any]]]
"""Starts a rollout of an environment with these options, and returns its status; raises PuppetError."""


@dataclass(eq=False, repr=False)
class RolloutEndpoint:
    """The endpoint."""

    storage: RolloutStorage
    start: StartRollout
    _is_starting: bool = field(default=False, init=False)

    async def respond(self, call: EndpointCall) -> Response:
        """Return the statuses, or that of the rollout after a command; raise BadRequest, NotFound, Conflict, Unavailable."""
        if call.target.method == "POST":
            order = _order_of(plainjson.loads(await bodies.read_body(call.request, MAX_BODY)))
            environment, action = order["environment"], order["action"]
            if action == START:
                status = await self._start(environment, {name: order[name] for name in sorted(order.keys() & _OPTIONS)})
            else:
                command = partial(command_rollout, self.storage, environment, action, order.get("reason", ""))
                status = status_of(await asyncio.to_thread(command))
            log.log(NOTICE, "%s: %s of the rollout of %s over HTTP", call.request.client.name, action, environment)
            return json_response(status)
        name = call.options.get("environment")
        return json_response(await asyncio.to_thread(self._statuses, name if isinstance(name, str) else ""))

    async def _start(self, environment: str, options: Mapping[str, str]) -> dict[str, Any]:
        """Start a rollout, after its preview; only one at a time."""
        if self._is_starting:
            raise Unavailable("Another rollout is being started", retry_after=RETRY)
        self._is_starting = True
        try:
            return await self.start(valid_environment(environment), options)
        finally:
            self._is_starting = False

    def _statuses(self, environment: str) -> list[dict[str, Any]]:
        """Return the status of one rollout, or of all. Blocks."""
        stored = [self.storage.load(name) for name in ([environment] if environment else self.storage.environments())]
        if environment and None in stored:
            raise NotFound(f"There is no rollout of {environment}")
        return [status_of(each.rollout) for each in stored if each is not None]


def _order_of(data: Any) -> dict[str, str]:
    """Return the members of a body; raise BadRequest for another one than that of a command."""
    if not isinstance(data, dict) or not data.keys() <= _MEMBERS or not all(isinstance(value, str) for value in data.values()):
        raise BadRequest(f"The body is an object of texts: {', '.join(sorted(_MEMBERS))}")
    if "environment" not in data or "action" not in data:
        raise BadRequest("The body names an environment and an action")
    if data["action"] != START and data.keys() & _OPTIONS:
        raise BadRequest(f"Only {START} takes {', '.join(sorted(_OPTIONS))}")
    return data


_SUMMARY = "The statuses of the rollouts; a POST starts, pauses, resumes or aborts one."
_RULE = rule(PATH, Exactly(PATH), "find save", ADMINISTRATOR)
_route = partial(EndpointRoute, respond=RolloutEndpoint.respond, part=RolloutEndpoint, rule=_RULE)
# A start takes as long as its preview, and would hold a slot.
ROUTES = (_route(PATH, {"GET": "", "POST": "json"}, "application/json", _SUMMARY, ("environment",), lane=None),)
