"""The code that master and agent share: errors, settings, formats, the indirector, models, resource types."""

__version__ = "1.0.0"
PUPPET_VERSION = "7.23.0"
"""The release of Puppet whose behaviour this is; agents, masters and modules compare it."""
VERSIONS = f"{PUPPET_VERSION}\nBunraku {__version__}"
"""The answer to --version: Puppet's own answer comes first, on a line of its own, where programs look for it."""
