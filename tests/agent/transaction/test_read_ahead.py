"""Behind what needed no change, what comes next is read at once; and read again as soon as anything was changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.providers.file.context import FileContext
from agent.providers.file.posix import PosixFile
from agent.providers.file.source_metadata import Inlined
from agent.providers.service.systemd import Systemd
from agent.servers.dipper import bucket_factory
from agent.state.runlog import RunLog
from agent.state.statefiles import StateFile
from agent.transaction.ahead import MAX_READ_AHEAD
from agent.transaction.context import ApplyContext
from agent.transaction.run import ApplyResult, apply_catalog
from shared.errors import ResourceError
from shared.ral import Output, Param, Platform, Property, Provider, Providers, State, Type
from shared.ral.catalog import RalCatalog
from shared.types.file import File
from shared.types.service import Service
from tests.support.fake_commands import MemorySources, apply, metadata_of


class Pot(Type, name="pot", refreshable=True):
    """Something that is full or empty."""

    name = Param(str, namevar=True)
    content = Property(str)


class Cup(Type, name="cup"):
    """Something else."""

    name = Param(str, namevar=True)
    content = Property(str)


@dataclass
class Kitchen:
    """What is in the pots; `spills`: pouring into one changes another."""

    content: dict[str, str] = field(default_factory=dict)
    spills: Mapping[str, str] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)


class Stove(Provider[Pot], type=Pot):
    def __init__(self, kitchen: Kitchen) -> None:
        self.kitchen = kitchen
        self.ahead: dict[Pot, State] = {}

    def _see(self, resource: Pot) -> State:
        return {"content": self.kitchen.content.get(resource.name, "nothing")}

    async def read_ahead(self, resources: Sequence[Pot]) -> None:
        self.kitchen.asked.append(" ".join(each.name for each in resources))
        self.ahead = {each: self._see(each) for each in resources}

    def forget_ahead(self) -> None:
        self.ahead.clear()

    async def retrieve(self, resource: Pot) -> State | None:
        if resource in self.ahead:
            return self.ahead.pop(resource)
        self.kitchen.asked.append(resource.name)
        return self._see(resource)

    async def set_content(self, resource: Pot, wanted: str, state: State | None) -> None:
        self.kitchen.asked.append(f"fill {resource.name}")
        self.kitchen.content[self.kitchen.spills.get(resource.name, resource.name)] = wanted
        if resource.name in self.kitchen.broken:
            raise ResourceError("spilt")
        self.kitchen.content[resource.name] = wanted

    async def refresh(self, resource: Pot) -> None:
        self.kitchen.asked.append(f"refresh {resource.name}")


class Board(Provider[Cup], type=Cup):
    async def retrieve(self, resource: Cup) -> State | None:
        return {"content": "tea"}


async def run(kitchen: Kitchen, *resources: Type, **options: Any) -> ApplyResult:
    together = RalCatalog({"pot": Pot, "cup": Cup})
    for each in resources:
        together.add(each)
    providers = Providers({"pot": lambda: [Stove(kitchen)], "cup": lambda: [Board()]}, Platform())
    return await apply_catalog(together, ApplyContext(log=RunLog(), providers=providers, state=StateFile(None), **options))


def pots(names: str, **given: Any) -> list[Pot]:
    return [Pot(name, {"content": "soup", **given}) for name in names]


async def test_what_is_as_it_should_be_is_read_once_and_together() -> None:
    kitchen = Kitchen(dict.fromkeys("abcd", "soup"))
    await run(kitchen, *pots("abcd"))
    assert kitchen.asked == ["a", "b c d"]


async def test_a_change_makes_what_was_read_worthless() -> None:
    kitchen = Kitchen({**dict.fromkeys("acd", "soup"), "b": "water"}, spills={"b": "c"})
    applied = await run(kitchen, *pots("ab"), Pot("c", {"content": "stew"}), *pots("d"))
    assert kitchen.asked == ["a", "b c d", "fill b", "c", "fill c", "d"]
    assert kitchen.content == {"a": "soup", "b": "soup", "c": "stew", "d": "soup"}
    assert applied.statuses["Pot[c]"].events[0].previous_value == "soup"


async def test_a_change_that_failed_half_way_makes_what_was_read_worthless() -> None:
    kitchen = Kitchen(dict.fromkeys("abc", "soup"), spills={"b": "c"}, broken=frozenset("b"))
    applied = await run(kitchen, Pot("a", {"content": "soup"}), Pot("b", {"content": "mud"}), Pot("c", {"content": "soup"}))
    assert kitchen.asked == ["a", "b c", "fill b", "c", "fill c"]
    assert applied.statuses["Pot[b]"].failed and kitchen.content["c"] == "soup"


async def test_a_refresh_makes_what_was_read_worthless() -> None:
    kitchen = Kitchen({"a": "water", **dict.fromkeys("bcde", "soup")})
    await run(kitchen, *pots("a", notify="Pot[c]"), *pots("bcde"))
    assert kitchen.asked == ["a", "fill a", "b", "c d e", "refresh c", "d", "e"]


async def test_noop_changes_nothing_so_what_was_read_holds() -> None:
    kitchen = Kitchen()
    await run(kitchen, *pots("abc"), noop=True)
    assert kitchen.asked == ["a", "b c"]


async def test_a_provider_that_cannot_read_ahead_after_all_fails_nobody() -> None:
    kitchen = Kitchen(dict.fromkeys("abc", "soup"))

    class Clumsy(Stove):
        async def read_ahead(self, resources: Sequence[Pot]) -> None:
            raise ValueError("no hands")

    together = RalCatalog({"pot": Pot})
    for each in pots("abc"):
        together.add(each)
    context = ApplyContext(log=RunLog(), providers=Providers({"pot": lambda: [Clumsy(kitchen)]}, Platform()), state=StateFile(None))
    applied = await apply_catalog(together, context)
    assert kitchen.asked == ["a", "b", "c"] and not any(status.failed for status in applied.statuses.values())


async def test_what_comes_behind_something_else_is_read_at_its_turn() -> None:
    kitchen = Kitchen(dict.fromkeys("abcdef", "soup"))
    await run(kitchen, *pots("abc"), Cup("x", {"content": "tea"}), *pots("def"))
    assert kitchen.asked == ["a", "b c", "d", "e f"]


async def test_what_is_skipped_is_not_read() -> None:
    kitchen = Kitchen(dict.fromkeys("abcd", "soup"))
    resources = pots("abcd")
    resources[2].assign("schedule", "never")
    from shared.types.schedule import Schedule

    together = RalCatalog({"pot": Pot, "schedule": Schedule})
    for each in (Schedule("never", {"period": "never"}), *resources):
        together.add(each)
    providers = Providers({"pot": lambda: [Stove(kitchen)]}, Platform())
    applied = await apply_catalog(together, ApplyContext(log=RunLog(), providers=providers, state=StateFile(None)))
    assert kitchen.asked == ["a", "b d"] and applied.statuses["Pot[c]"].skipped


async def test_no_more_is_read_than_a_run_that_is_stopped_can_spare() -> None:
    names = [f"p{number}" for number in range(MAX_READ_AHEAD + 3)]
    kitchen = Kitchen(dict.fromkeys(names, "soup"))
    await run(kitchen, *(Pot(name, {"content": "soup"}) for name in names))
    assert kitchen.asked == [names[0], " ".join(names[1 : MAX_READ_AHEAD + 1]), " ".join(names[MAX_READ_AHEAD + 1 :])]


async def test_a_file_that_another_ones_change_has_touched_is_read_again(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("x")
    one.chmod(0o644)
    tmp_path.chmod(0o700)
    os.link(one, other)  # of the same inode: the mode of one is the other's
    done = await apply(File(str(tmp_path), {"mode": "0700"}), File(str(one), {"mode": "0600"}), File(str(other), {"mode": "0644"}))
    assert [message for _, _, message in done.events] == ["mode changed '0644' to '0600'", "mode changed '0600' to '0644'"]


@pytest.mark.parametrize("owner", [None, 0])
async def test_files_read_ahead_are_told_as_files_read_at_their_turn(tmp_path: Path, owner: int | None) -> None:
    paths = [tmp_path / name for name in "abcd"]
    paths[1].write_text("old")
    paths[2].symlink_to("/nonexistent")
    given = {"content": "new"} | ({"owner": owner} if owner is not None and os.geteuid() == 0 else {})
    done = await apply(*(File(str(path), given) for path in paths))
    assert [path.read_text() for path in paths] == ["new"] * 4
    assert [status for _, status, _ in done.events] == ["success"] * 4
    assert (await apply(*(File(str(path), given) for path in paths))).events == []


async def test_files_with_a_source_are_read_ahead_when_its_metadata_came_with_the_catalog(tmp_path: Path) -> None:
    url = "puppet:///modules/m/f"
    told, asked, free = (str(tmp_path / name) for name in ("told", "asked", "free"))
    for path in (told, asked, free):
        Path(path).write_text("old")
    inlined = Inlined({path: metadata_of(url, b"new") for path in (told, free)})
    sources = MemorySources({url: b"new"})
    provider = PosixFile(FileContext(sources, bucket_factory(tmp_path / "bucket"), RunLog(), inlined=inlined))
    files = [File(told, {"source": url}), File(asked, {"source": url}), File(free, {"source": url, "source_permissions": "use"})]
    await provider.read_ahead(files)
    assert sources.asked == []
    for path in (told, asked, free):
        Path(path).unlink()
    states = [await provider.retrieve(file) for file in files]
    assert [bool(state and state["ensure"] == "file") for state in states] == [True, False, False]


async def test_a_directorys_generated_files_are_read_together(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o644)
    tmp_path.chmod(0o755)
    batches: list[list[str]] = []

    class Watching(PosixFile, type=File, name="posix", features=("manages_symlinks",)):
        async def read_ahead(self, resources: Sequence[File]) -> None:
            batches.append([Path(resource.path).name for resource in resources])
            await super().read_ahead(resources)

    context = FileContext(MemorySources(), bucket_factory(tmp_path / "bucket"), RunLog())
    catalog = RalCatalog({"file": File})
    catalog.add(File(str(tmp_path), {"recurse": True, "mode": "0644"}))
    providers = Providers({"file": lambda: [Watching(context)]}, Platform())
    done = await apply_catalog(catalog, ApplyContext(log=RunLog(), providers=providers, state=StateFile(None)))
    assert done.completed and not any(status.changed for status in done.statuses.values())
    assert batches == [["a", "b", "c"]]


async def test_systemd_is_asked_about_several_units_at_the_same_time() -> None:
    under_way = [0, 0]

    async def systemctl(*words: str, **options: Any) -> Output:
        under_way[0] += 1
        under_way[1] = max(under_way)
        await asyncio.sleep(0)
        under_way[0] -= 1
        return Output("enabled", 0)

    provider = Systemd()
    provider.systemctl = systemctl  # type: ignore[misc, assignment]
    services = [Service(f"s{number}", {"enable": True}) for number in range(5)]
    await provider.read_ahead([*services, Service("own", {"enable": True, "status": "/bin/rm /x"})])
    assert under_way[1] == 5
    provider.systemctl = None  # type: ignore[misc, assignment]  # nothing is asked again
    assert [(await provider.retrieve(each) or {})["enable"] for each in services] == ["true"] * 5
