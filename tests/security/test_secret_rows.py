"""Rows about Sensitive values: of every type and every attribute, none is in a message, a report or a log, whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.state.logbridge import print_line, record_logging
from agent.state.runlog import RunLog
from agent.state.statefiles import StateFile
from agent.transaction.context import ApplyContext
from agent.transaction.run import apply_catalog
from agent.transaction.summary import ReportHeader, report_of
from shared.errors import PuppetError, ResourceError
from shared.models.catalog import Catalog
from shared.ral import Platform, Provider, Providers, State, Type
from shared.ral.catalog import RalCatalog, resources_of
from shared.ral.secrets import HIDDEN, Secrets
from shared.types import builtin_types
from tests.conformance.runner import answer
from tests.support.pair import Pair

CANARIES = ("kx9w2q", "zq7lmw", "vb8nrt", "7390184625")
VALUES: tuple[Any, ...] = (
    "Kx9w2QZq7LmW",
    "not-Kx9w2Q 'Zq7LmW\" vb8nrt:Kx9w2Q\nZq7LmW",
    "/opt/Kx9w2Q/../Zq7LmW vb8nrt",
    "",
    ["Kx9w2QZq7LmW", "/Vb8nRT/x y"],
    {"k": "Kx9w2QZq7LmW", "Vb8nRT": ["Zq7LmW"]},
    7390184625,
)
TITLE = "/title/of/it"
NEEDED: Mapping[str, Mapping[str, Any]] = {  # what the types cannot do without, so that the value is looked at
    "concat_fragment": {"target": "/t", "content": "x"},
    "exec": {"command": "/bin/true"},
    "file_line": {"path": "/x", "line": "y"},
    "ini_setting": {"path": "/x", "section": "s", "setting": "t", "value": "v"},
    "ini_subsetting": {"path": "/x", "section": "s", "setting": "t", "subsetting": "u", "value": "v"},
    "tidy": {"age": "1d"},
}


def attributes() -> Iterator[tuple[str, str]]:
    """All types with all their attributes; a tag is what logs call a resource by, and no place for a secret."""
    for name, cls in builtin_types().items():
        for attribute in cls.declaration.attributes:
            if attribute != "tag":
                yield name, attribute


def rich(value: Any) -> dict[str, Any]:
    return {"__ptype": "Sensitive", "__pvalue": value}


def wire_forms(type_name: str, attribute: str) -> Iterator[Catalog]:
    """Catalogs in which that attribute is Sensitive: as rich data, inside a value, as masters of 3.x and without rich data say it."""
    for value in VALUES:
        nested = [rich(each) for each in value] if isinstance(value, list) else rich(value)
        for wrapped, secret in ((rich(value), []), (nested, []), (value, [attribute])):
            given = {**NEEDED.get(type_name, {}), attribute: wrapped}
            resource = {"type": type_name.capitalize(), "title": TITLE, "kind": "compilable_type", "parameters": given}
            yield Catalog.from_data({"name": "n", "resources": [{**resource, "sensitive_parameters": secret}], "edges": []})


def assert_hidden(text: str) -> None:
    assert not [canary for canary in CANARIES if canary in text.casefold()], text


@pytest.mark.parametrize("type_name", builtin_types())
def test_SEC_01_no_error_of_a_catalogs_conversion_has_a_sensitive_value(type_name: str) -> None:
    for name, attribute in attributes():
        if name != type_name:
            continue
        for catalog in wire_forms(type_name, attribute):
            try:
                faults = [resource.fault for resource in resources_of(catalog, builtin_types()).order if resource.fault]
            except ResourceError as err:
                faults = [err]
            for err in faults:
                assert_hidden(f"{err} {err.message} {err.hint}")


class Loud(Provider[Type], type=Type):
    """A provider that tells all it knows, also in errors of all kinds."""

    def __init__(self) -> None:
        self.failures = 0
        self.features = frozenset(feature for cls in builtin_types().values() for feature in cls.declaration.features)

    async def retrieve(self, resource: Type) -> State | None:
        for value in resource.given.values():
            logging.getLogger("puppet.command").debug("Executing: 'tool --set %s'", value)
            resource.log("debug", f"Executing: tool --set {value}")
        return {name: "another" for name in resource.given if resource.wanted(name)} | {"ensure": "other"}

    def _fail(self, resource: Type) -> None:
        shown = " ".join(f"{name}={value!r} {value}" for name, value in resource.given.items())
        kinds = [
            ResourceError(f"tool: {shown}", hint=f"see {shown}"),
            OSError(2, "No such file", shown),
            ValueError(shown),
            KeyError(shown),
        ]
        self.failures += 1
        raise kinds[self.failures % len(kinds)]

    async def create(self, resource: Type, state: State | None) -> None:
        self._fail(resource)

    async def destroy(self, resource: Type, state: State | None) -> None:
        self._fail(resource)

    async def set(self, resource: Type, attribute: str, wanted: Any, state: State | None) -> None:
        self._fail(resource)

    async def flush(self, resource: Type, now: State | None) -> None:
        self._fail(resource)


async def applied(resources: RalCatalog, folder: Path, *, noop: bool) -> str:
    """What a run over `resources` says at debug level: to whoever prints, in its report, and in the files it leaves."""
    log = RunLog(level="debug", printers=[print_line])
    providers = Providers(dict.fromkeys(builtin_types(), lambda: [Loud()]), Platform(features=frozenset({"posix", "root"})))
    state = StateFile(folder / "state.yaml")
    with record_logging(log):
        done = await apply_catalog(resources, ApplyContext(log=log, providers=providers, state=state, noop=noop))
    facts = ReportHeader("n", datetime(2026, 11, 22, tzinfo=UTC), "production", "7.23.0")
    report = report_of(facts, log, done)
    return f"{report.logs} {[status.events for status in report.resource_statuses.values()]} {done.error}"


@pytest.mark.slow
@pytest.mark.parametrize("type_name", builtin_types())
async def test_SEC_02_no_line_and_no_event_of_a_run_has_a_sensitive_value(
    type_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "puppet")
    for name, attribute in attributes():
        for number, catalog in enumerate(wire_forms(name, attribute) if name == type_name else ()):
            try:
                resources = resources_of(catalog, builtin_types())
            except PuppetError:
                continue  # see the row before
            assert_hidden(await applied(resources, tmp_path, noop=number % 4 == 3))
    assert_hidden(caplog.text)


@pytest.mark.parametrize("type_name", builtin_types())
@pytest.mark.slow
def test_SEC_03_no_error_and_no_warning_of_a_compile_has_a_sensitive_value(type_name: str) -> None:
    for name, attribute in attributes():
        for value in ("Kx9w2QZq7LmW", "not-Kx9w2Q Zq7LmW", 7390184625) if name == type_name else ():
            for wrapped in (f"Sensitive({value!r})", f"[Sensitive({value!r})]", f"{{ k => Sensitive({value!r}) }}"):
                given = {**{key: repr(text) for key, text in NEEDED.get(name, {}).items()}, attribute: wrapped}
                pairs = ", ".join(f"{key} => {text}" for key, text in given.items())
                compiled = answer({"manifest": f"{name} {{ '{TITLE}': {pairs} }}"}).data
                assert_hidden(f"{compiled.get('error')} {compiled.get('logs')}")


@pytest.mark.slow
async def test_SEC_04_a_command_that_is_refused_is_not_in_the_report_that_the_master_stores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    pair = Pair(tmp_path, manifest="exec { 'e': command => Sensitive('not-Kx9w2Q-qualified') } notify { 'after': }")
    async with pair.mastered():
        ran = await pair.run()
    assert ran.code != 0
    assert "Validation of Exec[e] failed" in caplog.text
    assert_hidden(caplog.text)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and {"reports", "state"} & set(path.parts)]
    assert written
    for path in written:
        assert_hidden(path.read_bytes().decode("utf-8", "replace"))


SECRETS: tuple[tuple[Any, str, str], ...] = (
    ("Kx9w2Q", "tool -p Kx9w2Q bob returned 4: bob exists", "tool -p [redacted] bob returned 4: bob exists"),
    ("Kx9w2Q and more", "bad word 'kx9w2q'", HIDDEN),
    ("directory", "No such file or directory", HIDDEN),
    ("file", "No such profile", "No such profile"),
    (7, "returned 17", "returned 17"),
    (True, "true is not false", "true is not false"),
    ("a line\n" * 20 + "key=Kx9w2Q", "line 21 is wrong", "line 21 is wrong"),
    ("a line\n" * 20 + "key=Kx9w2Q", "what is key=Kx9w2Q?", HIDDEN),
    (b"\xffKx9w2Q", "bad bytes Kx9w2Q", HIDDEN),
)


@pytest.mark.parametrize(("value", "message", "shown"), SECRETS)
def test_a_failures_text_is_masked_or_left_out_as_a_whole(value: Any, message: str, shown: str) -> None:
    secrets = Secrets()
    secrets.add(value)
    assert secrets.hide(message) == shown


def test_a_line_of_a_run_keeps_what_could_be_any_word() -> None:
    secrets = Secrets()
    secrets.add(["directory", "Kx9w2Q"])
    assert secrets.mask("No such directory: Kx9w2Q, xKx9w2Qx") == "No such directory: [redacted], xKx9w2Qx"
