"""External, environment and custom facts, and how all are put together."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from agent.facts import Host, Known, fact
from agent.facts.custom import custom_facts, invalid, load_all
from agent.facts.external import ExternalFactLimits, external_facts, parse_output, parse_text
from agent.facts.facter import FactSources, gather
from tests.support.waiting import advance, turns, until

ENVIRON = {"PATH": "/usr/bin:/bin"}


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(mode)
    return path


def test_text_lines_are_split_at_the_first_equals_sign_and_not_trimmed() -> None:
    assert parse_text("a=1\nb = two words \n# c\nd=e=f\n=x\n") == {"a": "1", "b ": " two words ", "d": "e=f"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"a": 1}', {"a": 1}), ("a: [1]\n", {"a": [1]}), ("a=1\nb=2", {"a": "1", "b": "2"}), ("", {}), ("just words", {})],
)
def test_a_programs_output_is_a_map_or_lines(text: str, expected: dict[str, Any]) -> None:
    assert parse_output(text) == expected


async def test_the_file_that_is_last_in_the_alphabet_wins(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("who=text\nonly_text=1\n")
    (tmp_path / "y.yaml").write_text("who: yaml\n")
    (tmp_path / "a.json").write_text('{"Upper": {"x": [1]}}')
    (tmp_path / "no.yml").write_text("yml: 1\n")
    (tmp_path / ".hidden.txt").write_text("hidden=1\n")
    facts = await external_facts([tmp_path], environ=ENVIRON)
    assert facts == {"who": "yaml", "only_text": "1", "upper": {"x": [1]}}


async def test_nothing_inside_a_structure_is_an_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"tree": {"none": null, "list": [null, 0, false]}, "nothing": null}')
    facts = await gather(Host(environ=ENVIRON), FactSources(external=[tmp_path]), [])
    assert facts["tree"] == {"none": "", "list": ["", 0, False]}
    assert "nothing" not in facts


async def test_a_broken_file_is_one_error_and_the_others_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "bad.json").write_text('{"a": ')
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "good.txt").write_text("a=1")
    assert await external_facts([tmp_path], environ=ENVIRON) == {"a": "1"}
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "bad.json" in caplog.text
    assert "list.yaml" in caplog.text


@pytest.mark.slow
async def test_a_program_that_hangs_or_leaves_a_child_behind_is_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stuck, others = tmp_path / "stuck", tmp_path / "others"
    stuck.mkdir()
    others.mkdir()
    script(stuck / "hangs", "echo a=1; sleep 60\n")
    script(others / "leaves", "sleep 60 & echo b=2\n")
    script(others / "talks", "head -c 3000000 /dev/zero\n")
    assert await external_facts([stuck], environ=ENVIRON, limits=ExternalFactLimits(seconds=1, output=1000)) == {}
    assert "did not end within 1 seconds" in caplog.text
    assert await external_facts([others], environ=ENVIRON, limits=ExternalFactLimits(seconds=60, output=1000)) == {"b": "2"}
    assert "did not end within 60 seconds" not in caplog.text

    assert "printed more than 1000 bytes" in caplog.text


def resolver(values: dict[str, Any]) -> Any:
    def resolve(host: Host) -> dict[str, Any]:
        return values

    return resolve


DROPPED = {
    "a.yaml": ("x: .inf\ny: 1\n", "The fact 'x' of"),
    "b.yaml": ("z: {deep: [1, .nan]}\n", "The fact 'z' of"),
    "c.json": ('{"j": 1e999}', "is out of range"),
    "d.json": (f'{{"j": {"9" * 450}}}', "A number is too long"),
    "e.sh": (f"#!/bin/sh\necho 'big: {'9' * 450}'\n", "A number is too long"),
    "f.sh": ("#!/bin/sh\necho 'inf: .inf'\n", "The fact 'inf' of"),
    "g.sh": ("#!/bin/sh\necho 'a: [1'\n", "as external facts"),
}


async def test_AG_24_each_external_fact_that_is_dropped_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, (text, _) in DROPPED.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.yaml").mkdir()
    assert await external_facts([tmp_path], environ=ENVIRON) == {"y": 1}
    lines = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    for name, (_, reason) in DROPPED.items():
        assert [str(tmp_path / name) in line and reason in line for line in lines].count(True) == 1, (name, lines)
    assert f"{tmp_path / 'pipe.txt'} is no file and has no facts" in lines and len(lines) == len(DROPPED) + 1


async def test_environment_beats_external_beats_core(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("kernel=external\nos=external\n")
    host = Host(environ={**ENVIRON, "FACTER_kernel": "environment", "FACTERrole": "db"})
    facts = await gather(
        host, FactSources(external=[tmp_path], legacy=False), [resolver({"kernel": "core", "os": {"name": "x"}, "gone": None})]
    )
    assert {k: v for k, v in facts.items() if k != "facterversion"} == {"kernel": "environment", "os": "external", "role": "db"}


async def test_a_resolver_that_fails_or_hangs_costs_only_its_own_facts(caplog: pytest.LogCaptureFixture) -> None:
    def fails(host: Host) -> dict[str, Any]:
        raise ValueError("broken")

    begun, end = threading.Event(), threading.Event()

    def hangs(host: Host) -> dict[str, Any]:
        begun.set()
        end.wait()
        return {"late": 1}

    gathering = asyncio.create_task(gather(Host(environ=ENVIRON), FactSources(legacy=False), [fails, hangs, resolver({"a": 1})]))
    try:
        await until(lambda: begun.is_set() and not {"fails", "resolve"} & {thread.name for thread in threading.enumerate()})
        await turns(3)  # in which the loop takes the results of the threads that have ended
        advance(FactSources().core_seconds)
        facts = await gathering
    finally:
        end.set()
    assert facts["a"] == 1

    assert "late" not in facts
    assert "broken" in caplog.text
    assert "Timed out" in caplog.text


CUSTOM = """
from agent.facts import Host, Known, fact

@fact(confine={"kernel": ["linux"]})
def rack(host: Host, known: Known):
    return known["os.name"] + "-rack"

@fact("kernel", weight=0)
def light(host, known):
    return "light"

@fact("fqdn", weight=1)
def heavy(host, known):
    return "heavy"

@fact()
def broken(host, known):
    raise RuntimeError("oh")

@fact()
def odd(host, known):
    return object()
"""


async def test_custom_facts_in_python_are_confined_weighed_and_checked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "mine.py").write_text(CUSTOM)
    (tmp_path / "mine.rb").write_text("")
    (tmp_path / "theirs.rb").write_text("")
    (tmp_path / "syntax.py").write_text("def x(:\n")
    core = [resolver({"kernel": "Linux", "os": {"name": "Debian"}, "fqdn": "core"})]
    with caplog.at_level(logging.DEBUG, "puppet.facts"):
        facts = await gather(Host(environ=ENVIRON), FactSources(custom=[tmp_path], legacy=False), core)
    assert (facts["rack"], facts["kernel"], facts["fqdn"]) == ("Debian-rack", "Linux", "heavy")
    assert "broken" not in facts
    assert "odd" not in facts
    skipped = next(record.getMessage() for record in caplog.records if "in Ruby" in record.getMessage())
    assert skipped.endswith(": theirs.rb")
    assert "syntax.py" in caplog.text


async def test_an_external_fact_beats_a_custom_one_of_less_weight(tmp_path: Path) -> None:
    @fact("a", weight=5)
    def custom(host: Host, known: Known) -> str:
        return "custom"

    assert await custom_facts([custom], Host(environ=ENVIRON), {"a": "external"}, {"a": 10_000}) == {}
    assert await custom_facts([custom], Host(environ=ENVIRON), {"a": "core"}, {"a": 0}) == {"a": "custom"}


def test_a_value_of_a_strange_kind_is_named() -> None:
    assert invalid({"a": [1, {"b": {1: 2}}]}) == "a key of a map is of the kind int, not text"
    assert invalid({"a": [1.5, None, True]}) == ""


def test_known_facts_are_read_by_dotted_names() -> None:
    known = Known({"os": {"release": {"major": "12"}}, "a.b": 1, "list": [{"x": 1}]})
    assert (known["os.release.major"], known["a.b"], known["list.0.x"], known.get("os.none")) == ("12", 1, 1, None)


def test_a_file_of_facts_that_ends_the_program_is_an_error_with_its_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "ends.py").write_text("import sys\n\nsys.exit(3)\n")
    (tmp_path / "good.py").write_text(CUSTOM)
    assert load_all([tmp_path]) != []
    assert [record.getMessage() for record in caplog.records] == [
        f"Could not load the custom facts of ends.py: SystemExit: 3 (file: {tmp_path}/ends.py, line: 3)"
    ]
    assert not (tmp_path / "__pycache__").exists()


def test_a_missing_directory_declares_nothing(tmp_path: Path) -> None:
    assert load_all([tmp_path / "none"]) == []


def test_programs_of_facts_get_nothing_of_the_agents_environment_but_the_path() -> None:
    host = Host(environ={**ENVIRON, "RUBYOPT": "-r/tmp/x.rb", "LD_PRELOAD": "", "http_proxy": "http://user:secret@proxy", "HOME": "/root"})
    names = {line.partition("=")[0] for line in host.run(["env"]).splitlines()}
    assert {"LANG", "LC_ALL"} <= names <= {"LANG", "LC_ALL", "PATH"}
