"""Catalogs from memory never show a file as it was before, however it was written, and however soon after the last time."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from environments.directories import EnvironmentSettings
from language.codegen.codecache import CodeCache
from master.pools.compile_worker import CompileWorker
from tests.environments.ruby.site import PROGRAM
from tests.support.compile_jobs import catalog_job
from tests.support.examples import examples
from tests.support.needs import needs_ruby

SHOWN = ("$m::port", "lookup('port')", "template('m/a.erb')", "epp('m/a.epp')", "file('m/a')")
FILES = {
    "modules/m/manifests/init.pp": "class m { $port = %d }",
    "data/common.yaml": "port: %d",
    "modules/m/templates/a.erb": "<%%= %d %%>",
    "modules/m/templates/a.epp": "<%%= %d %%>",
    "modules/m/files/a": "%d",
}
RUBY_FILES = {
    "modules/m/lib/puppet/functions/m/port.rb": (
        "require 'helper'\nPuppet::Functions.create_function(:'m::port') do\n  def port\n    %d * 10_000 + HELPER\n  end\nend\n"
    ),
    "modules/m/lib/helper.rb": "HELPER = %d\n",
}


class EditedSite:
    """An environment whose files each hold one number of four digits, which its catalogs show."""

    def __init__(self, folder: Path, shown: tuple[str, ...], files: dict[str, str], ruby: str = "") -> None:
        self.root = folder / "environments/production"
        self.files = files
        self.numbers = dict.fromkeys(files, 1000)
        self.count = 0
        values = "-".join(f"${{{value}}}" for value in shown)
        first = {"manifests/site.pp": f'include m\nnotify {{ "{values}": }}', "modules/m/manifests/init.pp": "class m { }"}
        for name, text in (first | {"hiera.yaml": "version: 5\n"} | {name: text % 1000 for name, text in files.items()}).items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.worker = CompileWorker(EnvironmentSettings((str(folder / "environments"),), ruby=ruby), CodeCache(), memo=2**20)

    def edit(self, name: str, write: Callable[[Path, bytes], object]) -> None:
        self.count += 1
        self.numbers[name] = 1000 + self.count % 9000
        write(self.root / name, (self.files[name] % self.numbers[name]).encode())

    def title(self) -> str:
        """Return the numbers that a catalog shows."""
        resources = json.loads(self.worker.answer(catalog_job("n.test", {}), lambda entry: None).body)["resources"]
        return next(resource["title"] for resource in resources if resource["type"] == "Notify")


def _restore_time(write: Callable[[Path, bytes], object]) -> Callable[[Path, bytes], None]:
    """Return what writes a file in that way, and gives it the time of modification that it had."""

    def write_with_old_time(path: Path, data: bytes) -> None:
        status = path.stat()
        write(path, data)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return write_with_old_time


def _write_in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)


def _remove_and_write(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def _write_and_rename(path: Path, data: bytes) -> None:
    status, other = path.stat(), path.with_name(".other")
    other.write_bytes(data)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)


def _link(path: Path, data: bytes) -> None:
    """Let a path become a link to the other one of two files beside it."""
    names = [f".{path.name}.{number}" for number in (1, 2)]
    target = path.with_name(names[path.is_symlink() and path.readlink().name == names[0]])
    target.write_bytes(data)
    os.utime(target, ns=(0, 0))
    path.unlink()
    path.symlink_to(target.name)


WAYS = (
    _write_in_place,
    _restore_time(_write_in_place),
    _restore_time(lambda path, data: path.write_bytes(data)),
    _restore_time(_remove_and_write),
    _write_and_rename,
    _link,
)


@pytest.mark.slow
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_no_edit_leaves_an_old_catalog(tmp_path: Path, way: int) -> None:
    site, choice = EditedSite(tmp_path, SHOWN, FILES), random.Random(way)
    for _ in range(examples(10_000) // len(WAYS)):
        for name in choice.sample(list(FILES), choice.choice((0, 1, 1, 1, 2))):
            site.edit(name, WAYS[way])
        assert site.title() == "-".join(str(number) for number in site.numbers.values())
    assert site.worker.memo.hits > 0


@needs_ruby
@pytest.mark.slow
def test_no_edit_leaves_old_ruby_code(tmp_path: Path) -> None:
    site, choice = EditedSite(tmp_path, ("m::port()",), RUBY_FILES, ruby=PROGRAM), random.Random(1)
    for _ in range(examples(100)):
        site.edit(choice.choice(list(RUBY_FILES)), choice.choice(WAYS))
        assert site.title() == "".join(str(number) for number in site.numbers.values())
