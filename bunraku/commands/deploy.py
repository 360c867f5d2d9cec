"""Deploy a commit of the control repository."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from master.checks.findings import Finding
from master.deploy.deployment import ChecksFailed, DeploymentOptions, DeploymentResult, Deployments
from master.deploy.modules import BringModules
from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, PuppetError
from shared.process.cli import flag, optional_text, text
from shared.process.command import CommandSpec
from shared.process.service import account_of
from shared.settings import AgentSettings, MasterSettings, load
from shared.state.masters import SharedState

from ..console import say
from ..faces import JsonFaceOptions

LISTING_TIMEOUT = 10.0  # seconds in which a repository answers a listing that shows the most without it


@dataclass(frozen=True, slots=True)
class DeployOptions(JsonFaceOptions):
    """The command line of `puppet deploy`."""

    repo: str = text("ADDRESS", "the control repository, in place of the setting deploy_repository")
    ref: str = text("REF", "a branch, tag or commit; without it the branch with the environment's name")
    checks: bool = flag("do not check that manifests, EPP templates, hiera.yaml and data parse", default=True, negatable=True)
    adopt: bool = flag("replace a folder that neither puppet deploy nor the master has made, and store it as a version")
    pushed: bool = flag("for web hooks: skip a commit that was rolled back, and an environment that has another branch")
    now: bool = flag("deploy to all nodes at once")
    abort_rollout: bool = flag("with --now: abort a rollout of the environment that is under way")
    rollback: str | None = optional_text("VERSION", "return to the previous version, or to the given one")
    remove: bool = flag("remove an environment that puppet deploy has made, with all its versions")
    prune: bool = flag("remove the given environments, or all, whose branch the repository no longer has; never the default environment")
    follow: bool = flag("make here what other masters of the same state have deployed; masters do this by themselves")
    list: bool = flag("print the versions, and mark environments whose branch was removed")

    def check_options(self) -> None:
        JsonFaceOptions.check_options(self)
        if self.abort_rollout and not self.now:
            raise ConfigError("--abort-rollout gives the new version to all nodes at once", hint="Confirm that with --now.")


@CommandSpec(
    "deploy",
    DeployOptions,
    (MasterSettings,),
    usage=[
        "ENVIRONMENT [--repo ADDRESS] [--ref BRANCH|TAG|COMMIT] [--no-checks] [--adopt] [--now] [--json]",
        "ENVIRONMENT --rollback [VERSION] [--json]",
        "ENVIRONMENT --remove [--json]",
        "[ENVIRONMENT...] --prune [--repo ADDRESS] [--json]",
        "[ENVIRONMENT] --list [--json]",
        "--follow [--json]",
    ],
    text="""Fetches a commit of the control repository into a folder of its own, installs the modules of its Puppetfile (by r10k or g10k
    where one is installed), checks it, and then switches the environment's symlink to that folder, atomically: agents see all of it or
    nothing. The last versions stay stored (deploy_keep). --prune removes nothing unless the repository answers. Masters that share their
    state (the setting state) all make the same folder and are switched together, whichever of them the command runs on.""",
    notes="""Exit codes: 0 it is deployed (or was already); 1 it is not, and nothing has changed.

    Deployed files are owned by the master's account (the setting user): root hands the environments over to it and continues as that
    account. With --user root, or when another user runs the command, they are owned by that user.""",
).main
def main(options: DeployOptions, flags: dict[str, Any]) -> int:
    settings = load(MasterSettings, section="master", flags=flags)
    quiet = options.as_json
    own_settings = load(AgentSettings, section="user", flags=flags)  # before another account has other folders by default
    say_step: Callable[[str], None] = (lambda text: None) if quiet else (lambda text: print(f"Notice: {text}", flush=True))
    with open_deployments(settings, lambda root: bring_modules(root, own_settings), say_step) as deployments:
        return _run(deployments, options)


def _run(deployments: Deployments, options: DeployOptions) -> int:
    """Do what the command line asks for; return the exit code."""
    if options.follow:
        return follow(deployments, options)
    if options.list:
        become_deployer(deployments, ())
        return show_versions(deployments, options)
    if len(options.arguments) != 1 and not options.prune:
        raise ConfigError("puppet deploy takes the name of one environment", hint=options.flag_hint or "See 'puppet help deploy'.")
    if options.rollback is not None and (options.repo or options.ref or options.adopt):
        raise ConfigError("--rollback returns to a stored version: it takes neither --repo, --ref nor --adopt")
    names = options.arguments or tuple(deployments.environments_here())
    become_deployer(deployments, names, adopt=options.adopt)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if options.prune:
            return _print_removed(deployments.prune(options.arguments, options.repo), options)
        if options.remove:
            deployments.remove(options.arguments[0])
            return _print_removed([options.arguments[0]], options)
        if options.rollback is not None:
            result = deployments.roll_back(options.arguments[0], options.rollback)
        else:
            wanted = DeploymentOptions(options.repo, options.ref, options.checks, options.adopt, options.pushed, options.abort_rollout)
            result = deployments.deploy(options.arguments[0], wanted)
    except ChecksFailed as err:
        print_findings(err.findings)
        raise
    except OSError as err:
        raise PuppetError(f"The deployment failed: {err}") from err
    except KeyboardInterrupt as err:
        hint = "Partial files are removed; 'puppet deploy --list' shows the current version."
        raise PuppetError("The deployment was interrupted", hint=hint) from err
    finally:
        signal.signal(signal.SIGTERM, before)
    if options.as_json:
        sys.stdout.buffer.write(dumps_pretty(result.to_data()))
    else:
        _print_result(result)
    return 0


@contextmanager
def open_deployments(settings: MasterSettings, bring: BringModules, say_step: Callable[[str], None]) -> Iterator[Deployments]:
    """Open the deployments of one master, or of all that share its state; raise ConfigError when a library is missing."""
    state = SharedState.at(settings.state)
    if state is None:
        yield Deployments(settings, bring, say_step)
        return
    from master.deploy.shared import SharedDeployments

    try:
        yield SharedDeployments(settings, bring, say_step, database=state.database)
    finally:
        asyncio.run(state.database.close())


def follow(deployments: Deployments, options: DeployOptions) -> int:
    """Bring this master to where the others are; print what could not be made."""
    from master.deploy.shared import SharedDeployments

    if not isinstance(deployments, SharedDeployments):
        raise ConfigError("This master shares its state with no other", hint="The setting is state.")
    # The environments that others have deployed are not known to root, whom a database may not know.
    become_deployer(deployments, deployments.environments_here() or [deployments.settings.environment])
    problems = deployments.follow()
    if options.as_json:
        sys.stdout.buffer.write(dumps_pretty({"problems": [asdict(problem) for problem in problems]}))
        return 0
    for problem in problems:
        print(f"Error: {problem.environment}: {problem.problem}", file=sys.stderr)
    return 1 if problems else 0


def become_deployer(deployments: Deployments, environments: Sequence[str], *, adopt: bool = False) -> None:
    """Go on as the master's account if we are root, which hands these environments over to it; raise PuppetError when that fails."""
    settings, archives = deployments.settings, [deployments.archive(name) for name in environments]
    if (account := account_of(settings)) is None:
        return  # without such an account there is no service that root could lock out
    from master.process import take_service_account

    try:
        for archive in archives:
            archive.hand_over(*account, adopt=adopt)
        take_service_account(settings)
    except OSError as err:
        raise PuppetError(f"The environments could not be handed over to {settings.user}: {err}") from err


def bring_modules(root: Path, settings: AgentSettings) -> None:
    """Bring the modules of the Puppetfile in a folder; raise PuppetError when that fails."""
    from ..modules.puppetfiles.deployment import install_puppetfile
    from ..modules.puppetfiles.puppetfile import read_puppetfile

    puppetfile = read_puppetfile(root)
    if puppetfile is not None:
        asyncio.run(install_puppetfile(puppetfile, root, settings, say=lambda level, text: say(level, text)))


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def print_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print(f"{finding.severity.capitalize()}: {finding.message}", file=sys.stderr)


def _print_result(result: DeploymentResult) -> None:
    print_findings(result.findings)
    if result.version == result.before:
        print(f"{result.environment} is {result.version} already")
        return
    before = f", before it was {result.before}" if result.before else ""
    print(f"{result.environment} is {result.version} now{before}")
    for version in result.removed:
        print(f"Removed the old version {version}")


def _environments_without_branch(deployments: Deployments, names: Sequence[str], repository: str) -> set[str]:
    """Return the environments whose branch was removed; none, with a warning, when the repository does not answer."""
    if not repository and not deployments.settings.deploy_repository:
        return set()
    try:
        refs = deployments.refs(repository, most=LISTING_TIMEOUT)
    except PuppetError as err:
        print(f"Warning: {err.message}. Removed branches are not marked", file=sys.stderr)
        return set()
    return {name for name in names if deployments.is_gone(name, refs)}


def _print_removed(names: list[str], options: DeployOptions) -> int:
    if options.as_json:
        sys.stdout.buffer.write(dumps_pretty({"removed": names}))
    for name in () if options.as_json else names:
        print(f"Removed the environment {name}")
    return 0


def show_versions(deployments: Deployments, options: DeployOptions) -> int:
    """Print the versions of one environment or of all."""
    names = options.arguments or tuple(deployments.environments())
    versions = {name: deployments.history(name).versions for name in names}
    gone = _environments_without_branch(deployments, names, options.repo)
    if options.as_json:
        data = {name: [{**version.to_data(), "gone": name in gone} for version in reversed(found)] for name, found in versions.items()}
        sys.stdout.buffer.write(dumps_pretty(data))
        return 0
    for name, found in versions.items():
        mark = f" (its branch {deployments.current_record(name)['ref']} was removed)" if name in gone else ""
        print(f"{name}:{mark}" if found else f"{name}: puppet deploy has made no version of it")
        for version in reversed(found):
            details = [str(version.record[key]) for key in ("ref", "deployed_at") if version.record.get(key)]
            print(f"  {'*' if version.current else ' '} {version.code_id}  {', '.join(details)}".rstrip())
    for master, problem in deployments.masters().items():
        print(f"The master {master} {f'is taken out: {problem}' if problem else 'has the current versions'}")
    return 0
