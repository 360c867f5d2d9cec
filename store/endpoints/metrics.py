"""The numbers of a store: counted rates and times, as Jolokia's interface of metrics and Prometheus read them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from httpd.metrics import Counter, Histogram, exposition, family_lines

_TICK = 5.0  # seconds between two updates of the averages
_WINDOWS = {"OneMinuteRate": 60.0, "FiveMinuteRate": 300.0, "FifteenMinuteRate": 900.0}
_SAMPLES = 512  # durations that percentiles are computed from
_PERCENTILES = {
    "50thPercentile": 0.5,
    "75thPercentile": 0.75,
    "95thPercentile": 0.95,
    "98thPercentile": 0.98,
    "99thPercentile": 0.99,
    "999thPercentile": 0.999,
}
POPULATION_AGE = 30.0  # seconds for which the number of nodes and resources is not counted again
_DOMAIN = "puppetlabs.puppetdb"


@dataclass(slots=True)
class Meter:
    """
    Counts events and their rates a second: since the start, and as exponentially weighted averages.

    Args:
        clock: Returns seconds that only grow.
    """

    clock: Callable[[], float] = time.monotonic
    count: int = 0
    _started: float = field(init=False)
    _last_tick: float = field(init=False)
    _last_count: int = 0
    _rates: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_WINDOWS, 0.0))

    def __post_init__(self) -> None:
        self._started = self._last_tick = self.clock()

    def advance_to(self, count: int) -> None:
        """Set the number of events since the start, as somebody else has counted them."""
        self._update()
        self.count = count

    def mark(self) -> None:
        """Count one event."""
        self._update()
        self.count += 1

    def _update(self) -> None:
        """Update the averages when their time has come; the events since the last time are spread over it."""
        elapsed = self.clock() - self._last_tick
        if elapsed < _TICK:
            return
        rate = (self.count - self._last_count) / elapsed
        for name, window in _WINDOWS.items():
            weight = 1 - math.exp(-elapsed / window)
            self._rates[name] += weight * (rate - self._rates[name])
        self._last_tick, self._last_count = self._last_tick + elapsed, self.count

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the metric by name."""
        self._update()
        elapsed = self.clock() - self._started
        return {"Count": self.count, "MeanRate": self.count / elapsed if elapsed > 0 else 0.0, **self._rates, "RateUnit": "events/second"}


@dataclass(slots=True)
class Timer:
    """Counts events as a meter does, and stores the duration of the latest ones."""

    clock: Callable[[], float] = time.monotonic
    meter: Meter = field(init=False)
    _samples: deque[float] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def __post_init__(self) -> None:
        self.meter = Meter(self.clock)

    def add(self, seconds: float) -> None:
        """Count an event with its duration."""
        self.meter.mark()
        self._samples.append(seconds)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the metric by name; times in milliseconds."""
        values = sorted(sample * 1000 for sample in self._samples) or [0.0]
        mean = sum(values) / len(values)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        spread = {"Min": values[0], "Max": values[-1], "Mean": mean, "StdDev": deviation}
        last = len(values) - 1
        percentiles = {name: values[round(share * last)] for name, share in _PERCENTILES.items()}
        return {**self.meter.attributes(), **spread, **percentiles, "DurationUnit": "milliseconds"}


class StoreMetrics:
    """
    The metrics of one store.

    Args:
        population: Returns the numbers of nodes and resources by name; asked seldom, as it counts rows.
        commands: Returns the counts of the queue by name, and its depth.
        clock: Returns seconds that only grow.
    """

    def __init__(
        self,
        population: Callable[[], Awaitable[Mapping[str, float]]],
        commands: Callable[[], Mapping[str, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._population = population
        self._commands = commands
        self._clock = clock
        self._requests: dict[str, Timer] = {}
        self._answers = Counter("puppet_store_requests_total", "Requests answered.", "endpoint", "method", "status")
        self._seconds = Histogram("puppet_store_request_seconds", "Seconds until answers were written.", (), "endpoint")
        self._meters: dict[str, Meter] = {}
        self._counted: Mapping[str, float] = {}
        self._counted_at = -math.inf

    def count_answer(self, endpoint: str, method: str, status: int, seconds: float) -> None:
        """Count a request that has been answered; `endpoint` is one of a bounded number of names."""
        self._answers.add(endpoint, method if method in ("GET", "POST") else "other", str(status))
        if endpoint not in self._requests:
            self._requests[endpoint] = Timer(self._clock)
        self._requests[endpoint].add(seconds)
        self._seconds.observe(seconds, endpoint)

    async def population(self) -> Mapping[str, float]:
        """Return the numbers of nodes and resources, which may be some seconds old."""
        now = self._clock()
        if now - self._counted_at > POPULATION_AGE:
            self._counted_at = now  # others that ask until the answer is there get the old numbers
            self._counted = await self._population()
        return self._counted

    async def beans(self) -> dict[str, dict[str, Any]]:
        """Return the attributes of each metric by the name that Jolokia gives it."""
        beans: dict[str, dict[str, Any]] = {}
        for name, value in (await self.population()).items():
            beans[f"{_DOMAIN}.population:name={name}"] = {"Value": value}
        for name, count in self._commands().items():
            if name == "depth":
                beans[f"{_DOMAIN}.mq:name=global.depth"] = {"Count": count}
                continue
            meter = self._meters.setdefault(name, Meter(self._clock))
            meter.advance_to(count)
            beans[f"{_DOMAIN}.mq:name=global.{name}"] = meter.attributes()
        for endpoint, timer in self._requests.items():
            beans[f"{_DOMAIN}.http:name={endpoint}.service-time"] = timer.attributes()
        return beans

    async def exposition(self) -> str:
        """Return all metrics in the text form of Prometheus."""
        lines: list[str] = []
        for name, value in (await self.population()).items():
            lines += family_lines(f"puppet_store_{name.replace('-', '_')}", "gauge", f"What PuppetDB counts as {name}.", (), [((), value)])
        commands = dict(self._commands())
        lines += family_lines("puppet_store_commands_waiting", "gauge", "Commands in the queue.", (), [((), commands.pop("depth", 0))])
        results = [((name,), count) for name, count in commands.items()]
        lines += family_lines("puppet_store_commands_total", "counter", "Commands, by result.", ("result",), results)
        return exposition([*lines, *self._answers.lines(), *self._seconds.lines()])
