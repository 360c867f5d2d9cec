"""What a command declares of itself, and its help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from shared.errors import ConfigError
from shared.process.cli import CommandOptions, flag, maybe_flag, text
from shared.process.command import CommandSpec
from shared.settings import AgentSettings


@dataclass(frozen=True, slots=True)
class LampOptions(CommandOptions):
    """One option of each kind that help shows differently."""

    warm: bool = flag("white light", "-w", default=True, negatable=True)
    colour: str = text("COLOUR", f"the colour: {', '.join(['red', 'green', 'blue'] * 8)}", "-c")
    lit: bool | None = maybe_flag("now")
    old: bool = flag(None)

    def check_options(self) -> None:
        if self.colour == "black":
            raise ConfigError("There is no black light")


@CommandSpec(
    "lamps",
    LampOptions,
    (AgentSettings,),
    actions={"dim NAME [PERCENT]": "dim a lamp", "list": "list all"},
    setting_docs={"--environment NAME-OF-THE-ENVIRONMENT-OF-ALL-LAMPS": "where they are"},
    text="""Dims
    lamps.

      puppet lamps
        dim it""",
    notes="Exit codes: 0",
    help_if_bare=True,
).main
def lamps(options: LampOptions, flags: dict[str, Any]) -> int:
    """Return the number of options."""
    return len(options.arguments) + len(flags)


HELP = """\
Usage: puppet lamps dim NAME [PERCENT]
       puppet lamps list

Dims lamps.

  puppet lamps
    dim it

Actions:
  dim   dim a lamp
  list  list all

Options:
  --no-warm                   white light
  --colour, -c COLOUR         the colour: red, green, blue, red, green, blue, red, green, blue, red,
                              green, blue, red, green, blue, red, green, blue, red, green, blue,
                              red, green, blue
  --lit, --no-lit             now
  --environment NAME-OF-THE-ENVIRONMENT-OF-ALL-LAMPS
                              where they are
  --verbose, -v; --debug, -d  say more
  --help, -h                  print this help

Every setting of puppet.conf is an option too: 'puppet config print' lists them.

Exit codes: 0
"""


@pytest.mark.parametrize("words", [[], ["--help"], ["list", "-h", "--colour=black"]])
def test_the_help_is_made_of_the_declaration(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert lamps(words) == 0
    assert capsys.readouterr().out == HELP


def test_the_options_are_checked_before_the_command_runs() -> None:
    assert lamps(["list", "--server", "a"]) == 2
    with pytest.raises(ConfigError, match="no black light"):
        lamps(["list", "-c", "black"])


def test_a_shell_completes_all_spellings_of_what_the_help_shows() -> None:
    options = {each.spellings: each.takes_value for each in lamps.completed_options()}
    assert options == {
        ("--warm", "-w", "--no-warm"): False,
        ("--colour", "-c"): True,
        ("--lit", "--no-lit"): False,
        ("--help", "-h"): False,
        ("-v",): False,
        ("-d",): False,
    }
