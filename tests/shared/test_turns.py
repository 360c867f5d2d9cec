from __future__ import annotations

import asyncio

from shared.process.turns import LoopTurns


class Loop:
    """Counts iterations of the event loop, and has a clock that computations move."""

    def __init__(self) -> None:
        self.iteration = 0
        self.time = 0.0

    def count(self) -> None:
        self.iteration += 1
        asyncio.get_running_loop().call_soon(self.count)


async def iterations(requests: int, *, seconds: float, cost: float) -> list[int]:
    """Return the iteration in which each of some requests that come at once computes for `cost` seconds, in the order in which they do."""
    loop, order = Loop(), []
    turns = LoopTurns(seconds, clock=lambda: loop.time)
    loop.count()

    async def compute(number: int) -> tuple[int, int]:
        await turns.take()
        loop.time += cost
        order.append(number)
        return number, loop.iteration

    results = await asyncio.gather(*(compute(number) for number in range(requests)))
    assert order == list(range(requests))
    return [iteration for _, iteration in results]


async def test_no_iteration_computes_longer_than_its_share_and_one_computation() -> None:
    found = await iterations(100, seconds=3, cost=1)
    assert max(found.count(iteration) for iteration in set(found)) == 3
    assert len(set(found)) >= 100 / 3


async def test_what_fits_into_one_iteration_waits_for_none() -> None:
    assert len(set(await iterations(100, seconds=3, cost=0.001))) == 1


async def test_a_computation_longer_than_the_share_gets_its_turn_as_well() -> None:
    assert len(set(await iterations(10, seconds=3, cost=50))) == 10
