"""What two catalogs differ in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from environments.comparison.catalogs import CatalogComparison, NodeWords, SecretTexts
from environments.comparison.textdiffs import MAX_LINES, diff_of
from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from environments.module_sources import ModuleSources

pytestmark = pytest.mark.works_with("Preview", "what differs")

ROOTS = ("/srv/from", "/srv/to")


def resource(ref: str, sensitive: tuple[str, ...] = (), **parameters: Any) -> dict[str, Any]:
    kind, _, title = ref.partition("[")
    data: dict[str, Any] = {"type": kind, "title": title[:-1], "tags": ["x"], "exported": False, "parameters": parameters}
    return data | ({"sensitive_parameters": list(sensitive)} if sensitive else {})


def catalog(*resources: Mapping[str, Any], classes: tuple[str, ...] = (), edges: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    pairs = [{"source": source, "target": target} for source, target in edges]
    return {"resources": list(resources), "classes": list(classes), "edges": pairs}


def sources(root: Path) -> ModuleSources:
    return ModuleSources(DirectoryEnvironment(Environment("production", str(root), (f"{root}/modules",), None), DiskFiles()))


def changes(before: Mapping[str, Any], after: Mapping[str, Any], roots: tuple[str, str] = ROOTS) -> list[dict[str, Any]]:
    """The changes between two catalogs of web1, each without the fields that say nothing."""
    comparison = CatalogComparison(roots, (sources(Path(roots[0])), sources(Path(roots[1]))))
    found = comparison.differences(before, after, NodeWords.of("web1.test", {"hostname": "web1"}))
    return [{name: value for name, value in change.items() if value and name != "places"} for _, _, change in found.values()]


A, B = "Notify[a]", "Notify[b]"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    "nothing": (catalog(resource(A, message="m")), catalog(resource(A, message="m")), []),
    "a value": (
        catalog(resource(A, message="old", x=1)),
        catalog(resource(A, message="new", x=1)),
        [{"kind": "parameter", "action": "changed", "subject": A, "parameter": "message", "old": "old", "new": "new"}],
    ),
    "the type of a value": (
        catalog(resource(A, x=1)),
        catalog(resource(A, x=True)),
        [{"kind": "parameter", "action": "changed", "subject": A, "parameter": "x", "old": 1, "new": True}],
    ),
    "the order of a hash": (
        catalog(resource(A, x={"b": 1, "a": [1, {"d": 1, "c": 2}]}, y=1)),
        catalog(resource(A, y=1, x={"a": [1, {"c": 2, "d": 1}], "b": 1})),
        [],
    ),
    "the order of a hash whose keys are numbers": (
        catalog(resource(A, x={"__ptype": "Hash", "__pvalue": [1, "a", 2, {"b": 1, "c": 2}]})),
        catalog(resource(A, x={"__ptype": "Hash", "__pvalue": [2, {"c": 2, "b": 1}, 1, "a"]})),
        [],
    ),
    "the order of an array": (
        catalog(resource(A, x=[1, 2])),
        catalog(resource(A, x=[2, 1])),
        [{"kind": "parameter", "action": "changed", "subject": A, "parameter": "x", "old": [1, 2], "new": [2, 1]}],
    ),
    "a parameter more": (
        catalog(resource(A)),
        catalog(resource(A, x="1")),
        [{"kind": "parameter", "action": "added", "subject": A, "parameter": "x", "new": "1"}],
    ),
    "a resource more": (
        catalog(resource(A)),
        catalog(resource(A), resource(B, x="1")),
        [{"kind": "resource", "action": "added", "subject": B, "parameters": {"x": "1"}}],
    ),
    "a class less": (catalog(classes=("a", "b")), catalog(classes=("b",)), [{"kind": "class", "action": "removed", "subject": "a"}]),
    "a resource elsewhere": (
        catalog(resource(A), resource("Class[A]"), resource("Class[B]"), edges=(("Class[A]", A),)),
        catalog(resource(A), resource("Class[A]"), resource("Class[B]"), edges=(("Class[B]", A),)),
        [
            {"kind": "containment", "action": "removed", "subject": A, "container": "Class[A]"},
            {"kind": "containment", "action": "added", "subject": A, "container": "Class[B]"},
        ],
    ),
    "the same order said by the other": (
        catalog(resource(A, before=B), resource(B)),
        catalog(resource(A), resource(B, require=[A])),
        [],
    ),
    "an order more": (
        catalog(resource(A), resource(B)),
        catalog(resource(A), resource(B, subscribe=A)),
        [{"kind": "order", "action": "added", "subject": B, "container": A, "parameter": "notify"}],
    ),
    "the folder of the code": (catalog(resource(A, x="/srv/from/f")), catalog(resource(A, x="/srv/to/f")), []),
    "the folder of the code in a title": (catalog(resource("File[/srv/from/f]")), catalog(resource("File[/srv/to/f]")), []),
    "a secret": (
        catalog(resource(A, ("x",), x="hush")),
        catalog(resource(A, ("x",), x="quiet")),
        [{"kind": "parameter", "action": "changed", "subject": A, "parameter": "x", "secret": True}],
    ),
    "a secret on one side": (
        catalog(resource(A, x="hush")),
        catalog(resource(A, ("x",), x="quiet")),
        [
            {"kind": "parameter", "action": "changed", "subject": A, "parameter": "x", "secret": True},
            {"kind": "parameter", "action": "changed", "subject": A, "parameter": "(sensitive parameters)", "old": [], "new": ["x"]},
        ],
    ),
    "a secret inside": (
        catalog(resource(A, x=[{"__ptype": "Sensitive", "__pvalue": "hush"}])),
        catalog(resource(A, x=[{"__ptype": "Sensitive", "__pvalue": "quiet"}])),
        [{"kind": "parameter", "action": "changed", "subject": A, "parameter": "x", "secret": True}],
    ),
    "a resource with a secret": (
        catalog(),
        catalog(resource(A, ("x",), x="hush")),
        [{"kind": "resource", "action": "added", "subject": A, "parameters": {"x": "[sensitive]"}}],
    ),
    "a text": (
        catalog(resource(A, content="one\ntwo\n")),
        catalog(resource(A, content="one\n2\n")),
        [
            {
                "kind": "parameter",
                "action": "changed",
                "subject": A,
                "parameter": "content",
                "diff": ("@@ -1,2 +1,2 @@", " one", "-two", "+2"),
                "lines": 2,
            }
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_catalogs_differ_in(name: str) -> None:
    before, after, expected = CASES[name]
    found = changes(before, after)
    assert found == [{key: value for key, value in each.items() if value} for each in expected]
    assert "hush" not in str(found)
    assert "quiet" not in str(found)


def keys(node: str, content: str) -> set[str]:
    comparison = CatalogComparison(ROOTS, (sources(Path("/srv/from")), sources(Path("/srv/to"))))
    before, after = catalog(resource(A, content=f"{node}\nold\n")), catalog(resource(A, content=content))
    return {key for key, _, _ in comparison.differences(before, after, NodeWords.of(node, {})).values()}


def test_a_change_of_the_same_lines_is_the_same_on_nodes_whose_text_names_them() -> None:
    assert keys("web1", "web1\nnew\n") == keys("web2", "web2\nnew\n")
    assert keys("web1", "web1\nnew for web1\n") == keys("web2", "web2\nnew for web2\n")
    assert keys("web1", "web1\nnew\n") != keys("web2", "web2\nother\n")


def test_a_file_whose_source_changed_is_shown_with_its_lines_or_its_sums(tmp_path: Path) -> None:
    files = {"text": (b"a\n", b"b\n"), "binary": (b"\xff\0", b"\xfe\0"), "same": (b"s", b"s"), "tree/x": (b"1\n", b"2\n")}
    roots = str(tmp_path / "from"), str(tmp_path / "to")
    for name, contents in files.items():
        for root, content in zip(roots, contents, strict=True):
            path = Path(root, "modules/m/files", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    resources = [resource(f"File[/{name}]", source=f"puppet:///modules/m/{name}") for name in ("text", "binary", "same", "tree")]
    found = {change["subject"]: change for change in changes(catalog(*resources), catalog(*resources), roots)}
    assert set(found) == {"File[/text]", "File[/binary]", "File[/tree]"}
    assert list(found["File[/text]"]["diff"])[1:] == ["-a", "+b"]
    assert found["File[/binary]"]["old"].startswith("{sha256}")
    assert [line[:3] for line in found["File[/tree]"]["diff"] if line[0] in "+-"] == ["-x ", "+x "]


def test_a_long_diff_is_cut_and_says_so() -> None:
    diff = diff_of("".join(f"{number}\n" for number in range(10_000)), "".join(f"{-number}\n" for number in range(10_000)))
    assert (len(diff.lines), diff.truncated) == (MAX_LINES, True)
    assert diff.count == 2 * 9_999


def test_a_source_leads_out_of_no_module(tmp_path: Path) -> None:
    (tmp_path / "modules/m/files").mkdir(parents=True)
    (tmp_path / "secret").write_text("hush")
    assert sources(tmp_path).path("m/../../../secret") is None
    assert sources(tmp_path).digest("missing/x") is None


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        ("hush", "hushed pin", "[sensitive]ed pin"),
        ("pin", "pin=pin2, pin of pinion", "[sensitive]=pin2, [sensitive] of pinion"),
        (["7", {"a": "x"}], "7 is no 77, x no xx", "[sensitive] is no 77, [sensitive] no xx"),
        (7, [7, 77, "7"], ["[sensitive]", 77, "[sensitive]"]),
        ("if\nlonger\n", "if no longer", "if no [sensitive]"),
        ("", "a text", "a text"),
        ("$", "$ 1", "[sensitive] 1"),
    ],
)
def test_secrets_are_hidden_short_ones_as_whole_words(secret: Any, text: Any, shown: Any) -> None:
    secrets = SecretTexts()
    secrets.add(secret)
    assert secrets.hide(text) == shown
