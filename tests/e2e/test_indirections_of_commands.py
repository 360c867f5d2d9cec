"""Commands that ask a running master through the `rest` terminus of their indirection, as Puppet's indirection faces do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bunraku.puppet import main
from tests.support.pair import NAME, Pair

pytestmark = pytest.mark.slow


async def test_faces_ask_the_master(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    pair = Pair(tmp_path, manifest="")
    pair.write("auth.conf", "path /resource_type\nmethod find, search\nallow *\n")
    async with pair.mastered():
        assert (await pair.run()).code == 0
        agent = tmp_path / "agent"
        options = {"confdir": agent, "vardir": agent / "var", "server": "localhost", "masterport": pair.port, "certname": NAME}
        words = [f"--{name}={value}" for name, value in options.items()]

        async def printed(command: str, *more: str) -> str:
            assert await asyncio.to_thread(main, [command, *words, *more]) == 0, capfdbinary.readouterr().err
            return capfdbinary.readouterr().out.decode()

        assert json.loads(await printed("status", "find", "localhost"))["is_alive"] is True
        assert json.loads(await printed("node", "find", NAME, "--terminus", "rest", "--json"))["name"] == NAME
        catalog = await printed("catalog", "find", NAME, "--terminus", "rest")
        assert json.loads(catalog[catalog.index("{\n") :])["name"] == NAME  # the master, in this process, has logged its compilation before
        assert [each["name"] for each in json.loads(await printed("resource_type", "search", "stage"))] == ["stage"]
        assert (await printed("certificate_revocation_list", "find", "ca")).startswith("-----BEGIN X509 CRL-----\n")
        report = tmp_path / "agent" / "var" / "state" / "last_run_report.yaml"
        for path in pair.reports():
            path.unlink()
        assert await printed("report", "save", str(report), "--terminus", "rest") == ""
        assert len(pair.reports()) == 1
        assert await asyncio.to_thread(main, ["node", *words, "find", "other.test", "--terminus", "rest"]) == 1
        assert b"Error 403 on SERVER: Forbidden request" in capfdbinary.readouterr().err
