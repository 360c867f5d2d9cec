"""The endpoint of commands, /pdb/cmd/v1, and of many at once, /pdb/cmd/v1/batch: they are acknowledged when they are on disk."""

from __future__ import annotations

import asyncio

from httpd.connections.connection import HttpRequest
from httpd.messages.bodies import packed_chunks
from httpd.messages.responses import Response
from shared.errors import MethodNotAllowed

from ..commands.batches import read_batch
from ..commands.submission import SubmissionRefused, read_submission
from ..queue.processor import CommandProcessor, Receipt
from .answers import error_response, json_response
from .negotiation import require_body_of, require_json_accepted, url_parameters


class CommandEndpoint:
    """
    Takes commands.

    Args:
        max_body: Bytes of a command, as it is sent and unpacked.
    """

    def __init__(self, processor: CommandProcessor, max_body: int) -> None:
        self._processor = processor
        self._max_body = max_body

    async def respond(self, request: HttpRequest) -> Response:
        """Return the response to a command; its payload is not parsed yet, unless the client waits for its end."""
        if request.method != "POST":
            raise MethodNotAllowed("Commands must be submitted via POST")
        parameters = url_parameters(request)
        body = b"".join([chunk async for chunk in packed_chunks(request, self._max_body)])
        require_body_of(request, "application/json")
        require_json_accepted(request)
        try:
            if parameters.get("command"):
                submission = read_submission(parameters, request.headers, body, limit=self._max_body)
            else:  # an old client's: its body has to be parsed
                submission = await asyncio.to_thread(read_submission, parameters, request.headers, body, limit=self._max_body)
        except SubmissionRefused as err:
            return error_response(err.status, err.message)
        return _response(await self._processor.submit(submission))

    async def respond_to_batch(self, request: HttpRequest) -> Response:
        """Return the response to many commands: their UUIDs, in their order. Where it is an error, some of them may be in the queue."""
        if request.method != "POST":
            raise MethodNotAllowed("Commands must be submitted via POST")
        require_body_of(request, "application/octet-stream")
        body = b"".join([chunk async for chunk in packed_chunks(request, self._max_body)])
        try:
            submissions = read_batch(body)
        except SubmissionRefused as err:
            return error_response(err.status, err.message)
        receipts = await asyncio.gather(*map(self._processor.submit, submissions))
        return json_response({"uuids": [receipt.uuid for receipt in receipts]})


def _response(receipt: Receipt) -> Response:
    if not receipt.has_waited:
        return json_response({"uuid": receipt.uuid})
    answer = {"uuid": receipt.uuid, "processed": receipt.is_processed, "timed_out": not receipt.is_processed}
    if receipt.error is not None:
        answer["error"] = receipt.error
    return json_response(answer, 200 if receipt.is_processed and receipt.error is None else 503)
