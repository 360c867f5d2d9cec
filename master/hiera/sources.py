"""What all compilations of an environment share: where hiera.yaml files are, and what was read of them and of their data."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping
from typing import Any

from shared.data import plainjson
from shared.errors import BadData

from ..compiler.values.core import Strictness
from ..files.code_files import CodeFiles
from .config import Config, default_config, read_config
from .datafiles import DataFiles
from .eyaml import Keys, keys_of

__all__ = ["Sources"]


class Sources:
    """
    The data of one environment on disk.

    Args:
        root: the environment's folder; `module_root` gives that of a module.
        settings: hiera_config, data_binding_terminus, codedir and strict are read.
        data_provider: the setting environment_data_provider of environment.conf.
        files: for what is watched: configurations and keys. data_files: for data, which is looked at anew by each compilation.
    """

    def __init__(
        self,
        files: CodeFiles,
        *,
        environment: str,
        root: str,
        settings: Mapping[str, Any],
        module_root: Callable[[str], str | None],
        data_provider: str = "",
        variables: Mapping[str, str] | None = None,
        data_files: CodeFiles | None = None,
    ) -> None:
        self.files = files
        self.environment = environment
        self.root = root
        self.module_root = module_root
        self.data_provider = data_provider
        self.strict = Strictness(settings.get("strict") or "warning")
        self.terminus = str(settings.get("data_binding_terminus") or "hiera")
        self.codedir = str(settings.get("codedir") or posixpath.dirname(posixpath.dirname(root)))
        self.site = str(settings.get("hiera_config") or "")
        self.data = DataFiles(data_files or files, self.strict)
        self.variables = os.environ if variables is None else variables
        self._configs: dict[str, Config | None] = {}
        self._keys: dict[tuple[tuple[str, str], ...], Keys] = {}

    def config(self, path: str, place: str, warn: Callable[[str], None]) -> Config | None:
        """The configuration at `path`, None when there is none; DataError and EvaluationError as `read_config`."""
        if path not in self._configs:
            content = self.files.read(path)
            self._configs[path] = None if content is None else read_config(path, content, place, codedir=self.codedir, warn=warn)
        return self._configs[path]

    def global_config(self, warn: Callable[[str], None]) -> Config:
        """That of the setting hiera_config; the default where there is no such file."""
        if not self.site:
            return Config(None, 5, ())
        return self.config(self.site, "global", warn) or default_config(posixpath.dirname(self.site))

    def module_data_provider(self, module: str) -> str:
        """`data_provider` in a module's metadata.json, which is deprecated; '' when it says nothing."""
        content = self.files.read(f"{self.module_root(module)}/metadata.json")
        try:
            read = plainjson.loads(content) if content else {}
        except BadData:
            return ""  # whoever needs the metadata says what is wrong with it
        return str(read.get("data_provider") or "") if isinstance(read, dict) else ""

    def keys(self, options: Mapping[str, Any]) -> Keys:
        """The keys of a level with encrypted values; BadData when there are none."""
        named = tuple(sorted((key, str(value)) for key, value in options.items() if key.startswith("pkcs7_")))
        if named not in self._keys:
            self._keys[named] = keys_of(options, self.files.read, self.variables)
        return self._keys[named]
