"""A site's code and data: environments, their files, Hiera, modules' types and Ruby; the host that the language asks."""

__all__ = [
    "code_commands",
    "comparison",
    "config_version",
    "directories",
    "directory_environment",
    "files",
    "first",
    "hiera",
    "listings",
    "loaded",
    "module_sources",
    "module_types",
    "repeated_calls",
    "revisions",
    "ruby",
    "runs",
    "settings",
    "store_questions",
    "versions",
]
