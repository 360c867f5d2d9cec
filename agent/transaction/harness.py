"""
The evaluation of one resource: read, compare, decide, apply, report. Noop is the same code without the call that applies.

Source: resource layer reference 3.4.
"""

from __future__ import annotations

import hashlib
import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.errors import PuppetError, WrappedError
from shared.failpoints import failpoint
from shared.ral import ABSENT, Property, State, Type
from shared.ral.attributes import text_of
from shared.ral.commands import keep_secret
from shared.ral.handling import Handler
from shared.ral.messages import REDACTED
from shared.ral.providers import check_values, drop_unsupported

from ..state.runlog import RunLog
from ..state.statefiles import StateFile, TransactionStore
from .status import EvaluationStatus, ResourceEvent


def failure_reason(err: BaseException) -> str:
    """Return the text of a resource's failure for `err`."""
    if isinstance(err, PuppetError):
        return str(err)
    if isinstance(err, OSError) and err.strerror:
        return f"{err.strerror} - {err.filename}" if err.filename else err.strerror
    return str(err) or type(err).__name__


def failure_reason_of(resource: Type, err: BaseException) -> str:
    """Return the text of a resource's failure for `err`, without the resource's Sensitive values."""
    return resource.without_secrets(failure_reason(err))


def wrapped_by(resource: Type, err: BaseException) -> str:
    """Return a log text about the errors that an error of a module's Ruby wraps; '' for other errors and refused values."""
    if resource.fault is not None or not isinstance(err.__cause__, WrappedError):
        return ""
    return resource.without_secrets(err.__cause__.message)


@dataclass(slots=True)
class _Evaluation:
    """The data about a resource while it is evaluated."""

    resource: Type
    provider: Handler[Any] | None
    state: State | None  # as the provider returned it; None: absent
    current: dict[str, Any]  # the same state with a value for every property
    remembered: dict[str, Any]  # the state file's entry before this run changed it
    status: EvaluationStatus
    synced: set[str] = field(default_factory=set)  # properties that had an event

    @property
    def present(self) -> bool:
        return self.resource.exists_in(self.current)


class Harness:
    """Brings resources into their desired state, one at a time."""

    def __init__(self, *, log: RunLog, state: StateFile, store: TransactionStore | None, now: Callable[[], datetime]) -> None:
        self.log = log
        self.state = state
        self.store = store
        self.now = now

    async def evaluate(self, resource: Type, status: EvaluationStatus, prefetched: Mapping[str, State | None]) -> None:
        """
        Evaluate one resource and record the result in `status`.

        Args:
            prefetched: The states that its provider has read already, by key; a state that is missing here is read now.
        """
        started = time.perf_counter()
        provider = resource.handler
        try:
            if resource.fault is not None:
                raise resource.fault
            # Deferred values are resolved now and not at the start: their functions may use what earlier resources set up.
            if resource.pending:
                resource.resolve_pending()
                self.log.secrets.update(resource.redaction)
                # The resolved values may belong to parameters that this provider does not support.
                if provider is not None:
                    drop_unsupported(resource, provider)
            with keep_secret(resource.secrets()):
                state = await self._read(resource, prefetched)
                failpoint(f"transaction.read:{resource.ref}")
                evaluation = self._begin(resource, provider, state, status)
                await self._perform(evaluation)
                if status.changed and not resource.simulated:
                    # Before the flush: the properties have been changed even if writing the rest fails.
                    self.state.entry(str(resource.ref))["synced"] = self.now()
                    if provider:
                        await provider.flush(resource, state)
            failpoint(f"transaction.done:{resource.ref}")
        except Exception as err:  # noqa: BLE001  # a provider's mistake fails its resource, not the run
            self._log_unforeseen(resource, err)
            if isinstance(err, PuppetError):
                resource.strip_secrets(err)
            hint = f"\n{err.hint}" if isinstance(err, PuppetError) and err.hint else ""
            resource.log("err", f"Could not evaluate: {failure_reason_of(resource, err)}{wrapped_by(resource, err)}{hint}")
            status.fail(failure_reason_of(resource, err), self.now())
        finally:
            status.evaluation_time = time.perf_counter() - started

    async def _read(self, resource: Type, prefetched: Mapping[str, State | None]) -> State | None:
        if resource.handler is None:
            return {}
        check_values(resource, resource.handler)
        return prefetched[resource.key] if resource.key in prefetched else await resource.handler.retrieve(resource)

    def _log_unforeseen(self, resource: Type, err: Exception) -> None:
        if not isinstance(err, PuppetError | OSError | ValueError) and self.log.wants("debug"):
            resource.log("debug", resource.without_secrets("".join(traceback.format_exception(err))))

    def _begin(self, resource: Type, provider: Handler[Any] | None, state: State | None, status: EvaluationStatus) -> _Evaluation:
        current = {p.name: ABSENT for p in resource.declaration.properties} | dict(state or {})
        if "ensure" in resource.declaration.attributes and state is not None and "ensure" not in state:
            current["ensure"] = "present"
        # A copy: the entry is overwritten with this run's values below.
        remembered = dict(self.state.entry(str(resource.ref)))
        return _Evaluation(resource, provider, state, current, remembered, status)

    async def _perform(self, evaluation: _Evaluation) -> None:
        entry = self.state.entry(str(evaluation.resource.ref))
        entry["checked"] = self.now()
        for name in evaluation.resource.audit:
            value = evaluation.current.get(name, ABSENT)
            # state.yaml outlives the run and goes into backups, so a secret must not be in it.
            entry[name] = _seal(value) if evaluation.resource.is_sensitive(name) else value
        changed_ensure = False
        if evaluation.resource.wanted("ensure") is not None:
            changed_ensure = await self._sync_if_needed(evaluation, evaluation.resource.declaration.attributes["ensure"])
        # After a change of `ensure` the provider has set all properties at once.
        if not changed_ensure:
            if evaluation.present:
                for declared in evaluation.resource.declaration.properties:
                    if declared.name != "ensure" and evaluation.resource.wanted(declared.name) is not None:
                        await self._sync_if_needed(evaluation, declared)
            elif evaluation.resource.wanted("ensure") is None:
                evaluation.resource.log("debug", "Nothing to manage: no ensure and the resource doesn't exist")
        self._audit(evaluation)
        self._remember(evaluation)

    # --- one property

    async def _sync_if_needed(self, evaluation: _Evaluation, declared: Any) -> bool:
        """Bring one property into sync; return whether it was out of sync."""
        name = declared.name
        desired = evaluation.resource.wanted(name)
        if desired is None:
            return False
        event: ResourceEvent | None = None
        try:
            if await self._insync(evaluation, declared, desired):
                return False
            event = self._event(evaluation, declared, desired)
            await self._sync(evaluation, declared, desired, event)
        except Exception as err:  # noqa: BLE001  # the other properties are still brought into sync
            event = event or self._event(evaluation, declared, desired)
            self._log_unforeseen(evaluation.resource, err)
            self._fail(evaluation, declared, event, err)
        await self._judge_drift(evaluation, declared, event)
        self._record(evaluation, event)
        return True

    async def _insync(self, evaluation: _Evaluation, declared: Any, desired: list[Any]) -> bool:
        resource, provider = evaluation.resource, evaluation.provider
        if provider is None:
            return bool(declared.insync(resource, evaluation.current, desired))
        return await provider.insync(resource, declared.name, evaluation.current, desired)

    def _event(self, evaluation: _Evaluation, declared: Property[Any], desired: list[Any]) -> ResourceEvent:
        current = evaluation.current.get(declared.name, ABSENT)
        should = declared.should(evaluation.resource, evaluation.current, desired)
        secret = evaluation.resource.is_sensitive(declared.name)
        before = evaluation.remembered.get(declared.name)
        listed_value = declared.listed(should) if not isinstance(should, list) else None
        return ResourceEvent(
            name=declared.event_name(evaluation.resource, should),
            status="success",
            time=self.now(),
            property=declared.name,
            previous_value=REDACTED if secret and current is not None else current,
            desired_value=REDACTED if secret and should is not None else should,
            historical_value=REDACTED if secret and before is not None else before,
            redacted=True if secret else None,
            invalidate_refreshes=bool(listed_value and listed_value.invalidate_refreshes),
        )

    async def _sync(self, evaluation: _Evaluation, declared: Property[Any], desired: list[Any], event: ResourceEvent) -> None:
        resource, name = evaluation.resource, declared.name
        current, should = evaluation.current.get(name, ABSENT), declared.should(resource, evaluation.current, desired)
        secret = resource.is_sensitive(name)
        suffix = self._audited_suffix(evaluation, declared, event)
        is_text = REDACTED if secret else declared.is_text(resource, current)
        should_text = REDACTED if secret else declared.should_text(resource, should)
        if evaluation.provider:
            await evaluation.provider.preview(resource, name, should, evaluation.state)
        if resource.simulated:
            event.status = "noop"
            event.message = f"current_value {is_text}, should be {should_text} (noop)" + suffix
            return
        await self._apply(evaluation, name, should)
        change = f"changed {is_text} to {should_text}" if secret else declared.change_text(resource, current, should)
        event.status = "success"
        event.message = change + suffix

    async def _apply(self, evaluation: _Evaluation, name: str, should: Any) -> None:
        if evaluation.provider is None:
            return
        if name == "ensure" and should == "present":
            await evaluation.provider.create(evaluation.resource, evaluation.state)
        elif name == "ensure" and should == ABSENT:
            await evaluation.provider.destroy(evaluation.resource, evaluation.state)
        else:
            await evaluation.provider.set(evaluation.resource, name, should, evaluation.state)

    def _fail(self, evaluation: _Evaluation, declared: Property[Any], event: ResourceEvent, err: Exception) -> None:
        resource = evaluation.resource
        detail = failure_reason_of(resource, err)
        desired = resource.wanted(declared.name) or []
        if resource.is_sensitive(declared.name):
            is_text = should_text = REDACTED
        else:
            is_text = declared.is_text(resource, evaluation.current.get(declared.name, ABSENT))
            should_text = declared.should_text(resource, declared.should(resource, evaluation.current, desired))
        self.log.log("err", detail + wrapped_by(resource, err))
        if isinstance(err, PuppetError) and isinstance(err.__cause__, OSError):
            self.log.log("err", f"{detail}\nWrapped exception:\n{failure_reason_of(resource, err.__cause__)}")
        event.status = "failure"
        event.message = f"change from {is_text} to {should_text} failed: {detail}"

    async def _judge_drift(self, evaluation: _Evaluation, declared: Property[Any], event: ResourceEvent) -> None:
        """Mark a change as corrective when the last run left the property in sync and something else has changed it since."""
        if self.store is None or not declared.idempotent or evaluation.resource.is_sensitive(declared.name):
            return
        last_value = self.store.system_value(str(evaluation.resource.ref), declared.name)
        if last_value is not None and not await self._insync(evaluation, declared, last_value):
            event.corrective = True
            event.message += " (corrective)"

    def _record(self, evaluation: _Evaluation, event: ResourceEvent) -> None:
        evaluation.status.add(event)
        evaluation.synced.add(event.property or "")
        level = "err" if event.status == "failure" else evaluation.resource.loglevel
        evaluation.resource.log(level, event.message, event.property or "")

    # --- audit, and the state for the next run

    def _audited_suffix(self, evaluation: _Evaluation, declared: Property[Any], event: ResourceEvent) -> str:
        if declared.name not in evaluation.resource.audit:
            return ""
        event.audited = True
        before = evaluation.remembered.get(declared.name)
        if before is None or _is_unchanged(before, evaluation.current.get(declared.name, ABSENT)):
            return ""
        text = REDACTED if evaluation.resource.is_sensitive(declared.name) else declared.is_text(evaluation.resource, before)
        return f" (previously recorded value was {text})"

    def _audit(self, evaluation: _Evaluation) -> None:
        for name in evaluation.resource.audit:
            declared = evaluation.resource.declaration.attributes[name]
            assert isinstance(declared, Property)
            current = evaluation.current.get(name, ABSENT)
            secret = evaluation.resource.is_sensitive(name)
            if name not in evaluation.remembered:
                evaluation.resource.log("notice", f"audit change: newly-recorded value {REDACTED if secret else text_of(current)}", name)
                continue
            before = evaluation.remembered[name]
            if _is_unchanged(before, current) or name in evaluation.synced:
                continue
            event = self._event(evaluation, declared, evaluation.resource.wanted(name) or [])
            event.status, event.audited = "audit", True
            texts = (
                (REDACTED, REDACTED)
                if secret
                else (declared.is_text(evaluation.resource, before), declared.is_text(evaluation.resource, current))
            )
            event.message = "audit change: previously recorded value {} has been changed to {}".format(*texts)
            evaluation.status.add(event)
            evaluation.resource.log(evaluation.resource.loglevel, event.message, name)

    def _remember(self, evaluation: _Evaluation) -> None:
        if self.store is None:
            return
        ref = str(evaluation.resource.ref)
        events = {event.property: event for event in evaluation.status.events}
        audited = evaluation.resource.audit
        for declared in evaluation.resource.declaration.properties:
            desired = evaluation.resource.wanted(declared.name)
            if (desired is None and declared.name not in audited) or evaluation.resource.is_sensitive(declared.name):
                continue
            event = events.get(declared.name)
            value = desired
            if event and event.status != "success":
                previous = event.previous_value
                value = self.store.system_value(ref, declared.name) or (previous if isinstance(previous, list) else [previous])
            self.store.remember(ref, declared.name, value)


_SEAL = "{salted}"


def _seal(value: Any, salt: str = "") -> str:
    """Return the salted hash by which a later run can see that a secret has changed, without storing the secret."""
    salt = salt or secrets.token_hex(16)
    return f"{_SEAL}{salt}:{hashlib.sha256((salt + text_of(value)).encode()).hexdigest()}"


def _is_unchanged(before: Any, current: Any) -> bool:
    if isinstance(before, str) and before.startswith(_SEAL):
        return before == _seal(current, before.removeprefix(_SEAL).partition(":")[0])
    if isinstance(before, datetime) and isinstance(current, datetime):
        return abs((before - current).total_seconds()) < 1e-6  # files keep fewer digits than the system
    return bool(before == current)
