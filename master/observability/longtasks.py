"""The names of all background tasks of a master; a new task gets its name here, or in HTTP_TASKS or CA_TASKS."""

from __future__ import annotations

from ca.tasks import CA_TASKS
from httpd.tasks import HTTP_TASKS
from shared.process.supervision import SupervisedTask, Supervisor

WARN_OF_EXPIRIES = "warn of expiring certificates"
REFRESH_CRL = "fetch the CA's revocation list"
RENEW_CRL = "sign the revocation list again"
WATCH_HEALTH = "check the conditions of services"
RETIRE_WORKER = "end a compiling process"
REMOVE_LEFTOVERS = "remove leftovers of killed processes"
MEASURE_LOOP = "measure the event loop"
COLLECT_GARBAGE = "collect garbage"
NOTIFY_SYSTEMD = "notify systemd's watchdog"
RELOAD = "wait for HUP"
RUN_STORE = "run the store"
RECORD_ORIGINS = "save statistics of the catalog cache"
RECORD_DEPENDENCIES = "save dependency records"
DEPLOY = "deploy for the web hook"
WATCH_ROLLOUTS = "watch rollouts"
HEAR_OTHER_MASTERS = "hear of changes of other masters"
DRAIN_STATE_QUEUE = "store pending reports and files"
REMOVE_OLD_REPORTS = "remove old reports"
LOOK_AT_CODE = "look at the code of other masters"
FOLLOW_CODE = "make the code of other masters"
SEND_ORDERS = "send the orders of other masters"

MASTER_TASKS = (
    *HTTP_TASKS,
    *CA_TASKS,
    *map(SupervisedTask, (WARN_OF_EXPIRIES, REFRESH_CRL, RENEW_CRL, MEASURE_LOOP, COLLECT_GARBAGE, NOTIFY_SYSTEMD, RELOAD)),
    *map(SupervisedTask, (RUN_STORE, RECORD_ORIGINS, RECORD_DEPENDENCIES, DEPLOY, WATCH_ROLLOUTS, HEAR_OTHER_MASTERS, WATCH_HEALTH)),
    *map(SupervisedTask, (DRAIN_STATE_QUEUE, REMOVE_OLD_REPORTS)),
    *map(SupervisedTask, (LOOK_AT_CODE, FOLLOW_CODE, SEND_ORDERS)),
    SupervisedTask(RETIRE_WORKER, ends=True),
    SupervisedTask(REMOVE_LEFTOVERS, ends=True),
)


def master_supervisor() -> Supervisor:
    """Return a supervisor of the long tasks of one master."""
    return Supervisor(MASTER_TASKS)
