"""Which releases are chosen together; the answers are those of semantic_puppet 1.0.4 (tests/interop has more of them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bunraku.modules.modulepath.resolution import Candidate, ResolutionProblem, Unsatisfiable, resolve
from bunraku.modules.releases.metadata import ModuleDependency
from language.values.versions import SemVer, SemVerRange
from shared.errors import TooLarge

Universe = Mapping[str, Mapping[str, Mapping[str, str]]]


async def chosen(releases: Universe) -> dict[str, str] | None:
    async def fetch(name: str) -> Sequence[Candidate]:
        return [
            Candidate(name, SemVer.parse(version), tuple(ModuleDependency(*need, SemVerRange.parse(need[1])) for need in needs.items()))
            for version, needs in releases.get(name, {}).items()
        ]

    try:
        candidates = await resolve(ResolutionProblem("m-a", SemVerRange.parse(">= 0.0.0"), fetch, {}), {})
    except Unsatisfiable:
        return None
    return {candidate.name: str(candidate.version) for candidate in candidates}


CASES: dict[str, tuple[Universe, dict[str, str] | None]] = {
    "the newest": ({"m-a": {"1.0.0": {}, "2.0.0": {}, "3.0.0-rc1": {}}}, {"m-a": "2.0.0"}),
    "an older one when the newest lacks something": ({"m-a": {"1.0.0": {}, "2.0.0": {"m-b": "1.x"}}}, {"m-a": "1.0.0"}),
    "one folder, two authors": ({"m-a": {"1.0.0": {"m-b": "1.x", "n-b": "1.x"}}, "m-b": {"1.0.0": {}}, "n-b": {"1.0.0": {}}}, None),
    "a dependency that has to go back": (
        {
            "m-a": {"1.0.0": {"m-b": ">= 1.0.0", "m-c": "1.x"}},
            "m-b": {"1.0.0": {}, "2.0.0": {"m-c": "2.x"}},
            "m-c": {"1.0.0": {}, "2.0.0": {}},
        },
        {"m-a": "1.0.0", "m-b": "1.0.0", "m-c": "1.0.0"},
    ),
    "modules that depend on each other": (
        {"m-a": {"1.0.0": {"m-b": "1.x"}}, "m-b": {"1.0.0": {"m-a": "1.x"}}},
        {"m-a": "1.0.0", "m-b": "1.0.0"},
    ),
    "a solution behind a conflict of others": (
        {
            "m-a": {"2.0.0": {}, "2.1.0": {}, "3.0.0": {"m-f": ">= 1.0.0"}},
            "m-c": {"1.1.0": {"m-a": "< 3.0.0", "m-d": "^1.1"}, "3.0.0": {"m-a": "^1.1", "m-d": "^1.1"}},
            "m-d": {"1.0.0": {}, "1.1.0": {"m-a": ">= 2.0.0-rc1", "m-e": "3.0.0"}, "2.0.0": {"m-a": "< 3.0.0"}},
            "m-e": {"1.1.0": {"m-c": ">= 2.0.0-rc1"}, "2.0.0": {"m-d": "< 3.0.0"}},
            "m-f": {"2.0.0": {"m-e": "1.0.0 || 3.x"}, "2.1.0": {}, "3.0.0": {"m-e": "1.x"}},
        },
        {"m-a": "3.0.0", "m-f": "2.1.0"},
    ),
    "a solution behind a circle": (
        {
            "m-a": {"1.1.0": {"m-d": "3.0.0"}, "3.0.0": {"m-d": "< 3.0.0"}},
            "m-c": {"1.0.0": {"m-a": "< 3.0.0", "m-e": "^1.1", "m-f": "3.0.0"}, "2.1.0": {"m-a": "< 3.0.0", "m-f": "^1.1"}},
            "m-d": {"1.1.0": {"m-c": "^1.1", "m-e": "1.0.0 || 3.x"}, "2.0.0": {}, "2.1.0": {"m-e": "1.x"}},
            "m-e": {"1.0.0": {"m-d": "^1.1"}, "2.1.0": {}},
            "m-f": {"1.0.0": {"m-d": "3.0.0"}},
        },
        {"m-a": "3.0.0", "m-d": "2.0.0"},
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_releases_are_chosen_together(name: str) -> None:
    releases, expected = CASES[name]
    assert await chosen(releases) == expected


async def test_a_forge_that_names_ever_new_dependencies_ends_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bunraku.modules.modulepath.resolution.MAX_MODULES", 20)

    class Endless(dict[str, dict[str, dict[str, str]]]):
        def get(self, name: str, default: object = None) -> dict[str, dict[str, str]]:  # type: ignore[override]
            number = int(name.removeprefix("m-n") or 0) if name != "m-a" else 0
            return {"1.0.0": {f"m-n{number + 1}": "1.x"}}

    with pytest.raises(TooLarge, match="more than"):
        await chosen(Endless())
