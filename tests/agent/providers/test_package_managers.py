"""What package managers are told, where none of them can be run: by stand-ins for their programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.providers.package.apk import Apk
from agent.providers.package.dnfmodule import DnfModule
from agent.providers.package.dnfmodule import parse as modules_in
from agent.providers.package.gem import Gem, PuppetGem, PuppetserverGem, server_gem_environment
from agent.providers.package.npm import Npm
from agent.providers.package.pacman import Pacman
from agent.providers.package.pip import Pip2, Pip3
from agent.providers.package.rpm import Rpm
from agent.providers.package.snap import Snap
from agent.providers.package.targeted import Targeted
from agent.providers.package.yum import Dnf, Yum
from agent.providers.package.zypper import Zypper
from shared.errors import ResourceError
from shared.ral import Output, State
from shared.types.package import Package
from tests.agent.providers.recorded import Program

INSTALLED = "vim 2 8.2.2637 20.el9_1 x86_64\n"
NONE = ("package vim is not installed\n", 1)


def dnf(rpm: Any, cls: type[Yum] = Dnf, **answers: Any) -> tuple[Yum, Program]:
    provider = cls()
    manager = Program("dnf", {key.replace("_", "-"): value for key, value in answers.items()})
    provider.manager, provider.rpm = manager, Program("rpm", {"-q": rpm})  # type: ignore[misc, assignment]
    return provider, manager


async def settled(provider: Any, **given: Any) -> State:
    """The state, as the harness gets it; and what is out of sync is brought about."""
    resource = Package("vim", given)
    state: State = await provider.retrieve(resource) or {}
    desired = resource.wanted("ensure") or []
    declared = resource.declaration.attributes["ensure"]
    if not declared.insync(resource, state, desired):  # type: ignore[attr-defined]
        value = desired[0]
        if value == "present":
            await provider.create(resource, state)
        elif value == "absent":
            await provider.destroy(resource, state)
        else:
            await provider.set(resource, "ensure", value, state)
    return state


YUM = [
    (Dnf, NONE, {}, {}, ["-d 0 -e 1 -y install vim"]),
    (Yum, NONE, {}, {}, ["-d 0 -e 0 -y install vim"]),
    (Dnf, INSTALLED, {}, {}, []),
    (Dnf, INSTALLED, {"ensure": "2:8.2.2637-20.el9_1"}, {}, []),
    (Dnf, INSTALLED, {"ensure": "8.2.2637"}, {}, []),
    (Dnf, INSTALLED, {"ensure": ">8.0 <9"}, {}, []),
    (Dnf, INSTALLED, {"ensure": "latest"}, {"check_update": ("", 0)}, ["check-update"]),
    (
        Dnf,
        INSTALLED,
        {"ensure": "latest", "install_options": [{"--enablerepo": "extra"}]},
        {"check_update": ("\nvim.x86_64  2:9.0-1.el9  extra\n", 100)},
        ["check-update --enablerepo=extra", "-d 0 -e 1 -y --enablerepo=extra upgrade vim"],
    ),
    (Dnf, INSTALLED, {"ensure": "purged"}, {}, ["-y erase vim"]),
    (Dnf, NONE, {"allow_virtual": False}, {}, ["-d 0 -e 1 -y list vim", "-d 0 -e 1 -y install vim"]),
]


@pytest.mark.parametrize(("cls", "rpm", "given", "answers", "calls"), YUM)
async def test_yum_and_dnf_are_told_what_is_needed(cls: type[Yum], rpm: Any, given: Any, answers: Any, calls: list[str]) -> None:
    provider, manager = dnf(rpm, cls, **answers)
    await settled(provider, **given)
    assert manager.calls == calls


@pytest.mark.parametrize(("wanted", "operation"), [("8.2.2637-99.el9", "upgrade"), ("8.1-1", "downgrade"), ("9.0", "upgrade")])
async def test_another_version_is_an_upgrade_or_a_downgrade_and_is_checked_afterwards(wanted: str, operation: str) -> None:
    provider, manager = dnf(INSTALLED)
    with pytest.raises(ResourceError, match=f"Could not update: Failed to update to version {wanted}, got version 2:8.2.2637-20.el9_1"):
        await settled(provider, ensure=wanted)
    assert manager.calls == [f"-d 0 -e 1 -y {operation} vim-{wanted}"]


async def test_a_range_takes_the_highest_version_inside() -> None:
    provider, manager = dnf(INSTALLED, list="Available Packages\nvim.x86_64 2:9.0-1 x\nvim.x86_64 2:9.5-1 x\nvim.x86_64 2:10-1 x\n")
    with pytest.raises(ResourceError, match="got version"):
        await settled(provider, ensure=">=9 <10")
    assert manager.calls[-1] == "-d 0 -e 1 -y upgrade vim-9.5-1"
    with pytest.raises(ResourceError, match="No available version of package vim is in range >11"):
        await settled(provider, ensure=">11")


async def test_the_architecture_of_a_name_goes_behind_the_version() -> None:
    provider, manager = dnf(("", 1))
    resource = Package("vim.x86_64", {"ensure": "9.0-1"})
    with pytest.raises(ResourceError, match="Could not find package"):
        await provider.install(resource, {"ensure": "absent"})
    assert manager.calls == ["-d 0 -e 1 -y install vim-9.0-1.x86_64"]


async def test_an_rpm_is_installed_from_its_source_only() -> None:
    provider = Rpm()
    provider.rpm = program = Program("rpm", {"-q": NONE})  # type: ignore[misc, assignment]
    await settled(provider, source="/srv/vim.rpm")
    assert program.calls[-1] == "-i -- /srv/vim.rpm"
    with pytest.raises(ResourceError, match="RPMs must specify a package source"):
        await settled(provider)


async def test_a_removal_names_the_rpm_as_exactly_as_the_resource_does() -> None:
    for name, words in (("vim", "vim"), ("vim-8.2.2637", "vim-8.2.2637"), ("vim.x86_64", "vim.x86_64")):
        provider = Rpm()
        provider.rpm = program = Program("rpm", {"-q": INSTALLED})  # type: ignore[misc, assignment]
        await provider.uninstall(Package(name, {"ensure": "absent"}), {})
        assert program.calls[-1] == f"-e -- {words}"


async def test_zypper_confirms_and_checks() -> None:
    provider = Zypper()
    provider.zypper = program = Program("zypper", {"--version": "zypper 1.14.59", "list-updates": "v | u | vim | 8 | 9.0-1 | x\n"})  # type: ignore[misc, assignment]
    provider.rpm = Program("rpm", {"-q": INSTALLED})  # type: ignore[misc, assignment]
    await settled(provider, ensure="latest", install_options=["--no-gpg-checks", "--recommends"])
    assert program.calls[-1] == "--quiet --no-gpg-checks install --auto-agree-with-licenses --no-confirm --recommends vim"
    await settled(provider, ensure="absent")
    assert program.calls[-1] == "remove --no-confirm vim"


async def test_pacman_refuses_a_group_where_virtual_packages_are_not_allowed() -> None:
    provider = Pacman()
    provider.pacman = program = Program("pacman", {"-Q": "acl 1-1\n", "-Sgg": ("", 1), "-Sg": "vim a\n"})  # type: ignore[misc, assignment]
    with pytest.raises(ResourceError, match="Refusing to install package group vim"):
        await settled(provider, allow_virtual=False)
    with pytest.raises(ResourceError, match="Could not find package 'vim'"):
        await settled(provider)
    assert "--noconfirm --needed --noprogressbar -S -- vim" in program.calls


async def test_apk_upgrades_to_the_highest_version_it_knows() -> None:
    provider = Apk()
    lines = "vim-9.0-r0 x86_64 {vim} (Vim)\nvim-9.0_rc1-r0 x86_64 {vim} (Vim)\n"
    answers = {"list --installed": "vim-8.2-r1 x86_64 {vim} (Vim) [installed]\n", "list --available": lines}
    provider.apk = program = Program("apk", answers)  # type: ignore[misc, assignment]
    await settled(provider, ensure="latest")
    assert program.calls[-1] == "--no-progress add --upgrade vim"
    await settled(provider, ensure=">=9.0")
    assert program.calls[-1] == "--no-progress add vim=9.0-r0"
    await settled(provider, ensure="absent")
    assert program.calls[-1] == "--no-progress del vim"


async def test_snap_refreshes_what_is_there() -> None:
    provider = Snap()
    table = "Name Version Rev\nvim {} 1\n"
    provider.snap = program = Program("snap", {"list": table.format(8), "refresh --list": table.format(9)})  # type: ignore[misc, assignment]
    await settled(provider, ensure="latest", install_options=["--channel=edge"])
    assert program.calls[-1] == "refresh --channel=edge vim"
    await settled(provider, ensure="purged")
    assert program.calls[-1] == "remove --purge vim"


class Told:
    """Mixed over a Targeted, in place of running a program."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.program = Program("program", answers["answers"])

    async def run(self, resource: Package | None, *words: str, seconds: float | None = None, fail: bool = True) -> Output:
        return await self.program(*words, fail=fail)


class ToldPip(Told, Pip3, name="pip3"): ...


class ToldGem(Told, Gem, name="gem"): ...


class ToldNpm(Told, Npm, name="npm"): ...


VERSIONS = ("ERROR: (from versions: 8.0, 9.0rc1, 8.2)", 1)
LANGUAGES: list[tuple[type[Told], dict[str, Any], dict[str, Any], str]] = [
    (ToldPip, {"freeze": "Vim==8.0\n"}, {}, "freeze --all"),
    (ToldPip, {"freeze": ""}, {}, "install -q -- vim"),
    (ToldPip, {"freeze": ""}, {"ensure": "1.0"}, "install -q -- vim==1.0"),
    (
        ToldPip,
        {"freeze": "vim==8.0", "--version": "pip 23.2", "install -- vim==": VERSIONS},
        {"ensure": "latest"},
        "install -q --upgrade -- vim",
    ),
    (
        ToldPip,
        {"freeze": "vim==8.0", "--version": "pip 20.3", "install --use-deprecated": VERSIONS},
        {"ensure": ">8.0 <9"},
        "install -q -- vim==8.2",
    ),
    (ToldPip, {"freeze": ""}, {"ensure": "1.0", "source": "git+https://x.test/v"}, "install -q -- git+https://x.test/v@1.0#egg=vim"),
    (ToldPip, {"freeze": "vim==8.0"}, {"ensure": "absent"}, "uninstall -y -q -- vim"),
    (ToldGem, {"list": "vim (1.2, 1.0)\n"}, {"ensure": "1.0"}, r"list --local \Avim\z"),
    (ToldGem, {"list": "vim (1.2, 1.0)\n"}, {"ensure": "~> 1.1"}, r"list --local \Avim\z"),
    (ToldGem, {"list": "", "--version": "3.3"}, {}, "install --no-document vim"),
    (ToldGem, {"list": "", "--version": "1.8"}, {"ensure": "2.0"}, "install -v 2.0 --no-rdoc --no-ri vim"),
    (ToldGem, {"list": "", "--version": "3.3"}, {"ensure": ">=1.0 <2"}, "install -v >= 1.0, < 2 --no-document vim"),
    (ToldGem, {"list": "", "--version": "3.3"}, {"source": "https://x.test"}, "install --no-document --source https://x.test vim"),
    (ToldGem, {"list": "", "--version": "3.3"}, {"source": "file:///srv/vim.gem"}, "install --no-document /srv/vim.gem"),
    (ToldGem, {"list": "vim (1.2)\n"}, {"ensure": "absent"}, "uninstall --executables --all vim"),
    (ToldNpm, {"list": "{}"}, {"ensure": "1.0"}, "install --global vim@1.0"),
    (ToldNpm, {"list": '{"dependencies": {"vim": {"version": "1"}}}', "view": "2\n"}, {"ensure": "latest"}, "install --global vim@latest"),
    (ToldNpm, {"list": '{"dependencies": {"vim": {"version": "1"}}}'}, {"ensure": "absent"}, "uninstall --global vim"),
]


@pytest.mark.parametrize(("cls", "answers", "given", "last"), LANGUAGES)
async def test_package_managers_of_languages_are_told_what_is_needed(cls: Any, answers: Any, given: Any, last: str) -> None:
    provider = cls(answers=answers)
    await settled(provider, **given)
    assert provider.program.calls[-1] == last


async def test_pip_of_python_2_runs_that_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pip2"
    program.write_text('#!/bin/sh\necho "$0 $*" >> "$0.calls"\nif [ "$1" = freeze ]; then echo Vim==8.0; fi\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    state = await settled(Pip2(), ensure="absent")
    assert state["ensure"] == "8.0"
    assert (tmp_path / "pip2.calls").read_text().splitlines()[-1] == f"{program} uninstall -y -q -- vim"


async def test_a_gem_command_that_says_error_has_failed_whatever_its_exit_code() -> None:
    provider = ToldGem(answers={"list": "", "--version": "3.3", "install": "ERROR:  Could not find a valid gem"})
    with pytest.raises(ResourceError, match="Could not install: ERROR"):
        await settled(provider)


async def test_a_command_of_ones_own_must_exist() -> None:
    provider = Targeted()
    with pytest.raises(ResourceError, match="package command '/no/such/pip' does not exist on this host"):
        await provider.run(Package("x", {"command": "/no/such/pip"}), "freeze")


async def test_a_latest_version_that_cannot_be_told_fails_the_property_and_not_the_reading() -> None:
    provider = ToldNpm(answers={"list": '{"dependencies": {"vim": {"version": "1"}}}', "view": ("no network", 1)})
    with pytest.raises(ResourceError, match=r"Could not get latest version: .*no network"):
        await settled(provider, ensure="latest")


# --- modules of dnf

MODULES = """\
Fedora Modular 38 - x86_64
Name         Stream     Profiles                        Summary
nodejs       10         common [d], development         Javascript runtime
nodejs       12 [e]     common [d], development         Javascript runtime
postgresql   9.6 [d][e] client, server [d] [i], minimal PostgreSQL server
perl         5.24 [x]   common [d], minimal             Practical Extraction
perl         5.26 [x]   common [d], minimal             Practical Extraction

Hint: [d]efault, [e]nabled, [x]disabled, [i]nstalled
"""


def test_a_listing_of_modules_says_stream_and_profile() -> None:
    assert modules_in(MODULES) == {
        "nodejs": {"ensure": "12", "flavor": "absent"},
        "postgresql": {"ensure": "9.6", "flavor": "server"},
        "perl": {"ensure": "disabled", "flavor": "absent"},
    }


def listed(stream: str = "", marks: str = "[e]", profiles: str = "client, server") -> str:
    return f"vim {stream} {marks} {profiles} an editor\n" if stream else ""


REMOVED = ["module remove -d 0 -e 1 -y vim", "module reset -d 0 -e 1 -y vim"]
STREAMS = [
    ("", {}, ["module install -d 0 -e 1 -y vim"]),
    ("", {"ensure": "9"}, ["module install -d 0 -e 1 -y vim:9"]),
    ("", {"ensure": "9", "flavor": "client"}, ["module install -d 0 -e 1 -y vim:9/client"]),
    ("", {"ensure": "9", "enable_only": True}, ["module enable -d 0 -e 1 -y vim:9"]),
    ("", {"ensure": "disabled"}, ["module disable -d 0 -e 1 -y vim"]),
    ("", {"ensure": "absent"}, []),
    (listed("9"), {}, []),
    (listed("9"), {"ensure": "9"}, []),
    (listed("9"), {"ensure": "10"}, [*REMOVED, "module install -d 0 -e 1 -y vim:10"]),
    (listed("9"), {"ensure": "absent"}, REMOVED),
    (listed("9"), {"ensure": "purged"}, REMOVED),
    (listed("9", "[x]"), {"ensure": "disabled"}, []),
    (listed("9", "[x]"), {"ensure": "9"}, [*REMOVED, "module install -d 0 -e 1 -y vim:9"]),
    (listed("9", "[x]"), {}, [*REMOVED, "module install -d 0 -e 1 -y vim"]),
]


@pytest.mark.parametrize(("there", "given", "done"), STREAMS)
async def test_dnf_is_told_which_stream_and_profile_of_a_module_is_wanted(there: str, given: dict[str, Any], done: list[str]) -> None:
    provider = DnfModule()
    provider.manager = program = Program("dnf", {"module list": there})  # type: ignore[misc, assignment]
    await settled(provider, **given)
    assert [call for call in program.calls if not call.startswith("module list")] == done


async def test_another_profile_of_a_module_replaces_the_one_that_is_there() -> None:
    provider = DnfModule()
    provider.manager = program = Program("dnf", {"module list": listed("9", "[e]", "client [i]")})  # type: ignore[misc, assignment]
    resource = Package("vim", {"ensure": "9", "flavor": "server"})
    state = await provider.retrieve(resource)
    assert state is not None and state["flavor"] == "client"
    await provider.set(resource, "flavor", "server", state)
    assert program.calls[1:] == [*REMOVED, "module install -d 0 -e 1 -y vim:9/server"]


@pytest.mark.parametrize(("flavor", "enabled"), [({}, True), ({"flavor": "server"}, False)])
async def test_a_module_without_a_default_profile_is_enabled(flavor: dict[str, str], enabled: bool) -> None:
    provider = DnfModule()
    failure = ("Error: Problems in request:\nmissing groups or modules: vim:9", 1)
    provider.manager = program = Program("dnf", {"module install": failure})  # type: ignore[misc, assignment]
    if enabled:
        await settled(provider, ensure="9")
        assert program.calls[-1] == "module enable -d 0 -e 1 -y vim:9"
    else:
        with pytest.raises(ResourceError, match="missing groups or modules"):
            await settled(provider, ensure="9", **flavor)


@pytest.mark.parametrize(("version", "refused"), [("3.0.0", True), ("3.0.1", False), ("4.14.0\n  Installed: dnf", False)])
async def test_modules_need_a_dnf_that_has_them(version: str, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    provider = DnfModule()
    provider.manager = Program("dnf", {"--version": version, "module list": MODULES})  # type: ignore[misc, assignment]
    if refused:
        with pytest.raises(ResourceError, match=r"Modules are not supported on DNF versions lower than 3\.0\.1"):
            await provider.prefetch({})
    else:
        assert await provider.prefetch({}) == {}


# --- gems of Puppet's own Rubies

TOLD = '#!/bin/sh\necho "$GEM_HOME|$GEM_PATH|$PKG_CONFIG_PATH|$*" >> "$0.calls"\n'


def stand_in(path: Path, more: str = "") -> Path:
    path.write_text(TOLD + more)
    path.chmod(0o755)
    return path


def said_to(path: Path) -> list[str]:
    return (path.parent / f"{path.name}.calls").read_text().splitlines()


async def test_gems_of_puppets_own_ruby_are_managed_by_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gem = stand_in(tmp_path / "gem", 'case "$1" in list) echo "vim (1.0)";; --version) echo 3.3;; esac\n')
    monkeypatch.setattr(PuppetGem, "programs", (str(gem),))
    state = await settled(PuppetGem(), ensure="2.0")
    assert state["ensure"] == ["1.0"]
    config = "/opt/puppetlabs/puppet/lib/pkgconfig"
    assert said_to(gem) == [
        rf"||{config}|list --local \Avim\z",
        f"||{config}|--version",
        f"||{config}|install -v 2.0 --no-document vim",
    ]


PLACED = 'jruby-puppet: { gem-home: /srv/gems, gem-path: [${jruby-puppet.gem-home}, "/srv/more"] }\n'
PACKAGED, VENDORED = "/opt/puppetlabs/server/data/puppetserver", "/opt/puppetlabs/puppet/lib/ruby/vendor_gems"


@pytest.mark.parametrize(
    ("configured", "home", "path"),
    [
        (PLACED, "/srv/gems", "/srv/gems:/srv/more"),
        ("other: 1\n", f"{PACKAGED}/jruby-gems", f"{PACKAGED}/jruby-gems:{PACKAGED}/vendored-jruby-gems:{VENDORED}"),
    ],
)
async def test_gems_of_puppetserver_are_listed_by_puppets_ruby_and_changed_by_its_own(
    configured: str, home: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lister = stand_in(tmp_path / "gem", 'echo "vim (default: 9.0)"; echo "vim (1.0)"\n')
    server = stand_in(tmp_path / "puppetserver", 'case "$2" in list) echo "vim (2.0, 1.0)";; esac\n')
    (tmp_path / "puppetserver.conf").write_text(configured)
    for name, value in {"programs": (str(server),), "lister": str(lister), "configuration": tmp_path / "puppetserver.conf"}.items():
        monkeypatch.setattr(PuppetserverGem, name, value)
    state = await settled(PuppetserverGem(), ensure="latest", install_options=["--clear-sources"], source="https://x.test")
    assert state["ensure"] == ["1.0"]
    assert said_to(lister) == [rf"{home}|{path}||list --local \Avim\z"]
    assert said_to(server) == [
        r"|||gem list --remote --source https://x.test \Avim\z",
        "|||gem install --clear-sources --no-document --source https://x.test vim",
    ]


async def test_without_puppets_ruby_puppetserver_lists_its_gems_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = stand_in(tmp_path / "puppetserver", 'echo "vim (1.0)"\n')
    monkeypatch.setattr(PuppetserverGem, "programs", (str(server),))
    monkeypatch.setattr(PuppetserverGem, "lister", "/nonexistent/gem")
    await settled(PuppetserverGem(), ensure="absent")
    assert said_to(server) == [r"|||gem list --local \Avim\z", "|||gem uninstall --executables --all vim"]


async def test_a_configuration_of_puppetserver_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "puppetserver.conf").write_text("jruby-puppet: {")
    with pytest.raises(ResourceError, match=r"puppetserver\.conf cannot be read"):
        server_gem_environment(tmp_path / "puppetserver.conf")
