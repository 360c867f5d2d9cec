"""
Regular expressions of a site's own rules, matched on the event loop: no text and no pattern may hold it up.

Python's engine tries ways one after the other, of which some patterns have more than anybody can wait for: `(a+)+$`. It gets
only those that can be seen to have few; the others are walked through in all ways at once, in steps that the text's length bounds.
What neither can do is refused when the rules are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from shared.errors import Denied

MOST_TEXT = 1000  # characters that Python's engine gets
MOST_WAYS = 5_000_000  # that it may have to try for them
MOST_PROGRAM = 1000  # instructions
MOST_STEPS = 1_000_000  # of a walk: instructions by characters; about half a second, were all of them busy at each

_parser: Any = import_module("re._parser")  # what `re` reads patterns with; nothing else gives their structure

Test = Callable[[str], bool]
Place = Callable[[str, int], bool]


class Unbounded(ValueError):
    """A pattern whose time cannot be bounded; the message says what in it."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One pattern, ready to be searched for. Two of the same source are equal."""

    source: str
    groups: int = field(compare=False)
    _pattern: re.Pattern[str] | None = field(compare=False, repr=False)  # None: it has too many ways
    _program: tuple[Any, ...] | None = field(compare=False, repr=False)  # None: it cannot be walked

    @classmethod
    def of(cls, source: str) -> Expression:
        """
        The expression in Python's syntax.

        Raises:
            re.error: it is not valid. Unbounded.
        """
        pattern = re.compile(source)
        tree = _parser.parse(source)
        problem = ""
        program: tuple[Any, ...] | None = None
        try:
            program = _compiled(tree, pattern.flags)
        except Unbounded as err:
            problem = str(err)
        few = _ways(tree) <= MOST_WAYS
        if program is None and not few:
            raise Unbounded(f"it may take longer than anybody can wait, and cannot be bounded because of {problem}")
        return cls(source, pattern.groups, pattern if few else None, program)

    def search(self, text: str) -> Sequence[str] | None:
        """
        What the groups hold where it is found first ('' for one without a part in that); None: nowhere.

        Raises:
            Denied: the text is too long to tell.
        """
        if self._pattern is not None and len(text) <= MOST_TEXT:
            found = self._pattern.search(text)
            return None if found is None else tuple(group or "" for group in found.groups())
        if self._program is None or len(self._program) * len(text) > MOST_STEPS:
            raise Denied("The path is too long for the rules", hint="A regular expression in auth.conf would take too long on it.")
        return _walked(self._program, text, self.groups)


# --- how many ways


def _ways(tree: Any) -> float:
    """How many ways there are to try on MOST_TEXT characters, at the most; infinite where ways multiply with each round of a repeat."""
    anchored = bool(len(tree)) and str(tree[0][0]) == "AT" and str(tree[0][1]) in ("AT_BEGINNING", "AT_BEGINNING_STRING")
    return _of(tree) * (1 if anchored else MOST_TEXT)


def _of(tree: Iterable[Any]) -> float:
    ways = 1.0
    for operation, given in tree:
        match str(operation):
            case "BRANCH":
                ways *= sum(_of(branch) for branch in given[1])
            case "SUBPATTERN":
                ways *= _of(given[3])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, body = given
                if most > 1 and _of(body) > 1:
                    return float("inf")
                ways *= _of(body) * (min(int(most), MOST_TEXT) - min(int(least), MOST_TEXT) + 1)
            case "ASSERT" | "ASSERT_NOT":
                ways *= _of(given[1])
            case "ATOMIC_GROUP":
                ways *= _of(given)
            case "GROUPREF_EXISTS":
                ways *= _of(given[1]) + (_of(given[2]) if given[2] else 1)
    return ways


# --- walking in all ways at once (Thompson's construction, with what the groups hold)


def _compiled(tree: Any, flags: int) -> tuple[Any, ...]:
    """The program of a pattern; Unbounded for what no such program can say."""
    program: list[Any] = []
    _emit(tree, flags, program)
    program.append(("match",))
    return tuple(program)


def _emit(tree: Iterable[Any], flags: int, program: list[Any]) -> None:
    for operation, given in tree:
        if len(program) > MOST_PROGRAM:
            raise Unbounded("its length")
        name = str(operation)
        match name:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                program.append(("test", _test(name, given, flags)))
            case "AT":
                program.append(("at", _place(str(given))))
            case "SUBPATTERN":
                group, added, removed, body = given
                if added or removed:
                    raise Unbounded("flags inside it")
                if group is not None:
                    program.append(("save", 2 * group))
                _emit(body, flags, program)
                if group is not None:
                    program.append(("save", 2 * group + 1))
            case "BRANCH":
                _branches(given[1], flags, program)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, body = given
                _repeat(least, most, body, name == "MAX_REPEAT", flags, program)
            case _:
                raise Unbounded(f"{name.lower().replace('_', ' ')} in it")


def _branches(branches: Sequence[Any], flags: int, program: list[Any]) -> None:
    ends = []
    for branch in branches[:-1]:
        fork = len(program)
        program.append(None)
        _emit(branch, flags, program)
        ends.append(len(program))
        program.append(None)
        program[fork] = ("fork", fork + 1, len(program))
    _emit(branches[-1], flags, program)
    for end in ends:
        program[end] = ("jump", len(program))


def _repeat(least: int, most: Any, body: Any, greedy: bool, flags: int, program: list[Any]) -> None:
    if most > 1 and body.getwidth()[0] == 0 and any(str(each) == "SUBPATTERN" and given[0] is not None for each, given in _parts(body)):
        raise Unbounded("a group that may hold nothing in a repeat")  # the engines do not agree on what it holds in the end
    for _ in range(least):
        _emit(body, flags, program)
        if len(program) > MOST_PROGRAM:
            raise Unbounded("its length")
    endless = most == _parser.MAXREPEAT
    forks = []
    for _ in range(1 if endless else int(most) - least):
        forks.append(len(program))
        program.append(None)
        _emit(body, flags, program)
        if len(program) > MOST_PROGRAM:
            raise Unbounded("its length")
    if endless:
        program.append(("jump", forks[0]))
    for fork in forks:
        program[fork] = ("fork", fork + 1, len(program)) if greedy else ("fork", len(program), fork + 1)


def _parts(tree: Iterable[Any]) -> Iterator[Any]:
    """All that a tree of what can be walked consists of."""
    for operation, given in tree:
        yield operation, given
        match str(operation):
            case "BRANCH":
                for branch in given[1]:
                    yield from _parts(branch)
            case "SUBPATTERN":
                yield from _parts(given[3])
            case "MAX_REPEAT" | "MIN_REPEAT":
                yield from _parts(given[2])


_CATEGORIES: dict[str, Test] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}


def _test(name: str, given: Any, flags: int) -> Test:
    """Whether a character fits."""
    plain = _plain_test(name, given, flags)
    if not flags & re.IGNORECASE:
        return plain
    return lambda char: any(plain(each) for each in {char, char.lower(), char.upper()} if len(each) == 1)


def _plain_test(name: str, given: Any, flags: int) -> Test:
    match name:
        case "LITERAL":
            wanted = chr(given)
            return lambda char: char == wanted
        case "NOT_LITERAL":
            unwanted = chr(given)
            return lambda char: char != unwanted
        case "ANY":
            return (lambda char: True) if flags & re.DOTALL else (lambda char: char != "\n")
    negated = str(given[0][0]) == "NEGATE"
    tests = [_member(str(kind), value) for kind, value in (given[1:] if negated else given)]
    return lambda char: any(test(char) for test in tests) is not negated


def _member(kind: str, value: Any) -> Test:
    match kind:
        case "LITERAL":
            return lambda char: ord(char) == value
        case "RANGE":
            low, high = value
            return lambda char: low <= ord(char) <= high
        case "CATEGORY":
            category = str(value).removeprefix("CATEGORY_")
            test = _CATEGORIES.get(category.removeprefix("NOT_"))
            if test is not None:
                return (lambda char: not test(char)) if category.startswith("NOT_") else test
    raise Unbounded(f"{kind.lower()} in it")


def _place(name: str) -> Place:
    """Whether a place in the text fits."""
    word = _CATEGORIES["WORD"]

    def boundary(text: str, at: int) -> bool:
        return (at > 0 and word(text[at - 1])) != (at < len(text) and word(text[at]))

    places: dict[str, Place] = {
        "AT_BEGINNING": lambda text, at: at == 0,
        "AT_BEGINNING_STRING": lambda text, at: at == 0,
        "AT_END": lambda text, at: at == len(text) or (at == len(text) - 1 and text[at] == "\n"),
        "AT_END_STRING": lambda text, at: at == len(text),
        "AT_BOUNDARY": boundary,
        "AT_NON_BOUNDARY": lambda text, at: not boundary(text, at),
    }
    if name not in places:
        raise Unbounded(f"{name.lower()} in it")
    return places[name]


Saved = tuple[int, ...]


def _walked(program: Sequence[Any], text: str, groups: int) -> Sequence[str] | None:
    """As a search by Python's engine: the first place, and there the way that it would have tried first."""
    nothing: Saved = (-1,) * (2 * groups + 2)
    found: Saved | None = None
    ready: list[tuple[int, Saved]] = []
    for at in range(len(text) + 1):
        seen: set[int] = set()
        here: list[tuple[int, Saved]] = []
        for counter, saved in [*ready, *([(0, nothing)] if found is None else [])]:
            _follow(program, text, at, counter, saved, seen, here)
        ready = []
        for counter, saved in here:
            instruction = program[counter]
            if instruction[0] == "match":
                found = saved  # whatever comes after it would have been tried later
                break
            if at < len(text) and instruction[1](text[at]):
                ready.append((counter + 1, saved))
        if not ready and found is not None:
            break
    if found is None:
        return None
    return tuple(text[found[2 * group] : found[2 * group + 1]] if found[2 * group + 1] >= 0 else "" for group in range(1, groups + 1))


def _follow(program: Sequence[Any], text: str, at: int, counter: int, saved: Saved, seen: set[int], here: list[tuple[int, Saved]]) -> None:
    """All that can be reached without a character, in the order in which it would be tried; each instruction once."""
    pending = [(counter, saved)]
    while pending:
        counter, saved = pending.pop()
        if counter in seen:
            continue
        seen.add(counter)
        instruction = program[counter]
        match instruction[0]:
            case "jump":
                pending.append((instruction[1], saved))
            case "fork":
                pending += [(instruction[2], saved), (instruction[1], saved)]
            case "save":
                slot = instruction[1]
                pending.append((counter + 1, (*saved[:slot], at, *saved[slot + 1 :])))
            case "at":
                if instruction[1](text, at):
                    pending.append((counter + 1, saved))
            case _:
                here.append((counter, saved))
