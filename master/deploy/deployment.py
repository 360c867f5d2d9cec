"""A deployment from its ref to the switch of the link, and the way back."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from environments.directories import Environments, read_environment
from environments.files.code_files import DiskFiles
from environments.revisions import DEPLOYMENT
from environments.settings import environment_settings
from environments.versions import check_branch, is_named_after, place_of
from shared.data import plainjson
from shared.errors import ConfigError, Conflict, NotFound, PuppetError
from shared.filesystem.files import links_out_of, write_atomic
from shared.git import Git, check_ref, is_commit
from shared.names import valid_environment
from shared.settings import MasterSettings

from ..checks.environments import check_code
from ..checks.findings import Finding, run_check
from ..code.archive import VersionArchive
from ..code.history import VersionHistory
from ..rollouts.machine import COMPLETING, Rollout, RolloutCommand, advance
from ..rollouts.storage import RolloutFiles, RolloutStorage, update_rollout
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
    findings: Sequence[Finding] = ()

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
class Switched:
    """What was current before a switch, what else is to be said of it, and which versions masters still need."""

    before: str | None
    findings: Sequence[Finding] = ()
    spare: Collection[str] = ()


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
        root = place_of(name, paths)
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
        with plain_umask(), archive.locked(self.patience(is_pushed=options.is_pushed)):
            if options.abort_rollout:
                self._abort_rollout(environment)
            self.check_rollout(environment)
            history = self.history(environment)
            version, commit, ref, findings = self._store(archive, history, options)
            switched = self.switch(archive, version, history, is_new=True, adopt=options.adopt)
            removed = archive.expire(keep=self.settings.deploy_keep, for_seconds=self.settings.deploy_keep_time, spare=switched.spare)
        return DeploymentResult(environment, version, switched.before, commit, ref, removed, [*findings, *switched.findings])

    def prepare(self, environment: str, options: DeploymentOptions) -> DeploymentResult:
        """
        Store a version for a rollout; the environment is unchanged. Blocks.

        Raises:
            Conflict: The environment was never deployed, is this version already, or has a rollout.
            ChecksFailed, PuppetError: As `deploy`.
        """
        archive = self.archive(environment)
        with plain_umask(), archive.locked(self.patience()):
            self.check_rollout(environment)
            history, before = self.history(environment), self.current(archive)
            if before is None:
                raise Conflict(f"{environment} has no version before this one", hint=f"Deploy it once: puppet deploy {environment}.")
            version, commit, ref, findings = self._store(archive, history, options)
            if version == before:
                raise Conflict(f"{environment} is {version} already", hint="There is nothing to roll out.")
            archive.add_to_history(version)
        return DeploymentResult(environment, version, before, commit, ref, findings=findings)

    def current(self, archive: VersionArchive) -> str | None:
        """Return the current version of an environment; None when it is not deployed."""
        return archive.current()

    def admit(self, archive: VersionArchive, version: str) -> None:
        """Have masters be ready for a rollout of a version that is stored here. Blocks; the caller holds the lock. Raises PuppetError."""

    def _store(self, archive: VersionArchive, history: VersionHistory, options: DeploymentOptions) -> tuple[str, str, str, list[Finding]]:
        """Return the version of a ref, which is stored, its commit, the ref and the findings of the checks; the caller holds the lock."""
        environment = archive.root.name
        ref, repository = check_ref(options.ref or environment), self.repository(options.repository)
        commit = repository.commit_of(ref)
        if options.is_pushed:
            check_branch(environment, history.record, ref)
            history.check_rollback(commit)
        self.say(f"{ref} of {repository.name} is {commit}")
        version = self.stored_version(archive, commit, options)
        if version:
            return version, commit, ref, []
        with archive.staging() as staging:
            version, findings = self._make(archive, staging, commit, ref, repository, options)
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
        def change(rollout: Rollout, now: float) -> Rollout:
            return advance(rollout, [RolloutCommand("abort", "puppet deploy")], now) if rollout.is_active else rollout

        before, rollout = update_rollout(self.rollouts, environment, change)
        if rollout is not before:
            self.say(f"Aborted the rollout of {environment}")

    @property
    def rollouts(self) -> RolloutStorage:
        """The rollouts of all environments."""
        return RolloutFiles(self.settings.environmentpath)

    def repository(self, address: str, *, most: float = math.inf) -> Repository:
        """Return the control repository, '' for that of the settings; it has `most` seconds to answer. Raise ConfigError, Unsupported."""
        git = Git(min(self.settings.deploy_timeout, most), self.settings.deploy_path)
        return Repository.at(address or self.settings.deploy_repository, git)

    def patience(self, *, is_pushed: bool = False) -> float:
        """Return the seconds to wait for the end of another deployment of the environment."""
        return 0

    def history(self, environment: str) -> VersionHistory:
        """Return the versions of an environment; raise PuppetError when their history cannot be read."""
        return self.archive(environment).history()

    def stored_version(self, archive: VersionArchive, commit: str, options: DeploymentOptions) -> str:
        """Return the stored version that a commit would become; '' when that is not known before its modules are installed."""
        kept = archive.record(commit)
        return commit if kept and not kept.get("modules") else ""  # without a Puppetfile the commit is all of the version

    def switch(self, archive: VersionArchive, version: str, history: VersionHistory, *, is_new: bool, adopt: bool) -> Switched:
        """Have a version become current; see `VersionArchive.switch`. The caller holds the lock."""
        return Switched(archive.switch(version, is_new=is_new, adopt=adopt))

    def fill(self, archive: VersionArchive, staging: Path, commit: str, repository: Repository) -> str:
        """Write the files of a commit and the modules of its Puppetfile; return the modules' installer, '' when there are none."""
        repository.export(commit, staging)
        self.say(f"Fetched the files of {commit}")
        (staging / DEPLOYMENT).unlink(missing_ok=True)  # a commit may hold one, from whoever
        programs = Programs(self.settings.deploy_timeout, self.settings.deploy_path)
        modules = install_modules(staging, programs, self.bring_modules, cache=archive.folder / "g10k")
        if modules:
            self.say(f"{modules} has installed the modules of the Puppetfile")
        return modules

    def add_version(self, archive: VersionArchive, staging: Path, version: str, described: Mapping[str, str]) -> None:
        """Make complete files a version, with its record: `commit`, `ref`, `repository` and `modules` are from its description."""
        names = ("commit", "ref", "repository", "modules")
        record = {
            "format": FORMAT,
            "environment": archive.root.name,
            "signature": version,
            **{name: described[name] for name in names},
            "deployed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_atomic(staging / DEPLOYMENT, plainjson.dumps_pretty(record))
        flush(staging)
        archive.add(staging, version)

    def _make(
        self, archive: VersionArchive, staging: Path, commit: str, ref: str, repository: Repository, options: DeploymentOptions
    ) -> tuple[str, list[Finding]]:
        """Make a version from the files of a commit; return its name and the findings of the checks."""
        environment = archive.root.name
        modules = self.fill(archive, staging, commit, repository)
        # The modules of one commit may differ from day to day.
        version = f"{commit}-{digest_of(staging)[:16]}" if modules else commit
        findings: list[Finding] = []
        if options.checks:
            self.say("Checking the code")
            findings = self._findings(environment, staging, archive)
        if any(finding.severity == "error" for finding in findings):
            raise ChecksFailed(environment, ref, findings)
        if not archive.record(version):
            described = {"commit": commit, "ref": ref, "repository": repository.name, "modules": modules}
            self.add_version(archive, staging, version, described)
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
        with plain_umask(), archive.locked(self.patience()):
            history = self.history(environment)
            target = history.require(version) if version else history.before_current()
            self.check_rollout(environment, target)
            record = next(each.record for each in history.versions if each.code_id == target)
            switched = self.switch(archive, target, history, is_new=False, adopt=False)
        return DeploymentResult(environment, target, switched.before, record.get("commit"), record.get("ref"), [], switched.findings)

    def remove(self, environment: str) -> None:
        """Remove an environment that was deployed, with all its versions. Blocks; raises PuppetError."""
        archive, history = self.archive(environment), self.history(environment)
        if not history.versions:
            raise NotFound(f"puppet deploy has made no version of {environment}", hint="See puppet deploy --list.")
        with archive.locked(self.patience()):
            self.check_rollout(environment)
            self.remove_versions(archive)

    def remove_versions(self, archive: VersionArchive) -> None:
        """Remove an environment and its versions; the caller holds the lock."""
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
        repository = self.repository(address, most=most)
        return repository.name, repository.refs()

    def current_record(self, environment: str) -> dict[str, Any]:
        """Return the stored record of an environment's current version; an empty one when there is none."""
        return self.history(environment).record

    def is_gone(self, environment: str, refs: tuple[str, set[str]]) -> bool:
        """Return whether an environment was deployed from a branch or tag that the repository no longer has."""
        record = self.current_record(environment)
        ref = record.get("ref")
        return isinstance(ref, str) and record.get("repository") == refs[0] and not is_commit(ref) and ref not in refs[1]

    def environments(self) -> list[str]:
        """Return the names of the environments that were deployed."""
        return self.environments_here()

    def masters(self) -> Mapping[str, str]:
        """Return the masters that share the environments and live, with the problem that takes one out, or ''; none without such."""
        return {}

    def environments_here(self) -> list[str]:
        """Return the names of the environments that have versions on this machine."""
        names = Environments(environment_settings(self.settings)).names()
        return [name for name in names if self.archive(name).versions()]


class plain_umask:
    """Set a umask with which a master of another account can read new files."""

    def __enter__(self) -> None:
        self._before = os.umask(0o022)

    def __exit__(self, *error: object) -> None:
        os.umask(self._before)
