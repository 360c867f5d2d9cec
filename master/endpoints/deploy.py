"""
The web hook of the control repository: a push starts a deployment.

Callers have no certificate. What they know is a secret: GitHub and Gitea sign the body with it (HMAC SHA-256), GitLab sends it.
Source: the documentation of web hooks of GitHub (X-Hub-Signature-256), Gitea (X-Gitea-Signature) and GitLab (X-Gitlab-Token).
"""

from __future__ import annotations

import asyncio
import fnmatch
import hashlib
import hmac
import logging
import os
import re
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from environments.versions import check_branch, deployment_record
from httpd.connections.connection import HttpRequest
from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.data import plainjson
from shared.errors import BadRequest, ConfigError, Denied, Unavailable, UnsupportedMediaType
from shared.names import environment_of_branch, quoted_for_log

from .routes import EndpointCall, EndpointRoute, json_response, require_method

log = logging.getLogger("puppet.http")

SHORTEST_SECRET: Final = 16
READ_TIMEOUT: Final = 30.0  # seconds for a body
MAX_READING: Final = 4  # bodies that are read at the same time

_MAX_SECRET: Final = 4096
_BRANCHES: Final = "refs/heads/"
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=#@-]{0,200}", re.ASCII)
_EVENTS: Final = ("X-GitHub-Event", "X-Gitea-Event", "X-Gitlab-Event")
_PUSHES: Final = frozenset({"push", "Push Hook"})
_DELETION: Final = "delete"


def read_secret(path: Path) -> bytes:
    """Return the secret in a file; ConfigError when others may read or change it, or it is short. Blocks."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as err:
        raise ConfigError(
            f"The secret of the web hook cannot be read: {path}: {err.strerror}", hint="The setting is deploy_hook_secret."
        ) from err
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o037:
            raise ConfigError(
                f"Others than its owner may read or change the secret {path}", hint=f"chmod 0600 {path}; the group may read it."
            )
        secret = file.read(_MAX_SECRET).strip()
    if len(secret) < SHORTEST_SECRET:
        raise ConfigError(
            f"The secret in {path} is shorter than {SHORTEST_SECRET} characters", hint="openssl rand -hex 32 prints a good one."
        )
    return secret


def is_authentic(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    """Return whether the sender of a body knows the secret. The first header that exists counts; comparisons take constant time."""
    signature = headers.get("X-Hub-Signature-256")
    if signature is not None:
        return _is_signature(signature.removeprefix("sha256="), body, secret)
    signature = headers.get("X-Gitea-Signature")
    if signature is not None:
        return _is_signature(signature, body, secret)
    token = headers.get("X-Gitlab-Token")
    return token is not None and hmac.compare_digest(token.encode("utf-8", "surrogateescape"), secret)


def _is_signature(text: str, body: bytes, secret: bytes) -> bool:
    expected = hmac.new(secret, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(text.lower().encode("utf-8", "surrogateescape"), expected.encode())


@dataclass(frozen=True, slots=True)
class Push:
    """A branch that was pushed, or removed."""

    branch: str
    is_removed: bool = False


def push_of(headers: Mapping[str, str], payload: Any) -> Push | None:
    """
    Return the pushed branch; None for any other event, and for a tag. Raise BadRequest for a body that is not a hook's, or a branch
    without a usable name.
    """
    if not isinstance(payload, dict):
        raise BadRequest("The body is not that of a web hook")
    events = [headers[name] for name in _EVENTS if name in headers]
    ref, after = payload.get("ref"), payload.get("after")
    is_deletion = events[:1] == [_DELETION] and payload.get("ref_type") == "branch"
    if events and events[0] not in _PUSHES and not is_deletion:
        return None
    if not isinstance(ref, str):
        raise BadRequest("The body of a push names a ref")
    if is_deletion:  # Gitea sends no push of it
        ref = _BRANCHES + ref
    if not ref.startswith(_BRANCHES):
        return None
    branch = ref.removeprefix(_BRANCHES)
    if not _BRANCH.fullmatch(branch):
        raise BadRequest(
            f"A branch of the name {quoted_for_log(branch)} is not deployed", hint="Names have letters, digits and ._/+=#@- only."
        )
    is_removed = is_deletion or payload.get("deleted") is True or (isinstance(after, str) and after != "" and not after.strip("0"))
    return Push(branch, is_removed)


@dataclass(eq=False, repr=False)
class DeployHook:
    """
    The endpoint.

    Args:
        secret: The file with the secret; it is read for each call.
        environments: Patterns of the environments that may be deployed, as of a shell.
        roots: Folders of environments.
        add: Has a branch deployed to an environment, or with '' an environment removed; Conflict, Unavailable.
        limit: Bytes of a body.
    """

    secret: Path
    environments: Sequence[str]
    roots: Sequence[Path]
    add: Callable[[str, str], Awaitable[None]]
    limit: int
    _reading: int = field(default=0, init=False)

    async def respond(self, call: EndpointCall) -> Response:
        """Return the response to a call; raise Denied, BadRequest, Unavailable."""
        require_method(call.target, "POST")
        request = call.request
        if request.headers.get("Content-Encoding"):
            raise UnsupportedMediaType("The body of a web hook is signed as it is: it may not be compressed")
        body = await self._body(request)
        secret = await asyncio.to_thread(read_secret, self.secret)
        if not await asyncio.to_thread(is_authentic, request.headers, body, secret):
            log.warning("Denied: a call of the web hook from %s whose sender does not know the secret", request.client.address)
            raise Denied("The signature of the web hook is missing or wrong")
        push = push_of(request.headers, await asyncio.to_thread(plainjson.loads, body))
        if push is None:
            return json_response({"state": "ignored"})
        environment = environment_of_branch(push.branch)
        if not any(fnmatch.fnmatchcase(environment, pattern) for pattern in self.environments):
            log.warning(
                "The web hook asks for the environment %s, which deploy_hook_environments does not allow", quoted_for_log(environment)
            )
            raise Denied(f"The environment {environment} is not deployed by the web hook", hint="The setting is deploy_hook_environments.")
        if not push.is_removed:
            for root in self.roots:
                check_branch(environment, await asyncio.to_thread(deployment_record, root / environment), push.branch)
        await self.add(environment, "" if push.is_removed else push.branch)
        return json_response({"state": "queued", "environment": environment, "ref": push.branch}, 202)

    async def _body(self, request: HttpRequest) -> bytes:
        """Return the body, as far as strangers may send one: few at a time, and not for long."""
        if self._reading >= MAX_READING:
            raise Unavailable("Other calls of the web hook are being read", retry_after=10)
        self._reading += 1
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                return await bodies.read_body(request, self.limit)
        except TimeoutError as err:
            raise bodies.TooSlow("The body did not arrive in time") from err
        finally:
            self._reading -= 1


_SUMMARY = "The web hook of the control repository, for who knows its secret (deploy_hook_secret); 404 without one."
_route = partial(EndpointRoute, respond=DeployHook.respond, part=DeployHook)
# Who knows the secret is let in; no rule is asked.
ROUTES = (_route("/puppet-admin-api/v1/deploy", {"POST": "json"}, "application/json", _SUMMARY, lane=None, is_guarded=False),)
