from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from hashlib import md5, sha256
from pathlib import Path

import pytest

from agent.servers.dipper import RemoteDipper
from bunraku.commands.filebucket import BucketCommands, moment
from shared.errors import BadRequest, NotFound
from shared.indirector import Binding, Request
from shared.indirector.core import Terminus
from shared.models.file_bucket_file import FILE_BUCKET_FILE, FileBucketFile
from tests.support.command_line import Puppet

ONE, TWO = (sha256(text).hexdigest() for text in (b"one\n", b"two\n"))
NOWHERE = "0" * 64


@pytest.fixture
def bucket(puppet: Puppet, file: Callable[[str, str], Path]) -> Puppet:
    """A local bucket with two contents."""
    assert puppet("filebucket", "backup", "-l", str(file("one", "one\n")), str(file("two", "two\n"))).code == 0
    return puppet


def test_backup_prints_each_file_with_its_checksum(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    one, two = file("one", "one\n"), file("two", "two\n")
    said = puppet("filebucket", "backup", "--local", str(one), str(two))
    assert (said.code, said.out, said.err) == (0, f"{one}: {ONE}\n{two}: {TWO}\n", "")
    assert (puppet.root / "vardir/clientbucket" / "/".join(ONE[:8]) / ONE / "contents").read_bytes() == b"one\n"


def test_a_machine_that_has_kept_nothing_lists_nothing(puppet: Puppet) -> None:
    said = puppet("filebucket", "list", "--local")
    assert (said.code, said.out, said.err) == (0, "", "")


def test_backup_passes_over_what_is_missing(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    one = file("one", "one\n")
    said = puppet("filebucket", "-l", "backup", "/no/such", str(one))
    assert (said.code, said.out, said.err) == (0, f"{one}: {ONE}\n", "/no/such: no such file\n")


def test_after_two_dashes_everything_is_a_file(puppet: Puppet, file: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file("--noop", "one\n").parent)
    assert puppet("filebucket", "backup", "-l", "--", "--noop").out == f"--noop: {ONE}\n"


def test_backup_as_json(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    one = file("one", "one\n")
    assert json.loads(puppet("filebucket", "backup", "-l", "--json", str(one)).out) == {str(one): ONE}


@pytest.mark.parametrize("name", ["", "fifo"], ids=["folder", "fifo"])
def test_backup_of_what_is_no_file_is_refused_and_does_not_hang(name: str, puppet: Puppet, tmp_path: Path) -> None:
    path = tmp_path / name
    if name:
        os.mkfifo(path)
    said = puppet("filebucket", "backup", "-l", str(path))
    assert (said.code, said.err) == (1, f"Error: Could not back up {path}: it is not a regular file\n")


@pytest.mark.parametrize("form", ["{}", "{{sha256}}{}", "{{SHA256}}{}"])
def test_get_prints_a_content(form: str, bucket: Puppet) -> None:
    said = bucket("filebucket", "get", "-l", form.format(ONE))
    assert (said.code, said.out) == (0, "one\n")


def test_restore_makes_a_file(bucket: Puppet, tmp_path: Path) -> None:
    path = tmp_path / "new"
    said = bucket("filebucket", "restore", "-l", str(path), TWO)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert path.read_text() == "two\n"


def test_restore_keeps_the_mode_and_follows_a_link(bucket: Puppet, file: Callable[[str, str], Path], tmp_path: Path) -> None:
    path = file("old", "old\n")
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert bucket("filebucket", "restore", "-l", str(link), ONE).code == 0
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one\n", 0o640)


def test_restore_of_what_is_not_there_leaves_the_file_and_nothing_else(bucket: Puppet, file: Callable[[str, str], Path]) -> None:
    path = file("somewhere/old", "old\n")
    said = bucket("filebucket", "restore", "-l", str(path), NOWHERE)
    assert (said.code, said.err.splitlines()[0]) == (1, "Error: File not found")
    assert path.read_text() == "old\n"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("left", "right"), [(ONE, TWO), ("one", TWO), (ONE, "two"), ("one", "two")])
def test_diff_compares_files_and_checksums(left: str, right: str, bucket: Puppet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bucket.root)
    said = bucket("filebucket", "diff", "-l", left, right)
    names = [f"{{sha256}}{each}" if len(each) == 64 else each for each in (left, right)]
    assert (said.code, said.out) == (0, f"--- {names[0]}\n+++ {names[1]}\n@@ -1 +1 @@\n-one\n+two\n")


def test_list_shows_checksum_time_and_path(bucket: Puppet) -> None:
    lines = [line.split(" ", 3) for line in bucket("filebucket", "list", "-l").out.splitlines()]
    assert [(value, path) for value, _, _, path in lines] == [(ONE, f"{bucket.root}/one"), (TWO, f"{bucket.root}/two")]
    assert all(moment(f"{day} {time}", "x") for _, day, time, _ in lines)


def test_list_as_json(bucket: Puppet) -> None:
    found = json.loads(bucket("filebucket", "list", "-l", "--json").out)
    assert [each["checksum"] for each in found] == [ONE, TWO]


@pytest.mark.parametrize(
    ("span", "count"),
    [
        (["--fromdate", "2020-01-01"], 2),
        (["-f", "2020-01-01", "-t", "2999-12-31 23:59:59"], 2),
        (["--todate", "2020-01-01 10:00"], 0),
        (["--fromdate=2999-01-01"], 0),
    ],
)
def test_list_can_be_bounded_by_dates(span: list[str], count: int, bucket: Puppet) -> None:
    assert len(bucket("filebucket", "list", "-l", *span).out.splitlines()) == count


@pytest.mark.slow
def test_the_bucket_in_the_masters_database_is_listed_and_read_on_a_master(
    puppet: Puppet, file: Callable[[str, str], Path], state_url: str
) -> None:
    (puppet.conf / "puppet.conf").write_text(f"[master]\nstate = {state_url}\n")
    one, two = file("one", "one\n"), file("two", "two\n")
    assert puppet("filebucket", "backup", "--database", str(two), str(one)).code == 0
    lines = [line.split(" ", 3) for line in puppet("filebucket", "list", "--database").out.splitlines()]
    assert [(value, path) for value, _, _, path in lines] == [(ONE, str(one)), (TWO, str(two))]
    assert puppet("filebucket", "list", "--database", "--todate", "2020-01-01").out == ""
    assert puppet("filebucket", "get", "--database", ONE).out == "one\n"


def test_another_folder_is_a_bucket_too(bucket: Puppet) -> None:
    folder = bucket.root / "vardir/clientbucket"
    assert bucket("filebucket", "get", "-b", str(folder), ONE).out == "one\n"
    assert bucket("filebucket", "get", "--bucket", str(bucket.root / "none"), ONE).code == 1


def test_the_digest_algorithm_is_that_of_the_settings(puppet: Puppet, file: Callable[[str, str], Path]) -> None:
    one = file("one", "one\n")
    value = md5(b"one\n", usedforsecurity=False).hexdigest()
    assert puppet("filebucket", "backup", "-l", "--digest_algorithm", "md5", str(one)).out == f"{one}: {value}\n"
    assert puppet("filebucket", "get", "-l", "--digest_algorithm", "md5", value).out == "one\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["backup", "-l"], "You must specify a file to back up"),
        (["get", "-l", "xx"], 'Invalid checksum "xx"'),
        (["get", "-l", "../../etc/passwd"], 'Invalid checksum "../../etc/passwd"'),
        (["get", "-l"], "puppet filebucket get CHECKSUM takes 1 argument(s), but you gave 0"),
        (["get", "-l", NOWHERE], "File not found"),
        (["restore", "-l", "x"], "puppet filebucket restore FILE CHECKSUM takes 2 argument(s), but you gave 1"),
        (["diff", "-l", "x"], "Need exactly two arguments: filebucket diff <file_a> <file_b>"),
        (["diff", "-l", "nofile", ONE], 'Invalid checksum "nofile"'),
        (["list"], "Listing remote file buckets is not allowed"),
        (["list", "-r"], "Listing remote file buckets is not allowed"),
        (["list", "-l", "-b", "/no/such"], "File not found"),
        (["list", "-l", "--fromdate", "yesterday"], "Error while parsing 'fromdate'"),
        (["list", "-l", "--todate", "2020-13-01"], "Error while parsing 'todate'"),
        (["list", "--frob"], "Could not parse application options: invalid option: --frob"),
        (["list", "--bucket"], "Could not parse application options: missing argument: --bucket"),
        (["frob"], "'filebucket' has no 'frob' action"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(words: list[str], message: str, puppet: Puppet) -> None:
    said = puppet("filebucket", *words)
    assert (said.code, said.out, said.err.splitlines()[0]) == (1, "", f"Error: {message}")


def test_without_certificates_the_server_is_not_asked(puppet: Puppet) -> None:
    said = puppet("filebucket", "get", ONE)
    assert said.code == 1
    assert said.err.startswith(f"Error: The CA certificates are missing from '{puppet.conf}/ssl/certs/ca.pem'\n")


class ServerBucket(Terminus[FileBucketFile]):
    """A bucket as a server has it; remembers what was asked."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []

    async def head(self, request: Request[FileBucketFile]) -> bool:
        self.asked.append(("head", request.key))
        return "/".join(request.key.split("/")[:2]) in self.contents

    async def find(self, request: Request[FileBucketFile]) -> FileBucketFile | None:
        self.asked.append(("find", request.key))
        content = self.contents.get(request.key)

        async def chunks() -> AsyncIterator[bytes]:
            yield content or b""

        return None if content is None else FileBucketFile(name=request.key, chunks=chunks)

    async def save(self, request: Request[FileBucketFile]) -> object:
        self.asked.append(("save", request.key))
        self.contents["/".join(request.key.split("/")[:2])] = b"".join([chunk async for chunk in request.instance.chunks()])
        return None


async def test_a_remote_bucket_is_asked_before_a_file_is_sent(
    file: Callable[[str, str], Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    server, one = ServerBucket(), file("one", "one\n")
    commands = BucketCommands(RemoteDipper(Binding(FILE_BUCKET_FILE, server)), "sha256")
    for _ in range(2):
        await commands.backup([str(one)])
    key = f"sha256/{ONE}/{one}"
    assert server.asked == [("head", key), ("save", key), ("head", key)]
    await commands.get(ONE)
    assert capfdbinary.readouterr().out.endswith(b"\none\n")
    with pytest.raises(NotFound):
        await commands.get(NOWHERE)
    with pytest.raises(BadRequest):
        await commands.get("x")
