"""Deployments to all masters that share a database: each makes the same folder, and one row switches the environment for all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC

from environments.revisions import is_code_id
from shared.errors import BadData, PuppetError, Unavailable, Unsupported
from shared.git import is_commit, without_credentials
from shared.state.database import StateAway, StateDatabase

from ..checks.findings import Finding
from ..code import rows
from ..code.archive import ADOPTED, VersionArchive
from ..code.follower import CodeProblem
from ..code.history import DeployedVersion, VersionHistory
from ..rollouts.rows import RolloutRows
from ..rollouts.storage import RolloutStorage
from .deployment import DeploymentOptions, Deployments, Switched, plain_umask
from .git import Repository
from .tree import digest_of

_PAUSE = 0.25  # seconds between two looks at a deployment that is pending
_LINKED = 10.0  # seconds in which this machine's link follows the row
_PATIENCE = 60.0  # seconds beyond a deployment's time for which the database may be away


@dataclass(frozen=True, slots=True)
class SharedDeployments(Deployments):
    """Deploys to the environments of all masters; the current versions and their history are those of the rows."""

    database: StateDatabase = field(kw_only=True)

    def patience(self, *, is_pushed: bool = False) -> float:
        """Return the seconds to wait until the version before is linked; more if a push is the reason, for nobody repeats it."""
        return max(_LINKED, self.settings.deploy_timeout) if is_pushed else _LINKED

    def repository(self, address: str, *, most: float = math.inf) -> Repository:
        """
        Return the control repository of the settings.

        Another one is refused (Unsupported): who can write to the database must not decide where the code of all nodes comes from.
        """
        own = self.settings.deploy_repository
        if address and without_credentials(address) != without_credentials(own):
            raise Unsupported(
                f"{without_credentials(address)} is not the control repository of this master",
                hint="Masters that share their state deploy from the setting deploy_repository only, the same on all.",
            )
        return Deployments.repository(self, own, most=most)

    def environments(self) -> list[str]:
        """Return the names of the environments that masters share."""
        current = self._snapshot().current
        return sorted(name for name in current if current[name].version is not None)

    def history(self, environment: str) -> VersionHistory:
        """Return the versions of an environment, as the rows say."""
        current, stored = self.database.transact(lambda connection: rows.read_history(connection, environment))
        return VersionHistory(environment, [_deployed(each, each.version.version == current) for each in stored])

    def stored_version(self, archive: VersionArchive, commit: str, options: DeploymentOptions) -> str:
        """Return the stored version that a commit would become; what was pushed is not deployed twice, for two masters may hear of it."""
        versions = self.history(archive.root.name).versions
        if options.is_pushed and versions and versions[-1].current and versions[-1].record["commit"] == commit:
            return versions[-1].code_id
        return Deployments.stored_version(self, archive, commit, options)

    @property
    def rollouts(self) -> RolloutStorage:
        """The rollouts of all masters."""
        return RolloutRows(self.database, self.settings.certname)

    def current(self, archive: VersionArchive) -> str | None:
        """Return the current version of an environment, as the rows say; raise Unavailable while this master does not have it."""
        current = self.history(archive.root.name).current
        if current is not None and not archive.record(current.code_id):
            message = f"This master does not have the version {current.code_id} of the environment {archive.root.name} yet"
            raise Unavailable(message, hint="Try again when it has, or on another master.")
        return current.code_id if current is not None else None

    def admit(self, archive: VersionArchive, version: str) -> None:
        """Have all masters make a version, and learn that runs may get it soon; wait for that. See `Deployments.admit`."""
        described = self._described(archive, version)
        self.database.transact(lambda connection: rows.add_version(connection, described))
        for finding in self._ended(archive, self._begin(archive, version, is_rollout=True)):
            self.say(finding.message)

    def switch(self, archive: VersionArchive, version: str, history: VersionHistory, *, is_new: bool, adopt: bool) -> Switched:
        """
        Have a version become current on all masters, and wait for that. The caller holds the lock.

        Raises:
            Unavailable: Another deployment of the environment is under way.
            Unsupported: Only this master has the version.
            PuppetError: No master has the version.
        """
        environment, findings = archive.root.name, []
        if version.startswith(ADOPTED):
            raise Unsupported(f"Only this master has the version {version} of {environment}", hint="Masters share what was deployed.")
        archive.check_place(adopt=adopt)
        before = history.current.code_id if history.current is not None else None
        if version != before or (is_new and not history.versions[-1].current):
            described = self._described(archive, version) if is_new else None
            findings = list(self._switch_rows(archive, version, described, is_new=is_new, adopt=adopt))
        if archive.record(version) and archive.current() != version:
            archive.switch(version, is_new=is_new, adopt=adopt)
        return Switched(before, findings, self._wanted(environment))

    def remove_versions(self, archive: VersionArchive) -> None:
        """Remove an environment on all masters; the caller holds the lock."""
        archive.check_removal()
        for finding in self._ended(archive, self._begin(archive, "")):
            self.say(finding.message)
        archive.remove()

    def follow(self) -> list[CodeProblem]:
        """Make and link here what other masters have deployed; return what could not be made. Blocks."""
        snapshot = self._snapshot()
        problems: list[CodeProblem] = []
        for environment in sorted({*snapshot.current, *(each.environment for each in snapshot.pending)}):
            try:
                archive = self.archive(environment)
                with plain_umask(), archive.locked(_LINKED):
                    problems += self._follow(archive, snapshot)
            except (PuppetError, OSError) as err:
                problems.append(CodeProblem(environment, "", str(err)))
        return problems

    def masters(self) -> Mapping[str, str]:
        """Return the masters that live, with the problem that takes one out, or ''."""
        return self.database.transact(rows.living_masters)

    def _follow(self, archive: VersionArchive, snapshot: rows.Snapshot) -> Iterator[CodeProblem]:
        """Bring one environment to where the rows are; yield the versions that could not be made."""
        environment = archive.root.name
        current = snapshot.current.get(environment)
        target = (current.version if current is not None else None) or ""
        pending = [each for each in snapshot.pending if each.environment == environment and each.version]
        if current is not None and not target and not pending:
            if archive.versions():
                archive.remove()
            return
        wanted = [version for version in snapshot.wanted if version.environment == environment]
        for version in sorted(wanted, key=lambda version: version.version != target):  # the current one first
            if not archive.record(version.version):
                try:
                    self._make_again(archive, version)
                except (PuppetError, OSError) as err:
                    yield CodeProblem(environment, version.version, str(err))
        # Before the first switch, so that no agent is told that there is no such environment after it.
        if not archive.root.is_symlink() and pending:
            target = target or pending[0].version
        if target and archive.record(target) and archive.current() != target:
            archive.switch(target, is_new=True, adopt=environment in snapshot.adopted)
        spare = {version.version for version in wanted}
        archive.expire(keep=self.settings.deploy_keep, for_seconds=self.settings.deploy_keep_time, spare=spare)

    def _make_again(self, archive: VersionArchive, version: rows.Version) -> None:
        """Make a version here that another master has made; raise PuppetError when the files would be others."""
        if not is_commit(version.commit) or not is_code_id(version.version):
            raise BadData(f"The row of the version {version.version[:80]!r} names no commit")
        repository = self.repository(version.repository)
        with archive.staging() as staging:
            self.fill(archive, staging, version.commit, repository)
            if digest_of(staging) != version.digest:
                raise PuppetError(
                    f"The files of the version {version.version} are not those of the master that deployed it",
                    hint="A Puppetfile has to name the modules' versions, and all masters need the same installer of modules.",
                )
            described = {name: getattr(version, name) for name in ("commit", "ref", "repository", "modules")}
            self.add_version(archive, staging, version.version, described)

    def _described(self, archive: VersionArchive, version: str) -> rows.Version:
        record = archive.record(version)
        described = {name: str(record.get(name, "")) for name in ("commit", "ref", "repository", "modules")}
        return rows.Version(archive.root.name, version, digest=digest_of(archive.folder / version), **described)

    def _switch_rows(
        self, archive: VersionArchive, version: str, described: rows.Version | None, *, is_new: bool, adopt: bool
    ) -> Iterator[Finding]:
        """Have the environment's row switched, and wait for that; yield what is to be said of it."""
        if described is not None:
            self.database.transact(lambda connection: rows.add_version(connection, described))
        number = self._begin(archive, version, is_new=is_new, adopt=adopt)
        if archive.record(version) and not archive.root.is_symlink():
            archive.switch(version, is_new=True, adopt=adopt)  # our own master has the version when agents can ask for it
        yield from self._ended(archive, number)

    def _begin(self, archive: VersionArchive, version: str, *, is_new: bool = True, adopt: bool = False, is_rollout: bool = False) -> int:
        environment, who = archive.root.name, self.settings.certname
        options = {"is_new": is_new, "adopt": adopt, "is_rollout": is_rollout}
        return self.database.transact(lambda connection: rows.begin(connection, environment, version, who, **options))

    def _ended(self, archive: VersionArchive, number: int) -> Iterator[Finding]:
        """Wait until a deployment has ended; yield the masters that are left out. PuppetError when it has failed."""
        settings = self.settings
        options = {"timeout": settings.deploy_timeout, "keep": settings.deploy_keep, "keep_time": settings.deploy_keep_time}
        self.say("Waiting for the other masters")
        settlement = self._waited_for(lambda: self.database.transact(lambda connection: rows.settle(connection, number, **options)))
        if settlement.problem:
            details = "; ".join(f"{name}: {problem}" for name, problem in settlement.left_out.items())
            raise PuppetError(f"{archive.root.name} was not switched, because {settlement.problem}: {details}")
        for name, problem in settlement.left_out.items():
            yield Finding("environments", "warning", f"{name} is taken out until it has the version: {problem}")

    def _waited_for(self, look: Callable[[], rows.Settlement | None]) -> rows.Settlement:
        until = time.monotonic() + max(self.settings.deploy_timeout, rows.DEAD) + _PATIENCE
        while True:
            try:
                if (settlement := look()) is not None:
                    return settlement
            except StateAway:
                if time.monotonic() > until:
                    raise
            if time.monotonic() > until:
                raise Unavailable("The deployment is still pending", hint="See puppet deploy --list.")
            time.sleep(_PAUSE)

    def _snapshot(self) -> rows.Snapshot:
        return self.database.transact(lambda connection: rows.read_snapshot(connection, self.settings.deploy_keep_time))

    def _wanted(self, environment: str) -> set[str]:
        return {version.version for version in self._snapshot().wanted if version.environment == environment}


def _deployed(stored: rows.StoredVersion, is_current: bool) -> DeployedVersion:
    version = stored.version
    record = {name: getattr(version, name) for name in ("commit", "ref", "repository", "modules")}
    record["deployed_at"] = stored.deployed_at.astimezone(UTC).isoformat(timespec="seconds")
    replaced = stored.replaced_at.timestamp() if stored.replaced_at is not None else None
    return DeployedVersion(version.version, record, replaced, is_current)
