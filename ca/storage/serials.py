"""The serial numbers of certificates: the next one is always one that no certificate of this CA has ever had."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from shared.errors import Conflict

from .store import CaStore

log = logging.getLogger("puppet.ca")

SMALL_SERIAL = 2**63  # imported certificates may carry random serials, which the counter must not follow
LARGEST_SERIAL = 2**159 - 1  # RFC 5280 4.1.2.2: a positive number of at most 20 octets, so that the first bit is 0


class SerialNumbers:
    """
    Issues serial numbers, none of them twice, even if the file `serial` is lost or replaced.

    The file alone is not trusted: an administrator may restore it, and `inventory.txt` with it, from an old back-up, even while the
    master runs. If the file is not as this object left it, the inventory, the certificates in `signed/` and the CRL are read, and
    the serials in them are skipped. All methods block; the caller of `take` holds the store's lock.

    Args:
        revoked: returns the serials on the CRL.
        authorities: returns the serials of those certificates of CAs that this CA has issued.
    """

    def __init__(self, store: CaStore, *, revoked: Callable[[], Iterable[int]], authorities: Callable[[], Iterable[int]]) -> None:
        self.store = store
        self._revoked = revoked
        self._authorities = authorities
        self._own_stamp: object = None  # of the counter, as `take` has written it
        self._least = 1  # beyond everything that this object has handed out

    def take(self) -> int:
        """
        Return the next serial number, after the number behind it is on disk.

        Raises:
            Conflict: The file has the last number of the range.
            ConfigError: the file holds no number.
        """
        written, number = self.store.next_serial(), self.next_free()
        if number != written:
            log.warning(
                "The serial file has %04X, which was used already (is it from a back-up?): the CA continues with %04X", written, number
            )
        self.store.save_next_serial(number + 1)
        self._own_stamp = self.store.serial_stamp()
        self._least = number + 1
        return number

    def next_free(self) -> int:
        """Return the number that `take` would return now; raise the same errors. Writes nothing."""
        written = self.store.next_serial()
        number = max(written, self._least)
        if self.store.serial_stamp() != self._own_stamp:
            used = self._serials_in_use()
            number = max(number, 1 + max((serial for serial in used if serial < SMALL_SERIAL), default=0))
            while number in used:
                number += 1
        if number > LARGEST_SERIAL:
            raise Conflict(
                f"The CA has no serial number left: its file has {written:X}, the largest possible is {LARGEST_SERIAL:X}",
                hint=f"Write the next free serial to {self.store.serial_place}: one more than the highest in the inventory.",
            )
        return number

    def _serials_in_use(self) -> set[int]:
        """Return every serial that the inventory, signed/, the CRL or the CA's own certificates show."""
        return {*self.store.inventory().serials, *self.store.signed_serials(), *self._revoked(), *self._authorities()}
