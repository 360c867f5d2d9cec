"""The folders that a master writes into, and the temporary files that a killed master leaves there."""

from __future__ import annotations

import logging
from pathlib import Path

from shared.filesystem.files import sweep
from shared.settings import MasterSettings

log = logging.getLogger("puppet.master")


def written_folders(settings: MasterSettings) -> dict[Path, int]:
    """Return the folders that the master writes into, the outer ones first, with the modes that they get when they are made."""
    shared = [
        settings.vardir,
        settings.logdir,
        settings.rundir,
        settings.ssldir,
        settings.reportdir,
        settings.bucketdir,
        settings.yamldir,
        settings.server_datadir,
    ]
    private = [settings.code_cache, *([settings.preview_records] if settings.preview_records_size else ())]
    private += [settings.store_dir] if settings.runs_store else []
    private += [settings.state_queue] if settings.state != "files" else []
    return dict.fromkeys(shared, 0o750) | dict.fromkeys(private, 0o700)


def remove_leftovers(settings: MasterSettings) -> None:
    """Remove the temporary files that a killed master left in its stores. Blocks."""
    stores = [settings.reportdir, settings.yamldir, settings.server_datadir]
    try:
        swept = sum(sweep(folder) for store in stores if store.is_dir() for folder in store.iterdir() if folder.is_dir())
    except OSError as err:
        log.warning("Temporary files of an earlier master may be left: %s", err)
        return
    if swept:
        log.info("Removed %d temporary files that a killed process left behind", swept)
