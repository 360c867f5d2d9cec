from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from environments.hiera.data.files import parse_yaml
from shared.data import plainyaml
from shared.data.plainyaml import CORE
from shared.errors import BadData

RECORDED: list[list[Any]] = json.loads((Path(__file__).parents[1] / "data/yaml/psych-4.0.4.json").read_text())
"""What psych 4.0.4 of Ruby 3.1 makes of `k: <text>` as Puppet 7.23 calls it (safe_load with Symbol allowed)."""


def as_recorded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")}
    return {"symbol": str(value)} if isinstance(value, str) and type(value) is not str else value


@pytest.mark.parametrize(("text", "recorded"), RECORDED)
def test_data_of_a_site_is_read_as_psych_reads_it(text: str, recorded: Any) -> None:
    error = recorded.get("error") if isinstance(recorded, dict) else None
    if error is None:
        value = as_recorded(parse_yaml(f"k: {text}".encode())["k"])
        assert (value, type(value)) == (recorded, type(recorded))
        return
    with pytest.raises(BadData) as caught:
        parse_yaml(f"k: {text}".encode())
    if error.startswith("Tried"):
        assert str(caught.value).startswith(error)


CORE_VALUES: list[tuple[str, Any]] = [
    ("true", True), ("True", True), ("FALSE", False), ("~", None), ("null", None), ("", None),
    ("yes", "yes"), ("on", "on"), ("no", "no"), ("y", "y"), ("tRuE", "tRuE"),
    ("12", 12), ("-12", -12), ("+1", 1), ("0", 0), ("0x1f", 31), ("1.5", 1.5), ("1.0e-05", 1e-05), ("1.0e+20", 1e20), (".5", 0.5),
    ("08", "08"), ("0777", "0777"), ("0o17", "0o17"), ("0b101", "0b101"), ("1_000", "1_000"), ("1,000", "1,000"), ("1e3", "1e3"),
    ("12e45", "12e45"), ("1:30", "1:30"), ("1:59:59", "1:59:59"), ("1:30.5", "1:30.5"), ("1.2.3", "1.2.3"),
    (":sym", "sym"), ("':sym'", ":sym"), ("!ruby/sym notice", "notice"), ("!!str 12", "12"), ("!!int 12", 12), ("!!float 12", 12.0),
    ('!!binary "aGVsbG8="', "hello"), ("2026-11-20 21:48:31.123456789 +00:00", "2026-11-20 21:48:31.123456789 +00:00"),
    ("{1: a, ~: b, yes: c, 0x1f: f, <<: {g: h}}", {"1": "a", "~": "b", "yes": "c", "0x1f": "f", "<<": {"g": "h"}}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), CORE_VALUES)
def test_what_a_3_x_agent_writes_is_read_as_it_means_it(text: str, value: Any) -> None:
    read = plainyaml.loads(f"--- \nk: {text}\n", scalars=CORE)["k"]
    assert (read, type(read)) == (value, type(value))


REFUSED = [
    '!!int ""', "!!bool maybe", "!!int abc", '!!float ""', "!!null x", "!!set {a}", "!!omap [a: 1]", '!!binary "AAEC/w=="',
    "!!python/none ~", "!foo 12", ".inf", "-.Inf", ".NaN", "1.0e+999", "9" * 401, "-" + "9" * 400, "0x" + "f" * 340, "0x" + "f" * 20_000,
    "{[a]: b}", "{{a: b}: c}",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_what_no_3_x_agent_writes_is_one_clear_refusal(text: str) -> None:
    with pytest.raises(BadData, match=r"line: 2, column: \d+\)"):
        plainyaml.loads(f"--- \nk: {text}\n", scalars=CORE)


GIANTS = {
    "base 60": ("1" + ":59" * 200_000, "1" + ":59" * 200_000),
    "base 60 with a fraction": ("1" + ":59" * 200_000 + ".5", "1" + ":59" * 200_000 + ".5"),
    "digits": ("9" * 400_000, None),
    "octal": ("0" + "7" * 400_000, None),
    "hexadecimal": ("0x" + "f" * 400_000, None),
    "binary": ("0b" + "1" * 400_000, None),
    "digits and underscores": ("1" + "_1" * 200_000, None),
    "the hours": ("1" * 400_000 + ":30", None),
}


@pytest.mark.parametrize("kind", GIANTS)
def test_numbers_without_end_cost_no_more_than_their_length(kind: str) -> None:
    text, value = GIANTS[kind]
    if value is None:
        with pytest.raises(BadData, match=r"A number is too long at line 2 column 5"):
            parse_yaml(f"a: b\nk:  {text}\n".encode())
    else:
        assert parse_yaml(f"k: {text}\n".encode()) == {"k": value}


BOMBS = {
    "directives": ("".join(f"%TAG !a{i}! x\n" for i in range(50_000)) + "--- a", "%TAG directives"),
    "directives of a second document": ("a\n...\n" + "".join(f"%TAG !a{i}! x\n" for i in range(50_000)) + "--- b", "%TAG directives"),
    "texts that aliases repeat": ("- &a " + "x" * 100_000 + "\n" + "- *a\n" * 1000, "repeat more than"),
    "nodes that aliases repeat": ("- &a [" + "x, " * 10_000 + "]\n" + "- *a\n" * 200, "more than 1000000 nodes"),
    "nodes": ("[" + "x," * 1_000_001 + "]", "more than 1000000 nodes"),
    "levels": ("[" * 200_000, "levels deep|maximum nesting depth"),  # PyYAML counts, too, since 6.0.4
    "levels of a block": ("- " * 200_000, "levels deep|maximum nesting depth"),
    "an alias inside itself": ("a: &a\n  b: *a", "stands inside what it names"),
}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.slow) if kind == "nodes" else kind for kind in BOMBS])
@pytest.mark.parametrize("scalars", [CORE, plainyaml.PSYCH], ids=["core", "psych"])
def test_a_document_that_costs_more_than_its_size_is_refused(kind: str, scalars: Any) -> None:
    text, problem = BOMBS[kind]
    with pytest.raises(BadData, match=problem):
        plainyaml.loads(text, aliases=True, scalars=scalars)
