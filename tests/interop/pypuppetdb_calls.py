"""
Calls pypuppetdb's methods. A script beside the clients: it reads what to call, and prints what came back, in JSON.

In: {"connection": OPTIONS, "calls": {NAME: [[METHOD, ARGUMENTS, NAMED], ...]}}: the first method is one of a connection that is made
with these options, each further one of what the one before returned. Out: {NAME: VALUE}; objects as what can be read of them, and errors as
their text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from pypuppetdb import connect


def described(value: object) -> object:
    if isinstance(value, Iterator):
        value = list(value)
    if isinstance(value, list):
        return [described(each) for each in value]
    if type(value).__module__.startswith("pypuppetdb"):
        return {
            name: field if isinstance(field, dict | list | int) else str(field) for name, field in vars(value).items() if name[0] != "_"
        }
    return value


def called(connection: dict, steps: list) -> object:
    value = connect(**connection)
    for method, arguments, named in steps:
        value = getattr(value, method)(*arguments, **named)
    return described(value)


def main() -> None:
    asked = json.load(sys.stdin)
    answers = {}
    for name, steps in asked["calls"].items():
        try:
            answers[name] = called(asked["connection"], steps)
        except Exception as error:
            answers[name] = f"{type(error).__name__}: {error}"
    json.dump(answers, sys.stdout, default=str)


if __name__ == "__main__":
    main()
