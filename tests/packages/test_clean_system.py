"""
The wheel and the Debian package in a Debian that has nothing else: they install, a master starts, an agent runs against it.

`make test-packages` builds a release and makes that Debian. Each test has a copy of it, in namespaces of its own: what it starts ends
with it, and its network is a loopback device.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate import caches
from tests.support.processes import clean_environment

PROJECT = Path(__file__).parents[2]
LOCK = PROJECT / "requirements" / "release.txt"
BUILT = PROJECT / "dist"  # where wheel and package are
IMAGE = caches.folder("package-image")
BUILD, RUN = 300, 180  # seconds

MANIFEST = "node default { file { '/srv/applied': content => \"${facts['kernel']} ${trusted['certname']}\\n\" } }\n"
RUN_BOTH = """
set -eu
puppet master --no-daemonize --certname localhost --dns_alt_names localhost --autosign true --bindaddress 127.0.0.1 \
  --masterport 8140 --key_type ec --vardir /var/lib/puppet --logdir /var/log/puppet --rundir /run/puppet > /master.log 2>&1 &
master=$!
for turn in $(seq 300); do
  if grep -q 'Serving Puppet' /master.log; then break; fi
  if ! kill -0 $master; then cat /master.log; exit 1; fi
  sleep 0.2
done
test "$(stat -c %U /proc/$master)" = puppet
code=0
puppet agent --test --server localhost --certname node1.test --key_type ec || code=$?
echo "the agent ended with $code"
code=0
puppet agent --test --server localhost --certname node1.test || code=$?
echo "and again with $code"
kill $master
wait $master || echo "the master ended with $?"
cat /master.log
grep "Linux node1.test" /srv/applied
"""


def reason() -> str:
    if not list(BUILT.glob("*+deb12_*.deb")):
        return "there is no package to try: `make test-packages` builds it"
    if os.geteuid() != 0:
        return "only root enters a Debian in a folder"
    missing = [tool for tool in ("dpkg-deb", "unshare", "chroot") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} is missing"
    return "" if IMAGE.exists() else "there is no plain Debian here; `make package-image` makes it"


pytestmark = [
    pytest.mark.works_with("Packages, services, containers and proxies", "wheel and package on a plain Debian"),
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.skipif(bool(reason()), reason=reason()),
]


def host(*argv: object, timeout: float = BUILD) -> str:
    done = subprocess.run([str(word) for word in argv], cwd=PROJECT, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(pattern: str) -> Path:
    (made,) = BUILT.glob(pattern)
    return made


@pytest.fixture
def wheel() -> Path:
    return built("bunraku-*.whl")


@pytest.fixture
def deb() -> Path:
    return built("bunraku_*+deb12_*.deb")


@pytest.fixture
def debian(tmp_path: Path):
    root = tmp_path / "debian"
    host("cp", "-a", "--reflink=auto", IMAGE, root)
    yield root
    shutil.rmtree(root)


def inside(root: Path, script: str) -> str:
    """What `script` prints on both streams, in `root`; every process that it started is gone when this returns."""
    prepared = f"ip link set lo up && mount -t proc proc {root}/proc && exec chroot {root} /bin/sh -s"
    argv = ["timeout", "--kill-after=5", str(RUN), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", prepared]
    environ = clean_environment(HOME="/root")
    done = subprocess.run(
        argv, input=script, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN + 20, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def runs(root: Path) -> None:
    """A master there starts as the account puppet, and an agent applies its catalog, and then has nothing to do."""
    manifests = root / "etc/puppet/code/environments/production/manifests"
    manifests.mkdir(parents=True, exist_ok=True)
    (manifests / "site.pp").write_text(MANIFEST)
    said = inside(root, RUN_BOTH)
    assert "the agent ended with 2" in said and "and again with 0" in said, said
    assert "the master ended with" not in said and "Traceback" not in said, said


def test_the_debian_package_installs_starts_and_goes(debian: Path, deb: Path) -> None:
    shutil.copy(deb, debian / "bunraku.deb")
    said = inside(debian, "set -eu\ndpkg --install /bunraku.deb\npuppet --version\nreadlink -f /usr/bin/puppet\ndpkg --verify bunraku\n")
    assert "/usr/bin/bunraku-puppet" in said and "??" not in said, said
    runs(debian)
    owner = "stat -c %U /etc/puppet/ssl/ca/ca_key.pem; find /usr/lib/bunraku -newer /var/lib/dpkg/info/bunraku.list -type f"
    assert inside(debian, owner).split() == ["puppet"]  # its own, and no run has written below /usr
    said = inside(
        debian, "set -eu\ndpkg --install /bunraku.deb\ndpkg --remove bunraku\ndpkg --purge bunraku\nls -d /usr/lib/bunraku || true\n"
    )
    assert "cannot access '/usr/lib/bunraku'" in said and "are left as they are" in said, said
    assert (debian / "etc/puppet/ssl/ca/ca_key.pem").exists() and not os.path.lexists(debian / "usr/bin/puppet")


def test_beside_debians_puppet_the_command_has_another_name(debian: Path, deb: Path) -> None:
    theirs = debian / "usr" / "bin" / "puppet"
    theirs.write_text("#!/bin/sh\necho theirs\n")
    theirs.chmod(0o755)
    shutil.copy(deb, debian / "bunraku.deb")
    said = inside(
        debian, "set -eu\ndpkg --install /bunraku.deb\npuppet --version\nbunraku-puppet --version\ndpkg --remove bunraku\npuppet\n"
    )
    assert "/usr/bin/puppet is another package's" in said and said.count("theirs") == 2, said


def test_the_package_has_the_pages_for_who_runs_it(deb: Path) -> None:
    listing = host("dpkg-deb", "--contents", deb)
    for name in ("docs/operation.md", "docs/recovery.md", "docs/scale.md", "docs/upgrading.md", "packaging/monitoring/alerts.yaml"):
        assert f"./usr/share/doc/bunraku/{name}\n" in listing


def test_the_package_completes_commands_and_has_manual_pages(debian: Path, deb: Path) -> None:
    listing = host("dpkg-deb", "--contents", deb)
    for name in (
        "man/man1/bunraku-puppet.1.gz",
        "man/man1/bunraku-puppet-agent.1.gz",
        "man/man5/bunraku-puppet.conf.5.gz",
        "bash-completion/completions/bunraku-puppet",
        "zsh/vendor-completions/_bunraku-puppet",
        "fish/vendor_completions.d/bunraku-puppet.fish",
        "fish/vendor_completions.d/puppet.fish",
    ):
        assert f"./usr/share/{name}\n" in listing
    shutil.copy(deb, debian / "bunraku.deb")
    script = """set -eu
dpkg --install /bunraku.deb > /dev/null
readlink -f /usr/share/man/man1/puppet.1.gz
bash -c '. /etc/bash_completion.d/bunraku-puppet; _bunraku_puppet_load || echo "again: $?"; complete -p puppet bunraku-puppet
COMP_WORDS=(puppet ag); COMP_CWORD=1; _bunraku_puppet; echo "${COMPREPLY[@]}"'
"""
    lines = inside(debian, script).splitlines()
    expected = ["/usr/share/man/man1/bunraku-puppet.1.gz", "again: 124"]
    expected += [f"complete -F _bunraku_puppet {program}" for program in ("puppet", "bunraku-puppet")]
    assert lines[-5:] == [*expected, "agent"], lines


def test_the_same_sources_make_the_same_debian_package(wheel: Path, tmp_path: Path) -> None:
    lines = host("sh", PROJECT / "packaging" / "deb" / "build.sh", wheel, tmp_path, sys.executable)
    made = Path(lines.splitlines()[-1])
    assert made.read_bytes() == (BUILT / made.name).read_bytes()


def test_the_wheel_installs_by_the_lock_in_a_virtual_environment_and_starts(debian: Path, wheel: Path) -> None:
    wheels = debian / "wheels"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    host(*pip, "--no-deps", "--require-hashes", "--requirement", LOCK, "--dest", wheels)
    shutil.copy(LOCK, debian / "release.txt")
    shutil.copy(wheel, debian)
    said = inside(
        debian,
        "set -eu\nadduser --system --group --quiet puppet\npython3 -m venv /opt/bunraku\n"
        "pip='/opt/bunraku/bin/pip install --quiet --no-index --find-links /wheels'\n"
        f"$pip --require-hashes --requirement /release.txt\n$pip --no-deps /{wheel.name}\n/opt/bunraku/bin/pip check\n"
        "ln -s /opt/bunraku/bin/puppet /usr/bin/puppet\npuppet --version\n",
    )
    assert "No broken requirements found." in said, said
    assert said.split()[-1].startswith(tuple("0123456789")), said
    runs(debian)
