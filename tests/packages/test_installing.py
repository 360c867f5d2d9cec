"""
docs/install.md, typed on bare Debians: each way to install, the first run of master and agent, beside Puppet, and the removal.

The files of the release are those in dist/, which `make release` has built.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from demo.compose import Engine, base_variables
from tests.e2e import test_compose_demo
from tests.gate import caches
from tests.support.bare import COPY, PROJECT, RELEASES, BareSystem, bare_system, why_not
from tests.support.documentation import block

PAGE, BUILT = "docs/install.md", PROJECT / "dist"
INSTALL, RUN = 900, 180  # seconds
WAYS = {
    "deb": ("/srv", "remove-deb"),
    "pipx": ("/srv", "remove-pipx"),
    "checkout": ("/home/somebody/bunraku", "remove-checkout"),
}
"""The ways to install, with the folder in which each is done, and the way back."""


def reason() -> str:
    if not (BUILT / "SHA256SUMS").exists():
        return "there is no release to install: `make release` builds it"
    return why_not()


pytestmark = [
    pytest.mark.works_with("Packages, services, containers and proxies", "package, pipx, checkout and container, installed and removed"),
    pytest.mark.full,
    pytest.mark.slow,
    pytest.mark.timeout(caches.TIMEOUT + COPY + 4 * INSTALL),
]


def page(name: str) -> str:
    return block(PAGE, "sh", name).body


FIRST_RUN = f"""
cd /tmp
{page("first-master").strip()} > /tmp/master.log 2>&1 & master=$!
until grep -q 'Serving Puppet' /tmp/master.log; do kill -0 $master || {{ cat /tmp/master.log; exit 1; }}; sleep 0.2; done
set +e
{page("first-run")}
kill $master; wait $master; cat /tmp/master.log
"""


@pytest.fixture
def debian(release: str) -> Iterator[BareSystem]:
    with bare_system(release) as system:
        for path in BUILT.iterdir():
            shutil.copy(path, system.root / "srv")
        (system.root / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n')
        system.run("apt-get update", account="root", timeout=INSTALL)
        yield system


@pytest.mark.skipif(bool(reason()), reason=reason())
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("release", RELEASES)
def test_it_installs_runs_and_goes_as_the_page_says(debian: BareSystem, release: str, way: str) -> None:
    def root(script: str, *, lonely: bool = False) -> str:
        return debian.run(f"set -e\n{script}", account="root", lonely=lonely, timeout=RUN if lonely else INSTALL)

    folder, back = WAYS[way]
    root(f"cd /srv\n{page('check')}")
    root(f"cd {folder}\n{page(way)}".replace("deb12", f"deb{RELEASES[release]}"))
    said = root(FIRST_RUN, lonely=True)
    assert (debian.root / "tmp/hello").read_text() == "hello\n" and "Traceback" not in said, said
    if way == "deb":
        assert "Bunraku" not in root("apt install puppet-agent >&2; puppet --version")
        assert "Bunraku" in root("bunraku-puppet --version")
    root(page(back))
    left = root("find /usr /opt /etc -iname '*bunraku*' -o -path '/usr/local/bin/?*'")
    assert left == "" and (debian.root / "etc/puppet/ssl/ca/ca_key.pem").exists(), left
    if way == "deb":
        root("puppet --version")
    root(page("remove-data"))
    assert not (debian.root / "etc/puppet").exists()


container_engine = test_compose_demo.environ


def test_the_container_runs_and_goes_as_the_page_says(container_engine: dict[str, str]) -> None:
    def typed(text: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", text], env=container_engine, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=INSTALL, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    base = base_variables(Engine((), container_engine))["BUNRAKU_BASE"]
    code, said = typed("set -e\n" + page("container").replace("docker build", f"docker build --network none --build-arg BASE={base}"))
    gone = typed(page("remove-container"))
    assert (code, "Notice: hello\n" in said) == (2, True), said
    assert gone[0] == 0 and typed("docker ps --all --quiet --filter name=master --filter name=agent")[1] == "", gone
