"""The row of what facts hold: nothing that only the machine itself should know."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.facts.builtin.host import Host
from agent.facts.facter import FactSources, gather
from agent.run.wiring import CATALOG_MODE
from tests.support.scripted_master import Scripted

SECRET = "hunter2-5f2c"

# Gathers the facts of this machine in a process that writes down where it connects and which processes it looks at.
WATCHED = """
import asyncio, json, re, sys
seen = []
def watch(event, args):
    if event == "socket.connect":
        seen.append(["connect", str(args[1])])
    elif event == "open" and re.fullmatch(r"/proc/(?!1/|self/)\\d+/(cmdline|environ|status|maps)", str(args[0])):
        seen.append(["open", str(args[0])])
    elif event == "subprocess.Popen":
        seen.append(["run", [str(each) for each in args[1]]])
sys.addaudithook(watch)
from agent.facts.builtin.host import Host
from agent.facts.facter import FactSources, gather
facts = asyncio.run(gather(Host(), FactSources()))
json.dump({"facts": facts, "seen": seen}, sys.stdout, default=str)
"""


@pytest.mark.slow
def test_AG_13_facts_of_this_machine_are_asked_of_no_server_and_hold_no_arguments_of_processes() -> None:
    talkative = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", f"--password={SECRET}"])
    try:
        done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, timeout=120, check=True, cwd=Path(__file__).parents[2])
    finally:
        talkative.kill()
        talkative.wait(10)
    told = json.loads(done.stdout)
    assert {"os", "networking", "memory", "identity"} <= set(told["facts"])
    assert SECRET not in done.stdout.decode()
    assert [each for each in told["seen"] if each[0] in ("connect", "open")] == []
    programs = {Path(each[1][0]).name for each in told["seen"] if each[0] == "run"}
    assert not programs & {"ps", "pgrep", "curl", "wget", "nc", "ec2-metadata", "cloud-init"}, programs


CLOUDS = {
    "EC2": {"bios_vendor": "Amazon EC2", "product_name": "m5.large", "sys_vendor": "Amazon EC2", "chassis_asset_tag": "Amazon EC2"},
    "GCE": {"bios_vendor": "Google", "product_name": "Google Compute Engine", "sys_vendor": "Google", "chassis_asset_tag": ""},
    "Azure": {
        "bios_vendor": "American Megatrends Inc.",
        "product_name": "Virtual Machine",
        "sys_vendor": "Microsoft Corporation",
        "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77",
    },
}


@pytest.mark.parametrize("cloud", CLOUDS)
async def test_AG_13_a_cloud_is_not_asked_for_its_metadata(cloud: str, tmp_path: Path) -> None:
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    for name, text in CLOUDS[cloud].items():
        (dmi / name).write_text(text + "\n")
    asked = tmp_path / "asked"
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("curl", "wget", "ec2-metadata", "cloud-init", "ps"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {asked}\necho {SECRET}\n")
        (programs / name).chmod(0o755)
    facts = await gather(Host(root=tmp_path, environ={"PATH": str(programs), "AWS_SECRET_ACCESS_KEY": SECRET}), FactSources())
    assert not asked.exists()
    assert SECRET not in json.dumps(facts, default=str)
    wrong = ("ec2_metadata", "ec2_userdata", "gce", "az_metadata", "cloud_metadata", "processes", "env", "environment")
    assert [name for name in facts if name.startswith(wrong)] == []


@pytest.mark.slow
async def test_AG_13_what_an_agent_keeps_of_a_run_is_for_nobody_else(tmp_path: Path) -> None:
    site = Scripted(tmp_path)
    assert await site.run() == 0
    kept = {path.name: path.stat().st_mode & 0o777 for path in (site.agent_root / "var").rglob("*") if path.is_file()}
    assert kept[site.cached.name] == CATALOG_MODE == 0o600
    # The summary has counts and times only; monitoring reads it, as Puppet's.
    assert [name for name, mode in kept.items() if mode & 0o007] == ["last_run_summary.yaml"]


async def test_AG_13_kept_facts_are_for_root_only(tmp_path: Path) -> None:
    conf, cache = tmp_path / "facter.conf", tmp_path / "cache"
    conf.write_text('facts : { ttls : [ { "memory" : 1 hours } ] }')
    await gather(Host(), FactSources(conf=conf, cache=cache))
    assert [(path.name, path.stat().st_mode & 0o777) for path in cache.iterdir()] == [("memory", 0o600)]
