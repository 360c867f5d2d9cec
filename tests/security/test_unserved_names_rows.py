"""The row of file names that no request can carry: the rest of the tree is served, and each is named once."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest

from agent.plugins.pluginsync import PluginLimits, plan_sync
from master.wiring import running
from shared.file_serving.metadata import MetadataOptions
from shared.file_serving.searching import search
from shared.file_serving.trees import FileTree
from shared.models.file_metadata import FileMetadata
from shared.types.file import File
from tests.support.fake_commands import MemorySources, apply, metadata_of
from tests.support.needs import needs_puppet
from tests.support.pair import Pair
from tests.support.processes import RealAgent

NAMES = [b"bad\xff.txt", b"new\nline.txt", b"tab\t", b"\x7f", b"dir\xfe/inside"]


def plant(folder: Path, *, link: bool = True) -> None:
    for name in NAMES:
        path = os.path.join(os.fsencode(folder), name)  # noqa: PTH118  # bytes
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as file:
            file.write(b"x")
    if link:
        os.symlink(b"to\xff", os.fsencode(folder) + b"/link")  # noqa: PTH211  # bytes


def test_FS_09_a_name_that_cannot_be_asked_for_is_left_out_of_a_listing(tmp_path: Path) -> None:
    plant(tmp_path)
    (tmp_path / "good é").write_text("x")
    listing = search(FileTree(tmp_path), "", MetadataOptions(recurse=True))
    assert listing is not None
    assert [entry.relative_path for entry in listing.entries] == [".", "good é"]
    assert sorted(name for _, name in listing.unserved) == ["bad\udcff.txt", "dir\udcfe", "link", "new\nline.txt", "tab\t", "\x7f"]


def entry(name: str) -> FileMetadata:
    return metadata_of("/m", b"x").model_copy(update={"relative_path": name})


def test_FS_09_an_agent_syncs_the_other_plugins_of_a_server_that_lists_such_a_name() -> None:
    root = FileMetadata(name="/m", path="/m", relative_path=".", type="directory", unserved=("'bad\\u{dcff}.txt'",))
    planned = plan_sync([root, entry("a"), entry("new\nline")], {}, (), PluginLimits())
    assert [file.relative_path for file in planned.files] == ["a"]
    assert len(planned.refused) == 2
    assert "bad\\u{dcff}.txt" in planned.refused[0] and "new\\u{a}line" in planned.refused[1]


async def test_FS_09_a_directory_with_such_names_is_purged_and_the_rest_of_it_managed(tmp_path: Path) -> None:
    plant(tmp_path / "d")
    (tmp_path / "d" / "stranger").write_text("x")
    source = MemorySources(trees={"puppet:///m": [FileMetadata(name="/m", path="/m", relative_path=".", type="directory"), entry("a")]})
    source.files = {"puppet:///m/a": b"x"}
    given = {"ensure": "directory", "source": "puppet:///m", "recurse": True, "purge": True, "force": True, "backup": False}
    done = await apply(File(str(tmp_path / "d"), given), sources=source)
    assert os.listdir(os.fsencode(tmp_path / "d")) == [b"a"], done.messages  # noqa: PTH208  # bytes


MANIFEST = """
node default {{
  file {{ '{stage}': ensure => directory, source => 'puppet:///modules/stage/tree', recurse => true }}
  notify {{ "fact ${{::from_outside}}": }}
}}
"""


@pytest.mark.slow
async def test_FS_09_our_agent_brings_the_rest_and_both_sides_name_the_file_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    pair = Pair(tmp_path, MANIFEST.format(stage=tmp_path / "stage"))
    module = tmp_path / "master/code/environments/production/modules/stage"
    plant(module / "lib" / "facter", link=False)  # plugins are followed, and none of theirs may lead nowhere
    plant(module / "files" / "tree")
    async with pair.mastered():
        first = await pair.run()
        at_master = [record.getMessage() for record in caplog.records if record.name == "puppet.fileserver"]
        assert first.code == 2, caplog.text
        assert pair.contents() == {"one": "1\n", "sub/two": "2\n"}
        bad = [message for message in at_master if "bad" in message]
        assert len(bad) == 2, "one of the plugins, one of the files:\n" + caplog.text
        told = [record.getMessage() for record in caplog.records if record.name == "puppet.pluginsync" and "bad" in record.getMessage()]
        assert len(told) == 1 and "Refusing a part of puppet:///plugins" in told[0]
        caplog.clear()
        assert (await pair.run()).code == 2  # the notify
        assert not [record for record in caplog.records if record.name == "puppet.fileserver"]


@pytest.mark.slow
@pytest.mark.interop
@needs_puppet
async def test_FS_09_a_real_agent_brings_the_rest(tmp_path: Path) -> None:
    pair = Pair(tmp_path, MANIFEST.format(stage=tmp_path / "stage"))
    module = tmp_path / "master/code/environments/production/modules/stage"
    plant(module / "lib" / "facter", link=False)  # plugins are followed, and none of theirs may lead nowhere
    plant(module / "files" / "tree")
    async with running(pair.master_settings()) as master:
        agent = RealAgent(tmp_path / "real", master.port, "real.test")
        agent.root.mkdir()
        done = await asyncio.to_thread(agent.test)
    assert done.code == 2, done.output
    assert pair.contents() == {"one": "1\n", "sub/two": "2\n"}
    assert (agent.root / "vardir/lib/facter/only_ruby.rb").exists()
