"""Translated functions beside Ruby: both run the same function of a module with the same arguments, as a catalog calls it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from environments.ruby import RubyProgram, RubySettings
from language.codegen.codecache import CodeCache
from language.evaluation.compile import begin, open_top_scope
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.log import LogEntry
from shared.errors import PuppetError, Unsupported
from tests.environments.ruby.site import PROGRAM
from tests.support.memory_files import MemoryFiles

FACTS = {"interfaces": "eth0,lo", "ipaddress_eth0": "10.0.0.1", "ipaddress6_eth0": "::1", "memorysize": "3.70 GiB"}
TEXTS = (
    "", "a", "abc", "On", "true", "False", "a,b,,c", "1:2", "physnet1:100:200", "x:7:5", "10:20", "1.2.3.4", "::1", "[::1]", "fe80::1%eth0",
    "host.example.com", "300.1.1.1", "1.2.3.4/24", "inet6:[::1]",
    "localhost:11211", "[x:y]", "::ffff:1.2.3.4", "10.0.0.1:11211", "1:2:3", "1:2:3:4:5:6:7:8",
    "*" + "AF" * 20, "$$ a $$", "x$", "50%", "4789", "5000", "70000", "-1",
    "<SERVICE DEFAULT>", "line one\nline two\n", "é", 'with "quotes" \\ and \t', "0-3,5", "local all all ident",
    "host all all 10.0.0.0/8 md5",
    "host all all 10.0.0.0 255.0.0.0 md5 x=1",
    "name", "b.example.com", "ini_setting", "path", "ssl", "deprecated %{name}", "a: 1",
)  # fmt: skip
KEYS = (
    "L2", "router_ext", "name", "path", "host", "hosts", "port", "username", "password", "transport", "virtual_host", "query", "ssl",
    "dialect", "database", "charset", "extra", "baseurl", "descr", "a", "regex", "section", "type", "action", "operator", "value",
)  # fmt: skip


class Values:
    """Arguments made at random, many of which functions of modules accept."""

    def __init__(self, seed: int, words: tuple[str, ...] = ()) -> None:
        self.chance = random.Random(seed)
        self.words = words

    def text(self) -> str:
        return self.chance.choice(self.words if self.words and self.chance.random() < 0.3 else TEXTS)

    def key(self) -> str:
        return self.chance.choice(self.words if self.words and self.chance.random() < 0.6 else KEYS)

    def value(self, depth: int = 0) -> Any:
        kind = self.chance.random()
        if kind < 0.45 or depth > 3:
            return self.text()
        if kind < 0.55:
            return self.chance.choice((0, 1, 5, -3, 4094, 5672, 2.5, 10**12))
        if kind < 0.65:
            return self.chance.choice((True, False, None))
        if kind < 0.8:
            return [self.value(depth + 1) for _ in range(self.chance.randint(0, 4))]
        return {self.key(): self.value(depth + 1) for _ in range(self.chance.randint(0, 5))}

    def of_type(self, declared: str) -> Any:
        """Return a value for a parameter as a dispatch declares it, now and then another one."""
        if self.chance.random() < 0.1 or "Any" in declared:
            return self.value()
        if declared.startswith("Array"):
            return [self.text() for _ in range(self.chance.randint(0, 4))] if "String" in declared else [self.value(1) for _ in range(3)]
        if declared.startswith("Hash"):
            return {self.key(): self.value(1) for _ in range(self.chance.randint(0, 4))}
        if declared.startswith("Integer"):
            return self.chance.choice((0, 1, 7, 150))
        return self.text()

    def arguments(self, declared: Sequence[str] = ()) -> list[Any]:
        """Return arguments for the parameters of a dispatch, or for none that is known."""
        if declared:
            return [self.of_type(each) for each in declared if each[-1] not in "?*" or self.chance.random() < 0.7]
        return [self.value() for _ in range(self.chance.choice((1, 1, 1, 2, 2, 3, 0)))]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """
    What became of a call.

    Attributes:
        error: the message; '' when it gave a value.
        place: where Ruby raised it, as the hint says.
        doubt: only Ruby can tell.
    """

    value: Any = None
    error: str = ""
    place: str = ""
    logs: tuple[str, ...] = ()
    doubt: bool = False


class Caller:
    """Calls functions in one environment."""

    def __init__(self, environment: DirectoryEnvironment) -> None:
        self.environment = environment
        self.logs: list[LogEntry] = []
        self.loader = Loader(environment, NAMES, CodeCache(), log=lambda level, finding: None, builtins=all_functions())

    def call(self, name: str, arguments: list[Any]) -> CallOutcome:
        """Return what a function gives in a catalog of its own."""
        self.logs.clear()
        node = NodeInput("n.test", facts=FACTS, parameters=FACTS)
        compilation = begin(self.environment, self.loader, node, self.logs.append)
        open_top_scope(compilation)
        try:
            value = compilation.definitions.function(name).call(compilation.top, arguments)
        except Unsupported as error:
            if "needs it for these arguments" in error.message:
                return CallOutcome(doubt=True)
            raise
        except PuppetError as error:
            return CallOutcome(error=_sense(error.message), place=error.hint or "", logs=self._logged())
        return CallOutcome(value=repr(value), logs=self._logged())

    def _logged(self) -> tuple[str, ...]:
        return tuple(f"{entry.level}: {entry.text}" for entry in self.logs)


def _sense(message: str) -> str:
    """Return a message without the value that Ruby shows in it."""
    message = message.partition("\nDid you mean?")[0]
    return re.sub(r"(undefined method `[^']*' for ).*:", r"\1:", message)


@contextmanager
def callers(files: Mapping[str, str], folder: Path | None = None) -> Iterator[tuple[Caller, Caller]]:
    """Yield one who has translated functions only, and one who has Ruby only; of files in memory, or of a folder of modules."""
    there: dict[str, str | bytes] = {f"/env/{path}": text for path, text in files.items()}
    made = []
    for native in (True, False):
        environment = DirectoryEnvironment(
            "production",
            "/env",
            DiskFiles() if folder is not None else MemoryFiles(there),
            modulepath=[str(folder) if folder is not None else "/env/modules"],
            manifest=None,
            settings={"strict": "warning", "strict_variables": False, "native_templates": native},
            ruby=None if native else RubyProgram(RubySettings(PROGRAM)),
        )
        made.append(Caller(environment))
    try:
        yield made[0], made[1]
    finally:
        for caller in made:
            caller.environment.close()
