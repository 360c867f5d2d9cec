"""What modules' Ruby may use of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.models.catalog import Catalog
from shared.ral import Platform
from shared.ruby import RubySettings, find_ruby
from shared.settings import IGNORED_SETTINGS, AgentSettings
from shared.settings.values import setting_text
from shared.types import builtin_types

from ..facts.legacy import legacy_facts
from ..facts.ruby import RubyFactRequest
from ..state.runlog import RunLog
from .environ import environment_for_ruby
from .files import RubyFiles, Sources, no_file

if TYPE_CHECKING:
    from .process import RubyProcess

READABLE = frozenset(
    (
        *("agent_catalog_run_lockfile", "ca_server", "cacrl", "certdir", "certname", "classfile", "client_datadir", "clientbucketdir"),
        *("confdir", "debug", "diff", "diff_args", "privatedir", "requestdir", "server_list", "stringify_facts"),
        *(
            "config",
            "default_file_terminus",
            "digest_algorithm",
            "environment",
            "environmentpath",
            "factpath",
            "hostcert",
            "hostcrl",
            "hostprivkey",
        ),
        *("hostpubkey", "http_proxy_host", "http_proxy_port", "lastrunfile", "lastrunreport", "libdir", "localcacert"),
        *("logdir", "masterport", "noop", "plugindest", "pluginfactdest", "privatekeydir", "publickeydir", "rundir"),
        *("runtimeout", "server", "serverport", "show_diff", "splay", "ssldir", "statedir", "statefile"),
        *("strict", "vardir", "yamldir"),
    )
)
"""The settings that modules may read; none of them is a secret."""
_OWN_SECTIONS = ("", "main", "agent")
_OTHER_NAMES = {"serverport": "masterport", "libdir": "plugindest"}
_NOT_IN_7 = frozenset({"stringify_facts"})  # settings of 3.x, which modules look for
_ELSEWHERE = "/opt/puppetlabs/puppet/bin:/usr/local/bin"  # where a ruby may be, besides the system's own folders


@dataclass(frozen=True, slots=True)
class RubyNeeds:
    """
    What a run gives to modules' Ruby.

    Attributes:
        facts: the run's.
        lookup: the run's settings.
        file: returns the bytes of a file by its source; None: there is none.
    """

    settings: RubySettings
    facts: Mapping[str, Any]
    lookup: AgentSettings
    file: Callable[[str], bytes | None] = no_file

    @classmethod
    def of(cls, settings: AgentSettings, facts: Mapping[str, Any], sources: Sources | None = None) -> RubyNeeds:
        """Return what the settings of a run say; `sources` returns what fetches files, over the event loop that is running."""
        ruby = RubySettings(ruby_program(settings), settings.ruby_timeout, settings.ruby_answer, settings.ruby_memory)
        if sources is None:
            return cls(ruby, facts, settings)
        files = RubyFiles(sources, limit=settings.ruby_answer, timeout=settings.ruby_timeout)
        return cls(ruby, facts, settings, files.content)

    def process(self, libraries: Sequence[Path], log: RunLog, catalog: Catalog | None = None) -> RubyProcess:
        """Return the run's process, which is not started yet."""
        from .process import RubyProcess, RunContext

        return RubyProcess(
            self.settings,
            [folder for folder in libraries if folder.is_dir()],
            RunContext(self._fact, lambda: self.facts, self._setting, self._find_out, self.file),
            log,
            builtin_types(),
            environment_for_ruby(os.environ),
            catalog,
        )

    def _fact(self, name: str) -> Any:
        value = Platform(self.facts).fact(name)
        return legacy_facts(self.facts).get(name) if value is None else value

    def _find_out(self, name: str, file: Path) -> Any:
        from .facts import RubyFacts, RubyFactSettings

        known = {other: value for other, value in self.facts.items() if other != name}
        request = RubyFactRequest([file], [file.parent], os.environ, core=known)
        seconds = min(self.lookup.ruby_timeout, self.lookup.external_fact_timeout)
        settings = RubyFactSettings(
            replace(self.settings, timeout=seconds),
            self.lookup.external_fact_output,
            self._setting,
            lambda type_name, _facts: self._fact(f"{type_name}_provider"),
        )
        return RubyFacts(settings, request).values().get(name)

    def _setting(self, name: str, section: str = "") -> Any:
        return read_setting(self.lookup, name, section)


def ruby_program(settings: AgentSettings) -> str:
    """Return the path of the Ruby that the settings name or that is installed; '' for none."""
    return find_ruby(settings.ruby, also=_ELSEWHERE)


def read_setting(settings: AgentSettings, name: str, section: str = "") -> Any:
    """
    Return a setting as modules' Ruby reads it, paths as text; in another section of puppet.conf than the run's: its text there.

    Raises:
        Unsupported: it may not be read.
    """
    if name not in READABLE:
        from .process import refuse_setting

        raise refuse_setting(name)
    if name in _NOT_IN_7:
        return None
    field = _OTHER_NAMES.get(name, name)
    if section not in _OWN_SECTIONS and (field in settings.model_fields or field in IGNORED_SETTINGS):
        return settings.text_in("master" if section == "server" else section, field)
    if name == "privatedir":
        return str(settings.ssldir / "private")
    value = getattr(settings, field, None)
    if isinstance(value, tuple) and not (value and isinstance(value[0], Path)):
        return list(value)
    return setting_text(value) if isinstance(value, Path | tuple) else value
