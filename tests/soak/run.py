"""
A master under load with things going wrong around it, for minutes: `make soak`. Ends with 1 when something grew or was lost.

Simulated agents loop through a proxy, newcomers get certificates, a tenth of all requests is bad. Meanwhile, in turn: compiling
processes are killed, connections cut, HUP sent, disks filled, the clock put an hour ahead and back. Then many agents loop while
the master is restarted again and again. Disks need root (a tmpfs in a mount namespace), clocks a C compiler; what is
missing is said, and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.soak.faults import Clock, Faults, SmallDisk
from tests.soak.load import SITE, Load
from tests.soak.outcome import complaints, litter, lost_reports, odd_certificates
from tests.soak.proxy import proxy
from tests.soak.restarts import restarted
from tests.soak.standing import BETWEEN, LOOKS, QUIET, SLACK, Sample, Watch, grown
from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, master
from tests.support.simulated_agents import Record

GRACE = 3.0  # seconds after a fault in which a run may still suffer from it
SHOWN = 10  # problems of a kind
SHORTEST = 3.0  # seconds from the start of one fault to that of the next
WARM = 0.25  # of the wanted requests: before them the heap is not yet as large as it gets
ROUNDS = 20  # of all faults, after the warm-up; after each all stand still and are looked at, two are a tenth
UNSHARE = ("unshare", "--mount", "--propagation", "private")
MEMO = "2MiB"  # of catalogs that a process keeps: so few that it is full after the warm-up
INSIDE = "BUNRAKU_SOAK_NAMESPACE"  # set in the mount namespace


class Verdict:
    """What was found wrong, printed as it is found."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def of(self, title: str, problems: Iterable[str], well: str) -> None:
        found = list(problems)
        print(f"  {title:<52}{'FAILED' if found else 'ok'}  {f'{len(found)} problems' if found else well}", flush=True)
        for each in found[:SHOWN]:
            print(f"      {each}", flush=True)
        if found:
            self.failed.append(title)


class Soak:
    """One master, everything that is done to it, and what became of it."""

    def __init__(self, process: MasterProcess, folder: Path, options: argparse.Namespace) -> None:
        self.process = process
        self.folder = folder
        self.options = options
        self.chance = random.Random(options.seed)
        self.port = int(process.settings["metrics_port"])
        self.verdict = Verdict()

    def enough(self, load: Load, began: float) -> bool:
        """Whether time and requests are up; for the requests it goes on, but not for ever."""
        spent = time.monotonic() - began
        wanted: float = self.options.seconds
        return spent >= wanted * 2 or (spent >= wanted and load.asked >= int(self.options.requests))

    async def run(self, disks: list[SmallDisk], clock: Clock | None) -> None:
        async with proxy(self.process.port) as between:
            load = Load(self.process, between.port, self.folder, self.options.agents, self.chance)
            agents = await asyncio.to_thread(load.prepare)
            faults = Faults(self.process, between, self.chance, disks, clock)
            watch = Watch(self.process, self.port)
            began = time.monotonic()
            since: float | None = None
            every = max(SHORTEST, (self.options.seconds - self.options.warmup) / ROUNDS - LOOKS * BETWEEN) / len(faults.all())
            over = asyncio.Event()
            loading = asyncio.create_task(load.run(agents, over))
            try:
                load.go.set()
                while not loading.done() and not self.enough(load, began):
                    await faults.happen(every)
                    load.go.clear()
                    sample = await watch.look()
                    spent = time.monotonic() - began
                    print(f"  {spent:5.0f} s  {load.asked} requests; {said(sample)}", flush=True)
                    if since is None and spent >= self.options.warmup and load.asked >= self.options.requests * WARM:
                        since = time.monotonic()
                    load.go.set()
                over.set()
                await loading
            finally:
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
        await self.judge(load, faults, watch, since or began, time.monotonic() - began)
        again = Record()
        if self.options.restarts:
            names = [f"restart{number:03}.test" for number in range(self.options.restart_agents)]
            problems, well = await restarted(self.process, self.folder, names, self.options.restarts, again, self.chance)
            self.verdict.of("R-17 agents loop while the master is restarted", problems, well)
        await self.kept(load, again)

    async def judge(self, load: Load, faults: Faults, watch: Watch, since: float, seconds: float) -> None:
        """What can be told while the master runs."""
        total = load.asked
        asked = f"{total} requests in {seconds:.0f} s, {load.bad / total:.0%} of them bad; {len(load.record.runs)} runs of agents"
        print(f"{asked}; {len(load.signed)} certificates, {len(load.cleaned)} taken back")
        for (name, rows), times in Counter((fault.name, fault.rows) for fault, _, _ in faults.happened).items():
            print(f"  {times} × {name} ({rows})")
        seen = f"; {faults.stepped} times the master's clock was seen to be wrong" if faults.clock else ""
        print(f"  {faults.killed} processes killed, {faults.proxy.cut} connections cut{seen}")
        excused: Counter[str] = Counter()
        blamed: list[str] = []
        for failure in load.failures:
            fault = faults.excuse(failure.what, failure.began, failure.ended, GRACE)
            if fault is not None:
                excused[fault.name] += 1
            else:
                blamed.append(failure.what)
        well = ", ".join(f"{number} while {name}" for name, number in excused.items()) or "none"
        self.verdict.of("R-20, R-24, R-28, R-31 what failed without a reason", blamed, f"with one: {well}")
        before, after = watch.tenths(since)
        more = grown(before, after, self.options.growth / 100)
        print(f"  {'':<36}{'first tenth':>14}{'last tenth':>14}{'growth':>9}")
        for what in SLACK:
            growth = f"{after[what] / before[what] - 1:+.1%}" if before[what] else ""
            print(f"  {what:<36}{before[what]:>14.1f}{after[what]:>14.1f}{growth:>9}")
        wanted = self.options.requests
        title = f"R-21 nothing grows over {total} mixed requests"
        self.verdict.of(title, [f"more {what} than {self.options.growth:g} %" for what in more], f"at most {self.options.growth:g} %")
        self.verdict.of("R-21 as many requests as wanted", [f"{total} of {wanted}"] if total < wanted else [], f"{wanted} wanted")
        left = [f"{watch.crowded} times somebody was connected after {QUIET:g} s"] if watch.crowded else []
        self.verdict.of("connections end when their agents go", left, f"{len(watch.samples) // LOOKS} times")

    async def kept(self, load: Load, again: Record) -> None:
        """What can be told when the master has stopped."""
        code = await asyncio.to_thread(self.process.stop)
        self.verdict.of("R-15 the master stops when it is told to", [f"exit code {code}"] if code else [], "exit code 0")
        taken = sum(len(each) for record in (load.record, again) for each in record.reports.values())
        lost = await asyncio.to_thread(lambda: list(lost_reports(self.process, load.record, again)))
        self.verdict.of("every report that was taken is there and readable", lost, f"{taken} reports")
        odd = odd_certificates(self.process.ca, load.signed, load.cleaned)
        self.verdict.of("no serial twice, inventory and signed/ agree", odd, f"{len(load.signed)} certificates")
        self.verdict.of("no temporary file is left", litter(self.process.root), "none")
        self.verdict.of("the log has no incident", complaints(self.process.log), f"{len(self.process.log) // 1000} kB of log")


def said(sample: Sample) -> str:
    return ", ".join(f"{sample[what]:.0f} {what}" for what in SLACK)


def soaked(options: argparse.Namespace) -> int:
    folder = Path(tempfile.mkdtemp(prefix="bunraku-soak-"))
    disks: list[SmallDisk] = []
    mounted: list[SmallDisk] = []
    try:
        if os.environ.get(INSIDE):
            disks = [SmallDisk(folder / "master" / name) for name in ("var", "conf/ssl")]
            for disk in disks:
                disk.mount()
                mounted.append(disk)
        else:
            print("NOT DONE: full disks, R-05, R-25; they need root and unshare(1), for a mount namespace")
        environ = {"TMPDIR": str(folder / "master" / "tmp")}
        (folder / "master" / "tmp").mkdir(parents=True)
        clock = Clock.build(folder)
        if clock:
            environ |= clock.environ
        else:
            print("NOT DONE: clock steps, R-28; they need a C compiler, cc")
        (folder / "agents").mkdir()
        with reserved_port() as port, master(folder / "master", autosign="true", metrics_port=str(port), catalog_memo=MEMO) as process:
            process.environ = environ
            process.write(SITE)
            process.start()
            (folder / "agents" / "ca.pem").write_bytes((process.ca / "ca_crt.pem").read_bytes())
            soak = Soak(process, folder / "agents", options)
            uvloop.run(soak.run(disks, clock))
            if options.keep:
                (options.keep / "master.log").write_text(process.log)
    finally:
        for disk in mounted:
            disk.unmount()
        shutil.rmtree(folder)
    print("FAILED: " + "; ".join(soak.verdict.failed) if soak.verdict.failed else "all went well")
    return 1 if soak.verdict.failed else 0


def can_mount() -> bool:
    """Whether this account may have a mount namespace of its own."""
    return shutil.which(UNSHARE[0]) is not None and subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="of load with faults (default 600)")
    parser.add_argument(
        "--warmup", type=float, default=60, help="seconds at the start that do not count, nor does a quarter of --requests (default 60)"
    )
    parser.add_argument("--agents", type=int, default=24, help="that loop meanwhile (default 24)")
    parser.add_argument("--requests", type=int, default=100_000, help="at least, for R-21; at most twice as long for it (default 100000)")
    parser.add_argument("--growth", type=float, default=5, metavar="PERCENT", help="that is none (default 5)")
    parser.add_argument("--restart-agents", type=int, default=500, help="for R-17 (default 500)")
    parser.add_argument("--restarts", type=int, default=5, help="for R-17; 0: none (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="of what is left to chance (default 0)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the master's log is put at the end")
    options = parser.parse_args()
    if not os.environ.get(INSIDE) and can_mount():
        os.environ[INSIDE] = "yes"
        os.execvp(UNSHARE[0], [*UNSHARE, sys.executable, __file__, *sys.argv[1:]])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, options.restart_agents + 4 * options.agents + 256)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(hard, wanted), hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # which ends the master, too
    print(f"soaking one master for {options.seconds:g} s, {options.agents} agents, seed {options.seed}", flush=True)
    return soaked(options)


if __name__ == "__main__":
    sys.exit(main())
