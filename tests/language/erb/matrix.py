"""Templates that call each translated method on values of each class, with arguments of many kinds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from language.erb import methods

RECEIVERS = (
    "nil", "true", "false", "0", "7", "-3", "2.5", "-0.5", "100.0", '""', '"abc"', '" a b "', '"Hello, World"', '"a,b,,c,"', '"1_0x"',
    '"-12"', "\"x\\ny\\r\\n\"", '"aXbX"', '":a"', "[]", "[3, 1, 2]", '["b", "a", "c", "a"]', '[nil, false, "x", [1, [2, nil]], []]',
    '[["b", 2], ["a", 1]]', "[1, 2.0, 1]", '[1, "a"]', "[[1, 2], [3, 4]]", '[{"a" => 1}, {"b" => nil}]', "{}",
    '{"a" => 1, "b" => nil}', '{"b" => [1, 2], "a" => {"c" => "d"}, 3 => :s, nil => true}', "{1 => 2, 1.0 => 3, true => 4}", ":sym",
    "(1..4)", "(1...1)", "[true, nil]", '["10", "9", ""]', "\"\\\\ # \\\" #{1}\"", "[:a, nil, 2.50]",
)  # fmt: skip
ARGUMENTS = (
    "nil", "0", "1", "-1", "2", "5", '""', '"a"', '","', '" "', '"b"', '"X"', "/[abX]/", "/(l+)(o)?/", "[]", '["a", 1]', '{"a" => 2}',
    '"c"', "1.5", ":a", "true", "(0..1)", "(1..-1)", "(0...-1)", "3", "\"\\\\1-\\\\0\"", '"%s|%-4s|%03d"', '"abc"',
)  # fmt: skip
BLOCKS = ("x", "!x", "x.to_s", "x.nil?", "[x, 1]", "x.inspect", "x == 1", "x.to_s.length", "nil", '"k"')
PAIR_BLOCKS = ("a", "b", "[a, b].inspect", "b.nil?", "a.to_s + b.to_s", "a.to_s", "a <=> b", "b <=> a", "a == b")


def expressions(*, sample: int, seed: int) -> Iterator[str]:
    """Yield expressions: each method on each receiver, with `sample` choices of arguments."""
    chance = random.Random(seed)
    for name, method in sorted(methods.METHODS.items()):
        for receiver in RECEIVERS:
            for count in range(method.least, min(method.most, 3) + 1):
                choices = [chance.choices(ARGUMENTS, k=count) for _ in range(sample)] if count else [[]]
                for arguments in choices:
                    yield written(receiver, name, arguments)
    for (name, block_method), receiver in itertools.product(sorted(methods.BLOCK_METHODS.items()), RECEIVERS):
        for _ in range(sample):
            arguments = [chance.choice(ARGUMENTS) for _ in range(chance.randint(block_method.least, block_method.most))]
            call = written(receiver, name, arguments)
            parameters, bodies = (
                chance.choice((("x", BLOCKS), ("a, b", PAIR_BLOCKS))) if block_method.values == 1 else ("a, b", PAIR_BLOCKS)
            )
            yield f"{call} {{ |{parameters}| {chance.choice(bodies)} }}"
    for receiver, tested in itertools.product(RECEIVERS, sorted(methods.CLASSES)):
        yield f"{receiver}.is_a?({tested})"
    for receiver in RECEIVERS:
        for name in ("Array", "Integer", "Float", "String"):
            yield f"{name}({receiver})"
        yield f"Regexp.escape({receiver})"
        for argument in ARGUMENTS:
            yield f"(case {receiver} when {argument} then 1 else 2 end)"
            yield f"({receiver} =~ {argument})"
            yield f"format('%s %d %5.2f', {receiver}, {argument}, {receiver})"


def written(receiver: str, name: str, arguments: list[str]) -> str:
    """Return the text of a call."""
    if name == "[]":
        return f"{receiver}[{', '.join(arguments)}]"
    if name == "[]=":
        return f"(y = {receiver}; y[{arguments[0]}] = {arguments[1]}; y)"
    if not name[0].isalpha():
        return f"({receiver} {name} {arguments[0]})"
    return f"{receiver}.{name}({', '.join(arguments)})" if arguments else f"{receiver}.{name}"


CHAINED_OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "and", "or", "<=>", "&", "|", "=~", "!~"]
CHAINED_VALUES = (
    "1",
    "2",
    "3.5",
    "nil",
    "false",
    "true",
    "[1]",
    '"a"',
    "x",
    "@n",
    "x.to_s",
    "[1, 2].first",
    "x.nil?",
    "@n.is_a?(Integer)",
    ":s",
)


def chained(number: int, *, seed: int) -> Iterator[str]:
    """Yield chains of operators without parentheses, some with a ternary or a modifier behind them."""
    chance = random.Random(seed)
    for _ in range(number):
        words: list[str] = []
        for position in range(chance.randint(2, 4)):
            if position:
                words.append(chance.choice(CHAINED_OPERATORS))
            words.append(chance.choice(("", "", "", "", "", "!", "not ", "-")) + chance.choice(CHAINED_VALUES))
        end = chance.choice(("", "", "", f" ? {chance.choice(CHAINED_VALUES)} : 0", f" if {chance.choice(CHAINED_VALUES)}"))
        yield " ".join(words) + end
