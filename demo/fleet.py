"""
A change of code, held against the catalogs of a hundred machines before it is deployed.

The control repository is made of `demo/fleet`: its branch `main`, and a branch with one change, which looks harmless.
`make demo` runs this after the pair; alone: `python demo/fleet.py`. The page stays.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from demo.run import PUPPET, Failed, say, title  # noqa: E402

FLEET = ROOT / "demo" / "fleet"
BRANCH = "tls-and-certificates"
ROLES = {"web": 30, "database": 8, "mail": 12, "build": 50}  # machines
PREVIEW = 300.0  # seconds
DIFFERENT_AND_FAILED = 6
PAGE = ROOT / "build" / "demo" / "preview.html"
NEXT = (
    "source .venv/bin/activate",
    "puppet master --no-daemonize --verbose --certname $(hostname -f) --user $USER    # a master of your own",
    "puppet cert list                                                                 # who waits for a certificate",
    "puppet cert sign NAME",
    "puppet agent --test --server MASTER                                              # on each machine",
    "puppet config print --section master                                             # every setting",
)


def control_repository(folder: Path) -> None:
    """Make the repository with its two branches."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=An administrator", "-c", "user.email=ops@example.com")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, timeout=60)

    shutil.copytree(FLEET / "main", folder)
    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=What is deployed")
    git("checkout", "--quiet", "-b", BRANCH)
    shutil.copytree(FLEET / "change", folder, dirs_exist_ok=True, copy_function=shutil.copy)  # with the time of now, which Git looks at
    git("add", "--all")
    git("commit", "--quiet", "--message=Modern TLS, certificates, another password, a port for mail")


def store_facts(folder: Path) -> None:
    """Store what each machine has said of itself."""
    folder.mkdir(parents=True)
    for role, count in ROLES.items():
        for number in range(1, count + 1):
            name = f"{role}{number:02}.example.com"
            networking = {"fqdn": name, "hostname": name.partition(".")[0], "domain": "example.com"}
            values = {"role": role, "region": ("north", "south")[number % 2], "networking": networking, "os": {"family": "Debian"}}
            stored = {"name": name, "values": values, "timestamp": "2026-11-20T12:00:00+00:00", "expiration": "2036-11-20T12:00:00+00:00"}
            (folder / f"{name}.yaml").write_text(json.dumps(stored))


def preview(root: Path, page: Path) -> None:
    """Run `puppet preview` and show what it says."""
    title("A preview: what would this change do to a hundred machines?")
    control_repository(root / "control")
    store_facts(root / "var" / "yaml" / "facts")
    words = ["preview", "--repo", str(root / "control"), "--from", "main", "--to", BRANCH, "--all", "--html", str(page)]
    places = ["--confdir", str(root / "conf"), "--vardir", str(root / "var"), "--rundir", str(root / "run"), "--logdir", str(root / "log")]
    say(f"   $ puppet preview --repo control --from main --to {BRANCH} --all --html {page.name}")
    began = time.monotonic()
    done = subprocess.run(
        [*PUPPET, *words, *places, "--no-storeconfigs", "--user", "root"],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PREVIEW,
    )  # fmt: skip
    for line in (done.stdout + done.stderr).splitlines():
        say("   | " + line.replace(str(root), "…"))
    if done.returncode != DIFFERENT_AND_FAILED:
        raise Failed(f"the preview ended with {done.returncode}, not with {DIFFERENT_AND_FAILED}")
    say(f"   {time.monotonic() - began:.1f} s, exit code {done.returncode}: catalogs differ, and some cannot be compiled any more")
    say(f"   The page stays. Open it in a browser: {page.as_uri()}")


def main() -> int:
    """Run the preview, where there is Git; say what comes after the demo."""
    parser = argparse.ArgumentParser(description="Preview a change on a hundred made-up machines.")
    parser.add_argument("--html", type=Path, default=PAGE, metavar="FILE", help="where the page is written; default: %(default)s")
    page = parser.parse_args().html.resolve()
    if shutil.which("git"):
        page.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="bunraku-demo-") as folder:
            try:
                preview(Path(folder), page)
            except Failed as err:
                say(f"\nThe demo failed: {err}")
                return 1
    else:
        title("No preview of a change: Git is missing")
    title("All of it has stopped. What to type next")
    for line in NEXT:
        say("   " + line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
