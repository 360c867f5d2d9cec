from __future__ import annotations

import re
from typing import Any

import pytest

from agent.run.nodename import with_node_name
from shared.errors import ConfigError, PuppetError
from shared.settings import AgentSettings, Conf, load


def settings(**flags: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": "a.example.com", **flags}, conf=Conf())


def test_a_node_goes_by_its_certificates_name_by_default() -> None:
    assert with_node_name(settings(), {"whoami": "b"}).node_name_value == "a.example.com"


def test_the_fact_names_the_node_and_the_certificate_stays() -> None:
    found = with_node_name(settings(node_name_fact="whoami"), {"whoami": "b"})
    assert (found.node_name_value, found.certname) == ("b", "a.example.com")


@pytest.mark.parametrize("value", [None, "", 7, {"a": "b"}, "../etc/passwd", "UPPER", "a b"])
def test_what_is_no_name_is_refused(value: Any) -> None:
    with pytest.raises(PuppetError):
        with_node_name(settings(node_name_fact="whoami"), {} if value is None else {"whoami": value})


def test_only_one_of_the_two_settings_can_name_it() -> None:
    with pytest.raises(ConfigError, match=re.escape("node_name_fact and node_name_value cannot both be set")):
        settings(node_name_fact="whoami", node_name_value="b")
