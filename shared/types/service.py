"""`service`: programs that run in the background. Source: resource layer reference 8, 13."""

from __future__ import annotations

from typing import Any

from ..ral import Ensure, Param, Property, State, Type, Value
from ..ral.attributes import as_list, text_of
from .kinds import arguments
from .kinds.lists import FolderList

FEATURES = {
    "refreshable": "The service can be restarted.",
    "enableable": "Whether the service starts at boot is managed.",
    "delayed_startable": "The start at boot can be delayed.",
    "manual_startable": "The start can be left to others.",
    "controllable": "A control variable is used.",
    "flaggable": "Flags are managed.",
    "maskable": "The service can be masked.",
    "configurable_timeout": "The time a start may take is set.",
    "manages_logon_credentials": "The account the service runs as is managed.",
}


class ServiceEnable(Property[str]):
    """Start at boot; some units (systemd's static and indirect ones) cannot be enabled, and count as in sync."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        unit = state.get("unit_file_state", "")
        if unit == "indirect" or (unit == "static" and desired[:1] != ["mask"]):
            resource.log("debug", f"The service is '{unit}' and cannot be enabled or disabled")
            return True
        return super().insync(resource, state, desired)


class ServicePath(FolderList):
    """Folders without control characters."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        for value in as_list(raw):
            arguments.check_plain(value)
        return super().accept(resource, raw)


def _seconds(value: Any) -> int:
    text = text_of(value)
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f'"{text}" is not a positive integer: the timeout parameter must be specified as a positive integer')
    return int(text)


def _password(value: Any) -> None:
    if ":" in text_of(value):
        raise ValueError("Passwords cannot include ':'")


def _command(value: Any) -> None:
    if "\0" in text_of(value):
        raise ValueError("A command cannot contain NUL")


_ELSEWHERE = "bsd daemontools freebsd gentoo launchd openbsd openwrt rcng runit service smf src windows"


class Service(Type, name="service", refreshable=True, ensure_retrieved=False, features=FEATURES):
    """A service of the system's init, or of commands of its own."""

    elsewhere = frozenset(_ELSEWHERE.split())

    ensure = Ensure(
        str,
        values=(
            Value("stopped", aliases=("false",), event="service_stopped"),
            Value("running", aliases=("true",), event="service_started", invalidate_refreshes=True),
        ),
        doc="Whether it runs.",
    )
    enable = ServiceEnable(
        str,
        values=(
            Value("true", event="service_enabled"),
            Value("false", event="service_disabled"),
            Value("manual", event="service_manual_start", requires=("manual_startable",)),
            Value("mask", event="service_disabled", requires=("maskable",)),
            Value("delayed", event="service_delayed_start", requires=("delayed_startable",)),
        ),
        requires=("enableable",),
        doc="Whether it starts at boot.",
    )
    logonaccount = Property(str, requires=("manages_logon_credentials",), doc="The account it runs as (Windows).")
    flags = Property(str, requires=("flaggable",), doc="Flags for its start.")

    name = Param(str, namevar=True, check=arguments.check_name, doc="The service's name, as the system knows it.")
    logonpassword = Param(str, check=_password, sensitive=True, requires=("manages_logon_credentials",), doc="That account's password.")
    binary = Param(str, check=_command, doc="The program, for systems without scripts or units.")
    hasstatus = Param(
        bool, values=(Value(True, ("true",)), Value(False, ("false",))), default=True, doc="Whether the init script knows `status`."
    )
    path = ServicePath(str, doc="Where init scripts are.")
    pattern = Param(str, default=lambda r: r.value_of("binary") or r.value_of("name"), doc="Regex for the process table.")
    restart = Param(str, check=_command, doc="A command of its own to restart it.")
    start = Param(str, check=_command, doc="A command of its own to start it.")
    status = Param(str, check=_command, doc="A command of its own that succeeds while it runs.")
    stop = Param(str, check=_command, doc="A command of its own to stop it.")
    control = Param(str, requires=("controllable",), doc="The control variable.")
    hasrestart = Param(bool, values=(Value(True, ("true",)), Value(False, ("false",))), doc="Whether the init script knows `restart`.")
    manifest = Param(str, doc="Where the service's manifest is (Solaris).")
    timeout = Param(int, munge=_seconds, requires=("configurable_timeout",), default=10, doc="Seconds that a start may take.")

    def validate(self) -> None:
        if self.logonpassword is not None and self.logonaccount is None:
            raise ValueError("The 'logonaccount' parameter is mandatory when setting 'logonpassword'.")
