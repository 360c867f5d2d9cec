"""The differences between two catalogs of one node, as changes that can be recognized as the same on other nodes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.data import plainjson

from ..module_sources import ModuleSources, module_sources
from .textdiffs import TextDiffs, digest_of

MAX_VALUE = 2_000
"""Characters of a value, as JSON, that is shown."""
LONG_TEXT = 200
"""Characters of a text of one line that is shown as a value, not as a diff."""
MAX_PARAMETERS = 60
"""Parameters of a resource that are shown."""
SECRET = "[sensitive]"  # noqa: S105
SHORTEST_SECRET = 4
"""Characters; a shorter one, which may be a part of any word, is replaced where it is a whole word, and lines of a text only from here."""
_AFTER = {"require": "before", "subscribe": "notify"}
RELATIONSHIPS = ("before", "notify", *_AFTER)
NODE_FACTS = ("fqdn", "hostname", "ipaddress", "clientcert")

Catalog = Mapping[str, Any]
Resource = Mapping[str, Any]
Diff = tuple[str, str, dict[str, Any]]
"""The key by which a change is the same on several nodes, a digest of this node's values, and the change as data without nodes."""
Place = tuple[str, str, str | None]
"""The place of a difference: kind, subject, parameter."""


@dataclass(frozen=True, slots=True)
class NodeWords:
    """Finds a node's names in a text, so that changes that differ only in the node's name are one change."""

    pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, certname: str, facts: Mapping[str, Any]) -> NodeWords:
        networking = facts.get("networking")
        found = [certname, *(facts.get(name) for name in NODE_FACTS)]
        if isinstance(networking, Mapping):
            found += [networking.get(name) for name in ("fqdn", "hostname", "ip", "ip6", "mac")]
        words = {word for word in found if isinstance(word, str) and len(word) > 1}
        pattern = "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))
        return cls(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)") if pattern else None)

    def replace(self, text: str) -> str:
        return self.pattern.sub("<node>", text) if self.pattern is not None else text


class SecretTexts:
    """Replaces unwrapped texts of Sensitive values in the shown text, wherever the code used them."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: Any) -> None:
        """Add all texts in a value but the keys of its hashes, line by line, also as they are written in JSON."""
        if isinstance(value, list | dict):
            for item in value.values() if isinstance(value, dict) else value:
                self.add(item)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            lines = [line.strip() for line in str(value).splitlines()]
            texts = {text for line in lines for text in (line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1])}
            if new := {text for text in texts if len(text) >= SHORTEST_SECRET or (text and len(lines) == 1)} - self._texts:
                self._texts |= new
                self._pattern = None

    def clear(self) -> None:
        self._texts.clear()
        self._pattern = None

    def hide(self, value: Any) -> Any:
        """Return a value in which no text has a secret."""
        if not self._texts:
            return value
        if isinstance(value, list):
            return [self.hide(item) for item in value]
        if isinstance(value, dict):
            return {self.hide(key): self.hide(item) for key, item in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return SECRET if str(value) in self._texts else value
        if not isinstance(value, str):
            return value
        if self._pattern is None:
            self._pattern = re.compile("|".join(map(_pattern_of, sorted(self._texts, key=lambda text: (-len(text), text)))))
        return self._pattern.sub(SECRET, value)


def _pattern_of(secret: str) -> str:
    text = re.escape(secret)
    return text if len(secret) >= SHORTEST_SECRET else rf"(?<!\w){text}(?!\w)"


@dataclass(slots=True)
class CatalogComparison:
    """
    Compares catalogs of the two sides.

    Args:
        roots: the folders of the environment on both sides; that of the second one appears as the first one's.
        sources: the files of modules on both sides.
        secrets: What must not be shown.
    """

    roots: tuple[str, str]
    sources: tuple[ModuleSources, ModuleSources]
    secrets: SecretTexts = field(default_factory=SecretTexts)
    texts: TextDiffs = field(default_factory=TextDiffs)

    def differences(self, before: Catalog, after: Catalog, words: NodeWords) -> dict[Place, Diff]:
        """Return the changes from one catalog to the other, by where they are."""
        old = {_ref(resource): resource for resource in before["resources"]}
        new = {self._neutral_text(_ref(resource)): resource for resource in after["resources"]}
        found: list[tuple[Place, Diff]] = [
            *self._classes(before["classes"], after["classes"]),
            *(self._whole("removed", ref, resource, words) for ref, resource in old.items() if ref not in new and not _is_class(resource)),
            *(self._whole("added", ref, resource, words) for ref, resource in new.items() if ref not in old and not _is_class(resource)),
        ]
        common = [ref for ref in old if ref in new]
        for ref in common:
            found += self._parameters(ref, old[ref], new[ref], words)
        edges = [_containment(before, lambda text: text), _containment(after, self._neutral_text)]
        found += self._edges("containment", edges[0], edges[1], set(common))
        found += self._edges("order", _order(old, self._plain), _order(new, self._neutral), set(common))
        return dict(found)

    # --- whole resources, classes ---

    def _classes(self, before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Place, Diff]]:
        for action, names, others in (("removed", before, set(after)), ("added", after, set(before))):
            for name in dict.fromkeys(names):
                if name not in others:
                    yield ("class", name, None), (_key("class", action, name), "", _change("class", action, name))

    def _whole(self, action: str, ref: str, resource: Resource, words: NodeWords) -> tuple[Place, Diff]:
        is_new = action == "added"
        values = self._neutral(resource.get("parameters", {})) if is_new else resource.get("parameters", {})
        secrets = _secrets(resource, values)
        values = self.secrets.hide(values)
        shown, truncated = _shown_parameters(values, secrets)
        subject = self.secrets.hide(ref)
        places = {"old": None, "new": None, "new" if is_new else "old": self._place(resource, self.roots[is_new])}
        change = _change("resource", action, subject, parameters=shown, truncated=truncated, places=places)
        digest = digest_of(words.replace(canonical({**values, **dict.fromkeys(secrets, SECRET)}))).hex()
        return ("resource", ref, None), (_key("resource", action, subject), digest, change)

    # --- parameters ---

    def _parameters(self, ref: str, old: Resource, new: Resource, words: NodeWords) -> Iterator[tuple[Place, Diff]]:
        before, after = old.get("parameters", {}), new.get("parameters", {})
        if before != after or plainjson.dumps(before) != plainjson.dumps(after):
            secrets = {*_secrets(old, before), *_secrets(new, after)}
            for name in dict.fromkeys([*before, *after]):
                if name not in RELATIONSHIPS:
                    yield from self._parameter(ref, name, (old, new), (name in before, name in after), name in secrets, words)
        for name in ("exported", "virtual"):
            if bool(old.get(name)) != bool(new.get(name)):
                yield self._entry(ref, f"({name})", (old, new), bool(old.get(name)), bool(new.get(name)), words)
        marked = [sorted(resource.get("sensitive_parameters", ())) for resource in (old, new)]
        if marked[0] != marked[1]:
            yield self._entry(ref, "(sensitive parameters)", (old, new), marked[0], marked[1], words)
        if old["type"] == "File" and "source" in before and before["source"] == after.get("source"):
            yield from self._source(ref, (old, new), before, words)

    def _parameter(
        self, ref: str, name: str, resources: tuple[Resource, Resource], present: tuple[bool, bool], secret: bool, words: NodeWords
    ) -> Iterator[tuple[Place, Diff]]:
        old = resources[0].get("parameters", {}).get(name)
        new = self._neutral(resources[1].get("parameters", {}).get(name))
        if present[0] == present[1] and canonical(old) == canonical(new):
            return
        if secret:
            yield self._secret_entry(ref, name, resources, present)
        else:
            yield self._entry(ref, name, resources, old, new, words, present)

    def _entry(
        self,
        ref: str,
        name: str,
        resources: tuple[Resource, Resource],
        old: Any,
        new: Any,
        words: NodeWords,
        present: tuple[bool, bool] = (True, True),
        *,
        as_text: bool = False,
    ) -> tuple[Place, Diff]:
        """Return the entry of a parameter whose values may be shown; texts of several lines, or `as_text`, as a diff."""
        old, new = self.secrets.hide(old), self.secrets.hide(new)
        if all(present) and canonical(old) == canonical(new):  # only the secrets in them differ
            return self._secret_entry(ref, name, resources, present)
        action, subject = _action(present), self.secrets.hide(ref)
        change = _change("parameter", action, subject, parameter=name, places=self._places(resources))
        if isinstance(old, str) and isinstance(new, str) and (as_text or _is_long(old, new)):
            diff = self.texts.diff(old, new)
            change |= {"diff": diff.lines, "lines": diff.count, "truncated": diff.truncated}
            same = words.replace(diff.changed)
        else:
            change["old"], cut_old = _bounded(old)
            change["new"], cut_new = _bounded(new)
            change["truncated"] = cut_old or cut_new
            same = words.replace(f"{canonical(old)}\n{canonical(new)}")
        values = digest_of(f"{canonical(old)}\n{canonical(new)}").hex()
        return ("parameter", ref, name), (_key("parameter", subject, name, action, same), values, change)

    def _secret_entry(
        self, ref: str, name: str, resources: tuple[Resource, Resource], present: tuple[bool, bool] = (True, True)
    ) -> tuple[Place, Diff]:
        """Return the entry of a parameter that only shows that its value differs."""
        action, subject = _action(present), self.secrets.hide(ref)
        change = _change("parameter", action, subject, parameter=name, secret=True, places=self._places(resources))
        return ("parameter", ref, name), (_key("parameter", subject, name, action, SECRET), "", change)

    def _source(
        self, ref: str, resources: tuple[Resource, Resource], parameters: Mapping[str, Any], words: NodeWords
    ) -> Iterator[tuple[Place, Diff]]:
        """Yield the differences in the source files of a resource, when the source is the same on both sides."""
        keys = module_sources(parameters)
        found = [next((key for key in keys if side.path(key) is not None), None) for side in self.sources]
        digests = [side.digest(key) if key is not None else None for side, key in zip(self.sources, found, strict=True)]
        if digests[0] == digests[1]:
            return
        texts = [side.text(key) if key is not None else None for side, key in zip(self.sources, found, strict=True)]
        if "source" in {*_secrets(resources[0], parameters), *resources[1].get("sensitive_parameters", ())}:
            yield self._secret_entry(ref, "source", resources)
        elif texts[0] is not None and texts[1] is not None:
            place, (key, values, change) = self._entry(ref, "source", resources, texts[0], texts[1], words, as_text=True)
            yield place, (_key(key, *map(str, digests)), values, change)
        else:
            yield self._entry(ref, "source", resources, digests[0], digests[1], words)

    # --- edges ---

    def _edges(
        self, kind: str, before: Mapping[tuple[str, str, str], None], after: Mapping[tuple[str, str, str], None], common: set[str]
    ) -> Iterator[tuple[Place, Diff]]:
        """Yield the edges that only one side has, except those of resources that were added or removed."""
        for action, edges, others in (("removed", before, after), ("added", after, before)):
            for first, second, name in edges:
                if (first, second, name) in others or first not in common or second not in common:
                    continue
                container, subject = self.secrets.hide(first), self.secrets.hide(second)
                change = _change(kind, action, subject, container=container, parameter=name or None)
                yield (kind, second, f"{action} {name} {first}"), (_key(kind, action, container, subject, name), "", change)

    # --- what is the same wherever the code is ---

    def _plain(self, value: Any) -> Any:
        return value

    def _neutral_text(self, text: str) -> str:
        before, after = self.roots
        return text.replace(after, before) if after in text else text

    def _neutral(self, value: Any) -> Any:
        """Return a value in which the folder of the second side is called as that of the first one."""
        if isinstance(value, str):
            return self._neutral_text(value)
        if isinstance(value, list):
            return [self._neutral(item) for item in value]
        if isinstance(value, dict):
            return {self._neutral(key): self._neutral(item) for key, item in value.items()}
        return value

    def _places(self, resources: tuple[Resource, Resource]) -> dict[str, str | None]:
        return {side: self._place(resource, root) for side, resource, root in zip(("old", "new"), resources, self.roots, strict=True)}

    def _place(self, resource: Resource, root: str) -> str | None:
        file, line = resource.get("file"), resource.get("line")
        if file is None:
            return None
        short = str(file).removeprefix(f"{root}/")
        return short if line is None else f"{short}:{line}"


def _change(kind: str, action: str, subject: str, **more: Any) -> dict[str, Any]:
    """Return a change as data, without empty fields."""
    return {"kind": kind, "action": action, "subject": subject, **more}


def _action(present: tuple[bool, bool]) -> str:
    return "changed" if all(present) else "added" if present[1] else "removed"


def _key(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _ref(resource: Resource) -> str:
    return f"{resource['type']}[{resource['title']}]"


def _is_class(resource: Resource) -> bool:
    """Return whether a resource is a class, which is compared as a class."""
    return bool(resource["type"] == "Class")


def canonical(value: Any) -> str:
    """Return a text that is equal for values that are the same to an agent: in a hash no order counts, and 1 is not 1.0."""
    return plainjson.dumps_pson(_ordered(value)).decode("utf-8", "surrogateescape")


def _ordered(value: Any) -> Any:
    """Return a value with the keys of its hashes in one order; `__ptype: Hash` is a hash with other keys than texts."""
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("__ptype") == "Hash" and isinstance(flat := value.get("__pvalue"), list):
        pairs = sorted(([_ordered(key), _ordered(item)] for key, item in zip(flat[::2], flat[1::2], strict=False)), key=repr)
        return {**value, "__pvalue": pairs}
    return {key: _ordered(item) for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))}


def _is_long(old: str, new: str) -> bool:
    return "\n" in old or "\n" in new or len(old) > LONG_TEXT or len(new) > LONG_TEXT


def _bounded(value: Any) -> tuple[Any, bool]:
    """Return a value to be shown, and whether it is only the beginning, as text."""
    if value is None or isinstance(value, bool | int | float):
        return value, False
    text = value if isinstance(value, str) else canonical(value)
    return (value, False) if len(text) <= MAX_VALUE else (f"{text[:MAX_VALUE]}…", True)


def _shown_parameters(parameters: Mapping[str, Any], secrets: Iterable[str]) -> tuple[dict[str, Any], bool]:
    bounded = {name: _bounded(SECRET if name in secrets else value) for name, value in [*parameters.items()][:MAX_PARAMETERS]}
    truncated = len(parameters) > MAX_PARAMETERS or any(cut for _, cut in bounded.values())
    return {name: value for name, (value, _) in bounded.items()}, truncated


def _secrets(resource: Resource, parameters: Mapping[str, Any]) -> set[str]:
    """Return the names of the parameters that are sensitive, or have something sensitive in them."""
    return {*resource.get("sensitive_parameters", ()), *(name for name, value in parameters.items() if holds_secret(value))}


def holds_secret(value: Any) -> bool:
    """Return whether there is something sensitive in a value."""
    if isinstance(value, Mapping):
        return value.get("__ptype") == "Sensitive" or any(map(holds_secret, value.values())) or any(map(holds_secret, value))
    return isinstance(value, list) and any(map(holds_secret, value))


def _containment(catalog: Catalog, neutral: Callable[[str], str]) -> dict[tuple[str, str, str], None]:
    return {(neutral(edge["source"]), neutral(edge["target"]), ""): None for edge in catalog["edges"]}


def _order(resources: Mapping[str, Resource], neutral: Callable[[Any], Any]) -> dict[tuple[str, str, str], None]:
    """Return the order of two resources, and whether the first notifies the second, from the relationships of both."""
    pairs: dict[tuple[str, str, str], None] = {}
    for ref, resource in resources.items():
        parameters = resource.get("parameters", {})
        for name in RELATIONSHIPS:
            if name not in parameters:
                continue
            value = neutral(parameters[name])
            for other in value if isinstance(value, list) else [value]:
                if not isinstance(other, str):
                    continue
                first, second = (other, ref) if name in _AFTER else (ref, other)
                pairs[first, second, _AFTER.get(name, name)] = None
    return pairs
