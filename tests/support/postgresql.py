"""A PostgreSQL server for tests, from Debian's package, in a folder of its own."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.bench.costs import family
from tests.support.processes import clean_environment

START = 30.0  # seconds until the server answers
ENDED = 20.0  # seconds until it has ended

_numbers = itertools.count()

# Nothing of a test outlives it.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "port": "5432",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
}


def postgresql_programs() -> Path | None:
    """The folder of the newest PostgreSQL server that is installed; None where there is none."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not found and (program := shutil.which("initdb")):
        found = [Path(program).resolve().parent]
    return max(found, key=lambda path: int("0" + "".join(filter(str.isdigit, path.parent.name))), default=None)


class PostgresqlServer:
    """A server on a Unix socket, unless settings say more. As root it is run as the user `postgres`, for it refuses to run as root."""

    def __init__(self, programs: Path, **settings: str) -> None:
        self._programs = programs
        self._settings = {**SETTINGS, **settings}
        self._folder = Path(tempfile.mkdtemp(prefix="bk-pg-"))
        self._user = "postgres" if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(self._folder, self._user, self._user)
        try:
            self._run("initdb", "-D", str(self._folder / "data"), "-U", "store", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
            self.start()
        except BaseException:
            self.remove()
            raise

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            user=self._user,
            group=self._user,
            cwd=self._folder,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START,
        )
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self._programs / "postgres"),
                    *("-D", str(self._folder / "data"), "-k", str(self._folder)),
                    *(part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")),
                ],
                user=self._user,
                group=self._user,
                cwd=self._folder,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None and time.monotonic() < deadline, self.log
                time.sleep(0.02)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server has logged; an error stands there before its client gets it."""
        return (self._folder / "log").read_text()

    def address(self, database: str) -> str:
        """The URL of one of the server's databases."""
        return f"postgresql://store@/{database}?host={self._folder}&port={self._settings['port']}"

    def run_sql(self, statement: str, database: str = "postgres") -> None:
        """Run a statement outside of any transaction; it waits five seconds at most for locks of others."""
        with psycopg.connect(self.address(database), autocommit=True, options="-c lock_timeout=5s") as connection:
            connection.execute(statement.encode())

    def end_sessions(self) -> None:
        """End all sessions of this project's, as an administrator may."""
        self.run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bunraku'")

    def has_table(self, database: str, table: str) -> bool:
        """Return whether a database has a table of that name."""
        with psycopg.connect(self.address(database)) as connection:
            row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
        return row is not None and bool(row[0])

    def transactions_that_wait(self) -> int:
        """Return how many transactions wait for a lock that another one holds."""
        with psycopg.connect(self.address("postgres")) as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
        assert row is not None
        return int(row[0])

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server, and every connection to it; with SIGQUIT as if it had crashed."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(ENDED)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Have all processes of the server stand still, so that it accepts connections and answers nothing."""
        processes = family(self.pid)
        try:
            for pid in processes:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    def remove(self) -> None:
        """End the server and delete all it has written."""
        self.stop()
        shutil.rmtree(self._folder)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A PostgreSQL server; the tests that ask for one are skipped where it is not installed."""
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    server = PostgresqlServer(programs)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def empty_postgresql_url(postgresql: PostgresqlServer) -> Iterator[str]:
    """The address of a new database on PostgreSQL without any tables."""
    name = f"empty_{next(_numbers)}"
    postgresql.run_sql(f"CREATE DATABASE {name}")
    yield postgresql.address(name)
    postgresql.run_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def state_database_url(postgresql: PostgresqlServer) -> str:
    """The address of a database with the tables of the masters' state, of which `state_url` empties the rows."""
    postgresql.run_sql("CREATE DATABASE state")
    return postgresql.address("state")


@pytest.fixture
def state_url(postgresql: PostgresqlServer, state_database_url: str) -> Iterator[str]:
    """The address of a database for the setting `state`, without any rows."""
    yield state_database_url
    from shared.state.tables import SCHEMA, metadata

    if postgresql.has_table("state", SCHEMA.version_table):
        postgresql.run_sql("; ".join(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables)), "state")


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """The statements that this process has put to databases, without those of health checks."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("SELECT 1") and "state_ca" not in statement:
            seen.append(statement)

    from sqlalchemy import Engine, event

    event.listen(Engine, "after_cursor_execute", note)
    yield seen
    event.remove(Engine, "after_cursor_execute", note)
