"""Real processes for tests: our master on a free port, and Debian's `puppet agent` beside it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.guard import marks
from tests.support.waiting import wait_until

START = 60.0  # seconds for a master to listen
RUN = 180.0  # seconds for one command
TRUST_RELOADED = "Reloaded the certificates and CRLs"
LISTENING = re.compile(r"Serving Puppet on (\S+) port (\d+)")
REAL_PUPPET = "/usr/bin/puppet"


def clean_environment(**extra: str) -> dict[str, str]:
    """What a command sees of this machine: a path and a locale; and the marks by which the run's guard finds it."""
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", **marks(), **extra}


@dataclass(slots=True)
class Done:
    """A command that has ended; `text` is what it printed on both streams."""

    code: int
    text: str

    def __contains__(self, part: str) -> bool:
        return part in self.text


@dataclass(slots=True)
class MasterProcess:
    """`puppet master` in a folder of its own, with `localhost` as its name; `settings` are its options."""

    root: Path
    settings: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    port: int = 0
    python: str = sys.executable
    _process: subprocess.Popen[bytes] | None = None

    @property
    def options(self) -> list[str]:
        """The options that put everything below `root`; for `puppet cert` too."""
        base = {
            "confdir": str(self.root / "conf"),
            "vardir": str(self.root / "var"),
            "rundir": str(self.root / "run"),
            "logdir": str(self.root / "log"),
            "certname": "localhost",
            "keylength": "2048",
            "user": "root",
            "store": "none",  # a process of its own, which few tests need
            **self.settings,
        }
        return [part for name, value in base.items() for part in (f"--{name}", value)]

    @property
    def site(self) -> Path:
        """The environment `production`."""
        return self.root / "conf" / "code" / "environments" / "production"

    @property
    def ca(self) -> Path:
        return self.root / "conf" / "ssl" / "ca"

    @property
    def reports(self) -> Path:
        return self.root / "var" / "reports"

    @property
    def log(self) -> str:
        return (self.root / "master.log").read_text("utf-8", "replace")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def write(self, files: Mapping[str, str]) -> None:
        """Put files into the environment `production`."""
        for name, text in files.items():
            path = self.site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def start(self) -> MasterProcess:
        """Start it and wait until it listens."""
        self.site.mkdir(parents=True, exist_ok=True)
        output = (self.root / "master.log").open("ab")
        before = output.tell()
        command = [self.python, "-I", "-m", "master", "--no-daemonize", "--verbose", "--bindaddress", "127.0.0.1"]
        self._process = subprocess.Popen(
            [*command, "--masterport", str(self.port), *self.options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=clean_environment(**self.environ),
            cwd="/",
        )
        output.close()
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            text = (self.root / "master.log").read_bytes()[before:].decode("utf-8", "replace")
            if match := LISTENING.search(text):
                self.port = int(match[2])
                return self
            if self._process.poll() is not None:
                raise RuntimeError(f"the master ended with {self._process.returncode}:\n{text}")
            time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"the master did not listen within {START} seconds:\n{self.log}")

    def until_logged(self, text: str) -> None:
        """Return when the log has a text; lines go through a queue."""
        wait_until(lambda: text in self.log, describe=lambda: self.log)

    def revoke(self, certname: str, *, command: str = "revoke") -> None:
        """Revoke a certificate (`command` may be `clean`, too) and return when the running master has read the new CRL."""
        crl = self.ca / "ca_crl.pem"
        content, before = crl.read_bytes(), self.log.count(TRUST_RELOADED)
        done = self.puppet("cert", command, "--force", certname)  # a test may mean that of the master
        assert done.code == 0, done.text
        if crl.read_bytes() == content:  # it was revoked already, perhaps just now
            self.until_trust_is_read()
        else:
            self._until_reloaded(before)

    def until_trust_is_read(self) -> None:
        """Return when the running master has read its certificates and CRLs as they are now."""
        certificate = self.ca.parent / "certs" / f"{self.settings.get('certname', 'localhost')}.pem"
        for _ in range(2):  # what it reads at the first change may be older than the call
            before, changed = self.log.count(TRUST_RELOADED), certificate.with_suffix(".changed")
            shutil.copy2(certificate, changed)
            with changed.open("ab") as file:
                file.write(b"\n")
            changed.replace(certificate)
            self._until_reloaded(before)

    def _until_reloaded(self, before: int) -> None:
        """Return when it has read its certificates and CRLs more than `before` times."""
        wait_until(lambda: self.log.count(TRUST_RELOADED) > before, describe=lambda: self.log)

    def stop(self) -> int:
        """Stop it as an administrator would; its exit code."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            self._process = None

    def kill(self) -> None:
        """Kill it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def wait(self) -> int:
        """Wait for it to end by itself."""
        assert self._process is not None
        code = self._process.wait(60)
        self._process = None
        return code

    def puppet(self, *arguments: str, failpoints: str = "") -> Done:
        """`puppet …` with this master's settings; `failpoints` as in `shared.failpoints`."""
        environ = clean_environment(BUNRAKU_FAILPOINTS=failpoints)
        return run([self.python, "-I", "-m", "bunraku", *arguments, *self.options], environ)


@contextmanager
def master(root: Path, *, python: str = sys.executable, **settings: str) -> Iterator[MasterProcess]:
    """A running master; it is ended whatever happens."""
    process = MasterProcess(root, settings, python=python)
    try:
        yield process
    finally:
        process.kill()


def end(process: subprocess.Popen[bytes], patience: float = 60.0) -> None:
    """Ask a process to end, and kill it when that takes longer than `patience` seconds."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(patience)


def run(argv: list[str], environ: Mapping[str, str], *, timeout: float = RUN) -> Done:
    done = subprocess.run(argv, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, cwd="/", check=False)
    return Done(done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace"))


@dataclass(slots=True)
class OurAgent:
    """Our `puppet agent` as a process, with directories of its own; EC keys, which are made at once."""

    root: Path
    port: int
    certname: str
    settings: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def options(self) -> list[str]:
        base = {name: str(self.root / name) for name in ("confdir", "vardir", "rundir", "logdir")}
        base |= {"server": "localhost", "masterport": str(self.port), "certname": self.certname, "key_type": "ec", **self.settings}
        return [part for name, value in base.items() for part in (f"--{name}", value)]

    @property
    def ssl(self) -> Path:
        return self.root / "confdir" / "ssl"

    @property
    def certificate(self) -> Path:
        return self.ssl / "certs" / f"{self.certname}.pem"

    @property
    def key(self) -> Path:
        return self.ssl / "private_keys" / f"{self.certname}.pem"

    @property
    def state(self) -> Path:
        return self.root / "vardir" / "state"

    def test(self, *more: str, failpoints: str = "") -> Done:
        """`puppet agent -t`; `failpoints` as in `shared.failpoints`."""
        argv = [sys.executable, "-I", "-m", "agent", "--test", *more, *self.options]
        return run(argv, clean_environment(BUNRAKU_FAILPOINTS=failpoints, **self._facts))

    def puppet(self, *arguments: str) -> Done:
        """`puppet …` with this agent's settings."""
        return run([sys.executable, "-I", "-m", "bunraku", *arguments, *self.options], clean_environment(**self._facts))

    @property
    def _facts(self) -> dict[str, str]:
        return {f"FACTER_{name}": value for name, value in self.facts.items()}


@dataclass(slots=True)
class RealAgent:
    """Debian's `puppet agent`, unmodified, with directories of its own."""

    root: Path
    port: int
    certname: str
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def options(self) -> list[str]:
        base = {name: str(self.root / name) for name in ("confdir", "vardir", "rundir", "logdir", "publicdir")}
        base |= {
            "ssldir": str(self.ssl),
            "server": "localhost",
            "serverport": str(self.port),
            "certname": self.certname,
            "color": "false",
            "keylength": "2048",
        }
        return [part for name, value in base.items() for part in (f"--{name}", value)]

    @property
    def ssl(self) -> Path:
        return self.root / "confdir" / "ssl"

    @property
    def state(self) -> Path:
        return self.root / "vardir" / "state"

    @property
    def certificate(self) -> Path:
        return self.ssl / "certs" / f"{self.certname}.pem"

    def test(self, *more: str) -> Done:
        """`puppet agent -t`"""
        return self.puppet("agent", "-t", *more)

    def puppet(self, *arguments: str) -> Done:
        environ = clean_environment(HOME=str(self.root), **{f"FACTER_{name}": value for name, value in self.facts.items()})
        return run([REAL_PUPPET, *arguments, *self.options], environ)


async def until_ended(pid: int) -> None:
    """Return when a process has ended."""
    while True:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        await asyncio.sleep(0.01)


def has_real_puppet() -> bool:
    """Whether Debian's puppet is installed (and is not ours)."""
    return Path(REAL_PUPPET).exists() and shutil.which("ruby") is not None and os.access(REAL_PUPPET, os.X_OK)
