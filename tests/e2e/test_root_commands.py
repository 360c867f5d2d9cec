"""
Root's commands and the service share directories: whoever comes first, the service's account can use all that is there.

Run by root only, with an interpreter that other accounts may start.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from bunraku.puppet import command_names
from environments.first import make_first_environment
from tests.support.choices import in_gate
from tests.support.control_repository import ControlRepository
from tests.support.imports import PACKAGES
from tests.support.needs import needs_git, needs_root
from tests.support.processes import Done, MasterProcess, clean_environment, run
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
NODE = "web1.test"
SITE = "notify { 'here': }\n"
HAS_PUPPET = any(each.pw_name == "puppet" for each in pwd.getpwall()) and any(each.gr_name == "puppet" for each in grp.getgrall())
USER, GROUP = ("puppet", "puppet") if HAS_PUPPET else ("nobody", "nogroup")

pytestmark = [
    pytest.mark.slow,
    needs_root,
]

# What root may run on a master, and its exit codes; NODE is a node whose facts the service has.
COMMANDS = {
    "master --compile": (["master", "--compile", "NODE"], {0}),
    "master --check": (["master", "--check"], {0, 1}),
    "cert generate": (["cert", "generate", "new.test"], {0}),
    "cert list": (["cert", "list", "--all"], {0, 23}),
    "cert clean": (["cert", "clean", "NODE"], {0, 23, 24}),
    "cert reinventory": (["cert", "reinventory"], {0, 23}),
    "ca generate": (["ca", "generate", "newer.test"], {0}),
    "certificate generate": (["certificate", "generate", "newest.test", "--ca-location", "local"], {0}),
    "node find": (["node", "find", "NODE"], {0, 1}),
    "node clean": (["node", "clean", "NODE"], {0, 1}),
    "catalog compile": (["catalog", "compile", "NODE"], {0, 1}),
    "facts find": (["facts", "find", "NODE"], {0, 1}),
    "facts save": (["facts", "save", "NODE"], {0, 1}),
    "lookup": (["lookup", "key", "--compile"], {0, 1}),
    "epp render": (["epp", "render", "-e", "text"], {0}),
    "parser validate": (["parser", "validate"], {0}),
    "generate types": (["generate", "types"], {0}),
    "filebucket backup": (["filebucket", "-l", "backup", "/etc/hostname"], {0}),
    "report save": (["report", "save", "/nonexistent"], {1}),
    "ssl bootstrap": (["ssl", "bootstrap"], {0, 1}),
    "ssl clean": (["ssl", "clean"], {0, 1}),
    "apply": (["apply", "--execute", SITE], {0}),
    "agent --disable": (["agent", "--disable", "why"], {0}),
    "agent --test": (["agent", "--test", "--noop"], {0, 1, 2}),
    "resource": (["resource", "host"], {0}),
    "preview": (["preview", "--from", "production", "--to", "other", "--nodes", "NODE"], {0, 1, 2}),
    "deploy": (["deploy", "production"], {1}),  # no repository is named
    "rollout": (["rollout", "list"], {0}),
    "config set": (["config", "set", "--section", "agent", "splay", "false"], {0}),
    "module list": (["module", "list"], {0}),
    "plugin download": (["plugin", "download"], {1}),  # no master answers
    "db status": (["db", "status"], {1}),
    "query": (["query", "nodes {}"], {1}),
    "state move": (["state", "move", "--to", "files"], {1}),  # no database is named
    "report list": (["report", "list"], {0, 1}),
    "certificate_request find": (["certificate_request", "find", "NODE"], {0, 1}),
    "certificate_revocation_list find": (["certificate_revocation_list", "find", "ca"], {0, 1}),
    "file find": (["file", "find", "sha256/00"], {1, 2}),
    "resource_type search": (["resource_type", "search", ".*"], {0, 1}),
    "status find": (["status", "find", "NODE"], {0, 1}),
    "migrate check": (["migrate", "check", "--no-catalogs"], {0, 1}),
    "describe": (["describe", "file", "--short"], {0}),
    "completion": (["completion", "bash"], {0}),
}
FIRST = ("master --compile", "apply", "ssl bootstrap")  # after which the service is started, too; the others make the same folders
IN_GATE = (
    *FIRST,
    "agent --disable",
    "cert generate",
    "config set",
    "deploy",
    "facts save",
    "filebucket backup",
    "generate types",
    "module list",
    "preview",
    "report list",
)
"""Those that make folders of different kinds; the gate tries all others after the service has started."""
OF_THE_AGENT = ("client_data", "client_yaml", "clientbucket", "facts.d", "public", "state")  # below vardir, which no master writes

USABLE = """
import os, sys
uid, gid, *roots = sys.argv[1:]
os.setgroups([]); os.setresgid(int(gid), int(gid), int(gid)); os.setresuid(int(uid), int(uid), int(uid))
mode = os.R_OK | os.W_OK
for root in roots:
    for folder, folders, files in os.walk(root, onerror=print):
        if not os.access(folder, mode | os.X_OK):
            print(folder)
        for path in (os.path.join(folder, name) for name in files):
            if not os.access(path, mode):
                print(path)
"""


@dataclass
class Host:
    """A master's machine; its service runs as another account."""

    process: MasterProcess
    python: str

    @property
    def root(self) -> Path:
        return self.process.root

    def command(self, *arguments: str) -> Done:
        return run([self.python, "-I", "-m", "bunraku", *arguments, "--confdir", str(self.root / "conf")], clean_environment())

    def unusable(self) -> list[str]:
        """What the service's account cannot read and write of the master's directories."""
        account = pwd.getpwnam(USER).pw_uid, grp.getgrnam(GROUP).gr_gid
        own = [path for path in (self.root / "var").iterdir() if path.name not in OF_THE_AGENT] if (self.root / "var").exists() else []
        roots = [*own, *(path for name in ("run", "log", "conf/ssl") if (path := self.root / name).exists())]
        checked = run([self.python, "-I", "-c", USABLE, *map(str, (*account, *roots))], clean_environment())
        assert checked.code == 0, checked.text
        return checked.text.splitlines()

    def serve_once(self) -> None:
        """Start the service until it says that it can compile and all else is well, then stop it."""
        before = len(self.process.log) if (self.root / "master.log").exists() else 0
        self.process.start()
        try:
            context = ssl.create_default_context(cafile=str(self.process.ca / "ca_crt.pem"))

            def is_running() -> bool:
                connection = HTTPSConnection("localhost", self.process.port, context=context, timeout=60)
                connection.request("GET", "/status/v1/simple")
                text = connection.getresponse().read()
                connection.close()
                return text == b"running"

            wait_until(is_running, describe=lambda: self.process.log)
            assert (self.root / "var" / "code_cache").is_dir()
        finally:
            assert self.process.stop() == 0
        log = self.process.log[before:]
        assert "Error:" not in log and "Traceback" not in log and "code_cache" not in log, log


def can_start(argv: list[str]) -> bool:
    """Whether the service's account can run this."""
    try:
        subprocess.run(argv, user=USER, group=GROUP, extra_groups=[], cwd="/", capture_output=True, check=True, timeout=60)
    except (PermissionError, subprocess.CalledProcessError):
        return False
    return True


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def python() -> Iterator[str]:
    """An interpreter that every account may start, with what is installed for this one."""
    site = next(path for path in sys.path if path.endswith("site-packages"))
    for base in dict.fromkeys((sys._base_executable, "/usr/bin/python3")):  # type: ignore[attr-defined]  # sys.executable's own interpreter
        with tempfile.TemporaryDirectory(prefix="root-commands-") as folder:
            Path(folder).chmod(0o755)
            program = f"{folder}/bin/python"
            made = subprocess.run([base, "-m", "venv", "--without-pip", folder], capture_output=True, check=False, timeout=120)
            paths = list(Path(folder).glob("lib/python*/site-packages"))
            if made.returncode or not paths:
                continue
            (paths[0] / "ours.pth").write_text(f"{ROOT}\n{site}\n")
            start = ["-I", "-c", "import master.process, uvloop, cryptography.x509, orjson"]
            if not can_start([program, *start]):  # this checkout may be in a folder of root's
                for source in (site, *(ROOT / package for package in PACKAGES)):
                    into = paths[0] if source == site else paths[0] / Path(source).name
                    shutil.copytree(source, into, copy_function=link_or_copy, symlinks=True, dirs_exist_ok=True)
            if can_start([program, *start]):
                yield program
                return
    pytest.skip(f"no interpreter here can be started by {USER} (this one is in a folder of root's)")


@pytest.fixture
def host(python: str) -> Iterator[Host]:
    base = Path(tempfile.mkdtemp(prefix="root-commands-"))
    try:
        base.chmod(0o755)
        process = MasterProcess(base / "m", python=python)
        settings = {name: str(process.root / place) for name, place in (("vardir", "var"), ("rundir", "run"), ("logdir", "log"))}
        settings |= {"certname": "localhost", "key_type": "ec", "server": "localhost", "masterport": "1", "compile_workers": "1"}
        process.site.mkdir(parents=True)
        process.write({"manifests/site.pp": SITE, "../other/manifests/site.pp": SITE + SITE.replace("here", "there")})
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        (process.root / "conf" / "puppet.conf").write_text(f"[main]\n{lines}[master]\nuser = {USER}\ngroup = {GROUP}\n")
        for path in (process.root, *process.root.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        process.settings |= {"user": USER, "group": GROUP, "key_type": "ec", "compile_workers": "1"}
        yield Host(process, python)
        process.kill()
    finally:
        shutil.rmtree(base)


def test_R_45_after_each_command_of_roots_the_service_can_use_everything(host: Host) -> None:
    host.serve_once()
    assert host.unusable() == []
    for name in COMMANDS:
        command(host, name, facts=True)
        assert (name, host.unusable()) == (name, [])
    host.serve_once()


@pytest.mark.parametrize("name", in_gate(COMMANDS, IN_GATE))
def test_R_45_a_command_of_roots_that_comes_first_makes_nothing_that_the_service_cannot_use(host: Host, name: str) -> None:
    command(host, name, facts=False)
    assert host.unusable() == []
    if name in FIRST:
        host.serve_once()
        assert host.unusable() == []
        assert command(host, "master --compile", facts=True).code == 0


@needs_git
@pytest.mark.parametrize("is_deployed_by_root", [False, True], ids=["untouched", "root's versions"])
def test_after_roots_deployment_the_web_hooks_account_deploys_too(host: Host, is_deployed_by_root: bool) -> None:
    """`docs/deploying.md` as root: first over what the master made, or over versions that an older program left as root's."""
    environments = host.process.site.parent
    shutil.rmtree(environments / "production")
    prepared = make_first_environment(environments.parent)
    control = ControlRepository(host.root / "control")
    first = control.commit({"manifests/site.pp": SITE})
    assert host.command("config", "set", "deploy_repository", str(control.folder), "--section", "master").code == 0
    if is_deployed_by_root:
        assert host.command("deploy", "production", "--user", "root").code == 0
        assert prepared.lstat().st_uid == 0
    give(control.folder, pwd.getpwnam(USER).pw_uid)  # Git reads no other account's repository
    done = host.command("deploy", "production")
    assert done.code == 0, done.text
    assert prepared.resolve().name == first
    assert {path.lstat().st_uid for path in environments.glob(".versions/**/*")} == {pwd.getpwnam(USER).pw_uid}
    assert (environments / "other").stat().st_uid == 0
    assert [path.name for path in (environments / ".versions/production").iterdir() if path.is_dir()] == [first]
    give(control.folder, 0)
    second = control.commit({"manifests/site.pp": ""})
    give(control.folder, pwd.getpwnam(USER).pw_uid)
    words = [host.python, "-I", "-m", "bunraku", "deploy", "production", "--pushed", "--confdir", str(host.root / "conf")]
    hook = subprocess.run(words, user=USER, group=GROUP, extra_groups=[], cwd="/", capture_output=True, text=True, check=False, timeout=120)
    assert (hook.returncode, hook.stderr) == (0, "")
    assert prepared.resolve().name == second
    assert host.command("deploy", "production", "--rollback").code == 0
    assert prepared.resolve().name == first


def give(folder: Path, uid: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, -1)


def test_each_command_of_puppet_help_is_tried() -> None:
    assert {name.split()[0] for name in COMMANDS} == set(command_names()) - {"doc"}  # which prints references and takes no settings


def command(host: Host, name: str, *, facts: bool) -> Done:
    """Run one of COMMANDS, for a node whose facts the service has stored if `facts`, else for the master itself."""
    words, codes = COMMANDS[name]
    if facts:
        stored = host.root / "var" / "yaml" / "facts" / f"{NODE}.yaml"
        account = pwd.getpwnam(USER).pw_uid, grp.getgrnam(GROUP).gr_gid
        stored.parent.mkdir(mode=0o750, exist_ok=True)
        stored.write_text(f"--- !ruby/object:Puppet::Node::Facts\nname: {NODE}\nvalues:\n  kernel: Linux\n")
        for path in (stored, stored.parent):
            os.chown(path, *account)
    done = host.command(*(word.replace("NODE", NODE if facts else "localhost") for word in words))
    refused = not HAS_PUPPET and "Refusing to run" in done  # agents trust their $vardir to no other account
    assert done.code in codes or refused, done.text
    assert "Traceback" not in done, done.text
    return done
