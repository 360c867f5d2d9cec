"""Which provider fits, which is the default, and how commands run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import ResourceError, Unsupported
from shared.ral import Command, Param, Platform, Property, Provider, Providers, State, Type, execute, fact, feature, program


class Thing(Type, name="thing"):
    name = Param(str, namevar=True)
    size = Property(int)


class Plain(Provider[Thing], type=Thing):
    """Fits everywhere."""


class DebianThing(Provider[Thing], type=Thing, name="apt", confine=[fact("os.family", "Debian")], default_for=[{"os.family": "debian"}]):
    async def prefetch(self, wanted: Mapping[str, Thing]) -> Mapping[str, State | None]:
        return {key: {"size": len(key)} for key in wanted if key != "unread"}


class Newer(DebianThing, name="newer", default_for=[{"os.family": "Debian", "os.release": re.compile("^1[2-9]")}]):
    """More specific than its parent."""


class Odd(Provider[Thing], type=Thing, confine=[feature("oddity")]):
    tool = Command("/no/such/tool")


def providers(facts: Mapping[str, Any], *given: Provider[Any]) -> Providers:
    return Providers({"thing": lambda: given}, Platform(facts=facts, find_program=lambda name: None))


DEBIAN = {"os": {"family": "Debian", "release": "12.4"}}


def test_the_provider_with_the_best_matching_default_wins() -> None:
    known = (Plain(), DebianThing(), Newer())
    assert providers(DEBIAN, *known).for_resource(Thing("x", {})).name == "newer"
    assert providers({"os": {"family": "Debian", "release": "9"}}, *known).for_resource(Thing("x", {})).name == "apt"
    assert providers({"os": {"family": "RedHat"}}, *known).for_resource(Thing("x", {})).name == "plain"


def test_a_tie_gives_the_first_and_a_warning() -> None:
    class Other(Provider[Thing], type=Thing):
        pass

    chosen, warning = providers({}, Plain(), Other()).default("thing")
    assert chosen is not None and chosen.name == "plain"
    assert warning == "Found multiple default providers for thing: other, plain; using plain"


def test_a_manifest_may_name_the_provider() -> None:
    assert providers(DEBIAN, Plain(), Newer()).for_resource(Thing("x", {"provider": "plain"})).name == "plain"


@pytest.mark.parametrize(
    ("given", "message"),
    [("nosuch", "Invalid thing provider 'nosuch'"), ("odd", "Provider odd is not functional on this host")],
)
def test_a_provider_that_is_not_there_or_does_not_fit_is_refused(given: str, message: str) -> None:
    with pytest.raises(ResourceError) as caught:
        providers({}, Plain(), Odd()).for_resource(Thing("x", {"provider": given}))
    assert caught.value.message == message


def test_a_provider_says_what_it_misses() -> None:
    assert providers({}, Odd()).unmet(Odd()) == ["feature oddity", "program /no/such/tool"]


def test_a_provider_that_comes_to_fit_during_the_run_is_found() -> None:
    installed: set[str] = set()
    registry = Providers({"thing": lambda: [Late()]}, Platform(find_program=lambda name: name if name in installed else None))
    assert registry.default("thing")[0] is None
    installed.add("late")
    assert registry.for_resource(Thing("x", {})).name == "late"


class Late(Provider[Thing], type=Thing, confine=[program("late")]):
    pass


class Former(Provider[Thing], type=Thing, confine=[feature("oddity")]):
    manager, database = Command("older"), Command("database")


class Latter(Former):
    manager = Command("newer")


def test_a_command_that_is_declared_anew_is_needed_in_place_of_the_former() -> None:
    assert [confine.needs for confine in Latter.confine] == ["feature oddity", "program newer", "program database"]


async def test_retrieve_asks_prefetch_for_the_one_resource() -> None:
    assert await DebianThing().retrieve(Thing("abc", {})) == {"size": 3}
    with pytest.raises(Unsupported, match="The thing provider 'apt' cannot read Thing\\[unread\\]"):
        await DebianThing().retrieve(Thing("unread", {}))


async def test_set_calls_the_method_of_the_attribute() -> None:
    class Sizer(Provider[Thing], type=Thing):
        async def set_size(self, resource: Thing, resources: int, state: State | None) -> None:
            seen.append((resource.name, resources))

    seen: list[tuple[str, int]] = []
    await Sizer().set(Thing("x", {}), "size", 4, None)
    await Sizer().set(Thing("x", {}), "other", 4, None)  # left to flush
    assert seen == [("x", 4)]


async def test_a_command_runs_without_a_shell_in_locale_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("HOME", "/home/someone")
    output = await execute(["/usr/bin/env"])
    assert "LC_ALL=C\n" in output.text and "HOME=" not in output.text
    assert (await execute(["/bin/echo", "$HOME; ls"])).text == "$HOME; ls\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"],
            "Execution of '/bin/sh -c echo out; echo err >&2; exit 3' returned 3: out\nerr",
        ),
        (["/no/such/program"], "Could not execute '/no/such/program': No such file or directory"),
    ],
)
async def test_a_command_that_fails_says_what_it_said(argv: list[str], message: str) -> None:
    with pytest.raises(ResourceError) as caught:
        await execute(argv)
    assert caught.value.message == message


async def test_output_through_the_names_of_the_streams_is_not_lost() -> None:
    output = await execute(["/bin/sh", "-c", "echo one; echo two > /dev/stderr; echo three >> /dev/stdout; echo four"])
    assert output.text == "one\ntwo\nthree\nfour\n"


async def test_a_command_that_takes_too_long_is_killed_with_its_children() -> None:
    with pytest.raises(ResourceError, match=r"Execution of 'slow' exceeded 0\.05 seconds"):
        await execute(["/bin/sh", "-c", "/bin/sleep 30 & wait"], seconds=0.05, shown="slow")


async def test_a_missing_command_is_named() -> None:
    with pytest.raises(ResourceError, match="Command tool is missing"):
        await Odd().tool("x")
