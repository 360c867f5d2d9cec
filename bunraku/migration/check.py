"""What a migration would meet: the checks of this master on the planned configuration, and both programs' catalogs."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from ca.setup.adoption import Unfit, adopt
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from master.checks.findings import Area, Finding, run_check
from master.checks.report import check
from master.preview.result import PreviewResult
from shared.filesystem.files import write_atomic
from shared.process.service import account_of
from shared.ruby.child import find_ruby
from shared.settings import MasterSettings, load
from shared.settings.store import SERVING_DEFAULTS

from .catalogs import Comparer, OnNode, options_of
from .plan import MigrationPlan
from .real import RealPuppet

AREAS: Final[tuple[Area, ...]] = ("store", "configuration", "certificates", "environments", "compiling")


@contextmanager
def planned(plan: MigrationPlan, flags: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """
    Lend settings after the migration: the configuration is in a temporary folder, CA, keys and data are the server's.

    `flags` are further settings.
    """
    server, account = plan.server.settings, account_of(plan.target)
    with tempfile.TemporaryDirectory(prefix="puppet-migrate-") as name:
        root = Path(name)
        conf = root / "conf"
        conf.mkdir()
        write_atomic(conf / "puppet.conf", plan.conf.encode())
        for file in plan.files:
            if file.target.is_relative_to(plan.target.confdir):
                copy = conf / file.target.relative_to(plan.target.confdir)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.source, copy)
        (root / "var").mkdir()
        if account is not None:
            for path in (root, *root.rglob("*")):
                os.chown(path, *account)
        places = {
            "confdir": conf,
            "vardir": root / "var",
            "logdir": root / "var/log",
            "rundir": root / "var/run",
            "codedir": server.codedir,
        }
        places |= {
            "ssldir": server.ssldir,
            "cadir": server.cadir,
            "yamldir": server.yamldir,
            "server_datadir": server.server_datadir,
            "code_cache": root / "var/code",
        }
        yield {**flags, **{key: str(value) for key, value in places.items()}}


def findings_of(plan: MigrationPlan, places: Mapping[str, str], now: datetime) -> list[Finding]:
    """Return what differs, what has to be done, and what does not work. Blocks; changes nothing."""
    settings = load(MasterSettings, section="master", flags=places, application=SERVING_DEFAULTS)
    found = [*plan.findings, *check(settings, now, areas=AREAS)]
    found += run_check("certificates", lambda: _of_ca(plan, now))
    found += run_check("environments", lambda: _of_ruby(settings))
    scratch, own = str(settings.confdir), str(plan.target.confdir)
    return [
        replace(finding, message=finding.message.replace(scratch, own), hint=finding.hint.replace(scratch, own))
        for finding in dict.fromkeys(found)
    ]


def _of_ca(plan: MigrationPlan, now: datetime) -> Iterator[Finding]:
    if sign := plan.server.running:
        yield Finding("certificates", "notice", f"The server runs ({sign})", "Stop it before puppet migrate run: its CA may sign.")
    if not plan.adopts_ca:
        return
    try:
        adoption = adopt(
            plan.server.settings.cadir, CaFiles.at(plan.target.cadir), now=now, ssldir=SslDir.of(plan.server.settings), noop=True
        )
    except Unfit as err:
        for problem in err.problems:
            yield Finding("certificates", "error", f"The CA in {plan.server.settings.cadir}: {problem}", err.hint)
        return
    message = (
        f"The CA {adoption.subject}, valid until {adoption.not_after}: {len(adoption.signed)} certificates, {adoption.revoked} revoked"
    )
    yield Finding("certificates", "notice", f"{message}; it is copied to {plan.target.cadir}")
    for sentence in adoption.odd:
        yield Finding("certificates", "warning", sentence)


def _of_ruby(settings: MasterSettings) -> Iterator[Finding]:
    """Yield whether functions of modules need a Ruby that this host lacks."""
    if find_ruby(settings.ruby):
        return
    folders = [*settings.basemodulepath, *(path / "modules" for root in settings.environmentpath for path in sorted(root.glob("*")))]
    patterns = ("*/lib/puppet/functions/**/*.rb", "*/lib/puppet/parser/functions/*.rb")
    modules = sorted({path.relative_to(folder).parts[0] for folder in folders for pattern in patterns for path in folder.glob(pattern)})
    if modules:
        listed = ", ".join(modules[:8]) + (f" and {len(modules) - 8} more" if len(modules) > 8 else "")
        yield Finding("environments", "error", f"Modules have functions in Ruby, and there is no ruby: {listed}", "apt-get install ruby")


def catalogs(plan: MigrationPlan, places: Mapping[str, str], ruby: str, names: Sequence[str], on_node: OnNode) -> PreviewResult:
    """Compile nodes with the installed Puppet and here; return the differences. Blocks; PuppetError when either cannot."""
    settings = load(MasterSettings, section="master", flags=places)
    server, account = plan.server.settings, account_of(plan.target)
    words = options_of(server, plan.server.confdir, settings.vardir)
    with RealPuppet(ruby, words, account, settings.compile_timeout) as real:
        return asyncio.run(Comparer(settings, real).compare(names, on_node))
