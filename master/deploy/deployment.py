"""A deployment from its ref to the switch of the link, and the way back."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from environments.directories import Environments, read_environment
from environments.files.code_files import DiskFiles
from environments.revisions import DEPLOYMENT
from environments.settings import environment_settings
from environments.versions import check_branch, is_named_after
from shared.data import plainjson
from shared.errors import ConfigError, Conflict, NotFound, PuppetError
from shared.filesystem.files import links_out_of, write_atomic
from shared.git import Git, check_ref, is_commit
from shared.names import valid_environment
from shared.settings import MasterSettings

from ..checks.environments import check_code
from ..checks.findings import Finding, run_check
from ..rollouts.machine import COMPLETING, Rollout, RolloutCommand, advance
from ..rollouts.storage import RolloutFiles, RolloutStorage, update_rollout
from .archive import VersionArchive
from .git import Repository
from .modules import BringModules, install_modules
from .programs import Programs
from .tree import digest_of, flush

FORMAT = 1


@dataclass(frozen=True, slots=True)
class DeploymentOptions:
    """
    The options of a deployment.

    Attributes:
        repository: The control repository's address; '' for that of the settings.
        ref: A branch, tag or whole commit id; '' for the branch with the environment's name.
        checks: Whether manifests, templates and data have to parse.
        adopt: Whether a folder that is in the link's place becomes a version.
        is_pushed: Whether a push is the reason: a rollback and another branch of the same name are then left alone.
        abort_rollout: Whether a rollout of the environment that is under way is aborted.
    """

    repository: str = ""
    ref: str = ""
    checks: bool = True
    adopt: bool = False
    is_pushed: bool = False
    abort_rollout: bool = False


@dataclass(frozen=True, slots=True)
class DeploymentResult:
    """
    The result of a deployment or a rollback.

    Attributes:
        before: The previous version; None: there was none.
        removed: Versions that were removed because they are old.
        findings: The findings of the checks, warnings only unless the deployment failed.
    """

    environment: str
    version: str
    before: str | None
    commit: str | None = None
    ref: str | None = None
    removed: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def to_data(self) -> dict[str, Any]:
        """Return the result as `--json` prints it."""
        return {
            "environment": self.environment,
            "version": self.version,
            "before": self.before,
            "changed": self.version != self.before,
            "commit": self.commit,
            "ref": self.ref,
            "removed": self.removed,
            "findings": [{"severity": each.severity, "message": each.message, "hint": each.hint} for each in self.findings],
        }


class ChecksFailed(PuppetError):
    """The code has errors: nothing was deployed."""

    def __init__(self, environment: str, ref: str, findings: list[Finding]) -> None:
        errors = sum(1 for finding in findings if finding.severity == "error")
        super().__init__(
            f"Deploying {ref} to environment {environment} failed: the checks found {errors} error{'s' if errors != 1 else ''}",
            hint="Nothing was changed. --no-checks skips the checks.",
        )
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Deployments:
    """Deploys to the environments of a master; `say` is called with each step, for `bring_modules` see `install_modules`."""

    settings: MasterSettings
    bring_modules: BringModules
    say: Callable[[str], None] = lambda text: None

    def archive(self, environment: str) -> VersionArchive:
        """Return the versions of an environment; ConfigError when its name is not one."""
        name = valid_environment(environment)
        paths = self.settings.environmentpath
        if not paths:
            raise ConfigError("There is no folder of environments", hint="The setting is environmentpath.")
        root = next((path / name for path in paths if os.path.lexists(path / name)), paths[0] / name)
        if not root.parent.is_dir():
            raise ConfigError(f"There is no folder of environments {root.parent}", hint="Make it, or set environmentpath.")
        return VersionArchive(root)

    def deploy(self, environment: str, options: DeploymentOptions) -> DeploymentResult:
        """
        Deploy a ref of the control repository to an environment, which is unchanged until the last step. Blocks.

        Raises:
            ChecksFailed: The code does not parse.
            PuppetError: It cannot be fetched, or another deployment is running.
        """
        archive = self.archive(environment)
        with _plain_umask(), archive.locked():
            if options.abort_rollout:
                self._abort_rollout(environment)
            self.check_rollout(environment)
            version, commit, ref, findings = self._store(archive, options)
            before = archive.switch(version, is_new=True, adopt=options.adopt)
            removed = archive.expire(keep=self.settings.deploy_keep, for_seconds=self.settings.deploy_keep_time)
        return DeploymentResult(environment, version, before, commit, ref, removed, findings)

    def prepare(self, environment: str, options: DeploymentOptions) -> DeploymentResult:
        """
        Store a version for a rollout; the environment is unchanged. Blocks.

        Raises:
            Conflict: The environment was never deployed, is this version already, or has a rollout.
            ChecksFailed, PuppetError: As `deploy`.
        """
        archive = self.archive(environment)
        with _plain_umask(), archive.locked():
            self.check_rollout(environment)
            before = archive.current()
            if before is None:
                raise Conflict(f"{environment} has no version before this one", hint=f"Deploy it once: puppet deploy {environment}.")
            version, commit, ref, findings = self._store(archive, options)
            if version == before:
                raise Conflict(f"{environment} is {version} already", hint="There is nothing to roll out.")
            archive.add_to_history(version)
        return DeploymentResult(environment, version, before, commit, ref, findings=findings)

    def _store(self, archive: VersionArchive, options: DeploymentOptions) -> tuple[str, str, str, list[Finding]]:
        """Return the version of a ref, which is stored, its commit, the ref and the findings of the checks; the caller holds the lock."""
        ref = check_ref(options.ref or archive.root.name)
        git = Git(self.settings.deploy_timeout, self.settings.deploy_path)
        repository = Repository.at(options.repository or self.settings.deploy_repository, git)
        commit = repository.commit_of(ref)
        if options.is_pushed:
            check_branch(archive.root, ref)
            archive.check_rollback(commit)
        self.say(f"{ref} of {repository.name} is {commit}")
        kept = archive.record(commit)
        if kept and not kept.get("modules"):
            return commit, commit, ref, []  # without a Puppetfile the commit is all of the version
        with archive.staging() as staging:
            repository.export(commit, staging)
            self.say(f"Fetched the files of {commit}")
            version, findings = self._complete(archive, staging, commit, ref, repository, options)
        return version, commit, ref, findings

    def check_rollout(self, environment: str, version: str = "") -> None:
        """Raise Conflict when the environment has a rollout under way, unless that has only to switch to this version."""
        stored = self.rollouts.load(environment)
        if stored is None or not stored.rollout.is_active:
            return
        rollout = stored.rollout
        if version and rollout.status == COMPLETING and rollout.plan.after == version:
            return
        raise Conflict(
            f"A rollout of {environment} to {rollout.plan.ref or rollout.plan.after} is {rollout.status} (wave {rollout.step_name})",
            hint=f"See puppet rollout status {environment}. To abort it and deploy to all nodes: puppet deploy --now --abort-rollout.",
        )

    def _abort_rollout(self, environment: str) -> None:
        def change(rollout: Rollout) -> Rollout:
            return advance(rollout, [RolloutCommand("abort", "puppet deploy")], time.time()) if rollout.is_active else rollout

        before, rollout = update_rollout(self.rollouts, environment, change)
        if rollout is not before:
            self.say(f"Aborted the rollout of {environment}")

    @property
    def rollouts(self) -> RolloutStorage:
        """The rollouts of all environments."""
        return RolloutFiles(self.settings.environmentpath)

    def _complete(
        self, archive: VersionArchive, staging: Path, commit: str, ref: str, repository: Repository, options: DeploymentOptions
    ) -> tuple[str, list[Finding]]:
        """Make a version from the files of a commit; return its name and the findings of the checks."""
        environment = archive.root.name
        (staging / DEPLOYMENT).unlink(missing_ok=True)  # a commit may hold one, from whoever
        programs = Programs(self.settings.deploy_timeout, self.settings.deploy_path)
        modules = install_modules(staging, programs, self.bring_modules, cache=archive.folder / "g10k")
        if modules:
            self.say(f"{modules} has installed the modules of the Puppetfile")
        # The modules of one commit may differ from day to day.
        version = f"{commit}-{digest_of(staging)[:16]}" if modules else commit
        findings: list[Finding] = []
        if options.checks:
            self.say("Checking the code")
            findings = self._findings(environment, staging, archive)
        if any(finding.severity == "error" for finding in findings):
            raise ChecksFailed(environment, ref, findings)
        if archive.record(version):
            return version, findings
        record = {
            "format": FORMAT,
            "environment": environment,
            "signature": version,
            "commit": commit,
            "ref": ref,
            "repository": repository.name,
            "modules": modules,
            "deployed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_atomic(staging / DEPLOYMENT, plainjson.dumps_pretty(record))
        flush(staging)
        archive.add(staging, version)
        return version, findings

    def _findings(self, environment: str, staging: Path, archive: VersionArchive) -> list[Finding]:
        """Return the findings of the checks in files that will become a version, with their final names."""
        settings = environment_settings(self.settings)

        def check() -> Iterator[Finding]:
            for link in links_out_of(staging):
                message = f"{link} is a link to {link.readlink()}, out of the environment"
                yield Finding("environments", "warning", message, "What is there belongs to no version: it may change at any time.")
            yield from check_code(
                self.settings, read_environment(environment, str(archive.root), DiskFiles(), settings, version=str(staging))
            )

        findings = run_check("environments", check)
        place = str(staging)
        return [Finding(each.area, each.severity, each.message.replace(place, environment), each.hint) for each in findings]

    def roll_back(self, environment: str, version: str = "") -> DeploymentResult:
        """Switch an environment to a stored version: the one before the current one, or a named one. Blocks; raises PuppetError."""
        archive = self.archive(environment)
        with _plain_umask(), archive.locked():
            target = archive.require(version) if version else archive.before_current()
            self.check_rollout(environment, target)
            before = archive.switch(target, is_new=False)
            record = archive.record(target)
        return DeploymentResult(environment, target, before, record.get("commit"), record.get("ref"))

    def remove(self, environment: str) -> None:
        """Remove an environment that was deployed, with all its versions. Blocks; raises PuppetError."""
        archive = self.archive(environment)
        if not archive.versions():
            raise NotFound(f"puppet deploy has made no version of {environment}", hint="See puppet deploy --list.")
        with archive.locked():
            self.check_rollout(environment)
            archive.remove()

    def prune(self, names: Sequence[str], address: str = "") -> list[str]:
        """
        Remove the environments whose branch was removed, of these or of all; return their names. Blocks; raises PuppetError.

        Nothing is removed unless the repository answers, and the agents' default environment is never removed.

        Args:
            address: The repository; '' for that of the settings.
        """
        refs = self.refs(address)
        removed = []
        for name in names or self.environments():
            if self.is_gone(name, refs) and is_named_after(name, self.current_record(name)["ref"]):
                if name == self.settings.environment:
                    self.say(f"{name} is not removed, although its branch was removed: it is the default environment")
                    continue
                self.remove(name)
                removed.append(name)
        return removed

    def refs(self, address: str = "", *, most: float = math.inf) -> tuple[str, set[str]]:
        """Return the name of the repository, and its branches and tags; it has `most` seconds to answer. Blocks; raises PuppetError."""
        git = Git(min(self.settings.deploy_timeout, most), self.settings.deploy_path)
        repository = Repository.at(address or self.settings.deploy_repository, git)
        return repository.name, repository.refs()

    def current_record(self, environment: str) -> dict[str, Any]:
        """Return the stored record of an environment's current version; an empty one when there is none."""
        archive = self.archive(environment)
        return archive.record(archive.current() or "")

    def is_gone(self, environment: str, refs: tuple[str, set[str]]) -> bool:
        """Return whether an environment was deployed from a branch or tag that the repository no longer has."""
        record = self.current_record(environment)
        ref = record.get("ref")
        return isinstance(ref, str) and record.get("repository") == refs[0] and not is_commit(ref) and ref not in refs[1]

    def environments(self) -> list[str]:
        """Return the names of the environments that have versions."""
        names = Environments(environment_settings(self.settings)).names()
        return [name for name in names if self.archive(name).versions()]


class _plain_umask:
    """Set a umask with which a master of another account can read new files."""

    def __enter__(self) -> None:
        self._before = os.umask(0o022)

    def __exit__(self, *error: object) -> None:
        os.umask(self._before)
