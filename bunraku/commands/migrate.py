"""Move a Puppet server's configuration, CA and nodes to this master."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, PuppetError
from shared.process import daemon
from shared.process.cli import flag, maybe_text, text, texts
from shared.process.command import CommandSpec
from shared.settings import MasterSettings, load
from shared.settings.conf import Conf

from ..console import say
from ..faces import JsonFaceOptions
from ..progress import ProgressLine

DIFFERENT, FAILED = 2, 4


@dataclass(frozen=True, slots=True)
class MigrateOptions(JsonFaceOptions):
    """The command line of `puppet migrate`."""

    from_: str = text("FOLDER", "the folder of the server's puppet.conf; by default that of this host's packages")
    nodes: tuple[str, ...] = texts("NAME,…", "check: compile only these nodes; by default all nodes whose facts are stored")
    no_catalogs: bool = flag("check: compile no nodes")
    ruby: str = text("PROGRAM", "check: the ruby of the installed Puppet; by default that of its package")
    html: str | None = maybe_text("FILE", "check: also write the differences as a page, as puppet preview does")
    force: bool = flag("run: migrate even if the check finds errors")


@CommandSpec(
    "migrate",
    MigrateOptions,
    (MasterSettings,),
    actions={
        "check": "show what works, what differs and what to do; changes nothing",
        "run": "write puppet.conf, copy its files and the CA; the server's own files are not changed",
        "undo": "restore the files that run replaced, and copy the CA back to the server",
    },
    setting_docs={"--confdir FOLDER": "where this master's configuration goes, and likewise --vardir, --ssldir, --cadir"},
    notes="""check compiles each node with the installed Puppet and with this program, and compares the two catalogs.

    Exit codes: 0 done; 1 an error (check: it found errors); check: 2 catalogs differ, 4 some nodes compile only with Puppet, 6 both.""",
).main
def main(options: MigrateOptions, flags: dict[str, Any]) -> int:
    target = load(MasterSettings, section="master", flags=flags, conf=Conf())
    command = MigrateCommand(options, flags, target, datetime.now(UTC))
    actions: dict[str, Callable[[], int]] = {"check": command.check, "run": command.run, "undo": command.undo}
    return options.choose(actions)()


@dataclass(frozen=True, slots=True)
class MigrateCommand:
    """One call of `puppet migrate`; `target` are this master's settings without any puppet.conf."""

    options: MigrateOptions
    flags: dict[str, Any]
    target: MasterSettings
    now: datetime

    def check(self) -> int:
        """Print the findings and the differences between catalogs, and return the exit code."""
        from master.checks.report import report

        from ..migration.check import findings_of, planned

        plan = self._plan()
        with planned(plan, self.flags) as places:
            findings = findings_of(plan, places, self.now)
            is_wrong = any(finding.severity == "error" for finding in findings)
            result = None if self.options.no_catalogs or is_wrong else self._catalogs(plan, places)
        if self.options.as_json:
            data = {"ok": not is_wrong, "findings": [asdict(finding) for finding in findings], "catalogs": result}
            sys.stdout.buffer.write(dumps_pretty(data))
        else:
            report(findings, sys.stdout, as_json=False)
            self._print(result)
        if is_wrong:
            return 1
        return 0 if result is None else _code(result)

    def run(self) -> int:
        """Do what a program can do, and name the next commands."""
        from ..migration.check import findings_of, planned
        from ..migration.steps import check_possible, migrate

        self.options.exactly(0)
        plan = self._plan()
        check_possible(plan)
        if not self.options.force:
            with planned(plan, self.flags) as places:
                errors = [each for each in findings_of(plan, places, self.now) if each.severity == "error"]
            if errors:
                raise ConfigError(
                    f"The check finds {len(errors)} errors, the first: {errors[0].message}",
                    hint="Run puppet migrate check to see all of them, or use --force.",
                )
        migrate(plan, self.now, print)
        print("Next: puppet master --check; systemctl disable --now puppetserver; systemctl enable --now puppet-master")
        return 0

    def undo(self) -> int:
        """Put everything back, and name the next commands."""
        from ..migration.steps import undo

        self.options.exactly(0)
        settings = load(MasterSettings, section="master", flags=self.flags)
        undo(self.target, daemon.PidFile(settings.pidfile).running() is not None, self.now, print)
        print("Next: systemctl disable --now puppet-master; systemctl enable --now puppetserver")
        return 0

    def _plan(self) -> Any:
        from ..migration.existing import ExistingServer
        from ..migration.plan import MigrationPlan

        server = ExistingServer.at(Path(self.options.from_)) if self.options.from_ else ExistingServer.found()
        return MigrationPlan.of(server, self.target)

    def _catalogs(self, plan: Any, places: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the result of compiling with both programs; None when the installed Puppet cannot be used, which is said."""
        from ..migration.check import catalogs
        from ..migration.existing import LAYOUTS
        from ..previews.progress import PreviewProgress

        ruby = self.options.ruby or next(filter(shutil.which, (plan.server.ruby, *(layout.ruby for layout in LAYOUTS))), "")
        if not ruby:
            say("notice", f"No catalogs are compared: there is no {plan.server.ruby}. Name the ruby of the installed Puppet with --ruby.")
            return None
        names = [name for word in self.options.nodes for name in word.split(",") if name]
        with ProgressLine() as line:
            progress = PreviewProgress(line, 0)

            def count(state: str, total: int) -> None:
                progress.total = total
                progress.count(state)

            try:
                result = catalogs(plan, places, ruby, names, count).data()
            except PuppetError as err:
                say("warning", f"No catalogs are compared: {err}")
                return None
        if self.options.html is not None:
            from .preview import write_page

            write_page(Path(self.options.html), result)
        return result

    def _print(self, result: dict[str, Any] | None) -> None:
        from ..previews.text import text_lines

        if result is None:
            return
        for line in text_lines(result, colored=sys.stdout.isatty()):
            print(line)


def _code(result: dict[str, Any]) -> int:
    is_failing = any(error["state"] == "new" for error in result["errors"])
    return (DIFFERENT if result["changes"] else 0) + (FAILED if is_failing else 0)
