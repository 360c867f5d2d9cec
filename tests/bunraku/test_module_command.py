"""`puppet module` beside a small Forge. What Puppet says and does in the same cases: tests/interop/test_module_tool_beside_puppet.py."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunraku.puppet import main
from tests.support.forge import LocalForge, metadata_of, module_files, packed, serving


@pytest.fixture
def forge() -> Iterator[LocalForge]:
    with serving(LocalForge()) as forge:
        for version in ("1.0.0", "1.1.0", "2.0.0", "2.1.0-rc1"):
            forge.publish("made-base", version)
        forge.publish("made-web", "1.0.0", {"made-base": "1.x"})
        forge.publish("made-web", "2.0.0", {"made-base": ">= 2.0.0 < 3.0.0"})
        yield forge


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "environments" / "production" / "modules"
    folder.mkdir(parents=True)
    return folder


Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, forge: LocalForge, modules: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(os, "umask", lambda mask: mask)

    def run(*words: str) -> int:
        places = [f"--confdir={tmp_path}/conf", f"--vardir={tmp_path}/var", f"--codedir={tmp_path}/code"]
        return main(["module", *words, *places, f"--module_repository={forge.url}"])

    return run


def content(module: Path) -> str:
    return (module / "manifests" / "init.pp").read_text()


def test_a_module_comes_with_what_it_depends_on(run: Run, modules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("install", "made/web") == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [str(modules), "└─┬ made-web (v2.0.0)", "  └── made-base (v2.0.0)"]
    assert sorted(path.name for path in modules.iterdir()) == ["base", "web"]
    assert content(modules / "base") == "class base { } # 2.0.0\n"
    assert run("changes", str(modules / "web")) == 0
    assert "No modified files" in capsys.readouterr().out


def test_an_upgrade_replaces_the_module_and_nothing_is_left_beside_it(run: Run, modules: Path) -> None:
    assert run("install", "made-base", "--version", "1.0.0") == 0
    (modules / "base" / "notes").write_text("not packed, so no change")
    assert run("upgrade", "made-base", "--version", "1.x") == 0
    assert content(modules / "base") == "class base { } # 1.1.0\n"
    assert sorted(path.name for path in modules.iterdir()) == ["base"]
    assert not (modules / "base" / "notes").exists()


@pytest.mark.parametrize("sums", [{"file_sha256": "0" * 64}, {"file_md5": "0" * 32}, {}], ids=["sha256", "md5", "none"])
def test_nothing_is_installed_when_one_archive_is_not_the_one_that_the_forge_names(
    run: Run, forge: LocalForge, modules: Path, sums: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    forge.publish("made-false", "1.0.0", sums=sums)
    forge.publish("made-user", "1.0.0", {"made-false": "1.x"})
    assert run("install", "made-user") == 1
    assert list(modules.iterdir()) == []
    assert "checksum" in capsys.readouterr().err


def test_the_older_sum_counts_where_there_is_no_newer(run: Run, forge: LocalForge, modules: Path) -> None:
    archive = packed(module_files(metadata_of("made-old", "1.0.0")))
    sums = {"file_md5": hashlib.md5(archive, usedforsecurity=False).hexdigest()}
    forge.publish("made-old", "1.0.0", archive=archive, sums=sums)
    assert run("install", "made-old") == 0
    assert (modules / "old").is_dir()


def test_an_archive_that_holds_another_module_is_refused(
    run: Run, forge: LocalForge, modules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forge.publish("made-trap", "1.0.0", archive=packed(module_files(metadata_of("made-base", "1.0.0"))))
    assert run("install", "made-trap") == 1
    assert "holds made-base 1.0.0" in capsys.readouterr().err
    assert list(modules.iterdir()) == []


def test_a_module_with_a_face_that_is_called_as_a_command_is_refused(
    run: Run, forge: LocalForge, modules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forge.publish("made-faces", "1.0.0", files={"lib/puppet/face/cert.py": "", "lib/puppet/face/lamps.py": ""})
    forge.publish("made-ruby", "1.0.0", files={"lib/puppet/face/cert.rb": "", "lib/puppet/face/lamps.py": ""})
    assert run("install", "made-faces") == 1
    assert "made-faces has a face cert, but puppet cert is built in" in capsys.readouterr().err
    assert list(modules.iterdir()) == []
    assert run("install", "made-ruby") == 0


def test_an_archive_that_is_not_there_is_not_looked_for_at_the_forge(
    run: Run, forge: LocalForge, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("install", "./nosuch.tar.gz") == 1
    assert "The file ./nosuch.tar.gz does not exist" in capsys.readouterr().err
    assert forge.asked == []


@pytest.mark.parametrize("requirements", [[{"name": "openvox", "version_requirement": ">= 8.19.0 < 9.0.0"}], []], ids=["openvox", "none"])
def test_a_module_that_requires_another_puppet_is_installed_all_the_same(
    run: Run, forge: LocalForge, modules: Path, requirements: list[dict[str, str]]
) -> None:
    """Puppet's own `puppet module install` does not read `requirements` either: they are the Forge's and other tools' business."""
    forge.publish("made-new", "1.0.0", archive=packed(module_files(metadata_of("made-new", "1.0.0", requirements=requirements))))
    assert run("install", "made-new") == 0
    assert run("list", "--tree") == 0
    assert (modules / "new").is_dir()


def test_a_release_of_another_module_than_was_asked_for_is_never_taken(run: Run, forge: LocalForge, modules: Path) -> None:
    listed = {"metadata": metadata_of("evil-base", "9.0.0"), "file_uri": "/v3/files/x", "file_sha256": "0" * 64}
    forge.answers["/v3/releases"] = (200, json.dumps({"pagination": {"next": None}, "results": [listed]}).encode())
    assert run("install", "made-base") == 1
    assert list(modules.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"no JSON", "does not answer as a Forge does"),
        (b"{}", "does not answer as a Forge does"),
        (b'{"pagination": {"next": null}, "results": 7}', "does not answer as a Forge does"),
        (b'{"pagination": {"next": "http://elsewhere/"}, "results": [{}]}', "names an invalid next page"),
        (b'{"pagination": {"next": "/v3/releases"}, "results": [{}]}', "names an invalid next page"),
    ],
)
def test_an_answer_that_makes_no_sense_is_one_clear_error(
    run: Run, forge: LocalForge, answer: bytes, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forge.answers["/v3/releases"] = (200, answer)
    assert run("install", "made-base") == 1
    assert problem in capsys.readouterr().err


def test_an_answer_may_have_a_limited_size_and_number_of_releases(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("install", "made-base", "--module_answer=100") == 1
    assert "See module_answer" in capsys.readouterr().err
    assert run("install", "made-base", "--module_releases=2") == 1
    assert "See module_releases" in capsys.readouterr().err
    assert run("install", "made-base", "--module_archive_size=100") == 1
    assert "See module_archive_size" in capsys.readouterr().err


def test_the_authorization_is_shown_to_the_forge_and_to_nobody_that_it_redirects_to(run: Run, forge: LocalForge) -> None:
    with serving(LocalForge()) as elsewhere:
        elsewhere.publish("made-base", "2.0.0")
        forge.redirects["/v3/files"] = elsewhere.url
        assert run("install", "made-base", "--forge_authorization=Bearer secret") == 0
    assert set(forge.authorizations) == {"Bearer secret"}
    assert elsewhere.authorizations == [""]
    assert all(agent.startswith("PMT/") for agent in forge.agents)


def test_a_listing_for_scripts_says_what_comes_from_where(run: Run, modules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("install", "made-web", "--version", "1.0.0") == 0
    puppetfile = "mod 'made/web', '1.0.0'\nmod 'own',\n  :git => 'https://example.com/own.git', :tag => 'v1'\n"
    (modules.parent / "Puppetfile").write_text(puppetfile)
    (modules.parent / "environment.conf").write_text("modulepath = modules:$basemodulepath\n")
    capsys.readouterr()
    assert run("list", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    base, web = data["modulepath"][0]["modules"]
    assert (base["name"], base["puppetfile"], base["required_by"]) == ("made-base", None, ["made-web"])
    assert web["puppetfile"] == {"line": 1, "kind": "forge", "name": "made-web", "version": "1.0.0"}
    assert web["modulepath_from"] == "environment.conf"
    assert web["dependencies"] == [{"name": "made-base", "version_requirement": "1.x", "unmet": None}]
    assert data["missing"] == [{"name": "own", "line": 2, "kind": "git", "git": "https://example.com/own.git", "ref": "v1"}]
    assert run("list", "--origins") == 0
    listed = capsys.readouterr()
    assert listed.out.splitlines() == [
        f"{modules}  (environment.conf)",
        "├── made-base (v1.1.0)  (not in the Puppetfile)",
        "└── made-web (v1.0.0)  (Puppetfile line 1: Forge, 1.0.0)",
    ]
    assert "declares own in line 2, which is not installed" in listed.err


def test_a_search_lists_what_is_found(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("search", "base") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "NAME       VERSION    DESCRIPTION            KEYWORDS",
        "made-base  2.1.0-rc1  The module made-base.  made up",
    ]
    assert run("search", "base", "--json") == 0
    assert [found["name"] for found in json.loads(capsys.readouterr().out)] == ["made-base"]
    assert run("search", "nothing") == 0
    assert "No results found" in capsys.readouterr().out


def test_a_package_is_the_same_for_the_same_files_and_can_be_installed(
    run: Run, tmp_path: Path, modules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archives = []
    for name in ("one", "two"):
        source = tmp_path / name
        files = {
            **module_files(metadata_of("made-mine", "1.2.3")),
            "scripts/run": b"#!",
            ".git/config": b"",
            "spec/x.log": b"",
            "keep.log": b"",
        }
        files |= {".gitignore": b"*.log\n!keep.log\n/tmp/\n", "tmp/x": b"", "pkg/old.tar.gz": b""}
        for path, data in sorted(files.items(), reverse=name == "two"):
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(data)
        (source / "scripts" / "run").chmod(0o700)
        os.utime(source / "metadata.json", (1, 1) if name == "two" else None)
        assert run("build", str(source)) == 0
        archives.append(source / "pkg" / "made-mine-1.2.3.tar.gz")
        assert capsys.readouterr().out.splitlines()[-1] == f"Module built: {archives[-1]}"
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as tar:
        assert {entry.name.partition("/")[2]: oct(entry.mode) for entry in tar if entry.isfile()} == {
            "checksums.json": "0o644",
            "keep.log": "0o644",
            "manifests/init.pp": "0o644",
            "metadata.json": "0o644",
            "scripts/run": "0o755",
        }
    assert run("install", str(archives[0])) == 0
    assert run("changes", str(modules / "mine")) == 0
    assert "No modified files" in capsys.readouterr().out


def test_a_package_is_not_made_of_links(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "mine"
    for path, data in module_files(metadata_of("made-mine", "1.2.3")).items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(data)
    (source / "shadow").symlink_to("/etc/shadow")
    assert run("build", str(source)) == 1
    assert "neither a file nor a folder" in capsys.readouterr().err
    assert not (source / "pkg").exists()


def test_an_option_of_another_action_is_refused(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--force") == 1
    assert "invalid option: --force" in capsys.readouterr().err


def test_a_module_that_cannot_be_put_in_its_place_leaves_the_others_as_they_were(
    run: Run, modules: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("install", "made-web", "--version", "1.0.0") == 0
    assert run("uninstall", "made-base", "--force") == 0
    original = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if target == modules / "base":
            raise PermissionError(13, "not now")
        return original(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    assert run("upgrade", "made-web") == 1
    assert "nothing was changed" in capsys.readouterr().err
    assert content(modules / "web") == "class web { } # 1.0.0\n"
    assert sorted(path.name for path in modules.iterdir()) == ["web"]
