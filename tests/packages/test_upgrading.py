"""
From the release before this one and back: configuration, keys, CA, state and the store's database stay in use.

The older release is built from the last commit that had another version; this one's files are in dist/, which `make release` has filled.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import shared
from tests.gate import caches
from tests.packages.test_installing import BUILT, reason
from tests.support.bare import COPY, PROJECT, BareSystem, bare_system

RELEASE = "bookworm"
BUILD, RUN = 1800, 300  # seconds
NODE = "web1.example.com"

pytestmark = [
    pytest.mark.works_with("Packages, services, containers and proxies", "an upgrade and the way back"),
    pytest.mark.full,
    pytest.mark.slow,
    pytest.mark.timeout(caches.TIMEOUT + 2 * (COPY + BUILD)),
    pytest.mark.skipif(bool(reason()), reason=reason()),
]

WAYS = {
    "deb": ("true", "dpkg --install {}/bunraku_*.deb", "bunraku_*+deb12_*.deb"),
    "pip": ("python3 -m venv /opt/bunraku; ln -s /opt/bunraku/bin/puppet /usr/bin; useradd --system puppet",
            'pip=/opt/bunraku/bin/pip; $pip install --quiet "$(ls {}/*.whl)[master]"', "bunraku-*.whl"),
}  # fmt: skip
"""The ways to install: what comes first, what installs the files of a folder, and which files these are."""

CONFIGURATION = f"[main]\nkey_type = ec\nserver = localhost\n[master]\ncertname = localhost\nautosign = true\n[agent]\ncertname = {NODE}\n"
SITE = "file { '/srv/applied': content => \"${trusted['certname']}\\n\" }\n"
ONE_RUN = f"""
cd /
puppet master --no-daemonize --verbose --bindaddress 127.0.0.1 > /tmp/master.log 2>&1 & master=$!
until grep -q 'Serving Puppet' /tmp/master.log; do kill -0 $master || {{ cat /tmp/master.log; exit 1; }}; sleep 0.2; done
code=0
puppet agent --test > /tmp/agent.log || code=$?
query() {{ puppet query 'reports[count()] {{ certname = "{NODE}" }}'; }}
for turn in $(seq 30); do query | grep -q 'count": *REPORTS}}' && break; sleep 0.2; done
printf '{{"code": %s, "version": "%s", "ca": "%s", "node": "%s", "stored": %s}}' $code "$(puppet --version | tail -n 1)" \
  "$(puppet cert fingerprint ca)" "$(puppet cert fingerprint {NODE})" "$(query)" > /tmp/run.json
kill $master; wait $master
cat /tmp/agent.log /tmp/master.log
"""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the package of the release before this one."""
    folder = tmp_path_factory.mktemp("older")
    log = ["git", "log", "--max-count=1", "--format=%H", f'-S__version__ = "{shared.__version__}"', "--", "shared/__init__.py"]
    since = subprocess.run(log, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    if not since:
        pytest.skip("this checkout has no history of versions")
    with bare_system(RELEASE) as system:
        archive = ["git", "archive", "--prefix=older/", "--output", str(system.root / "srv/older.tar"), f"{since}^"]
        subprocess.run(archive, cwd=PROJECT, check=True, timeout=60)
        system.run("tar -xf /srv/older.tar; make --directory older deb", timeout=BUILD)
        shutil.copytree(system.home / "older/dist", folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
def debian(older: Path) -> Iterator[BareSystem]:
    with bare_system(RELEASE) as system:
        for name, source in (("older", older), ("newer", BUILT)):
            (system.root / "srv" / name).mkdir()
            for pattern in [files for _, _, files in WAYS.values()]:
                for path in source.glob(pattern):
                    shutil.copy(path, system.root / "srv" / name)
        yield system


@pytest.mark.parametrize("way", WAYS)
def test_an_upgrade_and_the_way_back_keep_everything(debian: BareSystem, way: str) -> None:
    first, install, _ = WAYS[way]
    etc, runs = debian.root / "etc/puppet", []
    debian.run(first, account="root", timeout=RUN)
    for count, files in enumerate(("older", "newer", "older"), start=1):
        debian.run(f"set -e; {install.format(f'/srv/{files}')}", account="root", timeout=BUILD)
        if count == 1:
            (etc / "code/environments/production/manifests").mkdir(parents=True, exist_ok=True)
            (etc / "puppet.conf").write_text(CONFIGURATION)
            (etc / "code/environments/production/manifests/site.pp").write_text(SITE)
        said = debian.run(f"set -e\n{ONE_RUN.replace('REPORTS', str(count))}", account="root", timeout=RUN, lonely=True)
        assert "Traceback" not in said and (etc / "puppet.conf").read_text() == CONFIGURATION, said
        runs.append(json.loads((debian.root / "tmp/run.json").read_text()))
    assert [run["code"] for run in runs] == [2, 0, 0]  # nothing is left to be done after the first run
    assert runs[0]["version"] == runs[2]["version"] != runs[1]["version"] == f"Bunraku {shared.__version__}"
    assert len({run["ca"] for run in runs}) == len({run["node"] for run in runs}) == 1
    assert [run["stored"] for run in runs] == [[{"count": count}] for count in (1, 2, 3)]
