"""Rows of the security reference about what providers run: as whom, and with which arguments."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from agent.providers.accounts import AccountDatabase
from agent.providers.group.groupadd import Groupadd
from agent.providers.package.apt import Apt
from agent.providers.package.dpkg import Dpkg
from agent.providers.service.debian import Debian
from agent.providers.service.systemd import Systemd
from agent.providers.user.useradd import Useradd
from shared.errors import ResourceError
from shared.ral import Platform
from shared.ral.commands import MAX_OUTPUT, execute
from shared.types import builtin_types
from shared.types.exec import Exec
from shared.types.group import Group
from shared.types.package import Package
from shared.types.service import Service
from shared.types.user import User
from tests.support.fake_commands import apply
from tests.support.needs import needs_root

# --- AG-06: running as another user

ASK = "id -u; id -g; id -G; umask; ls /proc/self/fd | tr '\\n' ' '; echo; grep -E '^(Uid|Gid|CapEff|CapPrm)' /proc/self/status"


@needs_root
async def test_AG_06_a_command_of_another_user_has_nothing_of_roots(tmp_path: Path) -> None:
    user = pwd.getpwnam("nobody")
    groups = sorted(set(os.getgrouplist("nobody", user.pw_gid)))
    kept = os.open(tmp_path, os.O_RDONLY)  # a descriptor of ours that could be inherited
    os.set_inheritable(kept, True)
    try:
        resource = Exec("ask", {"command": ["/bin/sh", "-c", ASK], "user": "nobody", "umask": "027", "logoutput": True, "cwd": "/"})
        done = await apply(resource)
    finally:
        os.close(kept)
    said = done.messages
    assert said[:2] == [str(user.pw_uid), str(user.pw_gid)]
    assert sorted(map(int, said[2].split())) == groups
    assert 0 not in groups
    assert said[3] == "0027"
    assert said[4].split() == ["0", "1", "2", "3"]  # the last is the listing's own
    rows = {line.split(":")[0]: line.split(":")[1].split() for line in said[5:9]}
    # Real, effective, saved and file system ids are all the user's: there is no way back.
    assert rows["Uid"] == [str(user.pw_uid)] * 4 and rows["Gid"] == [str(user.pw_gid)] * 4
    assert {*rows["CapEff"], *rows["CapPrm"]} == {"0" * 16}


@needs_root
async def test_AG_06_a_group_alone_replaces_roots_group() -> None:
    gid = grp.getgrnam("nogroup").gr_gid
    done = await apply(Exec("ask", {"command": "/usr/bin/id -g", "group": "nogroup", "logoutput": True}))
    assert done.messages[0] == str(gid)


# --- AG-08: what becomes arguments of commands

NAMES = ["-o", "--root=/", "-H evil", "a\nb", "a\0b", "a\x1b[2J", ""]
REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    *((type_name, name, {}) for type_name in ("user", "group", "package", "service") for name in NAMES),
    ("user", "eve", {"comment": "a:b"}),
    ("user", "eve", {"comment": "x\nroot2::0:0::/:/bin/sh"}),
    ("user", "eve", {"home": "/home/eve:/bin/sh"}),
    ("user", "eve", {"shell": "/bin/sh\n"}),
    ("user", "eve", {"uid": "-o"}),
    ("user", "eve", {"gid": "-o"}),
    ("user", "eve", {"groups": ["--root=/"]}),
    ("user", "eve", {"password": "x\nroot:y"}),
    ("user", "eve", {"password": "x:y"}),
    ("user", "eve", {"expiry": "2030-01-01; id"}),
    ("user", "eve", {"purge_ssh_keys": ["/home/x\n"]}),
    ("user", "eve", {"purge_ssh_keys": ["relative"]}),
    ("group", "ops", {"gid": "1; id"}),
    ("group", "ops", {"members": ["a:b"]}),
    ("package", "x", {"ensure": "-o Dpkg::Pre-Invoke::=id"}),
    ("package", "x", {"ensure": "1.0\n2.0"}),
    ("package", "x", {"source": "--root=/"}),
    ("package", "x", {"source": "/srv/a\0.deb"}),
    ("package", "x", {"install_options": ["a\nb"]}),
    ("package", "x", {"install_options": [{"a": "b\0"}]}),
    ("package", "x", {"command": "--help"}),
    ("service", "x", {"start": "a\0b"}),
    ("service", "x", {"path": "/etc/init.d\n"}),
    ("cron", "c", {"command": "a\n* * * * * root id", "user": "root"}),
    ("cron", "c\n* * * * * id", {"command": "id"}),
    ("host", "h", {"ip": "192.0.2.1", "comment": "a\n127.0.0.1 bank.example"}),
    ("host", "h\n127.0.0.1 bank", {"ip": "192.0.2.1"}),
    ("sshkey", "k", {"type": "ssh-rsa", "key": "a\nb"}),
    ("ssh_authorized_key", "k", {"type": "ssh-rsa", "key": "a\nb", "user": "root"}),
    ("mount", "/mnt", {"device": "/dev/a\n/dev/b / ext4", "fstype": "ext4"}),
    ("mailalias", "m", {"recipient": "a\nb: |id"}),
]


@pytest.mark.parametrize(("type_name", "title", "given"), REFUSED)
def test_AG_08_what_could_be_an_option_or_another_line_is_refused(type_name: str, title: str, given: dict[str, Any]) -> None:
    with pytest.raises(ResourceError):
        builtin_types()[type_name](title, given)


class Told(Exception):
    """Raised instead of running a command, with its arguments."""


async def arguments(provider: Any, call: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The argument list of the first command that is run."""

    async def run(argv: list[str], **_: Any) -> None:
        raise Told(argv)

    monkeypatch.setattr("shared.ral.commands.execute", run)
    monkeypatch.setattr("agent.providers.service.base.execute", run)
    with pytest.raises(Told) as told:
        await call(provider)
    return list(told.value.args[0])


PLATFORM = Platform(find_program=lambda name: None)
HOSTILE = "x; id > /tmp/owned $(id) `id` * ../x"  # nothing that a shell would be needed for is ever split or expanded
TOLD: list[tuple[Any, Any]] = [
    (lambda: Useradd(AccountDatabase(), PLATFORM), lambda p: p.create(User(HOSTILE, {}), None)),
    (lambda: Useradd(AccountDatabase(), PLATFORM), lambda p: p.destroy(User(HOSTILE, {}), None)),
    (lambda: Useradd(AccountDatabase(), PLATFORM), lambda p: p.set(User(HOSTILE, {}), "comment", "-o", None)),
    (lambda: Groupadd(AccountDatabase(), PLATFORM), lambda p: p.create(Group(HOSTILE, {}), None)),
    (lambda: Groupadd(AccountDatabase(), PLATFORM), lambda p: p.destroy(Group(HOSTILE, {}), None)),
    (Apt, lambda p: p.install(Package(HOSTILE, {}), None)),
    (Apt, lambda p: p.uninstall(Package(HOSTILE, {}), None)),
    (Dpkg, lambda p: p.install(Package("x", {"source": HOSTILE}), None)),
    (Dpkg, lambda p: p.purge(Package(HOSTILE, {}), None)),
    (Systemd, lambda p: p.enablement(Service(HOSTILE, {}))),
    (Systemd, lambda p: p.set_enable(Service(HOSTILE, {}), "true", None)),
]


@pytest.mark.parametrize("number", range(len(TOLD)))
async def test_AG_08_a_value_is_one_argument_behind_two_dashes(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl = tmp_path / "systemctl"  # a system without systemd has none, and is tested all the same
    systemctl.write_text("#!/bin/false\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    make, call = TOLD[number]
    argv = await arguments(make(), call, monkeypatch)
    assert argv[-2:] == ["--", HOSTILE]


@pytest.mark.parametrize("name", ["x; id", "../x.deb", "vim-", "vim/stable", "task^", "Vim", "./x.deb"])
async def test_AG_08_a_package_name_that_apt_would_read_as_something_else_is_refused(name: str) -> None:
    with pytest.raises(ResourceError, match="is not the name of a Debian package"):
        await Apt().query(Package(name, {}))


@pytest.mark.parametrize("name", ["../../tmp/x", "a/b", ".."])
async def test_AG_08_a_services_name_does_not_lead_out_of_the_folder_of_scripts(name: str, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="is not the name of a service"):
        await Debian().command(Service(name, {"path": str(tmp_path)}), "start")


async def test_AG_08_of_a_command_that_floods_only_the_beginning_is_kept() -> None:
    said = await execute(["/bin/sh", "-c", f"head -c {MAX_OUTPUT * 2} /dev/zero || exit 9"], fail=False)
    assert (said.code, len(said.text)) == (0, MAX_OUTPUT)


async def test_AG_08_a_command_that_leaves_something_behind_is_not_waited_for() -> None:
    said = await execute(["/bin/sh", "-c", "sleep 3 & echo done"], seconds=2)
    assert said.text == "done\n"


async def test_AG_08_a_command_that_hangs_is_killed_with_all_it_started() -> None:
    with pytest.raises(ResourceError, match=r"exceeded 0.2 seconds"):
        await execute(["/bin/sh", "-c", "sleep 60; true"], seconds=0.2)
