"""What is submitted to the command endpoint is taken or refused as PuppetDB does it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from multidict import CIMultiDict

from store.commands.payloads import decode_payload
from store.commands.submission import Submission, SubmissionRefused, read_submission

CASES = json.loads((Path(__file__).parents[2] / "conformance/puppetdb/commands.json").read_text("utf-8"))
TO_COMMANDS = [
    case
    for case in CASES
    if case["request"]["path"] == "/pdb/cmd/v1" and case["answer"]["status"] not in (406, 415, 500) and case["request"]["method"] == "POST"
]
PARAMETERS = {"command": "replace_facts", "version": "5", "certname": "web1"}


def submit(parameters=PARAMETERS, body: bytes = b"{}", limit: int = 1000, **headers: str) -> Submission:
    named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return read_submission(parameters, named, body, limit=limit)


@pytest.mark.parametrize("case", TO_COMMANDS, ids=lambda case: case["id"])
def test_a_submission_is_taken_or_refused_as_recorded(case) -> None:
    request, answer = case["request"], case["answer"]
    body = request.get("raw_body", "").encode()
    try:
        submission = read_submission(request.get("params", {}), CIMultiDict(request.get("headers", {})), body, limit=10_000)
    except SubmissionRefused as refusal:
        expected = answer["body"]["error"] if answer["status"] == 400 else answer["body"]
        assert (refusal.status, refusal.message) == (answer["status"], expected)
        return
    assert "uuid" in answer["body"]
    assert (submission.seconds_to_wait is not None) == ("processed" in answer["body"])
    if "command" in request.get("params", {}):
        assert submission.payload == body


def test_the_old_form_submits_the_payload_within_the_body() -> None:
    body = b'{"command":"replace facts","version":5,"payload":{"certname":"web1","values":{"big":12345678901234567890123}}}'
    submission = submit({}, body, limit=10_000)
    assert (submission.command, submission.version, submission.certname) == ("replace facts", 5, "web1")
    assert json.loads(submission.payload) == {"certname": "web1", "values": {"big": 12345678901234567890123}}


def test_a_compressed_payload_stays_compressed() -> None:
    body = gzip.compress(b'{"certname":"web1"}')
    submission = submit(body=body, Content_Encoding="gzip")
    assert (submission.payload, submission.coding) == (body, "gzip")
    assert decode_payload(submission.payload, submission.coding, 100) == b'{"certname":"web1"}'


def test_the_time_and_the_patience_of_the_client_are_read() -> None:
    submission = submit({**PARAMETERS, "producer-timestamp": "2025-10-01T00:00:00.000Z", "secondsToWaitForCompletion": "1.5"})
    assert (submission.producer_timestamp, submission.seconds_to_wait) == (1759276800000000, 1.5)
    assert submit({**PARAMETERS, "producer-timestamp": "today"}).producer_timestamp is None


REFUSALS = [
    ({"body": b"x" * 1001}, 413, "Command size exceeds max-command-size"),
    ({"X_Uncompressed_Length": "1001"}, 413, "Command size exceeds max-command-size"),
    ({"parameters": {**PARAMETERS, "secondsToWaitForCompletion": "x"}}, 400, "secondsToWaitForCompletion must be a number."),
    ({"parameters": {**PARAMETERS, "secondsToWaitForCompletion": "inf"}}, 400, "secondsToWaitForCompletion must be a number."),
    (
        {"parameters": {}, "body": b"[]"},
        400,
        "Command nil for certname nil is invalid. Command was submitted without query parameters (old format).",
    ),
    ({"parameters": {}, "body": b"\xff", "Content_Encoding": "gzip"}, 400, "must be a JSON map with required keys"),
    ({"parameters": {**PARAMETERS, "version": "9" * 5000}}, 400, "Version must be a valid integer."),
]


@pytest.mark.parametrize("request_parts, status, text", REFUSALS)
def test_other_submissions_are_refused(request_parts, status: int, text: str) -> None:
    with pytest.raises(SubmissionRefused) as refusal:
        submit(**request_parts)
    assert refusal.value.status == status
    assert text in refusal.value.message
