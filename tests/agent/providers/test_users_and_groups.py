"""What `useradd` and its like are told; the programs are stand-ins, so that no account of this machine is touched."""

from __future__ import annotations

import grp
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from agent.providers.accounts import AccountDatabase, UserAccount, groups_that_list
from agent.providers.group.groupadd import Groupadd
from agent.providers.user.useradd import Useradd
from shared.errors import ResourceError
from shared.ral import Platform, Ref
from shared.types.group import Group
from shared.types.user import User
from tests.agent.providers.recorded import Program
from tests.support.fake_commands import apply

BOB = UserAccount("bob", 1000, 1000, "Bob", "/home/bob", "/bin/sh", ("mail", "games"))


@dataclass(frozen=True)
class Known(AccountDatabase):
    """Accounts in memory."""

    known: dict[str, UserAccount] = field(default_factory=dict)
    gids: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def user(self, name: str) -> UserAccount | None:
        return self.known.get(name)

    def group(self, name: str) -> tuple[int, tuple[str, ...]] | None:
        return self.gids.get(name)

    def shadow(self) -> dict[str, str]:
        return {"bob": "bob:$6$old:19000:0:99999:7:::"}


def users(*, libuser: bool = False, etc: Path = Path("/nonexistent"), **gids: int) -> tuple[Useradd, dict[str, Program]]:
    platform = Platform(find_program=lambda name: f"/usr/sbin/{name}" if libuser or not name.startswith("l") else None)
    provider = Useradd(Known(etc, {"bob": BOB}, {name: (gid, ()) for name, gid in gids.items()}), platform)
    programs = {
        name: Program(name) for name in ("useradd", "usermod", "userdel", "chage", "chpasswd", "luseradd", "lusermod", "luserdel", "lchage")
    }
    for name, program in programs.items():
        setattr(provider, name, program)
    return provider, programs


CREATED: list[tuple[dict[str, Any], str]] = [
    ({}, "-M -- eve"),
    ({"managehome": True, "system": True}, "-m -r -- eve"),
    ({"uid": "1400", "allowdupe": True}, "-u 1400 -o -M -- eve"),
    (
        {"shell": "/bin/sh", "uid": 5, "home": "/srv/e", "groups": ["b", "a"], "gid": "ops", "comment": "E e", "expiry": "2030-01-31"},
        "-c E e -e 2030-01-31 -g ops -G a,b -d /srv/e -s /bin/sh -u 5 -M -- eve",
    ),
    ({"expiry": "absent"}, "-e  -M -- eve"),
]


@pytest.mark.parametrize(("given", "words"), CREATED)
async def test_a_user_is_made_with_all_its_properties_at_once(given: dict[str, Any], words: str) -> None:
    provider, programs = users()
    await provider.create(User("eve", given), None)
    assert programs["useradd"].calls == [words]


async def test_a_group_of_the_users_name_becomes_its_primary_group() -> None:
    provider, programs = users(eve=1500)
    await provider.create(User("eve", {}), None)
    assert programs["useradd"].calls == ["-g eve -M -- eve"]


async def test_a_password_goes_through_standard_input_and_never_into_arguments() -> None:
    provider, programs = users()
    await provider.create(User("eve", {"password": "$6$x", "password_max_age": 90, "password_min_age": "1"}), None)
    assert programs["chage"].calls == ["-m 1 -M 90 -- eve"]
    assert programs["chpasswd"].calls == ["-e"]
    assert programs["chpasswd"].given == [b"eve:$6$x\n"]
    assert "$6$x" not in "".join(call for program in programs.values() for call in program.calls)


CHANGED = [
    ("uid", 5, {"uid": 5}, "usermod", "-u 5 -- bob"),
    ("uid", 5, {"uid": 5, "allowdupe": True}, "usermod", "-u 5 -o -- bob"),
    ("gid", "two", {"gid": ["none", "two"]}, "usermod", "-g 1201 -- bob"),
    ("expiry", "absent", {"expiry": "absent"}, "usermod", "-e  -- bob"),
    ("groups", "a,b", {"groups": "a"}, "usermod", "-G a,b -- bob"),
    ("password_warn_days", 3, {}, "chage", "-W 3 -- bob"),
]


@pytest.mark.parametrize(("attribute", "wanted", "given", "program", "words"), CHANGED)
async def test_one_change_is_one_command(attribute: str, wanted: Any, given: dict[str, Any], program: str, words: str) -> None:
    provider, programs = users(two=1201)
    await provider.set(User("bob", given), attribute, wanted, {})
    assert {name: each.calls for name, each in programs.items() if each.calls} == {program: [words]}


async def test_a_primary_group_that_does_not_exist_is_named() -> None:
    provider, _ = users()
    with pytest.raises(ResourceError, match=r"Could not find group\(s\) a,b"):
        await provider.set(User("bob", {"gid": ["a", "b"]}), "gid", "a", {})


async def test_reading_gives_groups_besides_the_primary_and_the_shadow_data() -> None:
    provider, _ = users(two=1201)
    state = await provider.retrieve(User("bob", {"gid": "two"}))
    assert state is not None
    assert (state["groups"], state["password"], state["expiry"], state["uid"]) == (["mail", "games"], "$6$old", "absent", 1000)
    assert state["group_numbers"] == {"two": 1201}
    assert await provider.retrieve(User("eve", {})) is None


async def test_forcelocal_reads_the_files_and_uses_libuser(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("eve:x:1500:1500:E:/home/eve:/bin/sh\n")
    (tmp_path / "group").write_text("ops:x:9:eve,bob\n")
    provider, programs = users(libuser=True, etc=tmp_path)
    state = await provider.retrieve(User("eve", {"forcelocal": True}))
    assert state is not None and state["groups"] == ["ops"]
    assert await provider.retrieve(User("bob", {"forcelocal": True})) is None
    await provider.create(User("new", {"forcelocal": True, "groups": "ops", "uid": 7}), None)
    assert programs["luseradd"].calls == ["-u 7 -M -- new"]
    assert programs["usermod"].calls == ["-G ops -- new"]
    with pytest.raises(ResourceError, match="UID 1500 already exists"):
        await provider.create(User("new", {"forcelocal": True, "uid": 1500}), None)


def test_a_user_is_a_member_of_those_groups_that_list_it_also_of_its_primary_one() -> None:
    groups = [("own", ["other"]), ("primary", ["moe"]), ("extra", ["a", "moe"]), ("primary", ["moe"]), ("empty", [])]
    entries = [grp.struct_group((name, "x", number, members)) for number, (name, members) in enumerate(groups)]
    assert groups_that_list("moe", entries) == ("primary", "extra")


def test_a_user_comes_after_its_groups_by_name_and_by_number() -> None:
    class Run:
        noop = False

        def managed(self, type_name: str) -> list[Any]:
            return [Group("ops", {"gid": 1500}), Group("other", {})]

    user = User("eve", {"gid": 1500, "groups": ["a", "b"]})
    user.surroundings = Run()  # type: ignore[assignment]
    assert list(user.autorequire()) == [Ref("group", "ops"), Ref("group", "a"), Ref("group", "b")]


async def test_members_of_a_group_are_managed_with_libuser_only() -> None:
    assert "manages_members" not in Groupadd(Known(), Platform(find_program=lambda _: None)).features
    provider = Groupadd(Known(known={"bob": BOB}), Platform(find_program=lambda name: name))
    assert "manages_members" in provider.features
    provider.lgroupmod = program = Program("lgroupmod")  # type: ignore[misc, assignment]
    await provider.set_members(Group("g", {"members": ["bob"], "auth_membership": True}), ["bob"], {"members": ["eve"]})
    assert program.calls == ["-m eve -- g", "-M bob -- g"]
    with pytest.raises(ResourceError, match="there is no user eve"):
        await provider.set_members(Group("g", {"members": ["eve"]}), ["eve"], {})


@pytest.mark.skipif(bool(which("lgroupmod")) or not which("groupadd"), reason="needs groupadd, and no libuser")
@pytest.mark.parametrize("authoritative", [True, False])
async def test_members_that_cannot_be_managed_are_one_warning(authoritative: bool) -> None:
    done = await apply(Group("root", {"ensure": "present", "members": ["root"], "auth_membership": authoritative}), noop=True)
    message = "Provider groupadd does not support features manages_members; not managing attribute members"
    assert done.lines == [("warning", "/Group[root]", message)]


async def test_a_group_is_made_and_changed_with_its_number() -> None:
    provider = Groupadd(Known(), Platform(find_program=lambda _: None))
    programs = {name: Program(name) for name in ("groupadd", "groupmod")}
    provider.groupadd, provider.groupmod = programs["groupadd"], programs["groupmod"]  # type: ignore[misc, assignment]
    await provider.create(Group("g", {"gid": "5", "allowdupe": True, "system": True}), None)
    await provider.set_gid(Group("g", {"gid": 6}), 6, {})
    assert [program.calls for program in programs.values()] == [["-g 5 -o -r -- g"], ["-g 6 -- g"]]
