"""The names of a store's background tasks."""

from __future__ import annotations

from httpd.tasks import HTTP_TASKS
from shared.process.supervision import SupervisedTask

CARRY_OUT = "carry out commands"
CLEAN_UP = "remove expired data"
COLLECT_GARBAGE = "collect garbage"
NOTIFY_SYSTEMD = "notify systemd's watchdog"
RELOAD = "wait for HUP"

STORE_TASKS = (
    *HTTP_TASKS,
    SupervisedTask(CARRY_OUT, essential=True),
    *map(SupervisedTask, (CLEAN_UP, COLLECT_GARBAGE, NOTIFY_SYSTEMD, RELOAD)),
)
