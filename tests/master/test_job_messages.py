"""What a compiling process reads of a job is what the master sent, though facts are sent once only."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from master.pools import frames
from master.pools.compile_worker import with_parameters
from master.pools.jobs import CompileJob, message_of
from shared.models.facts import Facts
from shared.models.node import Node

NAMES = st.sampled_from(["os", "role", "trusted", "_internal", "a", "b"])
VALUES = st.dictionaries(NAMES, st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2)))


def sent(job: CompileJob) -> tuple[bytes, dict[str, Any]]:
    """Return the frame of a job, and what a process reads of it."""
    frame = frames.pack(message_of(job))
    read = frames.read(io.BytesIO(frame))
    assert read is not None
    return frame, with_parameters(read)


def job_of(node: Node, facts: Facts) -> CompileJob:
    merged = node.merged({name: value for name, value in facts.values.items() if name != "trusted"}, "production")
    return CompileJob.of("n", merged, "production", facts, {}, {}, code_id=None)


@given(VALUES, VALUES)
def test_facts_and_parameters_arrive_as_they_are_and_in_their_order(facts: dict[str, Any], own: dict[str, Any]) -> None:
    job = job_of(Node(name="n", parameters=own), Facts(name="n", values=facts))
    _, read = sent(job)
    assert list(read["facts"].items()) == list(job.facts.items())
    assert list(read["parameters"].items()) == list(job.parameters.items())


@given(VALUES, VALUES)
def test_parameters_that_are_not_made_of_the_facts_arrive_as_well(facts: dict[str, Any], parameters: dict[str, Any]) -> None:
    _, read = sent(CompileJob("n", "production", facts=facts, parameters=parameters))
    assert (list(read["facts"].items()), list(read["parameters"].items())) == (list(facts.items()), list(parameters.items()))


def test_facts_are_sent_once() -> None:
    facts = Facts(name="n", values={"large": "x" * 1000, "role": "fact"})
    frame, read = sent(job_of(Node(name="n", parameters={"role": "own"}), facts))
    assert frame.count(b"x" * 1000) == 1
    assert (read["facts"]["role"], read["parameters"]["role"], len(read["parameters"]["large"])) == ("fact", "own", 1000)
