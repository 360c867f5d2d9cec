"""Static catalogs: what is inlined and what is left to the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from master.catalogs.static import inline_metadata, negotiate_checksum
from shared.errors import BadRequest, CompileError, Denied
from shared.indirector import Option
from shared.models.file_metadata import FileMetadata

ROOT = "/code/environments/production"


def entry(path: str, kind: str = "file", relative: str | None = None) -> FileMetadata:
    return FileMetadata.from_data(
        {
            "path": path,
            "relative_path": relative,
            "type": kind,
            "links": "manage",
            "owner": 0,
            "group": 0,
            "mode": 420,
            "checksum": {"type": "md5", "value": "{md5}d41d8cd98f00b204e9800998ecf8427e"},
        }
    )


class Shelf:
    """A file server of three files and a tree; `asked` are the keys and options of all questions."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Option]]] = []

    def find(self, key: str, options: Mapping[str, Option]) -> FileMetadata | None:
        self.asked.append((key, options))
        if key.startswith("closed/"):
            raise Denied("no")
        if key == "modules/m/device":
            raise BadRequest("Cannot manage files of type device")
        paths = {
            "modules/m/f": f"{ROOT}/modules/m/files/f",
            "modules/m/a b%20c": f"{ROOT}/modules/m/files/a b%20c",
            "modules/shared/f": "/code/modules/shared/files/f",
            "modules/near/f": f"{ROOT}2/modules/near/files/f",
            "mount/f": f"{ROOT}/modules/m/files/f",
            "modules/p/f": f"{ROOT}/site/p/files/f",
        }
        return entry(paths[key]) if key in paths else None

    def search(self, key: str, options: Mapping[str, Option]) -> list[FileMetadata] | None:
        self.asked.append((key, options))
        roots = {
            "modules/m/tree": f"{ROOT}/modules/m/files/tree",
            "modules/m/other": f"{ROOT}/modules/m/files/other",
            "modules/m": f"{ROOT}/modules/m/files",
            "modules/shared/tree": "/code/modules/shared/files/tree",
        }
        if key not in roots:
            return None
        return [entry(roots[key], "directory", "."), entry(roots[key], "file", "sub/x")]


def made(**parameters: Any) -> tuple[dict[str, Any], dict[str, Any], Shelf]:
    shelf = Shelf()
    resource = {"type": "File", "title": "/t", "file": "/site.pp", "line": 3, "parameters": parameters}
    single, trees = inline_metadata([resource], shelf, root=ROOT, checksum="sha256")
    return single, trees, shelf


def test_a_modules_file_is_inlined_with_its_source_and_where_its_bytes_are() -> None:
    single, trees, _ = made(source="puppet:///modules/m/f")
    assert trees == {}
    assert single == {
        "/t": {
            "path": f"{ROOT}/modules/m/files/f",
            "relative_path": None,
            "links": "manage",
            "owner": 0,
            "group": 0,
            "mode": 420,
            "checksum": {"type": "md5", "value": "{md5}d41d8cd98f00b204e9800998ecf8427e"},
            "type": "file",
            "destination": None,
            "source": "puppet:///modules/m/f",
            "content_uri": "puppet:///modules/m/files/f",
        }
    }


@pytest.mark.parametrize(
    ("source", "uri"),
    [
        ("puppet:///modules/m/a b%20c", "puppet:///modules/m/files/a b%20c"),
        ("puppet:///modules/p/f", "puppet:///site/p/files/f"),
        ("puppet:/modules/m/f", "puppet:///modules/m/files/f"),
        (["puppet:///modules/m/nope", "puppet:///modules/m/f"], "puppet:///modules/m/files/f"),
    ],
)
def test_the_content_uri_is_the_path_below_the_environment(source: object, uri: str) -> None:
    assert made(source=source)[0]["/t"]["content_uri"] == uri


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"content": "x"},
        {"source": "puppet:///modules/m/f", "ensure": "absent"},
        {"source": "/local/file"},
        {"source": "file:///local/file"},
        {"source": "https://host/file"},
        {"source": "puppet://other.host/modules/m/f"},
        {"source": ["puppet:///modules/m/f", "/local"]},
        {"source": {"__ptype": "Deferred", "name": "f", "arguments": []}},
    ],
)
def test_other_resources_are_not_looked_at(parameters: dict[str, Any]) -> None:
    single, trees, shelf = made(**parameters)
    assert (single, trees, shelf.asked) == ({}, {}, [])


@pytest.mark.parametrize(
    "source",
    ["puppet:///modules/shared/f", "puppet:///mount/f", "puppet:///modules/near/f", "puppet:///closed/f", "puppet:///modules/m/device"],
)
def test_what_has_no_version_or_cannot_be_told_is_left_to_the_run(source: str) -> None:
    single, trees, _ = made(source=source)
    assert (single, trees) == ({}, {})


def test_a_file_that_no_source_has_is_an_error_at_its_place() -> None:
    with pytest.raises(CompileError, match=r"Could not get metadata for puppet:///modules/m/nope \(file: /site\.pp, line: 3\)"):
        made(source="puppet:///modules/m/nope")


@pytest.mark.parametrize("recurse", [True, "true", "remote"])
def test_a_tree_is_inlined_by_source_with_a_uri_for_every_entry(recurse: object) -> None:
    single, trees, _ = made(source="puppet:///modules/m/tree/", recurse=recurse)
    assert single == {}
    found = trees["/t"]["puppet:///modules/m/tree"]
    assert [(each["relative_path"], each["content_uri"]) for each in found] == [
        (".", "puppet:///modules/m/files/tree"),
        ("sub/x", "puppet:///modules/m/files/tree/sub/x"),
    ]
    assert "source" not in found[0]


@pytest.mark.parametrize(
    ("sources", "select", "found"),
    [
        (["nope", "tree", "other"], None, ["tree"]),
        (["tree", "other"], "first", ["tree"]),
        (["tree", "nope", "other"], "all", ["tree", "other"]),
    ],
)
def test_the_first_tree_is_taken_or_all_of_them(sources: list[str], select: str | None, found: list[str]) -> None:
    parameters = {"sourceselect": select} if select else {}
    _, trees, _ = made(source=[f"puppet:///modules/m/{each}" for each in sources], recurse=True, **parameters)
    assert list(trees["/t"]) == [f"puppet:///modules/m/{each}" for each in found]


@pytest.mark.parametrize(
    "source",
    [["puppet:///modules/m/tree", "puppet:///modules/shared/tree"], "puppet:///modules/m", "puppet:///modules/m/nope"],
)
def test_one_tree_without_a_version_leaves_the_resource_to_the_run(source: object) -> None:
    single, trees, _ = made(source=source, recurse=True, sourceselect="all")
    assert (single, trees) == ({}, {})


def test_the_file_server_is_asked_as_the_agent_would_ask() -> None:
    plain = {"links": "manage", "checksum_type": "sha256", "source_permissions": "ignore"}
    assert made(source="puppet:///modules/m/f")[2].asked == [("modules/m/f", plain)]
    own = {"links": "follow", "checksum": "md5", "source_permissions": "use"}
    asked = {"links": "follow", "checksum_type": "md5", "source_permissions": "use"}
    assert made(source="puppet:///modules/m/f", **own)[2].asked == [("modules/m/f", asked)]
    _, _, shelf = made(source="puppet:///modules/m/tree", recurse=True, recurselimit=2, max_files=-1, ignore=".svn")
    tree = {"recurse": "true", "recurselimit": "2", "max_files": "-1", "ignore": [".svn"]}
    assert shelf.asked == [("modules/m/tree", plain | tree)]


@pytest.mark.parametrize(("offered", "chosen"), [("sha256.md5", "sha256"), ("md4.blake2.md5", "md5"), ("sha512", "sha512")])
def test_the_first_common_checksum_type_is_taken(offered: str, chosen: str) -> None:
    assert negotiate_checksum(offered) == chosen


@pytest.mark.parametrize("offered", ["", "md4", "sha-256", "../x"])
def test_without_a_common_checksum_type_there_is_no_catalog(offered: str) -> None:
    with pytest.raises(CompileError, match="common checksum type"):
        negotiate_checksum(offered)
