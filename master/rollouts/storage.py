"""
Where rollouts are stored: beside the versions of their environment, a file for the state and one for the prediction.

Masters that share their state have rows instead: `rows`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Protocol

from environments.versions import VERSIONS, place_of, versions_folder
from shared.data import plainjson
from shared.errors import BadData, ConfigError, Conflict, PuppetError
from shared.filesystem.files import FileLock, make_directory, owner_in, read_regular, write_atomic
from shared.filesystem.identity import Identity, Stamp, identity
from shared.names import valid_environment

from .machine import BadNodesLimit, Rollout, RolloutNode, RolloutPlan, StoredRollout
from .waves import Wave

FORMAT: Final = 1
STATE: Final = "rollout.json"
PREDICTION: Final = "rollout-prediction.json"
_LOCK: Final = ".rollout-lock"
_LOCK_TIMEOUT: Final = 10.0
_ATTEMPTS: Final = 20


class RolloutStorage(Protocol):
    """The rollouts of all environments: one each, the latest. Its methods block."""

    def environments(self) -> Sequence[str]:
        """Return the names of the environments that have a rollout, also one that has ended."""

    def load(self, environment: str) -> StoredRollout | None:
        """Return the latest rollout of an environment; raise PuppetError when it cannot be read."""

    def save(self, rollout: Rollout, revision: int) -> StoredRollout:
        """Store a state that was made from that of this revision (0: there was none); raise Conflict when another one is stored."""

    def load_prediction(self, rollout: Rollout) -> Mapping[str, Any] | None:
        """Return the prediction of a rollout as `save_prediction` got it; None when there is none."""

    def save_prediction(self, environment: str, prediction: Mapping[str, Any]) -> None:
        """Store the prediction of the rollout that begins next."""

    def now(self) -> float:
        """Return the time by the clock that all who store states go by, in seconds since the epoch."""

    def claim(self, environment: str) -> bool:
        """Return whether this master may do what is due; no other one may until `release`, or this one's end."""

    def release(self, environment: str) -> None:
        """Let any master do what is due from now on."""


def update_rollout(
    storage: RolloutStorage, environment: str, change: Callable[[Rollout, float], Rollout]
) -> tuple[Rollout, Rollout] | tuple[None, None]:
    """
    Store what `change` makes of a rollout at a time, unless it returns it as it is; return it before and after. Blocks.

    `change` is called again when another process was faster. Raises PuppetError, OSError.
    """
    for _ in range(_ATTEMPTS):
        stored = storage.load(environment)
        if stored is None:
            return None, None
        rollout = change(stored.rollout, storage.now())
        if rollout is stored.rollout:
            return rollout, rollout
        with suppress(Conflict):
            return stored.rollout, storage.save(rollout, stored.revision).rollout
    raise Conflict(f"The rollout of {environment} is changed all the time", hint="Try again.")


@dataclass(eq=False, repr=False)
class RolloutFiles(RolloutStorage):
    """The rollouts below the folders of environments, read again only when a file has changed; no other master has them."""

    roots: Sequence[Path]
    clock: Callable[[], float] = time.time
    _read: dict[str, tuple[Identity, StoredRollout]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def environments(self) -> Sequence[str]:
        return sorted({path.parent.name for root in self.roots for path in root.glob(f"{VERSIONS}/*/{STATE}")})

    def load(self, environment: str) -> StoredRollout | None:
        if not self.roots:
            return None
        path = self._folder(environment) / STATE
        with self._lock:
            stamp = _stamp(path)
            if stamp is None:
                return None
            known = self._read.get(environment)
            if known is None or known[0] != stamp:
                known = self._read[environment] = stamp, _read_state(path)
            return known[1]

    def save(self, rollout: Rollout, revision: int) -> StoredRollout:
        environment = rollout.plan.environment
        folder = self._folder(environment)
        make_directory(folder, inherit=True)
        lock = FileLock(folder / _LOCK)
        lock.acquire(timeout=_LOCK_TIMEOUT)
        try:
            current = self.load(environment)
            if revision != (current.revision if current is not None else 0):
                raise Conflict(f"The rollout of {environment} was changed at the same time", hint="Try again.")
            stored = StoredRollout(rollout, revision + 1)
            write_atomic(folder / STATE, plainjson.dumps(state_data(stored)), mode=0o640, owner=owner_in(folder))
            if (stamp := _stamp(folder / STATE)) is not None:
                with self._lock:
                    self._read[environment] = stamp, stored
        finally:
            lock.release()
        return stored

    def load_prediction(self, rollout: Rollout) -> Mapping[str, Any] | None:
        path = self._folder(rollout.plan.environment) / PREDICTION
        try:
            data = plainjson.loads(read_regular(path))
        except FileNotFoundError:
            return None
        except (OSError, BadData) as err:
            raise PuppetError(f"The prediction {path} cannot be read: {err}") from err
        return data if isinstance(data, dict) and data.get("version") == rollout.plan.after else None

    def save_prediction(self, environment: str, prediction: Mapping[str, Any]) -> None:
        folder = self._folder(environment)
        make_directory(folder, inherit=True)
        write_atomic(folder / PREDICTION, plainjson.dumps(dict(prediction)), mode=0o640, owner=owner_in(folder))

    def now(self) -> float:
        return self.clock()

    def claim(self, environment: str) -> bool:
        return True

    def release(self, environment: str) -> None:
        pass

    def _folder(self, environment: str) -> Path:
        """Return the folder with the versions of an environment; BadName, ConfigError."""
        name = valid_environment(environment)
        if not self.roots:
            raise ConfigError("There is no folder of environments", hint="The setting is environmentpath.")
        return versions_folder(place_of(name, self.roots))


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise PuppetError(f"The state of a rollout {path} cannot be read: {err.strerror}") from err
    return identity(status)


def state_data(stored: StoredRollout) -> dict[str, Any]:
    """Return a state as plain data."""
    nodes = {name: node_data(node) for name, node in stored.rollout.nodes.items()}
    return {**head_data(stored.rollout), "revision": stored.revision, "nodes": nodes}


def head_data(rollout: Rollout) -> dict[str, Any]:
    """Return a state as plain data, without its nodes."""
    plan = rollout.plan
    waves = [asdict(wave) | {"members": sorted(wave.members)} for wave in plan.waves]
    shown = {name: getattr(plan, name) for name in _names(RolloutPlan)} | {"waves": waves, "max_failed": asdict(plan.max_failed)}
    values = {name: getattr(rollout, name) for name in _names(Rollout) if name != "nodes"}
    return {"format": FORMAT, **values, "plan": shown}


def node_data(node: RolloutNode) -> list[Any]:
    """Return a node's attributes as plain data: a list, as there are many nodes."""
    return [getattr(node, name) for name in _NODE]


def _names(cls: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls))


_NODE: Final = _names(RolloutNode)


def _read_state(path: Path) -> StoredRollout:
    try:
        return state_of(plainjson.loads(read_regular(path)))
    except (OSError, BadData, KeyError, TypeError, ValueError) as err:
        raise PuppetError(f"The state of a rollout {path} cannot be read: {err}", hint="Remove it: its rollout ends so.") from err


def state_of(data: Mapping[str, Any]) -> StoredRollout:
    """Return the state in plain data; raise KeyError, TypeError, ValueError."""
    if data["format"] != FORMAT:
        raise ValueError(f"it has the format {data['format']}, of another release")
    waves = tuple(replace(Wave(**wave), members=frozenset(wave["members"])) for wave in data["plan"]["waves"])
    plan = RolloutPlan(**data["plan"] | {"waves": waves, "max_failed": BadNodesLimit(**data["plan"]["max_failed"])})
    nodes = {str(name): node_of(values) for name, values in data["nodes"].items()}
    log = tuple((float(at), str(text)) for at, text in data["log"])
    values = {name: data[name] for name in _names(Rollout)}
    return StoredRollout(Rollout(**values | {"plan": plan, "nodes": nodes, "log": log}), int(data["revision"]))


def node_of(values: Sequence[Any]) -> RolloutNode:
    """Return the node in plain data; raise TypeError, ValueError."""
    attributes: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in zip(_NODE, values, strict=True)
    }
    return RolloutNode(**attributes)
