"""pip and npm themselves, in folders of the test's own and without a network; nothing of this machine is changed."""

from __future__ import annotations

import json
import shutil
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.providers.package.npm import Npm
from agent.providers.package.pip import Pip, Pip3, Projects
from shared.types.package import Package

pytestmark = pytest.mark.slow


def wheel(folder: Path, version: str) -> None:
    """A project that holds nothing but its name and version."""
    info = f"bunraku_nothing-{version}.dist-info"
    with zipfile.ZipFile(folder / f"bunraku_nothing-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: bunraku-nothing\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The pip of an environment of its own, and a folder of projects."""
    folder = tmp_path_factory.mktemp("pip")
    venv.create(folder / "venv", with_pip=True)
    (folder / "projects").mkdir()
    for version in ("1.0", "1.5", "2.0rc1", "2.0"):
        wheel(folder / "projects", version)
    yield str(folder / "venv/bin/pip"), folder / "projects"


@pytest.mark.parametrize("cls", [Pip, pytest.param(Pip3, marks=pytest.mark.full)])
async def test_pip_installs_a_range_then_the_latest_then_nothing(
    cls: type[Projects], pip: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    command, projects = pip
    provider = cls()
    options = ["--no-index", {"--find-links": str(projects)}, "--root-user-action=ignore"]

    def wanted(ensure: str) -> Package:
        return Package("Bunraku_Nothing", {"ensure": ensure, "provider": provider.name, "command": command, "install_options": options})

    before = await provider.retrieve(wanted(">=1.0 <2"))
    assert before is not None and before["ensure"] == "absent"
    await provider.set(wanted(">=1.0 <2"), "ensure", ">=1.0 <2", before)
    now = await provider.retrieve(wanted(">=1.0 <2"))
    assert now is not None and (now["ensure"], now["satisfied"]) == ("1.5", True)
    latest = await provider.retrieve(wanted("latest"))
    assert latest is not None and latest["latest"] == "2.0"
    await provider.set(wanted("latest"), "ensure", "latest", latest)
    assert (await provider.retrieve(wanted("latest")) or {})["ensure"] == "2.0"
    await provider.destroy(wanted("absent"), {})
    assert (await provider.retrieve(wanted("absent")) or {})["ensure"] == "absent"


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
async def test_npm_installs_and_removes_a_global_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "nothing"
    source.mkdir()
    (source / "package.json").write_text(json.dumps({"name": "bunraku-nothing", "version": "1.2.3"}))
    for name, value in (("PREFIX", tmp_path / "prefix"), ("CACHE", tmp_path / "cache"), ("OFFLINE", "true"), ("UPDATE_NOTIFIER", "false")):
        monkeypatch.setenv(f"NPM_CONFIG_{name}", str(value))
    provider = Npm()
    resource = Package("bunraku-nothing", {"provider": "npm", "source": str(source)})
    assert (await provider.retrieve(resource) or {})["ensure"] == "absent"
    await provider.create(resource, {})
    assert (await provider.retrieve(resource) or {})["ensure"] == "1.2.3"
    assert list(await provider.instances()) == ["bunraku-nothing"]
    await provider.destroy(resource, {})
    assert await provider.instances() == {}
