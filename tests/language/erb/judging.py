"""Translated templates beside Ruby's own ERB: both render the same template with the same variables."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

from language.codegen.codecache import CodeCache
from language.erb import Doubt, RubyError
from language.erb.runtime.session import TemplateSession
from language.loading.erb_templates import ErbTemplate, ErbTemplates, template_line
from language.values.core import MISSING

JUDGE = Path(__file__).with_name("judge.rb")


class Judge:
    """A Ruby that renders templates; to be used as a context manager."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen([program, str(JUDGE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=30)

    def render(self, template: str, variables: Mapping[str, Any]) -> Outcome:
        """Return what Ruby makes of a template."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"template": template, "variables": variables}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Outcome(answer.get("text"), answer.get("error", ""), answer.get("line", 0))


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What became of a template.

    Attributes:
        text: None when it failed.
        error: the message.
        line: where it failed.
        doubt: why the translated template left the rendering to Ruby.
    """

    text: str | None
    error: str = ""
    line: int = 0
    doubt: str = ""


@dataclass
class FakeScope:
    """A scope as a translated template asks it, with the functions that the judge has, too."""

    values: dict[str, Any]
    compilation: Any = field(init=False)

    def __post_init__(self) -> None:
        self.compilation = SimpleNamespace(host=SimpleNamespace(ruby=None), template_values={}, changed={})

    def data_context(self) -> Any:
        return SimpleNamespace(variable=self.values.get)

    def find(self, name: str) -> Any:
        return self.values.get(name, MISSING)

    def special_names(self) -> list[str]:
        return [name for name in self.values if not name.isidentifier()]

    def variables(self) -> dict[str, Any]:
        return dict(self.values)

    def set(self, name: str, value: Any) -> None:
        self.values[name] = value

    def call_function(self, name: str, args: list[Any]) -> Any:
        if name == "versioncmp":
            one, two = ([int(number) for number in re.findall("[0-9]+", _text(arg))] for arg in args)
            return (one > two) - (one < two)
        return f"{name}{json.dumps(args, separators=(',', ':'), ensure_ascii=False)}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


class Translator:
    """Translated templates, each translated once."""

    def __init__(self) -> None:
        self.templates = ErbTemplates(CodeCache())

    def template(self, text: str) -> ErbTemplate:
        return self.templates.get(text, "judged.erb")

    def render(self, text: str, variables: Mapping[str, Any]) -> Outcome:
        """Return what the translation of a template makes of it; the template has to have one."""
        template = self.template(text)
        assert template.body is not None, template.reason
        before = json.dumps(variables)
        try:
            rendered = template.body(TemplateSession(FakeScope(dict(variables))))
        except Doubt as doubt:
            return Outcome(None, line=template_line(doubt.__traceback__), doubt=str(doubt))
        except RubyError as error:
            return Outcome(None, str(error), template_line(error.__traceback__))
        assert json.dumps(variables) == before, "a template has changed a variable of the scope"
        return Outcome(rendered)


def lines_lost(template: str, line: int) -> int:
    """Return how many lines Ruby's ERB does not count up to a line: those in comments."""
    before = "\n".join(template.split("\n")[:line])
    return sum([comment.count("\n") for comment in re.findall(r"<%#.*?%>", before, re.DOTALL)])


def difference(template: str, ours: Outcome, judged: Outcome) -> str:
    """Return what is wrong with an outcome of ours; '' when nothing is."""
    if ours.doubt or re.match("undefined method .=~.", judged.error):  # of values that are no strings, since Ruby 3.2
        return ""
    if ours.text is not None or judged.text is not None:
        return "" if ours.text == judged.text else "another text" if judged.text is not None and ours.text is not None else "one failed"
    if ours.line - lines_lost(template, ours.line) != judged.line and ours.line != judged.line:
        return "another line"
    return "" if _sense(ours.error) == _sense(judged.error) else "another error"


def _sense(message: str) -> str:
    """Return a message without the value that Ruby shows in it."""
    message = message.replace("private method", "undefined method").replace(" called for ", " for ")
    message = re.sub(r"comparison of .* failed", "comparison failed", message)
    return re.sub(r"(undefined method `[^']*' for ).*:", r"\1:", message)
