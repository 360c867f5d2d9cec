from __future__ import annotations

import re

import pytest

from shared.types import builtin_types
from tests.support.command_line import Puppet


def sections(text: str) -> dict[str, str]:
    """What stands below each underlined title."""
    parts = re.split(r"^(\S.*)\n[-=]+\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_all_types_are_listed_with_what_they_are_for(puppet: Puppet) -> None:
    said = puppet("describe", "--list")
    title, *lines = said.out.splitlines()
    assert title == "These are the types known to puppet:"
    assert [line.split()[0] for line in lines] == sorted(builtin_types())
    assert all(re.fullmatch(r"\w+ +- \S.+", line) and len(line) < 80 for line in lines)


@pytest.mark.parametrize("name", sorted(builtin_types()))
def test_every_attribute_of_a_type_is_described(name: str, puppet: Puppet) -> None:
    said = puppet("describe", "--meta", name)
    found = sections(said.out)
    assert said.code == 0
    listed = re.findall(r"^- \*\*(\w+)\*\*\n    \S", found["Parameters"] + found["Meta Parameters"], re.MULTILINE)
    assert set(builtin_types()[name].declaration.attributes) - {"provider"} == set(listed)


def test_short_prints_names_only(puppet: Puppet) -> None:
    found = sections(puppet("describe", "-s", "mailalias").out)
    assert set(found) == {"mailalias", "Parameters", "Providers"}
    assert found["Parameters"].split() == ["ensure,", "file,", "name,", "recipient,", "target"]
    assert found["Providers"].split() == ["aliases"]


def test_providers_are_told_with_what_they_need(puppet: Puppet) -> None:
    found = sections(puppet("describe", "service", "--providers").out)["Providers"]
    systemd = " ".join(found.partition("- **systemd**")[2].partition("- **upstart**")[0].split())
    assert systemd.startswith("Manages units; `.service` may be left out of a name. * Needs: systemd as process 1, program systemctl.")
    assert "os.family redhat and os.release.major 7, 8, 9, 10" in systemd
    assert systemd.endswith("* Supported features: `enableable`, `maskable`, `refreshable`.")


def test_values_are_told(puppet: Puppet) -> None:
    found = " ".join(sections(puppet("describe", "service").out)["Parameters"].split())
    assert "- **ensure** Whether it runs. Valid values are `stopped` (also called `false`), `running` (also called `true`)." in found


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nosuch"], "Unknown type nosuch"),
        (["nagios_host"], "The type 'nagios_host' is not supported"),
        (["file", "--bad"], "invalid option: --bad"),
    ],
)
def test_what_cannot_be_described_is_said(words: list[str], error: str, puppet: Puppet) -> None:
    said = puppet("describe", *words)
    assert (said.code, said.out) == (1, "")
    assert error in said.err
