"""A master for real agents, and the agents: those of Debian's puppet 7.23, and the same of Puppet 8."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import peers, stage
from tests.interop.pairs import part_of, program
from tests.interop.puppetserver import AUTOSIGN
from tests.interop.ruby_master import RubyMaster, ruby_master
from tests.interop.stage import CLASSIFIED, ENC, SITE, AgentOf, SharedMaster
from tests.support.processes import MasterProcess, RealAgent, has_real_puppet, master

NOT_INSTALLED = "Debian's puppet-agent is not installed: apt-get install puppet-agent"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[MasterProcess]:
    """A master of the test's own with the site, for tests that stop it, or change its CA."""
    if not has_real_puppet():
        pytest.fail(NOT_INSTALLED)
    with master(tmp_path / "master", autosign="true") as process:
        process.write(SITE)
        yield process.start()


@pytest.fixture(scope="session")
def master_of_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MasterProcess]:
    """The master that the tests of a worker share; it signs what is not called `manual…` by itself."""
    root = tmp_path_factory.mktemp("shared")
    with master(root / "master", autosign=program(root / "autosign", AUTOSIGN)) as process:
        yield process.start()


@pytest.fixture
def shared_master(master_of_worker: MasterProcess, tmp_path: Path) -> SharedMaster:
    """The shared master, with the site in an environment of the test's own."""
    return part_of(master_of_worker, tmp_path)


@pytest.fixture(scope="session")
def ruby_master_of_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RubyMaster]:
    """The real master of 5.5 that the tests of a worker share; agents may upload their facts."""
    with ruby_master(tmp_path_factory.mktemp("shared_ruby") / "master") as process:
        (process.root / "conf").mkdir()
        (process.root / "conf/auth.conf").write_text("path ~ ^/puppet/v3/facts/([^/]+)$\nmethod save\nallow $1\n")
        yield process.start()


@pytest.fixture(params=peers.MODERN, ids=peers.version_of)
def agent_of(request: pytest.FixtureRequest) -> AgentOf:
    """Makes agents beside a master: of this machine's Puppet, then of 8."""
    if request.param is None:
        if not has_real_puppet():
            pytest.fail(NOT_INSTALLED)
        return stage.agent_of
    release: peers.Release = request.param
    if reason := release.why_not():
        pytest.skip(reason)

    def made(running: MasterProcess, name: str = "web1.example.com", folder: str = "") -> RealAgent:
        return peers.agent_of(running, release, name, folder)

    return made


@pytest.fixture
def classified(tmp_path: Path) -> Iterator[MasterProcess]:
    """A master whose nodes a program classifies."""
    program = tmp_path / "enc"
    program.write_text(ENC)
    program.chmod(0o755)
    with master(tmp_path / "master", autosign="true", node_terminus="exec", external_nodes=str(program)) as process:
        process.write(CLASSIFIED)
        yield process.start()
