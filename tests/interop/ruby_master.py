"""The real `puppet master` of a release that has one in Ruby (WEBrick), with a site of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.interop.peers import PUPPET_3, PUPPET_5, Release
from tests.support.ports import reserved_port
from tests.support.processes import Done, clean_environment, run

START = 120.0  # seconds for it to listen


@dataclass(slots=True)
class RubyMaster:
    """`puppet master` of that release below `root`; `settings` are its options."""

    root: Path
    settings: dict[str, str] = field(default_factory=dict)
    release: Release = PUPPET_5
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def options(self) -> list[str]:
        """The options that put everything below `root`; for `puppet cert` too."""
        base = {f"{place}dir": str(self.root / place) for place in ("conf", "var", "run", "log")}
        base |= {"ssldir": str(self.ssl), "environmentpath": str(self.site.parent)}
        if self.release is not PUPPET_3:
            base["codedir"] = str(self.root / "conf/code")
        base |= {"certname": "localhost", "dns_alt_names": "localhost", "keylength": "2048", "color": "false", "autosign": "true"}
        base |= {"user": "root", "group": "root", **self.settings}
        return [part for name, value in base.items() for part in (f"--{name}", value)]

    @property
    def ssl(self) -> Path:
        return self.root / "conf" / "ssl"

    @property
    def ca(self) -> Path:
        return self.ssl / "ca"

    @property
    def site(self) -> Path:
        """The environment `production`."""
        return self.root / "conf" / "code" / "environments" / "production"

    @property
    def reports(self) -> Path:
        return self.root / "var" / "reports"

    @property
    def log(self) -> str:
        return (self.root / "master.log").read_text("utf-8", "replace")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Put files into the environment `production`, or by `../` into another."""
        for name, content in files.items():
            path = self.site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    @property
    def environ(self) -> dict[str, str]:
        """What it sees of this machine."""
        return clean_environment(HOME=str(self.root))

    def start(self) -> Self:
        """Start it and wait until it listens."""
        (self.site / "manifests").mkdir(parents=True, exist_ok=True)
        words = ["puppet", "master", "--no-daemonize", "--verbose", "--bindaddress", "127.0.0.1", "--masterport", str(self.port)]
        with (self.root / "master.log").open("ab") as output:
            self._process = subprocess.Popen(
                self.release.command(self.root, *words, *self.options),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environ,
                cwd="/",
            )
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the master ended with {self._process.returncode}:\n{self.log}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the master did not listen within {START} seconds:\n{self.log}")

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process = None

    def puppet(self, *words: str) -> Done:
        """`puppet …` of this release with the master's settings."""
        return run(self.release.command(self.root, "puppet", *words, *self.options), clean_environment(HOME=str(self.root)))


@contextmanager
def ruby_master(root: Path, release: Release = PUPPET_5, **settings: str) -> Iterator[RubyMaster]:
    """A master below `root` that `start()` starts; it is ended whatever happens."""
    root.mkdir(parents=True, exist_ok=True)
    with reserved_port() as port:
        process = RubyMaster(root, settings, release, port)
        try:
            yield process
        finally:
            process.stop()
