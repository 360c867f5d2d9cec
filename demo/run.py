"""
The pair at work: a master, an agent's two runs, a query, a preview of a change on a hundred machines, and its rollout.

`make demo` runs it. The site of the runs is `demo/site`, the control repository of the change is made of `demo/fleet`: its branch `main`,
and a branch with a change that looks harmless. Everything listens on 127.0.0.1, lies in a temporary folder and is gone at the end, but for
the page of the preview.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

from certs import certificates, keys
from certs.files import bundles
from certs.keys import KeyKind
from master.rollouts.waves import place_of

DEMO = Path(__file__).resolve().parent
ROOT = DEMO.parent
PUPPET = (sys.executable, "-m", "bunraku")  # `puppet` of this checkout
START = 60.0  # seconds for the master to listen
COMMAND = 300.0  # seconds for one command
WIDTH = 110
STORE = "master/run/store.sock"
LONGEST = 107  # bytes that the path of a socket may have
LISTENING = re.compile(r"Serving Puppet on (\S+) port (\d+)")
SUM = re.compile(r"\{sha256\}(\w{8})\w{56}")
LEFT_OUT = re.compile(
    r"(Info|Warning): |Notice: (/File\[…/agent|The page is|.*/content: $|.*/(motd|aliases\.sh)\])|(---|\+\+\+|@@) |\[[# ]+\] "
    r"|from [0-9a-f]{40} to|[- ]*$"
)
"""What a command prints beside what the story is about: plugins that are fetched, headings of diffs, progress, versions."""

ROLES = {"web": 30, "database": 8, "mail": 12, "build": 50}
NAMES = [f"{role}{number:02}.example.com" for role, count in ROLES.items() for number in range(1, count + 1)]
OLD = ("web21", "web23", "web27")
"""Their nginx does not know TLS 1.3, which no catalog tells."""

_FIRST_SERIAL = 1_000_000  # the CA does not come so far
_ERROR = 'nginx: [emerg] invalid value "TLSv1.3" in /etc/nginx/nginx.conf:6'

NODE = "web01.example.com"
BRANCH = "tls-and-certificates"
WAVES, FIRST_WAVES = "5%; 30%; 100%", (5, 30)
PAGE = ROOT / "build" / "demo" / "preview.html"
OLD_SSHD = "PermitRootLogin yes\nPasswordAuthentication yes\n"

MASTER = "A master starts, with a new certificate authority"
FIRST = f"{NODE} gets a certificate and its first catalog"
SECOND = "The second run finds nothing to do"
QUERY = "Facts, catalog and report are in the master's store"
PREVIEW = "Before a change of TLS settings is deployed: what would it do to 100 machines?"
ROLLOUT = "The change is mended, and reaches 100 machines in three waves. The second one fails"
NEXT = "Everything has stopped. What to type next"
NO_PREVIEW = "No preview and rollout of a change: Git is missing"


class Failed(Exception):
    """The demo did not go as it should; the text says where."""


def say(text: str = "") -> None:
    print(text, flush=True)


def title(text: str) -> None:
    bold = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    say(f"\n{bold[0]}== {text}{bold[1]}")


@contextmanager
def master(folder: Path, *options: str) -> Iterator[tuple[int, Path]]:
    """Start a master on a free port; yield the port and its log. It is stopped as an administrator would stop it."""
    log = folder.with_suffix(".log")
    command = [
        *PUPPET, "master", "--no-daemonize", "--verbose", "--bindaddress", "127.0.0.1", "--masterport", "0", "--user", "root",
        "--certname", "localhost", "--autosign", "true", *options, *places(folder),
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield listening(process, log), log
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = -9
    if code != 0:
        raise Failed(f"the master ended with {code}:\n{log.read_text()}")


def places(folder: Path) -> list[str]:
    """Return the options that put everything below a folder."""
    return [f"--confdir={folder}", *(f"--{name}dir={folder / name}" for name in ("var", "run", "log"))]


def listening(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if match := LISTENING.search(log.read_text("utf-8", "replace")):
            return int(match[2])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise Failed(f"the master did not start:\n{log.read_text('utf-8', 'replace')}")


def run(
    root: Path, words: Sequence[str], hidden: Sequence[str], wanted: int, left_out: str = "", *, most: int = 20, **environ: str
) -> float:
    """
    Run a command, of which some options are not shown, and show what it prints of the story; return the seconds.

    Args:
        wanted: Its exit code.
        left_out: Matches lines that are not shown, beside those of LEFT_OUT.
        most: The number of lines that are shown beside the last one.
    """
    say(f"   $ {shlex.join(['puppet', *words])}")
    began = time.monotonic()
    done = subprocess.run(
        [*PUPPET, *words, *hidden], cwd=ROOT, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **environ},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=COMMAND,
    )  # fmt: skip
    lines = [SUM.sub(r"\1…", line.replace(str(root), "…")) for line in done.stdout.splitlines()]
    told = [line for line in lines if not LEFT_OUT.match(line) and not (left_out and re.match(left_out, line))]
    for line in told if len(told) <= most + 2 else [*told[:most], "…", told[-1]]:
        say("   | " + (line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"))
    if done.returncode != wanted:
        raise Failed(f"the command ended with {done.returncode}, not with {wanted}:\n{done.stdout}")
    return time.monotonic() - began


def agent(root: Path, port: int, log: Path, wanted: int) -> None:
    """Run the agent once."""
    before = log.read_text("utf-8", "replace").count('" 200 ')
    hidden = [f"--masterport={port}", f"--certname={NODE}", *places(root / "agent")]
    seconds = run(root, ["agent", "--test", "--server", "localhost"], hidden, wanted, FACTER_demo_root=str(root / "machine"))
    requests = log.read_text("utf-8", "replace").count('" 200 ') - before
    say(f"   {seconds:.1f} s and {requests} requests, plugins included.")


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=An administrator", "-c", "user.email=ops@example.com")
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def control_repository(folder: Path) -> None:
    """Make the repository with its two branches."""
    shutil.copytree(DEMO / "fleet/main", folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=What is deployed")
    git(folder, "checkout", "--quiet", "-b", BRANCH)
    # With the time of now, which Git looks at.
    shutil.copytree(DEMO / "fleet/change", folder, dirs_exist_ok=True, copy_function=shutil.copy)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=Modern TLS, certificates, another password, a port for mail")


def facts_of(name: str) -> dict[str, object]:
    host = name.partition(".")[0]
    role, number = host[:-2], int(host[-2:])
    networking = {"fqdn": name, "hostname": host, "domain": "example.com"}
    return {"role": role, "region": ("north", "south")[number % 2], "networking": networking, "os": {"family": "Debian"}}


def store_facts(folder: Path) -> None:
    """Store the facts of each machine."""
    folder.mkdir(parents=True)
    times = {"timestamp": "2026-11-20T12:00:00+00:00", "expiration": "2036-11-20T12:00:00+00:00"}
    for name in NAMES:
        (folder / f"{name}.yaml").write_text(json.dumps({"name": name, "values": facts_of(name), **times}))


def store_reports(folder: Path) -> None:
    """Store a report of each machine, which has just run and changed nothing."""
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / f"{datetime.now(UTC):%Y%m%d%H%M}.yaml").write_text("status: unchanged\n")


class Machines:
    """
    The machines, with certificates that the CA of a master has signed.

    Args:
        ca: The folder of the CA.
        folder: Where keys and certificates are written.
    """

    def __init__(self, port: int, ca: Path, folder: Path) -> None:
        self.port, self.ca, self.folder = port, ca, folder
        folder.mkdir()
        authority, signing = bundles.certificate((ca / "ca_crt.pem").read_bytes()), keys.load(ca / "ca_key.pem")
        for serial, name in enumerate(NAMES, _FIRST_SERIAL):
            key = KeyKind("ec").generate()
            keys.save(folder / f"{name}.key", key)
            issued = certificates.leaf(
                name, key.public_key(), issuer=authority, issuer_key=signing, serial=serial, ttl=86_400, now=datetime.now(UTC)
            )
            (folder / f"{name}.pem").write_bytes(certificates.pem(issued))

    def run(self, names: Iterable[str], new: str) -> dict[str, str]:
        """Let machines run at the same time; return, by name, the version that each got. With the version `new` old ones fail."""
        names = sorted(names, key=lambda name: name.startswith(OLD))  # the old ones last, so that others are seen to succeed
        with ThreadPoolExecutor(8) as threads:
            return dict(zip(names, threads.map(partial(self._run, new=new), names), strict=True))

    def _run(self, name: str, new: str) -> str:
        context = ssl.create_default_context(cafile=str(self.ca / "ca_crt.pem"))
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        connection = http.client.HTTPSConnection("localhost", self.port, context=context, timeout=60)
        try:
            facts = quote(quote(json.dumps({"name": name, "values": facts_of(name)}), safe=""), safe="")
            form = f"environment=production&facts_format=application%2Fjson&facts={facts}"
            catalog = _asked(connection, "POST", f"catalog/{name}", form, "application/x-www-form-urlencoded")
            version = str(catalog["code_id"])
            _asked(connection, "PUT", f"report/{name}", json.dumps(_report(name, version, new)), "application/json")
            return version
        finally:
            connection.close()


def _asked(connection: http.client.HTTPSConnection, method: str, path: str, body: str, kind: str) -> dict[str, object]:
    headers = {"Content-Type": kind, "Accept": "application/json"}
    connection.request(method, f"/puppet/v3/{path}?environment=production", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{method} {path} was answered {answer.status}: {text.decode()}")
    data = json.loads(text)
    return data if isinstance(data, dict) else {}


def _report(name: str, version: str, new: str) -> dict[str, object]:
    has_failed = version == new and name.startswith(OLD)
    status = "failed" if has_failed else "changed" if version == new and name.startswith("web") else "unchanged"
    event = {"property": "ensure", "status": "failure", "message": _ERROR}
    nginx = {"title": "nginx", "resource": "Service[nginx]", "resource_type": "Service", "failed": True, "events": [event]}
    statuses = {"Service[nginx]": nginx} if has_failed else {}
    return {"host": name, "environment": "production", "status": status, "code_id": version, "resource_statuses": statuses}


def preview(root: Path) -> None:
    """Preview the change of the control repository."""
    title(PREVIEW)
    control_repository(root / "control")
    fleet = root / "fleet"
    store_facts(fleet / "var/yaml/facts")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    words = ["preview", "--repo", "control", "--from", "main", "--to", BRANCH, "--all"]
    hidden = ["--repo", str(root / "control"), "--html", str(PAGE), *places(fleet), "--no-storeconfigs", "--user", "root"]
    seconds = run(root, words, hidden, 6, most=9)
    say(f"   {seconds:.1f} s. The web servers get what was meant, but 6 mail servers would no longer compile.")


def rollout(root: Path) -> None:
    """Mend the change, and roll it out to machines of which some fail."""
    title(ROLLOUT)
    control, fleet = root / "control", root / "fleet"
    hidden = [*places(fleet), "--store", "none", "--user", "root", "--color", "false"]
    (fleet / "code/environments").mkdir(parents=True)
    store_reports(fleet / "var/reports")
    run(root, ["deploy", "production", "--ref", "main"], ["--repo", str(control), *hidden], 0, "Notice: ")
    with (control / "data/common.yaml").open("a") as data:
        data.write("profile::mail::port: 587\n")
    git(control, "commit", "--quiet", "--all", "--message=A port for mail in all regions")
    with master(fleet, "--store", "none", "--key_type", "ec", "--compile_workers", "1") as (port, _):
        machines = Machines(port, fleet / "ssl/ca", root / "machines")
        words = ["rollout", "start", "production", "--ref", BRANCH, "--waves", WAVES, "--on-failure", "rollback"]
        began = time.monotonic()
        run(root, words, ["--repo", str(control), "--wait", "0", *hidden], 0, r"Notice: |wave|\d+%")
        new = git(control, "rev-parse", BRANCH)
        got: dict[str, str] = {}
        for share in FIRST_WAVES:
            got |= machines.run([name for name in NAMES if place_of(name) < share], new)
        run(root, ["rollout", "status", "production"], hidden, 4)
        back = machines.run([name for name in got if got[name] == new], new)
        count = sum(version != new for version in back.values())
        say(f"   {time.monotonic() - began:.1f} s. At their next run, all {count} machines that had the change got the version before.")


def temporary_folder() -> Path:
    """Make a temporary folder, in /tmp where the path of the store's socket would be too long below $TMPDIR."""
    prefix = "bunraku-demo-"
    longest = Path(tempfile.gettempdir(), f"{prefix}12345678", STORE)
    return Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp" if len(os.fsencode(longest)) > LONGEST else None))


def main() -> int:
    with_git = shutil.which("git") is not None
    root = temporary_folder()
    try:
        if not with_git:
            say("Git is missing (Debian: apt install git): the preview and the rollout of a change are left out.")
        title(MASTER)
        shutil.copytree(DEMO / "site", root / "master/code/environments/production")
        began = time.monotonic()
        with master(root / "master") as (port, log):
            say(f"   It has made its keys and listens on 127.0.0.1 port {port} after {time.monotonic() - began:.1f} s.")
            (root / "machine/ssh").mkdir(parents=True)
            (root / "machine/ssh/sshd_config").write_text(OLD_SSHD)
            title(FIRST)
            agent(root, port, log, 2)
            title(SECOND)
            agent(root, port, log, 0)
            title(QUERY)
            question = 'inventory[certname, facts.os.name, facts.os.release.full] { facts.kernel = "Linux" }'
            run(root, ["query", question], ["--table", f"--url=unix:{root / STORE}"], 0)
        if with_git:
            preview(root)
            rollout(root)
        else:
            title(NO_PREVIEW)
        title(NEXT)
        if with_git:
            say(f"   Open the preview in a browser: {PAGE.as_uri()}")
        say("   source .venv/bin/activate && puppet help     # then docs/tutorial.md: your own first module, in half an hour")
        return 0
    except Failed as err:
        say(f"\nThe demo failed: {err}")
        return 1
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
