"""
How a master follows the rows about code: it gives signs of life, has versions made, answers for them, and says when it is behind.

Looking and making are two tasks: a repository that hangs must not keep a master from saying that it lives and what it has.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection

from shared.errors import PuppetError, Unavailable
from shared.process.supervision import wait_for_event
from shared.state.database import StateAway, StateDatabase

from . import rows
from .archive import VersionArchive
from .knowledge import CodeKnowledge
from .rows import Snapshot

log = logging.getLogger("puppet.deploy")

LATEST = 160.0  # seconds until another attempt to make what could not be made


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """Why a version of an environment could not be made here; '' for the version: why none could, or why it could not be linked."""

    environment: str
    version: str
    problem: str


Follow = Callable[[], Awaitable[list[CodeProblem]]]
"""Makes and links what the rows say, as `puppet deploy --follow` does; returns what could not be made. PuppetError: nothing could."""


@dataclass(frozen=True, slots=True)
class FollowerOptions:
    """
    The options of a follower; for `keep` and `keep_time` see `rows.settle`.

    Attributes:
        timeout: Seconds that a deployment waits for masters.
        pause: Seconds until a second attempt to make what could not be made.
    """

    certname: str
    timeout: float
    keep: int
    keep_time: float
    pause: float = 10.0


@dataclass(eq=False, repr=False)
class CodeFollower:
    """
    Keeps a master's knowledge of the rows, and its folders.

    Args:
        code: What the master's requests use of this.
        on_problem: Called with the reason why this master cannot answer with the current versions, '' when it can.
    """

    database: StateDatabase
    code: CodeKnowledge
    options: FollowerOptions
    follow: Follow
    on_problem: Callable[[str], None] = lambda problem: None
    clock: Callable[[], float] = time.monotonic
    problem: str = field(default="", init=False)
    _failures: Mapping[tuple[str, str], str] = field(default_factory=dict, init=False)  # by environment and version
    _answered: dict[int, str] = field(default_factory=dict, init=False)
    _work: frozenset[tuple[str, str]] = field(default=frozenset(), init=False)  # what has to be made or linked here
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _has_other_work: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _looked: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_away: bool = field(default=False, init=False)

    async def hear(self) -> None:
        """Have the rows looked at now, because they have changed."""
        self._changed.set()

    async def condition(self) -> str:
        """Return why this master cannot answer with the current versions, '' when it can, once it has looked."""
        await self._looked.wait()
        return self.problem

    async def keep_looking(self) -> None:
        """Look at the rows every few seconds, and when they have changed; when cancelled, say that this master has gone."""
        looking = None
        try:
            while True:
                self._changed.clear()
                looking = asyncio.create_task(self.look_if_possible())
                await asyncio.shield(looking)
                await wait_for_event(self._changed, rows.BEAT)
        finally:
            if looking is not None:
                await asyncio.wait([looking])  # no sign of life may come after the farewell
            await self._leave()

    async def look_if_possible(self) -> None:
        """Look at the rows; while the database is away what is known stays in force."""
        try:
            await self.look()
            self._is_away = False
        except StateAway as err:
            if not self._is_away:
                log.warning("Going on with the versions of the code that are known: %s", err)
            self._is_away = True
        self._looked.set()

    async def keep_following(self) -> None:
        """Have made what is lacking, forever; what fails is tried again after longer and longer pauses, or when there is other work."""
        pause = self.options.pause
        while True:
            while not self._work:
                await self._has_other_work.wait()
                self._has_other_work.clear()
            try:
                problems = await self.follow()
            except PuppetError as err:
                problems = [CodeProblem("", "", str(err))]
            self._note_failures(problems)
            self._changed.set()
            await wait_for_event(self._has_other_work, pause)
            pause = min(pause * 2, LATEST) if problems else self.options.pause
            self._has_other_work.clear()

    async def look(self) -> None:
        """Give a sign of life, look at the rows, answer what can be answered, and end deployments that all have answered."""
        asked_at, certname = self.clock(), self.options.certname
        # In two transactions: others have to know that this master lives before it relies on what it reads.
        await self.database.run(lambda connection: rows.appear(connection, certname, self.problem))
        snapshot = await self.database.run(lambda connection: rows.read_snapshot(connection, self.options.keep_time))
        self.code.learn(snapshot, asked_at)
        seen = await asyncio.to_thread(self._compare, snapshot)
        if seen.work != self._work:
            self._work = seen.work
            self._has_other_work.set()
        if seen.problem != self.problem:
            self.problem = seen.problem
            self.on_problem(seen.problem)
            self._changed.set()  # for the others to hear of it
        if seen.answers:
            await self.database.run(partial(self._answer, seen.answers))
        pending = {each.id for each in snapshot.pending}
        self._answered = {number: said for number, said in {**self._answered, **seen.answers}.items() if number in pending}
        for number in sorted(pending):
            await self.database.run(partial(self._settle, number))

    def _compare(self, snapshot: Snapshot) -> _Comparison:
        """Compare the rows with the folders. Blocks, briefly."""
        lacking = {(each.environment, each.version) for each in snapshot.wanted if not self.code.has(each)}
        self._failures = {key: failure for key, failure in self._failures.items() if not key[1] or key in lacking}
        current = {(name, each.version or "") for name, each in snapshot.current.items()}
        unlinked = {(name, version) for name, version in current if self.code.leads_to(name) != version}
        unlinked -= {key for key in unlinked - lacking if key[1] and self._link(*key)}
        # Without a link, agents would get what is in its place.
        behind = min(
            (key for key in current if key in lacking or (key in unlinked and key[1] and not self.code.leads_to(key[0]))), default=None
        )
        problem = f"{behind[0]} {behind[1]}: {self._failure(*behind) or 'the version is not here yet'}" if behind is not None else ""
        # An environment is linked before its first switch, so that agents find it everywhere afterwards.
        unlinked |= {
            (each.environment, each.version) for each in snapshot.pending if each.version and not self.code.leads_to(each.environment)
        }
        answers = {}
        for each in snapshot.pending:
            key = each.environment, each.version
            # A master that is behind already is not waited for.
            said = self._failure(*key) or problem or None if key in lacking | unlinked else ""
            if said is not None and self._answered.get(each.id) != said:
                answers[each.id] = said
        if not lacking | unlinked:
            self._failures = {}
        return _Comparison(problem, answers, frozenset(lacking | unlinked))

    def _link(self, environment: str, version: str) -> bool:
        """Link an environment to its current version; return whether nobody else has to. Blocks, briefly."""
        archive = VersionArchive(self.code.place(environment))
        try:
            with archive.locked():
                archive.switch(version, is_new=True)
        except Unavailable:
            return True  # a deployment on this machine, which does the same
        except (PuppetError, OSError):
            return False  # the program tries it as well, and says why it cannot
        return True

    def _note_failures(self, problems: list[CodeProblem]) -> None:
        failures = {(each.environment, each.version): each.problem for each in problems}
        for environment, failure in {(key[0], failure) for key, failure in failures.items() if self._failures.get(key) != failure}:
            log.error("The code of other masters could not be made here: %s: %s", environment or "all environments", failure)
        self._failures = failures

    def _failure(self, environment: str, version: str) -> str:
        keys = (environment, version), (environment, ""), ("", "")
        return next((self._failures[key] for key in keys if key in self._failures), "")

    def _answer(self, answers: Mapping[int, str], connection: Connection) -> None:
        for number, problem in answers.items():
            rows.answer(connection, number, self.options.certname, problem)

    def _settle(self, number: int, connection: Connection) -> None:
        options = self.options
        rows.settle(connection, number, timeout=options.timeout, keep=options.keep, keep_time=options.keep_time)

    async def _leave(self) -> None:
        try:
            await self.database.run(lambda connection: rows.leave(connection, self.options.certname))
        except StateAway as err:
            log.warning("Other masters wait for this one for %g seconds: %s", rows.DEAD, err)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Why this master cannot answer with the current versions, what it says of pending deployments, what it has to make or link."""

    problem: str
    answers: Mapping[int, str]
    work: frozenset[tuple[str, str]]
