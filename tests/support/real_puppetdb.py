"""Debian's PuppetDB as a program, on a PostgreSQL of its own, for tests."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import reserved_port
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.processes import clean_environment, end

START = 300.0  # seconds until it answers, on a machine that is busy
JAR = Path("/usr/share/puppetdb/puppetdb.jar")
BOOTSTRAP = Path("/etc/puppetdb/bootstrap.cfg")
AUTHORIZATION = Path("/etc/puppetdb/conf.d/auth.conf")
SOON_STARTED = ("-Xmx400m", "-XX:TieredStopAtLevel=1")
"""Options of a JVM that runs for a short time."""

# Nothing that is stored ends while a test looks at it.
CONFIGURATION = """
[global]
vardir = {folder}/var
logging-config = {folder}/logback.xml
[puppetdb]
disable-update-checking = true
[database]
subname = //127.0.0.1:{database_port}/{database}
username = store
password = unused
gc-interval = 0
node-ttl = 0s
node-purge-ttl = 7300d
report-ttl = 7300d
[jetty]
host = 127.0.0.1
port = {port}
"""
LOGBACK = """<configuration>
<appender name="OUT" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%p %m%n</pattern></encoder></appender>
<root level="warn"><appender-ref ref="OUT"/></root>
</configuration>
"""


def missing_programs() -> str:
    """Which program a real PuppetDB lacks; empty where none is missing."""
    if not JAR.exists() or shutil.which("java") is None:
        return "PuppetDB is not installed (Debian: puppetdb)"
    if postgresql_programs() is None:
        return "PostgreSQL's server is not installed (Debian: postgresql)"
    return ""


@dataclass(frozen=True, slots=True)
class RealPuppetDb:
    """A PuppetDB in clear text on 127.0.0.1, which trusts everybody; `folder` has its configuration and its log."""

    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def is_running(self) -> bool:
        """Whether it answers queries; until then it has no port, or is starting."""
        try:
            with urllib.request.urlopen(f"{self.url}/status/v1/simple", timeout=5) as answer:
                return bool(answer.read() == b"running")
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def real_puppetdb(folder: Path, jetty: str = "") -> Iterator[RealPuppetDb]:
    """Run a PuppetDB without any data; it takes some ten seconds of processor time to start. `jetty`: lines for its web server."""
    programs = postgresql_programs()
    assert programs is not None
    with reserved_port() as port, reserved_port() as database_port:
        server = PostgresqlServer(programs, listen_addresses="127.0.0.1", port=str(database_port))
        try:
            server.run_sql("CREATE DATABASE puppetdb")
            server.run_sql("CREATE EXTENSION pg_trgm", "puppetdb")
            database = RealPuppetDb(port, folder)
            configure(database, database_port, jetty)
            with running_puppetdb(database):
                yield database
        finally:
            server.remove()


def configure(puppetdb: RealPuppetDb, port: int, jetty: str = "", database: str = "puppetdb") -> None:
    """Write the configuration of a PuppetDB whose PostgreSQL, with an empty `database`, listens on `port`; `jetty`: see real_puppetdb."""
    folder = puppetdb.folder
    configuration = folder / "conf.d"
    configuration.mkdir(parents=True)
    (folder / "var").mkdir()
    text = CONFIGURATION.format(folder=folder, database_port=port, database=database, port=puppetdb.port)
    (configuration / "config.ini").write_text(text + jetty)
    shutil.copyfile(AUTHORIZATION, configuration / "auth.conf")
    (folder / "logback.xml").write_text(LOGBACK)


@contextmanager
def running_puppetdb(database: RealPuppetDb, java: tuple[str, ...] = SOON_STARTED) -> Iterator[int]:
    """Run a PuppetDB that is configured, `java` being options of its JVM; yield its process number once it answers."""
    folder, configuration = database.folder, database.folder / "conf.d"
    options = (*java, "-cp", str(JAR), "clojure.main", "-m", "puppetlabs.puppetdb.core", "services")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["java", *options, "-c", str(configuration), "-b", str(BOOTSTRAP)],
            cwd=folder,
            env=clean_environment(HOME=str(folder)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + START
        while not database.is_running():
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text("utf-8", "replace")[-5000:]
            time.sleep(0.2)
        yield process.pid
    finally:
        end(process)
