"""
The pair at work: a master with a fresh CA and two runs of an agent, on this machine, in a temporary directory.

The site is `demo/site`, and the module `examples/modules/dns`, whose zones live at a DNS provider that runs here as well.
`make demo` runs this, then `fleet.py`. Everything listens on 127.0.0.1 and is gone when it ends.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

DEMO = Path(__file__).resolve().parent
ROOT = DEMO.parent
sys.path.insert(0, str(ROOT))
from examples.hoster import Hoster  # noqa: E402

PUPPET = (sys.executable, "-m", "bunraku")  # `puppet` of this checkout
START = 60.0  # seconds for the master to listen
RUN = 120.0  # seconds for one run
LISTENING = re.compile(r"Serving Puppet on (\S+) port (\d+)")
REQUEST = re.compile(r'"(\w+) (\S+)" (\d+) (\d+) ([\d.]+)$')
LONG = re.compile(r"\{sha256\}(\w{8})\w{56}|((?:[0-9A-F]{2}:){3}[0-9A-F]{2})(?::[0-9A-F]{2}){28}")  # sums and fingerprints


class Failed(Exception):
    """The demo did not go as it should; the text says where."""


class Run(NamedTuple):
    """What is told of an agent's run."""

    seconds: float  # of the whole command
    summary: dict[str, dict[str, float]]
    requests: int  # that the master answered
    asked: int  # of the DNS provider


def say(text: str = "") -> None:
    print(text, flush=True)


def title(text: str) -> None:
    bold = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    say(f"\n{bold[0]}== {text}{bold[1]}")


@contextmanager
def dns_provider() -> Iterator[Hoster]:
    """A company that hosts DNS zones, on a free port."""
    hoster = Hoster()
    thread = threading.Thread(target=hoster.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hoster
    finally:
        hoster.shutdown()
        hoster.server_close()
        thread.join()


def code(root: Path, hoster: Hoster) -> None:
    """What an administrator keeps below `code`: the site, the example's modules for all environments, a secret in the data."""
    site = root / "master" / "code" / "environments" / "production"
    shutil.copytree(DEMO / "site", site)
    shutil.copytree(ROOT / "examples" / "modules", root / "master" / "code" / "modules")
    (site / "data").mkdir()
    (site / "data" / "common.yaml").write_text(json.dumps({"dns_provider": {"url": hoster.url, "token": hoster.token}}))


@contextmanager
def master(root: Path) -> Iterator[tuple[int, Path]]:
    """A master on a free port; gives the port and its log. Stopped as an administrator would."""
    log = root / "master.log"
    command = [
        *PUPPET, "master", "--no-daemonize", "--verbose", "--bindaddress", "127.0.0.1", "--masterport", "0",
        "--certname", "localhost", "--autosign", "true", "--confdir", str(root / "master"), "--vardir", str(root / "master" / "var"),
        "--rundir", str(root / "master" / "run"), "--logdir", str(root / "master" / "log"), "--user", "root",
    ]  # fmt: skip
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        port = listening(process, log)
        say(f"   it has a CA and its own certificate, and listens on 127.0.0.1 port {port} after {time.monotonic() - began:.2f} s")
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


def listening(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if match := LISTENING.search(log.read_text("utf-8", "replace")):
            return int(match[2])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise Failed(f"the master did not start:\n{log.read_text('utf-8', 'replace')}")


def agent(root: Path, port: int) -> tuple[int, float]:
    """One run, its output shown as it comes; exit code and seconds."""
    home = root / "agent"
    command = [
        *PUPPET, "agent", "--onetime", "--test", "--steps", "--server", "localhost", "--masterport", str(port),
        "--certname", "agent.example.com", "--confdir", str(home), "--vardir", str(home / "var"),
        "--rundir", str(home / "run"), "--logdir", str(home / "log"),
    ]  # fmt: skip
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "FACTER_demo_root": str(root / "machine")}
    say("   $ puppet agent --onetime --test --server localhost --masterport " + str(port))
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            say("   | " + LONG.sub(lambda long: (long[1] or long[2]) + "…", line.rstrip("\n").replace(str(root), "…")))
        code = process.wait(RUN)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return code, time.monotonic() - began


def requests(log: Path, since: int) -> list[tuple[str, str, str, float]]:
    """(method, path, status, seconds) of what the master answered since an offset of its log."""
    text = log.read_bytes()[since:].decode("utf-8", "replace")
    found = (REQUEST.search(line) for line in text.splitlines())
    return [(match[1], match[2], match[3], float(match[5])) for match in found if match]


def told(answered: list[tuple[str, str, str, float]]) -> Iterator[str]:
    """A line a request; of several files in a row, one for all."""
    for (method, kind, status), several in groupby(answered, lambda each: (each[0], "/".join(each[1].split("/")[:5]), each[2])):
        rows = list(several)
        path = rows[0][1] if len(rows) == 1 else f"{kind}/…  ({len(rows)} times)"
        yield f"{method:<5} {path:<62} {status}  {sum(row[3] for row in rows) * 1000:6.1f} ms"


def summary(root: Path) -> dict[str, dict[str, float]]:
    import yaml

    data: dict[str, dict[str, float]] = yaml.safe_load((root / "agent" / "var" / "public" / "last_run_summary.yaml").read_text())
    return data


def one_run(root: Path, port: int, log: Path, hoster: Hoster, wanted: int) -> Run:
    since, asked = log.stat().st_size, len(hoster.asked)
    code, seconds = agent(root, port)
    answered = requests(log, since)
    say("   what the master answered:")
    for line in told(answered):
        say(f"     {line}")
    say("   what the DNS provider was asked for:")
    for line in hoster.asked[asked:]:
        say(f"     {line}")
    if code != wanted:
        raise Failed(f"the run ended with {code}, not with {wanted}; the master's log:\n{log.read_text()}")
    return Run(seconds, summary(root), len(answered), len(hoster.asked) - asked)


def table(rows: list[tuple[str, Run]]) -> None:
    """What two runs did, side by side."""
    say(f"   {'':<28}" + "".join(f"{name:>14}" for name, _ in rows))
    lines = [
        ("requests to the master", lambda run: f"{run.requests}"),
        ("requests to the provider", lambda run: f"{run.asked}"),
        ("resources", lambda run: f"{run.summary['resources']['total']:.0f}"),
        ("changed", lambda run: f"{run.summary['resources'].get('changed', 0):.0f}"),
        *((name.replace("_", " "), lambda run, name=name: f"{run.summary['time'].get(name, 0) * 1000:.0f} ms")
          for name in ("plugin_sync", "fact_generation", "config_retrieval", "catalog_application")),
        ("whole command", lambda run: f"{run.seconds * 1000:.0f} ms"),
    ]  # fmt: skip
    for label, value in lines:
        say(f"   {label:<28}" + "".join(f"{value(run):>14}" for _, run in rows))


def outcome(root: Path, hoster: Hoster) -> None:
    """What is there after the runs: reports, files, zones."""
    (report,) = list((root / "master" / "var" / "reports").iterdir())
    say(f"\n   {len(list(report.iterdir()))} reports of {report.name} are stored, and this is what was made on the machine:")
    for path in sorted((root / "machine").rglob("*")):
        if path.is_file():
            text = path.read_text().strip().splitlines()
            shown = json.dumps(text[0] if text else "", ensure_ascii=False) if path.stat().st_mode & 0o004 else "(mode 0600)"
            say(f"     {path.relative_to(root / 'machine')!s:<22} {shown}")
    say("   and at the DNS provider:")
    for zone, about in hoster.zones.items():
        say(f"     {zone:<22} zone of {about['email']}")
        for name, record in sorted(hoster.records.get(zone, {}).items()):
            host, _, kind = name.partition("/")
            value = record["value"]
            say(f"     {host:<22} {kind:<5} {', '.join(value) if isinstance(value, list) else value}")


def query(root: Path) -> None:
    """Ask the master's store, in PQL, which nodes run Debian."""
    question = 'inventory[certname, facts.os.release.full] { facts.os.family = "Debian" }'
    command = [*PUPPET, "query", question, "--table", "--url", f"unix:{root / 'master' / 'run' / 'store.sock'}"]
    say(f"   $ puppet query '{question}'")
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN)
    for line in (done.stdout + done.stderr).splitlines():
        say(f"   | {line}")
    if done.returncode != 0:
        raise Failed(f"the query ended with {done.returncode}")


def main() -> int:
    root = Path(tempfile.mkdtemp(prefix="bunraku-demo-"))
    try:
        if not shutil.which("git"):
            say("Git is missing (Debian: apt install git): the preview of a change, which comes last, is left out.")
        with dns_provider() as hoster:
            title("A master starts, with a fresh certificate authority")
            code(root, hoster)
            with master(root) as (port, log):
                say(f"   its manifests manage files, and a DNS zone at a provider that runs here as well: {hoster.url}, no zones yet")
                title("The agent's first run: it gets a certificate and a catalog, applies that, and reports")
                (root / "machine").mkdir()
                (root / "machine" / "motd").write_text("Welcome.\n  * Nobody was here yet.\n")  # so that there is a change to show
                first = one_run(root, port, log, hoster, 2)
                title("The agent's second run: nothing to do")
                second = one_run(root, port, log, hoster, 0)
                title("A query to the master's store: which nodes run Debian?")
                query(root)
            title("The two runs, side by side")
            table([("first", first), ("second", second)])
            outcome(root, hoster)
        return 0
    except Failed as err:
        say(f"\nThe demo failed: {err}")
        return 1
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
