"""The fuzzer itself, and a run of it with a fixed seed that must not fall behind the shares that `make fuzz` asks for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fuzz.campaign import Campaign
from tests.fuzz.comparison import Difference, Wordings, compare
from tests.fuzz.grammar import Generator, Grammar, GrammarError
from tests.fuzz.oracle import Reference, our_answer, reference_is_here, stdlib_folder
from tests.fuzz.shrinking import shrink
from tests.fuzz.trees import Question, Tree

SEED = 2026
QUESTIONS = 3000


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    return Grammar.load()


def answers(**parts: object) -> dict[str, object]:
    return {"resources": [], "edges": [], "classes": ["settings"], "logs": []} | parts


def test_equal_seeds_give_equal_questions(grammar: Grammar) -> None:
    def texts(seed: int) -> list[object]:
        chance = random.Random(seed)
        return [Generator(grammar, chance).question(grammar.topics).case() for _ in range(20)]

    assert texts(1) == texts(1) != texts(2)


def test_every_topic_can_be_asked_about(grammar: Grammar) -> None:
    for topic in grammar.topics:
        question = Generator(grammar, random.Random(3)).question((topic,))
        assert question.topic == topic.name and question.size > 0


@pytest.mark.parametrize(
    ("rules", "message"),
    [("a: ['<nosuch>']", "there is no rule 'nosuch'"), ("a: ['(<b>)']\nb: ['[<a>]']", "These rules never end: a, b")],
)
def test_a_grammar_that_cannot_be_used_is_refused(tmp_path: Path, rules: str, message: str) -> None:
    (tmp_path / "rules.yaml").write_text(rules)
    with pytest.raises(GrammarError, match=message):
        Grammar.load(tmp_path)


def test_a_literal_angle_bracket_is_text(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("format: ['%\\<a>s']")
    (tmp_path / "topics.yaml").write_text("one: { manifest: 'x <format>' }")
    grammar = Grammar.load(tmp_path)
    assert Generator(grammar, random.Random(1)).question(grammar.topics).manifest.text == "x %<a>s"


def test_shrinking_leaves_what_makes_the_difference(grammar: Grammar) -> None:
    def ask(questions: Sequence[Question]) -> list[Difference | None]:
        return [Difference("words", "one", "") if "abs(" in question.manifest.text else None for question in questions]

    statements = tuple(Tree("statement", (text,)) for text in ("notice(1)", "notice(abs(-1.5), 'x')", "$a = 3"))
    question = Question("expressions", Tree("block", statements, separator="\n"), {"data/a.yaml": Tree("data", ("a: 1",))}, {})
    shortest, difference = shrink(question, Difference("words", "one", ""), ask)
    assert (shortest.manifest.text, dict(shortest.files), difference.kind) == ("abs(", {}, "words")


@pytest.mark.parametrize(
    ("reference", "ours", "kind"),
    [
        (answers(), answers(), None),
        (answers(logs=[["notice", "1"]]), answers(), "log"),
        (answers(classes=["settings", "a"]), answers(), "catalog"),
        (answers(), {"error": "no", "logs": []}, "refused"),
        ({"error": "no", "logs": []}, answers(), "accepted"),
        ({"error": "no", "logs": []}, {"error": "yes", "logs": []}, "words"),
        ({"error": "no (file: a.pp, line: 1)", "logs": []}, {"error": "no (file: a.pp, line: 2)", "logs": []}, "place"),
        (answers(), {"error": "CRASH KeyError: 1", "logs": []}, "crash"),
    ],
)
def test_a_difference_has_a_kind(reference: dict[str, object], ours: dict[str, object], kind: str | None) -> None:
    difference = compare(reference, ours)
    assert (difference and difference.kind) == kind


def test_a_listed_wording_covers_no_other_place_no_catalog_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "wordings.yaml"
    path.write_text("- reason: shorter\n  reference: 'It is (?P<what>.*) at (?P<place>\\d+)'\n  ours: '(?P<what>.*) at (?P<place>\\d+)'\n")
    wordings = Wordings.load(path)
    reference = {"error": "It is wrong at 3"}
    assert wordings.rule_for(reference, {"error": "wrong at 3"}) is not None
    assert wordings.rule_for(reference, {"error": "wrong at 4"}) is None
    assert wordings.rule_for(reference, answers()) is None
    assert wordings.rule_for(answers(), {"error": "wrong at 3"}) is None


def test_our_side_answers_in_the_form_of_the_recordings() -> None:
    answer = our_answer({"manifest": "notice(1)", "files": {}, "settings": {}})
    assert answer["logs"] == [["notice", "1"]] and answer["classes"] == ["settings"]


@pytest.mark.skipif(stdlib_folder() is None, reason="there is no stdlib of the reference: sh tests/fuzz/stdlib.sh")
def test_our_side_has_the_classes_of_the_stdlib_that_the_reference_has() -> None:
    answer = our_answer({"manifest": "include stdlib::stages", "files": {}, "settings": {}, "stdlib": True})
    assert answer["classes"] == ["settings", "stdlib::stages"]


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.skipif(not reference_is_here(), reason="there is no puppet 7.23 to ask")
def test_generated_questions_are_answered_as_the_reference_does(grammar: Grammar) -> None:
    modules = stdlib_folder()
    topics = tuple(topic for topic in grammar.topics if modules is not None or not topic.stdlib)
    with Reference(2, modules) as reference:
        campaign = Campaign(reference, grammar, topics, SEED, Wordings.load())
        campaign.run(QUESTIONS)
    classes = "\n".join(f"{cluster.count} x {cluster.difference.kind}: {cluster.difference.signature}" for cluster in campaign.largest())
    assert campaign.unanswered < QUESTIONS / 100, f"{campaign.unanswered} questions were not answered in time"
    figures = campaign.figures
    assert figures.suffice, f"{figures}\n{classes}\nmake fuzz SEED={SEED} QUESTIONS={QUESTIONS} shows them"
