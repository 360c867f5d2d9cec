"""The choice of a master's store, and the setting that decides it."""

from __future__ import annotations

from shared.settings import MasterSettings
from shared.settings.store import other_place

from .configured import CONFIGURATION


def store_choice(settings: MasterSettings) -> str:
    """Return a sentence: the store for facts, catalogs and reports of a master that serves, and the setting or file that decides it."""
    return f"{_place(settings)}: {_reason(settings)}"


def _place(settings: MasterSettings) -> str:
    kind, colon, address = settings.store.partition(":")
    if kind == "sqlite":
        return f"Using the built-in SQLite store in {address.removeprefix('///') if colon else settings.store_dir}"
    if kind == "postgresql":
        return f"Using the built-in store, on PostgreSQL at {_without_secrets(settings.store)}"
    if kind == "puppetdb":
        return f"Using the PuppetDB of {settings.confdir / CONFIGURATION}"
    return "The built-in store is off"


def _without_secrets(address: str) -> str:
    """Return the server and database of an address, without user and password."""
    return address.partition("://")[2].partition("?")[0].rpartition("@")[2]


def _reason(settings: MasterSettings) -> str:
    source = settings.source_of("store")
    if source is not None and source.value != "auto":
        shown = "store" if settings.store.startswith("postgresql:") else f"store = {settings.store}"
        return f"{shown} {source.where or 'on the command line'}"
    if settings.runs_store:
        return "store = auto, no PuppetDB configured"
    place = other_place(settings.model_dump())
    setting = settings.source_of(place)
    where = "" if setting is None else f" {setting.where or 'on the command line'}"
    return f"store = auto, and {place}{where} decides where facts, catalogs and reports go"
