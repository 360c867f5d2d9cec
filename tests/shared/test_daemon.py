from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.errors import ConfigError
from shared.process.daemon import PidFile, account, give_way, own, require_program, take_priority
from tests.support.needs import needs_root


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "puppet.pid"


def dead() -> int:
    """The number of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait(timeout=60)
    return done.pid


def test_a_pid_file_names_this_process_and_its_folder_is_made(path: Path) -> None:
    PidFile(path).write()
    assert path.read_text() == f"{os.getpid()}\n"
    assert path.stat().st_mode & 0o022 == 0


def test_writing_it_again_is_fine(path: Path) -> None:
    PidFile(path).write()
    PidFile(path).write()
    assert PidFile(path).running() is None


def test_a_living_process_keeps_its_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("1\n")
    assert PidFile(path).running() == 1
    with pytest.raises(ConfigError, match=f"Could not create PID file: {path}") as caught:
        PidFile(path).write()
    assert "Process 1 is running" in caught.value.hint
    assert path.read_text() == "1\n"


@pytest.mark.parametrize("text", ["", "\n", "0\n", "-1\n", "not a number\n", "1 2\n", "99999999999999999999\n"])
def test_a_file_that_names_no_process_is_taken_over(text: str, path: Path) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert PidFile(path).running() is None
    PidFile(path).write()
    assert path.read_text() == f"{os.getpid()}\n"


def test_the_file_of_a_dead_process_is_taken_over(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(f"{dead()}\n")
    PidFile(path).write()
    assert path.read_text() == f"{os.getpid()}\n"


def test_the_file_of_a_process_whose_number_another_got_is_taken_over(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(f"{os.getppid()}\n")
    os.utime(path, (0, 0))  # older than every process
    assert PidFile(path).running() is None


def test_only_our_own_file_is_removed(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("1\n")
    PidFile(path).remove()
    assert path.exists()
    path.write_text(f"{os.getpid()}\n")
    PidFile(path).remove()
    assert not path.exists()
    PidFile(path).remove()


def test_an_account_is_found_with_its_group() -> None:
    entry = pwd.getpwnam("root")
    assert account("root", "") == (entry.pw_uid, entry.pw_gid)
    assert account("root", "daemon")[0] == entry.pw_uid


@pytest.mark.parametrize(("user", "group"), [("no-such-user", ""), ("root", "no-such-group")])
def test_a_missing_account_comes_with_what_to_do(user: str, group: str) -> None:
    with pytest.raises(ConfigError, match=f"Could not change to user {user}: ") as caught:
        account(user, group)
    assert "useradd" in caught.value.hint


@needs_root
def test_missing_and_empty_folders_are_handed_over_and_others_stay(tmp_path: Path) -> None:
    new, empty, full, foreign, link = (tmp_path / name for name in ("new", "empty", "full", "foreign", "link"))
    for folder in (empty, full, foreign):
        folder.mkdir()
    (full / "file").write_text("")
    os.chown(foreign, 3, 3)
    link.symlink_to(tmp_path)
    own(dict.fromkeys((new, empty, full, foreign, link), 0o750), 1, 1)
    owners = {folder.name: folder.lstat().st_uid for folder in (new, empty, full, foreign, link)}
    assert owners == {"new": 1, "empty": 1, "full": 0, "foreign": 3, "link": 0}
    assert tmp_path.stat().st_uid == 0
    assert new.stat().st_mode & 0o777 == 0o750


@pytest.mark.slow
def test_a_daemon_leaves_its_terminal_and_says_goodbye_with_0(tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from pathlib import Path; from shared.process import daemon; from shared.process.daemon import PidFile\n"
        "daemon.to_background(); print('lost')\n"
        f"Path({str(tmp_path / 'seen')!r}).write_text(f'{{os.getsid(0)}} {{os.getpid()}} {{os.getcwd()}} {{os.isatty(0)}}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    for _ in range(200):
        if (tmp_path / "seen").exists() and (tmp_path / "seen").read_text().count(" ") == 3:
            break
        subprocess.run(["sleep", "0.02"], check=True)
    session, pid, folder, tty = (tmp_path / "seen").read_text().split()
    assert session not in (pid, str(os.getsid(0)))
    assert (folder, tty) == ("/", "False")


@pytest.mark.parametrize("lower", [0, 3])
def test_a_priority_holds_for_the_process_and_what_it_starts(lower: int) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    nice = min(before + lower, 19)  # nobody but root gets above what the tests themselves run at
    priority = nice if lower else "''"
    code = f"import os, subprocess; from shared.process.daemon import take_priority; take_priority({priority}); subprocess.run(['nice'])"
    program = ["nice", "-n", "0", sys.executable, "-c", code]
    assert int(subprocess.run(program, check=True, capture_output=True, timeout=60).stdout) == nice


def test_a_priority_that_may_not_be_taken_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(which: int, who: int, priority: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    take_priority(-10)
    assert "Failed to set process priority to '-10'" in caplog.text


GIVE_WAY = """
import os
from pathlib import Path
from shared.process.daemon import give_way
give_way(7)
print(os.getpriority(os.PRIO_PROCESS, 0), Path("/proc/self/autogroup").read_text().split()[-1])
"""


@pytest.mark.skipif(not os.access("/proc/self/autogroup", os.W_OK), reason="the kernel has no groups of sessions")
def test_a_process_gives_way_to_other_sessions_where_it_leads_its_own() -> None:
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    nice, of_session = subprocess.run(
        [sys.executable, "-c", GIVE_WAY], check=True, capture_output=True, timeout=60, start_new_session=True
    ).stdout.split()
    assert (int(nice), int(of_session)) == (min(mine + 7, 19), 7)


@pytest.mark.skipif(not os.access("/proc/self/autogroup", os.W_OK), reason="the kernel has no groups of sessions")
def test_a_process_in_another_ones_session_gives_way_without_it() -> None:
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    other = ["-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {GIVE_WAY!r}], check=True)"]
    nice, of_session = subprocess.run(
        [sys.executable, *other], check=True, capture_output=True, timeout=60, start_new_session=True
    ).stdout.split()
    assert (int(nice), int(of_session)) == (min(mine + 7, 19), 0)


@pytest.mark.parametrize(("failures", "warning"), [(2, ""), (1000, "others keep changing theirs")])
def test_the_kernel_may_ask_to_set_the_niceness_of_a_session_later(
    failures: int, warning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written, pauses = [], []

    def write_text(path: Path, text: str) -> int:
        if len(pauses) < failures:
            raise BlockingIOError
        written.append((str(path), text))
        return len(text)

    monkeypatch.setattr(Path, "write_text", write_text)
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(os, "nice", lambda niceness: niceness)
    monkeypatch.setattr(os, "getsid", lambda pid: os.getpid())
    give_way(7)
    assert written == ([] if warning else [("/proc/self/autogroup", "7\n")])
    assert warning in caplog.text


def test_a_program_that_its_account_cannot_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    require_program("puppet", [Path(__file__), Path(sys.executable)])
    with pytest.raises(ConfigError, match=f"The account puppet cannot read {tmp_path}/python3, a part of the program") as error:
        require_program("puppet", [Path(__file__), tmp_path / "python3"])
    assert "below /opt" in (error.value.hint or "")
