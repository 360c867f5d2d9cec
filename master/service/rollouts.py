"""What watches the rollouts of a master, as its settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from environments.directories import Environments
from environments.runs import current_versions
from shared.settings import MasterSettings

from ..orders.waiting import WaitingAgents
from ..rollouts.actions import program_folder
from ..rollouts.storage import RolloutFiles
from ..rollouts.watch import RolloutWatch
from .deployments import switch_by_program

if TYPE_CHECKING:
    from ..code.shared import SharedCode


def rollout_watch(settings: MasterSettings, environments: Environments, code: SharedCode | None, agents: WaitingAgents) -> RolloutWatch:
    """Return what watches the rollouts, of this master or of all that share its state."""
    current, timeout = current_versions(environments.root_of), settings.command_timeout
    if code is None:
        return RolloutWatch(
            RolloutFiles(settings.environmentpath),
            environments.root_of,
            current,
            switch_by_program(settings),
            timeout=timeout,
            agents=agents,
        )
    from ..rollouts.rows import TOPIC as ROLLOUTS
    from ..rollouts.rows import RolloutRows

    watch = RolloutWatch(
        RolloutRows(code.state.database, settings.certname),
        environments.root_of,
        code.runs.current,
        switch_by_program(settings),
        version_of_run=code.runs.version_under_way,
        programs=program_folder(settings),
        timeout=timeout,
        agents=agents,
    )
    code.state.notices.on(ROLLOUTS, watch.hear)
    return watch
