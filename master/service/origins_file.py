"""The file with the origins of a running master's last catalogs, for `puppet master --check`."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

from shared.data import plainjson
from shared.errors import BadData
from shared.filesystem.files import make_directory, owner_in, write_atomic
from shared.settings import MasterSettings

from ..observability.catalog_origins import CatalogOrigins, LastCatalogs

log = logging.getLogger("puppet.master")

WRITE_EVERY = 60.0  # seconds


@dataclass(slots=True)
class OriginsFile:
    """The file; `written` is the total of catalogs when it was written last."""

    path: Path
    written: int = 0

    @classmethod
    def of(cls, settings: MasterSettings) -> OriginsFile:
        return cls(settings.server_datadir / "catalog_origins.json")

    async def keep_written(self, origins: CatalogOrigins, every: float = WRITE_EVERY) -> None:
        """Run until cancelled: write the file when there were catalogs since the last time."""
        while True:
            await asyncio.sleep(every)
            await asyncio.to_thread(self.write, origins)

    def write(self, origins: CatalogOrigins) -> None:
        """Write the file if there were catalogs since the last time. Blocks; a failure is logged, for nothing depends on the file."""
        total, last = origins.total, origins.last()
        if total == self.written:
            return
        data = {"origins": last.origins, "uncacheable": last.uncacheable, "reasons": [[*reason, count] for reason, count in last.reasons]}
        try:
            make_directory(self.path.parent, mode=0o750, inherit=True)
            write_atomic(self.path, plainjson.dumps(data), mode=0o640, owner=owner_in(self.path.parent), durable=False)
        except OSError as err:
            log.warning("Could not write %s, the statistics of the catalog cache: %s", self.path, err)
        self.written = total

    def read(self) -> LastCatalogs | None:
        """
        Return the contents of the file; None when there is none. Blocks.

        Raises:
            BadData: It does not have the master's format.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            data = plainjson.loads(text)
            reasons = [((str(place), str(text)), int(count)) for place, text, count in data["reasons"]]
            return LastCatalogs({str(name): int(count) for name, count in data["origins"].items()}, int(data["uncacheable"]), reasons)
        except (BadData, KeyError, TypeError, ValueError, AttributeError) as err:
            raise BadData(f"{self.path} does not have the master's format", hint="It may be removed.") from err
