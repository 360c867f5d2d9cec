"""The endpoint of sealed parameters, which only the master itself reaches, at the store's Unix socket."""

from __future__ import annotations

from httpd.connections.connection import HttpRequest
from httpd.messages.bodies import read_body
from httpd.messages.responses import Response
from shared.errors import BadRequest, MethodNotAllowed

from ..jsontext import load_json
from ..queries.sealed import SealedParameters
from .answers import json_response


class SealedEndpoint:
    """
    Answers with the sealed parameters of resources, by the hashes of these.

    Args:
        max_body: Bytes of a question.
    """

    def __init__(self, parameters: SealedParameters, max_body: int) -> None:
        self._parameters = parameters
        self._max_body = max_body

    async def respond(self, request: HttpRequest) -> Response:
        """Return the response to a list of hashes."""
        if request.method != "POST":
            raise MethodNotAllowed("Sealed parameters are asked for via POST")
        try:
            hashes = load_json(await read_body(request, self._max_body))
        except ValueError as err:
            raise BadRequest(f"The hashes cannot be read: {err}") from err
        if not isinstance(hashes, list):
            raise BadRequest("The hashes must be a list")
        return json_response({"sealed": await self._parameters.find([str(each) for each in hashes])})
