"""The units of systemd: well made, tight, and their commands work for the account that they name."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import needs_root

UNITS = Path(__file__).parent.parent.parent / "packaging" / "systemd"
NAMES = sorted(path.name for path in UNITS.iterdir() if path.suffix in (".service", ".timer"))
ANALYZE = shutil.which("systemd-analyze")
MOST_EXPOSED = "20"  # of 100, by `systemd-analyze security`
AGAIN = "import os, sys; os.execv(sys.executable, [sys.executable, '-I', '-c', 'import master'])"
LAUNCHER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.prctl(65, 1, 0, 0, 0)  # PR_SET_MDWE: what MemoryDenyWriteExecute asks for; older kernels do not know it
os.execv(sys.argv[1], sys.argv[1:])
"""

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def analyzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert ANALYZE is not None
    return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=60, check=False)


def command_of(unit: str) -> list[str]:
    """The words of a unit's ExecStart."""
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(UNITS / unit)
    return shlex.split(read["Service"]["ExecStart"])


@pytest.mark.slow
@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    for name in NAMES:  # nothing has to be installed here for their commands to be found
        (tmp_path / name).write_text((UNITS / name).read_text().replace("/usr/bin/puppet", "/bin/true"))
    done = analyzed("verify", "--man=no", *(str(tmp_path / name) for name in NAMES))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@needs_systemd
@pytest.mark.parametrize("name", ["puppet-master.service", "puppet-db.service"])
def test_the_units_of_servers_expose_little(name: str) -> None:
    done = analyzed("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(UNITS / name))
    assert done.returncode == 0, done.stdout[-200:]


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".service")])
def test_the_commands_of_the_units_are_ours(name: str) -> None:
    program, subcommand, *options = command_of(name)
    assert (program, subcommand) == ("/usr/bin/puppet", name.split(".")[0].split("-")[1])
    done = subprocess.run(
        [sys.executable, "-I", "-m", "bunraku", subcommand, *options, "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout[:14]) == (0, "Usage: puppet ")


def test_what_the_master_writes_into_is_made_and_open_to_it() -> None:
    made = set(re.findall(r"^d (\S+) +0\d+ puppet puppet", (UNITS / "tmpfiles.conf").read_text(), re.M))
    for name in ("puppet-master.service", "puppet-db.service"):
        (opened,) = re.findall(r"^ReadWritePaths=(.*)$", (UNITS / name).read_text(), re.M)
        assert made >= set(opened.split())


def stripped() -> tuple[int, list[str]]:
    """How to run a command without any capability: as nobody, where that one can read this installation, else as root; and its uid."""
    bare = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    nobody = [*bare, "--reuid=65534", "--regid=65534", "--clear-groups"]
    tried = subprocess.run([*nobody, sys.executable, "-I", "-c", AGAIN], capture_output=True, timeout=60, check=False)
    return (65534, nobody) if tried.returncode == 0 else (0, bare)


@pytest.mark.slow
@needs_root
@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="systemd-tmpfiles is not installed (Debian: systemd)")
def test_account_and_folders_are_made(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for program in ("systemd-sysusers", "systemd-tmpfiles --create"):
        name = program.split()[0].removeprefix("systemd-") + ".conf"
        argv = [*program.split(), f"--root={tmp_path}", str(UNITS / name)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    entry = next(line.split(":") for line in (tmp_path / "etc/passwd").read_text().splitlines() if line.startswith("puppet:"))
    assert (entry[5], entry[6]) == ("/var/lib/puppet", "/usr/sbin/nologin")
    for folder in ("etc/puppet/ssl", "var/lib/puppet", "var/log/puppet", "run/puppet"):
        assert (tmp_path / folder).stat().st_uid == int(entry[2]), folder


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that everybody can get to."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.slow
@needs_root
def test_the_masters_command_works_without_any_rights(elsewhere: Path) -> None:
    uid, strip = stripped()
    _, *command = command_of("puppet-master.service")
    for folder in ("etc/puppet/ssl", "var/lib/puppet", "var/log/puppet", "run/puppet"):
        (elsewhere / folder).mkdir(parents=True)
        os.chown(elsewhere / folder, uid, uid)
    code = elsewhere / "etc/puppet/code/environments/production/manifests"
    code.mkdir(parents=True)
    (code / "site.pp").write_text("notify { 'x': }\n")
    words = [str(elsewhere) + word if word.startswith("/") else word for word in command]
    words += [
        "--bindaddress",
        "127.0.0.1",
        "--masterport",
        "0",
        "--certname",
        "localhost",
        "--key_type",
        "ec",
        *(["--user", "root"] if uid == 0 else []),
    ]
    python = [*strip, sys.executable, "-I", "-c", LAUNCHER, sys.executable, "-I", "-m", "bunraku"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(elsewhere / "notify"))
        (elsewhere / "notify").chmod(0o777)
        manager.settimeout(60)
        environ = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "NOTIFY_SOCKET": str(elsewhere / "notify")}
        master = subprocess.Popen([*python, *words], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/")
        try:
            assert b"READY=1" in manager.recv(4096)
            compiled = subprocess.run(
                [*python, *words, "--compile", "localhost"], env=environ, capture_output=True, timeout=60, check=False
            )
            assert compiled.returncode == 0, compiled
            assert b'"title":"x"' in compiled.stdout.replace(b" ", b"")
            master.send_signal(signal.SIGTERM)
            assert master.wait(60) == 0
        finally:
            master.kill()
            master.wait(10)
            if master.stdout is not None:
                master.stdout.close()
