"""Git runs nothing that a repository or its user's configuration names, asks nobody, goes nowhere else, and ends with what it started."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shared.errors import ConfigError, PuppetError
from shared.git import ALL_PROTOCOLS, Git, check_location, check_ref, check_revision, without_credentials
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git, needs_root
from tests.support.processes import until_ended
from tests.support.waiting import until, until_late

GIT = Git(timeout=60)


@pytest.fixture
def repository(tmp_path: Path) -> ControlRepository:
    repository = ControlRepository(tmp_path / "control")
    repository.commit({"file": "text\n", ".gitattributes": "file filter=evil diff=evil\n"})
    return repository


async def export(git: Git, repository: ControlRepository, folder: Path) -> None:
    """Do all that a deployment, a preview and a module of a Puppetfile do."""
    location = str(repository.folder)
    await git.run("ls-remote", "--", location, action="look", location=location)
    await git.run("clone", "--mirror", "--quiet", "--", location, str(folder / "mirror"), action="clone", location=location)
    await git.run("init", "--quiet", str(folder / "new"), action="begin")
    await git.run("fetch", "--quiet", "--", location, "production", action="fetch", folder=folder / "new", location=location)
    await git.run("checkout", "--quiet", "--detach", "FETCH_HEAD", action="check out", folder=folder / "new")


@needs_git
async def test_neither_the_configuration_nor_the_environment_of_the_user_runs_anything(
    repository: ControlRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, home, templates = tmp_path / "ran", tmp_path / "home", tmp_path / "templates"
    program = home / "evil"
    home.mkdir()
    program.write_text(f"#!/bin/sh\necho $0 $@ >> {ran}\ncat\n")
    program.chmod(0o755)
    hooks = templates / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        shutil.copy(program, hooks / name)
    text = f"""
[core]
    hooksPath = {hooks}
    fsmonitor = {program}
    sshCommand = {program}
    pager = {program}
    askPass = {program}
[init]
    templateDir = {templates}
[filter "evil"]
    smudge = {program}
    clean = {program}
[credential]
    helper = {program}
[uploadpack]
    packObjectsHook = {program}
[url "ext::{program} "]
    insteadOf = {repository.folder}
"""
    (home / ".gitconfig").write_text(text)
    variables = {
        "HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": home / ".gitconfig", "GIT_CONFIG_SYSTEM": home / ".gitconfig",
        "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index", "GIT_EXEC_PATH": home,
        "GIT_SSH_COMMAND": program, "GIT_SSH": program, "GIT_ASKPASS": program, "SSH_ASKPASS": program, "GIT_EDITOR": program,
        "GIT_PAGER": program, "GIT_PROXY_COMMAND": program, "GIT_TEMPLATE_DIR": templates, "GIT_EXTERNAL_DIFF": program,
        "GIT_ALLOW_PROTOCOL": "ext", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": hooks,
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    await export(GIT, repository, tmp_path)
    with pytest.raises(PuppetError, match="Failed to go elsewhere: git ls-remote ended with 128: ssh"):
        await GIT.run("ls-remote", "--", "ssh://127.0.0.1:1/x", action="go elsewhere")
    assert (tmp_path / "new/file").read_text() == "text\n"
    assert not ran.exists(), ran.read_text()


@needs_git
@pytest.mark.parametrize("location", ["ext::sh -c 'touch RAN'", "http://127.0.0.1:1/x", "git://127.0.0.1:1/x", "fd::0"])
async def test_protocols_that_are_not_allowed_are_refused_also_where_nobody_has_checked_the_location(tmp_path: Path, location: str) -> None:
    ran = tmp_path / "ran"
    with pytest.raises(PuppetError, match=r"transport '\w+' not allowed"):
        await GIT.run("ls-remote", "--", location.replace("RAN", str(ran)), action="look")
    assert not ran.exists()


@needs_git
async def test_a_protocol_may_be_taken_away(repository: ControlRepository) -> None:
    with pytest.raises(PuppetError, match="transport 'file' not allowed"):
        await Git(timeout=60, protocols=("https",)).run("ls-remote", "--", str(repository.folder), action="look")


class Web:
    """A server that sends whoever asks for `/moved…` elsewhere, and lets nobody else in; `asked` has the paths."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path.partition("?")[0])
                moved = self.path.startswith("/moved")
                self.send_response(302 if moved else 401)
                self.send_header("Location", self.path.replace("/moved", "/other"))
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    thread = threading.Thread(target=web.server.serve_forever)
    thread.start()
    try:
        yield web
    finally:
        web.server.shutdown()
        web.server.server_close()
        thread.join()


@needs_git
@pytest.mark.slow
async def test_nobody_is_asked_for_a_password_and_none_is_shown(web: Web) -> None:
    git = Git(timeout=60, protocols=ALL_PROTOCOLS)
    with pytest.raises(PuppetError, match="terminal prompts disabled"):
        await git.run("ls-remote", "--", f"http://{web.host}/x", action="look")
    with pytest.raises(PuppetError, match="Authentication failed") as caught:
        await git.run("ls-remote", "--", f"http://me:secret@{web.host}/x", action=f"look at http://me:secret@{web.host}/x")
    assert "secret" not in str(caught.value)


@needs_git
@pytest.mark.parametrize(("follows", "paths"), [(False, ["/moved/info/refs"]), (True, ["/moved/info/refs", "/other/info/refs"])])
@pytest.mark.slow
async def test_a_server_leads_elsewhere_only_where_that_is_allowed(web: Web, follows: bool, paths: list[str]) -> None:
    git = Git(timeout=60, protocols=ALL_PROTOCOLS, follows_redirects=follows)
    with pytest.raises(PuppetError, match="ended with 128"):
        await git.run("ls-remote", "--", f"http://{web.host}/moved", action="look")
    assert web.asked == paths


@needs_git
@needs_root
async def test_a_repository_of_another_user_is_read_only_where_this_one_says_so(
    repository: ControlRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (repository.folder, *repository.folder.rglob("*")):
        os.chown(path, 4711, 4711)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    with pytest.raises(PuppetError, match="detected dubious ownership in repository") as caught:
        await export(GIT, repository, tmp_path)
    assert "git config --global --add safe.directory" in caught.value.hint
    (tmp_path / ".gitconfig").write_text(f'[safe]\n\tdirectory = "/other \\"folder"\n\tdirectory = {repository.folder}/.git\n')
    await export(GIT, repository, tmp_path)
    assert list(Path(os.environ.get("TMPDIR", "/tmp")).glob("puppet-git-*")) == []


def program(folder: Path, text: str) -> Git:
    """Return a Git whose program is a script."""
    path = folder / "bin" / "git"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Git(timeout=20, path=f"{path.parent}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("fatal: not there\n\nPlease make sure you have the correct access rights\nand the repository exists.", "fatal: not there"),
        (
            "me@host: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "me@host: Permission denied (publickey).",
        ),
        ("warning: x\nfatal: first\nhint: try\nfatal: last", "fatal: last"),
        ("fatal: https://me:hush@host/x \033[31mred", "fatal: https://host/x ?[31mred"),
        ("", "it says nothing"),
    ],
)
async def test_an_error_has_the_line_of_git_that_says_why(tmp_path: Path, complaint: str, reason: str) -> None:
    (tmp_path / "complaint").write_text(complaint)
    git = program(tmp_path, f"cat {tmp_path}/complaint >&2; exit 3")
    with pytest.raises(PuppetError) as caught:
        await git.run("--bare", "fetch", "x", action="fetch x", hint="Try again.")
    assert (caught.value.message, caught.value.hint) == (f"Failed to fetch x: git fetch ended with 3: {reason}", "Try again.")


async def test_git_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(PuppetError, match="printed more than"):
        await program(tmp_path, "exec yes").run("ls-remote", action="look")


async def test_git_that_is_not_installed_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="The program git is not installed"):
        await Git(timeout=1, path=str(tmp_path)).run("ls-remote", action="look")


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["takes too long", "is cancelled"])
async def test_git_that_takes_too_long_or_is_cancelled_ends_with_what_it_started(tmp_path: Path, is_cancelled: bool) -> None:
    pid = tmp_path / "pid"
    git = program(tmp_path, f"sleep 300 &\necho $! > {pid}.new; mv {pid}.new {pid}\nwait")
    running = asyncio.create_task(Git(timeout=300, path=git.path).run("clone", action="clone"))
    await until(pid.exists)
    if is_cancelled:
        running.cancel()
    else:
        await until_late(running, 300)
    with pytest.raises(asyncio.CancelledError if is_cancelled else PuppetError):
        await running
    async with asyncio.timeout(60):
        await until_ended(int(pid.read_text()))


LOCATIONS = ["/srv/control.git", "https://h/x", "ssh://git@h/x", "file:///srv/x", "git@h:site/x.git", "host:x", "https://u:p@h:8/x"]


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_location_is_a_path_a_url_or_what_ssh_takes(location: str) -> None:
    assert check_location(location) == location


@pytest.mark.parametrize(
    "location",
    [
        *("", "-x", "--upload-pack=touch x", "ext::sh -c x", "fd::7", "relative/path", "./x", "-x:y", "h:-x", "h::x", "a b:c", "/x\ny"),
        *("ssh://-oProxyCommand=x/y", "ssh://-o@h/x", "-oX=y:z", "https://", "https://h", "https:///x", "http://[x/", "ssh://h/a b"),
        *("http://h/x", "git://h/x", "ext://h/x", "/" + "x" * 5000),
    ],
)
def test_what_git_may_take_for_something_else_is_no_location(location: str) -> None:
    with pytest.raises(PuppetError, match=r"address of a repository|by the protocol"):
        check_location(location)


def test_further_protocols_are_allowed_by_name() -> None:
    assert check_location("git://h/x", ALL_PROTOCOLS) == "git://h/x"


@pytest.mark.parametrize("ref", ["main", "feature/x", "v1.0", "a" * 40, "release+1", "x@y"])
def test_refs(ref: str) -> None:
    assert check_ref(ref) == check_revision(ref) == ref


@pytest.mark.parametrize("ref", ["", "-x", "--upload-pack=x", "a..b", "a b", "HEAD@{1}", "a//b", "a/.b", "x.lock", "x.", "a" * 251, "a\n"])
def test_what_is_no_ref(ref: str) -> None:
    with pytest.raises(ConfigError):
        check_ref(ref)


def test_a_revision_may_be_counted_from_another() -> None:
    assert check_revision("HEAD~2^1") == "HEAD~2^1" and check_revision("main@{1}") == "main@{1}"
    for text in ("main..work", "-x", "--output=/tmp/x", "", "a b", "a:b"):
        with pytest.raises(ConfigError):
            check_revision(text)


def test_credentials_are_in_no_text() -> None:
    assert without_credentials("of https://me:secret@h/x and ssh://git@h/y, git@h:z") == "of https://h/x and ssh://h/y, git@h:z"
