"""r10k and g10k deploy a site's git branches as environments of our master, and puppet-lint has nothing to say about our own manifests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.peers import PUPPET_8
from tests.interop.stage import agent_of
from tests.support.processes import Done, MasterProcess, clean_environment, has_real_puppet, master, run
from tests.support.smoke import with_smoke

pytestmark = [
    pytest.mark.works_with("Deployment and tools for code", "r10k 3.15, g10k 0.9.10, puppet-lint 3.0"),
    pytest.mark.interop,
    pytest.mark.slow,
]
CHECKOUT = Path(__file__).parents[2]

ENVIRONMENT = "modulepath = site:modules\nconfig_version = /bin/echo of-{branch}\n"
ROLE = "class role { notify { \"BRANCH: ${lookup('greeting')}\": } include word }\n"
HIERA = "version: 5\nhierarchy: [{ name: all, path: all.yaml }]\n"


class Repository:
    """A git repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "production")

    def git(self, *words: str) -> None:
        who = {f"GIT_{role}_{what}": "test@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = run(["git", "-C", str(self.folder), *words], clean_environment(HOME=str(self.folder), **who))
        assert done.code == 0, done.text

    def commit(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")


def control_files(branch: str, module: Repository) -> dict[str, str]:
    """A control repository's files: what is the site's own, and a Puppetfile for what is not."""
    return {
        "Puppetfile": f"mod 'word',\n  :git => '{module.folder}',\n  :branch => 'production'\n",
        "environment.conf": ENVIRONMENT.format(branch=branch),
        "hiera.yaml": HIERA,
        "data/all.yaml": f"greeting: hello from {branch}\n",
        "manifests/site.pp": "include role\n",
        "site/role/manifests/init.pp": ROLE.replace("BRANCH", branch),
    }


Deploy = Callable[[Path, MasterProcess, Repository], Done]


def configuration(root: Path, process: MasterProcess, control: Repository) -> str:
    """What both read: where the branches come from, and the master's environments, where they go."""
    (root / "deploy.yaml").write_text(
        f":cachedir: {root}/cache\n:sources:\n  site:\n    remote: {control.folder}\n    basedir: {process.site.parent}\n"
    )
    return str(root / "deploy.yaml")


def with_r10k(root: Path, process: MasterProcess, control: Repository) -> Done:
    command = ["/usr/bin/r10k", "deploy", "environment", "--puppetfile", "--verbose", "--config", configuration(root, process, control)]
    return run(command, clean_environment(HOME=str(root)))


def with_g10k(root: Path, process: MasterProcess, control: Repository) -> Done:
    command = PUPPET_8.command(root, "g10k", "-config", configuration(root, process, control), "-info")
    return run(command, clean_environment(HOME=str(root)))


@pytest.fixture(params=with_smoke([with_r10k, with_g10k], with_r10k), ids=["r10k", "g10k"])
def deploy(request: pytest.FixtureRequest) -> Deploy:
    program: Deploy = request.param
    if program is with_r10k and shutil.which("r10k") is None:
        pytest.skip("r10k is not installed")
    if program is with_g10k and (reason := PUPPET_8.why_not()):
        pytest.skip(reason)
    return program


@pytest.mark.skipif(not has_real_puppet(), reason="puppet-agent is not installed")
def test_what_is_deployed_is_served_at_once(tmp_path: Path, deploy: Deploy) -> None:
    module, control = Repository(tmp_path / "word"), Repository(tmp_path / "control")
    module.commit({"manifests/init.pp": "class word { notify { 'from a module': } }\n", "lib/facter/word.rb": "Facter.add(:word) {}\n"})
    control.commit(control_files("production", module))
    with master(tmp_path / "master", autosign="true") as process:
        deployed = deploy(tmp_path, process, control)
        assert deployed.code == 0, deployed.text
        process.start()
        agent = agent_of(process)
        first = agent.test()
        assert first.code == 2, first.text
        assert "production: hello from production" in first and "from a module" in first
        assert "Applying configuration version 'of-production'" in first
        assert (agent.root / "vardir/lib/facter/word.rb").exists()

        control.git("checkout", "--quiet", "-b", "testing")
        control.commit(control_files("testing", module))
        module.commit({"manifests/init.pp": "class word { notify { 'from a newer module': } }\n"})
        assert deploy(tmp_path, process, control).code == 0
        second = agent.test("--environment", "testing")
        assert second.code == 2 and "testing: hello from testing" in second and "from a newer module" in second, second.text

        control.git("checkout", "--quiet", "production")
        control.git("branch", "--delete", "--force", "--quiet", "testing")
        assert deploy(tmp_path, process, control).code == 0
        gone = agent.test("--environment", "testing")
        assert gone.code == 2 and "production: hello from production" in gone, gone.text


@pytest.mark.skipif(shutil.which("puppet-lint") is None, reason="puppet-lint is not installed")
def test_puppet_lint_has_nothing_to_say_about_our_manifests(tmp_path: Path) -> None:
    manifests = [str(path) for folder in ("demo", "examples") for path in sorted((CHECKOUT / folder).rglob("*.pp"))]
    assert manifests
    done = run(["/usr/bin/puppet-lint", "--fail-on-warnings", *manifests], clean_environment(HOME=str(tmp_path)))
    assert (done.code, done.text) == (0, "")
