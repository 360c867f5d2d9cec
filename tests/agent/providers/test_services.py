"""Services of init systems that are not here: by stand-ins for their programs, and on files in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.providers import ProviderRun, builtin_providers, default_provider_name
from agent.providers.service.debian import enabled_of as debian_enabled
from agent.providers.service.init import Init, scripts_in
from agent.providers.service.openrc import Openrc
from agent.providers.service.redhat import Redhat
from agent.providers.service.systemd import enabled_of as systemd_enabled
from agent.providers.service.upstart import (
    Upstart,
    comment_out_start,
    disabled_text,
    enabled_override,
    enabled_text,
    start_block,
    starts_at_boot,
    uncomment_start,
)
from agent.state.runlog import RunLog
from shared.errors import ResourceError
from shared.ral import Platform, Provider, Providers
from shared.types.package import Package
from shared.types.service import Service
from tests.agent.providers.recorded import Program

STANZA = "start on (runlevel [2345]\n  and started x) # why\n"
JOB = f"description y\n{STANZA}stop on z\n"


@pytest.mark.parametrize(
    ("wants", "output", "code", "value"),
    [
        (None, "enabled", 0, "true"),
        (None, "disabled", 1, "false"),
        ("mask", "masked", 1, "mask"),
        ("true", "masked", 1, "false"),
        ("false", "indirect", 0, "false"),
        (None, "static", 0, "true"),
        (None, "", 1, None),
    ],
)
def test_what_systemd_says_is_a_value_of_enable(wants: str | None, output: str, code: int, value: str | None) -> None:
    assert systemd_enabled(wants, output, code) == value


@pytest.mark.parametrize(
    ("code", "links", "value"), [(104, 0, "true"), (106, 0, "true"), (101, 4, "true"), (105, 3, "false"), (0, 9, "false")]
)
def test_what_invoke_rc_says_is_a_value_of_enable(code: int, links: int, value: str) -> None:
    assert debian_enabled(code, links) == value


def test_upstart_jobs_start_by_themselves_or_not() -> None:
    assert starts_at_boot(JOB)
    assert not starts_at_boot(disabled_text(JOB))
    assert not starts_at_boot("", before=False) and starts_at_boot("", before=True)
    assert start_block(JOB) == STANZA
    assert not starts_at_boot(comment_out_start(JOB)) and uncomment_start(comment_out_start(JOB)) == JOB
    assert enabled_text(comment_out_start(JOB), (0, 8, 0)) == JOB
    assert starts_at_boot(enabled_text("exec x\n", (0, 6, 0)))
    assert starts_at_boot(enabled_override(comment_out_start(JOB), "manual\n"))
    assert enabled_override(JOB, "\nmanual").strip() == ""


async def test_upstart_writes_an_override_beside_the_job(tmp_path: Path) -> None:
    (tmp_path / "web.conf").write_text(JOB)
    provider = Upstart()
    provider.initctl = Program("initctl", {"--version": "initctl (upstart 1.12.1)"})  # type: ignore[misc, assignment]
    provider.status_of_job = Program("status", {"web": "web start/running, process 4"})  # type: ignore[misc, assignment]
    resource = Service("web", {"path": str(tmp_path), "enable": False, "ensure": "running"})
    assert await provider.retrieve(resource) == {"ensure": "running", "enable": "true"}
    await provider.set_enable(resource, "false", {})
    assert (tmp_path / "web.conf").read_text() == JOB
    assert await provider.enablement(resource) == {"enable": "false"}
    await provider.set_enable(resource, "true", {})
    assert await provider.enablement(resource) == {"enable": "true"}
    assert await provider.command(resource, "start") == ["/sbin/start", "web"]


async def test_chkconfig_and_rc_update_enable_and_disable() -> None:
    redhat, openrc = Redhat(), Openrc()
    chkconfig, rc_update = Program("chkconfig", {"web": ("", 1), "web on": ""}), Program("rc-update")
    redhat.chkconfig, openrc.rc_update = chkconfig, rc_update  # type: ignore[misc, assignment]
    resource = Service("web", {})
    assert await redhat.enablement(resource) == {"enable": "false"}
    for desired in ("true", "false"):
        await redhat.set_enable(resource, desired, {})
        await openrc.set_enable(resource, desired, {})
    assert chkconfig.calls == ["web", "--add web", "web on", "--level 0123456 web off"]
    assert rc_update.calls == ["-C add web", "-C del web"]
    assert await redhat.command(resource, "status") == ["/sbin/service", "web", "status"]
    assert await redhat.command(resource, "restart") is None
    assert await openrc.command(Service("web", {"hasrestart": True}), "restart") == ["/sbin/rc-service", "web", "restart"]


async def test_an_init_script_is_found_by_name_then_with_its_suffix(tmp_path: Path) -> None:
    for name in ("a", "b.sh", "rcS", ".hidden", "plain"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o644 if name == "plain" else 0o755)
    assert scripts_in(tmp_path) == ["a", "b.sh"]
    provider = Init()
    assert await provider.script(Service("a", {"path": f"/nonexistent:{tmp_path}"})) == f"{tmp_path}/a"
    assert await provider.script(Service("b", {"path": str(tmp_path)})) == f"{tmp_path}/b.sh"
    with pytest.raises(ResourceError, match="Could not find init script for 'c'"):
        await provider.script(Service("c", {"path": str(tmp_path)}))


def chosen(facts: dict[str, Any], *, systemd: bool, resource: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The default provider on a machine with those facts that has every program."""
    for module in ("systemd", "debian"):
        monkeypatch.setattr(f"agent.providers.service.{module}.is_systemd", lambda: systemd)
    platform = Platform(facts, frozenset({"posix", "root"}), lambda name: name)
    provider: Provider[Any] = Providers(builtin_providers(ProviderRun(RunLog(), platform=platform)), platform).for_resource(resource)
    return provider.name


SYSTEMS = """
Debian Debian 12, Devuan Debian 5, Ubuntu Debian 24.04, Fedora RedHat 40, Rocky RedHat 9, CentOS RedHat 6, Amazon RedHat 2023,
SLES Suse 15, Archlinux Archlinux -, Alpine Alpine 3, Gentoo Gentoo -
"""
OS: dict[str, Any] = {
    name: {"os": {"name": name, "family": family, "release": {"major": major}}}
    for name, family, major in (words.split() for words in SYSTEMS.split(","))
}


@pytest.mark.parametrize(
    ("system", "systemd", "service", "package"),
    [
        ("Debian", True, "systemd", "apt"),
        ("Debian", False, "debian", "apt"),
        ("Devuan", False, "debian", "apt"),
        ("Ubuntu", True, "systemd", "apt"),
        ("Fedora", True, "systemd", "dnf"),
        ("Rocky", True, "systemd", "dnf"),
        ("CentOS", False, "redhat", "yum"),
        ("Amazon", True, "systemd", "dnf"),
        ("SLES", True, "systemd", "zypper"),
        ("Archlinux", True, "systemd", "pacman"),
        ("Alpine", False, "openrc", "apk"),
        ("Gentoo", False, "openrc", "?"),
    ],
)
def test_each_system_has_its_own_default(system: str, systemd: bool, service: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        chosen(OS[system], systemd=systemd, resource=resource, monkeypatch=monkeypatch) for resource in (Service("x", {}), Package("x", {}))
    ]
    platform = Platform(OS[system], frozenset({"posix", "root"}), lambda name: name)
    assert [default_provider_name(type_name, platform) for type_name in ("service", "package")] == names
    assert names[0] == service
    assert names[1] == package or package == "?"
    assert names[1] not in ("pip", "gem", "npm", "snap")
