"""A deployment that a web hook asks for: what the queue of one master and that of several have in common."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from shared.errors import Conflict, PuppetError, Unavailable
from shared.process.log import NOTICE

log = logging.getLogger("puppet.deploy")

Deploy = Callable[[str, str], Awaitable[str]]
"""Deploys a ref to an environment, or with '' removes it if its branch was removed; returns its new state, and raises PuppetError."""


async def carry_out(deploy: Deploy, environment: str, ref: str) -> None:
    """Deploy, and log how that went."""
    action = f"Deploying {ref} to {environment}" if ref else f"Removing {environment} if its branch was removed"
    log.log(NOTICE, "%s, as the web hook asked", action)
    try:
        log.log(NOTICE, "%s is %s now", environment, await deploy(environment, ref))
    except PuppetError as err:
        log.error("%s failed: %s", action, err)


def other_branch_waits(environment: str, waiting: str, ref: str) -> Conflict:
    """Return the error for a branch when another one is pending for the environment."""
    return Conflict(
        f"The branch {waiting} is about to be deployed to the environment {environment}: {ref} is not",
        hint="Rename one of the branches.",
    )


def too_many_wait(most: int) -> Unavailable:
    """Return the error for one more when as many as may wait do so."""
    return Unavailable(f"{most} deployments are waiting already", retry_after=60)
