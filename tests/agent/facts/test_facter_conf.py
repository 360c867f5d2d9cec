"""facter.conf: blocked facts, and facts that are kept from run to run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent.facts.builtin.host import Host
from agent.facts.facter import FactSources, gather
from agent.facts.facterconf import parse_conf, seconds_of
from shared.errors import BadData

ENVIRON = {"PATH": os.environ["PATH"]}


class Counting:
    """A resolver that counts how often it was asked."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        self.asked = 0
        self.__name__ = "counting"

    def __call__(self, host: Host) -> dict[str, Any]:
        self.asked += 1
        return self.facts


@pytest.mark.parametrize(
    ("text", "seconds"), [("30 days", 2592000), ("1 hour", 3600), ("10m", 600), ("500", 0.5), ("2 milliseconds", 0.002), ("1 minute", 60)]
)
def test_times_to_live_have_units(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "1 fortnight", "h", "-1 s"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(BadData, match="Could not parse time unit"):
        seconds_of(text)


def test_a_blocklist_names_facts_groups_and_own_groups() -> None:
    conf = parse_conf({"facts": {"blocklist": ["memory", "os.distro", "mine"]}, "fact-groups": {"mine": ["a", "b"]}})
    facts = {"memory": {}, "os": {"distro": {"id": "x"}, "name": "y"}, "a": 1, "b": 2, "c": 3}
    assert conf.without_blocked(facts) == {"os": {"name": "y"}, "c": 3}


async def test_what_is_blocked_is_missing_in_flat_names_and_files_too(tmp_path: Path) -> None:
    (tmp_path / "facter.conf").write_text('facts : { blocklist : [ "legacy", "operating system", "out.txt", "ssh" ] }')
    (tmp_path / "facts.d").mkdir()
    (tmp_path / "facts.d" / "out.txt").write_text("outside=1\n")
    facts = await gather(Host(), FactSources(external=[tmp_path / "facts.d"], conf=tmp_path / "facter.conf"))
    assert "kernel" in facts
    assert facts.keys().isdisjoint({"os", "outside", "osfamily", "hostname", "uptime_days"})


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ("", {"plugin", "system", "own"}),
        ('global : { external-dir : [ "ROOT/other" ], custom-dir : "ROOT/more" }', {"plugin", "other", "own", "more"}),
        ("global : { no-external-facts : true }", {"own"}),
        ("global : { no-custom-facts : true }", {"plugin", "system"}),
    ],
)
async def test_the_global_section_says_where_facts_come_from(conf: str, expected: set[str], tmp_path: Path) -> None:
    for name in ("plugin", "system", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.txt").write_text(f"{name}=yes\n")
    for name in ("own", "more"):
        (tmp_path / name).mkdir()
        text = f"from agent.facts import fact\n\n@fact()\ndef {name}(host, known):\n    return 'yes'\n"
        (tmp_path / name / f"{name}.py").write_text(text)
    (tmp_path / "facter.conf").write_text(conf.replace("ROOT", str(tmp_path)))
    sources = FactSources(
        external=[tmp_path / "plugin"], system=[tmp_path / "system"], custom=[tmp_path / "own"], conf=tmp_path / "facter.conf"
    )
    assert {name for name, value in (await gather(Host(environ={}), sources, core=())).items() if value == "yes"} == expected


async def test_a_broken_file_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "facter.conf").write_text("facts : {")
    facts = await gather(Host(environ=ENVIRON), FactSources(conf=tmp_path / "facter.conf", legacy=False), [Counting(a=1)])
    assert facts["a"] == 1
    assert f"Facter failed to read config file {tmp_path}/facter.conf" in caplog.text


async def test_a_group_with_a_time_to_live_is_asked_for_once_and_forgotten_without(tmp_path: Path) -> None:
    conf, cache = tmp_path / "facter.conf", tmp_path / "cache"
    conf.write_text('facts : { ttls : [ { "a" : 1 day } ] }')
    resolver = Counting(a={"b": 1}, c=2)
    sources = FactSources(conf=conf, cache=cache, legacy=False)
    for _ in range(2):
        resolver.facts = {**resolver.facts, "c": resolver.facts["c"] + 1}
        facts = await gather(Host(environ=ENVIRON), sources, [resolver])
        resolver.facts["a"] = {"b": "newer"}
    assert (facts["a"], facts["c"]) == ({"b": 1}, 4)
    assert json.loads((cache / "a").read_text()) == {"a": {"b": 1}, "cache_format_version": 1}
    (cache / "a").write_text('{"a.b": 5, "cache_format_version": 1}')  # as Facter writes it
    assert (await gather(Host(environ=ENVIRON), sources, [resolver]))["a"] == {"b": 5}
    os.utime(cache / "a", (0, 0))
    assert (await gather(Host(environ=ENVIRON), sources, [resolver]))["a"] == {"b": "newer"}
    conf.write_text('facts : { ttls : [ { "z" : 1 day } ] }')
    await gather(Host(environ=ENVIRON), sources, [resolver])
    assert not (cache / "a").exists()
