"""The site's programs that know versions of code: bounded, checked, never a shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from environments.code_commands import CodeCommands, check_code_id, check_path
from master.termini.files import VersionedContent
from shared.errors import BadRequest, ConfigError, Denied, NotFound, PuppetError
from shared.indirector import Binding
from shared.models.static_file_content import STATIC_FILE_CONTENT

PATH = "modules/m/files/f"
Made = Callable[..., CodeCommands]


@pytest.fixture
def commands(tmp_path: Path) -> Made:
    """Programs with the given shell text; both see `"$@"`."""

    def make(text: str, **options: float) -> CodeCommands:
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        return replace(CodeCommands((str(program),), (str(program), "first"), timeout=10, most=10_000_000), **options)  # type: ignore[arg-type]

    return make


async def whole(commands: CodeCommands, path: str = PATH, code_id: str = "v1") -> bytes:
    return b"".join([piece async for piece in commands.file("production", code_id, path)])


async def test_a_code_id_is_what_the_program_prints(commands: Made) -> None:
    assert await commands('echo "abc-$1"').code_id("production") == "abc-production"
    assert await commands("true").code_id("production") is None


@pytest.mark.parametrize("text", ["echo 'a b'", "echo ../x", "printf 'a\\nb'", "exit 1", "printf '%0300d' 1", "echo ü"])
async def test_FS_08_a_code_id_that_is_none_and_a_program_that_fails_are_errors(commands: Made, text: str) -> None:
    with pytest.raises(PuppetError, match="find the code id of environment production"):
        await commands(text).code_id("production")


async def test_a_slow_program_is_given_up(commands: Made) -> None:
    for asked in (commands("sleep 30", timeout=0.1).code_id("production"), whole(commands("sleep 30", timeout=0.1))):
        async with asyncio.timeout(20):
            with pytest.raises(PuppetError, match="seconds"):
                await asked


async def test_a_file_is_what_the_program_prints_for_environment_version_and_path(commands: Made) -> None:
    assert await whole(commands('printf "%s|" "$@"')) == f"first|production|v1|{PATH}|".encode()
    assert await whole(commands("true")) == b""


async def test_a_long_file_comes_in_pieces(commands: Made) -> None:
    pieces = [piece async for piece in commands("head -c 3000000 /dev/zero").file("production", "v1", PATH)]
    assert sum(map(len, pieces)) == 3_000_000
    assert len(pieces) > 10


@pytest.mark.parametrize("before", ["", "printf part;", "head -c 300000 /dev/zero;"])
async def test_a_file_whose_program_fails_does_not_end_as_if_it_were_whole(commands: Made, before: str) -> None:
    found: list[bytes] = []
    with pytest.raises(PuppetError, match="ended with 3: no such thing"):
        async for piece in commands(f"{before} echo no such thing >&2; exit 3").file("production", "v1", PATH):
            found.append(piece)
    assert len(b"".join(found)) < 300_000
    assert found == [] or len(before) > 15


async def test_a_file_without_end_is_cut(commands: Made) -> None:
    with pytest.raises(PuppetError, match="printed more than 100000 bytes"):
        await whole(commands("cat /dev/zero", most=100_000))


async def test_a_program_whose_reader_leaves_is_ended(commands: Made, tmp_path: Path) -> None:
    made = commands(f"echo $$ > {tmp_path}/pid; while :; do echo xxxxxxxxxxxxxxxx; done")
    pieces = made.file("production", "v1", PATH)
    assert await anext(pieces)
    await pieces.aclose()
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


@pytest.mark.parametrize("text", ["../x", "HEAD;id x", "$(id)", "a b", "", "x" * 300, "a\n", "`id`", "a/b"])
def test_FS_08_code_ids_are_letters_digits_and_four_signs(text: str) -> None:
    with pytest.raises(BadRequest):
        check_code_id(text)


@pytest.mark.parametrize(
    "path", [PATH, "site/p/files/a b", "modules/m/lib/x/y.rb", "modules/m/tasks/t.sh", "modules/m/scripts/s", "a/b/files/..x"]
)
def test_FS_08_files_of_modules_are_served_by_version(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "modules/m/manifests/init.pp",
        "modules/m/templates/x",
        "hieradata/secret.yaml",
        "manifests/site.pp",
        "modules/m/files",
        "modules/m/files/",
        "modules/m/files/../../../x",
        "modules/m/../files/files/x",
        "/modules/m/files/x",
        "modules//m/files/x",
        "-x/m/files/x",
        "modules/m/files/a\0b",
        "modules/m/files/" + "x" * 5000,
    ],
)
def test_FS_08_other_files_are_not(path: str) -> None:
    with pytest.raises(Denied):
        check_path(path)


async def test_FS_08_nothing_is_run_for_a_bad_id_or_path(commands: Made, tmp_path: Path) -> None:
    made = Binding(
        STATIC_FILE_CONTENT, VersionedContent(commands(f"touch {tmp_path}/ran"), lambda name: f"{tmp_path}/{name}", lambda *_: False)
    )
    for path, options, error in (
        (PATH, {}, BadRequest),
        (PATH, {"code_id": ""}, BadRequest),
        (PATH, {"code_id": "$(id)"}, BadRequest),
        ("manifests/site.pp", {"code_id": "v1"}, Denied),
    ):
        with pytest.raises(error):
            await made.find(path, options=options)
    assert not (tmp_path / "ran").exists()


async def test_without_programs_there_are_no_versions() -> None:
    with pytest.raises(NotFound, match="does not have the version v1 of the environment"):
        await Binding(STATIC_FILE_CONTENT, VersionedContent(None, lambda name: f"/nowhere/{name}", lambda *_: False)).find(
            PATH, code_id="v1"
        )


def test_the_settings_go_together() -> None:
    def of(code_id: str, content: str) -> CodeCommands | None:
        return CodeCommands.of(code_id, content, timeout=1, most=1)

    assert of("", "") is None
    both = of("/bin/id 'a b'", "/bin/content")
    assert both is not None
    assert both.id == ("/bin/id", "a b")
    for pair in (("/bin/id", ""), ("", "/bin/content"), ("id", "content"), ("/bin/id 'x", "/bin/content")):
        with pytest.raises(ConfigError, match=r"code_(id|content)_command"):
            of(*pair)
