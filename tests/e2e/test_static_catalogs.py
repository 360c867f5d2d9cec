"""Static catalogs of our master, applied by our agent: no question about metadata, bytes of the version that was compiled."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.pair import NAME, Pair, client_of

pytestmark = pytest.mark.slow

CODE_ID = '#!/bin/sh\ncat "ROOT/at"\n'
CONTENT = '#!/bin/sh\nexec cat "ROOT/versions/$2/$3"\n'


def program(path: Path, text: str) -> str:
    path.write_text(text.replace("ROOT", str(path.parent)))
    path.chmod(0o755)
    return str(path)


def release(pair: Pair, version: str) -> None:
    """Keep the code as it is under a version, and say that it is at this one."""
    folder = pair.root / "master" / "code" / "environments" / "production"
    for path in folder.rglob("*"):
        if path.is_file():
            copy = pair.root / "versions" / version / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (pair.root / "at").write_text(version)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    pair = Pair(tmp_path)
    release(pair, "v1")
    commands = {
        "code_id_command": program(tmp_path / "id", CODE_ID),
        "code_content_command": program(tmp_path / "content", CONTENT),
    }
    async with pair.mastered(**commands):
        yield pair


def of_files(asked: list[str]) -> list[str]:
    return [line for line in asked if "file_" in line and "/plugin" not in line]


async def test_a_static_catalog_is_applied_without_a_question_about_metadata(pair: Pair) -> None:
    first = await pair.run()
    assert first.code == 2
    assert of_files(first.asked) == [
        "GET /puppet/v3/static_file_content/modules/stage/files/plain.txt 200",
        "GET /puppet/v3/static_file_content/modules/stage/files/tree/one 200",
        "GET /puppet/v3/static_file_content/modules/stage/files/tree/sub/two 200",
    ]
    assert "code_id=v1" in first.find("static_file_content").target
    assert pair.contents() == {
        "facts": f"python outside {NAME}\n",
        "plain": "plain\n",
        "refreshed": "",
        "tree/one": "1\n",
        "tree/sub/two": "2\n",
    }
    assert first.report is not None
    assert first.report.code_id == "v1"
    second = await pair.run()
    assert (second.code, of_files(second.asked)) == (0, [])


async def test_the_bytes_are_those_of_the_version_the_catalog_was_compiled_from(pair: Pair) -> None:
    assert (await pair.run()).code == 2
    pair.write("code/environments/production/modules/stage/files/plain.txt", "changed since\n")
    (pair.stage / "plain").unlink()
    assert (await pair.run(use_cached_catalog=True)).code == 2
    assert pair.contents()["plain"] == "plain\n"
    release(pair, "v2")
    assert (await pair.run()).code == 2
    assert pair.contents()["plain"] == "changed since\n"


async def test_an_environment_may_do_without(pair: Pair) -> None:
    pair.write("code/environments/production/environment.conf", "static_catalogs = false\n")
    ran = await pair.run()
    assert ran.code == 2
    assert "GET /puppet/v3/file_content/modules/stage/plain.txt 200" in ran.asked
    cached = json.loads((pair.root / "agent" / "var" / "client_data" / "catalog" / f"{NAME}.json").read_bytes())
    assert cached["code_id"] == "v1"


async def test_agents_of_3_x_get_catalogs_as_ever(pair: Pair) -> None:
    ran = await pair.run(scheme="a")
    assert ran.code == 2
    assert "GET /production/file_metadata/modules/stage/plain.txt 200" in ran.asked


async def test_a_source_that_is_not_there_fails_the_catalog_at_its_place(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.write("code/environments/production/manifests/site.pp", "\nfile { '/tmp/x': source => 'puppet:///modules/stage/none' }\n")
    ran = await pair.run()
    assert ran.code == 1
    assert "Could not get metadata for puppet:///modules/stage/none" in caplog.text
    assert "site.pp, line: 2" in caplog.text


async def test_a_version_that_is_no_longer_there_fails_the_file_and_not_the_run(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    (pair.root / "at").write_text("gone")
    ran = await pair.run()
    assert ran.code == 6
    assert "plain" not in pair.contents()
    assert pair.contents()["facts"]
    assert "static_file_content" in "".join(ran.asked)


async def test_FS_08_by_version_only_files_of_modules_are_served_and_no_shell_is_asked(pair: Pair) -> None:
    await pair.run()
    base = "/puppet/v3/static_file_content"
    query = "?environment=production&code_id="
    answers = {
        f"{base}/modules/stage/files/plain.txt{query}v1": 200,
        f"{base}/modules/stage/files/plain.txt?environment=production": 400,
        f"{base}/modules/stage/files/plain.txt?code_id=v1": 400,
        f"{base}/modules/stage/files/plain.txt{query}": 400,
        f"{base}/{query}v1": 400,
        f"{base}/modules/stage/files/plain.txt{query}..%2fx": 400,
        f"{base}/modules/stage/files/plain.txt{query}HEAD%3bid%20x": 400,
        f"{base}/modules/stage/files/plain.txt{query}%24(touch%20{pair.root}%2fran)": 400,
        f"{base}/modules/stage/files/plain.txt?environment=nope&code_id=v1": 404,
        f"{base}/modules/stage/manifests/init.pp{query}v1": 403,
        f"{base}/manifests/site.pp{query}v1": 403,
        f"{base}/modules/stage/files/..%2f..%2f..%2fmanifests/site.pp{query}v1": 403,
        f"{base}/%2fetc/x/files/passwd{query}v1": 403,
        f"{base}/modules/stage/files/plain.txt{query}v9": 500,
    }
    client = await client_of(pair)
    try:
        found = {target: (await client.ask("GET", target)).status for target in answers}
        body = (await client.ask("GET", next(iter(answers)))).body
        refused = [(await client.ask(method, next(iter(answers)))).status for method in ("PUT", "DELETE")]
    finally:
        await client.close()
    assert found == answers
    assert body == b"plain\n"
    assert not (pair.root / "ran").exists()
    assert all(status in (403, 405) for status in refused)
