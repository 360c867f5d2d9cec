"""Our facts are those of the facter that is installed, but for the differences that are listed here with their reasons."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from agent.facts.builtin.host import Host
from agent.facts.facter import FactSources, resolve
from shared.programs import run_output

pytestmark = [
    pytest.mark.works_with("Facter and facts in Ruby", "facts of Facter 4.3"),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("facter") is None, reason="facter is not installed"),
]

# Path of a fact → why it may differ.
DIFFER = {
    r"(load_averages|memory|system_uptime|mountpoints|disks)\..*|memory(free|size)(_mb)?|swap.*|uptime.*": "changes from moment to moment",
    r"ruby\..*|ruby(platform|sitedir|version)": "this agent has no Ruby; a manifest that asks for it wants the agent's own",
    r"path": "of the process",
    r"aio_agent_version|facterversion": "of the program itself",
    r"(az_metadata|ec2_metadata|ec2_userdata|gce|cloud)(\..*)?": "the metadata services of clouds are not asked",
}
# Facts that only one side has → why.
OURS = {
    r"mountpoints\..*|partitions\..*\.mount": "facter's are missing where its library sys-filesystem is not installed, as on Debian",
    r"(system_uptime|hypervisors|virtual|is_virtual|uptime).*": "facter finds none of them where it may not read /proc/1/environ",
}
THEIRS = {
    r"partitions": "facter's are empty, not missing, where its library sys-filesystem is not installed",
    r"os_service_default": "a custom fact in Ruby in facter's own load path",
}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}" if path else name)
    else:
        yield path, value


def justified(path: str, *lists: dict[str, str]) -> bool:
    return any(re.fullmatch(pattern, path) for each in lists for pattern in each)


@pytest.mark.smoke
async def test_our_facts_are_facters() -> None:
    _, output, _ = await run_output(["facter", "--json", "--show-legacy"], timeout=60, most=1 << 22, environ=os.environ, what="ask facter")
    theirs = dict(leaves(json.loads(output)))
    ours = dict(leaves(await resolve(Host(), FactSources())))
    wrong = {
        path: (ours[path], theirs[path])
        for path in sorted(ours.keys() & theirs.keys())
        if ours[path] != theirs[path] and not justified(path, DIFFER)
    }
    assert wrong == {}
    assert [path for path in sorted(ours.keys() - theirs.keys()) if not justified(path, DIFFER, OURS)] == []
    assert [path for path in sorted(theirs.keys() - ours.keys()) if not justified(path, DIFFER, THEIRS)] == []
    assert [path for path in ours.keys() & theirs.keys() if type(ours[path]) is not type(theirs[path])] == []
    assert len(ours.keys() & theirs.keys()) > 80
