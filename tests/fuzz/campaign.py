"""Asks both compilers many questions, counts the equal answers, and groups what differs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.comparison import Difference, Wordings, compare
from tests.fuzz.grammar import Generator, Grammar, Topic
from tests.fuzz.oracle import Reference, our_answer
from tests.fuzz.shrinking import shrink
from tests.fuzz.trees import Question

__all__ = ["EQUAL", "IDENTICAL", "Campaign", "Cluster", "Figures"]

IDENTICAL = 0.998
"""What of the questions that the reference compiles has to give the identical catalog and log."""
EQUAL = 0.98
"""What of all answers, errors included, has to be equal but for listed wording."""
BATCH = 100


@dataclass
class Figures:
    """What was counted, over all topics or for one."""

    asked: int = 0
    compiled: int = 0
    identical: int = 0
    equal: int = 0
    listed: int = 0

    def count(self, compiled: bool, difference: Difference | None, listed: bool) -> None:
        self.asked += 1
        self.compiled += compiled
        self.identical += compiled and difference is None
        self.equal += difference is None
        self.listed += listed

    @property
    def identical_share(self) -> float:
        return self.identical / self.compiled if self.compiled else 1.0

    @property
    def equal_share(self) -> float:
        return (self.equal + self.listed) / self.asked if self.asked else 1.0

    @property
    def suffice(self) -> bool:
        return self.identical_share >= IDENTICAL and self.equal_share >= EQUAL

    def data(self) -> dict[str, float]:
        shares = {"identical_share": self.identical_share, "equal_share": self.equal_share}
        return {**vars(self), **{name: round(share, 5) for name, share in shares.items()}}

    def __str__(self) -> str:
        return (
            f"{self.asked} questions; {self.compiled} compile in the reference, {self.identical_share:.2%} of them identical; "
            f"{self.equal_share:.2%} of all answers equal, {self.listed} by listed wording"
        )


@dataclass
class Cluster:
    """Differences that probably have one cause, with one of them to look at."""

    difference: Difference
    question: Question
    count: int = 1

    def data(self) -> dict[str, Any]:
        shown = {"kind": self.difference.kind, "signature": self.difference.signature, "count": self.count}
        return {**shown, "topic": self.question.topic, "case": self.question.case(), "answers": self.difference.explanation}


@dataclass
class Campaign:
    """
    A run of the fuzzer.

    Attributes:
        progress: called after each batch.
    """

    reference: Reference
    grammar: Grammar
    topics: tuple[Topic, ...]
    seed: int
    wordings: Wordings
    progress: Callable[[Campaign], None] = lambda campaign: None
    figures: Figures = field(default_factory=Figures)
    by_topic: dict[str, Figures] = field(default_factory=dict)
    clusters: dict[tuple[str, str], Cluster] = field(default_factory=dict)
    unanswered: int = 0

    def run(self, questions: int) -> None:
        """Ask so many questions; those that the reference gives no answer to, in its time, count as nothing."""
        for start in range(0, questions, BATCH):
            count = min(BATCH, questions - start)
            # Each question has a seed of its own, so that one can be asked again alone.
            batch = [self.question(number) for number in range(start, start + count)]
            for question, reference, ours in self._answers(batch):
                self._count(question, reference, ours)
            self.progress(self)

    def question(self, number: int) -> Question:
        """The question of that number; it depends on the seed, the grammar and the topics only."""
        return Generator(self.grammar, random.Random(f"{self.seed}:{number}")).question(self.topics)

    def _answers(self, questions: Sequence[Question]) -> list[tuple[Question, dict[str, Any], dict[str, Any]]]:
        cases = [question.case() for question in questions]
        theirs = self.reference.answers(cases)
        ours = [our_answer(case) for case in cases]
        return list(zip(questions, theirs, ours, strict=True))

    def _count(self, question: Question, reference: dict[str, Any], ours: dict[str, Any]) -> None:
        if reference.get("class") in ("NoAnswer", "Timeout::Error"):
            self.unanswered += 1
            return
        difference = compare(reference, ours)
        listed = difference is not None and self.wordings.rule_for(reference, ours) is not None
        for figures in (self.figures, self.by_topic.setdefault(question.topic, Figures())):
            figures.count("error" not in reference, difference, listed)
        if difference is None or listed:
            return
        cluster = self.clusters.setdefault((difference.kind, difference.signature), Cluster(difference, question, 0))
        cluster.count += 1
        if question.size < cluster.question.size:
            cluster.question, cluster.difference = question, difference

    def shrink(self, most: int) -> None:
        """Cut down the questions of the `most` largest clusters."""
        for cluster in self.largest()[:most]:
            cluster.question, cluster.difference = shrink(cluster.question, cluster.difference, self._differences)

    def largest(self) -> list[Cluster]:
        """All clusters: crashes and what should compile come first, then the most frequent."""
        order = ("crash", "catalog", "refused", "log", "accepted", "place", "words")
        return sorted(self.clusters.values(), key=lambda each: (order.index(each.difference.kind), -each.count, each.difference.signature))

    def _differences(self, questions: Sequence[Question]) -> list[Difference | None]:
        return [compare(reference, ours) for _, reference, ours in self._answers(questions)]

    def data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "seed": self.seed,
            "figures": self.figures.data(),
            "suffice": self.figures.suffice,
            "unanswered": self.unanswered,
            "topics": {name: figures.data() for name, figures in sorted(self.by_topic.items())},
            "differences": [cluster.data() for cluster in self.largest()],
        }
