"""
The releases to install together: the newest that satisfy each other and the installed modules.

The search is resolvelib's. As in Puppet, names are decided in alphabetical order, installed ones are preferred to newer ones, stable
releases go before prereleases, and no two modules may have one folder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers import Resolution, ResolutionImpossible, ResolutionTooDeep

from language.values.versions import SemVer, SemVerRange
from shared.errors import PuppetError, TooLarge

from ..releases.metadata import ModuleDependency, folder_of

MAX_ROUNDS: Final = 20_000  # decisions of one search
MAX_MODULES: Final = 250  # of which releases are asked for


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A release that may be chosen.

    Attributes:
        priority: higher goes before newer.
        origin: where it comes from.
    """

    name: str
    version: SemVer
    dependencies: tuple[ModuleDependency, ...] = ()
    priority: int = 0
    origin: Any = field(default=None, compare=False, hash=False)

    @property
    def order(self) -> tuple[Any, ...]:
        return self.priority, self.version.order


@dataclass(frozen=True, slots=True)
class Constraint:
    """
    A range that a chosen module must match.

    Attributes:
        module: the installed module that requires it; '' for one that only keeps the major version.
    """

    versions: SemVerRange
    text: str
    module: str = ""


@dataclass(frozen=True, slots=True)
class _Slot:
    """The folder that modules are installed in, as a thing that only one module can have."""

    folder: str
    owner: str


class Unsatisfiable(PuppetError):
    """No releases satisfy each other; `name` is the first module without a matching release, '' when that is unknown."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Could not find satisfying releases of {name}" if name else "Could not find satisfying releases")
        self.name = name


class _Unknown(Exception):
    """Releases of these modules have to be fetched first."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(names)


Fetch = Callable[[str], Awaitable[Sequence[Candidate]]]


class _Resolution(Resolution[Any, Any, str]):
    """A search that goes back one decision at a time: resolvelib's own jumps over solutions where modules depend on each other."""

    def _backjump(self, _causes: Any) -> bool:
        while len(self._states) >= 3:
            del self._states[-1]
            broken = self._states.pop()
            name, candidate = broken.mapping.popitem()
            known = [(other, list(criterion.incompatibilities)) for other, criterion in broken.criteria.items()]
            self._push_new_state()
            if self._patch_criteria([*known, (name, [candidate])]):
                return True
        return False


@dataclass(frozen=True, slots=True)
class ResolutionProblem:
    """
    The input of a resolution.

    Attributes:
        name, versions: the requested module.
        fetch: returns the candidates of a module.
        constraints: those of other modules, by name.
        one_a_folder: no two modules may have the same folder.
    """

    name: str
    versions: SemVerRange
    fetch: Fetch
    constraints: Mapping[str, Sequence[Constraint]]
    one_a_folder: bool = True


async def resolve(problem: ResolutionProblem, known: dict[str, Sequence[Candidate]]) -> list[Candidate]:
    """
    Return the releases to install, the requested one first.

    Args:
        known: candidates by name; fetched ones are added.
    Raises:
        Unsatisfiable: there is no solution. TooLarge: the search was given up.
    """
    while True:
        provider = _Provider(problem, known)
        try:
            # Not by Resolver: how that finds out what is needed never ends where modules that are not depend on each other.
            resolution = _Resolution(provider, BaseReporter())
            mapping = resolution.resolve([ModuleDependency(problem.name, "", problem.versions)], MAX_ROUNDS).mapping
        except _Unknown as unknown:
            if len(known) + len(unknown.names) > MAX_MODULES:
                raise TooLarge(f"The dependencies of {problem.name} are more than {MAX_MODULES} modules") from None
            for name in unknown.names:
                known[name] = await problem.fetch(name)
        except ResolutionTooDeep as err:
            raise TooLarge(f"The dependencies of {problem.name} take more than {MAX_ROUNDS} steps to resolve") from err
        except ResolutionImpossible as err:
            raise Unsatisfiable(provider.unsatisfied) from err
        else:
            return _needed(mapping, problem.name)


def _needed(mapping: Mapping[str, Any], name: str) -> list[Candidate]:
    """Return the candidates that a module depends on, it first; the search leaves some behind that others needed."""
    needed, pending = {name}, [name]
    while pending:
        for dependency in mapping[pending.pop()].dependencies:
            if dependency.name not in needed:
                needed.add(dependency.name)
                pending.append(dependency.name)
    return [mapping[name], *(mapping[other] for other in sorted(needed - {name}))]


class _Provider(AbstractProvider[Any, Any, str]):
    """The interface for resolvelib; a requirement is a ModuleDependency or a _Slot, a candidate a Candidate or a _Slot."""

    def __init__(self, problem: ResolutionProblem, known: Mapping[str, Sequence[Candidate]]) -> None:
        self._problem = problem
        self._known = known
        self._visited: dict[str, bool] = {}  # modules with releases in the ranges: whether one of them could be chosen

    @property
    def unsatisfied(self) -> str:
        return next((name for name, satisfied in self._visited.items() if not satisfied), "")

    def identify(self, requirement_or_candidate: Any) -> str:
        if isinstance(requirement_or_candidate, _Slot):
            return f"/{requirement_or_candidate.folder}"  # no module is called so
        return str(requirement_or_candidate.name)

    def get_preference(self, identifier: str, *_: Any, **_others: Any) -> str:
        return identifier

    def find_matches(
        self, identifier: str, requirements: Mapping[str, Iterator[Any]], incompatibilities: Mapping[str, Iterator[Any]]
    ) -> Iterable[Any]:
        wanted = list(requirements[identifier])
        excluded = list(incompatibilities[identifier])
        if identifier.startswith("/"):
            return [] if len(set(wanted)) > 1 or wanted[0] in excluded else wanted[:1]
        if identifier not in self._known:
            raise _Unknown((identifier,))
        in_range = [
            candidate for candidate in self._known[identifier] if all(candidate.version in requirement.versions for requirement in wanted)
        ]
        preferred = self._preferred(in_range)
        constraints = self._problem.constraints.get(identifier, ())
        fitting = [
            candidate
            for candidate in preferred
            if all(candidate.version in constraint.versions for constraint in constraints) and self._has_room(candidate, requirements)
        ]
        if preferred:
            self._visited[identifier] = self._visited.get(identifier, False) or bool(fitting)
        return [candidate for candidate in sorted(fitting, key=lambda each: each.order, reverse=True) if candidate not in excluded]

    def is_satisfied_by(self, requirement: Any, candidate: Any) -> bool:
        if isinstance(requirement, _Slot):
            return bool(requirement == candidate)
        return candidate.version in requirement.versions

    def get_dependencies(self, candidate: Any) -> Iterable[Any]:
        if isinstance(candidate, _Slot):
            return ()
        unknown = [dependency.name for dependency in candidate.dependencies if dependency.name not in self._known]
        if unknown:
            raise _Unknown(dict.fromkeys(unknown))
        return (*self._slots(candidate), *sorted(candidate.dependencies, key=lambda dependency: dependency.name))

    def _slots(self, candidate: Candidate) -> list[_Slot]:
        """Return the folders that a candidate takes, with its dependencies."""
        if not self._problem.one_a_folder:
            return []
        names = dict.fromkeys((candidate.name, *(dependency.name for dependency in candidate.dependencies)))
        return [_Slot(folder_of(name), name) for name in names]

    def _has_room(self, candidate: Candidate, requirements: Mapping[str, Iterator[Any]]) -> bool:
        """Return whether nothing that is chosen has a folder that a candidate takes."""
        return all(taken == slot for slot in self._slots(candidate) for taken in requirements.get(f"/{slot.folder}", ()))

    def _preferred(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return the stable candidates, or all if the dependencies of none of these can be met."""
        stable = [candidate for candidate in candidates if candidate.version.is_stable]
        if not stable or len(stable) == len(candidates):
            return candidates
        unknown = {dependency.name for candidate in stable for dependency in candidate.dependencies} - self._known.keys()
        if unknown:
            raise _Unknown(sorted(unknown))
        return stable if any(map(self._has_dependencies, stable)) else candidates

    def _has_dependencies(self, candidate: Candidate) -> bool:
        return all(
            any(release.version in dependency.versions for release in self._known[dependency.name]) for dependency in candidate.dependencies
        )
