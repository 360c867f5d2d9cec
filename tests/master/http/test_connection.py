"""A connection's own part in answering."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from aiohttp.client_exceptions import ClientConnectionResetError

from master.http.connection import ConnectionServer
from master.http.limits import Limits


class Closing(asyncio.Transport):
    """A transport whose goodbye is under way, or not."""

    def __init__(self, closing: bool) -> None:
        super().__init__()
        self.closing = closing

    def is_closing(self) -> bool:
        return self.closing


class Asked:
    """As much of a request as an error needs."""

    class writer:
        output_size = 1


@pytest.mark.parametrize("closing", [True, False])
async def test_a_peer_that_went_before_its_answer_is_no_error_of_the_master(closing: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Any) -> Any:
        raise AssertionError

    connection = ConnectionServer(handler, Limits())()
    connection.transport = Closing(closing)
    caplog.set_level(logging.ERROR)
    with pytest.raises(ConnectionError):
        connection.handle_error(Asked(), exc=ClientConnectionResetError("Cannot write to closing transport"))  # type: ignore[arg-type]
    assert ("Error while answering" in caplog.text) is not closing
