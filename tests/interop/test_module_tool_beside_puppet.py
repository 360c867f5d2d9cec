"""`puppet module`, the real one and ours, on the same made-up Forge: they say the same, and leave the same."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shared.data import plainyaml
from tests.interop.conftest import NOT_INSTALLED
from tests.support.forge import LocalForge, metadata_of, module_files, serving
from tests.support.ports import silent_port
from tests.support.processes import REAL_PUPPET, clean_environment, has_real_puppet
from tests.support.smoke import with_smoke

pytestmark = [
    pytest.mark.works_with("Module tool, compared with Puppet's", "messages, exit codes and files of 7.23 with the same Forge"),
    pytest.mark.slow,
    pytest.mark.interop,
]

HERE = Path(__file__).parent
DATA: dict[str, Any] = plainyaml.loads((HERE / "module_tool.yaml").read_bytes())
CASES: dict[str, dict[str, Any]] = DATA["cases"]
OURS = (sys.executable, "-I", "-m", "bunraku")
HINT = re.compile(r"(Error: )?Try 'puppet |\tfrom |Complete ROOT|A module has a metadata\.json|It would be a folder of that name in ")
TIMEOUT = 300.0  # seconds for one command


def forge_of(case: Mapping[str, Any]) -> LocalForge:
    forge = LocalForge()
    for release, needs in DATA["releases"].items():
        forge.publish(*release.split(" "), needs)
    for release, more in case.get("releases", {}).items():
        forge.publish(*release.split(" "), more.get("needs", {}), sums=more.get("sums"))
    forge.answers = {prefix: (status, body.encode()) for prefix, (status, body) in case.get("answers", {}).items()}
    return forge


class Site:
    """A folder with environments and modules, and one of the two programs that works on it."""

    def __init__(self, root: Path, case: Mapping[str, Any], forge: LocalForge, url: str, program: tuple[str, ...]) -> None:
        self.root = root
        self.program = program
        self.forge = forge
        self.url = url
        for folder in ("P", "B"):
            self.path(folder).mkdir(parents=True)
        for place, what in case.get("installed", {}).items():
            self.write(place, self.files_of(what))
        for name, release in case.get("archives", {}).items():
            (root / name).write_bytes(forge.answer(f"/v3/files/{release.replace(' ', '-')}.tar.gz")[1])
        for place, text in case.get("change", {}).items():
            self.write(place, {"": text.encode()})
        for place in case.get("remove", ()):
            self.path(place).unlink()

    def path(self, place: str) -> Path:
        first, _, rest = place.partition("/")
        code = self.root / "code"
        folders = {"P": code / "environments/production/modules", "B": code / "modules", "E": code / "environments"}
        return (folders[first] / rest) if first in folders else self.root / place

    def write(self, place: str, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            path = self.path(place) / name if name else self.path(place)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def files_of(self, what: str) -> dict[str, bytes]:
        if " " in what:
            name, version = what.split(" ")
            return module_files(metadata_of(name, version, DATA["releases"][what]))
        module = DATA["modules"][what]
        if "metadata" in module:
            return module_files(module["metadata"])
        return {name: text.encode() for name, text in module["files"].items()}

    def run(self, command: str) -> tuple[int, str, str]:
        words = [re.sub(r"^([PBE])(?=/)", lambda match: str(self.path(match[1])), word) for word in shlex.split(command)]
        words = [word.replace("ROOT", str(self.root)) for word in words]
        options = [f"--{name}={self.root}/{name.removesuffix('dir')}" for name in ("confdir", "vardir", "codedir")]
        options += [f"--basemodulepath={self.path('B')}", "--vendormoduledir="]
        argv = [*self.program, "module", *words, *options, f"--module_repository={self.url}", "--color=false"]
        done = subprocess.run(
            argv, env=clean_environment(HOME=str(self.root)), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        return done.returncode, self.plain(done.stdout), self.plain(done.stderr)

    def plain(self, text: str) -> str:
        """Return what was printed without what must differ: names of folders, texts of libraries, hints, and what is said twice."""
        text = text.replace(str(self.root), "ROOT").replace(self.url, "FORGE")
        text = re.sub(r"^.*`get!': (.*) \(Puppet::\S+\)$", r"Error: \1", text, flags=re.MULTILINE)  # a crash of the real one
        text = re.sub(r"(The parse error: |The error we caught said ').*", r"\1…", text)
        lines = [line for line in text.split("\n") if not HINT.match(line)]
        once = ("Warning: ", "Error: No source module metadata provided for ")
        return "\n".join(line for index, line in enumerate(lines) if not line.startswith(once) or line not in lines[:index])

    def tree(self) -> dict[str, Any]:
        """The folders and files of modules, with modes, owners and contents."""
        found: dict[str, Any] = {}
        for top in (self.root / "code", self.root / "elsewhere", self.root / "one", self.root / "two"):
            for path in sorted(top.rglob("*")):
                info = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(info.st_mode) else ""
                found[str(path.relative_to(self.root))] = (oct(info.st_mode), info.st_uid, info.st_gid, content)
        return found


@pytest.mark.parametrize("name", with_smoke(CASES, "with dependencies", "upgrade"))
def test_the_module_tool_says_and_does_what_puppets_does(name: str, tmp_path: Path) -> None:
    if not has_real_puppet():
        pytest.fail(NOT_INSTALLED)
    os.umask(0o022)
    case = CASES[name]
    with serving(forge_of(case)) as forge, silent_port() as silent:
        url = forge.url if case.get("network", True) else f"http://127.0.0.1:{silent}"
        theirs, ours = (
            Site(tmp_path / side / "root", case, forge, url, program) for side, program in (("theirs", (REAL_PUPPET,)), ("ours", OURS))
        )
        for command in case["run"]:
            expected, answer = theirs.run(command), ours.run(command)
            assert answer == expected, command
            assert ours.tree() == theirs.tree(), command
