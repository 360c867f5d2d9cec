"""Packages that stand next to each other are installed by one command, and everything else stays as if each had its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.providers.notify.log import LogMessage
from agent.providers.package.apk import Apk
from agent.providers.package.apt import Apt
from agent.providers.package.packages import PackageProvider
from agent.providers.package.pacman import Pacman
from agent.providers.package.yum import Dnf
from agent.providers.package.zypper import Zypper
from agent.state.runlog import RunLog
from agent.state.statefiles import StateFile
from agent.transaction.context import ApplyContext
from agent.transaction.run import ApplyResult, apply_catalog
from shared.errors import ResourceError
from shared.models.catalog import Catalog
from shared.ral import Output, Platform, Providers
from shared.ral.catalog import resources_of
from shared.types import builtin_types
from shared.types.package import Package
from tests.agent.providers.recorded import Program

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@dataclass
class System:
    """A Debian: what is installed, and what can be; stands in for apt-get and dpkg-query."""

    installed: dict[str, str] = field(default_factory=dict)
    repository: dict[str, str] = field(default_factory=lambda: dict.fromkeys("abcdefgh", "1.0"))
    broken: set[str] = field(default_factory=set)  # unpacked, but cannot be configured
    calls: list[str] = field(default_factory=list)
    during: Callable[[], None] = lambda: None
    depends: dict[str, str] = field(default_factory=dict)

    async def apt_get(self, *words: str, **options: Any) -> Output:
        names = list(words[words.index("--") + 1 :])
        verb = words[words.index("--") - 1]
        self.calls.append(f"{verb} {' '.join(names)}")
        self.during()
        missing = [name for name in names if name.partition("=")[0] not in self.repository]
        if missing:
            raise ResourceError(f"Unable to locate package {missing[0]}")
        for name in names:
            name, _, version = name.partition("=")
            if verb == "install" and name not in self.broken:
                self.installed[name] = version or self.repository[name]
                if name in self.depends:
                    self.installed[self.depends[name]] = "1.0"
            elif verb == "remove":
                self.installed.pop(name, None)
        bad = sorted(self.broken.intersection(names))
        if bad:
            raise ResourceError(f"error processing package {bad[0]}")
        return Output("", 0)

    async def dpkg_query(self, *words: str, **options: Any) -> Output:
        names = [words[-1]] if "--" in words else list(self.installed)
        lines = [f"install ok installed {name} {self.installed[name]}" for name in names if name in self.installed]
        return Output("\n".join(lines), 0 if lines or "--" not in words else 1)

    def provider(self) -> Apt:
        apt = Apt(sources=Path("/nonexistent"))
        apt.apt_get, apt.dpkg_query = self.apt_get, self.dpkg_query  # type: ignore[misc, assignment]
        apt.apt_mark = apt.dpkg = Program("apt-mark")  # type: ignore[misc, assignment]
        return apt


@dataclass
class Notes:
    """What a run said and came to."""

    applied: ApplyResult
    log: RunLog

    def events(self, title: str) -> list[tuple[str, str]]:
        return [(event.status or "", event.message or "") for event in self.applied.statuses[f"Package[{title}]"].events]

    @property
    def told(self) -> list[str]:
        return [f"{line.source.rpartition('/Package')[2]}: {line.message}" for line in self.log.lines if line.level == "notice"][:-1]


def package(title: str, **parameters: Any) -> dict[str, Any]:
    tags = parameters.pop("tags", [])
    return {"type": "Package", "title": title, "kind": "compilable_type", "tags": ["package", *tags], "parameters": parameters}


def note(title: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "Notify", "title": title, "kind": "compilable_type", "tags": [], "parameters": parameters}


async def run(system: System, *resources: Mapping[str, Any], **options: Any) -> Notes:
    catalog = Catalog.from_data({"name": "n", "resources": list(resources), "edges": []})
    log = RunLog(level=options.pop("level", "info"), now=lambda: NOW)
    platform = Platform({"os": {"family": "Debian"}}, find_program=lambda name: name)
    providers = Providers({"package": lambda: [system.provider()], "notify": lambda: [LogMessage(log)]}, platform)
    context = ApplyContext(log=log, providers=providers, state=StateFile(None), now=lambda: NOW, **options)
    return Notes(await apply_catalog(resources_of(catalog, builtin_types()), context), log)


async def test_neighbours_are_installed_by_one_command_and_told_one_by_one() -> None:
    system = System(installed={"b": "1.0"})
    result = await run(system, package("a"), package("b"), package("c", ensure="1.5"), package("d", ensure="latest"))
    assert system.calls == ["install a c=1.5 d"]
    assert system.installed == {"a": "1.0", "b": "1.0", "c": "1.5", "d": "1.0"}
    assert [result.events(name) for name in "abcd"] == [[("success", "created")], [], [("success", "created")], [("success", "created")]]
    assert result.told == ["[a]/ensure: created", "[c]/ensure: created", "[d]/ensure: created"]
    assert result.applied.statuses["Package[a]"].changed and not result.applied.statuses["Package[b]"].changed


ALONE: list[tuple[str, list[dict[str, Any]], list[str]]] = [
    ("one is absent", [package("a")], ["install a"]),
    ("something else has its turn in between", [package("a"), note("x"), package("b")], ["install a", "install b"]),
    (
        "the first makes something ready that comes before the second",
        [package("a"), note("x", require="Package[a]"), package("b")],
        ["install a", "install b"],
    ),
    ("the second waits for the first", [package("a"), package("b", require="Package[a]")], ["install a", "install b"]),
    ("the first refreshes the second", [package("a", notify="Package[b]"), package("b")], ["install a", "install b"]),
    ("what waits for the first comes after both", [package("a", before="Notify[x]"), package("b"), note("x")], ["install a b"]),
    ("options differ", [package("a"), package("b", install_options=["-t", "x"]), package("c")], ["install a", "install b", "install c"]),
    ("options are the same", [package(name, install_options=[{"-t": "x"}]) for name in "ab"], ["install a b"]),
    ("configuration is kept differently", [package("a"), package("b", configfiles="replace")], ["install a", "install b"]),
    ("one comes from a file", [package("a"), package("b", source="/b.deb"), package("c")], ["install a"]),
    ("one has answers to give", [package("a"), package("b", responsefile="/x"), package("c")], ["install a", "install b", "install c"]),
    ("one is to be held", [package("a"), package("b", mark="hold"), package("c")], ["install a", "install b", "install c"]),
    ("one only simulates", [package("a"), package("b", noop=True), package("c")], ["install a c"]),
    ("one is not selected", [package("a", tags=["t"]), package("b"), package("c", tags=["t"])], ["install a c"]),
]


@pytest.mark.parametrize(("resources", "calls"), [case[1:] for case in ALONE], ids=[case[0] for case in ALONE])
async def test_only_what_nothing_stands_between_goes_together(resources: Sequence[dict[str, Any]], calls: list[str]) -> None:
    system = System()
    await run(system, *resources, tags=("t",) if any("t" in resource["tags"] for resource in resources) else ())
    assert system.calls[: len(calls)] == calls


async def test_a_removal_keeps_its_place_between_two_installations() -> None:
    system = System(installed={"b": "1.0"})
    await run(system, package("a"), package("b", ensure="absent"), package("c"))
    assert system.calls == ["install a", "remove b", "install c"]


async def test_noop_runs_no_command() -> None:
    system = System()
    result = await run(system, package("a"), package("b"), noop=True)
    assert not system.calls
    assert [result.events(name)[0][0] for name in "ab"] == ["noop", "noop"]


async def test_a_package_that_does_not_exist_fails_alone() -> None:
    system = System()
    result = await run(system, package("a"), package("nosuch"), package("b"), note("after", require="Package[nosuch]"))
    assert system.calls == ["install a nosuch b", "install a", "install nosuch", "install b"]
    assert [bool(result.applied.statuses[f"Package[{name}]"].failed) for name in ("a", "nosuch", "b")] == [False, True, False]
    assert result.events("a") == result.events("b") == [("success", "created")]
    assert result.events("nosuch")[0][1].endswith("failed: Unable to locate package nosuch")
    assert result.applied.statuses["Notify[after]"].skipped


async def test_after_a_command_that_failed_each_is_read_at_its_turn() -> None:
    system = System(depends={"a": "c"})
    result = await run(system, package("a"), package("nosuch"), package("c"))
    assert system.calls == ["install a nosuch c", "install a", "install nosuch"]
    assert result.events("c") == []  # it came with a


async def test_what_a_failing_command_brought_all_the_same_is_told_as_created_and_not_installed_again() -> None:
    system = System(broken={"b"})
    result = await run(system, package("a", notify="Notify[told]"), package("b"), package("c"), note("told"))
    assert system.calls == ["install a b c", "install b"]
    assert result.events("a") == result.events("c") == [("success", "created")]
    assert result.events("b")[0][1].endswith("failed: error processing package b")


async def test_the_run_may_be_stopped_but_what_was_installed_is_told() -> None:
    system = System()
    stopped: list[bool] = []
    system.during = lambda: stopped.append(True)
    result = await run(system, package("a"), package("b"), note("x"), package("c"), stop=lambda: bool(stopped))
    assert system.calls == ["install a b"]
    assert result.events("b") == [("success", "created")]
    assert result.applied.statuses["Notify[x]"].skipped and result.applied.statuses["Package[c]"].skipped


async def test_a_schedule_that_ends_meanwhile_does_not_hide_what_was_installed() -> None:
    clock = [NOW]
    system = System()
    system.during = lambda: clock.__setitem__(0, datetime(2026, 11, 21, 23, 0, tzinfo=UTC))
    range_ = f"{NOW.astimezone().hour}:00 - {NOW.astimezone().hour}:30"
    night = {"type": "Schedule", "title": "noon", "kind": "compilable_type", "tags": [], "parameters": {"range": range_}}
    catalog = Catalog.from_data({"name": "n", "resources": [night, *(package(e, schedule="noon") for e in "ab")], "edges": []})
    platform = Platform({"os": {"family": "Debian"}}, find_program=lambda name: name)
    context = ApplyContext(
        log=RunLog(level="info", now=lambda: clock[0]),
        providers=Providers({"package": lambda: [system.provider()]}, platform),
        state=StateFile(None),
        now=lambda: clock[0],
    )
    applied = await apply_catalog(resources_of(catalog, builtin_types()), context)
    assert system.calls == ["install a b"]
    assert [applied.statuses[f"Package[{name}]"].changed for name in "ab"] == [True, True]


def stand_in(cls: type[PackageProvider], command: str, answers: Mapping[str, Any]) -> tuple[PackageProvider, Program]:
    provider, program = cls(), Program(command, answers)
    setattr(provider, command, program)
    return provider, program


@pytest.mark.parametrize(
    ("cls", "command", "answers", "given", "told"),
    [
        (Apk, "apk", {}, {}, "--no-progress add a b=1-r0"),
        (Apk, "apk", {}, {"install_options": ["-x"]}, "--no-progress add -x a b=1-r0"),
        (Dnf, "manager", {}, {}, "-d 0 -e 1 -y install a b-1-r0"),
        (Dnf, "manager", {}, {"install_options": [{"--enablerepo": "x"}]}, "-d 0 -e 1 -y --enablerepo=x install a b-1-r0"),
        (Zypper, "zypper", {"--version": "zypper 1.14"}, {}, "--quiet install --auto-agree-with-licenses --no-confirm a b-1-r0"),
        (Pacman, "pacman", {}, {}, "--noconfirm --needed --noprogressbar -S -- a b"),
    ],
)
async def test_each_package_manager_is_told_of_several(
    cls: type[PackageProvider], command: str, answers: Mapping[str, Any], given: dict[str, Any], told: str
) -> None:
    provider, program = stand_in(cls, command, answers)
    both = [Package("a", given), Package("b", {"ensure": "1-r0", **given} if "versionable" in provider.features else given)]
    assert provider.batch_key(both[0]) == provider.batch_key(both[1]) is not None
    await provider.install_together(both)
    assert program.calls[-1] == told


@pytest.mark.parametrize(
    ("cls", "given"),
    [
        (Apk, {"source": "/a.apk"}),
        (Dnf, {"source": "/a.rpm"}),
        (Dnf, {"allow_virtual": False}),
        (Dnf, {"install_only": True}),
        (Zypper, {"allow_virtual": False}),
        (Pacman, {"source": "/a.pkg"}),
        (Pacman, {"allow_virtual": False}),
    ],
)
def test_what_needs_a_command_of_its_own_goes_by_itself(cls: type[PackageProvider], given: dict[str, Any]) -> None:
    assert cls().batch_key(Package("a", given)) is None
