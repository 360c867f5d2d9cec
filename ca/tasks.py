"""The background tasks of a CA."""

from __future__ import annotations

from shared.process.supervision import SupervisedTask

DECIDE_AGAIN = "finish the requests of a killed master"
CHANGE_CA = "change the CA's files"

CA_TASKS = (SupervisedTask(CHANGE_CA, ends=True), SupervisedTask(DECIDE_AGAIN, ends=True))
