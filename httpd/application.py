"""The interface between the HTTP kernel and an application."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

from shared.errors import PuppetError

from .connections.connection import HttpRequest
from .messages.responses import Response, error_response, incident_response

ServerState = Literal["starting", "running", "stopping"]


class HttpApplication(ABC):
    """
    An application that a server serves. It sees only requests whose message and certificate have been checked.

    Attributes:
        state: The state of the server, which sets it.
    """

    state: ServerState = "starting"

    @abstractmethod
    async def handle(self, request: HttpRequest) -> Response:
        """Return the response to `request`, whose `client` is verified; raise PuppetError, which `error` puts into words."""

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """Return the headers of every response to `request`, those of errors included."""
        return {}

    def error(self, request: HttpRequest, error: PuppetError) -> Response:
        """Return the response to a foreseen error."""
        return error_response(error)

    def incident(self, request: HttpRequest, number: str) -> Response:
        """Return the response to an unforeseen error, which the log has under the same number."""
        return incident_response(number)

    def log_level(self, request: HttpRequest, error: PuppetError, status: int) -> int:
        """Return the level at which a foreseen error is logged that was answered with `status`."""
        return logging.ERROR if status >= 500 else logging.INFO

    async def start(self) -> None:  # noqa: B027  an application may have nothing to load
        """Load the application's data before the server listens; raise ConfigError on failure."""

    async def reload(self) -> None:  # noqa: B027
        """Read the application's files again; on failure raise PuppetError and keep the old state."""
