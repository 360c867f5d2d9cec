"""The parser of submissions to `/pdb/cmd/v1`, which refuses malformed ones with PuppetDB's messages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from shared.errors import UnsupportedMediaType

from ..jsontext import Json, dump_json, load_json
from ..timestamps import parse_timestamp
from .commands import PayloadRejected
from .payloads import VERSIONS, Coding, decode_payload

PARAMETERS = frozenset({"certname", "checksum", "command", "producer-timestamp", "secondsToWaitForCompletion", "version"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_OLD_FORM = "Command was submitted without query parameters (old format). "


@dataclass(frozen=True, slots=True)
class Submission:
    """
    A submitted command; its payload is not parsed yet.

    Attributes:
        command: The name of the command, its words separated by spaces.
        certname: The certname of the request; the payload may name another, which wins.
        producer_timestamp: The time of the request's parameter in microseconds.
        seconds_to_wait: How long the client wants to wait until the command is carried out; None where it does not.
        payload: The payload's bytes, as `coding` says.
    """

    command: str
    version: int
    certname: str
    producer_timestamp: int | None
    seconds_to_wait: float | None
    payload: bytes
    coding: Coding


class SubmissionRefused(Exception):
    """What was submitted is no command; the answer is JSON with the message as `error`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def read_submission(parameters: Mapping[str, str], headers: Mapping[str, str], body: bytes, *, limit: int) -> Submission:
    """
    Return a request's submission: from parameters and a payload, or, in the old form, from a body alone.

    Of the old form, which has no parameter `command`, the whole body is decoded and parsed, so that a large one belongs into a thread.

    Args:
        parameters: The parameters of the request's URL.
        headers: The request's headers; looking one up ignores case.
        body: The body as it was sent.
        limit: The most bytes of a payload, decoded.
    Raises:
        SubmissionRefused: The request is no command that is accepted. UnsupportedMediaType: Its coding is not known.
    """
    coding = _coding_of(headers)
    if len(body) > limit or _announced_length(headers) > limit:
        raise SubmissionRefused(413, "Command size exceeds max-command-size")
    if "command" not in parameters:
        return _read_old_form(body, coding, limit)
    name: Json = parameters["command"].replace("_", " ")
    certname = parameters.get("certname")
    if certname is None:
        _refuse(name, None, "Command is missing required parameters: certname.")
    if unknown := sorted(parameters.keys() - PARAMETERS):
        _refuse(name, certname, f"Command has invalid parameters: {', '.join(unknown)}.")
    version_text = parameters.get("version", "")
    version = int(version_text) if _INTEGER.fullmatch(version_text) else None
    seconds_to_wait = parameters.get("secondsToWaitForCompletion")
    return Submission(
        *checked_command(name, version, certname),
        producer_timestamp=producer_timestamp_of(parameters.get("producer-timestamp")),
        seconds_to_wait=None if seconds_to_wait is None else _seconds(name, certname, seconds_to_wait),
        payload=body,
        coding=coding,
    )


def _coding_of(headers: Mapping[str, str]) -> Coding:
    match headers.get("Content-Encoding", "").strip().lower():
        case "" | "identity":
            return "identity"
        case "gzip":
            return "gzip"
        case coding:
            raise UnsupportedMediaType(f"content encoding {coding} not supported")


def _announced_length(headers: Mapping[str, str]) -> int:
    """Return the length of the payload before it was compressed, as announced by Puppet's client; 0 if it is not announced."""
    text = headers.get("X-Uncompressed-Length", "")
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text, re.ASCII) else 0


def _read_old_form(body: bytes, coding: Coding, limit: int) -> Submission:
    try:
        value = load_json(decode_payload(body, coding, limit))
    except (ValueError, PayloadRejected):
        value = None
    members = value if isinstance(value, dict) else {}
    name = members.get("command")
    if isinstance(name, str):
        name = name.replace("_", " ")
    if not {"command", "version", "payload"} <= members.keys():
        _refuse(name, None, f"{_OLD_FORM}The request body must be a JSON map with required keys: command, version, payload.")
    payload = members["payload"]
    if not isinstance(payload, dict):
        _refuse(name, None, f"{_OLD_FORM}The payload value must be a JSON map.")
    certname = payload.get("certname")
    if certname is None:
        _refuse(name, None, "Command is missing required parameters: certname.")
    return Submission(
        *checked_command(name, members["version"], certname),
        producer_timestamp=None,
        seconds_to_wait=None,
        payload=dump_json(payload),
        coding="identity",
    )


def checked_command(name: Json, version: Json, certname: Json) -> tuple[str, int, str]:
    """Return a command's name, version and certname; SubmissionRefused where there is no such command."""
    if not isinstance(certname, str) or not certname.strip():
        _refuse(name, certname, "Certname must be a non-empty string.")
    if not isinstance(name, str) or name not in VERSIONS:
        _refuse(name, certname, f"Command must be one of: {', '.join(sorted(VERSIONS))}.")
    if not isinstance(version, int) or isinstance(version, bool):
        _refuse(name, certname, "Version must be a valid integer.")
    if version < VERSIONS[name].start:
        retired = f'Version {version} of command "{name}" is retired.'
        _refuse(name, certname, f"{retired} The minimum supported version is {VERSIONS[name].start}.")
    return name, version, certname


def producer_timestamp_of(text: str | None) -> int | None:
    """Return the microseconds of a time; None for an invalid one, because the payload has the time that counts."""
    try:
        return None if text is None else parse_timestamp(text)
    except ValueError:
        return None


def _seconds(name: Json, certname: Json, text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        _refuse(name, certname, "secondsToWaitForCompletion must be a number.")
    return seconds if seconds > 0 else None


def _refuse(name: Json, certname: Json, reason: str) -> NoReturn:
    raise SubmissionRefused(400, f"Command {_quote(name)} for certname {_quote(certname)} is invalid. {reason}")


def _quote(value: Json) -> str:
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)
