"""The endpoints of administrators, /pdb/admin/v1: clean up, delete nodes, archives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from aiohttp import BodyPartReader

from httpd.connections.connection import HttpRequest
from httpd.messages.bodies import packed_chunks, read_body, too_large
from httpd.messages.responses import Response
from shared.errors import BadRequest, MethodNotAllowed

from ..jsontext import Json, load_json
from ..retention.retention import STEPS, CleaningInProgress, Step
from .administration import StoreAdministration
from .answers import compact_response, error_response, json_response
from .negotiation import require_body_of, require_json_accepted

_CHUNK = 64 * 1024
_SHOWN = 1000  # bytes of a command in an error


class AdminEndpoint:
    """
    The endpoints for administrators.

    Args:
        max_body: Bytes of a command.
        max_archive: Bytes of an archive, compressed.
    """

    def __init__(self, administration: StoreAdministration, max_body: int, max_archive: int) -> None:
        self._administration = administration
        self._max_body = max_body
        self._max_archive = max_archive

    async def respond(self, request: HttpRequest, segments: Sequence[str]) -> Response | None:
        """Return the response to a request below /pdb/admin; None when there is no such endpoint."""
        match list(segments):
            case ["v1", "cmd"] if request.method == "POST":
                require_json_accepted(request)
                require_body_of(request, "application/json")
                return await self._command(request)
            case ["v1", "archive"] if request.method == "POST":
                await self._administration.load(self._uploaded(request))
                return json_response({"ok": True})
            case ["v1", "archive"]:
                _require(request, "GET")
                return self._download()
            case ["v1", "summary-stats"]:
                _require(request, "GET")
                return compact_response(await self._administration.summary())
        return None

    async def _command(self, request: HttpRequest) -> Response:
        body = await read_body(request, self._max_body)
        match _command_of(body):
            case {"command": "clean", "version": 1, "payload": list(payload)}:
                return await self._clean(body, payload)
            case {"command": "delete", "version": 1, "payload": {"certname": str(certname)}} if certname:
                await self._administration.delete(certname)
                return json_response({"deleted": certname})
            case {"command": "clean" | "delete"}:
                return _invalid(body)
        return _invalid(body, "Valid commands types are: 'clean' and 'delete'")

    async def _clean(self, body: bytes, payload: list[Json]) -> Response:
        steps: list[Step] = []
        batch: int | None = None
        for item in payload:
            match item:
                case ["purge_nodes", {"batch_limit": int(limit), **rest}] if not rest and limit is not True and limit > 0:
                    steps.append("purge_nodes")
                    batch = limit
                case str() if (step := next((step for step in STEPS if step == item), None)) is not None:
                    steps.append(step)
                case _:
                    return _invalid(body)
        try:
            await self._administration.clean(steps or STEPS, batch)
        except CleaningInProgress:
            return json_response({"kind": "conflict", "msg": "Another cleanup is already in progress", "details": None}, 409)
        return json_response({"ok": True})

    def _download(self) -> Response:
        name = f"puppetdb-export-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.tgz"
        headers = {"Content-Disposition": f"attachment; filename={name}"}
        return Response(200, b"", "application/octet-stream", headers, chunks=self._administration.export)

    async def _uploaded(self, request: HttpRequest) -> AsyncIterator[bytes]:
        """Yield the bytes of an archive: of the field `archive` of a form, or of a body that is one."""
        if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "multipart/form-data":
            async for chunk in packed_chunks(request, self._max_archive):
                yield chunk
            return
        try:
            async for chunk in self._field(request):
                yield chunk
        except ValueError as err:  # of aiohttp's reader
            raise BadRequest(f"The form cannot be read: {err}") from err

    async def _field(self, request: HttpRequest) -> AsyncIterator[bytes]:
        """Yield the bytes of the field `archive`."""
        size, patience = 0, request.connection.limits.body_timeout
        reader = await request.multipart()
        while (part := await asyncio.wait_for(reader.next(), patience)) is not None:
            if not isinstance(part, BodyPartReader) or part.name != "archive":
                continue
            while chunk := await asyncio.wait_for(part.read_chunk(_CHUNK), patience):
                size += len(chunk)
                if size > self._max_archive:
                    raise too_large(self._max_archive)
                yield chunk
            return
        raise BadRequest("The form has no field 'archive'")


def _require(request: HttpRequest, method: str) -> None:
    if request.method != method:
        raise MethodNotAllowed(f"Only {method} is allowed here")


def _command_of(body: bytes) -> Json:
    try:
        return load_json(body)
    except ValueError:
        return None


def _invalid(body: bytes, reason: str = "nil") -> Response:
    """Return the refusal of a command, in the words of the reference, which names no reason for a payload that is wrong."""
    shown = body[:_SHOWN].decode("utf-8", "replace").replace("\\", "\\\\").replace('"', '\\"')
    return error_response(400, f'Invalid command "{shown}": {reason}')
