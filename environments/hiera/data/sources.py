"""
The data shared by all compilations of an environment: the locations of hiera.yaml files, and the parsed configurations, data files and
keys.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping
from typing import Any

from language.values.core import Strictness
from shared.data import plainjson
from shared.errors import BadData

from ...files.code_files import CodeFiles
from .config import HierarchyConfig
from .config_reader import default_config, read_config
from .eyaml import DecryptionKeys, read_keys
from .files import DataFiles


class DataSources:
    """
    The data of one environment on disk.

    Args:
        files: reads watched files: configurations and keys.
        root: the environment's folder.
        settings: hiera_config, data_binding_terminus, codedir and strict are read.
        module_root: returns the folder of a module.
        data_provider: the setting environment_data_provider of environment.conf.
        data_files: reads data files, which each compilation checks for changes.
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
        self._configs: dict[str, HierarchyConfig | None] = {}
        self._keys: dict[tuple[tuple[str, str], ...], DecryptionKeys] = {}

    def config(self, path: str, layer: str, warn: Callable[[str], None]) -> HierarchyConfig | None:
        """Return the configuration at `path`, None when there is none; raise the errors of `read_config`."""
        if path not in self._configs:
            content = self.files.read(path)
            self._configs[path] = None if content is None else read_config(path, content, layer, codedir=self.codedir, warn=warn)
        return self._configs[path]

    def global_config(self, warn: Callable[[str], None]) -> HierarchyConfig:
        """Return the configuration that the setting hiera_config names; the default when there is no such file."""
        if not self.site:
            return HierarchyConfig(None, 5, ())
        return self.config(self.site, "global", warn) or default_config(posixpath.dirname(self.site))

    def module_data_provider(self, module: str) -> str:
        """Return `data_provider` of a module's metadata.json, which is deprecated; '' when it is not set."""
        content = self.files.read(f"{self.module_root(module)}/metadata.json")
        try:
            metadata = plainjson.loads(content) if content else {}
        except BadData:
            return ""  # reported by those who need the metadata
        return str(metadata.get("data_provider") or "") if isinstance(metadata, dict) else ""

    def keys(self, options: Mapping[str, Any]) -> DecryptionKeys:
        """Return the keys that the options of a level with encrypted values name; raise BadData when they are missing."""
        key_options = tuple(sorted((key, str(value)) for key, value in options.items() if key.startswith("pkcs7_")))
        if key_options not in self._keys:
            self._keys[key_options] = read_keys(options, self.files.read, os.environ)
        return self._keys[key_options]
