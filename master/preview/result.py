"""The result of a preview, as `docs/preview.md` describes it: the same change on several nodes is one entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from environments.versions import version_behind

FORMAT = 1
"""Of the result as data: raised when a field is renamed or removed."""
STATES = ("unaffected", "unchanged", "changed", "failed", "fixed")
MESSAGE_STATES = ("new", "old", "fixed")
Finding = tuple[str, str | None, int | None, str]
"""A fault in a file: message, file, line, hint."""
MAX_DETAILED = 20_000
"""Changes with their values; those that are found later have none, so that the memory of a preview is bounded."""


@dataclass(frozen=True, slots=True)
class PreviewSide:
    """One of the two states of the code: `name` as it was given, the folder; of a repository's the commit and its subject."""

    name: str
    root: str
    revision: str | None = None
    subject: str | None = None

    @classmethod
    def of_environment(cls, name: str, root: str) -> Self:
        """Return the environment at `root` as it is now: where that is a link, the version that it leads to. Blocks, briefly."""
        return cls(name, version_behind(root) or root)

    def data(self) -> dict[str, Any]:
        return {"name": self.name, "root": self.root, "revision": self.revision, "subject": self.subject}


@dataclass(slots=True)
class PreviewChange:
    """
    A change and its nodes.

    Attributes:
        kind, action, subject, parameter, container, old, new, diff, lines, secret, parameters, truncated, places: see docs/preview.md.
        values: a digest of the first node's values; other nodes may have other values, and then it `varies`.
    """

    kind: str
    action: str
    subject: str
    parameter: str | None = None
    container: str | None = None
    old: Any = None
    new: Any = None
    diff: Sequence[str] | None = None
    lines: int = 0
    secret: bool = False
    parameters: Mapping[str, Any] | None = None
    varies: bool = False
    truncated: bool = False
    places: Mapping[str, str | None] = field(default_factory=lambda: {"old": None, "new": None})
    values: str = ""
    nodes: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        return _entry_data(self)


@dataclass(slots=True)
class PreviewMessage:
    """An error or warning of compilations and its nodes; `state` is new, old or fixed."""

    message: str
    file: str | None
    line: int | None
    hint: str
    state: str
    nodes: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        return _entry_data(self)


@dataclass(slots=True)
class UnstableValue:
    """A value that differs from one compilation to the next of the same code; `parameter` is None for a whole resource."""

    subject: str
    parameter: str | None
    reason: str
    nodes: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        return _entry_data(self)


def _entry_data(entry: PreviewChange | PreviewMessage | UnstableValue) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry) if field.name != "values"} | {"nodes": sorted(entry.nodes)}


@dataclass(slots=True)
class PreviewResult:
    """
    The result of a preview so far.

    Attributes:
        findings: faults in files of either side, with the nodes for which these were read first; they end as warnings.
        elsewhere: nodes that are left out because they are in another environment.
        classified_now: nodes that have the classes of now and not of their last run, of which nothing is stored.
        compilations: how many catalogs were compiled; compiled: how many nodes from both sides.
        time: when the preview began, in UTC, as ISO 8601.
    """

    before: PreviewSide
    after: PreviewSide
    environment: str
    states: dict[str, str] = field(default_factory=dict)
    changes: dict[str, PreviewChange] = field(default_factory=dict)
    errors: dict[tuple[Any, ...], PreviewMessage] = field(default_factory=dict)
    warnings: dict[tuple[Any, ...], PreviewMessage] = field(default_factory=dict)
    unstable: dict[tuple[Any, ...], UnstableValue] = field(default_factory=dict)
    findings: tuple[dict[Finding, list[str]], dict[Finding, list[str]]] = field(default_factory=lambda: ({}, {}))
    elsewhere: list[str] = field(default_factory=list)
    classified_now: list[str] = field(default_factory=list)
    compiled: int = 0
    compilations: int = 0
    time: str = ""
    seconds: float = 0.0

    def add(self, node: str, outcome: Mapping[str, Any]) -> None:
        """Add a worker's result for a node (see `worker.PreviewWorker`)."""
        self.states[node] = outcome["state"]
        self.compiled += bool(outcome["compiled"])
        self.compilations += outcome["compilations"]
        for key, values, change in outcome["changes"]:
            if change is not None and key not in self.changes:
                self.changes[key] = _change_of(change, values, detailed=len(self.changes) < MAX_DETAILED)
            entry = self.changes[key]
            entry.varies = entry.varies or entry.values != values
            entry.nodes.append(node)
        for name, table in (("errors", self.errors), ("warnings", self.warnings)):
            for message in outcome[name]:
                identity = (message["state"], message["file"], message["line"], message["message"])
                table.setdefault(identity, PreviewMessage(**message)).nodes.append(node)
        for number, message in outcome["findings"]:
            finding = (message["message"], message["file"], message["line"], message["hint"])
            self.findings[number].setdefault(finding, []).append(node)
        for value in outcome["unstable"]:
            self.unstable.setdefault((value["subject"], value["parameter"], value["reason"]), UnstableValue(**value)).nodes.append(node)

    def sorted_changes(self) -> list[PreviewChange]:
        """Return the changes, those that touch most nodes first."""

        def rank(change: PreviewChange) -> tuple[int, int, str, str, str]:
            return -len(change.nodes), -change.lines, change.subject, change.kind, change.parameter or ""

        return sorted(self.changes.values(), key=rank)

    def sorted_errors(self) -> list[PreviewMessage]:
        """Return the errors: the new ones first, then those of most nodes."""
        return sorted(self.errors.values(), key=_message_order)

    def sorted_warnings(self) -> list[PreviewMessage]:
        """Return the warnings in the same order. A file that only nodes read that were not compiled from `after` is the same there."""
        old, new = self.findings
        known = {(message, file) for message, file, _, _ in old}
        found = [PreviewMessage(*finding, "old", nodes) for finding, nodes in old.items()]
        found += [PreviewMessage(*finding, "new", nodes) for finding, nodes in new.items() if finding[:2] not in known]
        return sorted([*self.warnings.values(), *found], key=_message_order)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of nodes, in all and in each state, of nodes compiled on both sides, and of catalogs."""
        states = Counter(self.states.values())
        numbers = {state: states[state] for state in STATES}
        return {"nodes": len(self.states), **numbers, "compiled": self.compiled, "compilations": self.compilations}

    def pieces(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields of the result as data; the long ones are iterators of plain data."""
        yield "format", FORMAT
        yield "from", self.before.data()
        yield "to", self.after.data()
        yield "environment", self.environment
        yield "time", self.time
        yield "seconds", round(self.seconds, 3)
        yield "counts", self.counts
        yield "nodes", dict(sorted(self.states.items()))
        yield "elsewhere", sorted(self.elsewhere)
        yield "classified_now", sorted(self.classified_now)
        yield "changes", (change.data() for change in self.sorted_changes())
        yield "errors", (message.data() for message in self.sorted_errors())
        yield "warnings", (message.data() for message in self.sorted_warnings())
        ordered = sorted(self.unstable.values(), key=lambda value: (-len(value.nodes), value.subject, value.parameter or ""))
        yield "unstable", (value.data() for value in ordered)

    def data(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {name: list(value) if isinstance(value, Iterator) else value for name, value in self.pieces()}


def _message_order(message: PreviewMessage) -> tuple[int, int, str]:
    return MESSAGE_STATES.index(message.state), -len(message.nodes), message.message


def _change_of(data: Mapping[str, Any], values: str, *, detailed: bool) -> PreviewChange:
    """Return a change without nodes; without its values when it is not `detailed`."""
    if detailed:
        return PreviewChange(**data, values=values)
    bare = {name: value for name, value in data.items() if name not in ("old", "new", "diff", "parameters")}
    return PreviewChange(**bare | {"truncated": True}, values=values)
