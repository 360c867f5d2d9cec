"""Thousands of made-up scalars mean to us what they mean to the psych of the Ruby that is installed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import Any

import pytest

from environments.hiera.data.files import parse_yaml
from shared.errors import BadData

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not installed")]

CHARACTERS = "0123456789" * 2 + "+-._,:eExbofnatyslu~ TZ"
RUBY = r"""
require 'yaml'; require 'json'
STDIN.each_line do |line|
  begin
    value = YAML.safe_load("k: " + JSON.parse(line)[0], permitted_classes: [Symbol], aliases: true)["k"]
    value = ["Float", value.to_s.sub("Infinity", "inf")] if value.is_a?(Float)
    value = ["Symbol", value.to_s] if value.is_a?(Symbol)
    puts JSON.generate([value])
  rescue Exception
    puts '["error"]'
  end
end
"""


def made_up(count: int) -> list[str]:
    chance = random.Random(20261122)
    texts = {"".join(chance.choice(CHARACTERS) for _ in range(chance.randint(1, 12))).strip() for _ in range(count)}
    return sorted(text for text in texts if text)


def ours(text: str) -> Any:
    try:
        value = parse_yaml(f"k: {text}".encode())["k"]
    except BadData:
        return "error"
    if isinstance(value, float):
        return ["Float", value]
    return ["Symbol", str(value)] if isinstance(value, str) and type(value) is not str else value


@pytest.mark.smoke
def test_scalars_of_all_shapes_are_read_as_psych_reads_them() -> None:
    texts = made_up(20_000)
    lines = "".join(json.dumps([text]) + "\n" for text in texts)
    done = subprocess.run(["ruby", "-e", RUBY], input=lines, capture_output=True, text=True, timeout=120, check=True)
    differ = []
    for text, line in zip(texts, done.stdout.splitlines(), strict=True):
        theirs, mine = json.loads(line)[0], ours(text)
        if isinstance(theirs, list) and theirs[0] == "Float":
            theirs = ["Float", float(theirs[1])]
        if (theirs, type(theirs)) != (mine, type(mine)) and "nan" not in text.lower():
            differ.append((text, theirs, mine))
    assert differ == []
