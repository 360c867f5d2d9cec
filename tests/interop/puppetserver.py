"""puppetserver 7.9.5 or 8.7 with a site of its own: one for all tests, since a JVM takes its time to start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interop.peers import PUPPET_8, Release
from tests.interop.stage import SITE
from tests.support.ports import reserved_port
from tests.support.processes import Done, OurAgent, clean_environment, end, run

JAR = "/usr/share/puppetserver/puppetserver.jar"
CONF = "/etc/puppet/puppetserver"
TOOL = "/usr/bin/puppetserver"
ACCOUNT = "puppet"
START = 600.0  # seconds for puppetserver to answer
PLACES = ("conf", "code", "var", "run", "log")

AUTOSIGN = """#!/bin/sh
case "$1" in manual*) exit 1;; esac
"""
ENC = """#!/bin/sh
case "$1" in
  classified*) echo "{environment: testing, classes: {from_enc: {word: hello}}, parameters: {rack: r7}}";;
  unknown*) echo "no such node $1" >&2; exit 1;;
  *) echo "{}";;
esac
"""
FROM_ENC = 'class from_enc (String $word) { notify { "in ${server_facts[environment]}: ${word}, rack ${rack}": } }\n'
NODES = """
node /^(classified|reader|unknown)/ { notify { "here is ${environment}": } }
node /^failing/ { fail('not today') }
node /^tagged/ {
  file { $facts['stage_root']: ensure => directory, tag => 'wanted' }
  file { "${facts['stage_root']}/a": content => 'a', tag => 'wanted' }
  file { "${facts['stage_root']}/b": content => 'b', tag => 'other' }
}
node /^breaking/ {
  file { $facts['stage_root']: ensure => directory }
  if $facts['broken'] == 'yes' { fail('broken by a fact') }
  file { "${facts['stage_root']}/kept": content => 'kept' }
}
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """A puppetserver as its package installs it: on this machine, or (with `release`) on the system of a peer."""

    version: str
    release: Release | None = None

    def why_not(self) -> str:
        """Why it cannot be started here; '' when it can be tried."""
        if self.release is not None:
            return self.release.why_not()
        return "" if self.path(JAR).exists() else "puppetserver is not installed"

    def path(self, inside: str) -> Path:
        """A file of the system that it is installed on."""
        return self.release.image / inside.lstrip("/") if self.release else Path(inside)

    def command(self, folder: Path, *argv: str) -> list[str]:
        """The words that start a program beside it, with `folder` where it is here."""
        return self.release.command(folder, *argv) if self.release else list(argv)

    def as_its_user(self, folder: Path, *argv: str) -> list[str]:
        """The same as the user that the package made for the server, which gets `folder`; the process stays the same one."""
        if os.geteuid() != 0:
            return list(argv)
        (line,) = (each for each in self.path("/etc/passwd").read_text().splitlines() if each.startswith(f"{ACCOUNT}:"))
        user, group = (int(part) for part in line.split(":")[2:4])
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, user, group)
        return self.command(folder, "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *argv)


PUPPETSERVER_7 = Installed("7.9.5")
PUPPETSERVER_8 = Installed("8.7.0", PUPPET_8)
PUPPETSERVERS = (PUPPETSERVER_7, PUPPETSERVER_8)


@dataclass(slots=True)
class RealServer:
    installed: Installed
    root: Path
    port: int
    pid: int

    @property
    def reports(self) -> Path:
        return self.root / "var" / "reports"

    @property
    def asked(self) -> list[str]:
        """`METHOD path STATUS` of every request so far."""
        log = (self.root / "access.log").read_text()
        return [f"{method} {path.partition('?')[0]} {status}" for method, path, status in re.findall(r'"(\S+) (\S+) HTTP/1.1" (\d+)', log)]

    def agent(self, root: Path, name: str, facts: Mapping[str, str] | None = None) -> OurAgent:
        """Our agent of this server."""
        (root / name).mkdir()
        given = {"stage_root": str(root / name / "stage"), **(facts or {})}
        return OurAgent(root / name, self.port, f"{name}.example.com", facts=given)

    def ca(self, *words: str) -> Done:
        """`puppetserver ca`, the tool that comes with it."""
        words = (TOOL, "ca", *words, "--config", str(self.root / "conf/puppet.conf"))
        return run(self.installed.command(self.root, *words), clean_environment())


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def configured(installed: Installed, root: Path, port: int, jrubies: int, *, programs: bool = True) -> None:
    """
    Debian's configuration, with everything below `root`, on one port of 127.0.0.1.

    Args:
        programs: whether it asks a classifier, a program that signs, and those that know versions of code; without, it signs all.
    """
    conf = installed.path(CONF)
    shutil.copytree(conf / "conf.d", root / "conf.d")
    for name in ("conf", "var", "run", "log"):
        (root / name).mkdir()
    shutil.copy(conf / "request-logging.xml", root / "access.xml")
    versioned = f'versioned-code: {{ code-id-command: "{root}/id", code-content-command: "{root}/content" }}'
    edits = {
        "conf.d/puppetserver.conf": [(rf"server-{name}-dir:.*", f"server-{name}-dir: {root}/{name}") for name in PLACES]
        + [(r"\A", f"{versioned}\n" if programs else ""), ("#max-active-instances: 1", f"max-active-instances: {jrubies}")],
        "conf.d/webserver.conf": [
            (r"ssl-port:.*", f"ssl-port: {port}"),
            (r"ssl-host:.*", "ssl-host: 127.0.0.1"),
            (r"access-log-config:.*", f"access-log-config: {root}/access.xml"),
        ],
        "conf.d/ca.conf": [("allow-auto-renewal: false", "allow-auto-renewal: true")],  # 8 has it
        "access.xml": [(r"/var/log/puppetserver/puppetserver-access", f"{root}/access")],
    }
    for name, changes in edits.items():
        text = (root / name).read_text()
        for pattern, wanted in changes:
            text = re.sub(pattern, wanted, text)
        (root / name).write_text(text)
    settings = {"reports": "store"}  # Debian 13 stores none unless it is told to
    settings |= {f"{place}dir": f"{root}/{place}" for place in ("var", "log", "run", "code", "ssl", "ca")}
    settings |= {"certname": "localhost", "dns_alt_names": "localhost", "server": "localhost", "serverport": str(port)}
    settings |= {"autosign": "true", "pidfile": f"{root}/run/server.pid"}
    if programs:
        settings |= {"autosign": f"{root}/autosign", "node_terminus": "exec", "external_nodes": f"{root}/enc"}
    (root / "conf" / "puppet.conf").write_text("[main]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    texts = {
        "autosign": AUTOSIGN,
        "enc": ENC,
        "id": "#!/bin/sh\necho v1\n",
        "content": f'#!/bin/sh\ntest "$2" = v1 && exec cat "{root}/code/environments/$1/$3"\n',
    }
    for name, text in texts.items():
        _write(root / name, text, 0o755)
    environments = root / "code" / "environments"
    site = {name: text.replace("from_ruby']", "kernel']") for name, text in SITE.items()}
    for name, text in site.items():
        _write(environments / "production" / name, text + (NODES if name == "manifests/site.pp" else ""))
        _write(environments / "plain" / name, text)
    _write(environments / "plain" / "environment.conf", "static_catalogs = false\n")
    for environment in ("production", "testing"):
        _write(environments / environment / "modules/from_enc/manifests/init.pp", FROM_ENC)
    _write(environments / "testing" / "manifests/site.pp", 'notify { "here is ${environment}": }\n')
    _write(environments / "testing" / "modules/from_enc/facts.d/only_testing.txt", "only_testing=yes\n")


@contextmanager
def started(root: Path, installed: Installed = PUPPETSERVER_7, *, jrubies: int = 1, heap: str = "1g") -> Iterator[RealServer]:
    """A running puppetserver with a site below `root`, which its own user can enter; it is ended whatever happens."""
    with reserved_port() as port:
        configured(installed, root, port, jrubies)
        with running(root, port, installed, heap=heap) as server:
            yield server


@contextmanager
def running(
    root: Path, port: int, installed: Installed = PUPPETSERVER_7, *, heap: str = "1g", network_of: int | None = None
) -> Iterator[RealServer]:
    """
    A running puppetserver on what is configured below `root`; it is ended whatever happens.

    Args:
        network_of: the id of a process in whose network it listens; None: this machine's.
    """
    command = installed.as_its_user(
        root,
        "/usr/bin/java", "-Xms512m", f"-Xmx{heap}",
        "-Djruby.logger.class=com.puppetlabs.jruby_utils.jruby.Slf4jLogger", "-Dlogappender=STDOUT",
        "-Djruby.lib=/usr/share/jruby/lib", "-jar", JAR,
        "--config", str(root / "conf.d"), "--bootstrap-config", f"{CONF}/services.d",
    )  # fmt: skip
    if network_of is not None:
        command = ["nsenter", f"--target={network_of}", "--net", "--", *command]
    with (root / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd="/", env=clean_environment(HOME=str(root)), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START
        while b"is now ready to handle requests" not in (root / "output").read_bytes():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((root / "output").read_text("utf-8", "replace")[-4000:])
            time.sleep(0.1)
        yield RealServer(installed, root, port, process.pid)
    finally:
        end(process)
