"""Cuts questions down for as long as the two compilers answer them differently in the same way."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tests.fuzz.comparison import Difference
from tests.fuzz.trees import Question, Tree

__all__ = ["shrink"]

Ask = Callable[[Sequence[Question]], Sequence[Difference | None]]
_TOKENS = re.compile(r"\w+|\s+|.", re.DOTALL)
BATCH = 10
MOST_BATCHES = 30


def shrink(question: Question, difference: Difference, ask: Ask) -> tuple[Question, Difference]:
    """
    A question, as short as was found, that still differs in the same way: first by the grammar, then by lines, then by words.

    Args:
        ask: tells for each question how the answers to it differ; None: they are equal.
    """
    budget = MOST_BATCHES
    for form in (_as_it_is, _in_lines, _in_words):
        question = form(question)
        shorter = True
        while shorter and budget > 0:
            shorter = False
            candidates = _shorter(question)
            while budget > 0 and (batch := list(itertools.islice(candidates, BATCH))):
                budget -= 1
                alike = [(each, found) for each, found in zip(batch, ask(batch), strict=True) if _is_alike(found, difference)]
                if alike:
                    question, difference = min(alike, key=lambda pair: pair[0].size)
                    shorter = True
                    break
    return question, difference


def _is_alike(found: Difference | None, wanted: Difference) -> bool:
    return found is not None and found.kind == wanted.kind and found.signature == wanted.signature


def _shorter(question: Question) -> Iterator[Question]:
    texts = set()
    for each in question.smaller():
        text = (each.manifest.text, *sorted((path, tree.text) for path, tree in each.files.items()), *each.settings)
        if text not in texts and (each.size < question.size or len(each.settings) < len(question.settings)):
            texts.add(text)
            yield each


def _as_it_is(question: Question) -> Question:
    return question


def _in_lines(question: Question) -> Question:
    return _rewritten(question, lambda text: Tree("lines", tuple(text.split("\n")), separator="\n"))


def _in_words(question: Question) -> Question:
    return _rewritten(question, lambda text: Tree("words", tuple(_TOKENS.findall(text)), separator=""))


def _rewritten(question: Question, form: Callable[[str], Tree]) -> Question:
    files: Mapping[str, Tree] = {path: form(tree.text) for path, tree in question.files.items()}
    return replace(question, manifest=form(question.manifest.text), files=files)
