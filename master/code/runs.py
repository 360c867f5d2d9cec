"""
The version of each agent's run as a row: whichever master a request of the run reaches, it answers with that version.

A listing and a catalog are one statement, which reads and writes the row at once; a file only asks for the version. This master may
remember the answer if it was the version that new runs got: as long as the environment is not switched, a later run gets the same one.
Whether it was switched is certain (see `CodeKnowledge`) from the number of the deployment, which is another one even if an older version
returns. What a run began with before a switch is not remembered, for its client may begin the next run anywhere.

The beginning of a run has to be in its row, for other masters, so the first listing is always written. Listings that follow it here, and
the catalog, add nothing that matters to others: the next run begins with a listing that is in the row already. They take no statement.

While the database is away nothing is switched. If the last switch is longer ago than a run takes, all runs have the current version, and
this master goes on with it. Sooner after a switch only the rows know which run has which version: agents are asked to come back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Text, and_, bindparam, case, false, func, or_, select, true
from sqlalchemy.dialects.postgresql import Insert, array, insert

from environments.revisions import is_code_id
from environments.runs import MAX_RUNS, Runs, VersionForRun
from shared.errors import Unavailable
from shared.state.database import StateAway, StateDatabase
from shared.state.tables import environments, runs

from .knowledge import CodeKnowledge
from .rows import Current


@dataclass(frozen=True, slots=True)
class NewRun:
    """
    Decides which version a client's new run gets in an environment.

    Args:
        query: Returns the query for the columns `version` and `deployment`, one row at most. It is called once, with the parameters of the
            query that are the client and the environment. `deployment` is a number that changes with each answer's change; masters are
            waited for (`rows.settle`) before it does.
        parameters: Returns the query's further parameters for a client.
    """

    query: Callable[[ColumnElement[str], ColumnElement[str]], Select[Any, Any]]
    parameters: Callable[[str], Mapping[str, Any]] = lambda client: {}


def _current(client: ColumnElement[str], environment: ColumnElement[str]) -> Select[Any, Any]:
    return select(environments.c.version, environments.c.deployment).where(environments.c.environment == environment)


CURRENT_VERSION = NewRun(_current)
"""Each new run gets the environment's current version."""


PATIENCE = 5.0  # seconds with a silent database, while an agent waits
RECORDED = 60.0
"""Seconds after a listing is written for which further requests of the run need not be."""

_CATALOG = ""  # among the names of mounts


@dataclass(frozen=True, slots=True)
class _Answer:
    """The version of a run, what a new run would get, and the requests that are in the run's row; None: nothing was written."""

    version: str
    new: Current
    requests: frozenset[str] | None = None


@dataclass(slots=True)
class _Remembered:
    """What new runs got when a client's run got the same, and which requests the run has had; those after `recorded` only here."""

    new: Current
    requests: set[str]
    recorded: float


@dataclass(eq=False, repr=False)
class RunRows:
    """
    The versions of the runs under way. Its methods may be called by several threads at once; they block.

    Args:
        alone: Knows the runs in environments that masters do not share.
        lifetime: Seconds after which a run counts as ended, the same on all masters.
        new_run: Decides on the version of a new run.
    """

    database: StateDatabase
    code: CodeKnowledge
    alone: Runs
    lifetime: float
    new_run: NewRun = CURRENT_VERSION
    _remembered: dict[tuple[str, str], _Remembered] = field(default_factory=dict, init=False)
    _remembering: threading.Lock = field(default_factory=threading.Lock, init=False)

    def for_listing(self, client: str, environment: str, what: str) -> str:
        """See Runs."""
        if (folder := self._continued(client, environment, what)) is not None:
            return folder
        version = self._asked(client, environment, lambda connection: self._write(connection, client, environment, what))
        return self.alone.for_listing(client, environment, what) if version is None else version

    def for_catalog(self, client: str, environment: str, transaction: str = "") -> str:
        """See Runs."""
        if (folder := self._continued(client, environment, _CATALOG)) is not None:
            return folder
        version = self._asked(client, environment, lambda connection: self._write(connection, client, environment, _CATALOG, transaction))
        return self.alone.for_catalog(client, environment, transaction) if version is None else version

    def for_file(self, client: str, environment: str) -> str:
        """See Runs."""
        if (known := self._known(client, environment)) is not None:
            return self._folder(environment, str(known.new.version))
        version = self._asked(client, environment, lambda connection: self._file(connection, client, environment), is_read=True)
        return self.alone.for_file(client, environment) if version is None else version

    def is_elsewhere(self, environment: str, version: str) -> bool:
        """See Runs."""
        return self.code.is_elsewhere(environment, version)

    @property
    def version_for(self) -> VersionForRun:
        """See Runs."""
        return self._for_new_run

    def current(self, client: str, environment: str) -> str:
        """Return the folder of an environment's current version, as far as is known; '' when masters share none of it."""
        current = self.code.current(environment)
        return self.code.folder(environment, str(current.version)) if current is not None else ""

    def version_under_way(self, client: str, environment: str) -> str:
        """Return the version of the run of which a client has got the catalog last; '' when there is none. StateAway."""
        is_its = runs.c.certname == client, runs.c.environment == environment, runs.c.has_catalog
        return self.database.transact(lambda connection: connection.scalar(select(runs.c.version).where(*is_its))) or ""

    def _for_new_run(self, client: str, environment: str) -> str:
        def ask(connection: Connection) -> _Answer | None:
            row = connection.execute(self._statements.new, self._parameters(client, environment)).one_or_none()
            return _Answer(row[0], Current(row[0], row[1])) if row is not None and row[0] is not None else None

        version = self._asked(client, environment, ask, is_read=True)
        return self.alone.version_for(client, environment) if version is None else version

    def _known(self, client: str, environment: str) -> _Remembered | None:
        """Return what is remembered of a client, if its run has the version of new runs beyond doubt."""
        # Certainty first: a switch that is learned of afterwards has another number.
        current = self.code.current(environment) if self.code.is_certain(environment) else None
        known = self._remembered.get((client, environment))
        return known if known is not None and known.new == current else None

    def _continued(self, client: str, environment: str, request: str) -> str | None:
        """Return the folder for a request that continues a run which this master has recorded; None when it may begin one."""
        known = self._known(client, environment)
        if known is None or self.code.clock() > known.recorded + RECORDED:
            return None
        with self._remembering:
            if {request, _CATALOG} & known.requests:
                return None
            known.requests.add(request)
        return self._folder(environment, str(known.new.version))

    def _asked(self, client: str, environment: str, work: Callable[[Connection], _Answer | None], *, is_read: bool = False) -> str | None:
        """
        Return the folder of the version that the database answers; None when masters do not share the environment.

        StateAway is raised when only the database knows the version, and is away.
        """
        current = self.code.current(environment)
        if not self.code.is_shared(environment):
            return None

        def answered_here(connection: Connection) -> _Answer | None:
            answer = work(connection)
            if answer is not None:
                self._folder(environment, answer.version)  # otherwise the request comes again, and must not count twice
            return answer

        if not self.code.is_lost:
            try:
                answer = self.database.transact_within(PATIENCE, answered_here, is_single=is_read)
            except StateAway:
                self.code.lose()
            else:
                return self._told(client, environment, answer) if answer is not None else None
        if self.code.may_have_two(environment):
            raise StateAway(f"which version of {environment} a run has is known there only, so soon after a deployment")
        return self._folder(environment, str(current.version)) if current is not None else None

    def _told(self, client: str, environment: str, answer: _Answer) -> str:
        """Return the folder of an answer's version; remember that the client's run has the version of new runs, if it has."""
        if answer.version == answer.new.version:
            if len(self._remembered) >= MAX_RUNS:
                self._remembered.clear()
            known = self._remembered.get((client, environment))
            if answer.requests is not None:
                self._remembered[client, environment] = _Remembered(answer.new, set(answer.requests), self.code.clock())
            elif known is None or known.new != answer.new:
                self._remembered[client, environment] = _Remembered(answer.new, {_CATALOG}, self.code.clock())
        return self._folder(environment, answer.version)

    def _folder(self, environment: str, version: str) -> str:
        folder = self.code.folder(environment, version)
        if not is_code_id(version) or not Path(folder).is_dir():
            # Another version would be wrong, and another master has this one.
            raise Unavailable(f"This master does not have the version {version} of the environment {environment} yet", retry_after=10)
        return folder

    @cached_property
    def _statements(self) -> _Statements:
        return _Statements.of(self.new_run, self.lifetime)

    def _parameters(self, client: str, environment: str, **more: str) -> dict[str, Any]:
        return {"client": client, "place": environment, **more, **self.new_run.parameters(client)}

    def _write(self, connection: Connection, client: str, environment: str, request: str, transaction: str = "") -> _Answer | None:
        """Have a listing, or the catalog, counted to the client's run, or begin a new one."""
        is_catalog = request == _CATALOG
        statement = self._statements.catalog if is_catalog else self._statements.listing
        parameters = self._parameters(client, environment, request=transaction if is_catalog else request)
        row = connection.execute(statement, parameters).one_or_none()
        if row is None:
            return None
        return _Answer(row[0], Current(row[1], row[2]), frozenset(row[3]) | ({_CATALOG} if is_catalog else set()))

    def _file(self, connection: Connection, client: str, environment: str) -> _Answer | None:
        row = connection.execute(self._statements.file, self._parameters(client, environment)).one_or_none()
        return None if row is None else _Answer(row[2] or row[0], Current(row[0], row[1]))


@dataclass(frozen=True, slots=True)
class _Statements:
    """
    The statements of runs, made once. Their parameters are `client`, `place` (the environment), and `request`: a mount, or the transaction
    of a catalog, which stands beside the mounts in the row.
    """

    new: Select[Any, Any]
    file: Select[Any, Any, Any]
    listing: Insert
    catalog: Insert

    @classmethod
    def of(cls, new_run: NewRun, lifetime: float) -> _Statements:
        client, environment, request = (bindparam(name, type_=Text) for name in ("client", "place", "request"))
        query = new_run.query(client, environment)
        new, ended = query.subquery(), func.now() - timedelta(seconds=lifetime)

        def counted(begins: ColumnElement[bool], *, is_catalog: bool) -> Insert:
            """Have a request counted to the client's run, or begin a new one, if it has none or `begins` holds for that one."""
            is_new = or_(begins, runs.c.began < ended)
            row = select(client, environment, new.c.version, func.now(), array([request]), true() if is_catalog else false())
            columns = ["certname", "environment", "version", "began", "listed", "has_catalog"]
            statement = insert(runs).from_select(columns, row.where(new.c.version.is_not(None)))
            excluded = statement.excluded
            changed = statement.on_conflict_do_update(
                index_elements=[runs.c.certname, runs.c.environment],
                set_={
                    "version": case((is_new, excluded.version), else_=runs.c.version),
                    "began": case((is_new, excluded.began), else_=runs.c.began),
                    "listed": case((is_new, excluded.listed), else_=func.array_append(runs.c.listed, request)),
                    "has_catalog": excluded.has_catalog,
                },
            )
            of_new = (select(new.c[name]).scalar_subquery() for name in ("version", "deployment"))
            return changed.returning(runs.c.version, *of_new, runs.c.listed)  # type: ignore[return-value]

        under_way = and_(runs.c.certname == client, runs.c.environment == environment, runs.c.began > ended)
        file = select(new.c.version, new.c.deployment, runs.c.version).select_from(new.outerjoin(runs, under_way))
        is_new_request = func.array_position(runs.c.listed, request).is_(None)
        return cls(
            query,
            file.where(new.c.version.is_not(None)),
            counted(or_(runs.c.has_catalog, ~is_new_request), is_catalog=False),
            counted(and_(runs.c.has_catalog, or_(request == "", is_new_request)), is_catalog=True),
        )
