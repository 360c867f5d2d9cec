from __future__ import annotations

from pathlib import Path

import pytest

from master.termini.trusted_external import TrustedExternal
from shared.errors import ConfigError, PuppetError
from shared.settings import Conf, MasterSettings, load

SAYS = '#!/bin/sh\necho "{\\"name\\": \\"$1\\", \\"list\\": [1, null]}"\n'


def program(path: Path, text: str = SAYS, mode: int = 0o755) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


async def test_a_program_is_told_the_name_and_prints_a_map(tmp_path: Path) -> None:
    external = TrustedExternal(program(tmp_path / "one"))
    assert await external.about("web1.example.com") == {"name": "web1.example.com", "list": [1, None]}


async def test_of_a_folder_each_program_has_its_part(tmp_path: Path) -> None:
    program(tmp_path / "d/one.rb")
    program(tmp_path / "d/two")
    program(tmp_path / "d/README", "no program", 0o644)
    said = {"name": "n", "list": [1, None]}
    assert await TrustedExternal(tmp_path / "d").about("n") == {"one": said, "two": said}


async def test_without_the_setting_nothing_is_said() -> None:
    assert await TrustedExternal.of(load(MasterSettings, section="master", conf=Conf())).about("n") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#!/bin/sh\necho oops >&2; exit 3\n", "returned 3: oops"),
        ("#!/bin/sh\necho no\n", "printed no JSON"),
        ("#!/bin/sh\necho '[1]'\n", "printed no JSON object"),
        ("#!/bin/sh\nhead -c 5000 /dev/zero\n", "more than 4096 bytes"),
        ("#!/bin/sh\nsleep 60\n", "did not end within"),
    ],
)
@pytest.mark.slow
async def test_a_program_that_fails_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    external = TrustedExternal(program(tmp_path / "one", text), timeout=0.5, most=4096)
    with pytest.raises(PuppetError, match="Failed to find external trusted facts of n: .*" + message):
        await external.about("n")


async def test_two_programs_cannot_have_one_name(tmp_path: Path) -> None:
    program(tmp_path / "d/one.rb")
    program(tmp_path / "d/one.sh")
    with pytest.raises(PuppetError, match="There is more than one 'one' script"):
        await TrustedExternal(tmp_path / "d").about("n")


async def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PuppetError, match="Could not read"):
        await TrustedExternal(tmp_path / "nosuch").about("n")


def test_the_setting_is_an_absolute_path() -> None:
    with pytest.raises(ConfigError, match="must be the absolute path"):
        TrustedExternal.of(load(MasterSettings, section="master", flags={"trusted_external_command": "bin/x"}, conf=Conf()))
