"""Moving a CA from one store to another: as a whole, checked, and never usable in both."""

from __future__ import annotations

from collections.abc import Callable

from certs import crl
from certs.files import bundles
from shared.errors import ConfigError, Conflict, Unavailable
from shared.filesystem.files import FileLock

from .store import CaContents, CaStore


def move_ca(source: CaStore, target: CaStore, say: Callable[[str], None]) -> None:
    """
    Move the CA in `source` to the empty `target`. Blocks; may be repeated after a failure at any point, and then goes on.

    Nobody can write to the source meanwhile. It is retired when everything is in the target. The caller makes sure that no master runs
    on another machine with the source: one that did would go on with it until it writes.

    Args:
        say: Gets a sentence for each step.
    Raises:
        Unavailable: a master runs here. StateAway: the database is away.
        ConfigError: a store is damaged, the source has no CA, or a CRL from a back-up.
        Conflict: the target has another CA; nothing is changed.
    """
    if not source.files.cadir.exists():
        raise ConfigError(f"There is no CA in {source.place}, and no folder {source.files.cadir} of a master that uses it")
    lock = FileLock(source.files.master_lock)
    try:
        lock.acquire()
    except Unavailable as err:
        raise Unavailable(f"A master runs with the CA in {source.files.cadir}", hint="Stop it first.") from err
    try:
        _move(source, target, say)
    finally:
        lock.release()


def _move(source: CaStore, target: CaStore, say: Callable[[str], None]) -> None:
    arrived = _has_ca(target)
    if not _has_ca(source):
        if not arrived:
            raise ConfigError(f"There is no CA in {source.place}")
        if source.is_retired():
            source.retire(target.place)  # it may have been cut off
        say(f"The CA is in {target.place} already")
        return
    with source.moving():
        contents = source.contents()
        _check_crls(source, contents)
        if not arrived:
            target.install(contents)
        _check_arrived(contents, target, is_new=not arrived)
        say(
            f"Copied the CA to {target.place}, and compared it: {len(contents.signed)} certificates, {len(contents.requests)} requests, "
            f"{len(contents.inventory)} lines of inventory; the next serial is {contents.next_serial:#06x}"
        )
        source.retire(target.place)
    say(f"The CA in {source.place} cannot be used any more")


def _has_ca(store: CaStore) -> bool:
    return not store.is_retired() and store.prepare()


def _check_crls(source: CaStore, contents: CaContents) -> None:
    seen = [each for pem in source.newest_crls() for each in bundles.revocation_lists(pem)]
    if crl.newer_known(bundles.revocation_lists(contents.crls), seen) is not None:
        raise ConfigError(
            f"The CRL {source.crls_place} is older than one that was in use", hint="Start a master with it, which says what to do."
        )


def _check_arrived(contents: CaContents, target: CaStore, *, is_new: bool) -> None:
    """
    Raise Conflict unless everything is in the target.

    A target that was there before may have more, since masters may have used it after a move that was cut off at its end.
    """
    there = target.contents()
    differences = [
        name
        for name, differs in (
            ("certificate", there.certificates != contents.certificates),
            ("serial", there.next_serial < contents.next_serial or (is_new and there.next_serial != contents.next_serial)),
            ("inventory", not {entry for entry, _ in contents.inventory} <= {entry for entry, _ in there.inventory}),
            ("revocations", not _revoked(contents) <= _revoked(there)),
            ("signed certificates", is_new and there.signed != contents.signed),
            ("requests", is_new and there.requests != contents.requests),
        )
        if differs
    ]
    if differences:
        raise Conflict(
            f"The CA in {target.place} is not the one that should move there; it differs in: {', '.join(differences)}",
            hint="Nothing was removed.",
        )


def _revoked(contents: CaContents) -> frozenset[tuple[str, int]]:
    lists = bundles.revocation_lists(contents.crls)
    return frozenset((each.issuer.rfc4514_string(), serial) for each in lists for serial in crl.serials(each))
