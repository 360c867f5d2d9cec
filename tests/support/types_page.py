"""
The page of types and providers, made of their declarations and of what tests say they exercise.

    python -m tests.support.types_page > docs/types.md

`exercised.yaml` names for each provider the tests that run it: `real`, against the thing itself, and `recorded`, by output
that its programs have given elsewhere; `why` says why there is no real one. `test_types_page.py` holds the three together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bunraku.commands.describe import conditions, providers_of
from shared.ral import Param, Platform, Provider, Type
from shared.types import KNOWN, builtin_types
from tests.support.markdown import wrapped

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/types.md"
EXERCISED: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.load(
    (ROOT / "tests/data/providers/exercised.yaml").read_text(), yaml.CSafeLoader
)
MISSING: Mapping[str, Sequence[str]] = {name: sorted(each.elsewhere) for name, each in builtin_types().items() if each.elsewhere}
SOLE = "-"  # in exercised.yaml: the one implementation of a type that has no attribute `provider`

HEAD = """# Types and providers

Written by `make types-page` from the declarations in `shared/types/` and `agent/providers/`; a test fails when it is out of date.
`puppet describe TYPE` says what each attribute means and which values it takes.

A provider's tests are **real** when they run it against the thing itself on a Debian (a file, an account, a repository that the test
makes, a systemd that it boots), mostly beside Debian's own puppet. They are by **recorded** output where Debian does not have the thing.

All types also have the metaparameters: {meta}.

Types and providers that modules have in Ruby are used beside these where a `ruby` is installed; Puppet and Facter are not needed.
[extending.md](extending.md) says what they find, [modules.md](modules.md) which of Debian's modules were applied beside the real
`puppet apply`, with which result. Without a ruby their resources fail, and one error names the types and what to install.
"""
NOT_SUPPORTED = """
## Not supported

A compiler knows these types and checks the manifests that use them; a resource of such a type fails when its turn comes, with
`The type '…' is not supported by this agent yet`, and the rest of the catalog is applied: {names}.

Of Puppet's own providers these are missing, most of them for other systems than Linux. A resource that names one fails when its turn
comes, with `Provider portage is not functional on this host` and the names of those that are here, and the rest of the catalog is applied:

{missing}
"""


def providers(find_program: Callable[[str], str | None]) -> Mapping[str, Sequence[Provider[Any]]]:
    """All providers by type, as they are on a machine where that finds programs."""
    return {name: providers_of(name, Platform(find_program=find_program)) for name in builtin_types()}


def page() -> str:
    """The whole page."""
    plain, equipped = providers(lambda name: None), providers(lambda name: name)
    types = builtin_types()
    metaparameters = [a.name for a in types["notify"].declaration.attributes.values() if a.meta]
    parts = [HEAD.format(meta=_names(metaparameters))]
    for name in sorted(types):
        parts.append(_section(types[name], plain[name], equipped[name]))
    missing = "\n".join(f"- {name}: {_names(found)}" for name, found in MISSING.items())
    parts.append(NOT_SUPPORTED.format(names=_names(sorted(KNOWN)), missing=missing))
    return wrapped("\n".join(parts))


def _section(declared: type[Type], plain: Sequence[Provider[Any]], equipped: Sequence[Provider[Any]]) -> str:
    declaration = declared.declaration
    lines = [f"## {declaration.name}", "", " ".join(declaration.doc.split()), ""]
    for kind, attributes in (("propert", list(declaration.properties)), ("paramet", list(declaration.parameters))):
        if attributes:
            ending = {"propert": ("y", "ies"), "paramet": ("er", "ers")}[kind][len(attributes) > 1]
            lines.append(f"- {len(attributes)} {kind}{ending}: {', '.join(map(_attribute, attributes))}")
    if declaration.features:
        lines.append(f"- features of providers: {_names(declaration.features)}")
    if not plain:
        return "\n".join([*lines, "- no provider: it steers the run, nothing on the system is its own", ""])
    lines += ["", "| provider | fits where there is | default for | features | tests |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_row(one, other) for one, other in zip(plain, equipped, strict=True)), ""])


def _attribute(attribute: Param[Any]) -> str:
    return f"`{attribute.name}`" + (" (namevar)" if attribute.namevar else "")


def _row(provider: Provider[Any], equipped: Provider[Any]) -> str:
    needs = ", ".join(each.needs for each in provider.confine) or "–"
    more = equipped.features - provider.features
    features = _names(sorted(provider.features)) or "–"
    if more:
        features += f"; with its optional programs {_names(sorted(more))}"
    defaults = "; ".join(map(conditions, provider.default_for))
    if provider.not_default_for:
        defaults += f"; not for {'; '.join(map(conditions, provider.not_default_for))}"
    exercised = EXERCISED.get(provider.serves.declaration.name, {}).get(provider.name or SOLE, {})
    return f"| {provider.name or 'the only one'} | {needs} | {defaults or '–'} | {features} | {_tests(exercised)} |"


def _tests(exercised: Mapping[str, Any]) -> str:
    parts = []
    for kind in ("real", "recorded"):
        files = dict.fromkeys(reference.partition("#")[0] for reference in exercised.get(kind, ()))
        if files:
            parts.append(f"{kind}: " + ", ".join(f"[{Path(file).name}](../{file})" for file in files))
    if "why" in exercised:
        parts.append(exercised["why"])
    return "; ".join(parts) or "none"


def _names(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.write(page())
