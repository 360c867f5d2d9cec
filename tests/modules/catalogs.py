"""Catalogs as our compiler and the reference answer them, and what differs in two of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from environments.directory_environment import DirectoryEnvironment
from language.evaluation.compile import compile_catalog
from language.host import NodeInput
from language.loading.loader import Loader
from shared.errors import PuppetError

__all__ = ["compiled", "differences", "said"]


def compiled(
    world: DirectoryEnvironment,
    loader: Loader,
    certname: str,
    facts: Mapping[str, Any],
    logs: list[list[str]],
    *,
    parameters: Mapping[str, Any] | None = None,
    classes: Sequence[str] = (),
    version: str = "7.23.0",
) -> dict[str, Any]:
    """What we make of a node, in the form of reference.rb; `logs` gets what is logged. `classes` and `parameters` are a classifier's."""
    server = {"serverversion": version, "servername": "puppet", "serverip": "127.0.0.1", "environment": "production"}
    host, _, domain = certname.partition(".")
    node = NodeInput(
        certname,
        facts=facts,
        parameters={**facts, **(parameters or {}), **server, "clientcert": certname},
        classes=dict.fromkeys(classes),
        trusted={
            "authenticated": "remote",
            "certname": certname,
            "extensions": {},
            "hostname": host,
            "domain": domain or None,
            "external": {},
        },
        server_facts=server,
    )
    answer: dict[str, Any] = {"logs": logs}
    try:
        catalog = compile_catalog(world, loader, node, version=1, log=lambda entry: logs.append([entry.level, entry.text]), debug=False)
        edges = [[each["source"], each["target"]] for each in catalog["edges"]]
        answer |= json.loads(json.dumps({"resources": catalog["resources"], "edges": edges, "classes": catalog["classes"]}))
    except PuppetError as err:
        answer["error"] = str(err)
    except Exception as err:
        answer["error"] = f"CRASH {type(err).__name__}: {err}"
    return answer


def differences(wanted: Mapping[str, Any], got: Mapping[str, Any]) -> list[str]:
    """What is not the same in two catalogs."""
    found: list[str] = []
    for key in ("classes", "edges"):
        if wanted[key] != got[key]:
            missing = [each for each in wanted[key] if each not in got[key]]
            more = [each for each in got[key] if each not in wanted[key]]
            found.append(f"{key}: missing {missing[:3]}, too many {more[:3]}" if missing or more else f"{key}: another order")
    ours = {f"{each['type']}[{each['title']}]": each for each in got["resources"]}
    theirs = {f"{each['type']}[{each['title']}]": each for each in wanted["resources"]}
    found += [f"missing: {name}" for name in theirs if name not in ours]
    found += [f"too many: {name}" for name in ours if name not in theirs]
    if list(ours) != list(theirs) and ours.keys() == theirs.keys():
        found.append("resources: another order")
    for name in theirs.keys() & ours.keys():
        found += [f"{name} {each}" for each in _resource(theirs[name], ours[name])]
    return found


def _resource(wanted: Mapping[str, Any], got: Mapping[str, Any]) -> Iterable[str]:
    for key in sorted({*wanted, *got} - {"parameters", "kind"}):
        one, two = wanted.get(key), got.get(key)
        if key == "tags" and sorted(one or ()) == sorted(two or ()):
            continue
        if one != two:
            yield f"{key}: wanted {one!r}, got {two!r}"
    ones, twos = wanted.get("parameters", {}), got.get("parameters", {})
    for key in sorted({*ones, *twos}):
        one, two = ones.get(key), twos.get(key)
        if json.dumps(one) != json.dumps(two):
            yield f"{key} => wanted {one!r}, got {two!r}"
    if list(ones) != list(twos) and ones.keys() == twos.keys():
        yield f"parameters: wanted the order {list(ones)}, got {list(twos)}"


def said(text: str) -> str:
    """A warning without its place, which functions in Ruby write as Ruby's call stack."""
    return " ".join(re.sub(r' at \[".*|\n +\((?:location|file):? .*', "", text, flags=re.DOTALL).split())
