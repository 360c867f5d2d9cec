"""The command `puppet resource`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bunraku.commands.resource import PrintedResource, ResourceCommand, edit_and_apply, main, render
from shared.errors import ConfigError, ResourceError
from shared.ral import Platform, Providers
from shared.settings import AgentSettings, load
from tests.agent.providers.recorded import Program
from tests.support.fakes import logging_kept


@pytest.fixture(autouse=True)
def clean_logging() -> Iterator[None]:
    with logging_kept():
        yield


def settings(root: Path) -> AgentSettings:
    return load(AgentSettings, section="user", flags={"confdir": str(root / "conf"), "vardir": str(root / "var")})


def application(root: Path, *words: str, gid: int | None = 5, noop: bool = False) -> tuple[ResourceCommand, dict[str, Program]]:
    """One whose groups are in memory: there is `ops`, or nothing."""
    from agent.providers.accounts import AccountDatabase
    from agent.providers.group.groupadd import Groupadd

    groups = {} if gid is None else {"ops": (gid, ())}

    class Memory(AccountDatabase):
        def group(self, name: str) -> tuple[int, tuple[str, ...]] | None:
            return groups.get(name)

        def groups(self) -> dict[str, tuple[int, tuple[str, ...]]]:
            return groups

    provider = Groupadd(Memory(), Platform(find_program=lambda _: None))
    programs = {name: Program(name) for name in ("groupadd", "groupmod", "groupdel")}
    for name, program in programs.items():
        setattr(provider, name, program)
    options, _ = main.parse(words)
    made = ResourceCommand(options, settings(root).model_copy(update={"noop": noop}), "notice")

    async def providers() -> Providers:
        return Providers({"group": lambda: [provider]}, Platform(find_program=lambda name: name))

    made._providers = providers  # type: ignore[method-assign]
    return made, programs


def test_a_resource_is_printed_in_puppets_language_with_aligned_arrows() -> None:
    shown = PrintedResource("user", "it's", {"ensure": "present", "groups": ["a", "b"], "uid": 5})
    assert shown.manifest() == "user { 'it\\'s':\n  ensure => 'present',\n  groups => ['a', 'b'],\n  uid    => 5,\n}"
    assert render("user", [shown], yaml=True) == "---\nuser:\n  it's:\n    ensure: present\n    groups:\n    - a\n    - b\n    uid: 5"
    assert (render("user", [], yaml=True), render("user", [], yaml=False)) == ("---\nuser: {}", "")


async def test_one_is_shown_as_it_is_and_an_absent_one_as_absent(tmp_path: Path) -> None:
    made, _ = application(tmp_path, "group", "ops")
    assert [each.attributes for each in await made.run()] == [{"ensure": "present", "gid": 5, "provider": "groupadd"}]
    made, _ = application(tmp_path, "group", "ops", gid=None)
    assert [each.attributes for each in await made.run()] == [{"ensure": "absent", "provider": "groupadd"}]


async def test_all_of_a_type_are_listed_by_name(tmp_path: Path) -> None:
    made, _ = application(tmp_path, "Group")
    assert [(each.type, each.title) for each in await made.run()] == [("group", "ops")]


async def test_an_attribute_is_set_and_the_state_then_shown(tmp_path: Path) -> None:
    made, programs = application(tmp_path, "group", "ops", "gid=7")
    assert (await made.run())[0].attributes["gid"] == 5  # the stand-in changed nothing
    assert programs["groupmod"].calls == ["-g 7 -- ops"]
    made, programs = application(tmp_path, "group", "ops", "ensure=absent", noop=True)
    await made.run()
    assert programs["groupdel"].calls == []
    assert [(line.source, line.message) for line in made.log.lines][:1] == [
        ("/Group[ops]/ensure", "current_value 'present', should be 'absent' (noop)")
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "You must specify the type to display"),
        (("nosuch",), "Could not find type nosuch"),
        (("group", "ops", "foo"), "Invalid parameter setting foo"),
        (("group", "ops", "foo=1"), "no parameter named 'foo'"),
        (("group", "ops", "gid=x"), "Parameter gid failed on Group[ops]: Invalid GID x"),
        (("group", "ops", "provider=nosuch"), "Parameter provider failed on Group[ops]: Invalid group provider 'nosuch'"),
        (("group", "ops", "-p", "foo"), "group has no parameter named 'foo'"),
        (("file",), "Listing all file instances is not supported.  Please specify a file or directory, e.g. puppet resource file /etc"),
        (("group", ""), "The name must not be empty"),
    ],
)
async def test_a_wrong_call_says_what_is_wrong(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    made, _ = application(tmp_path, *words)
    with pytest.raises(ResourceError) as caught:
        await made.run()
    assert caught.value.message == message


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="invalid option: --nosuch"):
        main.parse(["--nosuch", "user"])
    options, flags = main.parse(["-y", "-p", "managehome", "--param=system", "user", "root", "--noop"])
    assert (options.to_yaml, options.param, options.arguments, flags) == (True, ("managehome", "system"), ("user", "root"), {"noop": True})


def test_types_and_help_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--types"]) == 0
    assert {"user", "group", "package", "service", "file"} <= set(capsys.readouterr().out.split())
    assert main(["--help"]) == 0
    assert "puppet resource TYPE" in capsys.readouterr().out


def test_nothing_is_applied_when_the_editor_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nstat -c %a "$(dirname "$1")" > {tmp_path}/mode; cat "$1" > {tmp_path}/seen; exit 3\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    assert edit_and_apply("notify { 'x': }") == 1
    assert (tmp_path / "mode").read_text() == "700\n"
    assert (tmp_path / "seen").read_text() == "notify { 'x': }\n"
    assert "nothing was applied" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_prints_a_user_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = [f"--confdir={tmp_path}/conf", f"--vardir={tmp_path}/var"]
    assert main([*where, "user", "root"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("user { 'root':\n  ensure ") and "'/root'" in printed
    assert main([*where, "nosuch"]) == 1


@pytest.mark.slow
def test_what_was_set_in_another_file_is_shown_from_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = [f"--confdir={tmp_path}/conf", f"--vardir={tmp_path}/var"]
    assert main([*where, "host", "printer", "ip=192.0.2.7", "ensure=present", f"target={tmp_path}/hosts"]) == 0
    assert "ensure   => 'present',\n  ip       => '192.0.2.7'" in capsys.readouterr().out
