"""The audit of refused requests: whoever is refused is written down, and nobody waits for it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from ca.audit import Trail
from master.service.refusals import Refusals, queued_refusals
from shared.process.log import ORIGIN, RequestOrigin


def test_an_entry_is_in_the_trail_with_the_request_that_it_belongs_to(tmp_path: Path) -> None:
    with queued_refusals(Trail(tmp_path / "audit.json").write, capacity=10) as refusals:
        token = ORIGIN.set(RequestOrigin("0000000000a1", "192.0.2.7"))
        refusals.record({"action": "request", "name": "web1", "result": "refused"})
        ORIGIN.reset(token)
    (entry,) = (json.loads(line) for line in (tmp_path / "audit.json").read_text().splitlines())
    assert (entry["name"], entry["from"], entry["request"]) == ("web1", "192.0.2.7", "0000000000a1")


def test_R_46_a_trail_that_stands_still_holds_nobody_and_what_it_lacks_is_counted() -> None:
    release, written = threading.Event(), []

    def stalled(entry: dict[str, object]) -> None:
        assert release.wait(60)
        written.append(entry["name"])

    refusals = Refusals(stalled, capacity=5)
    for number in range(20):
        refusals.record({"name": f"web{number}"})  # would never return if it waited
    dropped = refusals.queue.dropped
    release.set()
    assert refusals.queue.finish(60)
    assert len(written) + dropped == 20 and 14 <= dropped <= 15 and written[0] == "web0"
