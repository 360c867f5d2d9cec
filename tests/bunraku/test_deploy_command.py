"""`puppet deploy`: an environment becomes a commit in one step, stays what it was when anything goes wrong, and can go back."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from environments.first import make_first_environment
from tests.support.command_line import Puppet, Said
from tests.support.control_repository import ControlRepository
from tests.support.forge import LocalForge, serving
from tests.support.needs import needs_git
from tests.support.processes import clean_environment
from tests.support.waiting import wait_until

pytestmark = [needs_git, pytest.mark.works_with("Deployment and tools for code", "puppet deploy")]
CODE = {"manifests/site.pp": "notify { 'one': }\n", "data/common.yaml": "a: 1\n", "bin/tool": "#!/bin/sh\n"}


class Site:
    """Environments, and a control repository for them."""

    def __init__(self, root: Path, puppet: Puppet) -> None:
        self.environments = root / "environments"
        self.environments.mkdir()
        self.repository = ControlRepository(root / "control")
        self.puppet = puppet
        self.programs = root / "programs"
        self.programs.mkdir()
        (self.programs / "git").symlink_to(shutil.which("git") or "")

    @property
    def production(self) -> Path:
        return self.environments / "production"

    @property
    def versions(self) -> Path:
        return self.environments / ".versions" / "production"

    def options(self) -> list[str]:
        paths = {"environmentpath": self.environments, "deploy_repository": self.repository.folder, "basemodulepath": "/nowhere"}
        return [f"--{name}={value}" for name, value in paths.items()] + [f"--deploy_path={self.programs}", "--user=root"]

    def deploy(self, *words: str, environment: str = "production") -> Said:
        return self.puppet("deploy", environment, *self.options(), *words)

    def deployed(self, *words: str) -> dict[str, Any]:
        said = self.deploy("--json", *words)
        assert said.code == 0, said.err
        answer: dict[str, Any] = json.loads(said.out)
        return answer

    def names(self) -> set[str]:
        """Return what is in the folder of versions, but for what belongs there beside them."""
        return {path.name for path in self.versions.iterdir()} - {"history.json", ".lock"} if self.versions.exists() else set()

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")
        path.chmod(0o755)


@pytest.fixture
def site(tmp_path: Path, puppet: Puppet) -> Site:
    return Site(tmp_path, puppet)


def test_an_environment_becomes_a_link_to_the_files_of_a_commit(site: Site) -> None:
    first = site.repository.commit(CODE)
    said = site.deploy()
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(f"production is {first} now\n")
    assert os.readlink(site.production) == f".versions/production/{first}"  # noqa: PTH115
    assert (site.production / "manifests/site.pp").read_text() == "notify { 'one': }\n"
    assert not (site.production / ".git").exists()
    record = json.loads((site.production / ".puppet-deploy.json").read_text())
    assert {name: record[name] for name in ("signature", "commit", "ref", "repository", "modules")} == {
        "signature": first, "commit": first, "ref": "production", "repository": str(site.repository.folder), "modules": "",
    }  # fmt: skip

    second = site.repository.commit({"manifests/site.pp": "notify { 'two': }\n"})
    answer = site.deployed()
    assert (answer["version"], answer["before"], answer["changed"]) == (second, first, True)
    assert (site.production / "manifests/site.pp").read_text() == "notify { 'two': }\n"
    assert site.deployed()["changed"] is False
    assert site.names() == {first, second}


def test_branches_tags_and_commits_can_be_named(site: Site) -> None:
    first = site.repository.commit(CODE)
    site.repository.git("tag", "-a", "-m", "v1", "v1.0")
    site.repository.git("checkout", "--quiet", "-b", "feature/x")
    second = site.repository.commit({"manifests/site.pp": ""})
    for ref, commit in (("feature/x", second), ("v1.0", first), (second, second), ("production", first)):
        assert site.deployed("--ref", ref)["commit"] == commit


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ref", "--upload-pack=touch x"], "Not a branch, tag or commit: '--upload-pack=touch x'"),
        (["--ref", "a..b"], "Not a branch, tag or commit: 'a..b'"),
        (["--ref", "a b"], "Not a branch, tag or commit: 'a b'"),
        (["--ref", "HEAD@{1}"], "Not a branch, tag or commit: 'HEAD@{1}'"),
        (["--ref", "nosuch"], "There is no branch or tag nosuch in "),
        (["--ref", "f" * 40], "Failed to fetch " + "f" * 40),
        (["--repo", "ext::sh -c 'touch x'"], "Not the address of a repository: "),
        (["--repo", "http://example.com/x.git"], "Repositories are not fetched by the protocol 'http'"),
        (["--repo", "git://example.com/x.git"], "Repositories are not fetched by the protocol 'git'"),
        (["--repo", "ssh://-oProxyCommand=touch/x"], "Not the address of a repository: "),
        (["--repo", "relative/path"], "Not the address of a repository: "),
        (
            ["--repo", "/nowhere"],
            "Failed to look for production in /nowhere: git ls-remote ended with 128: fatal: '/nowhere' does not ",
        ),
        (["--rollback"], "No version of production before the current one is stored"),
        (["--rollback", "1234"], "No version of production that is stored begins with '1234'"),
        (["--rollback", "--ref", "x"], "--rollback returns to a stored version"),
        (["another"], "puppet deploy takes the name of one environment"),
    ],
    ids=str,
)
def test_what_cannot_be_deployed_is_one_error_and_nothing_is_left(site: Site, words: list[str], message: str) -> None:
    site.repository.commit(CODE)
    said = site.deploy(*words)
    assert said.code == 1 and " now" not in said.out
    assert said.err.startswith(f"Error: {message}"), said.err
    assert not site.production.exists() and site.names() == set()


def test_a_password_in_the_address_is_shown_nowhere(site: Site) -> None:
    said = site.deploy("--repo", "https://user:secret@127.0.0.1:1/control.git")
    assert said.code == 1 and "https://127.0.0.1:1/control.git" in said.err
    assert "secret" not in said.err + said.out


def test_an_environment_has_a_name_that_agents_can_ask_for(site: Site) -> None:
    assert site.deploy(environment="../x").err.startswith("Error: The environment must be purely alphanumeric")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("manifests/site.pp", "class {", "(file: production/manifests/site.pp"),
        ("modules/m/manifests/init.pp", "class m { notify { }", "(file: production/modules/m/manifests/init.pp"),
        (
            "modules/m/templates/t.epp",
            "<%= $x",
            "Unbalanced epp tag, reached <eof> without closing tag. (file: production/modules/m/templates/t.epp",
        ),
        ("hiera.yaml", "version: 7\n", "version"),
        ("data/common.yaml", "a: [1\n", "Unable to parse (production/data/common.yaml)"),
        ("environment.conf", "modulepath\n", "Could not match line"),
    ],
)
def test_code_that_does_not_parse_is_not_deployed(site: Site, name: str, text: str, message: str) -> None:
    first = site.repository.commit(CODE)
    site.deploy()
    broken = site.repository.commit({name: text})
    said = site.deploy()
    assert said.code == 1
    assert "Deploying production to environment production failed: the checks found " in said.err
    assert message in said.err
    assert ".new-" not in said.err
    assert site.production.resolve().name == first and site.names() == {first}
    assert site.deployed("--no-checks")["version"] == broken


def test_a_rollback_goes_back_one_by_one_and_to_a_version_that_is_named(site: Site) -> None:
    commits = [site.repository.commit({**CODE, "n": str(number)}) for number in range(3)]
    for commit in commits:
        site.deployed("--ref", commit)
    assert site.deployed("--rollback")["version"] == commits[1]
    assert site.deployed("--rollback")["version"] == commits[0]
    assert "No version of production before the current one" in site.deploy("--rollback").err
    assert site.deployed("--rollback", commits[2][:12])["version"] == commits[2]
    assert (site.production / "n").read_text() == "2"
    said = site.puppet("deploy", "--list", "--json", *site.options())
    versions = json.loads(said.out)["production"]
    assert [(version["version"], version["current"]) for version in versions] == [
        (commits[2], True), (commits[1], False), (commits[0], False),
    ]  # fmt: skip
    assert f"  * {commits[2]}  {commits[2]}, " in site.deploy("--list").out


@pytest.mark.slow
def test_a_rollback_holds_until_a_newer_commit_is_pushed(site: Site) -> None:
    first, second = (site.repository.commit({**CODE, "n": str(number)}) for number in range(2))
    site.deployed("--ref", first)
    assert site.deployed("--pushed")["version"] == second
    assert site.deployed("--rollback")["version"] == first
    for _ in range(2):  # the web hook of the second commit comes again
        said = site.deploy("--pushed")
        assert said.code == 1 and f"production was rolled back to {first}, and {second} was deployed before that" in said.err
        assert (site.production / "n").read_text() == "0"
    third = site.repository.commit({"n": "2"})
    assert site.deployed("--pushed")["version"] == third
    site.deployed("--rollback", first)
    assert site.deploy("--pushed").code == 1
    assert site.deployed()["version"] == third, "who says it at the command line wants it"
    assert not site.deployed("--pushed")["changed"]


def test_a_branch_that_was_set_back_is_deployed_when_it_is_pushed(site: Site) -> None:
    first, second = (site.repository.commit({**CODE, "n": str(number)}) for number in range(2))
    site.deployed("--ref", first)
    assert site.deployed("--pushed")["version"] == second
    site.repository.git("reset", "--quiet", "--hard", first)
    assert site.deployed("--pushed")["version"] == first


@pytest.mark.slow
def test_a_push_of_another_branch_with_the_name_of_the_environment_is_refused(site: Site) -> None:
    commit = site.repository.commit(CODE)
    for branch in ("feature/x", "feature_x"):
        site.repository.git("branch", branch)
    assert site.deploy("--pushed", "--ref", "feature/x", environment="feature_x").code == 0
    site.repository.commit({"n": "1"})
    said = site.deploy("--pushed", "--ref", "feature_x", environment="feature_x")
    assert "The environment feature_x is that of the branch feature/x: the branch feature_x is not deployed to it" in said.err
    assert (site.environments / "feature_x").resolve().name == commit
    site.repository.git("branch", "--delete", "--force", "feature/x")
    assert site.puppet("deploy", "--prune", *site.options()).out == "Removed the environment feature_x\n"
    assert site.deploy("--pushed", "--ref", "feature_x", environment="feature_x").code == 0


@pytest.mark.slow
def test_environments_whose_branch_is_gone_are_marked_and_pruned(site: Site) -> None:
    site.repository.commit(CODE)
    for branch in ("feature/x", "topic", "release"):
        site.repository.git("branch", branch)
    site.deployed()
    for environment, ref in (("feature_x", "feature/x"), ("topic", "topic"), ("frozen", "release")):
        assert site.deploy("--ref", ref, environment=environment).code == 0
    (site.environments / "byhand").mkdir()
    for branch in ("feature/x", "release"):
        site.repository.git("branch", "--delete", "--force", branch)
    site.repository.git("branch", "--move", "production", "main")
    listing = site.puppet("deploy", "--list", *site.options()).out
    assert [line for line in listing.splitlines() if "removed" in line] == [
        "feature_x: (its branch feature/x was removed)",
        "frozen: (its branch release was removed)",
        "production: (its branch production was removed)",
    ]
    said = site.puppet("deploy", "--prune", *site.options())
    assert said.out.splitlines() == [
        "Notice: production is not removed, although its branch was removed: it is the default environment",
        "Removed the environment feature_x",
    ]  # frozen has a name of its own
    assert sorted(path.name for path in site.environments.iterdir()) == [".versions", "byhand", "frozen", "production", "topic"]
    assert not (site.environments / ".versions/feature_x").exists()
    site.repository.folder.rename(site.repository.folder.with_name("away"))
    said = site.puppet("deploy", "--prune", *site.options())
    assert said.code == 1 and "Failed to list the branches of" in said.err
    assert (site.environments / "topic").exists()
    said = site.puppet("deploy", "--list", *site.options())
    assert said.code == 0 and "topic:\n" in said.out and "Removed branches are not marked" in said.err


def test_an_environment_is_removed_with_its_versions_but_not_what_somebody_else_made(site: Site) -> None:
    site.repository.commit(CODE)
    assert "puppet deploy has made no version of production" in site.deploy("--remove").err
    site.deployed()
    said = site.deploy("--remove")
    assert (said.code, said.out) == (0, "Removed the environment production\n")
    assert not site.production.is_symlink() and not site.versions.exists()
    site.production.mkdir()
    site.deployed("--adopt")
    assert "is the only copy of the files from before puppet deploy" in site.deploy("--remove").err
    assert site.production.exists()
    site.production.unlink()
    site.production.mkdir()
    assert "is a folder that puppet deploy did not make" in site.deploy("--remove").err


def test_the_last_versions_are_kept_and_those_that_runs_may_still_use(site: Site) -> None:
    commits = [site.repository.commit({**CODE, "n": str(number)}) for number in range(5)]
    for commit in commits[:4]:
        site.deployed("--ref", commit, "--deploy_keep=2")
    assert site.names() == set(commits[:4])  # the others were replaced less than an hour ago
    answer = site.deployed("--ref", commits[4], "--deploy_keep=2", "--deploy_keep_time=0")
    assert answer["removed"] == commits[:3]
    assert site.names() == set(commits[3:])


def test_a_folder_that_was_there_is_left_alone_unless_it_is_adopted(site: Site) -> None:
    commit = site.repository.commit(CODE)
    (site.production / "manifests").mkdir(parents=True)
    (site.production / "manifests/site.pp").write_text("# by hand\n")
    said = site.deploy()
    assert said.code == 1 and f"{site.production} is a folder that puppet deploy did not make" in said.err
    assert "--adopt" in said.err
    assert (site.production / "manifests/site.pp").read_text() == "# by hand\n" and not site.production.is_symlink()
    answer = site.deployed("--adopt")
    assert answer["version"] == commit and answer["before"].startswith("adopted-")
    assert (site.production / "manifests/site.pp").read_text() == CODE["manifests/site.pp"]
    for number in range(3):
        site.deployed("--ref", site.repository.commit({"n": str(number)}), "--deploy_keep=1", "--deploy_keep_time=0")
    site.deployed("--rollback", answer["before"])
    assert (site.production / "manifests/site.pp").read_text() == "# by hand\n"


def test_a_folder_as_the_master_made_it_is_replaced(site: Site) -> None:
    make_first_environment(site.environments.parent)
    commit = site.repository.commit(CODE)
    answer = site.deployed()
    assert (answer["version"], answer["before"]) == (commit, None)
    assert site.names() == {commit}


@pytest.mark.parametrize("name", ["manifests/site.pp", "modules/m/manifests/init.pp", "hiera.yaml"])
def test_a_folder_that_the_master_made_is_left_alone_when_there_is_code_in_it(site: Site, name: str) -> None:
    root = make_first_environment(site.environments.parent)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("# mine\n")
    site.repository.commit(CODE)
    assert "is a folder that puppet deploy did not make" in site.deploy().err
    assert (root / name).read_text() == "# mine\n"
    site.deployed("--adopt")
    listing = site.deploy("--list").out.splitlines()
    assert re.fullmatch(r"    adopted-\d+  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", listing[-1])


def test_a_link_to_elsewhere_is_left_alone(site: Site, tmp_path: Path) -> None:
    site.repository.commit(CODE)
    (tmp_path / "elsewhere").mkdir()
    site.production.symlink_to(tmp_path / "elsewhere")
    assert "which puppet deploy did not make" in site.deploy().err
    assert site.production.resolve() == tmp_path / "elsewhere"


def test_a_second_deployment_at_the_same_time_is_refused(site: Site) -> None:
    site.repository.commit(CODE)
    site.deployed()
    with (site.versions / ".lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        said = site.deploy()
    assert said.code == 1 and "Another deployment of production is under way, by process 4711" in said.err
    assert site.deploy().code == 0


def test_a_file_of_the_repository_does_not_pass_for_the_record_of_a_deployment(site: Site) -> None:
    commit = site.repository.commit({**CODE, ".puppet-deploy.json": '{"signature": "forged"}'})
    site.deployed()
    assert json.loads((site.production / ".puppet-deploy.json").read_text())["signature"] == commit


def test_neither_hooks_nor_the_configuration_of_the_user_are_used(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.repository.commit(CODE)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
        (hooks / name).chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert site.deploy().code == 0
    assert not (tmp_path / "hooked").exists()


def test_a_link_out_of_the_environment_is_named(site: Site) -> None:
    (site.repository.folder / "data").mkdir()
    (site.repository.folder / "data/x.yaml").symlink_to("/nonexistent/secret.yaml")
    (site.repository.folder / "data/y.yaml").symlink_to("common.yaml")
    site.repository.commit(CODE)
    said = site.deploy()
    assert said.code == 0
    assert said.err == "Warning: production/data/x.yaml is a link to /nonexistent/secret.yaml, out of the environment\n"


def test_submodules_are_refused_by_name(site: Site) -> None:
    site.repository.commit({**CODE, ".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = /x\n'})
    assert "Submodules of a control repository are not deployed" in site.deploy().err
    assert site.names() == set()


PUPPETFILE = {**CODE, "Puppetfile": "mod 'm', :git => '/x'\n"}
R10K = 'for word; do case "$word" in --moduledir=*) folder="${word#*=}";; esac; done\nmkdir -p "$folder/m/manifests"\n'


def test_without_a_program_for_it_the_modules_of_a_puppetfile_are_brought_all_the_same(site: Site) -> None:
    with serving(LocalForge()) as forge:
        forge.publish("made-base", "1.0.0")
        commit = site.repository.commit({**CODE, "Puppetfile": f"forge '{forge.url}'\nmod 'made/base', '1.0.0'\n"})
        version = site.deployed()["version"]
    assert version.startswith(f"{commit}-")
    assert (site.production / "modules/base/manifests/init.pp").read_text() == "class base { } # 1.0.0\n"


@pytest.mark.parametrize(("text", "error"), [("mod 'm', :git => '/x'\n", "/x"), ("system('reboot')\n", "This Puppetfile is read, not run")])
def test_a_puppetfile_whose_modules_cannot_be_brought_changes_nothing(site: Site, text: str, error: str) -> None:
    site.repository.commit({**CODE, "Puppetfile": text})
    said = site.deploy()
    assert said.code == 1 and error in said.err
    assert site.names() == set() and not site.production.exists()


def test_modules_of_a_puppetfile_make_versions_of_their_own(site: Site) -> None:
    commit = site.repository.commit(PUPPETFILE)
    versions = []
    for text in ("class m {}", "class m { notify { 'm': } }", "class m {}"):
        site.program("r10k", f'{R10K}echo "{text}" > "$folder/m/manifests/init.pp"')
        versions.append(site.deployed()["version"])
        assert (site.production / "modules/m/manifests/init.pp").read_text() == f"{text}\n"
    assert versions[0] == versions[2] != versions[1]
    assert all(version.startswith(f"{commit}-") for version in versions)


def test_a_program_that_fails_leaves_everything_as_it_was(site: Site) -> None:
    first = site.repository.commit(CODE)
    site.deployed()
    site.repository.commit(PUPPETFILE)
    site.program("r10k", "echo no such module >&2; exit 3")
    said = site.deploy()
    assert said.code == 1 and "Failed to install the modules of the Puppetfile by r10k" in said.err and "no such module" in said.err
    assert site.production.resolve().name == first and site.names() == {first}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=["TERM", "INT", "KILL"])
def test_a_deployment_that_is_ended_in_the_middle_leaves_nothing_half(site: Site, tmp_path: Path, number: signal.Signals) -> None:
    first = site.repository.commit(CODE)
    site.deployed()
    site.repository.commit(PUPPETFILE)
    started = tmp_path / "started"
    # The program ends by itself should nobody end it.
    site.program("r10k", f"echo $$ > {started}.tmp; mv {started}.tmp {started}; sleep 120")
    words = ["deploy", "production", *site.options(), "--confdir", str(site.puppet.conf), f"--vardir={tmp_path / 'vardir'}"]
    process = subprocess.Popen([sys.executable, "-m", "bunraku", *words], env=clean_environment(), stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: started.exists() or process.poll() is not None)
        assert process.poll() is None
        process.send_signal(number)
        _, text = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    if number == signal.SIGKILL:
        os.killpg(int(started.read_text()), signal.SIGKILL)  # its group, which nobody else has ended
        assert any(name.startswith(".new-") for name in site.names())
    else:
        assert process.returncode == 1 and text.startswith("Error: The deployment was interrupted\n")
        assert site.names() == {first}
    assert site.production.resolve().name == first
    site.repository.commit({"Puppetfile": None})
    assert site.deployed()["before"] == first
    assert not any(name.startswith(".") for name in site.names())


def test_somebody_elses_folders_are_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.repository.commit(CODE)
    site.deployed()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    said = site.deploy()
    assert said.code == 1 and "not to 4711, as whom this deployment runs" in said.err


def _tree(root: Path) -> Mapping[str, int]:
    return {str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_file()}


def test_files_can_be_read_by_a_master_of_another_account_whatever_the_umask(site: Site) -> None:
    site.repository.commit(CODE)
    (site.repository.folder / "bin/tool").chmod(0o755)
    site.repository.commit({})
    before = os.umask(0o077)
    try:
        site.deployed()
    finally:
        os.umask(before)
    modes = _tree(site.production.resolve())
    assert modes["manifests/site.pp"] == modes[".puppet-deploy.json"] == 0o644 and modes["bin/tool"] == 0o755
    assert all(folder.stat().st_mode & 0o055 == 0o055 for folder in (site.versions, site.versions.parent, site.production.resolve()))


@pytest.mark.slow
def test_masters_that_share_their_state_deploy_by_the_same_commands(site: Site, empty_postgresql_url: str, tmp_path: Path) -> None:
    shared = [f"--state={empty_postgresql_url}"]
    first = site.repository.commit(CODE)
    assert site.deploy(*shared).out.endswith(f"production is {first} now\n")
    second = site.repository.commit({"manifests/site.pp": ""})
    assert site.deployed(*shared)["before"] == first
    assert site.deploy(*shared, "--rollback").out.endswith(f"production is {first} now, before it was {second}\n")
    assert "was rolled back to" in site.deploy(*shared, "--pushed").err

    there = tmp_path / "other"
    there.mkdir()
    other = [*site.options()[1:], f"--environmentpath={there}", *shared]
    assert site.puppet("deploy", "--follow", *other) == Said(0, ANY, "")
    assert (there / "production").resolve().name == first
    listed = site.puppet("deploy", "--list", *other).out.splitlines()
    assert [line.split()[-3] for line in listed[1:]] == [second, first] and listed[2].startswith(f"  * {first}  production, ")

    assert site.deploy(*shared, "--remove").out.endswith("Removed the environment production\n")
    assert site.puppet("deploy", "--follow", *other).code == 0
    assert not (there / "production").is_symlink()
    assert "shares its state with no other" in site.puppet("deploy", "--follow", *site.options()).err
    assert "is away" in site.deploy("--state=postgresql://nobody@127.0.0.1:1/none").err
