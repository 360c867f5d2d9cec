"""The node of a catalog or template: from its terminus, with its facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from environments.directories import Environment
from shared.data import plainjson, plainyaml
from shared.errors import BadData, NotFound, PuppetError
from shared.indirector import Request
from shared.names import valid_certname
from shared.settings import AgentSettings, MasterSettings


async def facts_of(
    name: str, agent: AgentSettings, master: MasterSettings, environment: Environment, *, required: bool = True
) -> dict[str, Any]:
    """
    Return the facts of a node: those it sent to this master; this machine's own for itself.

    Args:
        required: a node that has never been here is an error: with another's facts it would get another's data. Else it has none.

    Raises:
        NotFound: nothing is known of the node. ConfigError: the setting facts_terminus names none. BadName: no node can be called so.
    """
    from agent.facts.builtin.host import Host
    from agent.run.factsources import fact_sources

    from .compilation import facts_for

    valid_certname(name)
    if name not in (master.certname, agent.node_name_value):
        facts = await _stored(name, master)
        if facts is not None:
            return facts
        if not required:
            return {}
        raise NotFound(
            f"No facts available for target node: {name}",
            hint="It has not sent any to this master, or this is not the master. Give them with --facts FILE (JSON or YAML).",
        )
    return await facts_for(Host(), fact_sources(agent), environment, certname=name, noop=agent.noop)


async def _stored(name: str, master: MasterSettings) -> dict[str, Any] | None:
    from master.bindings import facts_factories, facts_place
    from master.termini.registry import built_in_terminus

    terminus = built_in_terminus("facts", facts_factories(master), facts_place(master))
    facts = await terminus.find(Request(name, master.environment))
    return None if facts is None else dict(facts.values)


def given_facts(path: Path) -> Mapping[str, Any]:
    """
    Return the facts in a JSON or YAML file: an object of them, or the output of `puppet facts find`.

    Raises:
        PuppetError: it cannot be read, or has another form.
    """
    try:
        data = path.read_bytes()
    except OSError as err:
        raise PuppetError(f"Could not read the facts in {path}: {err.strerror}") from err
    try:
        facts = plainjson.loads(data) if path.suffix == ".json" else plainyaml.loads(data)
    except BadData as err:
        raise BadData(f"The facts in {path} cannot be read: {err.message}", hint=err.hint) from err
    if isinstance(facts, dict) and isinstance(facts.get("values"), dict) and "name" in facts:
        facts = facts["values"]
    if not isinstance(facts, dict):
        raise BadData(f"Incorrect formatted data in {path} given via the --facts flag", hint="It has to be a hash from names to values.")
    return facts
