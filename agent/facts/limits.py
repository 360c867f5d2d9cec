"""Limits on the number, the names and the size of facts that a database of facts can take; what exceeds them is sent with a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared.names import quoted_for_log
from shared.settings import AgentSettings

_FIXED, _PER_LEVEL = 8, 2  # bytes that a path takes in PostgreSQL's index beside its names


@dataclass(frozen=True, slots=True)
class SoftLimits:
    """Bytes of a name and of a value, numbers of facts and of top-level facts, bytes of the whole payload. 0: no limit."""

    name: int = 2560
    value: int = 4096
    top: int = 512
    total: int = 2048
    payload: int = 16 * 2**20

    @classmethod
    def of(cls, settings: AgentSettings) -> SoftLimits:
        return cls(
            settings.fact_name_length_soft_limit,
            settings.fact_value_length_soft_limit,
            settings.top_level_facts_soft_limit,
            settings.number_of_facts_soft_limit,
            settings.payload_soft_limit,
        )

    def excesses(self, facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield a sentence for each limit that the facts exceed."""
        if 0 < self.top < len(facts):
            yield f"The current number of top level facts: {len(facts)} exceeds the top facts limit: {self.top}"
        total = 0
        pending: list[tuple[tuple[str, ...], Any]] = [((), facts)]
        while pending:
            path, value = pending.pop()
            if isinstance(value, Mapping):
                total += len(value)
                pending += reversed([((*path, str(key)), item) for key, item in value.items()])
            elif isinstance(value, list):
                pending += reversed([((*path, str(index)), item) for index, item in enumerate(value)])
            else:
                yield from self._of_one(path, value)
        if 0 < self.total < total:
            yield f"The current total number of facts: {total} exceeds the number of facts limit: {self.total}"

    def _of_one(self, path: tuple[str, ...], value: Any) -> Iterator[str]:
        name = ".".join(path)
        length = sum(len(part.encode("utf-8", "surrogatepass")) for part in path)
        if 0 < self.name < length + _FIXED + _PER_LEVEL * len(path):
            yield f"Fact {quoted_for_log(name)} with length: '{length}' exceeds the length limit: {self.name}"
        length = len(_text(value).encode("utf-8", "surrogatepass"))
        if 0 < self.value < length:
            yield f"Fact value of {quoted_for_log(name)} with the value length: '{length}' exceeds the value length limit: {self.value}"

    def of_payload(self, size: int) -> Iterator[str]:
        """Yield a sentence when the payload of all facts exceeds its limit."""
        if 0 < self.payload < size:
            yield f"Payload with the current size of: '{size}' exceeds the payload size limit: {self.payload}"


def _text(value: Any) -> str:
    """Return a value in Ruby's form; only its length is used."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
