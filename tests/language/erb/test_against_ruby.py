"""Translated templates render what Ruby's own ERB renders, byte for byte, and fail at the same line."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from language.erb import methods
from language.erb.runtime import lacking
from tests.environments.ruby.site import PROGRAM
from tests.language.erb.judging import Judge, Outcome, Translator, difference
from tests.language.erb.matrix import chained, expressions
from tests.language.erb.scopes import Variables
from tests.language.erb.written import templates
from tests.support.examples import examples
from tests.support.needs import needs_ruby

OWN = Path(__file__).parents[2] / "data" / "erb"
INSTALLED = Path("/usr/share/puppet/modules")

pytestmark = [needs_ruby, pytest.mark.works_with("Ruby in modules, without Puppet", "ERB templates that run as Python, beside Ruby's ERB")]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PROGRAM) as judge:
        yield judge


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator()


def judged(judge: Judge, translator: Translator, template: str, scopes: int, seed: int = 0) -> Counter[str]:
    """Compare a template with many scopes; return how many it rendered, failed at, and left to Ruby."""
    outcomes: Counter[str] = Counter()
    for number in range(scopes):
        variables = Variables(template, seed * 1000 + number).generate()
        ours = translator.render(template, variables)
        if ours.doubt:
            outcomes["doubt"] += 1
            continue
        theirs = judge.render(template, variables)
        assert difference(template, ours, theirs) == "", f"{template}\n{variables}\n{ours}\n{theirs}"
        outcomes["text" if ours.text is not None else "error"] += 1
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(OWN.glob("*.erb")), ids=lambda path: path.name)
def test_a_template_renders_what_ruby_renders(path: Path, judge: Judge, translator: Translator) -> None:
    outcomes = judged(judge, translator, path.read_text(), 120)
    assert outcomes["text"] + outcomes["error"] > outcomes["doubt"]


@pytest.mark.slow
def test_the_templates_of_installed_modules_render_what_ruby_renders(judge: Judge, translator: Translator) -> None:
    paths = sorted(path for path in INSTALLED.glob("*/templates/**/*.erb") if path.is_file()) if INSTALLED.is_dir() else []
    if not paths:
        pytest.skip("no module is installed in /usr/share/puppet/modules")
    outcomes: Counter[str] = Counter()
    for path in paths:
        text = path.read_text("utf-8", "surrogateescape")
        if translator.template(text).body is not None:
            outcomes += judged(judge, translator, text, 5)
    assert outcomes["text"] > outcomes["doubt"] * 5


@pytest.mark.slow
def test_each_method_on_each_kind_of_value_gives_what_ruby_gives(judge: Judge, translator: Translator) -> None:
    everything = list(expressions(sample=2, seed=1))
    chosen = random.Random(2).sample(everything, 4000)
    outcomes: Counter[str] = Counter()
    for expression in chosen:
        template = f"<% z = 1 %>\n<%= z = {expression}; z.inspect %>|<%= z %>|<%= z ? 1 : 2 %>\n"
        ours = translator.render(template, {})
        if ours.doubt:
            outcomes["doubt"] += 1
            continue
        assert difference(template, ours, judge.render(template, {})) == "", expression
        outcomes["text" if ours.text is not None else "error"] += 1
    assert outcomes["text"] > 800
    assert outcomes["error"] > 800


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(template=templates(), seed=st.integers(0, 10_000))
def test_generated_templates_render_what_ruby_renders(judge: Judge, translator: Translator, template: str, seed: int) -> None:
    if translator.template(template).body is not None:
        judged(judge, translator, template, 3, seed)


@pytest.mark.slow
def test_operators_bind_as_in_ruby(judge: Judge, translator: Translator) -> None:
    """Without parentheses; what Ruby does not parse is not translated."""
    outcomes: Counter[str] = Counter()
    for expression in chained(2500, seed=3):
        template = f"<% x = 5 -%>\n<%= ({expression}).inspect %>"
        ours = translator.template(template)
        if ours.body is None:
            continue
        outcome = translator.render(template, {"n": 4})
        if not outcome.doubt:
            assert difference(template, outcome, judge.render(template, {"n": 4})) == "", expression
            outcomes["text" if outcome.text is not None else "error"] += 1
    assert outcomes["text"] > 200


@pytest.mark.parametrize(
    "template",
    [
        "<%= 1 if 'a' || not(nil) %>",
        "<% if 1 == not(nil) %>x<% end %>",
        "<%= [1, 2].each { |x| break } %>",
        "<% [1].each do |a| -%>\n" * 25 + "x" + "<% end %>" * 25,
        "<% if @a -%>\na\n" + "".join(f"<% elsif @a == {number} -%>\nb\n" for number in range(400)) + "<% end %>",
    ],
)
def test_what_is_odd_or_too_deep_is_left_to_ruby_or_is_as_there(template: str, judge: Judge, translator: Translator) -> None:
    if translator.template(template).body is not None:
        assert translator.render(template, {}) == judge.render(template, {})


@pytest.mark.parametrize(
    "template",
    [
        "a\n<%= @x.join(',') %>",
        "<%# one\n two %>\n<% @x.each do |y| -%>\n<%= y %>\n<% end %>",
        "<% [1].each do |y| -%>\n\n<%= y + nil %>\n<% end %>",
        "<%- def f(a)\n  a.upcase\nend -%>\n\n<%= f(@x) %>",
        "x\n<%= [1, 'a'].sort.inspect %>",
        "<%\n\n 1 / 0\n%>",
    ],
)
def test_an_error_is_at_the_line_where_ruby_has_it(template: str, judge: Judge, translator: Translator) -> None:
    ours, theirs = translator.render(template, {}), judge.render(template, {})
    assert ours.error
    assert theirs.error
    assert difference(template, ours, theirs) == ""


@pytest.mark.parametrize(
    "template",
    [
        "a <%- 1 -%>  <%- 2 -%>\nb",
        "<% x = 1 -%>\r\n<%= x -%>\r\nrest\r\n",
        "  <%- if true -%>\n yes\n  <%- end -%>\nend\n",
        "<%% a %%> <%= '%' %>%",
        "<%= 1\n+ 1 %>\n<%=\n'a' -%>\n\n",
        "<%#-%>\nx",
        "\t<%- 1 %>\n<%-# a -%>\nb",
        "é <%= 'ü' * 2 %>\nß",
        "<%= %>|<%%>",
        "%% line\n% x\n<%= 2 %>",
        "<% a = [1,2] -%>\n<% for_all = a.map do |x| -%>\n<%= x %>\n<% end -%>",
    ],
)
def test_tags_and_line_ends_are_trimmed_as_ruby_does_it(template: str, judge: Judge, translator: Translator) -> None:
    if translator.template(template).body is None:
        assert judge.render(template, {}) != Outcome("")
        return
    assert translator.render(template, {}) == judge.render(template, {})


@pytest.mark.slow
def test_the_methods_that_classes_lack_are_those_that_ruby_says() -> None:
    names = sorted({*methods.METHODS, *methods.BLOCK_METHODS})
    values = {"Array": "[]", "Float": "1.5", "Hash": "{}", "Integer": "1", "String": "''", "Symbol": ":a", "Range": "(1..2)"}
    for kind, value in values.items():
        code = f"puts ARGV.reject {{ |name| {value}.respond_to?(name) }}"
        answer = subprocess.run([PROGRAM, "-rjson", "-e", code, "--", *names], capture_output=True, text=True, check=True, timeout=60)
        assert set(answer.stdout.split()) == lacking.LACKING[kind]
    for value, those in (("nil", lacking.OF_NIL), ("true", lacking.OF_BOOLEANS)):
        code = f"puts ARGV.select {{ |name| {value}.respond_to?(name) }}"
        answer = subprocess.run([PROGRAM, "-rjson", "-e", code, "--", *names], capture_output=True, text=True, check=True, timeout=60)
        assert set(answer.stdout.split()) == those
