"""The services of a run that modules' Ruby may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.models.catalog import Catalog
from shared.ral import Platform
from shared.ruby import RubySettings, find_ruby
from shared.settings import IGNORED_SETTINGS, AgentSettings, MasterSettings
from shared.settings.values import setting_text
from shared.types import builtin_types

from ..facts.legacy import legacy_facts
from ..facts.ruby import RubyFactRequest
from ..state.runlog import RunLog
from .environ import environment_for_ruby
from .files import RubyFiles, Sources, no_file

if TYPE_CHECKING:
    from .process import RubyProcess

_READABLE = (
    "agent_catalog_run_lockfile agent_disabled_lockfile basemodulepath ca_server cacrl certdir certname classfile "
    "client_datadir clientbucketdir codedir confdir config debug default_file_terminus diff diff_args digest_algorithm "
    "environment environmentpath factpath hiera_config hostcert hostcrl hostprivkey hostpubkey http_connect_timeout "
    "http_proxy_host http_proxy_port http_read_timeout http_user_agent lastrunfile lastrunreport libdir localcacert logdir "
    "masterport modulepath noop pidfile plugindest pluginfactdest privatedir privatekeydir publicdir publickeydir "
    "requestdir resourcefile rundir runinterval runtimeout server server_list serverport show_diff splay ssldir statedir "
    "statefile strict stringify_facts trace use_cached_catalog usecacheonfailure vardir waitforcert yamldir"
)
READABLE = frozenset(_READABLE.split())
"""The settings that modules may read; none of them is a secret."""
_OWN_SECTIONS = ("", "main", "agent")
_OTHER_NAMES = {"serverport": "masterport", "libdir": "plugindest"}
_FIXED: Mapping[str, Any] = {"modulepath": "", "stringify_facts": None}  # what Puppet 7 has outside of an environment, and no longer has
_ELSEWHERE = "/opt/puppetlabs/puppet/bin:/usr/local/bin"  # where a ruby may be, besides the system's own folders


@dataclass(frozen=True, slots=True)
class RubyNeeds:
    """
    The services that a run offers to modules' Ruby.

    Attributes:
        facts: the run's.
        lookup: the run's settings.
        file: returns the bytes of a file by its source; None: there is none.
        stop: returns whether the run stops.
        texts: whether values are texts of a command line.
    """

    settings: RubySettings
    facts: Mapping[str, Any]
    lookup: AgentSettings
    file: Callable[[str], bytes | None] = no_file
    stop: Callable[[], bool] = lambda: False
    texts: bool = False

    @classmethod
    def of(
        cls, settings: AgentSettings, facts: Mapping[str, Any], sources: Sources | None = None, stop: Callable[[], bool] = lambda: False
    ) -> RubyNeeds:
        """Return the services according to the settings of a run; `sources` returns the file sources, over the running event loop."""
        ruby = RubySettings(ruby_program(settings), settings.ruby_timeout, settings.ruby_answer, settings.ruby_memory)
        if sources is None:
            return cls(ruby, facts, settings)
        files = RubyFiles(sources, limit=settings.ruby_answer, timeout=settings.ruby_timeout)
        return cls(ruby, facts, settings, files.content, stop)

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
            texts=self.texts,
            stop=self.stop,
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
    Return a setting as modules' Ruby reads it, paths as text; in another section of puppet.conf than the run's: its text there. Of a name
    that no setting has, it is None, as in Puppet: modules look for settings of other releases.

    Raises:
        Unsupported: it may not be read.
    """
    if name not in READABLE:
        if not any(name in known for known in (AgentSettings.model_fields, MasterSettings.model_fields, IGNORED_SETTINGS)):
            return None
        from .process import refuse_setting

        raise refuse_setting(name)
    if name in _FIXED:
        return _FIXED[name]
    field = _OTHER_NAMES.get(name, name)
    if section not in _OWN_SECTIONS and (field in settings.model_fields or field in IGNORED_SETTINGS):
        return settings.text_in("master" if section == "server" else section, field)
    if name == "privatedir":
        return str(settings.ssldir / "private")
    value = getattr(settings, field, None)
    if isinstance(value, tuple) and not (value and isinstance(value[0], Path)):
        return list(value)
    return setting_text(value) if isinstance(value, Path | tuple) else value
