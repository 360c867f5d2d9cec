"""The name by which a node is known to its master: that of its certificate, one from the settings, or the value of a fact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import PuppetError
from shared.names import valid_certname
from shared.settings import AgentSettings


def with_node_name(settings: AgentSettings, facts: Mapping[str, Any]) -> AgentSettings:
    """
    Return the settings with the value of the fact `node_name_fact` as `node_name_value`; unchanged without that setting.

    Raises:
        PuppetError: the fact is missing, or its value is not a valid name of a node.
    """
    fact = settings.node_name_fact
    if not fact:
        return settings
    value = facts.get(fact)
    if not isinstance(value, str) or not value:
        problem = "there is no such fact" if value is None else f"it is {value!r}"
        raise PuppetError(f"The fact {fact} does not name this node: {problem}", hint="See the setting node_name_fact.")
    return settings.model_copy(update={"node_name_value": valid_certname(value)})
