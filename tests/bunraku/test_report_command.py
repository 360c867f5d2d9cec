"""`puppet report submit`: to which server a report goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.testing import Reply
from bunraku.report import submit
from shared.errors import PeerError
from shared.models.report import Report
from tests.scripted_master import NAME, Scripted

REPORT = Report.from_data({"host": NAME, "time": "2026-11-20T12:00:00.0+00:00", "status": "unchanged", "environment": "production"})


@pytest.mark.parametrize(
    "settings",
    [
        {"server": "localhost", "masterport": "<port>"},
        {"server_list": "localhost:1,localhost:<port>"},
        {"server_list": "localhost:1", "report_server": "localhost", "report_port": "<port>"},
    ],
    ids=["the master", "one of a list", "a server of its own, whatever becomes of the list"],
)
async def test_a_report_goes_to(tmp_path: Path, settings: dict[str, Any]) -> None:
    site = Scripted(tmp_path, {"/status/": Reply(body=b"running")})
    async with site.master.running():
        given = {name: value.replace("<port>", str(site.master.port)) for name, value in settings.items()}
        await submit(REPORT, site.settings(**{"server": "unused.test", "masterport": "1", **given}))
    assert site.asked()[-1] == f"PUT /puppet/v3/report/{NAME}"


async def test_no_server_of_the_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="Could not select a functional puppet server from server_list: 'localhost:1'"):
        await submit(REPORT, Scripted(tmp_path).settings(masterport="1", server_list="localhost:1"))
