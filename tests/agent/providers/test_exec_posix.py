"""The type exec with real processes: what the recorded cases of `puppet apply` do not cover."""

import asyncio
import contextlib
import os
import select
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.providers.commands import argv_of
from agent.providers.exec import running
from agent.providers.exec.running import ChildOptions, CommandTimeout, run
from shared.ral import Origin
from shared.types.exec import Exec
from shared.types.service import Service
from tests.support.fake_commands import apply
from tests.support.needs import needs_root
from tests.support.waiting import until


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def sh(script):
    return ["/bin/sh", "-c", script], "/bin/sh"


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("/bin/echo a  b", ["/bin/echo", "a", "b"]),
        ("/bin/echo 'a b'", ["sh", "-c", "/bin/echo 'a b'"]),
        ("/bin/echo $HOME", ["sh", "-c", "/bin/echo $HOME"]),
        ("A=1 /bin/true", ["sh", "-c", "A=1 /bin/true"]),
        ("/bin/test a=b", ["/bin/test", "a=b"]),
        ("exit 3", ["sh", "-c", "exit 3"]),
        (["/bin/echo", "$HOME; ls"], ["/bin/echo", "$HOME; ls"]),
    ],
)
def test_a_shell_is_used_only_where_a_line_needs_one(command, argv):
    assert argv_of(command) == argv


@pytest.mark.slow
async def test_a_timeout_ends_the_whole_process_group(tmp_path, monkeypatch):
    pids = tmp_path / "pids"
    script = f"sleep 60 & trap '' TERM; echo $! $$ > {pids}; wait; sleep 60"
    began = iter([0.0])  # the command may have written before its clock is first read

    def monotonic():
        return next(began, 300.0 if pids.exists() and pids.read_text() else 0.0)

    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=monotonic))
    with pytest.raises(CommandTimeout):
        await run(*sh(script), ChildOptions({"PATH": "/bin:/usr/bin"}, seconds=300))
    for pid in pids.read_text().split():
        await until(lambda pid=pid: not alive(int(pid)))


@pytest.mark.slow
async def test_a_cancelled_run_leaves_no_process(tmp_path):
    pid = tmp_path / "pid"
    task = asyncio.create_task(run(*sh(f"echo $$ > {pid}; exec sleep 60"), ChildOptions({"PATH": "/bin:/usr/bin"})))
    await until(lambda: pid.exists() and pid.read_text().strip())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(int(pid.read_text())))


@pytest.mark.slow
async def test_a_daemon_that_keeps_the_output_open_is_not_waited_for_and_lives(tmp_path):
    pid = tmp_path / "pid"
    done = await run(*sh(f"(sleep 60; echo late) & echo $! > {pid}; echo now"), ChildOptions({"PATH": "/bin:/usr/bin"}))
    try:
        assert (done.code, done.lines) == (0, ["now"])
        assert alive(int(pid.read_text()))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.mark.slow
async def test_endless_output_takes_bounded_memory(monkeypatch):
    monkeypatch.setattr(running, "MAX_OUTPUT", 1000)
    done = await run(*sh("yes | head -c 30000000"), ChildOptions({"PATH": "/bin:/usr/bin"}))
    assert done.code == 0 and len(done.output) < 1100 and done.output.endswith("left out]")


async def test_output_keeps_its_order_and_blank_lines_within():
    done = await run(*sh("echo out; echo err >&2; echo; echo end; echo"), ChildOptions({}))
    assert done.lines == ["out", "err", "", "end"]


async def test_output_through_the_names_of_the_streams_is_not_lost():
    done = await run(*sh("echo one; echo two > /dev/stderr; echo three >> /dev/stdout; echo four"), ChildOptions({}))
    assert done.lines == ["one", "two", "three", "four"]


async def test_a_command_that_closes_its_output_is_waited_for_in_peace(monkeypatch):
    polls = []

    class CountedPolls:
        """Counts the polls at which there was something to do at once."""

        def __init__(self):
            self.poll_object = select.poll()
            self.register, self.unregister = self.poll_object.register, self.poll_object.unregister

        def poll(self, timeout):
            ready = self.poll_object.poll(timeout)
            polls.extend(ready[:1])
            return ready

    monkeypatch.setattr(running, "select", SimpleNamespace(poll=CountedPolls, POLLIN=select.POLLIN))
    done = await run(*sh("echo one; exec >&- 2>&-; sleep 0.2; exit 3"), ChildOptions({"PATH": "/bin:/usr/bin"}))
    assert (done.code, done.lines) == (3, ["one"])
    assert len(polls) <= 3  # its line, the end of its output, and its own end


async def test_a_command_does_not_know_who_we_are(monkeypatch):
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.setenv("BUNRAKU_FAILPOINTS", "x=sleep:0")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    done = await run(["/usr/bin/env"], "/usr/bin/env", ChildOptions({"PATH": "/bin", "A": "1"}))
    environment = dict(line.partition("=")[::2] for line in done.lines)
    assert (environment["PATH"], environment["A"], environment["LANG"]) == ("/bin", "1", "de_DE.UTF-8")
    assert not {"HOME", "USER", "LOGNAME", "BUNRAKU_FAILPOINTS"} & set(environment)


@needs_root
async def test_another_user_has_their_groups_and_none_of_ours():
    done = await run(["/usr/bin/id"], "/usr/bin/id", ChildOptions({"PATH": "/bin:/usr/bin"}, user="daemon"))
    assert done.lines[0].startswith("uid=1(daemon) gid=1(daemon) groups=1(daemon)") and "root" not in done.output


async def test_a_command_has_no_terminal_and_nothing_to_read():
    done = await run(*sh("cat; test -t 0 || echo none"), ChildOptions({"PATH": "/bin:/usr/bin"}))
    assert done.lines == ["none"]


async def test_the_agents_own_files_are_not_inherited(tmp_path):
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), False)
        done = await run(*sh("ls /proc/self/fd | wc -l"), ChildOptions({"PATH": "/bin:/usr/bin"}))
    assert int(done.output) <= 4


async def test_a_script_without_an_interpreter_line_is_an_error_not_a_crash(tmp_path):
    script = tmp_path / "script"
    script.write_bytes(b"\x7fELF broken")
    script.chmod(0o755)
    done = await apply(Exec(str(script), {}))
    assert any("Could not execute" in message for message in done.messages) and done.events[0][1] == "failure"


async def test_a_sensitive_command_that_a_shell_cannot_find_says_no_more(tmp_path):
    origin = Origin(sensitive=frozenset({"command"}))
    done = await apply(Exec("x", {"command": "/bin/sh -c 'hunter2'"}, origin), level="debug")
    assert "hunter2" not in repr(done.lines) + repr(done.statuses)


async def test_the_refresh_command_runs_in_place_of_the_command(tmp_path):
    from shared.types.notify import Notify

    log = tmp_path / "log"
    await apply(
        Notify("n", {"notify": ["Exec[x]"]}),
        Exec("x", {"command": f"/bin/sh -c 'echo command >> {log}'", "refresh": f"/bin/sh -c 'echo refresh >> {log}'"}),
    )
    assert log.read_text() == "command\nrefresh\n"


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"command": "/bin/echo $0"}, "sh"),
        ({"command": "echo $0", "provider": "shell"}, "/bin/sh"),
        ({"command": ["/bin/sh", "-c", "echo $0"]}, "/bin/sh"),
    ],
)
async def test_a_shell_is_called_what_the_reference_calls_it(attributes, name):
    done = await apply(Exec("x", attributes | {"logoutput": "true"}))
    assert name in done.messages


async def test_the_error_of_a_services_command_shows_the_line_as_it_was_written():
    line = "echo $0; exit 3"
    given = {"ensure": "running", "provider": "base", "hasstatus": True, "status": "exit 1", "start": line}
    done = await apply(Service("web", given))
    assert f"Could not start Service[web]: Execution of '{line}' returned 3: sh" in done.messages
