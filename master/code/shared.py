"""The code of a master that shares its state with others, put together from its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from environments.directories import Environments
from environments.runs import RunVersions, current_versions
from shared.settings import MasterSettings
from shared.state.masters import SharedState

from .delivery import Deploy
from .follower import CodeFollower, Follow, FollowerOptions
from .knowledge import CodeKnowledge
from .pushes import SharedPushes
from .rows import TOPIC
from .runs import CURRENT_VERSION, NewRun, RunRows


@dataclass(frozen=True, slots=True)
class SharedCode:
    """What a master knows of the code that it shares with others."""

    state: SharedState
    runs: RunRows
    follower: CodeFollower

    @classmethod
    def of(
        cls,
        settings: MasterSettings,
        environments: Environments,
        state: SharedState,
        follow: Follow,
        on_problem: Callable[[str], None],
        new_run: NewRun = CURRENT_VERSION,
    ) -> SharedCode:
        """Return the code of a master; nothing is looked at yet. For the callbacks see `CodeFollower`, for `new_run` `RunRows`."""
        code = CodeKnowledge(environments.settings.environmentpath)
        alone = RunVersions(current_versions(environments.root_of), settings.deploy_keep_time)
        runs = RunRows(state.database, code, alone, settings.deploy_keep_time, new_run)
        options = FollowerOptions(settings.certname, settings.deploy_timeout, settings.deploy_keep, settings.deploy_keep_time)
        follower = CodeFollower(state.database, code, options, follow, on_problem)
        state.notices.on(TOPIC, follower.hear)
        return cls(state, runs, follower)

    def pushes(self, settings: MasterSettings, deploy: Deploy) -> SharedPushes:
        """Return the queue of the web hook."""
        pushes = SharedPushes(self.state.database, deploy, settings.deploy_hook_queue, settings.certname)
        self.state.notices.on(TOPIC, pushes.hear)
        return pushes
