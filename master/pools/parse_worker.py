"""
The process that parses peers' messages: `python -I -m master.pools.parse_worker`, started by the pool in `parse_pool`.

It reads one message after another from its standard input and answers on its standard output. A message that takes too long ends
it: the kernel counts its processor time, also where nothing else could interrupt it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, BadRequest, PuppetError
from shared.indirector.termini import FILE_READERS
from shared.process.memory import address_space, lift_memory_limit, reserve_memory, resident_memory
from shared.process.processes import end_with_parent
from shared.wire.dialects import LEGACY, MODERN, Dialect
from shared.wire.percent import decode_percent

from . import frames

LARGEST = 256 * 2**20  # bytes of memory after which this process ends; another takes its place
MAX_WANTED = 64 * 1024  # bytes of a request for a catalog without its facts
FREE_MEMORY = 64 * 2**20  # bytes of memory that any message of a peer may take
MEMORY_A_BYTE = 20  # and bytes for each of its own
FREE_TIME = 2.0  # seconds of processor time that any message of a peer may take
TIME_A_MIB = 0.5  # and for each of its MiB, more than twice what large reports take
NO_MEMORY = 3  # the exit code when no memory is left, not even for an error
TOO_MUCH = f"The message needs more memory than parse_memory allows, or than {FREE_MEMORY // 2**20} MiB and {MEMORY_A_BYTE} times its size"
_DIALECTS: Mapping[str, Dialect] = {LEGACY.name: LEGACY, MODERN.name: MODERN}


def seconds_for(question: Mapping[str, Any], size: int, most: float) -> float:
    """Return the processor time that a message of this size may take: for a peer's message only as much as its size explains."""
    return min(most, FREE_TIME + TIME_A_MIB * size / 2**20) if _is_of_peer(question) else most


def _is_of_peer(question: Mapping[str, Any]) -> bool:
    """Whether a question is about what a peer sent, and not about what is stored here."""
    return "stored" not in question


def answer(question: Mapping[str, Any], body: bytes) -> Any:
    """
    Return the plain data in a body.

    The question `stored` is about a file of ours, all others about peers' messages.

    Raises:
        PuppetError: The body does not have the form that the question names.
    """
    if "stored" in question:
        return FILE_READERS[question["stored"]](question["name"], body)
    if "catalog_request" in question:
        return _parse_catalog_request(body)
    dialect = _DIALECTS[question["dialect"]]
    if question["escaped"]:
        body = decode_percent(body)
        if body.strip() == b"null":
            return None
    return dialect.load_data(body, dialect.formats[question["format"]])


def _parse_catalog_request(body: bytes) -> dict[str, Any]:
    from .catalog_schema import parse_catalog_body  # imported here, since most sites never need it

    data = parse_catalog_body(body)
    if len(plainjson.dumps({name: value for name, value in data.items() if name != "facts"})) > MAX_WANTED:
        raise BadRequest(f"More than {MAX_WANTED} bytes besides the facts")
    return data


def _answer_frame(question: Mapping[str, Any], body: bytes) -> bytes:
    """Return the frame that answers a question."""
    try:
        return _result_frame(question, body)
    except MemoryError:  # of the question, or of the report that it failed otherwise
        lift_memory_limit()  # reporting the error takes some more; then this process ends
        return frames.pack(frames.plain_error(BadData(TOO_MUCH)) | {"last": True})


def _result_frame(question: Mapping[str, Any], body: bytes) -> bytes:
    """Do the same as `_answer_frame`; raise MemoryError."""
    try:
        result = plainjson.dumps_pson(answer(question, body))
    except PuppetError as err:
        return frames.pack(frames.plain_error(err))
    except RecursionError:
        return frames.pack(frames.plain_error(BadData("The message is nested too deeply")))
    return frames.pack({"last": resident_memory() > LARGEST}, result)


def main() -> int:
    """Run as a parser of the process that started this one, and end with it. Arguments: seconds of processor time, bytes of memory."""
    end_with_parent(signal.SIGKILL)
    # Ctrl-C at a terminal reaches the whole group, but the master decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # this signal ends the process in any computation
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    reserve_memory()
    # In addition to what the imports have taken, so that the setting means the message's own needs.
    most = address_space() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    pipe = os.dup(1)
    os.dup2(2, 1)  # printed output must not get into the answers
    import setproctitle

    setproctitle.setproctitle("puppet master: parsing")
    with os.fdopen(pipe, "wb") as out, suppress(MemoryError):
        out.write(frames.pack({"ready": os.getpid()}))
        out.flush()
        while (frame := frames.read_with_body(sys.stdin.buffer)) is not None:
            question, body = frame
            if _is_of_peer(question):
                resource.setrlimit(resource.RLIMIT_AS, (min(most, address_space() + FREE_MEMORY + MEMORY_A_BYTE * len(body)), hard))
            # Processor time and not wall time: a busy machine must not refuse good messages.
            signal.setitimer(signal.ITIMER_PROF, seconds_for(question, len(body), seconds))
            reply = _answer_frame(question, body)
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
            out.write(reply)
            out.flush()
        return 0
    return NO_MEMORY


if __name__ == "__main__":
    sys.exit(main())
