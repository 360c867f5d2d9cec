"""Our core facts beside those of the real Facter, on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from agent.facts.facter import Sources, gather
from agent.facts.host import Host
from tests.processes import clean_environment

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SAME = ["os", "kernel", "kernelrelease", "kernelversion", "kernelmajversion", "filesystems", "fips_enabled", "identity", "timezone", "path"]
PARTS = {
    "networking": ["hostname", "fqdn", "ip", "ip6", "mac", "mtu", "netmask", "netmask6", "network", "network6", "primary", "scope6"],
    "processors": ["count", "physicalcount", "models", "isa", "cores", "threads"],
}
LEGACY = [
    "osfamily",
    "operatingsystem",
    "operatingsystemmajrelease",
    "architecture",
    "ipaddress",
    "memorysize",
    "processorcount",
    "gid",
    "interfaces",
]


@pytest.fixture(scope="module")
def facter() -> dict[str, Any]:
    program = shutil.which("facter")
    if program is None:
        pytest.skip("facter is not installed")
    done = subprocess.run(
        [program, "--json", "--show-legacy", "--no-external-facts"], env=clean_environment(), capture_output=True, timeout=120, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def test_our_facts_are_those_of_facter(facter: dict[str, Any]) -> None:
    ours = await gather(Host(environ=clean_environment()), Sources())
    assert {name: ours.get(name) for name in SAME} == {name: facter.get(name) for name in SAME}
    for name, parts in PARTS.items():
        assert {part: ours[name].get(part) for part in parts} == {part: facter[name].get(part) for part in parts}
    assert {name: ours.get(name) for name in LEGACY} == {name: facter.get(name) for name in LEGACY}
    assert ours["memory"]["system"]["total_bytes"] == facter["memory"]["system"]["total_bytes"]


async def test_our_interfaces_are_those_of_facter(facter: dict[str, Any]) -> None:
    ours = await gather(Host(environ=clean_environment()), Sources())
    newer = {"dhcp", "speed", "duplex", "operational_state", "physical"}  # depends on Facter's version
    plain = {name: {k: v for k, v in each.items() if k not in newer} for name, each in facter["networking"]["interfaces"].items()}
    assert {name: {k: v for k, v in each.items() if k not in newer} for name, each in ours["networking"]["interfaces"].items()} == plain
