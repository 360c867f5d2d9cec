"""
The pair at work: a master, an agent's two runs, a query, and a preview of a change on a hundred machines.

`make demo` runs it. The site of the runs is `demo/site`, the control repository of the preview is made of `demo/fleet`: its branch `main`,
and a branch with a change that looks harmless. Everything listens on 127.0.0.1, lies in a temporary folder and is gone at the end, but for
the page of the preview.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

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
LEFT_OUT = re.compile(r"(Info|Warning): |Notice: (/File\[…/agent|The page is|.*/content: $)|\[[# ]+\] |\s*$")
"""What a command prints beside what the story is about: plugins that are fetched, headings of diffs, progress."""

NODE = "web01.example.com"
BRANCH = "tls-and-certificates"
ROLES = {"web": 30, "database": 8, "mail": 12, "build": 50}  # machines
PAGE = ROOT / "build" / "demo" / "preview.html"
OLD_SSHD = "PermitRootLogin yes\nPasswordAuthentication yes\n"

MASTER = "A master starts, with a new certificate authority"
FIRST = f"{NODE} gets a certificate and its first catalog"
SECOND = "The second run finds nothing to do"
QUERY = "Facts, catalog and report are in the master's store"
PREVIEW = "Before a change of TLS settings is deployed: what would it do to 100 machines?"
NEXT = "Everything has stopped. What to type next"
NO_PREVIEW = "No preview of a change: Git is missing"


class Failed(Exception):
    """The demo did not go as it should; the text says where."""


def say(text: str = "") -> None:
    print(text, flush=True)


def title(text: str) -> None:
    bold = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    say(f"\n{bold[0]}== {text}{bold[1]}")


@contextmanager
def master(root: Path) -> Iterator[tuple[int, Path]]:
    """Start a master on a free port; yield the port and its log. It is stopped as an administrator would stop it."""
    shutil.copytree(DEMO / "site", root / "master/code/environments/production")
    log = root / "master.log"
    command = [
        *PUPPET, "master", "--no-daemonize", "--verbose", "--bindaddress", "127.0.0.1", "--masterport", "0", "--user", "root",
        "--certname", "localhost", "--autosign", "true", *places(root / "master"),
    ]  # fmt: skip
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        port = listening(process, log)
        say(f"   It has made its keys and listens on 127.0.0.1 port {port} after {time.monotonic() - began:.1f} s.")
        yield port, log
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


def run(root: Path, words: Sequence[str], hidden: Sequence[str], wanted: int, **environ: str) -> float:
    """Run a command, of which some options are not shown, and show what it prints of the story; return the seconds."""
    say(f"   $ {shlex.join(['puppet', *words])}")
    began = time.monotonic()
    done = subprocess.run(
        [*PUPPET, *words, *hidden], cwd=ROOT, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **environ},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=COMMAND,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        line = SUM.sub(r"\1…", line.replace(str(root), "…"))
        if not LEFT_OUT.match(line):
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


def control_repository(folder: Path) -> None:
    """Make the repository with its two branches."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=An administrator", "-c", "user.email=ops@example.com")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, timeout=60)

    shutil.copytree(DEMO / "fleet/main", folder)
    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=What is deployed")
    git("checkout", "--quiet", "-b", BRANCH)
    # With the time of now, which Git looks at.
    shutil.copytree(DEMO / "fleet/change", folder, dirs_exist_ok=True, copy_function=shutil.copy)
    git("add", "--all")
    git("commit", "--quiet", "--message=Modern TLS, certificates, another password, a port for mail")


def store_facts(folder: Path) -> None:
    """Store the facts of each machine."""
    folder.mkdir(parents=True)
    for role, count in ROLES.items():
        for number in range(1, count + 1):
            name = f"{role}{number:02}.example.com"
            networking = {"fqdn": name, "hostname": name.partition(".")[0], "domain": "example.com"}
            values = {"role": role, "region": ("north", "south")[number % 2], "networking": networking, "os": {"family": "Debian"}}
            stored = {"name": name, "values": values, "timestamp": "2026-11-20T12:00:00+00:00", "expiration": "2036-11-20T12:00:00+00:00"}
            (folder / f"{name}.yaml").write_text(json.dumps(stored))


def preview(root: Path) -> None:
    """Preview the change of the control repository."""
    title(PREVIEW)
    control_repository(root / "control")
    fleet = root / "fleet"
    store_facts(fleet / "var/yaml/facts")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    words = ["preview", "--repo", "control", "--from", "main", "--to", BRANCH, "--all"]
    hidden = ["--repo", str(root / "control"), "--html", str(PAGE), *places(fleet), "--no-storeconfigs", "--user", "root"]
    seconds = run(root, words, hidden, 6)
    say(f"   {seconds:.1f} s. The web servers get what was meant, but 6 mail servers would no longer compile.")


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
            say("Git is missing (Debian: apt install git): the preview of a change, which comes last, is left out.")
        title(MASTER)
        with master(root) as (port, log):
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
