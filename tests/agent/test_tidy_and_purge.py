"""The providers of `tidy` and `resources`: what they find to remove."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.providers.resources.purging import ResourcesPurge
from agent.providers.tidy.posix import TidyFinder
from shared.errors import ResourceError
from shared.ral import Param, Platform, Property, Provider, Providers, Ref, State, Type, ensurable
from shared.types.resources import ResourcesMetatype
from shared.types.tidy import Tidy

NOW = 1_800_000_000.0


class Surroundings:
    """A run with some resources in it."""

    noop = False

    def __init__(self, *refs: Ref) -> None:
        self.refs = refs
        self.said: list[str] = []

    def find(self, ref: Ref) -> Type | None:
        return ResourcesMetatype(ref.title, {}) if ref in self.refs else None

    def managed(self, type_name: str) -> list[Type]:
        return []

    def path_of(self, resource: Type) -> str:
        return str(resource)

    def log(self, level: str, message: str, *, resource: Type, attribute: str = "") -> None:
        if level != "debug":
            self.said.append(f"{level} {message}")


def tree(root: Path, **sizes: int) -> None:
    """Files a day old, `a__b` standing for `a/b`."""
    for name, size in sizes.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (NOW - 86400, NOW - 86400))


async def found(root: Path, *refs: Ref, **given: Any) -> tuple[list[str], list[str]]:
    resource = Tidy(str(root), given)
    surroundings = Surroundings(*refs)
    resource.surroundings = surroundings
    made = await TidyFinder(lambda: NOW).generate(resource)
    return [str(Path(each.value_of("path")).relative_to(root)) for each in made], surroundings.said


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"age": "1d", "recurse": True}, ["d/y", "d/e/z", ".x"]),
        ({"age": "1d", "recurse": 1}, [".x"]),
        ({"age": "1d"}, []),  # the folder itself, which only rmdirs removes
        ({"age": "25h", "recurse": True}, []),
        ({"size": "2b", "recurse": True}, ["d/y", "d/e/z"]),
        ({"size": "3b", "recurse": True, "age": "2w"}, ["d/e/z"]),
        ({"recurse": True, "matches": ["?x", "z*"]}, ["d/e/z", ".x"]),
    ],
)
async def test_files_are_found_deepest_first(tmp_path: Path, given: dict[str, Any], expected: list[str]) -> None:
    tree(tmp_path, **{".x": 1, "d__y": 2, "d__e__z": 3})
    names, said = await found(tmp_path, **given)
    assert names == expected
    assert said == ([f"notice Tidying {len(expected)} files"] if expected else [])


async def test_links_are_not_followed_and_managed_files_left_alone(tmp_path: Path) -> None:
    tree(tmp_path, keep=1, go=1)
    (tmp_path / "link").symlink_to("/etc")
    names, _ = await found(tmp_path, Ref("file", str(tmp_path / "keep")), recurse=True)
    assert names == ["link", "go"]


async def test_more_entries_than_allowed_are_refused(tmp_path: Path) -> None:
    tree(tmp_path, a=1, b=1, c=1)
    with pytest.raises(ResourceError, match="contains more than 2 entries"):
        await found(tmp_path, recurse=True, max_files=2)


async def test_removals_inherit_what_steers_but_not_the_alias(tmp_path: Path) -> None:
    tree(tmp_path, a=1)
    resource = Tidy(str(tmp_path), {"recurse": True, "noop": True, "loglevel": "info", "alias": "x", "backup": ".old"})
    resource.surroundings = Surroundings()
    (made,) = await TidyFinder(lambda: NOW).generate(resource)
    assert (made.noop, made.loglevel, made.alias, made.value_of("ensure"), made.value_of("backup")) == (True, "info", [], "absent", ".old")


class User(Type, name="user"):
    ensure = ensurable()
    name = Param(str, namevar=True)
    uid = Property(int)


class Listing(Provider[User], type=User):
    async def instances(self) -> Mapping[str, State]:
        return {"root": {"uid": 0}, "daemon": {"uid": 5000}, "system": {"uid": 999}, "kept": {"uid": 2000}, "eve": {"uid": 1000}, "odd": {}}


async def purged(tmp_path: Path, **given: Any) -> Sequence[str]:
    (tmp_path / "login.defs").write_text("# UID_MIN 3\nUID_MIN\t\t\t 1000\n")
    providers = Providers({"user": lambda: [Listing()]}, Platform())
    resource = ResourcesMetatype("user", {"purge": True} | given)
    resource.surroundings = Surroundings(Ref("user", "kept"))
    made = await ResourcesPurge(lambda: providers, {"user": User}, login_defs=tmp_path / "login.defs").generate(resource)
    assert all(each.origin.purging and each.value_of("ensure") == "absent" for each in made)
    return [each.title for each in made]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["eve"]),
        ({"unless_system_user": 100}, ["system", "eve"]),
        ({"unless_system_user": 100, "unless_uid": [999, "1000"]}, []),
        ({"purge": False}, []),
    ],
)
async def test_users_of_the_system_are_not_purged(tmp_path: Path, given: dict[str, Any], expected: list[str]) -> None:
    assert await purged(tmp_path, **given) == expected
