"""What an ordered run logs, as the agent sends it while the run lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from agent.run.orderlog import sent_while_it_lasts
from agent.servers.server import Server
from agent.state.runlog import RunLog
from shared.data import plainjson
from shared.errors import PeerError
from shared.indirector.paths import Outgoing
from shared.indirector.rest import Answer
from shared.orders import MAX_LINES, RunLines
from tests.support.waiting import turns, until


class Master:
    """It takes lines with one answer after the other; the last one stays."""

    def __init__(self, *answers: int | PeerError) -> None:
        self.answers = list(answers)
        self.sent: list[RunLines] = []

    async def send(self, outgoing: Outgoing, headers: Mapping[str, str], body: bytes) -> Answer:
        assert (outgoing.method, outgoing.target) == ("POST", "/puppet/v1/orders")
        self.sent.append(RunLines.of(plainjson.loads(body)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, PeerError):
            raise answer
        return Answer(answer, {}, b"")

    def lasting(self, log: RunLog) -> Any:
        return sent_while_it_lasts("0d1c", log, cast("Server", self), pause=0)


async def test_each_line_is_sent_once_in_its_order() -> None:
    log, master = RunLog(), Master(204)
    async with master.lasting(log):
        log.notice("first")
        await until(lambda: len(master.sent) == 1)
        for number in range(MAX_LINES + 1):
            log.notice(str(number))
        await until(lambda: len(master.sent) == 3)
        await turns(3)
    assert [(lines.first, len(lines.lines)) for lines in master.sent] == [(0, 1), (1, MAX_LINES), (1 + MAX_LINES, 1)]
    assert master.sent[0].lines == (("notice", "Puppet", "first"),)


@pytest.mark.parametrize("answer", [410, 404, PeerError("away")])
async def test_a_master_that_wants_no_more_or_cannot_be_asked_gets_no_more(answer: int | PeerError) -> None:
    log, master = RunLog(), Master(204, answer)
    async with master.lasting(log):
        for expected in (1, 2):
            log.notice("a line")
            await until(lambda expected=expected: len(master.sent) == expected)  # type: ignore[misc]
        log.notice("a line")
        await turns(5)
    assert len(master.sent) == 2
