"""
One recorded case in a throw-away Debian: an overlay over an image, with processes and a host name of its own.

    unshare --mount --propagation private python -m tests.conformance.sandbox IMAGE < CASE.json > ANSWER.json
    … python -m tests.conformance.sandbox IMAGE resource TYPE    what `puppet resource` lists there: the real one's, and ours

The image is only read. This checkout and its interpreter are seen inside at their own paths, read-only; all mounts go away
with this process. Made by `make image`; see `image.sh`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from shared.data import plainyaml
from shared.models.report import Report
from tests.conformance import test_apply as recorded
from tests.support.guard import marks

CHECKOUT = Path(__file__).resolve().parents[2]
CLEAN = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
    "TZ": "UTC",
    "USER": "root",
    "LOGNAME": "root",
}
OURS = {"PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}
SECONDS = 300  # the most that one command of a case may take
INSIDE = "/case"
FRAMES = ("Compiled catalog for ", "Using environment ")

# As process 1 of its own namespace: mounts what a Debian has, takes the name that the case wants, and enters.
ENTER = """
tree=$1 cwd=$2 init=$3; shift 3
hostname node1; mount -t proc proc "$tree/proc"; mount --bind /dev "$tree/dev"
if [ -n "$init" ]; then printf %s "$init" > "$tree/proc/$$/comm"; fi
chroot "$tree" sh -c 'cd "$1"; shift; exec "$@"' sh "$cwd" "$@"; exit $?
"""


class Sandbox(recorded.Scratch):
    """An overlay over the image, mounted in this process's own namespace."""

    def __init__(self, image: Path, init: str = "") -> None:
        self.init = init
        self.place = Path(tempfile.mkdtemp(prefix="apply-case-"))
        for name in ("upper", "work", "tree"):
            (self.place / name).mkdir()
        self.tree = self.place / "tree"
        layers = f"lowerdir={image},upperdir={self.place}/upper,workdir={self.place}/work"
        mount("-t", "overlay", "overlay", "-o", layers, str(self.tree))
        for folder in dict.fromkeys((CHECKOUT, Path(sys.prefix), Path(sys.base_prefix))):
            if folder != Path("/usr") and not (folder != CHECKOUT and folder.is_relative_to(CHECKOUT)):
                inside = self.tree / str(folder).lstrip("/")
                inside.mkdir(parents=True, exist_ok=True)
                mount("--bind", str(folder), str(inside))
                mount("-o", "remount,bind,ro", str(inside))
        (self.tree / INSIDE.lstrip("/")).mkdir()
        super().__init__(self.tree / INSIDE.lstrip("/"))

    def close(self) -> None:
        subprocess.run(["umount", "-R", str(self.tree)], check=True)
        shutil.rmtree(self.place, ignore_errors=True)

    def run(self, *argv: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        words = ["unshare", "--mount", "--pid", "--fork", "--uts", "--kill-child", "sh", "-c", ENTER, "sh"]
        return subprocess.run(
            [*words, str(self.tree), f"{INSIDE}/root", self.init, *argv],
            cwd="/",
            env=CLEAN | marks() | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o022,
            timeout=SECONDS,
            check=False,
        )

    def inside(self, text: str) -> str:
        return text.replace("@ROOT@", f"{INSIDE}/root")

    def shell(self, script: str) -> str:
        done = self.run("sh", "-ec", self.inside(script))
        if done.returncode:
            raise RuntimeError(f"a script of the case ended with {done.returncode}: {done.stdout.decode(errors='replace')}")
        return done.stdout.decode(errors="replace")

    def scrub(self, text: Any) -> Any:
        if isinstance(text, str):
            for path, name in (("site.pp", "<manifest>"), ("root", "<root>"), ("conf", "<conf>"), ("var", "<var>")):
                text = text.replace(f"{INSIDE}/{path}", name)
        return super().scrub(text)

    def inspect(self, path: str) -> dict[str, Any]:
        found = super().inspect(str(self.tree / path.lstrip("/")) if path.startswith("/") else path)
        for kind, database in (("owner", "passwd"), ("group", "group")):
            if kind in found:
                found[kind] = self.named(database, found[kind])
        return found

    def named(self, database: str, shown: str) -> str:
        """The name inside for what was looked up outside."""
        import grp
        import pwd

        try:
            number = pwd.getpwnam(shown).pw_uid if database == "passwd" else grp.getgrnam(shown).gr_gid
        except KeyError:
            number = int(shown)
        rows = [line.split(":") for line in (self.tree / "etc" / database).read_text().splitlines()]
        return next((row[0] for row in rows if row[2] == str(number)), str(number))


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def applied(case: dict[str, Any], manifest: str, sandbox: Sandbox) -> dict[str, Any]:
    """One run of our `puppet apply` inside."""
    log, report = sandbox.base / "log.jsonl", sandbox.base / "var/state/last_run_report.yaml"
    (sandbox.base / "site.pp").write_text(sandbox.inside(manifest))
    log.unlink(missing_ok=True)
    report.unlink(missing_ok=True)
    arguments = ["--noop"] if case.get("noop") else []
    arguments += [sandbox.inside(str(each)) for each in case.get("args", [])]
    where = [f"--confdir={INSIDE}/conf", f"--vardir={INSIDE}/var", f"--modulepath={INSIDE}/root/modules", "--certname=node1.example.com"]
    how = ["--strict_variables", "--detailed-exitcodes", "--show_diff", "--verbose", f"--logdest={INSIDE}/log.jsonl"]
    ours = [sys.executable, "-m", "bunraku.puppet", "apply"]
    done = sandbox.run(*ours, *where, *how, *arguments, f"{INSIDE}/site.pp", environment=OURS)
    found: dict[str, Any] = {"exit": done.returncode}
    if report.exists():
        found |= recorded.told(Report.from_data(plainyaml.loads(report.read_bytes())), sandbox)
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    shown = [each for each in lines if not recorded.FRAME.match(each["message"]) and not each["message"].startswith(FRAMES)]
    found["logs"] = [[each["level"], sandbox.scrub(each["source"]), sandbox.scrub(each["message"])] for each in shown]
    if not lines:
        found["output"] = done.stdout.decode(errors="replace")
    return found


def answer(case: dict[str, Any], image: Path) -> dict[str, Any]:
    """All runs of a case, the state afterwards, and what its questions were answered."""
    sandbox = Sandbox(image, case.get("init", ""))
    try:
        if case.get("setup"):
            sandbox.shell(case["setup"])
        runs = []
        for number, manifest in enumerate(case.get("manifests") or [case["manifest"]] * case.get("runs", 1)):
            if number and case.get("between"):
                sandbox.shell(case["between"])
            runs.append(applied(case, manifest, sandbox))
        found: dict[str, Any] = {"runs": runs}
        if case.get("inspect"):
            found["state"] = {path: sandbox.inspect(path) for path in case["inspect"]}
        if case.get("ask"):
            asked = {command: sandbox.run("sh", "-c", sandbox.inside(command)) for command in case["ask"]}
            found["answers"] = {command: sandbox.scrub(done.stdout.decode(errors="replace")) for command, done in asked.items()}
        return found
    finally:
        sandbox.close()


SOME_PACKAGES = "apt-get install -qq -y pc-conf pc-alpha=1.0-1; apt-get remove -qq -y pc-conf; apt-mark hold pc-alpha"


def listings(type_name: str, image: Path) -> list[str]:
    """What `puppet resource TYPE --to_yaml` prints inside, with a package held and one removed but not purged: the real one's, and ours."""
    sandbox = Sandbox(image)
    try:
        sandbox.shell(SOME_PACKAGES)
        words = ("resource", type_name, "--to_yaml")
        real = sandbox.run("puppet", *words)
        ours = sandbox.run(sys.executable, "-m", "bunraku.puppet", *words, environment=OURS)
        return [done.stdout.decode() for done in (real, ours)]
    finally:
        sandbox.close()


if __name__ == "__main__":
    os.umask(0o022)
    if sys.argv[2:3] == ["resource"]:
        json.dump(listings(sys.argv[3], Path(sys.argv[1])), sys.stdout)
    else:
        json.dump(answer(json.load(sys.stdin), Path(sys.argv[1])), sys.stdout)
