"""What every agent does with every master, whoever made them: said once, for the tests of each pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from shared.data import plainyaml
from tests.support.processes import OurAgent, RealAgent

Agent = OurAgent | RealAgent

TAGGED = """
file { $facts['stage_root']: ensure => directory, tag => 'wanted' }
file { "${facts['stage_root']}/a": content => 'a', tag => 'wanted' }
file { "${facts['stage_root']}/b": content => 'b', tag => 'other' }
"""


def stage_is_complete(stage: Path, facts: str = "ruby says hello\n") -> None:
    """The site's files are there, with their contents, and what depends on them was refreshed."""
    assert (stage / "plain").read_text() == "plain text\n"
    assert (stage / "plain").stat().st_mode & 0o777 == 0o640
    assert (stage / "tree" / "deep" / "b").read_text() == "b\n"
    assert (stage / "facts").read_text() == facts
    assert (stage / "refreshed").exists()


def tags_choose(agent: Agent, *, skips: bool = True) -> None:
    """Of a master that serves TAGGED; an agent of 3.8 knows no `skip_tags`."""
    stage = agent.root / "stage"
    assert agent.test("--tags", "wanted").code == 2
    assert [path.name for path in stage.iterdir()] == ["a"]
    if skips:
        assert agent.test("--skip_tags", "other").code == 0
    assert agent.test().code == 2
    assert sorted(path.name for path in stage.iterdir()) == ["a", "b"]


def a_file_goes_to_the_bucket_and_comes_back(agent: Agent) -> list[str]:
    """The sums of the two contents that the server's bucket has then."""
    path, sums = agent.root / "precious", []
    for text in ("one\ntwo\n", "one\nthree\n", "one\ntwo\n"):
        path.write_text(text)
        stored = agent.puppet("filebucket", "backup", str(path), "--remote")
        assert stored.code == 0, stored.text
        sums.append(stored.text.strip().split()[-1])
    assert sums[0] == sums[2] != sums[1]
    fetched = agent.puppet("filebucket", "get", sums[1], "--remote")
    assert fetched.text == "one\nthree\n"
    compared = agent.puppet("filebucket", "diff", sums[0], sums[1], "--remote")
    assert compared.code == 0 and "-two\n+three\n" in compared, compared.text
    with_disk = agent.puppet("filebucket", "diff", sums[1], str(path), "--remote")
    assert with_disk.code == 0 and "-three\n+two\n" in with_disk, with_disk.text
    restored = agent.puppet("filebucket", "restore", str(path), sums[1], "--remote")
    assert restored.code == 0 and path.read_text() == "one\nthree\n", restored.text
    missing = agent.puppet("filebucket", "get", "0" * len(sums[0]), "--remote")
    assert missing.code == 1 and "not found" in missing.text.lower(), missing.text
    return sums[:2]


class Server(Protocol):
    """A master of another release with our agents, and a program that classifies them."""

    @property
    def reports(self) -> Path: ...

    def agent(self, root: Path, name: str) -> OurAgent: ...


def report_of(server: Server, agent: OurAgent) -> dict[str, Any]:
    """The last report that the server stored."""
    path = max((server.reports / agent.certname).iterdir(), key=lambda path: path.stat().st_mtime_ns)
    report: dict[str, Any] = plainyaml.loads(path.read_bytes(), aliases=True)
    return report


def environments_are_chosen(server: Server, root: Path) -> None:
    """By the agent, or by the classifier, which also says classes and parameters; a node that it does not know gets no catalog."""
    reader = server.agent(root, "reader1")
    ran = reader.test("--environment", "testing")
    assert ran.code == 2 and "here is testing" in ran, ran.text
    assert report_of(server, reader)["environment"] == "testing"

    classified = server.agent(root, "classified1")
    ran = classified.test()
    assert ran.code == 2, ran.text
    assert "here is testing" in ran and "in testing: hello, rack r7" in ran
    assert (classified.root / "vardir/facts.d/only_testing.txt").exists()
    assert report_of(server, classified)["environment"] == "testing"
    ran = classified.test("--environment", "production")
    assert ran.code == 2 and "in testing: hello" in ran, ran.text

    ran = server.agent(root, "unknown1").test()
    assert ran.code == 1 and "Failed to find unknown1.example.com via exec" in ran, ran.text
